"""SEARCH: grounding over all five kinds by words, by meaning or by both, as it was or as it is (KIP §66).

What lives here: the statement's clauses, and what a hit shows of its element. What must never live here: ranking
(`grounding`). A hit carries an exact id for the next command; its score is of this answer only and is stored
nowhere; and a miss says nothing about what exists.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final, Literal

import msgspec

from core.authority import authorize
from core.errors import NoemaError
from core.language.ast_meta import Search
from core.meta.grounding import MEANING, RANKING, Grounding, Hit, Probe, visible_texts
from core.meta.meaning import Meaning
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
from core.search.dense import Dense
from core.search.text import first_match, words
from core.state.layer import Layer
from core.state.space import SpaceState
from core.transaction.scope import Answer, Scope

Mode = Literal["keyword", "semantic", "hybrid"]
_BY_WORDS: Final = f"{RANKING}: share of the best possible BM25 score"
_NEITHER: Final = "relevance, not confidence or belief"
_TERMS: Final = 32  # words of a query that count; a longer one is a document
_USUAL, _MOST = 20, 200
_SNIPPET: Final = 200  # characters
_BEFORE: Final = 60  # of them before the first word that fits

_NOTES: Final[dict[str, str]] = {
    "SearchNoTerms": "the term has no word that tells anything apart, so nothing was looked for",
    "SearchBounded": "more statements have these words than were ranked; add a word or WITH PREDICATE",
    "SearchMeaningUnavailable": "nothing could be compared by meaning: these hits are by words alone",
    "SearchIndexLags": "the newest commits were not compared by meaning yet; index_seq says up to where all were",
    "SearchIndexPartial": "not all of the memory was compared by meaning; what is missing is found by words",
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
    mode = _mode_of(optional_text(statement.mode, "MODE"), scope)
    page = page_of("search", statement, scope, usual=_USUAL, most=_MOST)
    state = _searched(statement, page, scope)
    inner = past_scope(scope, state).searching()
    world = world_of(inner)
    probe = _probe(statement, inner)
    dense = None if mode == "keyword" else _nearest(mode, statement, state, scope)
    grounding = _grounding(world, probe, dense, mode)
    threshold = fraction_of(statement.threshold, "THRESHOLD") or 0.0
    start = int(page.at.get("o", 0))
    found = list(islice(grounding.hits(threshold), start, start + page.size + 1))
    used: Mode = mode if dense is None or dense.coverage.usable else "keyword"
    rows = [_row(hit, world, probe, used) for hit in found[: page.size]]
    more = len(found) > page.size > 0
    notes = _notes(probe, grounding, by_words=used != "semantic", empty=not rows and start == 0)
    return Answer(
        value=rows,
        context=coordinates(inner, search=_fresh(scope, state, used, dense)),
        warnings=(*_of_coverage(dense, used), *notes),
        next_cursor=page.cursor(o=start + page.size, n=state.seq) if more else None,
    )


def _fresh(scope: Scope, state: SpaceState, mode: Mode, dense: Dense | None) -> SearchContext:
    """How fresh the answer is: an index that lags never passes for the state it is asked of (KIP §66.5, §79)."""
    pinned = isinstance(scope.request.read.snapshot_token, str)
    consistency = "snapshot" if pinned else "transactional" if state is scope.state else "historical"
    index_seq, semantics = state.seq, _BY_WORDS
    if mode != "keyword" and dense is not None:
        by_meaning = f"cosine by {str(dense.coverage.model)[:40]}"
        semantics = f"{MEANING}: {by_meaning}" if mode == "semantic" else f"half {RANKING}, half {by_meaning}"
        if dense.degraded is not None:
            consistency, index_seq = "eventual", dense.coverage.index_seq
    return SearchContext(
        index_seq=index_seq,
        current_space_seq=msgspec.UNSET if pinned else scope.state.seq,
        consistency=consistency,
        mode=mode,
        score_semantics=f"{semantics}; {_NEITHER}",
    )


def _grounding(world: World, probe: Probe, dense: Dense | None, mode: Mode) -> Grounding:
    if dense is None or not dense.coverage.usable:
        return Grounding(world, probe)
    meaning = Meaning(world, dense, probe.kinds, probe.predicate_ref)
    return Grounding(world, probe, meaning, by_words=mode == "hybrid")


def _nearest(mode: Mode, statement: Search, state: SpaceState, scope: Scope) -> Dense:
    """What lies near to the term at the state that is searched.

    Raises:
        NoemaError: SearchIndexUnavailable where nothing can be compared and meaning alone was asked for, where the
            request wants one state for all it reads and the index is behind it, and where it would tell of what is
            hidden; HistoricalSearchUnavailable for a past without vectors.
        Missing: the nearest elements must be handed in.
    """
    if state is scope.state and isinstance(scope.view, Layer) and scope.view.elements:
        raise _unavailable("what this transaction has written is not compared by meaning", "uncommitted")
    dense = scope.context.given.nearest(text_of(statement.term, "SEARCH"), state.seq)
    coverage = dense.coverage
    if not coverage.usable and mode == "semantic":
        if state is not scope.state:
            raise NoemaError(
                "HistoricalSearchUnavailable",
                f"seq {state.seq} cannot be searched by meaning",
                details={"reason": coverage.degraded},
            )
        raise _unavailable("nothing can be compared by meaning right now", coverage.degraded)
    if coverage.usable and coverage.degraded is not None and scope.request.mode == "atomic":
        raise _unavailable("the vectors are behind the state that this request reads", coverage.degraded)
    if coverage.bounded and not _sees_all(scope):
        raise _unavailable(
            "so large a memory is searched by meaning only by who may see all of it", "restricted"
        )
    return dense


def _sees_all(scope: Scope) -> bool:
    world = world_of(scope.searching())
    return world.open and world.context.hidden_fields is None


def _unavailable(message: str, reason: str | None) -> NoemaError:
    return NoemaError(
        "SearchIndexUnavailable",
        message,
        hint='Use MODE "keyword", or try again.',
        details={"reason": reason},
    )


def _of_coverage(dense: Dense | None, mode: Mode) -> tuple[Warning, ...]:
    """What an answer by meaning did not cover, said with the reason."""
    if dense is None or dense.degraded is None:
        return ()
    coverage = dense.coverage
    lags = "SearchIndexLags" if coverage.degraded == "lagging" or coverage.index_seq else "SearchIndexPartial"
    code = "SearchMeaningUnavailable" if mode == "keyword" else lags
    details = {"reason": coverage.degraded, "model": coverage.model, "index_seq": coverage.index_seq}
    return (Warning(code=code, message=_NOTES[code], details=details),)


def _notes(probe: Probe, grounding: Grounding, *, by_words: bool, empty: bool) -> list[Warning]:
    notes = ["SearchBounded"] if grounding.cut else []
    if empty:
        notes.append("SearchNoTerms" if by_words and not probe.terms else "SearchMiss")
    return [Warning(code=code, message=_NOTES[code]) for code in notes]


def _mode_of(text: str | None, scope: Scope) -> Mode:
    there: tuple[Mode, ...] = ("keyword", "semantic", "hybrid") if scope.context.semantic else ("keyword",)
    mode = "keyword" if text is None else next((one for one in there if one == text), None)
    if mode is None:
        raise NoemaError(
            "SearchModeUnsupported",
            f"there is no {str(text)[:40]} search here",
            details={"requested": str(text)[:80], "supported": list(there)},
        )
    return mode


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


def _row(hit: Hit, world: World, probe: Probe, mode: Mode) -> dict[str, Json]:
    """What is shown of a hit: enough to choose it and to name it exactly in the next command."""
    element = hit.element
    shown, snippet, matched = _shown(element, world, frozenset(probe.terms))
    row: dict[str, Json] = {"id": element.id, "kind": KIND_OF_TYPE[type(element)], **shown}
    if snippet:
        row["snippet"] = snippet
    row["retrieval"] = {"score": round(hit.score, 6), "mode": mode, "matched_fields": matched}
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
