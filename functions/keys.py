"""Public keys as the operator writes them: base64 of a raw Ed25519 key or of a COSE_Key (contract §2.1).

All four spellings of base64 are read: the standard and the URL-safe alphabet, padded or not. Nothing here is
secret, and nothing here verifies.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

import msgspec

from core.errors import NoemaError
from functions.plain import CborReader

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}\Z")
_KTY, _KID, _ALG, _CRV, _X = 1, 2, 3, -1, -2  # COSE_Key labels (RFC 9052 §7, RFC 9053 §7.2)
_OKP, _ED25519, EDDSA = 1, 6, -8


class PublicKey(msgspec.Struct, frozen=True):
    """An Ed25519 verification key; `kid` names it if the operator gave it a name."""

    x: bytes
    kid: bytes | None = None


def decode_base64(text: str) -> bytes:
    """Base64 in either alphabet, padded or not.

    Raises:
        ValueError: anything else, including blanks, stray padding and a dangling character.
    """
    standard = text.replace("-", "+").replace("_", "/")
    if _BASE64.match(standard) is None:
        raise ValueError("not base64")
    body = standard.rstrip("=")
    if len(body) % 4 == 1 or ("=" in standard and len(standard) % 4):
        raise ValueError("not base64: it has been cut")
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error


def parse_public_key(text: str) -> PublicKey:
    """One key of a list such as `ED25519_PUBKEYS`.

    Raises:
        ValueError: neither 32 raw bytes nor a COSE_Key of an Ed25519 public key.
    """
    raw = decode_base64(text.strip())
    if len(raw) == 32:
        return PublicKey(raw)
    reader = CborReader(raw, integer_keys=True)
    try:
        key = reader.item(0)
    except NoemaError as error:
        raise ValueError("neither a raw Ed25519 key of 32 bytes nor a COSE_Key") from error
    if not isinstance(key, dict) or reader.at != len(raw):
        raise ValueError("neither a raw Ed25519 key of 32 bytes nor a COSE_Key")
    if (key.get(_KTY), key.get(_CRV)) != (_OKP, _ED25519) or key.get(_ALG, EDDSA) != EDDSA:
        raise ValueError("a COSE_Key must be of type OKP on the curve Ed25519")
    if -4 in key:
        raise ValueError("this is a private key; configure the public one")
    x, kid = key.get(_X), key.get(_KID)
    if not isinstance(x, bytes) or len(x) != 32 or not isinstance(kid, bytes | None):
        raise ValueError("a COSE_Key needs the 32 bytes of x, and a kid, if any, in bytes")
    return PublicKey(x, kid)
