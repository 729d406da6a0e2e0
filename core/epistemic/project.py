"""Projection: a target, or a whole slot, to its virtual result (KIP §21, §46, §47).

What lives here: the runner of the pipeline, and the slot as a view over its candidates. What must never live here:
anything that writes. The same state and request always give the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from core.epistemic.case import Case, Session, Status
from core.epistemic.closed import close_world
from core.epistemic.explain import belief_json, slot_json, timed
from core.epistemic.sight import Request, Target, canonical_term_key
from core.epistemic.stages import (
    aggregate,
    analyse_uncertainty,
    classify,
    expand_conflicts,
    gather,
    ground,
    group_roots,
    slot_propositions,
    take_sides,
)
from core.model.elements import Json
from core.model.instants import Instant
from core.model.literals import Ref

STAGES: Final[tuple[Callable[[Case], None], ...]] = (
    ground,
    expand_conflicts,
    gather,
    take_sides,
    group_roots,
    aggregate,
    classify,
    close_world,
    analyse_uncertainty,
)
"""The pipeline. `gather` runs `CHECKS`, provenance and trust for each Assertion once; see `judge`."""


class Projection(msgspec.Struct, frozen=True):
    """A virtual result, and how long it holds.

    since, until: the world times between which the same claims count (until exclusive; None: open), so that the
    same state gives the same belief about all of them.
    """

    value: dict[str, Json]
    since: Instant | None
    until: Instant | None

    def materialized(self, request: Request) -> Materialized:
        """This projection, made for a request, in the form in which it can be kept."""
        return Materialized(msgspec.json.encode(self.value), request.valid_at, self.since, self.until)


class Materialized(msgspec.Struct, frozen=True):
    """A projection kept beside the state that it is of (KIP §21.9). `valid_at` is its valid-time basis."""

    body: bytes
    valid_at: Instant
    since: Instant | None
    until: Instant | None

    def about(self, request: Request) -> dict[str, Json] | None:
        """The virtual result for a request that differs in its time at most; None where other claims count then."""
        at = request.valid_at
        if (self.since is not None and at < self.since) or (self.until is not None and at >= self.until):
            return None
        value: dict[str, Json] = msgspec.json.decode(self.body)
        return value if at == self.valid_at else timed(value, request)


def project(session: Session, target: Target) -> Projection:
    """The belief about one statement, stored or not (KIP §46.4)."""
    case = examine(session, target)
    return _made(session.request, belief_json(case), [case])


def _made(request: Request, value: dict[str, Json], cases: list[Case]) -> Projection:
    judged = [item for case in cases for item in (*(one for one, _ in case.judged), *case.consulted)]
    turns = [
        turn
        for item in judged
        for turn in (item.assertion.valid_time.start, item.assertion.valid_time.until)
        if turn is not None
    ]
    at = request.valid_at
    return Projection(
        value,
        since=max((turn for turn in turns if turn <= at), default=None),
        until=min((turn for turn in turns if turn > at), default=None),
    )


def examine(session: Session, target: Target) -> Case:
    """A target after every stage, for callers that want the parts."""
    case = Case(session, target)
    for stage in STAGES:
        stage(case)
    return case


def project_slot(session: Session, subject: str, predicate_ref: str) -> Projection:
    """The belief about one subject and predicate: every stored value, and what they come to (KIP §47)."""
    candidates = [examine(session, target) for target in slot_targets(session, subject, predicate_ref)]
    status, accepted = slot_status(session, predicate_ref, candidates)
    value = slot_json(session.request, (subject, predicate_ref), status, accepted, candidates)
    return _made(session.request, value, candidates)


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
