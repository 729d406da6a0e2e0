"""What a META statement is given, read as plain values; and the coordinates that every answer carries.

What lives here: bound operands to text, numbers and JSON, the state that an AS OF names, and `coordinates`. What
must never live here: what any one family does with them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from core.errors import NoemaError
from core.language import plain_value
from core.language.ast import AsOf, Literal, Object
from core.language.ast_meta import Operand
from core.protocol.request import decode_json
from core.protocol.response import ResultContext
from core.query.run import coordinate_of
from core.query.world import World
from core.schema.environment import environment_of
from core.state.space import SpaceState
from core.transaction.needs import past_view
from core.transaction.scope import Scope


def text_of(node: Operand | None, what: str) -> str:
    """The text an operand holds.

    Raises:
        NoemaError: TypeMismatch for anything but a string that is not empty.
    """
    value = None if node is None else plain_value(node)
    if isinstance(value, str) and value:
        return value
    raise NoemaError("TypeMismatch", f"{what} takes a string that is not empty")


def optional_text(node: Operand | None, what: str) -> str | None:
    """As `text_of`, or None where the clause is not written."""
    return None if node is None else text_of(node, what)


def count_of(node: Operand | None, what: str) -> int | None:
    """A whole number of 0 or more, or None where the clause is not written.

    Raises:
        NoemaError: TypeMismatch, or ConstraintViolation for a negative number.
    """
    if node is None:
        return None
    value = plain_value(node)
    if isinstance(value, bool) or not isinstance(value, int):
        raise NoemaError("TypeMismatch", f"{what} takes a whole number")
    if value < 0:
        raise NoemaError("ConstraintViolation", f"{what} takes a number that is not negative")
    return value


def fraction_of(node: Operand | None, what: str) -> float | None:
    """A number from 0 to 1, or None where the clause is not written.

    Raises:
        NoemaError: TypeMismatch or ConstraintViolation.
    """
    if node is None:
        return None
    value = plain_value(node)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise NoemaError("TypeMismatch", f"{what} takes a number")
    if not 0 <= value <= 1:
        raise NoemaError("ConstraintViolation", f"{what} takes a number from 0 to 1")
    return float(value)


def options_of(node: Object | None, known: frozenset[str]) -> dict[str, Any]:
    """The members of a WITH object, JSON values.

    Raises:
        NoemaError: UnsupportedCapability for a member that is not known here.
    """
    options: dict[str, Any] = {} if node is None else plain_value(node)
    unknown = sorted(options.keys() - known)
    if unknown:
        raise NoemaError(
            "UnsupportedCapability",
            f"WITH has no option {', '.join(name[:40] for name in unknown)} here",
            hint=f"Options: {', '.join(sorted(known))}.",
            details={"unknown": unknown, "supported": sorted(known)},
        )
    return options


def artifact_of(node: Operand, scope: Scope, what: str) -> dict[str, Any]:
    """An artifact: given as an object, as JSON text, or by the handle of a staged one. Never fetched from a URL.

    Raises:
        NoemaError: ArtifactParseError for what is no JSON object; ArtifactUnavailable for an unknown handle.
        Missing: a staged artifact must be handed in.
    """
    value = plain_value(node)
    if isinstance(value, str):
        body = value.encode() if value.lstrip().startswith("{") else scope.context.given.artifact(value)
        try:
            value = decode_json(body)
        except NoemaError as error:
            raise NoemaError("ArtifactParseError", f"the {what} is not JSON: {error.message}") from error
    if not isinstance(value, dict):
        raise NoemaError("ArtifactParseError", f"the {what} is not a JSON object")
    return value


# --- coordinates


def state_at(scope: Scope, as_of: AsOf | None) -> SpaceState:
    """The state that an AS OF names; the present one without it.

    Raises:
        NoemaError: HistoricalSnapshotUnavailable, TransactionUnknown, TypeMismatch.
        Missing: an older state must be handed in.
    """
    state = scope.state
    if as_of is None:
        return state
    point = coordinate_of(as_of, now=scope.context.now, head_seq=state.seq, head_at=state.at)
    return state if point is None else scope.context.given.state_at(point)


def seq_literal(value: int) -> AsOf:
    """`AS OF SEQ n`, for what pins a `space_seq` by other means."""
    return AsOf(axis="SEQ", value=Literal(value=value))


def past_scope(scope: Scope, state: SpaceState) -> Scope:
    """The same surroundings over an older state: as it was, without what has been purged since (KIP §60.3).

    Who may see an element of it is still decided by what it is now (KIP §48.5, §68.2).
    """
    if state is scope.state:
        return scope
    return msgspec.structs.replace(
        scope,
        view=past_view(state, scope.view),
        state=state,
        env=environment_of(state.meta),
        present=scope.present or scope.view,
    )


def coordinates(scope: Scope, **more: Any) -> ResultContext:  # members of a ResultContext
    """The coordinates of an answer: which space, which state, which schema (KIP §50, META §17)."""
    return ResultContext(
        space_id=scope.state.meta.space_id,
        snapshot_seq=scope.state.seq,
        schema_environment_version=scope.env.version,
        **more,
    )


def world_of(scope: Scope) -> World:
    """The scope's view as the caller may see it."""
    return World(scope.view, scope.env, scope.query_context())
