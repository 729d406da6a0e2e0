"""KIP2-META-001..024 (conformance paper §21): one test per id; the answer, what is durable, what must not happen."""

from __future__ import annotations

import json

import pytest

from core.capsule.export import with_proof
from core.capsule.proofs import CAPSULE_DOMAIN, PACKAGE_DOMAIN, make_proof
from infra.signing.ed25519 import Ed25519Keys
from tests.conformance.harness import CORE, SECONDARY, World, package, request

RENAME = "UPDATE :bob SET FIELDS {name: :n}"
PEOPLE = 'FIND(COUNT(?p)) WHERE {?p CONCEPT {type: "Person"}}'


def size(value):
    return len(json.dumps(value, ensure_ascii=False).encode())


def test_kip2_meta_001_describe_primer_exposes_coordinates(world):
    """Protocol, space, schema and safety context are in one small answer, without any memory in it."""
    with world.unchanged():
        value = world.rows("DESCRIBE PRIMER")

    assert value["protocol"]["kip"] == "2.0"
    assert value["context"]["space"]["id"] == "test"
    assert value["context"]["snapshot_seq"] == world.state().seq
    assert CORE in value["schema"]["packages"]
    assert any("accepted belief" in line for line in value["invariants"])
    assert any("confidence" in line for line in value["invariants"])
    assert value["next"]
    assert size(value) <= value["max_bytes"] <= 6_000
    assert "Project Alpha" not in json.dumps(value)


def test_kip2_meta_002_primer_distinguishes_principal_and_self(world):
    """The authenticated Principal is one member, the semantic self another, and neither is the other."""
    value = world.invoke("reader_full", "DESCRIBE PRIMER").result

    assert value["principal"]["id"] == "reader_full"
    assert value["self"]["id"] == world.ref["self"]["id"]
    assert value["principal"]["id"] not in json.dumps(value["self"])
    assert world.ref["self"]["id"] not in json.dumps(value["principal"])


def test_kip2_meta_003_describe_protocol_reports_actual_version(world):
    """The versions told are those that are served: another one is refused."""
    assert set(world.rows("DESCRIBE PROTOCOL")["versions"].values()) == {"2.0"}
    other = {**request("DESCRIBE PROTOCOL"), "kip": "3.0"}
    assert world.invoke("owner", other, malformed=True).code == "UnsupportedProtocolVersion"


def test_kip2_meta_004_describe_execution_context_reports_resolved_space(world):
    """The space a request was resolved to is told, by id and URI, both of which select it."""
    value = world.rows("DESCRIBE EXECUTION CONTEXT")

    assert value["space"]["id"] == "test"
    for selector in ({"id": value["space"]["id"]}, {"uri": value["space"]["uri"]}):
        assert world.ok(request("DESCRIBE PROTOCOL", space=selector))


def test_kip2_meta_005_describe_type_returns_exact_schema_identity(world):
    """A local name is answered with the exact symbol, package version and digest."""
    value = world.rows('DESCRIBE TYPE "Person"')

    assert value["schema_ref"] == f"{CORE}/Person"
    assert value["package"]["version"] == "1.0.0"
    assert value["package"]["digest"] == package("test-core-domain-1.0.0")["integrity"]["content_digest"]


def test_kip2_meta_006_describe_ambiguous_symbol_fails():
    """A predicate name of two packages is not guessed; each exact reference is described."""
    world = World("test-core-domain-1.0.0", SECONDARY)
    with world.unchanged():
        reply = world.invoke("owner", 'DESCRIBE PREDICATE "status"')

    assert reply.code == "SchemaSymbolAmbiguous"
    candidates = reply["results"][0]["error"]["details"]["candidates"]
    assert len(candidates) == 2
    for candidate in candidates:
        assert world.rows("DESCRIBE PREDICATE :ref", ref=candidate)["predicate_ref"] == candidate


def test_kip2_meta_007_keyword_search_returns_exact_candidate_identity(world):
    """A hit carries the exact id and kind, with which the element is read."""
    [hit] = world.rows('SEARCH CONCEPT "Project Alpha" THRESHOLD 0.3')

    assert (hit["id"], hit["kind"]) == (world.ref["project_alpha"]["id"], "concept")
    assert hit["schema_ref"] == f"{CORE}/Project"
    assert world.rows("FIND(?c.name) WHERE {?c CONCEPT {id: :id}}", id=hit["id"]) == ["Project Alpha"]


def test_kip2_meta_008_search_score_is_transient(world):
    """No score is kept in an element, and none is a confidence."""
    with world.unchanged():
        [hit, *_] = world.rows('SEARCH CONCEPT "Alice"')
    [element] = world.rows("FIND(?c) WHERE {?c CONCEPT {id: :id}}", id=hit["id"])

    assert hit["retrieval"]["score"] > 0
    assert "score" not in json.dumps(element)
    assert "retrieval" not in json.dumps(element)
    assert "confidence" not in hit
    assert element["_system"]["version"] == 1


def test_kip2_meta_009_search_miss_is_not_absence(world):
    """What words miss, or an index of an earlier seq, an exact query finds; the miss says that it proves nothing."""
    before = world.state().seq
    world.ok('CREATE CONCEPT ?x {TYPE "Person" SET FIELDS {key: "nameless"}}')

    miss = world.ok('SEARCH CONCEPT "nameless"')

    assert miss.result == []
    assert [warning["code"] for warning in miss.warnings] == ["SearchMiss"]
    assert world.rows('FIND(COUNT(?c)) WHERE {?c CONCEPT {type: "Person", key: "nameless"}}') == [1]
    world.ok(RENAME, n="Robert")
    lagging = world.ok('SEARCH CONCEPT "Robert" AS OF SEQ :n', n=before)
    assert lagging.result == []
    assert lagging["results"][0]["context"]["search"]["index_seq"] == before < world.state().seq
    assert [warning["code"] for warning in lagging.warnings] == ["SearchMiss"]
    assert world.rows('FIND(COUNT(?c)) WHERE {?c CONCEPT {name: "Robert"}}') == [1]


def test_kip2_meta_010_search_freshness_disclosed_when_capability_claimed(world):
    """The capability is claimed, and every answer names its index's seq, also that of an old index."""
    assert world.rows("DESCRIBE CAPABILITIES")["supported"]["search_index_freshness"] is True
    then = world.state().seq
    world.ok(RENAME, n="Robert")

    fresh = world.ok('SEARCH CONCEPT "Robert"')["results"][0]["context"]["search"]
    lagging = world.ok('SEARCH CONCEPT "Bob" AS OF SEQ :n', n=then)["results"][0]["context"]["search"]

    assert fresh["index_seq"] == fresh["current_space_seq"] == world.state().seq
    assert (lagging["index_seq"], lagging["current_space_seq"]) == (then, then + 1)
    assert fresh["consistency"] != lagging["consistency"]


def test_kip2_meta_011_supported_and_available_are_distinct(world):
    """Purge is supported for all and available only to who may purge, whose command is then not refused."""
    owner = world.rows("DESCRIBE CAPABILITIES")
    reader = world.invoke("reader_full", "DESCRIBE CAPABILITIES").result

    assert owner["supported"]["purge"]
    assert reader["supported"]["purge"]
    assert (owner["available"]["purge"], reader["available"]["purge"]) == (True, False)
    with world.unchanged():
        assert world.invoke("reader_full", 'PURGE :carol CONFIRM "PURGE"').code == "NotAuthorized"


def test_kip2_meta_012_capability_enumeration_does_not_leak_hidden_space(world):
    """A restricted caller learns of no other space and of no hidden element, however it asks."""
    world.classify(world.ref["project_alpha"])
    hidden = world.ref["project_alpha"]["id"]
    answers = [
        world.invoke("reader_hidden", command)
        for command in (
            "DESCRIBE CAPABILITIES", "DESCRIBE PRIMER", 'DESCRIBE PRIMER MODE "full"', "DESCRIBE SPACE",
            "LIST SPACES", "DESCRIBE EXECUTION CONTEXT", 'SEARCH COGNITION "project alpha"', "HISTORY SPACE",
            "CHANGES AFTER SEQ 0",
        )
    ]  # fmt: skip

    assert all(reply["status"] == "succeeded" for reply in answers)
    assert hidden not in json.dumps(answers)
    assert "Project Alpha" not in json.dumps(answers)
    assert [row["id"] for row in answers[4].result] == ["test"]
    absent = world.invoke("reader_hidden", 'HISTORY ELEMENT "C-zzzzzzzz000abcde"')["results"]
    assert world.invoke("reader_hidden", "HISTORY ELEMENT :project_alpha")["results"] == absent
    world.another_space("elsewhere")
    for asked in ('DESCRIBE SPACE "{}"', 'DESCRIBE ACCESS WITH {{operation: "read", space: "{}"}}'):
        real, made_up = (
            world.invoke("reader_hidden", asked.format(name)) for name in ("elsewhere", "nowhere")
        )
        assert real["results"] == made_up["results"]
    assert world.invoke("reader_hidden", 'DESCRIBE SPACE "elsewhere"').code == "NotFoundOrNotVisible"
    assert [row["id"] for row in world.invoke("reader_hidden", "LIST SPACES").result] == ["test"]
    selected = [
        world.invoke("reader_hidden", request("DESCRIBE SPACE", space={"id": name}))
        for name in ("elsewhere", "nowhere")
    ]
    assert [reply.code for reply in selected] == ["NotFoundOrNotVisible"] * 2
    assert "Hidden away" not in json.dumps(selected)


def test_kip2_meta_013_verify_signature_is_not_trust(world):
    """A good signature of a stranger is verified and nothing more: not trusted, not installed, not active."""
    artifact = package(SECONDARY)
    digest = artifact["integrity"]["content_digest"]
    stranger = Ed25519Keys(b"stranger".ljust(32, b"."))
    proof = make_proof(
        stranger.sign, PACKAGE_DOMAIN, digest, scope="package", created_at="2026-01-01T00:00:00Z"
    )
    signed = {**artifact, "integrity": {**artifact["integrity"], "signatures": [proof]}}
    with world.unchanged():
        value = world.rows("VERIFY SCHEMA PACKAGE :p", p=signed)
        capsule = world.rows('EXPORT CAPSULE ?x WHERE {?x CONCEPT {type: "Person"}}')["artifact"]
        body = capsule["integrity"]["content_digest"]
        proof = make_proof(
            stranger.sign, CAPSULE_DOMAIN, body, scope="capsule_payload", created_at="2026-01-01T00:00:00Z"
        )
        verified = world.rows("VERIFY CAPSULE :c", c=with_proof(capsule, proof))

    assert value["integrity_valid"] is True
    assert (value["signatures"], value["trust"], value["signer"]) == ("checked", "not_assessed", "unresolved")
    for report in (*value["proofs"], *verified["proofs"]):
        assert report["cryptographically_valid"] is True
        assert (report["signer_identity"], report["local_trust"]) == ("unresolved", "unknown")
    assert artifact["manifest"]["package_ref"] not in world.state().meta.schema.packages
    broken = {**signed, "manifest": {**artifact["manifest"], "description": "other"}}
    assert world.refused("VERIFY SCHEMA PACKAGE :p", p=broken) == "DigestMismatch"
    other = {**proof, "created_at": "2026-01-02T00:00:00Z"}
    assert world.refused("VERIFY CAPSULE :c", c=with_proof(capsule, other)) == "ProofInvalid"


def test_kip2_meta_014_validate_kml_has_no_state_change(world):
    """A mutation that is legal, and one that is not, are told apart and leave no trace."""
    seq = world.state().seq
    with world.unchanged():
        good = world.rows("VALIDATE KML :c", c='CREATE CONCEPT ?x {TYPE "Person" NAME "X"}')
        bad = world.rows("VALIDATE KML :c", c='CREATE CONCEPT ?x {TYPE "Spaceship" NAME "X"}')

    assert (good["valid"], good["checked_at_seq"], good["commit_guaranteed"]) == (True, seq, False)
    assert (bad["valid"], bad["error"]["code"]) == (False, "SchemaSymbolNotFound")


def test_kip2_meta_015_preview_kml_has_no_state_or_reservation(world):
    """Counts, seq and the client key are as free after a preview as before."""
    command = 'CREATE CONCEPT ?x {TYPE "Person" CLIENT KEY "once" NAME :name}'
    people = world.rows(PEOPLE)
    with world.unchanged():
        value = world.rows("PREVIEW KML :c", c=command, name="First")

    assert value["would"] == "commit"
    assert value["counts"]["concept"]["created"] == 1
    assert world.rows(PEOPLE) == people
    made = world.ok(command, name="Second")
    assert world.element(made.id("x")).name == "Second"


def test_kip2_meta_016_preview_is_not_future_commit_guarantee(world):
    """The state moves after a preview, and the guarded commit fails."""
    guarded = "UPDATE :bob EXPECT VERSION 1 SET FIELDS {name: :n}"
    assert world.rows("PREVIEW KML :c", c=guarded, bob=world.ref["bob"], n="Mine")["would"] == "commit"
    world.ok(RENAME, n="Theirs")

    assert world.refused(guarded, n="Mine") == "VersionConflict"
    assert world.element(world.ref["bob"]).name == "Theirs"


def test_kip2_meta_017_transaction_lookup_by_idempotency_returns_original(world):
    """After a lost response the key leads to the original transaction, and not to another's."""
    body = request((RENAME, {"n": "Robert"}))
    body["operations"][0]["idempotency_key"] = "k"
    world.drop_response("owner", body)
    world.restart()

    value = world.rows('DESCRIBE TRANSACTION BY IDEMPOTENCY KEY "k"')

    newest = world.log()[-1]
    assert (value["status"], value["tx_id"], value["space_seq"]) == ("committed", newest.tx_id, newest.seq)
    stranger = world.invoke("reader_full", 'DESCRIBE TRANSACTION BY IDEMPOTENCY KEY "k"')
    assert stranger.code == "TransactionUnknown"


@pytest.mark.parametrize("tx", ["tx-0000000zabcde", "tx-00000001abcde", "made-up"])
def test_kip2_meta_018_unknown_transaction_is_not_aborted(world, tx):
    """An id of no transaction is unknown; nothing says that it was aborted."""
    reply = world.invoke("owner", "DESCRIBE TRANSACTION :tx", tx=tx)

    assert reply.code == "TransactionUnknown"
    error = reply["results"][0]["error"]
    assert error["details"]["status"] == "unknown"
    assert error["retry"]["class"] == "outcome_lookup_required"


def test_kip2_meta_019_history_reports_chronology(world):
    """Two changes are two transitions in order, each with its commit."""
    first = world.ok(RENAME, n="Rob").receipt
    second = world.ok(RENAME, n="Robert").receipt

    rows = world.rows("HISTORY ELEMENT :bob")

    assert [row["version"] for row in rows] == [1, 2, 3]
    assert [row["tx_id"] for row in rows[1:]] == [first["tx_id"], second["tx_id"]]
    assert [row["space_seq"] for row in rows[1:]] == [first["space_seq"], second["space_seq"]]


def test_kip2_meta_020_kql_as_of_reconstructs_content(world):
    """Content of then is AS OF's to give; chronology has none of it."""
    first = world.ok(RENAME, n="Rob").receipt
    world.ok(RENAME, n="Robert")

    query = "FIND(?c.name) WHERE {?c CONCEPT {id: :id}} AS OF SEQ :n"
    assert world.rows(query, id=world.ref["bob"]["id"], n=first["space_seq"]) == ["Rob"]
    chronology = json.dumps(world.rows("HISTORY ELEMENT :bob"))
    assert "Rob" not in chronology


def test_kip2_meta_021_changes_preserves_transaction_envelope(world):
    """A commit of several writes is one envelope with all of them."""
    before = world.state().seq
    receipt = world.ok(
        'MUTATE {CREATE CONCEPT ?a {TYPE "Person"} CREATE CONCEPT ?b {TYPE "Theme"} UPDATE :bob SET FIELDS {name: "B"}}'
    ).receipt

    [envelope] = world.envelopes(after=before)

    assert (envelope["tx_id"], envelope["space_seq"]) == (receipt["tx_id"], receipt["space_seq"])
    assert sorted(change["op"] for change in envelope["changes"]) == ["created", "created", "updated"]
    assert world.envelopes(after=before) == [envelope]


def test_kip2_meta_022_expired_change_cursor_is_explicit(world):
    """A cursor that the log no longer reaches is refused with a safe way on, never restarted silently."""
    cursor = world.ok("CHANGES AFTER SEQ 0 LIMIT 1").cursor
    for name in ("Rob", "Robert"):
        world.ok(RENAME, n=name)
    world.trim_history()
    with world.unchanged():
        reply = world.invoke("owner", "CHANGES SINCE :c", c=cursor)

    assert reply.code == "ChangeCursorExpired"
    error = reply["results"][0]["error"]
    assert error["retry"]["class"] == "requires_new_snapshot"
    assert "present state" in error["hint"]
    assert "result" not in reply["results"][0]
    fresh = world.ok("CHANGES AFTER SEQ :n", n=world.state().seq)
    assert (fresh.result, world.ok("CHANGES SINCE :c", c=fresh.cursor).result) == ([], [])


def test_kip2_meta_023_export_capsule_is_cognitively_read_only(world):
    """An export, signed or not, leaves the space as it was: no commit, no element, no version, no receipt."""
    for options in ("", ' WITH {closure: "closed", proof_profile: "ed25519"}'):
        with world.unchanged():
            reply = world.ok(f'EXPORT CAPSULE ?r WHERE {{?r CONCEPT {{type: "Person"}}}}{options}')
            assert reply.get("receipt") is None
            assert reply.result["manifest"]["counts"]["concepts"] == 4
    assert (
        world.invoke("owner", "EXPORT CAPSULE ?r WHERE {?r CONCEPT {}}", readonly=True)["status"]
        == "succeeded"
    )
    assert world.invoke("reader_full", "EXPORT CAPSULE ?r WHERE {?r CONCEPT {}}").code == "NotAuthorized"


def test_kip2_meta_024_readonly_accepts_preview_but_rejects_commit_kml(world):
    """The readonly endpoint previews a mutation, and refuses the mutation, whatever it is labelled."""
    command = 'CREATE CONCEPT ?x {TYPE "Person" NAME "X"}'
    labelled = request(command)
    labelled["operations"][0]["language"] = "META"
    with world.unchanged():
        preview = world.invoke("owner", "PREVIEW KML :c", c=command, readonly=True)
        assert preview.result["would"] == "commit"
        assert world.invoke("owner", command, readonly=True).code == "ReadonlyViolation"
        assert world.invoke("owner", labelled, readonly=True).code in {
            "ReadonlyViolation",
            "LanguageMismatch",
        }
