"""A governed space over a socket, as an operator makes it: two people, and each sees their part by every way."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from functions.cli.terminal import now_s
from functions.minting import mint, public_key_of
from tests.e2e.local import Service, serving

TENANT = base64.urlsafe_b64encode(b"tenant key of this very test, 32").decode().rstrip("=")
ADMIN = base64.urlsafe_b64encode(b"admin key of this very test, 32b").decode().rstrip("=")
GOVERNANCE = "/host/v1/team/governance"
MCP = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}


class People:
    """A service with keys, and who asks it."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def ask(self, who: str, method: str, path: str, body: Any = None, **headers: str) -> Any:
        key, aud = (ADMIN, "*") if who == "boss" else (TENANT, "team")
        token = mint(key, subject=who, audience=aud, scope="*", now_s=now_s())
        given = {"authorization": f"Bearer {token}", **headers}
        response = self.service.http.request(method, path, json=body, headers=given)
        assert response.status_code == 200, response.text
        return response.json()

    def command(self, **command: Any) -> Any:
        return self.ask("ann", "POST", f"{GOVERNANCE}/commands", command)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """Ann's space: bob reads what is not secret; one fact is."""
    folder: Path = tmp_path_factory.mktemp("governed")
    keys = {"ED25519_PUBKEYS": public_key_of(TENANT), "NOEMA_ADMIN_PUBKEYS": public_key_of(ADMIN)}
    with serving(folder, MANAGERS="boss", **keys) as service:
        made = People(service)
        made.ask("boss", "POST", "/admin/create_space", {"user": "ann", "space_id": "team", "tier": 1})
        for text in ("The picnic is on Friday", "Salaries rise on Friday"):
            fact = made.ask("ann", "POST", "/v1/team/facts", {"agent_id": "desk", "text": text})["result"]
        made.command(command="set_policy", policy={"default": "deny"})
        seen = {"classifications": ["public", "internal"]}
        rule = {"id": "r", "effect": "allow", "subjects": ["principal:bob"], "permissions": ["role:reader"]}
        made.command(command="put_rule", rule={**rule, "where": seen})
        made.command(command="classify", ids=[fact["element"]], label="secret")
        yield made


@pytest.mark.parametrize(("who", "sees"), [("ann", True), ("bob", False)])
def test_each_sees_their_part(people: People, who: str, sees: bool) -> None:
    """Over REST, KIP and MCP: both see the picnic, and the owner alone the salaries."""
    query = {"agent_id": "desk", "query": "Friday"}
    call = {"name": "memory_search", "arguments": query}
    told = [
        people.ask(who, "POST", "/v1/team/facts/recall", query),
        people.ask(who, "GET", "/v1/team/facts?agent_id=desk"),
        people.ask(who, "POST", "/v1/team/execute_kip", {"command": "FIND(?c) WHERE {?c CONCEPT {}}"}),
        people.ask(
            who,
            "POST",
            "/mcp/team",
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
            **MCP,
        ),
    ]

    assert ["picnic" in str(each) for each in told] == [True] * 4
    assert ["Salaries" in str(each) for each in told] == [sees] * 4
    stats = people.ask(who, "GET", "/v1/team/facts/stats?agent_id=desk")["result"]
    assert stats["fact_count"] == 1 + sees


def test_the_audit_tells_what_was_done(people: People) -> None:
    """Every command stands there with its maker, in order."""
    listed = people.ask("ann", "GET", f"{GOVERNANCE}/audit?control_only=true")["result"]

    assert [(each["principal"], each["operation"]) for each in listed] == [
        ("ann", "set_policy"), ("ann", "put_rule"), ("ann", "classify"),
    ]  # fmt: skip
