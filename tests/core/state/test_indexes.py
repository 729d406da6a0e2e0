"""Index keys: what an element is found by, and that it is found by nothing else."""

from __future__ import annotations

import msgspec

from core.model.elements import (
    Activity,
    Assertion,
    Citation,
    Concept,
    Evidence,
    Payload,
    Proposition,
    StructuralRef,
    System,
)
from core.model.literals import Literal, Ref
from core.state import indexes
from core.state.indexes import entries, references
from tests.core.state.oracle import ORIGIN

SYSTEM = System(1, 1, 1, "tx-1", "tx-1", ORIGIN)
PERSON, LIKES = "kip://t/Person", "kip://t/likes"
C1, C2, P1, A1, E1, X1 = (f"{letter}-000000010{n:02d}aaaaa" for n, letter in enumerate("CCPAEX"))


def test_a_concept_is_found_by_what_names_it() -> None:
    """Kind, type, key within and without its type, canonical id, name, aliases, client key."""
    ann = Concept(
        id=C1,
        system=SYSTEM,
        schema_ref=PERSON,
        key="ann",
        name="Ann",
        canonical_id="urn:ann",
        aliases=("Annie", "Ann"),
        client_key="once",
        facets={"kip://t/Card": {}},
    )

    assert entries(ann, "concept") == {
        indexes.kind_key("concept"),
        indexes.type_key(PERSON),
        indexes.concept_key(PERSON, "ann"),
        indexes.any_type_key("ann"),
        indexes.canonical_key("urn:ann"),
        indexes.name_key("Ann"),
        indexes.name_key("Annie"),
        indexes.client_key("concept", "once"),
        indexes.facet_key("kip://t/Card"),
    }


def test_a_merged_concept_refers_to_its_survivor() -> None:
    """A state other than active is a key, and so is the Concept it was merged into."""
    system = msgspec.structs.replace(SYSTEM, state="merged")
    gone = Concept(id=C2, system=system, schema_ref=PERSON, merged_into=C1)

    assert {indexes.state_key("merged"), indexes.referrers_key(C1)} <= entries(gone, "concept")
    assert list(references(gone)) == [("merged_into", C1)]


def test_a_proposition_is_found_from_both_ends() -> None:
    """By its tuple, by its subject and its object, with and without the predicate, and by the predicate."""
    for obj in (Ref(C2), Literal("tea")):
        claim = Proposition(id=P1, system=SYSTEM, subject=C1, predicate_ref=LIKES, object=obj)

        assert entries(claim, "proposition") == {
            indexes.kind_key("proposition"),
            indexes.tuple_key(C1, LIKES, obj),
            indexes.subject_key(C1),
            indexes.subject_key(C1, LIKES),
            indexes.object_key(obj),
            indexes.object_key(obj, LIKES),
            indexes.predicate_key(LIKES),
        }


def test_an_assertion_is_found_by_claim_actor_and_sources() -> None:
    """By its Proposition, who made it, its mode, and everything it cites."""
    said = Assertion(
        id=A1,
        system=SYSTEM,
        proposition=P1,
        asserted_by=C1,
        stance="support",
        mode="stated",
        asserted_at=1,
        evidence=(Citation(E1),),
        context_refs=(C2,),
        supersedes=("A-00000001099aaaaa",),
    )

    assert entries(said, "assertion") == {
        indexes.kind_key("assertion"),
        indexes.assertions_key(P1),
        indexes.actor_key(C1),
        indexes.class_key("assertion", "stated"),
        indexes.referrers_key(E1),
        indexes.referrers_key(C2),
        indexes.referrers_key("A-00000001099aaaaa"),
    }


def test_evidence_and_activities_are_found_by_provenance() -> None:
    """By class, by where they come from, by what they used and made, and by structural fields."""
    heard = Evidence(
        id=E1,
        system=SYSTEM,
        evidence_class="message",
        payload=Payload("inline", "x"),
        content_digest="sha256:0",
        source=(C1,),
        generated_by=X1,
        corrects=("E-00000001098aaaaa",),
        structural=(StructuralRef("kip://t/in", C2),),
    )
    ran = Activity(
        id=X1, system=SYSTEM, activity_class="formation", inputs=(E1,), outputs=(A1,), associated_actors=(C1,)
    )

    assert {found for _, found in references(heard)} == {C1, X1, C2, "E-00000001098aaaaa"}
    assert indexes.class_key("evidence", "message") in entries(heard, "evidence")
    assert {found for _, found in references(ran)} == {E1, A1, C1}
    assert {indexes.class_key("activity", "formation"), indexes.made_key(A1)} <= entries(ran, "activity")


def test_keys_stay_small_and_apart() -> None:
    """However long a name, its key is short; and two long names have two keys."""
    long = "ü" * 10_000

    assert len(indexes.name_key(long)) < 80
    assert indexes.name_key(long) != indexes.name_key(long + "x")
    assert indexes.name_key("\ud800") != indexes.name_key("\ud801")
    assert len({indexes.name_key("a"), indexes.any_type_key("a"), indexes.canonical_key("a")}) == 3


def test_parts_do_not_run_into_each_other() -> None:
    """A key within a type is not the key of another type with another key."""
    assert indexes.concept_key("kip://t/A", "Bx") != indexes.concept_key("kip://t/AB", "x")
    assert indexes.client_key("concept", "x") != indexes.client_key("evidence", "x")
    assert indexes.subject_key(C1, LIKES) != indexes.subject_key(C1)
