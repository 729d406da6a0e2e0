"""Postings over layers: what a layer adds to and takes from the answer of the layer below.

A layer keeps only the **difference** that it makes to each key, so a key that it does not change is answered by
the layer below as it is, however long that answer; and a long answer that it does change is combined lazily.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from heapq import merge
from itertools import chain
from typing import Final, overload

from core.model.ids import sort_key

_SHORT: Final = 256  # answers up to this long are plain lists


class Difference[V]:
    """What a layer changes: key -> id -> value of new postings, and key -> ids of postings no longer there."""

    __slots__ = ("added", "removed")

    def __init__(self) -> None:
        self.added: dict[str, dict[str, V]] = {}
        self.removed: dict[str, set[str]] = {}

    def add(self, key: str, element_id: str, value: V) -> None:
        """A posting that what is below does not have, or has with another value and was removed."""
        self.added.setdefault(key, {})[element_id] = value

    def remove(self, key: str, element_id: str) -> None:
        """Take out a posting: this layer's own, or else the one below."""
        mine = self.added.get(key)
        if mine is not None and element_id in mine:
            del mine[element_id]
            if not mine:
                del self.added[key]
        else:
            self.removed.setdefault(key, set()).add(element_id)

    def over(self, lower: Difference[V]) -> Difference[V]:
        """The one difference that `lower` and then this one make. Shares what neither changes."""
        out: Difference[V] = Difference()
        out.added, out.removed = dict(lower.added), dict(lower.removed)
        for key, gone in self.removed.items():
            own = lower.added.get(key, {})
            left = {found: value for found, value in own.items() if found not in gone}
            below = gone - own.keys()
            if left:
                out.added[key] = left
            else:
                out.added.pop(key, None)
            if below:
                out.removed[key] = out.removed.get(key, set()) | below
        for key, mine in self.added.items():
            out.added[key] = {**out.added[key], **mine} if key in out.added else mine
        return out


def combine[T](
    older: Sequence[T], removed: AbstractSet[str], own: Sequence[T], id_of: Callable[[T], str]
) -> Sequence[T]:
    """The answer below without what was removed, and with a layer's own in order of creation."""
    if not removed and not own:
        return older
    if len(older) + len(own) <= _SHORT:
        left = [item for item in older if id_of(item) not in removed] if removed else older
        return list(merge(left, own, key=lambda item: sort_key(id_of(item))))
    return Combined(older, frozenset(removed), own, id_of)  # a layer being written changes its set


class Combined[T](Sequence[T]):
    """A long answer, changed a little; made only as far as it is taken."""

    __slots__ = ("_id_of", "_later", "_older", "_own", "_removed", "_whole")

    def __init__(
        self, older: Sequence[T], removed: frozenset[str], own: Sequence[T], id_of: Callable[[T], str]
    ) -> None:
        self._older = older
        self._removed = removed
        self._own = own
        self._id_of = id_of
        # the usual case: what a layer adds was created after everything below
        self._later = not own or not older or self._order(next(reversed(older))) < self._order(own[0])
        self._whole: list[T] | None = None

    def _order(self, item: T) -> str:
        return sort_key(self._id_of(item))

    def _left(self, older: Iterator[T]) -> Iterator[T]:
        if not self._removed:
            return older
        return (item for item in older if self._id_of(item) not in self._removed)

    def __len__(self) -> int:
        return len(self._older) - len(self._removed) + len(self._own)

    def __iter__(self) -> Iterator[T]:
        older = self._left(iter(self._older))
        return chain(older, self._own) if self._later else merge(older, self._own, key=self._order)

    def __reversed__(self) -> Iterator[T]:
        if not self._later:
            return reversed(self._all())
        return chain(reversed(self._own), self._left(reversed(self._older)))

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, int) and self._later and not self._removed:
            at = index + len(self) if index < 0 else index
            if at >= len(self._older):
                return self._own[at - len(self._older)]
            if at >= 0:
                return self._older[at]
        return self._all()[index]

    def _all(self) -> list[T]:
        if self._whole is None:
            self._whole = list(self)
        return self._whole
