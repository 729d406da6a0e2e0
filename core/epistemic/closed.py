"""The closed world: when it may be said that something is not so because it is not there (KIP §24.2).

What lives here: the one stage that rejects by absence. What must never live here: a default; everything else
treats what is not there as unknown.

Four declarations must meet. The **policy** asked for closes worlds (`Policy.closed_world`). The **schema** says of
the predicate `open_world: false` and `closed_world: {evidence_class}`: records of this class list every value of
the subjects that they are about. A **record** of that class, from a source that the space's owner trusts, is what an
Assertion rests on that supports another value of this very subject and predicate and counts at the time asked about.
And the **memory** is whole as far as it matters: nothing is hidden from the caller, no statement of the predicate has
been purged, and nothing that stands has been said of the value itself. Where the last two fail the belief stays
`insufficient`, for a `coverage_gap`.
"""

from __future__ import annotations

from typing import Final

from core.epistemic.case import Case, Judged
from core.epistemic.sight import canonical_term_key
from core.epistemic.stages import judged_about, propositions_of, root_trust
from core.model.elements import Evidence, Proposition
from core.model.ids import kind_of
from core.state.indexes import state_key, subject_key

_GONE: Final = frozenset({"retracted", "superseded", "expired", "outside_valid_time"})
"""A claim left out for one of these does not say the value now; one left out for any other reason might."""


def close_world(case: Case) -> None:
    """Reject a target that nobody speaks of, where a complete record of its subject leaves it out."""
    if not case.request.policy.closed_world or case.material:
        return
    evidence_class = case.sight.closed_by(case.target.predicate_ref)
    if evidence_class is None:
        return
    case.snapshots = _complete_records(case, evidence_class) if _absent(case) else ()
    if case.snapshots:
        case.status = "rejected"
    else:
        case.uncovered = True


def _absent(case: Case) -> bool:
    """Whether the target's value is nowhere in this memory, which the caller sees the whole of."""
    if not case.sight.open or any(judged.excluded not in _GONE for judged, _ in case.judged):
        return False
    return not (_out_of_recall(case) or _purged(case))


def _out_of_recall(case: Case) -> bool:
    """Whether the statement is kept where belief does not look: archived or tombstoned, and not refuted by that."""
    wanted = canonical_term_key(case.sight, case.target.object)
    kept = (
        case.sight.get(found)
        for alias in case.sight.aliases(case.target.subject)
        for found in case.sight.find(subject_key(alias, case.target.predicate_ref))
    )
    return any(
        isinstance(element, Proposition)
        and element.system.state != "active"
        and canonical_term_key(case.sight, element.object) == wanted
        for element in kept
    )


def _purged(case: Case) -> bool:
    """Whether a statement of the predicate has been erased: nobody can say which one it was."""
    stubs = (
        case.sight.get(found)
        for found in case.sight.find(state_key("purged"))
        if kind_of(found) == "proposition"
    )
    return any(
        isinstance(stub, Proposition) and stub.predicate_ref == case.target.predicate_ref for stub in stubs
    )


def _complete_records(case: Case, evidence_class: str) -> tuple[str, ...]:
    """The trusted records of a class on which claims about the target's subject and predicate rest."""
    found: dict[str, None] = {}
    for proposition in propositions_of(case):
        for judged in judged_about(case.session, proposition):
            case.consulted.append(judged)
            found.update(dict.fromkeys(_records(case, judged, evidence_class)))
    return tuple(found)


def _records(case: Case, judged: Judged, evidence_class: str) -> list[str]:
    assertion = judged.assertion
    if judged.excluded is not None or assertion.stance != "support" or judged.provenance is None:
        return []
    return [
        root.element
        for root in judged.provenance.roots
        if isinstance(record := case.sight.get(root.element), Evidence)
        and record.evidence_class == evidence_class
        and record.status == "active"
        and record.system.state == "active"
        and root_trust(case.session, assertion, root) == "trusted"
    ]
