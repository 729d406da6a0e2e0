"""Which elements a statement acts on: its target, chosen by WHERE, cut by LIMIT (KIP §52.7, §58).

What lives here: from target and WHERE to elements, each with what the WHERE bound beside it. What must never
live here: the WHERE itself (`core.query`) and what is done to the elements.

A selection reads the state in which the statement began, so it never sees what the same statement writes. A
LIMIT cuts in ascending order of creation, so the same sweep over the same state takes the same elements.
"""

from __future__ import annotations

from typing import Any

import msgspec

from core.authority import authorize
from core.errors import NoemaError
from core.language import ast
from core.language.checks import bound_variables
from core.language.plain import plain_value
from core.model.ids import sort_key
from core.model.literals import Ref
from core.mutation.work import Work
from core.query import select


class Selected(msgspec.Struct, frozen=True):
    """One element to act on, and the solutions of the WHERE in which it stands."""

    id: str
    rows: tuple[dict[str, Any], ...]


def select_targets(
    work: Work, target: ast.TargetRef, where: ast.Where | None, limit: ast.Scalar | None
) -> list[Selected]:
    """The elements a statement acts on, and count them for its result.

    Raises:
        NoemaError: what the selection raises; NotFoundOrNotVisible for a direct reference to nothing.
    """
    chosen = _chosen(work, target, where)
    if limit is not None:
        chosen = chosen[: int(plain_value(limit))]
    work.selected.update(dict.fromkeys(item.id for item in chosen))
    work.selects = True
    return chosen


def _chosen(work: Work, target: ast.TargetRef, where: ast.Where | None) -> list[Selected]:
    if where is None or not (isinstance(target, ast.Variable) and target.name in bound_variables(where)):
        element = work.target(target)
        if where is None:
            return [Selected(element, ({},))]
        rows = solutions(work, where)
        return [Selected(element, tuple(rows))] if rows else []
    found: dict[str, list[dict[str, Any]]] = {}
    for row in solutions(work, where, target.name):
        value = row.get(target.name)
        if value is None:
            continue
        if not isinstance(value, Ref):
            raise NoemaError("TypeMismatch", f"?{target.name} is not an element that can be changed")
        found.setdefault(value.id, []).append(row)
    return [Selected(element, tuple(found[element])) for element in sorted(found, key=sort_key)]


def solutions(work: Work, where: ast.Where, first: str | None = None) -> list[dict[str, Any]]:
    """Every solution of a WHERE block over the state in which the statement began.

    Raises:
        NoemaError: NotAuthorized for who may not read: a selection tells what there is, by what it changes and counts
            (KIP §88.6).
    """
    authorize(work.principal, "read")
    return select(work.draft.view, where, work.env, work.query, first=first)
