"""KIP SEARCH by meaning and by both (KIP §66): modes, freshness, what hidden elements change, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.authority import Principal
from core.model.elements import Governance, Origin
from core.ports import EmbedderUnavailable
from core.protocol.http_types import CreateSpaceInput
from core.protocol.request import read_request
from core.service.erasure import Erasures
from core.service.kip import Kip
from core.service.upkeep import Upkeep
from core.service.values import Caller, Proposal
from core.service.vector_upkeep import VectorUpkeep
from core.service.vectors import Vectors
from core.transaction.draft import Draft
from tests.conformance.world import json_of
from tests.doubles import FakeClock, HashEmbedder
from tests.services import World

OWNER = Principal("owner")
LATER = 10**15
ALIKE = {"automobil": "car", "vehicl": "car"}
SETUP = [
    'CREATE EVIDENCE ?a {SET FIELDS {evidence_class: "message", payload: "Alice bought a red car"}}',
    'CREATE EVIDENCE ?a {SET FIELDS {evidence_class: "message", payload: "the cat sleeps on the sofa"}}',
    'CREATE CONCEPT ?a {TYPE "Person" NAME "Vehicle"}',
    'CREATE CONCEPT ?a {TYPE "Person" NAME "Bob"}',
]


class Deployment:
    """A space and a KIP service that can search by meaning."""

    def __init__(self, embedder: HashEmbedder | None = None) -> None:
        self.world = World(clock=FakeClock(step_ms=1))
        wish = CreateSpaceInput(user="owner", space_id="demo", tier=1)
        self.world.admin.create_space(Caller("boss", "rest", "*"), wish, LATER)
        self.embedder = embedder or HashEmbedder(alike=ALIKE)
        spaces = self.world.spaces
        self.vectors = Vectors(spaces, self.embedder, lambda: np)
        self.upkeep = Upkeep(spaces, self.world.leases, self.world.entropy)
        self.building = VectorUpkeep(spaces, self.upkeep, self.vectors, self.world.entropy)
        erasures = Erasures(spaces, self.upkeep, self.world.entropy)
        self.kip = Kip(
            spaces,
            self.world.commits,
            erasures,
            self.world.clock,
            secret=b"k" * 32,
            vectors=lambda: self.vectors,
        )

    def send(self, *commands: str, mode: str = "sequence", principal: Principal = OWNER, **more: Any) -> Any:
        request = {"kip": "2.0", "operations": [{"command": one, "parameters": more} for one in commands]}
        if len(commands) > 1:
            request["execution"] = {"mode": mode}
        return json_of(
            self.kip.execute(
                "demo", read_request(request), principal, deadline=self.world.clock.now() + 20_000
            )
        )

    def one(self, command: str, **more: Any) -> Any:
        return self.send(command, **more)["results"][0]

    def code(self, command: str, **more: Any) -> str:
        return str(self.one(command, **more)["error"]["code"])

    def setup(self) -> None:
        for command in SETUP:
            assert self.send(command)["status"] == "succeeded"


@pytest.fixture
def there() -> Deployment:
    made = Deployment()
    made.setup()
    return made


def test_meaning_finds_what_words_miss(there: Deployment) -> None:
    """A word that stands nowhere finds what means the same; keyword finds nothing; the answer says which it was."""
    assert there.one('SEARCH EVIDENCE "automobile"')["result"] == []
    found = there.one('SEARCH EVIDENCE "automobile" MODE "semantic" LIMIT 1')
    [hit] = found["result"]
    assert "red car" in hit["snippet"]
    assert hit["retrieval"]["mode"] == "semantic"
    assert 0 < hit["retrieval"]["score"] <= 1
    search = found["context"]["search"]
    assert search["mode"] == "semantic"
    assert search["index_seq"] == search["current_space_seq"]
    assert search["consistency"] == "transactional"
    assert "hash:1" in search["score_semantics"]
    assert "not confidence or belief" in search["score_semantics"]


def test_hybrid_is_half_words_and_half_meaning(there: Deployment) -> None:
    """Every score is the mean of the two others', and the order follows it."""
    for text in ("red car", "vehicle", "cat automobile"):
        by = {
            mode: {
                hit["id"]: hit["retrieval"]["score"]
                for hit in there.one(f'SEARCH COGNITION "{text}" MODE "{mode}" LIMIT 50')["result"]
            }
            for mode in ("keyword", "semantic", "hybrid")
        }
        wanted = {
            one: (by["keyword"].get(one, 0) + by["semantic"].get(one, 0)) / 2
            for one in {*by["keyword"], *by["semantic"]}
        }
        assert by["hybrid"] == pytest.approx(wanted, abs=2e-6)
        assert list(by["hybrid"].values()) == sorted(by["hybrid"].values(), reverse=True)
    assert there.one('SEARCH COGNITION "the of and" MODE "hybrid"')["status"] == "succeeded"


def test_a_threshold_and_pages_cut_the_same_order(there: Deployment) -> None:
    """Pages put together are the whole; a threshold cuts it where the score falls below."""
    whole = there.one('SEARCH COGNITION "red car cat sofa" MODE "semantic" LIMIT 50')["result"]
    pages, cursor = [], None
    while True:
        clause = f' CURSOR "{cursor}"' if cursor else ""
        page = there.one(f'SEARCH COGNITION "red car cat sofa" MODE "semantic" LIMIT 1{clause}')
        pages += page["result"]
        cursor = page.get("next_cursor")
        if cursor is None:
            break
    assert pages == whole
    floor = whole[0]["retrieval"]["score"]
    cut = there.one(f'SEARCH COGNITION "red car cat sofa" MODE "semantic" THRESHOLD {floor - 1e-6}')["result"]
    assert [hit["id"] for hit in cut] == [whole[0]["id"]]


def test_statements_are_found_by_what_they_say(there: Deployment) -> None:
    """A Proposition is worded by its ends and its predicate; an Assertion is as near as its Proposition."""
    made = there.one(
        'MUTATE { CREATE CONCEPT ?p {TYPE "Person" NAME "Zoe"} ASSERT ?claim (?p, "name", "automobile dealer") '
        '{ by: ?p, mode: "stated" } }'
    )
    assert made["status"] == "succeeded", made
    hits = there.one('SEARCH PROPOSITION "vehicle dealer" MODE "semantic"')["result"]
    assert hits
    claims = there.one('SEARCH ASSERTION "vehicle dealer" MODE "semantic"')["result"]
    assert claims[0]["retrieval"]["score"] == hits[0]["retrieval"]["score"]


def test_capabilities_tell_what_this_deployment_has(there: Deployment) -> None:
    """With an embedder the modes are there and may be required; without one they are refused by name."""
    value = there.one("DESCRIBE CAPABILITIES")["result"]
    assert value["supported"]["semantic_search"] is value["supported"]["hybrid_search"] is True
    assert value["available"]["semantic_search"] is True
    assert value["search"]["modes"] == ["keyword", "semantic", "hybrid"]
    there.kip._vectors = None
    value = there.one("DESCRIBE CAPABILITIES")["result"]
    assert value["supported"]["semantic_search"] is False
    assert value["search"]["modes"] == ["keyword"]
    assert there.code('SEARCH EVIDENCE "car" MODE "semantic"') == "SearchModeUnsupported"
    assert there.code('SEARCH EVIDENCE "car" MODE "hybrid"') == "SearchModeUnsupported"


@pytest.mark.parametrize("mode", ["nearest", "", "SEMANTIC"])
def test_a_mode_that_is_none_is_refused(there: Deployment, mode: str) -> None:
    """Nothing is guessed."""
    assert there.code(f'SEARCH EVIDENCE "car" MODE "{mode}"') == "InvalidSyntax"


def test_an_embedder_that_is_down_is_never_silently_words(there: Deployment) -> None:
    """Semantic is refused and may be tried again; hybrid answers by words and says so in mode and warning."""
    there.embedder.fault = EmbedderUnavailable("slow")
    error = there.one('SEARCH EVIDENCE "automobile" MODE "semantic"')["error"]
    assert error["code"] == "SearchIndexUnavailable"
    assert error["details"]["reason"] == "embedder_unavailable"
    found = there.one('SEARCH EVIDENCE "red car" MODE "hybrid"')
    assert found["context"]["search"]["mode"] == "keyword"
    assert {hit["retrieval"]["mode"] for hit in found["result"]} == {"keyword"}
    [warning] = [one for one in found["warnings"] if one["code"] == "SearchMeaningUnavailable"]
    assert warning["details"]["reason"] == "embedder_unavailable"
    assert there.one('SEARCH EVIDENCE "red car"')["status"] == "succeeded"


def test_an_index_that_lags_says_so_and_never_passes_for_a_snapshot() -> None:
    """What the worker has not embedded is missing, said by index_seq and a warning; an atomic request is refused."""
    there = Deployment(HashEmbedder(alike=ALIKE, local=False))
    there.setup()
    there.building.index("demo", deadline=LATER)
    fresh = there.one('SEARCH EVIDENCE "automobile" MODE "semantic"')["context"]["search"]
    there.send('CREATE EVIDENCE ?a {SET FIELDS {evidence_class: "message", payload: "one more vehicle"}}')
    found = there.one('SEARCH EVIDENCE "automobile" MODE "semantic"')
    search = found["context"]["search"]
    assert search["index_seq"] == fresh["index_seq"] < search["current_space_seq"]
    assert search["consistency"] == "eventual"
    assert [one["code"] for one in found["warnings"]] == ["SearchIndexLags"]
    assert not any("one more" in hit.get("snippet", "") for hit in found["result"])
    atomic = there.send('SEARCH EVIDENCE "automobile" MODE "semantic"', "DESCRIBE PROTOCOL", mode="atomic")
    assert atomic["results"][0]["error"]["code"] == "SearchIndexUnavailable"
    there.building.index("demo", deadline=LATER)
    assert "warnings" not in there.one('SEARCH EVIDENCE "automobile" MODE "semantic"')


def test_what_a_transaction_wrote_is_not_searched_by_meaning(there: Deployment) -> None:
    """Rather than miss its own writes silently, such a search is refused; by words it finds them."""
    write = 'CREATE CONCEPT ?c {TYPE "Person" NAME "Automobile"}'
    asked = there.send(write, 'SEARCH CONCEPT "automobile" MODE "hybrid"', mode="atomic")
    assert asked["results"][1]["error"]["code"] == "SearchIndexUnavailable"
    assert asked["status"] == "failed"
    found = there.send(write, 'SEARCH CONCEPT "automobile"', mode="atomic")
    assert found["results"][1]["result"]


def test_the_past_is_searched_by_its_own_vectors(there: Deployment) -> None:
    """AS OF SEQ finds what was there then; a past that has no vectors is refused by name."""
    seq = there.world.spaces.load("demo").seq
    there.send('CREATE EVIDENCE ?a {SET FIELDS {evidence_class: "message", payload: "a second automobile"}}')
    past = there.one('SEARCH EVIDENCE "vehicle" MODE "semantic" AS OF SEQ :n', n=seq)
    assert past["context"]["search"]["index_seq"] == seq
    assert not any("second" in hit["snippet"] for hit in past["result"])
    there.upkeep.compact("demo", "me")
    state = there.world.spaces.load("demo")
    there.send('CREATE EVIDENCE ?a {SET FIELDS {evidence_class: "message", payload: "a third automobile"}}')
    there.world.spaces.forget("demo")
    there.embedder.local = False
    lost = Vectors(there.world.spaces, there.embedder, lambda: np)
    there.kip._vectors = lambda: lost
    assert there.code('SEARCH EVIDENCE "vehicle" MODE "semantic" AS OF SEQ :n', n=state.seq) == (
        "HistoricalSearchUnavailable"
    )


def test_hidden_elements_neither_show_nor_move_what_is_visible(there: Deployment) -> None:
    """A very near element that the caller may not see changes no score and no order of what it sees."""
    secret = Principal("guest", hidden=frozenset({"secret"}))
    before = there.one('SEARCH COGNITION "red car" MODE "semantic" LIMIT 50', principal=secret)["result"]
    hybrid = there.one('SEARCH COGNITION "red car" MODE "hybrid" LIMIT 50', principal=secret)["result"]
    made = there.one(
        'CREATE EVIDENCE ?a {SET FIELDS {evidence_class: "message", payload: "red car red car"}}'
    )
    element_id = made["result"]["handles"]["a"]["id"]
    _classify(there, element_id, "secret")
    after = there.one('SEARCH COGNITION "red car" MODE "semantic" LIMIT 50', principal=secret)["result"]
    assert after == before
    assert (
        there.one('SEARCH COGNITION "red car" MODE "hybrid" LIMIT 50', principal=secret)["result"] == hybrid
    )
    mine = there.one('SEARCH COGNITION "red car" MODE "semantic" LIMIT 50')["result"]
    assert mine[0]["id"] == element_id


def _classify(there: Deployment, element_id: str, classification: str) -> None:
    """Give an element a classification, as the host does."""

    def decide(state: Any) -> Proposal:
        draft = Draft(state, now=there.world.clock.now(), origin=Origin("host", "host"))
        element = draft.view.get(element_id)
        draft.change(element, governance=Governance(classification=classification))
        return Proposal(draft.finish())

    there.world.commits.commit("demo", decide, deadline=LATER)


def test_a_purge_takes_the_vectors_of_what_named_it(there: Deployment) -> None:
    """The stub's own vector goes, and so does that of a statement worded by its name, though its segment may stay."""
    made = there.one(
        'MUTATE { CREATE CONCEPT ?p {TYPE "Person" NAME "Zoe"} ASSERT ?claim (?p, "name", "automobile dealer") '
        '{ by: ?p, mode: "stated" } }'
    )
    assert made["status"] == "succeeded", made
    person = made["result"]["handles"]["p"]["id"]
    assert there.upkeep.compact("demo", "me") is not None
    there.building.index("demo", deadline=LATER)
    [said] = there.one('SEARCH PROPOSITION "Zoe" MODE "semantic" LIMIT 1')["result"]
    assert said["retrieval"]["score"] > 0.1
    gone = there.one(
        'PURGE ?p WHERE {?p CONCEPT {id: :id}} REFERENCE POLICY "tombstone_reference" CONFIRM "PURGE"',
        id=person,
    )
    assert gone["status"] == "succeeded", gone
    state = there.world.spaces.load("demo")
    keys = [key for key, _, _ in there.world.objects.list("demo/seg/") if ".v/" in key]
    assert keys == []
    there.building.index("demo", deadline=LATER)
    dense = there.vectors.nearest(state, "Zoe", deadline=LATER)
    assert person not in dense.of([person])
    assert dense.of([said["id"]]).get(said["id"], 0.0) < said["retrieval"]["score"]
