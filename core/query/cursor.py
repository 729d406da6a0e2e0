"""Cursors: opaque, signed, and good for one request only (KIP §44.8, §88.4).

What lives here: sealing and opening, for KQL and for every other family that pages. What must never live here:
what a family does with its claims. A cursor is a place in an answer, not a permission: authority is asked again on
every page, and a change of it invalidates the cursor (KIP §102.27).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from typing import Any, Final

from core.errors import NoemaError
from core.model.instants import Instant

_SIGNATURE_BYTES: Final = 16  # 128 bits of HMAC-SHA-256: forging one is out of reach
_MAX_TEXT: Final = 8_192  # the response schema's bound


def digest(value: Any) -> str:  # a JSON value
    """A short digest of a JSON value, for claims that only have to be compared."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def seal_cursor(family: str, claims: dict[str, Any], key: bytes, *, now: Instant) -> str:
    """A cursor of a family (`kql`, `search`, `list`, ...) that carries claims, JSON values."""
    body = json.dumps({"f": family, "t": now, "c": claims}, separators=(",", ":")).encode()
    text = base64.urlsafe_b64encode(_signature(body, key) + body).rstrip(b"=").decode()
    if len(text) > _MAX_TEXT:
        raise NoemaError("ResourceExhausted", "the place in this answer is too long for a cursor")
    return text


def open_cursor(family: str, text: str, key: bytes, *, now: Instant, ttl_ms: int) -> dict[str, Any]:
    """The claims of a cursor of this family.

    Raises:
        NoemaError: CursorInvalidated for what this service never sealed, CursorTypeMismatch for a cursor of
            another family, CursorExpired for one that is too old.
    """
    claims = _unsealed(text, key)
    if claims is None:
        raise NoemaError("CursorInvalidated", "this is no cursor that can be continued")
    if claims["f"] != family:
        raise NoemaError(
            "CursorTypeMismatch",
            f"this cursor continues {claims['f']}, not {family}",
            details={"expected": family, "actual": claims["f"]},
        )
    if not 0 <= now - claims["t"] <= ttl_ms:
        raise NoemaError("CursorExpired", "the cursor is too old", details={"ttl_ms": ttl_ms})
    return dict(claims["c"])


def _unsealed(text: str, key: bytes) -> dict[str, Any] | None:
    if len(text) > _MAX_TEXT:
        return None
    try:
        raw = base64.b64decode(text.encode() + b"=" * (-len(text) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    signature, body = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
    if not hmac.compare_digest(signature, _signature(body, key)):
        return None
    claims: dict[str, Any] = json.loads(body)
    return claims


def _signature(body: bytes, key: bytes) -> bytes:
    return hmac.new(key, b"noema-cursor-1\0" + body, hashlib.sha256).digest()[:_SIGNATURE_BYTES]
