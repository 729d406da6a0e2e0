"""VERIFY: are these the bytes that were meant, and whose signatures are on them (KIP §69.1).

What lives here: digest, blobs, packages that came along, proofs. What must never live here: the schema, a destination,
and trust; whoever asks in a space adds what that space thinks of the signer.
"""

from __future__ import annotations

from typing import Any

from core.capsule.export import capsule_id
from core.capsule.format import Artifact
from core.capsule.proofs import CAPSULE_DOMAIN, MAX_PROOFS, Check, check_proofs
from core.capsule.read import check_blob, check_digest, read_shape
from core.errors import NoemaError
from core.schema.library import load_package


def verify_artifact(artifact: dict[str, Any], check: Check) -> dict[str, Any]:
    """The report of a verification, each dimension on its own.

    Raises:
        NoemaError: DigestMismatch, ProofInvalid, ArtifactParseError, UnsupportedCapability.
    """
    shape = read_shape(artifact)
    digest = check_digest(artifact, shape)
    for blob in shape.payload.blobs:
        check_blob(blob)
    for dependency in shape.payload.schema:
        if dependency.artifact is not None and load_package(dependency.artifact).digest != dependency.digest:
            raise NoemaError(
                "DigestMismatch",
                "a package that comes along is not the one the Capsule names",
                details={"package": f"{dependency.package}@{dependency.version}"[:600]},
            )
    return report(shape, digest, verified_proofs(shape, digest, check))


def report(shape: Artifact, digest: str, proofs: list[dict[str, Any]]) -> dict[str, Any]:
    """What is said of an artifact whose digest and proofs have been looked at."""
    resolved = any(proof["signer_identity"] == "resolved" for proof in proofs)
    return {
        "integrity_valid": True,
        "digest_valid": True,
        "digest_algorithm": "sha256",
        "digest_profile": shape.integrity.digest_profile,
        "content_digest": digest,
        "capsule_id": capsule_id(digest),
        "proofs": proofs,
        "signer": "none" if not proofs else "resolved" if resolved else "unresolved",
        "source_attestation": "claimed",
        "checked": ["digest", "blobs", "embedded packages", "proofs"],
        "not_checked": ["schema", "references", "identity", "truth", "trust"],
    }


def verified_proofs(shape: Artifact, digest: str, check: Check) -> list[dict[str, Any]]:
    """What each proof is worth; what local trust its signer has is for the space to say.

    Raises:
        NoemaError: ProofInvalid for a signature that is not of the key it names, ArtifactTooLarge for too many.
    """
    proofs = shape.integrity.proofs
    if len(proofs) > MAX_PROOFS:
        raise NoemaError("ArtifactTooLarge", f"a Capsule has at most {MAX_PROOFS} proofs")
    reports = check_proofs(proofs, CAPSULE_DOMAIN, digest, check)
    bad = [each for each in reports if each["cryptographically_valid"] is False]
    if bad:
        raise NoemaError(
            "ProofInvalid",
            "a signature of the Capsule is not its signer's",
            details={"verification_methods": [str(each["verification_method"])[:200] for each in bad]},
        )
    return [{**each, "local_trust": "unknown"} for each in reports]
