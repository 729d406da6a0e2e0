"""Pending: the open commitments that a question asks for, as lines with their receipts."""

from __future__ import annotations

from itertools import islice
from typing import Final

from core.agents.offline.cues import COMMITMENTS
from core.agents.offline.dates import When, find_dates
from core.agents.offline.lines import Line, day, name_of
from core.agents.offline.questions import Asked, name_terms
from core.agents.vocabulary import COMMITMENT, COMMITTED_TO
from core.model.elements import Concept
from core.model.instants import Instant, parse_instant
from core.search.text import words
from core.state.indexes import type_key
from core.state.view import View

MAX_PENDING: Final = 6  # lines of one answer
MAX_COMMITMENTS: Final = 500  # the newest, looked at for one question


def recall_commitments(view: View, asked: Asked, now: Instant) -> list[Line]:
    """Open commitments, if the question asks for any: those it names, by when they are due.

    Of those on record the newest are looked at, so that a question costs the same however long the record.
    """
    if COMMITMENTS.search(asked.text) is None or (asked.kin is not None and not asked.kin.people):
        return []
    makers = {person.id for person in (asked.named if asked.kin is None else asked.kin.people)}
    ahead = find_dates(asked.text, now)
    span = ahead[0] if len(ahead) == 1 else None
    terms = asked.rest - (frozenset(words(span.words)) if span is not None else frozenset())
    found: list[tuple[int, Instant, Line]] = []
    for element in islice(reversed(view.find(type_key(COMMITMENT))), MAX_COMMITMENTS):
        made = view.get(element)
        if (
            not isinstance(made, Concept)
            or made.system.state != "active"
            or made.attributes.get("status") != "pending"
        ):
            continue
        line, at = _commitment(view, made, now)
        maker = next((ref.target for ref in made.structural if ref.field == COMMITTED_TO), None)
        summary = frozenset(words(str(made.attributes.get("summary"))))
        told = {term for person in asked.named for term in name_terms(person)}
        if makers and maker not in makers and not told & summary:
            continue
        if not asked.strangers <= summary or (span is not None and not _falls(span, at)):
            continue
        found.append((-len(terms & summary), at if at >= now else at + 2**52, line))
    found.sort(key=lambda row: row[:2])
    wanted = [line for overlap, _, line in found if overlap or not terms or span is not None]
    return wanted[:MAX_PENDING]


def _commitment(view: View, made: Concept, now: Instant) -> tuple[Line, Instant]:
    """A commitment as a line, and when it is due (far off where that was not said)."""
    maker = next((view.get(ref.target) for ref in made.structural if ref.field == COMMITTED_TO), None)
    due = str(made.attributes.get("due_at") or "")
    at = parse_instant(due) if due else 2**52
    text = f"{name_of(maker)} ({made.attributes.get('commitment_class')}): {made.attributes.get('summary')}"
    text += f", due {day(at)}" if due else ""
    said = parse_instant(str(made.attributes["created_at"]))
    source = next((ref.target for ref in made.structural if ref.target.startswith("E-")), None)
    return Line(text, made.id, "commitment", name_of(maker), said, source, sure=0.8, current=at >= now), at


def _falls(span: When, at: Instant) -> bool:
    return span.start <= at < span.end
