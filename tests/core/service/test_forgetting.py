"""Forgetting: what goes with what, the report, and that the bytes are gone."""

from typing import Any

import msgspec
import pytest

from core.errors import NoemaError
from core.model.elements import Assertion, Concept, Evidence, Payload, Retention
from core.model.ids import kind_of
from core.model.literals import Literal, Ref
from core.ports import Put
from core.protocol.http_types import CreateSpaceInput, ForgetInput, ForgetReport
from core.service import forgetting
from core.service.admin import Admin
from core.service.commit import Commits
from core.service.erasure import ErasureReceipt, Erasures
from core.service.forgetting import Forgetting
from core.service.leases import Leases
from core.service.spaces import Spaces
from core.service.upkeep import Upkeep
from core.service.values import Caller, Proposal
from core.state.space import SpaceState
from core.storage.layout import HEAD, space_pk
from core.storage.memory import MemoryObjects, MemoryTable
from core.transaction.draft import Draft
from tests.doubles import CountingEntropy, FakeClock

ALICE = Caller(subject="alice", channel="rest", scope="*")


class Place:
    """A space with Alice who lives in Lisbon and likes tea, on Evidence; Bob, whom she knows; and a note."""

    def __init__(self) -> None:
        self.clock, self.rows, entropy = FakeClock(step_ms=1), MemoryTable(), CountingEntropy()
        self.objects = MemoryObjects(self.clock)
        self.spaces = Spaces(self.rows, self.objects, self.clock)
        self.commits = commits = Commits(self.rows, self.objects, self.clock, entropy, self.spaces)
        upkeep = Upkeep(self.spaces, Leases(self.rows, self.clock), entropy)
        self.forgetting = Forgetting(self.spaces, Erasures(self.spaces, upkeep, entropy))
        wish = CreateSpaceInput(user="alice", space_id="demo", tier=1)
        Admin(self.rows, self.clock, self.spaces, commits).create_space(ALICE, wish, self.clock.time + 9999)
        self.ids: dict[str, str] = {}
        commits.commit("demo", self._fill, deadline=self.clock.time + 9999)

    def _fill(self, state: SpaceState) -> Proposal:
        draft = Draft(state, now=self.clock.now(), origin=ALICE.origin)
        person = "kip://noema/memory@1.0.0/Person"
        alice = draft.create(Concept, schema_ref=person, name="Alice Liddell")
        bob = draft.create(Concept, schema_ref=person, name="Bob")
        proof = draft.create(
            Evidence,
            evidence_class="user_statement",
            payload=Payload("inline", "I live in Lisbon and like tea."),
            content_digest="sha256:0",
        )
        note = draft.create(
            Evidence,
            evidence_class="user_statement",
            payload=Payload("inline", "Held."),
            content_digest="sha256:1",
            retention=Retention(legal_hold=True),
        )
        home = draft.ensure_proposition(alice.id, "p:lives_in", Literal("Lisbon"))
        tea = draft.ensure_proposition(alice.id, "p:likes", Literal("tea"))
        knows = draft.ensure_proposition(bob.id, "p:knows", Ref(alice.id))
        about = {"asserted_by": alice.id, "stance": "support", "mode": "stated", "asserted_at": draft.now}
        claims = [draft.create(Assertion, proposition=each.id, **about) for each in (home, tea, knows)]
        names = ["alice", "bob", "proof", "note", "home", "tea", "knows", "a_home", "a_tea", "a_knows"]
        elements = [alice, bob, proof, note, home, tea, knows, *claims]
        self.ids = {name: element.id for name, element in zip(names, elements, strict=True)}
        return Proposal(draft.finish())

    def change(self, name: str, **fields: Any) -> None:
        def decide(state: SpaceState) -> Proposal:
            draft = Draft(state, now=self.clock.now(), origin=ALICE.origin)
            element = draft.get(self.ids[name])
            assert element is not None
            draft.change(element, **fields)
            return Proposal(draft.finish())

        self.commits.commit("demo", decide, deadline=self.clock.time + 9999)

    def forget(self, *names: str, **more: Any) -> ForgetReport:
        entities = [self.ids.get(name, name) for name in names]
        wish = ForgetInput(entities=entities, **more)
        return self.forgetting.forget(ALICE, "demo", wish, owner="run-1")

    def left(self) -> set[str]:
        state = self.spaces.load("demo")
        return {name for name, element in self.ids.items() if state.get(element) is not None}


def counts(report: ForgetReport) -> tuple[int, int, int, int]:
    return (
        report.deleted_concepts,
        report.deleted_propositions,
        report.deleted_assertions,
        report.deleted_evidence,
    )


def test_a_concept_goes_with_everything_that_relates_it() -> None:
    """Propositions on either side of it and their Assertions go too; Evidence and other Concepts stay."""
    place = Place()

    report = place.forget("alice")

    assert counts(report) == (1, 3, 3, 0)
    assert place.left() == {"bob", "proof", "note"}
    assert [(entry.entity, entry.existed, entry.error) for entry in report.entities] == [
        (place.ids["alice"], True, None)
    ]


def test_a_proposition_goes_with_its_assertions_only() -> None:
    """What it was about stays."""
    place = Place()

    assert counts(place.forget("tea")) == (0, 1, 1, 0)
    assert place.left() == set(place.ids) - {"tea", "a_tea"}


def test_evidence_and_assertions_go_alone() -> None:
    """Only what is named."""
    place = Place()

    assert counts(place.forget("proof", "a_home")) == (0, 0, 1, 1)
    assert place.left() == set(place.ids) - {"proof", "a_home"}


def test_what_is_forgotten_is_gone_from_history() -> None:
    """The log and every point of history are without it; the rest of the same commit stays."""
    place = Place()
    whole = msgspec.msgpack.encode(place.spaces.deltas("demo", 0, 10))
    assert b"Liddell" in whole
    assert place.ids["proof"].encode() in whole
    place.forget("alice", "proof")

    whole = msgspec.msgpack.encode(place.spaces.deltas("demo", 0, 10))
    past = place.spaces.load_at("demo", version=2)

    for trace in (b"Liddell", b"I live in Lisbon", place.ids["alice"].encode(), place.ids["proof"].encode()):
        assert trace not in whole
    assert past.get(place.ids["alice"]) is None
    assert past.get(place.ids["bob"]) is not None


def test_a_dry_run_only_counts() -> None:
    """The report is the same, and everything stays."""
    place, twin = Place(), Place()

    dry = place.forget("alice", "proof", dry_run=True)

    assert place.left() == set(place.ids)
    assert msgspec.structs.replace(dry, dry_run=False) == twin.forget("alice", "proof")


def test_each_element_has_its_own_entry() -> None:
    """One that never existed, one that is no id, and one under legal hold do not stop the others."""
    place = Place()
    stranger = place.ids["bob"][:-1] + ("0" if place.ids["bob"][-1] != "0" else "1")

    report = place.forget("tea", stranger, "Robert'); DROP TABLE", "note", "tea")

    told = [(entry.existed, entry.error) for entry in report.entities]
    assert told == [
        (True, None),
        (False, None),
        (False, "not the id of an element"),
        (True, "a legal hold keeps it"),
    ]
    assert "note" in place.left()
    assert "tea" not in place.left()


def test_forgetting_twice_finds_nothing_the_second_time() -> None:
    """What is gone did not exist, and nothing else happens."""
    place = Place()
    place.forget("tea")
    before = place.spaces.head("demo").pgen

    report = place.forget("tea")

    assert (report.entities[0].existed, counts(report)) == (False, (0, 0, 0, 0))
    assert place.spaces.head("demo").pgen == before


def test_maintenance_and_unknown_spaces_refuse() -> None:
    """Busy while maintenance holds the space; not found elsewhere."""
    place = Place()
    pk = space_pk("demo")
    head = place.rows.get(pk, HEAD)
    assert head is not None
    place.rows.transact([Put(pk, HEAD, {**head, "lt_maintenance": place.clock.time + 60_000})])
    with pytest.raises(NoemaError) as caught:
        place.forget("tea")
    assert caught.value.code == "Busy"
    with pytest.raises(NoemaError) as caught:
        place.forgetting.forget(ALICE, "nowhere", ForgetInput(entities=["x"]), owner="r")
    assert caught.value.code == "NotFoundOrNotVisible"


def test_a_legal_hold_on_what_would_go_too_stops_everything() -> None:
    """A Concept whose claim is held cannot be forgotten; nothing is."""
    place = Place()
    place.change("a_tea", retention=Retention(legal_hold=True))

    with pytest.raises(NoemaError) as caught:
        place.forget("alice")

    assert (caught.value.code, caught.value.details) == ("LegalHoldConflict", {"id": place.ids["a_tea"]})
    assert place.left() == set(place.ids)


def test_too_much_at_once_is_refused_before_anything_is_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Concept on which more hangs than one erasure may take is told to be forgotten in parts."""
    place = Place()
    monkeypatch.setattr(forgetting, "MAX_IDS", 6)

    with pytest.raises(NoemaError) as caught:
        place.forget("alice")

    assert (caught.value.code, caught.value.details) == ("ResourceExhausted", {"limit": 6})
    assert place.left() == set(place.ids)
    assert counts(place.forget("tea", "a_home")) == (0, 1, 2, 0)


def test_an_erasure_that_left_traces_is_no_success() -> None:
    """The report is only given when the scan found nothing."""
    place = Place()

    class Sloppy:
        def erase(self, *args: Any, **kwargs: Any) -> ErasureReceipt:
            return ErasureReceipt(pgen=3, kind="elements", by="alice", started=1, at=2, found=("D#1",))

    sloppy: Any = Sloppy()
    wish = ForgetInput(entities=[place.ids["tea"]])

    with pytest.raises(NoemaError) as caught:
        Forgetting(place.spaces, sloppy).forget(ALICE, "demo", wish, owner="r")

    assert (caught.value.code, caught.value.details) == ("InternalError", {"erasure": 3, "found": 1})


def test_ids_tell_kinds() -> None:
    """The report counts by what an id says of itself."""
    place = Place()

    assert [kind_of(place.ids[name]) for name in ("alice", "proof", "home", "a_home")] == [
        "concept",
        "evidence",
        "proposition",
        "assertion",
    ]
