"""Propositions: from a written tuple to the one element that is it (KIP §12, §55).

What lives here: resolving the ends of a tuple, also where they are handles, matches or tuples themselves, and
finding or creating its Proposition. What must never live here: Assertions about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.errors import NoemaError
from core.language import ast
from core.language.ast_kml import EnsureProposition
from core.language.plain import plain_value
from core.model.elements import Proposition
from core.model.ids import kind_of
from core.model.literals import Literal, Ref, Term, make_literal
from core.mutation.work import Handle, Work
from core.schema.definitions import PredicateType
from core.schema.validate import check_literal_object, check_object, check_subject
from core.state.indexes import tuple_key


class Tuples:
    """The tuples of one statement; handles of ENSURE are resolved when something first needs them.

    Args:
        work: the statement.
        ensures: its ENSURE clauses that have a handle, by handle.
    """

    def __init__(self, work: Work, ensures: Mapping[str, EnsureProposition]) -> None:
        self.work = work
        self._ensures = ensures
        self._open: set[str] = set()

    def ensure(self, clause: EnsureProposition) -> Handle:
        """Resolve or create the Proposition of an ENSURE clause, and bind its handle."""
        name = clause.handle
        if name is not None and name in self.work.handles:
            return self.work.handles[name]
        if name is not None:
            if name in self._open:
                raise NoemaError("ReferenceError", f"the tuple of ?{name} contains itself")
            self._open.add(name)
        handle = self.proposition(clause.tuple)
        if clause.expect_version is not None:
            self._expect(clause.expect_version, handle)
        if name is not None:
            self.work.bind(name, handle)
        return handle

    def _expect(self, expected: ast.Scalar, handle: Handle) -> None:
        """EXPECT VERSION on a tuple; 0 means that it must not exist yet (KIP §35.2, §55)."""
        wanted = plain_value(expected)
        found = self.work.draft.before(handle.id) or self.work.get(handle.id)
        actual = 0 if found is None else found.system.version
        if wanted != actual:
            raise NoemaError(
                "VersionConflict",
                f"the Proposition is at version {actual}, not {wanted}",
                details={"element": handle.id, "expected": wanted, "actual": actual},
            )

    def proposition(self, written: ast.Triple) -> Handle:
        """The Proposition of a tuple: the one there is, else a new one (KIP §12.4)."""
        work = self.work
        predicate = self._predicate(written.predicate)
        subject = self._subject(written.subject)
        obj = self._object(written.object)
        check_subject(predicate, *work.kind_and_type(subject))
        if isinstance(obj, Ref):
            check_object(predicate, *work.kind_and_type(obj.id))
        else:
            check_literal_object(predicate, obj)
        key = tuple_key(subject, predicate.ref, obj)
        known = work.tuples.get(key)
        if known is not None:
            return Handle(known, "proposition", created=True)
        found = self._find(key, subject, predicate.ref, obj)
        if found is not None:
            return Handle(found, "proposition", created=False)
        edit = work.new("proposition", "ensure")
        edit.fields.update(subject=subject, predicate_ref=predicate.ref, object=obj)
        work.tuples[key] = edit.id
        return Handle(edit.id, "proposition", created=True)

    def _find(self, key: str, subject: str, predicate_ref: str, obj: Term) -> str | None:
        for candidate in self.work.draft.view.find(key):
            element = self.work.get(candidate)
            if (
                isinstance(element, Proposition)
                and element.system.state in {"active", "archived"}
                and element.subject == subject
                and element.predicate_ref == predicate_ref
                and element.object == obj
            ):
                return candidate
        return None

    def _predicate(self, node: ast.PredicateAtom | ast.PredicatePath) -> PredicateType:
        if isinstance(node, ast.Literal) and isinstance(node.value, str):
            return self.work.env.predicate(node.value, write=True)
        raise NoemaError("InvalidSyntax", "a tuple that is written has one predicate by its name")

    def _subject(self, node: ast.Term) -> str:
        found = self._object(node)
        if isinstance(found, Literal):
            raise NoemaError("TypeMismatch", "the subject of a tuple is an element, never a Literal")
        return found.id

    def _object(self, node: ast.Term) -> Term:
        work = self.work
        if isinstance(node, ast.Literal):
            return make_literal(node.value, node.datatype, node.language)
        if isinstance(node, ast.Variable):
            pending = self._ensures.get(node.name)
            if pending is not None:
                return Ref(self.ensure(pending).id)
            return Ref(work.canonical(work.reference(node).id))
        if isinstance(node, ast.ObjectPattern):
            return Ref(work.identified({member.name: _member(member) for member in node.members}))
        if isinstance(node, ast.Triple):
            return Ref(self.proposition(node).id)
        if isinstance(node, ast.PropositionById):
            found = work.identified({"id": plain_value(node.id)})
            if kind_of(found) != "proposition":
                raise NoemaError("TypeMismatch", "(id: ...) names a Proposition", details={"id": found})
            return Ref(found)
        raise NoemaError("InvalidRequestEnvelope", "the tuple holds a parameter without a value")


def _member(member: ast.PatternMember) -> Any:  # a JSON value
    if not isinstance(member.value, ast.Literal):
        raise NoemaError(
            "IdentitySelectorRequired",
            f"{member.name} of an end of a written tuple must be a plain value",
            hint="Select the element with FIND first, or by id, or by type and key.",
        )
    return member.value.value
