"""Turns: the order in which things were said, and the ranking that makes use of it.

A turn alone is short. What it answers often stands in the turn before, and what a session was about shows only
in all of it, so a turn is scored three times: by its own words with those of its date, by its words with its two
neighbours', and by its session's; the three are put on one scale (divided by their spread over all turns) and
added up. On public conversations that beats the turn's own BM25 by nine points.

Turns that one commit filed are one session, in the order of their ids. So the order is known from ids alone and
nothing is decoded to rank.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import msgspec

from core.search.bm25 import K1, B, Postings, inverse_frequency

_SESSION: Final = slice(2, 10)  # the part of an id that names the commit
OWN, NEAR, SESSION, SPEAKER = 1.0, 1.0, 0.5, 0.6  # measured on LoCoMo; see docs/benchmarks.md
UNKNOWN_PAIR: Final = 0.25  # what an unknown pair of characters counts: it may only straddle two words


class Turns:
    """The turns of one state in order. Immutable once made; `extend` makes a longer one from it."""

    def __init__(
        self, ids: Sequence[str], lengths: Sequence[int], starts: Sequence[int], session: Sequence[int]
    ) -> None:
        self.ids = ids
        self.lengths = lengths  # terms of each turn
        self.starts = starts  # position of each session's first turn
        self.session = session  # session of each turn
        self.position = {element: i for i, element in enumerate(ids)}
        self.session_lengths = [0] * len(starts)
        for number, length in zip(session, lengths, strict=True):
            self.session_lengths[number] += length
        self.terms = sum(lengths)
        self.near_lengths = [sum(lengths[i] for i in self.around(place)) for place in range(len(ids))]

    def extend(self, fresh: Sequence[str], postings: Postings) -> Turns:
        """These turns and later ones, in order."""
        if not fresh:
            return self
        lengths, starts, session = list(self.lengths), list(self.starts), list(self.session)
        commit = self.ids[-1][_SESSION] if self.ids else ""
        for element in fresh:
            if element[_SESSION] != commit:
                commit = element[_SESSION]
                starts.append(len(session))
            session.append(len(starts) - 1)
            lengths.append(postings.text_length(element))
        return Turns((*self.ids, *fresh), lengths, starts, session)

    def around(self, place: int) -> range:
        """The positions of a turn and its neighbours of the same session."""
        first, last = self.bounds(self.session[place])
        return range(max(first, place - 1), min(last, place + 2))

    def bounds(self, session: int) -> tuple[int, int]:
        """Where a session begins and ends (exclusive)."""
        end = self.starts[session + 1] if session + 1 < len(self.starts) else len(self.ids)
        return self.starts[session], end


NO_TURNS: Final = Turns((), (), (), ())


class Ranked(msgspec.Struct, frozen=True):
    """A turn by its position, its score in spreads, and the share of the query that it and its neighbours hold."""

    place: int
    score: float
    coverage: float


def rank(
    turns: Turns,
    postings: Postings,
    terms: Sequence[str],
    *,
    dated: Mapping[str, Collection[int]],
    favoured: Collection[int] = (),
    light: Collection[str] = (),
    hidden: Callable[[str], bool],
) -> list[Ranked]:
    """The turns that have a term of the query, or stand beside one that has, best first.

    Args:
        turns: the order of things said.
        postings: the text index.
        terms: of the query, each once.
        dated: for each term that is a date's word, the positions of the turns said on such a date.
        favoured: positions of the turns of the only participant whom the query names.
        light: terms that rank but do not count as held, such as names: being named answers nothing.
        hidden: whether the caller may not see an element.
    """
    scores = _Scores(turns)
    for term in terms:
        times = _times(turns, postings.word(term), hidden)
        for place in dated.get(term, ()):
            if not hidden(turns.ids[place]):
                times[place] = times.get(place, 0) + 1
        scores.add(term, times, light=term in light)
    ranked = [turn for turn in scores.combined(favoured) if not hidden(turns.ids[turn.place])]
    return sorted(ranked, key=lambda turn: (-turn.score, turn.place))


class _Scores:
    """What each turn has earned so far: by its own words, with its neighbours', by its session's."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.own: dict[int, float] = {}
        self.near: dict[int, float] = {}
        self.session: dict[int, float] = {}
        self.held: dict[int, float] = {}  # weight of the query's terms that a turn and its neighbours have
        self.wanted = 0.0

    def add(self, term: str, times: dict[int, int], *, light: bool) -> None:
        """Add one term of the query, which each turn has so many times."""
        turns, count = self.turns, len(self.turns.ids)
        idf = inverse_frequency(count, len(times))
        telling = 0.0 if light else idf * (UNKNOWN_PAIR if not times and _is_pair(term) else 1.0)
        self.wanted += telling
        beside: dict[int, int] = {}
        sessions: dict[int, int] = {}
        for place, often in times.items():
            number = turns.session[place]
            sessions[number] = sessions.get(number, 0) + often
            for other in turns.around(place):
                beside[other] = beside.get(other, 0) + often
        average = max(turns.terms / max(count, 1), 1.0)
        session_average = turns.terms / max(len(turns.starts), 1)
        _earn(self.own, times, turns.lengths, idf, average)
        _earn(self.near, beside, turns.near_lengths, inverse_frequency(count, len(beside)), 3 * average)
        session_idf = inverse_frequency(len(turns.starts), len(sessions))
        _earn(self.session, sessions, turns.session_lengths, session_idf, session_average)
        if telling:
            for place in beside:
                self.held[place] = self.held.get(place, 0.0) + telling

    def combined(self, favoured: Collection[int]) -> list[Ranked]:
        """The three scores on one scale, added up, for every turn that earned anything by its words."""
        turns, count = self.turns, len(self.turns.ids)
        sizes = {number: last - first for number in self.session for first, last in (turns.bounds(number),)}
        own = OWN / _spread(self.own, {}, count)
        near = NEAR / _spread(self.near, {}, count)
        session = SESSION / _spread(self.session, sizes, count)
        wanted = max(self.wanted, 1e-9)
        return [
            Ranked(
                place,
                own * self.own.get(place, 0.0)
                + near * score
                + session * self.session[turns.session[place]]
                + (SPEAKER if place in favoured else 0.0),
                self.held.get(place, 0.0) / wanted,
            )
            for place, score in self.near.items()
        ]


def _earn(
    earned: dict[int, float], times: Mapping[int, int], lengths: Sequence[int], idf: float, average: float
) -> None:
    """Add what each place earns by having a term so many times: `bm25.weight`, written out for speed."""
    floor, slope, top = K1 * (1 - B), K1 * B / max(average, 1.0), idf * (K1 + 1)
    for place, often in times.items():
        gain = top * often / (often + floor + slope * lengths[place])
        earned[place] = earned.get(place, 0.0) + gain


def _times(turns: Turns, found: Sequence[tuple[str, int]], hidden: Callable[[str], bool]) -> dict[int, int]:
    """How often each visible turn has a term."""
    position = turns.position
    return {position[element]: n for element, n in found if element in position and not hidden(element)}


def _is_pair(term: str) -> bool:
    """Whether a term is two characters of a script without spaces, and so perhaps of two words."""
    return len(term) == 2 and not term.isascii()


def _spread(scores: Mapping[int, float], sizes: Mapping[int, int], count: int) -> float:
    """The standard deviation over all turns, of which those without a score have 0.

    sizes: how many turns share a score; 1 where it is not said.
    """
    if not scores or count == 0:
        return 1.0
    total = squares = 0.0
    for key, score in scores.items():
        shared = score * sizes.get(key, 1)
        total += shared
        squares += shared * score
    variance = squares / count - (total / count) ** 2
    return math.sqrt(variance) if variance > 1e-12 else 1.0
