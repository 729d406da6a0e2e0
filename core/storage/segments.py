"""`SegmentsView`: a manifest's segments as a View, reading only what a lookup returns.

An id is looked up in the one segment whose range has it. A key or a word is looked up in the segments whose
filter may have it, and its postings stay postings until somebody takes ids out of them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import Final, overload

from core.model.elements import AnyElement
from core.model.ids import LETTER, Kind, sort_key
from core.state.view import Counts, TextStats
from core.storage.blocks import Pieces, Want
from core.storage.keyfilter import candidates, place
from core.storage.manifest import Manifest
from core.storage.postings import fingerprint
from core.storage.segment import ID_WIDTH, Segment, id_of

_FEW: Final = 2  # segments; so few are asked at once, without asking the filter first


class Postings(Sequence[str]):
    """Ids of elements, in order of creation, made only when taken: id columns and ordinals in them."""

    __slots__ = ("_ends", "_parts")

    def __init__(self, parts: Sequence[tuple[bytes, array[int]]]) -> None:
        self._parts = parts
        self._ends = list(accumulate(len(ordinals) for _, ordinals in parts))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[str]:
        for column, ordinals in self._parts:
            for ordinal in ordinals:
                yield id_of(column, ordinal)

    def __reversed__(self) -> Iterator[str]:
        for column, ordinals in reversed(self._parts):
            for ordinal in reversed(ordinals):
                yield id_of(column, ordinal)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(index)
        part = bisect_right(self._ends, at)
        column, ordinals = self._parts[part]
        return id_of(column, ordinals[at - (self._ends[part - 1] if part else 0)])


class Occurrences(Sequence[tuple[str, int]]):
    """Ids with how often a term stands in their text, made only when taken."""

    __slots__ = ("_ids", "_times")

    def __init__(self, parts: Sequence[tuple[bytes, array[int], array[int]]]) -> None:
        self._ids = Postings([(column, ordinals) for column, ordinals, _ in parts])
        self._times = list(chain.from_iterable(times for _, _, times in parts))

    def __len__(self) -> int:
        return len(self._times)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return zip(self._ids, self._times, strict=True)

    def __reversed__(self) -> Iterator[tuple[str, int]]:
        return zip(reversed(self._ids), reversed(self._times), strict=True)

    @overload
    def __getitem__(self, index: int) -> tuple[str, int]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[str, int]]: ...
    def __getitem__(self, index: int | slice) -> tuple[str, int] | Sequence[tuple[str, int]]:
        if isinstance(index, slice):
            return list(zip(self._ids[index], self._times[index], strict=True))
        return self._ids[index], self._times[index]


class SegmentsView:
    """The state a manifest holds. Implements `View`; nothing is read until something is looked up."""

    def __init__(self, manifest: Manifest, pieces: Pieces) -> None:
        self.manifest = manifest
        self._pieces = pieces
        self._segments = [Segment(ref, pieces) for ref in manifest.segments]
        self._firsts = [ref.first for ref in manifest.segments]
        self.counts: Counts = manifest.counts
        self.text_stats: TextStats = manifest.text

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments in order."""
        return self._segments

    def segment_of(self, element_id: str) -> Segment | None:
        """The one segment that can hold an id, or None."""
        at = bisect_right(self._firsts, sort_key(element_id)) - 1
        if at < 0 or sort_key(element_id) > self._segments[at].ref.last:
            return None
        return self._segments[at]

    def get(self, element_id: str) -> AnyElement | None:
        """The element, or None."""
        segment = self.segment_of(element_id)
        return None if segment is None else segment.get(element_id)

    def find(self, key: str) -> Sequence[str]:
        """Ids under an index key, in order of creation."""
        found = fingerprint(self.manifest.seed, "k", key)
        segments = self._opened(found)
        self._pieces.load([segment.want_key(found) for segment in segments])
        parts = []
        for segment in segments:
            ordinals = segment.having_key(found)
            if ordinals:
                parts.append((segment.ids(), ordinals))
        return Postings(parts) if parts else ()

    def count(self, key: str) -> int:
        """How many ids are under an index key."""
        found = fingerprint(self.manifest.seed, "k", key)
        segments = self._opened(found)
        self._pieces.load([segment.want_key(found) for segment in segments])
        return sum(segment.count_key(found) for segment in segments)

    def ids(self, kind: Kind, after: str | None = None) -> Iterator[str]:
        """Every id of a kind in order of creation, after a given one."""
        letter, floor = ord(LETTER[kind]), "" if after is None else sort_key(after)
        for segment in self._segments:
            if segment.ref.last <= floor or not getattr(segment.ref.counts, kind):
                continue
            column = segment.ids()
            begin = segment.seek(floor.encode("ascii"))
            for ordinal in range(begin, segment.ref.count):
                if column[ordinal * ID_WIDTH + ID_WIDTH - 1] == letter:
                    found = id_of(column, ordinal)
                    if sort_key(found) > floor:
                        yield found

    def word(self, term: str) -> Sequence[tuple[str, int]]:
        """Elements whose text has a term, with how often, oldest first."""
        found = fingerprint(self.manifest.seed, "w", term)
        segments = self._opened(found)
        lengths = [segment.want_lengths() for segment in segments]  # whoever ranks will ask for them next
        self._pieces.load([*(segment.want_word(found) for segment in segments), *lengths])
        parts = []
        for segment in segments:
            ordinals, times = segment.having_word(found)
            if ordinals:
                parts.append((segment.ids(), ordinals, times))
        return Occurrences(parts) if parts else ()

    def text_length(self, element_id: str) -> int:
        """How many terms an element's text has."""
        segment = self.segment_of(element_id)
        ordinal = None if segment is None else segment.ordinal(element_id)
        return 0 if segment is None or ordinal is None else segment.text_length(ordinal)

    def _opened(self, found: int) -> Sequence[Segment]:
        """The segments that may have a fingerprint, their indexes read together."""
        segments = self._may_have(found)
        self._pieces.load([segment.want_index() for segment in segments])
        return segments

    def _may_have(self, found: int) -> Sequence[Segment]:
        """The segments whose filter has a fingerprint, in order."""
        if len(self._segments) <= _FEW:
            return self._segments
        at, length = place(found, self.manifest.filter_blocks, len(self._segments))
        row = self._pieces.piece(Want(self.manifest.filter_key, at, length, _as_it_is))
        return [self._segments[index] for index in candidates(row, found)]


def _as_it_is(data: bytes) -> tuple[bytes, int]:
    return data, len(data)
