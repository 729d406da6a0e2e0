"""Epistemic policies, the projection's contract, and trust, as far as a caller may know them (KIP §22, §27).

What lives here: DESCRIBE EPISTEMIC POLICY, PROJECTION CAPABILITY and TRUST, LIST EPISTEMIC POLICIES. What must never
live here: a projection. Whom a space trusts is its owner's secret; what an answer means is everyone's.
"""

from __future__ import annotations

from typing import Final, get_args

from core.authority import allows, holds
from core.epistemic.case import Doubt, Status
from core.epistemic.eligibility import Reason
from core.epistemic.policy import BASELINE, DISCOUNT, POLICIES, Policy, find_policy
from core.epistemic.sight import EXPLANATIONS
from core.epistemic.trust import TrustClass, TrustScope
from core.errors import NoemaError
from core.language.ast_meta import Describe, ListStatement
from core.meta.operands import coordinates, optional_text
from core.meta.paging import page_of
from core.model.elements import Json, Mode
from core.transaction.scope import Answer, Scope

_NOT_SHOWN: Final = frozenset({"not_visible"})  # what may not be seen is not there, so no answer says it

_UNSTATED: Final = (
    "A rule of this policy: a claim without a confidence is weighed as if it had this one. "
    "The claim itself states none, is shown with none, and is not taken for distrusted (KIP §13.6)."
)
_CLOSED_SCOPE: Final = (
    "One subject and predicate at a time: where the schema declares the predicate open_world false and closed_world "
    "by an evidence_class, and a claim of that subject and predicate rests on trusted Evidence of that class. "
    "A value that nothing there speaks of is rejected, and the result names the Evidence; everywhere else absence "
    "is insufficient."
)


def policy(statement: Describe, scope: Scope) -> Answer:
    """DESCRIBE EPISTEMIC POLICY, the default's where none is named.

    Raises:
        NoemaError: ProjectionPolicyUnavailable.
    """
    found = find_policy(optional_text(statement.subject, "DESCRIBE EPISTEMIC POLICY"))
    return Answer(value=_described(found), context=coordinates(scope))


def policies(statement: ListStatement, scope: Scope) -> Answer:
    """LIST EPISTEMIC POLICIES: every one a WITH EPISTEMIC may name; they come with the engine, not the space."""
    page = page_of("list", statement, scope, usual=100, most=1_000)
    start = int(page.at.get("o", 0))
    found = list(POLICIES.values())
    rows = [_listed(each) for each in found[start : start + page.size]]
    more = page.size > 0 and start + page.size < len(found)
    return Answer(
        value=rows,
        context=coordinates(scope),
        next_cursor=page.cursor(o=start + page.size) if more else None,
    )


def _listed(found: Policy) -> dict[str, Json]:
    return {
        "policy_id": found.id,
        "version": str(found.version),
        "description": found.description,
        "default": found is BASELINE,
    }


def _described(found: Policy) -> dict[str, Json]:
    scored = found.score_semantics is not None
    value: dict[str, Json] = {
        **_listed(found),
        "method": found.method,
        "statuses": list(get_args(Status)),
        "score_semantics": found.score_semantics,
        "modes": sorted(found.modes),
        "imported": "only where the source is trusted" if found.imported_needs_trust else "counts, held back",
        "trust_classes": list(get_args(TrustClass)),
        "explanation_levels": list(EXPLANATIONS),
        "closed_world_scope": _CLOSED_SCOPE if found.closed_world else None,
        "time": "a claim counts where its valid_time covers the time asked about; without one it always does",
    }
    if scored:
        value["thresholds"] = {"accept": found.accept, "material": found.material}
        value["unstated_confidence"] = found.unstated
        value["unstated_confidence_note"] = _UNSTATED
        value["trust_discount"] = DISCOUNT
    return value


def capability(_: Describe, scope: Scope) -> Answer:
    """DESCRIBE PROJECTION CAPABILITY: what BELIEF takes, and what its answers can say."""
    value: dict[str, Json] = {
        "available": allows(scope.context.principal, "project"),
        "default_policy": _listed(BASELINE),
        "policies": list(POLICIES),
        "options": {
            "policy": "an id of LIST EPISTEMIC POLICIES",
            "purpose": "free text that trust records may name",
            "risk": "free text, reported back",
            "include_historical": "boolean",
            "include_hypothetical": "boolean",
            "explanation": list(EXPLANATIONS),
        },
        "statuses": list(get_args(Status)),
        "modes": list(get_args(Mode)),
        "exclusion_reasons": [reason for reason in get_args(Reason) if reason not in _NOT_SHOWN],
        "uncertainty_reasons": list(get_args(Doubt)),
        "max_projections": scope.context.limits.projections,
        "max_provenance_nodes": scope.context.limits.provenance_nodes,
        "materialized": True,
        "closed_world": [found.id for found in POLICIES.values() if found.closed_world],
    }
    return Answer(value=value, context=coordinates(scope))


def trust(statement: Describe, scope: Scope) -> Answer:
    """DESCRIBE TRUST [subject]: the vocabulary for everyone; what is said of whom only for who may do everything.

    A subject that is not recorded gets the default, whether it exists or not.

    Raises:
        NoemaError: NotAuthorized for a subject, to a caller of limited permissions.
    """
    subject = optional_text(statement.subject, "DESCRIBE TRUST")
    state = scope.trust
    owner = holds(scope.context.principal, "manage_trust")
    value: dict[str, Json] = {
        "classes": list(get_args(TrustClass)),
        "scopes": list(get_args(TrustScope)),
        "trust_version": state.version,
        "note": "Set by the space's owner, never by what a memory says; trust grants no authority.",
    }
    if subject is not None and not owner:
        raise NoemaError("NotAuthorized", "whom this space trusts is for its owner to know")
    if not owner:
        return Answer(value={**value, "records": "not_shown"}, context=coordinates(scope))
    records = [
        {
            "scope": record.scope,
            "subject": record.subject,
            "trust": record.trust,
            "purpose": record.purpose,
            "mode": record.mode,
        }
        for record in state.records
        if subject in {None, record.subject}
    ]
    value.update(default=state.default, records=records)
    if subject is not None:
        value["subject"] = subject
        value["stated"] = bool(records)
    return Answer(value=value, context=coordinates(scope))
