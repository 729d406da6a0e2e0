"""The fact memory over every store: what is written is read back, races lose nothing but a count, clocks move together."""

import threading
from collections.abc import Callable

import pytest

from core.errors import NoemaError
from core.facts.values import SHARED, RecallOptions
from core.ports import Objects, Table
from core.service.echoes import Echoes
from core.service.fact_schedule import SOON_MS, FactSchedule
from infra.system import SystemEntropy
from tests.core.service.fact_world import DAY, FactWorld
from tests.doubles import FakeClock
from tests.services import RecordingQueue


@pytest.fixture
def process(table: Table, objects: Objects) -> Callable[..., FactWorld]:
    """Makes processes over one store; only the first makes the space."""
    made: list[FactWorld] = []
    clock = FakeClock()

    def another() -> FactWorld:
        queue, entropy = RecordingQueue(), SystemEntropy()
        world = FactWorld(
            table,
            clock,
            objects=objects,
            create=not made,
            seed=len(made),
            echoes=Echoes(table, clock),
            schedule=FactSchedule(table, queue, clock, entropy),
        )
        made.append(world)
        return world

    return another


def together(*acts: Callable[[], object]) -> list[object]:
    """What each act gave, or the error it ended with; all at once."""
    out: list[object] = [None] * len(acts)

    def run(place: int, act: Callable[[], object]) -> None:
        try:
            out[place] = act()
        except NoemaError as error:
            out[place] = error

    threads = [threading.Thread(target=run, args=(place, act)) for place, act in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return out


def test_a_fact_lives_through_its_changes(process: Callable[..., FactWorld]) -> None:
    """Kept, recalled, revised, pinned, forgotten, erased; another process sees each at once."""
    one, other = process(), process()
    fact = one.remember("Deploys run on Friday.", confidence="verified", key="k1")
    assert one.remember("Deploys run on Friday.", confidence="verified", key="k1") == fact
    assert other.texts("deploy") == ["Deploys run on Friday."]
    revised = one.call("revise", "Deploys run on Friday.", "Deploys run on Monday.")
    assert (revised.fact.confidence, revised.retired) == ("inferred", (fact.id,))
    assert other.texts("deploy") == ["Deploys run on Monday."]
    one.call("pin", "Deploys run on Monday.")
    assert other.facts.get("home", "ann", revised.fact.id).pinned
    other.call("forget", "Deploys run on Monday.")
    assert one.texts("deploy") == []
    assert one.facts.delete(one.caller, "home", "ann", fact.id)
    assert other.facts.get("home", "ann", fact.id) is None
    one.remember("The office closes at six.", agent=SHARED)
    merged = other.facts.recall_all(other.caller, "home", "ann", "office", RecallOptions(top_k=2))
    assert merged.texts == ("The office closes at six.",)


def test_counts_of_recalls_at_once_add_up(process: Callable[..., FactWorld]) -> None:
    """Six recalls of two processes and two consolidations at once: every recall is counted exactly once."""
    one, other = process(), process()
    fact = one.remember("Ann likes tea.")
    for each in (one, other):
        each.texts("tea")
    results = together(
        *(lambda each=each: each.texts("tea") for each in (one, other) * 2),
        lambda: one.call("consolidate"),
        lambda: other.call("consolidate"),
    )
    assert not [each for each in results if isinstance(each, NoemaError)]
    one.call("consolidate")
    assert other.facts.get("home", "ann", fact.id).access_count == 6


def test_recalls_while_facts_go_revive_nothing(process: Callable[..., FactWorld]) -> None:
    """Recalls, forgetting, erasing and consolidating at once: what went stays gone, and no count brings it back."""
    one, other = process(), process()
    facts = [one.remember(f"note {n}") for n in range(6)]
    other.texts("note")
    together(
        lambda: [other.texts("note") for _ in range(3)],
        lambda: one.call("forget", "note 1"),
        lambda: one.facts.delete(one.caller, "home", "ann", facts[2].id),
        lambda: other.call("consolidate"),
    )
    if (
        one.facts.get("home", "ann", facts[2].id) is not None
    ):  # the store was busy: sent again, as a client would
        one.facts.delete(one.caller, "home", "ann", facts[2].id)
    if one.facts.get("home", "ann", facts[1].id).live:
        one.call("forget", "note 1")
    other.call("consolidate")
    assert set(one.texts("note")) == set(other.texts("note")) == {f"note {n}" for n in (0, 3, 4, 5)}
    assert one.facts.get("home", "ann", facts[2].id) is None


def test_two_consolidations_at_once_prune_once(process: Callable[..., FactWorld]) -> None:
    """One has the lease; what has faded is erased once, what is pinned and what is fresh stays."""
    one, other = process(), process()
    one.remember("old secret")
    one.remember("kept for ever")
    one.call("pin", "kept for ever")
    one.clock.advance(200 * DAY)
    one.remember("fresh")
    done = together(lambda: one.call("consolidate"), lambda: other.call("consolidate"))
    assert sum(each.pruned for each in done if not isinstance(each, NoemaError)) == 1
    assert {fact.text for fact in other.facts.facts("home", "ann")} == {"kept for ever", "fresh"}


def test_one_clock_for_all_processes(process: Callable[..., FactWorld]) -> None:
    """Writes of two processes wind one clock; of two runs at once one has it; afterwards nothing is due."""
    one, other = process(), process()
    for n in range(10):
        one.remember(f"one {n}")
        other.remember(f"other {n}")
    one.clock.advance(SOON_MS)
    until = one.clock.time + 600_000
    done = together(
        lambda: one.facts.consolidate_due("home", until), lambda: other.facts.consolidate_due("home", until)
    )
    assert sorted(each.ran for each in done) == [False, True]
    assert sum(each.namespaces for each in done) == 1
    assert not one.facts.consolidate_due("home", until).ran


def test_an_echo_is_known_by_another_process(process: Callable[..., FactWorld]) -> None:
    """Served by one, sent back to the other: no news."""
    one, other = process(), process()
    one.remember("Ann likes green tea.")
    one.texts("tea")
    assert (
        other.facts.remember_news(
            other.caller, "home", "ann", "Ann likes green tea.", deadline=other.deadline
        )
        is None
    )


def test_checkpoints_and_files(process: Callable[..., FactWorld]) -> None:
    """A state comes back as it was saved; the latest one, from any process."""
    one, other = process(), process()
    one.call("save_checkpoint", state={"step": 1, "你": [True, None]})
    one.clock.advance(1000)
    saved = other.call("save_checkpoint", state={"step": 2})
    assert one.facts.latest_checkpoint("home", "ann") == saved
    assert [each.state["step"] for each in other.facts.checkpoints("home", "ann")] == [2, 1]
