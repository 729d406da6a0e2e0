"""Requests in a governed space, where the ids of the conformance paper do not look: writers who may not see."""

from __future__ import annotations

import pytest

from core.authority import Principal
from core.governance.commands import SetPolicy
from core.governance.control import Policy
from tests.conformance.harness import PERMISSIONS, World, request

BLIND = Principal(
    "blind", permissions=frozenset({"create", "update", "record_attributed_assertion", "archive"})
)
"""As a space token of scope `write`: it changes and does not read."""


@pytest.fixture
def world() -> World:
    """A governed world."""
    made = World()
    made.govern(PERMISSIONS)
    return made


@pytest.mark.parametrize(
    "command",
    [
        'UPDATE ?c SET FIELDS {name: "X"} WHERE {?c CONCEPT {key: "carol"}}',
        'UPDATE :alice SET FIELDS {name: "X"} WHERE {?c CONCEPT {key: "carol"}}',
        'ARCHIVE ?c WHERE {?c CONCEPT {key: "carol"}} LIMIT 0',
        'PREVIEW KML "ARCHIVE ?c WHERE {?c CONCEPT {key: \\"carol\\"}}"',
    ],
)
@pytest.mark.parametrize("there", [True, False])
def test_who_may_not_read_selects_nothing(command, there):
    """Whether a WHERE would match is not told to a writer that may not read: not by counts, effects or errors."""
    plain = World()
    asked = command if there else command.replace("carol", "nobody")
    with plain.unchanged():
        reply = plain.invoke(BLIND, asked)

    told = str(reply["results"])
    assert "NotAuthorized" in told
    assert "matched" not in told


def test_who_may_not_read_still_writes_what_it_names():
    """By an id or a stable identity, a writing token changes what it names; it needs no sight for that."""
    plain = World()

    assert plain.invoke(BLIND, 'UPDATE :alice SET FIELDS {name: "Al"}')["status"] == "succeeded"
    upsert = 'UPSERT CONCEPT ?c {MATCH {type: "Person", key: "carol"} SET FIELDS {name: "Caro"}}'
    assert plain.invoke(BLIND, upsert)["status"] == "succeeded"
    assert plain.element(plain.ref["carol"]).name == "Caro"


# --- what is there already, and is hidden


def test_a_hidden_proposition_is_made_again_and_told_by_nothing(world):
    """ENSURE of a tuple that exists in secret answers as if it did not: another Proposition (decision 11)."""
    world.grant("reader_hidden", "create", "record_attributed_assertion", name="writes")
    ensure = 'ENSURE PROPOSITION ?p (:alice, "timezone", "+08:00") EXPECT VERSION 0'
    secret = world.ok(ensure).id("p")
    world.ok('ASSERT (:alice, "timezone", "+08:00") {by: :bob, mode: "stated"}')
    world.mark(secret)
    twin = world.invoke("reader_hidden", ensure)

    assert twin["status"] == "succeeded"
    assert twin.result["handles"]["p"]["created"] is True
    assert twin.id("p") != secret
    assert world.invoke("reader_hidden", ensure).code == "VersionConflict"  # its own is there now
    belief = 'FIND(?b.status) WHERE {?b BELIEF (:alice, "timezone", "+08:00")}'
    assert world.invoke("reader_hidden", belief).result == ["insufficient"]
    slot = 'FIND(?b.accepted_values) WHERE {?b BELIEF SLOT (:alice, "timezone")} WITH EPISTEMIC {policy: "test-deterministic"}'
    assert world.rows(slot) == [["+08:00"]]  # for who sees both, they are one statement


def test_a_key_held_in_secret_is_not_given_twice(world):
    """A key is unique within its type whoever asks, so it is refused; the answer names nothing (decision 11)."""
    world.mark(world.ref["carol"])
    world.grant("reader_hidden", "create", "update", name="writes")
    with world.unchanged():
        made = world.invoke("reader_hidden", 'CREATE CONCEPT ?c {TYPE "Person" SET FIELDS {key: "carol"}}')
        upsert = world.invoke("reader_hidden", 'UPSERT CONCEPT ?c {MATCH {type: "Person", key: "carol"}}')

    assert made.code == upsert.code == "NotFoundOrNotVisible"
    assert world.ref["carol"]["id"] not in f"{made}{upsert}"
    assert (
        world.invoke("owner", 'CREATE CONCEPT ?c {TYPE "Person" SET FIELDS {key: "carol"}}').code
        == "IdentityConflict"
    )


def test_a_hidden_client_key_is_nobodys(world):
    """A retry key of a hidden element is free to who may not know of it."""
    create = 'CREATE CONCEPT ?c {TYPE "Theme" CLIENT KEY "turn:1"}'
    first = world.ok(create).id("c")
    world.mark(first)
    world.grant("reader_hidden", "create", name="writes")

    assert world.invoke("reader_hidden", create).id("c") != first
    assert world.invoke("reader_hidden", create).result["handles"]["c"]["created"] is False
    assert world.ok(create).id("c") == first


def test_a_creation_is_authorised_as_it_finally_stands(world):
    """By type, predicate and label: what may be created is a selector like any other."""
    person, theme = "kip://test/core-domain@1.0.0/Person", "kip://test/core-domain@1.0.0/Theme"
    world.principals["maker"] = Principal("maker")
    world.grant("maker", "read", name="sees")
    world.grant("maker", "create", types=(theme,), name="themes")
    world.grant("maker", "create", predicates=("kip://test/core-domain@1.0.0/prefers",), name="prefers")

    assert world.invoke("maker", 'CREATE CONCEPT ?c {TYPE "Theme"}')["status"] == "succeeded"
    assert (
        world.invoke("maker", 'ENSURE PROPOSITION (:alice, "prefers", :dark_mode)')["status"] == "succeeded"
    )
    with world.unchanged():
        assert world.invoke("maker", 'CREATE CONCEPT ?c {TYPE "Person"}').code == "NotAuthorized"
        assert world.invoke("maker", 'ENSURE PROPOSITION (:alice, "knows", :bob)').code == "NotAuthorized"
    world.grant("maker", "update", own=True, name="own")
    mine = world.invoke("maker", 'CREATE CONCEPT ?c {TYPE "Theme"}').id("c")
    assert world.invoke("maker", 'UPDATE :c SET FIELDS {name: "N"}', c=mine)["status"] == "succeeded"
    assert world.invoke("maker", 'UPDATE :alice SET FIELDS {name: "N"}').code == "NotAuthorized"
    assert person != theme


def test_deriving_takes_its_own_permission(world):
    """Who may create may not therefore infer or compile."""
    inferred = 'ASSERT (:alice, "timezone", "+08:00") {by: :alice, mode: "inferred"}'
    with world.unchanged():
        assert world.invoke("recorder", inferred).code == "NotAuthorized"
    world.grant("recorder", "derive", name="derives")

    assert world.invoke("recorder", inferred)["status"] == "succeeded"


def test_a_hold_takes_its_own_permission(world):
    """Who manages retention neither places nor lifts a legal hold (Governance §163)."""
    with world.unchanged():
        held = world.invoke("maintenance", "SET RETENTION :carol {legal_hold: true}")
    assert held.code == "NotAuthorized"
    assert (
        world.invoke("maintenance", 'SET RETENTION :carol {retention_class: "long"}')["status"] == "succeeded"
    )
    world.ok("SET RETENTION :carol {legal_hold: true}")
    world.grant("maintenance", "legal_hold", name="holds")
    assert world.invoke("maintenance", "SET RETENTION :carol {legal_hold: false}")["status"] == "succeeded"


def test_fields_that_may_not_be_read_match_and_rank_nothing(world):
    """A masked field is null in answers, filters and order, and none of its words are found."""
    world.ok(
        'CREATE CONCEPT ?d {TYPE "Document" NAME "ledger" SET ATTRIBUTES {note: "the vault code is nine"}}'
    )
    world.principals["clerk"] = Principal("clerk")
    world.grant("clerk", "read", "search", fields=("attributes.note",))
    find = 'FIND(?d.name, ?d.attributes.note) WHERE {{?d CONCEPT {{type: "Document"}}{}}}'

    assert world.invoke("clerk", find.format("")).result == [["ledger", None]]
    assert world.invoke("clerk", find.format(' FILTER(CONTAINS(?d.attributes.note, "vault"))')).result == []
    assert world.invoke("clerk", 'SEARCH CONCEPT "vault"').result == []
    (hit,) = world.invoke("clerk", 'SEARCH CONCEPT "ledger"').result
    assert "vault" not in str(hit)
    (open_hit,) = world.rows('SEARCH CONCEPT "vault"')
    assert "vault" in open_hit["snippet"]


def test_a_stranger_learns_of_itself_and_of_nothing_else(world):
    """Who holds nothing may ask who it is and what the protocol is; the space's names and schema it is not told."""
    stranger = Principal("stranger")
    for command in ("DESCRIBE PRIMER", "DESCRIBE SPACE", "LIST TYPES", "SNAPSHOT", 'SEARCH CONCEPT "alice"',
                    "HISTORY SPACE", "CHANGES AFTER SEQ 0", "FIND(?c) WHERE {?c CONCEPT {}}"):  # fmt: skip
        assert world.invoke(stranger, command).code == "NotAuthorized", command
    known = world.invoke(stranger, "DESCRIBE EXECUTION CONTEXT").result
    assert (known["principal"]["may"], known["actor_binding"]["actors"]) == ([], [])
    assert known["self"] is None
    assert world.invoke(stranger, "DESCRIBE PROTOCOL")["status"] == "succeeded"
    voices = world.invoke("alice_writer", "DESCRIBE EXECUTION CONTEXT").result["actor_binding"]["actors"]
    assert voices == [world.ref["alice"]["id"]]


def test_one_who_is_one_only_through_a_secret_is_two(world):
    """Two Concepts merged into a third that is hidden are not told to be the same."""
    world.ok("MERGE CONCEPT :alice INTO :carol")
    world.ok("MERGE CONCEPT :bob INTO :carol")
    world.ok('ENSURE PROPOSITION (:carol, "timezone", "+01:00")')
    query = 'FIND(?b.candidate_projections) WHERE {?b BELIEF SLOT (:alice, "timezone")}'
    assert len(world.invoke("reader_hidden", query).result[0]) == 1
    world.mark(world.ref["carol"])

    assert world.invoke("reader_hidden", query).result == [[]]
    assert world.invoke("reader_hidden", 'SEARCH CONCEPT "alice"').result == []
    merged = 'FIND(?c.key, ?c.merged_into) WHERE {?c CONCEPT {state: "merged"}}'
    assert sorted(world.invoke("reader_hidden", merged).result) == [["alice", None], ["bob", None]]


# --- what access is said to be


@pytest.mark.parametrize(
    ("who", "asked", "decision", "reason"),
    [
        ("reader_full", '{operation: "read", resource: :x}', "allowed", None),
        ("reader_full", '{operation: "purge", resource: :x}', "denied", "not_permitted"),
        ("owner", '{operation: "purge", resource: :x}', "requires_approval", "must_be_approved_by_others"),
        ("owner", '{operation: "retract", resource: :a}', "denied", "not_the_asserting_actor"),
        ("owner", '{operation: "supersede", resource: :a}', "requires_actor_binding", "principal_is_not_bound_to_actor"),
        ("alice_writer", '{operation: "retract", resource: :a}', "allowed", None),
        ("recorder", '{operation: "assert", actor: :x}', "requires_actor_binding", "principal_is_not_bound_to_actor"),
        ("weak", '{operation: "tombstone", resource: :x}', "denied", "requires_stronger_authentication"),
        (BLIND, '{operation: "archive", resource: :x}', "denied", "not_found_or_not_visible"),
    ],
)  # fmt: skip
def test_access_is_told_with_its_reason(world, who, asked, decision, reason):
    """DESCRIBE ACCESS says what would happen, and no more to whoever may not know of the element."""
    claim = world.ok('ASSERT ?a (:alice, "timezone", "+08:00") {by: :alice, mode: "stated"}').id("a")
    world.command(SetPolicy(policy=Policy(approvals={"purge": 1}, strong=("tombstone",))))
    world.grant("weak", "read", "tombstone")
    world.principals["weak"] = Principal("weak", strong=False)
    told = world.invoke(who, f"DESCRIBE ACCESS WITH {asked}", x=world.ref["bob"]["id"], a=claim["id"]).result

    assert (told["decision"], told.get("reason")) == (decision, reason)
    assert told["commit_guaranteed"] is False


def test_an_actor_to_speak_as_is_part_of_the_request(world):
    """A malformed one is refused, and a retry that speaks as another is another request."""
    say = 'ASSERT (:alice, "timezone", "+08:00") {by: :alice, mode: "stated"}'
    as_whom = {"noema/act_as": {"id": world.ref["alice"]["id"]}}
    keyed = {"command": say, "idempotency_key": "k"}
    assert world.invoke("alice_writer", request(keyed, extensions=as_whom))["status"] == "succeeded"

    assert world.invoke("alice_writer", request(keyed)).code == "IdempotencyConflict"
    for wrong in ({}, {"id": 7}, {"id": ""}):
        reply = world.invoke("alice_writer", request(say, extensions={"noema/act_as": wrong}))
        assert reply.code == "InvalidRequestEnvelope"
