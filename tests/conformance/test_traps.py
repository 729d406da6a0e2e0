"""The fifteen places where implementers of KIP go wrong, one test each, over the durable harness.

Each docstring begins with the number and name of its trap.
"""

from __future__ import annotations

import copy
import json

import pytest

from core.protocol.canonical import digest_of
from tests.conformance.harness import CORE, DETERMINISTIC, World, package, request
from tests.conformance.packages import CORE_DOMAIN, SECONDARY

ZONE = '(:alice, "timezone", "+08:00")'
SAY = f'ASSERT ?a {ZONE} {{by: :bob, mode: "stated"}}'
CREATE = 'UPSERT CONCEPT ?c {MATCH {type: "Person", key: :k} SET ATTRIBUTES {n: :n}}'
NUMBERS = 'FIND(?p.attributes.n) WHERE {?p CONCEPT {type: "Person"}} ORDER BY ?p.attributes.n '


def people(world, **numbers):
    """Further Persons with an attribute `n`."""
    for key, number in numbers.items():
        world.ok(CREATE, k=key, n=number)


def test_trap_01_null_order_and_aggregates(world):
    """1. Nulls are last both ways; aggregates skip them; equal projected values of different bindings stay two."""
    people(world, x=1, y=2, z=1)

    assert world.rows(NUMBERS + "ASC") == [1, 1, 2, None, None, None, None]
    assert world.rows(NUMBERS + "DESC") == [2, 1, 1, None, None, None, None]
    aggregates = (
        "COUNT(?p.attributes.n), SUM(?p.attributes.n), AVG(?p.attributes.n), COUNT(DISTINCT ?p.attributes.n)"
    )
    assert world.rows(f'FIND({aggregates}) WHERE {{?p CONCEPT {{type: "Person"}}}}') == [[3, 4, 4 / 3, 2]]
    world.ok('ENSURE PROPOSITION ?q (:alice, "knows", :bob)')
    known = 'FIND(?p.key, COUNT(?f)) WHERE {?p CONCEPT {type: "Person"} OPTIONAL {(?p, "knows", ?f)}} ORDER BY COUNT(?f) DESC, ?p.key LIMIT 2'
    assert world.rows(known) == [["alice", 1], ["bob", 0]]
    assert world.rows("FIND(COUNT(?p)) WHERE {?p CONCEPT {id: :alice} UNION {?p CONCEPT {id: :alice}}}") == [
        1
    ]


def test_trap_02_scope_of_not_optional_and_union(world):
    """2. NOT sees what is bound and leaks nothing; OPTIONAL leaves nulls; UNION is a parallel branch; place is free."""
    world.ok('ENSURE PROPOSITION ?q (:alice, "knows", :bob)')
    person = '?p CONCEPT {type: "Person"}'
    alone = 'NOT {(?p, "knows", ?someone)}'

    for block in (f"{person} {alone}", f"{alone} {person}"):
        assert sorted(world.rows(f"FIND(?p.key) WHERE {{{block}}}")) == ["bob", "carol", "self"]
    for block in (f'{person} FILTER(?p.key == "bob")', f'FILTER(?p.key == "bob") {person}'):
        assert world.rows(f"FIND(?p.key) WHERE {{{block}}}") == ["bob"]
    escaped = (
        f'FIND(?p.key, ?f.name) WHERE {{{person} OPTIONAL {{(?p, "knows", ?f)}}}} ORDER BY ?p.key LIMIT 2'
    )
    assert world.rows(escaped) == [["alice", "Bob"], ["bob", None]]
    union = 'FIND(?p.key, ?t.key) WHERE {?p CONCEPT {key: "alice"} UNION {?t CONCEPT {type: "Theme"}}}'
    assert sorted(world.rows(union), key=str) == [
        ["alice", None],
        [None, "dark_mode"],
        [None, "light_mode"],
    ]
    world.refused(f"FIND(?someone) WHERE {{{person} {alone}}}")


def test_trap_03_unlike_types_decide_nothing(world):
    """3. An order between unlike types is false both ways; equality is structural; 1 is 1.0 and true is not 1."""
    for key, value in (("a", 5), ("b", "5"), ("c", True), ("d", None), ("e", 5.0)):
        world.ok(CREATE, k=key, n=value)

    def kept(condition):
        query = f'FIND(?p.key) WHERE {{?p CONCEPT {{type: "Person"}} FILTER({condition})}} ORDER BY ?p.key'
        return [key for key in world.rows(query) if len(key) == 1]

    assert kept("?p.attributes.n == 5") == ["a", "e"]
    assert kept('?p.attributes.n == "5"') == ["b"]
    assert kept("?p.attributes.n == true") == ["c"]
    assert kept("?p.attributes.n == 1") == []
    assert kept("?p.attributes.n < 9") == ["a", "e"]
    assert kept("?p.attributes.n >= 9") == []
    assert kept("!(?p.attributes.n < 9)") == ["b", "c", "d"]


def test_trap_04_literal_identity(world):
    """4. Datatype and language are part of a value; a text shaped like an id is text; null, lists and objects are none."""
    name = world.ref["alice"]["id"]
    plain = world.ok('ENSURE PROPOSITION ?p (:bob, "timezone", :v)', v=name).id("p")
    assert world.element(plain).object.value == name
    assert world.rows('FIND(?o) WHERE {(:bob, "timezone", ?o) FILTER(IS_LITERAL(?o))}') == [name]
    world.ok('ENSURE PROPOSITION ?p (:alice, "is_vegetarian", true)')
    for number in (1, 1.0):
        assert (
            world.refused('ENSURE PROPOSITION ?p (:alice, "is_vegetarian", :v)', v=number) == "TypeMismatch"
        )
    for wrong in ("null", "[1]", "{a: 1}", ":list", ":object"):
        world.refused(f'ENSURE PROPOSITION ?p (:alice, "timezone", {wrong})', list=["x"], object={"a": 1})
    world.refused('ENSURE PROPOSITION ?p ("alice", "timezone", "x")')

    assert len(world.elements("proposition")) == 2


def test_trap_05_merge_and_canonical_resolution(world):
    """5. A merge rewrites no endpoint, admits no cycle, leads new writes to the survivor and its belief sees both."""
    old = world.ok('ASSERT ?a (:carol, "timezone", "+08:00") {by: :bob, mode: "stated"}').id("a")
    before = world.element(world.element(old).proposition)
    world.ok("MERGE CONCEPT :carol INTO :alice")

    assert world.element(before.id) == before
    assert world.rows(f"FIND(?b.status) WHERE {{?b BELIEF {ZONE}}} {DETERMINISTIC}") == ["accepted"]
    new = world.ok('ENSURE PROPOSITION ?p (:carol, "is_vegetarian", true)').id("p")
    assert world.element(new).subject == world.ref["alice"]["id"]
    assert world.ok("MERGE CONCEPT :carol INTO :alice").receipt["status"] == "no_effect"
    assert world.refused("MERGE CONCEPT :carol INTO :bob") == "IdentityMergeConflict"
    assert world.refused("MERGE CONCEPT :alice INTO :carol") == "IdentityMergeConflict"
    world.ok("MERGE CONCEPT :alice INTO :bob")
    assert world.refused("MERGE CONCEPT :bob INTO :carol") == "IdentityMergeConflict"
    assert world.refused('MERGE CONCEPT {name: "Self"} INTO :bob') in (
        "IdentitySelectorRequired", "NameIdentityForbidden", "InvalidSyntax"
    )  # fmt: skip


STEPS = 'FIND(?s.name, ?edge.index) WHERE {?edge STRUCTURAL (:e, "has_step", ?s)} ORDER BY ?edge.index'


def test_trap_06_ordered_structural_fields(world):
    """6. Places are dense from 0: an append is last, an index inserts, a removal closes up, a wrong index is refused."""
    made = world.ok(
        'MUTATE {CREATE CONCEPT ?e {TYPE "Experience" SET STRUCTURAL {("has_step", ?a) ("has_step", ?b)}} '
        + " ".join(f'CREATE CONCEPT ?{name} {{TYPE "ExperienceStep" NAME "{name}"}}' for name in "abcd")
        + "}"
    ).ids()

    world.ok('UPDATE :e SET STRUCTURAL {("has_step", :c) {index: 0}}', **made)
    assert world.rows(STEPS, **made) == [["c", 0], ["a", 1], ["b", 2]]
    for wrong in (5, -1):
        world.refused(f'UPDATE :e SET STRUCTURAL {{("has_step", :d) {{index: {wrong}}}}}', **made)
    world.refused(
        'UPDATE :e SET STRUCTURAL {("has_step", :d) {index: 0} ("has_step", :a) {index: 0}}', **made
    )
    world.ok('UPDATE :e UNSET STRUCTURAL {("has_step", :a)}', **made)
    assert world.rows(STEPS, **made) == [["c", 0], ["b", 1]]


def test_trap_07_cursors(world):
    """7. Opaque, unforgeable, of one snapshot, query and caller, with errors that differ; ties are neither lost nor doubled."""
    people(world, u=1, v=1, w=1, x=1)
    query = "FIND(?p.key) WHERE {?p CONCEPT {} FILTER(?p.attributes.n == 1)} ORDER BY ?p.attributes.n LIMIT 1"
    page = world.ok(query)
    first, seen = page.cursor, list(page.result)
    while page.cursor:
        page = world.ok(f"{query} CURSOR :c", c=page.cursor)
        seen += page.result

    assert sorted(seen) == ["u", "v", "w", "x"]
    other = query.replace("== 1", "!= 2")
    assert world.refused(f"{other} CURSOR :c", c=first) == "CursorMismatch"
    assert world.refused('SEARCH CONCEPT "x" CURSOR :c', c=first) == "CursorTypeMismatch"
    for forged in (first[:-2] + ("AA" if first[-2:] != "AA" else "BB"), "3", "", "x" * 40):
        assert world.refused(f"{query} CURSOR :c", c=forged) in ("CursorInvalidated", "CursorMismatch")
    assert world.invoke("reader_full", f"{query} CURSOR :c", c=first).code is not None
    world.expire_cursors()
    assert world.refused(f"{query} CURSOR :c", c=first) == "CursorExpired"


def test_trap_08_as_of_and_for_time(world):
    """8. AS OF picks state and schema, FOR TIME only belief; the future is refused, seq 0 is empty, an unknown tx is unknown."""
    claim = world.ok(f'{SAY[:-1]}, valid: {{until: "2026-01-01T00:00:00Z"}}}}')
    seq, at = claim.receipt["space_seq"], claim.receipt["committed_at"]
    raw = 'FIND(?o) WHERE {(:alice, "timezone", ?o)} '
    past = '"2020-01-01T00:00:00Z"'

    assert world.rows(f"{raw} FOR TIME {past}") == world.rows(f'{raw} FOR TIME "2030-01-01T00:00:00Z"')
    assert world.rows(f"{raw} AS OF TIME :t", t=at) == ["+08:00"]
    assert world.refused(f"{raw} AS OF TIME {past}") == "HistoricalSnapshotUnavailable"
    assert world.rows(f"{raw} AS OF TX :t", t=claim.receipt["tx_id"]) == ["+08:00"]
    assert world.refused(f"{raw} AS OF SEQ :n", n=seq + 1) == "HistoricalSnapshotUnavailable"
    assert world.refused(f'{raw} AS OF TIME "2999-01-01T00:00:00Z"') == "HistoricalSnapshotUnavailable"
    assert world.refused(f'{raw} AS OF TX "tx-none"') == "TransactionUnknown"
    world.activate([package(SECONDARY)])
    reply = world.ok(f"{raw} AS OF TX :t", t=claim.receipt["tx_id"])
    assert reply["results"][0]["context"]["schema_environment_version"] < world.state().meta.schema.version


def test_trap_08_seq_0_is_empty():
    """8. Before its first cognitive commit a space holds nothing, and that can be asked for."""
    world = World(seeded=False)
    world.ok('CREATE CONCEPT ?c {TYPE "Theme"}')

    assert world.rows("FIND(COUNT(?c)) WHERE {?c CONCEPT {}}") == [1]
    assert world.rows("FIND(COUNT(?c)) WHERE {?c CONCEPT {}} AS OF SEQ 0") == [0]


def test_trap_08_current_authority_applies_to_the_past(world):
    """8. By AS OF, by cursor and by snapshot token alike, what is secret now is not read where it was public."""
    secret = world.ref["carol"]
    find, order = 'FIND(?p.name) WHERE {?p CONCEPT {type: "Person"}}', "ORDER BY ?p.name"
    query = f"{find} {order}"
    seq = world.state().seq
    token = world.invoke("reader_hidden", "SNAPSHOT").result["snapshot_token"]
    page = world.invoke("reader_hidden", f"{query} LIMIT 1")
    world.classify(secret)
    replies = [
        world.invoke("reader_hidden", f"{find} AS OF SEQ :n {order}", n=seq),
        world.invoke("reader_hidden", request(query, read={"snapshot_token": token})),
        world.invoke("reader_hidden", f"{query} LIMIT 1 CURSOR :c", c=page.cursor),
        world.invoke("reader_hidden", 'SEARCH CONCEPT "carol" AS OF SEQ :n', n=seq),
        world.invoke("reader_hidden", "HISTORY ELEMENT :e", e=secret),
    ]

    assert "Carol" not in str(replies)
    assert [reply.result for reply in replies[:2]] == [["Alice", "Bob", "Self"]] * 2


def test_trap_09_idempotency(world):
    """9. A key is the caller's own; replay whatever the text, the ids or the schema; an abort binds nothing; else conflict."""

    def send(command, who="owner", **parameters):
        operation = {"command": command, "idempotency_key": "k", "parameters": parameters, "op_id": str(who)}
        return world.invoke(who, request(operation, request_id=str(parameters)))

    assert send(CREATE, k="x", n=[]).receipt["status"] == "committed"
    first = send(CREATE, k="x", n=[])
    world.activate([package(SECONDARY)])
    again = send(CREATE.replace(" ", "\n  ") + " // the same", k="x", n=[])
    assert again.receipt == first.receipt
    assert send(CREATE, k="x", n=1).code == "IdempotencyConflict"
    mine = send('CREATE CONCEPT ?c {TYPE "Theme" NAME "other"}', "alice_writer")
    assert mine.receipt["status"] == "committed"

    failing = request({"command": 'CREATE CONCEPT ?c {TYPE "Spaceship"}', "idempotency_key": "f"})
    assert world.invoke("owner", failing).code == "SchemaSymbolNotFound"
    working = request({"command": 'CREATE CONCEPT ?c {TYPE "Theme"}', "idempotency_key": "f"})
    assert world.ok(working).receipt["status"] == "committed"
    nothing = request({"command": 'UPDATE :alice SET FIELDS {name: "Alice"}', "idempotency_key": "n"})
    assert world.ok(nothing).receipt["status"] == "no_effect"
    world.ok('UPDATE :alice SET FIELDS {name: "A"}')
    assert world.ok(nothing).receipt["status"] == "no_effect"
    assert world.element(world.ref["alice"]).name == "A"


def test_trap_10_receipts_versions_and_no_effect(world):
    """10. One version step a transaction, 1 for a new element, the commit's time; no change is nothing; reads have no receipt."""
    several = request(
        "UPDATE :alice SET ATTRIBUTES {a: 1}", "UPDATE :alice SET ATTRIBUTES {b: 2}", SAY, execution={"mode": "atomic"}
    )  # fmt: skip
    receipt = world.ok(several).receipt
    alice = world.element(world.ref["alice"])
    assert alice.system.version == 2
    assert [claim.system.version for claim in world.elements("assertion")] == [1]
    assert alice.system.updated_at == world.log()[-1].at
    envelopes = world.envelopes()
    assert [item["tx_id"] for item in envelopes].count(receipt["tx_id"]) == 1

    with world.unchanged():
        reply = world.invoke("owner", "UPDATE :alice SET ATTRIBUTES {a: 1}")
    assert (reply.statuses, reply.receipt["status"]) == (["no_effect"], "no_effect")
    assert "space_seq" not in reply.receipt
    assert world.envelopes() == envelopes
    assert world.ok("FIND(?p.key) WHERE {?p CONCEPT {}}").get("receipt") is None


def test_trap_11_expect_version_at_commit(world):
    """11. A guard holds at the commit and not only at the plan; 0 is create-only; a lifecycle guard is a precondition."""
    world.race(lambda: world.ok('UPDATE :alice SET FIELDS {name: "first"}'))
    late = world.invoke("owner", 'UPDATE :alice EXPECT VERSION 1 SET FIELDS {name: "second"}')
    assert late.code == "VersionConflict"
    assert world.element(world.ref["alice"]).name == "first"

    touched = "UPDATE :bob SET ATTRIBUTES {a: 1}"
    guarded = (
        "UPDATE :bob EXPECT VERSION 1 SET ATTRIBUTES {b: 1}"  # of the state it commits onto, in one step
    )
    world.ok(request(touched, guarded, execution={"mode": "atomic"}))
    assert world.element(world.ref["bob"]).system.version == 2
    assert world.refused(guarded) == "VersionConflict"

    only = 'UPSERT CONCEPT ?c {MATCH {type: "Person", key: "new"} EXPECT VERSION 0 SET FIELDS {name: "N"}}'
    world.ok(only)
    assert world.refused(only) == "VersionConflict"
    world.ok(f"ENSURE PROPOSITION ?p {ZONE} EXPECT VERSION 0")
    assert world.refused(f"ENSURE PROPOSITION ?p {ZONE} EXPECT VERSION 0") == "VersionConflict"
    claim = world.ok(SAY).id("a")
    world.ok("RETRACT ASSERTION :a", a=claim)
    assert world.refused('ARCHIVE :a EXPECT STATE "archived"', a=claim) == "PreconditionFailed"


def test_trap_12_digests_and_canonical_json(world):
    """12. The shipped digests are reproduced; a changed byte is not; the digest says by which rule it was made."""
    for name in (CORE_DOMAIN, SECONDARY):
        artifact = copy.deepcopy(package(name))
        reply = world.rows("VERIFY SCHEMA PACKAGE :p", p=artifact)
        assert reply["content_digest"] == artifact["integrity"]["content_digest"]
        assert reply["digest_profile"] == artifact["integrity"]["digest_profile"]
        artifact["manifest"]["name"] += "é"
        assert world.refused("VERIFY SCHEMA PACKAGE :p", p=artifact) == "DigestMismatch"
    assert digest_of({"b": 1, "a": "é"}) == digest_of({"a": "é", "b": 1})
    assert digest_of({"a": "é"}) != digest_of({"a": "e\u0301"})  # no Unicode normalisation
    assert digest_of({"a": True}) != digest_of({"a": 1})


def test_trap_13_update(world):
    """13. UPDATE never creates, needs its target bound, reads the start state, merges facets, and cannot rewrite records."""
    people(world, x=1, y=2)
    assert world.refused("UPDATE ?ghost SET ATTRIBUTES {a: 1}") == "ReferenceError"
    sweep = "UPDATE ?p SET ATTRIBUTES {n: ADD(?p.attributes.n, 1)} WHERE {?p CONCEPT {} FILTER(?p.attributes.n > 0)}"
    assert world.ok(sweep).result["updated"] == 2
    assert world.rows(NUMBERS + "LIMIT 2") == [2, 3]
    none = 'UPDATE ?p SET ATTRIBUTES {a: 1} WHERE {?p CONCEPT {name: "nobody"}}'
    assert world.ok(none).receipt["status"] == "no_effect"
    both = ('MUTATE {CREATE CONCEPT ?new {TYPE "Person" SET ATTRIBUTES {n: 9}} '
            "UPDATE ?p SET ATTRIBUTES {n: 0} WHERE {?p CONCEPT {} FILTER(?p.attributes.n > 0)}}")  # fmt: skip
    world.ok(both)
    assert world.rows(NUMBERS + "LIMIT 3") == [0, 0, 9]
    world.ok('UPDATE :dark_mode SET FACET "MnemonicState" {salience: 0.5}')
    world.ok('UPDATE :dark_mode SET FACET "MnemonicState" {memory_strength: 0.2}')
    [facet] = world.element(world.ref["dark_mode"]).facets.values()
    assert facet == {"salience": 0.5, "memory_strength": 0.2}
    claim = world.ok(SAY).id("a")
    assert world.refused("UPDATE :a SET FIELDS {confidence: 0.1}", a=claim) == "EpistemicRevisionRequired"


def test_trap_14_mutate_is_a_graph(world):
    """14. Order has no meaning, legal circles commit together, contradictions do not; ASSERT is its desugaring and no more."""
    made = world.ok(
        'MUTATE {CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "tool_result", payload: "x"} SET STRUCTURAL {("generated_by", ?run)}} '
        'CREATE ACTIVITY ?run {SET FIELDS {activity_class: "tool_execution", status: "completed"} SET STRUCTURAL {("outputs", ?e)}}}'
    ).ids()
    assert world.element(made["e"]).generated_by == made["run"]["id"]
    assert world.element(made["run"]).outputs == (made["e"]["id"],)
    twice = 'MUTATE {UPDATE :alice SET FIELDS {name: "A"} UPDATE :alice SET FIELDS {name: "B"}}'
    assert world.refused(twice) == "DuplicateMutationTarget"

    claim = world.element(
        world.ok(f'ASSERT ?a {ZONE} {{by: :bob, mode: "observed", evidence: [:e]}}', **made).id("a")
    )
    assert (claim.stance, claim.confidence, claim.asserted_at) == ("support", None, world.log()[-1].at)
    assert [(cited.evidence, cited.role) for cited in claim.evidence] == [(made["e"]["id"], "support")]
    kinds = {change["kind"] for change in world.envelopes()[-1]["changes"]}
    assert kinds == {"proposition", "assertion"}

    world.ok('UPSERT CONCEPT ?p {MATCH {type: "Project", key: "alice"} SET FIELDS {name: "Another"}}')
    assert world.element(world.ref["alice"]).name == "Alice"  # a key is of its type
    assert (
        world.refused('UPSERT CONCEPT ?p {MATCH {key: "alice"} SET FIELDS {name: "?"}}') == "IdentityConflict"
    )


def test_trap_15_purge_ingest_and_lifecycle(world):
    """15. A cited record is not purged, a purge takes the past too, archiving withdraws nothing, ingest is one with its request."""
    made = world.ok('CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "xyzzy"}}').id("e")
    claim = world.ok(f"{SAY[:-1]}, evidence: [:e]}}", e=made).id("a")
    seq = world.state().seq
    assert world.refused('PURGE :e CONFIRM "PURGE"', e=made) == "PurgeDenied"
    world.ok("ARCHIVE :a", a=claim)
    assert world.element(claim).status == "active"
    past = "FIND(?e.payload.inline) WHERE {?e EVIDENCE {id: :i}} AS OF SEQ :n"
    purge = 'PURGE :e REFERENCE POLICY "tombstone_reference" CONFIRM "PURGE"'
    both = world.ok(
        request(purge, past, execution={"mode": "atomic"}, parameters={"e": made, "i": made["id"], "n": seq})
    )
    assert "xyzzy" not in str(both)  # gone from the past too, for the transaction that erases it first of all
    stub = world.element(made)
    assert (stub.system.state, stub.evidence_class, stub.payload.mode) == ("purged", "message", "purged")
    assert stub.content_digest
    then = world.rows(past, i=made["id"], n=seq)
    assert "xyzzy" not in json.dumps([then, world.envelopes(), world.rows("HISTORY SPACE")])

    entry = {
        "key": "m",
        "evidence_class": "message",
        "payload": "café \u0000 ünï",
        "source_actor": world.ref["carol"]["id"],
        "client_key": "m1",
    }
    good = request(
        {"command": f"{SAY[:-1]}, evidence: [:m]}}", "idempotency_key": "i"}, ingest={"evidence": [entry]}
    )
    world.ok(good)
    world.ok(good)
    [minted] = [found for found in world.elements("evidence") if found.id != made["id"]]
    assert minted.payload.inline == "café \u0000 ünï"
    assert minted.source == (world.ref["carol"]["id"],)
    assert minted.system.origin.principal == "owner"
    bad = request(
        'CREATE CONCEPT ?c {TYPE "Spaceship"}', ingest={"evidence": [{**entry, "client_key": "m2"}]}
    )
    assert world.refused(bad) == "SchemaSymbolNotFound"


def test_trap_15_supersession_and_retraction_need_standing(world):
    """15. Who did not make a claim neither supersedes nor withdraws it, and a client key is bound to its payload."""
    theirs = world.ok(SAY).id("a")
    revise = f'ASSERT ?a {ZONE} {{by: :alice, mode: "stated"}} SUPERSEDING :old'
    assert world.refused(revise, old=theirs) == "SupersessionMismatch"
    assert world.invoke("alice_writer", "RETRACT ASSERTION :a", a=theirs).code == "RetractionNotAuthorized"
    keyed = 'CREATE EVIDENCE ?e {CLIENT KEY "k" SET FIELDS {evidence_class: "message", payload: :p}}'
    first = world.ok(keyed, p="one").id("e")
    assert world.ok(keyed, p="one").id("e") == first
    assert world.refused(keyed, p="two") == "ClientKeyConflict"
    assert world.element(theirs).status == "active"


@pytest.mark.parametrize("symbol", ["timezone", "kip://test/core-domain@1.0.0/timezone"])
def test_trap_02_predicate_variables_are_exact(world, symbol):
    """2. Local and exact names ask the same, and what a variable is bound to is exact."""
    world.ok(f"ENSURE PROPOSITION ?p {ZONE}")

    assert world.rows(f'FIND(?o) WHERE {{(:alice, "{symbol}", ?o)}}') == ["+08:00"]
    assert world.rows("FIND(?r) WHERE {(:alice, ?r, ?o)}") == [f"{CORE}/timezone"]
