"""Values that a mutation assigns: constants, references, and the four update functions (KIP §59).

What lives here: one value from its tree, reading nothing but the statement's own target. What must never live
here: queries; a sweep must not depend on the order of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from core.errors import NoemaError
from core.language import ast
from core.model.elements import Activity, AnyElement, Concept, Json
from core.model.instants import format_instant
from core.model.literals import Ref, literal_type
from core.schema.environment import Environment
from core.schema.validate import is_number

Reference = Callable[[ast.Variable], Ref]
"""How a bare ?variable becomes the element it names."""


class Reader:
    """What the values of one statement may look at: its target and its handles.

    Args:
        env: resolves facet names in paths.
        element: the target as the statement found it; None if it is new.
        name: the variable that names the target, or None if none does.
        reference: resolves a bare variable.
    """

    __slots__ = ("element", "env", "name", "reference")

    def __init__(
        self, env: Environment, element: AnyElement | None, name: str | None, reference: Reference
    ) -> None:
        self.env = env
        self.element = element
        self.name = name
        self.reference = reference

    def json(self, node: ast.DataValue) -> Json:
        """The JSON value of a node. A reference is refused: it has no place in plain data."""
        if isinstance(node, ast.Literal):
            return node.value
        if isinstance(node, ast.Object):
            return {member.name: self.json(member.value) for member in node.members}
        if isinstance(node, ast.Array):
            return [self.json(item) for item in node.items]
        if isinstance(node, ast.FunctionCall):
            return self._call(node)
        if isinstance(node, ast.FieldAccess):
            return read_path(self.element, node.path, self.env)
        raise NoemaError(
            "TypeMismatch",
            "a reference to an element is no plain value",
            hint="Use SET STRUCTURAL, or a Proposition, to relate elements.",
            details=_place(node),
        )

    def _call(self, node: ast.FunctionCall) -> Json:
        values = [self._operand(argument) for argument in node.arguments]
        if node.name == "COALESCE":
            return values[1] if values[0] is None else values[0]
        for value in values:
            if not is_number(value):
                raise NoemaError(
                    "TypeMismatch",
                    f"{node.name} computes with numbers, not with {literal_type_of(value)}",
                    hint="COALESCE(value, default) stands in for a value that is not there.",
                    details=_place(node),
                )
        if node.name == "CLAMP":
            low, high = values[1], values[2]
            if low > high:
                raise NoemaError("ConstraintViolation", f"CLAMP's bounds {low} and {high} are reversed")
            return min(max(values[0], low), high)
        result = values[0] + values[1] if node.name == "ADD" else values[0] * values[1]
        if isinstance(result, float) and not math.isfinite(result):
            raise NoemaError("ConstraintViolation", f"{node.name} leaves the range of numbers")
        return result

    def _operand(self, node: ast.Expression) -> Any:  # a JSON value
        if isinstance(node, (ast.Comparison, ast.And, ast.Or, ast.Not, ast.Minus)):
            raise NoemaError("InvalidSyntax", "an update function takes values, not conditions")
        return self.json(node)


def literal_type_of(value: Json) -> str:
    """The JSON type of a value, in words."""
    if isinstance(value, list):
        return "an array"
    if isinstance(value, dict):
        return "an object"
    return literal_type(value)


def _place(node: ast.Node) -> dict[str, Any]:
    return {"line": node.span.line, "column": node.span.column} if node.span.line else {}


def read_path(element: AnyElement | None, path: tuple[str, ...], env: Environment) -> Json:
    """The value at a dot path of an element, null where there is none.

    Raises:
        NoemaError: SchemaFieldNotFound for a first step that no expression may read.
    """
    head, *rest = path
    if head == "attributes":
        value: Json = element.attributes if isinstance(element, Concept) else {}
    elif head == "facets":
        facets = {} if element is None else element.facets
        if not rest:
            return dict(facets)
        ref = env.facet(rest[0]).ref
        value, rest = facets.get(ref), rest[1:]
    elif head == "name" and (element is None or isinstance(element, Concept)):
        value = None if element is None else element.name
    elif head in {"started_at", "ended_at"} and isinstance(element, Activity):
        instant = element.started_at if head == "started_at" else element.ended_at
        value = None if instant is None else format_instant(instant)
    elif head == "_system" and rest == ["version"]:
        return 0 if element is None else element.system.version
    else:
        raise NoemaError(
            "SchemaFieldNotFound",
            f"an update expression cannot read {'.'.join(path)}",
            hint="It may read the attributes, facets and name of its own target.",
            details={"path": list(path)},
        )
    for step in rest:
        value = value.get(step) if isinstance(value, dict) else None
    return value
