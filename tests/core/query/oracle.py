"""A naive evaluator of WHERE blocks, for checking the real one: every pattern against every element, no index.

It knows elements only in their wire form and was written from the specification, not from the engine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from core.language import ast
from core.query.wire import to_wire
from core.state.view import View
from tests.core.query.brain import WORLD

Solution = dict[str, Any]  # variable -> ("ref", id) | ("lit", JSON scalar) | None


class Oracle:
    """All elements of a view, in wire form."""

    def __init__(self, view: View) -> None:
        self.elements = {}
        for kind in ("concept", "proposition", "assertion", "evidence", "activity"):
            for found in view.ids(kind):
                element = view.get(found)
                assert element is not None
                self.elements[found] = to_wire(element, "test")

    def solve(self, where: ast.Where) -> list[Solution]:
        """The set of solutions over all named variables that leave the block."""
        names = sorted(escaping(where))
        found = {}
        for solution in self.block(where, {}):
            row = {name: solution.get(name) for name in names}
            found[json.dumps([[name, _key(row[name])] for name in names])] = row
        return list(found.values())

    # --- blocks

    def block(self, where: ast.Where, start: Solution) -> list[Solution]:
        """Solutions of a block that agree with `start`."""
        unions = [clause for clause in where if isinstance(clause, ast.UnionBlock)]
        patterns = [
            clause
            for clause in where
            if isinstance(clause, (ast.ElementPattern, ast.PropositionPattern, ast.StructuralPattern))
        ]
        optionals = [clause for clause in where if isinstance(clause, ast.OptionalBlock)]
        branches = [row for union in unions for row in self.block(union.where, start)]
        if unions and not patterns and not optionals:
            rows, branches = branches, []
        else:
            rows = [start]
            for pattern in patterns:
                rows = [joined for row in rows for joined in self.pattern(pattern, row)]
            for optional in optionals:
                rows = [joined for row in rows for joined in self.optional(optional.where, row)]
        for clause in where:
            if isinstance(clause, ast.Filter):
                rows = [row for row in rows if self.value(clause.condition, row) is True]
        for clause in where:
            if isinstance(clause, ast.NotBlock):
                rows = [row for row in rows if not self.block(clause.where, row)]
        return rows + branches

    def optional(self, where: ast.Where, row: Solution) -> list[Solution]:
        found = self.block(where, row)
        return [dict.fromkeys(escaping(where)) | extended for extended in found or [row]]

    # --- patterns

    def pattern(self, pattern: ast.Node, row: Solution) -> Iterator[Solution]:
        if isinstance(pattern, ast.ElementPattern):
            for found, wire in self.elements.items():
                if wire["kind"] == pattern.kind:
                    for extended in self.matches(pattern.match, wire, row):
                        yield from _join(extended, pattern.variable, ("ref", found))
        elif isinstance(pattern, ast.PropositionPattern):
            for found, extended in self.tuples(pattern.tuple, row):
                if pattern.variable is None:
                    yield extended
                else:
                    yield from _join(extended, pattern.variable, ("ref", found))
        elif isinstance(pattern, ast.StructuralPattern):
            field = pattern.field.value
            for found, wire in self.elements.items():
                refs = wire.get("structural", {}).get(f"{WORLD}/{field}", wire.get(field, []))
                for ref in refs if isinstance(refs, list) else []:
                    for extended in self.term(pattern.source, ("ref", found), row):
                        yield from self.term(pattern.target, ("ref", ref["id"]), extended)

    def matches(self, match: ast.ObjectPattern, wire: Any, row: Solution) -> Iterator[Solution]:
        if wire["_system"]["state"] != "active":
            return
        rows = [row]
        for member in match.members:
            name, value = member.name, member.value
            if name == "type":
                assert isinstance(value, ast.Literal)
                rows = [row for row in rows if wire["schema_ref"] == f"{WORLD}/{value.value}"]
            else:
                rows = [extended for row in rows for extended in self.member(value, wire.get(name), row)]
        yield from rows

    def member(self, want: ast.Node, found: Any, row: Solution) -> Iterator[Solution]:
        if isinstance(found, list) and all(isinstance(item, dict) and "id" in item for item in found):
            for item in found:
                yield from self.member(want, {"id": item["id"]}, row)
        elif isinstance(found, dict) and set(found) == {"id"}:
            yield from self.term(want, ("ref", found["id"]), row)
        elif isinstance(want, ast.Variable):
            if found is not None:
                yield from _join(row, want.name, ("lit", found))
        elif isinstance(want, ast.Literal):
            if _strict(want.value, found):
                yield row
        elif isinstance(want, ast.ObjectPattern) and isinstance(found, dict):
            rows = [row]
            for member in want.members:
                rows = [e for row in rows for e in self.member(member.value, found.get(member.name), row)]
            yield from rows

    def tuples(self, pattern: ast.Node, row: Solution) -> Iterator[tuple[str, Solution]]:
        if isinstance(pattern, ast.PropositionById):
            wire = self.elements.get(str(pattern.id.value))
            if wire is not None and wire["kind"] == "proposition":
                yield wire["id"], row
            return
        assert isinstance(pattern, ast.Triple)
        if isinstance(pattern.predicate, ast.PredicatePath):
            for start, end in self.paths(pattern.predicate):
                for extended in self.term(pattern.subject, start, row):
                    for final in self.term(pattern.object, end, extended):
                        yield "", final
            return
        for found, subject, predicate, obj in self.propositions():
            for extended in self.term(pattern.subject, subject, row):
                for further in self.predicate(pattern.predicate, predicate, extended):
                    for final in self.term(pattern.object, obj, further):
                        yield found, final

    def propositions(self) -> Iterator[tuple[str, Any, str, Any]]:
        for found, wire in self.elements.items():
            if wire["kind"] == "proposition" and wire["_system"]["state"] == "active":
                obj = wire["object"]
                yield (
                    found,
                    ("ref", wire["subject"]["id"]),
                    wire["predicate_ref"],
                    ("ref", obj["id"]) if isinstance(obj, dict) else ("lit", obj),
                )

    def predicate(self, want: ast.Node, found: str, row: Solution) -> Iterator[Solution]:
        if isinstance(want, ast.Variable):
            yield from _join(row, want.name, ("lit", found))
        elif f"{WORLD}/{want.value}" == found:  # type: ignore[union-attr]
            yield row

    def paths(self, path: ast.PredicatePath) -> Iterator[tuple[Any, Any]]:
        nodes = {_key(("ref", found)): ("ref", found) for found in self.elements}
        for atom in path.alternatives:
            steps = [
                (subject, obj)
                for _, subject, predicate, obj in self.propositions()
                if predicate == f"{WORLD}/{atom.predicate.value}"
            ]
            level = [(node, node) for node in nodes.values()]
            most = atom.maximum if atom.maximum is not None else atom.minimum + len(nodes)
            for hops in range(most + 1):
                if hops >= atom.minimum:
                    yield from level
                level = list(
                    {
                        (_key(start), _key(obj)): (start, obj)
                        for start, end in level
                        for subject, obj in steps
                        if subject == end
                    }.values()
                )

    def term(self, want: ast.Node, found: Any, row: Solution) -> Iterator[Solution]:
        if isinstance(want, ast.Variable):
            yield from _join(row, want.name, found)
        elif isinstance(want, ast.Literal):
            if found[0] == "lit" and _strict(want.value, found[1]):
                yield row
        elif isinstance(want, ast.ObjectPattern):
            wire = self.elements.get(found[1]) if found[0] == "ref" else None
            if wire is not None and wire["kind"] == "concept":
                yield from self.matches(want, wire, row)
        elif isinstance(want, ast.Triple) and found[0] == "ref":
            for proposition, extended in self.tuples(want, row):
                if proposition == found[1]:
                    yield extended

    # --- expressions

    def value(self, node: ast.Node, row: Solution) -> Any:
        if isinstance(node, ast.Literal):
            return node.value
        if isinstance(node, ast.Variable):
            bound = row.get(node.name)
            return bound if bound is None or bound[0] == "ref" else bound[1]
        if isinstance(node, ast.FieldAccess):
            bound = row.get(node.variable)
            found: Any = self.elements.get(bound[1]) if bound is not None and bound[0] == "ref" else None
            for step in node.path:
                found = found.get(step) if isinstance(found, dict) else None
            return found
        if isinstance(node, ast.Not):
            return self.value(node.operand, row) is not True
        if isinstance(node, ast.And):
            return all(self.value(part, row) is True for part in node.operands)
        if isinstance(node, ast.Or):
            return any(self.value(part, row) is True for part in node.operands)
        if isinstance(node, ast.FunctionCall):
            assert node.name == "IS_NULL"
            return self.value(node.arguments[0], row) is None
        assert isinstance(node, ast.Comparison)
        left, right = self.value(node.left, row), self.value(node.right, row)
        if node.operator in {"==", "!="}:
            return _strict(left, right) is (node.operator == "==")
        alike = (_number(left) and _number(right)) or any(
            isinstance(left, sort) and isinstance(right, sort) for sort in (str, bool)
        )
        if not alike:
            return False
        return {
            "<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right,
        }[node.operator]  # fmt: skip


def escaping(where: ast.Where) -> set[str]:
    """Named variables whose values leave a block."""
    names: set[str] = set()

    def visit(node: Any) -> None:
        if isinstance(node, (ast.Filter, ast.NotBlock)):
            return
        if isinstance(node, ast.Variable):
            names.add(node.name)
        elif isinstance(node, tuple):
            for item in node:
                visit(item)
        elif isinstance(node, ast.Node):
            if isinstance(getattr(node, "variable", None), str):
                names.add(node.variable)  # type: ignore[attr-defined]
            for name in node.__struct_fields__:
                visit(getattr(node, name))

    visit(where)
    return names


def _join(row: Solution, name: str, value: Any) -> Iterator[Solution]:
    if name not in row:
        yield {**row, name: value}
    elif row[name] is not None and _key(row[name]) == _key(value):
        yield row


def _key(value: Any) -> Any:
    if value is None:
        return None
    sort, content = value
    if isinstance(content, (int, float)) and not isinstance(content, bool):
        content = float(content)
    return (sort, type(content).__name__, content)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _strict(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if _number(left) and _number(right):
        return bool(left == right)
    return type(left) is type(right) and left == right
