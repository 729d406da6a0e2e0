"""Corrections: a value put in place of another without saying again what it is the value of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from core.agents.offline.claims import Correction, Finding
from core.agents.offline.clauses import Clause
from core.agents.offline.rules.rule import expand
from core.model.instants import Instant

_V: Final = r"[\w+\-:/À-ÿ](?:[\w+\-:/'. À-ÿ]{0,40}?[\w+\-:/À-ÿ])?"
_LEAD: Final = r"(?:(?:it|that) (?:is|was|should be)(?: actually| now| really)? |i meant(?: to say)? |make that |i am (?:in|on|at|from)(?: now)? )"

# Each row: what is new, and what it replaces. The whole clause must match, so nothing is read out of a longer story.
RULES: Final[tuple[re.Pattern[str], ...]] = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_LEAD}?not (?:in |at |on )?(?P<old>{_V}),? (?:but |it is |it's )?(?:in |at |on )?(?P<new>{_V})\Z",
        rf"{_LEAD}(?:in |at |on )?(?P<new>{_V}),? (?:and )?not (?:in |at |on )?(?P<old>{_V})(?: anymore| any more)?\Z",
        rf"(?P<new>[A-Z+\d]{_V[3:]}|[A-Z]\w+),? not (?:in |at |on )?(?P<old>{_V})\Z",
        rf"{_LEAD}(?P<new>{_V})(?: now| instead| these days)\Z",
    )
)
# Without "now" or an old value, only after a word that announces a correction.
_ANNOUNCED: Final = re.compile(rf"{_LEAD}(?P<new>{_V})\Z", re.IGNORECASE)
_ANNOUNCERS: Final = ("actually", "sorry", "correction", "oops", "i mean", "update", "no")


def match(clause: Clause, said_at: Instant) -> Iterator[Finding]:  # noqa: ARG001 - one signature for all families
    """The correction that a clause is, if it is one: `"it's UTC+1 now"` after "actually"."""
    text = expand(clause.text).strip()
    for pattern in RULES:
        hit = pattern.match(text)
        if hit:
            yield Correction(hit["new"].strip(), hit.groupdict().get("old"), clause.span)
            return
    if any(word in clause.opener for word in _ANNOUNCERS) and (hit := _ANNOUNCED.match(text)):
        yield Correction(hit["new"].strip(), None, clause.span)
