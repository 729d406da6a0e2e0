"""Receipts and checkpoints, signed and verified (KIP §33.3, §69.1; Transactions §173-§175, Runtime §175).

What lives here: which bytes are signed, and what a signature and the log say of an artifact somebody hands in. What
must never live here: keys, and any word on truth. A good signature shows what the service attested; the log, read
again, shows that it still stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from core.authority import authorize
from core.capsule.format import Proof
from core.capsule.proofs import MAX_PROOFS, Sign, check_proofs, make_proof
from core.errors import NoemaError
from core.meta.transactions import shown_commit
from core.model.checkpoints import CHECKPOINT_DOMAIN, MAX_COMMITS, LogCheckpoint, content_of
from core.model.elements import Json
from core.model.log import Delta
from core.protocol.canonical import digest_of
from core.protocol.response import Receipt
from core.transaction.record import committed_receipt
from core.transaction.scope import Scope

RECEIPT_DOMAIN: Final = "KIP-RECEIPT/2.0"
OWN: Final = "this-deployment"
"""The name under which a deployment knows its own key."""
_SIGNED_STATUS: Final = frozenset({"committed", "no_effect"})
_UNSIGNED: Final = frozenset({"proofs", "extensions"})

_RECEIPT: Final = (
    "status", "tx_id", "space_id", "snapshot_seq", "space_seq", "committed_at", "transaction_class",
    "request_digest", "semantic_plan_digest", "result_digest", "schema_environment_version",
)  # fmt: skip
"""The members of a receipt that the log can vouch for."""


def sign_receipt(receipt: Receipt, sign: Sign) -> Receipt:
    """A receipt of a settled transaction with the service's signature over all that it says."""
    if receipt.status not in _SIGNED_STATUS:
        return receipt
    digest = _receipt_digest(msgspec.to_builtins(receipt))
    created = receipt.committed_at if isinstance(receipt.committed_at, str) else ""
    proof = make_proof(sign, RECEIPT_DOMAIN, digest, scope="receipt", created_at=created)
    return msgspec.structs.replace(receipt, proofs=[proof])


def verify_receipt(receipt: dict[str, Any], scope: Scope) -> dict[str, Json]:
    """A receipt against its signatures, and against the commit it names where the log keeps that.

    Raises:
        NoemaError: ProofInvalid; DigestMismatch where the log says otherwise; TransactionUnknown where there is
            neither a commit nor a good signature of this service to vouch for it.
        Missing: a commit, or what checking a signature came to, must be handed in.
    """
    authorize(scope.context.principal, "read")
    digest = _receipt_digest(receipt)
    reports = _checked(receipt.get("proofs"), RECEIPT_DOMAIN, digest, scope)
    ours = any(report["cryptographically_valid"] and report.get("signer") == OWN for report in reports)
    delta = _commit(receipt, scope)
    if delta is None and not ours:
        raise NoemaError(
            "TransactionUnknown",
            "the receipt names no commit that this space keeps and bears no signature of this service",
            hint="Only receipts of committed transactions name one.",
        )
    checked: list[str] = []
    if delta is not None:
        checked = _compare(receipt, delta, scope.state.meta.space_id)
    return {
        "integrity_valid": True,
        "digest_valid": True,
        "checked": checked,
        "attestation": _attestation(ours=ours, logged=delta is not None),
        "receipt_digest": digest,
        "proofs": reports,
        "signer": OWN if ours else "none" if not reports else "unresolved",
    }


def verify_checkpoint(artifact: dict[str, Any], scope: Scope) -> dict[str, Json]:
    """A checkpoint against its signatures, and the log it covers, read and hashed again, against the checkpoint.

    Raises:
        NoemaError: ArtifactParseError; ProofInvalid; DigestMismatch where the log is not the one it was;
            NotFoundOrNotVisible for another space's; HistoricalSnapshotUnavailable where it is no longer kept.
        Missing: the log, or what checking a signature came to, must be handed in.
    """
    authorize(scope.context.principal, "read")
    checkpoint = _read_checkpoint(artifact)
    reports = _checked(checkpoint.proofs, CHECKPOINT_DOMAIN, digest_of(content_of(checkpoint)), scope)
    meta = scope.state.meta
    if (checkpoint.space_id, checkpoint.instance) != (meta.space_id, meta.instance):
        raise NoemaError(
            "NotFoundOrNotVisible", "the checkpoint is of another space, or of an earlier life of it"
        )
    found = scope.context.given.chain(checkpoint.first, checkpoint.last)
    same = (found.before.hex(), found.after.hex()) == (checkpoint.chain_before, checkpoint.chain)
    if found.broken is not None or not same:
        raise NoemaError(
            "DigestMismatch",
            "the log is not the one the checkpoint was made of",
            details={"first": found.first, "last": found.last, "broken": found.broken},
            hint="Tell the operator: either the stored log or the checkpoint has been changed.",
        )
    ours = any(report["cryptographically_valid"] and report.get("signer") == OWN for report in reports)
    return {
        "integrity_valid": True,
        "digest_valid": True,
        "digest_algorithm": "sha256",
        "covered": {"first": found.first, "last": found.last, "redacted": found.redacted},
        "attestation": _attestation(ours=ours, logged=True),
        "proofs": reports,
        "signer": OWN if ours else "none" if not reports else "unresolved",
    }


def _receipt_digest(receipt: dict[str, Any]) -> str:
    return digest_of({name: value for name, value in receipt.items() if name not in _UNSIGNED})


def _checked(proofs: Any, domain: str, digest: str, scope: Scope) -> list[dict[str, Any]]:  # JSON
    """What each signature is worth; one that is bad condemns the artifact.

    Raises:
        NoemaError: ProofInvalid, ArtifactParseError.
    """
    try:
        read: Sequence[Proof] = msgspec.convert(proofs or [], list[Proof])
    except msgspec.ValidationError as error:
        raise NoemaError("ArtifactParseError", f"proofs: {error}") from error
    if len(read) > MAX_PROOFS:
        raise NoemaError("ArtifactTooLarge", f"an artifact takes at most {MAX_PROOFS} proofs")
    reports = check_proofs(read, domain, digest, scope.context.given.checked)
    if any(report["cryptographically_valid"] is False for report in reports):
        raise NoemaError(
            "ProofInvalid",
            "a signature is not over this content: it was changed, or signed by somebody else's key",
            details={"proofs": reports},
        )
    return [{**report, "local_trust": "not_assessed"} for report in reports]


def _commit(receipt: dict[str, Any], scope: Scope) -> Delta | None:
    tx_id = receipt.get("tx_id")
    return shown_commit(tx_id, scope) if isinstance(tx_id, str) else None


def _compare(receipt: dict[str, Any], delta: Delta, space_id: str) -> list[str]:
    logged: dict[str, Any] = msgspec.to_builtins(committed_receipt(space_id, delta))
    claimed: list[str] = [name for name in _RECEIPT if name in receipt]
    wrong = [name for name in claimed if receipt[name] != logged.get(name)]
    if wrong:
        raise NoemaError(
            "DigestMismatch",
            f"the receipt is not the commit's: {', '.join(wrong)}",
            details={"mismatched": wrong},
        )
    return claimed


def _attestation(*, ours: bool, logged: bool) -> str:
    signed = "signed by this service" if ours else "unsigned"
    return f"{signed}; compared with the log" if logged else f"{signed}; the log no longer keeps the commit"


def _read_checkpoint(artifact: dict[str, Any]) -> LogCheckpoint:
    try:
        checkpoint = msgspec.convert(artifact, LogCheckpoint)
    except msgspec.ValidationError as error:
        raise NoemaError("ArtifactParseError", f"the checkpoint cannot be read: {error}") from error
    if (checkpoint.format, checkpoint.format_version) != ("KIP-Checkpoint", "2.0"):
        raise NoemaError("ArtifactParseError", "the artifact is no KIP-Checkpoint 2.0")
    if not 1 <= checkpoint.first <= checkpoint.last < checkpoint.first + MAX_COMMITS:
        raise NoemaError("ArtifactParseError", f"a checkpoint covers 1 to {MAX_COMMITS} commits")
    return checkpoint
