"""Cursors of the lists of conversations: signed, and good for one life of one space and one collection.

What lives here: writing and reading them. What must never live here: the secret, which the collection's counter row
holds (`core.service.conversations`).
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from core.errors import NoemaError
from core.model.base64url import decode_base64url, encode_base64url

_SIGNATURE: Final = 16


def write_cursor(secret: bytes, collection: str, number: int) -> str:
    """The cursor behind which the page below an id lies."""
    raw = number.to_bytes(8, "big") + _sign(secret, collection, number)
    return encode_base64url(raw)


def read_cursor(secret: bytes, collection: str, cursor: str) -> int:
    """The id below which the next page lies.

    Raises:
        NoemaError: `CursorMismatch` if this collection of this space did not give the cursor.
    """
    try:
        raw = decode_base64url(cursor)
    except ValueError:
        raise foreign_cursor() from None
    number = int.from_bytes(raw[:8], "big")
    if len(raw) != 8 + _SIGNATURE or not hmac.compare_digest(raw[8:], _sign(secret, collection, number)):
        raise foreign_cursor()
    return number


def foreign_cursor() -> NoemaError:
    """What is said of a cursor that another list gave."""
    return NoemaError(
        "CursorMismatch", "the cursor does not continue this list", details={"member": "cursor"}
    )


def _sign(secret: bytes, collection: str, number: int) -> bytes:
    text = f"conversations-1\x1f{collection}\x1f{number}".encode()
    return hmac.new(secret, text, hashlib.sha256).digest()[:_SIGNATURE]
