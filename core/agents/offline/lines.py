"""Lines: one thing each that bears on a question, with its receipt.

What lives here: the value, and how a person and a day are written in it. What must never live here: what bears on a
question (`claimed`, `pending`, `quotation`).
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from core.agents.offline.dates import MONTHS
from core.model.elements import Concept
from core.model.instants import Instant, to_datetime
from core.state.indexes import state_key
from core.state.view import View

_DATE: Final = re.compile(
    r"(?P<year>\d{4}|-)-(?P<month>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12]\d|3[01])", re.ASCII
)
_MONTHS: Final = tuple(name.capitalize() for name in MONTHS)
_GONE: Final = ("archived", "tombstoned", "merged", "purged")


class Line(msgspec.Struct, frozen=True):
    """One thing that bears on a question: what to say, and its receipt.

    entity: the element that says it. source: the Evidence it rests on. sure: 0 to 1. current: it holds now.
    """

    text: str
    entity: str
    kind: str
    speaker: str
    at: Instant
    source: str | None = None
    confidence: float | None = None
    sure: float = 0.0
    current: bool = True


def hidden_ids(view: View) -> frozenset[str]:
    """Elements that recall does not see: archived, tombstoned, merged, purged."""
    return frozenset(element for state in _GONE for element in view.find(state_key(state)))


def name_of(element: object) -> str:
    """What a person is called."""
    return element.name or element.key or "somebody" if isinstance(element, Concept) else "somebody"


def day(instant: Instant) -> str:
    """A date as answers write it: `8 May 2023`."""
    moment = to_datetime(max(min(instant, 253_402_214_400_000), -62_135_510_400_000))
    return f"{moment.day} {moment:%B %Y}"


def spelled(value: str) -> str:
    """A value as answers write it: `1990-05-08` is `8 May 1990`, and `--05-08` is `8 May`; any other is itself."""
    found = _DATE.fullmatch(value)
    if found is None:
        return value
    return f"{int(found['day'])} {_MONTHS[int(found['month']) - 1]} {found['year']}".removesuffix(" -")
