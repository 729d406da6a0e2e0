"""The solver: a plan as a generator of rows.

What lives here: how steps follow each other, OPTIONAL, NOT and UNION. What must never live here: how a pattern
matches (`match`) and what belief is (`belief`).

Rows flow through the steps one at a time, so NOT stops at the first match and a page at its last row.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.query.belief import Believer
from core.query.expressions import is_true
from core.query.logic import UNBOUND, Row
from core.query.match import Extend, matcher
from core.query.plan import Believe, Keep, Match, Maybe, Plan, Step
from core.query.world import World


def solver(world: World, believer: Believer, plan: Plan, *, after: str | None = None) -> Extend:
    """The function that gives every solution of a plan that agrees with a row; duplicates are possible.

    Args:
        world: the state as the query sees it.
        believer: what projects belief.
        plan: of a block.
        after: for a page that continues: the first step begins behind this element.
    """
    steps = [_prepare(world, believer, step) for step in plan.steps]
    if after is not None and isinstance(plan.steps[0], Match):
        steps[0] = matcher(world, plan.steps[0].pattern, plan.steps[0].access, after=after)
    branches = [solver(world, believer, branch) for branch in plan.unions]
    fills = plan.fills

    def branch_rows(row: Row) -> Iterator[Row]:
        for branch in branches:
            yield from branch(row)

    def solve(row: Row) -> Iterator[Row]:
        if plan.main:
            yield from _follow(steps, 0, row)
            yield from branch_rows(row)
            return
        for found in branch_rows(row):
            yield from _follow(steps, 0, _filled(found, fills))

    if not branches:
        return lambda row: _follow(steps, 0, row)
    return lambda row: (_filled(found, fills) for found in solve(row))


def _follow(steps: list[Extend], at: int, row: Row) -> Iterator[Row]:
    if at == len(steps):
        yield row
        return
    for extended in steps[at](row):
        yield from _follow(steps, at + 1, extended)


def _filled(row: Row, fills: tuple[int, ...]) -> Row:
    """The row with "no match" in every slot that a branch has left alone (KIP §44.5)."""
    missing = [slot for slot in fills if row[slot] is UNBOUND]
    if not missing:
        return row
    row = row.copy()
    for slot in missing:
        row[slot] = None
    return row


def _prepare(world: World, believer: Believer, step: Step) -> Extend:
    if isinstance(step, Match):
        return matcher(world, step.pattern, step.access)
    if isinstance(step, Keep):
        return _keep(step)
    if isinstance(step, Believe):
        return believer.extend(step.pattern)
    inner = solver(world, believer, step.plan)
    return _maybe(inner, step.fills) if isinstance(step, Maybe) else _without(inner)


def _keep(step: Keep) -> Extend:
    holds = step.condition.holds

    def extend(row: Row) -> Iterator[Row]:
        if is_true(holds(row)):
            yield row

    return extend


def _maybe(inner: Extend, fills: tuple[int, ...]) -> Extend:
    def extend(row: Row) -> Iterator[Row]:
        found = False
        for extended in inner(row):
            found = True
            yield _filled(extended, fills)
        if not found:
            yield _filled(row, fills)

    return extend


def _without(inner: Extend) -> Extend:
    def extend(row: Row) -> Iterator[Row]:
        if next(inner(row), None) is None:
            yield row

    return extend
