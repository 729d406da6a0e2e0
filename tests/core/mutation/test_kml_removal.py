"""Retention, archive, tombstone and purge: kinds of forgetting that are never mistaken for each other."""

from __future__ import annotations

import pytest

from core.authority import Principal
from core.model.elements import Payload
from core.model.instants import parse_instant
from core.mutation.purge import STUB

MADE = """MUTATE {
  CREATE EVIDENCE ?m { CLIENT KEY "msg" SET FIELDS {evidence_class: "message", payload: "secret words", observed_at: "2026-01-01T00:00:00Z"} SET STRUCTURAL {("source", :alice)} }
  ASSERT ?a (:alice, "prefers", :dark) {by: :alice, mode: "stated", confidence: 0.9, evidence: ?m}
}"""


@pytest.fixture
def made(people):
    """Parameters for a claim `a`, its Proposition `p` and its Evidence `m`."""
    handles = people.handles(MADE, people.ref)
    proposition = people.get(handles["a"]).proposition
    return {**handles, "p": {"id": proposition}}


def states(people, refs):
    return {name: people.get(ref).system.state for name, ref in refs.items()}


def test_retention_is_set_field_by_field(people, made):
    """SET RETENTION changes what it names, moves the version once and says nothing about truth."""
    people.do('SET RETENTION :m {retention_class: "short", expires_at: "2027-01-01T00:00:00Z"}', **made)
    people.do("SET RETENTION :m {legal_hold: true} EXPECT VERSION 2", **made)
    evidence = people.get(made["m"])

    assert evidence.retention.retention_class == "short"
    assert evidence.retention.expires_at == parse_instant("2027-01-01T00:00:00Z")
    assert evidence.retention.legal_hold
    assert (evidence.system.version, evidence.status) == (3, "active")
    people.do("SET RETENTION :m {expires_at: null}", **made)
    assert people.get(made["m"]).retention.expires_at is None


@pytest.mark.parametrize(
    ("clause", "code"),
    [
        ("{retention_class: 5}", "TypeMismatch"),
        ('{expires_at: "soon"}', "TypeMismatch"),
        ('{legal_hold: "yes"}', "TypeMismatch"),
        ("{valid_until: null}", "SchemaFieldNotFound"),
        ("{legal_hold: true} EXPECT VERSION 9", "VersionConflict"),
    ],
)  # fmt: skip
def test_retention_that_does_not_fit(people, made, clause, code):
    """Wrong types, unknown fields and failed guards are refused."""
    assert people.no(f"SET RETENTION :m {clause}", **made) == code


def test_retention_that_contradicts_itself(people, made):
    """Two values of one retention field in a statement are refused; two fields are not."""
    assert (
        people.no(
            'MUTATE {SET RETENTION :m {retention_class: "a"} SET RETENTION :m {retention_class: "b"}}', **made
        )
        == "DuplicateMutationTarget"
    )
    people.do('MUTATE {SET RETENTION :m {retention_class: "a"} SET RETENTION :m {legal_hold: true}}', **made)
    assert people.get(made["m"]).retention.legal_hold
    assert people.get(made["m"]).retention.retention_class == "a"


def test_archive_then_tombstone_and_never_back(people):
    """States only go on; a repetition has no effect; a guard on the state is kept."""
    people.do('ARCHIVE :alice EXPECT STATE "active"')
    assert people.status("ARCHIVE :alice") == "no_effect"
    assert people.no('TOMBSTONE :alice EXPECT STATE "active"') == "PreconditionFailed"
    people.do("TOMBSTONE :alice")

    assert people.no("ARCHIVE :alice") == "InvalidLifecycleTransition"
    assert people.no("UPDATE :alice SET ATTRIBUTES {a: 1}") == "InvalidLifecycleTransition"
    assert (
        people.no('UPSERT CONCEPT ?a {MATCH {type: "Person", key: "alice"} SET FIELDS {name: "x"}}')
        == "InvalidLifecycleTransition"
    )
    assert people.get(people.ref["alice"]).name == "Alice"


def test_archived_elements_still_resolve_and_change(people):
    """An archived Concept is out of recall, in references, and its state may still be kept up."""
    people.do("ARCHIVE :dark")

    assert people.do('FIND(COUNT(?t)) WHERE {?t CONCEPT {type: "Theme"}}') == [1]
    assert people.status('ENSURE PROPOSITION (:alice, "prefers", :dark)') == "succeeded"
    assert people.status("UPDATE :dark SET ATTRIBUTES {a: 1}") == "succeeded"


def test_a_bounded_sweep_archives_the_oldest(people):
    """LIMIT caps a removal sweep."""
    result = people.do('ARCHIVE ?p WHERE {?p CONCEPT {type: "Person"}} LIMIT 2')

    assert (result["matched"], result["updated"]) == (2, 2)
    assert states(people, people.ref)["carol"] == "active"


# --- purge


def test_purge_is_denied_while_anything_refers(people, made):
    """The default policy keeps what is cited, claimed about or spoken by."""
    for name in ("m", "p", "alice", "dark"):
        assert people.no(f'PURGE :{name} CONFIRM "PURGE"', **made) == "PurgeDenied"
    assert set(states(people, {**people.ref, **made}).values()) == {"active"}


def test_a_purged_set_may_refer_to_itself(people, made):
    """What goes together does not block itself."""
    people.do('PURGE :a CONFIRM "PURGE"', **made)
    people.do('PURGE ?e WHERE {?e EVIDENCE {evidence_class: "message"}} LIMIT 5 CONFIRM "PURGE"')

    assert states(people, made) == {"m": "purged", "a": "purged", "p": "active"}


def test_a_stub_keeps_identity_class_time_and_digest_only(people, made):
    """Nothing of the content can be read from a stub, and its client key is free again."""
    before = people.get(made["m"])
    people.do('PURGE :a CONFIRM "PURGE"', **made)
    people.do('PURGE :m CONFIRM "PURGE"', **made)
    stub = people.get(made["m"])

    assert (stub.id, stub.evidence_class, stub.observed_at) == (before.id, "message", before.observed_at)
    assert stub.facets == {STUB: {"content_digest": before.content_digest}}
    assert (stub.payload, stub.source, stub.client_key) == (Payload("purged"), (), None)
    assert "secret" not in repr(stub)
    assert (
        people.handles(
            'CREATE EVIDENCE ?n {CLIENT KEY "msg" SET FIELDS {evidence_class: "x", payload: "y"}}'
        )["n"]
        != made["m"]
    )


def test_a_purged_concept_frees_its_key(people):
    """The identity of an erased Concept resolves to nothing and may be given anew."""
    people.do('PURGE :carol CONFIRM "PURGE"')
    again = people.do('UPSERT CONCEPT ?c {MATCH {type: "Person", key: "carol"}}')["handles"]["c"]

    assert again["created"]
    assert people.get(people.ref["carol"]).name is None


def test_nothing_new_refers_to_what_was_erased(people):
    """A stub is the end of a reference, for writing and for every lifecycle command."""
    people.do('PURGE :carol CONFIRM "PURGE"')

    assert people.no('ENSURE PROPOSITION (:alice, "knows", :carol)') == "ReferenceError"
    assert people.no("ARCHIVE :carol") == "ReferenceError"


def test_tombstone_reference_leaves_no_dangling_claim_active(people, made):
    """The bytes go and what referred to them is tombstoned, not erased."""
    people.do('PURGE :m REFERENCE POLICY "tombstone_reference" CONFIRM "PURGE"', **made)

    assert states(people, made) == {"m": "purged", "a": "tombstoned", "p": "active"}
    assert people.get(made["a"]).confidence == 0.9


def test_a_cascade_takes_all_that_refers(people, made):
    """With explicit authority everything that depends on the element goes too, step by step."""
    result = people.do('PURGE :alice REFERENCE POLICY "authorized_cascade" CONFIRM "PURGE"', **made)

    assert states(people, {**made, **people.ref}) == {
        "m": "purged", "a": "purged", "p": "purged", "alice": "purged", "bob": "active", "carol": "active",
        "dark": "active", "light": "active",
    }  # fmt: skip
    assert set(result["purged"]) == {
        made["m"]["id"],
        made["a"]["id"],
        made["p"]["id"],
        people.ref["alice"]["id"],
    }


def test_a_legal_hold_wins_over_everything(people, made):
    """A held element, and a cascade that would reach one, are not erased."""
    people.do("SET RETENTION :m {legal_hold: true}", **made)

    assert people.no('PURGE :m CONFIRM "PURGE"', **made) == "LegalHoldConflict"
    assert (
        people.no('PURGE :alice REFERENCE POLICY "authorized_cascade" CONFIRM "PURGE"', **made)
        == "LegalHoldConflict"
    )
    assert states(people, made)["m"] == "active"
    people.do("TOMBSTONE :m", **made)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ('PURGE :carol REFERENCE POLICY "everything" CONFIRM "PURGE"', "ConstraintViolation"),
        ('PURGE :carol CONFIRM "purge"', "InvalidSyntax"),
        ("PURGE :carol", "InvalidSyntax"),
        (
            'MUTATE {UPDATE :carol SET ATTRIBUTES {a: 1} PURGE :carol CONFIRM "PURGE"}',
            "DuplicateMutationTarget",
        ),
        ('MUTATE {CREATE CONCEPT ?c {TYPE "Theme"} PURGE ?c CONFIRM "PURGE"}', "InvalidLifecycleTransition"),
    ],
)
def test_purges_that_are_refused(people, command, code):
    """An unknown policy, a missing confirmation and a change of the same element are refused."""
    assert people.no(command) == code
    assert people.get(people.ref["carol"]).name == "Carol"


def test_each_removal_needs_its_own_permission(people, made):
    """Permission to update is none to remove, to hold or to erase."""
    updater = Principal("u", permissions=frozenset({"update", "read"}))
    for command in ("ARCHIVE :carol", "TOMBSTONE :carol", 'PURGE :carol CONFIRM "PURGE"', "SET RETENTION :carol {legal_hold: true}",
                    "MERGE CONCEPT :carol INTO :bob", 'ENSURE PROPOSITION (:alice, "knows", :bob)', "RETRACT ASSERTION :a"):  # fmt: skip
        assert people.error(command, {**people.ref, **made}, principal=updater) == "NotAuthorized"
    assert (
        people.run("UPDATE :carol SET ATTRIBUTES {a: 1}", people.ref, principal=updater)["status"]
        == "succeeded"
    )
