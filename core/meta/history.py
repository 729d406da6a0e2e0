"""HISTORY ELEMENT and HISTORY SPACE: which transactions changed what, in the order of the log (KIP §68.1).

What lives here: chronology. What must never live here: content; a row names the commit, the version, the kind of
change and which parts of an element it touched, and FIND ... AS OF reads what stood there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from core.authority import authorize, holds
from core.errors import NoemaError
from core.language.ast_meta import History
from core.meta.log import CHUNK, MOST, is_shown, seen_changes, walk
from core.meta.operands import coordinates, count_of, text_of, world_of
from core.meta.paging import Page, page_of
from core.model.elements import Activity, AnyElement, Assertion, Evidence, Json
from core.model.ids import is_element_id, kind_of, version_of_transaction
from core.model.instants import format_instant
from core.model.log import Change, Delta
from core.protocol.response import Warning  # noqa: A004 - the protocol's word
from core.transaction.scope import Answer, Scope

_USUAL, _MOST = 100, 1_000
_NOT_CONTENT: Final = frozenset({"id", "system"})


class Range(msgspec.Struct, frozen=True):
    """The commits asked for, by `space_seq`, both ends included."""

    start: int
    end: int

    def __contains__(self, seq: int) -> bool:
        return self.start <= seq <= self.end


def history(statement: History, scope: Scope) -> Answer:
    """The chronology of an element or of the space, oldest first, as an array of transitions.

    Raises:
        NoemaError: NotFoundOrNotVisible for an element there is not, or that the caller may not discover;
            HistoricalSnapshotUnavailable for a FROM that has not been reached; what is wrong with an operand or
            the cursor.
        Missing: commits of the log must be handed in.
    """
    authorize(scope.context.principal, "read_history")
    page = page_of("history", statement, scope, usual=_USUAL, most=_MOST)
    asked = _range(statement, scope)
    if statement.element is not None:
        return _of_element(_element(statement, scope), asked, page, scope)
    return _of_space(asked, page, scope)


def _range(statement: History, scope: Scope) -> Range:
    start = count_of(statement.from_seq, "FROM SEQ") or 0
    end = count_of(statement.to_seq, "TO SEQ")
    if start > scope.state.seq:
        raise NoemaError(
            "HistoricalSnapshotUnavailable",
            f"the space has not reached seq {start}; it is at {scope.state.seq}",
            hint="Name a point up to `head_seq`.",
            details={"head_seq": scope.state.seq},
        )
    if end is not None and end < start:
        raise NoemaError("ConstraintViolation", "TO SEQ is before FROM SEQ")
    return Range(start, scope.state.seq if end is None else end)


def _element(statement: History, scope: Scope) -> AnyElement:
    element_id = text_of(statement.element, "HISTORY ELEMENT")
    found = world_of(scope).get(element_id) if is_element_id(element_id) else None
    if found is None:
        raise NoemaError("NotFoundOrNotVisible", "there is no such element, or you may not see it")
    authorize(scope.context.principal, "read_history", (scope.present or scope.view).get(found.id) or found)
    return found


# --- an element


def _of_element(element: AnyElement, asked: Range, page: Page, scope: Scope) -> Answer:
    """Transitions of one element, looked for between the commits that created and last changed it."""
    salt = scope.state.meta.salt
    created = version_of_transaction(element.system.created_tx, salt)
    changed = version_of_transaction(element.system.updated_tx, salt) or scope.state.ver
    last = min(changed, scope.state.ver)  # what a transaction has not committed has no history yet
    # a commit's version is never below its space_seq, so FROM SEQ n needs no commit before version n
    first = max(created or 1, asked.start if not page.at else int(page.at["v"]))
    rows: list[dict[str, Json]] = []
    before: AnyElement | None = None
    looked, place = 0, first - 1
    for delta in _kept(scope, first - 1, last, CHUNK):
        if delta.seq > asked.end:
            place = last
            break
        looked, place = looked + 1, delta.ver
        image = next((put for put in delta.puts if put.id == element.id), None)
        if image is not None:
            fresh = delta.seq in asked and delta.ver > int(page.at.get("v", 0))
            if fresh and page.size > 0:
                rows.append(_transition(delta, image, before, scope))
            before = image
        if len(rows) == page.size or looked == MOST:
            break
    more = place < last and page.size > 0
    fresh_start = not page.at and asked.start == 0
    return Answer(
        value=rows,
        context=coordinates(scope),
        warnings=(
            *_stub_note(element),
            *_trim_note(lost=fresh_start and bool(rows) and rows[0].get("version", 1) > 1),
        ),
        next_cursor=page.cursor(v=place) if more else None,
    )


def _transition(delta: Delta, image: AnyElement, before: AnyElement | None, scope: Scope) -> dict[str, Json]:
    created = image.system.created_tx == delta.tx_id
    state = image.system.state
    if image.system.updated_tx != delta.tx_id:  # what stood here was erased; the stub stands in for it
        return {**_commit(delta, scope), "op": "created" if created else "updated", "erased": True}
    row: dict[str, Json] = {
        **_commit(delta, scope),
        "version": image.system.version,
        "op": "created" if created else "purged" if state == "purged" else "updated",
        "state": state,
    }
    if isinstance(image, (Assertion, Evidence, Activity)):
        row["status"] = image.status
    if before is not None:
        row["changed"] = _touched(before, image)
        moved = {
            name: {"from": was, "to": now}
            for name, was, now in (
                ("state", before.system.state, state),
                ("status", getattr(before, "status", None), getattr(image, "status", None)),
            )
            if was != now
        }
        if moved:
            row["transition"] = moved
    return row


def _touched(before: AnyElement, after: AnyElement) -> list[str]:
    """The fields that differ, by name only."""
    if after.system.state == "purged":
        return ["purged"]
    return [
        name
        for name in after.__struct_fields__
        if name not in _NOT_CONTENT and getattr(before, name, None) != getattr(after, name)
    ]


def _stub_note(element: AnyElement) -> tuple[Warning, ...]:
    if element.system.state != "purged":
        return ()
    return (
        Warning(code="Purged", message="the element was erased; that it changed is all there is to tell"),
    )


def _trim_note(*, lost: bool) -> tuple[Warning, ...]:
    note = Warning(code="HistoryTrimmed", message="older commits are no longer kept")
    return (note,) if lost else ()


# --- the space


def _of_space(asked: Range, page: Page, scope: Scope) -> Answer:
    """One row for each commit: what it was and how much it changed."""
    world = world_of(scope)
    rows: list[dict[str, Json]] = []
    after = int(page.at["v"]) if page.at else max(asked.start - 1, 0)
    looked, place, last = 0, after, scope.state.ver
    trimmed = False
    for delta in _kept(scope, after, last, page.size):
        if looked == 0 and not page.at:
            trimmed = delta.seq > max(asked.start, 1)
        if delta.seq > asked.end:
            place = last
            break
        looked, place = looked + 1, delta.ver
        seen = seen_changes(delta, world)
        if delta.seq in asked and page.size > 0 and is_shown(delta, scope, seen):
            rows.append(_summary(delta, seen, scope))
        if len(rows) == page.size or looked == MOST:
            break
    more = place < last and page.size > 0
    return Answer(
        value=rows,
        context=coordinates(scope),
        warnings=_trim_note(lost=trimmed),
        next_cursor=page.cursor(v=place) if more else None,
    )


def _summary(delta: Delta, seen: list[Change], scope: Scope) -> dict[str, Json]:
    counts: dict[str, dict[str, int]] = {}
    for change in seen:
        ops = counts.setdefault(kind_of(change.id), {})
        ops[change.op] = ops.get(change.op, 0) + 1
    row = {**_commit(delta, scope), "changed": counts}
    if delta.meta is not None:
        row["schema_environment_version"] = delta.meta.schema.version
    return row


def _commit(delta: Delta, scope: Scope) -> dict[str, Json]:
    row: dict[str, Json] = {
        "space_seq": delta.seq,
        "tx_id": delta.tx_id,
        "committed_at": format_instant(delta.at),
        "transaction_class": delta.transaction_class,
    }
    if holds(scope.context.principal, "read_raw_origin"):
        row["principal_id"] = delta.origin.principal
    return row


def _kept(scope: Scope, after: int, until: int, expected: int) -> Iterator[Delta]:
    """The commits that are still kept of a stretch of the log; chronology begins where the log does."""
    try:
        yield from walk(scope, after, until, expected)
    except NoemaError as error:
        floor = error.details.get("floor")
        if error.code != "HistoricalSnapshotUnavailable" or not isinstance(floor, int) or floor <= after + 1:
            raise
        yield from walk(scope, floor - 1, until, expected)
