"""MERGE CONCEPT: identity is joined, history is not rewritten."""

from __future__ import annotations

import pytest

from core.model.literals import Ref


def test_a_merge_keeps_the_source_and_redirects(people):
    """The source stays addressable as merged; its old facts keep naming it; new ones name the target."""
    old = people.do('ENSURE PROPOSITION ?p (:bob, "knows", :carol)')["handles"]["p"]["id"]
    result = people.do("MERGE CONCEPT :bob INTO :alice")
    new = people.do('ENSURE PROPOSITION ?p (:carol, "knows", :bob)')["handles"]["p"]["id"]
    bob, alice = people.get(people.ref["bob"]), people.get(people.ref["alice"])

    assert (bob.system.state, bob.merged_into, bob.name) == ("merged", alice.id, "Bob")
    assert people.get(old).subject == bob.id
    assert people.get(new).object == Ref(alice.id)
    assert alice.system.version == 1
    assert result["merges"][0] == {
        "source_id": bob.id, "target_id": alice.id, "source_state": "merged", "changed": True,
        "canonical_redirects": 1, "proposition_collisions": 0, "history_rewritten": False,
    }  # fmt: skip


def test_every_new_write_resolves_to_the_target(people):
    """Upserts, updates, claims and structure through the source reach the target."""
    people.do("MERGE CONCEPT :bob INTO :alice")
    people.do('UPSERT CONCEPT ?b {MATCH {type: "Person", key: "bob"} SET ATTRIBUTES {a: 1}}')
    people.do("UPDATE :bob SET ATTRIBUTES {b: 2}")
    said = people.do('ASSERT ?a (:bob, "timezone", "x") {by: :bob, mode: "stated"}')["handles"]["a"]["id"]
    day = people.handles(
        'CREATE CONCEPT ?d {TYPE "Experience" SET STRUCTURAL {("experienced_by", :bob)}}', people.ref
    )
    alice = people.ref["alice"]["id"]

    assert people.get(alice).attributes == {"a": 1, "b": 2}
    assert people.get(people.ref["bob"]).attributes == {}
    assert people.get(said).asserted_by == alice
    assert people.get(people.get(said).proposition).subject == alice
    assert people.get(day["d"]).structural[0].target == alice


def test_colliding_propositions_keep_their_claims(people):
    """Two tuples that now mean one stay two elements with their own Assertions."""
    first = people.do('ASSERT ?a (:alice, "timezone", "x") {by: :alice, mode: "stated"}')["handles"]["a"][
        "id"
    ]
    second = people.do('ASSERT ?a (:bob, "timezone", "x") {by: :bob, mode: "stated"}')["handles"]["a"]["id"]
    result = people.do("MERGE CONCEPT :bob INTO :alice")

    assert result["merges"][0]["proposition_collisions"] == 1
    assert people.get(first).proposition != people.get(second).proposition
    assert people.get(second).asserted_by == people.ref["bob"]["id"]
    assert {people.get(first).status, people.get(second).status} == {"active"}


def test_the_same_merge_again_has_no_effect(people):
    """A repeated merge, direct or through the chain, changes nothing."""
    people.do("MERGE CONCEPT :bob INTO :alice")
    assert people.status("MERGE CONCEPT :bob INTO :alice") == "no_effect"
    people.do("MERGE CONCEPT :alice INTO :carol")

    assert people.status("MERGE CONCEPT :bob INTO :carol") == "no_effect"
    assert people.get(people.ref["bob"]).merged_into == people.ref["alice"]["id"]


def test_a_repeated_merge_by_key_has_no_effect(people):
    """The selection that merged once finds the merged source again, by its key, and does nothing."""
    command = (
        'MERGE CONCEPT ?s INTO ?t WHERE {?s CONCEPT {type: "Person", key: "bob"} ?t CONCEPT {key: "alice"}}'
    )
    people.do(command)

    assert people.status(command) == "no_effect"
    assert people.no(command.replace('"alice"', '"carol"')) == "IdentityMergeConflict"


def test_a_guard_that_does_not_hold_merges_nothing(people):
    """A WHERE that also names the ends guards the merge: without a solution nothing is merged."""
    command = 'MERGE CONCEPT :bob INTO :alice WHERE {?x CONCEPT {name: "Nobody"}}'

    assert people.status(command) == "no_effect"
    assert people.get(people.ref["bob"]).merged_into is None


def test_cycles_are_refused_however_long(people):
    """No chain of merges leads back, across transactions or within one."""
    people.do("MERGE CONCEPT :bob INTO :alice")
    assert people.no("MERGE CONCEPT :alice INTO :bob") == "IdentityMergeConflict"
    people.do("MERGE CONCEPT :alice INTO :carol")

    assert people.no("MERGE CONCEPT :carol INTO :bob") == "IdentityMergeConflict"
    assert people.no("MERGE CONCEPT :carol INTO :carol") == "IdentityMergeConflict"
    assert (
        people.no("MUTATE {MERGE CONCEPT :dark INTO :light MERGE CONCEPT :light INTO :dark}")
        == "IdentityMergeConflict"
    )


def test_a_second_target_is_a_conflict(people):
    """A source that is merged elsewhere is not silently redirected."""
    people.do("MERGE CONCEPT :bob INTO :alice")

    assert people.no("MERGE CONCEPT :bob INTO :carol") == "IdentityMergeConflict"
    assert (
        people.no("MUTATE {MERGE CONCEPT :dark INTO :light MERGE CONCEPT :light INTO :alice}")
        == "IdentityMergeConflict"
    )


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ('?s CONCEPT {key: "bob"} ?t CONCEPT {key: "alice"}', None),
        ('?s CONCEPT {key: "bob"} ?t CONCEPT {name: "Alice"}', "IdentitySelectorRequired"),
        ('?s CONCEPT {type: "Person"} ?t CONCEPT {key: "alice"}', "IdentitySelectorRequired"),
        ('?s CONCEPT {key: "nobody"} ?t CONCEPT {key: "alice"}', "NotFoundOrNotVisible"),
    ],
)
def test_a_selection_must_be_by_identity(people, where, code):
    """A merge never picks an identity by description, even if only one fits."""
    command = f"MERGE CONCEPT ?s INTO ?t WHERE {{{where}}}"

    if code is None:
        people.do(command)
        assert people.get(people.ref["bob"]).merged_into == people.ref["alice"]["id"]
    else:
        assert people.no(command) == code


def test_a_key_of_two_types_selects_nothing(people):
    """An ambiguous key in a merge is a conflict, not a choice."""
    people.do('UPSERT CONCEPT ?x {MATCH {type: "Theme", key: "bob"}}')

    assert people.no('MERGE CONCEPT ?s INTO :alice WHERE {?s CONCEPT {key: "bob"}}') == "IdentityConflict"


def test_what_cannot_be_one(people):
    """Other types, other kinds, removed targets and failed guards are refused."""
    made = people.handles('ENSURE PROPOSITION ?p (:alice, "knows", :bob)', people.ref)
    people.do("TOMBSTONE :carol")

    assert people.no("MERGE CONCEPT :dark INTO :alice") == "IdentityMergeConflict"
    assert people.no("MERGE CONCEPT :p INTO :alice", **made) == "TypeMismatch"
    assert people.no("MERGE CONCEPT :bob INTO :carol") == "InvalidLifecycleTransition"
    assert people.no("MERGE CONCEPT :bob INTO :alice EXPECT VERSION 7") == "VersionConflict"
    people.do("MERGE CONCEPT :bob INTO :alice EXPECT VERSION 1")
