"""A bound value back to the JSON value it stands for.

What lives here: `plain_value`. What must never live here: evaluation; a value that reads a variable or calls a
function is for the engine.
"""

from __future__ import annotations

from typing import Any

from core.errors import NoemaError
from core.language import ast


def plain_value(value: ast.DataValue | ast.PatternValue) -> Any:
    """The JSON value of a constant: the options of WITH, a facet's members, a match object's values.

    Raises:
        NoemaError: TypeMismatch where the value holds a variable, a function, a tuple or an unbound parameter.
    """
    if isinstance(value, ast.Literal):
        return value.value
    if isinstance(value, (ast.Object, ast.ObjectPattern)):
        return {member.name: plain_value(member.value) for member in value.members}
    if isinstance(value, (ast.Array, ast.ArrayPattern)):
        return [plain_value(item) for item in value.items]
    kind = type(value).__name__
    details = {"line": value.span.line, "column": value.span.column} if value.span.line else {}
    raise NoemaError("TypeMismatch", f"a constant value is needed here, not a {kind}", details=details)
