"""KML: the productions of the eighteen families of mutation (KIP §51-61).

What lives here: one `parse_*` per statement. What must never live here: the clauses of their bodies (`bodies`)
and what a mutation does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, cast

from core.language import ast, ast_kml
from core.language.bodies import parse_body, parse_structural, parse_update_content, starts_retention
from core.language.checks import (
    check_fields,
    check_match,
    check_reads,
    check_references,
    check_update,
    content_values,
    declare_handle,
    settle_where,
)
from core.language.cursor import Cursor
from core.language.functions import UPDATE_FUNCTIONS
from core.language.kql import parse_optional_scalar
from core.language.lexer import STRING, VARIABLE
from core.language.patterns import Tuples, parse_tuple, parse_where
from core.language.values import parse_object, parse_scalar, parse_target

_ASSERT_MEMBERS: Final = ("by", "mode", "stance", "confidence", "at", "valid", "evidence", "key")


def parse_statement(cursor: Cursor) -> ast_kml.KmlStatement:
    """`kml_statement`, with every use of a handle or variable accounted for."""
    statement = _parse_mutate(cursor) if cursor.key() == "MUTATE" else _parse_clause(cursor)
    check_references(cursor)
    return statement


def _parse_mutate(cursor: Cursor) -> ast_kml.Mutate:
    span = cursor.span()
    at = cursor.index
    cursor.expect_words("MUTATE", "{")
    clauses: list[ast_kml.MutationClause] = []
    while not cursor.match("}"):
        if cursor.key() == "MUTATE":
            cursor.refuse(cursor.index, "MUTATE does not hold another MUTATE")
        clauses.append(_parse_clause(cursor))
    if not clauses:
        cursor.refuse(at, "MUTATE holds no mutation")
    return ast_kml.Mutate(span=span, clauses=tuple(clauses))


def _parse_clause(cursor: Cursor) -> ast_kml.MutationClause:
    parse = STATEMENTS.get(cursor.key())
    if parse is None:
        cursor.fail_choice(STATEMENTS)
    return parse(cursor)


# --- Create, ensure, assert -------------------------------------------------------------------------------


def _parse_handle(cursor: Cursor) -> str:
    if cursor.key() != VARIABLE:
        cursor.fail("a ?handle", "A handle names it within the command, such as CREATE CONCEPT ?x { ... }.")
    return declare_handle(cursor)


def _parse_optional_handle(cursor: Cursor) -> str | None:
    return declare_handle(cursor) if cursor.key() == VARIABLE else None


def _parse_create(cursor: Cursor) -> ast_kml.CreateConcept | ast_kml.CreateRecord:
    span = cursor.span()
    cursor.expect("CREATE")
    kind = cursor.choice(("CONCEPT", "EVIDENCE", "ASSERTION", "ACTIVITY"))
    handle = _parse_handle(cursor)
    at = cursor.index
    body = parse_body(cursor, "concept" if kind == "CONCEPT" else "record")
    content = body.content()
    check_reads(cursor, content_values(content), None)
    if kind == "CONCEPT":
        if body.type is None:
            cursor.refuse(at, "CREATE CONCEPT needs a TYPE", hint='Write TYPE "Name" between its braces.')
        return ast_kml.CreateConcept(
            span=span,
            handle=handle,
            type=body.type,
            client_key=body.client_key,
            name=body.name,
            content=content,
        )
    return ast_kml.CreateRecord(
        span=span,
        kind=cast("Literal['evidence', 'assertion', 'activity']", kind.lower()),
        handle=handle,
        client_key=body.client_key,
        content=content,
    )


def _parse_upsert(cursor: Cursor) -> ast_kml.UpsertConcept:
    span = cursor.span()
    cursor.expect_words("UPSERT", "CONCEPT")
    handle = _parse_handle(cursor)
    at = cursor.index
    body = parse_body(cursor, "upsert")
    if body.match is None:
        cursor.refuse(at, "UPSERT CONCEPT needs a MATCH", hint="Write MATCH {type: ..., key: ...}.")
    check_match(cursor, at, body.match)
    content = body.content()
    check_reads(cursor, content_values(content), handle)
    return ast_kml.UpsertConcept(
        span=span, handle=handle, match=body.match, expect_version=body.expect_version, content=content
    )


def _parse_created_tuple(cursor: Cursor) -> ast.Triple:
    """A tuple that a statement resolves or creates by its structure (KIP §43.2)."""
    at = cursor.index
    written = parse_tuple(cursor, Tuples.CREATED)
    if isinstance(written, ast.PropositionById):
        cursor.refuse(at, "(id: ...) only matches; write the tuple (subject, predicate, object)")
    return written


def _parse_ensure(cursor: Cursor) -> ast_kml.EnsureProposition:
    span = cursor.span()
    cursor.expect_words("ENSURE", "PROPOSITION")
    handle = _parse_optional_handle(cursor)
    written = _parse_created_tuple(cursor)
    version = parse_optional_scalar(cursor, "EXPECT", "VERSION")
    return ast_kml.EnsureProposition(span=span, handle=handle, tuple=written, expect_version=version)


def _parse_assert(cursor: Cursor) -> ast_kml.Assert:
    span = cursor.span()
    cursor.expect("ASSERT")
    handle = _parse_optional_handle(cursor)
    written = _parse_created_tuple(cursor)
    at = cursor.index
    members = parse_object(cursor, UPDATE_FUNCTIONS)
    values = {member.name: member.value for member in members.members}
    for member in members.members:
        if member.name not in _ASSERT_MEMBERS:
            hint = f"Members: {', '.join(_ASSERT_MEMBERS)}."
            cursor.refuse_at(member.span, f"ASSERT has no member {member.name[:40]}", hint=hint)
    for name in ("by", "mode"):
        if name not in values:
            cursor.refuse(at, f"ASSERT needs the member {name}", hint='Write {by: :actor, mode: "stated"}.')
    check_reads(cursor, values.values(), None)
    superseding = parse_target(cursor) if cursor.match("SUPERSEDING") else None
    return ast_kml.Assert(span=span, handle=handle, tuple=written, superseding=superseding, **values)


# --- Update and lifecycle ---------------------------------------------------------------------------------


def _parse_selection(cursor: Cursor, mark: int) -> ast.Where | None:
    """`[WHERE where_block]`; what it binds accounts for the uses since `mark`."""
    if not cursor.match("WHERE"):
        return None
    where = parse_where(cursor)
    settle_where(cursor, mark, where)
    return where


def _parse_update(cursor: Cursor) -> ast_kml.Update:
    span = cursor.span()
    mark = len(cursor.references)
    cursor.expect("UPDATE")
    target = parse_target(cursor)
    version = parse_optional_scalar(cursor, "EXPECT", "VERSION")
    content = parse_update_content(cursor)
    where = _parse_selection(cursor, mark)
    limit = parse_optional_scalar(cursor, "LIMIT")
    update = ast_kml.Update(
        span=span, target=target, expect_version=version, content=content, where=where, limit=limit
    )
    check_update(cursor, update)
    return update


def _parse_retract(cursor: Cursor) -> ast_kml.RetractAssertion:
    span = cursor.span()
    mark = len(cursor.references)
    cursor.expect_words("RETRACT", "ASSERTION")
    return ast_kml.RetractAssertion(
        span=span,
        target=parse_target(cursor),
        where=_parse_selection(cursor, mark),
        limit=parse_optional_scalar(cursor, "LIMIT"),
        expect_state=parse_optional_scalar(cursor, "EXPECT", "STATE"),
    )


def _parse_archive(cursor: Cursor) -> ast_kml.Archive:
    span = cursor.span()
    mark = len(cursor.references)
    cursor.expect("ARCHIVE")
    return ast_kml.Archive(
        span=span,
        target=parse_target(cursor),
        where=_parse_selection(cursor, mark),
        limit=parse_optional_scalar(cursor, "LIMIT"),
        expect_state=parse_optional_scalar(cursor, "EXPECT", "STATE"),
    )


def _parse_tombstone(cursor: Cursor) -> ast_kml.Tombstone:
    span = cursor.span()
    mark = len(cursor.references)
    cursor.expect("TOMBSTONE")
    return ast_kml.Tombstone(
        span=span,
        target=parse_target(cursor),
        where=_parse_selection(cursor, mark),
        limit=parse_optional_scalar(cursor, "LIMIT"),
        expect_state=parse_optional_scalar(cursor, "EXPECT", "STATE"),
    )


def _parse_supersede(cursor: Cursor) -> ast_kml.SupersedeAssertion:
    span = cursor.span()
    cursor.expect_words("SUPERSEDE", "ASSERTION")
    target = parse_target(cursor)
    cursor.expect("BY")
    by = parse_target(cursor)
    state = parse_optional_scalar(cursor, "EXPECT", "STATE")
    return ast_kml.SupersedeAssertion(span=span, target=target, by=by, expect_state=state)


def _parse_correct(cursor: Cursor) -> ast_kml.CorrectEvidence:
    span = cursor.span()
    cursor.expect_words("CORRECT", "EVIDENCE")
    target = parse_target(cursor)
    cursor.expect("BY")
    by = parse_target(cursor)
    state = parse_optional_scalar(cursor, "EXPECT", "STATE")
    return ast_kml.CorrectEvidence(span=span, target=target, by=by, expect_state=state)


def _parse_transition(cursor: Cursor) -> ast_kml.TransitionActivity:
    span = cursor.span()
    cursor.expect_words("TRANSITION", "ACTIVITY")
    target = parse_target(cursor)
    cursor.expect("TO")
    to = parse_scalar(cursor)
    fields: ast.Object | None = None
    structural: tuple[ast_kml.StructuralAssignment, ...] = ()
    while cursor.key() == "SET" and not starts_retention(cursor):
        at = cursor.index
        cursor.index += 1
        word = cursor.choice(("FIELDS", "STRUCTURAL"))
        if fields is not None if word == "FIELDS" else structural:
            cursor.refuse(at, f"SET {word} is written twice")
        if word == "FIELDS":
            fields = parse_object(cursor, UPDATE_FUNCTIONS)
            check_fields(cursor, fields)
        else:
            structural = parse_structural(cursor)
    check_reads(cursor, (fields, *(entry.target for entry in structural)), None)
    state = parse_optional_scalar(cursor, "EXPECT", "STATE")
    return ast_kml.TransitionActivity(
        span=span, target=target, to=to, fields=fields, structural=structural, expect_state=state
    )


# --- Retention, purge, merge ------------------------------------------------------------------------------


def _parse_set_retention(cursor: Cursor) -> ast_kml.SetRetention:
    span = cursor.span()
    mark = len(cursor.references)
    cursor.expect_words("SET", "RETENTION")
    target = parse_target(cursor)
    values = parse_object(cursor, UPDATE_FUNCTIONS)
    check_reads(cursor, (values,), None)
    return ast_kml.SetRetention(
        span=span,
        target=target,
        values=values,
        where=_parse_selection(cursor, mark),
        limit=parse_optional_scalar(cursor, "LIMIT"),
        expect_version=parse_optional_scalar(cursor, "EXPECT", "VERSION"),
    )


def _parse_purge(cursor: Cursor) -> ast_kml.Purge:
    span = cursor.span()
    mark = len(cursor.references)
    cursor.expect("PURGE")
    target = parse_target(cursor)
    where = _parse_selection(cursor, mark)
    limit = parse_optional_scalar(cursor, "LIMIT")
    policy = parse_optional_scalar(cursor, "REFERENCE", "POLICY")
    confirm = 'Erasure is confirmed by writing CONFIRM "PURGE" exactly, at the end.'
    cursor.expect("CONFIRM", confirm)
    if cursor.key() != STRING or cursor.values[cursor.index] != "PURGE":
        cursor.fail('"PURGE"', confirm)
    cursor.index += 1
    return ast_kml.Purge(span=span, target=target, where=where, limit=limit, reference_policy=policy)


def _parse_merge(cursor: Cursor) -> ast_kml.MergeConcept:
    span = cursor.span()
    mark = len(cursor.references)
    cursor.expect_words("MERGE", "CONCEPT")
    source = parse_target(cursor)
    cursor.expect("INTO", "Write MERGE CONCEPT :source INTO :target.")
    target = parse_target(cursor)
    where = _parse_selection(cursor, mark)
    if cursor.key() == "LIMIT":
        cursor.fail(
            "EXPECT VERSION or the end", "MERGE names its two Concepts, so it takes no LIMIT (KIP §52.7)."
        )
    version = parse_optional_scalar(cursor, "EXPECT", "VERSION")
    return ast_kml.MergeConcept(span=span, source=source, target=target, where=where, expect_version=version)


STATEMENTS: Final[dict[str, Callable[[Cursor], ast_kml.MutationClause]]] = {
    "CREATE": _parse_create,
    "UPSERT": _parse_upsert,
    "ENSURE": _parse_ensure,
    "ASSERT": _parse_assert,
    "UPDATE": _parse_update,
    "RETRACT": _parse_retract,
    "SUPERSEDE": _parse_supersede,
    "CORRECT": _parse_correct,
    "TRANSITION": _parse_transition,
    "SET": _parse_set_retention,
    "ARCHIVE": _parse_archive,
    "TOMBSTONE": _parse_tombstone,
    "PURGE": _parse_purge,
    "MERGE": _parse_merge,
}
"""`mutation_clause`: the parser of each family by the word it begins with."""
