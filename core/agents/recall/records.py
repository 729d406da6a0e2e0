"""Records: any element in a line, as a search shows it and as an answer cites it.

What lives here: what of an element is told, and how much of it. What must never live here: which elements bear on a
question (`core.agents.recall.looking`). Only what is active is told: what was archived or merged is no memory now.
"""

from __future__ import annotations

from typing import Final

import msgspec

from core.agents.dialogue import text_of
from core.agents.offline.lines import Line, name_of
from core.agents.vocabulary import local_name
from core.model.elements import Activity, AnyElement, Assertion, Concept, Evidence, Json, Proposition
from core.model.instants import format_instant
from core.model.literals import Literal, Term
from core.state.view import View

MAX_TEXT: Final = 1200  # characters of one record
_TOLD: Final = ("text", "summary", "goal", "description", "display_name", "outcome_summary")


def record_of(view: View, element_id: str, *, most: int = MAX_TEXT) -> Line | None:
    """An element as a line with its receipt; None if it is not there, not visible or no longer active."""
    element = view.get(element_id)
    if element is None or element.system.state != "active":
        return None
    if isinstance(element, Evidence):
        return _said(view, element, most)
    if isinstance(element, Assertion):
        return _claimed(view, element, most)
    text, kind = _plain(view, element)
    return Line(_cut(text, most), element.id, kind, "", element.system.created_at)


def _said(view: View, element: Evidence, most: int) -> Line:
    return Line(
        text=_cut(text_of(element.payload.inline), most),
        entity=element.id,
        kind=element.evidence_class,
        speaker=name_of(next((view.get(source) for source in element.source), None)),
        at=element.observed_at or element.system.created_at,
        source=element.id,
        current=element.status == "active",
    )


def _claimed(view: View, element: Assertion, most: int) -> Line:
    about = view.get(element.proposition)
    text, kind = _plain(view, about) if isinstance(about, Proposition) else ("", "assertion")
    if element.stance != "support":
        text = f"{element.stance}: {text}"
    line = Line(
        text=_cut(text, most),
        entity=element.id,
        kind=kind,
        speaker=name_of(view.get(element.asserted_by)),
        at=element.asserted_at,
        source=element.evidence[0].evidence if element.evidence else None,
        confidence=element.confidence,
        current=element.status == "active",
    )
    return receipted(view, line)


def _plain(view: View, element: AnyElement) -> tuple[str, str]:
    """The words and the kind of an element that nobody says."""
    if isinstance(element, Proposition):
        kind = local_name(element.predicate_ref)
        subject = name_of(view.get(element.subject))
        return f"{subject} {kind.replace('_', ' ')} {_object(view, element.object)}", kind
    if isinstance(element, Concept):
        told = (str(element.attributes[name]) for name in _TOLD if element.attributes.get(name))
        parts = [element.name or element.key or "", next(told, "")]
        return ": ".join(dict.fromkeys(part for part in parts if part)), local_name(element.schema_ref)
    if isinstance(element, Activity):
        return f"{element.activity_class} ({element.status})", "activity"
    return "", "element"


def _object(view: View, term: Term) -> str:
    return str(term.value) if isinstance(term, Literal) else name_of(view.get(term.id))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def receipted(view: View, line: Line) -> Line:
    """A line that names no Evidence which the view does not show."""
    hidden = line.source is not None and view.get(line.source) is None
    return msgspec.structs.replace(line, source=None) if hidden else line


def row_of(line: Line, most: int = MAX_TEXT) -> dict[str, Json]:
    """A line as JSON for a model: what is not known is left out."""
    told: dict[str, Json] = {
        "id": line.entity,
        "kind": line.kind,
        "text": _cut(line.text, most),
        "who": line.speaker or None,
        "when": format_instant(line.at),
        "source": line.source if line.source != line.entity else None,
        "confidence": line.confidence,
        "current": None if line.current else False,
    }
    return {name: value for name, value in told.items() if value is not None}
