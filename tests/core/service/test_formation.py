"""Formation: each conversation once, in order, whatever fails; a poisoned one is set aside."""

from contextlib import suppress
from typing import Any

import pytest

import core.service.formation as module
from core.errors import NoemaError
from core.model.elements import Evidence
from core.ports import Put, Unavailable
from core.service.formation import HINT_GRACE_MS, SPAN_MS
from core.service.leases import Fenced
from core.storage.layout import DUE_PK, again_sk, space_pk
from core.storage.memory import MemoryObjects, MemoryTable
from tests.doubles import Crash, FailingObjects, FailingTable, FakeClock, Faults
from tests.services import MINUTE, World


@pytest.fixture
def world() -> World:
    """A process with one space."""
    world = World()
    world.create()
    return world


def texts(world: World, space: str = "home") -> list[str]:
    """What is filed as Evidence, in order."""
    state = world.spaces.load(space)
    found = (state.get(element) for element in state.ids("evidence"))
    return [str(e.payload.inline) for e in found if isinstance(e, Evidence)]


def status(world: World, number: int) -> str:
    """A conversation's status."""
    return world.conversations.get("home", "formation", number).status


def poison(monkeypatch: pytest.MonkeyPatch, *words: str, healed: list[bool] | None = None) -> None:
    """Make forming fail for conversations that hold one of the words, until healed."""
    real = module.form_part

    def fake(draft: Any, dialogue: Any, start: int) -> Any:
        if not healed and any(word in m.text for m in dialogue.messages for word in words):
            raise ValueError("secret text of a user")
        return real(draft, dialogue, start)

    monkeypatch.setattr(module, "form_part", fake)


def test_a_space_is_drained_in_order(world: World) -> None:
    """All that waits is formed, the oldest first, and the mark and the due list say so."""
    for i in range(5):
        world.say("home", f"number {i}")
    done = world.drain()

    assert done.formed == (1, 2, 3, 4, 5)
    assert texts(world) == [f"number {i}" for i in range(5)]
    assert world.spaces.head("home").number("formed") == 5
    assert [status(world, n) for n in range(1, 6)] == ["completed"] * 5
    assert world.table.query(DUE_PK, "!", "~", limit=9) == []


def test_double_late_and_lost_messages_do_no_harm(world: World) -> None:
    """A drain without work forms nothing, whenever it comes."""
    world.say("home", "once")
    world.drain()
    before = world.spaces.head("home").ver

    assert world.drain().formed == ()
    assert world.drain().formed == ()
    assert world.spaces.head("home").ver == before
    assert texts(world) == ["once"]


def test_the_same_conversation_submitted_twice_is_one_memory(world: World) -> None:
    """Without a key there are two conversations, but with the same time they are the same Evidence."""
    world.say("home", "I live in Berlin.")
    world.say("home", "I live in Berlin.")
    done = world.drain()

    assert done.formed == (1, 2)
    assert texts(world) == ["I live in Berlin."]
    assert [status(world, n) for n in (1, 2)] == ["completed", "completed"]


def test_two_workers_do_not_form_at_once(world: World) -> None:
    """While one holds the lease the other leaves, and says that work is left."""
    world.say("home", "once")
    fence = world.leases.acquire("home", "formation", "another", 60_000)
    assert fence is not None

    done = world.drain()
    assert (done.busy, done.more, done.formed) == (True, True, ())
    world.leases.release("home", fence)
    assert world.drain().formed == (1,)


def test_a_worker_that_overslept_writes_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """When another took the lease meanwhile, the first one's commit is fenced and the work is done once."""
    world.say("home", "once")
    other = World(world.table, world.objects, world.clock, seed=9)
    real, slept = module.form_part, []

    def oversleep(draft: Any, dialogue: Any, start: int) -> Any:
        if not slept:
            slept.append(True)
            world.clock.advance(10 * MINUTE)
            assert other.drain().formed == (1,)
        return real(draft, dialogue, start)

    monkeypatch.setattr(module, "form_part", oversleep)
    with suppress(NoemaError):  # out of time: the message comes again
        assert world.drain().formed == ()

    assert texts(world) == ["once"]
    assert world.drain().formed == ()


def test_a_long_conversation_is_formed_in_parts(world: World) -> None:
    """More messages than a part takes are several commits, and every message is filed once."""
    said = [f"message {i}" for i in range(250)]
    world.say("home", *said)
    before = world.spaces.head("home").ver
    done = world.drain()

    assert done.formed == (1,)
    assert texts(world) == said
    assert world.spaces.head("home").ver - before == 3
    answer = world.conversations.get("home", "formation", 1).messages[1]["content"]
    assert answer == "250 messages filed as evidence, 0 claims, 0 commitments."


def test_one_of_a_kind_is_told_in_the_singular(world: World) -> None:
    """The answer of a run is a sentence in plain English."""
    world.say("home", "I live in Berlin.")
    world.drain()

    answer = world.conversations.get("home", "formation", 1).messages[1]["content"]
    assert answer == "1 message filed as evidence, 1 claim, 0 commitments."


def test_more_than_sixteen_messages_are_all_filed(world: World) -> None:
    """There is no limit of sixteen here."""
    world.say("home", *[f"line {i}" for i in range(40)])
    world.drain()

    assert len(texts(world)) == 40


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("error", [Unavailable, Crash])
@pytest.mark.parametrize("reads", [False, True], ids=["writes", "all calls"])
def test_a_fault_at_any_call_loses_and_doubles_nothing(after: bool, error: Any, reads: bool) -> None:
    """Wherever the store fails or the process dies, the next drains end with every message filed once."""
    said = [f"message {i}" for i in range(120)]
    at, faulted = 0, True
    while faulted and at < 60:
        clock = FakeClock()
        table, objects = MemoryTable(), MemoryObjects(clock)
        first = World(table, objects, clock)
        first.create()
        first.say("home", *said)
        first.say("home", "I live in Berlin.", at="2026-05-02T10:00:00Z")
        faults = Faults([at], after=after, error=error, reads=reads)
        failing = World(FailingTable(table, faults), FailingObjects(objects, faults), clock, seed=1)
        with suppress(Crash, NoemaError):
            failing.drain()
        faulted = faults.count > at
        clock.advance(10 * MINUTE)
        second = World(table, objects, clock, seed=2)
        second.drain()

        assert texts(second) == [*said, "I live in Berlin."], at
        assert second.spaces.head("home").number("formed") == 2
        assert len(list(second.spaces.load("home").ids("assertion"))) == 1
        at += 1
    assert not faulted
    assert at > 5


def test_a_failure_is_retried_later_and_visible(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed round stands on the record without any text of the user, and is not repeated at once."""
    poison(monkeypatch, "bad")
    world.say("home", "bad")
    done = world.drain()

    assert (done.failed, done.more) == ((1,), True)
    found = world.conversations.get("home", "formation", 1)
    assert (found.status, found.failed_reason) == ("failed", "ValueError")
    assert found.extra == {"rounds": 1}
    assert world.drain().failed == ()


def test_a_poisoned_conversation_is_set_aside_and_the_space_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After three rounds over half an hour it is cancelled, and what waits behind it is formed."""
    poison(monkeypatch, "bad")
    world.say("home", "bad")
    world.say("home", "good", at="2026-05-02T10:00:00Z")
    began, rounds = world.clock.time, 0
    while status(world, 1) != "cancelled":
        rounds += len(world.drain().failed)
        world.clock.advance(MINUTE)
        assert world.clock.time - began < 3 * SPAN_MS

    found = world.conversations.get("home", "formation", 1)
    assert found.failed_reason == "formation_failed: ValueError"
    told = world.admin.formation_status("home")
    assert (told.formation_cancelled, told.formation_last_cancelled, told.formation_waiting) == (1, 1, 0)
    assert rounds >= 2
    assert world.clock.time - began >= SPAN_MS
    assert texts(world) == ["good"]
    assert [item.status for item in world.conversations.page("home", "formation")[0]] == [
        "cancelled",
        "completed",
    ]


def test_restarting_forms_what_was_set_aside(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancelled conversation is formed again when asked, behind the mark, and its reason is cleared."""
    healed: list[bool] = []
    poison(monkeypatch, "bad", healed=healed)
    world.say("home", "bad")
    world.say("home", "good", at="2026-05-02T10:00:00Z")
    while status(world, 1) != "cancelled":
        world.drain()
        world.clock.advance(MINUTE)
    healed.append(True)

    assert world.formation.restart("home", 1) is True
    assert world.drain().formed == (1,)
    found = world.conversations.get("home", "formation", 1)
    assert (found.status, found.failed_reason, found.extra) == ("completed", None, None)
    assert texts(world) == ["good", "bad"]
    assert world.spaces.head("home").number("formed") == 2
    assert world.drain().formed == ()


def test_restarting_a_waiting_retry_tries_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed conversation need not wait for its next round."""
    healed: list[bool] = []
    poison(monkeypatch, "bad", healed=healed)
    world.say("home", "bad")
    world.drain()
    healed.append(True)
    world.formation.restart("home", 1)

    assert world.drain().formed == (1,)
    assert world.conversations.get("home", "formation", 1).failed_reason is None


def test_a_restart_stands_when_its_hint_is_lost(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue that does not answer is no error of a restart: the row is written, and the sweep finds it."""
    healed: list[bool] = []
    poison(monkeypatch, "bad", healed=healed)
    world.say("home", "bad")
    world.drain()
    healed.append(True)

    def lost(*_: Any, **__: Any) -> None:
        raise Unavailable("no queue")

    monkeypatch.setattr(world.queue, "send", lost)
    assert world.formation.restart("home", 1) is True
    monkeypatch.undo()

    world.clock.advance(MINUTE)
    assert world.formation.sweep() == ["home"]


def test_a_restart_is_refused_where_it_cannot_be(world: World) -> None:
    """Not while a run goes on, not for what is formed, not for what is not there."""
    world.say("home", "once")
    fence = world.leases.acquire("home", "formation", "another", 60_000)
    assert fence is not None
    with pytest.raises(NoemaError) as busy:
        world.formation.restart("home", 1)
    world.leases.release("home", fence)
    world.drain()
    with pytest.raises(NoemaError) as formed:
        world.formation.restart("home", 1)
    with pytest.raises(NoemaError) as unknown:
        world.formation.restart("home", 7)

    assert [e.value.code for e in (busy, formed, unknown)] == ["Busy", "InvalidInput", "NotFoundOrNotVisible"]


def test_the_sweep_wakes_spaces_whose_hint_was_lost(world: World) -> None:
    """A space whose work is due for a while gets another hint; one that has none does not."""
    world.create("idle")
    world.say("home", "once")
    assert world.formation.sweep() == []

    world.clock.advance(HINT_GRACE_MS)

    assert world.formation.sweep() == ["home"]
    assert world.queue.sent == [("home", '{"work":"formation","space":"home"}')]
    world.drain()
    assert world.formation.sweep() == []


def test_the_sweep_reads_every_page(world: World) -> None:
    """More due spaces than a page holds are all found."""
    for i in range(130):
        world.create(f"s{i:03d}")
        world.say(f"s{i:03d}", "once")
    world.clock.advance(HINT_GRACE_MS)

    assert len(world.formation.sweep()) == 130


def test_a_conversation_that_arrives_during_the_drain_is_not_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is submitted while the last one is formed is formed too, or left on the due list."""
    world.say("home", "first")
    real, told = module.form_part, []

    def tell(draft: Any, dialogue: Any, start: int) -> Any:
        if not told:
            told.append(True)
            world.say("home", "second", at="2026-05-02T10:00:00Z")
        return real(draft, dialogue, start)

    monkeypatch.setattr(module, "form_part", tell)

    assert world.drain().formed == (1, 2)


def test_a_deadline_stops_the_drain_between_conversations(world: World) -> None:
    """Out of time, the rest is left for the next message."""
    world.say("home", "first")
    done = world.formation.drain("home", world.clock.now() - 1)

    assert (done.formed, done.more) == ((), True)


def test_a_missing_body_is_a_failure_of_that_conversation(world: World) -> None:
    """An object that is gone fails its conversation, not the worker."""
    world.submit("home", [{"role": "user", "content": "x" * 70_000}])
    objects = world.objects
    assert isinstance(objects, MemoryObjects)
    objects.delete([key for key, _, _ in objects.list("home/c/")])

    assert world.drain().failed == (1,)


def test_the_origin_of_what_is_formed_is_the_submitter(world: World) -> None:
    """The commit's principal is who submitted the conversation, by which channel."""
    world.say("home", "once")
    world.drain()

    (evidence,) = (world.spaces.load("home").get(e) for e in world.spaces.load("home").ids("evidence"))
    assert evidence is not None
    assert (evidence.system.origin.principal, evidence.system.origin.channel) == ("alice", "rest")


def test_a_lease_lost_to_an_erasure_stops_the_drain(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raised epochs fence what is being formed; a later drain forms it."""
    world.say("home", "once")
    real, raised = module.form_part, []

    def fence(draft: Any, dialogue: Any, start: int) -> Any:
        if not raised:
            raised.append(True)
            world.leases.raise_epochs("home")
        return real(draft, dialogue, start)

    monkeypatch.setattr(module, "form_part", fence)

    assert world.drain().more
    assert world.drain().formed == (1,)
    assert issubclass(Fenced, Exception)


def test_a_request_to_form_again_what_is_gone_is_dropped(world: World) -> None:
    """A row that asks for a conversation that is no more does not stop the drain."""
    world.table.transact([Put(space_pk("home"), again_sk(77), {"at": 0})])
    world.say("home", "once")

    assert world.drain().formed == (1,)
    assert world.table.get(space_pk("home"), again_sk(77)) is None


def test_a_refusal_of_the_engine_is_a_failure_of_that_conversation(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a commit may not hold is counted against the conversation under its code."""

    def refuse(draft: Any, dialogue: Any, start: int) -> Any:
        raise NoemaError("TransactionTooLarge", "too much at once")

    monkeypatch.setattr(module, "form_part", refuse)
    world.say("home", "once")

    assert world.drain().failed == (1,)
    assert world.conversations.get("home", "formation", 1).failed_reason == "TransactionTooLarge"


def test_a_space_that_is_gone_has_nothing_to_form(world: World) -> None:
    """A hint about no space takes no lease."""
    assert world.formation.drain("nowhere", world.clock.now() + MINUTE).busy
