"""One unit of a request: its operations over one snapshot, and the commit they come to (KIP §32.3 phases 5-12).

What lives here: running operations in their order over a draft or a state, and turning what happened into
results, a delta and a receipt. What must never live here: storage, retries, several units.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from core.authority import Principal, authorize
from core.errors import NoemaError
from core.language.ast_kml import KmlStatement
from core.language.ast_kql import Find
from core.language.bind import bind
from core.meta import SNAPSHOT_FAMILY, answer
from core.model.elements import Json
from core.model.log import Delta
from core.mutation import mutate
from core.mutation.ingest import mint_evidence
from core.mutation.work import Work
from core.protocol.canonical import digest_of
from core.protocol.request import Request
from core.protocol.response import (
    OperationResult,
    Receipt,
    ResultContext,
    Snapshot,
    Warning,  # noqa: A004 - the protocol's word
)
from core.protocol.tokens import unseal
from core.query import Coordinate, run, snapshot_needed
from core.schema.environment import environment_of
from core.state.space import SpaceState
from core.state.view import View
from core.transaction.draft import Draft
from core.transaction.needs import past_view
from core.transaction.prepare import Op, Plan, Unit
from core.transaction.record import committed_receipt, no_effect_receipt, record_of, summary
from core.transaction.scope import Answer, Context, Scope, governed


class UnitOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a unit came to.

    delta: the commit to append, if there is one. tentative: what a dry run would have appended, so that later
    units of the same dry run can see it. failed: it committed nothing and its key stays free (KIP §34.3).
    authority: what its caller might see when it ran, as `authority_at` tells it.
    """

    results: list[OperationResult]
    receipt: Receipt | None = None
    snapshot: Snapshot | None = None
    delta: Delta | None = None
    tentative: Delta | None = None
    failed: bool = False
    authority: str = ""

    def retained(self) -> Json:
        """The outcome as the JSON value that is kept under its idempotency key."""
        kept: dict[str, Any] = {"results": self.results, "receipt": self.receipt}
        if self.authority:
            kept["authority"] = self.authority
        return msgspec.to_builtins(kept)


class _Kept(msgspec.Struct, frozen=True):
    results: list[OperationResult]
    receipt: Receipt | None
    authority: str = ""


def replayed(kept: Json, unit: Unit, authority: str | None = None) -> UnitOutcome:
    """A retained outcome as the answer to a retry, which may have other op_ids (KIP §34.3).

    A key is no capability: where the caller may see other things now than when the outcome was made, the answer says
    what became of the request and leaves out what its operations showed (KIP §88.4).

    Args:
        kept: as `UnitOutcome.retained` gave it.
        unit: of the retry.
        authority: the caller's now; None for an outcome that has just been made.
    """
    outcome = msgspec.convert(kept, _Kept)
    withheld = authority is not None and authority != outcome.authority
    results = [
        msgspec.structs.replace(_withheld(result) if withheld else result, op_id=op.operation.op_id)
        for result, op in zip(outcome.results, unit.ops, strict=True)
    ]
    return UnitOutcome(results=results, receipt=outcome.receipt)


def _withheld(result: OperationResult) -> OperationResult:
    note = Warning(code="ResultWithheld", message="what you may see here has changed since; ask again")
    return msgspec.structs.replace(result, result=None, warnings=[note], next_cursor=UNSET)


def authority_at(context: Context, request: Request, state: SpaceState) -> str:
    """A text that differs whenever what the caller may see by a space's records differs; empty without records."""
    access = governed(context, request, state).principal.access
    return "" if access is None else access.digest


def run_unit(state: SpaceState, unit: Unit, plan: Plan, context: Context) -> UnitOutcome:
    """Run a unit over the newest committed state. Pure: on a conflict, run it again on the newer state.

    Raises:
        Missing: something must be handed in first (`core.transaction.needs`).
    """
    try:
        return _write(state, unit, plan, context) if unit.writes else _read(state, unit, plan, context)
    except NoemaError as error:  # the unit as a whole: a guard, the snapshot, the ingested material
        return _failed(state, unit, [], error, context)


# --- reading


def _read(state: SpaceState, unit: Unit, plan: Plan, context: Context) -> UnitOutcome:
    at, view = _bound_state(state, plan.request, context)
    _check_preconditions(at, plan.request)
    context = governed(context, plan.request, state)
    scope = _scope(view, at, plan.request, context, present=state)
    results = []
    for op in unit.ops:
        try:
            results.append(_run_read(op, scope, {}))
        except NoemaError as error:
            if plan.request.mode == "atomic":
                return _failed(state, unit, results, error, context)
            results.append(_failure(op, error))
    snapshot = None
    if plan.request.mode == "atomic":
        snapshot = Snapshot(
            space_id=at.meta.space_id, snapshot_seq=at.seq, schema_environment_version=scope.env.version
        )
    failed = any(result.status == "failed" for result in results)
    return UnitOutcome(results=results, snapshot=snapshot, failed=failed)


def _bound_state(state: SpaceState, request: Request, context: Context) -> tuple[SpaceState, View]:
    """The state a request's reads are bound to: that of its snapshot token, else the newest (KIP §78)."""
    seq = _token_seq(request, state, context)
    if seq is None or seq == state.seq:
        return state, state
    past = context.given.state_at(Coordinate(seq=seq))
    return past, past_view(past, state)


def _token_seq(request: Request, state: SpaceState, context: Context) -> int | None:
    token = request.read.snapshot_token
    if isinstance(token, UnsetType):
        return None
    value = unseal(SNAPSHOT_FAMILY, token, context.secret)
    if not isinstance(value, list) or len(value) != 2 or value[0] != state.meta.instance:
        raise NoemaError(
            "HistoricalSnapshotUnavailable",
            "the snapshot token is not one that this space gave",
            hint="Take a new one with SNAPSHOT.",
        )
    return int(value[1])


def _scope(
    view: View, state: SpaceState, request: Request, context: Context, present: View | None = None
) -> Scope:
    env = environment_of(state.meta)
    return Scope(view=view, state=state, env=env, context=context, request=request, present=present)


def _run_read(op: Op, scope: Scope, minted: dict[str, Any]) -> OperationResult:
    """A FIND or a META command over the scope's view."""
    command = _bound(op, minted)
    if scope.context.overdue():
        raise NoemaError("ExecutionTimeout", "the request's deadline has passed")
    if isinstance(command, Find):
        found = _find(command, scope)
    else:
        found = answer(command, msgspec.structs.replace(scope, parameters={**op.parameters, **minted}))
    return OperationResult(
        status="succeeded",
        op_id=op.operation.op_id,
        result=found.value,
        context=found.context,
        warnings=list(found.warnings) or UNSET,
        next_cursor=found.next_cursor or UNSET,
    )


def _find(find: Find, scope: Scope) -> Answer:
    authorize(scope.context.principal, "read")
    state, query = scope.state, scope.query_context()
    view, env = scope.view, scope.env
    needed = snapshot_needed(find, query, head_seq=state.seq, head_at=state.at)
    if needed is not None:
        past = scope.context.given.state_at(needed)
        # over the scope's view and not its state: what a token's view or this transaction knows to be erased
        view, env, query = past_view(past, scope.view), environment_of(past.meta), scope.query_context(past)
    result = run(view, find, env, query)
    return Answer(
        value=result.rows,
        context=msgspec.convert(result.context, ResultContext),
        warnings=tuple(Warning(code="QueryNote", message=text) for text in result.warnings),
        next_cursor=result.next_cursor,
    )


def _bound(op: Op, minted: dict[str, Any]) -> Any:  # a command without parameters
    if op.error is not None or op.parsed is None:
        raise op.error or NoemaError("InvalidSyntax", "the operation has no command")
    return bind(op.parsed.command, {**op.parameters, **minted})


# --- writing


def _write(state: SpaceState, unit: Unit, plan: Plan, context: Context) -> UnitOutcome:
    request = plan.request
    for op in unit.ops:  # a transaction with an operation that cannot run is not begun
        if op.error is not None:
            return _failed(state, unit, [], op.error, context, at=op)
    token = _token_seq(request, state, context)
    if token is not None:
        _check_seq(state, token, "the snapshot token")
    _check_preconditions(state, request)
    draft = Draft(state, now=max(context.now, state.at), origin=context.principal.origin)
    context = governed(context, request, state, draft.view)
    scope = _scope(draft.view, state, request, context)
    minted: dict[str, Any] = {}
    if unit.ingest:
        work = Work(draft, scope.env, context.principal, scope.query_context())
        found = mint_evidence(work, unit.ingest, context.given.artifact)
        minted = {key: {"id": element} for key, element in found.items()}
    results: list[OperationResult] = []
    for op in unit.ops:
        try:
            results.append(_run_op(op, draft, scope, minted))
        except NoemaError as error:
            return _failed(state, unit, results, error, context)
    return _finished(draft, unit, results, context, dry_run=request.options.dry_run)


def _check_seq(state: SpaceState, wanted: int, what: str) -> None:
    if wanted != state.seq:
        raise NoemaError(
            "PreconditionFailed",
            f"the space is at space_seq {state.seq}; {what} says {wanted}",
            details={"expected": wanted, "actual": state.seq},
        )


def _check_preconditions(state: SpaceState, request: Request) -> None:
    """What the request expects of the state it commits onto, or reads (KIP §35.4, §78)."""
    guards = request.preconditions
    if isinstance(guards.space_seq, int):
        _check_seq(state, guards.space_seq, "space_seq")
    version = guards.schema_environment_version
    if isinstance(version, int) and version != state.meta.schema.version:
        raise NoemaError(
            "SchemaEnvironmentChanged",
            f"the schema environment is at version {state.meta.schema.version}, not {version}",
            details={"expected": version, "actual": state.meta.schema.version},
        )


def _run_op(op: Op, draft: Draft, scope: Scope, minted: dict[str, Any]) -> OperationResult:
    if not op.writes:
        return _run_read(op, scope, minted)
    statement: KmlStatement = _bound(op, minted)
    if scope.context.overdue():
        raise NoemaError("ExecutionTimeout", "the request's deadline passed before the commit began")
    done = mutate(draft, statement, scope.env, scope.context.principal, scope.query_context())
    return OperationResult(
        status="succeeded" if done.effect else "no_effect",
        op_id=op.operation.op_id,
        result=done.value,
        context=ResultContext(
            space_id=scope.state.meta.space_id,
            snapshot_seq=scope.state.seq,
            schema_environment_version=scope.env.version,
        ),
        warnings=[Warning(code=code, message=text) for code, text in done.warnings] or UNSET,
    )


def _finished(
    draft: Draft, unit: Unit, results: list[OperationResult], context: Context, *, dry_run: bool
) -> UnitOutcome:
    changes = draft.changes()
    if dry_run:
        note = Warning(code="DryRun", message="nothing was committed", details={"would": summary(changes)})
        noted = [msgspec.structs.replace(result, warnings=[note]) for result in results]
        return UnitOutcome(results=noted, tentative=draft.finish())
    result_digest = digest_of([msgspec.to_builtins(result.result) for result in results])
    authority = "" if context.principal.access is None else context.principal.access.digest
    if not changes:
        receipt = no_effect_receipt(draft.state, unit.digest, result_digest)
        return UnitOutcome(results=results, receipt=receipt, authority=authority)
    record = record_of(
        draft, request_digest=unit.digest, result_digest=result_digest, transaction_class="cognitive"
    )
    record.update(_authorised(context.principal))
    delta = draft.finish(record)
    assert delta is not None, "a draft with changes has a delta"
    receipt = committed_receipt(draft.state.meta.space_id, delta)
    return UnitOutcome(results=results, receipt=receipt, delta=delta, authority=authority)


def _authorised(principal: Principal) -> dict[str, Any]:
    """What let a commit pass, for its Commit Record (Governance §178): nothing where scopes alone decide."""
    access = principal.access
    if access is None or not access.version:
        return {}
    decision: dict[str, Any] = {"policy_version": access.version, "records": access.used}
    if principal.acting_as is not None:
        decision["acting_as"] = principal.acting_as
    return {"authority": decision}


# --- failing


def _failure(op: Op, error: NoemaError) -> OperationResult:
    return OperationResult(status="failed", op_id=op.operation.op_id, error=error.to_wire())


def _failed(
    state: SpaceState,
    unit: Unit,
    done: list[OperationResult],
    error: NoemaError,
    context: Context,
    *,
    at: Op | None = None,
) -> UnitOutcome:
    """The outcome of a unit in which one operation failed: what ran before is rolled back, the rest skipped."""
    failing = len(done) if at is None else unit.ops.index(at)
    results = []
    for place, op in enumerate(unit.ops):
        if place == failing:
            results.append(_failure(op, error))
        else:
            status: Any = "rolled_back" if place < len(done) else "skipped"
            results.append(OperationResult(status=status, op_id=op.operation.op_id))
    receipt = None
    if unit.writes and not context.readonly:
        receipt = Receipt(
            status="aborted",
            space_id=state.meta.space_id,
            snapshot_seq=state.seq,
            transaction_class="cognitive",
            request_digest=unit.digest,
        )
    return UnitOutcome(results=results, receipt=receipt, failed=True)
