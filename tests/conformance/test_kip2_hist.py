"""KIP2-HIST-001..010 (conformance paper §23): one test per id; then and now, and nothing made up in between."""

from __future__ import annotations

import copy
import json

from core.model.elements import Assertion
from tests.conformance.harness import CORE, SECONDARY, World, package

NAME = "FIND(?c.name) WHERE {?c CONCEPT {id: :id}}"
STATUS = "FIND(?a.lifecycle.status) WHERE {?a ASSERTION {id: :id}}"


def seq(world):
    return world.state().seq


def only(rows):
    [row] = rows
    return row


def test_kip2_hist_001_historical_mutable_concept_reconstruction(world):
    """A name of then is read then, the present one now, and reading changes neither."""
    made = world.ok('CREATE CONCEPT ?c {TYPE "Project" NAME "Alpha"}').id("c")
    then = seq(world)
    world.ok('UPDATE :c SET FIELDS {name: "Beta"}', c=made)

    with world.unchanged():
        assert world.rows(f"{NAME} AS OF SEQ :n", id=made["id"], n=then) == ["Alpha"]
        assert world.rows(NAME, id=made["id"]) == ["Beta"]
    assert world.element(made).name == "Beta"


def test_kip2_hist_002_historical_assertion_lifecycle_reconstruction(world):
    """A claim that was retracted later is active then and retracted now."""
    claim = world.ok('ASSERT ?a (:alice, "prefers", :dark_mode) {by: :alice, mode: "stated"}').id("a")
    then = seq(world)
    world.ok("RETRACT ASSERTION :a", a=claim)

    assert world.rows(f"{STATUS} AS OF SEQ :n", id=claim["id"], n=then) == ["active"]
    assert world.rows(STATUS, id=claim["id"]) == ["retracted"]
    assert world.element(claim).status == "retracted"


def test_kip2_hist_003_historical_evidence_correction_reconstruction(world):
    """Before its correction Evidence has no lineage, afterwards it has; its payload is the same throughout."""
    made = 'CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: :text}}'
    first = world.ok(made, text="it is noon").id("e")
    then = seq(world)
    second = world.ok(made, text="it is midnight").id("e")
    world.ok("CORRECT EVIDENCE :old BY :new", old=first, new=second)

    query = "FIND(?e.lifecycle.corrected_by, ?e.payload.inline) WHERE {?e EVIDENCE {id: :id}}"
    lineage_then, payload_then = only(world.rows(f"{query} AS OF SEQ :n", id=first["id"], n=then))
    lineage_now, payload_now = only(world.rows(query, id=first["id"]))

    assert lineage_then == []
    assert [found["id"] for found in lineage_now] == [second["id"]]
    assert payload_then == payload_now == "it is noon"


def test_kip2_hist_004_historical_schema_environment_reconstruction(world):
    """AS OF a past seq identifies the environment of then, by version and lock."""
    world.ok('CREATE CONCEPT ?c {TYPE "Person" NAME "Before"}')
    then, before = seq(world), world.rows("DESCRIBE SCHEMA ENVIRONMENT")
    world.ok('CREATE CONCEPT ?c {TYPE "Person" NAME "Between"}')
    world.activate([package(SECONDARY)])
    world.ok('CREATE CONCEPT ?c {TYPE "Person" NAME "After"}')

    reply = world.ok("DESCRIBE SCHEMA ENVIRONMENT AS OF SEQ :n", n=then)

    assert reply.result["environment_version"] == before["environment_version"]
    assert reply.result["lock_digest"] == before["lock_digest"]
    assert reply["results"][0]["context"]["schema_environment_version"] == before["environment_version"]
    now = world.rows("DESCRIBE SCHEMA ENVIRONMENT")
    assert now["environment_version"] == before["environment_version"] + 1
    assert len(now["packages"]) == len(before["packages"]) + 1


def test_kip2_hist_005_historical_records_keep_exact_schema_meaning(world):
    """Data of an older package version keep that version's identity, and are described by it, after an upgrade."""
    made = world.ok('CREATE CONCEPT ?c {TYPE "Project" NAME "Old"}').id("c")
    then = seq(world)
    world.ok('CREATE CONCEPT ?c {TYPE "Project" NAME "Other"}')
    newer = _newer()
    world.activate([newer], only=True)
    fresh = world.ok('CREATE CONCEPT ?c {TYPE "Project" NAME "New"}').id("c")

    query = "FIND(?c.schema_ref) WHERE {?c CONCEPT {id: :id}}"
    assert world.rows(query, id=made["id"]) == [f"{CORE}/Project"]
    assert world.rows(f"{query} AS OF SEQ :n", id=made["id"], n=then) == [f"{CORE}/Project"]
    assert world.rows(query, id=fresh["id"]) == ["kip://test/core-domain@1.1.0/Project"]
    old = world.rows("DESCRIBE TYPE :ref", ref=f"{CORE}/Project")
    assert (old["package"]["version"], old["writable"]) == ("1.0.0", False)
    assert world.rows('DESCRIBE TYPE "Project"')["package"]["version"] == "1.1.0"


def _newer():
    """The next version of the test package, with the same definitions."""
    artifact = copy.deepcopy(package("test-core-domain-1.0.0"))
    artifact.pop("integrity")
    text = json.dumps(artifact).replace("kip://test/core-domain@1.0.0", "kip://test/core-domain@1.1.0")
    artifact = json.loads(text)
    artifact["manifest"]["version"] = "1.1.0"
    return artifact


def test_kip2_hist_006_historical_governance_uses_current_authorization(world):
    """What was public then and is secret now is out of a restricted caller's reach, however it asks for the past."""
    made = world.ok(
        'CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "the vault opens at nine"}}'
    )
    found, then = made.id("e"), seq(world)
    token = world.rows("SNAPSHOT")["snapshot_token"]
    world.ok('UPDATE :bob SET FIELDS {name: "Rob"}')
    world.classify(found)

    query = 'FIND(?e.payload.inline) WHERE {?e EVIDENCE {evidence_class: "message"}}'
    asked = [
        world.invoke("reader_hidden", f"{query} AS OF SEQ :n", n=then),
        world.invoke("reader_hidden", 'SEARCH EVIDENCE "vault" AS OF SEQ :n', n=then),
        world.invoke("reader_hidden", "HISTORY ELEMENT :e", e=found),
        world.invoke("reader_hidden", "CHANGES AFTER SEQ 0"),
        world.invoke(
            "reader_hidden",
            {"kip": "2.0", "read": {"snapshot_token": token}, "operations": [{"command": query}]},
        ),
    ]

    assert "vault" not in json.dumps(asked)
    assert found["id"] not in json.dumps(asked)
    assert world.rows(f"{query} AS OF SEQ :n", n=then) == ["the vault opens at nine"]


def test_kip2_hist_007_belief_then_differs_from_current_belief_about_then(world):
    """What was believed then, and what is now believed about then, are asked for separately and differ."""
    about = "2026-01-01T00:00:00Z"
    options = 'WITH EPISTEMIC {policy: "test-deterministic"}'
    belief = 'FIND(?b.status) WHERE {?b BELIEF (:alice, "is_vegetarian", true)}'
    world.ok('ASSERT ?a (:alice, "is_vegetarian", true) {by: :alice, mode: "stated", evidence: []}')
    then = seq(world)
    world.ok('ASSERT ?a (:alice, "is_vegetarian", true) {by: :bob, mode: "stated", stance: "reject"}')

    was = world.rows(f"{belief} AS OF SEQ :n FOR TIME :t {options}", n=then, t=about)
    now = world.rows(f"{belief} FOR TIME :t {options}", t=about)

    assert was == ["accepted"]
    assert now == ["contested"]
    assert len([e for e in world.elements("assertion") if isinstance(e, Assertion)]) == 2


def test_kip2_hist_008_merge_preserves_historical_raw_endpoint(world):
    """After a merge the stored endpoint is the one that was written, then and now; the source stays addressable."""
    made = world.ok(
        'MUTATE {CREATE CONCEPT ?twin {TYPE "Person" NAME "Twin"} ENSURE PROPOSITION ?p (?twin, "prefers", :dark_mode)}'
    )
    twin, said, then = made.id("twin"), made.id("p"), seq(world)
    world.ok("MERGE CONCEPT :twin INTO :alice", twin=twin)

    query = "FIND(?p.subject.id) WHERE {?p PROPOSITION (id: :id)}"
    assert world.rows(f"{query} AS OF SEQ :n", id=said["id"], n=then) == [twin["id"]]
    assert world.rows(query, id=said["id"]) == [twin["id"]]
    assert world.element(said).subject == twin["id"]
    assert [row["op"] for row in world.rows("HISTORY ELEMENT :p", p=said)] == ["created"]
    merged = world.rows("HISTORY ELEMENT :twin", twin=twin)
    assert merged[-1]["transition"] == {"state": {"from": "active", "to": "merged"}}
    assert world.element(twin).merged_into == world.ref["alice"]["id"]


def test_kip2_hist_009_purged_history_is_unavailable_not_fabricated(world):
    """After a purge the past says that something is gone: no bytes, no invented value, in no kind of history."""
    made = world.ok(
        'CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "the word is xyzzy"}}'
    )
    found, then = made.id("e"), seq(world)
    world.ok('PURGE :e CONFIRM "PURGE"', e=found)
    world.restart()

    state = 'FIND(?e._system.state, ?e.payload.inline) WHERE {?e EVIDENCE {id: :id, state: "purged"}}'
    past = world.rows(f"{state} AS OF SEQ :n", id=found["id"], n=then)
    rows = world.rows("HISTORY ELEMENT :e", e=found)

    assert past == [["purged", None]]
    assert rows[0] == {**rows[0], "op": "created", "erased": True}
    assert rows[-1]["op"] == "purged"
    hits = world.rows('SEARCH EVIDENCE "xyzzy" AS OF SEQ :n', n=then)
    assert hits == []
    assert "xyzzy" not in json.dumps([past, rows, world.rows("HISTORY SPACE"), world.envelopes()])
    assert all(b"xyzzy" not in body for body in _stored(world))


def _stored(world):
    """Every byte the store holds."""
    for partition in world.seam.table._rows.values():
        for row in partition.values():
            yield from (value for value in row.values() if isinstance(value, bytes))
    for key in list(world.objects._objects):
        yield world.objects.get(key) or b""


def test_kip2_hist_010_transaction_chronology_ordered_by_space_seq(world):
    """The space's history is the log in its order, also page by page, and within the range asked for."""
    receipts = [world.ok("UPDATE :bob SET FIELDS {name: :n}", n=f"n{i}").receipt for i in range(5)]
    wanted = [receipt["space_seq"] for receipt in receipts]

    rows = world.rows("HISTORY SPACE FROM SEQ :a TO SEQ :b", a=wanted[0], b=wanted[-1])
    assert [row["space_seq"] for row in rows] == wanted
    assert [row["tx_id"] for row in rows] == [receipt["tx_id"] for receipt in receipts]

    whole, paged, cursor = world.rows("HISTORY SPACE"), [], None
    while True:
        clause = "" if cursor is None else " CURSOR :c"
        reply = world.ok(f"HISTORY SPACE LIMIT 2{clause}", **({} if cursor is None else {"c": cursor}))
        paged += reply.result
        cursor = reply.cursor
        if cursor is None:
            break
    assert paged == whole
    assert [row["space_seq"] for row in whole] == sorted(row["space_seq"] for row in whole)


def test_a_second_world_has_its_own_history():
    """Nothing of one space's log is in another's."""
    first, second = World(), World()
    first.ok('UPDATE :bob SET FIELDS {name: "Rob"}')

    assert len(second.rows("HISTORY ELEMENT :bob")) == 1
