"""Requests of several operations: modes, statuses, receipts, endpoints, negotiation."""

from __future__ import annotations

import pytest

from core.protocol.tokens import seal
from core.transaction.record import change_envelope

WRITE = 'CREATE CONCEPT ?c {TYPE "Theme" NAME :n}'
READ = 'FIND(COUNT(?t)) WHERE {?t CONCEPT {type: "Theme"}}'
BAD = 'CREATE CONCEPT ?c {TYPE "Spaceship"}'
BROKEN = "CREATE CONCEPT"


def batch(mode, *commands, **members):
    operations = [
        {"op_id": f"op{i}", "command": text, "parameters": {"n": f"n{i}"}} for i, text in enumerate(commands)
    ]
    return {"kip": "2.0", "operations": operations, "execution": {"mode": mode}, **members}


def statuses(response):
    return [result["status"] for result in response["results"]]


# --- atomic


def test_atomic_commits_once(people):
    """Several writes in one transaction share one receipt, one sequence number and one envelope."""
    seq, commits = people.state.seq, len(people.deltas)
    response = people.send(batch("atomic", WRITE, WRITE, READ))

    assert statuses(response) == ["succeeded"] * 3
    assert response["results"][2]["result"] == [4]  # reads see the transaction's own writes
    assert response["receipt"]["status"] == "committed"
    assert response["receipt"]["space_seq"] == people.state.seq == seq + 1
    assert len(people.deltas) == commits + 1
    envelope = change_envelope(people.state.meta, people.deltas[-1])
    assert (envelope["tx_id"], len(envelope["changes"])) == (response["receipt"]["tx_id"], 2)


@pytest.mark.parametrize("failing", [BAD, BROKEN])
def test_atomic_is_all_or_nothing(people, failing):
    """A failing operation leaves nothing of the others, and says so of each."""
    commits = len(people.deltas)
    response = people.send(batch("atomic", WRITE, READ, failing, WRITE))

    assert response["status"] == "failed"
    assert statuses(response)[2:] == ["failed", "skipped"]
    assert set(statuses(response)[:2]) <= {"rolled_back", "skipped"}
    assert all("result" not in result for result in response["results"])
    assert response["receipt"]["status"] == "aborted"
    assert "space_seq" not in response["receipt"]
    assert len(people.deltas) == commits


def test_atomic_reads_share_a_snapshot_and_have_no_receipt(people):
    """A batch that only reads has one snapshot context and commits nothing."""
    response = people.send(batch("atomic", READ, READ))

    assert response["snapshot"]["snapshot_seq"] == people.state.seq
    assert response["receipt"] is None


def test_one_version_step_over_several_operations(people):
    """Two operations of one transaction on one element move its version once."""
    command = "UPDATE :alice SET ATTRIBUTES {%s: 1}"
    request = batch("atomic", command % "a", command % "b", parameters=people.ref)
    people.send(request)

    assert people.get(people.ref["alice"]).attributes == {"a": 1, "b": 1}
    assert people.get(people.ref["alice"]).system.version == 2


# --- sequence and independent


def test_sequence_commits_each_and_stops(people):
    """What was committed stays, the failure is told, the rest is skipped: a partial response."""
    response = people.send(batch("sequence", WRITE, READ, BAD, WRITE))

    assert response["status"] == "partial"
    assert statuses(response) == ["succeeded", "succeeded", "failed", "skipped"]
    assert response["results"][1]["result"] == [3]
    assert response["results"][0]["result"]["receipt"]["status"] == "committed"
    assert response["receipt"] is None


def test_sequence_may_continue(people):
    """With on_error continue, later operations run and see what was committed."""
    response = people.send(
        batch("sequence", WRITE, BAD, WRITE, READ, execution={"mode": "sequence", "on_error": "continue"})
    )

    assert statuses(response) == ["succeeded", "failed", "succeeded", "succeeded"]
    assert response["results"][3]["result"] == [4]
    assert response["execution"] == {"mode": "sequence", "on_error": "continue"}


def test_independent_failures_are_isolated(people):
    """One failure keeps no other operation from committing; each has its own receipt."""
    response = people.send(batch("independent", BROKEN, WRITE, BAD, WRITE))
    receipts = [result["result"]["receipt"] for result in response["results"] if "result" in result]

    assert statuses(response) == ["failed", "succeeded", "failed", "succeeded"]
    assert len({receipt["tx_id"] for receipt in receipts}) == 2


def test_everything_failing_is_failed(people):
    """A batch without any success is failed, not partial."""
    assert people.send(batch("independent", BAD, BROKEN))["status"] == "failed"


# --- identities


def test_ids_are_echoed_and_never_confused(people):
    """request_id and op_id come back; tx_id is the engine's; a write is not deduplicated by request_id."""
    request = {
        "kip": "2.0",
        "request_id": "r1",
        "operations": [{"op_id": "o1", "command": WRITE, "parameters": {"n": "x"}}],
    }
    first, second = people.send(request), people.send(request)

    assert (first["request_id"], first["results"][0]["op_id"]) == ("r1", "o1")
    assert first["receipt"]["tx_id"] not in {"r1", "o1", second["receipt"]["tx_id"]}
    assert people.do(READ) == [4]


def test_operation_parameters_override_shared_ones(people):
    """A shared parameter reaches every operation that does not bring its own."""
    request = {"kip": "2.0", "parameters": {"n": "shared", "unused": [1]}, "execution": {"mode": "atomic"},
               "operations": [{"command": WRITE}, {"command": WRITE, "parameters": {"n": "own"}}]}  # fmt: skip
    response = people.send(request)
    names = [people.get(result["result"]["handles"]["c"]["id"]).name for result in response["results"]]

    assert names == ["shared", "own"]


def test_parameters_are_data(people):
    """Text that looks like a command, or like a parameter, stays text."""
    text = '"} PURGE :alice CONFIRM "PURGE" // :n é 日本'
    made = people.do(WRITE, n=text)["handles"]["c"]

    assert people.get(made["id"]).name == text
    assert people.get(people.ref["alice"]).name == "Alice"
    assert people.do("FIND(?c.name) WHERE {?c CONCEPT {name: :n}}", n=text) == [text]


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ({"command": WRITE}, "InvalidRequestEnvelope"),
        ({"command": WRITE, "language": "META", "parameters": {"n": "x"}}, "LanguageMismatch"),
        ({"command": READ, "language": "KML"}, "LanguageMismatch"),
        ({"command": BROKEN}, "InvalidSyntax"),
        ({"ast": {"node": "Archive"}}, "InvalidSyntax"),
        ({"command": "UPDATE :x SET ATTRIBUTES {a: 1}", "parameters": {"x": 5}}, "TypeMismatch"),
    ],
)  # fmt: skip
def test_an_operation_that_cannot_run(people, operation, code):
    """Unbound parameters, wrong labels, broken texts and trees fail the operation by name."""
    response = people.send({"kip": "2.0", "operations": [operation]})

    assert response["results"][0]["error"]["code"] == code


def test_a_tree_is_a_command(people):
    """The structured form of a command runs like its text."""
    tree = {"node": "Archive", "target": {"node": "Parameter", "name": "x"}}
    response = people.send(
        {"kip": "2.0", "operations": [{"ast": tree, "parameters": {"x": people.ref["alice"]}}]}
    )

    assert response["status"] == "succeeded"
    assert people.get(people.ref["alice"]).system.state == "archived"


# --- endpoints and negotiation


def test_the_readonly_endpoint_reads_what_parses(people):
    """A write is refused there whatever it is called, and the reads beside it still run."""
    response = people.send(batch("independent", READ, WRITE), readonly=True)

    assert statuses(response) == ["succeeded", "failed"]
    assert response["results"][1]["error"]["code"] == "ReadonlyViolation"
    labelled = {"kip": "2.0", "operations": [{"command": WRITE, "language": "KQL", "parameters": {"n": "x"}}]}
    assert people.send(labelled, readonly=True)["status"] == "failed"
    ingest = {
        "kip": "2.0",
        "operations": [{"command": READ}],
        "ingest": {"evidence": [{"key": "m", "evidence_class": "c", "payload": "p"}]},
    }
    assert people.send(ingest, readonly=True)["error"]["code"] == "ReadonlyViolation"


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"execution": {"mode": "atomic", "isolation": "chaos"}}, "UnsupportedIsolation"),
        ({"requires": {"telepathy": True}}, "UnsupportedCapability"),
        ({"space": {"id": "another"}}, "NotFoundOrNotVisible"),
        ({"space": {"uri": "urn:noema:space:another"}}, "NotFoundOrNotVisible"),
        ({"space": {"id": "test", "uri": "urn:noema:space:another"}}, "NotFoundOrNotVisible"),
    ],
)
def test_nothing_is_downgraded(people, members, code):
    """What cannot be guaranteed is refused before anything runs."""
    commits = len(people.deltas)
    response = people.send(batch("atomic", WRITE, **members))

    assert (response["status"], response["results"]) == ("failed", [])
    assert response["error"]["code"] == code
    assert len(people.deltas) == commits


def test_what_can_be_guaranteed_is_echoed(people):
    """A satisfied isolation and the space's two names pass."""
    members = {"space": {"id": "test", "uri": "urn:noema:space:test"}, "requires": {"mutate_block": True}}
    response = people.send(
        batch("atomic", READ, execution={"mode": "atomic", "isolation": "serializable"}, **members)
    )

    assert response["execution"]["isolation"] == "serializable"


# --- preconditions, dry runs, snapshots


@pytest.mark.parametrize(
    ("guards", "code"),
    [
        ({"space_seq": 2}, None),  # the environment, then the bindings
        ({"space_seq": 1}, "PreconditionFailed"),
        ({"schema_environment_version": 2}, None),
        ({"schema_environment_version": 1}, "SchemaEnvironmentChanged"),
    ],
)
def test_preconditions_hold_or_nothing_commits(people, guards, code):
    """A guard on the space or its schema is checked against the state committed onto."""
    commits = len(people.deltas)
    response = people.send(batch("atomic", WRITE, preconditions=guards))

    if code is None:
        assert response["status"] == "succeeded"
    else:
        assert response["results"][0]["error"]["code"] == code
        assert len(people.deltas) == commits


@pytest.mark.parametrize("mode", ["independent", "sequence", "atomic"])
def test_preconditions_guard_reads_too(people, mode):
    """A request that only reads is answered from the state it expects, or not at all."""
    fits = {"space_seq": people.state.seq, "schema_environment_version": people.state.meta.schema.version}
    assert people.send(batch(mode, READ, preconditions=fits))["status"] == "succeeded"
    for guards, code in (
        ({"space_seq": people.state.seq - 1}, "PreconditionFailed"),
        ({"schema_environment_version": 1}, "SchemaEnvironmentChanged"),
    ):
        response = people.send(batch(mode, READ, preconditions=guards))
        assert response["status"] == "failed"
        assert response["results"][0]["error"]["code"] == code


def test_guards_of_one_transaction_do_not_fit_several(people):
    """A sequence guard on several transactions, and ingest into several, are refused whole."""
    ingest = {"evidence": [{"key": "m", "evidence_class": "c", "payload": "p"}]}

    assert (
        people.send(batch("sequence", WRITE, WRITE, preconditions={"space_seq": 1}))["error"]["code"]
        == "InvalidRequestEnvelope"
    )
    assert (
        people.send(batch("independent", WRITE, WRITE, ingest=ingest))["error"]["code"]
        == "InvalidRequestEnvelope"
    )


def test_a_dry_run_commits_nothing(people):
    """A dry run answers as the run would, says what would change, and leaves no trace."""
    commits, seq = len(people.deltas), people.state.seq
    response = people.send(batch("sequence", WRITE, READ, options={"dry_run": True}))

    assert statuses(response) == ["succeeded", "succeeded"]
    assert response["results"][1]["result"] == [3]
    assert response["results"][0]["warnings"][0]["code"] == "DryRun"
    assert response["results"][0]["warnings"][0]["details"]["would"]["created"] == 1
    assert response["receipt"] is None
    assert (len(people.deltas), people.state.seq) == (commits, seq)
    assert people.do(READ) == [2]
    assert people.send(batch("atomic", BAD, options={"dry_run": True}))["status"] == "failed"


def test_a_snapshot_token_binds_reads_and_guards_writes(people):
    """Reads under a token see its state; a write under it commits only onto that state."""
    token = seal("snap", [people.state.meta.instance, people.state.seq], b"test-secret")
    bound = {"read": {"snapshot_token": token}}
    people.send(batch("atomic", WRITE, **bound))
    response = people.send(batch("atomic", READ, **bound))

    assert response["results"][0]["result"] == [2]
    assert response["snapshot"]["snapshot_seq"] == people.state.seq - 1
    late = people.send(batch("atomic", WRITE, **bound))
    assert late["results"][0]["error"]["code"] == "PreconditionFailed"


@pytest.mark.parametrize("token", ["snap.abc", "7", ""])
def test_a_forged_snapshot_token_reads_nothing(people, token):
    """A token that this service did not make is refused, not interpreted."""
    forged = token or seal("snap", ["another", 1], b"test-secret")
    response = people.send(batch("atomic", READ, read={"snapshot_token": forged}))

    assert response["results"][0]["error"]["code"] == "HistoricalSnapshotUnavailable"


# --- history of purged bytes, and time


def test_purged_bytes_are_gone_from_the_past_too(people):
    """AS OF shows what was there, without what has been erased since."""
    seq = people.state.seq
    people.do('PURGE :carol CONFIRM "PURGE"')

    assert people.do(
        f'FIND(?p.name) WHERE {{?p CONCEPT {{type: "Person"}}}} AS OF SEQ {seq} ORDER BY ?p.name'
    ) == ["Alice", "Bob"]


def test_commit_time_never_goes_back(people):
    """A clock that is behind the log does not make a commit older than its predecessor."""
    at = people.state.at
    people.now = at - 5_000
    people.do(WRITE, n="x")

    assert people.state.at >= at
