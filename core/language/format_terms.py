"""Values, expressions, patterns and WHERE clauses as canonical text.

What lives here: one text per node of `ast`, with as few parentheses as the grammar allows. What must never live
here: statements (`format`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from core.language import ast

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RELATIONS: Final = frozenset({"<", "<=", ">", ">="})

# How tightly an expression binds; an operand that binds less tightly than its place stands in parentheses.
_OR, _AND, _EQUALITY, _RELATION, _UNARY, _PRIMARY = range(6)


def format_literal(literal: ast.Literal) -> str:
    """A scalar; a typed literal as the object that stands for it in a term."""
    value = json.dumps(literal.value, ensure_ascii=False)
    if literal.datatype is None and literal.language is None:
        return value
    members = [f"value: {value}"]
    if literal.datatype is not None:
        members.append(f"datatype: {json.dumps(literal.datatype, ensure_ascii=False)}")
    if literal.language is not None:
        members.append(f"language: {json.dumps(literal.language, ensure_ascii=False)}")
    return "{" + ", ".join(members) + "}"


def format_name(name: str) -> str:
    """A field name: bare where it is an identifier, quoted where it is not."""
    return name if _NAME.match(name) else json.dumps(name, ensure_ascii=False)


def format_object(node: ast.Object | ast.ObjectPattern) -> str:
    """`object_literal`, `assignment_object`, `object_pattern`."""
    return (
        "{"
        + ", ".join([f"{format_name(item.name)}: {format_term(item.value)}" for item in node.members])
        + "}"
    )


def format_access(node: ast.FieldAccess) -> str:
    """`field_access`; the name of a facet stands in brackets."""
    text, before = f"?{node.variable}", ""
    for step in node.path:
        dotted = before != "facets" and _NAME.match(step)
        text += f".{step}" if dotted else f"[{json.dumps(step, ensure_ascii=False)}]"
        before = step
    return text


def format_term(node: ast.Expression | ast.PatternValue | ast.Term) -> str:
    """Any value, expression or term, as it stands alone."""
    if isinstance(node, ast.Literal):
        return format_literal(node)
    if isinstance(node, ast.Variable):
        return f"?{node.name}"
    if isinstance(node, ast.Parameter):
        return f":{node.name}"
    if isinstance(node, ast.FieldAccess):
        return format_access(node)
    if isinstance(node, (ast.Object, ast.ObjectPattern)):
        return format_object(node)
    if isinstance(node, (ast.Array, ast.ArrayPattern)):
        return "[" + ", ".join([format_term(item) for item in node.items]) + "]"
    if isinstance(node, ast.Triple):
        subject, target = format_term(node.subject), format_term(node.object)
        return f"({subject}, {format_predicate(node.predicate)}, {target})"
    if isinstance(node, ast.PropositionById):
        return f"(id: {format_term(node.id)})"
    return _format_expression(node)


def format_predicate(node: ast.PredicateAtom | ast.PredicatePath) -> str:
    """`predicate_atom` or `raw_predicate_expression`."""
    if isinstance(node, ast.PredicatePath):
        return " | ".join([format_term(atom.predicate) + _format_hops(atom) for atom in node.alternatives])
    return format_term(node)


def _format_hops(atom: ast.PathAtom) -> str:
    if atom.minimum == atom.maximum:
        return "" if atom.minimum == 1 else f"{{{atom.minimum}}}"
    return f"{{{atom.minimum},{'' if atom.maximum is None else atom.maximum}}}"


# --- Expressions ------------------------------------------------------------------------------------------


def _format_expression(node: ast.Expression) -> str:
    if isinstance(node, ast.FunctionCall):
        return f"{node.name}({', '.join([format_term(item) for item in node.arguments])})"
    if isinstance(node, ast.Comparison):
        place = _UNARY if node.operator in _RELATIONS else _RELATION
        return f"{_operand(node.left, place)} {node.operator} {_operand(node.right, place)}"
    if isinstance(node, ast.And):
        return " && ".join([_operand(item, _EQUALITY) for item in node.operands])
    if isinstance(node, ast.Or):
        return " || ".join([_operand(item, _AND) for item in node.operands])
    if isinstance(node, ast.Not):
        return f"!{_operand(node.operand, _PRIMARY)}"
    assert isinstance(node, ast.Minus)
    return f"-{_operand(node.operand, _PRIMARY)}"


def _operand(node: ast.Expression, place: int) -> str:
    text = format_term(node)
    return text if _binding(node) >= place else f"({text})"


def _binding(node: ast.Expression) -> int:
    if isinstance(node, ast.Or):
        return _OR
    if isinstance(node, ast.And):
        return _AND
    if isinstance(node, ast.Comparison):
        return _RELATION if node.operator in _RELATIONS else _EQUALITY
    return _UNARY if isinstance(node, (ast.Not, ast.Minus)) else _PRIMARY


# --- WHERE ------------------------------------------------------------------------------------------------


def indented(lines: Iterable[str]) -> list[str]:
    """The lines, one step further to the right."""
    return [f"  {line}" for line in lines]


def format_where(where: ast.Where, head: str = "WHERE") -> list[str]:
    """A block under its keyword."""
    if not where:
        return [f"{head} {{}}"]
    lines = [line for clause in where for line in _format_clause(clause)]
    return [f"{head} {{", *indented(lines), "}"]


def _format_clause(clause: ast.WhereClause) -> list[str]:
    if isinstance(clause, ast.NotBlock):
        return format_where(clause.where, "NOT")
    if isinstance(clause, ast.OptionalBlock):
        return format_where(clause.where, "OPTIONAL")
    if isinstance(clause, ast.UnionBlock):
        return format_where(clause.where, "UNION")
    if isinstance(clause, ast.Filter):
        return [f"FILTER({format_term(clause.condition)})"]
    bound = "" if clause.variable is None else f"?{clause.variable} "
    if isinstance(clause, ast.ElementPattern):
        kind = "" if clause.kind == "concept" else f"{clause.kind.upper()} "
        return [f"{bound}{kind}{format_object(clause.match)}"]
    if isinstance(clause, ast.PropositionPattern):
        return [f"{bound}{format_term(clause.tuple)}"]
    if isinstance(clause, ast.StructuralPattern):
        ends = f"{format_term(clause.source)}, {format_term(clause.field)}, {format_term(clause.target)}"
        return [f"{bound}STRUCTURAL ({ends})"]
    if isinstance(clause, ast.BeliefSlotPattern):
        return [f"{bound}BELIEF SLOT ({format_term(clause.subject)}, {format_term(clause.predicate)})"]
    target = format_term(clause.target)
    return [f"{bound}BELIEF {f'({target})' if isinstance(clause.target, ast.Variable) else target}"]
