"""A tree as plain JSON values with one spelling for what means the same, and back from the JSON form.

What lives here: `to_canonical`, over which a request's digest is taken (KIP §34.2), and `from_json`, which reads
the `ast` of an operation. What must never live here: hashing; the caller chooses the digest.

The canonical form leaves out places and absent clauses, orders the members of an object by name (an object has
no order), and writes a number that is whole as an integer (1 and 1.0 are one number). Lists keep their order:
in some of them it has a meaning.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, cast

import msgspec

from core.errors import NoemaError
from core.language import ast
from core.language.format import format_command
from core.language.limits import MAX_NESTING
from core.language.parser import Command, parse

_EXACT_FLOATS: Final = 2**53  # beyond it a float no longer holds every integer
_MAX_TREE_DEPTH: Final = 4 * MAX_NESTING  # the JSON form of an object within an object is three levels deep


def to_canonical(node: ast.Node) -> dict[str, Any]:
    """The canonical form of a command or of any part of one, as JSON values."""
    form: dict[str, Any] = {"node": type(node).__name__}
    for name in node.__struct_fields__:
        if name == "span":
            continue
        value = _canonical(getattr(node, name))
        if value is not None or name in _none_tells(type(node)):
            form[name] = value
    return form


@cache
def _none_tells(kind: type[ast.Node]) -> frozenset[str]:
    """Fields in which None is not the absent clause but something said: a Literal's null, a path without end."""
    return frozenset(each.name for each in msgspec.structs.fields(kind) if each.default is not None)


def _canonical(value: Any) -> Any:
    """A field of a node as JSON; None where a clause was not written."""
    if isinstance(value, ast.Node):
        return to_canonical(value)
    if isinstance(value, tuple):
        items = [_canonical(item) for item in value]
        if value and isinstance(value[0], (ast.Member, ast.PatternMember)):
            items.sort(key=lambda item: cast("str", item["name"]))
        return items
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_FLOATS:
        return int(value)
    return value


def from_json(form: object) -> Command:
    """The command whose JSON form this is: the `ast` of an operation, in place of its text.

    Raises:
        NoemaError: InvalidSyntax for what is no tree of the grammar. `details.path` says where the JSON departs
            from it; a tree of the right shape is refused for the same reasons as its text would be.
    """
    _check_depth(form)
    try:
        command = msgspec.convert(form, Command, strict=True)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at ")
        raise NoemaError(
            "InvalidSyntax",
            f"the ast is not a command: {message}",
            hint="Every node has its class name in `node`; sending `command` as text is the simple way.",
            details={"path": path.strip("`") or "$"},
        ) from None
    written = parse(format_command(command))
    if written != command:
        raise NoemaError(
            "InvalidSyntax",
            "the ast is no tree that a command text has",
            hint="Build it as the parser does, or send `command` as text.",
        )
    return written


def _check_depth(form: object) -> None:
    level = [form]
    for _ in range(_MAX_TREE_DEPTH):
        inner: list[object] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        if not inner:
            return
        level = inner
    raise NoemaError("ResourceExhausted", "the ast is nested too deep", details={"limit": _MAX_TREE_DEPTH})
