"""Shadow evaluation: how a memory policy would have done, tried on two copies of a space that nobody else sees.

What lives here: starting an evaluation, carrying it out, its row. What must never live here: copies (`core.service.shadow_fork`)
and judging (`core.agents.maintenance.judging`). Both copies are settled, one under the policy in force and one under the
candidate; questions that were really asked are asked again of both; a judge compares, not knowing which is which.

One evaluation of a space at a time. Its row is the only trace: it holds the questions and the judge's reasons, which may quote
memory, so any erasure in the space removes it, as it does the agents' notes. A worker that dies loses its comparison and not
the evaluation: the next one goes on with the question after the last that was judged. Nothing is put in force by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from core.agents.maintenance.judging import (
    OFFLINE_JUDGE,
    Told,
    Verdict,
    ask_judge,
    judge_by_rules,
    read_verdict,
    same,
)
from core.agents.vocabulary import PROFILE
from core.errors import NoemaError
from core.model.instants import Instant
from core.models.budget import Limits, Meter
from core.models.chat import ChatModel, ModelFault, Models, ToolCall, ToolResult
from core.models.run import Finished, converse
from core.models.tokens import check_tokenizer
from core.ports import Clock, Entropy, Objects, Put, Refused, Row, Table, Update, When
from core.protocol.http_types import MemoryPolicy, UpdateSpaceInput, Usage
from core.protocol.memory_types import (
    MaintenanceInput,
    ShadowInput,
    ShadowReport,
    ShadowSample,
    ShadowWinner,
)
from core.service.admin import Admin
from core.service.conversations import Conversations
from core.service.faults import reading, settled
from core.service.maintenance import Maintenance
from core.service.memory_policy import policy_of
from core.service.recall import Asked, Recall
from core.service.recall_run import Recalled
from core.service.shadow_fork import ForkObjects, fork_table
from core.service.shadow_row import State, report_of, shadow_sk, state_of, text_of
from core.service.spaces import Spaces
from core.service.thinking import Allowance, Terms, drive, unlimited
from core.service.values import Caller
from core.state.indexes import type_key
from core.storage.layout import space_pk

CLAIM_MS: Final = (
    6 * 60 * 1000
)  # a claim is renewed with each question; one takes at most ANSWER_MS twice and JUDGE_MS
ANSWER_MS: Final = 90_000
JUDGE_MS: Final = 60_000
LEAST_MS: Final = (
    30_000  # with less, a question is left to another turn, so that no answer is cut for want of time
)
FRESH_MS: Final = 10 * 60 * 1000  # how long the same wish is answered with the report that is there
LOOKED_AT: Final = 64  # newest recalls among which questions are found
SETTLE_MS: Final = 10 * 60 * 1000  # of a copy's settlement, at most
MAX_GOES: Final = 5  # turns without a question answered
_MAX_QUERY: Final = 500  # characters of a question on record
_NATIVE: Final = (f"{PROFILE}/Watch", f"{PROFILE}/SkillTrial")


class Fork(msgspec.Struct, frozen=True):
    """The services of a copy. `maintenance` is without a model, and settles as if a week had passed."""

    admin: Admin
    maintenance: Maintenance
    recall: Recall


class Forker(Protocol):
    """Builds services over the stores of a copy; whatever they spend on models is the real space's."""

    def __call__(self, table: Table, objects: Objects) -> Fork:
        """The services."""


class Worked(msgspec.Struct, frozen=True):
    """What a turn did. `more`: the evaluation goes on in another turn."""

    replayed: int = 0
    status: str = "none"
    more: bool = False


class Shadows:
    """Shadow evaluations of all spaces. Safe to share between threads.

    Args:
        table: the rows.
        objects: the objects, which copies read from.
        clock: the time.
        entropy: names claims.
        spaces: reads.
        conversations: the questions that were asked.
        fork: builds the services of a copy.
        models: which judge serves a space; without one, rules compare.
        allowance_of: what a space may spend on a judge today.
    """

    def __init__(
        self,
        table: Table,
        objects: Objects,
        clock: Clock,
        entropy: Entropy,
        *,
        spaces: Spaces,
        conversations: Conversations,
        fork: Forker,
        models: Models | None = None,
        allowance_of: Callable[[str, ChatModel], Allowance] = unlimited,
    ) -> None:
        self.table = table
        self.objects = objects
        self.clock = clock
        self.entropy = entropy
        self._spaces = spaces
        self._conversations = conversations
        self.fork = fork
        self._models = models
        self._allowance_of = allowance_of

    # --- starting and looking

    def submit(self, caller: Caller, space_id: str, wish: ShadowInput) -> ShadowReport:
        """Start an evaluation, or tell of the one of the same wish that works or has ended lately.

        Raises:
            NoemaError: `Busy` while another works, `InvalidInput` for a policy that no space could have,
                `NotFoundOrNotVisible`, `ServiceUnavailable`.
        """
        budget = wish.policy.recall_budget
        check_tokenizer(None if budget is None else budget.tokenizer, "policy.recall_budget.tokenizer")
        head = self._spaces.head(space_id)
        row, now = self._row(space_id), self.clock.now()
        there = state_of(row)
        if there is not None and row.get("instance") == head.instance:
            working = there.status == "working"
            if there.wish == wish and (working or now - there.ended < FRESH_MS):
                return report_of(there)
            if working and _number(row, "claimed_until") > now:
                raise NoemaError(
                    "Busy", "another evaluation of this space works",
                    details={"reason": "shadow_busy"}, retry_after_ms=5000,
                )  # fmt: skip
        begun = State(status="working", wish=wish, caller=caller, began=now)
        when = When(absent=True) if not row else When(equals={"mark": row.get("mark")})
        fresh: Row = {
            "mark": self.entropy.token(9), "state": text_of(begun), "instance": head.instance,
            "claimed_until": now + CLAIM_MS,
        }  # fmt: skip
        with reading():
            try:
                self.table.transact([Put(space_pk(space_id), shadow_sk(), fresh, when)])
            except Refused:
                raise NoemaError("Busy", "another evaluation began", retry_after_ms=1000) from None
        return report_of(begun)

    def _row(self, space_id: str) -> Row:
        with reading():
            return self.table.get(space_pk(space_id), shadow_sk()) or {}

    # --- working

    def work(self, space_id: str, deadline: Instant) -> Worked:
        """Carry on the evaluation that waits, question by question, until it has ended or the deadline is near.

        Args:
            space_id: the space.
            deadline: when to stop beginning questions (ms).

        Raises:
            NoemaError: the store failed, or the space is gone.
        """
        row = self._row(space_id)
        state = state_of(row)
        if state is None or state.status != "working" or _number(row, "worked_until") > self.clock.now():
            return Worked()
        turn = _Turn(self, space_id, row, state, deadline)
        if not turn.claim():
            return Worked()
        return turn.until_done()

    def questions(self, space_id: str, most: int) -> list[Asked]:
        """The newest questions that were answered, each once, whole, the oldest first."""
        found: dict[str, Asked] = {}
        for record in self._conversations.newest(space_id, "recall", LOOKED_AT):
            if record.status != "completed" or not isinstance(record.body, dict):
                continue
            try:
                asked = Asked.of(record.body)
            except msgspec.ValidationError:
                continue
            query = asked.question.query
            if query and not query.endswith("…"):  # one that was cut is not the question that was asked
                found.setdefault(query, asked)
            if len(found) == most:
                break
        return list(reversed(found.values()))

    def check_forkable(self, space_id: str) -> MemoryPolicy:
        """The policy in force, if the space may be copied.

        Raises:
            NoemaError: `PreconditionFailed` for a space whose Watches or trials act by themselves (contract §6.8).
        """
        state = self._spaces.load(space_id)
        if any(state.count(type_key(ref)) for ref in _NATIVE):
            raise NoemaError("PreconditionFailed", "a space with Watches or trials of Skills is not copied")
        return policy_of(state.meta)

    def judge_of(self, space_id: str) -> tuple[ChatModel, Allowance] | None:
        """Who compares; None where rules do.

        Raises:
            NoemaError: a judge is configured that cannot be used.
            ModelFault: the same.
        """
        model = None if self._models is None else self._models.of(space_id, "judge")
        return None if model is None else (model, self._allowance_of(space_id, model))


class _Turn:
    """One turn at an evaluation, under one claim."""

    def __init__(self, service: Shadows, space_id: str, row: Row, state: State, deadline: Instant) -> None:
        self._service = service
        self._space_id = space_id
        self._row = row
        self._state = state
        self._deadline = deadline
        self._clock: Clock = service.clock
        self._claim = service.entropy.token(9).hex()

    def claim(self) -> bool:
        """Take the evaluation for a while; False if another has it."""
        when = When(equals={"mark": self._row.get("mark"), "claim": self._row.get("claim")})
        return self._write(when)

    def _write(self, when: When, *, over: bool = False) -> bool:
        now, pk, sk = self._clock.now(), space_pk(self._space_id), shadow_sk()
        until = 0 if over else now + CLAIM_MS
        row: Row = {
            "claim": self._claim, "worked_until": until, "claimed_until": until, "state": text_of(self._state),
        }  # fmt: skip

        def landed() -> bool:
            found = self._service.table.get(pk, sk) or {}
            return found.get("claim") == self._claim and found.get("state") == row["state"]

        with reading():
            return settled(self._service.table, [Update(pk, sk, assign=row, when=when)], landed)

    def _keep(self, *, over: bool = False) -> bool:
        return self._write(When(equals={"claim": self._claim}), over=over)

    def until_done(self) -> Worked:
        """Copy, settle, ask and compare; a failure is the evaluation's end, and says why."""
        state = self._state
        try:
            done = self._compare()
        except NoemaError as error:
            if error.spec.retry == "safe_same_request":
                self._keep(over=True)
                raise
            state.failed = error.code
            done = True
        except ModelFault as fault:
            state.failed, done = f"model_fault: {fault.kind}", True
        if done:
            state.status, state.ended = ("failed" if state.failed else "completed"), self._clock.now()
        if not self._keep(over=True):
            return Worked(state.done)  # something was erased, or another has it: there is nothing to add
        return Worked(state.done, state.status, more=not done)

    def _compare(self) -> bool:
        service, state = self._service, self._state
        policy = service.check_forkable(self._space_id)
        most = state.wish.replay_sample or policy.shadow_replay_sample
        questions = service.questions(self._space_id, most)
        if state.done >= len(questions):
            return True
        judge = service.judge_of(self._space_id)
        state.judge = OFFLINE_JUDGE if judge is None else judge[0].name
        state.goes += 1
        if state.goes > MAX_GOES:
            raise NoemaError("ResourceExhausted", "the turns are too short for a space of this size")
        baseline, candidate = self._settled(None), self._settled(state.wish.policy)
        if baseline is None or candidate is None:
            return False
        for number in range(state.done, len(questions)):
            if self._clock.now() + LEAST_MS >= self._deadline:
                return False
            asked = questions[number]
            answers = [self._answer(fork, asked) for fork in (baseline, candidate)]
            sample = self._judged(asked.question.query, answers[0], answers[1], number, judge)
            state.samples = [*state.samples, sample]
            state.done, state.goes = number + 1, 0
            if not self._keep():
                return False
        return True

    def _settled(self, policy: MemoryPolicy | None) -> Fork | None:
        """A copy, settled under a policy, None for the one in force; None if the turn ended before that."""
        service, space_id = self._service, self._space_id
        objects = ForkObjects(service.objects, self._clock)
        fork = service.fork(fork_table(service.table, space_id), objects)
        until = min(self._deadline, self._clock.now() + SETTLE_MS)
        if policy is not None:
            fork.admin.update_space(
                self._state.caller, space_id, UpdateSpaceInput(memory_policy=policy), until
            )
        fork.maintenance.submit(self._state.caller, space_id, MaintenanceInput(scope="full"))
        return fork if fork.maintenance.run(space_id, until).status == "completed" else None

    def _answer(self, fork: Fork, asked: Asked) -> Recalled:
        until = min(self._deadline, self._clock.now() + ANSWER_MS)
        return fork.recall.answer(self._state.caller, self._space_id, asked, until).recalled

    def _judged(
        self,
        query: str,
        baseline: Recalled,
        candidate: Recalled,
        number: int,
        judge: tuple[ChatModel, Allowance] | None,
    ) -> ShadowSample:
        one, other = _told(baseline), _told(candidate)
        self._spend(baseline.usage)
        self._spend(candidate.usage)
        if same(one, other):
            verdict: Verdict | None = Verdict("tie", "the same answer")
            reason = ""
        elif judge is None:
            verdict, reason = judge_by_rules(one, other), ""
        else:
            verdict, reason = self._ask(query, one, other, number, judge)
        winner: ShadowWinner = "error" if verdict is None else verdict.winner
        said = reason if verdict is None else verdict.reason
        return ShadowSample(query=query[:_MAX_QUERY], winner=winner, reason=said or None)

    def _ask(
        self, query: str, one: Told, other: Told, number: int, judge: tuple[ChatModel, Allowance]
    ) -> tuple[Verdict | None, str]:
        model, allowance = judge
        meter = Meter(Limits(turns=1), model.capabilities)
        script = ask_judge(query, one, other, number, model.capabilities.context_tokens)
        until = min(self._deadline, self._clock.now() + JUDGE_MS)
        terms = Terms(model, _no_tools, self._clock, until, allowance)
        finished: Finished = drive(converse(script, meter), terms)
        self._spend(Usage(**msgspec.structs.asdict(meter.usage)))
        if not finished.ok:
            return None, f"model_{finished.ended}"
        verdict = read_verdict(finished.text, number)
        return verdict, "" if verdict else "model_unreadable"

    def _spend(self, usage: Usage) -> None:
        held = self._state.usage
        self._state.usage = Usage(
            **{name: getattr(held, name) + getattr(usage, name) for name in Usage.__struct_fields__}
        )


def _told(recalled: Recalled) -> Told:
    return Told(
        recalled.text,
        recalled.found,
        len(recalled.cited),
        recalled.uncertainty,
        failed=recalled.failed is not None,
    )


def _no_tools(call: ToolCall) -> ToolResult:
    raise NoemaError("NotAuthorized", f"{call.name} is not available to you")


def _number(row: Row, name: str) -> int:
    value = row.get(name)
    return value if isinstance(value, int) else 0
