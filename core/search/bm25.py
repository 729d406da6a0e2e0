"""BM25 over a View's postings: how well a text's terms fit a query's.

What lives here: the arithmetic, with the document frequencies of what the caller may see. What must never live
here: which elements a caller may see (the caller says so) and what a score means: a fit is relevance, never
belief.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import msgspec

K1: Final = 1.2  # how soon another occurrence of a term stops counting
B: Final = 0.75  # how far long texts are held back
_FLOOR: Final = K1 * (1 - B)  # what holds a text back that has no length at all


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


def inverse_frequency(documents: int, having: int) -> float:
    """How much a term tells: the rarer, the more; never negative."""
    return math.log(1 + (max(documents, having) - having + 0.5) / (having + 0.5))


def weight(times: float, length: float, average: float) -> float:
    """How much of a term's weight a text earns by having it `times` times."""
    return times * (K1 + 1) / (times + K1 * (1 - B + B * length / max(average, 1.0)))


class Basis(msgspec.Struct, frozen=True):
    """What weights are reckoned against: how many texts there are, and how many terms one has on average."""

    documents: int
    average: float


class Scores:
    """What the texts of a query's terms may earn, before any length is looked up.

    weights: what each term of the query is worth, most telling first. bounds: for each text, more than it earns.
    """

    def __init__(self, postings: Postings, basis: Basis, length: Callable[[str], int] | None = None) -> None:
        self.weights: dict[str, float] = {}
        self.bounds: dict[str, float] = {}
        self._length = postings.text_length if length is None else length
        self._slope = K1 * B / max(basis.average, 1.0)
        self._found: list[
            tuple[float, dict[str, int]]
        ] = []  # the most a term earns, and how often texts have it

    def add(self, term: str, idf: float, found: Sequence[tuple[str, int]], letters: str) -> None:
        """Account for a term and the texts of some kinds that have it."""
        self.weights[term] = idf
        top = idf * (K1 + 1)
        bounds = self.bounds
        for element, times in found:
            if element[0] in letters:
                bounds[element] = bounds.get(element, 0.0) + top * times / (times + _FLOOR)
        self._found.append((top, dict(found)))

    @property
    def best_possible(self) -> float:
        """More than any text can earn: every term, told over and over in a text without other words."""
        return sum(self.weights.values()) * (K1 + 1)

    def earned(self, element: str) -> float:
        """What a text earns: BM25 over its length."""
        held_back = _FLOOR + self._slope * self._length(element)
        total = 0.0
        for top, found in self._found:
            times = found.get(element)
            if times is not None:
                total += top * times / (times + held_back)
        return total

    def ranked(self, letters: str, others: Mapping[str, float]) -> Iterator[tuple[str, float]]:
        """Texts of some kinds and others that have a score already, best first; ties in order of creation.

        Lengths are looked up only as far as the ranking is read: a text is weighed once no text that is not can
        pass it. So the first few of many cost little.
        """
        unweighed = [(-bound, element) for element, bound in self.bounds.items() if element[0] in letters]
        heapq.heapify(unweighed)
        weighed = [(-earned, element[2:], element) for element, earned in others.items()]
        heapq.heapify(weighed)
        while unweighed or weighed:
            while unweighed and (not weighed or unweighed[0][0] <= weighed[0][0]):
                _, element = heapq.heappop(unweighed)
                heapq.heappush(weighed, (-self.earned(element), element[2:], element))
            score_, _, element = heapq.heappop(weighed)
            yield element, -score_


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
    times: Callable[[str, str, int], int] | None = None,
    length: Callable[[str], int] | None = None,
) -> Scores:
    """The texts that have a term of the query, ready to be ranked.

    Args:
        postings: the text index.
        terms: the query's.
        basis: what weights are reckoned against. It must not depend on texts that the caller may not see.
        letters: of the kinds whose texts may be ranked; texts of all kinds count towards a term's frequency.
        admits: whether an element counts as having a term, for the caller; None: whenever it has it.
        times: how often an element that counts has a term for the caller, who may not read all of it.
        length: how many terms an element's text has for the caller; None: as many as it has.
    """
    found: list[tuple[float, str, list[tuple[str, int]]]] = []
    for term in dict.fromkeys(terms):
        having = list(postings.word(term))
        if admits is not None:
            having = [pair for pair in having if admits(pair[0], term)]
        if times is not None:
            having = [(element, times(element, term, often)) for element, often in having]
        found.append((inverse_frequency(basis.documents, len(having)), term, having))
    scores = Scores(postings, basis, length)
    for idf, term, having in sorted(found, key=lambda item: -item[0]):
        scores.add(term, idf, having, letters)
    return scores
