"""Structural references of one element: adding, replacing, removing, and the dense order (KIP §17).

What lives here: what a set of additions and removals makes of the references there were. What must never live
here: which fields exist and what they may name.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from core.errors import NoemaError
from core.model.elements import Json, StructuralRef
from core.schema.definitions import StructuralField


class Addition(msgspec.Struct, frozen=True):
    """`SET STRUCTURAL (field, target) {options}`; `index` is the place wanted in an ordered field."""

    field: StructuralField
    target: str
    options: dict[str, Json]
    index: int | None = None


class Removal(msgspec.Struct, frozen=True):
    """`UNSET STRUCTURAL (field, target)`."""

    field: StructuralField
    target: str


def arrange(
    before: tuple[StructuralRef, ...],
    additions: Sequence[Addition],
    removals: Sequence[Removal],
    source: str,
) -> tuple[StructuralRef, ...]:
    """The references after the change: the untouched fields as they were, the touched ones rebuilt.

    Raises:
        NoemaError: ConstraintViolation or DuplicateMutationTarget for places and references that conflict.
    """
    changes: tuple[Addition | Removal, ...] = (*removals, *additions)
    touched = {change.field.ref: change.field for change in changes}
    rebuilt: dict[str, list[StructuralRef]] = {}
    for field in touched.values():
        there = [ref for ref in before if ref.field == field.ref]
        added = [change for change in additions if change.field.ref == field.ref]
        removed = {change.target for change in removals if change.field.ref == field.ref}
        if removed & {change.target for change in added}:
            raise _conflict(field, source, "adds and removes the same reference")
        rebuilt[field.ref] = _rebuilt(field, [r for r in there if r.target not in removed], added, source)
    out: list[StructuralRef] = []
    for ref in before:  # a field's references stand together where the field first stood
        if ref.field in touched:
            out.extend(rebuilt.pop(ref.field, ()))
        else:
            out.append(ref)
    for refs in rebuilt.values():
        out.extend(refs)
    return tuple(out)


def _rebuilt(
    field: StructuralField, there: list[StructuralRef], added: list[Addition], source: str
) -> list[StructuralRef]:
    wanted: dict[str, StructuralRef] = {}
    places: dict[str, int] = {}
    extra: list[StructuralRef] = []
    for change in added:
        ref = StructuralRef(field.ref, change.target, change.options)
        if change.target in wanted:
            if field.unique and wanted[change.target] != ref:
                raise _conflict(field, source, "adds one reference twice, with different options")
            if not field.unique:
                extra.append(ref)
        else:
            wanted[change.target] = ref
        if change.index is not None:
            _claim(field, places, change.target, change.index, source)
    if field.maximum == 1 and wanted:
        if len(wanted) > 1:
            raise _conflict(field, source, "takes one reference and is given several")
        there = []
    new = dict(wanted)
    out = []
    for ref in there:
        again = new.pop(ref.target, ref) if field.unique else ref
        out.append(again if again.options else ref)  # naming it again without options keeps those it has
    out.extend([*new.values(), *extra])
    return _placed(field, out, places, source) if places else out


def _claim(field: StructuralField, places: dict[str, int], target: str, index: int, source: str) -> None:
    if not field.ordered:
        raise NoemaError(
            "ConstraintViolation",
            f"{field.name} is not ordered, so a reference has no index",
            details={"field": field.ref, "element": source},
        )
    if places.get(target, index) != index or any(
        place == index and other != target for other, place in places.items()
    ):
        raise _conflict(field, source, f"claims the index {index} twice")
    places[target] = index


def _placed(
    field: StructuralField, refs: list[StructuralRef], places: dict[str, int], source: str
) -> list[StructuralRef]:
    """The references with those that claim a place in it, and the others around them in their order (KIP §17.4)."""
    for index in places.values():
        if not 0 <= index < len(refs):
            raise NoemaError(
                "ConstraintViolation",
                f"the index {index} of {field.name} is outside 0..{len(refs) - 1}: order is dense",
                details={"field": field.ref, "element": source, "index": index},
            )
    at = {places[ref.target]: ref for ref in refs if ref.target in places}
    others = iter([ref for ref in refs if ref.target not in places])
    return [at[index] if index in at else next(others) for index in range(len(refs))]


def _conflict(field: StructuralField, source: str, problem: str) -> NoemaError:
    return NoemaError(
        "DuplicateMutationTarget",
        f"the statement {problem} in {field.name}",
        details={"field": field.ref, "element": source},
    )
