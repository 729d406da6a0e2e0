"""KQL: the productions of FIND (KIP §42-50).

What lives here: one `parse_*` per production of the query statement. What must never live here: planning.
"""

from __future__ import annotations

from typing import cast

from core.language import ast
from core.language.ast_kql import Aggregate, AggregateFunction, Find, OrderItem, Projection
from core.language.cursor import Cursor
from core.language.functions import AGGREGATES, FILTER_FUNCTIONS
from core.language.lexer import VARIABLE
from core.language.patterns import parse_where
from core.language.values import (
    expect_comma,
    parse_expression,
    parse_field_access,
    parse_object,
    parse_scalar,
)


def parse_find(cursor: Cursor) -> Find:
    """`query`."""
    span = cursor.span()
    cursor.expect_words("FIND", "(")
    projections = [_parse_projection(cursor)]
    while not cursor.match(")"):
        expect_comma(cursor, ")")
        projections.append(_parse_projection(cursor))
    cursor.expect("WHERE")
    where = parse_where(cursor)
    return Find(
        span=span,
        projections=tuple(projections),
        where=where,
        as_of=parse_as_of(cursor),
        for_time=_parse_for_time(cursor),
        epistemic=_parse_epistemic(cursor),
        order_by=_parse_order(cursor),
        limit=parse_optional_scalar(cursor, "LIMIT"),
        cursor=parse_optional_scalar(cursor, "CURSOR"),
    )


def parse_as_of(cursor: Cursor) -> ast.AsOf | None:
    """`as_of_clause`, or None where it is not written."""
    if cursor.keys[cursor.index] != "AS":
        return None
    span = cursor.span()
    cursor.expect_words("AS", "OF")
    axis = cursor.choice(("SEQ", "TX", "TIME"))
    value = parse_scalar(cursor)
    return ast.AsOf(span=span, axis=cast("ast.AsOfAxis", axis), value=value)


def parse_optional_scalar(cursor: Cursor, *words: str) -> ast.Scalar | None:
    """A clause of keywords and one scalar, or None where its first keyword does not stand."""
    if cursor.keys[cursor.index] != words[0]:
        return None
    cursor.expect_words(*words)
    return parse_scalar(cursor)


def _parse_projection(cursor: Cursor) -> Projection:
    """`projection_expression`: the other expressions the grammar admits say nothing about what was found."""
    key = cursor.key()
    if key == VARIABLE:
        projection = parse_field_access(cursor)
        if cursor.key() in {"==", "!=", "<", "<=", ">", ">=", "&&", "||"}:
            cursor.fail("',' or ')'", "Conditions stand in FILTER.")
        return projection
    if key not in AGGREGATES:
        cursor.fail("a ?variable, a dot path or an aggregate")
    span = cursor.span()
    cursor.index += 1
    cursor.expect("(")
    distinct = cursor.match("DISTINCT")
    argument = parse_expression(cursor, FILTER_FUNCTIONS)
    cursor.expect(")")
    return Aggregate(span=span, function=cast("AggregateFunction", key), distinct=distinct, argument=argument)


def _parse_for_time(cursor: Cursor) -> ast.Scalar | None:
    return parse_optional_scalar(cursor, "FOR", "TIME")


def _parse_epistemic(cursor: Cursor) -> ast.Object | None:
    if not cursor.match("WITH"):
        return None
    cursor.expect("EPISTEMIC")
    return parse_object(cursor, None)


def _parse_order(cursor: Cursor) -> tuple[OrderItem, ...]:
    if not cursor.match("ORDER"):
        return ()
    cursor.expect("BY")
    items = [_parse_order_item(cursor)]
    while cursor.match(","):
        items.append(_parse_order_item(cursor))
    return tuple(items)


def _parse_order_item(cursor: Cursor) -> OrderItem:
    span = cursor.span()
    expression = _parse_projection(cursor)
    descending = cursor.match("DESC")
    if not descending:
        cursor.match("ASC")
    return OrderItem(span=span, expression=expression, descending=descending)
