"""Idempotency and ingest: a retry is one event, and an abort is none."""

from __future__ import annotations

import hashlib

import pytest

from core.authority import Principal

WRITE = 'CREATE CONCEPT ?c {TYPE "Theme" NAME :n}'


def keyed(command=WRITE, key="k", n="x", **members):
    return {
        "kip": "2.0",
        "operations": [{"command": command, "parameters": {"n": n}, "idempotency_key": key}],
        **members,
    }


def code(response):
    return response["results"][0]["error"]["code"]


def test_a_retry_answers_with_the_first_receipt(people):
    """The same key and request commit once, whatever the correlation ids and the formatting."""
    first = people.send(keyed(request_id="r1"))
    commits = len(people.deltas)
    spaced = keyed('CREATE   CONCEPT ?c {\n TYPE "Theme" // a comment\n NAME :n }', request_id="r2")
    spaced["operations"][0]["op_id"] = "again"
    second = people.send(spaced)

    assert second["receipt"] == first["receipt"]
    assert second["results"][0]["result"] == first["results"][0]["result"]
    assert (second["request_id"], second["results"][0]["op_id"]) == ("r2", "again")
    assert len(people.deltas) == commits


@pytest.mark.parametrize(
    "other",
    [
        keyed(n="y"),
        keyed('CREATE CONCEPT ?d {TYPE "Theme" NAME :n}'),
        keyed(preconditions={"schema_environment_version": 2}),
        keyed(ingest={"evidence": [{"key": "m", "evidence_class": "c", "payload": "p"}]}),
    ],
    ids=["parameter", "command", "precondition", "ingest"],
)
def test_a_key_stands_for_one_request(people, other):
    """Another parameter, text, guard or ingested content under the key is a conflict."""
    people.send(keyed())
    commits = len(people.deltas)

    assert code(people.send(other)) == "IdempotencyConflict"
    assert len(people.deltas) == commits


def test_unused_parameters_and_other_callers_do_not_matter(people):
    """What a command does not use is no part of it; another principal's key is another key."""
    people.send(keyed())
    commits = len(people.deltas)
    people.send(keyed(parameters={"unused": 1}))
    assert len(people.deltas) == commits

    people.send(keyed(n="y"), principal=Principal("someone else"))
    assert len(people.deltas) == commits + 1


def test_no_effect_is_retained_and_failure_is_not(people):
    """A transaction without effect replays as such; a failed one leaves its key free."""
    ref = people.ref["alice"]["id"]
    nothing = keyed(f'UPDATE "{ref}" SET FIELDS {{name: "Alice"}}', key="n")
    first = people.send(nothing)
    people.do('UPDATE :alice SET FIELDS {name: "Changed"}')

    assert first["receipt"]["status"] == "no_effect"
    assert first["results"][0]["status"] == "no_effect"
    assert people.send(nothing)["receipt"] == first["receipt"]
    assert people.get(ref).name == "Changed"

    guarded = keyed(f'UPDATE "{ref}" EXPECT VERSION 9 SET FIELDS {{name: "Z"}}', key="f")
    assert code(people.send(guarded)) == "VersionConflict"
    assert people.send(keyed(key="f"))["status"] == "succeeded"


def test_a_retry_survives_a_schema_change(people):
    """The request is the same although its names would now mean something else."""
    first = people.send(keyed())
    people.activate([{"format": "KIP-Schema-Package", "manifest": {"package_id": "kip://acme/x", "version": "1.0.0"},
                      "definitions": {"concept_types": {"Theme": {}}}}])  # fmt: skip

    assert people.send(keyed())["receipt"] == first["receipt"]
    assert code(people.send(keyed(key="new"))) == "SchemaSymbolAmbiguous"


def test_an_atomic_key_covers_the_whole_request(people):
    """One key, one transaction of several operations; changing any of them conflicts."""

    def request(last):
        return {"kip": "2.0", "execution": {"mode": "atomic", "idempotency_key": "k"},
                "operations": [{"command": WRITE, "parameters": {"n": "a"}}, {"command": WRITE, "parameters": {"n": last}}]}  # fmt: skip

    first = people.send(request("b"))
    assert people.send(request("b"))["receipt"] == first["receipt"]
    assert code(people.send(request("c"))) == "IdempotencyConflict"


def test_a_sequence_derives_a_key_for_each_transaction(people):
    """A retried sequence repeats no commit, and goes on where it had stopped."""

    def request(second):
        return {"kip": "2.0", "execution": {"mode": "sequence", "idempotency_key": "s"},
                "operations": [{"command": WRITE, "parameters": {"n": "a"}}, {"command": second, "parameters": {"n": "b"}}]}  # fmt: skip

    broken = people.send(request('CREATE CONCEPT ?c {TYPE "Spaceship" NAME :n}'))
    assert broken["status"] == "partial"
    commits = len(people.deltas)
    whole = people.send(request(WRITE))

    assert whole["status"] == "succeeded"
    assert len(people.deltas) == commits + 1
    assert whole["results"][0]["result"]["receipt"] == broken["results"][0]["result"]["receipt"]


def test_two_keys_for_one_transaction_are_refused(people):
    """The key of a request and that of its only operation must agree."""
    response = people.send(keyed(execution={"mode": "atomic", "idempotency_key": "other"}))

    assert response["error"]["code"] == "InvalidRequestEnvelope"


def test_a_dry_run_binds_no_key(people):
    """A preview leaves the key free for the real request."""
    people.send(keyed(options={"dry_run": True}))

    assert people.send(keyed())["receipt"]["status"] == "committed"


# --- ingest

SAID = 'ASSERT ?a (:alice, "timezone", "+08:00") {by: :alice, mode: "stated", evidence: :msg}'
PAYLOAD = 'I moved — "quoted", \\n, :alice, 日本 é́'


def ingest(people, command=SAID, **entry):
    evidence = {"key": "msg", "evidence_class": "user_statement", "payload": PAYLOAD, **entry}
    return {
        "kip": "2.0",
        "ingest": {"evidence": [evidence]},
        "operations": [{"command": command, "parameters": people.ref}],
    }


def test_ingested_evidence_is_faithful_and_bound(people):
    """The payload arrives byte for byte, the key names the Evidence, and all is one commit."""
    request = ingest(people, source_actor="alice", client_key="m1", observed_at="2026-08-14T01:00:00Z")
    response = people.send(request)
    claim = people.get(response["results"][0]["result"]["handles"]["a"]["id"])
    evidence = people.get(claim.evidence[0].evidence)

    assert evidence.payload.inline == PAYLOAD
    assert evidence.content_digest == f"sha256:{hashlib.sha256(PAYLOAD.encode()).hexdigest()}"
    assert (evidence.source, evidence.client_key) == ((people.ref["alice"]["id"],), "m1")
    assert evidence.system.created_tx == claim.system.created_tx == response["receipt"]["tx_id"]
    assert evidence.system.origin.principal == "owner"


def test_a_retried_ingest_makes_one_evidence(people):
    """The client key finds the Evidence of the first attempt; other content under it conflicts."""
    people.send(ingest(people, client_key="m1"))
    people.send(ingest(people, client_key="m1"))

    assert people.do("FIND(COUNT(?e)) WHERE {?e EVIDENCE {}}") == [1]
    assert code(people.send(ingest(people, client_key="m1", payload="other"))) == "ClientKeyConflict"


def test_an_aborted_request_ingests_nothing(people):
    """Evidence is rolled back with the transaction that it belongs to."""
    commits = len(people.deltas)
    response = people.send(ingest(people, SAID.replace('"+08:00"', "true")))

    assert response["status"] == "failed"
    assert len(people.deltas) == commits
    assert people.do("FIND(COUNT(?e)) WHERE {?e EVIDENCE {}}") == [0]


@pytest.mark.parametrize(
    "payload", [{"mode": "external", "content_ref": "x"}, [1, {"b": None}], 0, False, ""]
)
def test_a_payload_is_never_interpreted(people, payload):
    """Whatever JSON is supplied is the content itself."""
    people.send(ingest(people, payload=payload))

    assert people.do("FIND(?e.payload.inline) WHERE {?e EVIDENCE {}}") == [payload]


def test_an_unknown_source_is_refused(people):
    """A semantic source must be an element; a name is none."""
    assert code(people.send(ingest(people, source_actor="Alice"))) == "NotFoundOrNotVisible"


def test_an_artifact_is_an_opaque_handle(people):
    """A staged artifact is used by its handle; paths and addresses are handles to nothing."""
    people.artifacts["h1"] = "staged wörds".encode()
    request = ingest(people)
    del request["ingest"]["evidence"][0]["payload"]
    for handle, expected in (
        ("/etc/passwd", "ArtifactUnavailable"),
        ("https://x.y/z", "ArtifactUnavailable"),
        ("h1", None),
    ):
        request["ingest"]["evidence"][0]["payload_artifact"] = handle
        response = people.send(request)
        assert (None if response["status"] == "succeeded" else code(response)) == expected

    assert people.do("FIND(?e.payload.inline) WHERE {?e EVIDENCE {}}") == ["staged wörds"]
