"""The entry points of KQL. (Signatures first; the evaluation follows in the next commits.)"""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import NoemaError
from core.language.ast import Where
from core.language.ast_kql import Find
from core.model.elements import Json
from core.model.instants import Instant
from core.query.context import Bindings, Coordinate, QueryContext, QueryResult, Value
from core.schema.environment import Environment
from core.state.view import View


def snapshot_needed(find: Find, context: QueryContext, *, head_seq: int, head_at: Instant) -> Coordinate | None:
    """Which older state a bound FIND reads: that of its AS OF, or the one its CURSOR pins; None for the present.

    Call it first. Where it names a state, give `run` that state (as `past_view`), the schema environment of that
    state, and a context with that state's `snapshot_seq` and `snapshot_at`.

    Args:
        head_seq, head_at: the present `space_seq` and when its commit was made.

    Raises:
        NoemaError: HistoricalSnapshotUnavailable for a coordinate not reached yet, TypeMismatch for one that is
            no coordinate, CursorMismatch, CursorTypeMismatch, CursorExpired or CursorInvalidated.
    """
    raise NoemaError("NotImplementedYet", "KQL is being built")


def run(view: View, find: Find, env: Environment, context: QueryContext) -> QueryResult:
    """Answer a bound FIND (no parameters left) over one state.

    Raises:
        NoemaError: what is wrong with the query (SchemaSymbolNotFound, SchemaFieldNotFound, ReferenceError,
            TypeMismatch, ProjectionTarget..., ProjectionPolicyUnavailable, Cursor...), or a bound it passes
            (ResultLimitExceeded, ResourceExhausted, ExecutionTimeout).
    """
    raise NoemaError("NotImplementedYet", "KQL is being built")


def select(
    view: View,
    where: Where,
    env: Environment,
    context: QueryContext,
    *,
    bound: Mapping[str, Value] | None = None,
    first: str | None = None,
) -> list[Bindings]:
    """All solutions of a WHERE block, for mutation targets and exports. No BELIEF here.

    Args:
        bound: variables that already have a value (handles, an outer solution).
        first: a variable to order by; then, and otherwise, in order of creation. So `LIMIT` cuts a sweep at the
            same elements every time.

    Raises:
        NoemaError: as `run`.
    """
    raise NoemaError("NotImplementedYet", "KQL is being built")


def plan_json(view: View, find: Find, env: Environment, context: QueryContext) -> dict[str, Json]:
    """How a FIND would be run, as JSON: the steps in order, the index each uses and how many it expects.

    For `VALIDATE KQL ... WITH {plan: true}`; runs nothing.
    """
    raise NoemaError("NotImplementedYet", "KQL is being built")
