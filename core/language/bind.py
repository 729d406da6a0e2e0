"""Parameters into a tree: each placeholder becomes the value it stands for, as data and never as text.

What lives here: `bind`, and what each place of the grammar may hold. What must never live here: names looked up
in a schema or a state.

A value becomes what the same value written at that place would have become: in a tuple, `{"id": "C-1"}` is the
reference `{id: "C-1"}`; in an assignment it is an object; in `LIMIT` it is refused. Literals written in the
text meet the same rules, so that after `bind` every place holds a value of its kind.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NoReturn, cast, get_args

import msgspec

from core.errors import NoemaError
from core.language import ast, ast_kml, ast_kql, ast_meta
from core.language.limits import MAX_INTEGER, MAX_NESTING, MIN_INTEGER
from core.language.patterns import typed_literal


class Place(msgspec.Struct, frozen=True):
    """What one place of the grammar may hold.

    `expected` names it for the reader. `convert` makes the node a parameter's JSON value stands for there, or
    None where such a value may not stand; `check` says whether a literal may stand there.
    """

    expected: str
    convert: Callable[[ast.Span, Any], ast.Node | None]  # Any: a JSON value
    check: Callable[[ast.Literal], bool]


def bind[AnyNode: ast.Node](command: AnyNode, parameters: Mapping[str, Any]) -> AnyNode:
    """The command with every parameter replaced by its value, and every literal checked against its place.

    Parameters that the command does not use are ignored: requests share them among operations (KIP §71).

    Args:
        command: a parsed command, or a part of one that is not itself a parameter.
        parameters: JSON values by parameter name.

    Raises:
        NoemaError: InvalidRequestEnvelope for a parameter without a value; TypeMismatch for a value of a kind
            that its place does not take; ConstraintViolation for a number or depth out of range. `details`
            hold `parameter`, `expected`, `actual` and the position, never the value.
    """
    binder = _Binder(parameters)
    bound = binder.bind(command)
    if binder.missing:
        missing = sorted(binder.missing)
        raise NoemaError(
            "InvalidRequestEnvelope",
            f"no value was given for {', '.join(':' + name[:40] for name in missing[:8])}",
            hint="Give every :parameter of the command a value in `parameters`.",
            details={"missing": missing},
        )
    return bound


def parameter_names(command: ast.Node) -> set[str]:
    """The names of the parameters a command holds."""
    return {node.name for node in _nodes(command) if isinstance(node, ast.Parameter)}


def _nodes(node: object) -> Iterator[ast.Node]:
    pending = [node]
    while pending:
        item = pending.pop()
        if isinstance(item, ast.Node):
            yield item
            pending.extend(getattr(item, name) for name in item.__struct_fields__)
        elif isinstance(item, tuple):
            pending.extend(item)


class _Binder:
    """One walk over a tree: what it binds with, and the parameters it found no value for."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._parameters = parameters
        self.missing: set[str] = set()

    def bind[AnyNode: ast.Node](self, node: AnyNode) -> AnyNode:
        """The node with its parts bound; the node itself where nothing in it changes."""
        kind = type(node)
        changed: dict[str, object] = {}
        for name, usual in _plan(kind):
            value = getattr(node, name)
            if value is None:
                continue
            bound = self._part(value, _place(node, usual) if kind in _BY_TOPIC else usual)
            if bound is not value:
                changed[name] = bound
        settled = msgspec.structs.replace(node, **changed) if changed else node
        return _settled(settled) if kind is ast.Triple or kind is ast.Minus else settled

    def _part(self, value: object, place: Place) -> object:
        """One field's content: a placeholder, a literal, a node with fields of its own, or several of these."""
        kind = type(value)
        if kind is ast.Literal:
            return _checked(cast("ast.Literal", value), place)
        if kind is ast.Parameter:
            return self._converted(cast("ast.Parameter", value), place)
        if kind is tuple:
            items = cast("tuple[object, ...]", value)
            bound = tuple([self._part(item, place) for item in items])
            return bound if any(new is not old for new, old in zip(bound, items, strict=True)) else value
        return value if kind is ast.Variable or not isinstance(value, ast.Node) else self.bind(value)

    def _converted(self, parameter: ast.Parameter, place: Place) -> ast.Node:
        if parameter.name not in self._parameters:
            self.missing.add(parameter.name)
            return parameter
        value = self._parameters[parameter.name]
        _check_json(parameter, value)
        node = place.convert(parameter.span, value)
        if node is None or (isinstance(node, ast.Literal) and not place.check(node)):
            _refuse(parameter.span, parameter.name, place.expected, value)
        return node


def _settled[AnyNode: ast.Node](node: AnyNode) -> AnyNode:
    """What a bound node comes to where the written form would have been read as something simpler."""
    if isinstance(node, ast.Triple) and isinstance(node.object, ast.ObjectPattern):
        literal = typed_literal(node.object)
        return msgspec.structs.replace(node, object=literal) if literal else node
    if isinstance(node, ast.Minus) and isinstance(node.operand, ast.Literal):
        value = node.operand.value
        if type(value) in {int, float}:
            negated = _number(node.span, -cast("int | float", value))
            return cast("AnyNode", ast.Literal(span=node.span, value=negated))
        _refuse(node.operand.span, None, "a number", value)
    return node


def _checked(literal: ast.Literal, place: Place) -> ast.Literal:
    if not place.check(literal):
        _refuse(literal.span, None, place.expected, literal.value)
    return literal


def _refuse(span: ast.Span, name: str | None, expected: str, value: object) -> NoReturn:
    actual = _json_type(value)
    what = f"the parameter :{name[:40]}" if name else "the value"
    details: dict[str, Any] = {"expected": expected, "actual": actual}
    if name:
        details["parameter"] = name
    if span.line:
        details |= {"line": span.line, "column": span.column, "offset": span.offset}
    raise NoemaError("TypeMismatch", f"{what} must be {expected}, not {actual}", details=details)


def _json_type(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a negative number" if value < 0 else "a number"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "an object"


def _check_json(parameter: ast.Parameter, value: Any) -> None:
    """Refuses what no place may hold: endless numbers, integers beyond 64 bits, depth beyond the limit."""
    level = [value]
    for _ in range(MAX_NESTING + 1):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
            elif isinstance(item, (int, float)) and not isinstance(item, bool):
                _number(parameter.span, item, parameter.name)
        if not inner:
            return
        level = inner
    raise NoemaError(
        "ConstraintViolation",
        f"the parameter :{parameter.name[:40]} is nested more than {MAX_NESTING} deep",
        details={"parameter": parameter.name, "limit": MAX_NESTING},
    )


def _number(span: ast.Span, value: int | float, name: str | None = None) -> int | float:  # noqa: PYI041
    fits = math.isfinite(value) if isinstance(value, float) else MIN_INTEGER <= value <= MAX_INTEGER
    if not fits:
        what = f"the parameter :{name[:40]}" if name else "the value"
        raise NoemaError(
            "ConstraintViolation",
            f"{what} holds a number outside the range of 64 bits",
            details={"parameter": name} if name else {"line": span.line, "column": span.column},
        )
    return value


# --- What a JSON value becomes ----------------------------------------------------------------------------


def _scalar(span: ast.Span, value: Any) -> ast.Literal | None:
    return None if isinstance(value, (dict, list)) else ast.Literal(span=span, value=value)


def _id(span: ast.Span, value: Any) -> ast.Literal | None:
    """An element by its id, given as the string or as `{"id": string}`."""
    if isinstance(value, dict) and value.keys() == {"id"}:
        value = value["id"]
    return _scalar(span, value)


def _value(span: ast.Span, value: Any) -> ast.DataValue:
    if isinstance(value, dict):
        members = [ast.Member(span=span, name=name, value=_value(span, item)) for name, item in value.items()]
        return ast.Object(span=span, members=tuple(members))
    if isinstance(value, list):
        return ast.Array(span=span, items=tuple([_value(span, item) for item in value]))
    return ast.Literal(span=span, value=value)


def _pattern(span: ast.Span, value: Any) -> ast.Literal | ast.ObjectPattern | ast.ArrayPattern:
    if isinstance(value, dict):
        members = [
            ast.PatternMember(span=span, name=name, value=_pattern(span, item))
            for name, item in value.items()
        ]
        return ast.ObjectPattern(span=span, members=tuple(members))
    if isinstance(value, list):
        return ast.ArrayPattern(span=span, items=tuple([_pattern(span, item) for item in value]))
    return ast.Literal(span=span, value=value)


def _term(span: ast.Span, value: Any) -> ast.Node | None:
    return None if isinstance(value, list) else _pattern(span, value)


def _element(span: ast.Span, value: Any) -> ast.ObjectPattern | None:
    node = _pattern(span, value)
    return node if isinstance(node, ast.ObjectPattern) and typed_literal(node) is None else None


def _operand(span: ast.Span, value: Any) -> ast.DataValue | None:
    return None if isinstance(value, list) else _value(span, value)


# --- What a literal may be --------------------------------------------------------------------------------


def _any(_: ast.Literal) -> bool:
    return True


def _none(_: ast.Literal) -> bool:
    return False


def _is_text(literal: ast.Literal) -> bool:
    return isinstance(literal.value, str)


def _is_count(literal: ast.Literal) -> bool:
    return type(literal.value) is int and literal.value >= 0


def _is_number(literal: ast.Literal) -> bool:
    return type(literal.value) in {int, float}


# --- The places -------------------------------------------------------------------------------------------

_VALUE: Final = Place("a value", _value, _any)
_PATTERN: Final = Place("a value to match", _pattern, _any)
_TERM: Final = Place("a literal or a reference", _term, _any)
_ELEMENT: Final = Place('a reference such as {"id": "..."}', _element, _none)
_ID: Final = Place("the id of an element", _id, _is_text)
_TEXT: Final = Place("a string", _scalar, _is_text)
_SYMBOL: Final = Place("a schema name", _scalar, _is_text)
_COUNT: Final = Place("a whole number of 0 or more", _scalar, _is_count)
_NUMBER: Final = Place("a number", _scalar, _is_number)
_OPERAND: Final = Place("an artifact", _operand, _any)

_PAGE: Final = {"limit": _COUNT, "cursor": _TEXT}
_SELECTED: Final = {"target": _ID, "limit": _COUNT, "expect_state": _TEXT, "expect_version": _COUNT}
_NONE: Final[dict[str, Place]] = {}

_PLACES: Final[dict[type[ast.Node], dict[str, Place]]] = {
    ast.ArrayPattern: {"items": _PATTERN},
    ast.PatternMember: {"value": _PATTERN},
    ast.PropositionById: {"id": _ID},
    ast.PathAtom: {"predicate": _SYMBOL},
    ast.Triple: {"subject": _ELEMENT, "predicate": _SYMBOL, "object": _TERM},
    ast.StructuralPattern: {"source": _ELEMENT, "field": _SYMBOL, "target": _ELEMENT},
    ast.BeliefSlotPattern: {"subject": _ELEMENT, "predicate": _SYMBOL},
    ast_kql.Find: {"for_time": _TEXT, **_PAGE},
    ast_kml.SetFacet: {"facet": _SYMBOL},
    ast_kml.UnsetFacet: {"facet": _SYMBOL},
    ast_kml.StructuralAssignment: {"field": _SYMBOL},
    ast_kml.StructuralRemoval: {"field": _SYMBOL},
    ast_kml.CreateConcept: {"type": _SYMBOL, "client_key": _TEXT, "name": _TEXT},
    ast_kml.CreateRecord: {"client_key": _TEXT},
    ast_kml.UpsertConcept: {"expect_version": _COUNT},
    ast_kml.EnsureProposition: {"expect_version": _COUNT},
    ast_kml.Assert: {"superseding": _ID},
    ast_kml.Update: _SELECTED,
    ast_kml.RetractAssertion: _SELECTED,
    ast_kml.SupersedeAssertion: {**_SELECTED, "by": _ID},
    ast_kml.CorrectEvidence: {**_SELECTED, "by": _ID},
    ast_kml.TransitionActivity: {**_SELECTED, "to": _TEXT},
    ast_kml.SetRetention: _SELECTED,
    ast_kml.Archive: _SELECTED,
    ast_kml.Tombstone: _SELECTED,
    ast_kml.Purge: {**_SELECTED, "reference_policy": _TEXT},
    ast_kml.MergeConcept: {**_SELECTED, "source": _ID},
    ast_meta.Describe: {"subject": _TEXT, "to": _TEXT},
    ast_meta.ListStatement: {"status": _TEXT, **_PAGE},
    ast_meta.Search: {
        "term": _TEXT, "type": _TEXT, "predicate": _TEXT, "mode": _TEXT, "threshold": _NUMBER,
        "as_of_seq": _COUNT, **_PAGE,
    },
    ast_meta.Verify: {"artifact": _OPERAND},
    ast_meta.Validate: {"subject": _OPERAND},
    ast_meta.PreviewKml: {"command": _TEXT},
    ast_meta.PreviewImport: {"capsule": _OPERAND, "into": _ID},
    ast_meta.History: {"element": _ID, "from_seq": _COUNT, "to_seq": _COUNT, **_PAGE},
    ast_meta.Changes: {"since": _TEXT, "after_seq": _COUNT, "limit": _COUNT},
    ast_meta.ExportCapsule: {"target": _ID},
}  # fmt: skip


_BY_TOPIC: Final = frozenset({ast.AsOf, ast_meta.Validate, ast_meta.Describe})
"""The nodes whose one operand is of a kind that another field of the node decides."""


def _place(node: ast.Node, usual: Place) -> Place:
    """What the operand of a node of `_BY_TOPIC` may be."""
    if isinstance(node, ast.AsOf):
        return _COUNT if node.axis == "SEQ" else _TEXT
    if isinstance(node, ast_meta.Validate) and node.target in {"KQL", "KML"}:
        return _TEXT
    if isinstance(node, ast_meta.Describe) and node.topic == "CAPSULE":
        return _OPERAND
    return usual


@functools.cache
def _plan(kind: type[ast.Node]) -> tuple[tuple[str, Place], ...]:
    """The fields of a class that may hold nodes, and what each may hold; any value where nothing is said."""
    places = _PLACES.get(kind, _NONE)
    return tuple(
        (field.name, places.get(field.name, _VALUE))
        for field in msgspec.structs.fields(kind)
        if _may_hold_nodes(field.type)
    )


def _may_hold_nodes(annotation: Any) -> bool:  # Any: a class or one of the forms of typing
    if isinstance(annotation, type) and issubclass(annotation, ast.Node):
        return True
    return any(_may_hold_nodes(part) for part in get_args(annotation))
