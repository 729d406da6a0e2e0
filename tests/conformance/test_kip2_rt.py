"""KIP2-RT-001..031 (conformance paper §22)."""

from __future__ import annotations

import hashlib
import json

import pytest

from core.authority import Principal
from core.errors import NoemaError
from core.protocol.frames import Framer
from core.protocol.request import decode_request, read_request
from core.service.streaming import Streams
from tests.conformance.harness import request
from tests.core.service.world import SPACE

TEXT = 'Ünïcode 日本語 \U0001f600 é́ \\n "quoted"'
THEME = 'CREATE CONCEPT ?c {TYPE "Theme" NAME :n}'
COUNT = 'FIND(COUNT(?t)) WHERE {?t CONCEPT {type: "Theme"}}'
PERSON = 'UPSERT CONCEPT ?p {MATCH {type: "Person", key: :k} SET FIELDS {name: :k}}'
PEOPLE = 'FIND(COUNT(?p)) WHERE {?p CONCEPT {type: "Person"}}'
BAD = 'CREATE CONCEPT ?c {TYPE "Spaceship"}'


def batch(mode, *commands, **members):
    operations = [{"command": text, "parameters": {"n": f"n{place}"}} for place, text in enumerate(commands)]
    return {"kip": "2.0", "execution": {"mode": mode}, "operations": operations, **members}


def statuses(response):
    return [result["status"] for result in response["results"]]


def code(response):
    if "error" in response:
        return response["error"]["code"]
    return next(result["error"]["code"] for result in response["results"] if "error" in result)


def refused(body):
    with pytest.raises(NoemaError) as caught:
        decode_request(body)
    return caught.value.code


def test_kip2_rt_001_utf8_round_trip(people):
    """Text of any script comes back as it went in, bound or written."""
    people.do(THEME, n=TEXT)
    people.do(f'CREATE CONCEPT ?c {{TYPE "Theme" NAME {json.dumps(TEXT, ensure_ascii=False)}}}')

    assert people.do("FIND(?c.name) WHERE {?c CONCEPT {name: :n}}", n=TEXT) == [TEXT, TEXT]


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3(", b"\xed\xa0\x80"])
def test_kip2_rt_002_invalid_utf8_rejected(bad):
    """Malformed bytes are refused before anything runs, never replaced."""
    assert refused(b'{"kip":"2.0","operations":[{"command":"' + bad + b'"}]}') == "InvalidRequestEnvelope"


def test_kip2_rt_003_duplicate_json_keys_rejected_in_high_assurance():
    """An object with one key twice has no meaning."""
    assert refused(b'{"kip":"2.0","operations":[{"command":"A","command":"B"}]}') == "InvalidRequestEnvelope"


def test_kip2_rt_004_structural_binding_prevents_command_injection(people):
    """A parameter that looks like a command is a name."""
    attack = 'x"} PURGE ?c WHERE {?c CONCEPT {}} CONFIRM "PURGE" //'
    people.do(THEME, n=attack)

    assert people.do(COUNT) == [3]
    assert people.do("FIND(COUNT(?c)) WHERE {?c CONCEPT {name: :n}}", n=attack) == [1]
    assert people.no("FIND(?c) WHERE {?c CONCEPT {}} LIMIT :n", n="1 } PURGE") == "TypeMismatch"


def test_kip2_rt_005_embedded_placeholder_template_is_not_code(people):
    """A placeholder inside a string is text."""
    people.do('CREATE CONCEPT ?c {TYPE "Theme" NAME "Hello :name {0} ${x}"}')

    assert people.do('FIND(?c.name) WHERE {?c CONCEPT {name: "Hello :name {0} ${x}"}}') == [
        "Hello :name {0} ${x}"
    ]


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e400"])
def test_kip2_rt_006_non_finite_number_rejected(people, number):
    """What is no finite number is refused in JSON, in text and as the outcome of an expression."""
    assert (
        refused(b'{"kip":"2.0","operations":[{"command":"SNAPSHOT","parameters":{"x":' + number + b"}}]}")
        == "InvalidRequestEnvelope"
    )
    assert people.no("UPDATE :alice SET ATTRIBUTES {x: MUL(1e300, 1e300)}") == "ConstraintViolation"
    assert people.get(people.ref["alice"]).attributes == {}


@pytest.mark.parametrize("label", ["META", "KQL"])
def test_kip2_rt_007_language_label_cannot_downgrade_write(people, label):
    """A write labelled as a read is refused, on either endpoint."""
    before = people.state
    request = {"kip": "2.0", "operations": [{"language": label, "command": THEME, "parameters": {"n": "x"}}]}

    for readonly in (True, False):
        assert code(people.send(request, readonly=readonly)) in {"LanguageMismatch", "ReadonlyViolation"}
    assert people.state is before


def test_kip2_rt_008_multi_operation_native_request_declares_execution_mode(people):
    """Two operations without a mode are refused before either runs."""
    before = people.state
    request = {"kip": "2.0", "operations": [{"command": THEME, "parameters": {"n": "x"}}, {"command": COUNT}]}

    assert code(people.send(request)) == "InvalidRequestEnvelope"
    assert people.state is before


def test_kip2_rt_009_independent_may_use_separate_snapshots(speaker):
    """Each independent read tells the state that it saw."""
    response = speaker.between(
        batch("independent", PEOPLE, PEOPLE), lambda: speaker.again().ok(PERSON, {"k": "x"})
    )
    seqs = [result["context"]["snapshot_seq"] for result in response["results"]]

    assert [result["result"] for result in response["results"]] == [[seq] for seq in seqs]
    assert "snapshot" not in response or response["snapshot"] is None


def test_kip2_rt_010_sequence_observes_prior_commit(people):
    """A later operation sees what an earlier one committed."""
    response = people.send(batch("sequence", THEME, COUNT))

    assert response["results"][1]["result"] == [3]


def test_kip2_rt_011_sequence_is_not_shared_snapshot(speaker):
    """A commit between two operations of a sequence is seen by the second, which names its snapshot."""
    response = speaker.between(
        batch("sequence", PEOPLE, PEOPLE), lambda: speaker.again().ok(PERSON, {"k": "x"})
    )

    assert [result["result"] for result in response["results"]] == [[0], [1]]
    assert [result["context"]["snapshot_seq"] for result in response["results"]] == [0, 1]


def test_kip2_rt_012_atomic_has_one_transaction_identity(people):
    """Several writes have one receipt."""
    response = people.send(batch("atomic", THEME, THEME))

    assert response["receipt"]["tx_id"] == people.deltas[-1].tx_id
    assert len(people.deltas[-1].puts) == 2


def test_kip2_rt_013_atomic_readonly_batch_has_snapshot_but_no_write_receipt(people):
    """Reads under atomic share a snapshot and commit nothing."""
    before = people.state
    response = people.send(batch("atomic", COUNT, COUNT))

    assert (response["snapshot"]["snapshot_seq"], response["receipt"]) == (people.state.seq, None)
    assert people.state is before


def test_kip2_rt_014_request_id_differs_from_tx_id(people):
    """The client's correlation id is echoed and is no commit."""
    response = people.send(
        {"kip": "2.0", "request_id": "mine", "operations": [{"command": THEME, "parameters": {"n": "x"}}]}
    )

    assert response["request_id"] == "mine" != response["receipt"]["tx_id"]


def test_kip2_rt_015_retry_may_change_request_id_but_preserve_logical_tx(people):
    """One key, two correlation ids, one transaction."""

    def send(request_id):
        return people.send({"kip": "2.0", "request_id": request_id, "operations": [
            {"command": THEME, "parameters": {"n": "x"}, "idempotency_key": "K"}]})  # fmt: skip

    first, second = send("r1"), send("r2")
    assert (first["receipt"], second["request_id"]) == (second["receipt"], "r2")


def test_kip2_rt_016_snapshot_token_is_opaque(people):
    """A token with one changed character names nothing."""
    token = people.do("SNAPSHOT")["snapshot_token"]
    people.do(THEME, n="x")
    assert people.send(batch("atomic", COUNT, read={"snapshot_token": token}))["results"][0]["result"] == [2]

    for place in range(len("snap."), len(token), 7):
        changed = token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]
        assert people.send(batch("atomic", COUNT, read={"snapshot_token": changed}))["status"] == "failed"


def test_kip2_rt_017_snapshot_token_is_not_authorization(people):
    """Who may no longer read does not read with an old token either."""
    token = people.do("SNAPSHOT")["snapshot_token"]
    revoked = Principal("owner", permissions=frozenset({"search"}))

    assert (
        code(people.send(batch("atomic", COUNT, read={"snapshot_token": token}), principal=revoked))
        == "NotAuthorized"
    )


def test_kip2_rt_018_lagging_search_cannot_fake_atomic_consistency(people):
    """SEARCH in a transaction finds its own writes and says for which state its index stands."""
    response = people.send(
        batch(
            "atomic",
            'CREATE CONCEPT ?c {TYPE "Theme" NAME "zirconium"}',
            'SEARCH CONCEPT "zirconium" LIMIT 5',
        )
    )
    found = response["results"][1]

    assert response["status"] == "succeeded"
    assert "zirconium" in json.dumps(found["result"])
    assert found["context"]["search"]["index_seq"] >= found["context"]["search"]["current_space_seq"]


def test_kip2_rt_019_no_silent_isolation_downgrade(people):
    """An isolation that is not offered is refused; one that is, is echoed."""
    before = people.state
    assert (
        code(people.send(batch("atomic", THEME, execution={"mode": "atomic", "isolation": "linearizable"})))
        == "UnsupportedIsolation"
    )
    assert people.state is before

    response = people.send(batch("atomic", THEME, execution={"mode": "atomic", "isolation": "serializable"}))
    assert response["execution"]["isolation"] == "serializable"


def test_kip2_rt_020_no_silent_capability_downgrade(people):
    """A required capability that is missing is refused by name, before anything runs."""
    before = people.state
    response = people.send(batch("atomic", THEME, requires={"multi_space_atomic": True}))

    assert (code(response), response["error"]["details"]["missing"]) == (
        "UnsupportedCapability",
        ["multi_space_atomic"],
    )
    assert people.state is before


def test_kip2_rt_021_sequence_partial_status_is_explicit(people):
    """Success, failure and what was skipped are told apart, at the top and for each."""
    response = people.send(batch("sequence", THEME, BAD, THEME))

    assert (response["status"], statuses(response)) == ("partial", ["succeeded", "failed", "skipped"])


def test_kip2_rt_022_atomic_abort_is_not_partial_commit(people):
    """A failure under atomic leaves no durable part."""
    before = people.state
    response = people.send(batch("atomic", THEME, BAD))

    assert (response["status"], response["receipt"]["status"]) == ("failed", "aborted")
    assert people.state is before


def test_kip2_rt_023_outcome_unknown_differs_from_transaction_state(speaker):
    """The client's unknown and the transaction's committed are two facts."""
    lost = speaker.losing().run(PERSON, {"k": "x"}, key="K", patience=1)

    assert lost["status"] == "outcome_unknown"
    assert speaker.world.spaces.load(SPACE).seq == 1
    assert "committed" in str(speaker.ok('DESCRIBE TRANSACTION BY IDEMPOTENCY KEY "K"'))


def streamed(world, command, sent, **parameters):
    """Send a request and take its answer in frames, as they are made."""
    lines = Streams(world._process.kip, world.clock).lines(
        "test",
        read_request(request((command, parameters))),
        Framer("s"),
        lambda: world.principals["owner"],
        deadline=world.clock.time + 15_000,
    )
    for line in lines:
        sent.append(json.loads(line))
    return sent


def test_kip2_rt_024_progress_does_not_claim_commit(people, world):
    """Before the commit a stream has only said that it is under way, provisionally; without streams it is refused."""
    sent, paused = [], []
    world.race(lambda: paused.extend(sent))  # between plan and commit
    streamed(world, THEME, sent, n="x")

    assert [frame["kind"] for frame in paused] == ["start", "progress"]
    assert paused[1]["data"] == {"phase": "executing", "provisional": True}
    assert "receipt" not in str(paused)
    assert "tx_id" not in str(paused)
    assert people.do("DESCRIBE CAPABILITIES")["supported"]["streaming"] is False
    assert code(people.send(batch("atomic", THEME, requires={"streaming": True}))) == "UnsupportedCapability"


def test_kip2_rt_025_final_frame_establishes_terminal_write_outcome(people, world):
    """The last frame of a write, as its one response, has a terminal receipt."""
    *_, committed = streamed(world, THEME, [], n="x")
    *_, aborted = streamed(world, BAD, [])
    assert (committed["kind"], committed["data"]["outcome"]) == ("final", "complete")
    assert committed["data"]["response"]["receipt"]["tx_id"] == world.log()[-1].tx_id
    assert (aborted["kind"], aborted["data"]["outcome"]) == ("final", "error")
    assert aborted["data"]["response"]["receipt"]["status"] == "aborted"
    assert people.send(batch("atomic", THEME))["receipt"]["status"] == "committed"
    assert people.send(batch("atomic", BAD))["receipt"]["status"] == "aborted"


def ingest(people, **entry):
    command = 'ASSERT ?a (:alice, "timezone", "+08:00") {by: :alice, mode: "stated", evidence: :msg}'
    evidence = {"key": "msg", "evidence_class": "user_statement", **entry}
    return {
        "kip": "2.0",
        "ingest": {"evidence": [evidence]},
        "operations": [{"command": command, "parameters": people.ref, "idempotency_key": "I"}],
    }


@pytest.mark.parametrize("handle", ["/etc/passwd", "../../x", "C:\\x", "file:///etc/passwd"])
def test_kip2_rt_026_artifact_handle_is_not_filesystem_path(people, handle):
    """A path is a handle to nothing."""
    before = people.state

    assert code(people.send(ingest(people, payload_artifact=handle))) == "ArtifactUnavailable"
    assert people.state is before


@pytest.mark.parametrize("handle", ["https://example.org/x", "http://127.0.0.1/", "s3://bucket/key"])
def test_kip2_rt_027_artifact_handle_is_not_url(people, handle):
    """An address is a handle to nothing, and nothing is fetched: the engine has no way to."""
    before = people.state

    assert code(people.send(ingest(people, payload_artifact=handle))) == "ArtifactUnavailable"
    assert people.state is before


def test_kip2_rt_028_expected_artifact_digest_is_checked(people):
    """Bytes that are not what their digest names are refused."""
    command = 'CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "x", payload: "bytes", content_digest: :d}}'

    assert people.no(command, d="sha256:" + "0" * 64) == "DigestMismatch"
    assert people.do(command, d=f"sha256:{hashlib.sha256(b'bytes').hexdigest()}")


def test_kip2_rt_029_expired_artifact_fails_safely(people):
    """A handle whose artifact is gone fails the transaction and commits nothing."""
    people.artifacts["h"] = b"staged"
    request = ingest(people, payload_artifact="h")
    del people.artifacts["h"]
    before = people.state

    assert code(people.send(request)) == "ArtifactUnavailable"
    assert people.state is before


def test_kip2_rt_030_cursor_families_are_non_interchangeable(people):
    """A cursor of one family continues no other."""
    people.do('UPDATE ?p SET ATTRIBUTES {word: "shared"} WHERE {?p CONCEPT {}}')
    query = people.run('FIND(?p.name) WHERE {?p CONCEPT {type: "Person"}} ORDER BY ?p.name LIMIT 1')[
        "results"
    ][0]
    search = people.run('SEARCH CONCEPT "shared" LIMIT 1')["results"][0]
    cursors = {"kql": query.get("next_cursor"), "search": search.get("next_cursor")}
    assert all(cursors.values())

    wrong = {
        "kql": 'SEARCH CONCEPT "shared" LIMIT 1 CURSOR :c',
        "search": 'FIND(?p.name) WHERE {?p CONCEPT {type: "Person"}} ORDER BY ?p.name LIMIT 1 CURSOR :c',
    }
    for family, command in wrong.items():
        assert people.no(command, c=cursors[family]) == "CursorTypeMismatch"
        assert people.no("CHANGES SINCE :c LIMIT 1", c=cursors[family]) in {
            "CursorTypeMismatch",
            "ChangeCursorInvalid",
        }


def test_kip2_rt_031_ingestion_context_mints_faithful_evidence(people):
    """One Evidence, byte for byte, in one commit; none twice on a retry; none after an abort."""
    request = ingest(people, payload=TEXT, client_key="K")
    commits = len(people.deltas)
    first = people.send(request)
    again = people.send(request)
    evidence = [element for element in people.deltas[-1].puts if element.id.startswith("E-")]

    assert (len(people.deltas), again["receipt"]) == (commits + 1, first["receipt"])
    assert [element.payload.inline for element in evidence] == [TEXT]
    assert evidence[0].content_digest == f"sha256:{hashlib.sha256(TEXT.encode()).hexdigest()}"
    claim = people.get(first["results"][0]["result"]["handles"]["a"]["id"])
    assert [citation.evidence for citation in claim.evidence] == [evidence[0].id]

    request["operations"][0]["idempotency_key"] = "another"
    people.send(request)
    assert people.do("FIND(COUNT(?e)) WHERE {?e EVIDENCE {}}") == [1]
    broken = ingest(people, payload="lost", client_key="L")
    broken["operations"] = [{"command": BAD}]
    assert people.send(broken)["status"] == "failed"
    assert people.do("FIND(COUNT(?e)) WHERE {?e EVIDENCE {}}") == [1]
