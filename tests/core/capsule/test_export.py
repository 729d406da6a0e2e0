"""Exports: closures, blobs, proofs, and bounds."""

from __future__ import annotations

from typing import Any

import pytest

from core.capsule.export import with_proof
from core.capsule.proofs import CAPSULE_DOMAIN, make_proof, statement
from core.model.elements import Activity, Evidence, Payload
from core.model.literals import Ref
from core.mutation.records import payload_digest
from core.protocol.canonical import canonical_json
from core.transaction.draft import Draft
from infra.signing.ed25519 import Ed25519Keys
from tests.conformance.harness import World


@pytest.fixture
def world() -> World:
    """A chain of three pieces of Evidence, each made from the one before by an Activity, and a claim on the last."""
    made = World(life=60)

    def chain(draft: Draft) -> None:
        before: tuple[str, ...] = ()
        for text in ("first", "second", "third"):
            activity = draft.create(Activity, activity_class="summary", status="completed", inputs=before)
            evidence = draft.create(
                Evidence, evidence_class="document", payload=Payload("inline", text),
                content_digest=payload_digest(text), generated_by=activity.id,
            )  # fmt: skip
            before = (evidence.id,)

    made.host(chain, management=False)
    last = made.elements("evidence")[-1].id
    made.ok(
        'MUTATE {ENSURE PROPOSITION ?p (:alice, "prefers", :dark_mode) CREATE ASSERTION ?a {SET FIELDS {proposition: ?p, '
        'asserted_by: :alice, stance: "support", mode: "stated"} SET STRUCTURAL {("evidence", :e)}}}',
        e={"id": last},
    )
    return made


def export(world: World, options: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = world.rows(
        f"EXPORT CAPSULE ?a WHERE {{?a ASSERTION {{}}}} WITH {{{options}}}", **more
    )["artifact"]
    return found


@pytest.mark.parametrize(
    ("depth", "evidence", "activities"), [(0, 1, 0), (1, 1, 1), (2, 2, 1), (3, 2, 2), (64, 3, 3)]
)
def test_provenance_is_followed_as_far_as_declared(
    world: World, depth: int, evidence: int, activities: int
) -> None:
    """Each step upstream costs one; what is beyond is declared as outside, never silently left out."""
    artifact = export(world, "provenance_depth: :d", d=depth)
    counts = artifact["payload"]["manifest"]["counts"]
    outside = artifact["payload"].get("external_refs", [])

    assert (counts["evidence"], counts["activities"]) == (evidence, activities)
    assert [each["kind"] for each in outside] == ([] if depth == 64 else ["source_element"])
    assert world.rows("VALIDATE CAPSULE :c", c=artifact)["valid"] is True


def test_long_texts_stand_in_the_blob_table_once(world: World) -> None:
    """Two Evidences of one long text share a blob; without bytes the importer keeps a reference it cannot read."""
    for _ in range(2):
        world.ok(
            'CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "document", payload: :t}}', t="long " * 2_000
        )
    command = 'EXPORT CAPSULE ?e WHERE {?e EVIDENCE {evidence_class: "document"}} WITH {include_blobs: :b}'
    whole = world.rows(command, b=True)["artifact"]
    empty = world.rows(command, b=False)["artifact"]

    assert [blob["size"] for blob in whole["payload"]["blobs"]] == [10_000]
    assert [(blob["encoding"], "data" in blob) for blob in empty["payload"]["blobs"]] == [("omitted", False)]
    for artifact, mode in ((whole, "inline"), (empty, "external")):
        other = World()
        other.import_capsule(artifact)
        texts = [
            each
            for each in other.elements("evidence")
            if len(str(each.payload.inline)) > 5_000 or mode == "external"
        ]
        assert {each.payload.mode for each in texts} >= {mode}
        assert {each.content_digest for each in texts} >= {whole["payload"]["blobs"][0]["digest"]}


def test_proofs_are_detached_and_several(world: World) -> None:
    """Another signature changes neither digest nor identity; each is judged on its own, and one bad one is ProofInvalid."""
    artifact = export(world, 'proof_profile: "ed25519"')
    digest = artifact["integrity"]["content_digest"]
    other = Ed25519Keys(b"o" * 32)
    proof = make_proof(
        other.sign, CAPSULE_DOMAIN, digest, scope="capsule_payload", created_at="2026-01-01T00:00:00Z"
    )
    both = with_proof(artifact, proof)

    found = world.rows("VERIFY CAPSULE :c", c=both)

    assert found["content_digest"] == digest
    assert [each["signer_identity"] for each in found["proofs"]] == ["resolved", "unresolved"]
    unknown = with_proof(both, {**proof, "suite": "ML-DSA-65", "verification_method": "ml:1"})
    assert world.rows("VERIFY CAPSULE :c", c=unknown)["proofs"][2]["cryptographically_valid"] is None
    for bad in ({**proof, "signature": "AAAA"}, {**proof, "scope": "one blob"}, {**proof, "signature": "!"}):
        assert world.refused("VERIFY CAPSULE :c", c=with_proof(artifact, bad)) == "ProofInvalid"
    many = artifact
    for _ in range(16):
        many = with_proof(many, proof)
    assert world.refused("VERIFY CAPSULE :c", c=many) == "ArtifactTooLarge"


def test_a_signature_for_one_purpose_serves_no_other() -> None:
    """The domain stands in what is signed."""
    fields = {"content_digest": "sha256:00"}

    assert statement("KIP-CAPSULE/2.0", fields) == canonical_json({**fields, "domain": "KIP-CAPSULE/2.0"})
    assert statement("KIP-CAPSULE/2.0", fields) != statement("KIP-RECEIPT/2.0", fields)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ('closure: "everything"', "ConstraintViolation"),
        ("provenance_depth: -1", "ConstraintViolation"),
        ('proof_profile: "rsa"', "ConstraintViolation"),
        ('include_schema: "yes"', "TypeMismatch"),
        ('colour: "red"', "UnsupportedCapability"),
    ],
)
def test_options_are_checked(world: World, options: str, code: str) -> None:
    """What is no option, or no value of one, is refused by name."""
    assert world.refused(f"EXPORT CAPSULE ?a WHERE {{?a ASSERTION {{}}}} WITH {{{options}}}") == code


def test_what_selects_nothing_is_no_capsule(world: World) -> None:
    """An empty selection is refused, and so is a root that is not there."""
    assert (
        world.refused('EXPORT CAPSULE ?a WHERE {?a ASSERTION {mode: "predicted"}}')
        == "CapsuleValidationFailed"
    )
    assert world.refused('EXPORT CAPSULE "C-nobody" WHERE {?a ASSERTION {}}') == "NotFoundOrNotVisible"


def test_an_older_snapshot_has_nothing_that_was_erased_since(world: World) -> None:
    """AS OF a time before the purge, the Capsule has the element's absence and not its text."""
    made = world.ok('CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "regret"}}').id("e")
    then = world.state().seq
    world.ok('PURGE :e CONFIRM "PURGE"', e=made)

    text = str(world.export_space(as_of_seq=then)) + str(world.export_space(since_seq=1))

    assert "regret" not in text


def test_statements_about_statements_to_any_depth(world: World) -> None:
    """A tower of 1,500 statements is exported and verified, for nothing recurses over it."""
    below: Any = world.ref["alice"]
    predicate = "kip://test/core-domain@1.0.0/alias_of"

    def tower(draft: Draft) -> None:
        found = below["id"]
        for number in range(1_500):
            target = world.ref["bob"]["id"] if number == 0 else found
            found = draft.ensure_proposition(found, predicate, Ref(target)).id

    world.host(tower, management=False)
    top = world.elements("proposition")[-1].id
    artifact = world.rows(
        'EXPORT CAPSULE :p WHERE {?p PROPOSITION (id: :p)} WITH {closure: "closed"}', p={"id": top}
    )["artifact"]

    assert artifact["payload"]["manifest"]["counts"]["propositions"] == 1_500
    assert world.rows("VERIFY CAPSULE :c", c=artifact)["integrity_valid"] is True
