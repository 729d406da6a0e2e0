"""How much of an answer a model gets at once, and the cursor that goes on from there.

What lives here: sizes in estimated tokens, cutting a list of texts at a budget, cursors. What must never live
here: what the texts are. A cursor says where to go on in the answer to the very same call; it holds no text and
gives no right. The call is made again, so what has changed meanwhile may shift it, except where the answer is on
record (`Place.run`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.model.base64url import decode_base64url, encode_base64url

BUDGET: Final = 2_000  # estimated tokens of one answer
CUT: Final = " [cut here; it goes on behind the cursor]"
_BYTES: Final = 4  # of UTF-8 in a token
_LONGEST: Final = 200  # characters of a cursor


def estimate_tokens(text: str) -> int:
    """Four bytes of UTF-8 are a token: near enough for English and Chinese alike, and the same everywhere."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES)


class Place(msgspec.Struct, frozen=True, order=True):
    """Where an answer begins: which item, and which character of it.

    run: the record of the run that gave the answer, where it is on record and need not be made again.
    """

    item: int = 0
    char: int = 0
    run: int = 0


class Piece(msgspec.Struct, frozen=True):
    """One item of a page: its number in the whole answer and its text, which may be a part of it."""

    item: int
    text: str
    whole: bool


class Page(msgspec.Struct, frozen=True):
    """What fits, and where the rest begins; None if there is none."""

    pieces: tuple[Piece, ...]
    rest: Place | None


Cost = Callable[
    [int, str], int
]  # (item, its text or a part of it) -> estimated tokens of what it adds to the answer


def _plain(item: int, text: str) -> int:  # noqa: ARG001 - as `Cost`
    return estimate_tokens(text)


def take(
    texts: Sequence[str],
    start: Place = Place(),  # noqa: B008 - frozen
    budget: int = BUDGET,
    cost: Cost = _plain,
) -> Page:
    """As many of the texts as fit, at least a part of one. Only a text that alone is too long is cut."""
    pieces: list[Piece] = []
    left, char = budget, start.char
    for item in range(start.item, len(texts)):
        text = texts[item][char:]
        if not text and char:
            char = 0
            continue
        size = cost(item, text)
        if size <= left:
            pieces.append(Piece(item, text, whole=char == 0))
            left -= size
        elif pieces:
            return Page(tuple(pieces), Place(item, char))
        elif len(text) <= 1:  # what comes with it is over the budget alone; there is nothing to cut
            pieces.append(Piece(item, text, whole=char == 0))
            left = 0
        else:
            end = fitting(text, left, partial(_with_mark, cost, item))
            pieces.append(Piece(item, text[:end] + CUT, whole=False))
            return Page(tuple(pieces), Place(item, char + end))
        char = 0
    return Page(tuple(pieces), None)


def _with_mark(cost: Cost, item: int, part: str) -> int:
    """What a part costs that ends with the mark of a cut."""
    return cost(item, part + CUT)


def fitting(text: str, budget: int, cost: Callable[[str], int] = estimate_tokens) -> int:
    """How many characters of a text fit; at least one, and at the end of a line or word where one is near."""
    low, high = 1, max(1, min(len(text), budget * _BYTES))  # no character has less than a byte
    while low < high:
        middle = (low + high + 1) // 2
        if cost(text[:middle]) <= budget:
            low = middle
        else:
            high = middle - 1
    near = text[:low]
    for border in ("\n", " "):
        place = near.rfind(border)
        if place > low * 3 // 4:
            return place + 1
    return low


def shortened(text: str, most: int) -> str:
    """A text of the caller's own, as far as an answer repeats it: whole, or its beginning and a mark."""
    return text if len(text) <= most else text[: most - 1] + "…"


# --- cursors


def write_cursor(tool: str, arguments: Mapping[str, Any], place: Place) -> str:
    """The cursor that continues this call at a place."""
    raw = f"{place.item}.{place.char}.{place.run}.".encode() + _digest(tool, arguments)
    return encode_base64url(raw)


def read_cursor(tool: str, arguments: Mapping[str, Any]) -> Place:
    """Where a call's `cursor` says to begin; the beginning if it has none.

    Raises:
        NoemaError: `CursorMismatch` if another call, or nobody, gave it.
    """
    cursor = arguments.get("cursor")
    if cursor is None:
        return Place()
    place = _opened(cursor, _digest(tool, arguments))
    if place is None:
        raise NoemaError(
            "CursorMismatch", "the cursor does not continue this call", details={"member": "cursor"}
        )
    return place


def _opened(cursor: Any, digest: bytes) -> Place | None:  # a JSON value
    """The place in a cursor of that digest; None if it is none."""
    if not isinstance(cursor, str) or not cursor.isascii() or len(cursor) > _LONGEST:
        return None
    try:
        item, char, run, found = decode_base64url(cursor).split(b".", 3)
        return Place(int(item), int(char), int(run)) if found == digest else None
    except ValueError:
        return None


def _digest(tool: str, arguments: Mapping[str, Any]) -> bytes:
    """Of a call without its cursor, so that a cursor fits the call that gave it."""
    rest = {name: value for name, value in arguments.items() if name != "cursor"}
    text = json.dumps([tool, rest], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:9]
