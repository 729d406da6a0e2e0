"""From solutions to rows of JSON: duplicates, order, grouping, aggregates, pages (KIP §44.6-44.8, §50).

What lives here: everything between the solutions of WHERE and the answer. What must never live here: matching.

Solutions are a set: equal complete bindings are one (KQL design §78). Without ORDER BY, and wherever sort keys
are equal, rows stand in the order in which what they are bound to was created, so an answer never depends on the
plan that found it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final

from core.errors import NoemaError
from core.language.ast import FieldAccess, Variable
from core.language.ast_kql import Aggregate, OrderItem, Projection
from core.model.elements import Json
from core.model.literals import Ref
from core.query.expressions import Expressions
from core.query.logic import Evaluate, Row
from core.query.values import binding_identity, identity, order_key, plain, scalar
from core.query.world import World

_LAST: Final = (9,)  # after every order key


class Column:
    """One projected or ordering expression: how it is computed, over one row or over the rows of a group."""

    def __init__(self, expressions: Expressions, node: Projection) -> None:
        self.node = node
        self.aggregate = node if isinstance(node, Aggregate) else None
        self.value: Evaluate = expressions.compile(node.argument if isinstance(node, Aggregate) else node)

    @property
    def variable(self) -> str | None:
        """The variable the expression is about, if it is about one."""
        if isinstance(self.node, Variable):
            return self.node.name
        return self.node.variable if isinstance(self.node, FieldAccess) else None


class Answer:
    """What FIND asks for: its columns and its order."""

    def __init__(
        self, expressions: Expressions, projections: Sequence[Projection], order_by: Sequence[OrderItem]
    ) -> None:
        self.columns = [Column(expressions, node) for node in projections]
        self.order = [(Column(expressions, item.expression), item.descending) for item in order_by]
        everything = [*self.columns, *(column for column, _ in self.order)]
        self.grouped = any(column.aggregate is not None for column in everything)
        self.warnings: list[str] = []
        if self.grouped:
            self._check_order()

    def _check_order(self) -> None:
        """In a grouped answer a sort key must have one value for each group."""
        projected = [column.node for column in self.columns]
        whole = {column.variable for column in self.columns if isinstance(column.node, Variable)}
        for column, _ in self.order:
            if column.aggregate is None and column.node not in projected and column.variable not in whole:
                raise NoemaError(
                    "InvalidSyntax",
                    f"ORDER BY ?{column.variable} has no single value for a group of rows",
                    hint="Project it in FIND, so that it is part of the group, or order by an aggregate.",
                )


def distinct(rows: Iterable[Row], slots: Sequence[int], limit: int) -> list[Row]:
    """The rows as a set over the named variables, in the order met.

    Raises:
        NoemaError: ResultLimitExceeded for more than `limit` solutions.
    """
    found: dict[Hashable, Row] = {}
    only = slots[0] if len(slots) == 1 else None
    for row in rows:
        key: Hashable
        if only is None:
            key = tuple([binding_identity(row[slot]) for slot in slots])
        else:
            key = binding_identity(row[only])
        found.setdefault(key, row)
        if len(found) > limit:
            raise NoemaError(
                "ResultLimitExceeded",
                f"the query has more than {limit} solutions",
                hint="Narrow the WHERE block; an aggregate counts within the same bound.",
                details={"limit": limit},
            )
    return list(found.values())


def by_creation(rows: list[Row], slots: Sequence[int]) -> list[Row]:
    """Rows in the order of what they are bound to, a total order that no plan decides."""
    if len(rows) > 1:
        rows.sort(key=lambda row: [_LAST if row[slot] is None else order_key(row[slot]) for slot in slots])
    return rows


def sort_rows[T](rows: list[T], keys: Sequence[tuple[list[Any], bool]]) -> list[T]:
    """Rows by sort keys, left to right, nulls last either way (KIP §44.7); equal ones stay as they stand.

    Args:
        rows: anything.
        keys: for each ORDER BY item its value for every row, and whether it descends.
    """
    places = list(range(len(rows)))
    for values, descending in reversed(keys):
        parts = [() if scalar(value) is None else order_key(value) for value in values]
        present = [place for place in places if parts[place]]
        missing = [place for place in places if not parts[place]]
        present.sort(key=parts.__getitem__, reverse=descending)
        places = present + missing
    return [rows[place] for place in places]


def project_rows(world: World, answer: Answer, rows: list[Row]) -> list[Json]:
    """Rows of a page as JSON: one value for one column, an array for several."""
    if len(answer.columns) == 1:
        value = answer.columns[0].value
        return [show(world, value(row)) for row in rows]
    return [[show(world, column.value(row)) for column in answer.columns] for row in rows]


def show(world: World, value: Any) -> Json:  # a bound value or a JSON value
    """A value as the caller reads it: a bare element whole, everything else as JSON."""
    if isinstance(value, Ref):
        element = world.get(value.id)
        return plain(value) if element is None else world.wire(element)
    return plain(value)


def order_rows(answer: Answer, rows: list[Row]) -> list[Row]:
    """Rows in the order FIND asks for; ungrouped."""
    if not answer.order:
        return rows
    keys = [([column.value(row) for row in rows], descending) for column, descending in answer.order]
    return sort_rows(rows, keys)


# --- grouping


def group_rows(answer: Answer, rows: list[Row]) -> list[list[Row]]:
    """Rows by equal plain projections (KIP §44.6), the groups in the order FIND asks for."""
    plain_columns = [column for column in answer.columns if column.aggregate is None]
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple([identity(column.value(row)) for column in plain_columns]), []).append(row)
    if not plain_columns and not groups:
        groups[()] = []  # an aggregate over nothing is still one answer
    members = list(groups.values())
    if plain_columns:
        members = sort_rows(
            members, [([column.value(group[0]) for group in members], False) for column in plain_columns]
        )
    keys = [
        ([_column(answer, column, group) for group in members], descending)
        for column, descending in answer.order
    ]
    return sort_rows(members, keys)


def project_groups(world: World, answer: Answer, groups: list[list[Row]]) -> list[Json]:
    """Groups of a page as JSON rows."""
    shown = [[show(world, _column(answer, column, group)) for column in answer.columns] for group in groups]
    return [row[0] for row in shown] if len(answer.columns) == 1 else shown


def _column(answer: Answer, column: Column, group: list[Row]) -> Any:  # a JSON value or a bound value
    if column.aggregate is None:
        return column.value(group[0])
    values = [value for row in group if scalar(value := column.value(row)) is not None]
    if column.aggregate.distinct:
        values = list({identity(value): value for value in values}.values())
    return _aggregate(answer, column.aggregate.function, values)


def _aggregate(answer: Answer, function: str, values: list[Any]) -> Any:
    if function == "COUNT":
        return len(values)
    if function in {"MIN", "MAX"}:
        choose = min if function == "MIN" else max
        return choose(values, key=order_key) if values else None
    numbers = [
        number
        for value in values
        if isinstance(number := scalar(value), (int, float)) and not isinstance(number, bool)
    ]
    if len(numbers) < len(values):
        left_out = len(values) - len(numbers)
        answer.warnings.append(f"{function} left out {left_out} values that are not numbers")
    if not numbers:
        return None
    total = sum(numbers) if all(isinstance(number, int) for number in numbers) else math.fsum(numbers)
    return total if function == "SUM" else total / len(numbers)
