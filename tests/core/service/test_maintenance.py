"""Runs of maintenance: started once, made exactly once, apart from formation, whatever breaks."""

from typing import Any

import msgspec
import pytest

from core.agents.maintenance.decay import MNEMONIC, SLEEP_TASK
from core.agents.vocabulary import PERSON
from core.errors import NoemaError
from core.model.elements import Concept, Origin, Retention
from core.ports import Delete, Unavailable
from core.protocol.http_types import ProbeInput
from core.protocol.memory_types import MaintenanceInput
from core.schema.definitions import ConceptType, Facet
from core.schema.environment import environment_of
from core.schema.validate import check_attributes, check_facet
from core.service import maintenance_passes
from core.service.leases import Fenced
from core.service.maintenance import DAY_MS, WEEK_MS, due_scope
from core.service.maintenance_run import WALL_MS, Ran
from core.service.memory_status import MemoryStatuses
from core.service.upkeep import Upkeep
from core.service.values import Proposal
from core.storage.layout import (
    DUE_PK,
    clock_rows,
    conversation_sk,
    maintenance_sk,
    space_pk,
)
from core.storage.memory import MemoryObjects, MemoryTable
from core.transaction.draft import Draft
from tests.doubles import Crash, FailingObjects, FailingTable, Faults
from tests.services import MINUTE, World


@pytest.fixture
def world() -> World:
    made = World()
    made.create()
    return made


def begin(world: World, scope: str = "daydream", *, key: str | None = None, **members: Any) -> int:
    wish = msgspec.convert({"scope": scope, **members}, MaintenanceInput)
    return int(world.maintenance.submit(world.caller, "home", wish, key=key).conversation or 0)


def run(world: World, ms: int = 10 * MINUTE) -> Ran:
    return world.maintenance.run("home", world.clock.now() + ms)


def maintained(world: World, scope: str = "daydream", **members: Any) -> Any:
    """Start a run and make it; its report."""
    number = begin(world, scope, **members)
    assert run(world).status == "completed"
    return report(world, number)


def report(world: World, number: int) -> Any:
    found = world.conversations.get("home", "maintenance", number)
    assert found.status == "completed"
    last: Any = found.messages[-1]
    return msgspec.json.decode(last["content"])


def marks(world: World) -> Any:
    return world.table.get(space_pk("home"), maintenance_sk()) or {}


def strengths(world: World) -> dict[str, Any]:
    state = world.spaces.load("home")
    found = (state.get(each) for each in state.ids("concept"))
    return {each.id: each.facets.get(MNEMONIC, {}).get("memory_strength") for each in found if each}


def faded_once(world: World) -> bool:
    """Whether every Concept's first strength has decayed exactly once."""
    return all(each == pytest.approx(0.475) for each in strengths(world).values())


def fill(world: World, count: int, **fields: Any) -> None:
    """So many persons in one commit."""

    def decide(state: Any) -> Proposal:
        draft = Draft(state, now=max(world.clock.now(), state.at), origin=Origin("tester", "rest"))
        for n in range(count):
            draft.create(Concept, schema_ref=PERSON, key=f"p{state.ver}-{n}", name=f"Person {n}", **fields)
        return Proposal(draft.finish())

    world.commits.commit("home", decide, deadline=world.clock.now() + MINUTE)


def clocks(world: World) -> list[str]:
    return [sk for sk, _ in world.table.query(DUE_PK, *clock_rows(10**15), limit=100)]


# --- a run


def test_a_full_run_and_its_report(world: World) -> None:
    """Every pass, the assessment of the host without a model, and the counts of what happened."""
    world.say("home", "I live in Paris.", "I love tea.")
    world.say("home", "I moved to Lisbon.", at="2026-05-02T10:00:00Z")
    world.drain()

    found = maintained(world, "full", assessment={"forged": True}, formation_id=99)

    assert set(found["settlement"]) == {
        "decay", "corrections", "retention", "commitments", "tasks", "self_test",
    }  # fmt: skip
    assert found["settlement"]["decay"]["decayed"] > 0
    assert found["settlement"]["corrections"]["found"] == 1
    assessment = found["assessment"]
    assert (assessment["model"], assessment["formation_id"], assessment["settlement_errors"]) == (
        "offline", 2, [],
    )  # fmt: skip
    assert "forged" not in assessment
    assert [each["corrections"] for each in assessment["source_reliability"].values()] == [1]
    assert len(assessment["revised_roots"]) == 1
    assert sum(assessment["predicates"].values()) >= 3


@pytest.mark.parametrize("scope", ["daydream", "quick"])
def test_smaller_scopes_sweep_and_count_nothing(world: World, scope: str) -> None:
    """Retention and the census are a full run's."""
    found = maintained(world, scope)

    assert set(found["settlement"]) == {"decay", "corrections", "commitments", "tasks", "self_test"}
    assert "predicates" not in found["assessment"]


def test_parameters_hold_for_one_run(world: World) -> None:
    """They go before the policy, and the policy stays."""
    fill(world, 1, facets={MNEMONIC: {"memory_strength": 1.0}})
    maintained(world, parameters={"confidence_decay_factor": 0.5})
    assert list(strengths(world).values()) == [0.5]

    world.clock.advance(WEEK_MS)
    maintained(world)
    assert list(strengths(world).values()) == [pytest.approx(0.475)]
    assert world.spaces.load("home").meta.memory_policy == {}


def test_corrections_are_counted_once_over_runs(world: World) -> None:
    """The place in the log is kept, so the next run looks at what is new and adds to what was counted."""
    world.say("home", "I live in Paris.", "I live in Oslo now.")
    world.drain()
    first = maintained(world)
    again = maintained(world)
    world.say("home", "I moved to Lisbon.", at="2026-05-03T10:00:00Z")
    world.drain()
    last = maintained(world)

    found = [each["settlement"]["corrections"]["found"] for each in (first, again, last)]
    assert found[1:] == [0, 1]
    counts = [list(each["assessment"]["source_reliability"].values()) for each in (first, last)]
    assert counts[1][0]["corrections"] == found[0] + 1
    assert marks(world)["corrections"] == found[0] + 1


def test_a_contradiction_between_actors_leaves_a_task(world: World) -> None:
    """Found when the claim is new; both claims stand, and probing memory does not find the task."""
    world.say("home", "I live in Paris.", name="Alice")
    world.say("home", "Alice lives in Oslo.", name="Bob")
    world.drain()
    assert maintained(world)["settlement"]["corrections"]["tasks"] == 1
    assert maintained(world)["settlement"]["corrections"]["tasks"] == 0

    state = world.spaces.load("home")
    tasks = [
        e
        for i in state.ids("concept")
        if isinstance(e := state.get(i), Concept) and e.schema_ref == SLEEP_TASK
    ]
    assert [task.attributes["task_class"] for task in tasks] == ["review_conflict"]
    assert not world.recall.probe("home", ProbeInput(query="contradict")).found


# --- starting


def test_one_run_at_a_time(world: World) -> None:
    """A second one is refused while one waits, says which, and is welcome afterwards."""
    first = begin(world)
    with pytest.raises(NoemaError) as caught:
        begin(world, "full")
    assert caught.value.code == "Busy"
    assert caught.value.details == {"reason": "maintenance_busy", "conversation": first}
    assert len(clocks(world)) == 1

    run(world)
    assert begin(world, "full") == first + 1


def test_a_retry_key_starts_one_run(world: World) -> None:
    """The same wish under the same key is the same run, also when it has ended; another wish is refused."""
    first = begin(world, key="k")
    assert begin(world, key="k") == first
    run(world)
    assert begin(world, key="k") == first
    with pytest.raises(NoemaError, match="retry key"):
        begin(world, "full", key="k")


def test_there_is_no_run_of_a_space_that_is_not_there(world: World) -> None:
    """Neither started nor made."""
    for call in (
        lambda: world.maintenance.submit(world.caller, "nowhere", MaintenanceInput()),
        lambda: world.maintenance.run("nowhere", world.clock.now() + MINUTE),
        lambda: world.maintenance.after_formation("nowhere"),
    ):
        with pytest.raises(NoemaError) as caught:
            call()
        assert caught.value.code == "NotFoundOrNotVisible"


@pytest.mark.parametrize(
    ("formed", "marked", "scope"),
    [
        (20, {}, None),
        (21, {}, "daydream"),
        (41, {}, "daydream"),
        (42, {}, "quick"),
        (167, {}, "quick"),
        (168, {}, "full"),
        (41, {"m_daydream": 21}, None),
        (42, {"m_daydream": 21}, "quick"),
        (62, {"m_quick": 42, "m_daydream": 21}, None),
        (63, {"m_quick": 42}, "daydream"),
        (188, {"m_full": 168, "m_quick": 42}, None),
        (189, {"m_full": 168}, "daydream"),
        (210, {"m_full": 168, "m_quick": 10}, "quick"),
        (336, {"m_full": 168, "m_quick": 330}, "full"),
        (335, {"m_full": 168, "m_quick": 330}, None),
    ],
)
def test_how_much_formation_makes_a_run_due(formed: int, marked: Any, scope: str | None) -> None:
    """Full after 168, else quick after 42, else a daydream after 21, each since what covers it."""
    assert due_scope(formed, marked) == scope


def test_formation_starts_a_run(world: World) -> None:
    """After 21 conversations a run waits, started by the host; before, only the clock is wound."""
    for n in range(20):
        world.say("home", f"I like number {n}.")
    world.drain()
    assert world.maintenance.after_formation("home") is False
    assert marks(world)["due"] == world.clock.now() + DAY_MS

    world.say("home", "I like tea.")
    world.drain()
    assert world.maintenance.after_formation("home") is True
    assert world.maintenance.after_formation("home") is True
    assert run(world).status == "completed"
    assert world.maintenance.after_formation("home") is False
    row = marks(world)
    assert (row["m_daydream"], row.get("run")) == (21, None)
    status = world.admin.formation_status("home")
    assert (status.maintenance_processed_id, status.maintenance_processing) == (21, False)
    assert status.maintenance_at.daydream == world.clock.now()
    assert world.admin.info("home").maintenance_at.start_at == world.clock.now()
    assert world.conversations.get("home", "maintenance", 1).user == "maintenance"


def test_the_clock(world: World) -> None:
    """A day after the first formation the tick hints once, and the run is made: full at first, then weekly."""
    world.say("home", "I like tea.")
    world.drain()
    world.maintenance.after_formation("home")
    assert world.maintenance.sweep() == []
    scopes = []
    for _ in range(9):
        world.clock.advance(DAY_MS)
        assert world.maintenance.sweep() == ["home"]
        assert run(world).status == "completed"
        assert world.maintenance.sweep() == []
        scopes.append(world.conversations.record("home", "maintenance", len(scopes) + 1).text("scope"))

    assert scopes == ["full", *["daydream"] * 6, "full", "daydream"]
    assert len(clocks(world)) == 1


def test_a_hint_without_work_does_nothing(world: World) -> None:
    """No run waits and no clock has run out: nothing is written."""
    before = world.spaces.head("home").row
    assert run(world) == Ran()
    assert world.spaces.head("home").row == before


def test_a_tick_reads_what_is_due_and_removes_leftovers(world: World) -> None:
    """Other spaces' clocks are not read; a clock of a space that is gone is removed."""
    for n in range(30):
        world.create(f"s{n}")
        world.maintenance._marks.wind(f"s{n}", {}, world.clock.now() + DAY_MS)
    world.maintenance._marks.wind("home", {}, world.clock.now())
    world.table.transact([Delete(space_pk("home"), maintenance_sk())])
    counted = FailingTable(world.table)
    world.maintenance.table = counted
    world.maintenance._marks.table = counted

    assert world.maintenance.sweep() == []

    assert (counted.reads, counted.transactions) == (2, 1)
    assert len(clocks(world)) == 30


# --- apart from formation


def test_formation_waits_for_maintenance_and_is_woken(world: World) -> None:
    """While the run is made nothing is formed; when its turn ends formation is hinted at."""
    world.say("home", "I love tea.")
    held = world.leases.acquire("home", "maintenance", "somebody", MINUTE, apart="formation")
    assert held is not None
    drained = world.drain()
    assert (drained.busy, drained.more, drained.formed) == (True, True, ())
    world.leases.release("home", held)
    world.queue.sent.clear()

    begin(world)
    run(world)

    assert [body for _, body in world.queue.sent] == ['{"work":"formation","space":"home"}']
    assert world.drain().formed == (1,)


def test_maintenance_waits_for_formation(world: World) -> None:
    """A run that is started while formation works is made afterwards."""
    held = world.leases.acquire("home", "formation", "somebody", MINUTE, apart="maintenance")
    assert held is not None
    begin(world)
    assert run(world) == Ran(busy=True, more=True)
    world.leases.release("home", held)
    assert run(world).status == "completed"


def test_who_overslept_is_fenced_by_the_other_role(world: World) -> None:
    """A lease that ran out and was followed by the other role's cannot be used or renewed any more."""
    asleep = world.leases.acquire("home", "formation", "asleep", 1000, apart="maintenance")
    assert asleep is not None
    world.clock.advance(1001)
    begin(world)
    assert run(world).status == "completed"

    with pytest.raises(Fenced):
        world.leases.renew("home", asleep, 1000)
    with pytest.raises(Fenced):
        world.commits.commit(
            "home", lambda _: Proposal(None, head={"formed": 9}), deadline=world.clock.now(), fence=asleep
        )


def test_two_workers_do_not_make_one_run_twice(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second finds the lease held, and afterwards nothing to do."""
    fill(world, 3)
    begin(world)
    other = World(world.table, world.objects, world.clock, seed=7)
    inner: list[Ran] = []
    real = maintenance_passes.STEPS["decay"]

    def meanwhile(*args: Any) -> Any:
        inner.append(run(other))
        return real(*args)

    monkeypatch.setattr(
        "core.service.maintenance_run.STEPS", {**maintenance_passes.STEPS, "decay": meanwhile}
    )
    assert run(world).status == "completed"

    assert inner == [Ran(busy=True, more=True)]
    assert run(other) == Ran()
    assert faded_once(world)


# --- what breaks


@pytest.mark.parametrize("error", [Unavailable, Crash])
@pytest.mark.parametrize("after", [False, True])
def test_a_fault_at_any_call_loses_and_doubles_nothing(after: bool, error: Any) -> None:
    """Whichever call of the store fails or kills the worker, the next worker ends the run, once."""
    place = 0
    while True:
        clean, objects = MemoryTable(), MemoryObjects(World().clock)
        setup = World(clean, objects)
        setup.create()
        fill(setup, 3)
        setup.say("home", "I live in Paris.", "I live in Oslo now.")
        setup.drain()
        begin(setup, "full")
        before = setup.spaces.head("home").ver

        faults = Faults([place], after=after, error=error, reads=True)
        broken = World(FailingTable(clean, faults), FailingObjects(objects, faults), setup.clock, seed=1)
        try:
            ran = run(broken)
        except (NoemaError, Unavailable, Crash):
            ran = Ran(more=True)
        setup.clock.advance(3 * MINUTE)  # the lease of one who died runs out
        fresh = World(clean, objects, setup.clock, seed=2)
        if ran.status != "completed":
            run(fresh)

        found = report(fresh, 1)
        assert found["assessment"]["settlement_errors"] == []
        assert faded_once(fresh)
        row = marks(fresh)
        assert (row["decayed"], row["corrections"], row.get("run")) == (
            len(strengths(fresh)), found["settlement"]["corrections"]["found"], None,
        )  # fmt: skip
        assert row["corrections"] >= 1
        assert fresh.spaces.head("home").ver == before + 1
        assert len(clocks(fresh)) == 1
        if faults.count <= place:
            break  # the run came to its end without meeting the fault
        place += 1
    assert place > 30


def test_a_pass_that_breaks_is_told_and_the_others_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mark stays, so that the next run tries again; the report says which pass and why."""
    fill(world, 2)

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    steps = {**maintenance_passes.STEPS, "corrections": broken}
    monkeypatch.setattr("core.service.maintenance_run.STEPS", steps)
    found = maintained(world)

    assert found["assessment"]["settlement_errors"] == [{"pass": "corrections", "error": "ZeroDivisionError"}]
    assert found["settlement"]["decay"]["decayed"] == 2
    assert "scan_ver" not in marks(world)
    monkeypatch.undo()
    assert maintained(world)["assessment"]["settlement_errors"] == []
    assert marks(world)["scan_ver"] > 0


def test_a_zombie_writes_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that sleeps in the middle of a pass, while another makes the run, is refused by its epoch."""
    fill(world, 3)
    begin(world)
    other = World(world.table, world.objects, world.clock, seed=7)
    real, slept = maintenance_passes.STEPS["decay"], []

    def sleepy(*args: Any) -> Any:
        if not slept:
            slept.append(True)
            world.clock.advance(3 * MINUTE)
            assert run(other).status == "completed"
        return real(*args)

    monkeypatch.setattr("core.service.maintenance_run.STEPS", {**maintenance_passes.STEPS, "decay": sleepy})
    with pytest.raises(NoemaError) as caught:
        run(world)

    assert caught.value.code == "SerializationConflict"
    assert run(world) == Ran()
    assert faded_once(world)
    assert marks(world)["decayed"] == 3


def test_a_run_that_takes_too_long_has_failed(world: World) -> None:
    """After thirty minutes it is given up, marks stay, and the space is free."""
    fill(world, 3)
    begin(world, "full")
    assert run(world, ms=0) == Ran(1, "working", 0, more=True)
    row = world.table.get(space_pk("home"), conversation_sk("maintenance", 1))
    assert row is not None
    ran = world.maintenance.run("home", world.clock.now() + 1)
    assert ran.status == "completed"

    begin(world, "full")
    real = maintenance_passes.STEPS["decay"]

    def slow(*args: Any) -> Any:
        piece = real(*args)
        piece.done = False
        world.clock.advance(MINUTE)
        return piece

    before = marks(world)["m_full"], marks(world)["at_full"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("core.service.maintenance_run.STEPS", {**maintenance_passes.STEPS, "decay": slow})
        patch.setattr("core.service.maintenance_run.BATCHES", 10_000)
        ran = world.maintenance.run("home", world.clock.now() + 2 * WALL_MS)

    assert ran.status == "failed"
    found = world.conversations.get("home", "maintenance", 2)
    assert (found.status, found.failed_reason) == ("failed", "deadline_reached")
    assert (marks(world)["m_full"], marks(world)["at_full"]) == before
    assert begin(world) == 3


def test_a_run_that_was_forgotten_frees_the_space(world: World) -> None:
    """Its row went with something it named: the space goes on without it."""
    begin(world)
    world.table.transact([Delete(space_pk("home"), conversation_sk("maintenance", 1))])

    assert run(world).status in ("none", "completed")

    assert marks(world).get("run") is None
    assert begin(world) == 2


# --- a large space


def test_a_large_space_is_touched_in_bounded_work(world: World) -> None:
    """Ten thousand Concepts: a run makes a bounded number of commits and store calls, and the next goes on."""
    for _ in range(10):
        fill(world, 1_000)
    counted = FailingTable(world.table)
    process = World(counted, world.objects, world.clock, seed=3)
    begin(process)
    process.spaces.load("home")
    counted.reads = counted.transactions = 0

    ran = run(process)

    assert ran.commits <= 25
    assert counted.transactions <= 2 * ran.commits + 5
    assert counted.reads <= 12 * ran.commits + 20
    assert marks(world)["decayed"] == 10_000
    assert faded_once(world)


def test_a_space_larger_than_a_run_is_covered_over_runs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The walk goes on where the last run's bound ended it."""
    fill(world, 1_600)
    monkeypatch.setattr("core.service.maintenance_run.BATCHES", 1)

    decayed = [maintained(world)["settlement"]["decay"] for _ in range(4)]

    assert [each["decayed"] for each in decayed] == [500, 500, 500, 100]
    assert [each["complete"] for each in decayed] == [False, False, False, True]


def test_log_that_is_no_longer_kept_is_passed_over(world: World) -> None:
    """The scan goes on from the floor and says that it is incomplete."""
    upkeep = Upkeep(world.spaces, world.leases, world.entropy)
    fill(world, 1)
    assert upkeep.compact("home", "one") is not None
    fill(world, 1)
    assert upkeep.compact("home", "two") is not None
    world.clock.advance(MINUTE)
    upkeep.trim_history("home", keep_ms=0)
    assert world.spaces.head("home").min_delta > 1
    fill(world, 1)

    found = maintained(world)

    assert found["settlement"]["corrections"]["incomplete"] is True
    assert found["assessment"]["settlement_errors"] == []
    assert maintained(world)["settlement"]["corrections"]["incomplete"] is False


# --- retention through a run, the status, forgetting


def test_a_run_archives_and_never_erases(world: World) -> None:
    """What lapsed is archived, and all of it is still there."""
    fill(world, 5, retention=Retention(expires_at=world.clock.now() + DAY_MS))
    world.clock.advance(2 * DAY_MS)

    found = maintained(world, "full")

    assert found["settlement"]["retention"]["archived"] == 5
    state = world.spaces.load("home")
    assert state.counts.concept == 5
    assert {state.get(i).system.state for i in state.ids("concept")} == {"archived"}  # type: ignore[union-attr]
    assert maintained(world, "full")["settlement"]["retention"]["archived"] == 0


def test_the_status_says_what_was_measured(world: World) -> None:
    """Absent before the first run; then counts and rates, from a fixed number of reads."""
    statuses = MemoryStatuses(world.table, world.spaces)
    fresh = msgspec.to_builtins(statuses.status("home"))
    assert fresh == {"metrics": {"recalls_completed": 0}, "graph": {"concepts": 0, "propositions": 0}}

    world.say("home", "I live in Paris.", "I live in Oslo now.")
    world.drain()
    world.ask("Where does Alice live?")
    maintained(world, "full")
    counted = FailingTable(world.table)
    status = MemoryStatuses(counted, world.spaces).status("home")

    assert (status.metrics.recalls_completed, status.metrics.corrections) == (1, status.correction_rate)
    assert status.groundability == 1.0
    assert status.metrics.decayed == world.spaces.load("home").counts.concept
    assert status.graph.predicate_types == len(status.last_schema_audit["predicates"])
    assert status.last_settlement["scope"] == "full"
    assert status.last_self_test["queries"] == "own words"
    assert counted.reads == 4  # marks, counts, ledger, shadow evaluation: whatever the space holds


def test_the_marks_name_no_element(world: World) -> None:
    """So forgetting an element leaves no trace of it there; the run that named it says so, to be removed with it."""
    world.say("home", "I live in Paris.", "I live in Oslo now.")
    world.drain()
    found = maintained(world, "full")
    named = {root["root"] for root in found["assessment"]["revised_roots"]} | set(
        found["assessment"]["source_reliability"]
    )
    assert len(named) >= 2
    state = world.spaces.load("home")
    ids = [i for kind in ("concept", "assertion", "proposition", "evidence") for i in state.ids(kind)]  # type: ignore[arg-type]

    kept = [(sk, row) for sk, row in world.table.query(space_pk("home"), "U#", "U#~", limit=100)]

    assert len(kept) == 2
    assert not [i for i in ids if i in str(kept)]
    row = world.table.get(space_pk("home"), conversation_sk("maintenance", 1))
    assert row is not None
    assert set(str(row["cites"]).split()) == named


@pytest.mark.parametrize("after", [False, True])
def test_a_fault_while_starting_starts_at_most_one_run(after: bool) -> None:
    """Whichever call fails, the run is there once or not at all, with its clock, and the next wish is clear."""
    place = 0
    while True:
        clean = MemoryTable()
        setup = World(clean)
        setup.create()
        faults = Faults([place], after=after, reads=True)
        broken = World(FailingTable(clean, faults), setup.objects, setup.clock, seed=1)
        try:
            begin(broken)
        except NoemaError as error:
            assert error.code in ("ServiceUnavailable", "OutcomeUnknown")  # noqa: PT017 - told truthfully
        waits = marks(setup).get("run")
        assert waits in (None, 1)
        assert len(clocks(setup)) == (waits is not None)
        if waits is None:
            assert begin(setup) == 1
        assert run(setup).status == "completed"
        assert begin(setup) == 2
        if faults.count <= place:
            break
        place += 1
    assert place >= 4


def test_a_sleep_task_is_what_the_schema_says(world: World) -> None:
    """What maintenance writes fits the packages in force, as a command of KIP would have to."""
    world.say("home", "I live in Paris.", name="Alice")
    world.say("home", "Alice lives in Oslo.", name="Bob")
    world.drain()
    maintained(world, "full")

    state = world.spaces.load("home")
    env = environment_of(state.meta)
    kind = env.known("type", SLEEP_TASK)
    facet = env.known("facet", MNEMONIC)
    assert isinstance(kind, ConceptType)
    assert isinstance(facet, Facet)
    checked = 0
    for each in state.ids("concept"):
        concept = state.get(each)
        assert isinstance(concept, Concept)
        if concept.schema_ref == SLEEP_TASK:
            check_attributes(kind, concept.attributes, None)
            checked += 1
        if MNEMONIC in concept.facets:
            check_facet(facet, concept, "concept", concept.facets[MNEMONIC], None)
            checked += 1
    assert checked >= 3
