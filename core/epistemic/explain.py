"""A projection as JSON, with as much of its reasons as was asked for and may be shown (KIP §27.2, §27.4, §49).

What lives here: the output shapes and the three explanation levels. What must never live here: decisions. Nothing
here is a chain of thought: everything shown is a record, a rule or a count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from core.epistemic.case import Case, Group, Judged, Side
from core.epistemic.sight import Request
from core.model.elements import Json
from core.model.instants import format_instant
from core.model.literals import Literal, Ref, Term

_ROOTLESS: Final = "provenance_required_but_missing"
_LEVELS: Final = {
    "accepted": "low",
    "rejected": "low",
    "contested": "high",
    "uncertain": "medium",
    "insufficient": "high",
}


def term_json(term: Term) -> Json:
    """An object of a tuple as JSON: a reference, a plain scalar, or a literal with its datatype and language."""
    if isinstance(term, Ref):
        return {"id": term.id}
    if isinstance(term, Literal) and term.datatype is None and term.language is None:
        return term.value
    return {"value": term.value, "datatype": term.datatype, "language": term.language}


class Shown:
    """What of a projection's inputs may be named to the caller; remembers whether something was left out."""

    def __init__(self, case: Case) -> None:
        self.sight = case.sight
        self.redacted = False

    def id(self, element_id: str) -> bool:
        """Whether this element may be named."""
        if self.sight.open:
            return True
        element = self.sight.get(element_id)
        if element is not None and self.sight.readable(element):
            return True
        self.redacted = True
        return False

    def only(self, judged: Iterable[Judged]) -> list[Judged]:
        """The Assertions that may be named."""
        return [item for item in judged if self.id(item.assertion.id)]


def belief_json(case: Case) -> dict[str, Json]:
    """The virtual result of a BELIEF (KIP §27.2, §46.2)."""
    shown = Shown(case)
    named = case.target.proposition or (case.propositions[0].id if case.propositions else None)
    reasons: list[Json] = list(case.doubts)
    out: dict[str, Json] = {
        "proposition_id": named,
        "proposition": {
            "subject": {"id": case.target.subject},
            "predicate_ref": case.target.predicate_ref,
            "object": term_json(case.target.object),
        },
        "status": case.status,
        "support": _side(case, "support", shown),
        "opposition": _side(case, "opposition", shown),
        "uncertainty": {"level": _LEVELS[case.status], "reasons": reasons},
        **_frame(case.request),
    }
    if case.snapshots:  # KIP §24.2: rejected by absence, and by whose record
        out["closed_world"] = {
            "subject": {"id": case.target.subject},
            "predicate_ref": case.target.predicate_ref,
            "evidence_ids": list(case.snapshots),
        }
    level = case.request.explanation
    out["explanation"] = (
        {} if level == "none" else summary(case) if level == "summary" else _ledger(case, shown)
    )
    if shown.redacted:
        out["explanation_redacted"] = True  # KIP §49.2: a part never looks like the whole
    return out


def _frame(request: Request) -> dict[str, Json]:
    return {
        "temporal": {"valid_at": format_instant(request.valid_at), "as_of_seq": request.as_of_seq},
        "policy": request.policy.identity,
    }


def timed(value: dict[str, Json], request: Request) -> dict[str, Json]:
    """A virtual result, and those within a slot's, as one about the time of another request."""
    out = {**value, **_frame(request)}
    if "candidate_projections" in value:
        out["candidate_projections"] = [timed(belief, request) for belief in value["candidate_projections"]]
    return out


def _side(case: Case, side: Side, shown: Shown) -> dict[str, Json]:
    judged = [material.judged for material in case.material if material.side == side]
    return {
        "score": case.scores[side],
        "score_semantics": case.request.policy.score_semantics,
        "assertion_ids": [item.assertion.id for item in shown.only(judged)],
        "root_groups": [_label(group, place, shown) for place, group in enumerate(case.groups[side])],
    }


def _label(group: Group, place: int, shown: Shown) -> str:
    """A group's name: its first root, or its place where the root may not be named."""
    return group.label if shown.id(group.label) else f"group-{place + 1}"


def summary(case: Case) -> dict[str, Json]:
    """The leading factors in plain words, and what to beware of."""
    support, opposition = case.groups["support"], case.groups["opposition"]
    claims = {side: sum(len(group.members) for group in case.groups[side]) for side in case.groups}
    factors = [
        f"{_count(claims['support'], 'Assertion')} from {_count(len(support), 'independent root')} support it",
        f"{_count(claims['opposition'], 'Assertion')} from {_count(len(opposition), 'independent root')} oppose it",
    ]
    if claims["uncertain"]:
        factors.append(f"uncertain about it: {_count(claims['uncertain'], 'Assertion')}")
    excluded = [judged for judged, _ in case.judged if judged.excluded is not None]
    if excluded:
        factors.append(f"left out: {_count(len(excluded), 'Assertion')}")
    if case.snapshots:
        factors.append(f"left out by {_count(len(case.snapshots), 'complete record')} of its subject")
    return {"leading_factors": factors, "warnings": _warnings(case)}


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _warnings(case: Case) -> list[Json]:
    out: list[Json] = []
    rootless = [judged.provenance for judged, _ in case.judged if judged.excluded == _ROOTLESS]
    if any(provenance is not None and not provenance.gaps for provenance in rootless):
        out.append("circular provenance: claims that rest on each other alone count for nothing")
    if any(provenance is not None and provenance.gaps for provenance in rootless):
        out.append(
            "premises that are withdrawn or only supposed: claims that rest on them alone count for nothing"
        )
    if any(judged.provenance and judged.provenance.gaps for judged, _ in case.judged):
        out.append("some of what is cited is not available")
    if any(judged.provenance and judged.provenance.corrected for judged, _ in case.judged):
        out.append("some of the Evidence has been corrected since it was cited")
    if len(case.propositions) > 1:
        out.append("statements about merged identities are read as one")
    return out


def _ledger(case: Case, shown: Shown) -> dict[str, Json]:
    """The Epistemic Ledger (KIP §27.4)."""
    excluded = [(item, rival) for item, rival in case.judged if item.excluded is not None]
    out: dict[str, Json] = {
        **summary(case),
        "method": case.request.policy.method,
        "purpose": case.request.purpose,
        "risk": case.request.risk,
        "eligible_assertions": [
            {**_claim(material.judged, shown), "side": material.side, "rival": material.rival}
            for material in case.material
            if shown.id(material.judged.assertion.id)
        ],
        "excluded_assertions": [
            {"id": item.assertion.id, "reason": item.excluded, "rival": rival}
            for item, rival in excluded
            if shown.id(item.assertion.id)
        ],
        "support_root_groups": [_group(group, place, shown) for place, group in _numbered(case, "support")],
        "opposition_root_groups": [
            _group(group, place, shown) for place, group in _numbered(case, "opposition")
        ],
        "uncertainty_reasons": list(case.doubts),
        "temporal_exclusions": [
            item.assertion.id
            for item, _ in excluded
            if item.excluded == "outside_valid_time" and shown.id(item.assertion.id)
        ],
        "conflict_set": [
            {"proposition_id": rival.id, "object": term_json(rival.object)}
            for rival in case.rivals
            if shown.id(rival.id)
        ],
    }
    if case.request.include_historical:
        out["historical_assertions"] = [
            {**_claim(item, shown), "status": item.assertion.status}
            for item, rival in excluded
            if not rival and item.excluded in {"retracted", "superseded", "expired"}
            if shown.id(item.assertion.id)
        ]
    return out


def _numbered(case: Case, side: Side) -> Iterable[tuple[int, Group]]:
    return enumerate(case.groups[side])


def _claim(judged: Judged, shown: Shown) -> dict[str, Json]:
    assertion = judged.assertion
    out: dict[str, Json] = {
        "id": assertion.id,
        "asserted_by": assertion.asserted_by if shown.id(assertion.asserted_by) else None,
        "stance": assertion.stance,
        "mode": assertion.mode,
        "confidence": assertion.confidence,
        "trust": judged.trust,
        "roots": [
            root.element
            for root in (judged.provenance.roots if judged.provenance else ())
            if shown.id(root.element)
        ],
    }
    if judged.weight:
        out["weight"] = round(judged.weight, 6)
    return out


def _group(group: Group, place: int, shown: Shown) -> dict[str, Json]:
    return {
        "id": _label(group, place, shown),
        "roots": [root for root in group.roots if shown.id(root)],
        "assertion_ids": [item.assertion.id for item in shown.only(group.members)],
        "trust": group.trust,
        "weight": round(group.weight, 6),
    }


def slot_json(
    request: Request, slot: tuple[str, str], status: str, accepted: list[Case], candidates: list[Case]
) -> dict[str, Json]:
    """The virtual result of a BELIEF SLOT (KIP §47.3); `slot` is its subject and its predicate."""
    beliefs = [belief_json(case) for case in candidates]
    reasons = list(dict.fromkeys(doubt for case in candidates for doubt in case.doubts))
    if not candidates:
        reasons = ["insufficient_evidence"]
    out: dict[str, Json] = {
        "subject": {"id": slot[0]},
        "predicate_ref": slot[1],
        "status": status,
        "accepted_values": [term_json(case.target.object) for case in accepted],
        "candidate_projections": beliefs,
        "uncertainty": {"level": _LEVELS[status], "reasons": reasons},
        **_frame(request),
        "explanation": {},
    }
    if request.explanation != "none":
        out["explanation"] = {
            "leading_factors": [f"{len(accepted)} of {len(candidates)} stored values are accepted"],
            "warnings": list(
                dict.fromkeys(
                    text for belief in beliefs for text in belief["explanation"].get("warnings", ())
                )
            ),
        }
    if any("explanation_redacted" in belief for belief in beliefs):
        out["explanation_redacted"] = True
    return out
