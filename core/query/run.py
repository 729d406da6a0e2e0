"""The entry points of KQL: which state a query reads, the query itself, selection for mutations, plans.

What lives here: the order of the phases: lower, plan, solve, order, page. What must never live here: any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from core.errors import NoemaError
from core.language import to_canonical
from core.language.ast import AsOf, Literal, Node, Where
from core.language.ast_kql import Find
from core.model.elements import Json
from core.model.ids import sort_key
from core.model.instants import Instant, parse_instant
from core.model.literals import Ref
from core.query.belief import Believer, projection_request
from core.query.context import Bindings, Coordinate, QueryContext, QueryResult, Value
from core.query.cursor import digest, open_cursor, seal_cursor
from core.query.expressions import Expressions
from core.query.logic import UNBOUND, Block, Elements, Row, believes, escaping
from core.query.lower import Lowering
from core.query.plan import Keep, Match, Plan, Without, plan_to_json
from core.query.planner import plan_block
from core.query.project import (
    Answer,
    by_creation,
    distinct,
    group_rows,
    order_rows,
    project_groups,
    project_rows,
)
from core.query.solve import solver
from core.query.world import World
from core.schema.environment import Environment
from core.state.view import View

FAMILY = "kql"


# --- which state


def snapshot_needed(
    find: Find, context: QueryContext, *, head_seq: int, head_at: Instant
) -> Coordinate | None:
    """Which older state a bound FIND reads: that of its AS OF, or the one its CURSOR pins; None for the present.

    Call it first. Where it names a state, give `run` that state (as `past_view`), the schema environment of that
    state, and a context with that state's `snapshot_seq` and `snapshot_at`.

    Args:
        find: bound, no parameters left.
        context: as for `run`.
        head_seq: the present `space_seq`.
        head_at: when the present state's last commit was made.

    Raises:
        NoemaError: HistoricalSnapshotUnavailable for a coordinate not reached yet, TypeMismatch for one that is
            no coordinate, CursorMismatch, CursorTypeMismatch, CursorExpired or CursorInvalidated.
    """
    if find.cursor is not None:
        pinned = int(_claims(find, context)["n"])
        return None if pinned == head_seq else Coordinate(seq=pinned)
    if find.as_of is None:
        return None
    return coordinate_of(find.as_of, now=context.now, head_seq=head_seq, head_at=head_at)


def coordinate_of(as_of: AsOf, *, now: Instant, head_seq: int, head_at: Instant) -> Coordinate | None:
    """The point of the log that an AS OF names, or None for the present (KIP §48.1).

    Raises:
        NoemaError: as `snapshot_needed`.
    """
    value = _constant(as_of.value)
    if as_of.axis == "SEQ":
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise NoemaError("TypeMismatch", "AS OF SEQ takes a commit number, 0 or more")
        if value > head_seq:
            raise NoemaError(
                "HistoricalSnapshotUnavailable",
                f"the space has not reached seq {value}; it is at {head_seq}",
                hint="Name a point up to `head_seq`.",
                details={"head_seq": head_seq},
            )
        return None if value == head_seq else Coordinate(seq=value)
    if not isinstance(value, str):
        raise NoemaError("TypeMismatch", f"AS OF {as_of.axis} takes a string")
    if as_of.axis == "TX":
        return Coordinate(tx=value)
    time = instant_argument(value, "AS OF TIME")
    if time > now:
        raise NoemaError("HistoricalSnapshotUnavailable", "AS OF TIME is in the future")
    return None if time >= head_at else Coordinate(time=time)


def instant_argument(value: Any, where: str) -> Instant:  # a JSON value
    """An instant given as RFC 3339 text.

    Raises:
        NoemaError: TypeMismatch.
    """
    try:
        return parse_instant(value)
    except (TypeError, ValueError):
        raise NoemaError(
            "TypeMismatch",
            f"{where} takes an RFC 3339 instant",
            hint="Write it as 2026-05-08T13:56:00Z, with an offset or Z, to the millisecond at most.",
        ) from None


def _constant(node: Node | None) -> Any:  # a JSON scalar
    if isinstance(node, Literal):
        return node.value
    raise NoemaError("InvalidRequestEnvelope", "a parameter of the command has no value")


# --- FIND


def run(view: View, find: Find, env: Environment, context: QueryContext) -> QueryResult:
    """Answer a bound FIND (no parameters left) over one state.

    Raises:
        NoemaError: what is wrong with the query (SchemaSymbolNotFound, SchemaFieldNotFound, ReferenceError,
            TypeMismatch, ProjectionTarget..., ProjectionPolicyUnavailable, Cursor...), or a bound it passes
            (ResultLimitExceeded, ResourceExhausted, ExecutionTimeout).
    """
    claims = None if find.cursor is None else _claims(find, context)
    if claims is not None and claims["n"] != context.snapshot_seq:
        raise NoemaError("CursorInvalidated", "the cursor's snapshot is not the state that was read")
    query = Query(view, find, env, context, claims)
    rows, following = query.page()
    cursor = None
    if following is not None:
        cursor = seal_cursor(
            FAMILY, {**_pins(find, context, query.now), **following}, context.cursor_key, now=context.now
        )
    return QueryResult(rows, query.result_context(), cursor, tuple(query.warnings()))


class Query:
    """One FIND, lowered and planned."""

    def __init__(
        self, view: View, find: Find, env: Environment, context: QueryContext, claims: dict[str, Any] | None
    ) -> None:
        self.context = context
        self.find = find
        self.now: Instant = context.now if claims is None else claims["v"]
        self.claims = claims or {}
        self.world = World(view, env, context)
        lowering = Lowering(self.world)
        self.block: Block = lowering.block(find.where)
        self.scope = lowering.scope
        expressions = Expressions(self.world, self.scope, escaping(self.block))
        self.answer = Answer(expressions, find.projections, find.order_by)
        self.believer = Believer(self.world, find, self._valid_at())
        self.asks_belief = believes(self.block)
        if self.asks_belief:
            self.believer.authorize()
        if find.epistemic is not None:  # a member that is none is told, also where nothing is believed
            projection_request(find, self.world, self.now)
        self.plan: Plan = plan_block(self.world, self.block)
        self.slots = self._solution_slots()
        self.size = self._page_size()

    def _valid_at(self) -> Instant:
        """The world time belief is about: FOR TIME, else that of the state asked for, else now (KIP §48)."""
        if self.find.for_time is not None:
            return instant_argument(_constant(self.find.for_time), "FOR TIME")
        if self.find.as_of is None:
            return self.now
        if self.find.as_of.axis == "TIME":
            return instant_argument(_constant(self.find.as_of.value), "AS OF TIME")
        return self.context.snapshot_at

    def _solution_slots(self) -> list[int]:
        """The named variables of a solution: those of FIND first, then by name."""
        names = {slot: name for name, slot in self.scope.slots.items() if slot in escaping(self.block)}
        projected = [column.variable for column in self.answer.columns if column.variable is not None]
        first = dict.fromkeys(self.scope.slots[name] for name in projected)
        return list(first) + sorted((slot for slot in names if slot not in first), key=names.__getitem__)

    def _page_size(self) -> int:
        most = self.context.limits.page
        if self.find.limit is None:
            return most
        value = _constant(self.find.limit)
        if isinstance(value, bool) or not isinstance(value, int):
            raise NoemaError("TypeMismatch", "LIMIT takes a whole number")
        if value < 0:
            raise NoemaError("ConstraintViolation", "LIMIT takes a number that is not negative")
        return min(value, most)

    def page(self) -> tuple[list[Json], dict[str, Any] | None]:
        """The rows of this page, and the claims of the next one, or None after the last."""
        start, after = int(self.claims.get("o", 0)), self.claims.get("k")
        if self.streams() and not start:
            return self._streamed_page(after)
        rows = distinct(self._solutions(), self.slots, self.context.limits.solutions)
        end = start + self.size
        if self.answer.grouped:
            groups = group_rows(self.answer, rows)
            shown = project_groups(self.world, self.answer, groups[start:end])
            return shown, self._following(end, len(groups))
        if after is not None:
            rows = [row for row in rows if self._is_behind(row, after)]
        ordered = order_rows(self.answer, by_creation(rows, self.slots))
        page = ordered[start:end]
        following = self._following(end, len(ordered))
        if (
            following
            and len(self.slots) == 1
            and not self.answer.order
            and isinstance(page[-1][self.slots[0]], Ref)
        ):
            following = {"k": page[-1][self.slots[0]].id}  # the next page may stream, from there
        return project_rows(self.world, self.answer, page), following

    def _following(self, end: int, total: int) -> dict[str, Any] | None:
        return {"o": end} if self.size > 0 and end < total else None

    def _is_behind(self, row: Row, after: str) -> bool:
        """Whether a row of one variable stands behind an element; in default order only elements do."""
        value = row[self.slots[0]]
        return isinstance(value, Ref) and sort_key(value.id) > sort_key(after)

    def _solutions(self, after: str | None = None) -> Iterator[Row]:
        solve = solver(self.world, self.believer, self.plan, after=after)
        return solve([UNBOUND] * len(self.scope.sorts))

    # A query over one element variable, in default order, is answered as it is found: a page costs a page.

    def streams(self) -> bool:
        """Whether the page can be answered without finding every solution first."""
        if self.answer.grouped or self.answer.order or self.plan.unions or not self.plan.steps:
            return False
        first = self.plan.steps[0]
        rest = self.plan.steps[1:]
        return (
            isinstance(first, Match)
            and isinstance(first.pattern, Elements)
            and self.slots == [first.pattern.var.slot]
            and all(isinstance(step, (Keep, Match, Without)) for step in rest)
        )

    def _streamed_page(self, after: str | None) -> tuple[list[Json], dict[str, Any] | None]:
        slot = self.slots[0]
        found: dict[str, Row] = {}
        for row in self._solutions(after):
            if row[slot].id not in found:
                if len(found) == self.size:
                    last = next(reversed(found), None)
                    following = None if last is None else {"k": last}
                    return project_rows(self.world, self.answer, list(found.values())), following
                found[row[slot].id] = row
        return project_rows(self.world, self.answer, list(found.values())), None

    # --- what goes with the rows

    def result_context(self) -> dict[str, Json]:
        """KIP §50: which state, which schema, which policy and world time."""
        out: dict[str, Json] = {
            "space_id": self.context.space_id,
            "snapshot_seq": self.context.snapshot_seq,
            "schema_environment_version": self.world.env.version,
        }
        return {**out, **self.believer.result_context()} if self.asks_belief else out

    def warnings(self) -> Iterator[str]:
        """What the reader should know of the answer."""
        yield from dict.fromkeys(self.answer.warnings)


# --- cursors


def _pins(find: Find, context: QueryContext, now: Instant) -> dict[str, Any]:
    """What a page is bound to: the query, who asks where, the snapshot, and the time belief is about."""
    form = to_canonical(msgspec.structs.replace(find, cursor=None, limit=None))
    return {
        "q": digest(form),
        "w": digest([context.space_id, context.principal]),
        "a": digest([context.instance, context.authority]),
        "n": context.snapshot_seq,
        "v": now,
    }


def _claims(find: Find, context: QueryContext) -> dict[str, Any]:
    """The claims of a query's cursor, after the check that it continues this query of this caller."""
    text = _constant(find.cursor)
    if not isinstance(text, str):
        raise NoemaError("TypeMismatch", "CURSOR takes the string that `next_cursor` gave")
    ttl = context.limits.cursor_ttl_ms
    claims = open_cursor(FAMILY, text, context.cursor_key, now=context.now, ttl_ms=ttl)
    pins = _pins(find, context, context.now)
    if claims["q"] != pins["q"] or claims["w"] != pins["w"]:
        raise NoemaError("CursorMismatch", "the cursor continues another query, space or caller")
    if claims["a"] != pins["a"]:
        raise NoemaError("CursorInvalidated", "what you may see here has changed since the first page")
    return claims


# --- for other parts of the engine


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
        view: the state that is read; for a mutation the one its transaction began with.
        where: a bound block.
        env: its schema environment.
        context: limits and visibility.
        bound: variables that already have a value (handles, an outer solution).
        first: a variable to order by; then, and otherwise, in order of creation. So `LIMIT` cuts a sweep at the
            same elements every time.

    Raises:
        NoemaError: as `run`.
    """
    world = World(view, env, context)
    lowering = Lowering(world, belief=False)
    given = dict(bound or {})
    for name in given:
        lowering.scope.sorts[lowering.scope.slot(name)].add("element")
    incoming = frozenset(lowering.scope.slots.values())
    block = lowering.block(where, incoming)
    plan = plan_block(world, block, incoming)
    known = incoming | escaping(block)
    slots = {name: slot for name, slot in lowering.scope.slots.items() if slot in known}
    order = sorted(slots, key=lambda name: (name != first, name))
    start: Row = [UNBOUND] * len(lowering.scope.sorts)
    for name, value in given.items():
        start[slots[name]] = value
    found = distinct(
        solver(world, Believer(world), plan)(start), [slots[name] for name in order], context.limits.solutions
    )
    rows = by_creation(found, [slots[name] for name in order])
    return [{name: row[slot] for name, slot in slots.items()} for row in rows]


def plan_json(view: View, find: Find, env: Environment, context: QueryContext) -> dict[str, Json]:
    """How a FIND would be run, as JSON: the steps in order, the index each uses and how many it expects.

    For `VALIDATE KQL ... WITH {plan: true}`; runs nothing.
    """
    query = Query(view, find, env, context, None)
    return {**plan_to_json(query.plan), "streams": query.streams()}
