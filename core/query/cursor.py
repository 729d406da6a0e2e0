"""Cursors: opaque, signed, and good for one request only (KIP §44.8, §88.4).

What lives here: sealing and opening, for KQL and for every other family that pages. What must never live here:
what a family does with its claims. A cursor is a place in an answer, not a permission: authority is asked again on
every page, and a change of it invalidates the cursor (KIP §102.27).
"""

from __future__ import annotations

from typing import Any, Final

from core.errors import NoemaError
from core.model.instants import Instant
from core.protocol.canonical import digest_of
from core.protocol.tokens import family_of, seal, unseal

_MAX_TEXT: Final = 8_192  # the response schema's bound


def digest(value: Any) -> str:  # a JSON value
    """A short digest of a JSON value, for claims that only have to be compared."""
    return digest_of(value).removeprefix("sha256:")[:32]


def seal_cursor(family: str, claims: dict[str, Any], key: bytes, *, now: Instant) -> str:
    """A cursor of a family (`kql`, `search`, `list`, ...) that carries claims, JSON values.

    Raises:
        NoemaError: ResourceExhausted if it would be longer than a response may carry.
    """
    text = seal(family, {"at": now, "claims": claims}, key)
    if len(text) > _MAX_TEXT:
        raise NoemaError("ResourceExhausted", "the place in this answer is too long for a cursor")
    return text


def open_cursor(family: str, text: str, key: bytes, *, now: Instant, ttl_ms: int) -> dict[str, Any]:
    """The claims of a cursor of this family.

    Raises:
        NoemaError: CursorInvalidated for what this service never sealed, CursorTypeMismatch for a cursor of
            another family, CursorExpired for one that is too old.
    """
    stated = family_of(text)
    token = unseal(stated, text, key) if len(text) <= _MAX_TEXT else None
    if not isinstance(token, dict) or "claims" not in token:
        raise NoemaError("CursorInvalidated", "this is no cursor that can be continued")
    if stated != family:
        raise NoemaError(
            "CursorTypeMismatch",
            f"this cursor continues {stated}, not {family}",
            details={"expected": family, "actual": stated},
        )
    if not 0 <= now - token["at"] <= ttl_ms:
        raise NoemaError("CursorExpired", "the cursor is too old", details={"ttl_ms": ttl_ms})
    return dict(token["claims"])
