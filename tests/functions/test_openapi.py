"""The OpenAPI document: valid, current, and true of what the service answers."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from functions import openapi
from functions.documents import _STATIC
from functions.endpoints import ENDPOINTS
from tests.functions.capsule_cases import CAPSULE, RESTORE
from tests.functions.fact_cases import FACT_CASES
from tests.functions.world import World, served

DOCUMENT: dict[str, Any] = openapi.document()


def test_the_file_is_what_the_tables_say() -> None:
    """After a change of a route or type: python -m functions.openapi > functions/static/openapi.json."""
    assert (_STATIC / "openapi.json").read_text("utf-8") == openapi.text()


def test_the_document_is_valid_openapi() -> None:
    """It satisfies the schema of OpenAPI 3.1."""
    validator = pytest.importorskip(
        "openapi_spec_validator", reason="openapi-spec-validator is not installed"
    )

    validator.validate(json.loads(openapi.text()))


def test_every_served_endpoint_stands_in_it_once() -> None:
    """Paths and methods are those of the list of endpoints, and no operation id is given twice."""
    found = {
        (method.upper(), path): operation["operationId"]
        for path, operations in DOCUMENT["paths"].items()
        for method, operation in operations.items()
    }

    assert found == {(ENDPOINTS[name].method, ENDPOINTS[name].path): name for name in served()}


def test_every_schema_is_a_schema_and_every_reference_leads_somewhere() -> None:
    """JSON Schema 2020-12 throughout, no dangling $ref."""
    schemas = DOCUMENT["components"]["schemas"]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    for ref in references(DOCUMENT):
        assert ref.removeprefix("#/components/schemas/") in schemas


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [ref for each in value.values() for ref in references(each)]
    return [ref for each in value for ref in references(each)] if isinstance(value, list) else []


def schema_of(name: str, status: int) -> dict[str, Any]:
    endpoint = ENDPOINTS[name]
    operation = DOCUMENT["paths"][endpoint.path][endpoint.method.lower()]
    schema = operation["responses"][str(status)]["content"]["application/json"]["schema"]
    return {**schema, "components": DOCUMENT["components"]}


TALK = {"messages": [{"role": "user", "name": "Alice", "content": "I love tea."}]}
ASKED: list[tuple[str, str, Any]] = [
    ("service_info", "/info", None),
    ("formation", "/v1/demo/formation", TALK),
    ("space_info", "/v1/demo/info", None),
    ("space_status", "/v1/demo/status", None),
    ("formation_status", "/v1/demo/formation_status", None),
    ("list_conversations", "/v1/demo/conversations", None),
    ("get_conversation", "/v1/demo/conversations/1", None),
    ("get_conversation_delta", "/v1/demo/conversations/1/delta", None),
    ("recall", "/v1/demo/recall", {"query": "tea?"}),
    ("recall_structured", "/v1/demo/recall_structured", {"query": "tea?"}),
    ("probe", "/v1/demo/probe", {"query": "tea"}),
    ("execute_kip_readonly", "/v1/demo/execute_kip_readonly", {"command": "DESCRIBE PROTOCOL"}),
    ("execute_kip", "/v1/demo/execute_kip", 'CREATE CONCEPT ?c {TYPE "Person"}'),
    ("mcp", "/mcp/demo", {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
    ("forget", "/v1/demo/memory/forget", {"entities": ["C-1"], "dry_run": True}),
    ("get_or_init_user", "/v1/demo/get_or_init_user", {"user": "carol"}),
    ("maintenance", "/v1/demo/maintenance", {"scope": "full"}),
    ("memory_status", "/v1/demo/memory_status", None),
    ("pin", "/v1/demo/memory/pin", None),
    ("log_checkpoint", "/v1/demo/management/log_checkpoint", {}),
    ("shadow_eval", "/v1/demo/management/shadow_eval", {"policy": {}}),
    (
        "migrate",
        "/v1/demo/management/migrate",
        {"source": "old", "concepts": [{"type": "City", "name": "Rome"}]},
    ),
    (
        "add_space_token",
        "/v1/demo/management/add_space_token",
        {"scope": "read", "name": "a", "labels": ["x"]},
    ),
    ("list_space_tokens", "/v1/demo/management/space_tokens", None),
    ("revoke_space_token", "/v1/demo/management/revoke_space_token", {"name": "a"}),
    (
        "update_space_byok",
        "/v1/demo/management/space_byok",
        {"family": "anthropic", "model": "claude-haiku-4-5", "api_key": "a-key-of-the-tests"},
    ),
    ("get_space_byok", "/v1/demo/management/space_byok", None),
    ("update_space", "/v1/demo/management/update_space", {"public": False}),
    ("restart_formation", "/v1/demo/management/restart_formation", {"conversation": 1}),
    ("export_capsule", "/host/v1/demo/capsules/export", {}),
    ("verify_capsule", "/host/v1/demo/capsules/verify", {"capsule": CAPSULE}),
    ("preview_capsule", "/host/v1/demo/capsules/preview", {"capsule": CAPSULE}),
    ("import_capsule", "/host/v1/demo/capsules/import", {"capsule": CAPSULE}),
    ("restore_capsule", "/admin/restored/restore_capsule", RESTORE),
    (
        "governance_command",
        "/host/v1/demo/governance/commands",
        {"command": "put_group", "group": {"name": "team", "members": ["bob"]}},
    ),
    ("governance", "/host/v1/demo/governance", None),
    ("governance_records", "/host/v1/demo/governance/records/groups", None),
    ("governance_effective", "/host/v1/demo/governance/effective", None),
    ("governance_decide", "/host/v1/demo/governance/decide", {"subject": "bob", "action": "read"}),
    ("governance_audit", "/host/v1/demo/governance/audit", None),
    ("governance_refusals", "/host/v1/demo/governance/refusals", None),
    ("update_space_tier", "/admin/demo/update_space_tier", {"user": "alice", "space_id": "demo", "tier": 2}),
    ("create_space", "/admin/create_space", {"user": "bob", "space_id": "two", "tier": 1}),
    ("space_upkeep", "/admin/demo/upkeep", None),
    ("trim_history", "/admin/demo/trim_history", {"keep_days": 30}),
    ("delete_space", "/admin/demo/delete_space", {"space_id": "demo"}),
]


def test_every_answer_fits_its_schema() -> None:
    """Each route's answer, and a refusal of each, are what the document promises."""
    assert {name for name, _, _ in ASKED} == {
        name for name in served() if name not in {"skill", "openapi", "favicon", "touch_icon", *FACT_CASES}
    }
    world = World().make_space()
    person = ""
    for name, path, asked in ASKED:
        body = {"entity": person} if name == "pin" else asked
        token = world.admin_token() if path.startswith("/admin") else world.token()
        refused = world.ask(ENDPOINTS[name].method, path, body)
        if refused.status != 200:
            Draft202012Validator(schema_of(name, refused.status)).validate(refused.json)

        answer = world.ask(ENDPOINTS[name].method, path, body, token=token)
        if answer.status == 202:  # it works: let it end, and ask again
            Draft202012Validator(schema_of(name, 202)).validate(answer.json)
            world.services.shadows.work("demo", world.clock.now() + 600_000)
            answer = world.ask(ENDPOINTS[name].method, path, body, token=token)

        assert answer.status == 200, (name, answer.body)
        Draft202012Validator(schema_of(name, 200)).validate(answer.json)
        if name == "get_or_init_user":
            person = answer.result["id"]
