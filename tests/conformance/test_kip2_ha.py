"""KIP2-HA-001..009 (conformance paper §24): what a client can prove afterwards, and what nobody can learn."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import msgspec
import pytest

from core.ports import Put
from core.storage.codec import decode_delta, encode_delta
from core.storage.layout import delta_sk, space_pk
from core.storage.log import digest_of, next_chain
from infra.signing.ed25519 import Ed25519Keys
from tests.conformance.harness import CORE, KEYS, SECONDARY, SPACE, World, package, request

DUTY = (
    "UPDATE ?me SET ATTRIBUTES {duty: false} WHERE {?me CONCEPT {key: :me} "
    "?other CONCEPT {key: :other} FILTER(?other.attributes.duty == true)}"
)


def made(
    world: World, command: str = 'CREATE CONCEPT ?c {TYPE "Document" NAME "a"}', **parameters: Any
) -> Any:
    return world.ok(command, **parameters)


# --- serializable


def test_kip2_ha_001_write_skew(world):
    """Two that each leave the other on duty cannot both go, though neither writes what the other writes."""
    for key in ("alice", "bob"):
        world.ok("UPDATE :p SET ATTRIBUTES {duty: true}", p=world.ref[key])
    world.race(lambda: world.ok(DUTY, me="bob", other="alice"))
    late = world.ok(DUTY, me="alice", other="bob")
    assert late.result["matched"] == 0
    duty = [world.element(world.ref[key]).attributes["duty"] for key in ("alice", "bob")]
    assert sorted(duty) == [False, True]


def test_kip2_ha_001_lost_update(world):
    """Two that read a value and write it on both count."""
    world.ok("UPDATE :p SET ATTRIBUTES {n: 0}", p=world.ref["alice"])
    add = "UPDATE ?a SET ATTRIBUTES {n: ADD(?a.attributes.n, 1)} WHERE {?a CONCEPT {key: 'alice'}}"
    add = add.replace("'", '"')
    world.race(lambda: world.ok(add))
    world.ok(add)
    assert world.element(world.ref["alice"]).attributes["n"] == 2


def test_kip2_ha_001_phantom(world):
    """What comes into a set after it was looked at is looked at again before anything is written on its strength."""
    mark = 'UPDATE ?d SET ATTRIBUTES {seen: true} WHERE {?d CONCEPT {type: "Document"}}'
    made(world)
    world.race(lambda: made(world, 'CREATE CONCEPT ?c {TYPE "Document" NAME "b"}'))
    assert world.ok(mark).result["updated"] == 2


def test_kip2_ha_001_no_torn_read(world):
    """An atomic request reads one state, whatever is committed meanwhile."""
    world.ok("UPDATE :p SET ATTRIBUTES {n: 0}", p=world.ref["alice"])
    world.ok("UPDATE :p SET ATTRIBUTES {n: 0}", p=world.ref["bob"])
    both = request(
        *(
            f'UPDATE ?p SET ATTRIBUTES {{n: 1}} WHERE {{?p CONCEPT {{key: "{who}"}}}}'
            for who in ("alice", "bob")
        ),
        execution={"mode": "atomic", "isolation": "serializable"},
    )
    read = request(
        *(f'FIND(?p.attributes.n) WHERE {{?p CONCEPT {{key: "{who}"}}}}' for who in ("alice", "bob")),
        execution={"mode": "atomic", "isolation": "serializable"},
    )
    before = world.invoke("owner", read)
    world.invoke("owner", both)
    after = world.invoke("owner", read)
    for reply, value in ((before, 0), (after, 1)):
        assert [result["result"] for result in reply["results"]] == [[value], [value]]


# --- receipts


def test_kip2_ha_002_signed_receipt_verifies(world):
    """A receipt bears the service's signature over all it says, which anybody can check, and VERIFY does."""
    receipt = made(world).receipt
    [proof] = receipt["proofs"]
    assert proof["verification_method"] == KEYS.key_id

    reply = world.ok("VERIFY RECEIPT :r", r=receipt)
    assert reply.result["integrity_valid"] is True
    assert reply.result["attestation"] == "signed by this service; compared with the log"
    assert reply.result["proofs"][0]["cryptographically_valid"] is True
    assert reply.result["truth"] == "not_assessed"
    assert reply.result["proofs"][0]["local_trust"] == "not_assessed"


def test_kip2_ha_002_a_repeated_request_has_the_very_same_receipt(world):
    """A retry after a lost answer gives the same receipt, signature and all."""
    again = request(
        'CREATE CONCEPT ?c {TYPE "Document"}', execution={"mode": "atomic", "idempotency_key": "k"}
    )
    assert world.invoke("owner", again).receipt == world.invoke("owner", again).receipt


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("tx_id", None),
        ("space_seq", 999),
        ("request_digest", "sha256:" + "0" * 64),
        ("committed_at", "2020-01-01T00:00:00.000Z"),
        ("status", "no_effect"),
        ("change_summary", {}),
        ("space_id", "other"),
    ],
)
def test_kip2_ha_003_receipt_tampering_breaks_proof(world, member, value):
    """Whatever is changed in a receipt, its signature no longer holds."""
    receipt, other = made(world).receipt, made(world).receipt
    forged = {**receipt, member: other["tx_id"] if value is None else value}
    assert world.refused("VERIFY RECEIPT :r", r=forged) == "ProofInvalid"


def test_kip2_ha_003_a_receipt_without_its_proof_is_held_against_the_log(world):
    """Taking the signature off does not help: the log says otherwise."""
    receipt = made(world).receipt
    bare = {name: value for name, value in receipt.items() if name != "proofs"}
    assert world.ok("VERIFY RECEIPT :r", r=bare).result["attestation"] == "unsigned; compared with the log"
    assert world.refused("VERIFY RECEIPT :r", r={**bare, "space_seq": 999}) == "DigestMismatch"
    assert world.refused("VERIFY RECEIPT :r", r={**bare, "tx_id": "tx-nowhere"}) == "TransactionUnknown"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda proof: proof | {"signature": proof["signature"][:-4] + "AAAA"},
        lambda proof: proof | {"scope": "capsule_payload"},
        lambda proof: proof | {"verification_method": Ed25519Keys(b"x" * 32).key_id},
        lambda proof: proof | {"created_at": "2020-01-01T00:00:00Z"},
    ],
    ids=["signature", "scope", "key", "time"],
)
def test_kip2_ha_003_a_proof_cannot_be_changed_either(world, spoil):
    """Another key, scope or time in a proof makes it invalid, not somebody else's good one."""
    receipt = made(world).receipt
    forged = {**receipt, "proofs": [spoil(receipt["proofs"][0])]}
    assert world.refused("VERIFY RECEIPT :r", r=forged) == "ProofInvalid"


# --- digests


def test_kip2_ha_004_request_digest_normalizes_irrelevant_formatting(world):
    """Spaces, comments, case of keywords, order of members and a spelt-out number change no digest."""
    spellings = [
        'UPSERT CONCEPT ?p {MATCH {type: "Theme", key: "x"} SET ATTRIBUTES {a: 1, b: 2}}',
        '// noted\nupsert concept ?p {\n  SET ATTRIBUTES { b: 2.0, a: 1 }\n\tMATCH { key: "x", type: "Theme" }\n}',
    ]
    digests = {world.ok(text).receipt["request_digest"] for text in spellings}
    assert len(digests) == 1
    other = world.ok('UPSERT CONCEPT ?p {MATCH {type: "Theme", key: "x"} SET ATTRIBUTES {a: 1, b: 3}}')
    assert other.receipt["request_digest"] not in digests


def test_kip2_ha_005_semantic_plan_digest_reflects_exact_schema_resolution():
    """The same command under another schema environment has the same request digest and another plan digest."""
    digests = []
    for aliases in (None, {"Document": f"{CORE}/Document"}):
        world = World()
        if aliases:
            world.activate([package(SECONDARY)], aliases=aliases)
        reply = world.ok('CREATE CONCEPT ?c {TYPE "Document" NAME "a"}')
        digests.append((reply.receipt["request_digest"], reply.receipt["semantic_plan_digest"]))
    assert digests[0][0] == digests[1][0]
    assert digests[0][1] != digests[1][1]


def test_kip2_ha_006_duplicate_json_keys_strictly_rejected(world):
    """A body in which a member stands twice is refused, at every depth, before anything is done."""
    bodies = [
        b'{"kip": "2.0", "kip": "2.0", "operations": [{"command": "DESCRIBE PROTOCOL"}]}',
        b'{"kip": "2.0", "operations": [{"command": "DESCRIBE PROTOCOL", "command": "DESCRIBE PROTOCOL"}]}',
        b'{"kip": "2.0", "operations": [{"command": "DESCRIBE PROTOCOL", "parameters": {"a": 1, "\\u0061": 2}}]}',
    ]
    with world.unchanged():
        for body in bodies:
            reply = world.invoke("owner", body, malformed=True)
            assert (reply["status"], reply.code) == ("failed", "InvalidRequestEnvelope")


# --- checkpoints


def stored(world: World, version: int) -> dict[str, Any]:
    """A commit's row as it is stored."""
    row = world.seam.table.get(space_pk(SPACE), delta_sk(version))
    assert row is not None
    return row


def altered(body: Any) -> bytes:
    """A commit's bytes, saying something else."""
    delta = decode_delta(body)
    first = msgspec.structs.replace(delta.puts[0], name="altered")
    return encode_delta(msgspec.structs.replace(delta, puts=(first, *delta.puts[1:])))


def overwrite(world: World, version: int, row: dict[str, Any]) -> None:
    """Change a commit's row behind the service's back, as somebody with the table's keys might."""
    world.seam.table.transact([Put(space_pk(SPACE), delta_sk(version), row)])


def test_kip2_ha_007_tamper_evident_checkpoint_detects_modification(world):
    """A checkpoint verifies over the log it was made of, and no longer once a covered commit is changed."""
    made(world)
    victim = world.state().ver
    made(world, 'CREATE CONCEPT ?c {TYPE "Document" NAME "b"}')
    checkpoint = world.checkpoint()
    reply = world.ok("VERIFY CHECKPOINT :c", c=checkpoint)
    assert reply.result["integrity_valid"] is True
    assert reply.result["covered"] == {"first": 1, "last": world.state().ver, "redacted": 0}
    assert reply.result["signer"] == "this-deployment"

    row = stored(world, victim)
    overwrite(world, victim, row | {"body": altered(row["body"])})
    assert world.refused("VERIFY CHECKPOINT :c", c=checkpoint) == "DigestMismatch"


def test_kip2_ha_007_a_log_that_was_rewritten_consistently_is_found_out(world):
    """A changed commit with digest and chain made to fit stands against the chain that the checkpoint holds."""
    made(world)
    checkpoint = world.checkpoint()
    last = world.state().ver
    row = stored(world, last)
    body = altered(row["body"])
    digest = digest_of(row["salt"], body)
    overwrite(world, last, row | {"body": body, "digest": digest, "chain": next_chain(row["prev"], digest)})
    assert world.refused("VERIFY CHECKPOINT :c", c=checkpoint) == "DigestMismatch"


@pytest.mark.parametrize("member", ["last", "space_seq", "chain", "chain_before", "committed_at", "instance"])
def test_kip2_ha_007_a_checkpoint_cannot_be_changed(world, member):
    """Whatever is changed in a checkpoint, its signature no longer holds."""
    checkpoint = world.checkpoint()
    forged = copy.deepcopy(checkpoint)
    forged[member] = forged[member] + 1 if isinstance(forged[member], int) else "00" + forged[member][2:]
    if forged == checkpoint:
        forged[member] = "ff" + forged[member][2:]
    assert world.refused("VERIFY CHECKPOINT :c", c=forged) == "ProofInvalid"


def test_kip2_ha_007_it_goes_on_verifying_after_later_commits_and_an_erasure(world):
    """A checkpoint is of a stretch: what comes after, and what an erasure redacted with its digest kept, is no harm."""
    note = made(
        world, 'CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "secret words"}}'
    ).id("e")
    checkpoint = world.checkpoint()
    made(world)
    world.ok('PURGE :e CONFIRM "PURGE"', e=note)
    covered = world.ok("VERIFY CHECKPOINT :c", c=checkpoint).result["covered"]
    assert covered["last"] == checkpoint["last"]
    assert covered["redacted"] >= 1


@pytest.mark.parametrize("artifact", [{}, {"format": "KIP-Checkpoint"}, "{", {"first": 0}])
def test_kip2_ha_007_what_is_no_checkpoint_is_refused(world, artifact):
    """Anything else is refused by name."""
    assert world.refused("VERIFY CHECKPOINT :c", c=artifact) == "ArtifactParseError"


# --- nothing to learn


@pytest.mark.parametrize(
    "command",
    [
        "DESCRIBE ELEMENT :x",
        "FIND(?c) WHERE {?c CONCEPT {id: :id}}",
        'UPDATE :x SET FIELDS {name: "n"}',
        "HISTORY :x",
        "TOMBSTONE :x",
        "MERGE CONCEPT :x INTO :alice",
    ],
)
def test_kip2_ha_008_strict_existence_neutral_response(world, command):
    """What is hidden and what never was are answered alike, word for word, the id apart."""
    hidden = made(world).id("c")
    world.classify(hidden)
    salt = hidden["id"][-5:]
    absent = [{"id": hidden["id"][:-8] + "zz0" + salt}, {"id": hidden["id"][:-8] + "000" + "zzzzz"}]
    assert [world.element(each) for each in absent] == [None, None]
    answers = []
    for found in (hidden, *absent):
        given = {"x": found, "id": found["id"]}
        used = {name: value for name, value in given.items() if f":{name}" in command}
        reply = world.invoke("reader_hidden", command, **used)
        text = json.dumps(reply, sort_keys=True).replace(found["id"], "ID")
        answers.append(
            re.sub(r"sha256:[0-9a-f]{64}", "DIGEST", text)
        )  # of the request, in which the id stands
    assert answers[0] == answers[1] == answers[2]


# --- projections


def test_kip2_ha_009_projection_policy_version_is_auditable(world):
    """Every projection, of now and of then, names the policy it ran under and its exact version."""
    world.ok('ASSERT ?a (:alice, "prefers", :dark_mode) {by: :alice, mode: "stated"}')
    then = world.state().seq
    made(world)
    query = 'FIND(?b.status) WHERE {?b BELIEF (:alice, "prefers", :dark_mode)}'
    policies = []
    for command in (query, f"{query} AS OF SEQ {then}"):
        reply = world.ok(command)
        policies.append(reply["results"][0]["context"]["epistemic_policy"])
    assert policies[0] == policies[1]
    assert policies[0]["id"].startswith("kip:policy:")
    listed = world.ok("LIST EPISTEMIC POLICIES").result
    assert policies[0] in [{"id": each["policy_id"], "version": each["version"]} for each in listed]
