"""Proofs: which bytes a signature is over, and what checking several of them says (design §131-§143).

What lives here: the signed statement with its domain, proofs made and read. What must never live here: keys. Whether
a signature is good, whose it is, and whether that somebody is trusted are three questions with three answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from core.capsule.format import Proof
from core.model.base64url import decode_base64url, encode_base64url
from core.model.elements import Json
from core.model.proofs import Signature, Verdict
from core.protocol.canonical import canonical_json

CAPSULE_DOMAIN: Final = "KIP-CAPSULE/2.0"
PACKAGE_DOMAIN: Final = "KIP-SCHEMA-PACKAGE/2.0"
SUITE: Final = "Ed25519"
CAPSULE_SCOPE: Final = "capsule_payload"
MAX_PROOFS: Final = 16

Check = Callable[[str, bytes, bytes], Verdict]
Sign = Callable[[bytes], Signature]


def statement(domain: str, fields: dict[str, Json]) -> bytes:
    """The bytes a signature is over. The domain keeps a signature for one purpose from serving another.

    `("KIP-CAPSULE/2.0", {"content_digest": "sha256:.."})` -> `{"content_digest":"sha256:..","domain":"KIP-CAPSULE/2.0"}`
    """
    return canonical_json({**fields, "domain": domain})


def make_proof(sign: Sign, domain: str, digest: str, *, scope: str, created_at: str) -> dict[str, Json]:
    """A proof over a content digest, as JSON."""
    signed = sign(_signed(domain, digest, SUITE, scope, created_at))
    return {
        "type": "signature",
        "suite": SUITE,
        "verification_method": signed.key_id,
        "scope": scope,
        "created_at": created_at,
        "signature": encode_base64url(signed.value),
    }


def check_proofs(proofs: Sequence[Proof], domain: str, digest: str, check: Check) -> list[dict[str, Any]]:
    """What each proof is worth: one report a proof, in order; `cryptographically_valid` None means not understood.

    The time of a proof and the name it gives itself are the signer's own words.
    """
    return [_report(proof, domain, digest, check) for proof in proofs]


def _report(proof: Proof, domain: str, digest: str, check: Check) -> dict[str, Any]:
    verdict = Verdict(valid=None)
    value = _decoded(proof.signature)
    if proof.suite == SUITE and value is not None:
        signed = _signed(domain, digest, proof.suite, proof.scope, proof.created_at)
        verdict = check(proof.verification_method, signed, value)
    elif proof.suite == SUITE:
        verdict = Verdict(valid=False)
    report: dict[str, Any] = {
        "suite": proof.suite,
        "verification_method": proof.verification_method,
        "scope": proof.scope,
        "cryptographically_valid": verdict.valid,
        "signer_identity": "resolved" if verdict.signer else "unresolved",
    }
    if verdict.signer:
        report["signer"] = verdict.signer
    if proof.created_at is not None:
        report["claimed_time"] = proof.created_at
    return report


def _signed(domain: str, digest: str, suite: str, scope: str, created_at: str | None) -> bytes:
    fields: dict[str, Json] = {"content_digest": digest, "suite": suite, "scope": scope}
    return statement(domain, fields if created_at is None else {**fields, "created_at": created_at})


def _decoded(text: str) -> bytes | None:
    try:
        return decode_base64url(text)
    except ValueError:
        return None
