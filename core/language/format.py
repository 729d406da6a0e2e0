"""A tree as canonical text: keywords in upper case, one clause a line, no comment, nothing left out.

What lives here: `format_command`, one function per statement. What must never live here: the text of patterns
and expressions (`format_terms`).

Every command prints to a text that parses to an equal tree. Printing is how a tree from elsewhere is checked
(`canonical.from_json`), how a command is shown to people, and how the parser is tested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from core.language import ast, ast_kml, ast_kql, ast_meta
from core.language.format_terms import (
    format_name,
    format_object,
    format_predicate,
    format_term,
    format_where,
    indented,
)


def format_command(command: ast.Node) -> str:
    """The canonical text of a command, without a line break at its end."""
    return "\n".join(_lines(command))


def _lines(command: ast.Node) -> list[str]:
    lines: list[str] = _STATEMENTS[type(command)](command)
    return lines


def _clause(keyword: str, value: ast.Expression | None) -> list[str]:
    return [] if value is None else [f"{keyword} {format_term(value)}"]


def _as_of(node: ast.AsOf | None) -> list[str]:
    return [] if node is None else [f"AS OF {node.axis} {format_term(node.value)}"]


def _optional_where(where: ast.Where | None) -> list[str]:
    return [] if where is None else format_where(where)


def _page(node: ast_kql.Find | ast_meta.ListStatement | ast_meta.Search | ast_meta.History) -> list[str]:
    return [*_clause("LIMIT", node.limit), *_clause("CURSOR", node.cursor)]


# --- KQL --------------------------------------------------------------------------------------------------


def _find(node: ast_kql.Find) -> list[str]:
    order = ", ".join(
        [_projection(item.expression) + (" DESC" if item.descending else "") for item in node.order_by]
    )
    return [
        f"FIND({', '.join([_projection(item) for item in node.projections])})",
        *format_where(node.where),
        *_as_of(node.as_of),
        *_clause("FOR TIME", node.for_time),
        *_clause("WITH EPISTEMIC", node.epistemic),
        *([f"ORDER BY {order}"] if order else []),
        *_page(node),
    ]


def _projection(node: ast_kql.Projection) -> str:
    if isinstance(node, ast_kql.Aggregate):
        return f"{node.function}({'DISTINCT ' if node.distinct else ''}{format_term(node.argument)})"
    return format_term(node)


def column_names(find: ast_kql.Find) -> list[str]:
    """What each column of an answer holds, as KQL writes it: `?p.name`, `COUNT(?p)`."""
    return [_projection(item) for item in find.projections]


# --- KML --------------------------------------------------------------------------------------------------


def _mutate(node: ast_kml.Mutate) -> list[str]:
    return ["MUTATE {", *indented([line for clause in node.clauses for line in _lines(clause)]), "}"]


def _handle(name: str | None) -> str:
    return "" if name is None else f"?{name} "


def _braced(head: str, *clauses: list[str]) -> list[str]:
    lines = [line for clause in clauses for line in clause]
    return [f"{head} {{", *indented(lines), "}"] if lines else [f"{head} {{}}"]


def _content(node: ast_kml.Content) -> list[str]:
    lines = [*_clause("SET FIELDS", node.fields), *_clause("SET ATTRIBUTES", node.attributes)]
    lines += [f"SET FACET {format_term(facet.facet)} {format_object(facet.values)}" for facet in node.facets]
    lines += _structural(node.structural)
    if node.unset_attributes is not None:
        lines.append(f"UNSET ATTRIBUTES {_names(node.unset_attributes)}")
    lines += [f"UNSET FACET {format_term(facet.facet)} {_names(facet.fields)}" for facet in node.unset_facets]
    if node.unset_structural:
        entries = " ".join([_reference(entry) for entry in node.unset_structural])
        lines.append(f"UNSET STRUCTURAL {{ {entries} }}")
    return lines


def _structural(entries: tuple[ast_kml.StructuralAssignment, ...]) -> list[str]:
    texts = [
        _reference(entry) + (f" {format_object(entry.options)}" if entry.options else "") for entry in entries
    ]
    return [f"SET STRUCTURAL {{ {' '.join(texts)} }}"] if texts else []


def _reference(entry: ast_kml.StructuralAssignment | ast_kml.StructuralRemoval) -> str:
    return f"({format_term(entry.field)}, {format_term(entry.target)})"


def _names(names: tuple[str, ...]) -> str:
    return "{" + ", ".join([format_name(name) for name in names]) + "}"


def _create_concept(node: ast_kml.CreateConcept) -> list[str]:
    return _braced(
        f"CREATE CONCEPT ?{node.handle}",
        _clause("TYPE", node.type),
        _clause("CLIENT KEY", node.client_key),
        _clause("NAME", node.name),
        _content(node.content),
    )


def _create_record(node: ast_kml.CreateRecord) -> list[str]:
    head = f"CREATE {node.kind.upper()} ?{node.handle}"
    return _braced(head, _clause("CLIENT KEY", node.client_key), _content(node.content))


def _upsert(node: ast_kml.UpsertConcept) -> list[str]:
    return _braced(
        f"UPSERT CONCEPT ?{node.handle}",
        [f"MATCH {format_object(node.match)}"],
        _clause("EXPECT VERSION", node.expect_version),
        _content(node.content),
    )


def _ensure(node: ast_kml.EnsureProposition) -> list[str]:
    head = f"ENSURE PROPOSITION {_handle(node.handle)}{_tuple(node.tuple)}"
    return [head, *indented(_clause("EXPECT VERSION", node.expect_version))]


def _tuple(node: ast.Triple) -> str:
    return f"({format_term(node.subject)}, {format_predicate(node.predicate)}, {format_term(node.object)})"


def _assert(node: ast_kml.Assert) -> list[str]:
    names = ("by", "mode", "stance", "confidence", "at", "valid", "evidence", "key")
    members = [
        f"{name}: {format_term(value)}" for name in names if (value := getattr(node, name)) is not None
    ]
    head = f"ASSERT {_handle(node.handle)}{_tuple(node.tuple)} {{{', '.join(members)}}}"
    return [head, *indented(_clause("SUPERSEDING", node.superseding))]


def _update(node: ast_kml.Update) -> list[str]:
    return [
        f"UPDATE {format_term(node.target)}",
        *indented(
            [
                *_clause("EXPECT VERSION", node.expect_version),
                *_content(node.content),
                *_optional_where(node.where),
                *_clause("LIMIT", node.limit),
            ]
        ),
    ]


def _selected(keyword: str) -> Callable[[Any], list[str]]:
    """A statement of a target, a WHERE, a LIMIT and a state to expect. Any: one of three alike structs."""

    def lines(node: Any) -> list[str]:  # RetractAssertion, Archive or Tombstone
        return [
            f"{keyword} {format_term(node.target)}",
            *indented(
                [
                    *_optional_where(node.where),
                    *_clause("LIMIT", node.limit),
                    *_clause("EXPECT STATE", node.expect_state),
                ]
            ),
        ]

    return lines


def _replaced(keyword: str) -> Callable[[Any], list[str]]:
    """A statement of a target and what replaces it. Any: one of two alike structs."""

    def lines(node: Any) -> list[str]:  # SupersedeAssertion or CorrectEvidence
        head = f"{keyword} {format_term(node.target)} BY {format_term(node.by)}"
        return [head, *indented(_clause("EXPECT STATE", node.expect_state))]

    return lines


def _transition(node: ast_kml.TransitionActivity) -> list[str]:
    return [
        f"TRANSITION ACTIVITY {format_term(node.target)} TO {format_term(node.to)}",
        *indented(
            [
                *_clause("SET FIELDS", node.fields),
                *_structural(node.structural),
                *_clause("EXPECT STATE", node.expect_state),
            ]
        ),
    ]


def _retention(node: ast_kml.SetRetention) -> list[str]:
    return [
        f"SET RETENTION {format_term(node.target)} {format_object(node.values)}",
        *indented(
            [
                *_optional_where(node.where),
                *_clause("LIMIT", node.limit),
                *_clause("EXPECT VERSION", node.expect_version),
            ]
        ),
    ]


def _purge(node: ast_kml.Purge) -> list[str]:
    return [
        f"PURGE {format_term(node.target)}",
        *indented(
            [
                *_optional_where(node.where),
                *_clause("LIMIT", node.limit),
                *_clause("REFERENCE POLICY", node.reference_policy),
                'CONFIRM "PURGE"',
            ]
        ),
    ]


def _merge(node: ast_kml.MergeConcept) -> list[str]:
    return [
        f"MERGE CONCEPT {format_term(node.source)} INTO {format_term(node.target)}",
        *indented([*_optional_where(node.where), *_clause("EXPECT VERSION", node.expect_version)]),
    ]


# --- META -------------------------------------------------------------------------------------------------


def _describe(node: ast_meta.Describe) -> list[str]:
    parts = [f"DESCRIBE {node.topic}"]
    if node.topic == "IDEMPOTENCY KEY":
        parts = ["DESCRIBE TRANSACTION BY IDEMPOTENCY KEY"]
    if node.subject is not None:
        before = {"PRIMER": ["MODE"], "COMPATIBILITY": ["FROM"]}.get(node.topic, [])
        parts += [*before, format_term(node.subject)]
    parts += [*_clause("TO", node.to), *_as_of(node.as_of), *_clause("WITH", node.options)]
    return [" ".join(parts)]


def _list(node: ast_meta.ListStatement) -> list[str]:
    return [" ".join([f"LIST {node.topic}", *_clause("STATUS", node.status), *_page(node)])]


def _search(node: ast_meta.Search) -> list[str]:
    return [
        f"SEARCH {node.kind.upper()} {format_term(node.term)}",
        *_clause("WITH TYPE", node.type),
        *_clause("WITH PREDICATE", node.predicate),
        *_clause("MODE", node.mode),
        *_clause("THRESHOLD", node.threshold),
        *_clause("AS OF SEQ", node.as_of_seq),
        *_page(node),
    ]


def _verify(node: ast_meta.Verify) -> list[str]:
    return [f"VERIFY {node.target} {format_term(node.artifact)}"]


def _validate(node: ast_meta.Validate) -> list[str]:
    return [" ".join([f"VALIDATE {node.target} {format_term(node.subject)}", *_clause("WITH", node.options)])]


def _preview_kml(node: ast_meta.PreviewKml) -> list[str]:
    return [f"PREVIEW KML {format_term(node.command)}"]


def _preview_import(node: ast_meta.PreviewImport) -> list[str]:
    return [f"PREVIEW IMPORT CAPSULE {format_term(node.capsule)} INTO {format_term(node.into)}"]


def _history(node: ast_meta.History) -> list[str]:
    head = "HISTORY SPACE" if node.element is None else f"HISTORY ELEMENT {format_term(node.element)}"
    return [
        " ".join([head, *_clause("FROM SEQ", node.from_seq), *_clause("TO SEQ", node.to_seq), *_page(node)])
    ]


def _changes(node: ast_meta.Changes) -> list[str]:
    start = [*_clause("SINCE", node.since), *_clause("AFTER SEQ", node.after_seq)]
    return [" ".join(["CHANGES", *start, *_clause("LIMIT", node.limit)])]


def _snapshot(node: ast_meta.Snapshot) -> list[str]:
    return [" ".join(["SNAPSHOT", *_as_of(node.as_of)])]


def _export(node: ast_meta.ExportCapsule) -> list[str]:
    return [
        f"EXPORT CAPSULE {format_term(node.target)}",
        *format_where(node.where),
        *_clause("WITH", node.options),
        *_as_of(node.as_of),
    ]


# Any: each function takes the struct it stands beside.
_STATEMENTS: Final[dict[type[ast.Node], Callable[[Any], list[str]]]] = {
    ast_kql.Find: _find,
    ast_kml.Mutate: _mutate,
    ast_kml.CreateConcept: _create_concept,
    ast_kml.CreateRecord: _create_record,
    ast_kml.UpsertConcept: _upsert,
    ast_kml.EnsureProposition: _ensure,
    ast_kml.Assert: _assert,
    ast_kml.Update: _update,
    ast_kml.RetractAssertion: _selected("RETRACT ASSERTION"),
    ast_kml.SupersedeAssertion: _replaced("SUPERSEDE ASSERTION"),
    ast_kml.CorrectEvidence: _replaced("CORRECT EVIDENCE"),
    ast_kml.TransitionActivity: _transition,
    ast_kml.SetRetention: _retention,
    ast_kml.Archive: _selected("ARCHIVE"),
    ast_kml.Tombstone: _selected("TOMBSTONE"),
    ast_kml.Purge: _purge,
    ast_kml.MergeConcept: _merge,
    ast_meta.Describe: _describe,
    ast_meta.ListStatement: _list,
    ast_meta.Search: _search,
    ast_meta.Verify: _verify,
    ast_meta.Validate: _validate,
    ast_meta.PreviewKml: _preview_kml,
    ast_meta.PreviewImport: _preview_import,
    ast_meta.History: _history,
    ast_meta.Changes: _changes,
    ast_meta.Snapshot: _snapshot,
    ast_meta.ExportCapsule: _export,
}
