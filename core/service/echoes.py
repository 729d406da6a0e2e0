"""Echoes: what was served from a memory lately, so that the same text sent back is known for what it is.

What lives here: the use case of noting and asking. What must never live here: who serves and who asks (the
transports), and the texts: what is kept are short keyed digests, beside the log and bounded.

An agent that recalls a text and then hands its whole conversation back would make the memory confirm itself. So
what was served is noted in one row of the space: the newest `KEPT` digests, each for `WINDOW_MS`. It is best
effort: a note that cannot be written is lost, and then an echo passes. It never keeps a text from being served.
"""

from __future__ import annotations

import hashlib
import re
import struct
import unicodedata
from collections.abc import Iterable
from typing import Final

from core.ports import Clock, Put, Refused, Row, Table, Unavailable, When
from core.storage.layout import echo_sk, space_pk

KEPT: Final = 256  # digests of a space
WINDOW_MS: Final = 24 * 3600 * 1000
SHORTEST: Final = 8  # characters; a shorter text is said again by chance
_DIGEST: Final = 8  # bytes
_ENTRY: Final = struct.Struct(f">I{_DIGEST}s")  # minute, digest
_RENEWED_MS: Final = 3600 * 1000
_MINUTE_MS: Final = 60_000
_TRIES: Final = 2  # of a note: a recall does not wait long for it
_LEAD: Final = re.compile(r"^(?:\s|[>*•\-–]|\d{1,3}[.)]|\[\d{1,3}\])+")
_SPACE: Final = re.compile(r"\s+")


class Echoes:
    """Notes what is served and recognises it. Safe to share between threads."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock

    def served(self, space_id: str, texts: Iterable[str], scope: str = "") -> None:
        """Note that these texts were served from a part of the memory (`scope`; empty for all of it)."""
        now = self._clock.now()
        fresh = list(dict.fromkeys(_digest(space_id, scope, text) for text in texts if _counts(text)))[:KEPT]
        if not fresh:
            return
        for _ in range(_TRIES):
            try:
                row = self._table.get(space_pk(space_id), echo_sk())
                if _stands(row, fresh, now):
                    return
                self._table.transact([_written(space_id, row, fresh, now)])
            except Refused:
                continue  # another answer was noted meanwhile
            except Unavailable:
                return
            return

    def known(self, space_id: str, texts: Iterable[str], scopes: Iterable[str] = ("",)) -> set[str]:
        """Those of the texts that were served lately from one of the scopes. An unreadable note knows none."""
        return set(self.known_from(space_id, texts, scopes))

    def known_from(
        self, space_id: str, texts: Iterable[str], scopes: Iterable[str]
    ) -> dict[str, frozenset[str]]:
        """The same, and for each of them the scopes that it was served from."""
        wanted = [text for text in texts if _counts(text)]
        if not wanted:
            return {}
        try:
            row = self._table.get(space_pk(space_id), echo_sk())
        except Unavailable:
            return {}
        seen = {digest for _, digest in _entries(row, self._clock.now())}
        places = tuple(scopes)
        found = {
            text: frozenset(scope for scope in places if _digest(space_id, scope, text) in seen)
            for text in wanted
        }
        return {text: served for text, served in found.items() if served}


def _written(space_id: str, row: Row | None, fresh: list[bytes], now: int) -> Put:
    kept = [entry for entry in _entries(row, now) if entry[1] not in fresh]
    minute = now // _MINUTE_MS
    entries = [*kept, *((minute, digest) for digest in fresh)][-KEPT:]
    turn = 0 if row is None else _turn(row)
    note: Row = {
        "seen": b"".join(_ENTRY.pack(at, digest) for at, digest in entries),
        "turn": turn + 1,
        "ttl": (now + WINDOW_MS) // 1000,
    }
    when = When(absent=True) if row is None else When(equals={"turn": turn})
    return Put(space_pk(space_id), echo_sk(), note, when)


def _stands(row: Row | None, fresh: list[bytes], now: int) -> bool:
    """Whether all of it was noted within the last hour: then a note more is no news."""
    since = (now - _RENEWED_MS) // _MINUTE_MS
    return {digest for at, digest in _entries(row, now) if at >= since}.issuperset(fresh)


def _turn(row: Row) -> int:
    turn = row.get("turn")
    return turn if isinstance(turn, int) else 0


def _entries(row: Row | None, now: int) -> list[tuple[int, bytes]]:
    """The notes that still count, oldest first."""
    seen = row.get("seen") if row else None
    if not isinstance(seen, bytes):
        return []
    since = (now - WINDOW_MS) // _MINUTE_MS
    return [(at, digest) for at, digest in _ENTRY.iter_unpack(seen) if at >= since]


def _counts(text: str) -> bool:
    return len(plain(text)) >= SHORTEST


def plain(text: str) -> str:
    """A text without what quoting, lists and layout add: `'> 1. I  like Tea.'` -> `i like tea`."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _SPACE.sub(" ", _LEAD.sub("", folded)).strip(" .\"'“”")


def _digest(space_id: str, scope: str, text: str) -> bytes:
    key = hashlib.blake2b(f"{space_id}\x1f{scope}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
    said = plain(text).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(said, digest_size=_DIGEST, key=key).digest()
