"""The projection pipeline: from a target to a belief status, one stage after the other (Epistemic Model §55-68).

What lives here: the stages, in the order in which they run. What must never live here: the text of an explanation
(`explain`). Visibility is not a stage: a `Sight` gives nothing that may not be used, so hidden material takes part
in nothing at all (KIP §30.4, §88.5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from core.epistemic.case import Case, Doubt, Group, Judged, Material, Session, Side, Status
from core.epistemic.eligibility import CHECKS
from core.epistemic.policy import DISCOUNT
from core.epistemic.provenance import Provenance, Root
from core.epistemic.sight import canonical_term_key
from core.epistemic.trust import TrustClass, best, worse
from core.model.elements import Assertion, Proposition
from core.model.ids import sort_key
from core.state.indexes import assertions_key, subject_key

# --- 2. semantic grounding, 3. conflict-set expansion


def ground(case: Case) -> None:
    """Find every Proposition that says what the target says, under any name a merge has joined (KIP §11.4)."""
    wanted = canonical_term_key(case.sight, case.target.object)
    for proposition in propositions_of(case):
        if canonical_term_key(case.sight, proposition.object) == wanted:
            case.propositions.append(proposition)
    named = case.target.proposition
    if named is not None and all(known.id != named for known in case.propositions):
        element = case.sight.get(named)  # addressed by id, it need not be in ordinary recall
        if isinstance(element, Proposition) and element.system.state != "purged":
            case.propositions.append(element)


def propositions_of(case: Case) -> Iterator[Proposition]:
    """The active Propositions of the target's subject and predicate, under any name."""
    return slot_propositions(case.session, case.target.subject, case.target.predicate_ref)


def slot_propositions(session: Session, subject: str, predicate_ref: str) -> Iterator[Proposition]:
    """The active Propositions of a subject, under any name, and a predicate, in order of creation."""
    found = [
        element
        for alias in session.sight.aliases(subject)
        for candidate in session.sight.find(subject_key(alias, predicate_ref))
        if isinstance(element := session.sight.get(candidate), Proposition)
        and element.system.state == "active"
        and element.predicate_ref == predicate_ref
    ]
    found.sort(key=lambda element: sort_key(element.id))
    return iter(found)


def expand_conflicts(case: Case) -> None:
    """Add what cannot be true beside the target: other values of a functional predicate (KIP §25.1)."""
    if case.request.policy.expand_conflicts and case.sight.functional(case.target.predicate_ref):
        own = {proposition.id for proposition in case.propositions}
        case.rivals.extend(rival for rival in propositions_of(case) if rival.id not in own)


def gather(case: Case) -> None:
    """Judge every Assertion about the target and its rivals, each once in a query."""
    for proposition in case.propositions:
        case.judged.extend((judged, False) for judged in judged_about(case.session, proposition))
    for proposition in case.rivals:
        case.judged.extend((judged, True) for judged in judged_about(case.session, proposition))


def judged_about(session: Session, proposition: Proposition) -> Iterator[Judged]:
    """Every Assertion about a Proposition, each judged once in a query."""
    for found in session.sight.find(assertions_key(proposition.id)):
        known = session.judged.get(found)
        if known is None:
            element = session.sight.get(found)
            if not isinstance(element, Assertion) or element.proposition != proposition.id:
                continue
            known = session.judged[found] = judge(session, element)
        yield known


# --- 7. provenance, 9. trust, 10. what one Assertion weighs


def judge(session: Session, assertion: Assertion) -> Judged:
    """One Assertion on its own: why it does not count, or what it rests on and what it weighs."""
    request = session.request
    for check in CHECKS:
        reason = check(assertion, request)
        if reason is not None:
            return Judged(assertion, reason)
    provenance = session.roots.behind(assertion)
    if not provenance.roots:  # a circle, or withdrawn premises: it rests on nothing (KIP §23.5)
        return Judged(assertion, "provenance_required_but_missing", provenance)
    trust = trust_of(session, assertion, provenance)
    policy = request.policy
    imported = assertion.mode == "imported" and trust != "trusted"
    if trust == "untrusted" or (imported and policy.imported_needs_trust):
        return Judged(assertion, "policy_excluded", provenance, trust)
    weight = 0.0
    if policy.method == "graded-independent-roots":
        confidence = policy.unstated if assertion.confidence is None else assertion.confidence
        weight = confidence * DISCOUNT[trust]
        if imported:
            weight = min(weight, policy.imported_at_most)
    return Judged(assertion, None, provenance, trust, weight)


def trust_of(session: Session, assertion: Assertion, provenance: Provenance) -> TrustClass:
    """The trust of an Assertion: that of its best root, lowered by whoever reported it on the way (KIP §22)."""
    return best(root_trust(session, assertion, root) for root in provenance.roots)


def root_trust(session: Session, assertion: Assertion, root: Root) -> TrustClass:
    """The trust of one root as an Assertion brings it."""
    trust = session.request.trust
    if trust.silent:
        return trust.default
    own = trust.said(root.trust, assertion.mode) or trust.default
    passed = trust.said(root.via, assertion.mode)
    found = own if passed is None else worse(own, passed)
    imports = [subject for subject in (*root.trust, *root.via) if subject[0] == "import"]
    if imports and trust.said(imports, assertion.mode) is None:
        # KIP §39.5: words that a Capsule puts into a trusted mouth are not that mouth's, until the import is trusted.
        found = worse(found, "unknown")
    return found


# --- sides


def take_sides(case: Case) -> None:
    """Put each Assertion that counts on its side (KIP §13.4, §25.1).

    Rejecting a rival supports nothing: not the other value, nor the opposite of a boolean (KIP §12.7).
    """
    for judged, rival in case.judged:
        if judged.excluded is not None:
            continue
        stance = judged.assertion.stance
        if rival:
            if stance == "support":
                case.material.append(Material(judged, "opposition", rival=True))
        elif stance == "uncertain":
            case.material.append(Material(judged, "uncertain"))
        else:
            case.material.append(Material(judged, "support" if stance == "support" else "opposition"))


# --- 8. root groups


def group_roots(case: Case) -> None:
    """Collapse claims of one origin into one group on each side (KIP §23.1-23.4).

    Its strongest claim speaks for a group, but a summary or an inference only where nobody speaks at first hand:
    what is derived never makes its own premise stronger (KIP §26.6).
    """
    for side in case.groups:
        members = [material.judged for material in case.material if material.side == side]
        case.groups[side] = list(_groups(members))


def _groups(members: list[Judged]) -> Iterator[Group]:
    """The connected components of claims that share a key, in order of their first claim."""
    leader: dict[str, int] = {}
    parent = list(range(len(members)))

    def find(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    for place, judged in enumerate(members):
        for key in judged.keys:
            other = find(leader.setdefault(key, place))
            mine = find(place)
            parent[max(mine, other)] = min(mine, other)
    components: dict[int, list[Judged]] = {}
    for place, judged in enumerate(members):
        components.setdefault(find(place), []).append(judged)
    for component in components.values():
        first_hand = [judged for judged in component if judged.provenance and judged.provenance.first_hand]
        roots = sorted(
            {root.element for judged in component if judged.provenance for root in judged.provenance.roots},
            key=sort_key,
        )
        yield Group(
            label=roots[0],
            roots=tuple(roots),
            members=tuple(component),
            trust=best(judged.trust for judged in component),
            weight=max(judged.weight for judged in first_hand or component),
        )


# --- 11. aggregation


def aggregate(case: Case) -> None:
    """Add up independent groups: each leaves open what the others left open, 1 - (1 - a)(1 - b) (KIP §27.3)."""
    if case.request.policy.score_semantics is None:
        return
    sides: tuple[Side, ...] = ("support", "opposition")
    for side in sides:
        open_part = 1.0
        for group in case.groups[side]:
            open_part *= 1.0 - group.weight
        case.scores[side] = round(1.0 - open_part, 6)


# --- 12. uncertainty, 13. classification


def classify(case: Case) -> None:
    """Give the status by the policy's method (KIP §21.3-21.8)."""
    case.status = METHODS[case.request.policy.method](case)


def _by_presence(case: Case) -> Status:
    """The portable policy: trusted roots decide, weaker material only makes it uncertain."""
    support = any(group.strong for group in case.groups["support"])
    opposition = any(group.strong for group in case.groups["opposition"])
    if support and opposition:
        return "contested"
    if support or opposition:
        return "accepted" if support else "rejected"
    return "uncertain" if case.material else "insufficient"


def _by_score(case: Case) -> Status:
    policy = case.request.policy
    support, opposition = case.scores["support"] or 0.0, case.scores["opposition"] or 0.0
    if not case.material:
        return "insufficient"
    if support >= policy.accept and opposition < policy.material:
        return "accepted"
    if opposition >= policy.accept and support < policy.material:
        return "rejected"
    if support >= policy.material and opposition >= policy.material:
        return "contested"
    return "uncertain"


METHODS: Final[dict[str, Callable[[Case], Status]]] = {
    "root-presence": _by_presence,
    "graded-independent-roots": _by_score,
}


def analyse_uncertainty(case: Case) -> None:
    """Say why the belief is less than certain (Epistemic Model §139)."""
    material = [item.judged for item in case.material]
    groups = case.groups["support"] + case.groups["opposition"]
    found: list[tuple[Doubt, bool]] = [
        ("insufficient_evidence", case.status in {"insufficient", "uncertain"}),
        ("conflicting_evidence", bool(case.groups["support"]) and bool(case.groups["opposition"])),
        (
            "low_source_trust",
            bool(material) and all(item.trust in {"weak", "low_trust"} for item in material),
        ),
        ("missing_provenance", any(item.provenance and item.provenance.gaps for item in material)),
        ("correlated_sources", any(len(group.members) > 1 for group in groups)),
        (
            "derived_only",
            bool(material) and all(item.assertion.mode == "inferred" for item in material),
        ),
        ("coverage_gap", case.uncovered),
    ]
    case.doubts = [doubt for doubt, holds in found if holds]
