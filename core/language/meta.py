"""META: the productions of DESCRIBE, LIST, SEARCH, VERIFY, VALIDATE, PREVIEW, HISTORY, CHANGES, SNAPSHOT, EXPORT.

What lives here: one `parse_*` per production (KIP §63-69). What must never live here: what is described.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from core.language import ast, ast_meta
from core.language.checks import check_export
from core.language.cursor import Cursor
from core.language.kql import parse_as_of, parse_optional_scalar
from core.language.lexer import PARAMETER, STRING
from core.language.patterns import parse_where
from core.language.values import parse_literal, parse_object, parse_parameter, parse_scalar, parse_target

# What may follow DESCRIBE: the words of a topic, and whether a value must, may or may not follow them.
_TOPICS: Final[dict[tuple[str, ...], str]] = {
    ("PRIMER",): "mode", ("PROTOCOL",): "none", ("EXECUTION", "CONTEXT"): "none", ("CAPABILITIES",): "none",
    ("SPACE",): "optional", ("SCHEMA", "ENVIRONMENT"): "as of", ("PACKAGE",): "value", ("TYPE",): "value",
    ("PREDICATE",): "value", ("FACET",): "value", ("STRUCTURAL", "FIELD"): "value",
    ("COMPATIBILITY",): "from to", ("ERROR",): "value", ("TRANSACTION",): "transaction", ("SNAPSHOT",): "as of",
    ("CAPSULE",): "value", ("EPISTEMIC", "POLICY"): "optional", ("PROJECTION", "CAPABILITY"): "none",
    ("TRUST",): "optional", ("ACCESS",): "with",
}  # fmt: skip
_LISTS: Final[tuple[tuple[str, ...], ...]] = (
    ("SPACES",), ("SCHEMA", "PACKAGES"), ("TYPES",), ("PREDICATES",), ("FACETS",), ("STRUCTURAL", "FIELDS"),
    ("EPISTEMIC", "POLICIES"),
)  # fmt: skip
_SEARCH_KINDS: Final = ("CONCEPT", "PROPOSITION", "ASSERTION", "EVIDENCE", "ACTIVITY", "COGNITION")
_VERIFY: Final = (("CAPSULE",), ("SCHEMA", "PACKAGE"), ("RECEIPT",), ("BLOB",), ("CHECKPOINT",))
_VALIDATE: Final = (("KQL",), ("KML",), ("CAPSULE",), ("SCHEMA", "PACKAGE"), ("IMPORT", "PLAN"))


def _parse_words(cursor: Cursor, phrases: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    """Moves past one of several phrases, which differ in their first word, and says which."""
    first = cursor.choice([phrase[0] for phrase in phrases])
    phrase = next(phrase for phrase in phrases if phrase[0] == first)
    cursor.expect_words(*phrase[1:])
    return phrase


def _parse_describe(cursor: Cursor) -> ast_meta.Describe:
    span = cursor.span()
    cursor.expect("DESCRIBE")
    phrase = _parse_words(cursor, tuple(_TOPICS))
    topic, form = " ".join(phrase), _TOPICS[phrase]
    subject: ast.Scalar | None = None
    to = as_of = options = None
    if form == "value":
        subject = parse_scalar(cursor)
    elif form == "optional":
        subject = parse_parameter(cursor) or parse_literal(cursor)
    elif form == "mode":
        subject = _parse_mode(cursor, ("compact", "full"))
    elif form == "as of":
        as_of = parse_as_of(cursor)
    elif form == "from to":
        subject, to = parse_from_to(cursor)
    elif form == "with":
        options = _parse_options(cursor)
    elif form == "transaction":
        if cursor.match("BY"):
            cursor.expect_words("IDEMPOTENCY", "KEY")
            topic = "IDEMPOTENCY KEY"
        subject = parse_scalar(cursor)
    return ast_meta.Describe(
        span=span,
        topic=cast("ast_meta.DescribeTopic", topic),
        subject=subject,
        to=to,
        as_of=as_of,
        options=options,
    )


def parse_from_to(cursor: Cursor) -> tuple[ast.Scalar, ast.Scalar]:
    """The two sides of DESCRIBE COMPATIBILITY."""
    cursor.expect("FROM")
    source = parse_scalar(cursor)
    cursor.expect("TO")
    return source, parse_scalar(cursor)


def _parse_mode(cursor: Cursor, modes: tuple[str, ...]) -> ast.Scalar | None:
    """`MODE` and one of its quoted names or a parameter, or None where it is not written."""
    if not cursor.match("MODE"):
        return None
    if cursor.key() == STRING and cursor.values[cursor.index] not in modes:
        cursor.refuse(cursor.index, "this mode does not exist", hint=f"Modes: {', '.join(modes)}.")
    if cursor.key() not in {STRING, PARAMETER}:
        cursor.fail(" or ".join(f'"{mode}"' for mode in modes))
    return parse_scalar(cursor)


def _parse_options(cursor: Cursor) -> ast.Object | None:
    return parse_object(cursor, None) if cursor.match("WITH") else None


def _parse_list(cursor: Cursor) -> ast_meta.ListStatement:
    span = cursor.span()
    cursor.expect("LIST")
    topic = " ".join(_parse_words(cursor, _LISTS))
    return ast_meta.ListStatement(
        span=span,
        topic=cast("ast_meta.ListTopic", topic),
        status=parse_optional_scalar(cursor, "STATUS") if topic == "SCHEMA PACKAGES" else None,
        limit=parse_optional_scalar(cursor, "LIMIT"),
        cursor=parse_optional_scalar(cursor, "CURSOR"),
    )


def _parse_search(cursor: Cursor) -> ast_meta.Search:
    span = cursor.span()
    cursor.expect("SEARCH")
    kind = cast("ast_meta.SearchKind", cursor.choice(_SEARCH_KINDS).lower())
    term = parse_scalar(cursor, "a term to search for")
    type_name = predicate = None
    if cursor.match("WITH"):
        if cursor.choice(("TYPE", "PREDICATE")) == "TYPE":
            type_name = parse_scalar(cursor)
            predicate = parse_optional_scalar(cursor, "WITH", "PREDICATE")
        else:
            predicate = parse_scalar(cursor)
    return ast_meta.Search(
        span=span,
        kind=kind,
        term=term,
        type=type_name,
        predicate=predicate,
        mode=_parse_mode(cursor, ("keyword", "semantic", "hybrid")),
        threshold=parse_optional_scalar(cursor, "THRESHOLD"),
        as_of_seq=parse_optional_scalar(cursor, "AS", "OF", "SEQ"),
        limit=parse_optional_scalar(cursor, "LIMIT"),
        cursor=parse_optional_scalar(cursor, "CURSOR"),
    )


def _parse_verify(cursor: Cursor) -> ast_meta.Verify:
    span = cursor.span()
    cursor.expect("VERIFY")
    target = cast("ast_meta.VerifyTarget", " ".join(_parse_words(cursor, _VERIFY)))
    return ast_meta.Verify(span=span, target=target, artifact=parse_scalar(cursor))


def _parse_validate(cursor: Cursor) -> ast_meta.Validate:
    span = cursor.span()
    cursor.expect("VALIDATE")
    target = cast("ast_meta.ValidateTarget", " ".join(_parse_words(cursor, _VALIDATE)))
    subject = parse_scalar(cursor)
    return ast_meta.Validate(span=span, target=target, subject=subject, options=_parse_options(cursor))


def _parse_preview(cursor: Cursor) -> ast_meta.PreviewKml | ast_meta.PreviewImport:
    span = cursor.span()
    cursor.expect("PREVIEW")
    if cursor.choice(("KML", "IMPORT")) == "KML":
        return ast_meta.PreviewKml(span=span, command=parse_scalar(cursor))
    cursor.expect("CAPSULE")
    capsule = parse_scalar(cursor)
    cursor.expect("INTO")
    return ast_meta.PreviewImport(span=span, capsule=capsule, into=parse_scalar(cursor))


def _parse_history(cursor: Cursor) -> ast_meta.History:
    span = cursor.span()
    cursor.expect("HISTORY")
    element = parse_scalar(cursor) if cursor.choice(("ELEMENT", "SPACE")) == "ELEMENT" else None
    return ast_meta.History(
        span=span,
        element=element,
        from_seq=parse_optional_scalar(cursor, "FROM", "SEQ"),
        to_seq=parse_optional_scalar(cursor, "TO", "SEQ"),
        limit=parse_optional_scalar(cursor, "LIMIT"),
        cursor=parse_optional_scalar(cursor, "CURSOR"),
    )


def _parse_changes(cursor: Cursor) -> ast_meta.Changes:
    span = cursor.span()
    cursor.expect("CHANGES")
    since = after = None
    if cursor.choice(("SINCE", "AFTER")) == "SINCE":
        since = parse_scalar(cursor)
    else:
        cursor.expect("SEQ")
        after = parse_scalar(cursor)
    limit = parse_optional_scalar(cursor, "LIMIT")
    return ast_meta.Changes(span=span, since=since, after_seq=after, limit=limit)


def _parse_snapshot(cursor: Cursor) -> ast_meta.Snapshot:
    span = cursor.span()
    cursor.expect("SNAPSHOT")
    return ast_meta.Snapshot(span=span, as_of=parse_as_of(cursor))


def _parse_export(cursor: Cursor) -> ast_meta.ExportCapsule:
    span = cursor.span()
    cursor.expect_words("EXPORT", "CAPSULE")
    target = parse_target(cursor)
    cursor.expect("WHERE")
    place = cursor.index
    where = parse_where(cursor)
    check_export(cursor, place, where)
    options = _parse_options(cursor)
    return ast_meta.ExportCapsule(
        span=span, target=target, where=where, options=options, as_of=parse_as_of(cursor)
    )


STATEMENTS: Final[dict[str, Callable[[Cursor], ast_meta.MetaStatement]]] = {
    "DESCRIBE": _parse_describe,
    "LIST": _parse_list,
    "SEARCH": _parse_search,
    "VERIFY": _parse_verify,
    "VALIDATE": _parse_validate,
    "PREVIEW": _parse_preview,
    "HISTORY": _parse_history,
    "CHANGES": _parse_changes,
    "SNAPSHOT": _parse_snapshot,
    "EXPORT": _parse_export,
}
"""`meta_statement`: the parser of each family by the word it begins with."""
