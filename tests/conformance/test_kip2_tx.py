"""KIP2-TX-001..025 (conformance paper §17). What needs another process at the same moment runs over a durable store."""

from __future__ import annotations

import pytest

from core.transaction.record import change_envelope
from tests.core.service.world import SECOND, SPACE
from tests.doubles import FailingTable, Faults

THEME = 'CREATE CONCEPT ?c {TYPE "Theme" NAME :n}'
PERSON = 'UPSERT CONCEPT ?p {MATCH {type: "Person", key: :k} SET FIELDS {name: :n}}'
PEOPLE = 'FIND(COUNT(?p)) WHERE {?p CONCEPT {type: "Person"}}'
ALICE = {"k": "alice", "n": "Alice"}
EVIDENCE = 'CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "x", payload: "p"}}'
SAY = 'ASSERT ?a (:alice, "timezone", "x") {by: :alice, mode: "stated"}'
BAD = 'ENSURE PROPOSITION (:alice, "timezone", true)'


def batch(mode, *commands, **members):
    operations = [{"op_id": f"op{place}", "command": text} for place, text in enumerate(commands)]
    return {"kip": "2.0", "execution": {"mode": mode}, "operations": operations, **members}


def statuses(response):
    return [result["status"] for result in response["results"]]


def count(people, kind):
    return people.do(f"FIND(COUNT(?x)) WHERE {{?x {kind} {{}}}}")[0]


def test_kip2_tx_001_atomic_all_or_none(people):
    """Evidence, an Assertion and a schema violation in one transaction leave nothing and move no sequence."""
    before = people.state
    response = people.send(batch("atomic", EVIDENCE, SAY, BAD, parameters=people.ref))

    assert statuses(response) == ["rolled_back", "rolled_back", "failed"]
    assert "space_seq" not in response["receipt"]
    assert people.state is before


def test_kip2_tx_002_atomic_one_start_snapshot(speaker):
    """A commit between two reads of one transaction is seen by neither."""
    speaker.run(PERSON, ALICE)
    other, seen = speaker.again(), []

    def overdue():
        """Asked between the operations of a unit: the moment at which another process commits."""
        seen.append(other.run(PERSON, {"k": f"p{len(seen)}", "n": "P"})["status"])
        return False

    response = speaker.watched(batch("atomic", PEOPLE, PEOPLE, PEOPLE), overdue)

    assert [result["result"] for result in response["results"]] == [[1], [1], [1]]
    assert len(seen) >= 2
    assert speaker.ok(PEOPLE) == [1 + len(seen)]


def test_kip2_tx_003_read_your_writes(people):
    """A later read of the transaction sees its earlier write."""
    response = people.send(
        batch(
            "atomic",
            'CREATE CONCEPT ?c {TYPE "Theme" NAME "Own"}',
            'FIND(?c.name) WHERE {?c CONCEPT {name: "Own"}}',
        )
    )

    assert response["results"][1]["result"] == ["Own"]


def test_kip2_tx_004_no_dirty_reads(speaker):
    """Between a tentative write and its commit another process sees nothing of it; afterwards it does."""
    other = speaker.again()
    slow, seen = speaker.racing(lambda: other.ok(PEOPLE))
    slow.ok(PERSON, ALICE)

    assert seen == [[0]]
    assert other.ok(PEOPLE) == [1]


def test_kip2_tx_005_atomic_commit_has_one_tx_id_and_space_seq(people):
    """Several writes have one receipt, one tx_id and one sequence number."""
    seq = people.state.seq
    response = people.send(batch("atomic", EVIDENCE, SAY, parameters=people.ref))

    assert response["receipt"]["space_seq"] == people.state.seq == seq + 1
    assert {element.system.created_tx for element in people.deltas[-1].puts} == {response["receipt"]["tx_id"]}
    assert all("receipt" not in result["result"] for result in response["results"])


def test_kip2_tx_006_version_increments_once_per_transaction(people):
    """Several mutations of one element in a transaction are one version."""
    people.send(
        batch(
            "atomic",
            "UPDATE :alice SET ATTRIBUTES {a: 1}",
            "UPDATE :alice SET ATTRIBUTES {b: 1}",
            "ARCHIVE :alice",
            parameters=people.ref,
        )
    )

    assert people.get(people.ref["alice"]).system.version == 2


def test_kip2_tx_007_no_effect_avoids_cognitive_churn(people):
    """A write of the present state moves no sequence, version or time."""
    before = people.state
    response = people.run('UPDATE :alice SET FIELDS {name: "Alice"}', people.ref)

    assert (response["results"][0]["status"], response["receipt"]["status"]) == ("no_effect", "no_effect")
    assert "space_seq" not in response["receipt"]
    assert people.state is before


def test_kip2_tx_008_expect_version_current_succeeds(people):
    """The current version passes and moves by one."""
    people.do('UPDATE :alice EXPECT VERSION 1 SET FIELDS {name: "A"}')

    assert people.get(people.ref["alice"]).system.version == 2


def test_kip2_tx_009_expect_version_stale_fails(people):
    """A stale version conflicts and loses no update."""
    people.do('UPDATE :alice EXPECT VERSION 1 SET FIELDS {name: "first"}')

    assert people.no('UPDATE :alice EXPECT VERSION 1 SET FIELDS {name: "second"}') == "VersionConflict"
    assert people.get(people.ref["alice"]).name == "first"


def test_kip2_tx_010_serializable_write_skew_prevented(speaker):
    """Two transactions that would each leave one on duty cannot both go: the later runs on the earlier's state."""
    for key in ("a", "b"):
        speaker.ok(
            'UPSERT CONCEPT ?p {MATCH {type: "Person", key: :k} SET ATTRIBUTES {duty: true}}', {"k": key}
        )
    leave = ("UPDATE ?me SET ATTRIBUTES {duty: false} WHERE {?me CONCEPT {key: :me} "
             "?other CONCEPT {key: :other} FILTER(?other.attributes.duty == true)}")  # fmt: skip
    late, done = speaker.racing(lambda: speaker.again().ok(leave, {"me": "b", "other": "a"}))
    second = late.ok(leave, {"me": "a", "other": "b"})

    assert (done[0]["updated"], second["matched"]) == (1, 0)
    assert sorted(speaker.ok('FIND(?p.attributes.duty) WHERE {?p CONCEPT {type: "Person"}}')) == [False, True]


def keyed(people_or_speaker, key="K", request_id="r", **parameters):
    return people_or_speaker.send({
        "kip": "2.0", "request_id": request_id,
        "operations": [{"command": PERSON, "parameters": {**ALICE, **parameters}, "idempotency_key": key}],
    })  # fmt: skip


def test_kip2_tx_011_same_idempotency_key_returns_original_receipt(people):
    """An exact retry has the same tx_id and sequence and makes no new envelope."""
    first, commits = keyed(people, k="new"), len(people.deltas)

    assert keyed(people, k="new")["receipt"] == first["receipt"]
    assert len(people.deltas) == commits


def test_kip2_tx_012_irrelevant_formatting_does_not_defeat_idempotency(people):
    """Whitespace, comments and the order of an object's members are no part of a request."""
    first = people.send(
        {
            "kip": "2.0",
            "operations": [
                {
                    "command": 'UPSERT CONCEPT ?p {MATCH {type: "Theme", key: "x"} SET ATTRIBUTES {a: 1, b: 2}}',
                    "idempotency_key": "K",
                }
            ],
        }
    )
    again = people.send(
        {
            "kip": "2.0",
            "operations": [
                {
                    "command": '// again\nupsert concept ?p {\n  SET ATTRIBUTES { b: 2.0, a: 1 }\n  MATCH { key: "x", type: "Theme" }\n}',
                    "idempotency_key": "K",
                }
            ],
        }
    )

    assert again["receipt"] == first["receipt"]


def test_kip2_tx_013_same_key_different_request_conflicts(people):
    """Another parameter under the key is refused and changes nothing."""
    keyed(people, k="new")
    before = people.state

    assert keyed(people, k="other")["results"][0]["error"]["code"] == "IdempotencyConflict"
    assert people.state is before


def test_kip2_tx_014_request_id_is_not_idempotency_key(people):
    """One request_id twice is two requests; two request_ids under one key are one."""
    create = {
        "kip": "2.0",
        "request_id": "same",
        "operations": [{"command": THEME, "parameters": {"n": "x"}}],
    }
    people.send(create)
    people.send(create)
    assert people.do('FIND(COUNT(?c)) WHERE {?c CONCEPT {name: "x"}}') == [2]

    assert (
        keyed(people, request_id="r1", k="n")["receipt"] == keyed(people, request_id="r2", k="n")["receipt"]
    )


def test_kip2_tx_015_tx_id_is_engine_assigned(people):
    """A tx_id in a request is refused; in data it is data."""
    request = {"kip": "2.0", "tx_id": "tx-mine", "operations": [{"command": EVIDENCE}]}
    assert people.send(request)["error"]["code"] == "InvalidRequestEnvelope"
    assert people.no('UPDATE :alice SET FIELDS {tx_id: "tx-mine"}') == "ProtectedSystemField"
    response = people.run('UPDATE :alice SET ATTRIBUTES {tx_id: "tx-mine"}', people.ref)

    assert response["receipt"]["tx_id"] == people.deltas[-1].tx_id != "tx-mine"


def test_kip2_tx_016_timeout_after_commit_is_not_abort(speaker):
    """A response lost after the commit is reported unknown, and a lookup by key says committed."""
    lost = keyed_patiently(speaker.losing())

    assert (lost["status"], lost["receipt"]["status"]) == ("outcome_unknown", "unknown")
    found = speaker.ok('DESCRIBE TRANSACTION BY IDEMPOTENCY KEY "K"')
    assert "committed" in str(found)
    assert speaker.world.spaces.load(SPACE).seq == 1


def keyed_patiently(speaker):
    return speaker.run(PERSON, ALICE, key="K", patience=1)


def test_kip2_tx_017_retry_after_lost_response_does_not_duplicate(speaker):
    """The retry has the receipt of the commit that nobody heard of, and there is one."""
    keyed_patiently(speaker.losing())
    retry = speaker.run(PERSON, ALICE, key="K")

    assert retry["receipt"]["status"] == "committed"
    assert speaker.world.spaces.load(SPACE).seq == retry["receipt"]["space_seq"] == 1
    assert speaker.ok(PEOPLE) == [1]


def test_kip2_tx_018_definite_cancellation_before_commit_aborts(speaker):
    """A request that is out of time before its commit begins writes nothing and says so."""
    before = speaker.world.everything()
    response = speaker.run(PERSON, ALICE, patience=-1)

    assert response["results"][0]["error"]["code"] == "ExecutionTimeout"
    assert response["receipt"]["status"] == "aborted"
    assert speaker.world.everything() == before


def test_kip2_tx_019_commit_race_cancellation_can_be_outcome_unknown(speaker):
    """Where the store says neither yes nor no, the answer is neither, with the way to find out."""
    response = keyed_patiently(speaker.losing())

    assert response["results"][0]["error"]["code"] == "OutcomeUnknown"
    assert response["results"][0]["error"]["retry"]["class"] == "outcome_lookup_required"


def test_kip2_tx_020_one_change_envelope_per_commit(people):
    """A commit of several elements is one envelope."""
    response = people.send(batch("atomic", EVIDENCE, SAY, parameters=people.ref))
    envelope = change_envelope(people.state.meta, people.deltas[-1])

    assert envelope["tx_id"] == response["receipt"]["tx_id"]
    assert envelope["space_seq"] == response["receipt"]["space_seq"]
    assert {change["op"] for change in envelope["changes"]} == {"created"}
    assert len(envelope["changes"]) == 3


def test_kip2_tx_021_change_replay_identifiable(people):
    """The same commit read twice is the same envelope, and no two commits share its identity."""
    people.do("UPDATE :alice SET ATTRIBUTES {a: 1}")
    people.do("UPDATE :alice SET ATTRIBUTES {a: 2}")
    identities = [
        tuple(change_envelope(people.state.meta, d)[k] for k in ("space_id", "space_seq", "tx_id"))
        for d in people.deltas
    ]

    assert identities == [
        tuple(change_envelope(people.state.meta, d)[k] for k in ("space_id", "space_seq", "tx_id"))
        for d in people.deltas
    ]
    assert len(set(identities)) == len(identities)


def test_kip2_tx_022_aborted_transaction_emits_no_cognitive_change_envelope(people):
    """An abort is in no log and no change stream."""
    commits, before = len(people.deltas), people.do("CHANGES AFTER SEQ 0 LIMIT 100")
    people.send(batch("atomic", EVIDENCE, BAD, parameters=people.ref))

    assert len(people.deltas) == commits
    assert people.do("CHANGES AFTER SEQ 0 LIMIT 100") == before


def test_kip2_tx_023_sequence_is_not_rollback_atomic(people):
    """What was committed stays when a later operation fails; the rest is skipped."""
    response = people.send(batch("sequence", EVIDENCE, BAD, EVIDENCE, parameters=people.ref))

    assert (response["status"], statuses(response)) == ("partial", ["succeeded", "failed", "skipped"])
    assert count(people, "EVIDENCE") == 1


def test_kip2_tx_024_independent_failures_are_isolated(people):
    """A failure rolls back nothing of the others."""
    response = people.send(batch("independent", BAD, EVIDENCE, parameters=people.ref))

    assert statuses(response) == ["failed", "succeeded"]
    assert count(people, "EVIDENCE") == 1


def test_kip2_tx_025_atomic_failure_rolls_back_all_operations(people):
    """The same batch under atomic leaves nothing."""
    response = people.send(batch("atomic", EVIDENCE, BAD, EVIDENCE, parameters=people.ref))

    assert (response["status"], statuses(response)) == ("failed", ["rolled_back", "failed", "skipped"])
    assert count(people, "EVIDENCE") == 0


@pytest.mark.parametrize("at", range(3))
def test_a_store_that_fails_at_any_write_leaves_all_or_nothing(speaker, at):
    """Wherever a write fails, before or after it took effect, the retry ends with exactly one commit."""
    for after in (False, True):
        key = f"{at}{after}"
        failing = speaker.again(table=FailingTable(speaker.world.table, Faults([at], after=after)))
        failing.run(PERSON, {"k": key, "n": "x"}, key=key)
        speaker.world.clock.advance(SECOND)
        speaker.run(PERSON, {"k": key, "n": "x"}, key=key)
        assert speaker.ok("FIND(COUNT(?p)) WHERE {?p CONCEPT {key: :k}}", {"k": key}) == [1]
