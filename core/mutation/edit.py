"""`Edit`: everything one statement wants of one element, collected before anything is written.

What lives here: assignments without an order, the refusal of two that disagree (KIP §53.4), and the fields they
come to. What must never live here: names, schema or authority; they are settled before an assignment is made.
"""

from __future__ import annotations

from typing import Any, Final

from core.authority import Action
from core.errors import NoemaError
from core.model.elements import AnyElement, Concept, Json
from core.model.ids import Kind
from core.mutation.structural import Addition, Removal, arrange
from core.schema.definitions import Facet
from core.schema.validate import same_json

REMOVED: Final = object()
"""Stands for a value that UNSET takes away."""


class Edit:
    """What a statement assigns to one element; a new one if `base` is None.

    id, kind: which element; base: the element as the statement found it; action: by which deed a new one is made,
    authorised once all of it is known; fields: struct fields to set;
    appended: ids to add to fields that are lists of them;
    attributes and facets: members to set or remove; additions and removals: structural references.
    """

    __slots__ = (
        "action", "additions", "appended", "attributes", "base", "facets", "fields", "id", "kind", "removals",
    )  # fmt: skip

    def __init__(
        self, element_id: str, kind: Kind, base: AnyElement | None, action: Action | None = None
    ) -> None:
        self.id = element_id
        self.kind = kind
        self.base = base
        self.action = action
        self.fields: dict[str, Any] = {}
        self.appended: dict[str, dict[str, None]] = {}
        self.attributes: dict[str, Any] = {}
        self.facets: dict[str, tuple[Facet, dict[str, Any]]] = {}
        self.additions: list[Addition] = []
        self.removals: list[Removal] = []

    # --- assignments

    def set_field(self, name: str, value: Any) -> None:  # the struct checks the type
        """Assign a field of the struct."""
        self._assign(self.fields, name, value)

    def set_attribute(self, name: str, value: Json) -> None:
        """Assign an attribute, or take it away with `REMOVED`."""
        self._assign(self.attributes, name, value)

    def set_facet(self, facet: Facet, name: str, value: Json) -> None:
        """Assign a field of a facet, or take it away with `REMOVED`."""
        members = self.facets.setdefault(facet.ref, (facet, {}))[1]
        self._assign(members, name, value)

    def append(self, name: str, element_id: str) -> None:
        """Add an id to a field that lists elements; adding it again changes nothing."""
        self.appended.setdefault(name, {})[element_id] = None

    def touch_facet(self, facet: Facet) -> None:
        """Attach a facet even if no field of it is assigned."""
        self.facets.setdefault(facet.ref, (facet, {}))

    def _assign(self, plane: dict[str, Any], name: str, value: Any) -> None:
        if name in plane and not _agree(plane[name], value):
            raise NoemaError(
                "DuplicateMutationTarget",
                f"the statement assigns {name} of one element twice, with different values",
                details={"element": self.id, "field": name},
            )
        plane[name] = value

    # --- what it comes to

    def result(self) -> dict[str, Any]:
        """The struct fields to write, each with its final value."""
        out = dict(self.fields)
        for name, ids in self.appended.items():
            listed = out.get(name, getattr(self.base, name, ()))
            out[name] = tuple(dict.fromkeys((*listed, *ids)))
        if self.attributes:
            before = self.base.attributes if isinstance(self.base, Concept) else {}
            out["attributes"] = _merged(before, self.attributes)
        if self.facets:
            facets = dict(self.base.facets) if self.base is not None else {}
            for ref, (_, members) in self.facets.items():
                values = _merged(facets.get(ref, {}), members)
                if values or not members:
                    facets[ref] = values
                else:
                    facets.pop(ref, None)
            out["facets"] = facets
        if self.additions or self.removals:
            there = self.base.structural if self.base is not None else ()
            out["structural"] = arrange(there, self.additions, self.removals, self.id)
        return out


def _agree(left: Any, right: Any) -> bool:
    if left is REMOVED or right is REMOVED:
        return left is right
    return same_json(left, right)


def _merged(before: dict[str, Json], assigned: dict[str, Any]) -> dict[str, Json]:
    merged = {**before, **assigned}
    return {name: value for name, value in merged.items() if value is not REMOVED}
