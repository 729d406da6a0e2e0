"""Answers by extraction: what is believed, then what was said, each with its receipt. No word is invented.

An answer says how uncertain it is, and says so when there is nothing. What decides that is in `fitting`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from core.agents.dialogue import Question
from core.agents.offline.claimed import recall_claims
from core.agents.offline.cues import LISTED
from core.agents.offline.fitting import Fitting
from core.agents.offline.lines import Line, day, hidden_ids
from core.agents.offline.pending import recall_commitments
from core.agents.offline.questions import Asked, read_asked, unnamed
from core.agents.offline.quotation import recall_turns, turn_line
from core.agents.offline.rules.rule import one_spelling
from core.agents.vocabulary import FUNCTIONAL, predicate
from core.model.instants import Instant
from core.search.dense import Degraded, Dense
from core.search.text import words
from core.search.turns import Turns
from core.state.view import View

Search = Callable[[str], Dense]
"""Finds what is near a text in meaning."""

NOTHING: Final = "I have nothing on that."
QUOTED: Final = 5  # turns in the text; the others are citations only
QUOTED_BESIDE: Final = 2  # turns in the text where claims answer already


class Answer(msgspec.Struct, frozen=True):
    """What recall answers. `cited` are the receipts in the order of their numbers in the text.

    degraded: why nearness in meaning did not rank, or not everything (`core.search.dense`); None if nothing was
    wanting, or where the deployment has no embedder.
    """

    text: str
    found: bool
    uncertainty: float
    cited: tuple[Line, ...] = ()
    degraded: Degraded | None = None


def answer(view: View, question: Question, now: Instant, search: Search | None = None) -> Answer:
    """Answer a question from a state, as of `now` (ms).

    Args:
        view: the state.
        question: what is asked.
        now: the time at which it is asked.
        search: finds what is near a text in meaning; None without an embedder.
    """
    asked = read_asked(view, question, now)
    dense = search(unnamed(asked)) if search is not None else None
    hidden, turns = hidden_ids(view), Turns(view)
    claims = [*recall_claims(view, asked, now), *recall_commitments(view, asked, now)]
    fits = Fitting(view, asked, turns, recall_turns(view, asked, turns, hidden, dense))
    lines = (turn_line(view, asked, turn.id, fits.sure(turn)) for turn in fits.answering())
    said = _distinct([line for line in lines if line is not None])
    degraded = None if dense is None else dense.degraded
    if not claims and not said:
        return Answer(NOTHING, found=False, uncertainty=1.0, degraded=degraded)
    return Answer(
        text=_text(claims, said),
        found=True,
        uncertainty=round(_uncertainty(asked, claims, said), 2),
        cited=(*claims, *said),
        degraded=degraded,
    )


def _distinct(said: list[Line]) -> list[Line]:
    """Of turns that say the same by the same speaker, the one that came first; a repetition tells nothing new."""
    first: dict[tuple[str, str], Line] = {}
    for line in said:
        first.setdefault((line.speaker, line.text), line)
    return list(first.values())


def _text(claims: list[Line], said: list[Line]) -> str:
    """Claims as sentences, then the turns as quotations, numbered through."""
    parts = []
    for number, line in enumerate(claims, 1):
        by = f"{line.speaker}, {day(line.at)}"
        lead = "" if line.current or line.kind == "commitment" else "Earlier: "
        parts.append(f"{lead}{line.text} (said by {by}) [{number}].")
    quoted = said[: QUOTED_BESIDE if claims else QUOTED]
    for number, line in enumerate(quoted, len(claims) + 1):
        parts.append(f"{line.speaker}, {day(line.at)}: “{line.text}” [{number}]")
    return "\n".join(parts)


def _uncertainty(asked: Asked, claims: list[Line], said: list[Line]) -> float:
    """0 sure to 1 guessing: by the claims' confidence, doubled doubt where they disagree; else by coverage.

    A list of likings that says nothing of what else the question names is half a guess, and so is a fact for a reason.
    """
    current = [line for line in claims if line.current or line.kind == "commitment"]
    if current:
        doubt = 1 - max(line.confidence or 0.8 for line in current)
        slots: dict[str, set[str]] = {}
        for line in current:
            if predicate(line.kind) in FUNCTIONAL and line.kind in asked.predicates:
                slots.setdefault(line.kind, set()).add(line.text)
        contested = (
            any(len(values) > 1 for values in slots.values()) and len({line.speaker for line in current}) > 1
        )
        held = {term for line in current for term in words(one_spelling(line.text))}
        listed = all(line.kind in LISTED for line in current)
        beside = listed and bool(asked.rest) and not asked.rest & held
        return 0.5 if contested or beside or asked.reason else max(0.05, doubt)
    best = max((line.sure for line in said), default=0.0)
    return max(0.3, 1 - 0.7 * best)
