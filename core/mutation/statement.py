"""One KML statement, from its bound tree to writes in a draft (KIP §53).

What lives here: the exact desugaring of ASSERT, the order in which a statement is planned, and its result. What
must never live here: the meaning of any one family.

The order is by dependency and never by the order of clauses, which means nothing (KIP §53.4): identities, then
tuples, then contents and selections, all over the state in which the statement began; then the writes; then the
checks over the finished graph; stubs last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from core.authority import Principal
from core.language import ast
from core.language.ast_kml import (
    Archive,
    Assert,
    Content,
    CorrectEvidence,
    CreateConcept,
    CreateRecord,
    EnsureProposition,
    KmlStatement,
    MergeConcept,
    Mutate,
    MutationClause,
    Purge,
    RetractAssertion,
    SetRetention,
    StructuralAssignment,
    SupersedeAssertion,
    Tombstone,
    TransitionActivity,
    Update,
    UpsertConcept,
)
from core.mutation.changes import (
    archive,
    correct,
    retract,
    set_retention,
    supersede,
    tombstone,
    transition,
    update,
)
from core.mutation.merge import merge
from core.mutation.purge import purge, write_stubs
from core.mutation.records import (
    declare_concept,
    declare_record,
    declare_upsert,
    write_concept,
    write_record,
    write_upsert,
)
from core.mutation.settle import settle
from core.mutation.tuples import Tuples
from core.mutation.work import Work
from core.query import QueryContext
from core.schema.environment import Environment
from core.transaction.draft import Draft

_CHANGES: Final[dict[type[Any], Callable[[Work, Any], None]]] = {
    Update: update,
    TransitionActivity: transition,
    CorrectEvidence: correct,
    SupersedeAssertion: supersede,
    RetractAssertion: retract,
    SetRetention: set_retention,
    Archive: archive,
    Tombstone: tombstone,
    MergeConcept: merge,
    Purge: purge,
}
"""The families that change what exists."""

_HIDDEN: Final = "\x00"
"""Begins the handles that desugaring makes up; no written handle can."""


class MutationResult(msgspec.Struct, frozen=True):
    """What a statement did: its result as JSON, its caveats, and whether the draft differs from before it."""

    value: dict[str, Any]
    warnings: tuple[tuple[str, str], ...]
    effect: bool


def mutate(
    draft: Draft, statement: KmlStatement, env: Environment, principal: Principal, query: QueryContext
) -> MutationResult:
    """Run one bound KML statement over a draft.

    Args:
        draft: the transaction; on an error it must be dropped, for part of the statement may be in it.
        statement: a tree without parameters.
        env: the schema environment of the transaction.
        principal: who asks.
        query: what the statement's selections run under.

    Raises:
        NoemaError: whatever rule the statement breaks.
    """
    work = Work(draft, env, principal, query)
    clauses = list(desugared(statement))
    edits = [_declare(work, clause) for clause in clauses]
    ensures = {c.handle: c for c in clauses if isinstance(c, EnsureProposition) and c.handle is not None}
    tuples = Tuples(work, ensures)
    made = [tuples.ensure(clause) for clause in clauses if isinstance(clause, EnsureProposition)]
    for clause, edit in zip(clauses, edits, strict=True):
        _fill(work, clause, edit)
    for clause in clauses:  # after all creations, whose content some of them look at
        change = _CHANGES.get(type(clause))
        if change is not None:
            change(work, clause)
    settle(work)
    write_stubs(work)
    single = made[0].id if len(made) == 1 else None
    return MutationResult(_result(work, single), tuple(work.warnings), _changed(work))


def desugared(statement: KmlStatement) -> Iterator[MutationClause]:
    """The clauses of a statement with every ASSERT replaced by exactly what it stands for (KIP §55.1)."""
    clauses = statement.clauses if isinstance(statement, Mutate) else (statement,)
    for number, clause in enumerate(clauses):
        if isinstance(clause, Assert):
            yield from _desugar(clause, number)
        else:
            yield clause


def _desugar(clause: Assert, number: int) -> Iterator[MutationClause]:
    proposition = f"{_HIDDEN}p{number}"
    handle = clause.handle or f"{_HIDDEN}a{number}"
    given = {
        "proposition": ast.Variable(name=proposition),
        "asserted_by": clause.by,
        "stance": clause.stance or ast.Literal(value="support"),
        "mode": clause.mode,
        "confidence": clause.confidence,
        "asserted_at": clause.at,
        "valid_time": clause.valid,
    }
    fields = [ast.Member(name=name, value=value) for name, value in given.items() if value is not None]
    evidence = clause.evidence.items if isinstance(clause.evidence, ast.Array) else (clause.evidence,)
    role = ast.Object(members=(ast.Member(name="role", value=ast.Literal(value="support")),))
    citations = tuple(
        StructuralAssignment(field=ast.Literal(value="evidence"), target=target, options=role)
        for target in evidence
        if target is not None
    )
    key = clause.key if isinstance(clause.key, ast.Literal) else None
    yield EnsureProposition(handle=proposition, tuple=clause.tuple)
    yield CreateRecord(
        kind="assertion",
        handle=handle,
        client_key=key,
        content=Content(fields=ast.Object(members=tuple(fields)), structural=citations),
    )
    if clause.superseding is not None:
        yield SupersedeAssertion(target=clause.superseding, by=ast.Variable(name=handle))


def _declare(work: Work, clause: MutationClause) -> Any:  # the edit of a creating clause, or None
    if isinstance(clause, CreateConcept):
        return declare_concept(work, clause)
    if isinstance(clause, CreateRecord):
        return declare_record(work, clause)
    return declare_upsert(work, clause) if isinstance(clause, UpsertConcept) else None


def _fill(work: Work, clause: MutationClause, edit: Any) -> None:  # the edit that `_declare` gave
    if isinstance(clause, CreateConcept):
        if edit is not None:
            write_concept(work, clause, edit)
    elif isinstance(clause, CreateRecord):
        write_record(work, clause, edit)
    elif isinstance(clause, UpsertConcept):
        write_upsert(work, clause, edit)


# --- the result


def _changed(work: Work) -> bool:
    """Whether an element differs from how the statement found it."""
    return any(work.draft.get(edit.id) != edit.base for edit in work.edits.values())


def _result(work: Work, single: str | None) -> dict[str, Any]:
    value: dict[str, Any] = {}
    handles = {
        name: {"id": handle.id, "kind": handle.kind, "created": handle.created}
        for name, handle in work.handles.items()
        if not name.startswith(_HIDDEN)
    }
    if handles:
        value["handles"] = handles
    made: dict[str, str] = {
        handle.kind: handle.id for name, handle in work.handles.items() if name.startswith(_HIDDEN)
    }
    if made and len(work.handles) == 2:  # a single ASSERT: name what it made even where it has no handle
        value.update(made)
    elif single is not None and not work.handles:
        value["proposition"] = single
    if work.selects:
        updated = sum(1 for found in work.selected if _differs(work, found))
        value.update(matched=len(work.selected), updated=updated, no_effect=len(work.selected) - updated)
    if work.moves:
        value["transitions"] = msgspec.to_builtins(work.moves)
    if work.merges:
        value["merges"] = work.merges
    if work.purged:
        value["purged"] = list(work.purged)
    return value


def _differs(work: Work, element_id: str) -> bool:
    edit = work.edits.get(work.canonical(element_id)) or work.edits.get(element_id)
    return edit is not None and work.draft.get(edit.id) != edit.base
