"""One worker's turn at a run of maintenance: commit by commit, under one lease.

What lives here: the order of the passes, and what each commit leaves in the run's row and the space's marks. What
must never live here: who may start a run and when (`core.service.maintenance`), and what a pass does
(`core.service.maintenance_passes`).
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from core.agents.maintenance.corrections import Stretch, read_stretch, tallies
from core.errors import NoemaError
from core.model.elements import Json, Origin
from core.model.instants import Instant
from core.ports import Clock, Row, StoreFault, Table, Update, When, Write
from core.protocol.memory_types import MaintenanceInput, MaintenanceScope
from core.service.commit import Commits, Fenced, RowRefused
from core.service.conversations import CITES, Conversations, Record
from core.service.faults import reading
from core.service.leases import Leases
from core.service.maintenance_marks import DAY_MS, Marks
from core.service.maintenance_passes import BATCHES, MOST_ACTORS, PASSES, STEPS, Piece, Report, Stage
from core.service.memory_policy import policy_of, with_parameters
from core.service.spaces import Spaces
from core.service.values import Decide, Fence, Proposal
from core.state.layer import Empty
from core.state.space import SpaceState
from core.state.view import View
from core.storage.head import Head
from core.storage.layout import conversation_sk, corrections_sk, maintenance_sk, space_pk
from core.transaction.draft import Draft

ROLE: Final = "maintenance"
LEASE_MS: Final = 120_000
COMMIT_MS: Final = 20_000
WALL_MS: Final = 30 * 60 * 1000  # contract §6.1: a run that takes longer has failed
STRETCH: Final = 50  # commits of the log read for one commit of ours
_TRANSIENT: Final = frozenset(["ServiceUnavailable", "SerializationConflict", "OutcomeUnknown"])


class Ran(msgspec.Struct, frozen=True):
    """What a worker's turn did. `more`: work is left; `busy`: formation or another run holds the space."""

    run: int | None = None
    status: Literal["none", "working", "completed", "failed"] = "none"
    commits: int = 0
    more: bool = False
    busy: bool = False


class Tools(msgspec.Struct, frozen=True):
    """What a turn works with."""

    table: Table
    clock: Clock
    spaces: Spaces
    commits: Commits
    leases: Leases
    conversations: Conversations
    marks: Marks


class Turn:
    """One worker's turn at the run of one space, under one lease."""

    def __init__(self, tools: Tools, space_id: str, fence: Fence, deadline: Instant) -> None:
        self.fence = fence
        self.number: int | None = None
        self.commits = 0
        self._tools = tools
        self._space_id = space_id
        self._deadline = deadline
        self._past: SpaceState | None = None  # the state at the end of the last stretch of the log

    def until_done(self) -> Ran:
        """One commit after another."""
        tools = self._tools
        while True:
            marks = tools.marks.read(self._space_id)
            number = marks.get("run")
            if not isinstance(number, int):
                done: Literal["none", "completed"] = "none" if self.number is None else "completed"
                return Ran(self.number, done, self.commits)
            self.number = number
            if tools.clock.now() >= self._deadline:
                return Ran(number, "working", self.commits, more=True)
            try:
                record = tools.conversations.record(self._space_id, ROLE, number)
            except NoemaError as error:
                if error.code != "NotFoundOrNotVisible":
                    raise
                tools.spaces.head(self._space_id)  # the space is gone: that is for the worker to see
                tools.marks.wind(self._space_id, marks, tools.clock.now() + DAY_MS, run=None)
                continue  # the run was forgotten with something that it named
            self.fence = tools.leases.renew(self._space_id, self.fence, LEASE_MS)
            try:
                failed = self._step(record, marks)
            except RowRefused:
                continue  # the rows moved under us: look again
            self.commits += 1
            if failed:
                return Ran(number, "failed", self.commits)

    def _step(self, record: Record, marks: Row) -> bool:
        """One commit of the run; whether it failed with it."""
        report = msgspec.json.decode(record.text("report") or "{}", type=Report)
        passes = PASSES[msgspec.convert(record.text("scope"), MaintenanceScope)]
        now = self._tools.clock.now()
        if report.started and now - report.started > WALL_MS:
            self._end(record, marks, report, failed="deadline_reached")
            return True
        if record.count("pass") >= len(passes):
            self._end(record, marks, report, failed=None)
            return False
        name = passes[record.count("pass")]
        try:
            self._pass(record, marks, name)
        except (Fenced, RowRefused, StoreFault):
            raise
        except NoemaError as error:
            if error.code in _TRANSIENT or error.code == "NotFoundOrNotVisible":
                raise
            self._skip(record, report, name, error.code)
        except Exception as error:  # noqa: BLE001 - a pass that breaks is told, and the others still run
            self._skip(record, report, name, type(error).__name__)
        return False

    def _pass(self, record: Record, marks: Row, name: str) -> None:
        stage = self._stage(record, marks, name)
        now = self._tools.clock.now()

        def decide(state: SpaceState) -> Proposal:
            draft = Draft(
                state,
                now=max(now, state.at),
                origin=Origin(record.text("user") or ROLE, record.text("channel") or "schedule"),
                transaction_class="maintenance",
            )
            report = msgspec.json.decode(record.text("report") or "{}", type=Report)
            report.started = report.started or now
            piece = STEPS[name](draft, stage, report)
            delta = draft.finish({"maintenance": record.number, "pass": name})
            return Proposal(delta, rows=tuple(self._rows(record, report, piece)))

        self._commit(decide)

    def _skip(self, record: Record, report: Report, name: str, reason: str) -> None:
        """Say that a pass failed and go on to the next; no mark moves."""
        report.started = report.started or self._tools.clock.now()
        report.settlement_errors.append({"pass": name, "error": reason})
        rows = tuple(self._rows(record, report, Piece(done=True)))
        self._commit(lambda _: Proposal(None, rows=rows))

    def _commit(self, decide: Decide) -> None:
        deadline = self._tools.clock.now() + COMMIT_MS
        self._tools.commits.commit(self._space_id, decide, deadline=deadline, fence=self.fence)

    def _rows(self, record: Record, report: Report, piece: Piece) -> list[Write]:
        """The run's row and the space's marks after a commit, if both stand where the one before left them."""
        batches = record.count("batch") + 1
        over = piece.done or batches >= BATCHES
        moved: Row = {
            "pass": record.count("pass") + over,
            "batch": 0 if over else batches,
            "step": record.count("step") + 1,
            "report": msgspec.json.encode(report).decode(),
            CITES: " ".join(sorted(report.named())) or None,
            "updated": self._tools.clock.now(),
        }
        seen: Row = {"nonce": record.row["nonce"], "step": record.row.get("step"), "status": record.status}
        pk = space_pk(self._space_id)
        assign: Row = {**piece.assign, "start_at": report.started}
        space = Update(
            pk, maintenance_sk(), assign=assign, add=piece.add, when=When(equals={"run": record.number})
        )
        run = Update(pk, conversation_sk(ROLE, record.number), assign=moved, when=When(equals=seen))
        return [run, space, *piece.rows]

    def _end(self, record: Record, marks: Row, report: Report, *, failed: str | None) -> None:
        """Complete the run, or give it up; either way the space is free for the next."""
        tools, now = self._tools, self._tools.clock.now()
        scope = str(record.text("scope"))
        formed = tools.spaces.head(self._space_id).number("formed")  # formation is kept out: it stands still

        def decide(state: SpaceState) -> Proposal:
            result = _result(record, report, state, formed)
            row: Row = {
                "status": "failed" if failed else "completed",
                "failed_reason": failed,
                "answer": msgspec.json.encode(result).decode(),
                "report": None,
                "step": record.count("step") + 1,
                "updated": now,
            }
            seen: Row = {"nonce": record.row["nonce"], "step": record.row.get("step")}
            run = Update(
                space_pk(self._space_id), conversation_sk(ROLE, record.number), row, when=When(equals=seen)
            )
            assign: Row = {"run": None, "settlement": _settlement(result, now), "updated": now}
            if failed is None:
                assign |= {f"m_{scope}": formed, f"at_{scope}": now}
            rows = tools.marks.moved(self._space_id, marks, now + DAY_MS, assign)
            head: Row = {} if failed else {"maintained": formed}
            return Proposal(None, rows=(run, *rows), head=head)

        self._commit(decide)

    # --- what is read before a commit

    def _stage(self, record: Record, marks: Row, name: str) -> Stage:
        tools = self._tools
        with reading():
            head, state = tools.spaces.read_current(self._space_id)
        body = msgspec.convert(record.body or {}, MaintenanceInput)
        policy = with_parameters(policy_of(state.meta), body.parameters)
        stage = Stage(space_id=self._space_id, marks=marks, policy=policy)
        return stage if name != "corrections" else self._with_log(stage, head)

    def _with_log(self, stage: Stage, head: Head) -> Stage:
        """The next stretch of the log, the state before it, and what is counted of its actors already."""
        tools = self._tools
        seen = stage.number("scan_ver")
        after = head.born - 1 if seen is None or seen < head.born - 1 else seen
        skipped = after + 1 < head.min_delta or (after >= head.born and after < head.floor)
        if skipped:
            after = head.floor
        if after >= head.ver:
            return msgspec.structs.replace(stage, skipped=skipped)
        before: View = self._state_at(after, head)
        deltas = tools.spaces.deltas(self._space_id, after, STRETCH)
        if not deltas:
            return msgspec.structs.replace(stage, skipped=skipped)
        stretch: Stretch = read_stretch(before, deltas)
        if isinstance(before, SpaceState):
            self._past = before.apply(*deltas)
        totals = {}
        for actor in list(tallies(stretch.corrections))[:MOST_ACTORS]:
            with reading():
                row = tools.table.get(space_pk(self._space_id), corrections_sk(actor)) or {}
            count = row.get("n")
            totals[actor] = count if isinstance(count, int) else 0
        return msgspec.structs.replace(
            stage, stretch=stretch, skipped=skipped, more=stretch.version < head.ver, totals=totals
        )

    def _state_at(self, version: int, head: Head) -> View:
        """The state after a version; nothing before the first."""
        if version < head.born:
            return Empty()
        if self._past is not None and self._past.ver == version:
            return self._past
        return self._tools.spaces.load_at(self._space_id, version=version)


def _result(record: Record, report: Report, state: SpaceState, formed: int) -> dict[str, Json]:
    """What a run says at its end: the settlement's counts and the assessment block (contract §6.3)."""
    told = msgspec.to_builtins(report)
    assessment: dict[str, Json] = {
        "model": "offline",
        "space_seq": state.seq,
        "formation_id": formed,
        "source_reliability": told.get("source_reliability", {}),
        "revised_roots": told.get("revised_roots", []),
        "settlement_errors": told.get("settlement_errors", []),
    }
    if report.predicates is not None:
        assessment["predicates"] = report.predicates
    passes = {name: told[name] for name in ("decay", "corrections", "retention", "self_test") if name in told}
    scope, trigger = record.text("scope"), record.text("trigger")
    return {"scope": scope, "trigger": trigger, "settlement": passes, "assessment": assessment}


def _settlement(result: dict[str, Json], now: Instant) -> str:
    """The counts of the last run, kept for the memory's status; they name no element."""
    errors = result["assessment"]["settlement_errors"]
    kept = {"at": now, "scope": result["scope"], **result["settlement"], "settlement_errors": errors}
    return msgspec.json.encode(kept).decode()
