"""PURGE: bytes are destroyed; what may stay is a stub (KIP §19.3, §60.3).

What lives here: what blocks a purge, what its reference policy does to the rest, and what a stub keeps. What
must never live here: the destruction in storage and in history; a commit names the purged elements, and the
service's erasure follows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from core.authority import authorize, visible
from core.errors import NoemaError
from core.language.ast_kml import Purge
from core.language.plain import plain_value
from core.model.elements import (
    Activity,
    AnyElement,
    Assertion,
    Concept,
    Evidence,
    Payload,
    Proposition,
    Retention,
    ValidTime,
)
from core.model.literals import Literal, Ref
from core.mutation.lifecycle import ENGINE_STATES, check_move
from core.mutation.selection import select_targets
from core.mutation.work import Work
from core.protocol.canonical import digest_of
from core.state.indexes import actor_key, assertions_key, object_key, referrers_key, subject_key

POLICIES: Final = ("deny_if_referenced", "tombstone_reference", "authorized_cascade")

STUB: Final = "kip://core@2.0.0/PurgeStub"
"""The facet under which a stub keeps the digest of what it was."""


def purge(work: Work, clause: Purge) -> None:
    """Turn the selected elements into stubs, if nothing forbids it.

    Raises:
        NoemaError: ConstraintViolation for an unknown policy, LegalHoldConflict, PurgeDenied.
    """
    policy = "deny_if_referenced" if clause.reference_policy is None else plain_value(clause.reference_policy)
    if policy not in POLICIES:
        raise NoemaError(
            "ConstraintViolation",
            f"there is no reference policy {str(policy)[:40]}",
            details={"allowed": list(POLICIES)},
        )
    chosen = dict.fromkeys(
        item.id for item in select_targets(work, clause.target, clause.where, clause.limit)
    )
    for element_id in chosen:
        _check(work, element_id)
    if policy == "authorized_cascade":
        chosen = _closure(work, chosen)
    elif policy == "tombstone_reference":
        for element_id in list(chosen):
            for referrer in _referrers(work, element_id):
                if referrer.id not in chosen:
                    _tombstone(work, referrer)
    else:
        _deny_if_referenced(work, chosen)
    work.purged.update(chosen)


def _check(work: Work, element_id: str) -> AnyElement:
    """Refuse an element that may not be erased: a hold wins over everything."""
    edit = work.edit(element_id, "purge")
    if edit.base is None:
        raise NoemaError("InvalidLifecycleTransition", "PURGE is about elements that already exist")
    if edit.base.retention.legal_hold:
        raise NoemaError(
            "LegalHoldConflict", "a legal hold keeps the element", details={"element": element_id}
        )
    if edit.base.system.state != "purged":
        check_move(ENGINE_STATES, edit.base.system.state, "purged", element_id)
    return edit.base


def _deny_if_referenced(work: Work, chosen: dict[str, None]) -> None:
    for element_id in chosen:
        blocking = [found for found in _referrers(work, element_id) if found.id not in chosen]
        if blocking:  # what the caller may not see blocks too, and is neither named nor counted
            shown = [found.id for found in blocking if visible(work.principal, found)]
            raise NoemaError(
                "PurgeDenied",
                "other elements still refer to the one to be erased",
                details={"element": element_id, "referrers": shown[:20], "count": len(shown)},
            )


def _referrers(work: Work, element_id: str) -> Iterator[AnyElement]:
    """Elements that refer to one and are not stubs themselves; each once."""
    view = work.draft.view
    keys = (
        referrers_key(element_id),
        subject_key(element_id),
        object_key(Ref(element_id)),
        assertions_key(element_id),
        actor_key(element_id),
    )
    seen = {element_id}
    for key in keys:
        for found in view.find(key):
            element = work.draft.get(found)
            if found not in seen and element is not None and element.system.state != "purged":
                seen.add(found)
                yield element


def _closure(work: Work, chosen: dict[str, None]) -> dict[str, None]:
    """The chosen elements and everything that refers to them, each authorised and free of holds."""
    pending = list(chosen)
    while pending:
        for referrer in _referrers(work, pending.pop()):
            if referrer.id not in chosen:
                _check(work, referrer.id)
                chosen[referrer.id] = None
                pending.append(referrer.id)
    return chosen


def _tombstone(work: Work, referrer: AnyElement) -> None:
    state = referrer.system.state
    if state in {"active", "archived", "merged"}:
        authorize(work.principal, "tombstone", referrer)
        work.edit(referrer.id, "tombstone").set_field("state", "tombstoned")
        work.move(referrer.id, state, "tombstoned")


# --- stubs


def write_stubs(work: Work) -> None:
    """Write the stubs of everything the statement purges, after all its other writes."""
    for element_id in work.purged:
        element = work.existing(element_id)
        if work.edits[element_id].result():
            raise NoemaError(
                "DuplicateMutationTarget",
                "the statement changes an element that it erases",
                details={"element": element_id},
            )
        if element.system.state == "purged":
            continue
        work.move(element_id, element.system.state, "purged")
        work.draft.change(element, **stub_fields(element), state="purged")


def stub_fields(element: AnyElement) -> dict[str, Any]:
    """What a stub is: kind, class, observation time and a digest of what was there; nothing that can be read."""
    digest = (
        element.content_digest
        if isinstance(element, Evidence)
        else digest_of(msgspec.to_builtins(element, str_keys=True))
    )
    fields: dict[str, Any] = {
        "facets": {STUB: {"content_digest": digest}},
        "structural": (),
        "client_key": None,
        "retention": Retention(),
    }
    if isinstance(element, Concept):
        fields.update(key=None, name=None, canonical_id=None, aliases=(), attributes={}, merged_into=None)
    elif isinstance(element, Proposition):
        fields.update(subject=element.id, object=Literal(None))
    elif isinstance(element, Assertion):
        fields.update(
            stance="uncertain", confidence=None, valid_time=ValidTime(), evidence=(), context_refs=(),
        )  # fmt: skip
    elif isinstance(element, Evidence):
        fields.update(payload=Payload("purged"), source=(), generated_by=None)
    elif isinstance(element, Activity):
        fields.update(inputs=(), outputs=(), associated_actors=(), parameters_digest=None)
    return fields
