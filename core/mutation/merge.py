"""MERGE CONCEPT: two Concepts turn out to be one, and no history is rewritten (KIP §11, §61).

What lives here: the rules of the one family that changes identity. What must never live here: the rewriting of
anything that refers to the source: raw history keeps saying what was said, and `merged_into` is followed by
whoever asks for the canonical identity.
"""

from __future__ import annotations

from core.errors import NoemaError
from core.language import ast
from core.language.ast_kml import MergeConcept
from core.language.checks import bound_variables
from core.model.elements import Concept, Proposition
from core.model.literals import Ref, Term
from core.mutation.lifecycle import ENGINE_STATES, check_move
from core.mutation.records import expect_version
from core.mutation.selection import solutions
from core.mutation.work import Work
from core.schema.definitions import split_ref
from core.state.indexes import object_key, subject_key, tuple_key

_STABLE = frozenset({"id", "key", "canonical_id"})


def merge(work: Work, clause: MergeConcept) -> None:
    """Let the source resolve to the target from now on.

    Raises:
        NoemaError: IdentitySelectorRequired for a Concept chosen by description, IdentityConflict for a
            selector of several, IdentityMergeConflict for a cycle, a second target or incompatible types.
    """
    ends = _ends(work, clause)
    if ends is None:
        return
    source_id, target_id = ends
    edit = work.edit(source_id, "merge_identity")
    target = work.edit(target_id, "merge_identity").base
    source = edit.base
    if not isinstance(source, Concept) or not isinstance(target, Concept):
        raise NoemaError("TypeMismatch", "MERGE CONCEPT joins two Concepts that exist")
    expect_version(work, edit, clause.expect_version)
    if source_id == target_id:
        raise NoemaError("IdentityMergeConflict", "a Concept cannot be merged into itself")
    already = source.merged_into is not None
    if already and work.canonical(source_id) == work.canonical(target_id):
        _report(work, source, target, moved=False)
        return
    if already:
        raise NoemaError(
            "IdentityMergeConflict",
            "the Concept is already merged into another one",
            details={"source": source_id, "merged_into": source.merged_into},
        )
    if work.canonical(target_id) == source_id:
        raise NoemaError(
            "IdentityMergeConflict", "the target already resolves to the source: that would be a cycle"
        )
    if _family(source.schema_ref) != _family(target.schema_ref):
        raise NoemaError(
            "IdentityMergeConflict",
            "Concepts of different types are not one",
            details={"source_type": source.schema_ref, "target_type": target.schema_ref},
        )
    if target.system.state in {"tombstoned", "purged"}:
        raise NoemaError("InvalidLifecycleTransition", f"the target is {target.system.state}")
    check_move(ENGINE_STATES, source.system.state, "merged", source_id)
    _check_chain(work, source_id, target_id)
    edit.set_field("merged_into", target_id)
    edit.set_field("state", "merged")
    work.move(source_id, source.system.state, "merged")
    _report(work, source, target, moved=True)


def _family(schema_ref: str) -> tuple[str, str]:
    """A type without its version: two versions of one type may be merged."""
    package, name = split_ref(schema_ref) or (schema_ref, "")
    return package.rpartition("@")[0], name


def _check_chain(work: Work, source: str, target: str) -> None:
    """Refuse a cycle that only the merges of this same statement would close."""
    seen = target
    while seen != source:
        edit = work.edits.get(seen)
        following = None if edit is None else edit.fields.get("merged_into")
        if following is None:
            return
        seen = following
    raise NoemaError("IdentityMergeConflict", "the merges of the statement form a cycle")


def _ends(work: Work, clause: MergeConcept) -> tuple[str, str] | None:
    """Source and target: named directly, or bound by a WHERE that selects each by stable identity."""
    where = clause.where
    if where is None:
        return _named(work, clause.source), _named(work, clause.target)
    bound = bound_variables(where)
    rows = solutions(work, where)
    found: list[str] = []
    for node in (clause.source, clause.target):
        if not (isinstance(node, ast.Variable) and node.name in bound):
            found.append(_named(work, node))
            continue
        if not _by_identity(where, node.name):
            raise NoemaError(
                "IdentitySelectorRequired",
                f"?{node.name} must be selected by id, key or canonical_id: a description is not an identity",
            )
        ids = {value.id for row in rows if isinstance(value := row.get(node.name), Ref)}
        ids = ids or _merged(work, where, node.name)
        if len(ids) > 1:
            raise NoemaError(
                "IdentityConflict",
                f"?{node.name} selects {len(ids)} Concepts",
                details={"candidates": sorted(ids)},
            )
        if not ids:
            raise NoemaError("NotFoundOrNotVisible", f"?{node.name} selects no Concept you may see")
        found.append(ids.pop())
    return (found[0], found[1]) if rows or _is_merged(work, found[0]) else None


def _named(work: Work, node: ast.TargetRef) -> str:
    """A Concept named directly: itself, also where it was merged before."""
    if isinstance(node, ast.Literal) and isinstance(node.value, str):
        return work.existing(node.value).id
    return work.target(node)


def _is_merged(work: Work, element_id: str) -> bool:
    element = work.get(element_id)
    return isinstance(element, Concept) and element.merged_into is not None


def _merged(work: Work, where: ast.Where, name: str) -> set[str]:
    """Concepts that a pattern names by identity and does not find because they are merged: a repeated merge."""
    found: set[str] = set()
    for clause in where:
        if not (isinstance(clause, ast.ElementPattern) and clause.variable == name):
            continue
        members = {m.name: m.value.value for m in clause.match.members if isinstance(m.value, ast.Literal)}
        found.update(work.named(members))
    return found


def _by_identity(where: ast.Where, name: str) -> bool:
    return any(
        isinstance(clause, ast.ElementPattern)
        and clause.variable == name
        and any(
            member.name in _STABLE and isinstance(member.value, ast.Literal)
            for member in clause.match.members
        )
        for clause in where
    )


def _report(work: Work, source: Concept, target: Concept, *, moved: bool) -> None:
    redirects, collisions = _impact(work, source.id, target.id)
    work.merges.append(
        {
            "source_id": source.id,
            "target_id": target.id,
            "source_state": "merged",
            "changed": moved,
            "canonical_redirects": redirects,
            "proposition_collisions": collisions,
            "history_rewritten": False,
        }
    )


def _impact(work: Work, source: str, target: str) -> tuple[int, int]:
    """How many Propositions now resolve elsewhere, and how many of them meet one that is there already."""
    view = work.draft.view
    redirected = {*view.find(subject_key(source)), *view.find(object_key(Ref(source)))}
    redirects = collisions = 0
    for element_id in redirected:
        element = work.get(element_id)
        if isinstance(element, Proposition):
            redirects += 1
            subject = target if element.subject == source else element.subject
            obj: Term = Ref(target) if element.object == Ref(source) else element.object
            there = view.find(tuple_key(subject, element.predicate_ref, obj))
            collisions += any(work.get(found) is not None for found in there)
    return redirects, collisions
