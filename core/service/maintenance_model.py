"""Maintaining with a model: phase by phase, under the run's lease, so that it can be left and taken up at any point.

What lives here: which model, the run of one phase, what the row says of it, the questions of the self-test. What must never
live here: whose turn it is (`core.service.maintenance_run`), what a phase is about (`core.agents.maintenance`).

A worker may die, be fenced or run out of time anywhere. What makes that harmless: a phase is noted before it is begun; each
command of the model is one commit under the lease's epoch with a key of its content; what a phase has made is found by its
origin, so one that begins anew is told of it; and the phase ends in one transaction with the Activity that records it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from core.agents.formation.captured import ensure_reader
from core.agents.formation.ending import why
from core.agents.maintenance.ending import Reaction, react
from core.agents.maintenance.material import ROLE, Look, Material, gather
from core.agents.maintenance.phases import SCOPES, Phase
from core.agents.maintenance.products import find_products, record_products
from core.agents.maintenance.quizzing import Quiz, make_quiz, read_quiz
from core.agents.maintenance.rules import Custody
from core.agents.maintenance.selftest import sample_of
from core.agents.maintenance.telling import LEASE_TASK, LeaseCall, lines_that_fit, script_of
from core.agents.maintenance.working import lease
from core.agents.prompts.maintenance import VERSION
from core.agents.recall.sight import seen_by
from core.agents.recall.trace import ids_seen
from core.agents.tools.calls import read_arguments
from core.agents.tools.schema import schema_text
from core.authority import Principal
from core.errors import NoemaError
from core.governance import admit
from core.model.elements import Json
from core.models.budget import Limits, Meter
from core.models.chat import ChatModel, ModelFault, Models, ToolCall, ToolResult, Usage
from core.models.run import Finished, converse
from core.ports import Clock, Row
from core.protocol.memory_types import MaintenanceScope
from core.schema.environment import environment_of
from core.service.agent_tools import Toolbox, Writing
from core.service.commit import Commits
from core.service.formation_place import COMMIT_MS, add_warnings
from core.service.kip import Kip
from core.service.maintenance_place import Quizzed, Sat, Sitting
from core.service.notes import Notes
from core.service.spaces import Spaces
from core.service.thinking import RUN_LIMITS, Allowance, Terms, drive, unlimited, usual_limits
from core.service.values import Proposal
from core.service.watching import Watched
from core.state.space import SpaceState
from core.state.view import View
from core.transaction.draft import Draft

MAX_GOES: Final = 3  # times a phase is begun without coming to an end
MAX_REPORT: Final = 500  # characters of the model's last words on a phase
MAX_SHOWN: Final = (
    2_000  # ids of what the model saw that a run's record keeps, to be found when one is forgotten
)
_RIGHTS: Final = frozenset({
    "read", "search", "project", "create", "update", "maintain", "record_attributed_assertion", "retract_own",
    "supersede_own", "derive", "archive", "merge_identity",
})  # fmt: skip
"""What a run may do at most: nothing that purges, tombstones, keeps or governs."""


class _Means(msgspec.Struct, frozen=True):
    """What a phase is worked with."""

    model: ChatModel
    limits: Limits
    allowance: Allowance


class Keeper:
    """Maintenance with models, for every space that has one. Safe to share between threads.

    Args:
        models: which model serves a space; none there means that rules alone maintain it.
        kip: runs the model's commands.
        notes: of maintenance.
        clock: the time.
        spaces: reads.
        commits: the one commit loop.
        allowance_of: what a space may spend on a model today.
        limits_of: what one run may take.
    """

    def __init__(
        self,
        models: Models,
        kip: Kip,
        notes: Notes,
        clock: Clock,
        *,
        spaces: Spaces,
        commits: Commits,
        allowance_of: Callable[[str, ChatModel], Allowance] = unlimited,
        limits_of: Callable[[str, ChatModel], Limits] = usual_limits,
    ) -> None:
        self.models = models
        self.kip = kip
        self.notes = notes
        self.clock = clock
        self.spaces = spaces
        self.commits = commits
        self.allowance_of = allowance_of
        self.limits_of = limits_of

    def sit(self, sitting: Sitting) -> Sat | None:
        """Work the next phase that has something to look at; None where the space has no model.

        Raises:
            Fenced: the lease is lost.
            NoemaError: the store failed.
        """
        means = self._means(sitting.space_id)
        if means is None:
            return None
        if isinstance(means, str):
            return Sat(over=True, offline=means)
        return _Phase(self, means, sitting).work()

    def quiz(self, sitting: Sitting, place: str | None, sample: int) -> Quizzed | None:
        """Questions for the next memories to be tested; None where there is no model.

        Raises:
            Fenced: the lease is lost.
            NoemaError: the store failed.
        """
        means = self._means(sitting.space_id)
        if means is None or isinstance(means, str):
            return None
        return _Phase(self, means, sitting).quiz(place, sample)

    def _means(self, space_id: str) -> _Means | str | None:
        try:
            model = self.models.of(space_id, ROLE)
            if model is None:
                return None
            if not model.capabilities.tools:
                return "model_without_tools"
            return _Means(model, self.limits_of(space_id, model), self.allowance_of(space_id, model))
        except ModelFault:
            return "model_unusable: ModelFault"
        except NoemaError as error:
            if error.code == "ResourceExhausted":
                return "model_budget"
            if error.spec.retry == "safe_same_request":
                raise  # the store, not the model: another turn finds it better
            return f"model_unusable: {error.code}"


class _Step(msgspec.Struct, frozen=True):
    """A phase, its number in the run, and the version of the log it was begun at."""

    phase: Phase
    number: int
    since: int


class _Phase:
    """One phase, worked by a model."""

    def __init__(self, keeper: Keeper, means: _Means, sitting: Sitting) -> None:
        self._keeper = keeper
        self._sitting = sitting
        self._allowance = means.allowance
        self._clock = keeper.clock
        self._model = Watched(means.model, sitting.lease, keeper.clock)
        self._began = keeper.clock.now()
        record, limits = sitting.record, means.limits
        spent = record.count("input_tokens") + record.count("output_tokens")
        left = None if limits.tokens is None else max(0, limits.tokens - spent)
        turns = max(0, min(limits.turns, RUN_LIMITS.turns) - record.count("turns"))
        self._meter = Meter(Limits(turns, left, limits.micros), means.model.capabilities)

    def work(self) -> Sat:
        """Work the next phase, or say that none is left."""
        record = self._sitting.record
        phases = SCOPES[msgspec.convert(record.text("scope"), MaintenanceScope)]
        state = self._load()
        places = self._places()
        for number, phase in enumerate(phases):
            if phase.name in places:
                continue
            material = gather(phase, self._look(state, phase))
            if material.empty:
                places[phase.name] = material.place
            elif number >= record.count("phase"):  # else it came up behind this run, and is for the next
                return self._one(phase, number, material)
        return Sat(over=True, marks=_marks(places))

    def _places(self) -> dict[str, str | None]:
        """Where the next looks of the phases begin that this run has ended."""
        return msgspec.json.decode(self._sitting.record.text("places") or "{}", type=dict[str, str | None])

    def _one(self, phase: Phase, number: int, material: Material) -> Sat:
        sitting, record = self._sitting, self._sitting.record
        begun = number == record.count("phase")
        goes = record.count("goes") + 1 if begun else 1
        step = _Step(phase, number, (record.count("since") if begun else 0) or self._load().ver)
        if goes > MAX_GOES:
            return self._leave(step, material, "warn", "model_no_progress")
        row: Row = {"phase": number, "goes": goes, "since": step.since}
        sitting.pen.write(row, lambda draft: void(ensure_reader(draft)))
        finished, commits = self._run(step, material, self._load())
        reaction = react(finished)
        reason = "" if reaction == "next" else why(finished)
        told: dict[str, Json] = {"phase": phase.name, "commits": commits, "shown": _shown(material, finished)}
        told |= {"ended": reason} if reason else {}
        told |= {"report": finished.text.strip()[:MAX_REPORT]} if finished.text.strip() else {}
        if reaction == "later" or (reaction == "again" and goes < MAX_GOES):
            # Time that ran out says nothing against the phase; what was made of it is told to the next turn.
            sitting.pen.write({**self._spent(), **({"goes": None} if commits else {})})
            return Sat(later=True)
        if reaction in ("again", "failed"):
            sitting.pen.write(self._spent(), note=told)
            return Sat(failed=reason)
        return self._leave(step, material, reaction, reason, told)

    def _leave(
        self,
        step: _Step,
        material: Material,
        reaction: Reaction,
        reason: str,
        told: dict[str, Json] | None = None,
    ) -> Sat:
        """End a phase: what was made of what, and the row, in one transaction."""
        sitting, record = self._sitting, self._sitting.record
        places = self._places()
        if reaction != "offline":  # what nobody looked at is looked at next time
            places[step.phase.name] = material.place
        row: Row = {
            "phase": step.number + 1,
            "goes": None,
            "since": None,
            "places": msgspec.json.encode(places).decode(),
            **self._spent(),
        }
        if reaction == "warn":
            row["warnings"] = add_warnings(record, [f"{step.phase.name}: {reason}"])
        key = f"maintenance:{sitting.owner}:{step.phase.name}"

        def act(draft: Draft) -> None:
            products = find_products(draft.view, draft.meta.salt, step.since, sitting.origin.principal)
            record_products(draft, step.phase, products, key=key, began=self._began)

        sitting.pen.write(row, act, note=told)
        return Sat(over=True, offline=reason, marks=_marks(places)) if reaction == "offline" else Sat()

    # --- the run

    def _run(self, step: _Step, material: Material, state: SpaceState) -> tuple[Finished, int]:
        sitting = self._sitting
        custody = self._custody(step.phase, material, state)
        tools = _Tools(self._keeper, sitting, custody, self._principal(state))
        made = find_products(state, state.meta.salt, step.since, sitting.origin.principal).made
        script = script_of(
            step.phase,
            material,
            sitting.assessment,
            schema_text(environment_of(state.meta)),
            done=made,
            context_tokens=self._model.capabilities.context_tokens,
        )
        finished = drive(converse(script, self._meter), self._terms(tools.use))
        return finished, tools.commits

    def _terms(self, use_tool: Callable[[ToolCall], ToolResult]) -> Terms:
        return Terms(
            model=self._model,
            use_tool=use_tool,
            clock=self._clock,
            until=self._sitting.until,
            allowance=self._allowance,
        )

    def _custody(self, phase: Phase, material: Material, state: SpaceState) -> Custody:
        sitting = self._sitting
        keeper = ensure_reader(Draft(state, now=state.at, origin=sitting.origin)).id
        seal = f"m{sitting.record.number}.{phase.name}.{sitting.instance}"
        return Custody(keeper, sitting.owner, self._clock.now, seal, material)

    def _principal(self, state: SpaceState) -> Principal:
        origin = self._sitting.origin
        keeper = ensure_reader(Draft(state, now=state.at, origin=origin)).id
        return Principal(
            id=origin.principal, channel=ROLE, permissions=_RIGHTS, actors=frozenset({keeper}), strong=False
        )

    def _look(self, state: SpaceState, phase: Phase) -> Look:
        return Look(
            self._view(state),
            self._sitting.policy,
            self._clock.now(),
            state.meta.salt,
            _text(self._sitting.marks, _mark(phase.name)),
            state.meta.self_identity,
            lines_that_fit(self._model.capabilities.context_tokens, schema_text(environment_of(state.meta))),
            self._sitting.policy.unconsolidated_max_backlog
            if self._sitting.record.text("scope") == "quick"
            else 1,
        )

    def _view(self, state: SpaceState) -> View:
        asked = admit(self._principal(state), state.meta, state, self._clock.now())
        return seen_by(state, asked)

    def _load(self) -> SpaceState:
        return self._keeper.spaces.load(self._sitting.space_id)

    # --- the self-test

    def quiz(self, place: str | None, sample: int) -> Quizzed | None:
        """Questions by memory, or why there are none; None where there is no memory to ask for."""
        state = self._load()
        view = self._view(state)
        budget = self._sitting.policy.self_test_token_budget
        concepts, _ = sample_of(view, state.meta.salt, place, sample)
        quiz = make_quiz(view, concepts, budget, self._model.capabilities.context_tokens)
        if quiz is None:
            return Quizzed(None, "self_test_token_budget", 0, {}) if concepts else None
        found = self._asked(quiz, budget)
        queries, reason = (None, found) if isinstance(found, str) else (found, "")
        return Quizzed(queries, reason, len(quiz.asked), self._spent())

    def _asked(self, quiz: Quiz, budget: int) -> dict[str, str] | str:
        self._meter.limits = msgspec.structs.replace(self._meter.limits, turns=1, tokens=budget)
        finished = drive(converse(quiz.script, self._meter), self._terms(_no_tools))
        if finished.ended != "done":
            return why(finished)
        return read_quiz(quiz, finished.text) or "model_unreadable"

    # --- the row

    def _spent(self) -> Row:
        """What the record says was spent and by whom, all phases together."""
        record, used = self._sitting.record, self._meter.usage
        total = Usage(
            *(record.count(name) for name in ("input_tokens", "output_tokens", "cached_tokens", "requests"))
        ).plus(used)
        return {
            "model": self._model.name,
            "prompt": VERSION,
            "turns": record.count("turns") + self._meter.turns,
            **msgspec.structs.asdict(total),
        }


class _Tools:
    """The tools of one phase: KIP and the reference as every agent has them, and the tasks."""

    def __init__(self, keeper: Keeper, sitting: Sitting, custody: Custody, principal: Principal) -> None:
        self._keeper = keeper
        self._sitting = sitting
        self._custody = custody
        writing = Writing(sitting.lease, custody, custody.seal, keeper.commits, keeper.notes)
        self._box = Toolbox(
            keeper.kip,
            sitting.space_id,
            principal,
            clock=keeper.clock,
            until=sitting.until,
            writing=writing,
        )
        self._leased = 0

    @property
    def commits(self) -> int:
        """Commits of the model, its leases included."""
        return self._box.commits + self._leased

    def use(self, call: ToolCall) -> ToolResult:
        """Carry a call out.

        Raises:
            Fenced: the lease is lost.
        """
        return self._lease(call) if call.name == LEASE_TASK.name else self._box.use(call)

    def _lease(self, call: ToolCall) -> ToolResult:
        wish = read_arguments(call, LeaseCall)
        if wish.task not in self._custody.material.tasks:
            raise NoemaError("NotAuthorized", "that task is not on the table in this phase")
        clock = self._keeper.clock

        def decide(state: SpaceState) -> Proposal:
            draft = Draft(state, now=max(clock.now(), state.at), origin=self._sitting.origin)
            task = lease(draft, wish.task, wish.version, self._custody.owner)
            return Proposal(
                draft.finish({"leased": task.id}), outcome={"task": task.id, "version": task.system.version}
            )

        now = clock.now()
        done = self._keeper.commits.commit(
            self._sitting.space_id,
            decide,
            deadline=min(self._sitting.until, now + COMMIT_MS),
            fence=self._sitting.lease(),
        )
        self._leased += 1
        return ToolResult(call.id, call.name, msgspec.json.encode(done.outcome).decode())


def _mark(phase: str) -> str:
    """The attribute of the space's marks that says where a phase goes on."""
    return f"seen_{phase}"


def _marks(places: dict[str, str | None]) -> Row:
    return {_mark(name): place for name, place in places.items()}


def void(_: object) -> None:
    """Drop a value."""


def _no_tools(call: ToolCall) -> ToolResult:
    raise NoemaError("NotAuthorized", f"{call.name} is not available to you")


def _shown(material: Material, finished: Finished) -> list[Json]:
    """Every element whose words the model may have repeated."""
    lines = [str(line["id"]) for line in material.lines if "id" in line]
    return list(dict.fromkeys((*lines, *sorted(material.tasks), *ids_seen(finished.trace))))[:MAX_SHOWN]


def _text(row: Row, name: str) -> str | None:
    value = row.get(name)
    return value if isinstance(value, str) else None
