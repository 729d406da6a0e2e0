"""Quotation: the turns that bear on a question, and what of each is quoted.

What lives here: what of a question the ranking of turns is asked, and whether a turn speaks of whom and of what the
question is about. What must never live here: the ranking itself (`core.search.turns`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from core.agents.dialogue import text_of
from core.agents.offline.alike import ALIKE
from core.agents.offline.cues import FIRST_PERSON
from core.agents.offline.kin import Kin
from core.agents.offline.lines import Line, name_of
from core.agents.offline.questions import DAY, Asked, name_terms
from core.model.elements import Concept, Evidence
from core.model.instants import to_datetime
from core.search.fusion import Nearness, Ranked, rank
from core.search.terms import Wanted
from core.search.text import words
from core.search.turns import Turns, session_of
from core.state.indexes import referrers_key
from core.state.view import View

_MOST_DAYS: Final = 7  # a longer time is looked up by its months
_SENTENCE: Final = re.compile(r"[.!?\n;。！？]+(?=\s|$)")
_YOU: Final = re.compile(r"\b(?:you|your|yours)\b", re.IGNORECASE)
_PASSAGE: Final = 320  # characters
_ROLE: Final = "role:"  # the key of a speaker who has no name begins so


def recall_turns(
    view: View, asked: Asked, turns: Turns, hidden: frozenset[str], dense: Nearness | None = None
) -> list[Ranked]:
    """The turns that bear on the question, best first.

    Args:
        view: the state.
        asked: the question.
        turns: the order of things said.
        hidden: elements that recall does not see.
        dense: how near turns are in meaning to `questions.unnamed(asked)`; None without an embedder.
    """
    spoken = view.find(referrers_key(asked.named[0].id)) if len(asked.named) == 1 else ()
    wanted = Wanted(asked.terms, ALIKE, _dated(view, asked), spoken, asked.light)
    return rank(turns, view, wanted, hidden.__contains__, dense)


def _dated(view: View, asked: Asked) -> dict[str, frozenset[str]]:
    """For each date's word in the question, the sessions of that time.

    A session's Event says its date in words (`core.agents.offline.formation`), so the text index knows the sessions
    of a day, a month or a year without looking at any other. In older spaces a day has two digits.
    """
    dated: dict[str, frozenset[str]] = {}
    for month in asked.months:
        name = f"{datetime(2000, month, 1, tzinfo=UTC):%B}"
        dated.update((term, _sessions_of(view, name)) for term in words(name))
    dated.update((str(year), _sessions_of(view, str(year))) for year in asked.years)
    if asked.day is not None:
        first, last = to_datetime(asked.day.start), to_datetime(asked.day.end - 1)
        days = [first + timedelta(days=n) for n in range(min((last - first).days, _MOST_DAYS) + 1)]
        texts = (
            {f"{moment:%B %Y}" for moment in days}
            if len(days) > _MOST_DAYS
            else {f"{number} {moment:%B %Y}" for moment in days for number in (moment.day, f"{moment:%d}")}
        )
        if asked.day.yearless:
            texts = {text[:-5] for text in texts}
        dated[DAY] = frozenset().union(*(_sessions_of(view, text) for text in texts))
    return dated


def _sessions_of(view: View, date: str) -> frozenset[str]:
    """The sessions whose Event has all the words of a date."""
    found = [
        frozenset(session_of(element) for element, _ in view.word(term) if element[0] == "C")
        for term in words(date)
    ]
    return frozenset.intersection(*found) if found else frozenset()


def bears(view: View, asked: Asked, turns: Turns, turn: str, *, near: bool = False) -> bool:
    """Whether a turn can answer: in one breath it speaks of whom and of what the question is about.

    A sentence with a telling word counts if it speaks of the person asked about, or if that person says it; so
    "I live in Porto. I saw Bob." does not say where Bob lives. A turn behind a question goes with it. What is
    `near` in meaning says what the question is about in other words, and needs none of its own.
    """
    said, asking = _said(view, turn), _question_before(view, turns, turn)
    breaths = [frozenset(words(piece)) for piece in _SENTENCE.split(said)]
    if asking:
        breaths.append(frozenset(words(asking)))
    evidence = view.get(turn)
    at = evidence.observed_at if isinstance(evidence, Evidence) else None
    on_day = asked.day is not None and at is not None and asked.day.covers(at)
    telling = _telling(asked)
    concerned = _concerned(view, asked, turns, turn)
    return any((near or on_day or telling & breath) and concerned(breath) for breath in breaths)


def _telling(asked: Asked) -> frozenset[str]:
    """The words that what the question is about is said by."""
    own = set(asked.terms) - asked.light
    if asked.kin is not None:  # that somebody has a sister does not say what she likes
        own = own - asked.kin.terms or own
    return frozenset(one for term in own for one in (term, *ALIKE.get(term, ())))


def of_another(view: View, asked: Asked, turn: str) -> bool:
    """Whether somebody else says what the question is about of themselves: "I went to the opera", not "Ada did"."""
    if any(str(key).startswith(_ROLE) for key in _speaker_keys(view, turn)):
        return False  # an assistant's "I" is no person's
    names = frozenset(term for person in asked.focus for term in name_terms(person))
    for piece in _SENTENCE.split(_said(view, turn)):
        breath = frozenset(words(piece))
        if FIRST_PERSON.search(piece) and not names & breath and _telling(asked) & breath:
            return True
    return False


def _speaker_keys(view: View, turn: str) -> list[str | None]:
    speakers = [view.get(one) for one in sorted(speaker_ids(view, turn))]
    return [speaker.key for speaker in speakers if isinstance(speaker, Concept)]


def _concerned(view: View, asked: Asked, turns: Turns, turn: str) -> Callable[[frozenset[str]], bool]:
    """Whether the words of a sentence of this turn speak of those whom the question is about."""
    speakers = speaker_ids(view, turn)
    if asked.kin is not None:
        return partial(_concerns_kin, asked, asked.kin, speakers)
    named = {person.id for person in asked.named}
    if not named or speakers & {person.id for person in asked.focus}:
        return asked.strangers.issubset
    beside = {one for other in turns.around(turn) for one in speaker_ids(view, other)}
    if beside & named and _YOU.search(_said(view, turn)):
        return asked.strangers.issubset  # spoken to the person asked about
    wanted = frozenset(term for person in asked.named for term in name_terms(person))
    return lambda breath: asked.strangers <= breath and bool(wanted & breath)


def _concerns_kin(asked: Asked, kin: Kin, speakers: frozenset[str], breath: frozenset[str]) -> bool:
    """Whether a sentence is said by or speaks of somebody's relative: by name, or as theirs."""
    if not asked.strangers <= breath:
        return False
    if any(person.id in speakers or name_terms(person) & breath for person in kin.people):
        return True
    theirs = kin.owner is None or kin.owner.id in speakers or bool(name_terms(kin.owner) & breath)
    return theirs and bool(kin.terms & breath)


def speaker_ids(view: View, turn: str) -> frozenset[str]:
    """Who said a turn."""
    evidence = view.get(turn)
    return frozenset(evidence.source) if isinstance(evidence, Evidence) else frozenset()


def _question_before(view: View, turns: Turns, turn: str) -> str:
    """The turn before, if it asks something that this one may answer; else the empty text."""
    before = turns.before(turn)
    if before is None:
        return ""
    text = _said(view, before)
    return text if text.rstrip().endswith(("?", "？")) else ""


def _said(view: View, turn: str) -> str:
    evidence = view.get(turn)
    return text_of(evidence.payload.inline) if isinstance(evidence, Evidence) else ""


def turn_line(view: View, asked: Asked, turn: str, sure: float) -> Line | None:
    """A turn as a line: its sentence that fits best, who said it and when. sure: 0 to 1, that it answers."""
    evidence = view.get(turn)
    if not isinstance(evidence, Evidence):
        return None
    speaker = next((view.get(source) for source in evidence.source), None)
    # Somebody else's word on whom the question is about, or on somebody unknown, is worth little more than half.
    about = asked.kin.people if asked.kin is not None else asked.focus
    known = not (asked.strangers or asked.kin or asked.named or asked.lost)
    direct = known or bool(set(evidence.source) & {person.id for person in about})
    return Line(
        text=best_passage(text_of(evidence.payload.inline), asked.terms),
        entity=evidence.id,
        kind=evidence.evidence_class,
        speaker=name_of(speaker),
        at=evidence.observed_at or evidence.system.created_at,
        source=evidence.id,
        sure=sure * (1.0 if direct else 0.6),
    )


def best_passage(text: str, terms: tuple[str, ...]) -> str:
    """The part of a text that holds most of the terms, at most `_PASSAGE` characters, cut between words."""
    flat = " ".join(text.split())
    if len(flat) <= _PASSAGE:
        return flat
    wanted = set(terms)
    best, best_score = 0, -1
    for start in range(0, len(flat) - _PASSAGE // 2, _PASSAGE // 4):
        score = len(wanted & set(words(flat[start : start + _PASSAGE])))
        if score > best_score:
            best, best_score = start, score
    piece = flat[best : best + _PASSAGE]
    if best:
        piece = "…" + piece.partition(" ")[2] if " " in piece[:40] else "…" + piece
    if best + _PASSAGE < len(flat):
        piece = (piece.rpartition(" ")[0] if " " in piece[-40:] else piece) + "…"
    return piece
