"""VERIFY, and the checks of Schema Packages: are these the bytes that were meant (KIP §69.1, META §190-198).

What lives here: digests compared. What must never live here: trust. That bytes are intact says nothing about who
made them, whether they are true, or whether they will be accepted; every answer keeps the three apart. Nothing is
fetched from anywhere.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from core.authority import authorize
from core.errors import NoemaError
from core.language import plain_value
from core.language.ast_meta import Verify
from core.meta.operands import artifact_of, coordinates, world_of
from core.meta.transactions import find_commit
from core.model.elements import Evidence, Json
from core.mutation.records import payload_digest
from core.protocol.canonical import PROFILE, digest_of
from core.schema.definitions import SYMBOL_WORDS, Package
from core.schema.environment import Environment
from core.schema.library import CORE_REF, load_package
from core.transaction.record import committed_receipt
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
"""What is said of each signature: there are no keys to check it with, and none would make it trusted (META §196)."""

_RECEIPT: Final = (
    "status", "tx_id", "space_id", "snapshot_seq", "space_seq", "committed_at", "transaction_class",
    "request_digest", "semantic_plan_digest", "result_digest", "schema_environment_version",
)  # fmt: skip
"""The members of a receipt that the log can vouch for."""


def verify(statement: Verify, scope: Scope) -> Answer:
    """VERIFY SCHEMA PACKAGE, RECEIPT or BLOB; the others are refused by name.

    Raises:
        NoemaError: DigestMismatch for what is not what its digest or the log says; UnsupportedCapability;
            ArtifactParseError, ArtifactUnavailable, BlobUnavailable, TransactionUnknown, NotFoundOrNotVisible.
        Missing: a commit or a staged artifact must be handed in.
    """
    if statement.target == "SCHEMA PACKAGE":
        value = verify_package(artifact_of(statement.artifact, scope, "package"))
    elif statement.target == "RECEIPT":
        value = _verify_receipt(artifact_of(statement.artifact, scope, "receipt"), scope)
    elif statement.target == "BLOB":
        value = _verify_blob(plain_value(statement.artifact), scope)
    else:
        raise NoemaError("UnsupportedCapability", f"VERIFY {statement.target} is not there")
    return Answer(value={**_APART, **value}, context=coordinates(scope))


# --- Schema Packages


def verify_package(artifact: dict[str, Any]) -> dict[str, Json]:
    """A package's digest against its content; its definitions are not looked at.

    Raises:
        NoemaError: DigestMismatch, UnsupportedCapability for another digest profile.
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
    return {
        "integrity_valid": claimed is not None,
        "digest_valid": None if claimed is None else True,
        "digest_algorithm": "sha256",
        "digest_profile": PROFILE,
        "content_digest": actual,
        "signatures": "not_checked" if signatures else "none",
        "signer": "unresolved" if signatures else "none",
        "proofs": [dict(_PROOF) for _ in signatures],
    }


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


# --- receipts and blobs


def _verify_receipt(receipt: dict[str, Any], scope: Scope) -> dict[str, Json]:
    """A committed receipt against the commit it names. Receipts are not signed: the log is what vouches for them."""
    authorize(scope.context.principal, "read")
    tx_id = receipt.get("tx_id")
    delta = find_commit(tx_id, scope) if isinstance(tx_id, str) else None
    if delta is None:
        raise NoemaError(
            "TransactionUnknown",
            "the receipt names no commit that this space keeps, so nothing can vouch for it",
            hint="Only receipts of committed transactions name one.",
        )
    logged: dict[str, Any] = msgspec.to_builtins(committed_receipt(scope.state.meta.space_id, delta))
    claimed = [name for name in _RECEIPT if name in receipt]
    wrong = [name for name in claimed if receipt[name] != logged.get(name)]
    if wrong:
        raise NoemaError(
            "DigestMismatch",
            f"the receipt is not the commit's: {', '.join(wrong)}",
            details={"mismatched": wrong},
        )
    return {
        "integrity_valid": True,
        "digest_valid": True,
        "checked": claimed,
        "attestation": "unsigned; compared with the commit log",
        "receipt_digest": digest_of({name: logged[name] for name in _RECEIPT if name in logged}),
    }


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
