"""SET and UNSET clauses of Concepts, and of the facets of any kind, as assignments to an `Edit` (KIP §53-58).

What lives here: from clause to assignment, with names resolved. What must never live here: the final check of
the values; an element is checked once, when everything is known (`settle`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from core.errors import NoemaError
from core.language import ast
from core.language.ast_kml import Content, StructuralAssignment, StructuralRemoval
from core.model.elements import Activity, Json
from core.mutation.edit import REMOVED, Edit
from core.mutation.expressions import Reader
from core.mutation.fields import (
    CREATED,
    UPDATED,
    check_plane_member,
    check_protected,
    refuse_activity,
    refuse_created,
    refuse_updated,
)
from core.mutation.lifecycle import TERMINAL_ACTIVITY
from core.mutation.structural import Addition, Removal
from core.mutation.work import Work
from core.schema.definitions import StructuralField

_UNWRITABLE: Final = {
    "proposition": "ImmutableField",
    "assertion": "EpistemicRevisionRequired",
    "evidence": "EvidenceCorrectionRequired",
}


class ContentWriter:
    """Applies the clauses of one body to one element.

    Args:
        work: the statement.
        edit: the element.
        reader: evaluates values.
        rows: what the statement's WHERE bound, for bare variables.
    """

    def __init__(self, work: Work, edit: Edit, reader: Reader, rows: Mapping[str, Any] | None = None) -> None:
        self.work = work
        self.edit = edit
        self.reader = reader
        self.rows = rows

    def write(self, content: Content) -> None:
        """Every clause of a body."""
        if content.fields is not None:
            self._fields(content.fields)
        if content.attributes is not None:
            self._attributes({m.name: self.reader.json(m.value) for m in content.attributes.members})
        if content.unset_attributes is not None:
            self._attributes(dict.fromkeys(content.unset_attributes, REMOVED))
        self.facets(content)
        for assignment in content.structural:
            self._add(assignment)
        for removal in content.unset_structural:
            self._remove(removal)

    def _fields(self, fields: ast.Object) -> None:
        edit, base = self.edit, self.edit.base
        if isinstance(base, Activity) and base.status in TERMINAL_ACTIVITY and fields.members:
            check_protected(fields.members[0].name)
            raise refuse_activity(base, fields.members[0].name)
        table = CREATED.get(edit.kind, {}) if base is None else UPDATED.get(edit.kind, {})
        for member in fields.members:
            check = table.get(member.name)
            if base is not None and edit.kind == "concept" and member.name == "key":
                self._same_key(member)
                continue
            if check is None:
                raise (
                    refuse_created(edit.kind, member.name)
                    if base is None
                    else refuse_updated(base, edit.kind, member.name)
                )
            value = check(member.name, self.reader.json(member.value))
            edit.set_field(member.name, value)

    def _same_key(self, member: ast.Member) -> None:
        """A key may be repeated on an element that has it, and never changed (KIP §7.3)."""
        base = self.edit.base
        if base is not None and self.reader.json(member.value) != getattr(base, "key", None):
            raise refuse_updated(base, "concept", "key")

    def _attributes(self, values: Mapping[str, Json]) -> None:
        if self.edit.kind != "concept":
            code = _UNWRITABLE.get(self.edit.kind, "SchemaFieldNotFound")
            raise NoemaError(code, f"{self.edit.kind} has no attributes", details={"element": self.edit.id})
        for name, value in values.items():
            check_plane_member(name)
            self.edit.set_attribute(name, value)

    def facets(self, content: Content) -> None:
        """The facet clauses alone."""
        env = self.work.env
        for clause in content.facets:
            facet = env.facet(symbol(clause.facet), write=True)
            self.edit.touch_facet(facet)
            for member in clause.values.members:
                check_plane_member(member.name)
                self.edit.set_facet(facet, member.name, self.reader.json(member.value))
        for removal in content.unset_facets:
            facet = env.facet(symbol(removal.facet))
            for name in removal.fields:
                self.edit.set_facet(facet, name, REMOVED)

    def _add(self, clause: StructuralAssignment) -> None:
        field = self._field(clause.field)
        options = {} if clause.options is None else self.reader.json(clause.options)
        target = self.work.target(clause.target, self.rows)
        self.edit.additions.append(addition(field, target, options))

    def _remove(self, clause: StructuralRemoval) -> None:
        field = self._field(clause.field, write=False)
        self.edit.removals.append(Removal(field, self.work.target(clause.target, self.rows)))

    def _field(self, node: ast.Symbol, *, write: bool = True) -> StructuralField:
        kind = self.edit.kind
        if kind != "concept" and self.edit.base is not None:
            base = self.edit.base
            raise refuse_updated(base, kind, symbol(node))
        return self.work.env.structural(symbol(node), kind, write=write)


def addition(field: StructuralField, target: str, options: Mapping[str, Json]) -> Addition:
    """An addition from its options object; `index` becomes a place (KIP §17.4)."""
    rest = {name: value for name, value in options.items() if name != "index"}
    index = options.get("index")
    if "index" in options and (not isinstance(index, int) or isinstance(index, bool)):
        raise NoemaError("TypeMismatch", "index is a whole number of 0 or more", details={"field": field.ref})
    return Addition(field, target, rest, index)


def symbol(node: ast.Symbol) -> str:
    """The name in a bound schema symbol."""
    if isinstance(node, ast.Literal) and isinstance(node.value, str):
        return node.value
    raise NoemaError("TypeMismatch", "a schema name is a string")
