"""`Work`: one statement on its way into a draft: handles, references, and the edits collected so far.

What lives here: what every family of mutation needs: to name an element, to find one by its identity, to get
hold of one for writing (where `authorize` stands), and the order in which everything is finally written. What
must never live here: the meaning of any one family.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from core.authority import Action, Principal, authorize, visible
from core.errors import NoemaError
from core.language import ast
from core.model.elements import (
    Activity,
    AnyElement,
    Assertion,
    Concept,
    Evidence,
    Proposition,
)
from core.model.ids import Kind, is_element_id, kind_of
from core.model.literals import Ref
from core.mutation.edit import Edit
from core.mutation.lifecycle import EDITABLE
from core.query import QueryContext
from core.schema.environment import Environment
from core.state.indexes import any_type_key, canonical_key, client_key, concept_key
from core.transaction.draft import Draft

CLASSES: Final[dict[Kind, type[Any]]] = {
    "concept": Concept,
    "proposition": Proposition,
    "assertion": Assertion,
    "evidence": Evidence,
    "activity": Activity,
}


class Handle(msgspec.Struct, frozen=True):
    """What a `?handle` of the statement names: an element, and whether the statement creates it."""

    id: str
    kind: Kind
    created: bool


class Move(msgspec.Struct, frozen=True, rename={"start": "from"}):
    """One move of a lifecycle, for the result."""

    id: str
    start: str
    to: str


class Work:
    """One statement being planned.

    Args:
        draft: the transaction it writes into.
        env: the schema environment of the transaction.
        principal: who asks.
        query: what selections are run under.
    """

    def __init__(self, draft: Draft, env: Environment, principal: Principal, query: QueryContext) -> None:
        self.draft = draft
        self.env = env
        self.principal = principal
        self.query = query
        self.handles: dict[str, Handle] = {}
        self.edits: dict[str, Edit] = {}
        self.tuples: dict[str, str] = {}  # tuple key -> id of a Proposition this statement creates
        self.keys: dict[str, str] = {}  # concept key or client key -> id of the element that claims it
        self.moves: list[Move] = []
        self.successors: dict[str, str] = {}  # what supersedes or corrects an element
        self.selected: dict[str, None] = {}  # what selections chose, for the counts of the result
        self.selects = False
        self.purged: dict[str, None] = {}
        self.merges: list[dict[str, Any]] = []
        self.warnings: list[tuple[str, str]] = []

    # --- elements

    def get(self, element_id: str) -> AnyElement | None:
        """The element as the statement found it, if it exists for the caller."""
        found = self.draft.get(element_id)
        return found if found is not None and visible(self.principal, found) else None

    def existing(self, element_id: str) -> AnyElement:
        """The element as the statement found it.

        Raises:
            NoemaError: NotFoundOrNotVisible.
        """
        found = self.get(element_id)
        if found is None:
            raise NoemaError(
                "NotFoundOrNotVisible",
                "there is no such element, or you may not see it",
                details={"id": element_id[:80]},
            )
        return found

    def canonical(self, element_id: str) -> str:
        """Where a merged Concept leads (KIP §11.3); anything else is itself."""
        return self.draft.canonical(element_id) if element_id[:1] == "C" else element_id

    def edit(self, element_id: str, action: Action) -> Edit:
        """Hold of an element for writing, authorised for an action."""
        known = self.edits.get(element_id)
        if known is not None and known.base is None:
            return known
        base = self.existing(element_id)
        authorize(self.principal, action, base)
        if known is None:
            known = Edit(element_id, kind_of(element_id), base)
            self.edits[element_id] = known
        return known

    def editable(self, element_id: str, action: Action) -> Edit:
        """As `edit`, for a change of mutable state: the element must not be merged, tombstoned or purged."""
        edit = self.edit(element_id, action)
        if edit.base is not None and edit.base.system.state not in EDITABLE:
            raise NoemaError(
                "InvalidLifecycleTransition",
                f"an element that is {edit.base.system.state} changes no more",
                details={"element": element_id, "state": edit.base.system.state},
            )
        return edit

    def new(self, kind: Kind, action: Action) -> Edit:
        """An element to be created, with its id."""
        authorize(self.principal, action)
        edit = Edit(self.draft.reserve(kind), kind, None, action)
        self.edits[edit.id] = edit
        return edit

    def declare(self, name: str | None, edit: Edit) -> None:
        """Let a handle name the element of an edit."""
        if name is not None:
            self.bind(name, Handle(edit.id, edit.kind, edit.base is None))

    def bind(self, name: str, handle: Handle) -> None:
        """Let a handle name an element.

        Raises:
            NoemaError: DuplicateLocalHandle.
        """
        if name in self.handles:
            raise NoemaError("DuplicateLocalHandle", f"the handle ?{name} is declared twice")
        self.handles[name] = handle

    def claim(self, key: str, element_id: str, problem: str) -> None:
        """Let one element of the statement have an identity; a second one is refused."""
        if self.keys.setdefault(key, element_id) != element_id:
            raise NoemaError("DuplicateMutationTarget", problem)

    def move(self, element_id: str, start: str, to: str) -> None:
        """Note a lifecycle move for the result."""
        self.moves.append(Move(element_id, start, to))

    # --- references

    def reference(self, variable: ast.Variable) -> Ref:
        """The element a handle names.

        Raises:
            NoemaError: ReferenceError for a variable that nothing declares.
        """
        handle = self.handles.get(variable.name)
        if handle is None:
            raise NoemaError("ReferenceError", f"?{variable.name} names no element of this statement")
        return Ref(handle.id)

    def target(self, node: ast.DataValue, rows: Mapping[str, Any] | None = None) -> str:
        """The id in a place that takes an element: a handle, an id, `{id: ...}`, or a Concept's stable identity.

        Raises:
            NoemaError: TypeMismatch, ReferenceError, NotFoundOrNotVisible, IdentityConflict.
        """
        if isinstance(node, ast.Variable):
            if rows is not None and node.name in rows:
                found = rows[node.name]
                if not isinstance(found, Ref):
                    raise NoemaError("TypeMismatch", f"?{node.name} is not an element here")
                return self.canonical(found.id)
            return self.canonical(self.reference(node).id)
        if isinstance(node, ast.Literal) and isinstance(node.value, str):
            return self._known(node.value)
        if isinstance(node, ast.Object):
            return self.identified({member.name: _constant(member.value) for member in node.members})
        raise NoemaError(
            "TypeMismatch",
            'a reference to an element is a handle, an id or {id: "..."}',
            details=_place(node),
        )

    def _known(self, element_id: str) -> str:
        if not is_element_id(element_id):
            raise NoemaError(
                "NotFoundOrNotVisible",
                f"{element_id[:60]!r} is not the id of an element here",
                hint="Use the id that a FIND or SEARCH gave, or match a Concept by {type, key}.",
            )
        found = self.existing(element_id)
        if found.system.state == "purged":
            raise NoemaError(
                "ReferenceError",
                "the element was erased; nothing new may refer to it",
                details={"id": element_id},
            )
        return self.canonical(element_id)

    def identified(self, members: Mapping[str, Any]) -> str:
        """The element that an object of identity members names: `{id}`, or `{type, key}`, `{canonical_id}`.

        Raises:
            NoemaError: NameIdentityForbidden, IdentitySelectorRequired, SchemaFieldNotFound, TypeMismatch,
                IdentityConflict, NotFoundOrNotVisible.
        """
        check_selector(members)
        if "id" in members:
            found = self._known(members["id"])
            if "type" in members and self._type_of(found) != self.env.type(members["type"]).ref:
                raise NoemaError("NotFoundOrNotVisible", "there is no such element, or you may not see it")
            return found
        candidates = self.concepts(members)
        if not candidates:
            raise NoemaError(
                "NotFoundOrNotVisible",
                "no Concept has this identity",
                hint="UPSERT CONCEPT creates one by type and key.",
                details={"selector": dict(members)},
            )
        return candidates[0]

    def concepts(self, members: Mapping[str, Any]) -> list[str]:
        """The canonical ids of the Concepts with a key or canonical id, at most one.

        Raises:
            NoemaError: IdentityConflict if they are several.
        """
        matches = list(dict.fromkeys(self.canonical(found) for found in self.named(members)))
        if len(matches) > 1:
            raise NoemaError(
                "IdentityConflict",
                f"{len(matches)} Concepts have this identity",
                hint="Name the type beside the key: a key is identity within its type.",
                details={"selector": dict(members), "candidates": matches},
            )
        return matches

    def named(self, members: Mapping[str, Any]) -> list[str]:
        """The Concepts, merged ones too, that have an id, or a key (of a type) or a canonical id."""
        schema = self.env.type(members["type"]).ref if "type" in members else None
        key, canonical = members.get("key"), members.get("canonical_id")
        view = self.draft.view
        if "id" in members:
            found: Sequence[str] = [str(members["id"])]
        elif isinstance(key, str):
            found = view.find(any_type_key(key) if schema is None else concept_key(schema, key))
        else:
            found = view.find(canonical_key(str(canonical))) if canonical is not None else ()
        out = []
        for element_id in found:
            element = self.get(element_id)
            if (
                isinstance(element, Concept)
                and element.system.state != "purged"
                and (key is None or element.key == key)
                and (canonical is None or element.canonical_id == canonical)
                and (schema is None or element.schema_ref == schema)
            ):
                out.append(element_id)
        return out

    def by_client_key(self, kind: Kind, key: str) -> AnyElement | None:
        """The element of a kind that was created under a client key, if it exists for the caller (KIP §7.5)."""
        for candidate in self.draft.view.find(client_key(kind, key)):
            found = self.get(candidate)
            if found is not None and found.client_key == key and found.system.state != "purged":
                return found
        return None

    def check_free(self, schema_ref: str, key: str) -> None:
        """Refuse a key whose holder does not exist for the caller: a second holder would break its uniqueness.

        Whoever may create in a type can learn in this way that a key of it is taken, and nothing else: KIP §7.3 is
        a MUST, so here it wins over §30.4 (decision 11).

        Raises:
            NoemaError: NotFoundOrNotVisible.
        """
        found = self.draft.find_concept(schema_ref, key)
        if found is not None and found.system.state != "purged" and self.get(found.id) is None:
            raise NoemaError(
                "NotFoundOrNotVisible", "there is no Concept of this key that you may see or make"
            )

    def _type_of(self, element_id: str) -> str | None:
        element = self.get(element_id)
        return element.schema_ref if isinstance(element, Concept) else None

    def kind_and_type(self, element_id: str) -> tuple[Kind, str | None]:
        """Kind and, for a Concept, type of an element that exists or that this statement creates."""
        edit = self.edits.get(element_id)
        if edit is not None and edit.base is None:
            return edit.kind, edit.fields.get("schema_ref")
        element = self.existing(element_id)
        return kind_of(element_id), element.schema_ref if isinstance(element, Concept) else None


def check_selector(members: Mapping[str, Any], *, allow_name: bool = False) -> None:
    """Refuse a selector that is no stable identity, or whose members have the wrong type (KIP §54.3).

    Raises:
        NoemaError: SchemaFieldNotFound, TypeMismatch, NameIdentityForbidden, IdentitySelectorRequired.
    """
    known = {"id", "type", "key", "canonical_id"} | ({"name"} if allow_name else set())
    for name, value in members.items():
        if name not in known and name != "name":
            raise NoemaError(
                "SchemaFieldNotFound",
                f"{name} does not select by identity",
                details={"fields": sorted(known)},
            )
        if not isinstance(value, str):
            raise NoemaError(
                "TypeMismatch", f"{name} of a selector must be a string", details={"field": name}
            )
    if not members.keys() & {"id", "key", "canonical_id"}:
        code = "NameIdentityForbidden" if "name" in members else "IdentitySelectorRequired"
        raise NoemaError(code, "an element is selected by its id, or a Concept by type and key")


def _constant(node: Any) -> Any:  # a value node of an object
    if isinstance(node, (ast.Literal,)):
        return node.value
    raise NoemaError("TypeMismatch", "an identity is given by plain values")


def _place(node: ast.Node) -> dict[str, Any]:
    return {"line": node.span.line, "column": node.span.column} if node.span.line else {}
