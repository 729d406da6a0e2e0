"""KIP2-CAP-001 to 022 (conformance paper §18): a Capsule carries meaning and lineage, and no authority."""

from __future__ import annotations

import copy
import json
import socket
from typing import Any

import pytest

from core.capsule.export import with_proof
from core.capsule.proofs import CAPSULE_DOMAIN, make_proof
from core.capsule.stream import Lines
from core.epistemic.trust import TrustRecord
from core.errors import NoemaError
from core.model.elements import Activity, Assertion, Concept, Evidence
from core.protocol.canonical import digest_of
from core.transaction.draft import Draft
from infra.signing.ed25519 import Ed25519Keys
from tests.conformance.harness import DETERMINISTIC, World
from tests.conformance.packages import SECONDARY, package

PEOPLE = 'EXPORT CAPSULE ?p WHERE {?p CONCEPT {type: "Person"}}'
CLAIMS = 'EXPORT CAPSULE ?a WHERE {?a ASSERTION {}} WITH {closure: "closed"}'
STRANGER = Ed25519Keys(b"stranger".ljust(32, b"."))
SAID = (
    'MUTATE {CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "user_statement", payload: "I like it dark"} '
    'SET STRUCTURAL {("source", :by)}} ENSURE PROPOSITION ?p (:of, "prefers", :what) '
    'CREATE ASSERTION ?a {SET FIELDS {proposition: ?p, asserted_by: :by, stance: "support", mode: "stated", '
    'confidence: 0.9} SET STRUCTURAL {("evidence", ?e)}}}'
)


@pytest.fixture
def source() -> World:
    """Another brain, with a life of its own."""
    return World(life=100)


def say(world: World, by: str = "alice", of: str = "alice", what: str = "dark_mode") -> Any:
    return world.ok(SAID, by=world.ref[by], of=world.ref[of], what=world.ref[what])


def resealed(artifact: dict[str, Any], change: Any) -> dict[str, Any]:
    """A Capsule whose payload somebody changed, and who made its digest fit."""
    made = copy.deepcopy(artifact)
    change(made["payload"])
    made["integrity"] = {"content_digest": digest_of(made["payload"]), "proofs": []}
    return made


def refused(call: Any, *args: Any, **more: Any) -> str:
    with pytest.raises(NoemaError) as caught:
        call(*args, **more)
    return caught.value.code


def imported(world: World, kind: Any) -> list[Any]:
    return [each for each in world.elements(kind) if each.system.origin.sources]


def test_kip2_cap_001_snapshot_binds_one_source_snapshot(source):
    """A Capsule of an older seq holds what stood then, in every record, whatever was committed since."""
    say(source)
    then = source.state().seq
    source.ok('UPDATE :alice SET FIELDS {name: "Alicia"}')
    say(source, by="bob")

    old = source.rows(f"{CLAIMS} AS OF SEQ :n", n=then)["artifact"]["payload"]
    new = source.rows(CLAIMS)["artifact"]["payload"]

    assert (old["source"]["snapshot_seq"], new["source"]["snapshot_seq"]) == (then, source.state().seq)
    assert [each["name"] for each in old["records"]["concepts"] if each.get("key") == "alice"] == ["Alice"]
    assert [each["name"] for each in new["records"]["concepts"] if each.get("key") == "alice"] == ["Alicia"]
    assert (len(old["records"]["assertions"]), len(new["records"]["assertions"])) == (1, 2)
    now = source.state().seq
    lines = source.export_lines()
    header = json.loads(next(lines))
    source.ok('UPDATE :alice SET FIELDS {name: "Someone else"}')  # while the rest is being written
    say(source, by="carol")
    rest = list(lines)
    assert header["payload"]["source"]["snapshot_seq"] == now
    assert sum(header["payload"]["manifest"]["counts"].values()) == len(rest) - 1
    assert b"Someone else" not in b"".join(rest)
    read = Lines([json.dumps(header).encode(), *rest])
    assert len(list(read.records())) == len(rest) - 1
    assert read.finish().startswith("sha256:")


def test_kip2_cap_002_canonical_payload_change_changes_digest(source):
    """Any value of any record, however deep, changes the digest."""
    say(source)
    artifact = source.rows(CLAIMS)["artifact"]
    seen = {artifact["integrity"]["content_digest"]}

    def confidence(payload: Any) -> None:
        payload["records"]["assertions"][0]["confidence"] = 0.91

    def name(payload: Any) -> None:
        payload["records"]["concepts"][0]["name"] = "Alicè"

    def when(payload: Any) -> None:
        payload["manifest"]["created_at"] = "2026-01-01T00:00:00.000Z"

    for change in (confidence, name, when):
        seen.add(resealed(artifact, change)["integrity"]["content_digest"])
    assert len(seen) == 4


def test_kip2_cap_003_formatting_only_change_preserves_canonical_digest(source):
    """Order of members, white space and escapes are not content: the digest verifies as before."""
    say(source)
    artifact = source.rows(CLAIMS)["artifact"]
    turned = json.loads(json.dumps(artifact), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    text = json.dumps(turned, indent=7, ensure_ascii=True)

    found = source.rows("VERIFY CAPSULE :c", c=text)

    assert found["content_digest"] == artifact["integrity"]["content_digest"]


def test_kip2_cap_004_digest_mismatch_fails_verify(source):
    """A changed byte of content is DigestMismatch in every operation that would use the Capsule."""
    say(source)
    artifact = source.rows(CLAIMS)["artifact"]
    artifact["payload"]["records"]["evidence"][0]["payload"]["inline"] = "I like it light"

    assert source.refused("VERIFY CAPSULE :c", c=artifact) == "DigestMismatch"
    assert source.refused("DESCRIBE CAPSULE :c", c=artifact) == "DigestMismatch"
    assert source.refused('PREVIEW IMPORT CAPSULE :c INTO "test"', c=artifact) == "DigestMismatch"
    assert refused(source.import_capsule, artifact) == "DigestMismatch"


def test_kip2_cap_005_valid_signature_does_not_imply_trust(world, source):
    """A stranger's good signature verifies; neither the signer nor what was signed is trusted or believed for it."""
    say(source)
    artifact = source.rows(CLAIMS)["artifact"]
    digest = artifact["integrity"]["content_digest"]
    proof = make_proof(
        STRANGER.sign, CAPSULE_DOMAIN, digest, scope="capsule_payload", created_at="2026-01-01T00:00:00Z"
    )
    signed = with_proof(artifact, proof)

    [report] = world.rows("VERIFY CAPSULE :c", c=signed)["proofs"]
    world.import_capsule(signed)

    assert report["cryptographically_valid"] is True
    assert (report["signer_identity"], report["local_trust"]) == ("unresolved", "unknown")
    [claim] = imported(world, "assertion")
    ask = f"FIND(?b.status) WHERE {{?b BELIEF (:p)}} {DETERMINISTIC}"
    assert world.rows(ask.replace("(:p)", "(id: :p)"), p=claim.proposition) == ["uncertain"]


def test_kip2_cap_006_source_ids_are_not_target_primary_ids(world, source):
    """Every element has an id of the destination; what it was elsewhere stands in its origin."""
    say(source)
    done = world.import_capsule(source.rows(CLAIMS)["artifact"])
    theirs = {
        each.id
        for kind in ("concept", "assertion", "evidence", "proposition")
        for each in source.elements(kind)
    }

    created = [
        each for kind in ("concept", "assertion", "evidence", "proposition") for each in imported(world, kind)
    ]

    assert len(created) == sum(done["created"].values()) == 5
    assert not theirs & {each.id for each in created}
    assert all(each.system.origin.sources[0].element in theirs for each in created)
    assert all(
        each.system.created_tx == done["receipt"]["tx_id"] and each.system.version == 1 for each in created
    )
    shown = world.rows("FIND(?a) WHERE {?a ASSERTION {id: :id}}", id=imported(world, "assertion")[0].id)
    assert shown[0]["_system"]["origin"]["sources"][0]["space_ref"] == "urn:noema:space:test"


def test_kip2_cap_007_same_name_does_not_auto_merge(world, source):
    """Two Alices of one name, one type and one key stay two."""
    preview = world.preview_capsule(source.rows(PEOPLE)["artifact"])
    world.import_capsule(source.rows(PEOPLE)["artifact"])

    alices = [each for each in world.elements("concept") if each.name == "Alice"]

    assert {each["basis"] for each in preview["plan"]["decisions"]} == {"new"}
    assert len(alices) == 2
    assert [each.key for each in alices] == ["alice", None]
    assert all(each.merged_into is None for each in alices)
    assert (
        world.rows('FIND(?c) WHERE {?c CONCEPT {type: "Person", key: "alice"}}')[0]["id"]
        == world.ref["alice"]["id"]
    )


def test_kip2_cap_008_trusted_canonical_identity_may_resolve_existing_concept(world, source):
    """A canonical id joins only where the importer trusts it and may bind identities; claimed, it joins nothing."""
    canonical = (
        'CREATE CONCEPT ?c {TYPE "Person" NAME "A. Liddell" SET FIELDS {canonical_id: "did:example:alice"}}'
    )
    here, there = world.ok(canonical).id("c"), source.ok(canonical).id("c")
    artifact = source.rows('EXPORT CAPSULE :c WHERE {?p CONCEPT {type: "Person"}}', c=there)["artifact"]

    claimed = world.preview_capsule(artifact)["plan"]["decisions"][0]
    unbound = world.preview_capsule(artifact, "importer", trust_canonical_ids=True)["plan"]["decisions"][0]
    trusted = world.preview_capsule(artifact, trust_canonical_ids=True)["plan"]["decisions"][0]

    assert (claimed["act"], unbound["act"]) == ("create", "create")
    assert (trusted["act"], trusted["basis"]) == ("map", "canonical_id")
    assert trusted["local"] == here["id"]
    world.import_capsule(artifact, trust_canonical_ids=True)
    assert imported(world, "concept") == []
    again = world.preview_capsule(artifact)["plan"]["decisions"][0]  # and it is remembered
    assert (again["basis"], again["local"]) == ("import_mapping", here["id"])


def test_kip2_cap_009_source_self_does_not_become_destination_self(world, source):
    """The source's own identity arrives as somebody else; what it prefers is not what we prefer."""
    say(source, by="self", of="self")
    artifact = source.export_space()
    assert artifact["payload"]["source"]["self"]["$ref"]

    world.import_capsule(artifact)

    state = world.state()
    assert state.meta.self_identity == world.ref["self"]["id"]
    [claim] = imported(world, "assertion")
    assert claim.asserted_by != state.meta.self_identity
    speaker = world.element(claim.asserted_by)
    assert speaker.name == "Self"
    assert speaker.system.origin.sources
    mine = world.rows('FIND(?p) WHERE {?p PROPOSITION (:self, "prefers", ?o)}')
    assert mine == []


def test_kip2_cap_010_restore_self_mapping_requires_restore_semantics(world, source):
    """Merge never maps self; restore does, for an operator, into a new space, with a verified signature."""
    artifact = source.export_space(include_schema=True)

    assert refused(world.import_capsule, artifact, mode="restore") == "NotAuthorized"
    assert refused(world.preview_capsule, artifact, mode="restore") == "NotAuthorized"
    report = source.restore(artifact, "fork")

    assert report["continuity"]["basis"] == "signature"
    restored = source.space("fork")
    me = restored.get(restored.meta.self_identity)
    assert isinstance(me, Concept)
    assert (me.name, me.key) == ("Self", "self")
    assert me.id != source.ref["self"]["id"]
    assert me.system.origin.sources[0].element == source.ref["self"]["id"]
    unsigned = {**artifact, "integrity": {**artifact["integrity"], "proofs": []}}
    assert refused(source.restore, unsigned, "other") == "NotAuthorized"


def test_kip2_cap_011_embedded_schema_stays_inactive(world):
    """A package that comes along is read to check its records, and is neither installed nor in force after it."""
    other = World("test-core-domain-1.0.0", SECONDARY, life=100)
    ref = package(SECONDARY)["manifest"]["package_ref"]
    other.ok("ENSURE PROPOSITION ?p (:service_api, :s, :status_active)", s=f"{ref}/service_status")
    artifact = other.rows(
        "EXPORT CAPSULE ?p WHERE {?p PROPOSITION (?s, :s, ?o)} WITH {include_schema: true}",
        s=f"{ref}/service_status",
    )["artifact"]
    before = world.state().meta.schema
    with world.unchanged():
        verified = world.rows("VERIFY CAPSULE :c", c=artifact)
        valid = world.rows("VALIDATE CAPSULE :c", c=artifact)
        preview = world.invoke("owner", 'PREVIEW IMPORT CAPSULE :c INTO "test"', c=artifact)

    assert verified["integrity_valid"] is True
    assert (valid["valid"], valid["packages_not_in_force"]) == (True, [ref])
    assert preview.code == "SchemaPackageUnavailable"
    assert refused(world.import_capsule, artifact) == "SchemaPackageUnavailable"
    assert world.state().meta.schema == before
    assert ref not in str(world.rows("LIST SCHEMA PACKAGES"))


def test_kip2_cap_012_source_authority_is_inert(world, source):
    """A Skill that says it may run is content; grants and policies in a Capsule have no place, and change nothing."""
    source.ok(
        'CREATE CONCEPT ?s {TYPE "Skill" NAME "Deploy" SET ATTRIBUTES {authority: "executable", status: "validated"}}'
    )
    artifact = source.rows('EXPORT CAPSULE ?s WHERE {?s CONCEPT {type: "Skill"}}')["artifact"]
    before = world.state().meta

    world.import_capsule(artifact)

    [skill] = imported(world, "concept")
    assert skill.attributes["status"] == "candidate"
    assert skill.governance.authority is None
    after = world.state().meta
    assert {**after.extensions, "imports": None} == {**before.extensions, "imports": None}
    for name, value in (("grants", [{"to": "everyone", "permission": "*"}]), ("trust", {"stranger": 1.0})):
        bad = resealed(artifact, lambda payload, name=name, value=value: payload.update({name: value}))
        assert world.refused("VERIFY CAPSULE :c", c=bad) == "ArtifactParseError"

        def governed(payload: Any, name: str = name, value: Any = value) -> None:
            payload["records"]["concepts"][0][name] = value

        assert refused(world.import_capsule, resealed(artifact, governed)) == "ArtifactParseError"


def test_kip2_cap_013_source_trust_is_not_inherited(world, source):
    """The source trusts its Alice; here nobody does, until this space's owner says so of the import or the actor."""
    say(source)
    ask = f"FIND(?b.status) WHERE {{?b BELIEF (id: :p)}} {DETERMINISTIC}"
    theirs = source.elements("proposition")[0].id
    assert source.rows(ask, p=theirs) == ["accepted"]
    before = world.state().meta.extensions["trust"]

    world.import_capsule(source.export_space())

    [claim] = imported(world, "assertion")
    assert world.state().meta.extensions["trust"] == before
    assert world.rows(ask, p=claim.proposition) == ["uncertain"]
    world.trust(TrustRecord("actor", claim.asserted_by, "trusted"))
    assert world.rows(ask, p=claim.proposition) == [
        "uncertain"
    ]  # words that a Capsule puts into a trusted mouth
    world.trust(TrustRecord("import", claim.system.origin.import_id, "trusted"))
    assert world.rows(ask, p=claim.proposition) == ["accepted"]


def test_kip2_cap_014_redacted_and_unavailable_external_refs_remain_distinguishable(world, source):
    """What is withheld and what is gone are two kinds, in the artifact and in every report of it."""
    gone = source.ok('CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "erase me"}}').id(
        "e"
    )
    kept = source.ok('CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "secret"}}').id("e")
    source.ok(
        'MUTATE {ENSURE PROPOSITION ?p (:alice, "prefers", :dark_mode) CREATE ASSERTION ?a {SET FIELDS {proposition: ?p, '
        'asserted_by: :alice, stance: "support", mode: "stated"} SET STRUCTURAL {("evidence", :g) ("evidence", :k)}}}',
        g=gone, k=kept,
    )  # fmt: skip
    source.ok('PURGE :g REFERENCE POLICY "tombstone_reference" CONFIRM "PURGE"', g=gone)
    source.classify(kept, "restricted")
    artifact = source.export_space(without=("restricted",))

    kinds = sorted(each["kind"] for each in artifact["payload"]["external_refs"])
    [redacted] = [each for each in artifact["payload"]["external_refs"] if each["kind"] == "redacted"]

    assert kinds == ["redacted", "unavailable"]
    assert set(redacted) == {"external_ref", "kind", "element_kind", "reason"}
    assert "secret" not in json.dumps(artifact)
    assert "erase me" not in json.dumps(artifact)
    for report in (
        world.rows("DESCRIBE CAPSULE :c", c=artifact),
        world.rows("VALIDATE CAPSULE :c", c=artifact),
        world.rows('PREVIEW IMPORT CAPSULE :c INTO "test"', c=artifact),
    ):
        assert report["external_refs"]["counts"] == {"redacted": 1, "unavailable": 1}
    gaps = world.import_capsule(artifact)["gaps"]
    assert sorted(gap["kind"] for gap in gaps) == ["redacted", "unavailable"]


@pytest.mark.parametrize("closure", ["closed", "referential", "selective"])
def test_kip2_cap_015_closure_declaration_is_inspectable(world, source, closure):
    """The declared closure is told by DESCRIBE and VALIDATE, and is what the artifact has."""
    say(source)
    artifact = source.rows(
        "EXPORT CAPSULE ?a WHERE {?a ASSERTION {}} WITH {closure: :k, provenance_depth: 2}", k=closure
    )["artifact"]

    described = world.rows("DESCRIBE CAPSULE :c", c=artifact)
    validated = world.rows("VALIDATE CAPSULE :c", c=artifact)

    assert described["manifest"]["closure"] == validated["closure"]
    assert validated["closure"]["mode"] == closure
    assert validated["valid"] is True
    outside = described["external_refs"]["counts"]
    assert outside == ({"source_element": 3} if closure == "referential" else {})
    assert described["manifest"]["counts"]["evidence"] == (0 if closure == "referential" else 1)


def test_kip2_cap_016_verify_and_validate_differ(world, source):
    """Intact and signed, and against its schema: VERIFY succeeds and VALIDATE does not."""
    artifact = source.rows(PEOPLE)["artifact"]

    def typeless(payload: Any) -> None:
        payload["records"]["concepts"][0]["schema_ref"] = "kip://test/core-domain@1.0.0/Spaceship"

    broken = resealed(artifact, typeless)
    digest = broken["integrity"]["content_digest"]
    proof = make_proof(
        STRANGER.sign, CAPSULE_DOMAIN, digest, scope="capsule_payload", created_at="2026-01-01T00:00:00Z"
    )

    verified = world.rows("VERIFY CAPSULE :c", c=with_proof(broken, proof))
    validated = world.rows("VALIDATE CAPSULE :c", c=with_proof(broken, proof))

    assert (verified["integrity_valid"], verified["proofs"][0]["cryptographically_valid"]) == (True, True)
    assert (validated["valid"], validated["error"]["code"]) == (False, "CapsuleValidationFailed")


def test_kip2_cap_017_validate_and_preview_differ(world, source):
    """Well formed, and in conflict with who is who here: VALIDATE succeeds, PREVIEW and the import do not."""
    named = 'CREATE CONCEPT ?c {TYPE :t NAME "X" SET FIELDS {canonical_id: "did:example:x"}}'
    person = source.ok(named, t="Person").id("c")
    world.ok(named, t="Organization")
    artifact = source.rows('EXPORT CAPSULE :c WHERE {?p CONCEPT {type: "Person"}}', c=person)["artifact"]

    assert world.rows("VALIDATE CAPSULE :c", c=artifact)["valid"] is True
    preview = world.preview_capsule(artifact, trust_canonical_ids=True)
    assert preview["would"] == "conflict"
    assert [each["basis"] for each in preview["conflicts"]] == ["canonical_id"]
    with world.unchanged():
        assert refused(world.import_capsule, artifact, trust_canonical_ids=True) == "IdentityConflict"


def test_kip2_cap_018_preview_has_no_destination_side_effect(world, source):
    """Seq, counts, environment and ids are as before; the import that follows finds nothing reserved."""
    say(source)
    artifact = source.rows(CLAIMS)["artifact"]
    with world.unchanged():
        first = world.rows('PREVIEW IMPORT CAPSULE :c INTO "test"', c=artifact)
        second = world.rows('PREVIEW IMPORT CAPSULE :c INTO "test"', c=artifact)

    assert (first["would"], first["commit_guaranteed"]) == ("commit", False)
    assert first["import_plan_digest"] == second["import_plan_digest"]
    assert (
        world.import_capsule(artifact, plan_digest=first["import_plan_digest"])["receipt"]["status"]
        == "committed"
    )


def test_kip2_cap_019_artifact_upload_is_not_import(world, source):
    """Staged, verified, validated and described, a Capsule changes no memory."""
    say(source)
    with world.unchanged():
        world.stage_artifact("upload-1", json.dumps(source.rows(CLAIMS)["artifact"]).encode())
        for command in ("VERIFY CAPSULE :h", "VALIDATE CAPSULE :h", "DESCRIBE CAPSULE :h"):
            assert world.invoke("owner", command, h="upload-1")["status"] == "succeeded"
    assert imported(world, "assertion") == []


def test_kip2_cap_020_capsule_url_is_not_auto_fetched(world, source, monkeypatch):
    """A URL is an artifact that is not there; a location inside a Capsule stays a text. Nothing opens a socket."""

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", never)
    for url in ("http://169.254.169.254/latest", "https://example.org/c.json", "file:///etc/passwd"):
        for command in ("VERIFY CAPSULE :u", "VALIDATE CAPSULE :u", 'PREVIEW IMPORT CAPSULE :u INTO "test"'):
            reply = world.invoke("owner", command, u=url)
            error = reply.code or reply.result["error"]["code"]
            assert error == "ArtifactUnavailable"
    say(source)

    def elsewhere(payload: Any) -> None:
        record = payload["records"]["evidence"][0]
        record["payload"] = {"blob": "b:1"}
        payload["blobs"] = [
            {"blob_ref": "b:1", "digest": record["content_digest"], "size": 14, "media_type": "text/plain",
             "encoding": "external", "location": "http://169.254.169.254/latest"}
        ]  # fmt: skip

    world.import_capsule(resealed(source.rows(CLAIMS)["artifact"], elsewhere))
    [evidence] = imported(world, "evidence")
    assert evidence.payload.mode == "external"
    assert world.invoke("owner", "VERIFY BLOB :e", e={"id": evidence.id}).code == "BlobUnavailable"


def test_kip2_cap_021_imported_contradiction_remains_representable(world, source):
    """An imported rejection of what is claimed here leaves both claims; belief may be contested, nothing is deleted."""
    say(world)
    say(source, by="bob")
    mine = world.elements("assertion")[0]

    def reject(payload: Any) -> None:
        payload["records"]["assertions"][0]["stance"] = "reject"

    artifact = resealed(source.rows(CLAIMS)["artifact"], reject)
    refs = {each["key"]: each["ref"] for each in artifact["payload"]["records"]["concepts"]}
    mappings = {refs["alice"]: world.ref["alice"]["id"], refs["dark_mode"]: world.ref["dark_mode"]["id"]}

    world.import_capsule(artifact, mappings=mappings)

    [claim] = imported(world, "assertion")
    assert claim.proposition == mine.proposition
    assert (claim.stance, claim.status) == ("reject", "active")
    assert world.element(mine.id) == mine
    world.trust(
        TrustRecord("import", claim.system.origin.import_id, "trusted"),
        TrustRecord("actor", claim.asserted_by, "trusted"),
    )
    ask = f"FIND(?b.status) WHERE {{?b BELIEF (id: :p)}} {DETERMINISTIC}"
    assert world.rows(ask, p=mine.proposition) == ["contested"]


def test_kip2_cap_022_imported_derived_cognition_preserves_roots(world, source):
    """An inference keeps its Activity, its premise and its Evidence through identity mapping, and their one root."""
    first = say(source).ids()

    def derive(draft: Draft) -> None:
        claim = draft.get(first["a"]["id"])
        assert isinstance(claim, Assertion)
        derived = draft.create(
            Assertion, proposition=claim.proposition, asserted_by=source.ref["bob"]["id"], stance="support",
            mode="inferred", asserted_at=draft.now, confidence=0.5,
        )  # fmt: skip
        draft.create(
            Activity,
            activity_class="inference",
            status="completed",
            inputs=(claim.id,),
            outputs=(derived.id,),
        )

    source.host(derive, management=False)
    done = world.import_capsule(source.rows(
        'EXPORT CAPSULE ?a WHERE {?a ASSERTION {mode: "inferred"}} WITH {closure: "closed"}'
    )["artifact"])  # fmt: skip

    [premise, derived] = imported(world, "assertion")
    [activity] = imported(world, "activity")
    [evidence] = imported(world, "evidence")
    assert done["gaps"] == []
    assert (derived.mode, premise.mode) == ("inferred", "stated")
    assert (activity.inputs, activity.outputs) == ((premise.id,), (derived.id,))
    assert [cited.evidence for cited in premise.evidence] == [evidence.id]
    [found] = world.rows(
        f'FIND(?b) WHERE {{?b BELIEF (id: :p)}} {DETERMINISTIC[:-1]}, explanation: "ledger"}}',
        p=derived.proposition,
    )
    assert {root for each in found["explanation"]["eligible_assertions"] for root in each["roots"]} == {
        evidence.id
    }
    assert len(found["support"]["root_groups"]) == 1
    assert isinstance(evidence, Evidence)
    again = world.import_capsule(source.export_space())
    assert len(imported(world, "assertion")) == 2  # the same claims in another artifact are the same claims
    assert again["created"].get("assertion") is None
