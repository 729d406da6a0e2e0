"""The clauses between the braces of CREATE and UPSERT, and the actions of UPDATE.

What lives here: SET and UNSET in all their forms, TYPE, CLIENT KEY, NAME, MATCH and EXPECT VERSION, each at most
once and in any order. What must never live here: the statements around them (`kml`).
"""

from __future__ import annotations

from typing import Final, Literal

from core.language import ast
from core.language.ast_kml import Content, SetFacet, StructuralAssignment, StructuralRemoval, UnsetFacet
from core.language.checks import check_fields
from core.language.cursor import Cursor
from core.language.functions import UPDATE_FUNCTIONS
from core.language.kql import parse_optional_scalar
from core.language.patterns import Tuples, parse_object_pattern
from core.language.values import (
    expect_comma,
    parse_name,
    parse_object,
    parse_scalar,
    parse_symbol,
    parse_value,
    refuse_duplicates,
)

BodyKind = Literal["concept", "record", "upsert", "update"]

_SETS: Final[dict[BodyKind, tuple[str, ...]]] = {
    "concept": ("FIELDS", "ATTRIBUTES", "FACET", "STRUCTURAL"),
    "record": ("FIELDS", "FACET", "STRUCTURAL"),
    "upsert": ("FIELDS", "ATTRIBUTES", "FACET", "STRUCTURAL"),
    "update": ("FIELDS", "ATTRIBUTES", "FACET", "STRUCTURAL"),
}
_UNSETS: Final = ("ATTRIBUTES", "FACET", "STRUCTURAL")
_CLAUSES: Final[dict[BodyKind, tuple[str, ...]]] = {
    "concept": ("TYPE", "CLIENT", "NAME", "SET"),
    "record": ("CLIENT", "SET"),
    "upsert": ("MATCH", "EXPECT", "SET", "UNSET"),
    "update": ("SET", "UNSET"),
}


class Body:
    """What has been read of a body so far; `content` gives the finished part that bodies share."""

    def __init__(self) -> None:
        self.type: ast.Symbol | None = None
        self.client_key: ast.Scalar | None = None
        self.name: ast.Scalar | None = None
        self.match: ast.ObjectPattern | None = None
        self.expect_version: ast.Scalar | None = None
        self._fields: ast.Object | None = None
        self._attributes: ast.Object | None = None
        self._facets: list[SetFacet] = []
        self._structural: tuple[StructuralAssignment, ...] = ()
        self._unset_attributes: tuple[str, ...] | None = None
        self._unset_facets: list[UnsetFacet] = []
        self._unset_structural: tuple[StructuralRemoval, ...] = ()
        self._seen: set[object] = set()

    def content(self) -> Content:
        """The SET and UNSET clauses."""
        return Content(
            fields=self._fields,
            attributes=self._attributes,
            facets=tuple(self._facets),
            structural=self._structural,
            unset_attributes=self._unset_attributes,
            unset_facets=tuple(self._unset_facets),
            unset_structural=self._unset_structural,
        )

    def parse_clause(self, cursor: Cursor, kind: BodyKind) -> None:
        """Reads one clause.

        Raises:
            NoemaError: InvalidSyntax for a clause that this kind of body has not, or that was written before.
        """
        at = cursor.index
        if cursor.key() not in _CLAUSES[kind]:
            hint = None
            if cursor.key() == "UNSET":
                hint = "What is being created has nothing to remove."
            elif cursor.key() in {"TYPE", "KEY", "ID"} and kind == "upsert":
                hint = (
                    'Say which Concept with MATCH {type: "Person", key: "alice"}; its contents stand in SET.'
                )
            cursor.fail(f"{', '.join(_CLAUSES[kind])} or '}}'" if kind != "update" else "SET or UNSET", hint)
        key = cursor.take().upper()
        if key == "SET":
            self._parse_set(cursor, kind, at)
        elif key == "UNSET":
            self._parse_unset(cursor, at)
        else:
            self._once(cursor, at, key)
            self._parse_other(cursor, key)

    def _once(self, cursor: Cursor, at: int, *clause: object) -> None:
        if clause in self._seen:
            name = " ".join(part for part in clause if isinstance(part, str))
            cursor.refuse(at, f"{name} is written twice", hint="Join the two into one.")
        self._seen.add(clause)

    def _parse_other(self, cursor: Cursor, key: str) -> None:
        if key == "TYPE":
            self.type = parse_symbol(cursor, "a type")
        elif key == "CLIENT":
            cursor.expect("KEY")
            self.client_key = parse_scalar(cursor)
        elif key == "NAME":
            self.name = parse_scalar(cursor)
        elif key == "MATCH":
            self.match = parse_object_pattern(cursor, Tuples.EXACT)
        else:
            cursor.index -= 1
            self.expect_version = parse_optional_scalar(cursor, "EXPECT", "VERSION")

    def _parse_set(self, cursor: Cursor, kind: BodyKind, at: int) -> None:
        word = cursor.choice(_SETS[kind])
        if word == "FACET":
            span = cursor.span()
            facet = parse_symbol(cursor, "a facet")
            self._once(cursor, at, "SET FACET", facet)
            self._facets.append(
                SetFacet(span=span, facet=facet, values=parse_object(cursor, UPDATE_FUNCTIONS))
            )
            return
        self._once(cursor, at, f"SET {word}")
        if word == "STRUCTURAL":
            self._structural = parse_structural(cursor)
        elif word == "FIELDS":
            self._fields = parse_object(cursor, UPDATE_FUNCTIONS)
            check_fields(cursor, self._fields)
        else:
            self._attributes = parse_object(cursor, UPDATE_FUNCTIONS)

    def _parse_unset(self, cursor: Cursor, at: int) -> None:
        if cursor.key() == "FIELDS":
            cursor.fail(" or ".join(_UNSETS), "Core fields are set, never removed.")
        word = cursor.choice(_UNSETS)
        if word == "FACET":
            span = cursor.span()
            facet = parse_symbol(cursor, "a facet")
            self._once(cursor, at, "UNSET FACET", facet)
            self._unset_facets.append(UnsetFacet(span=span, facet=facet, fields=_parse_field_set(cursor)))
            return
        self._once(cursor, at, f"UNSET {word}")
        if word == "STRUCTURAL":
            self._unset_structural = _parse_removals(cursor)
        else:
            self._unset_attributes = _parse_field_set(cursor)


def parse_body(cursor: Cursor, kind: BodyKind) -> Body:
    """The braces of CREATE or UPSERT and what is between them."""
    body = Body()
    cursor.expect("{")
    while not cursor.match("}"):
        body.parse_clause(cursor, kind)
    return body


def parse_update_content(cursor: Cursor) -> Content:
    """`update_action` once or more."""
    body = Body()
    body.parse_clause(cursor, "update")
    while cursor.key() in {"SET", "UNSET"} and not starts_retention(cursor):
        body.parse_clause(cursor, "update")
    return body.content()


def starts_retention(cursor: Cursor) -> bool:
    """Whether the next SET begins the statement SET RETENTION: in MUTATE it may follow UPDATE or TRANSITION."""
    return cursor.keys[cursor.index + 1] == "RETENTION"


def parse_structural(cursor: Cursor) -> tuple[StructuralAssignment, ...]:
    """The braces of SET STRUCTURAL: one reference or more."""
    cursor.expect("{")
    entries: list[StructuralAssignment] = []
    while not entries or not cursor.match("}"):
        span = cursor.span()
        field, target = _parse_reference(cursor)
        options = parse_object(cursor, None) if cursor.key() == "{" else None
        entries.append(StructuralAssignment(span=span, field=field, target=target, options=options))
    return tuple(entries)


def _parse_removals(cursor: Cursor) -> tuple[StructuralRemoval, ...]:
    cursor.expect("{")
    entries: list[StructuralRemoval] = []
    while not entries or not cursor.match("}"):
        span = cursor.span()
        field, target = _parse_reference(cursor)
        entries.append(StructuralRemoval(span=span, field=field, target=target))
    return tuple(entries)


def _parse_reference(cursor: Cursor) -> tuple[ast.Symbol, ast.DataValue]:
    hint = "Entries are separated by whitespace." if cursor.key() == "," else None
    if cursor.key() != "(":
        cursor.fail('a reference: ("field", target)', hint)
    cursor.index += 1
    field = parse_symbol(cursor, "a structural field")
    cursor.expect(",")
    target = parse_value(cursor, UPDATE_FUNCTIONS)
    cursor.expect(")")
    return field, target


def _parse_field_set(cursor: Cursor) -> tuple[str, ...]:
    """`unset_field_set`."""
    cursor.expect("{")
    names: list[tuple[str, int]] = []
    while not cursor.match("}"):
        if names:
            expect_comma(cursor, "}")
        at = cursor.index
        names.append((parse_name(cursor), at))
    refuse_duplicates(cursor, names)
    return tuple(name for name, _ in names)
