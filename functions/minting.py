"""Makes keys and tokens, for the command line and for tests. The service itself never holds a private key."""

from __future__ import annotations

from typing import Any, Final

import cbor2
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cwt import COSE, COSEKey

from core.model.base64url import encode_base64url
from functions.cwts import AUD, EXP, IAT, SCOPE, SUB
from functions.keys import EDDSA, decode_base64

DEFAULT_LIFE_S: Final = 3600


def generate_key() -> tuple[str, str]:
    """A new Ed25519 key pair, private and public, each 32 raw bytes in base64url without padding."""
    private = Ed25519PrivateKey.generate()
    return encode_base64url(private.private_bytes_raw()), encode_base64url(
        private.public_key().public_bytes_raw()
    )


def public_key_of(private_key: str) -> str:
    """The public half of a private key, in the form that `ED25519_PUBKEYS` takes."""
    return encode_base64url(
        Ed25519PrivateKey.from_private_bytes(decode_base64(private_key)).public_key().public_bytes_raw()
    )


def mint(
    private_key: str,
    *,
    subject: str,
    audience: str,
    scope: str,
    now_s: int,
    life_s: int = DEFAULT_LIFE_S,
    kid: bytes | None = None,
) -> str:
    """A token that says who (`subject`) may do what (`scope`) with which space (`audience`, or `*`).

    Args:
        private_key: 32 raw bytes in base64.
        subject: a principal, up to 128 printable characters.
        audience: a space id, or `*` for every space and for `/admin`.
        scope: read, write or `*`.
        now_s: Unix seconds.
        life_s: seconds until it expires; the service admits a day, and an hour for audience `*`.
        kid: the name of the key, if the service knows it by one.
    """
    claims = {SUB: subject, AUD: audience, EXP: now_s + life_s, IAT: now_s, SCOPE: scope}
    return sign_claims(private_key, claims, kid=kid)


def sign_claims(private_key: str, claims: dict[Any, Any], *, kid: bytes | None = None) -> str:
    """A COSE_Sign1 over any claims, base64url without padding (tests sign what `mint` never would)."""
    secret = decode_base64(private_key)
    public = Ed25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
    key = COSEKey.new({1: 1, 3: EDDSA, -1: 6, -2: public, -4: secret, **({2: kid} if kid else {})})
    signed = COSE.new(alg_auto_inclusion=True, kid_auto_inclusion=kid is not None).encode_and_sign(
        cbor2.dumps(claims, canonical=True), key
    )
    return encode_base64url(signed if isinstance(signed, bytes) else cbor2.dumps(signed))
