"""BM25 over a View's postings: how well a text's terms fit a query's.

What lives here: the arithmetic, with the document frequencies of what the caller may see. What must never live
here: which elements a caller may see (the caller says so) and what a score means: a fit is relevance, never
belief.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

import msgspec

K1: Final = 1.2  # how soon another occurrence of a term stops counting
B: Final = 0.75  # how far long texts are held back


class TextStats(Protocol):
    """Size of a text index: how many texts, and how many terms in all."""

    @property
    def documents(self) -> int:
        """Texts."""

    @property
    def terms(self) -> int:
        """Terms of all texts."""


class Postings(Protocol):
    """What is asked of a View (`core.state.view`)."""

    @property
    def text_stats(self) -> TextStats:
        """The index's size."""

    def word(self, term: str) -> Sequence[tuple[str, int]]:
        """Ids of the elements whose text has a term, with how often."""

    def text_length(self, element_id: str) -> int:
        """How many terms an element's text has."""


class Hit(msgspec.Struct, frozen=True):
    """An element that fits, how well, and the share of the query (by rarity) that its text holds."""

    id: str
    score: float
    coverage: float


def inverse_frequency(documents: int, having: int) -> float:
    """How much a term tells: the rarer, the more; never negative."""
    return math.log(1 + (max(documents, having) - having + 0.5) / (having + 0.5))


def weight(times: float, length: float, average: float) -> float:
    """How much of a term's weight a text earns by having it `times` times."""
    return times * (K1 + 1) / (times + K1 * (1 - B + B * length / max(average, 1.0)))


def search(postings: Postings, terms: Iterable[str], visible: Callable[[str], bool]) -> list[Hit]:
    """Every visible element that has a term of the query, best first; ties in order of creation.

    Nothing is cut off here, so an empty answer means that no visible text has any of the terms.
    """
    stats = postings.text_stats
    average = stats.terms / max(stats.documents, 1)
    scores: dict[str, float] = {}
    covered: dict[str, float] = {}
    total = 0.0
    for term in dict.fromkeys(terms):
        found = [(element, times) for element, times in postings.word(term) if visible(element)]
        idf = inverse_frequency(stats.documents, len(found))
        total += idf
        for element, times in found:
            earned = idf * weight(times, postings.text_length(element), average)
            scores[element] = scores.get(element, 0.0) + earned
            covered[element] = covered.get(element, 0.0) + idf
    hits = [Hit(element, score, covered[element] / total) for element, score in scores.items()]
    return sorted(hits, key=lambda hit: (-hit.score, hit.id[2:]))


class Basis(msgspec.Struct, frozen=True):
    """What weights are reckoned against: how many texts there are, and how many terms one has on average."""

    documents: int
    average: float


class Scores(msgspec.Struct, frozen=True):
    """`by_id`: what each text earned; `weights`: what each term of the query is worth, most telling first."""

    by_id: dict[str, float]
    weights: dict[str, float]

    @property
    def best_possible(self) -> float:
        """More than any text can earn: every term, told over and over in a text without other words."""
        return sum(self.weights.values()) * (K1 + 1)


def basis_of(postings: Postings) -> Basis:
    """The index as a whole."""
    stats = postings.text_stats
    return Basis(stats.documents, stats.terms / max(stats.documents, 1))


def score(
    postings: Postings,
    terms: Iterable[str],
    basis: Basis,
    *,
    letters: str,
    admits: Callable[[str, str], bool] | None = None,
) -> Scores:
    """What every text of some kinds earns; nothing is sorted and nothing cut off.

    Args:
        postings: the text index.
        terms: the query's.
        basis: what weights are reckoned against. It must not depend on texts that the caller may not see.
        letters: of the kinds whose texts are scored; texts of all kinds count towards a term's frequency.
        admits: whether an element counts as having a term, for the caller; None: whenever it has it.
    """
    earned: dict[str, float] = {}
    weights: dict[str, float] = {}
    average = max(basis.average, 1.0)
    floor, slope, most = K1 * (1 - B), K1 * B / average, K1 + 1
    length_of = postings.text_length
    for term in dict.fromkeys(terms):
        found = postings.word(term)
        if admits is not None:
            found = [pair for pair in found if admits(pair[0], term)]
        idf = weights[term] = inverse_frequency(basis.documents, len(found))
        top = idf * most
        for element, times in found:
            if element[0] in letters:
                gain = top * times / (times + floor + slope * length_of(element))
                earned[element] = earned.get(element, 0.0) + gain
    order = sorted(weights.items(), key=lambda item: -item[1])
    return Scores(earned, dict(order))
