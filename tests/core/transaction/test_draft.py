"""The draft of a transaction: what every write path may rely on, and may not break."""

from __future__ import annotations

import msgspec
import pytest

from core.errors import NoemaError
from core.model.elements import Concept, Evidence, Origin, Payload, Proposition
from core.model.ids import MAX_ORDINAL, transaction_id
from core.model.literals import Literal, Ref
from core.model.log import SchemaEnvironment, SpaceMeta, Tier
from core.state.layer import Empty
from core.state.space import SpaceState
from core.transaction.draft import MAX_ELEMENT_BYTES, Draft

ORIGIN = Origin("tester", "rest")
PERSON, LIKES = "kip://t@1.0.0/Person", "kip://t@1.0.0/likes"
META = SpaceMeta(
    space_id="s",
    instance="i",
    salt="aaaaa",
    owner="tester",
    created_at=1,
    tier=Tier(1, 1),
    schema=SchemaEnvironment(1, ()),
)
EMPTY = SpaceState.on(Empty(), meta=META, ver=4, seq=2, at=10)


def draft(state: SpaceState = EMPTY, now: int = 100) -> Draft:
    return Draft(state, now=now, origin=ORIGIN)


def told(*names: str) -> tuple[SpaceState, list[Concept]]:
    """A state that knows some persons, and the persons."""
    first = draft()
    people = [first.create(Concept, schema_ref=PERSON, key=name, name=name.title()) for name in names]
    return EMPTY.apply(first.finish()), people


def test_a_new_element_is_at_version_one() -> None:
    """Ids bear the log version and the salt; times, transaction and origin are the draft's."""
    one = draft()

    ann = one.create(Concept, schema_ref=PERSON)
    bob = one.create(Concept, schema_ref=PERSON)

    assert (ann.id, bob.id) == ("C-00000005000aaaaa", "C-00000005001aaaaa")
    assert (ann.system.version, ann.system.created_at, ann.system.updated_at) == (1, 100, 100)
    assert ann.system.created_tx == transaction_id(5, "aaaaa")
    assert ann.system.origin == ORIGIN


def test_a_draft_reads_its_own_writes_and_the_state_does_not() -> None:
    """What is written is seen at once, here and nowhere else (KIP §32.6)."""
    one = draft()

    ann = one.create(Concept, schema_ref=PERSON, key="ann")

    assert one.get(ann.id) == ann
    assert one.find_concept(PERSON, "ann") == ann
    assert one.before(ann.id) is None
    assert EMPTY.get(ann.id) is None


def test_an_element_moves_one_version_however_often_it_is_touched() -> None:
    """Three changes in one transaction are one step (KIP §35.5)."""
    state, [ann] = told("ann")
    two = draft(state, now=200)
    for name in ("A", "B", "C"):
        ann = two.change(ann, name=name)

    assert (ann.name, ann.system.version, ann.system.updated_at) == ("C", 2, 200)
    assert ann.system.created_at == 100
    assert len(two.finish().puts) == 1


def test_a_new_element_that_is_changed_stays_at_version_one() -> None:
    """Creation and change in one transaction are one step, too."""
    one = draft()
    ann = one.create(Concept, schema_ref=PERSON)

    assert one.change(ann, name="Ann").system.version == 1


def test_changing_nothing_commits_nothing() -> None:
    """A change to what it is already, or there and back, has no effect (KIP §32.8)."""
    state, [ann] = told("ann")
    two = draft(state)
    two.change(ann, name="Ann")
    there = two.change(ann, name="Other")
    back = two.change(there, name="Ann")

    assert back == ann
    assert two.changes() == []
    assert two.finish() is None


def test_changing_what_is_not_there() -> None:
    """An element of another space cannot be changed."""
    _, [ann] = told("ann")

    with pytest.raises(NoemaError) as failure:
        draft().change(ann, name="x")

    assert failure.value.code == "NotFoundOrNotVisible"


def test_the_summary_says_what_happened() -> None:
    """Created, updated and purged, with the version after, in order of first touch."""
    state, [ann, bob] = told("ann", "bob")
    two = draft(state)
    two.change(bob, name="B")
    eve = two.create(Concept, schema_ref=PERSON)
    two.change(ann, state="purged")

    assert [(change.id, change.op, change.version) for change in two.changes()] == [
        (bob.id, "updated", 2),
        (eve.id, "created", 1),
        (ann.id, "purged", 2),
    ]


def test_the_sequence_moves_with_memory_and_its_schema() -> None:
    """The host's bookkeeping is a commit that leaves space_seq where it is; memory and its schema move it."""
    one = draft()
    one.set_meta(name="Garden")
    third = draft()
    third.set_meta(schema=msgspec.structs.replace(third.meta.schema, version=third.meta.schema.version + 1))
    other = draft()
    other.create(Concept, schema_ref=PERSON)

    protected, schema, cognitive = one.finish(), third.finish(), other.finish({"why": "test"})

    assert (protected.seq, protected.meta.name, protected.puts) == (2, "Garden", ())
    assert (schema.seq, schema.puts) == (3, ())
    assert (cognitive.seq, cognitive.snapshot_seq, cognitive.meta) == (3, 2, None)
    assert cognitive.record == {"why": "test"}


def test_reserved_ids_are_for_forward_references() -> None:
    """An id can be known before its element is written."""
    one = draft()
    later = one.reserve("concept")
    claim = one.create(Proposition, subject=later, predicate_ref=LIKES, object=Literal("tea"))

    ann = one.create_as(later, Concept, schema_ref=PERSON)

    assert claim.subject == ann.id
    assert {change.id for change in one.changes()} == {claim.id, ann.id}


def test_one_proposition_for_one_tuple() -> None:
    """The same subject, predicate and object are one element; 1 and 1.0 and "1" are not all the same."""
    state, [ann] = told("ann")
    two = draft(state)
    tea = two.ensure_proposition(ann.id, LIKES, Literal("tea"))

    assert two.ensure_proposition(ann.id, LIKES, Literal("tea")) is tea
    assert two.ensure_proposition(ann.id, LIKES, Literal("tea", language="en")).id != tea.id
    one = two.ensure_proposition(ann.id, LIKES, Literal(1))
    assert two.ensure_proposition(ann.id, LIKES, Literal("1")).id != one.id
    assert two.ensure_proposition(ann.id, LIKES, Literal(value=True)).id != one.id


def test_merged_ends_are_canonical() -> None:
    """A tuple about a merged Concept is about the one it was merged into (KIP §11.1)."""
    state, [ann, anna, bob] = told("ann", "anna", "bob")
    two = draft(state)
    two.change(anna, merged_into=ann.id, state="merged")
    known = two.ensure_proposition(bob.id, LIKES, Ref(ann.id))

    assert two.canonical(anna.id) == ann.id
    assert two.ensure_proposition(bob.id, LIKES, Ref(anna.id)) == known
    assert two.ensure_proposition(anna.id, LIKES, Ref(bob.id)).subject == ann.id
    assert two.ensure_concept(PERSON, "anna").id == ann.id


def test_a_key_is_within_its_type() -> None:
    """The same key in another type is another Concept (KIP §7.3)."""
    state, [ann] = told("ann")
    two = draft(state)

    assert two.ensure_concept(PERSON, "ann") == ann
    assert two.ensure_concept("kip://t@1.0.0/Dog", "ann").id != ann.id
    assert two.find_concept(PERSON, "Ann") is None


def test_long_keys_are_told_apart() -> None:
    """Keys that are too long for an index entry are still compared whole."""
    one = draft()
    long = "k" * 5000
    first = one.create(Concept, schema_ref=PERSON, key=long + "1")

    assert one.find_concept(PERSON, long + "1") == first
    assert one.find_concept(PERSON, long + "2") is None


def test_client_keys_are_within_their_kind() -> None:
    """A client key finds the element of the kind that was created under it (KIP §7.5)."""
    one = draft()
    ann = one.create(Concept, schema_ref=PERSON, client_key="once")

    assert one.find_client_key("concept", "once") == ann
    assert one.find_client_key("evidence", "once") is None
    assert one.find_client_key("concept", "twice") is None


def test_an_element_over_its_bound_is_refused() -> None:
    """256 KB is the most one element may take; the draft is as it was."""
    one = draft()
    text = "x" * MAX_ELEMENT_BYTES

    with pytest.raises(NoemaError) as failure:
        one.create(Evidence, evidence_class="m", payload=Payload("inline", text), content_digest="sha256:0")

    assert failure.value.code == "TransactionTooLarge"
    assert one.finish() is None


def test_too_many_elements_are_refused() -> None:
    """A commit has a bounded number of ordinals; the one after the last is refused by name."""
    one = draft()
    for _ in range(MAX_ORDINAL + 1):
        last = one.reserve("concept")

    assert last == "C-00000005zzzaaaaa"
    with pytest.raises(NoemaError) as failure:
        one.reserve("concept")
    assert failure.value.code == "TransactionTooLarge"
