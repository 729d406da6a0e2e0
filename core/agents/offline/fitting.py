"""Fitting: which of the turns found answer a question, and whether they do at all.

What lives here: the bars. What must never live here: the order of turns (`core.search.fusion`) and how they are
quoted (`quotation`).

Two measures: `coverage`, the share of the question's telling words (by rarity, names left out) that a turn and its
neighbours hold, and, where the deployment has an embedder, nearness in meaning. The best turn must come over a high
bar, or there is no answer; beside a good one, others need less. And where somebody else says of themselves clearly
more of what is asked than is said of the person asked about, the question is taken for a mistake.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final

from core.agents.offline.questions import Asked
from core.agents.offline.quotation import bears, of_another
from core.search.fusion import Ranked
from core.search.turns import Turns, is_among
from core.state.indexes import referrers_key
from core.state.view import View

# Measured on LoCoMo, also by leaving each conversation out in turn; see docs/benchmarks.md.
MAX_TURNS: Final = 20
CLOSE: Final = 0.4  # of the best turn's score, below which a turn only distracts
HELD: Final = 0.25  # coverage, below which words alone make no turn part of an answer
ENOUGH: Final = 0.35  # coverage that one of the turns must have, where only words are known
ENOUGH_MEANT: Final = 0.7  # and coverage with a tenth of the nearness, where that is known too
NEAR: Final = 2.5  # spreads, from which a turn needs none of the question's words
TELLING: Final = 100  # texts, below which a memory is too small for its spread to tell anything;
APART: Final = 0.3  # there, near is what is so much more similar than the others are
RIVAL: Final = 0.1  # how much more of the question another person may say of themselves
_RIVALS: Final = 16  # turns that are looked at to find one


class Fitting:
    """What the turns found for one question come to."""

    def __init__(self, view: View, asked: Asked, turns: Turns, ranked: Sequence[Ranked]) -> None:
        self._view = view
        self._asked = asked
        self._turns = turns
        self._ranked = ranked
        self._large = view.text_stats.documents >= TELLING
        known = [turn.similar for turn in ranked if turn.similar is not None]
        self._similar, self._known = sum(known), len(known)

    def answering(self) -> list[Ranked]:
        """The turns that answer, best first; none if the best of them is not good enough."""
        best = self._ranked[:MAX_TURNS]
        found = [turn for turn in best if turn.score >= best[0].score * CLOSE and self._fits(turn)]
        if not any(map(self._carries, found)) or self._is_another(found):
            return []
        return found

    def sure(self, turn: Ranked) -> float:
        """0 to 1: how much of the question a turn answers, by its words or by its meaning."""
        if turn.near is None or turn.similar is None:
            return turn.coverage
        return min(1.0, max(turn.coverage, turn.near / 10 if self._large else turn.similar))

    def _fits(self, turn: Ranked) -> bool:
        """Whether a turn may be part of an answer."""
        near = self._is_near(turn)
        return (near or turn.coverage >= HELD) and bears(
            self._view, self._asked, self._turns, turn.id, near=near
        )

    def _carries(self, turn: Ranked) -> bool:
        """Whether a turn is good enough for there to be an answer."""
        if turn.near is not None and self._large:
            return turn.coverage + turn.near / 10 >= ENOUGH_MEANT
        return turn.coverage >= ENOUGH or self._is_near(turn)

    def _is_near(self, turn: Ranked) -> bool:
        """Whether a turn says what is asked, in whatever words."""
        if turn.near is None or turn.similar is None:
            return False
        if self._large:
            return turn.near >= NEAR
        others = (self._similar - turn.similar) / max(self._known - 1, 1)
        return turn.similar - others >= APART

    def _is_another(self, found: Sequence[Ranked]) -> bool:
        """Whether what is asked is rather true of somebody else, who says it of themselves."""
        asked, view = self._asked, self._view
        if not asked.focus or asked.kin is not None:
            return False
        spoken = [view.find(referrers_key(person.id)) for person in asked.focus]
        said = max(turn.own for turn in found)
        more = [turn for turn in self._ranked if turn.own > said + RIVAL]
        others: list[Ranked] = []
        for turn in heapq.nlargest(_RIVALS, more, key=lambda turn: (turn.own, turn.id)):
            if any(is_among(ids, turn.id) for ids in spoken):
                said = turn.own  # the most that the person says
                break
            others.append(turn)
        return any(turn.own > said + RIVAL and of_another(view, asked, turn.id) for turn in others)
