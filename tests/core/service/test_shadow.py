"""Shadow evaluation: a policy tried on a copy, blind, one at a time, and without a trace in the space."""

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from core.agents.maintenance.decay import MNEMONIC
from core.agents.maintenance.judging import (
    OFFLINE_JUDGE,
    Told,
    ask_judge,
    judge_by_rules,
    read_verdict,
)
from core.agents.vocabulary import EVENT
from core.errors import NoemaError
from core.model.elements import Concept, Origin
from core.models.chat import ChatReply, ChatRequest, ModelFault
from core.ports import Unavailable
from core.protocol.http_types import MemoryPolicy, RecallBudget
from core.protocol.memory_types import ShadowInput
from core.service.maintenance import Maintenance
from core.service.recall import Recall
from core.service.recall_thinking import Thinking
from core.service.shadow import CLAIM_MS, FRESH_MS, Fork, Shadows, Worked
from core.service.shadow_fork import fork_table
from core.service.shadow_row import last_report, shadow_sk
from core.service.upkeep import Upkeep
from core.service.values import Proposal
from core.storage.layout import ALL_ROWS, space_pk
from core.transaction.draft import Draft
from tests.doubles import Crash, FailingTable, Faults, FixedModels, ScriptedModel, says
from tests.recalling import Recalling
from tests.services import MINUTE, World

NEW = ShadowInput(policy=MemoryPolicy(memory_strength_decay_factor=0.5))


class Shadowing(World):
    """One process that can evaluate; `judge` compares, and `model` answers on the copies."""

    def __init__(self, *stores: Any, judge: Any = None, model: Any = None, **options: Any) -> None:
        super().__init__(*stores, **options)
        self.forks: list[World] = []
        self.model = model
        self.shadows = Shadows(
            self.table,
            self.objects,
            self.clock,
            self.entropy,
            spaces=self.spaces,
            conversations=self.conversations,
            fork=self.fork,
            models=FixedModels(judge),
        )

    def fork(self, table: Any, objects: Any) -> Fork:
        """The services of a copy."""
        world = World(table, objects, self.clock, seed=77 + len(self.forks))
        self.forks.append(world)
        maintenance = Maintenance(
            table,
            world.queue,
            self.clock,
            world.entropy,
            spaces=world.spaces,
            commits=world.commits,
            leases=world.leases,
            conversations=world.conversations,
            paced=False,
        )
        thinking = Thinking(self.clock, world.spaces, None)
        recall = Recall(
            self.clock,
            world.spaces,
            world.conversations,
            models=FixedModels(self.model),
            thinking=lambda: thinking,
        )
        return Fork(world.admin, maintenance, recall)

    def evaluate(self, wish: ShadowInput = NEW) -> Any:
        """Start and carry out an evaluation; its report."""
        self.shadows.submit(self.caller, "home", wish)
        self.work()
        return self.report()

    def work(self, ms: int = 10 * MINUTE) -> Worked:
        """A worker's turn."""
        return self.shadows.work("home", self.clock.now() + ms)

    def report(self) -> Any:
        """The last report."""
        return last_report(self.table, "home")


def shadowing(**options: Any) -> Shadowing:
    """A space with two questions that were asked."""
    world = Shadowing(**options)
    world.create()
    world.say("home", "I live in Berlin.", "I love tea.")
    world.drain()
    world.ask("Where does Alice live?")
    world.ask("What does Alice love?")
    return world


def everything(world: World) -> Any:
    """All rows of the space but the evaluation's own, and all objects."""
    rows = [
        pair
        for pair in world.table.query(space_pk("home"), *ALL_ROWS, limit=10_000)
        if pair[0] != shadow_sk()
    ]
    return rows, list(world.objects.list(""))


# --- an evaluation


def test_an_evaluation_replays_what_was_asked_and_leaves_no_trace() -> None:
    """Both copies are settled at once, the same answers are a tie, and the space and its log are as they were."""
    world = shadowing()
    before = everything(world)
    report = world.evaluate()

    assert report.status == "completed"
    assert (report.replayed, report.ties, report.baseline_wins, report.candidate_wins, report.judge_errors) == (
        2, 2, 0, 0, 0,
    )  # fmt: skip
    assert [(one.query, one.winner) for one in report.samples] == [
        ("Where does Alice live?", "tie"),
        ("What does Alice love?", "tie"),
    ]
    assert report.judge == OFFLINE_JUDGE
    assert report.candidate_policy["memory_strength_decay_factor"] == 0.5
    assert everything(world) == before


def test_a_space_whose_log_was_folded_is_evaluated_like_any_other() -> None:
    """What segments hold is read where it is; what came after comes along."""
    world = shadowing()
    Upkeep(world.spaces, world.leases, world.entropy).compact("home", "owner")
    assert world.evaluate().replayed == 2

    world.say("home", "I love jazz.", at="2026-05-03T10:00:00Z")
    world.drain()
    world.clock.advance(FRESH_MS)
    report = world.evaluate()
    assert (report.status, report.ties) == ("completed", 2)


def test_both_copies_are_settled_whatever_faded_lately() -> None:
    """The weekly limit does not hold for copies: what faded an hour ago fades again, by each copy's own factor."""
    world = shadowing()
    world.maintenance.submit(world.caller, "home", msgspec.convert({}, _wish()))
    world.maintenance.run("home", world.clock.now() + MINUTE)
    world.evaluate()

    def strengths(one: World) -> set[float]:
        state = one.spaces.load("home")
        found = [state.get(each) for each in state.ids("concept")]
        return {
            round(each.facets[MNEMONIC]["memory_strength"], 4)
            for each in found
            if isinstance(each, Concept) and each.schema_ref == EVENT
        }

    assert strengths(world) == {0.475}
    assert [strengths(one) for one in world.forks] == [{0.4512}, {0.3}]


def _wish() -> Any:
    from core.protocol.memory_types import MaintenanceInput  # noqa: PLC0415 - one use

    return MaintenanceInput


def test_a_copy_holds_exactly_what_the_space_holds() -> None:
    """Of a log that was folded and of one that was not: the same elements; what is written to it stays in it."""
    world = shadowing()
    Upkeep(world.spaces, world.leases, world.entropy).compact("home", "owner")
    world.say("home", "I moved to Munich.", at="2026-05-02T10:00:00Z")
    world.drain()
    before = everything(world)
    fork = Shadowing(fork_table(world.table, "home"), world.objects, world.clock, seed=5)
    state, copy = world.spaces.load("home"), fork.spaces.load("home")

    for kind in ("concept", "proposition", "assertion", "evidence", "activity"):
        assert list(copy.ids(kind)) == list(state.ids(kind))
        assert [copy.get(each) for each in copy.ids(kind)] == [state.get(each) for each in state.ids(kind)]

    def decide(view: Any) -> Proposal:
        draft = Draft(view, now=world.clock.now(), origin=Origin("x", "rest"))
        draft.create(Concept, schema_ref=EVENT, key="only here", attributes={"summary": "x"})
        return Proposal(draft.finish())

    fork.commits.commit("home", decide, deadline=world.clock.now() + MINUTE)
    assert fork.spaces.load("home").ver == state.ver + 1
    assert everything(world) == before


def test_the_sample_is_of_the_newest_questions_each_once() -> None:
    """As many as asked for; the policy says how many otherwise; what was asked twice is asked once."""
    world = shadowing()
    for n in range(6):
        world.ask(f"Question {n}?")
        world.ask("Where does Alice live?")

    assert world.evaluate(ShadowInput(policy=MemoryPolicy(), replay_sample=2)).replayed == 2
    assert [one.query for one in world.report().samples] == ["Question 5?", "Where does Alice live?"]
    world.clock.advance(FRESH_MS)
    assert world.evaluate().replayed == 4


def test_nothing_was_asked_yet() -> None:
    """An evaluation without questions compares nothing and says so; nothing is copied."""
    world = Shadowing()
    world.create()
    report = world.evaluate()

    assert (report.status, report.replayed, report.samples) == ("completed", 0, ())
    assert world.forks == []


# --- judging


class Answers:
    """A model that answers the copies in turn: the baseline is asked first."""

    name = "answers-1"

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.capabilities = ScriptedModel().capabilities

    def chat(self, request: ChatRequest, **_: Any) -> ChatReply:
        """The next text."""
        return says(self.texts.pop(0) + '\n<memory_meta>{"found": true, "uncertainty": 0.1}</memory_meta>')


def test_the_judge_is_blind_and_the_places_alternate() -> None:
    """It is told A and B and not which is which; who always says A prefers nobody."""
    judge = ScriptedModel(last=says('{"winner": "A", "reason": "clearer"}'))
    world = shadowing(judge=judge, model=Answers("old 1", "new 1", "old 2", "new 2"))
    report = world.evaluate()

    shown = [json.loads(request.turns[0].text) for request in judge.asked]
    assert [(one["A"]["answer"], one["B"]["answer"]) for one in shown] == [
        ("old 1", "new 1"),
        ("new 2", "old 2"),
    ]
    assert not any(
        word in request.turns[0].text for request in judge.asked for word in ("baseline", "candidate")
    )
    assert [one.winner for one in report.samples] == ["baseline", "candidate"]
    assert (report.baseline_wins, report.candidate_wins, report.judge) == (1, 1, "scripted-1")
    assert [one.reason for one in report.samples] == ["clearer", "clearer"]
    assert (report.usage.requests, report.usage.input_tokens) == (6, 60)


@pytest.mark.parametrize(
    "reply",
    [says("B, I think"), says('{"winner": "C"}'), says("", stop="refused"), ModelFault("timeout", "x")],
)
def test_a_judge_without_a_verdict_is_an_error_and_no_tie(reply: Any) -> None:
    """Counted apart, with what went wrong; the evaluation goes on."""
    judge = ScriptedModel([reply], last=says('{"winner": "tie"}'))
    report = shadowing(judge=judge, model=Answers("a", "b", "c", "d")).evaluate()

    assert [one.winner for one in report.samples] == ["error", "tie"]
    assert (report.judge_errors, report.ties) == (1, 1)
    assert report.samples[0].reason.startswith("model_")


BETTER = [
    (Told("x", False), Told("y", True), "candidate"),
    (Told("x", True, 3), Told("y", True, 1), "baseline"),
    (Told("x", True, 1, 0.5), Told("y", True, 1, 0.2), "candidate"),
    (Told("x", True, 1, 0.5), Told("y", True, 1, 0.48), "tie"),
    (Told("x", True, 9, 0.1), Told("", False, failed=True), "baseline"),
    (Told("x", True, 1, None), Told("y", True, 1, 0.2), "tie"),
]


@pytest.mark.parametrize(("one", "other", "winner"), BETTER)
def test_without_a_judge_receipts_are_compared(one: Told, other: Told, winner: str) -> None:
    """By rules that read no text; turned round, the verdict turns round."""
    turned = {"baseline": "candidate", "candidate": "baseline", "tie": "tie"}
    assert judge_by_rules(one, other).winner == winner
    assert judge_by_rules(other, one).winner == turned[winner]


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("says_it", ["A", "B"])
def test_a_verdict_is_turned_back(number: int, says_it: str) -> None:
    """Whoever stood at the place that was named has won."""
    script = ask_judge("q", Told("the baseline's", True), Told("the candidate's", True), number, 8000)
    shown = json.loads(script.opening[0].text)
    verdict = read_verdict(f'Well: {{"winner": "{says_it}", "reason": "r"}}', number)

    assert verdict is not None
    assert shown[says_it]["answer"] == f"the {verdict.winner}'s"


# --- one at a time


def test_one_evaluation_at_a_time_and_the_same_wish_tells_of_it() -> None:
    """Another wish is refused while one works; the same wish is told how far it is, and has its report for a while."""
    world = shadowing()
    first = world.shadows.submit(world.caller, "home", NEW)
    other = ShadowInput(policy=MemoryPolicy(decay_floor=0.1))
    with pytest.raises(NoemaError) as refused:
        world.shadows.submit(world.caller, "home", other)

    assert (first.status, refused.value.code) == ("working", "Busy")
    assert world.shadows.submit(world.caller, "home", NEW) == first
    world.work()
    assert world.shadows.submit(world.caller, "home", NEW).status == "completed"
    assert world.shadows.submit(world.caller, "home", other).status == "working"


def test_a_turn_that_ends_is_gone_on_with() -> None:
    """Out of time after a question: the next turn takes the next one, and none is compared twice."""
    world = shadowing(judge=ScriptedModel(last=says('{"winner": "tie"}')))

    class Slow(Answers):
        def chat(self, request: ChatRequest, **_: Any) -> ChatReply:
            world.clock.advance(MINUTE)
            return super().chat(request)

    world.model = Slow("a", "b", "c", "d")
    world.shadows.submit(world.caller, "home", NEW)
    first = world.work(2 * MINUTE + 20_000)
    second = world.work()

    assert (first.replayed, first.more) == (1, True)
    assert (second.replayed, second.status, second.more) == (2, "completed", False)
    assert len(world.report().samples) == 2


def test_two_workers_do_not_evaluate_at_once() -> None:
    """The second finds the claim; when the first has died, its claim runs out."""
    world = shadowing()
    world.shadows.submit(world.caller, "home", NEW)
    other = Shadowing(world.table, world.objects, world.clock, seed=9)
    seen: list[Worked] = []
    real = world.shadows.fork

    def fork(table: Any, objects: Any) -> Fork:
        seen.append(other.work())
        return real(table, objects)

    world.shadows.fork = fork
    world.work()

    assert seen == [Worked(), Worked()]
    assert world.report().replayed == 2


def test_an_erasure_meanwhile_ends_it_without_a_word() -> None:
    """The row is gone with the agents' notes, and nothing that was read before is written after."""
    world = Recalling()
    world.create()
    world.say("home", "I love tea.")
    world.drain()
    world.ask("What does Alice love?")
    process = Shadowing(world.table, world.objects, world.clock, seed=3)
    process.shadows.submit(world.caller, "home", NEW)
    real = process.shadows.fork

    def fork(table: Any, objects: Any) -> Fork:
        if len(process.forks) == 1:
            evidence = next(iter(world.spaces.load("home").ids("evidence")))
            world.erasures.erase("home", [evidence], "alice", owner="e")
        return real(table, objects)

    process.shadows.fork = fork
    process.work()

    assert process.report() is None


@pytest.mark.parametrize(
    "wish",
    [
        ShadowInput(
            policy=MemoryPolicy(recall_budget=RecallBudget(max_tokens=10, context_tokens=10, tokenizer="gpt"))
        )
    ],
)
def test_a_policy_that_no_space_could_have_is_refused(wish: ShadowInput) -> None:
    """As `update_space` would refuse it."""
    world = shadowing()
    with pytest.raises(NoemaError) as refused:
        world.shadows.submit(world.caller, "home", wish)
    assert refused.value.code == "InvalidInput"


def test_a_space_with_a_log_that_keeps_moving_is_not_copied_half() -> None:
    """A copy has every commit up to its HEAD, or there is none."""
    world = shadowing()
    head = world.spaces.head("home")

    class Losing:
        def get(self, pk: str, sk: str) -> Any:
            return world.table.get(pk, sk)

        def query(self, *args: Any, **options: Any) -> Any:
            return world.table.query(*args, **options)[1:]

    with pytest.raises(NoemaError) as refused:
        fork_table(Losing(), "home")  # type: ignore[arg-type]
    assert (head.ver > 1, refused.value.code) == (True, "ServiceUnavailable")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("error", [Crash, Unavailable])
def test_a_fault_at_any_write_loses_no_evaluation(after: bool, error: Any) -> None:
    """Killed or cut off at each write: another worker goes on, each question is compared once, and the space is as it was."""
    for at in range(50):
        world = shadowing()
        world.shadows.submit(world.caller, "home", NEW)
        before = everything(world)
        faults = Faults([at], after=after, error=error)
        one = Shadowing(FailingTable(world.table, faults), world.objects, world.clock, seed=4)
        with suppress(Crash, NoemaError):
            one.work()
        world.clock.advance(CLAIM_MS + 1)
        other = Shadowing(world.table, world.objects, world.clock, seed=8)
        other.work()

        report = other.report()
        assert (report.status, report.replayed) == ("completed", 2), at
        assert [each.query for each in report.samples] == ["Where does Alice live?", "What does Alice love?"]
        assert everything(world) == before, at
        if faults.count <= at:
            return
    pytest.fail("the evaluation never ended")
