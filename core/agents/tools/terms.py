"""What the terms of a bound statement name: elements by id, by type and key, or by a handle of the same statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from core.errors import NoemaError
from core.language import ast
from core.language.ast_kml import Assert, CreateRecord, KmlStatement, Mutate, UpsertConcept
from core.model.elements import AnyElement, Concept
from core.model.instants import Instant
from core.model.literals import Ref, Term, make_literal
from core.schema.definitions import SymbolKind
from core.schema.environment import Environment
from core.state.indexes import concept_key
from core.state.view import View


class Captured(msgspec.Struct, frozen=True):
    """A message on record: its Evidence, further pieces of a very long one, who said it and when (ms)."""

    evidence: str
    speaker: str
    said_at: Instant
    pieces: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Every Evidence of it."""
        return (self.evidence, *self.pieces)


class Block(msgspec.Struct, frozen=True):
    """One statement against what there is: its handles, the state it will run on, and the schema."""

    view: View
    env: Environment
    upserts: dict[str, ast.ObjectPattern]
    made: frozenset[str]
    sees: Callable[[AnyElement], bool]

    @classmethod
    def of(
        cls, statement: KmlStatement, view: View, env: Environment, sees: Callable[[AnyElement], bool]
    ) -> Block:
        """A bound statement with its handles; `made` are those of Assertions it makes.

        `sees` says what exists for whoever the run is made for: no refusal may tell of anything else.
        """
        clauses = statement.clauses if isinstance(statement, Mutate) else (statement,)
        upserts = {clause.handle: clause.match for clause in clauses if isinstance(clause, UpsertConcept)}
        made = {clause.handle for clause in clauses if isinstance(clause, Assert) and clause.handle}
        made |= {c.handle for c in clauses if isinstance(c, CreateRecord) and c.kind == "assertion"}
        return cls(view, env, upserts, frozenset(made), sees)

    def get(self, element: str) -> AnyElement | None:
        """An element that exists for whoever the run is made for, or None."""
        found = self.view.get(element)
        return found if found is not None and self.sees(found) else None

    def ref(self, kind: SymbolKind, name: str) -> str | None:
        """The exact reference of a symbol, or None where it means nothing here: the engine says so."""
        try:
            return self.env.resolve(kind, name).ref
        except NoemaError:
            return None

    def concept(self, match: ast.ObjectPattern) -> Concept | None:
        """The Concept that a match by id, or by type and key, names."""
        identity = text_of(match.get("id"))
        if identity is not None:
            found = self.get(identity)
            return found if isinstance(found, Concept) else None
        kind, key = text_of(match.get("type")), text_of(match.get("key"))
        ref = None if kind is None else self.ref("type", kind)
        for element in self.view.find(concept_key(ref, key)) if ref and key else ():
            found = self.get(element)
            if isinstance(found, Concept) and found.key == key and found.schema_ref == ref:
                return found
        return None

    def element(self, node: object) -> str | None:
        """The id of the element that a term or value names, or None where that is not settled yet."""
        if isinstance(node, ast.Literal):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Object):
            return text_of(node.get("id"))
        if isinstance(node, ast.Variable):
            match = self.upserts.get(node.name)
            return None if match is None else self.element(match)
        if isinstance(node, ast.ObjectPattern):
            identity = text_of(node.get("id"))
            if identity is not None:
                return identity
            found = self.concept(node)
            return None if found is None else found.id
        return None

    def term(self, node: object) -> Term | None:
        """An object of a tuple as it is stored, or None where that is not settled yet."""
        if isinstance(node, ast.Literal):
            return make_literal(node.value)
        found = self.element(node)
        return None if found is None else Ref(found)


def text_of(node: object) -> str | None:
    """The text that a literal is, or None."""
    return node.value if isinstance(node, ast.Literal) and isinstance(node.value, str) else None


def refuse(
    problem: str,
    *,
    code: str = "NotAuthorized",
    hint: str | None = None,
    allowed: Sequence[str] = (),
    **details: Any,  # JSON values for the error
) -> NoemaError:
    """The error that tells a model why a command does not run and what it may do."""
    if allowed:
        details["allowed"] = list(allowed)
    return NoemaError(
        code,
        problem,
        hint=hint or "Write it another way, or leave it: memory loses nothing.",
        details=details,
    )
