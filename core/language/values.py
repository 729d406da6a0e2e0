"""The productions for values and expressions, shared by KQL, KML and META.

What lives here: one `parse_*` per production; each takes a cursor before the production and leaves it behind.
What must never live here: patterns (`patterns`) and statements.

`functions` says where a value stands: the functions of FILTER, those of an assignment (there a variable is a
use of a local handle), or None where a value must be constant.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

from core.language import ast
from core.language.cursor import Cursor
from core.language.functions import AGGREGATES, FILTER_FUNCTIONS, UPDATE_FUNCTIONS
from core.language.habits import FOUND
from core.language.lexer import NUMBER, PARAMETER, STRING, VARIABLE
from core.language.limits import MAX_INTEGER, MIN_INTEGER

Functions = dict[str, int] | None

_CONSTANTS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}

# --- Terminals --------------------------------------------------------------------------------------------


def parse_literal(cursor: Cursor) -> ast.Literal | None:
    """`literal`, or None where something else stands."""
    key = cursor.keys[cursor.index]
    if key in {STRING, NUMBER}:
        return ast.Literal(span=cursor.span(), value=cursor.take())
    if key in {"TRUE", "FALSE", "NULL"} and cursor.keys[cursor.index + 1] != "(":
        word = cursor.values[cursor.index]
        if word not in _CONSTANTS:
            cursor.fail("a value", f"Write {word.lower()} in lower case.")
        span = cursor.span()
        cursor.index += 1
        return ast.Literal(span=span, value=_CONSTANTS[word])
    return None


def parse_parameter(cursor: Cursor) -> ast.Parameter | None:
    """`parameter`, or None where something else stands."""
    if cursor.keys[cursor.index] == PARAMETER:
        return ast.Parameter(span=cursor.span(), name=cursor.take())
    return None


def parse_variable_name(cursor: Cursor) -> str:
    """The name of a `variable`."""
    if cursor.keys[cursor.index] != VARIABLE:
        cursor.fail("a ?variable")
    name: str = cursor.take()
    return name


def parse_scalar(cursor: Cursor, expected: str = "a literal or a :parameter") -> ast.Scalar:
    """`scalar_value`, `scalar_or_parameter`, `meta_value`."""
    return parse_parameter(cursor) or parse_literal(cursor) or cursor.fail(expected)


def parse_symbol(cursor: Cursor, expected: str) -> ast.Symbol:
    """`schema_symbol`."""
    if cursor.key() == STRING:
        return ast.Literal(span=cursor.span(), value=cursor.take())
    hint = f'Quote the name: "{cursor.values[cursor.index]}".' if cursor.key()[:1].isalpha() else None
    return parse_parameter(cursor) or cursor.fail(f"{expected} as a quoted string or :parameter", hint)


def parse_target(cursor: Cursor) -> ast.TargetRef:
    """`target_ref`."""
    key = cursor.key()
    if key == VARIABLE:
        cursor.references.append((cursor.values[cursor.index], cursor.index))
        return ast.Variable(span=cursor.span(), name=cursor.take())
    if key == STRING:
        return ast.Literal(span=cursor.span(), value=cursor.take())
    return parse_parameter(cursor) or cursor.fail('a target: ?variable, :parameter or "id"')


def parse_name(cursor: Cursor) -> str:
    """`field_name`: a word, keyword or not, or a quoted string."""
    key = cursor.keys[cursor.index]
    if key == STRING or key[:1].isalpha() or key[:1] == "_":
        name: str = cursor.take()
        return name
    return cursor.fail("a field name")


def refuse_duplicates(cursor: Cursor, names: Iterable[tuple[str, int]]) -> None:
    """Refuses a name, given with its token, that stands twice in one object."""
    seen: set[str] = set()
    for name, index in names:
        if name in seen:
            cursor.refuse(index, f"the field {name!r} is given twice", hint="Give each field once.")
        seen.add(name)


# --- Values -----------------------------------------------------------------------------------------------


def parse_value(cursor: Cursor, functions: Functions) -> ast.DataValue:
    """`data_value`, `mutation_value`. In a mutation (`UPDATE_FUNCTIONS`), a variable is a use of a handle."""
    key = cursor.keys[cursor.index]
    if key == VARIABLE:
        if functions is None:
            cursor.fail("a constant value")
        if functions is UPDATE_FUNCTIONS:
            cursor.references.append((cursor.values[cursor.index], cursor.index))
        return parse_field_access(cursor)
    literal = parse_literal(cursor) or parse_parameter(cursor)
    if literal is not None:
        return literal
    if key == "{":
        return parse_object(cursor, functions)
    if key == "[":
        span = cursor.span()
        return ast.Array(span=span, items=tuple(_parse_array(cursor, functions)))
    if key[:1].isalpha() and cursor.keys[cursor.index + 1] == "(":
        return _parse_call(cursor, functions)
    hint = f'Quote text: "{cursor.values[cursor.index]}".' if key[:1].isalpha() else None
    return cursor.fail("a value", hint)


def parse_object(cursor: Cursor, functions: Functions) -> ast.Object:
    """`object_literal`, `assignment_object`."""
    span = cursor.span()
    cursor.expect("{")
    members: list[ast.Member] = []
    names: list[tuple[str, int]] = []
    while not cursor.match("}"):
        if members:
            expect_comma(cursor, "}")
        at, place = cursor.index, cursor.span()
        name = parse_name(cursor)
        cursor.expect_colon()
        names.append((name, at))
        members.append(ast.Member(span=place, name=name, value=parse_value(cursor, functions)))
    refuse_duplicates(cursor, names)
    return ast.Object(span=span, members=tuple(members))


def _parse_array(cursor: Cursor, functions: Functions) -> list[ast.DataValue]:
    cursor.expect("[")
    items: list[ast.DataValue] = []
    while not cursor.match("]"):
        if items:
            expect_comma(cursor, "]")
        items.append(parse_value(cursor, functions))
    return items


def expect_comma(cursor: Cursor, closing: str) -> None:
    """Moves past the ',' between two items of a list that ends with `closing`."""
    if not cursor.match(","):
        cursor.fail(f"',' or '{closing}'")


def parse_field_access(cursor: Cursor) -> ast.Variable | ast.FieldAccess:
    """`field_access`: a variable and its steps."""
    span = cursor.span()
    name = parse_variable_name(cursor)
    path: list[str] = []
    while True:
        if cursor.match("."):
            if not (cursor.key()[:1].isalpha() or cursor.key()[:1] == "_"):
                cursor.fail("a field name after '.'")
            path.append(cursor.take())
        elif cursor.match("["):
            if cursor.key() != STRING:
                cursor.fail('a quoted field name: ["name"]')
            path.append(cursor.take())
            cursor.expect("]")
        else:
            break
    if not path:
        return ast.Variable(span=span, name=name)
    return ast.FieldAccess(span=span, variable=name, path=tuple(path))


def _parse_call(cursor: Cursor, functions: Functions) -> ast.FunctionCall:
    span, at = cursor.span(), cursor.index
    name = cursor.key()
    known = functions or {}
    if name not in known:
        _refuse_function(cursor, at, known)
    cursor.index += 2
    arguments: list[ast.Expression] = []
    while not cursor.match(")"):
        if arguments:
            expect_comma(cursor, ")")
        arguments.append(parse_expression(cursor, functions))
    if len(arguments) != known[name]:
        cursor.refuse(at, f"{name} takes {known[name]} argument(s), not {len(arguments)}")
    return ast.FunctionCall(span=span, name=name, arguments=tuple(arguments))


def _refuse_function(cursor: Cursor, at: int, known: dict[str, int]) -> None:
    name = cursor.key()
    if name in AGGREGATES:
        cursor.refuse(at, f"{name} stands only in FIND(...) and ORDER BY", hint=FOUND["HAVING"])
    where = "in FILTER" if known is FILTER_FUNCTIONS else "in an assigned value" if known else "here"
    hint = f"Known {where}: {', '.join(known)}." if known else "Write a constant value."
    cursor.refuse(at, f"{name[:40]} is not a function {where}", hint=hint)


# --- Expressions ------------------------------------------------------------------------------------------


def parse_expression(cursor: Cursor, functions: Functions) -> ast.Expression:
    """`expression`: `||` binds loosest, then `&&`, comparison, `!` and `-`."""
    span = cursor.span()
    first = _parse_and(cursor, functions)
    if cursor.keys[cursor.index] != "||":
        return first
    operands = [first]
    while cursor.match("||"):
        operands.append(_parse_and(cursor, functions))
    return ast.Or(span=span, operands=tuple(operands))


def _parse_and(cursor: Cursor, functions: Functions) -> ast.Expression:
    span = cursor.span()
    first = _parse_comparison(cursor, functions)
    if cursor.keys[cursor.index] != "&&":
        return first
    operands = [first]
    while cursor.match("&&"):
        operands.append(_parse_comparison(cursor, functions))
    return ast.And(span=span, operands=tuple(operands))


def _parse_comparison(cursor: Cursor, functions: Functions) -> ast.Expression:
    """`equality_expression` over `relational_expression`: `a < b == c < d` is legal, a chain is not."""
    left = _parse_relation(cursor, functions)
    key = cursor.keys[cursor.index]
    if key not in {"==", "!="}:
        return left
    cursor.index += 1
    right = _parse_relation(cursor, functions)
    if cursor.keys[cursor.index] in {"==", "!="}:
        cursor.fail("&&, || or the end of the expression", "Comparisons do not chain: join them with &&.")
    return ast.Comparison(
        span=left.span, operator=cast("ast.ComparisonOperator", key), left=left, right=right
    )


def _parse_relation(cursor: Cursor, functions: Functions) -> ast.Expression:
    left = _parse_unary(cursor, functions)
    key = cursor.keys[cursor.index]
    if key not in {"<", "<=", ">", ">="}:
        return left
    cursor.index += 1
    right = _parse_unary(cursor, functions)
    if cursor.keys[cursor.index] in {"<", "<=", ">", ">="}:
        cursor.fail("&&, || or the end of the expression", "Comparisons do not chain: join them with &&.")
    return ast.Comparison(
        span=left.span, operator=cast("ast.ComparisonOperator", key), left=left, right=right
    )


def _parse_unary(cursor: Cursor, functions: Functions) -> ast.Expression:
    key = cursor.keys[cursor.index]
    if key not in {"!", "-"}:
        return _parse_primary(cursor, functions)
    span = cursor.span()
    cursor.index += 1
    operand = _parse_primary(cursor, functions)
    if key == "!":
        return ast.Not(span=span, operand=operand)
    if isinstance(operand, ast.Literal) and type(operand.value) in {int, float}:
        return _negated(cursor, span, operand)
    return ast.Minus(span=span, operand=operand)


def _negated(cursor: Cursor, span: ast.Span, literal: ast.Literal) -> ast.Literal:
    value = -cast("int | float", literal.value)
    if isinstance(value, int) and not MIN_INTEGER <= value <= MAX_INTEGER:
        cursor.refuse_at(span, "this integer is outside the range of 64 bits")
    return ast.Literal(span=span, value=value)


def _parse_primary(cursor: Cursor, functions: Functions) -> ast.Expression:
    if cursor.match("("):
        inner = parse_expression(cursor, functions)
        cursor.expect(")")
        return inner
    return parse_value(cursor, functions)
