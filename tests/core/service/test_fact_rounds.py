"""Consolidation by itself: when a space is due, one run at a time, and nothing that is written goes unseen."""

import json
from typing import Any

import pytest

from core.errors import NoemaError
from core.facts.recalling import Tuning
from core.ports import Unavailable
from core.service.fact_models import SHOWN_TOKENS, FactModels
from core.service.fact_rounds import GAP_MS
from core.service.fact_schedule import CLAIM_MS, IDLE_MS, SOON_MS, FactSchedule
from core.service.hints import FACTS, read_hint
from core.storage.layout import DUE_PK, fact_clock_rows
from core.storage.memory import MemoryTable
from tests.core.service.fact_world import DAY, FactWorld
from tests.doubles import FailingTable, FakeClock, Faults, FixedModels, ScriptedModel, says
from tests.services import MINUTE, RecordingQueue

HOUR = 60 * MINUTE


class Scheduled(FactWorld):
    """A process whose facts consolidate by themselves; the queue keeps the hints."""

    def __init__(self, table: Any = None, clock: FakeClock | None = None, **options: Any) -> None:
        table = MemoryTable() if table is None else table
        clock = FakeClock() if clock is None else clock
        self.queue = RecordingQueue()
        seed = options.get("seed", 0)
        self.schedule = FactSchedule(table, self.queue, clock, _chance(seed))
        super().__init__(table, clock, schedule=self.schedule, **options)

    def ring(self) -> list[str]:
        """One tick; the spaces that were hinted at."""
        found = self.schedule.sweep()
        hints = [read_hint(body) for _, body in self.queue.sent]
        assert [hint.space for hint in hints] == found
        assert {hint.work for hint in hints} <= {FACTS}
        self.queue.sent.clear()
        return found

    def work(self, ms: int = 10 * MINUTE):
        return self.facts.consolidate_due("home", self.clock.time + ms)

    def clocks(self) -> int:
        return len(self.world.table.query(DUE_PK, *fact_clock_rows(10**15), limit=100))


def _chance(seed: int) -> Any:
    from tests.doubles import CountingEntropy  # noqa: PLC0415

    return CountingEntropy(seed + 1000)


def filled(count: int = 20, **options: Any) -> Scheduled:
    world = Scheduled(**options)
    for n in range(count):
        world.remember(f"note {n}")
    return world


def test_what_was_written_is_consolidated_soon_and_once():
    """Ten minutes after the first write the space is due; the run consolidates the namespace, and then nothing is due."""
    world = filled()
    assert world.ring() == []
    assert world.work().ran is False
    world.clock.advance(SOON_MS)
    assert world.ring() == ["home"]
    done = world.work()
    assert (done.ran, done.namespaces, done.problems, done.more) == (True, 1, (), False)
    assert world.work().ran is False
    assert world.ring() == []
    assert world.clocks() == 1


def test_few_facts_wait_for_the_week():
    """Below twenty rows a namespace that was written to is not due, but it ages like any other: once a week."""
    world = filled(19)
    world.clock.advance(SOON_MS)
    assert world.work().namespaces == 0
    world.clock.advance(IDLE_MS)
    assert world.ring() == ["home"]
    assert (world.work().namespaces, world.facts.stats("home", "ann").avg_weight < 1) == (1, True)


def test_a_space_that_nobody_writes_to_ages():
    """Without any write the clock rings every week, and faded facts go at last."""
    world = filled(20)
    for _ in range(32):
        world.clock.advance(IDLE_MS)
        if world.ring():
            world.work()
    assert world.facts.facts("home", "ann") == ()
    world.clock.advance(IDLE_MS)
    assert world.work().namespaces == 0  # empty: nothing to do


def test_a_namespace_is_consolidated_at_most_once_an_hour_while_it_is_written_to():
    """A write after a run is seen when the hour is over, and not before."""
    world = filled()
    world.clock.advance(SOON_MS)
    world.work()
    world.remember("late")
    world.clock.advance(SOON_MS)
    assert world.work().namespaces == 0
    world.clock.advance(GAP_MS - SOON_MS)
    assert world.work().namespaces == 1


def test_the_space_may_say_when_and_whether():
    """consolidate_from: another number of rows; 0: never by itself, only when asked."""
    world = filled(5)
    world.facts.tune(world.caller, "home", Tuning(consolidate_from=5), deadline=world.deadline)
    world.clock.advance(SOON_MS)
    assert world.work().namespaces == 1
    world.facts.tune(world.caller, "home", Tuning(consolidate_from=0), deadline=world.deadline)
    world.remember("more")
    world.clock.advance(2 * IDLE_MS)
    assert world.work().namespaces == 0
    assert world.call("consolidate").ran


@pytest.mark.parametrize("bad", [-1, 1_000_001, True, 1.5])
def test_numbers_that_make_no_sense_are_refused(bad):
    """Whole numbers from 0 to a million."""
    world = Scheduled()
    with pytest.raises(NoemaError) as refused:
        world.facts.tune(world.caller, "home", Tuning(consolidate_from=bad), deadline=world.deadline)
    assert refused.value.code == "InvalidInput"


def test_two_runs_at_once_are_one():
    """Whoever claims the clock works; the other does nothing, and so does one that comes while the lease is held."""
    world = filled()
    other = Scheduled(world.world.table, world.clock, create=False, seed=7)
    seen: list[bool] = []
    model = ScriptedModel([lambda _: (seen.append(other.work().ran), says("{}"))[1]], last=says("{}"))
    world.facts._consolidation._model = FactModels(FixedModels(model).of)
    world.facts.tune(world.caller, "home", Tuning(consolidate_above=5), deadline=world.deadline)
    world.clock.advance(SOON_MS)
    assert world.work().namespaces == 1
    assert seen == [False]
    world.clock.advance(SOON_MS)
    world.remember("again")
    world.clock.advance(GAP_MS)
    fence = world.world.leases.acquire("home", "maintenance", "somebody", HOUR)
    assert world.work().namespaces == 0
    world.world.leases.release("home", fence)
    world.clock.advance(2 * MINUTE)
    assert world.ring() == ["home"]
    assert world.work().namespaces == 1


def test_a_write_during_a_run_is_seen_by_the_next():
    """Wound while the run has the clock: the run's end does not set it back."""
    world = filled()
    other = Scheduled(world.world.table, world.clock, create=False, seed=7)
    model = ScriptedModel([lambda _: (other.remember("meanwhile"), says("{}"))[1]])
    world.facts._consolidation._model = FactModels(FixedModels(model).of)
    world.facts.tune(world.caller, "home", Tuning(consolidate_above=5), deadline=world.deadline)
    world.clock.advance(SOON_MS)
    assert world.work().namespaces == 1
    world.clock.advance(SOON_MS)
    assert world.ring() == ["home"]


def test_a_run_that_died_is_taken_over():
    """A claim that nobody ended runs out."""
    world = filled()
    world.clock.advance(SOON_MS)
    assert world.schedule.claim("home") is not None
    assert world.work().ran is False
    world.clock.advance(CLAIM_MS)
    assert world.ring() == ["home"]
    assert world.work().namespaces == 1


def test_out_of_time_it_goes_on_later():
    """A run that has no time left for a namespace says so, and the clock rings again."""
    world = filled()
    world.clock.advance(SOON_MS)
    assert world.work(1000).more
    assert world.ring() == ["home"]
    assert world.work().namespaces == 1


def test_a_clock_that_cannot_be_wound_is_no_error_of_the_write():
    """The store fails on the second write of a request: the fact is kept, and the next one winds the clock."""
    inner = MemoryTable()
    world = Scheduled(inner)
    table = FailingTable(inner, Faults(at=range(100), error=Unavailable))
    world.facts._schedule = FactSchedule(table, world.queue, world.clock, world.world.entropy)
    world.remember("kept")
    world.facts._schedule = world.schedule
    assert world.clocks() == 0
    world.remember("and this winds it")
    assert world.clocks() == 1


def test_the_clock_of_a_space_that_is_gone_is_removed():
    """A deleted space has no schedule; its row in DUE goes with the next tick."""
    world = filled()
    world.erasures.delete_space("home", "alice", owner="test")
    world.clock.advance(SOON_MS + DAY)
    assert world.ring() == []
    assert world.clocks() == 0


# --- models


def test_a_space_with_a_model_has_its_weakest_facts_summarised():
    """The model sees ids and texts as data, its summary points back at what it replaces, and its name stands nowhere."""
    said = lambda request: says(  # noqa: E731
        json.dumps(
            {
                "summary": "Notes in short.",
                "consumes": [each["id"] for each in json.loads(request.turns[0].text)],
            }
        )
    )
    model = ScriptedModel([said])
    world = filled(25, model=FactModels(FixedModels(model).of))
    world.clock.advance(SOON_MS)
    done = world.work()
    assert (done.consumed, done.problems) == (12, ())
    request = model.asked[0]
    assert "never instructions" in request.system
    assert len(json.loads(request.turns[0].text)) == 12
    summary = next(fact for fact in world.facts.facts("home", "ann") if fact.text == "Notes in short.")
    assert (summary.confidence, summary.live) == ("inferred", True)
    retired = [fact for fact in world.facts.facts("home", "ann") if fact.superseded_by == summary.id]
    assert len(retired) == 12
    world.clock.advance(GAP_MS + SOON_MS)
    assert world.work().consumed == 0  # fourteen are live now: below the bound, so the model is left alone
    assert len(model.asked) == 1


def test_a_model_that_fails_is_told_and_the_rest_goes_on():
    """The fault's kind stands in the run's problems; nothing was summarised, weights fell."""
    from core.models.chat import ModelFault  # noqa: PLC0415

    model = ScriptedModel([ModelFault("rate_limited", "slow down")])
    world = filled(25, model=FactModels(FixedModels(model).of))
    world.clock.advance(30 * DAY)
    done = world.work()
    assert done.problems == ("ServiceUnavailable: the model gave no answer: rate_limited",)
    assert (done.consumed, done.decayed) == (0, 25)


def test_only_what_fits_is_shown():
    """Of very long facts a model sees as many as one request holds; the others wait for another run."""
    model = ScriptedModel([says("{}")])
    world = Scheduled(model=FactModels(FixedModels(model).of))
    for n in range(24):
        world.remember(f"{n} " + "x" * 16_000)
    world.clock.advance(SOON_MS)
    world.work()
    assert len(model.asked[0].turns[0].text) < SHOWN_TOKENS * 5
    assert 1 < len(json.loads(model.asked[0].turns[0].text)) < 12


def test_a_model_takes_facts_out_of_a_text():
    """Up to five sentences, unverified; an answer of nothing keeps nothing; prose of the model keeps the text whole."""
    model = ScriptedModel([says('["Ann moved to Faro.", "Ann likes tea."]'), says("[]"), says("I think so.")])
    world = FactWorld(model=FactModels(FixedModels(model).of))
    made = world.call("remember_extracted", "Well, Ann moved to Faro, and she likes tea.")
    assert [(fact.text, fact.confidence) for fact in made] == [
        ("Ann moved to Faro.", "unverified"),
        ("Ann likes tea.", "unverified"),
    ]
    assert json.loads(model.asked[0].turns[0].text) == {"text": "Well, Ann moved to Faro, and she likes tea."}
    assert world.call("remember_extracted", "Good morning.") == ()
    assert [fact.text for fact in world.call("remember_extracted", "Hm.")] == ["Hm."]
    assert [fact.text for fact in world.call("remember_extracted", '["said already"]')] == ["said already"]
    assert len(model.asked) == 3  # an array is what a model has extracted before: nobody is asked


def test_a_retry_of_an_extraction_is_one_whatever_the_model_says_then():
    """The same text under the same key gives the first facts; a model in trouble keeps nothing and says so."""
    model = ScriptedModel([says('["one"]'), says('["two"]')])
    world = FactWorld(model=FactModels(FixedModels(model).of))
    first = world.call("remember_extracted", "a text", key="k")
    assert world.call("remember_extracted", "a text", key="k") == first
    cut = ScriptedModel([says("[", stop="length")])
    world = FactWorld(model=FactModels(FixedModels(cut).of))
    with pytest.raises(NoemaError) as failed:
        world.call("remember_extracted", "a text")
    assert failed.value.code == "ServiceUnavailable"
    assert world.facts.facts("home", "ann") == ()


def test_a_space_without_a_model_keeps_the_text_whole():
    """As without any model at all, and consolidation summarises nothing and complains of nothing."""
    world = filled(25, model=FactModels(FixedModels(None).of))
    assert [fact.text for fact in world.call("remember_extracted", "a text")] == ["a text"]
    world.clock.advance(SOON_MS)
    assert world.work().problems == ()
