"""VERIFY, and the checks of Schema Packages: are these the bytes that were meant (KIP §69.1, META §190-198).

What lives here: digests compared. What must never live here: trust. That bytes are intact says nothing about who
made them, whether they are true, or whether they will be accepted; every answer keeps the three apart. Nothing is
fetched from anywhere.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from core.authority import authorize
from core.capsule.format import Proof
from core.capsule.proofs import PACKAGE_DOMAIN, check_proofs
from core.errors import NoemaError
from core.language import plain_value
from core.language.ast_meta import Verify
from core.meta import capsules
from core.meta.attestations import verify_checkpoint, verify_receipt
from core.meta.operands import artifact_of, coordinates, world_of
from core.model.elements import Evidence, Json
from core.mutation.records import payload_digest
from core.protocol.canonical import PROFILE, digest_of
from core.schema.definitions import SYMBOL_WORDS, Package
from core.schema.environment import Environment
from core.schema.library import CORE_REF, load_package
from core.transaction.scope import Answer, Scope

_APART: Final[dict[str, Json]] = {
    "proofs": [],
    "signer": "none",
    "trust": "not_assessed",
    "truth": "not_assessed",
}
"""What no verification here decides."""

_PROOF: Final[dict[str, Json]] = {
    "cryptographically_valid": None,
    "signer_identity": "unresolved",
    "local_trust": "unknown",
}
"""What is said of a signature of a form that is not known here (META §196)."""


def verify(statement: Verify, scope: Scope) -> Answer:
    """VERIFY SCHEMA PACKAGE, RECEIPT, CHECKPOINT, CAPSULE or BLOB.

    Raises:
        NoemaError: DigestMismatch for what is not what its digest or the log says; UnsupportedCapability;
            ArtifactParseError, ArtifactUnavailable, BlobUnavailable, TransactionUnknown, NotFoundOrNotVisible.
        Missing: a commit or a staged artifact must be handed in.
    """
    if statement.target == "SCHEMA PACKAGE":
        value = verify_package(artifact_of(statement.artifact, scope, "package"), scope)
    elif statement.target == "RECEIPT":
        value = verify_receipt(artifact_of(statement.artifact, scope, "receipt"), scope)
    elif statement.target == "CHECKPOINT":
        value = verify_checkpoint(artifact_of(statement.artifact, scope, "checkpoint"), scope)
    elif statement.target == "CAPSULE":
        value = capsules.verify(statement.artifact, scope)
    else:
        value = _verify_blob(plain_value(statement.artifact), scope)
    return Answer(value={**_APART, **value}, context=coordinates(scope))


# --- Schema Packages


def verify_package(artifact: dict[str, Any], scope: Scope) -> dict[str, Json]:
    """A package's digest against its content; its definitions are not looked at.

    Raises:
        NoemaError: DigestMismatch, ProofInvalid, UnsupportedCapability for another digest profile.
        Missing: a signature must be checked.
    """
    integrity = artifact.get("integrity")
    claims = integrity if isinstance(integrity, dict) else {}
    profile = claims.get("digest_profile", PROFILE)
    if profile != PROFILE:
        raise NoemaError("UnsupportedCapability", f"the digest profile {str(profile)[:80]} is not known here")
    actual = digest_of({name: value for name, value in artifact.items() if name != "integrity"})
    signatures = claims.get("signatures") or []
    claimed = claims.get("content_digest")
    if claimed is not None and claimed != actual:
        raise NoemaError(
            "DigestMismatch",
            "the package's content is not what its digest names",
            details={"expected": str(claimed)[:200], "actual": actual},
        )
    proofs = [_proof(each, actual, scope) for each in signatures] if isinstance(signatures, list) else []
    resolved = any(each["signer_identity"] == "resolved" for each in proofs)
    return {
        "integrity_valid": claimed is not None,
        "digest_valid": None if claimed is None else True,
        "digest_algorithm": "sha256",
        "digest_profile": PROFILE,
        "content_digest": actual,
        "signatures": "checked" if proofs else "none",
        "signer": "none" if not proofs else "resolved" if resolved else "unresolved",
        "proofs": proofs,
    }


def _proof(signature: Any, digest: str, scope: Scope) -> dict[str, Json]:  # a JSON value
    """What one signature of a package is worth; one of a form that is not known here is told as that.

    Raises:
        NoemaError: ProofInvalid for a signature that is not of the key it names.
    """
    try:
        proof = msgspec.convert(signature, Proof, strict=True)
    except msgspec.ValidationError:
        return dict(_PROOF)
    [report] = check_proofs([proof], PACKAGE_DOMAIN, digest, scope.context.given.checked)
    if report["cryptographically_valid"] is False:
        raise NoemaError("ProofInvalid", "a signature of the package is not its signer's")
    [told] = capsules.trusted([report], scope)
    return told


def validate_package(artifact: dict[str, Any], env: Environment) -> dict[str, Json]:
    """Whether a package is well formed and could live beside what is in force; nothing is installed."""
    try:
        package = load_package(artifact)
    except NoemaError as error:
        return {"valid": False, "error": error.to_wire()}
    missing = [
        needed.ref
        for needed in package.dependencies
        if needed.required and needed.ref not in {CORE_REF, *env.active, *env.readable}
    ]
    return {
        "valid": not missing,
        "package_ref": package.ref,
        "content_digest": package.digest,
        "symbols": {SYMBOL_WORDS[kind]: sorted(package.table(kind)) for kind in SYMBOL_WORDS},
        "missing_dependencies": missing,
        "ambiguous_if_active": _clashes(package, env),
        "installed": package.ref in env.active or package.ref in env.readable,
        "active": package.ref in env.active,
    }


def _clashes(package: Package, env: Environment) -> list[str]:
    """Local names that would mean more than one thing if the package were active too."""
    if package.ref in env.active:
        return []
    clashes: set[str] = set()
    for kind in SYMBOL_WORDS:
        own = package.table(kind).keys() | package.aliases[kind].keys()
        clashes |= own & env.names(kind).keys()
    return sorted(clashes)


# --- blobs


def _verify_blob(named: Any, scope: Scope) -> dict[str, Json]:  # a JSON value
    """The inline content of an Evidence against its `content_digest`."""
    authorize(scope.context.principal, "read")
    element_id = named.get("id") if isinstance(named, dict) else named
    world = world_of(scope)
    element = world.get(element_id) if isinstance(element_id, str) else None
    if not isinstance(element, Evidence) or "payload" in (world.hidden(element) or ()):
        raise NoemaError("NotFoundOrNotVisible", "a blob is named by its Evidence; there is none of this id")
    if element.payload.mode != "inline":
        raise NoemaError(
            "BlobUnavailable",
            "the content was erased" if element.payload.mode == "purged" else "the content is kept elsewhere",
            details={"payload": element.payload.mode},
        )
    actual = payload_digest(element.payload.inline)
    if actual != element.content_digest:
        raise NoemaError(
            "DigestMismatch",
            "the content is not what its digest names",
            details={"expected": element.content_digest, "actual": actual},
        )
    return {
        "integrity_valid": True,
        "digest_valid": True,
        "digest_algorithm": "sha256",
        "content_digest": actual,
        "evidence": element.id,
        "media_type": element.media_type,
    }
