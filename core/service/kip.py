"""The use case behind `execute_kip` and `execute_kip_readonly`: the engine, driven over a durable log.

What lives here: loading what the engine needs, committing unit by unit through the one commit loop, and turning
what the store says into the protocol's answers. What must never live here: KIP's meaning (`core.engine`) and who
may call (the transport has verified that and built the `Principal`).

A body, not an HTTP status, carries success (KIP §82): `execute` answers every request that reaches it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from core.authority import Principal
from core.engine import (
    Context,
    Plan,
    Unit,
    UnitOutcome,
    authority_at,
    plan_request,
    refused,
    replayed,
    respond,
    run_unit,
    skipped,
)
from core.errors import NoemaError
from core.meta.attestations import sign_receipt
from core.model.checkpoints import ChainReading
from core.model.instants import Instant
from core.model.proofs import Verdict
from core.ports import Clock, Row, Signer, Verifier
from core.protocol.request import MAX_OPERATIONS, Request
from core.protocol.response import OperationResult, Response, Warning, failure  # noqa: A004 - the protocol's word
from core.query import Coordinate
from core.search.dense import Coverage, nothing
from core.service.attempt import is_over
from core.service.chain import read_chain
from core.service.commit import Commits
from core.service.faults import reading
from core.service.owed import Eraser, debt, settle
from core.service.spaces import Spaces
from core.service.values import Fence, Idempotency, Proposal
from core.service.vectors import Vectors
from core.state.space import SpaceState
from core.storage.codec import decode_json
from core.storage.layout import idempotency_parts, idempotency_place, idempotency_sk, space_pk
from core.transaction.needs import (
    Chain,
    Checked,
    Deltas,
    Directory,
    Missing,
    Nearest,
    Need,
    RetainedOutcome,
    RetainedParts,
    Signed,
)

_OF_THE_SPACE = frozenset({"NotFoundOrNotVisible", "ServiceUnavailable"})

MAX_NEEDS = 64  # distinct things one unit may ask for; more is a bug, not a request


class _Aborted(Exception):  # noqa: N818 - carries an outcome out of the commit loop, which must not retain it
    def __init__(self, outcome: UnitOutcome) -> None:
        self.outcome = outcome
        super().__init__("the unit failed")


class Kip:
    """Runs KIP requests against durable spaces. Safe to share between threads.

    Args:
        spaces: reads.
        commits: the one commit loop.
        erasures: destroys the bytes of what a PURGE erased, in all of history.
        clock: the time.
        secret: signs cursors and snapshot tokens; the same in every process of a deployment.
        vectors: gives search by meaning when it is needed; without it there is none.
        signer, verifier: signs what leaves the deployment, and checks what comes; without them nothing is.
        streaming: whether who comes over HTTP can be answered in frames.
        refused: told of each refusal: space, principal, code and details; without it nobody is.
    """

    def __init__(
        self,
        spaces: Spaces,
        commits: Commits,
        erasures: Eraser,
        clock: Clock,
        *,
        secret: bytes,
        signer: Signer | None = None,
        verifier: Verifier | None = None,
        vectors: Callable[[], Vectors] | None = None,
        streaming: bool = False,
        refused: Callable[[str, Principal, str, dict[str, Any] | None], None] | None = None,
    ) -> None:
        self._refused = refused
        self._spaces = spaces
        self._commits = commits
        self._erasures = erasures
        self._clock = clock
        self._secret = secret
        self._signer = signer
        self._verifier = verifier
        self._vectors = vectors
        self._streaming = streaming

    def execute(
        self,
        space_id: str,
        request: Request,
        principal: Principal,
        *,
        deadline: Instant,
        readonly: bool = False,
        endpoint: str = "kip",
        fence: Fence | None = None,
    ) -> Response:
        """The response to a request, whatever became of it.

        Args:
            space_id: the space the transport resolved.
            request: the checked envelope.
            principal: the verified caller.
            deadline: when to give up (ms); a shorter one of the request's own counts.
            readonly: the endpoint that may not write.
            endpoint: its class, for the scope of idempotency keys.
            fence: the lease that an agent's writes are made under.

        Raises:
            NoemaError: NotFoundOrNotVisible or ServiceUnavailable, if the space itself cannot be read.
            Fenced: the lease is lost.
        """
        now = self._clock.now()
        wait = request.options.deadline_ms
        until = min(deadline, now + wait) if isinstance(wait, int) else deadline
        context = Context(
            principal=principal,
            now=now,
            readonly=readonly,
            endpoint=endpoint,
            secret=self._secret,
            semantic=self._vectors is not None,
            streaming=self._streaming and principal.channel == "rest",
            overdue=lambda: self._clock.now() >= until,
        )
        try:
            plan = plan_request(request, space_id, context)
        except NoemaError as error:
            self._spaces.head(space_id)  # a space that is not there is said to be so before anything else
            return failure(error, request)
        response = _Run(self, space_id, plan, context, until, fence=fence).respond()
        self._tell_refusals(space_id, principal, response)
        return response

    def _tell_refusals(self, space_id: str, principal: Principal, response: Response) -> None:
        for result in response.results or ():
            error = result.error
            if self._refused is not None and isinstance(error, dict):
                self._refused(space_id, principal, str(error.get("code")), error.get("details"))

    # --- what a run needs of the world

    def read(self, space_id: str) -> SpaceState:
        """The newest state."""
        return self._spaces.load(space_id)

    def commit(
        self,
        space_id: str,
        unit: Unit,
        run: Callable[[SpaceState], UnitOutcome],
        until: Instant,
        *,
        fence: Fence | None = None,
        authority: Callable[[SpaceState], str] | None = None,
    ) -> UnitOutcome:
        """Run a unit on the newest state until its commit stands.

        `authority` tells what the caller may see at a state: an outcome that is kept from an earlier time shows
        nothing that the caller might no longer see.

        Raises:
            NoemaError: as `Commits.commit`: the store's and the log's own reasons, never the unit's.
        """
        retry = unit.retry
        idempotency = None if retry is None else Idempotency(retry.scope, retry.key, retry.digest)

        def decide(state: SpaceState) -> Proposal:
            outcome = run(state)
            if outcome.failed:
                raise _Aborted(outcome)
            purged = _purged(outcome)
            if outcome.delta is None or not purged:
                return Proposal(outcome.delta, outcome.retained())
            row, head = debt(space_id, outcome.delta.ver, purged, outcome.delta.origin.principal)
            return Proposal(outcome.delta, outcome.retained(), (row,), head)

        try:
            committed = self._commits.commit(
                space_id, decide, deadline=until, idempotency=idempotency, fence=fence
            )
        except _Aborted as aborted:
            return aborted.outcome
        if not committed.replayed or authority is None:
            return replayed(committed.outcome, unit)
        return replayed(committed.outcome, unit, authority(self.read(space_id)))

    def erase(self, space_id: str, outcome: UnitOutcome) -> UnitOutcome:
        """Destroy the bytes of what a unit purged; a caveat where that must be done later."""
        receipt = outcome.receipt
        if receipt is None or receipt.status != "committed" or not _purged(outcome):
            return outcome
        try:
            settle(self._spaces, self._erasures, space_id, str(receipt.tx_id))
        except NoemaError as error:
            note = Warning(
                code="ErasurePending",
                message="the elements are stubs; their bytes in history go as soon as the space allows",
                details={"reason": error.code},
            )
            return msgspec.structs.replace(outcome, results=[_noted(r, note) for r in outcome.results])
        return outcome

    def attest(self, outcome: UnitOutcome) -> UnitOutcome:
        """A unit's outcome with its receipt signed, where the deployment has a key (KIP §33.3)."""
        if self._signer is None or outcome.receipt is None:
            return outcome
        return msgspec.structs.replace(outcome, receipt=sign_receipt(outcome.receipt, self._signer.sign))

    def answer(self, space_id: str, need: Need) -> Any:  # the value the need asks for, or a NoemaError
        """What the engine needs, from the store."""
        try:
            if isinstance(need, Coordinate):
                return self._state_at(space_id, need)
            if isinstance(need, Deltas):
                return self._spaces.deltas(space_id, need.after, need.limit)
            if isinstance(need, Directory):
                return self._spaces.ids(need.after, need.limit)
            if isinstance(need, Chain):
                return self._chain(space_id, need)
            if isinstance(need, RetainedParts):
                return self._retained_parts(space_id, need)
        except NoemaError as error:
            return error
        if isinstance(need, RetainedOutcome):
            return self._retained(space_id, need)
        if isinstance(need, Signed):
            return self._signed(need)
        if isinstance(need, Checked):
            return self._checked(need)
        return NoemaError(
            "ArtifactUnavailable",
            "there is no staged artifact of this handle",
            hint="Nothing is staged here: send the payload itself, or a :parameter that holds the package or receipt.",
        )

    def nearest(self, space_id: str, need: Nearest, until: Instant) -> Any:  # a Dense, or a NoemaError
        """How near a state's elements lie to a text; `until`: when to give up embedding it (ms)."""
        try:
            state = self._spaces.load(space_id)
            if state.seq != need.seq:
                state = self._state_at(space_id, Coordinate(seq=need.seq))
            if self._vectors is None:
                return nothing(Coverage(model=None, state_seq=need.seq, degraded="no_embedder"))
            return self._vectors().nearest(state, need.text, deadline=until)
        except NoemaError as error:
            return error

    def _chain(self, space_id: str, need: Chain) -> ChainReading:
        with reading():
            head = self._spaces.read_head(space_id)
            if need.first < head.min_delta or need.last > head.ver:
                raise NoemaError(
                    "HistoricalSnapshotUnavailable",
                    f"the log is kept from version {head.min_delta} to {head.ver}",
                    details={"oldest": head.min_delta, "newest": head.ver},
                )
            return read_chain(self._spaces.reader(space_id), need.first, need.last)

    def _signed(self, need: Signed) -> Any:  # a Signature or a NoemaError
        if self._signer is None:
            return NoemaError("UnsupportedCapability", "this service has no key to sign with")
        return self._signer.sign(need.payload)

    def _checked(self, need: Checked) -> Verdict:
        if self._verifier is None:
            return Verdict(valid=None)
        return self._verifier.check(need.key_id, need.payload, need.value)

    def _state_at(self, space_id: str, at: Coordinate) -> SpaceState:
        try:
            return self._spaces.load_at(space_id, seq=at.seq, time=at.time, tx=at.tx)
        except NoemaError as error:
            if error.code != "InvalidInput":
                raise
            raise NoemaError(
                "HistoricalSnapshotUnavailable", "the space has not reached that point", details=error.details
            ) from error

    def _retained(self, space_id: str, need: RetainedOutcome) -> Any:  # JSON, or None
        with reading():
            row = self._spaces.table.get(space_pk(space_id), idempotency_sk(need.scope, need.key))
        return None if row is None or is_over(row, self._clock.now()) else _kept(row)

    def _retained_parts(self, space_id: str, need: RetainedParts) -> dict[int, Any]:  # JSON
        first, last = idempotency_parts(need.scope, need.key)
        with reading():
            rows = self._spaces.table.query(space_pk(space_id), first, last, limit=MAX_OPERATIONS)
        now = self._clock.now()
        return {idempotency_place(sk): _kept(row) for sk, row in rows if not is_over(row, now)}


class _Run:
    """One request on its way. It reads HEAD once for each unit: a write's commit loop does so anyway."""

    def __init__(
        self,
        kip: Kip,
        space_id: str,
        plan: Plan,
        context: Context,
        until: Instant,
        *,
        fence: Fence | None,
    ) -> None:
        self._fence = fence
        self._kip = kip
        self._space_id = space_id
        self._plan = plan
        self._context = context
        self._until = until
        self._state: SpaceState | None = None  # the newest state any unit has seen
        self._tentative: SpaceState | None = None  # what a dry run would have made of it

    def respond(self) -> Response:
        """Every unit in order, then the response."""
        outcomes: list[UnitOutcome] = []
        for unit in self._plan.units:
            if self._plan.stops and outcomes and outcomes[-1].failed:
                outcomes.append(skipped(unit))
            else:
                outcomes.append(self._run(unit, first=not outcomes))
        state = self._state or self._kip.read(self._space_id)
        return respond(self._plan, [self._kip.attest(outcome) for outcome in outcomes], state.meta)

    def _run(self, unit: Unit, *, first: bool) -> UnitOutcome:
        """A unit, with what it needs handed in as it asks for it."""
        given = self._context.given
        for _ in range(MAX_NEEDS):
            context = msgspec.structs.replace(self._context, given=given)
            try:
                if unit.writes and not self._plan.request.options.dry_run:
                    return self._commit(unit, context, first=first)
                return self._look(unit, context)
            except Missing as missing:
                given = given.plus(missing.need, self._answer(missing.need))
        raise NoemaError("ResourceExhausted", f"one operation asks for more than {MAX_NEEDS} older states")

    def _answer(self, need: Need) -> Any:  # the value the need asks for, or a NoemaError
        if isinstance(need, Nearest):
            return self._kip.nearest(self._space_id, need, self._until)
        return self._kip.answer(self._space_id, need)

    def _look(self, unit: Unit, context: Context) -> UnitOutcome:
        """A unit that commits nothing: reads, or a dry run over what its earlier units would have left."""
        dry = self._plan.request.options.dry_run
        state = self._tentative if dry and self._tentative is not None else self._kip.read(self._space_id)
        self._state = state
        outcome = run_unit(state, unit, self._plan, context)
        if outcome.tentative is not None:
            state = state.apply(outcome.tentative)
        self._tentative = state if dry else None
        return outcome

    def _commit(self, unit: Unit, context: Context, *, first: bool) -> UnitOutcome:
        def run(state: SpaceState) -> UnitOutcome:
            self._state = state
            return run_unit(state, unit, self._plan, context)

        try:
            outcome = self._kip.commit(
                self._space_id,
                unit,
                run,
                self._until,
                fence=self._fence,
                authority=lambda state: authority_at(context, self._plan.request, state),
            )
        except NoemaError as error:
            if first and self._state is None and error.code in _OF_THE_SPACE:
                raise  # the space itself cannot be read, and nothing has been done yet
            return refused(unit, error)
        return self._kip.erase(self._space_id, outcome)


def _kept(row: Row) -> dict[str, Any]:  # JSON
    body = row["outcome"]
    assert isinstance(body, bytes)
    return {"digest": row["request"], "outcome": decode_json(body)}


def _purged(outcome: UnitOutcome) -> list[str]:
    """The stubs a unit left."""
    results = [result.result for result in outcome.results if isinstance(result.result, dict)]
    return [found for result in results for found in result.get("purged", ())]


def _noted(result: OperationResult, note: Warning) -> OperationResult:
    warnings = [*(result.warnings if isinstance(result.warnings, list) else ()), note]
    return msgspec.structs.replace(result, warnings=warnings)
