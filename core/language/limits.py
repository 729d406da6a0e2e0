"""The limits every command text meets before anything is done with it.

What lives here: the numbers, each with its reason. What must never live here: limits of a transaction, a result
or a space; they depend on a deployment and its tiers.
"""

from __future__ import annotations

from typing import Final

MAX_TEXT_BYTES: Final = 256 * 1024
"""A command's length in UTF-8. Material belongs in parameters and ingest, not in the text."""

MAX_NESTING: Final = 64
"""Brackets within brackets. Bounds the recursion of everything that walks a tree."""

MIN_INTEGER: Final = -(2**63)
MAX_INTEGER: Final = 2**64 - 1
"""What a JSON reader may be expected to keep exactly: a signed or an unsigned number of 64 bits."""
