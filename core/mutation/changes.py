"""Changes of elements that exist: UPDATE, the lifecycle commands, retention, archive and tombstone (KIP §57-60).

What lives here: one function per family, each turning a clause into assignments on the elements it selects.
What must never live here: creation, purge and merge.
"""

from __future__ import annotations

from typing import Any

import msgspec

from core.errors import NoemaError
from core.language import ast
from core.language.ast_kml import (
    Archive,
    Content,
    CorrectEvidence,
    RetractAssertion,
    SetRetention,
    SupersedeAssertion,
    Tombstone,
    TransitionActivity,
    Update,
)
from core.language.plain import plain_value
from core.model.elements import Activity, Assertion, Evidence, Json, Retention, State
from core.mutation.content import ContentWriter, symbol
from core.mutation.edit import Edit
from core.mutation.expressions import Reader
from core.mutation.fields import (
    CREATED,
    check_period,
    optional_instant,
    refuse_activity,
    refuse_created,
    text,
)
from core.mutation.lifecycle import (
    ACTIVITY_STATES,
    ASSERTION_STATES,
    ENGINE_STATES,
    EVIDENCE_STATES,
    TERMINAL_ACTIVITY,
    check_move,
    expect_state,
)
from core.mutation.records import expect_version
from core.mutation.selection import Selected, select_targets
from core.mutation.work import Work

_TOPOLOGY_FIELDS = frozenset({"inputs", "outputs", "associated_actors"})


# --- UPDATE


def update(work: Work, clause: Update) -> None:
    """Generic UPDATE: legal mutable state of elements that exist; it never creates (KIP §58)."""
    name = clause.target.name if isinstance(clause.target, ast.Variable) else None
    many_rows = _uses_rows(clause.content, name)
    for selected in select_targets(work, clause.target, clause.where, clause.limit):
        edit = work.editable(work.canonical(selected.id), "update")
        expect_version(work, edit, clause.expect_version)
        reader = Reader(work.env, edit.base, name, work.reference)
        for row in selected.rows if many_rows else selected.rows[:1]:
            ContentWriter(work, edit, reader, row).write(clause.content)


def _uses_rows(content: Content, target: str | None) -> bool:
    """Whether structural targets depend on what the WHERE bound beside the target."""
    targets = [entry.target for entry in content.structural]
    targets += [entry.target for entry in content.unset_structural]
    return any(isinstance(node, ast.Variable) and node.name != target for node in targets)


# --- Assertions and Evidence


def retract(work: Work, clause: RetractAssertion) -> None:
    """RETRACT ASSERTION: the assertor, or a representative, withdraws it; the payload stays (KIP §14.1)."""
    for selected in select_targets(work, clause.target, clause.where, clause.limit):
        edit = work.edit(selected.id, "retract")
        found = _stored(edit, Assertion, "RETRACT ASSERTION")
        expect_state(_state(clause.expect_state), found.status, edit.id)
        check_move(ASSERTION_STATES, found.status, "retracted", edit.id)
        edit.set_field("status", "retracted")
        edit.set_field("retracted_at", work.draft.now)
        work.move(edit.id, found.status, "retracted")


def supersede(work: Work, clause: SupersedeAssertion) -> None:
    """SUPERSEDE ASSERTION: a newer Assertion of the same actor takes the place of an older one (KIP §14.2, §57.4)."""
    old = work.edit(work.target(clause.target), "supersede")
    found = _stored(old, Assertion, "SUPERSEDE ASSERTION")
    new = work.edit(work.target(clause.by), "supersede")
    if new.kind != "assertion" or new.id == old.id:
        raise NoemaError("SupersessionMismatch", "an Assertion is superseded by another Assertion")
    actor = new.fields.get("asserted_by", getattr(new.base, "asserted_by", None))
    if work.canonical(str(actor)) != work.canonical(found.asserted_by):
        raise NoemaError(
            "SupersessionMismatch",
            "one actor's Assertion cannot supersede another's: disagreement is kept, not overwritten",
            details={"old": old.id, "new": new.id},
        )
    expect_state(_state(clause.expect_state), found.status, old.id)
    if new.id in found.superseded_by:
        return  # a retry: it is already so
    check_move(ASSERTION_STATES, found.status, "superseded", old.id)
    if getattr(new.base, "status", "active") != "active":
        raise NoemaError(
            "SupersessionMismatch", "the newer Assertion is itself no longer active", details={"by": new.id}
        )
    _link(work, old, new, "SupersessionMismatch")
    old.set_field("status", "superseded")
    old.append("superseded_by", new.id)
    new.append("supersedes", old.id)
    work.move(old.id, found.status, "superseded")


def _link(work: Work, old: Edit, new: Edit, code: str) -> None:
    """Note that one element takes another's place, and refuse a second successor or a circle in one statement.

    Both are seen whatever the order of the clauses: the one that closes the circle finds it.
    """
    if work.successors.setdefault(old.id, new.id) != new.id:
        raise NoemaError(
            "DuplicateMutationTarget",
            "the statement gives one element two successors",
            details={"id": old.id},
        )
    seen = new.id
    while seen in work.successors:
        seen = work.successors[seen]
        if seen == old.id:
            raise NoemaError(code, "the successors of the statement form a circle", details={"id": old.id})


def correct(work: Work, clause: CorrectEvidence) -> None:
    """CORRECT EVIDENCE: new Evidence corrects old; the old bytes stay as they were (KIP §15.5, §57.2)."""
    old = work.edit(work.target(clause.target), "correct")
    found = _stored(old, Evidence, "CORRECT EVIDENCE")
    new = work.edit(work.target(clause.by), "correct")
    if new.kind != "evidence" or new.id == old.id:
        raise NoemaError("EvidenceCorrectionConflict", "Evidence is corrected by other Evidence")
    expect_state(_state(clause.expect_state), found.status, old.id)
    if new.id in found.corrected_by:
        return  # a retry: it is already so
    if getattr(new.base, "status", "active") != "active":
        raise NoemaError(
            "EvidenceCorrectionConflict",
            "the correcting Evidence was itself corrected",
            details={"by": new.id},
        )
    check_move(EVIDENCE_STATES, found.status, "corrected", old.id, code="EvidenceCorrectionConflict")
    _link(work, old, new, "EvidenceCorrectionConflict")
    old.set_field("status", "corrected")
    old.append("corrected_by", new.id)
    new.append("corrects", old.id)
    work.move(old.id, found.status, "corrected")


# --- Activities


def transition(work: Work, clause: TransitionActivity) -> None:
    """TRANSITION ACTIVITY: the next state, with the fields and references that settle with it (KIP §52.5)."""
    edit = work.edit(work.target(clause.target), "transition")
    found = _stored(edit, Activity, "TRANSITION ACTIVITY")
    to = str(plain_value(clause.to))
    expect_state(_state(clause.expect_state), found.status, edit.id)
    if to not in ACTIVITY_STATES:
        raise NoemaError(
            "ConstraintViolation",
            f"an Activity has no status {to[:40]}",
            details={"allowed": list(ACTIVITY_STATES)},
        )
    terminal = found.status in TERMINAL_ACTIVITY
    check_move(ACTIVITY_STATES, found.status, to, edit.id, code="ActivityTerminal" if terminal else None)
    edit.set_field("status", to)
    reader = Reader(work.env, edit.base, None, work.reference)
    for member in clause.fields.members if clause.fields is not None else ():
        check = CREATED["activity"].get(member.name)
        if check is None or member.name in {"activity_class", "status"}:
            raise (
                refuse_created("activity", member.name)
                if check is None
                else refuse_activity(found, member.name)
            )
        edit.set_field(member.name, check(member.name, reader.json(member.value)))
    for assignment in clause.structural:
        field = work.env.structural(symbol(assignment.field), "activity", write=True)
        if field.name not in _TOPOLOGY_FIELDS:
            raise NoemaError("StructuralReferenceInvalid", f"{field.name} is not a field of activity")
        edit.append(field.name, work.target(assignment.target))
    started, ended = (edit.fields.get(name, getattr(found, name)) for name in ("started_at", "ended_at"))
    check_period(started, ended)
    work.move(edit.id, found.status, to)


# --- retention, archive, tombstone


def set_retention(work: Work, clause: SetRetention) -> None:
    """SET RETENTION: storage lifecycle, which says nothing of truth or world time (KIP §19, §60)."""
    values: dict[str, Json] = {m.name: plain_value(m.value) for m in clause.values.members}
    checked = _retention(values)
    for selected in select_targets(work, clause.target, clause.where, clause.limit):
        edit = work.edit(selected.id, "manage_retention")
        if (
            "legal_hold" in checked
        ):  # KIP Governance §163: no writer keeps what must go, or lets go what must stay
            work.edit(selected.id, "legal_hold")
        expect_version(work, edit, clause.expect_version)
        base = edit.base.retention if edit.base is not None else Retention()
        held = edit.fields.get("retention", base)
        for name, value in checked.items():
            _agree(edit, held, base, name, value)
        edit.fields["retention"] = msgspec.structs.replace(held, **checked)


def _retention(values: dict[str, Json]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in values.items():
        if name == "retention_class":
            out[name] = text(name, value)
        elif name == "expires_at":
            out[name] = optional_instant(name, value)
        elif name == "legal_hold":
            if not isinstance(value, bool):
                raise NoemaError("TypeMismatch", "legal_hold is true or false", details={"field": name})
            out[name] = value
        else:
            raise NoemaError(
                "SchemaFieldNotFound",
                f"retention has no field {name}",
                details={"fields": ["retention_class", "expires_at", "legal_hold"]},
            )
    return out


def _agree(edit: Edit, held: Retention, base: Retention, name: str, value: Any) -> None:
    """Refuse a second clause that wants another value of one retention field."""
    if getattr(held, name) != getattr(base, name) and getattr(held, name) != value:
        raise NoemaError(
            "DuplicateMutationTarget",
            f"the statement sets {name} of one element twice, with different values",
            details={"element": edit.id, "field": name},
        )


def archive(work: Work, clause: Archive) -> None:
    """ARCHIVE: out of ordinary recall, all history kept; nothing is withdrawn (KIP §60.1)."""
    for selected in select_targets(work, clause.target, clause.where, clause.limit):
        _move_state(work, selected, clause.expect_state, "archived", "archive")


def tombstone(work: Work, clause: Tombstone) -> None:
    """TOMBSTONE: out of active state, identity and references kept; no bytes go (KIP §60.2)."""
    for selected in select_targets(work, clause.target, clause.where, clause.limit):
        _move_state(work, selected, clause.expect_state, "tombstoned", "tombstone")


def _move_state(
    work: Work, selected: Selected, expected: ast.Scalar | None, to: State, action: Any
) -> None:  # action: the permission of the same name
    edit = work.edit(selected.id, action)
    current = edit.base.system.state if edit.base is not None else "active"
    expect_state(_state(expected), current, edit.id)
    if current == to:
        return
    check_move(ENGINE_STATES, current, to, edit.id)
    edit.set_field("state", to)
    work.move(edit.id, current, to)


# --- shared


def _state(node: ast.Scalar | None) -> Json:
    return None if node is None else plain_value(node)


def _stored[E: (Assertion, Evidence, Activity)](edit: Edit, kind: type[E], command: str) -> E:
    """The element a lifecycle command is about, which must exist, be of the kind and not be erased.

    Raises:
        NoemaError: TypeMismatch for another kind, InvalidLifecycleTransition for a stub or a new element.
    """
    base = edit.base
    if base is None:
        raise NoemaError(
            "InvalidLifecycleTransition",
            f"{command} is about an element that already exists",
            details={"id": edit.id},
        )
    if not isinstance(base, kind):
        raise NoemaError(
            "TypeMismatch", f"{command} is not about {edit.kind}", details={"id": edit.id, "kind": edit.kind}
        )
    if base.system.state in {"purged", "tombstoned"}:
        raise NoemaError(
            "InvalidLifecycleTransition", f"the element is {base.system.state}", details={"id": edit.id}
        )
    return base
