"""`Corpus`: the facts that one recall may rank, indexed by age and by token, kept up to date fact by fact.

What lives here: the index, and the best facts of a query by keywords. What must never live here: fusion and
options (`ranking`), and which facts belong in (`namespace`). Everything is exact: the same facts give the same
ranks whatever the order in which they came, and with numpy the same as without.

Each fact has a slot, a small number; a token's posting is two arrays, the slots of the facts that have it and its
share of each. So weighing a token is one pass over arrays. Where the state's own text index speaks the same tokens,
a posting is taken from there when it is first asked for, and no text is read to begin with.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import Any, Final, Protocol

from core.facts.tokens import Tokenizer
from core.facts.values import Fact
from core.model.instants import Instant

SCALE: Final = 1e12
"""Scores are compared as whole multiples of 1/SCALE: what is equal by arithmetic is equal here, however it was added up."""


MANY: Final = 4000  # facts; below that, loading numpy costs more than it saves

Arrays = Callable[[], Any]
"""Loads numpy when it is called; gives None where there is none."""


class Source(Protocol):
    """A text index that has the corpus's tokens already, of the present moment. It may know more than the facts."""

    def having(self, token: str) -> Iterable[tuple[str, int]]:
        """The elements that have a token, and how often."""

    def length(self, element_id: str) -> int:
        """How many tokens an element has."""


class _Posting:
    """The facts that have one token: their slots, and the token's share of each: times / (tokens + 1)."""

    __slots__ = ("shares", "slots")

    def __init__(self) -> None:
        self.slots = array("i")
        self.shares = array("d")

    def remove(self, slot: int) -> None:
        """Take one out; the last one takes its place."""
        place = self.slots.index(slot)
        last_slot, last_share = self.slots.pop(), self.shares.pop()
        if place < len(self.slots):
            self.slots[place], self.shares[place] = last_slot, last_share


class Corpus:
    """Facts that may be ranked. Written and read by its owner under a lock.

    Args:
        tokenizer: how texts become tokens.
        arrays: loads numpy; called once there are many facts. None: it is done without, only slower.
        source: an index that has the same tokens already; it may know more facts. None: texts are read.
    """

    def __init__(
        self, tokenizer: Tokenizer, arrays: Arrays | None = None, source: Source | None = None
    ) -> None:
        self._source = source
        self.facts: dict[str, Fact] = {}
        self.tokenize = tokenizer
        self._arrays = arrays
        self._tokens: dict[str, tuple[str, ...]] = {}
        self._postings: dict[str, _Posting] = {}
        self._slots: dict[str, int] = {}
        self._places: dict[str, int] = {}  # element id -> slot
        self._sizes = array("i")  # by slot: tokens + 1; 0 until it is known
        self._ids: list[str] = []  # by slot; empty where it is free
        self._created = array("q")  # by slot
        self._free: list[int] = []
        self._newest: list[tuple[Instant, str]] = []  # (-created_at, id), so newest first, ties by id
        self._times = array("q")  # their first halves, which lie together and are quick to search

    def __len__(self) -> int:
        return len(self.facts)

    # --- writing

    def fill(self, facts: Iterable[Fact]) -> None:
        """Add many at once, to an empty corpus."""
        for fact in facts:
            self._place(fact)
            if self._source is None:
                self._index(fact)
        self._newest = sorted((-fact.created_at, fact.id) for fact in self.facts.values())
        self._times = array("q", [at for at, _ in self._newest])

    def add(self, fact: Fact) -> None:
        """Add a fact, or replace what stands under its id."""
        if fact.id in self.facts:
            self.remove(fact.id)
        self._place(fact)
        self._index(fact)
        place = self._place_of(fact)
        self._newest.insert(place, (-fact.created_at, fact.id))
        self._times.insert(place, -fact.created_at)

    def remove(self, fact_id: str) -> None:
        """Take a fact out; no error if it is not there."""
        fact = self.facts.pop(fact_id, None)
        if fact is None:
            return
        slot = self._slots.pop(fact_id)
        self._places.pop(fact.element, None)
        self._ids[slot] = ""
        self._free.append(slot)
        for token in self._tokens.pop(fact_id, None) or dict.fromkeys(self.tokenize(fact.text)):
            posting = self._postings.get(token)
            if posting is not None:
                posting.remove(slot)
        place = self._place_of(fact)
        del self._newest[place], self._times[place]

    def _index(self, fact: Fact) -> None:
        """Enter a fact under its tokens; where there is a source, under those that were taken from it already."""
        counted = Counter(self.tokenize(fact.text))
        slot, size = self._slots[fact.id], counted.total() + 1
        self._sizes[slot] = size
        self._tokens[fact.id] = tuple(counted)
        for token, times in counted.items():
            posting = self._postings.get(token)
            if posting is None:
                if self._source is not None:
                    continue
                posting = self._postings[token] = _Posting()
            posting.slots.append(slot)
            posting.shares.append(times / size)

    def _posting(self, token: str) -> _Posting:
        """The facts that have a token."""
        posting = self._postings.get(token)
        if posting is None:
            posting = _Posting()
            if self._source is not None:
                self._take(posting, self._source, token)
                self._postings[token] = posting
        return posting

    def _take(self, posting: _Posting, source: Source, token: str) -> None:
        """Fill a posting from the source: one look-up for each fact, for a common word stands with thousands."""
        place, sizes = self._places.get, self._sizes
        found = [
            (slot, times) for element, times in source.having(token) if (slot := place(element)) is not None
        ]
        for slot in [slot for slot, _ in found if not sizes[slot]]:
            sizes[slot] = source.length(self.facts[self._ids[slot]].element) + 1
        posting.slots = array("i", [slot for slot, _ in found])
        posting.shares = array("d", [times / sizes[slot] for slot, times in found])

    def _place(self, fact: Fact) -> None:
        self.facts[fact.id] = fact
        self._slots[fact.id] = self._places[fact.element] = self._slot(fact)

    def _slot(self, fact: Fact) -> int:
        if self._free:
            slot = self._free.pop()
            self._ids[slot], self._created[slot], self._sizes[slot] = fact.id, fact.created_at, 0
            return slot
        self._ids.append(fact.id)
        self._created.append(fact.created_at)
        self._sizes.append(0)
        return len(self._ids) - 1

    # --- age

    def newest(self) -> Iterator[Fact]:
        """Every fact, newest first, ties by id."""
        return (self.facts[found] for _, found in self._newest)

    def recency_rank(self, fact: Fact) -> int:
        """Its place among all, newest first, from 1."""
        return self._place_of(fact) + 1

    def _place_of(self, fact: Fact) -> int:
        """Where a fact stands among the newest, or would stand."""
        first = bisect_left(self._times, -fact.created_at)
        last = bisect_right(self._times, -fact.created_at, first, min(first + 2, len(self._times)))
        if last - first > 1:  # others of the same instant: by id
            last = bisect_right(self._times, -fact.created_at, first)
        return bisect_left(self._newest, (-fact.created_at, fact.id), first, last)

    # --- words

    def tokens_of(self, fact_id: str) -> Sequence[str]:
        """The distinct tokens of a fact's text."""
        found = self._tokens.get(fact_id)
        if found is None:
            found = self._tokens[fact_id] = tuple(dict.fromkeys(self.tokenize(self.facts[fact_id].text)))
        return found

    def frequency(self, token: str) -> int:
        """How many facts have a token."""
        return len(self._posting(token).slots)

    def rarity(self, token: str) -> float:
        """The idf, ln((n + 1) / (df + 1)): 0 for a token that every fact has."""
        return math.log((len(self.facts) + 1) / (self.frequency(token) + 1))

    def having(self, token: str, count: int) -> list[str]:
        """Ids of the facts with the greatest shares of a token, ties oldest first."""
        posting = self._posting(token)
        pairs = zip(posting.shares, posting.slots, strict=True)
        found = nlargest(count, pairs, key=lambda pair: (pair[0], -self._created[pair[1]]))
        return [self._ids[slot] for _, slot in found]

    def best(self, tokens: Sequence[str], count: int) -> list[tuple[str, float]]:
        """The `count` facts with the best keyword scores above 0, with their scores; ties oldest first, then by id.

        A score is the sum of idf x times / (tokens of the fact + 1) over the query's tokens, a token that the
        query repeats counted again.
        """
        weights: dict[str, float] = {}
        for token, times in Counter(tokens).items():
            idf = self.rarity(token)
            if idf > 0 and self.frequency(token):
                weights[token] = idf * times
        if not weights or count < 1:
            return []
        np = self._arrays() if self._arrays is not None and len(self.facts) >= MANY else None
        found = self._leading(weights, count) if np is None else self._leading_of_arrays(np, weights, count)
        keyed = sorted((-scaled, self._created[slot], self._ids[slot]) for scaled, slot in found)
        return [(fact_id, -negative / SCALE) for negative, _, fact_id in keyed[:count]]

    def _leading(self, weights: Mapping[str, float], count: int) -> list[tuple[int, int]]:
        """At least the best `count` facts, ties of the last one included: scaled scores and slots."""
        scores: dict[int, float] = {}
        for token, weight in weights.items():
            posting = self._posting(token)
            for slot, share in zip(posting.slots, posting.shares, strict=True):
                scores[slot] = scores.get(slot, 0.0) + weight * share
        scaled = [(round(score * SCALE), slot) for slot, score in scores.items()]
        if len(scaled) <= count:
            return scaled
        cut = nlargest(count, [score for score, _ in scaled])[-1]
        return [pair for pair in scaled if pair[0] >= cut]

    def _leading_of_arrays(
        self,
        np: Any,  # the module
        weights: Mapping[str, float],
        count: int,
    ) -> list[tuple[int, int]]:
        """The same with numpy, and of many ties only those that are old enough."""
        scores = np.zeros(len(self._ids))
        for token, weight in weights.items():
            posting = self._posting(token)
            slots = np.frombuffer(posting.slots, dtype=np.intc)
            scores[slots] += weight * np.frombuffer(posting.shares)
        touched = np.flatnonzero(scores)
        scaled = np.rint(scores[touched] * SCALE)
        if len(touched) > count:
            cut = np.partition(scaled, len(scaled) - count)[len(scaled) - count]
            above, level = touched[scaled > cut], touched[scaled == cut]
            wanted = count - len(above)
            if len(level) > wanted:
                ages = np.frombuffer(self._created, dtype=np.int64)[level]
                level = level[ages <= np.partition(ages, wanted - 1)[wanted - 1]]
            touched = np.concatenate([above, level])
            scaled = np.rint(scores[touched] * SCALE)
        return list(zip(scaled.astype(np.int64).tolist(), touched.tolist(), strict=True))
