"""Expressions: FILTER conditions, dot paths and the functions of KIP §44.2, compiled once and asked per row.

What lives here: syntax tree -> `Evaluate`. What must never live here: aggregates (`project`) and patterns.

Two values of truth: an operand that is not a boolean is not true, a comparison of unlike values is false, and
`!` of anything not true is true. So a condition never fails on the data it meets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from core.errors import NoemaError
from core.language import ast
from core.model.ids import KINDS, is_element_id, kind_of
from core.model.literals import Literal, Ref, literal_type, make_literal
from core.query.context import Edge, Projected
from core.query.fields import Path, check_path, read_path
from core.query.logic import UNBOUND, Evaluate, Row
from core.query.regex import compile_regex
from core.query.values import edge_json, less, same, scalar
from core.query.world import World

MAX_TEXT: Final = 65_536  # characters of a text that REGEX looks at


class Scope:
    """What the variables of an expression are: slot by name, and what sorts of thing each may be bound to."""

    def __init__(self) -> None:
        self.slots: dict[str, int] = {}
        self.sorts: dict[int, set[str]] = {}

    def slot(self, name: str) -> int:
        """The slot of a variable, given when first asked."""
        found = self.slots.get(name)
        return self.fresh(name) if found is None else found

    def fresh(self, name: str | None = None) -> int:
        """A new slot; without a name for an inline matcher."""
        slot = len(self.sorts)
        self.sorts[slot] = set()
        if name is not None:
            self.slots[name] = slot
        return slot

    def path(self, name: str, path: Path, world: World) -> Path:
        """A path made exact; it must be possible for something the variable may be bound to."""
        failure: NoemaError | None = None
        for sort in sorted(self.sorts[self.slots[name]]) or ["element"]:
            try:
                return check_path(path, world.env, sort)
            except NoemaError as error:
                failure = failure or error
        assert failure is not None
        raise failure


class Expressions:
    """Compiles expressions of one query. `uses` collects the variables of the one being compiled."""

    def __init__(self, world: World, scope: Scope, known: frozenset[int]) -> None:
        self.world = world
        self.scope = scope
        self.known = known  # slots that something visible from here binds
        self.uses: set[int] = set()

    def compile(self, node: ast.Node) -> Evaluate:
        """The expression as a function of a row.

        Raises:
            NoemaError: ReferenceError for a variable that nothing binds here, SchemaFieldNotFound for a path
                that cannot exist, UnsupportedCapability for what belongs elsewhere.
        """
        compiler = _COMPILERS.get(type(node))
        if compiler is None:
            raise NoemaError("UnsupportedCapability", f"{type(node).__name__} may not stand in an expression")
        return compiler(self, node)

    def variable(self, name: str) -> int:
        """The slot of a variable that is bound where the expression stands."""
        slot = self.scope.slots.get(name)
        if slot is None or slot not in self.known:
            raise NoemaError(
                "ReferenceError",
                f"?{name[:40]} is not bound here",
                hint="Bind it by a pattern of the same WHERE block; what NOT or a UNION branch binds stays inside.",
                details={"variable": name},
            )
        self.uses.add(slot)
        return slot

    # --- operands

    def on_variable(self, node: ast.Variable) -> Evaluate:
        """A bound value; null where there is no match."""
        slot = self.variable(node.name)
        return lambda row: None if row[slot] is UNBOUND else row[slot]

    def on_literal(self, node: ast.Literal) -> Evaluate:
        """A constant."""
        value = make_literal(node.value, node.datatype, node.language)
        constant = value if value.datatype or value.language else value.value
        return lambda _: constant

    def on_parameter(self, node: ast.Parameter) -> Evaluate:
        """Refused: parameters are bound before."""
        raise NoemaError("InvalidRequestEnvelope", f"no value was given for :{node.name[:40]}")

    def on_array(self, node: ast.Array) -> Evaluate:
        """A list of values."""
        items = [self.compile(item) for item in node.items]
        return lambda row: [item(row) for item in items]

    def on_object(self, node: ast.Object) -> Evaluate:
        """`{id: ...}` is a reference; any other object is itself."""
        members = [(member.name, self.compile(member.value)) for member in node.members]
        if len(members) == 1 and members[0][0] == "id":
            inner = members[0][1]
            return lambda row: _reference(inner(row))
        return lambda row: {name: value(row) for name, value in members}

    def on_access(self, node: ast.FieldAccess) -> Evaluate:
        """A dot path from a variable."""
        slot = self.variable(node.variable)
        path = self.scope.path(node.variable, node.path, self.world)
        world = self.world

        def read(row: Row) -> Any:  # a JSON value
            value = row[slot]
            if isinstance(value, Ref):
                element = world.get(value.id)
                return None if element is None else world.field(element, path)
            if isinstance(value, Projected):
                return read_path(value.value, path)
            if isinstance(value, Edge):
                return read_path(edge_json(value), path)
            return read_path(value, path)

        return read

    # --- operators

    def on_comparison(self, node: ast.Comparison) -> Evaluate:
        """One of `_COMPARE`."""
        left, right = self.compile(node.left), self.compile(node.right)
        decide = _COMPARE[node.operator]
        return lambda row: decide(left(row), right(row))

    def on_and(self, node: ast.And) -> Evaluate:
        """True if every operand is."""
        parts = [self.compile(part) for part in node.operands]
        return lambda row: all(is_true(part(row)) for part in parts)

    def on_or(self, node: ast.Or) -> Evaluate:
        """True if one operand is."""
        parts = [self.compile(part) for part in node.operands]
        return lambda row: any(is_true(part(row)) for part in parts)

    def on_not(self, node: ast.Not) -> Evaluate:
        """True of everything that is not true."""
        inner = self.compile(node.operand)
        return lambda row: not is_true(inner(row))

    def on_minus(self, node: ast.Minus) -> Evaluate:
        """The negative of a number, null of anything else."""
        inner = self.compile(node.operand)

        def negate(row: Row) -> Any:  # a number or null
            value = scalar(inner(row))
            return -value if isinstance(value, (int, float)) and not isinstance(value, bool) else None

        return negate

    def on_call(self, node: ast.FunctionCall) -> Evaluate:
        """One of `FUNCTIONS`, or REGEX."""
        if node.name == "REGEX":
            return self._regex(node)
        function = FUNCTIONS.get(node.name)
        if function is None:
            raise NoemaError(
                "UnsupportedCapability",
                f"{node.name} is no function of a query",
                hint=f"Those of FILTER are {', '.join(sorted([*FUNCTIONS, 'REGEX']))}.",
            )
        arguments = [self.compile(argument) for argument in node.arguments]
        return lambda row: function(*[argument(row) for argument in arguments])

    def _regex(self, node: ast.FunctionCall) -> Evaluate:
        text, pattern = (self.compile(argument) for argument in node.arguments)
        constant = node.arguments[1]
        if isinstance(constant, ast.Literal) and isinstance(constant.value, str):
            compile_regex(constant.value)  # a pattern that is none is told before any row is looked at

        def search(row: Row) -> bool:
            subject, wanted = scalar(text(row)), scalar(pattern(row))
            if not isinstance(subject, str) or not isinstance(wanted, str):
                return False
            if len(subject) > MAX_TEXT:
                raise NoemaError(
                    "ResourceExhausted",
                    f"REGEX looks at texts of at most {MAX_TEXT} characters",
                    hint="Find words in long texts with SEARCH.",
                )
            return compile_regex(wanted).search(subject, self.world.spend)

        return search


def is_true(value: Any) -> bool:  # a JSON value or a bound value
    """Whether a value is the boolean true; a literal `true` that a variable is bound to is."""
    return scalar(value) is True


def _reference(value: Any) -> Any:
    return Ref(value) if isinstance(value, str) else None


def _contains(holder: Any, item: Any) -> bool:
    holder = scalar(holder)
    if isinstance(holder, str):
        part = scalar(item)
        return isinstance(part, str) and part in holder
    return isinstance(holder, list) and any(_same_member(found, item) for found in holder)


def _same_member(found: Any, item: Any) -> bool:
    if isinstance(item, Ref) and isinstance(found, dict):  # a citation {"id": ..., "role": ...}
        return found.get("id") == item.id
    return same(found, item)


def _affix(test: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    def holds(text: Any, part: Any) -> bool:
        text, part = scalar(text), scalar(part)
        return isinstance(text, str) and isinstance(part, str) and test(text, part)

    return holds


def _is_kind(value: Any, kind: Any) -> bool:
    wanted = scalar(kind)
    if not isinstance(wanted, str) or wanted.lower() not in KINDS:
        raise NoemaError("TypeMismatch", f"IS_KIND takes one of {', '.join(KINDS)}")
    return isinstance(value, Ref) and is_element_id(value.id) and kind_of(value.id) == wanted.lower()


def _is_literal(value: Any) -> bool:
    return isinstance(value, (Literal, str, int, float))


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "IN": lambda value, items: isinstance(items, list) and any(same(value, item) for item in items),
    "CONTAINS": _contains,
    "STARTS_WITH": _affix(str.startswith),
    "ENDS_WITH": _affix(str.endswith),
    "IS_NULL": lambda value: scalar(value) is None,
    "IS_NOT_NULL": lambda value: scalar(value) is not None,
    "IS_LITERAL": _is_literal,
    "IS_ELEMENT": lambda value: isinstance(value, Ref),
    "IS_KIND": _is_kind,
    "LITERAL_TYPE": lambda value: literal_type(scalar(value)) if _is_literal(value) else None,
}
"""KIP §44.2, without REGEX, which is compiled apart."""

_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": same,
    "!=": lambda left, right: not same(left, right),
    "<": lambda left, right: less(left, right) is True,
    ">": lambda left, right: less(right, left) is True,
    "<=": lambda left, right: less(right, left) is False,
    ">=": lambda left, right: less(left, right) is False,
}

_COMPILERS: Final[dict[type, Callable[[Expressions, Any], Evaluate]]] = {
    ast.Variable: Expressions.on_variable,
    ast.Parameter: Expressions.on_parameter,
    ast.Literal: Expressions.on_literal,
    ast.Array: Expressions.on_array,
    ast.Object: Expressions.on_object,
    ast.FieldAccess: Expressions.on_access,
    ast.FunctionCall: Expressions.on_call,
    ast.Comparison: Expressions.on_comparison,
    ast.And: Expressions.on_and,
    ast.Or: Expressions.on_or,
    ast.Not: Expressions.on_not,
    ast.Minus: Expressions.on_minus,
}
