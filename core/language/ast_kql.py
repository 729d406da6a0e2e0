"""The syntax tree of KQL: one statement, FIND (KIP §42-50).

What lives here: the statement and its solution modifiers. What must never live here: patterns and expressions,
which the three languages share (`ast`).
"""

from __future__ import annotations

import typing

from core.language.ast import AsOf, Expression, FieldAccess, Node, Object, Scalar, Variable, Where

AggregateFunction = typing.Literal["COUNT", "SUM", "AVG", "MIN", "MAX"]


class Aggregate(Node, frozen=True, kw_only=True):
    """`aggregate_expression`: `COUNT([DISTINCT] expression)` and its like (KIP §44.6). Never nested."""

    function: AggregateFunction
    distinct: bool = False
    argument: Expression


Projection = Variable | FieldAccess | Aggregate
"""`projection_expression`: a variable, a dot path or an aggregate; other expressions are refused."""


class OrderItem(Node, frozen=True, kw_only=True):
    """`order_item`: one sort key (KIP §44.7); nulls are last either way."""

    expression: Projection
    descending: bool = False


class Find(Node, frozen=True, kw_only=True):
    """`query`: FIND(...) WHERE {...} and its modifiers (KIP §42.2).

    `limit` is a number and `cursor` an opaque string once bound; `epistemic` is the object of WITH EPISTEMIC.
    """

    projections: tuple[Projection, ...]
    where: Where
    as_of: AsOf | None = None
    for_time: Scalar | None = None
    epistemic: Object | None = None
    order_by: tuple[OrderItem, ...] = ()
    limit: Scalar | None = None
    cursor: Scalar | None = None
