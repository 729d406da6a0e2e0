"""`execute`: KIP 2.0 as one pure call (KIP §32, §71-83).

What lives here: the whole path of a request from envelope to response over values, for one process that holds
the state, and the two halves a commit loop uses (`plan_request`, `respond`). What must never live here: any
loading, waiting or storing. What the engine needs and was not given comes back as a `Need`; the driver answers it
and calls again.

A driver with a log commits unit by unit:

    plan = plan_request(request, space_id, context)
    for unit in plan.units:                      # stop after a failed one if plan.stops
        outcome = run_unit(newest_state, unit, plan, context)
        ...commit outcome.delta, retain outcome.retained() under unit.retry; on a conflict run the unit again
    response = respond(plan, outcomes, meta)
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET

from core.errors import NoemaError
from core.model.elements import Json
from core.model.log import Delta, SpaceMeta
from core.protocol.request import Execution, Request
from core.protocol.response import (
    ExecutionEcho,
    OperationResult,
    Receipt,
    Response,
    ResponseContext,
    failure,
    status_of,
)
from core.state.space import SpaceState
from core.transaction.needs import Missing, Need
from core.transaction.prepare import Plan, Retry, Unit, prepare
from core.transaction.run import UnitOutcome, authority_at, replayed, run_unit
from core.transaction.scope import Context

__all__ = [
    "PHASES", "Context", "Outcome", "Plan", "Unit", "UnitOutcome", "authority_at", "execute", "plan_request", "refused",
    "replayed", "respond", "run_unit", "skipped",
]  # fmt: skip

PHASES: Final = (
    "receive and normalize", "authenticate", "bind the space", "parse and classify", "resolve idempotency",
    "capture the snapshot", "resolve the schema", "authorize", "execute over a draft", "validate",
    "compute the write set", "check preconditions", "commit", "append the commit record", "publish", "receipt",
)  # fmt: skip
"""The order of a request (KIP §32.3). The transport does the second; a driver does the last four as one write.
Authority and preconditions need no second look at commit: the unit runs on the very state it commits onto, and
runs again whenever another commit came first."""


class Retained(msgspec.Struct, frozen=True):
    """An outcome to keep under its key, committed or without effect (KIP §34.3)."""

    retry: Retry
    outcome: Json


class Outcome(msgspec.Struct, frozen=True):
    """What a request came to.

    response: the answer; None only if `need` says what is missing. deltas: commits to append, in order.
    state: the space after them. retained: outcomes to keep under their keys.
    """

    response: Response | None
    deltas: tuple[Delta, ...] = ()
    state: SpaceState | None = None
    retained: tuple[Retained, ...] = ()
    need: Need | None = None


def execute(state: SpaceState, request: Request, context: Context) -> Outcome:
    """Run a request against a state and say what it comes to; nothing outside the returned value changes.

    A state-changing request is several commits in `sequence` and `independent` mode, one otherwise. The
    retained outcome of an idempotency key is asked for as a `RetainedOutcome` need, answered with what `retained`
    of an earlier call held, or None.
    """
    try:
        plan = plan_request(request, state.meta.space_id, context)
    except NoemaError as error:
        return Outcome(failure(error, request), state=state)
    try:
        return _run(state, plan, context)
    except Missing as missing:
        return Outcome(None, state=state, need=missing.need)


def plan_request(request: Request, space_id: str, context: Context) -> Plan:
    """The units of a request; see `core.transaction.prepare.prepare` for what is refused here."""
    return prepare(request, space_id, context)


def _run(state: SpaceState, plan: Plan, context: Context) -> Outcome:
    outcomes: list[UnitOutcome] = []
    deltas: list[Delta] = []
    retained: list[Retained] = []
    committed = state
    for unit in plan.units:
        if plan.stops and outcomes and outcomes[-1].failed:
            outcomes.append(skipped(unit))
            continue
        outcome = _one(state, unit, plan, context)
        outcomes.append(outcome)
        if outcome.delta is not None:
            deltas.append(outcome.delta)
            state = committed = state.apply(outcome.delta)
        elif outcome.tentative is not None:
            state = state.apply(outcome.tentative)
        if unit.retry is not None and not outcome.failed:
            retained.append(Retained(unit.retry, outcome.retained()))
    return Outcome(respond(plan, outcomes, state.meta), tuple(deltas), committed, tuple(retained))


def _one(state: SpaceState, unit: Unit, plan: Plan, context: Context) -> UnitOutcome:
    """A unit, or the retained outcome of the request it repeats."""
    if unit.retry is None:
        return run_unit(state, unit, plan, context)
    kept = context.given.retained(unit.retry.scope, unit.retry.key)
    if kept is None:
        return run_unit(state, unit, plan, context)
    if kept["digest"] != unit.retry.digest:
        error = NoemaError("IdempotencyConflict", "the idempotency key stands for another request")
        return refused(unit, error)
    return replayed(kept["outcome"], unit, authority_at(context, plan.request, state))


def refused(unit: Unit, error: NoemaError) -> UnitOutcome:
    """The outcome of a unit that was not run because of an error about the whole of it."""
    results = [
        OperationResult(status="failed", op_id=op.operation.op_id, error=error.to_wire())
        if place == 0
        else OperationResult(status="skipped", op_id=op.operation.op_id)
        for place, op in enumerate(unit.ops)
    ]
    unknown = error.code == "OutcomeUnknown"
    receipt = Receipt(status="unknown", request_digest=unit.digest) if unknown else None
    return UnitOutcome(results=results, receipt=receipt, failed=True)


def skipped(unit: Unit) -> UnitOutcome:
    """The outcome of a unit after a failure that stops the sequence."""
    results = [OperationResult(status="skipped", op_id=op.operation.op_id) for op in unit.ops]
    return UnitOutcome(results=results, failed=True)


def respond(plan: Plan, outcomes: list[UnitOutcome], meta: SpaceMeta) -> Response:
    """The response to a request from the outcomes of its units, in order.

    One transaction's receipt stands at the top. Of several, each stands in the result of its operation, for
    the envelope has room for one.
    """
    request = plan.request
    single = len(outcomes) == 1
    results = [
        result if single else _with_receipt(result, outcome)
        for outcome in outcomes
        for result in outcome.results
    ]
    receipts = [outcome.receipt for outcome in outcomes]
    unknown = any(receipt is not None and receipt.status == "unknown" for receipt in receipts)
    return Response(
        status="outcome_unknown" if unknown else status_of(results),
        results=results,
        request_id=request.request_id,
        execution=_echo(request),
        context=ResponseContext(space_id=meta.space_id, schema_environment_version=meta.schema.version),
        snapshot=outcomes[0].snapshot if single else None,
        receipt=outcomes[0].receipt if single else None,
    )


def _with_receipt(result: OperationResult, outcome: UnitOutcome) -> OperationResult:
    if outcome.receipt is None or not isinstance(result.result, dict):
        return result
    receipt = msgspec.to_builtins(outcome.receipt)
    return msgspec.structs.replace(result, result={**result.result, "receipt": receipt})


def _echo(request: Request) -> ExecutionEcho | msgspec.UnsetType:
    execution = request.execution
    if not isinstance(execution, Execution):
        return UNSET
    return ExecutionEcho(mode=execution.mode, on_error=execution.on_error, isolation=execution.isolation)
