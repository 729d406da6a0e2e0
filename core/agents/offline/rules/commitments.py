"""Commitments: promises, reminders, appointments and plans that have a date."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from core.agents.offline.claims import SPEAKER, Finding, Promise
from core.agents.offline.clauses import Clause
from core.agents.offline.dates import When, find_dates
from core.agents.offline.rules.rule import expand
from core.model.instants import Instant

_REMIND: Final = re.compile(
    r"(?:please |can you |could you )?(?:remind me|don't let me forget|do not let me forget) (?:to |about |that )(?P<what>.+)",
    re.IGNORECASE,
)
_REMIND_LATER: Final = re.compile(
    r"(?:please )?remind me (?P<when>.+?) (?:to|about) (?P<what>.+)", re.IGNORECASE
)
_PROMISE: Final = re.compile(
    r"i (?:hereby )?promise (?:you )?(?:(?:that )?i will |to )(?P<what>.+)", re.IGNORECASE
)
# A bare "I'll ..." is small talk more often than not, so it needs a date.
_WILL: Final = re.compile(
    r"(?:i|we) (?:will|am going to|are going to|shall) (?P<what>(?!not |never |be (?:fine|ok|okay|honest|back|there|happy)|let you know|see you|keep|miss|always|love)[a-z].+)",
    re.IGNORECASE,
)
_GOING: Final = re.compile(
    r"(?i:(?:i am|we are) (?:also )?going to )(?P<what>(?:a|an|the|my|our|another|[A-Z])\b.+)"
)
_MUST: Final = re.compile(
    r"(?:i|we) (?:need to|have to|must|have got to|am supposed to|plan to|am planning to|intend to) (?P<what>(?!say|admit|go now|run)[a-z].+)",
    re.IGNORECASE,
)
_OWED: Final = re.compile(
    r"i (?:will|am going to) (?:have|get) (?P<what>.+? (?:done|ready|finished|to you).*)", re.IGNORECASE
)
_APPOINTMENT: Final = re.compile(
    r"(?:i|we) (?:have|got|have got|booked|scheduled|made) (?:a|an|my|our|another|the) (?P<what>(?:[\w'-]+ ){0,4}?(?:appointment|meeting|interview|flight|exam|test|call|"
    r"reservation|checkup|check-up|surgery|deadline|party|wedding|concert|class|lesson|trip|conference|presentation|date|session|race|workshop)\b.*)"
    r"|my (?P<thing>(?:[\w'-]+ ){0,3}?(?:appointment|meeting|interview|flight|exam|surgery|deadline|wedding|checkup|conference|presentation)) is (?P<rest>.+)",
    re.IGNORECASE,
)
_LONG: Final = 300


def match(clause: Clause, said_at: Instant) -> Iterator[Finding]:
    """Commitments in a clause, with the date they are due."""
    text = expand(clause.text)
    dates = [when for when in find_dates(text, said_at) if when.end > said_at]
    due = dates[0] if len(dates) == 1 else _earliest(dates)
    if hit := (_REMIND.match(text) or _REMIND_LATER.match(text)):
        yield _promise(hit["what"], "reminder", due, clause)
    elif hit := _PROMISE.match(text):
        yield _promise(hit["what"], "promise", due, clause)
    elif due is None:
        return
    elif hit := _APPOINTMENT.match(text):
        yield _promise(hit["what"] or hit["thing"], "appointment", due, clause)
    elif hit := _GOING.match(text):
        yield _promise(f"go to {hit['what']}", "plan", due, clause)
    elif hit := (_OWED.match(text) or _WILL.match(text)):
        yield _promise(hit["what"], "promise", due, clause)
    elif hit := _MUST.match(text):
        yield _promise(hit["what"], "plan", due, clause)


def _earliest(dates: list[When]) -> When | None:
    """The first of several dates: a commitment falls due when its first date does."""
    return min(dates, key=lambda when: when.start) if dates else None


def _promise(what: str, commitment_class: str, due: When | None, clause: Clause) -> Promise:
    summary = what.strip(" .!,")[:_LONG]
    return Promise(SPEAKER, summary, commitment_class, due, clause.span)  # type: ignore[arg-type]  # one of the four literals above
