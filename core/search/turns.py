"""Turns: the order in which things were said, and the ranking that makes use of it.

A turn alone is short. What it answers often stands in the turn before, and what a session was about shows only
in all of it, so a turn is scored three times: by its own words with those of its date, by its words with its two
neighbours', and by its session's; the three are put on one scale (divided by their spread) and added up. What
follows a question also earns a share of what the question has, and what the person asked about says counts more.

Turns that one commit filed are one session, in the order of their ids. So the order is known from ids alone, and
only of the sessions that fit best: nothing is built that grows with the memory, and nothing but the turns behind
the best-fitting ones is decoded.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from core.model.elements import AnyElement
from core.model.ids import Kind, sort_key
from core.search.bm25 import K1, B, Postings, inverse_frequency
from core.search.text import searchable

_SESSION: Final = slice(2, 10)  # the part of an id that names the commit
# Weights of the parts, measured on LoCoMo; see docs/benchmarks.md.
OWN, NEAR, SESSION, SPEAKER, ASKED = 0.85, 1.0, 0.8, 1.8, 0.5
ALIKE: Final = 0.6  # what a word of the same meaning counts, against the word itself
UNKNOWN_PAIR: Final = 0.25  # what an unknown pair of characters counts: it may only straddle two words
SESSIONS: Final = 64  # at most so many sessions' turns are ranked one by one,
EXPANDED: Final = 320  # and no further session once there are so many turns
LONG: Final = 2048  # postings of a word that are read; in longer ones only the turns that rarer words led to are looked up
DECODED: Final = 24  # turns whose words are read to see whether they ask
FAVOURED: Final = 400  # turns of which it is looked up who said them
_USUAL: Final = 600  # turns, about what the weights were measured on
_QUESTION_MARKS: Final = ("?", "？")


class Memory(Postings, Protocol):
    """What is asked of a View (`core.state.view`)."""

    def get(self, element_id: str) -> AnyElement | None:
        """An element."""

    def ids(self, kind: Kind, after: str | None = None) -> Iterable[str]:
        """Ids of a kind in order, after a given one."""


def session_of(element_id: str) -> str:
    """The commit that filed an element, as its id has it: what is of one commit is one session."""
    return element_id[_SESSION]


class Turns:
    """The order of the turns of one state, looked up session by session and kept for one question."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._sessions: dict[str, tuple[str, ...]] = {}

    def session(self, commit: str) -> tuple[str, ...]:
        """The turns that a commit filed, in order."""
        found = self._sessions.get(commit)
        if found is None:
            taken = []
            for element in self._memory.ids("evidence", f"E-{commit}"):
                if element[_SESSION] != commit:
                    break
                taken.append(element)
            found = self._sessions[commit] = tuple(taken)
        return found

    def around(self, element_id: str) -> tuple[str, ...]:
        """A turn with its neighbours of the same session."""
        turns = self.session(session_of(element_id))
        place = turns.index(element_id)
        return turns[max(0, place - 1) : place + 2]

    def before(self, element_id: str) -> str | None:
        """The turn before, of the same session."""
        turns = self.session(session_of(element_id))
        place = turns.index(element_id)
        return turns[place - 1] if place else None


class Ranked(msgspec.Struct, frozen=True):
    """A turn, its score in spreads, and the share of the query that it and its neighbours hold."""

    id: str
    score: float
    coverage: float


class Wanted(msgspec.Struct, frozen=True):
    """What a question asks of the turns.

    terms: of the query, each once. alike: for a term, others of the same meaning. dated: for each term that is a
    date's word, the sessions of such a date. spoken: what the only participant named has said, in order of
    creation. light: terms that rank but do not count as held, such as names: being named answers nothing.
    """

    terms: Sequence[str]
    alike: Mapping[str, Collection[str]] = {}
    dated: Mapping[str, Collection[str]] = {}
    spoken: Sequence[str] = ()
    light: Collection[str] = ()


def rank(turns: Turns, memory: Memory, wanted: Wanted, hidden: Callable[[str], bool]) -> list[Ranked]:
    """The turns that have a term of the query, or stand beside one that has, best first.

    Args:
        turns: the order of things said.
        memory: the text index and the elements.
        wanted: what is looked for.
        hidden: whether the caller may not see an element.
    """
    found = [_Term(memory, wanted, term, hidden) for term in wanted.terms]
    _read_short(found)
    ranking = _Ranking(turns, memory, found)
    ranking.earn()
    scores = ranking.scores()
    _favour_answers(memory, ranking, scores)
    _favour_speaker(wanted.spoken, scores)
    total = max(sum(term.telling for term in found), 1e-9)
    ranked = [
        Ranked(element, score, ranking.held.get(element, 0.0) / total)
        for element, score in scores.items()
        if not hidden(element)
    ]
    return sorted(ranked, key=lambda turn: (-turn.score, turn.id))


class _Term:
    """A term of the query: how often each visible turn has it, and which sessions are of its date.

    postings: of the term and of those alike, each with what an occurrence counts; taken out as they are read.
    """

    def __init__(self, memory: Memory, wanted: Wanted, term: str, hidden: Callable[[str], bool]) -> None:
        self._hidden = hidden
        self.postings = [(memory.word(term), 1.0)]
        self.postings += [(memory.word(other), ALIKE) for other in wanted.alike.get(term, ())]
        self.times: dict[str, float] = {}
        self.dated = frozenset(wanted.dated.get(term, ()))
        self.sessions: dict[str, float] = dict.fromkeys(self.dated, 1.0)
        self.light = term in wanted.light
        self.documents = memory.text_stats.documents
        self.unsure = _is_pair(term)

    def read(self, longest: int) -> None:
        """Read the postings that are no longer than this."""
        for pairs, worth in self.postings:
            if len(pairs) <= longest:
                for element, times in pairs:
                    self._count(element, worth * times)
        self.postings = [item for item in self.postings if len(item[0]) > longest]

    def complete(self, elements: Iterable[str]) -> None:
        """Look up only some turns in the postings that are too long to read."""
        for element in elements if self.postings else ():
            for pairs, worth in self.postings:
                at = bisect_left(pairs, sort_key(element), key=_pair_order)
                if at < len(pairs) and pairs[at][0] == element:
                    self._count(element, worth * pairs[at][1])

    def _count(self, element: str, worth: float) -> None:
        if element[0] == "E" and not self._hidden(element):
            self.times[element] = self.times.get(element, 0.0) + worth
            commit = element[_SESSION]
            self.sessions[commit] = self.sessions.get(commit, 0.0) + worth

    @property
    def having(self) -> int:
        """How many turns have it, about: what is too long to read is taken whole."""
        return len(self.times) + len(self.dated) + sum(len(pairs) for pairs, _ in self.postings)

    @property
    def idf(self) -> float:
        """How much it tells."""
        return inverse_frequency(self.documents, self.having)

    @property
    def telling(self) -> float:
        """How much having it answers."""
        known = self.having or not self.unsure
        return 0.0 if self.light else self.idf * (1.0 if known else UNKNOWN_PAIR)


def _read_short(terms: Sequence[_Term]) -> None:
    """Read the postings up to a length that no memory makes longer; if nothing is that rare, the rarest."""
    for term in terms:
        term.read(LONG)
    if not any(term.sessions for term in terms):
        lengths = [len(pairs) for term in terms for pairs, _ in term.postings]
        for term in terms if lengths else ():
            term.read(min(lengths))


def _pair_order(pair: tuple[str, int]) -> str:
    return sort_key(pair[0])


class _Ranking:
    """What the turns of the best-fitting sessions earn: by their own words, with their neighbours', by their session's."""

    def __init__(self, turns: Turns, memory: Memory, terms: Sequence[_Term]) -> None:
        stats = memory.text_stats
        self.terms = terms
        self.documents = stats.documents
        self.average = max(stats.terms / max(stats.documents, 1), 1.0)
        self.sessions = _expanded(turns, terms)
        self.lengths = {
            element: memory.text_length(element) for ids in self.sessions.values() for element in ids
        }
        for term in terms:
            term.complete(self.lengths)
        # A spread is that of a memory of usual size: over more turns than hit, and not over ever more.
        self.count = min(max(len(self.lengths), _USUAL), max(stats.documents, 1))
        self.own: dict[str, float] = {}
        self.near: dict[str, float] = {}
        self.session: dict[str, float] = {}
        self.held: dict[str, float] = {}  # weight of the query's terms that a turn and its neighbours have

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
            if times[place]:
                gain = _gain(idf, times[place], lengths[place], self.average)
                self.own[element] = self.own.get(element, 0.0) + gain
            beside = slice(max(0, place - 1), place + 2)
            often = sum(times[beside])
            if often:
                gain = _gain(common, often, sum(lengths[beside]), 3 * self.average)
                self.near[element] = self.near.get(element, 0.0) + gain
                self.held[element] = self.held.get(element, 0.0) + telling

    def scores(self) -> dict[str, float]:
        """The three on one scale, added up, for every turn that earned anything by its words."""
        shared = {element: self.session.get(element[_SESSION], 0.0) for element in self.lengths}
        own, near = OWN / self.spread, NEAR / _spread(self.near.values(), self.count)
        session = SESSION / _spread(shared.values(), self.count)
        return {
            element: own * self.own.get(element, 0.0) + near * score + session * shared[element]
            for element, score in self.near.items()
        }

    @property
    def spread(self) -> float:
        """The spread of what turns earn by their own words."""
        return _spread(self.own.values(), self.count)


def _expanded(turns: Turns, terms: Sequence[_Term]) -> dict[str, tuple[str, ...]]:
    """The turns of the best sessions, by what is known without looking at turns: how rare terms they have, how often."""
    earned: dict[str, float] = {}
    for term in terms:
        idf = term.idf
        for commit, often in term.sessions.items():
            earned[commit] = earned.get(commit, 0.0) + idf * (1 + often / (often + K1))
    found: dict[str, tuple[str, ...]] = {}
    size = 0
    for commit in heapq.nlargest(SESSIONS, earned, key=lambda one: (earned[one], one)):
        if size >= EXPANDED:
            break
        found[commit] = turns.session(commit)
        size += len(found[commit])
    return dict(sorted(found.items()))


def _favour_answers(memory: Memory, ranking: _Ranking, scores: dict[str, float]) -> None:
    """What follows a question that fits is likely its answer."""
    share = ASKED / ranking.spread
    for element in heapq.nlargest(DECODED, ranking.own, key=lambda one: (ranking.own[one], one)):
        ids = ranking.sessions[element[_SESSION]]
        after = ids.index(element) + 1
        asking = memory.get(element) if after < len(ids) else None
        if asking is not None and searchable(asking).rstrip().endswith(_QUESTION_MARKS):
            scores[ids[after]] = scores.get(ids[after], 0.0) + share * ranking.own[element]


def _favour_speaker(spoken: Sequence[str], scores: dict[str, float]) -> None:
    """What the person asked about says is worth more. `spoken` may be long, so it is searched, not read."""
    if not spoken:
        return
    for element in heapq.nlargest(FAVOURED, scores, key=lambda one: (scores[one], one)):
        if is_among(spoken, element):
            scores[element] += SPEAKER


def is_among(ids: Sequence[str], element: str) -> bool:
    """Whether an id is among some in order of creation, of which only a few are looked at."""
    at = bisect_left(ids, sort_key(element), key=sort_key)
    return at < len(ids) and ids[at] == element


def _gain(idf: float, often: float, length: float, average: float) -> float:
    """What a text earns by having a term so often: `bm25.weight`, written out for speed."""
    return idf * often * (K1 + 1) / (often + K1 * (1 - B + B * length / max(average, 1.0)))


def _is_pair(term: str) -> bool:
    """Whether a term is two characters of a script without spaces, and so perhaps of two words."""
    return len(term) == 2 and not term.isascii()


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
