"""Vectors over each store: built by one process, searched by another, erased by a third, collected as garbage."""

from __future__ import annotations

from typing import Any

from core.authority import Principal
from core.ports import Objects, Table
from core.protocol.http_types import CreateSpaceInput
from core.protocol.request import read_request
from core.service.values import Caller
from core.storage.layout import space_pk, vector_segment
from functions.adapters import Adapters
from functions.bootstrap import Services, build
from functions.settings import Settings
from infra.local.queue import EmbeddedQueue
from infra.system import SystemClock, SystemEntropy
from tests.conformance.world import json_of
from tests.doubles import HashEmbedder

OWNER = Principal("owner")
SAID = ["Alice bought a red car", "the cat sleeps on the sofa", "it rains in Bergen"]


class Stores:
    """One store, and processes over it."""

    def __init__(self, table: Table, objects: Objects, *, local: bool) -> None:
        self.clock = SystemClock()
        embedder = HashEmbedder(alike={"automobil": "car"}, local=local)
        self.world = Adapters(
            table, objects, EmbeddedQueue(self.clock), self.clock, SystemEntropy(), embedder=embedder
        )
        wish = CreateSpaceInput(user="owner", space_id="demo", tier=1)
        self.process().admin.create_space(Caller("boss", "rest", "*"), wish, self.clock.now() + 20_000)

    def process(self) -> Services:
        """A process with cold caches."""
        return build(Settings(), self.world)

    def say(self, command: str) -> Any:
        """The result of one command, by a new process."""
        process = self.process()
        request = read_request({"kip": "2.0", "operations": [{"command": command}]})
        answer = json_of(process.kip.execute("demo", request, OWNER, deadline=self.clock.now() + 20_000))
        assert answer["status"] == "succeeded", answer
        return answer["results"][0]

    def index(self) -> None:
        """As the worker does."""
        self.process().vector_upkeep.index("demo", deadline=self.clock.now() + 20_000)

    def sidecars(self) -> list[str]:
        return [key for key, _, _ in self.world.objects.list("demo/seg/") if vector_segment(key)]


def check(stores: Stores) -> None:
    """The life of some vectors."""
    made = [
        stores.say(f'CREATE EVIDENCE ?e {{SET FIELDS {{evidence_class: "message", payload: "{text}"}}}}')
        for text in SAID
    ]
    ids = [one["result"]["handles"]["e"]["id"] for one in made]
    stores.index()
    ask = 'SEARCH EVIDENCE "automobile" MODE "semantic" LIMIT 1'
    before = stores.say(ask)
    assert [hit["id"] for hit in before["result"]] == ids[:1]
    process = stores.process()
    assert process.upkeep.compact("demo", "me") is not None
    stores.index()
    assert len(stores.sidecars()) == 1
    after = stores.say(ask)
    assert after["result"] == before["result"]
    assert "warnings" not in after
    stores.say('CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "one more car"}}')
    stores.index()
    assert len(stores.say('SEARCH EVIDENCE "automobile" MODE "semantic" THRESHOLD 0.2')["result"]) == 2
    receipt = stores.process().erasures.erase("demo", ids[:1], "owner", owner="me")
    assert receipt.clean
    rows = stores.world.table.query(space_pk("demo"), "V#", "V#~", limit=9)
    assert (stores.sidecars(), rows) == ([], [])
    stores.index()
    assert "warnings" not in stores.say('SEARCH EVIDENCE "cat" MODE "hybrid"')
    assert ids[0] not in [
        hit["id"] for hit in stores.say('SEARCH COGNITION "red car" MODE "semantic"')["result"]
    ]
    assert stores.process().erasures.delete_space("demo", "owner", owner="me").clean
    assert stores.sidecars() == []


def test_vectors_live_and_go_on_every_store(table: Table, objects: Objects) -> None:
    """With an embedder of this process, whose tail is embedded by the question."""
    check(Stores(table, objects, local=True))


def test_vectors_of_a_service_live_and_go_on_every_store(table: Table, objects: Objects) -> None:
    """With an embedder that only the worker asks, whose tail stands in rows."""
    check(Stores(table, objects, local=False))
