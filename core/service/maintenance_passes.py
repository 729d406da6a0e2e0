"""The passes of a run of maintenance: what each adds to the run's report, and how far it moves the space's marks.

What lives here: one commit's worth of each pass. What must never live here: leases, the store, and the order of the
passes (`core.service.maintenance`), or what a pass does to memory (`core.agents.maintenance`).

The report may name elements; it stands in the run's own row, which forgetting an element finds and removes. The marks
never do: they outlive what was forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from core.agents.maintenance.census import census
from core.agents.maintenance.corrections import Stretch, revised, tallies
from core.agents.maintenance.decay import decay
from core.agents.maintenance.due import raise_due
from core.agents.maintenance.retention import sweep
from core.agents.maintenance.selftest import self_test
from core.agents.maintenance.tasks import conflicting, file_conflict
from core.agents.maintenance.working import close_tasks
from core.model.elements import Json
from core.model.instants import Instant
from core.ports import Row, Update, Write
from core.protocol.http_types import MemoryPolicy
from core.protocol.memory_types import MaintenanceScope
from core.schema.environment import environment_of
from core.state.indexes import actor_key, day_of
from core.storage.layout import corrections_sk, space_pk
from core.transaction.draft import Draft

MOST_ROOTS: Final = 50
MOST_ACTORS: Final = 50  # counted in one commit: each is a row of its transaction
BATCHES: Final = 20  # commits of one pass in one run; the next run goes on
MAX_SHOWN: Final = 1_500  # ids of what a model saw that a run's row keeps
MOST_DUE: Final = 50  # due Commitments that a report names
RETEST_MS: Final = 30 * 24 * 3600 * 1000

PASSES: Final[Mapping[MaintenanceScope, tuple[str, ...]]] = {
    "daydream": ("decay", "corrections", "commitments", "tasks", "phases", "self_test"),
    "quick": ("decay", "corrections", "commitments", "tasks", "phases", "self_test"),
    "full": ("decay", "corrections", "retention", "census", "commitments", "tasks", "phases", "self_test"),
}
THINKING: Final = "phases"
"""The pass that a model makes, where the space has one (`core.service.maintenance_model`)."""
SETTLING: Final = ("decay", "corrections", "retention", "commitments", "tasks", "self_test")
"""The passes of which the settlement tells."""


class Report(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a run has found and done so far. What a scope does not measure stays absent."""

    started: Instant = 0
    decay: dict[str, Json] | None = None
    corrections: dict[str, Json] | None = None
    retention: dict[str, Json] | None = None
    commitments: dict[str, Json] | None = None
    tasks: dict[str, Json] | None = None
    self_test: dict[str, Json] | None = None
    phases: list[dict[str, Json]] = []
    shown: list[str] = []
    predicates: dict[str, int] | None = None
    source_reliability: dict[str, dict[str, Json]] = {}
    revised_roots: list[dict[str, Json]] = []
    settlement_errors: list[dict[str, Json]] = []

    def named(self) -> set[str]:
        """Every element the report names."""
        roots = {name for each in self.revised_roots for name in (each["root"], *each["dependents"])}
        raised = set() if self.commitments is None else set(self.commitments.get("due", ()))
        return roots | raised | set(self.source_reliability) | set(self.shown)

    def told(self, phase: dict[str, Json]) -> None:
        """Add what a model said of a phase, and the elements whose words it may have repeated.

        Where those are too many to be kept, so that forgetting one of them would find the run, no word of it is kept.
        """
        shown = list(dict.fromkeys((*self.shown, *phase.pop("shown", []))))
        self.phases = [*self.phases, phase]
        if len(shown) > MAX_SHOWN:
            self.phases = [
                {name: told for name, told in each.items() if name != "report"} for each in self.phases
            ]
        self.shown = shown[:MAX_SHOWN]


class Piece(msgspec.Struct):
    """What one commit of a pass leaves: changed marks, sums, rows beside them, and whether the pass is over."""

    done: bool
    assign: Row = {}
    add: dict[str, int] = {}
    rows: tuple[Write, ...] = ()


class Quiz(msgspec.Struct, frozen=True):
    """Questions for the next memories that are tested, by id, of which so many were asked for; or why there are none."""

    queries: dict[str, str] | None
    asked: int = 0
    reason: str = ""


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass may know: the space's marks, the policy of this run, and what was read for it beforehand.

    stretch: the piece of the log to look at; None if there is nothing new. skipped: part of the log is no longer kept.
    more: there is more of the log. totals: how often each actor of the stretch was corrected before. paced: whether a
    memory fades once a week at most. quiz: the questions a model made for the self-test.
    """

    space_id: str
    marks: Row
    policy: MemoryPolicy
    stretch: Stretch | None = None
    skipped: bool = False
    more: bool = False
    totals: Mapping[str, int] = {}
    paced: bool = True
    quiz: Quiz | None = None

    def number(self, name: str) -> int | None:
        """A numeric mark."""
        value = self.marks.get(name)
        return value if isinstance(value, int) else None

    def text(self, name: str) -> str | None:
        """A mark that is text."""
        value = self.marks.get(name)
        return value if isinstance(value, str) else None

    def tested_from(self, now: Instant) -> tuple[str | None, Instant]:
        """Where the self-test goes on, and since when; what was tested a month ago is tested again."""
        since = self.number("test_from")
        if since is None or now - since >= RETEST_MS:
            return None, now
        return self.text("test_place"), since


def _decay(draft: Draft, stage: Stage, report: Report) -> Piece:
    piece = decay(draft, stage.policy, stage.text("place"), paced=stage.paced)
    report.decay = _plus(report.decay, decayed=piece.decayed, looked_at=piece.looked_at)
    report.decay["complete"] = piece.place is None
    return Piece(piece.place is None, {"place": piece.place}, {"decayed": piece.decayed})


def _corrections(draft: Draft, stage: Stage, report: Report) -> Piece:
    """Count corrections by actor, name what rests on the revised claims, and leave tasks for contradictions."""
    stretch, seen = stage.stretch, report.corrections
    if stretch is None:
        report.corrections = {**_plus(seen, found=0, tasks=0), "incomplete": stage.skipped}
        return Piece(done=True)
    counted = tallies(stretch.corrections)
    kept = dict(list(counted.items())[:MOST_ACTORS])
    for actor, (count, last) in kept.items():
        report.source_reliability[actor] = {
            "corrections": stage.totals.get(actor, 0) + count,
            "last_corrected_at": last,
            "total_links": draft.state.count(actor_key(actor)),
        }
    for each in stretch.corrections[: max(0, MOST_ROOTS - len(report.revised_roots))]:
        report.revised_roots.append(msgspec.to_builtins(revised(draft.state, each.claim)))
    env, tasks = environment_of(draft.meta), 0
    for proposition in stretch.propositions:
        claims = conflicting(draft.view, env, proposition)
        tasks += bool(claims) and file_conflict(draft, claims)
    report.corrections = _plus(seen, found=len(stretch.corrections), tasks=tasks)
    lost = stage.skipped or len(kept) < len(counted) or bool((seen or {}).get("incomplete"))
    report.corrections |= {"through_seq": stretch.seq, "incomplete": lost}
    pk = space_pk(stage.space_id)
    rows = tuple(
        Update(pk, corrections_sk(actor), assign={"last": last}, add={"n": count})
        for actor, (count, last) in kept.items()
    )
    add = {"corrections": len(stretch.corrections), "tasks": tasks}
    return Piece(not stage.more, {"scan_ver": stretch.version, "scan_seq": stretch.seq}, add, rows)


def _retention(draft: Draft, stage: Stage, report: Report) -> Piece:
    begin = stage.number("day")
    piece = sweep(draft, day_of(draft.meta.created_at) if begin is None else begin)
    counts = {
        "archived": piece.archived,
        "expired_assertions": piece.expired,
        "held": piece.held,
        "refused": piece.refused,
        "remaining": piece.remaining,
    }
    report.retention = _plus(report.retention, **counts)
    day = day_of(draft.now) if piece.day is None else piece.day
    return Piece(piece.day is None, {"day": day})


def _census(draft: Draft, stage: Stage, report: Report) -> Piece:
    del stage
    report.predicates = census(draft.state, environment_of(draft.meta))
    audit = {"as_of": draft.now, "space_seq": draft.state.seq, "predicates": report.predicates}
    return Piece(done=True, assign={"audit": msgspec.json.encode(audit).decode()})


def _commitments(draft: Draft, stage: Stage, report: Report) -> Piece:
    piece = raise_due(draft, stage.text("due_place"))
    before = report.commitments or {}
    report.commitments = _plus(report.commitments, raised=len(piece.raised))
    report.commitments["due"] = [*before.get("due", ()), *piece.raised][:MOST_DUE]
    return Piece(piece.place is None, {"due_place": piece.place})


def _tasks(draft: Draft, stage: Stage, report: Report) -> Piece:
    del stage
    found = close_tasks(draft, environment_of(draft.meta))
    report.tasks = {"closed": len(found.closed), "waiting": found.waiting}
    return Piece(done=True)


def _self_test(draft: Draft, stage: Stage, report: Report) -> Piece:
    sample = stage.policy.self_test_queries_per_cycle
    if sample == 0:
        return Piece(done=True)
    place, since = stage.tested_from(draft.now)
    quiz = stage.quiz
    if quiz is not None and quiz.queries is None:
        report.self_test = {"skipped": quiz.reason}
        return Piece(done=True)
    tested = self_test(
        draft, place, sample if quiz is None else quiz.asked, None if quiz is None else quiz.queries
    )
    counts = {"tested": tested.tested, "grounded": tested.grounded, "tasks": tested.tasks}
    report.self_test = {**counts, "queries": "own words" if quiz is None else "model"}
    kept = msgspec.json.encode({**report.self_test, "at": draft.now}).decode()
    assign: Row = {"test_place": tested.place, "test_from": since}
    if tested.tested:
        assign["self_test"] = kept
    add = {"tested": tested.tested, "grounded": tested.grounded, "reencode": tested.tasks}
    return Piece(done=True, assign=assign, add=add)


Pass = Callable[[Draft, Stage, Report], Piece]
STEPS: Final[Mapping[str, Pass]] = {
    "decay": _decay,
    "corrections": _corrections,
    "retention": _retention,
    "census": _census,
    "commitments": _commitments,
    "tasks": _tasks,
    "self_test": _self_test,
}


def _plus(before: dict[str, Json] | None, **counts: int) -> dict[str, Any]:
    return {**(before or {}), **{name: (before or {}).get(name, 0) + count for name, count in counts.items()}}
