"""One worker's turn at a run of maintenance: commit by commit, under one lease.

What lives here: the order of the passes, and what each commit leaves in the run's row and the space's marks. What
must never live here: who may start a run and when (`core.service.maintenance`), and what a pass does
(`core.service.maintenance_passes`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from core.agents.maintenance.corrections import Stretch, read_stretch, tallies
from core.errors import NoemaError
from core.model.elements import Json, Origin
from core.model.instants import Instant
from core.ports import Clock, Row, StoreFault, Table, Update, When, Write
from core.protocol.http_types import MemoryPolicy
from core.protocol.memory_types import MaintenanceInput, MaintenanceScope
from core.service.commit import Commits, Fenced, RowRefused
from core.service.conversation_record import Record
from core.service.conversations import CITES, Conversations
from core.service.faults import reading
from core.service.formation_place import Kept, add_warnings
from core.service.leases import Leases
from core.service.maintenance_marks import DAY_MS, Marks
from core.service.maintenance_passes import (
    BATCHES,
    MOST_ACTORS,
    PASSES,
    SETTLING,
    STEPS,
    THINKING,
    Piece,
    Quiz,
    Report,
    Stage,
)
from core.service.maintenance_place import ROLE, Maintainer, Sitting
from core.service.memory_policy import policy_of, with_parameters
from core.service.spaces import Spaces
from core.service.values import Decide, Fence, Proposal
from core.state.layer import Empty
from core.state.space import SpaceState
from core.state.view import View
from core.storage.head import Head
from core.storage.layout import conversation_sk, corrections_sk, maintenance_sk, space_pk
from core.transaction.draft import Draft

LEASE_MS: Final = 120_000
COMMIT_MS: Final = 20_000
WALL_MS: Final = 30 * 60 * 1000  # contract §6.1: a run that takes longer has failed
STRETCH: Final = 50  # commits of the log read for one commit of ours
Step = Literal["on", "later", "failed"]
_TRANSIENT: Final = frozenset(["ServiceUnavailable", "SerializationConflict", "OutcomeUnknown"])


class Ran(msgspec.Struct, frozen=True):
    """What a worker's turn did. `more`: work is left; `busy`: formation or another run holds the space."""

    run: int | None = None
    status: Literal["none", "working", "completed", "failed"] = "none"
    commits: int = 0
    more: bool = False
    busy: bool = False


class Tools(msgspec.Struct, frozen=True):
    """What a turn works with. keeper: maintains with models. paced: whether a memory fades once a week at most."""

    table: Table
    clock: Clock
    spaces: Spaces
    commits: Commits
    leases: Leases
    conversations: Conversations
    marks: Marks
    keeper: Callable[[], Maintainer] | None = None
    paced: bool = True


class Turn:
    """One worker's turn at the run of one space, under one lease."""

    def __init__(self, tools: Tools, space_id: str, fence: Fence, deadline: Instant) -> None:
        self._lease = Kept(tools.leases, tools.clock, space_id, fence)
        self.number: int | None = None
        self.commits = 0
        self._tools = tools
        self._space_id = space_id
        self._deadline = deadline
        self._past: SpaceState | None = None  # the state at the end of the last stretch of the log

    @property
    def fence(self) -> Fence:
        """The lease as it stands."""
        return self._lease.fence

    def now(self) -> Instant:
        """The time."""
        return self._tools.clock.now()

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
            self._lease.renew(LEASE_MS)
            try:
                step = self._step(record, marks)
            except RowRefused:
                continue  # the rows moved under us: look again
            self.commits += 1
            if step == "failed":
                return Ran(number, "failed", self.commits)
            if step == "later":
                return Ran(number, "working", self.commits, more=True)

    def _step(self, record: Record, marks: Row) -> Step:
        """One commit of the run, or one phase with a model; what became of it."""
        report = msgspec.json.decode(record.text("report") or "{}", type=Report)
        passes = PASSES[msgspec.convert(record.text("scope"), MaintenanceScope)]
        now = self._tools.clock.now()
        if report.started and now - report.started > WALL_MS:
            self._end(record, marks, report, failed="deadline_reached")
            return "failed"
        if record.count("pass") >= len(passes):
            self._end(record, marks, report, failed=None)
            return "on"
        name = passes[record.count("pass")]
        pen = Pen(self, record, report)
        try:
            if name == THINKING:
                step = self._think(pen, marks)
                if step is not None:
                    return step
                following = (
                    record.count("pass") + 1
                )  # it is never the last; nothing happened, so nothing is written
                record = msgspec.structs.replace(record, row={**record.row, "pass": following})
                name = passes[following]
            self._pass(record, marks, name)
        except (Fenced, RowRefused, StoreFault):
            raise
        except NoemaError as error:
            if error.code in _TRANSIENT or error.code == "NotFoundOrNotVisible":
                raise
            self._skip(pen, name, error.code)
        except Exception as error:  # noqa: BLE001 - a pass that breaks is told, and the others still run
            self._skip(pen, name, type(error).__name__)
        return "on"

    def _think(self, pen: Pen, marks: Row) -> Step | None:
        """One phase with the space's model, or the end of all of them; None where there is no model."""
        keeper = self._tools.keeper
        sat = None if keeper is None else keeper().sit(self._sitting(pen, marks))
        if sat is None:
            return None
        if sat.failed is not None:
            self._end(pen.record, marks, pen.report, failed=sat.failed)
            return "failed"
        if not sat.over:
            return "later" if sat.later else "on"
        row: Row = {}
        if sat.offline is not None:
            row["warnings"] = add_warnings(pen.record, [f"phases_offline: {sat.offline}"])
        piece = Piece(done=True, assign=sat.marks)
        rows = tuple(self._rows(pen.record, pen.report, piece, row))
        self.commit(lambda _: Proposal(None, rows=rows))
        return "on"

    def _sitting(self, pen: Pen, marks: Row) -> Sitting:
        tools, record, report = self._tools, pen.record, pen.report
        head, state = tools.spaces.read_current(self._space_id)
        wall = (report.started or tools.clock.now()) + WALL_MS
        return Sitting(
            self._space_id,
            str(head.instance),
            record,
            marks,
            self._policy(record, state),
            _assessment(report, state, head.number("formed")),
            self._lease,
            pen,
            min(self._deadline, wall),
        )

    def _policy(self, record: Record, state: SpaceState) -> MemoryPolicy:
        body = msgspec.convert(record.body or {}, MaintenanceInput)
        return with_parameters(policy_of(state.meta), body.parameters)

    def _pass(self, record: Record, marks: Row, name: str) -> None:
        stage, row = self._stage(record, marks, name)
        now = self._tools.clock.now()

        def decide(state: SpaceState) -> Proposal:
            draft = Draft(
                state,
                now=max(now, state.at),
                origin=_origin(record),
                transaction_class="maintenance",
            )
            report = msgspec.json.decode(record.text("report") or "{}", type=Report)
            report.started = report.started or now
            piece = STEPS[name](draft, stage, report)
            delta = draft.finish({"maintenance": record.number, "pass": name})
            return Proposal(delta, rows=tuple(self._rows(record, report, piece, row)))

        self.commit(decide)

    def _skip(self, pen: Pen, name: str, reason: str) -> None:
        """Say that a pass failed and go on to the next; no mark moves."""
        report = pen.report
        report.started = report.started or self._tools.clock.now()
        report.settlement_errors.append({"pass": name, "error": reason})
        rows = tuple(self._rows(pen.record, report, Piece(done=True), {}))
        self.commit(lambda _: Proposal(None, rows=rows))

    def commit(self, decide: Decide) -> None:
        """One commit under the lease."""
        deadline = self._tools.clock.now() + COMMIT_MS
        self._tools.commits.commit(self._space_id, decide, deadline=deadline, fence=self.fence)

    def _rows(self, record: Record, report: Report, piece: Piece, row: Row) -> list[Write]:
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
            **row,
        }
        pk = space_pk(self._space_id)
        assign: Row = {**piece.assign, "start_at": report.started}
        space = Update(
            pk, maintenance_sk(), assign=assign, add=piece.add, when=When(equals={"run": record.number})
        )
        return [self.row(record, moved), space, *piece.rows]

    def row(self, record: Record, assign: Row) -> Update:
        """The run's row changed, if it stands where it was read."""
        seen: Row = {"nonce": record.row["nonce"], "step": record.row.get("step"), "status": record.status}
        sk = conversation_sk(ROLE, record.number)
        return Update(space_pk(self._space_id), sk, assign=assign, when=When(equals=seen))

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
                "places": None,
                "step": record.count("step") + 1,
                "updated": now,
            }
            assign: Row = {"run": None, "settlement": _settlement(result, now), "updated": now}
            if failed is None:
                assign |= {f"m_{scope}": formed, f"at_{scope}": now, "failed_at": None}
            else:
                assign |= {"failed_at": now}
            rows = tools.marks.moved(self._space_id, marks, now + DAY_MS, assign)
            head: Row = {} if failed else {"maintained": formed}
            return Proposal(None, rows=(self.row(record, row), *rows), head=head)

        self.commit(decide)

    # --- what is read before a commit

    def _stage(self, record: Record, marks: Row, name: str) -> tuple[Stage, Row]:
        """What a pass may know, and what the run's row gains by finding it out."""
        tools = self._tools
        with reading():
            head, state = tools.spaces.read_current(self._space_id)
        policy = self._policy(record, state)
        stage = Stage(space_id=self._space_id, marks=marks, policy=policy, paced=tools.paced)
        if name == "corrections":
            return self._with_log(stage, head), {}
        if name == "self_test" and tools.keeper is not None and policy.self_test_queries_per_cycle:
            report = msgspec.json.decode(record.text("report") or "{}", type=Report)
            sitting = self._sitting(Pen(self, record, report), marks)
            place, _ = stage.tested_from(tools.clock.now())
            asked = tools.keeper().quiz(sitting, place, policy.self_test_queries_per_cycle)
            if asked is not None:
                quiz = Quiz(asked.queries, asked.asked, asked.reason)
                return msgspec.structs.replace(stage, quiz=quiz), asked.row
        return stage, {}

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


class Pen:
    """Writes on the row of one run on behalf of a phase; implements `core.service.maintenance_place.Pen`."""

    def __init__(self, turn: Turn, record: Record, report: Report) -> None:
        self.record = record
        self.report = report
        self._turn = turn

    def write(
        self, assign: Row, act: Callable[[Draft], None] | None = None, *, note: dict[str, Json] | None = None
    ) -> None:
        """One commit: the row moves on, and memory with it."""
        now = self._turn.now()
        self.report.started = self.report.started or now
        if note is not None:
            self.report.told(dict(note))
        row: Row = {
            "step": self.record.count("step") + 1,
            "report": msgspec.json.encode(self.report).decode(),
            CITES: " ".join(sorted(self.report.named())) or None,
            "updated": now,
            **assign,
        }
        write = self._turn.row(self.record, row)

        def decide(state: SpaceState) -> Proposal:
            if act is None:
                return Proposal(None, rows=(write,))
            draft = Draft(state, now=max(now, state.at), origin=_origin(self.record))
            act(draft)
            return Proposal(draft.finish({"maintenance": self.record.number}), rows=(write,))

        self._turn.commit(decide)
        kept = {name: value for name, value in {**self.record.row, **row}.items() if value is not None}
        self.record = msgspec.structs.replace(self.record, row=kept)


def _origin(record: Record) -> Origin:
    return Origin(record.text("user") or ROLE, record.text("channel") or "schedule")


def _assessment(report: Report, state: SpaceState, formed: int) -> dict[str, Json]:
    """What the host found by rules (contract §6.3); what a caller sends under that name is dropped."""
    told = msgspec.to_builtins(report)
    assessment: dict[str, Json] = {
        "space_seq": state.seq,
        "formation_id": formed,
        "source_reliability": told.get("source_reliability", {}),
        "revised_roots": told.get("revised_roots", []),
        "settlement_errors": told.get("settlement_errors", []),
    }
    if report.predicates is not None:
        assessment["predicates"] = report.predicates
    return assessment


def _result(record: Record, report: Report, state: SpaceState, formed: int) -> dict[str, Json]:
    """What a run says at its end: the settlement's counts, the assessment block, and what the phases came to."""
    told = msgspec.to_builtins(report)
    assessment = {"model": record.text("model") or "offline", **_assessment(report, state, formed)}
    passes = {name: told[name] for name in SETTLING if name in told}
    scope, trigger = record.text("scope"), record.text("trigger")
    result: dict[str, Json] = {
        "scope": scope, "trigger": trigger, "settlement": passes, "assessment": assessment,
    }  # fmt: skip
    return result | ({"phases": report.phases} if report.phases else {})


def _settlement(result: dict[str, Json], now: Instant) -> str:
    """The counts of the last run, kept for the memory's status; they name no element."""
    errors = result["assessment"]["settlement_errors"]
    passes = {
        name: {key: value for key, value in told.items() if key != "due"}
        for name, told in result["settlement"].items()
    }
    kept = {"at": now, "scope": result["scope"], **passes, "settlement_errors": errors}
    return msgspec.json.encode(kept).decode()
