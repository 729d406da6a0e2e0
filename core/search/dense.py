"""Dense search: how near in meaning the elements of one state lie to one query.

What lives here: the values a dense search gives, and the arithmetic over arrays of vectors. What must never live
here: an embedder, storage, and which elements a caller may see (the caller says so). A similarity is the cosine of
two vectors of the same model: relevance, never belief.

numpy is handed in, never imported: without it there is no dense search, and everything else works.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, Literal

import msgspec

Arrays = Any  # the module numpy, handed in

Degraded = Literal[
    "no_embedder",  # none is configured
    "no_arrays",  # numpy is not installed
    "embedder_unavailable",  # it did not answer in time
    "embedder_refused",  # it will not answer: a key or a model that is wrong
    "embedder_garbled",  # it answered with something else than vectors of its model
    "not_indexed",  # nothing has been embedded with this model yet
    "partly_indexed",  # some older part of the memory has not
    "lagging",  # the newest commits have not
]
"""Why a dense search does not cover the whole state."""

_FIRST: Final = 512  # how many are put in order before anybody asks for more


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """What a dense search knew of a state.

    model: whose vectors; None without an embedder. vectors: how many were compared. missing: texts of the newest
    commits without a vector. index_seq: everything up to this `space_seq` was compared; state_seq: where the state
    stands. degraded: why it was not all of it, None if it was. bounded: only the nearest were told apart exactly.
    """

    model: str | None
    vectors: int = 0
    missing: int = 0
    index_seq: int = 0
    state_seq: int = 0
    degraded: Degraded | None = None
    bounded: bool = False

    @property
    def usable(self) -> bool:
        """Whether anything could be compared; an empty memory can."""
        return self.vectors > 0 or self.degraded is None


class Scored(msgspec.Struct, frozen=True):
    """Some rows and how near each is. scores: NaN for a row that does not count. letters: the kinds, as bytes."""

    scores: Any  # float32, one a row
    letters: Any  # uint8, one a row
    id_of: Callable[[int], str]
    row_of: Callable[[str], int | None]


class Dense:
    """How near the elements of one state lie to one query. Made by `core.service.vectors`; empty if degraded."""

    def __init__(self, coverage: Coverage, parts: Collection[Scored] = (), arrays: Arrays = None) -> None:
        self.coverage = coverage
        self._parts = list(parts)
        self._np = arrays

    @property
    def degraded(self) -> Degraded | None:
        """Why this does not cover the whole state, or None; must be told to whoever gets an answer."""
        return self.coverage.degraded

    def of(self, ids: Collection[str]) -> dict[str, float]:
        """The similarities of some elements, as far as they have vectors."""
        out: dict[str, float] = {}
        for element_id in ids:
            for part in self._parts:
                row = part.row_of(element_id)
                if row is not None:
                    score = float(part.scores[row])
                    if not math.isnan(score):
                        out[element_id] = score
                        break
        return out

    def ranked(self, letters: str, limit: int | None = None) -> Iterator[tuple[str, float]]:
        """Elements of some kinds (by the letters of their ids) and their similarities, nearest first.

        Ties stand in the order of the index, which is the same every time.
        """
        if not self._parts:
            return
        scores = self._of_kinds(letters)
        count = int(self._np.count_nonzero(~self._np.isnan(scores)))
        wanted = count if limit is None else min(limit, count)
        starts = self._starts()
        given = 0
        for size in (min(_FIRST, wanted), wanted):
            if given < size:
                order = self._nearest(scores, size)
                for place in order[given:size]:
                    part = int(self._np.searchsorted(starts, place, side="right")) - 1
                    yield self._parts[part].id_of(int(place - starts[part])), float(scores[place])
                given = size

    def spread(self, letters: str) -> tuple[float, float]:
        """Mean and standard deviation of the similarities of some kinds; (0, 1) where there are none or all are equal."""
        if not self._parts:
            return 0.0, 1.0
        scores = self._of_kinds(letters)
        scores = scores[~self._np.isnan(scores)]
        if not len(scores):
            return 0.0, 1.0
        deviation = float(scores.std(dtype="float64"))
        return float(scores.mean(dtype="float64")), deviation if deviation > 1e-9 else 1.0

    def _of_kinds(self, letters: str) -> Any:
        """All rows' scores in one array, NaN for those of other kinds."""
        np = self._np
        wanted = np.frombuffer(letters.encode("ascii"), dtype=np.uint8)
        return np.concatenate(
            [np.where(np.isin(part.letters, wanted), part.scores, np.float32("nan")) for part in self._parts]
        )

    def _starts(self) -> Any:
        lengths = [len(part.scores) for part in self._parts]
        return self._np.cumsum([0, *lengths[:-1]])

    def _nearest(self, scores: Any, count: int) -> Any:
        """The places of the `count` greatest scores, in order; equal scores in order of their places."""
        np = self._np
        if count == 0:
            return np.empty(0, dtype=np.int64)
        valid = np.flatnonzero(~np.isnan(scores))
        if count < len(valid):
            floor = np.partition(scores[valid], len(valid) - count)[len(valid) - count]
            valid = valid[scores[valid] >= floor]
        return valid[np.argsort(-scores[valid], kind="stable")][:count]


def nothing(coverage: Coverage) -> Dense:
    """A dense search that could compare nothing, and says why."""
    return Dense(coverage)
