"""Opaque tokens that only this service can have made: a small JSON value and its authentication code (KIP §78, §88.4).

What lives here: sealing and opening. What must never live here: what a token's value means, or any authority; a
token names a coordinate and is worth nothing without permission to read it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any, Final

from core.model.base64url import decode_base64url, encode_base64url
from core.protocol.canonical import canonical_json

_CODE_BYTES: Final = 16


def seal(family: str, value: Any, key: bytes) -> str:  # a JSON value
    """A token of a family around a value; `key` is the service's secret."""
    body = canonical_json(value)
    return f"{family}.{encode_base64url(_code(family, body, key) + body)}"


def unseal(family: str, token: str, key: bytes) -> Any:  # the JSON value, or None
    """The value of a token of that family, or None if it is not one that this service made."""
    prefix, _, text = token.partition(".")
    if prefix != family:
        return None
    try:
        raw = decode_base64url(text)
    except ValueError:
        return None
    code, body = raw[:_CODE_BYTES], raw[_CODE_BYTES:]
    if encode_base64url(raw) != text or not hmac.compare_digest(code, _code(family, body, key)):
        return None  # also where only the spare bits of the last digit differ: one token, one spelling
    return json.loads(body)


def family_of(token: str) -> str:
    """The family a token says it is of; whether it is, `unseal` tells."""
    return token.partition(".")[0]


def _code(family: str, body: bytes, key: bytes) -> bytes:
    return hmac.new(key, family.encode() + b"\x00" + body, hashlib.sha256).digest()[:_CODE_BYTES]
