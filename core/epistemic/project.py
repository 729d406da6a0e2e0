"""Projection: a target, or a whole slot, to its virtual result (KIP §21, §46, §47).

What lives here: the runner of the pipeline, and the slot as a view over its candidates. What must never live here:
anything that writes. The same state and request always give the same result.
"""

from __future__ import annotations

from core.epistemic.case import Case, Session, Status
from core.epistemic.explain import belief_json, slot_json
from core.epistemic.sight import Target, canonical_term_key
from core.epistemic.stages import STAGES, slot_propositions
from core.model.elements import Json
from core.model.literals import Ref


def project(session: Session, target: Target) -> dict[str, Json]:
    """The belief about one statement, stored or not (KIP §46.4)."""
    return belief_json(examine(session, target))


def examine(session: Session, target: Target) -> Case:
    """A target after every stage, for callers that want the parts."""
    case = Case(session, target)
    for stage in STAGES:
        stage(case)
    return case


def project_slot(session: Session, subject: str, predicate_ref: str) -> dict[str, Json]:
    """The belief about one subject and predicate: every stored value, and what they come to (KIP §47)."""
    candidates = [examine(session, target) for target in slot_targets(session, subject, predicate_ref)]
    status, accepted = slot_status(session, predicate_ref, candidates)
    return slot_json(session.request, (subject, predicate_ref), status, accepted, candidates)


def slot_targets(session: Session, subject: str, predicate_ref: str) -> list[Target]:
    """One target for each distinct stored value, in order of creation; merged values are one (KIP §11.4)."""
    sight = session.sight
    found: dict[str, Target] = {}
    for proposition in slot_propositions(session, subject, predicate_ref):
        obj = proposition.object
        if isinstance(obj, Ref):
            if sight.get(obj.id) is None:
                continue  # a value that may not be seen is not there
            obj = Ref(sight.canonical(obj.id))
        found.setdefault(canonical_term_key(sight, obj), Target(subject, predicate_ref, obj, proposition.id))
    return list(found.values())


def slot_status(session: Session, predicate_ref: str, candidates: list[Case]) -> tuple[Status, list[Case]]:
    """A slot's status and its accepted values.

    A functional predicate takes one value at a time. All candidates were judged at one instant, so two strongly
    supported values overlap in time and contest each other; none of them is picked (KIP §25.1, KQL-022).
    """
    accepted = [case for case in candidates if case.status == "accepted"]
    if session.sight.functional(predicate_ref):
        strong = [case for case in candidates if case.strong_support or case.status == "accepted"]
        if len(strong) > 1:
            return "contested", []
    if accepted:
        return "accepted", accepted
    statuses = {case.status for case in candidates}
    if "contested" in statuses:
        return "contested", []
    return ("uncertain", []) if "uncertain" in statuses else ("insufficient", [])
