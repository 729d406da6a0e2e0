"""What is refused although the grammar admits it, because no state of any space could make it legal.

What lives here: checks over one command alone: handles and variables that nothing binds, members that are
missing or unknown, protected fields, payloads whose kind the WHERE reveals to be immutable. What must never
live here: anything that needs a schema, a state or a caller.

Two codes differ from the conformance paper on purpose. A protected or immutable field that the text alone gives
away is a fault of the text, hence InvalidSyntax; `details.reason` holds the code that the same write gets when
only the state can tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from core.language import ast
from core.language.ast_kml import Content, StructuralAssignment, StructuralRemoval, Update
from core.language.cursor import Cursor

_PROTECTED: Final[dict[str, tuple[str, str]]] = {
    # name: (code, reason); KIP §7.1 and conformance KML-013, KML-014
    "_system": ("ProtectedSystemField", "ProtectedSystemField"),
    "space_id": ("ProtectedSystemField", "ProtectedSystemField"),
    "space_seq": ("ProtectedSystemField", "ProtectedSystemField"),
    "governance": ("InvalidSyntax", "ProtectedGovernanceField"),
}
_PAYLOAD: Final[dict[str, tuple[str, frozenset[str]]]] = {
    # kind: (the code the state would give, its immutable fields); KIP §12.5, §13.7, §15.5
    "proposition": ("ImmutableField", frozenset({"subject", "predicate", "predicate_ref", "object"})),
    "assertion": (
        "EpistemicRevisionRequired",
        frozenset({
            "proposition", "asserted_by", "stance", "mode", "confidence", "asserted_at", "valid_time", "evidence",
        }),
    ),
    "evidence": (
        "EvidenceCorrectionRequired",
        frozenset({
            "evidence_class", "payload", "content_digest", "media_type", "observed_at", "source", "generated_by",
        }),
    ),
    "activity": ("ActivityTerminal", frozenset({"inputs", "outputs", "associated_actors"})),
}  # fmt: skip

# --- Variables --------------------------------------------------------------------------------------------


def bound_variables(where: ast.Where) -> set[str]:
    """The variables a WHERE block may bind: those of its patterns, also within OPTIONAL and UNION (KIP §44)."""
    names: set[str] = set()
    for clause in where:
        names.update(_variables_of(clause))
    return names


def _variables_of(node: object) -> Iterator[str]:
    """The variables a pattern names; nothing of FILTER and NOT, which bind nothing."""
    if isinstance(node, ast.Variable):
        yield node.name
    elif isinstance(node, tuple):
        for item in node:
            yield from _variables_of(item)
    elif isinstance(node, ast.Node) and not isinstance(node, (ast.Filter, ast.NotBlock, ast.Literal)):
        variable = getattr(node, "variable", None)
        if variable is not None:
            yield variable
        for name in node.__struct_fields__:
            yield from _variables_of(getattr(node, name))


def settle_where(cursor: Cursor, mark: int, where: ast.Where | None) -> None:
    """Takes out of the uses since `mark` those that this statement's WHERE binds."""
    if where is not None and len(cursor.references) > mark:
        bound = bound_variables(where)
        cursor.references[mark:] = [use for use in cursor.references[mark:] if use[0] not in bound]


def check_references(cursor: Cursor) -> None:
    """Refuses a variable that is neither a handle of the command nor bound by its statement's WHERE."""
    for name, index in cursor.references:
        if name not in cursor.handles:
            cursor.refuse(
                index,
                f"?{name[:40]} is bound nowhere",
                hint="Bind it in the statement's WHERE, or declare it as a handle in the same MUTATE.",
                code="ReferenceError",
            )


def declare_handle(cursor: Cursor) -> str:
    """`handle`: a variable that names what a clause makes; each once in a command (KIP §53.2)."""
    name = str(cursor.values[cursor.index])
    if name in cursor.handles:
        cursor.refuse(cursor.index, f"the handle ?{name[:40]} is declared twice", code="DuplicateLocalHandle")
    cursor.handles[name] = cursor.index
    cursor.index += 1
    return name


# --- Values -----------------------------------------------------------------------------------------------


def _reads(value: object, *, within_call: bool = False) -> Iterator[tuple[str, ast.Span]]:
    """The variables whose state a value reads: every dot path, and what a function is given."""
    if isinstance(value, ast.FieldAccess):
        yield value.variable, value.span
    elif isinstance(value, ast.Variable):
        if within_call:
            yield value.name, value.span
    elif isinstance(value, tuple):
        for item in value:
            yield from _reads(item, within_call=within_call)
    elif isinstance(value, ast.FunctionCall):
        yield from _reads(value.arguments, within_call=True)
    elif isinstance(value, ast.Node) and not isinstance(value, ast.Literal):
        for name in value.__struct_fields__:
            yield from _reads(getattr(value, name), within_call=within_call)


def check_reads(cursor: Cursor, values: Iterable[object], target: str | None) -> None:
    """Refuses values that read the state of anything but the statement's own target (KIP §58)."""
    for value in values:
        for name, span in _reads(value):
            if name != target:
                own = f"only ?{target[:40]}" if target else "nothing: it has no ?variable target"
                cursor.refuse_at(
                    span,
                    f"the value reads ?{name[:40]}, but this statement may read {own}",
                    hint="Refer to another element by its bare ?handle; read values with FIND first.",
                )


def check_fields(cursor: Cursor, fields: ast.Object) -> None:
    """Refuses SET FIELDS of what only the engine or the host writes."""
    for member in fields.members:
        if member.name in _PROTECTED:
            code, reason = _PROTECTED[member.name]
            cursor.refuse_at(
                member.span,
                f"{member.name} is not a field that a command may write",
                hint="Leave it out: the engine and the host maintain it.",
                code=code,
                reason=reason,
            )


# --- Statements -------------------------------------------------------------------------------------------


def check_update(cursor: Cursor, update: Update) -> None:
    """Refuses reads of other variables and writes of a payload that the WHERE shows to be immutable."""
    target = update.target.name if isinstance(update.target, ast.Variable) else None
    check_reads(cursor, content_values(update.content), target)
    if target is None or update.where is None:
        return
    kinds = {
        kind
        for clause in update.where
        if (kind := _kind_of(clause)) is not None and getattr(clause, "variable", None) == target
    }
    for kind in sorted(kinds & _PAYLOAD.keys()):
        reason, names = _PAYLOAD[kind]
        for name, span in _written(update.content):
            if name in names:
                cursor.refuse_at(
                    span,
                    f"{name} of the {kind} ?{target[:40]} is immutable",
                    hint="Record what is new: ASSERT ... SUPERSEDING, CORRECT EVIDENCE or TRANSITION ACTIVITY.",
                    reason=reason,
                )


def content_values(content: Content) -> Iterator[object]:
    """Every value that a content assigns or removes."""
    yield content.fields
    yield content.attributes
    for facet in content.facets:
        yield facet.values
    yield from (entry.target for entry in content.structural)
    yield from (entry.target for entry in content.unset_structural)


def _kind_of(clause: ast.WhereClause) -> str | None:
    if isinstance(clause, ast.PropositionPattern):
        return "proposition"
    return clause.kind if isinstance(clause, ast.ElementPattern) else None


def _written(content: Content) -> Iterator[tuple[str, ast.Span]]:
    for member in content.fields.members if content.fields else ():
        yield member.name, member.span
    entries: tuple[StructuralAssignment | StructuralRemoval, ...] = (
        *content.structural,
        *content.unset_structural,
    )
    for entry in entries:
        if isinstance(entry.field, ast.Literal):
            yield str(entry.field.value), entry.span


def check_match(cursor: Cursor, at: int, match: ast.ObjectPattern) -> None:
    """UPSERT's MATCH names an identity: an id or a key, and no variable (KIP §54.3)."""
    for name in _variables_of(match):
        cursor.refuse(at, f"MATCH holds ?{name[:40]}", hint="Give MATCH literal values or :parameters.")
    if match.get("id") is None and match.get("key") is None:
        code = "NameIdentityForbidden" if match.get("name") is not None else "IdentitySelectorRequired"
        cursor.refuse(at, "MATCH needs an id or a key", code=code)


def check_export(cursor: Cursor, at: int, where: ast.Where) -> None:
    """EXPORT selects by at least one pattern, and its variable root is bound by one (KIP §69)."""
    if not any(not isinstance(clause, (ast.Filter, ast.NotBlock)) for clause in where):
        cursor.refuse(at, "EXPORT needs a pattern that selects", hint="Select the roots in WHERE { ... }.")
    settle_where(cursor, 0, where)
    check_references(cursor)
