"""KIP over each store: what is written by one process is read, retried, paged, looked up and erased by another."""

from __future__ import annotations

from typing import Any

import pytest

from core.authority import Principal
from core.ports import Objects, Table
from core.protocol.http_types import CreateSpaceInput
from core.protocol.request import read_request
from core.service.values import Caller
from functions.adapters import Adapters
from functions.bootstrap import Services, build
from functions.settings import Settings
from infra.local.queue import EmbeddedQueue
from infra.system import SystemClock, SystemEntropy
from tests.conformance.world import json_of

OWNER = Principal("owner")
UPSERT = 'UPSERT CONCEPT ?p {MATCH {type: "Person", key: :k} SET FIELDS {name: :n}}'
NAMES = 'FIND(?p.name) WHERE {?p CONCEPT {type: "Person"}} ORDER BY ?p.name LIMIT 1'


class Stores:
    """One store, and processes over it."""

    def __init__(self, table: Table, objects: Objects) -> None:
        self.clock = SystemClock()
        self.world = Adapters(table, objects, EmbeddedQueue(self.clock), self.clock, SystemEntropy())
        wish = CreateSpaceInput(user="owner", space_id="demo", tier=1)
        self.process().admin.create_space(Caller("boss", "rest", "*"), wish, self.clock.now() + 20_000)

    def process(self) -> Services:
        """A process with cold caches."""
        return build(Settings(), self.world)


def say(process: Services, command: str, *, key: str | None = None, **parameters: Any) -> dict[str, Any]:
    """The response to one command."""
    operation = {"command": command, "parameters": parameters} | ({"idempotency_key": key} if key else {})
    request = read_request({"kip": "2.0", "operations": [operation]})
    return json_of(process.kip.execute("demo", request, OWNER, deadline=process.clock.now() + 20_000))


@pytest.fixture
def stores(table: Table, objects: Objects) -> Stores:
    """A space in each store in turn."""
    return Stores(table, objects)


def test_a_request_means_the_same_on_every_store(stores: Stores) -> None:
    """Writes, retries, pages, AS OF, lookup by key and a purge, each by another process than the one before."""
    first = say(stores.process(), UPSERT, key="a", k="alice", n="Alice")
    again = say(stores.process(), UPSERT, key="a", k="alice", n="Alice")
    say(stores.process(), UPSERT, k="bob", n="Bob")
    say(stores.process(), UPSERT, k="alice", n="Zoë 🙂")

    page = say(stores.process(), NAMES)["results"][0]
    rest = say(stores.process(), NAMES + " CURSOR :c", c=page["next_cursor"])["results"][0]
    past = say(
        stores.process(),
        'FIND(?p.name) WHERE {?p CONCEPT {key: "alice"}} AS OF TX :t',
        t=first["receipt"]["tx_id"],
    )
    gone = say(stores.process(), 'PURGE ?p WHERE {?p CONCEPT {key: "alice"}} CONFIRM "PURGE"')
    after = say(
        stores.process(),
        'FIND(?p.name) WHERE {?p CONCEPT {key: "alice"}} AS OF TX :t',
        t=first["receipt"]["tx_id"],
    )

    assert first["receipt"] == again["receipt"]
    assert (page["result"], rest["result"]) == (["Bob"], ["Zoë 🙂"])
    assert past["results"][0]["result"] == ["Alice"]
    assert gone["status"] == "succeeded", gone
    assert "warnings" not in gone["results"][0]  # the bytes are gone, now
    assert after["results"][0].get("result") in ([], None)


def test_processes_sign_with_one_key(stores: Stores) -> None:
    """The first use makes it, and every store gives the same bytes back."""
    one, other = stores.process(), stores.process()
    token = say(one, "SNAPSHOT")["results"][0]["result"]
    read = {
        "kip": "2.0",
        "operations": [{"command": "DESCRIBE PROTOCOL"}],
        "read": {"snapshot_token": token["snapshot_token"]},
    }
    answer = json_of(
        other.kip.execute("demo", read_request(read), OWNER, deadline=other.clock.now() + 20_000)
    )

    assert answer["status"] == "succeeded", answer
