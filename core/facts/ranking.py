"""Ranking: which facts answer a query best, in a total order that can be recomputed from its receipts.

What lives here: reciprocal rank fusion of the keyword, recency and (if there is one) vector rankings, the weight
of confidence, the relevance floor, and the walk that skips texts already given (GrayMatter v0.20). What must
never live here: which facts may be ranked (they come filtered) and any side effect.

    B     = wv/(60+rv) + wk/(60+rk) + wr/(60+rr)        a signal that does not rank a fact adds 0
    final = B x (1 + w x c)                             c: verified 1, inferred 0, unverified -1
    order = final descending, then oldest, then id

Every fact has a recency rank, so a recall always finds something where there is something. Not all facts are
scored: as many of the best by keyword and of the newest as it takes until no other could come among the ones
that are given. The answer is the one that scoring all of them would give.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

import msgspec

from core.facts import labels
from core.facts.corpus import Corpus
from core.facts.values import Fact, K, Ranks, Signals
from core.model.instants import Instant

_FIRST_LOOK: Final = 96
_WIDER: Final = 4


class Scored(msgspec.Struct, frozen=True):
    """A fact with its ranks and its final score."""

    fact: Fact
    ranks: Ranks
    score: float


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What a ranking keeps to, resolved: no defaults are left open."""

    top_k: int
    weight: float = 0.0
    signals: Signals = Signals()
    min_relevance: float = 0.0


def rank(
    corpus: Corpus,
    tokens: Sequence[str],
    policy: Policy,
    *,
    vector: Sequence[str] = (),
) -> list[Scored]:
    """The facts to give, best first: distinct texts, at most `policy.top_k`.

    Args:
        corpus: the eligible facts: live, no aliases, filtered.
        tokens: the effective query's.
        policy: weights and bounds.
        vector: ids of eligible facts by similarity, best first; empty where there is no such signal.
    """
    look = _Look(corpus, tokens, policy, vector)
    while True:
        chosen, last = _walk(look.ordered(), corpus, policy)
        if look.complete or last > look.most_unseen:
            return [look.scored(fact_id) for fact_id in chosen]
        look.widen()


class _Look:
    """The facts looked at so far: the best by keyword, the newest, and those with a vector rank.

    most_unseen: more than any fact scores that is not among `ordered()`: one behind the looked-at in both
    rankings, or one that is new but whose keyword rank is not known yet because it is behind the looked-at.
    """

    def __init__(self, corpus: Corpus, tokens: Sequence[str], policy: Policy, vector: Sequence[str]) -> None:
        self._corpus = corpus
        self._tokens = tokens
        self._policy = policy
        self._vector = {fact_id: place for place, fact_id in enumerate(vector, 1) if fact_id in corpus.facts}
        self._count = min(_FIRST_LOOK, len(corpus))
        self._keyword: dict[str, int] = {}
        self._recency: dict[str, int] = {}
        self.most_unseen = 0.0
        self._read()

    @property
    def complete(self) -> bool:
        """Whether every fact was looked at."""
        return self._count >= len(self._corpus)

    def widen(self) -> None:
        """Look at more."""
        self._count = min(self._count * _WIDER, len(self._corpus))
        self._read()

    def _read(self) -> None:
        corpus, count = self._corpus, self._count
        best = corpus.best(self._tokens, count)
        self._keyword = {fact_id: place for place, (fact_id, _) in enumerate(best, 1)}
        self._recency = {fact.id: place for place, fact in enumerate(islice(corpus.newest(), count), 1)}
        # with fewer than asked for, every fact that has a token of the query is among them
        self._beyond = 0.0 if len(best) < count else self._policy.signals.keyword / (K + count + 1)
        unseen = self._policy.signals.recency / (K + count + 1) + self._beyond
        self.most_unseen = unseen * (1 + self._policy.weight)

    def ordered(self) -> list[tuple[float, Instant, str]]:
        """The facts whose score is known, in the final order: (-score, created, id)."""
        asked = {token for token in self._tokens if self._corpus.rarity(token) > 0} if self._beyond else set()
        out = []
        for fact_id in {**self._recency, **self._keyword, **self._vector}:
            fact = self._corpus.facts[fact_id]
            factor = labels.factor(fact.confidence, self._policy.weight)
            score = self._ranks(fact).fused_score * factor
            if fact_id not in self._keyword and not asked.isdisjoint(self._corpus.tokens_of(fact_id)):
                self.most_unseen = max(self.most_unseen, score + self._beyond * factor)
            else:
                out.append((-score, fact.created_at, fact_id))
        out.sort()
        return out

    def _ranks(self, fact: Fact) -> Ranks:
        recency = self._recency.get(fact.id) or self._corpus.recency_rank(fact)
        keyword, vector = self._keyword.get(fact.id, 0), self._vector.get(fact.id, 0)
        return fuse(vector, keyword, recency, signals=self._policy.signals)

    def scored(self, fact_id: str) -> Scored:
        """A fact with its ranks and its score."""
        fact = self._corpus.facts[fact_id]
        ranks = self._ranks(fact)
        return Scored(fact, ranks, ranks.fused_score * labels.factor(fact.confidence, self._policy.weight))


def fuse(vector: int, keyword: int, recency: int, *, signals: Signals) -> Ranks:
    """The fused score of three ranks; a signal that did not rank the fact, or is off, is rank 0 and adds 0."""
    vector = vector if signals.vector else 0
    keyword = keyword if signals.keyword else 0
    recency = recency if signals.recency else 0
    fused = 0.0
    if vector:
        fused += signals.vector / (K + vector)
    if keyword:
        fused += signals.keyword / (K + keyword)
    if recency:
        fused += signals.recency / (K + recency)
    return Ranks(vector, keyword, recency, fused)


def _walk(
    ordered: Sequence[tuple[float, Instant, str]], corpus: Corpus, policy: Policy
) -> tuple[list[str], float]:
    """The ids of the facts to give, and the score that an unseen fact must reach to matter; -1 if any may.

    At the first fact below the relevance floor the walk is over. A text already given is passed over, so
    duplicates never shorten the answer.
    """
    chosen: list[str] = []
    seen: set[str] = set()
    last = -1.0
    floor = -policy.min_relevance * ordered[0][0] if ordered else 0.0
    for negative, _, fact_id in ordered:
        if len(chosen) == policy.top_k:
            return chosen, last
        if policy.min_relevance > 0 and -negative < floor:
            return chosen, floor
        text = corpus.facts[fact_id].text
        if text not in seen:
            seen.add(text)
            chosen.append(fact_id)
            last = -negative
    return chosen, last if len(chosen) == policy.top_k else -1.0
