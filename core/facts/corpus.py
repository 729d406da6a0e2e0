"""`Corpus`: the facts that one recall may rank, indexed so that a recall costs what it looks at, not what there is.

What lives here: the facts by age and by token, kept up to date fact by fact. What must never live here: fusion
and options (`ranking`), and which facts belong in (`namespace`). Everything is exact: the same facts give the
same ranks whatever the order in which they came.

Keyword ranking wants the best R of all facts that have some token of the query. Facts with two tokens or more
are few and are weighed each; of those with one token only, each token's list is kept with its best first, so the
first R of it are enough.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import repeat
from typing import Final

from core.facts.tokens import Tokenizer
from core.facts.values import Fact
from core.model.instants import Instant

_DIGITS: Final = 12  # of a score: what is equal by arithmetic is equal here, whatever the order of additions
_NEAR: Final = 1e-9  # scores so near may be equal once they are rounded


class _Posting:
    """The facts that have one token, with its share of each; and their order, once it is asked for."""

    __slots__ = ("order", "shares", "top")

    def __init__(self) -> None:
        self.top = 0.0  # no share is or was larger
        self.shares: dict[str, float] = {}  # fact id -> times / (tokens + 1)
        self.order: list[tuple[float, Instant, str]] | None = None


class Corpus:
    """Facts that may be ranked. Written by its owner under a lock; not shared while it changes."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.facts: dict[str, Fact] = {}
        self._tokenize = tokenizer
        self._tokens: dict[str, Counter[str]] = {}
        self._postings: dict[str, _Posting] = {}
        self._newest: list[tuple[Instant, str]] = []  # (-created_at, id), so newest first, ties by id

    def __len__(self) -> int:
        return len(self.facts)

    # --- writing

    def fill(self, facts: Iterable[Fact]) -> None:
        """Add many at once, to an empty corpus."""
        for fact in facts:
            self._index(fact)
        self._newest = sorted((-fact.created_at, fact.id) for fact in self.facts.values())

    def add(self, fact: Fact) -> None:
        """Add a fact, or replace what stands under its id."""
        if fact.id in self.facts:
            self.remove(fact.id)
        self._index(fact)
        insort(self._newest, (-fact.created_at, fact.id))

    def remove(self, fact_id: str) -> None:
        """Take a fact out; no error if it is not there."""
        fact = self.facts.pop(fact_id, None)
        if fact is None:
            return
        for token in self._tokens.pop(fact_id):
            posting = self._postings[token]
            share = posting.shares.pop(fact_id)
            if not posting.shares:
                del self._postings[token]
            elif posting.order is not None:
                entry = (-share, fact.created_at, fact_id)
                del posting.order[bisect_left(posting.order, entry)]
        del self._newest[bisect_left(self._newest, (-fact.created_at, fact_id))]

    def _index(self, fact: Fact) -> None:
        tokens = Counter(self._tokenize(fact.text))
        self.facts[fact.id] = fact
        self._tokens[fact.id] = tokens
        size = tokens.total() + 1
        for token, times in tokens.items():
            posting = self._postings.get(token)
            if posting is None:
                posting = self._postings[token] = _Posting()
            share = times / size
            posting.shares[fact.id] = share
            posting.top = max(posting.top, share)
            if posting.order is not None:
                insort(posting.order, (-share, fact.created_at, fact.id))

    # --- age

    def newest(self) -> Iterator[Fact]:
        """Every fact, newest first, ties by id."""
        return (self.facts[found] for _, found in self._newest)

    def recency_rank(self, fact: Fact) -> int:
        """Its place among all, newest first, from 1."""
        return bisect_left(self._newest, (-fact.created_at, fact.id)) + 1

    # --- words

    def tokens_of(self, fact_id: str) -> Mapping[str, int]:
        """The tokens of a fact's text, with how often."""
        return self._tokens[fact_id]

    def frequency(self, token: str) -> int:
        """How many facts have a token."""
        posting = self._postings.get(token)
        return 0 if posting is None else len(posting.shares)

    def rarity(self, token: str) -> float:
        """Idf = ln((n + 1) / (df + 1)): 0 for a token that every fact has."""
        return math.log((len(self.facts) + 1) / (self.frequency(token) + 1))

    def having(self, token: str) -> Sequence[str]:
        """Ids of the facts that have a token, the one with the greatest share first."""
        return [found for _, _, found in self._ordered(token)]

    def _ordered(self, token: str) -> list[tuple[float, Instant, str]]:
        posting = self._postings.get(token)
        if posting is None:
            return []
        if posting.order is None:
            facts = self.facts
            posting.order = sorted((-share, facts[i].created_at, i) for i, share in posting.shares.items())
        return posting.order

    def best(self, tokens: Sequence[str], count: int) -> list[tuple[str, float]]:
        """The `count` facts with the best keyword scores above 0, with their scores; ties oldest first, then by id.

        A score is the sum of idf x times / (tokens of the fact + 1) over the query's tokens, a token that the
        query repeats counted again.
        """
        weights: dict[str, float] = {}
        for token, times in Counter(tokens).items():
            idf = self.rarity(token)
            if idf > 0 and token in self._postings:
                weights[token] = idf * times
        several = _in_several([self._postings[token].shares for token in weights])
        found = self._scores(several, weights)
        cut = _cut(found, count)
        for token, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0])):
            if weight * self._postings[token].top < cut:
                continue  # no fact that has this token alone comes among them
            left = count
            for share, _, fact_id in self._ordered(token):
                score = weight * -share
                if left == 0 or score < cut:
                    break
                if fact_id not in several:
                    found.append((score, fact_id))
                    left -= 1
            found = [pair for pair in found if pair[0] >= cut]
            cut = _cut(found, count)
        found = [pair for pair in found if pair[0] >= cut]
        facts = self.facts
        keyed = sorted(
            (-round(score, _DIGITS), facts[fact_id].created_at, fact_id) for score, fact_id in found
        )
        return [(fact_id, -negative) for negative, _, fact_id in keyed[:count]]

    def _scores(self, several: set[str], weights: Mapping[str, float]) -> list[tuple[float, str]]:
        """The scores of some facts; token by token over all of them, for there may be many."""
        listed = list(several)
        scores = [0.0] * len(listed)
        for token, weight in weights.items():
            shares = map(self._postings[token].shares.get, listed, repeat(0.0))
            scores = [score + weight * share for score, share in zip(scores, shares, strict=True)]
        return list(zip(scores, listed, strict=True))


def _cut(scored: Sequence[tuple[float, str]], count: int) -> float:
    """The score below which nothing is among the `count` best; ties and near ties of the last one are not below."""
    if not 0 < count <= len(scored):
        return 0.0
    return nlargest(count, [score for score, _ in scored])[-1] - _NEAR


def _in_several(sets: Sequence[Mapping[str, float]]) -> set[str]:
    """What is in at least two of some sets. The largest one is only looked up in."""
    several: set[str] = set()
    seen: set[str] = set()
    ordered = sorted(sets, key=len)
    for each in ordered:
        several |= seen & each.keys()
        if each is not ordered[-1]:
            seen |= each.keys()
    return several
