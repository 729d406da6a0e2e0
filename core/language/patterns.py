"""The productions for terms, tuples and WHERE blocks, shared by KQL, KML and META.

What lives here: one `parse_*` per production. What must never live here: statements, and what a pattern matches.

`Tuples` says what a Proposition tuple may hold where it stands: FIND walks paths and binds predicates, the WHERE
of a mutation or an export only binds them, and ENSURE and ASSERT take neither, because they create.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final

from core.language import ast
from core.language.cursor import Cursor
from core.language.functions import FILTER_FUNCTIONS
from core.language.lexer import NUMBER, PARAMETER, STRING, VARIABLE
from core.language.values import (
    expect_comma,
    parse_expression,
    parse_literal,
    parse_name,
    parse_parameter,
    parse_scalar,
    parse_symbol,
    parse_variable_name,
    refuse_duplicates,
)


class Tuples(enum.Enum):
    """What a tuple may hold: paths and predicate variables, only predicate variables, or neither."""

    PATHS = enum.auto()
    EXACT = enum.auto()
    CREATED = enum.auto()


_TYPED_LITERAL: Final = frozenset({"value", "datatype", "language"})
_ELEMENT_KINDS: Final[dict[str, ast.ElementKind]] = {
    "CONCEPT": "concept", "ASSERTION": "assertion", "EVIDENCE": "evidence", "ACTIVITY": "activity",
}  # fmt: skip
_CLAUSES: Final = "a pattern, FILTER, NOT, OPTIONAL, UNION or '}'"

# --- Match objects ----------------------------------------------------------------------------------------


def parse_object_pattern(cursor: Cursor, tuples: Tuples) -> ast.ObjectPattern:
    """`object_pattern`."""
    span = cursor.span()
    cursor.expect("{")
    members: list[ast.PatternMember] = []
    names: list[tuple[str, int]] = []
    while not cursor.match("}"):
        if members:
            expect_comma(cursor, "}")
        names.append((str(cursor.values[cursor.index]), cursor.index))
        place = cursor.span()
        name = parse_name(cursor)
        cursor.expect_colon()
        members.append(ast.PatternMember(span=place, name=name, value=_parse_pattern_value(cursor, tuples)))
    refuse_duplicates(cursor, names)
    return ast.ObjectPattern(span=span, members=tuple(members))


def _parse_pattern_value(cursor: Cursor, tuples: Tuples) -> ast.PatternValue:
    if cursor.key() != "[":
        return _parse_term(cursor, tuples, "a value to match")
    span = cursor.span()
    cursor.expect("[")
    items: list[ast.PatternValue] = []
    while not cursor.match("]"):
        if items:
            expect_comma(cursor, "]")
        items.append(_parse_pattern_value(cursor, tuples))
    return ast.ArrayPattern(span=span, items=tuple(items))


# --- Terms and tuples -------------------------------------------------------------------------------------


def parse_term(cursor: Cursor, tuples: Tuples, expected: str = "a term") -> ast.Term:
    """`term`; an object `{value: ..., language: ...}` of literals is a typed literal (KIP §9.1)."""
    term = _parse_term(cursor, tuples, expected)
    return typed_literal(term) or term if isinstance(term, ast.ObjectPattern) else term


def typed_literal(pattern: ast.ObjectPattern) -> ast.Literal | None:
    """The literal that an object of `value` and `datatype` or `language` stands for; None for a match."""
    values: dict[str, str | int | float | bool | None] = {}
    for member in pattern.members:
        if member.name not in _TYPED_LITERAL or not isinstance(member.value, ast.Literal):
            return None
        values[member.name] = member.value.value
    if "value" not in values or len(values) == 1:
        return None
    datatype, language = values.get("datatype"), values.get("language")
    if not isinstance(datatype, str | None) or not isinstance(language, str | None):
        return None
    return ast.Literal(span=pattern.span, value=values["value"], datatype=datatype, language=language)


def parse_element(cursor: Cursor, tuples: Tuples, expected: str) -> ast.Term:
    """A `term` that must name an element: a subject or a structural endpoint is never a Literal (KIP §8.4)."""
    at = cursor.index
    term = parse_term(cursor, tuples, expected)
    if isinstance(term, ast.Literal):
        hint = 'Name the element: a ?variable, {id: "..."}, or a :parameter bound to {"id": "..."}.'
        cursor.refuse(at, "an element is needed here, not a literal", hint=hint)
    return term


def _parse_term(
    cursor: Cursor, tuples: Tuples, expected: str
) -> ast.Variable | ast.Parameter | ast.Literal | ast.ObjectPattern | ast.PropositionTuple:
    key = cursor.keys[cursor.index]
    if key == VARIABLE:
        if tuples is Tuples.CREATED:
            cursor.references.append((cursor.values[cursor.index], cursor.index))
        return ast.Variable(span=cursor.span(), name=cursor.take())
    if key == PARAMETER:
        return ast.Parameter(span=cursor.span(), name=cursor.take())
    if key == "{":
        return parse_object_pattern(cursor, tuples)
    if key == "(":
        return parse_tuple(cursor, tuples)
    hint = f'Quote text: "{cursor.values[cursor.index]}".' if key[:1].isalpha() else None
    return parse_literal(cursor) or cursor.fail(expected, hint)


def parse_tuple(cursor: Cursor, tuples: Tuples) -> ast.PropositionTuple:
    """`proposition_tuple` in either form."""
    span = cursor.span()
    cursor.expect("(")
    if cursor.keys[cursor.index] == "ID" and cursor.keys[cursor.index + 1] in {":", PARAMETER}:
        return _parse_by_id(cursor, span)
    return parse_triple(cursor, tuples, span)


def parse_triple(cursor: Cursor, tuples: Tuples, span: ast.Span) -> ast.Triple:
    """A `proposition_tuple` of three terms, after its '(' at `span`."""
    subject = parse_element(cursor, tuples, "a subject")
    cursor.expect(",")
    predicate = parse_predicate(cursor, tuples)
    cursor.expect(",")
    target = parse_term(cursor, tuples, "an object")
    cursor.expect(")")
    return ast.Triple(span=span, subject=subject, predicate=predicate, object=target)


def _parse_by_id(cursor: Cursor, span: ast.Span) -> ast.PropositionById:
    cursor.index += 1
    cursor.expect_colon()
    scalar = parse_scalar(cursor, "a Proposition's id")
    cursor.expect(")")
    return ast.PropositionById(span=span, id=scalar)


def parse_predicate(cursor: Cursor, tuples: Tuples) -> ast.PredicateAtom | ast.PredicatePath:
    """`predicate_atom`, and in FIND `raw_predicate_expression`."""
    span = cursor.span()
    first = _parse_path_atom(cursor, tuples)
    if cursor.key() != "|":
        plain = first.minimum == 1 and first.maximum == 1
        return first.predicate if plain else ast.PredicatePath(span=span, alternatives=(first,))
    if tuples is not Tuples.PATHS:
        cursor.fail("','", "Alternative predicates stand only in the raw tuples of FIND (KIP §45).")
    alternatives = [first]
    while cursor.match("|"):
        alternatives.append(_parse_path_atom(cursor, tuples))
    return ast.PredicatePath(span=span, alternatives=tuple(alternatives))


def _parse_path_atom(cursor: Cursor, tuples: Tuples) -> ast.PathAtom:
    span = cursor.span()
    predicate = parse_predicate_atom(cursor, tuples)
    if cursor.key() != "{":
        return ast.PathAtom(span=span, predicate=predicate)
    if tuples is not Tuples.PATHS:
        cursor.fail("','", "Path quantifiers stand only in the raw tuples of FIND (KIP §45).")
    at = cursor.index
    cursor.index += 1
    minimum = _parse_hops(cursor)
    maximum: int | None = minimum
    if cursor.match(","):
        maximum = None if cursor.key() == "}" else _parse_hops(cursor)
    cursor.expect("}")
    if maximum is not None and maximum < minimum:
        cursor.refuse(at, f"a path of at least {minimum} and at most {maximum} hops does not exist")
    return ast.PathAtom(span=span, predicate=predicate, minimum=minimum, maximum=maximum)


def _parse_hops(cursor: Cursor) -> int:
    value = cursor.values[cursor.index]
    if cursor.key() != NUMBER or not isinstance(value, int) or value < 0:
        cursor.fail("a number of hops")
    cursor.index += 1
    return value


def parse_predicate_atom(cursor: Cursor, tuples: Tuples) -> ast.PredicateAtom:
    """`predicate_atom`."""
    key = cursor.key()
    if key == STRING:
        return ast.Literal(span=cursor.span(), value=cursor.take())
    if key == VARIABLE:
        if tuples is Tuples.CREATED:
            cursor.fail(
                "an exact predicate", "A predicate that is written is a quoted symbol or a :parameter."
            )
        return ast.Variable(span=cursor.span(), name=cursor.take())
    hint = f'Quote the predicate: "{cursor.values[cursor.index]}".' if key[:1].isalpha() else None
    return parse_parameter(cursor) or cursor.fail("a predicate", hint)


# --- WHERE ------------------------------------------------------------------------------------------------


def parse_where(cursor: Cursor) -> ast.Where:
    """`where_block`; BELIEF and paths only in KQL."""
    cursor.expect("{")
    clauses: list[ast.WhereClause] = []
    while not cursor.match("}"):
        clauses.append(_parse_clause(cursor))
    return tuple(clauses)


def _parse_clause(cursor: Cursor) -> ast.WhereClause:
    span = cursor.span()
    key = cursor.keys[cursor.index]
    if key == VARIABLE:
        return _parse_bound_pattern(cursor, span)
    if key in {"(", "PROPOSITION"}:
        return _parse_proposition(cursor, span, None)
    if key == "STRUCTURAL":
        return _parse_structural(cursor, span, None)
    parse = _BLOCKS.get(key)
    if parse is None:
        hint = "Items of WHERE are separated by whitespace." if key == "," else None
        if key in {"BELIEF", *_ELEMENT_KINDS}:
            hint = f"Name what it binds: ?variable {key} ..."
        cursor.fail(_CLAUSES, hint)
    cursor.index += 1
    return parse(cursor, span)


def _parse_bound_pattern(cursor: Cursor, span: ast.Span) -> ast.WhereClause:
    name = parse_variable_name(cursor)
    key = cursor.keys[cursor.index]
    if key == "{":
        return ast.ElementPattern(
            span=span, kind="concept", variable=name, match=parse_object_pattern(cursor, _tuples(cursor))
        )
    kind = _ELEMENT_KINDS.get(key)
    if kind is not None:
        cursor.index += 1
        match = parse_object_pattern(cursor, _tuples(cursor))
        return ast.ElementPattern(span=span, kind=kind, variable=name, match=match)
    if key in {"(", "PROPOSITION"}:
        return _parse_proposition(cursor, span, name)
    if key == "STRUCTURAL":
        return _parse_structural(cursor, span, name)
    if key == "BELIEF":
        return _parse_belief(cursor, span, name)
    return cursor.fail(
        f"a pattern for ?{name[:40]}: {{...}}, (...), CONCEPT, PROPOSITION, ASSERTION, EVIDENCE, ACTIVITY, "
        "STRUCTURAL or BELIEF"
    )


def _tuples(cursor: Cursor) -> Tuples:
    return Tuples.PATHS if cursor.language == "KQL" else Tuples.EXACT


def _parse_proposition(cursor: Cursor, span: ast.Span, name: str | None) -> ast.PropositionPattern:
    cursor.match("PROPOSITION")
    return ast.PropositionPattern(span=span, variable=name, tuple=parse_tuple(cursor, _tuples(cursor)))


def _parse_structural(cursor: Cursor, span: ast.Span, name: str | None) -> ast.StructuralPattern:
    cursor.expect_words("STRUCTURAL", "(")
    source = parse_element(cursor, _tuples(cursor), "a source")
    cursor.expect(",")
    field = parse_symbol(cursor, "a structural field")
    cursor.expect(",")
    target = parse_element(cursor, _tuples(cursor), "a target")
    cursor.expect(")")
    return ast.StructuralPattern(span=span, variable=name, source=source, field=field, target=target)


def _parse_belief(cursor: Cursor, span: ast.Span, name: str) -> ast.BeliefPattern | ast.BeliefSlotPattern:
    if cursor.language != "KQL":
        cursor.refuse(
            cursor.index, "BELIEF stands only in FIND: what is believed is not stored, so nothing selects it"
        )
    cursor.index += 1
    if cursor.match("SLOT"):
        cursor.expect("(")
        subject = parse_element(cursor, Tuples.EXACT, "a subject")
        cursor.expect(",")
        predicate = parse_predicate_atom(cursor, Tuples.EXACT)
        cursor.expect(")")
        return ast.BeliefSlotPattern(span=span, variable=name, subject=subject, predicate=predicate)
    if cursor.keys[cursor.index] == "(" and cursor.keys[cursor.index + 2] == ")":
        cursor.index += 1
        place = cursor.span()
        target = ast.Variable(span=place, name=parse_variable_name(cursor))
        cursor.index += 1
        return ast.BeliefPattern(span=span, variable=name, target=target)
    return ast.BeliefPattern(span=span, variable=name, target=parse_tuple(cursor, Tuples.EXACT))


def _parse_filter(cursor: Cursor, span: ast.Span) -> ast.Filter:
    cursor.expect("(")
    condition = parse_expression(cursor, FILTER_FUNCTIONS)
    cursor.expect(")")
    return ast.Filter(span=span, condition=condition)


def _parse_not(cursor: Cursor, span: ast.Span) -> ast.NotBlock:
    return ast.NotBlock(span=span, where=parse_where(cursor))


def _parse_optional(cursor: Cursor, span: ast.Span) -> ast.OptionalBlock:
    return ast.OptionalBlock(span=span, where=parse_where(cursor))


def _parse_union(cursor: Cursor, span: ast.Span) -> ast.UnionBlock:
    return ast.UnionBlock(span=span, where=parse_where(cursor))


_BLOCKS: Final[dict[str, Callable[[Cursor, ast.Span], ast.WhereClause]]] = {
    "FILTER": _parse_filter,
    "NOT": _parse_not,
    "OPTIONAL": _parse_optional,
    "UNION": _parse_union,
}
