"""Whether an Assertion may count at all: lifecycle, valid time, mode, context (Epistemic Model §59-61).

What lives here: the checks, each of which may say why not, in the order in which they are asked. What must never
live here: provenance and trust; those say how much what counts is worth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from core.epistemic.sight import Request
from core.model.elements import Assertion

Reason = Literal[
    "not_visible", "retracted", "superseded", "expired", "outside_valid_time", "outside_as_of_time",
    "hypothetical_not_requested", "prediction_not_requested", "context_mismatch", "invalid_schema",
    "unresolved_identity", "policy_excluded", "provenance_required_but_missing",
]  # fmt: skip
"""Why an Assertion does not count (Epistemic Model §137). `not_visible` is never shown: what may not be seen is
not there."""


def in_recall(assertion: Assertion, request: Request) -> Reason | None:  # noqa: ARG001 - one shape for all checks
    """An archived or tombstoned record has left ordinary recall; that says nothing about its claim (KIP §60)."""
    return None if assertion.system.state == "active" else "policy_excluded"


def in_force(assertion: Assertion, request: Request) -> Reason | None:  # noqa: ARG001
    """Retracted, superseded and expired claims are history (KIP §14)."""
    return None if assertion.status == "active" else assertion.status


def in_time(assertion: Assertion, request: Request) -> Reason | None:
    """The claim must hold at the world time asked about: from inclusive, until exclusive, open where unsaid."""
    valid = assertion.valid_time
    after = valid.start is None or valid.start <= request.valid_at
    before = valid.until is None or request.valid_at < valid.until
    return None if after and before else "outside_valid_time"


def in_mode(assertion: Assertion, request: Request) -> Reason | None:
    """Suppositions and forecasts are not reports, unless they are what is asked for (KIP §26)."""
    mode = assertion.mode
    if mode in request.policy.modes or (mode == "hypothetical" and request.include_hypothetical):
        return None
    if mode == "hypothetical":
        return "hypothetical_not_requested"
    return "prediction_not_requested" if mode == "predicted" else "policy_excluded"


def in_context(assertion: Assertion, request: Request) -> Reason | None:
    """A claim bound to other contexts than the one asked about says nothing here (KIP §25.3)."""
    if request.context is None or not assertion.context_refs:
        return None
    return None if request.context.intersection(assertion.context_refs) else "context_mismatch"


CHECKS: Final[tuple[Callable[[Assertion, Request], Reason | None], ...]] = (
    in_recall,
    in_force,
    in_time,
    in_mode,
    in_context,
)


def carries(premise: Assertion, request: Request) -> bool:
    """Whether a claim may stand behind another: not once it is withdrawn, and not while it is only supposed.

    So a hypothesis does not become a fact by an inference (KIP §26.1), and a conclusion falls with its premises.
    """
    supposed = {"hypothetical_not_requested", "prediction_not_requested"}
    return in_force(premise, request) is None and in_mode(premise, request) not in supposed
