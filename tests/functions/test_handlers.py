"""The handlers as Lambda calls them, over services that the environment names."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from functions import bootstrap, management, reads, tick, worker, writes
from functions.catalog import ROUTES
from functions.endpoints import ENDPOINTS
from infra.local.table import SqliteTable
from tests.functions.test_keys import spellings
from tests.functions.world import ADMIN_KEY, TENANT_KEY, event, public

VARIABLES = (
    "NOEMA_STORE", "NOEMA_DATA_DIR", "ED25519_PUBKEYS", "NOEMA_ADMIN_PUBKEYS", "MANAGERS", "CORS_ORIGINS",
    "SHARDING_IDX", "ALLOW_INSECURE_LOCAL", "NOEMA_ENDPOINT_HOST", "AWS_LAMBDA_FUNCTION_NAME",
)  # fmt: skip


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """The embedded store in a fresh folder, open to this machine; services are built anew."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NOEMA_STORE", "embedded")
    monkeypatch.setenv("NOEMA_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("ALLOW_INSECURE_LOCAL", "1")
    monkeypatch.setenv("NOEMA_ENDPOINT_HOST", "127.0.0.1")
    bootstrap.services.cache_clear()
    yield monkeypatch
    forget()


def forget() -> None:
    """End what a process would: close the store and drop the services."""
    if bootstrap.services.cache_info().currsize and isinstance(bootstrap.services().table, SqliteTable):
        bootstrap.services().table.close()
    bootstrap.services.cache_clear()


class Context:
    """A Lambda context with time left."""

    aws_request_id = "invocation-1"

    def get_remaining_time_in_millis(self) -> int:
        return 29_000


def call(handler: Any, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    raw = None if body is None else json.dumps(body).encode()
    out = handler(
        event(method, path, raw, {"host": "127.0.0.1:8042", "content-type": "application/json"}), Context()
    )
    return out["statusCode"], json.loads(out["body"])


TALK = {"messages": [{"role": "user", "name": "Alice", "content": "I love tea."}]}


def test_the_path_of_a_memory_through_the_real_handlers(environment: pytest.MonkeyPatch) -> None:
    """Create, submit, work, ask; then a new process finds it all in the folder."""
    space = {"user": "alice", "space_id": "demo", "tier": 1}
    assert call(management.handler, "POST", "/admin/create_space", space)[0] == 200
    assert call(writes.handler, "POST", "/v1/demo/formation", TALK)[1] == {
        "result": {"content": "", "conversation": 1}
    }
    message: Any = bootstrap.services().queue.receive(0.1)  # type: ignore[attr-defined]
    record = {"messageId": "m", "body": message.body, "attributes": {"MessageGroupId": message.group}}
    assert worker.handler({"Records": [record]}, None) == {"batchItemFailures": []}
    bootstrap.services.cache_clear()

    status, answer = call(
        reads.handler, "POST", "/v1/demo/recall_structured", {"query": "What does Alice love?"}
    )

    assert status == 200
    assert answer["result"]["found"] is True
    assert "tea" in answer["result"]["answer"]
    assert isinstance(bootstrap.services().table, SqliteTable)
    assert tick.handler({}, None) == dict.fromkeys(
        ("formation", "maintenance", "upkeep", "facts", "recall"), 0
    )


def test_services_are_built_once(environment: pytest.MonkeyPatch) -> None:
    """Warm calls share the services, and with them the cache."""
    assert bootstrap.services() is bootstrap.services()
    assert bootstrap.services().spaces is bootstrap.services().spaces


def test_a_bad_environment_is_a_500_in_json_until_it_is_mended(environment: pytest.MonkeyPatch) -> None:
    """The handler answers; it does not crash, and it does not remember the failure."""
    environment.setenv("SHARDING_IDX", "x")
    status, body = call(reads.handler, "GET", "/info")
    assert (status, body["error"]["data"]["code"]) == (500, "InternalError")
    environment.setenv("SHARDING_IDX", "0")

    assert call(reads.handler, "GET", "/info")[0] == 200


def test_an_open_deployment_is_refused_by_the_handlers(environment: pytest.MonkeyPatch) -> None:
    """On a Lambda function the insecure wish is no setting: nothing is served."""
    environment.setenv("AWS_LAMBDA_FUNCTION_NAME", "noema-reads")

    assert call(reads.handler, "GET", "/v1/demo/info")[0] == 500


def test_keys_from_the_environment_close_the_door(environment: pytest.MonkeyPatch) -> None:
    """With keys set, a caller without a token is a 401."""
    environment.setenv("ED25519_PUBKEYS", ",".join(spellings(public(TENANT_KEY).x)))
    environment.setenv("NOEMA_ADMIN_PUBKEYS", spellings(public(ADMIN_KEY).x)[0])

    assert call(reads.handler, "GET", "/v1/demo/info")[0] == 401
    assert call(management.handler, "POST", "/admin/create_space", {})[0] == 401


def test_the_fallback_answers_for_every_function(environment: pytest.MonkeyPatch) -> None:
    """What no endpoint matches goes to the reads function, which knows the whole list."""
    assert call(reads.handler, "GET", "/nothing")[0] == 404
    assert call(reads.handler, "GET", "/v1/demo/formation")[0] == 405
    assert call(reads.handler, "POST", "/v1/demo/outcomes")[0] == 501


def test_the_memory_store_serves_too(environment: pytest.MonkeyPatch) -> None:
    """For a trial that leaves nothing behind."""
    environment.setenv("NOEMA_STORE", "memory")
    space = {"user": "alice", "space_id": "demo", "tier": 1}

    assert call(management.handler, "POST", "/admin/create_space", space)[0] == 200
    assert call(reads.handler, "GET", "/v1/demo/info")[0] == 200


def test_a_misrouted_request_is_a_500_not_another_functions_answer(environment: pytest.MonkeyPatch) -> None:
    """A function does not serve what another's rights are for."""
    assert call(reads.handler, "POST", "/v1/demo/formation", TALK)[0] == 500
    assert "formation" in ROUTES
    assert ENDPOINTS["formation"].function == "writes"
