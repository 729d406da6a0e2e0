"""`Layer`: newer elements over an older View, with the same lookups.

A layer keeps the elements it writes and, for each key and each term, the difference they make to what is below:
which ids come under it and which no longer are. So a lookup costs what the layer changed, not what it returns.
A layer is written by its owner (the fold, or a transaction) and shared only when it changes no more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from heapq import merge
from typing import Final

from core.model.elements import AnyElement
from core.model.ids import Kind, kind_of, sort_key
from core.search.text import searchable, terms
from core.state.indexes import entries, kind_key
from core.state.postings import Difference, combine
from core.state.view import Counts, TextStats, View

_NOTHING: Final[dict[str, None]] = {}
_NO_WORDS: Final[dict[str, int]] = {}
_NONE: Final[frozenset[str]] = frozenset()


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
        self._keys: Difference[None] = Difference()
        self._words: Difference[int] = Difference()
        self._lengths: dict[str, int] = {}  # of texts that differ from what is below
        self._in_order: dict[str, list[str]] = {}  # this layer's own ids under a key, once asked for
        self._told: dict[str, list[tuple[str, int]]] = {}  # and under a term
        self._counts = below.counts
        self._stats = below.text_stats

    # --- writing: only the owner, before the layer is shared

    def put(self, element: AnyElement) -> None:
        """Write an element as it now is, new or replacing an older one."""
        self._replace(element.id, self.get(element.id), element)

    def drop(self, element_id: str) -> None:
        """Make an element not exist at all, not even as a stub."""
        self._replace(element_id, self.get(element_id), None)

    def _replace(self, element_id: str, old: AnyElement | None, new: AnyElement | None) -> None:
        self.elements[element_id] = new
        kind = kind_of(element_id)
        before = frozenset[str]() if old is None else entries(old, kind)
        after = frozenset[str]() if new is None else entries(new, kind)
        for key in before - after:
            self._keys.remove(key, element_id)
            self._in_order.pop(key, None)
        for key in after - before:
            self._keys.add(key, element_id, None)
            self._in_order.pop(key, None)
        if (old is None) != (new is None):
            self._counts = self._counts.plus(kind, 1 if old is None else -1)
        old_text = "" if old is None else searchable(old)
        new_text = "" if new is None else searchable(new)
        if old_text != new_text:
            self._replace_text(element_id, old_text, new_text)

    def _replace_text(self, element_id: str, old: str, new: str) -> None:
        before, after = terms(old), terms(new)
        for term, times in before.items():
            if after.get(term) != times:
                self._words.remove(term, element_id)
                self._told.pop(term, None)
        for term, times in after.items():
            if before.get(term) != times:
                self._words.add(term, element_id, times)
                self._told.pop(term, None)
        lost, won = before.total(), after.total()
        self._lengths[element_id] = won
        self._stats = TextStats(
            self._stats.documents + bool(won) - bool(lost), self._stats.terms + won - lost
        )

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
        twin.elements = {**lower.elements, **self.elements}
        twin._keys = self._keys.over(lower._keys)
        twin._words = self._words.over(lower._words)
        twin._lengths = {**lower._lengths, **self._lengths}
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
        """Ids below that still have the key, and this layer's own, in order of creation."""
        return combine(self.below.find(key), self._keys.removed.get(key, _NONE), self._own(key), str)

    def _own(self, key: str) -> Sequence[str]:
        """This layer's own ids under a key, put in order when first asked for: most keys never are.

        The list is never changed once made; answers share it.
        """
        made = self._in_order.get(key)
        if made is None:
            added = self._keys.added.get(key)
            if added is None:
                return ()
            made = self._in_order[key] = sorted(added, key=sort_key)
        return made

    def count(self, key: str) -> int:
        """An upper bound of what `find` returns."""
        return self.below.count(key) + len(self._keys.added.get(key, _NOTHING))

    def ids(self, kind: Kind, after: str | None = None) -> Iterator[str]:
        """Every id of a kind in order of creation, after a given one."""
        floor, key = sort_key(after) if after is not None else "", kind_key(kind)
        made = self._own(key)
        mine = (made[at] for at in range(bisect_right(made, floor, key=sort_key), len(made)))
        gone = self._keys.removed.get(key, _NONE)
        older = (found for found in self.below.ids(kind, after) if found not in gone)
        return merge(older, mine, key=sort_key)

    def word(self, term: str) -> Sequence[tuple[str, int]]:
        """Elements whose text has a term, with how often, oldest first."""
        own = self._told.get(term)
        if own is None:
            added = self._words.added.get(term, _NO_WORDS)
            own = sorted(added.items(), key=_pair_order)
            if own:
                self._told[term] = own
        return combine(self.below.word(term), self._words.removed.get(term, _NONE), own, _pair_id)

    def text_length(self, element_id: str) -> int:
        """How many terms an element's text has."""
        length = self._lengths.get(element_id)
        return self.below.text_length(element_id) if length is None else length


def _pair_id(pair: tuple[str, int]) -> str:
    return pair[0]


def _pair_order(pair: tuple[str, int]) -> str:
    return sort_key(pair[0])
