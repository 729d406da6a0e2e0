"""Fusion: the order in which turns answer a question, from everything that is known of them without reading them.

A turn alone is short. What it answers often stands in the turn beside it, and what a session was about shows only in
all of it. So a turn earns by its words and, half as much, its neighbours' words; by its session's words; and, where
the deployment has an embedder, by how near in meaning it and its neighbourhood are. All are put on one scale
(divided by their spread) and added up. What follows a question also earns a share of what the question has, what the
person asked about says counts more, and who asks does not answer.

Turns are ranked only in the sessions that fit best, by words or by meaning: nothing is built that grows with the
memory, and nothing but the best turns is decoded.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, Protocol

import msgspec

from core.model.ids import sort_key
from core.search.bm25 import K1, B, inverse_frequency
from core.search.terms import Term, Wanted, read_short
from core.search.text import searchable
from core.search.turns import Memory, Turns, session_of

# Weights of the parts, in spreads. Measured on LoCoMo; see docs/benchmarks.md.
WORDS: Final = 1.0  # a turn's words, with its neighbours'
BESIDE: Final = 0.5  # what a neighbour's word counts, against the turn's own
SESSION: Final = 0.8  # the session's words
MEANING: Final = 1.0  # nearness in meaning
MEANING_BESIDE: Final = 1.0  # the same, on average over the turn and its neighbours
SPEAKER: Final = 4.0  # said by the only person that the question names
ANSWERS: Final = 0.2  # of a question's own words, what the turn behind it earns
ASKS: Final = 0.5  # what a turn that asks is held back
SESSIONS: Final = 64  # at most so many sessions' turns are ranked one by one,
EXPANDED: Final = (
    320  # and no further session once there are so many turns; both again for what is near in meaning
)
NEAREST: Final = 64  # turns whose sessions are ranked because they are near in meaning
DECODED: Final = 24  # turns whose words are read to see whether they ask; twice
_USUAL: Final = 600  # turns, about what the weights were measured on
_QUESTION_MARKS: Final = ("?", "？")


class Nearness(Protocol):
    """What is asked of a dense search (`core.search.dense`)."""

    def of(self, ids: Collection[str]) -> dict[str, float]:
        """The similarities of some elements, as far as they are known."""

    def ranked(self, letters: str, limit: int | None = None) -> Iterator[tuple[str, float]]:
        """Elements of some kinds and their similarities, nearest first."""

    def spread(self, letters: str) -> tuple[float, float]:
        """Mean and standard deviation of all similarities of some kinds."""


class Ranked(msgspec.Struct, frozen=True):
    """A turn, its score in spreads, and the share of the query that it and its neighbours hold.

    own: the share that it holds by itself. near: how near in meaning it is, in spreads of the whole memory; similar:
    the same as it is; both None where that is not known.
    """

    id: str
    score: float
    coverage: float
    own: float = 0.0
    near: float | None = None
    similar: float | None = None


def rank(
    turns: Turns,
    memory: Memory,
    wanted: Wanted,
    hidden: Callable[[str], bool],
    dense: Nearness | None = None,
) -> list[Ranked]:
    """The turns that have a term of the query, stand beside one that has, or are near in meaning; best first.

    Args:
        turns: the order of things said.
        memory: the text index and the elements.
        wanted: what is looked for.
        hidden: whether the caller may not see an element.
        dense: how near in meaning turns are; None without an embedder.
    """
    found = [Term(memory, wanted, term, hidden) for term in wanted.terms]
    read_short(found)
    sessions = _expanded(turns, found)
    if dense is not None:
        sessions |= _expanded_near(turns, dense, hidden, sessions)
    ranking = _Ranking(memory, found, dict(sorted(sessions.items())))
    ranking.earn()
    similar: dict[str, float] = {}
    near: dict[str, float] = {}
    if dense is not None:
        similar = dense.of([element for element in ranking.lengths if not hidden(element)])
        mean, deviation = dense.spread("E")
        near = {element: (value - mean) / deviation for element, value in similar.items()}
    scores = ranking.scores()
    _add_meaning(near, ranking.sessions, scores)
    _favour_answers(memory, ranking, scores)
    _favour_speaker(wanted.spoken, ranking.sessions, scores)
    _hold_back_asking(memory, scores, hidden)
    total = max(sum(term.telling for term in found), 1e-9)
    ranked = [
        Ranked(
            element,
            score,
            ranking.held.get(element, 0.0) / total,
            ranking.holds.get(element, 0.0) / total,
            near.get(element),
            similar.get(element),
        )
        for element, score in scores.items()
        if not hidden(element)
    ]
    return sorted(ranked, key=lambda turn: (-turn.score, turn.id))


class _Ranking:
    """What the turns of the best-fitting sessions earn by words: by their own with their neighbours', by their session's."""

    def __init__(self, memory: Memory, terms: Sequence[Term], sessions: dict[str, tuple[str, ...]]) -> None:
        stats = memory.text_stats
        self.terms = terms
        self.documents = stats.documents
        self.average = max(stats.terms / max(stats.documents, 1), 1.0)
        self.sessions = sessions
        self.lengths = {element: memory.text_length(element) for ids in sessions.values() for element in ids}
        for term in terms:
            term.complete(sessions.values())
        # A spread is that of a memory of usual size: over more turns than hit, and not over ever more.
        self.count = min(max(len(self.lengths), _USUAL), max(stats.documents, 1))
        self.own: dict[str, float] = {}
        self.words: dict[str, float] = {}
        self.session: dict[str, float] = {}
        self.held: dict[str, float] = {}  # weight of the query's terms that a turn and its neighbours have
        self.holds: dict[str, float] = {}  # and that it has itself

    def earn(self) -> None:
        """Add up what every term gives."""
        count = max((len(term.sessions) for term in self.terms), default=0)
        sizes = {commit: sum(self.lengths[e] for e in ids) for commit, ids in self.sessions.items()}
        usual = sum(sizes.values()) / max(len(sizes), 1)
        for term in self.terms:
            idf, telling, having = term.idf, term.telling, min(self.documents, 2 * term.having)
            worth = (idf, inverse_frequency(self.documents, having), telling)
            rare = inverse_frequency(max(count, len(self.sessions)), len(term.sessions))
            for commit, ids in self.sessions.items():
                often = term.sessions.get(commit)
                if often is not None:
                    gain = _gain(rare, often, sizes[commit], usual)
                    self.session[commit] = self.session.get(commit, 0.0) + gain
                    dated = commit in term.dated
                    self._turns(ids, [term.times.get(element, 0.0) + dated for element in ids], worth)

    def _turns(self, ids: Sequence[str], times: Sequence[float], worth: tuple[float, float, float]) -> None:
        """What the turns of one session earn by a term: its worth to a turn, beside others, and as an answer."""
        idf, common, telling = worth
        lengths = [self.lengths[element] for element in ids]
        for place, element in enumerate(ids):
            beside = slice(max(0, place - 1), place + 2)
            often = BESIDE * sum(times[beside])
            if not often:
                continue
            if times[place]:
                gain = _gain(idf, times[place], lengths[place], self.average)
                self.own[element] = self.own.get(element, 0.0) + gain
                self.holds[element] = self.holds.get(element, 0.0) + telling
            often += (1 - BESIDE) * times[place]
            length = BESIDE * sum(lengths[beside]) + (1 - BESIDE) * lengths[place]
            gain = _gain(common, often, length, (1 + 2 * BESIDE) * self.average)
            self.words[element] = self.words.get(element, 0.0) + gain
            self.held[element] = self.held.get(element, 0.0) + telling

    def scores(self) -> dict[str, float]:
        """Both on one scale, added up, for every turn that earned anything by its words."""
        shared = {
            element: self.session.get(commit, 0.0) for commit, ids in self.sessions.items() for element in ids
        }
        words = WORDS / _spread(self.words.values(), self.count)
        session = SESSION / _spread(shared.values(), self.count)
        return {element: words * score + session * shared[element] for element, score in self.words.items()}

    @property
    def spread(self) -> float:
        """The spread of what turns earn by their own words alone."""
        return _spread(self.own.values(), self.count)


def _expanded(turns: Turns, terms: Sequence[Term]) -> dict[str, tuple[str, ...]]:
    """The turns of the best sessions, by what is known without looking at turns: how rare terms they have, how often."""
    earned: dict[str, float] = {}
    for term in terms:
        idf = term.idf
        for commit, often in term.sessions.items():
            earned[commit] = earned.get(commit, 0.0) + idf * (1 + often / (often + K1))
    return _taken(turns, heapq.nlargest(SESSIONS, earned, key=lambda one: (earned[one], one)))


def _expanded_near(
    turns: Turns, dense: Nearness, hidden: Callable[[str], bool], known: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """The turns of further sessions, in which something near in meaning was said."""
    nearest = (session_of(element) for element, _ in dense.ranked("E", NEAREST) if not hidden(element))
    return _taken(turns, [commit for commit in dict.fromkeys(nearest) if commit not in known][:SESSIONS])


def _taken(turns: Turns, commits: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The turns of some sessions, best first, until there are enough."""
    found: dict[str, tuple[str, ...]] = {}
    size = 0
    for commit in commits:
        if size >= EXPANDED:
            break
        found[commit] = turns.session(commit)
        size += len(found[commit])
    return found


def _add_meaning(
    near: dict[str, float], sessions: dict[str, tuple[str, ...]], scores: dict[str, float]
) -> None:
    """What turns earn by their meaning and by that of their neighbourhood; what is not known is taken for average."""
    for ids in sessions.values() if near else ():
        values = [near.get(element, 0.0) for element in ids]
        for place, element in enumerate(ids):
            around = values[max(0, place - 1) : place + 2]
            gain = MEANING * values[place] + MEANING_BESIDE * sum(around) / len(around)
            scores[element] = scores.get(element, 0.0) + gain


def _favour_answers(memory: Memory, ranking: _Ranking, scores: dict[str, float]) -> None:
    """What follows a question that fits is likely its answer."""
    share = ANSWERS / ranking.spread
    for element in heapq.nlargest(DECODED, ranking.own, key=lambda one: (ranking.own[one], one)):
        ids = ranking.sessions[session_of(element)]
        after = ids.index(element) + 1
        if after < len(ids) and _asks(memory, element):
            scores[ids[after]] = scores.get(ids[after], 0.0) + share * ranking.own[element]


def _favour_speaker(
    spoken: Sequence[str], sessions: dict[str, tuple[str, ...]], scores: dict[str, float]
) -> None:
    """What the person asked about says is worth more. `spoken` may be long: of each session its part is looked up."""
    for commit in sessions if spoken else ():
        at = bisect_left(spoken, commit, key=sort_key)
        for element in map(spoken.__getitem__, range(at, len(spoken))):
            if session_of(element) != commit:
                break
            if element in scores:
                scores[element] += SPEAKER


def _hold_back_asking(memory: Memory, scores: dict[str, float], hidden: Callable[[str], bool]) -> None:
    """A turn that asks rarely tells; only the best are looked at, for the others nobody reads."""
    for element in heapq.nlargest(DECODED, scores, key=lambda one: (scores[one], one)):
        if not hidden(element) and _asks(memory, element):
            scores[element] -= ASKS


def _asks(memory: Memory, element: str) -> bool:
    turn = memory.get(element)
    return turn is not None and searchable(turn).rstrip().endswith(_QUESTION_MARKS)


def _gain(idf: float, often: float, length: float, average: float) -> float:
    """What a text earns by having a term so often: `bm25.weight`, written out for speed."""
    return idf * often * (K1 + 1) / (often + K1 * (1 - B + B * length / max(average, 1.0)))


def _spread(scores: Collection[float], count: int) -> float:
    """The standard deviation over `count` turns, of which those without a score have 0."""
    if not scores or count == 0:
        return 1.0
    total = squares = 0.0
    for score in scores:
        total += score
        squares += score * score
    variance = squares / count - (total / count) ** 2
    return math.sqrt(variance) if variance > 1e-12 else 1.0
