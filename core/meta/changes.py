"""CHANGES: the change stream, one envelope for each commit, resumable (KIP §36, META §179-188).

What lives here: the stream's place (a cursor that is opaque, bound to caller and space, and as good as the log is
long) and what an envelope shows to one caller. What must never live here: deliveries; a reader asks, and may be
given the same envelope twice, which it tells by space_id, space_seq and tx_id.
"""

from __future__ import annotations

from typing import Final

from core.authority import authorize
from core.errors import NoemaError
from core.language.ast_meta import Changes
from core.meta.log import MOST, is_shown, seen_changes, walk
from core.meta.operands import coordinates, count_of, text_of, world_of
from core.model.elements import Json
from core.model.ids import kind_of
from core.model.log import Delta
from core.query.cursor import digest, open_cursor, seal_cursor
from core.query.world import World
from core.transaction.record import change_envelope
from core.transaction.scope import Answer, Scope

FAMILY: Final = "changes"
_USUAL, _MOST = 100, 1_000
_FOR_EVER: Final = 2**62  # a change cursor ends with the log, not with the clock


def changes(statement: Changes, scope: Scope) -> Answer:
    """The envelopes after a cursor or a `space_seq`, oldest first, and always a cursor to go on from.

    An empty answer with a cursor means: nothing new yet. A caller from whom elements are hidden gets the envelopes
    without them, and none at all for a commit that touched nothing it may know of.

    Raises:
        NoemaError: ChangeCursorInvalid, ChangeCursorExpired once the log no longer reaches back so far,
            CursorTypeMismatch for a cursor of another kind, HistoricalSnapshotUnavailable for a `space_seq` that
            has not been reached.
        Missing: commits of the log must be handed in.
    """
    authorize(scope.context.principal, "read_history")
    wanted = count_of(statement.limit, "LIMIT")
    size = _USUAL if wanted is None else min(wanted, _MOST)
    after, seq = _place(statement, scope)
    world = world_of(scope)
    rows: list[dict[str, Json]] = []
    looked = 0
    try:
        for delta in walk(scope, after, scope.state.ver, size):
            if len(rows) >= size or looked == MOST:
                break
            looked, after = looked + 1, delta.ver
            envelope = _envelope(delta, world, scope) if delta.seq > seq else None
            if envelope is not None:
                rows.append(envelope)
    except NoemaError as error:
        if error.code != "HistoricalSnapshotUnavailable":
            raise
        raise _expired(error) from error
    return Answer(value=rows, context=coordinates(scope), next_cursor=_cursor(after, scope))


def _place(statement: Changes, scope: Scope) -> tuple[int, int]:
    """The log version to read after, and the `space_seq` that is known already."""
    if statement.since is not None:
        return _opened(text_of(statement.since, "SINCE"), scope), -1
    seq = count_of(statement.after_seq, "AFTER SEQ") or 0
    if seq > scope.state.seq:
        raise NoemaError(
            "HistoricalSnapshotUnavailable",
            f"the space has not reached seq {seq}; it is at {scope.state.seq}",
            hint="Name a point up to `head_seq`.",
            details={"head_seq": scope.state.seq},
        )
    return seq, seq  # a commit's version is never below its space_seq


def _envelope(delta: Delta, world: World, scope: Scope) -> dict[str, Json] | None:
    seen = seen_changes(delta, world)
    shown = {change.id for change in seen}
    if not shown and (delta.puts or delta.gone or delta.meta is None or not is_shown(delta, scope, seen)):
        return None
    envelope = change_envelope(scope.state.meta, delta)
    envelope["changes"] = [
        {**change, "kind": kind_of(change["id"])} for change in envelope["changes"] if change["id"] in shown
    ]
    if delta.meta is not None:
        envelope["schema_environment_version"] = delta.meta.schema.version
    return envelope


# --- cursors


def _cursor(version: int, scope: Scope) -> str:
    context = scope.context
    return seal_cursor(FAMILY, {"i": _bound(scope), "v": version}, context.secret, now=context.now)


def _opened(text: str, scope: Scope) -> int:
    context = scope.context
    try:
        claims = open_cursor(FAMILY, text, context.secret, now=context.now, ttl_ms=_FOR_EVER)
    except NoemaError as error:
        if error.code == "CursorTypeMismatch":
            raise
        raise NoemaError("ChangeCursorInvalid", "this is no change cursor that can be continued") from error
    if claims["i"] != _bound(scope):
        raise NoemaError("ChangeCursorInvalid", "the change cursor is of another space or caller")
    return int(claims["v"])


def _bound(scope: Scope) -> str:
    meta = scope.state.meta
    return digest([meta.space_id, meta.instance, scope.context.principal.id])


def _expired(error: NoemaError) -> NoemaError:
    return NoemaError(
        "ChangeCursorExpired",
        "the log no longer reaches back to where this cursor stands",
        hint="Read the present state, then follow CHANGES from a new cursor: CHANGES AFTER SEQ, at today's seq.",
        details=error.details,
    )
