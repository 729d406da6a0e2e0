"""Sleep tasks: work that rules can find and not do, left for whoever can (profile §5.9).

What lives here: which claims contradict each other, and the SleepTask that says so. What must never live here: who
is right. Actors who disagree both stay on record; a task only asks that somebody look (KIP §14.2, §25).
"""

from __future__ import annotations

import hashlib
from typing import Final, Literal

from core.agents.maintenance.decay import SLEEP_TASK
from core.agents.vocabulary import FUNCTIONAL, PROFILE, local_name
from core.model.elements import Activity, Assertion, Concept, Json, Proposition, StructuralRef
from core.model.instants import format_instant
from core.schema.definitions import PredicateType
from core.schema.environment import Environment
from core.state.indexes import assertions_key, subject_key
from core.state.view import View
from core.transaction.draft import Draft

TaskClass = Literal["consolidate", "review_conflict"]
ABOUT: Final = f"{PROFILE}/about"
MOST: Final = 50  # values of one slot, and claims of one value, that are compared
_OPEN: Final = frozenset({"pending", "running", "blocked"})


def conflicting(view: View, env: Environment, proposition_id: str) -> tuple[Assertion, ...]:
    """Claims in force that cannot all hold: for and against one statement, or for two values where one can be.

    Only claims about times that overlap contradict each other. Empty where there is no contradiction.
    """
    target = view.get(proposition_id)
    if not isinstance(target, Proposition):
        return ()
    mine = _claims(view, target.id)
    backing = [claim for claim in mine if claim.stance == "support"]
    rivals = [claim for claim in mine if claim.stance == "reject"]
    if _single(env, target.predicate_ref):
        for other in view.find(subject_key(target.subject, target.predicate_ref))[:MOST]:
            if other != target.id:
                rivals += [claim for claim in _claims(view, other) if claim.stance == "support"]
    found: dict[str, Assertion] = {}
    for claim in backing:
        for rival in rivals:
            if _overlap(claim, rival):
                found |= {claim.id: claim, rival.id: rival}
    return tuple(found.values())


def _single(env: Environment, predicate_ref: str) -> bool:
    """Whether a subject has one value at a time, by the schema or by how the product's own predicates are used."""
    if predicate_ref in FUNCTIONAL:
        return True
    definition = env.known("predicate", predicate_ref)
    return isinstance(definition, PredicateType) and definition.functional


def _claims(view: View, proposition_id: str) -> list[Assertion]:
    found = (view.get(element) for element in view.find(assertions_key(proposition_id))[:MOST])
    return [
        claim
        for claim in found
        if isinstance(claim, Assertion)
        and claim.status == "active"
        and claim.system.state == "active"
        and claim.mode not in ("hypothetical", "predicted")
    ]


def _overlap(one: Assertion, other: Assertion) -> bool:
    a, b = one.valid_time, other.valid_time
    begins = a.until is None or b.start is None or b.start < a.until
    ends = b.until is None or a.start is None or a.start < b.until
    return begins and ends


def file_conflict(draft: Draft, claims: tuple[Assertion, ...]) -> bool:
    """Leave a task to review contradicting claims, one for each subject and predicate; whether it is new.

    The task quotes nothing of the claims: what they say stays where it can be erased. An Activity links it to them.
    """
    target = draft.get(claims[0].proposition)
    if not isinstance(target, Proposition):
        return False
    subject = draft.canonical(target.subject)
    key = _key("review_conflict", subject, target.predicate_ref)
    about = (subject,) if isinstance(draft.get(subject), Concept) else ()
    summary = f"Claims about {local_name(target.predicate_ref)} contradict each other"
    task = file_task(draft, "review_conflict", key, summary, about)
    if task is None:
        return False
    draft.create(
        Activity,
        activity_class="conflict_review",
        status="completed",
        started_at=draft.now,
        ended_at=draft.now,
        inputs=tuple(claim.id for claim in claims),
        outputs=(task.id,),
    )
    return True


def file_unfindable(draft: Draft, concept: Concept) -> bool:
    """Leave a task for a memory that its own words do not find; whether it is new."""
    key = _key("memory_self_test", concept.id)
    summary = "A memory is not found by its own words"
    return file_task(draft, "consolidate", key, summary, (concept.id,), source="memory_self_test") is not None


def file_task(
    draft: Draft,
    task_class: TaskClass,
    key: str,
    summary: str,
    about: tuple[str, ...],
    *,
    source: str = "maintenance",
) -> Concept | None:
    """A pending task under a key, or None while one is open; one that had ended is opened again."""
    known = draft.find_concept(SLEEP_TASK, key)
    stands = known is not None and known.system.state == "active"
    if stands and known is not None and known.attributes.get("status") in _OPEN:
        return None
    attributes: dict[str, Json] = {
        "task_class": task_class,
        "summary": summary,
        "status": "pending",
        "created_at": format_instant(draft.now),
        "source": source,
    }
    if known is not None:
        return draft.change(known, attributes={**known.attributes, **attributes}) if stands else None
    links = tuple(StructuralRef(ABOUT, element) for element in about)
    return draft.create(Concept, schema_ref=SLEEP_TASK, key=key, attributes=attributes, structural=links)


def _key(*parts: str) -> str:
    """Tells tasks apart without naming what they are about."""
    return f"{parts[0]}:{hashlib.sha256(chr(31).join(parts).encode()).hexdigest()[:32]}"
