"""META about Capsules: EXPORT, DESCRIBE, VERIFY, VALIDATE and PREVIEW IMPORT (KIP §63.4, §69).

What lives here: the statements, each with its one question. VERIFY asks whether the bytes are what was signed, VALIDATE
whether they are legal, PREVIEW what an import would do here and now; no answer stands in for another. What must never
live here: importing (a host does that, `core.service.capsules`), fetching, and trust. A URL is never followed: an
artifact is given, or it is not there.
"""

from __future__ import annotations

from typing import Any, Final, get_args

import msgspec

from core.authority import authorize
from core.capsule.check import check_records, inactive_packages, with_embedded
from core.capsule.export import Exporter, Wish, capsule_id, seal, with_proof
from core.capsule.format import PLURAL, Artifact, Payload
from core.capsule.plan import PLAN_FORMAT, Importing
from core.capsule.proofs import CAPSULE_DOMAIN, CAPSULE_SCOPE, SUITE, make_proof
from core.capsule.read import Capsule, check_digest, check_object, decode_artifact, read_capsule, read_shape
from core.capsule.verify import verified_proofs, verify_artifact
from core.epistemic.trust import Trust
from core.errors import NoemaError
from core.language import plain_value
from core.language.ast import Variable
from core.language.ast_meta import Describe, ExportCapsule, Operand, PreviewImport
from core.meta.operands import coordinates, options_of, past_scope, state_at, text_of, world_of
from core.model.elements import Json
from core.model.instants import format_instant
from core.model.literals import Ref
from core.protocol.canonical import digest_of
from core.protocol.capsule_types import ImportMode, ImportWish
from core.protocol.response import Warning  # noqa: A004 - the protocol's word
from core.query import select
from core.transaction.draft import Draft
from core.transaction.scope import Answer, Scope

MAX_EXPORT_RECORDS: Final = 5_000  # of an answer that is one JSON value; hosts and the command line take more
MAX_EXPORT_BYTES: Final = 3 * 1024 * 1024  # what fits an answer of every transport
_EXPORT: Final = frozenset(
    {"closure", "provenance_depth", "include_schema", "include_blobs", "proof_profile"}
)
_CLOSURES: Final = ("closed", "referential", "selective")
_PROOFS: Final = ("none", "ed25519")
_EXTERNALS_LISTED: Final = 100


def artifact_object(node: Operand, scope: Scope) -> dict[str, Any]:
    """A Capsule given as an object, as JSON text, or by the handle of a staged one; never fetched (KIP §41.5, §85.5).

    Raises:
        NoemaError: ArtifactUnavailable for a handle that is not there, and for a URL; ArtifactParseError.
        Missing: a staged artifact must be handed in.
    """
    value = plain_value(node)
    if not isinstance(value, str):
        return check_object(value)
    if value.lstrip().startswith("{"):
        return decode_artifact(value.encode())
    if "://" in value:
        raise NoemaError(
            "ArtifactUnavailable",
            "this is a URL, and none is ever fetched",
            hint="Send the Capsule itself as a :parameter, or stage it and give its handle.",
        )
    return decode_artifact(scope.context.given.artifact(value))


# --- EXPORT


def export(statement: ExportCapsule, scope: Scope) -> Answer:
    """EXPORT CAPSULE: the selected elements and their closure, all of one snapshot; the space stays as it is.

    Raises:
        NoemaError: NotAuthorized, ArtifactTooLarge, what the selection raises.
        Missing: an older state or a signature must be handed in.
    """
    authorize(scope.context.principal, "export")
    wish, proof = _export_wish(statement, scope)
    past = past_scope(scope, state_at(scope, statement.as_of))
    exporter = Exporter(world_of(past), scope.context.principal, wish)
    roots = [root for root in _roots(statement, past) if exporter.verdict(root) == "include"]
    ids = exporter.gather(roots)
    if not ids:
        raise NoemaError(
            "CapsuleValidationFailed",
            "the selection has nothing that you may export, and an empty Capsule is none",
        )
    payload = exporter.snapshot(
        ids,
        past.state,
        past.env,
        completeness="closure_complete" if wish.closure == "closed" else "selection_complete",
        created_at=format_instant(scope.context.now),
        selection={"digest": digest_of(sorted(roots)), "roots": len(roots)},
    )
    artifact = _sealed(payload, scope, signed=proof == "ed25519")
    digest, size = str(artifact["integrity"]["content_digest"]), _size(artifact)
    value = {
        "capsule_id": capsule_id(digest),
        "content_digest": digest,
        "bytes": size,
        "roots": len(roots),
        "manifest": artifact["payload"]["manifest"],
        "artifact": artifact,
    }
    return Answer(value=value, context=coordinates(past))


def _sealed(payload: Payload, scope: Scope, *, signed: bool) -> dict[str, Any]:
    """The artifact around a payload, with the deployment's signature if one is wanted."""
    artifact = seal(payload)
    if not signed:
        return artifact
    digest, now = str(artifact["integrity"]["content_digest"]), format_instant(scope.context.now)
    made = make_proof(scope.context.given.signed, CAPSULE_DOMAIN, digest, scope=CAPSULE_SCOPE, created_at=now)
    return with_proof(artifact, made)


def _size(artifact: dict[str, Any]) -> int:
    """How many bytes an artifact has, if an answer holds it."""
    size = len(msgspec.json.encode(artifact))
    if size > MAX_EXPORT_BYTES:
        raise NoemaError(
            "ArtifactTooLarge",
            f"the Capsule has {size} bytes; an answer holds {MAX_EXPORT_BYTES}",
            hint="Select fewer roots, leave out blobs, or export with the command line.",
            details={"limit_bytes": MAX_EXPORT_BYTES, "bytes": size},
        )
    return size


def _export_wish(statement: ExportCapsule, scope: Scope) -> tuple[Wish, str]:
    options = options_of(statement.options, _EXPORT)
    closure = options.get("closure", "selective")
    depth = options.get("provenance_depth", 3)
    proof = options.get("proof_profile", "none")
    if closure not in _CLOSURES:
        raise _not_one_of("closure", closure, _CLOSURES)
    if proof not in _PROOFS:
        raise _not_one_of("proof_profile", proof, _PROOFS)
    if isinstance(depth, bool) or not isinstance(depth, int) or not 0 <= depth <= 64:
        raise NoemaError("ConstraintViolation", "provenance_depth is a whole number from 0 to 64")
    flags = {
        name: options.get(name, default)
        for name, default in (("include_schema", False), ("include_blobs", True))
    }
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise NoemaError("TypeMismatch", f"{name} is true or false")
    limit = min(MAX_EXPORT_RECORDS, scope.context.limits.solutions)
    return Wish(closure=closure, provenance_depth=depth, max_records=limit, **flags), proof


def _roots(statement: ExportCapsule, scope: Scope) -> list[str]:
    """Every element bound to the root variable, or the one element named, if the WHERE holds (KIP §63.4)."""
    target = statement.target
    query = scope.query_context()
    if isinstance(target, Variable):
        rows = select(scope.view, statement.where, scope.env, query, first=target.name)
        found = dict.fromkeys(row.get(target.name) for row in rows if isinstance(row.get(target.name), Ref))
        return [ref.id for ref in found if isinstance(ref, Ref)]
    named = plain_value(target)
    element_id = named.get("id") if isinstance(named, dict) else named
    element = world_of(scope).get(element_id) if isinstance(element_id, str) else None
    if element is None:
        raise NoemaError("NotFoundOrNotVisible", "there is no such element, or you may not see it")
    return [element.id] if select(scope.view, statement.where, scope.env, query) else []


def _not_one_of(name: str, value: Any, allowed: tuple[str, ...]) -> NoemaError:
    return NoemaError(
        "ConstraintViolation",
        f"{name} is {', '.join(allowed)}, not {str(value)[:40]}",
        details={"field": name, "supported": list(allowed)},
    )


# --- DESCRIBE, VERIFY


def describe(statement: Describe, scope: Scope) -> Answer:
    """DESCRIBE CAPSULE: what the artifact says of itself; neither checked against a schema nor imported."""
    assert statement.subject is not None, "the grammar names one"
    artifact = artifact_object(statement.subject, scope)
    shape = read_shape(artifact)
    digest = check_digest(artifact, shape)
    return Answer(value=described(shape, digest), context=coordinates(scope))


def described(shape: Artifact, digest: str) -> dict[str, Json]:
    """A summary that is safe to show: no content, and everything as the artifact claims it."""
    payload = shape.payload
    kinds: dict[str, int] = {}
    for external in payload.external_refs:
        kinds[external.kind] = kinds.get(external.kind, 0) + 1
    value: dict[str, Json] = {
        "capsule_id": capsule_id(digest),
        "content_digest": digest,
        "format": shape.format,
        "version": shape.version,
        "manifest": msgspec.to_builtins(payload.manifest),
        "source": msgspec.to_builtins(payload.source),
        "schema": [f"{each.package}@{each.version}" for each in payload.schema],
        "embedded_schema": [
            f"{each.package}@{each.version}" for each in payload.schema if each.artifact is not None
        ],
        "external_refs": {
            "counts": kinds,
            "listed": [msgspec.to_builtins(each) for each in payload.external_refs[:_EXTERNALS_LISTED]],
        },
        "blobs": {
            encoding: sum(blob.encoding == encoding for blob in payload.blobs)
            for encoding in ("inline-base64", "omitted", "external")
        },
        "handling": msgspec.to_builtins(payload.handling or {}),
        "risk_classes": _risks(shape),
        "proofs": len(shape.integrity.proofs),
        "claims_only": "everything here is what the artifact says; nothing of it is trusted or imported",
    }
    return value


def _risks(shape: Artifact) -> list[str]:
    """What kinds of content an importer should look at (design §278)."""
    found = {"factual"} if shape.payload.manifest.counts.get("propositions") else set()
    types = {record.schema_ref.rpartition("/")[2] for record in shape.payload.records.concepts}
    found |= {"personal"} if types & {"Person", "Preference", "SelfModel", "Commitment"} else set()
    found |= {"behavioral"} if "Skill" in types else set()
    return sorted(found) or ["unknown"]


def verify(node: Operand, scope: Scope) -> dict[str, Json]:
    """VERIFY CAPSULE: digest, blobs, packages that came along, and signatures; not schema, not trust (KIP §69.1).

    Raises:
        NoemaError: DigestMismatch, ProofInvalid, ArtifactParseError.
        Missing: a signature must be checked.
    """
    found = verify_artifact(artifact_object(node, scope), scope.context.given.checked)
    return {**found, "proofs": trusted(found["proofs"], scope)}


def proofs_of(shape: Artifact, digest: str, scope: Scope) -> list[dict[str, Any]]:
    """What each proof of a Capsule is worth here; see `verified_proofs` for errors."""
    return trusted(verified_proofs(shape, digest, scope.context.given.checked), scope)


def trusted(reports: list[dict[str, Any]], scope: Scope) -> list[dict[str, Any]]:
    """Reports of proofs with the trust that this space's own records give to the signer, if they say anything."""
    trust = Trust(scope.trust, None)
    return [
        {**each, "local_trust": trust.said([("origin", str(each["verification_method"]))], "") or "unknown"}
        for each in reports
    ]


def good_keys(reports: list[dict[str, Any]]) -> frozenset[str]:
    """The keys whose signatures are good."""
    return frozenset(
        str(report["verification_method"]) for report in reports if report["cryptographically_valid"]
    )


# --- VALIDATE, PREVIEW


def validate(node: Operand, scope: Scope) -> dict[str, Json]:
    """VALIDATE CAPSULE: shape, references and schema; packages that came along are looked into and stay inert.

    What is not legal is an answer.
    """
    try:
        artifact = artifact_object(node, scope)
        capsule = read_capsule(artifact)
        problems = check_records(capsule, with_embedded(capsule, scope.env))
    except NoemaError as error:
        return {"valid": False, "error": error.to_wire()}
    value: dict[str, Json] = {
        "valid": not problems,
        "checked": ["shape", "digest", "references", "closure", "schema"],
        "content_digest": capsule.digest,
        "closure": msgspec.to_builtins(capsule.artifact.payload.manifest.closure),
        "completeness": capsule.artifact.payload.manifest.completeness,
        "external_refs": described(capsule.artifact, capsule.digest)["external_refs"],
        "packages_not_in_force": inactive_packages(capsule, scope.env),
        "importable": "not_decided: PREVIEW IMPORT CAPSULE decides",
    }
    if problems:
        failure = NoemaError(
            "CapsuleValidationFailed",
            "records of the Capsule break their schema",
            details={"problems": problems},
        )
        value["error"] = failure.to_wire()
    return value


def preview_import(statement: PreviewImport, scope: Scope) -> Answer:
    """PREVIEW IMPORT CAPSULE ... INTO: what an import would do to this space now; nothing is written or reserved.

    The operand of INTO is the space's id or URI.

    Raises:
        NoemaError: NotAuthorized, NotFoundOrNotVisible for another space, DigestMismatch, ProofInvalid and what
            keeps an import from being planned at all. Conflicts are an answer.
        Missing: a signature must be checked, a staged artifact handed in.
    """
    into = text_of(statement.into, "PREVIEW IMPORT CAPSULE ... INTO")
    space = scope.state.meta.space_id
    if into not in {space, f"urn:noema:space:{space}"}:
        raise NoemaError("NotFoundOrNotVisible", "an import is previewed for the space that is asked")
    capsule = read_capsule(artifact_object(statement.capsule, scope))
    value, _ = previewed(capsule, ImportWish(), scope)
    note = Warning(
        code="NotReserved",
        message="nothing was imported or reserved; an import runs on the state it finds, and checks the plan's digest",
    )
    return Answer(value=value, context=coordinates(scope), warnings=(note,))


def previewed(
    capsule: Capsule, wish: ImportWish, scope: Scope, *, continuity: bool = False
) -> tuple[dict[str, Json], Importing]:
    """The report of an import over a draft that nobody commits, and the import that was run."""
    authorize(scope.context.principal, "import")
    reports = proofs_of(capsule.artifact, capsule.digest, scope)
    draft = Draft(
        scope.state,
        now=max(scope.context.now, scope.state.at),
        origin=scope.context.principal.origin,
        transaction_class="import",
    )
    run = Importing(
        draft, scope.env, capsule, wish, scope.context.principal,
        signers=good_keys(reports), continuity=continuity,
    )  # fmt: skip
    run.run()
    return report_of(run, reports, scope), run


def report_of(run: Importing, proofs: list[dict[str, Any]], scope: Scope) -> dict[str, Json]:
    """What a person should see before an import (design §190)."""
    plan = run.plan()
    conflicts = [msgspec.to_builtins(each) for each in run.conflicts[:50]]
    payload = run.capsule.artifact.payload
    moves = bool(run.draft.changes()) or run.draft.meta != run.draft.state.meta
    would = "conflict" if conflicts else "commit" if moves else "no_effect"
    return {
        "would": would,
        "plan": plan,
        "import_plan_digest": plan["import_plan_digest"],
        "conflicts": conflicts,
        "gaps": run.gaps,
        "created": run.applied.created,
        "updated": run.applied.updated,
        "proofs": proofs,
        "source": msgspec.to_builtins(payload.source),
        "completeness": payload.manifest.completeness,
        "external_refs": described(run.capsule.artifact, run.capsule.digest)["external_refs"],
        "handling": msgspec.to_builtins(payload.handling or {}),
        "risk_classes": _risks(run.capsule.artifact),
        "authority": "none is imported: imported Skills are candidates, trust and policy stay this space's own",
        "checked_at_seq": scope.state.seq,
        "schema_environment_version": scope.env.version,
        "commit_guaranteed": False,
    }


def validate_plan(value: Any, options: dict[str, Any], scope: Scope) -> dict[str, Json]:
    """VALIDATE IMPORT PLAN: whether the plan is still what an import of its Capsule would do here and now.

    The Capsule goes along as `WITH {parameters: {capsule: ...}}`; without it only the plan's own shape and its
    coordinates are looked at.
    """
    try:
        wish = wish_of_plan(value, scope)
        given = options.get("parameters", {})
        body = given.get("capsule") if isinstance(given, dict) else None
        if body is None:
            return {"valid": True, "checked": ["shape", "target", "schema environment"], "current": None}
        capsule = read_capsule(
            check_object(body) if not isinstance(body, str) else decode_artifact(body.encode())
        )
        report, _ = previewed(capsule, wish, scope)
    except NoemaError as error:
        return {"valid": False, "error": error.to_wire()}
    current = report["import_plan_digest"] == value["import_plan_digest"]
    found: dict[str, Json] = {
        "valid": current and not report["conflicts"],
        "checked": ["shape", "target", "schema environment", "decisions"],
        "current": current,
        "import_plan_digest": report["import_plan_digest"],
    }
    if not current:
        found["error"] = stale_plan().to_wire()
    return found


def wish_of_plan(value: Any, scope: Scope) -> ImportWish:  # a JSON value
    """What a plan was made with.

    Raises:
        NoemaError: ArtifactParseError, ImportPreviewConflict for another target or schema environment.
    """
    if not isinstance(value, dict) or value.get("format") != PLAN_FORMAT:
        raise NoemaError("ArtifactParseError", f"an import plan has the format {PLAN_FORMAT}")
    names = ("mode", "mappings", "trust_canonical_ids", "partial", "lifecycle")
    try:
        wish = msgspec.convert(
            {name: value[name] for name in names if name in value}, ImportWish, strict=True
        )
    except msgspec.ValidationError as error:
        raise NoemaError(
            "ArtifactParseError", f"the import plan's shape is wrong: {str(error)[:200]}"
        ) from error
    if not isinstance(value.get("import_plan_digest"), str):
        raise NoemaError("ArtifactParseError", "an import plan names its digest")
    version = value.get("schema_environment_version")
    if value.get("target") != scope.state.meta.space_id or version != scope.env.version:
        raise stale_plan()
    return wish


def stale_plan() -> NoemaError:
    """The plan is another one now."""
    return NoemaError(
        "ImportPreviewConflict",
        "the import would do something else now than the plan says: the space or its schema has moved",
        hint="Preview the import again and look at the new plan.",
    )


CAPABILITIES: Final[dict[str, Json]] = {
    "format_versions": ["2.0"],
    "digest_algorithms": ["sha256"],
    "proof_suites": [SUITE],
    "import_modes": list(get_args(ImportMode)),
    "closures": list(_CLOSURES),
    "kinds": sorted(PLURAL),
    "max_record_count": MAX_EXPORT_RECORDS,
    "max_capsule_bytes": MAX_EXPORT_BYTES,
}
"""What DESCRIBE CAPABILITIES says of Capsules (design §322)."""
