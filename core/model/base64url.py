"""Bytes as text that may stand in a URL: base 64 in its URL-safe alphabet, without padding (RFC 4648 §5).

What lives here: that spelling, and reading it. What must never live here: what the bytes are.
"""

from __future__ import annotations

import base64


def encode_base64url(data: bytes) -> str:
    """The text that bytes are: three of them are four characters, one or two that are left are two or three."""
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def decode_base64url(text: str) -> bytes:
    """The bytes in a text, with or without its padding.

    Several texts are one value, as a last character may have bits to spare; who needs one spelling compares it with
    `encode_base64url` of what was read.

    Raises:
        ValueError: it is no such text.
    """
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
