"""`Layer`: newer elements over an older View, with the same lookups.

A layer hides what it replaces: an id that the layer holds is answered from the layer alone, also where the
element it hides was listed under other keys. Replacing an element therefore needs no knowledge of its old
keys. A layer is written by its owner (the fold, or a transaction) and shared only when it changes no more.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from heapq import merge
from typing import Final

from core.model.elements import KIND_OF_TYPE, AnyElement
from core.model.ids import Kind, kind_of, sort_key
from core.search.text import searchable, terms
from core.state.indexes import entries
from core.state.view import Counts, TextStats, View

_NOTHING: Final[dict[str, None]] = {}


class Empty:
    """The View of a space that remembers nothing."""

    counts = Counts()
    text_stats = TextStats()

    def get(self, element_id: str) -> AnyElement | None:  # noqa: ARG002 - the View protocol
        """There is none."""
        return None

    def find(self, key: str) -> Sequence[str]:  # noqa: ARG002 - the View protocol
        """Nothing."""
        return ()

    def count(self, key: str) -> int:  # noqa: ARG002 - the View protocol
        """None."""
        return 0

    def ids(self, kind: Kind, after: str | None = None) -> Iterator[str]:  # noqa: ARG002 - the View protocol
        """No ids."""
        return iter(())

    def word(self, term: str) -> Sequence[tuple[str, int]]:  # noqa: ARG002 - the View protocol
        """Nothing."""
        return ()

    def text_length(self, element_id: str) -> int:  # noqa: ARG002 - the View protocol
        """No text."""
        return 0


class Layer:
    """Elements written after `below` was made. Implements `View`."""

    def __init__(self, below: View) -> None:
        self.below = below
        self.elements: dict[str, AnyElement | None] = {}  # None: gone for good
        self._hides: set[str] = set()  # ids that `below` has too
        self._keys: dict[str, dict[str, None]] = {}  # index key -> ids, in order of writing
        self._words: dict[str, dict[str, int]] = {}  # term -> id -> how often
        self._lengths: dict[str, int] = {}
        self._entries: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {}
        self._counts = below.counts
        self._stats = below.text_stats

    # --- writing: only the owner, before the layer is shared

    def put(self, element: AnyElement) -> None:
        """Write an element as it now is, new or replacing an older one."""
        kind = KIND_OF_TYPE[type(element)]
        self._make_room(element.id)
        if self.get(element.id) is None:
            self._counts = self._counts.plus(kind, 1)
        self.elements[element.id] = element
        keys = entries(element, kind)
        counted = terms(searchable(element))
        for key in keys:
            self._keys.setdefault(key, {})[element.id] = None
        for term, times in counted.items():
            self._words.setdefault(term, {})[element.id] = times
        self._entries[element.id] = (keys, tuple(counted))
        length = counted.total()
        if length:
            self._lengths[element.id] = length
            self._stats = TextStats(self._stats.documents + 1, self._stats.terms + length)

    def drop(self, element_id: str) -> None:
        """Make an element not exist at all, not even as a stub."""
        self._make_room(element_id)
        if self.get(element_id) is not None:
            self._counts = self._counts.plus(kind_of(element_id), -1)
        self.elements[element_id] = None

    def _make_room(self, element_id: str) -> None:
        """Take out of the text index and the keys what this View says of an element."""
        length = self.text_length(element_id)
        if length:
            self._stats = TextStats(self._stats.documents - 1, self._stats.terms - length)
        self._lengths.pop(element_id, None)
        keys, words = self._entries.pop(element_id, (frozenset(), ()))
        for key in keys:
            del self._keys[key][element_id]
        for term in words:
            del self._words[term][element_id]
        if element_id not in self.elements and self.below.get(element_id) is not None:
            self._hides.add(element_id)

    def settle(self) -> Layer:
        """This layer, or one that has swallowed the layers below it that are not much larger.

        Each commit adds one small layer. Merging a layer with its lower neighbour only when that one is less
        than twice its size keeps the stack logarithmic in the tail and each element merged a logarithmic
        number of times, so a commit costs its own size and never the tail's.
        """
        top = self
        while isinstance(top.below, Layer) and len(top.below.elements) <= 2 * len(top.elements):
            top = top._merged(top.below)
        return top

    def _merged(self, lower: Layer) -> Layer:
        """One layer that says what this one over `lower` says."""
        twin = Layer(lower.below)
        mine = self.elements
        twin.elements = {**lower.elements, **mine}
        twin._hides = lower._hides | {found for found in self._hides if lower.below.get(found) is not None}
        twin._keys = _merge_postings(lower._keys, self._keys, mine)
        twin._words = _merge_postings(lower._words, self._words, mine)
        twin._lengths = {found: n for found, n in lower._lengths.items() if found not in mine} | self._lengths
        twin._entries = {found: e for found, e in lower._entries.items() if found not in mine} | self._entries
        twin._counts, twin._stats = self._counts, self._stats
        return twin

    # --- View

    @property
    def counts(self) -> Counts:
        """Elements by kind, this layer's included."""
        return self._counts

    @property
    def text_stats(self) -> TextStats:
        """Size of the text index, this layer's part included."""
        return self._stats

    def get(self, element_id: str) -> AnyElement | None:
        """The element as this layer or what is below has it."""
        if element_id in self.elements:
            return self.elements[element_id]
        return self.below.get(element_id)

    def find(self, key: str) -> Sequence[str]:
        """Ids below that this layer does not hold, and its own, in order of creation."""
        mine = self._keys.get(key, _NOTHING)
        older = self.below.find(key)
        if self._hides and older:
            older = [found for found in older if found not in self._hides]
        if not mine:
            return older
        own = sorted(mine, key=sort_key)
        if not older:
            return own
        if sort_key(older[-1]) < sort_key(own[0]):  # the usual case: what is newer was created later
            return [*older, *own]
        return list(merge(older, own, key=sort_key))

    def count(self, key: str) -> int:
        """An upper bound of what `find` returns."""
        return self.below.count(key) + len(self._keys.get(key, _NOTHING))

    def ids(self, kind: Kind, after: str | None = None) -> Iterator[str]:
        """Every id of a kind in order of creation, after a given one."""
        floor = sort_key(after) if after is not None else ""
        mine = (
            found
            for found, element in self.elements.items()
            if element is not None and kind_of(found) == kind and sort_key(found) > floor
        )
        older = (found for found in self.below.ids(kind, after) if found not in self._hides)
        return merge(older, sorted(mine, key=sort_key), key=sort_key)

    def word(self, term: str) -> Sequence[tuple[str, int]]:
        """Elements whose text has a term, with how often, oldest first."""
        older = self.below.word(term)
        if self._hides and older:
            older = [pair for pair in older if pair[0] not in self._hides]
        mine = self._words.get(term)
        if not mine:
            return older
        return list(merge(older, sorted(mine.items(), key=_pair_key), key=_pair_key))

    def text_length(self, element_id: str) -> int:
        """How many terms an element's text has."""
        if element_id in self.elements:
            return self._lengths.get(element_id, 0)
        return self.below.text_length(element_id)


def _pair_key(pair: tuple[str, int]) -> str:
    return sort_key(pair[0])


def _merge_postings[V](
    lower: dict[str, dict[str, V]], upper: dict[str, dict[str, V]], hidden: Container[str]
) -> dict[str, dict[str, V]]:
    """Postings of both layers, the lower ones of hidden ids left out."""
    out = {key: {found: v for found, v in ids.items() if found not in hidden} for key, ids in lower.items()}
    for key, ids in upper.items():
        out[key] = {**out[key], **ids} if key in out else dict(ids)
    return {key: ids for key, ids in out.items() if ids}
