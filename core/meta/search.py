"""SEARCH: keyword grounding over all five kinds, as it was or as it is (KIP §66).

What lives here: the statement's clauses, and what a hit shows of its element. What must never live here: ranking
(`grounding`). A hit carries an exact id for the next command; its score is of this answer only and is stored
nowhere; and a miss says nothing about what exists.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

import msgspec

from core.authority import authorize
from core.errors import NoemaError
from core.language.ast_meta import Search
from core.meta.grounding import RANKING, Grounding, Hit, Probe, visible_texts
from core.meta.operands import (
    coordinates,
    count_of,
    fraction_of,
    optional_text,
    past_scope,
    seq_literal,
    state_at,
    text_of,
    world_of,
)
from core.meta.paging import Page, page_of
from core.model.elements import (
    KIND_OF_TYPE,
    Activity,
    AnyElement,
    Assertion,
    Concept,
    Evidence,
    Json,
    Proposition,
)
from core.model.ids import KINDS, Kind
from core.model.literals import Ref
from core.protocol.response import SearchContext, Warning  # noqa: A004 - the protocol's word
from core.query.values import plain
from core.query.world import World
from core.search.text import first_match, words
from core.state.space import SpaceState
from core.transaction.scope import Answer, Scope

MODE: Final = "keyword"
SEMANTICS: Final = f"{RANKING}: share of the best possible BM25 score; relevance, not confidence or belief"
_TERMS: Final = 32  # words of a query that count; a longer one is a document
_USUAL, _MOST = 20, 200
_SNIPPET: Final = 200  # characters
_BEFORE: Final = 60  # of them before the first word that fits

_NOTES: Final[dict[str, str]] = {
    "SearchNoTerms": "the term has no word that tells anything apart, so nothing was looked for",
    "SearchBounded": "more statements have these words than were ranked; add a word or WITH PREDICATE",
    "SearchMiss": "no hit does not mean that nothing is there: ask FIND by key, id or exact tuple",
}


def search(statement: Search, scope: Scope) -> Answer:
    """The elements that fit some words, best first, as an array of hits.

    Raises:
        NoemaError: NotAuthorized, SearchModeUnsupported, HistoricalSearchUnavailable, what is wrong with a name
            (SchemaSymbol...), an operand (TypeMismatch, ConstraintViolation) or the cursor.
        Missing: the older state that is searched must be handed in.
    """
    authorize(scope.context.principal, "search")
    _check_mode(optional_text(statement.mode, "MODE"))
    page = page_of("search", statement, scope, usual=_USUAL, most=_MOST)
    state = _searched(statement, page, scope)
    inner = past_scope(scope, state).searching()
    world = world_of(inner)
    probe = _probe(statement, inner)
    grounding = Grounding(world, probe)
    threshold = fraction_of(statement.threshold, "THRESHOLD") or 0.0
    start = int(page.at.get("o", 0))
    found = list(islice(grounding.hits(threshold), start, start + page.size + 1))
    rows = [_row(hit, world, probe) for hit in found[: page.size]]
    more = len(found) > page.size > 0
    pinned = isinstance(scope.request.read.snapshot_token, str)
    fresh = SearchContext(
        index_seq=state.seq,
        current_space_seq=msgspec.UNSET if pinned else scope.state.seq,
        consistency="snapshot" if pinned else "transactional" if state is scope.state else "historical",
        mode=MODE,
        score_semantics=SEMANTICS,
    )
    notes = _notes(probe, grounding, empty=not rows and start == 0)
    return Answer(
        value=rows,
        context=coordinates(inner, search=fresh),
        warnings=tuple(Warning(code=code, message=_NOTES[code]) for code in notes),
        next_cursor=page.cursor(o=start + page.size, n=state.seq) if more else None,
    )


def _notes(probe: Probe, grounding: Grounding, *, empty: bool) -> list[str]:
    notes = ["SearchBounded"] if grounding.cut else []
    if empty:
        notes.append("SearchMiss" if probe.terms else "SearchNoTerms")
    return notes


def _check_mode(mode: str | None) -> None:
    if mode not in {None, MODE}:
        raise NoemaError(
            "SearchModeUnsupported",
            f"there is no {str(mode)[:40]} search here",
            details={"requested": str(mode)[:80], "supported": [MODE]},
        )


def _searched(statement: Search, page: Page, scope: Scope) -> SpaceState:
    """The state whose index is searched: that of AS OF SEQ, or of the first page, or the present."""
    asked = count_of(statement.as_of_seq, "AS OF SEQ")
    seq = page.at.get("n", asked)
    if seq is None:
        return scope.state
    try:
        return state_at(scope, seq_literal(int(seq)))
    except NoemaError as error:
        if error.code != "HistoricalSnapshotUnavailable" or int(seq) > scope.state.seq:
            raise
        raise NoemaError(
            "HistoricalSearchUnavailable",
            f"there is no index of seq {seq} any more: {error.message}",
            details=error.details,
        ) from error


def _probe(statement: Search, scope: Scope) -> Probe:
    kinds: frozenset[Kind] = (
        frozenset(KINDS) if statement.kind == "cognition" else frozenset({statement.kind})
    )
    type_name = optional_text(statement.type, "WITH TYPE")
    predicate = optional_text(statement.predicate, "WITH PREDICATE")
    narrowed: frozenset[Kind] = frozenset()
    if type_name is not None:
        narrowed |= _narrowed(kinds, frozenset({"concept"}), "WITH TYPE")
    if predicate is not None:
        narrowed |= _narrowed(kinds, frozenset({"proposition", "assertion"}), "WITH PREDICATE")
    text = text_of(statement.term, "SEARCH")
    return Probe(
        terms=tuple(dict.fromkeys(words(text)))[:_TERMS],
        kinds=narrowed or kinds,
        type_ref=None if type_name is None else scope.env.type(type_name).ref,
        predicate_ref=None if predicate is None else scope.env.predicate(predicate).ref,
    )


def _narrowed(kinds: frozenset[Kind], possible: frozenset[Kind], clause: str) -> frozenset[Kind]:
    if not kinds & possible:
        raise NoemaError(
            "TypeMismatch",
            f"{clause} goes with {' or '.join(sorted(kind.upper() for kind in possible))} or COGNITION",
            details={"kinds": sorted(kinds)},
        )
    return kinds & possible


# --- hits


def _row(hit: Hit, world: World, probe: Probe) -> dict[str, Json]:
    """What is shown of a hit: enough to choose it and to name it exactly in the next command."""
    element = hit.element
    shown, snippet, matched = _shown(element, world, frozenset(probe.terms))
    row: dict[str, Json] = {"id": element.id, "kind": KIND_OF_TYPE[type(element)], **shown}
    if snippet:
        row["snippet"] = snippet
    row["retrieval"] = {"score": round(hit.score, 6), "mode": MODE, "matched_fields": matched}
    if hit.merged is not None:
        row["merged_from"] = hit.merged
    return row


def _shown(
    element: AnyElement, world: World, asked: frozenset[str]
) -> tuple[dict[str, Json], str, list[str]]:
    if isinstance(element, Proposition):
        return _proposition(element, world, asked)
    if isinstance(element, Assertion):
        return _assertion(element, world, asked)
    shown = {name: plain(world.field(element, (name,))) for name in _FIELDS[type(element)]}
    if isinstance(element, Evidence):
        shown["status"] = element.status
    snippet, matched = _snippet(visible_texts(element, world.hidden(element)), asked)
    return shown, snippet, matched


_FIELDS: Final[dict[type[Any], tuple[str, ...]]] = {
    Concept: ("schema_ref", "name", "key"),
    Evidence: ("evidence_class", "media_type", "content_digest", "observed_at"),
    Activity: ("activity_class", "status", "started_at", "ended_at"),
}


def _proposition(
    element: Proposition, world: World, asked: frozenset[str]
) -> tuple[dict[str, Json], str, list[str]]:
    subject = _end(element.subject, world)
    target = element.object
    obj: dict[str, Json] = _end(target.id, world) if isinstance(target, Ref) else {"value": plain(target)}
    name = element.predicate_ref.rpartition("/")[2]
    parts = [("subject", str(subject.get("label", ""))), ("predicate", name.replace("_", " "))]
    parts.append(("object", str(obj.get("label", obj.get("value", "")))))
    shown = {"predicate_ref": element.predicate_ref, "subject": subject, "object": obj}
    line = " · ".join(_clipped(text, asked) for _, text in parts if text)
    return shown, line[: 2 * _SNIPPET], [path for path, text in parts if first_match(text, asked)]


def _assertion(
    element: Assertion, world: World, asked: frozenset[str]
) -> tuple[dict[str, Json], str, list[str]]:
    shown = {
        name: plain(world.field(element, (name,)))
        for name in ("proposition", "stance", "mode", "asserted_at")
    }
    shown["status"] = element.status
    actor = shown["asserted_by"] = _end(element.asserted_by, world)
    snippet, matched = "", list[str]()
    proposition = world.get(element.proposition)
    if isinstance(proposition, Proposition):
        inner, snippet, matched = _proposition(proposition, world, asked)
        shown["statement"] = inner
    if first_match(str(actor.get("label", "")), asked):
        matched = [*matched, "asserted_by"]
    return shown, snippet, matched


def _end(element_id: str, world: World) -> dict[str, Json]:
    """An end of a statement: its id and, of a Concept that has one, its name; empty where it may not be seen."""
    if not world.sees(element_id):
        return {}
    end: dict[str, Json] = {"id": element_id}
    element = world.get(element_id)
    if isinstance(element, Concept):
        survivor = world.get(world.canonical(element_id))
        names = [world.field(found, ("name",)) for found in (element, survivor) if found is not None]
        label = next((name for name in names if isinstance(name, str)), None)
        if label is not None:
            end["label"] = label[:_SNIPPET]
    return end


def _snippet(texts: list[tuple[str, str]], asked: frozenset[str]) -> tuple[str, list[str]]:
    """The passage around the first word that fits, and every field that has one."""
    best = ""
    matched: dict[str, None] = {}
    for path, text in texts:
        if path in matched or first_match(text, asked) is None:
            continue
        matched[path] = None
        best = best or _clipped(text, asked)
    return best or (_clipped(texts[0][1], asked) if texts else ""), list(matched)


def _clipped(text: str, asked: frozenset[str]) -> str:
    """A text cut down to a passage that holds the first word that fits."""
    if len(text) <= _SNIPPET:
        return text
    place = first_match(text, asked)
    start = 0 if place is None else max(0, place[0] - _BEFORE)
    end = min(len(text), start + _SNIPPET)
    return ("…" if start else "") + text[start:end].strip() + ("…" if end < len(text) else "")
