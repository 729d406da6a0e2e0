"""Recalls that are answered later: taken in at once, answered once, whoever works and whatever fails."""

from typing import Any

import msgspec
import pytest

from core.errors import NoemaError
from core.models.chat import ChatReply, ChatRequest, ModelFault
from core.ports import Unavailable
from core.protocol import http_types as wire
from core.service.recall import ERASED
from core.service.recall_later import CLAIM_MS, MAX_WAITING, TRIES, Worked
from core.service.values import Caller
from core.storage.layout import DUE_PK, due_rows
from core.storage.memory import MemoryObjects, MemoryTable
from tests.doubles import Crash, FailingTable, FakeClock, Faults, ScriptedModel, says
from tests.recalling import SURE, Recalling, model

MINUTE = 60_000


def waiting(*script: Any, last: ChatReply | None = None, **options: Any) -> tuple[Recalling, ScriptedModel]:
    """A filled world and its model."""
    mind = model(*script, last=last)
    return Recalling(mind, **options).filled(), mind


def submit(world: Recalling, query: str = "Where does Alice live?", **members: Any) -> int:
    """Take a question in."""
    body = msgspec.convert({"query": query, **members}, wire.RecallInput)
    return world.later.submit(world.caller, "home", body).conversation or 0


def work(world: Recalling) -> Worked:
    """Answer what waits."""
    return world.later.work("home", world.clock.now() + 10 * MINUTE)


def poll(world: Recalling, number: int) -> wire.Conversation:
    """The conversation of a question."""
    return world.conversations.get("home", "recall", number)


def due(world: Recalling) -> int:
    """How many questions wait."""
    return len(world.table.query(DUE_PK, *due_rows("recall"), limit=100))


def test_a_question_is_taken_in_answered_and_polled() -> None:
    """Submitted, then completed, with the answer as a message, the citations in `extra`, and the tokens."""
    world, _ = waiting(says("Lisbon." + SURE))
    number = submit(world)
    before = poll(world, number)
    assert (before.status, len(before.messages), due(world)) == ("submitted", 1, 1)

    assert work(world) == Worked((number,))

    after = poll(world, number)
    assert (after.status, after.messages[1]["content"], after.usage.requests) == ("completed", "Lisbon.", 1)
    assert after.extra is not None
    assert after.extra["result"]["found"] is True
    assert after.extra["result"]["memories"]
    assert after.extra["model"] == "scripted-1"
    assert "who" not in msgspec.json.encode(after).decode()
    assert due(world) == 0
    page, _ = world.conversations.page("home", "recall")
    assert page[0].extra is not None
    assert ("result" in page[0].extra, page[0].extra["result_omitted"]) == (False, True)
    delta = world.conversations.delta("home", "recall", number, messages_offset=1)
    assert [each["content"] for each in delta.messages] == ["Lisbon."]


def test_it_works_without_a_model_too() -> None:
    """The offline provider answers in the same place."""
    world = Recalling(None).filled()
    number = submit(world)

    work(world)

    assert "Alice lives in Lisbon" in poll(world, number).messages[1]["content"]


def test_a_hint_that_comes_twice_answers_once() -> None:
    """What is over is left alone; the row in DUE is gone with the answer."""
    world, mind = waiting(says("Lisbon." + SURE))
    number = submit(world)

    assert (work(world).answered, work(world)) == ((number,), Worked())

    assert len(mind.asked) == 1


def test_a_retry_key_stores_a_question_once() -> None:
    """The same key with the same question is the same conversation; with another question it is refused."""
    world, _ = waiting()
    body = wire.RecallInput(query="Where?")
    first = world.later.submit(world.caller, "home", body, key="k").conversation

    assert world.later.submit(world.caller, "home", body, key="k").conversation == first
    with pytest.raises(NoemaError) as caught:
        world.later.submit(world.caller, "home", wire.RecallInput(query="What?"), key="k")
    assert caught.value.code == "IdempotencyConflict"


def test_two_workers_answer_a_question_once() -> None:
    """The second finds the claim and leaves the question to the first."""
    table, clock = MemoryTable(), FakeClock()
    objects = MemoryObjects(clock)
    other_answers: list[Worked] = []

    def meanwhile(_: ChatRequest) -> ChatReply:
        other_answers.append(work(other))
        return says("Lisbon." + SURE)

    world = Recalling(model(meanwhile), table, objects, clock).filled()
    other = Recalling(model(), table, objects, clock, seed=7)
    number = submit(world)

    assert work(world).answered == (number,)

    assert other_answers == [Worked(more=True)]


def test_a_worker_that_died_is_followed_by_another() -> None:
    """Not before its claim is over; and an answer that it brings late is not taken."""
    table, clock = MemoryTable(), FakeClock()
    objects = MemoryObjects(clock)
    world = Recalling(model(), table, objects, clock).filled()
    other = Recalling(model(says("Lisbon." + SURE)), table, objects, clock, seed=7)
    number = submit(world)

    def late(_: ChatRequest) -> ChatReply:
        clock.advance(CLAIM_MS)
        assert work(other).answered == (number,)
        return says("Mars." + SURE)

    world.models.model = model(late)

    assert world.later.work("home", clock.now() + 100 * MINUTE) == Worked(more=True)

    assert poll(world, number).messages[1]["content"] == "Lisbon."


def test_a_question_that_kills_its_workers_fails_at_last() -> None:
    """After three claims it is over, and says so."""
    world, mind = waiting()
    number = submit(world)

    def die(_: ChatRequest) -> ChatReply:
        raise Crash

    mind.script = [die] * TRIES
    for _ in range(TRIES):
        with pytest.raises(Crash):
            work(world)
        world.clock.advance(CLAIM_MS)

    assert work(world).failed == (number,)
    found = poll(world, number)
    assert (found.status, found.failed_reason) == ("failed", "no answer could be found; ask again")
    assert due(world) == 0


def test_a_store_that_fails_leaves_the_question_for_the_next_hint() -> None:
    """The claim is given back, so the next try need not wait."""
    table = MemoryTable()
    failing = FailingTable(table)
    world = Recalling(model(last=says("Lisbon." + SURE)), failing).filled()
    number = submit(world)
    policy, answer = world.recall.answer, {"left": 1}

    def broken(*args: Any) -> Any:
        if answer["left"]:
            answer["left"] -= 1
            raise NoemaError("ServiceUnavailable", "the store does not answer")
        return policy(*args)

    world.recall.answer = broken  # type: ignore[method-assign]
    with pytest.raises(NoemaError):
        work(world)
    assert poll(world, number).status == "submitted"

    assert work(world).answered == (number,)


def test_an_answer_whose_write_got_no_answer_is_there_once() -> None:
    """The end of a question is looked up where the store does not say whether it was written."""
    for place in range(2, 5):
        table = MemoryTable()
        world = Recalling(model(last=says("Lisbon." + SURE)), table).filled()
        number = submit(world)
        faults = Faults([place], after=True, error=Unavailable)
        other = Recalling(
            model(last=says("Lisbon." + SURE)),
            FailingTable(table, faults),
            world.objects,
            world.clock,
            seed=3,
        )

        work(other)
        world.clock.advance(CLAIM_MS)
        work(world)

        assert poll(world, number).status == "completed"
        assert due(world) == 0


def test_an_erasure_meanwhile_withholds_the_answer() -> None:
    """Nothing of it is on record, and the conversation has failed with the reason."""
    world, mind = waiting()
    tea = world.evidence(1)

    def erase(_: ChatRequest) -> ChatReply:
        world.forget(tea)
        return says("I love green tea." + SURE)

    mind.script = [erase]
    number = submit(world)

    assert work(world).failed == (number,)

    found = poll(world, number)
    assert (found.status, found.failed_reason) == ("failed", ERASED)
    assert "green tea" not in msgspec.json.encode(found).decode()


def test_a_failed_model_is_a_failed_conversation_with_what_there_is() -> None:
    """As it is answered at once."""
    world, _ = waiting(ModelFault("unavailable", "x"))
    number = submit(world)

    work(world)

    found = poll(world, number)
    assert found.status == "failed"
    assert "Alice lives in Lisbon" in found.messages[1]["content"]
    assert found.extra is not None
    assert found.extra["result"]["failed_reason"] == found.failed_reason


def test_the_sweep_finds_what_waits_and_nothing_else() -> None:
    """After a while, and once for each space."""
    world, _ = waiting(last=says("Lisbon." + SURE))
    submit(world)
    submit(world)
    assert world.later.sweep() == []
    world.clock.advance(30_000)
    assert world.later.sweep() == ["home"]

    work(world)

    assert world.later.sweep() == []


def test_out_of_time_the_rest_waits() -> None:
    """What the deadline leaves is told as late; a second question is not begun with less than a minute left."""
    world, _ = waiting(last=says("Lisbon." + SURE))
    first, second = submit(world), submit(world)

    assert world.later.work("home", world.clock.now()) == Worked(more=True, late=True)
    assert world.later.work("home", world.clock.now() + MINUTE - 1) == Worked((first,), more=True, late=True)
    assert world.later.work("home", world.clock.now() + MINUTE - 1) == Worked((second,))


def test_questions_of_a_space_that_is_gone_are_dropped() -> None:
    """The rows in DUE do not outlive it for ever."""
    world, _ = waiting()
    submit(world)
    world.erasures.delete_space("home", "alice", owner="owner")

    work(world)

    assert due(world) == 0


def test_the_caller_who_asked_is_whom_it_is_answered_for() -> None:
    """The verified subject is on the record until the answer is."""
    world, mind = waiting(last=says("Lisbon." + SURE))
    body = wire.RecallInput(query="Where?", budget=None)
    number = world.later.submit(Caller("bob", "rest", "read"), "home", body).conversation or 0

    work(world)

    assert poll(world, number).user == "bob"
    assert len(mind.asked) == 1


def test_a_space_keeps_only_so_many_questions_waiting() -> None:
    """One more is refused with when to come back, and stores nothing; an answer makes room."""
    world, _ = waiting(last=says("Lisbon." + SURE))
    for _ in range(MAX_WAITING):
        submit(world)

    with pytest.raises(NoemaError) as refused:
        submit(world)

    assert (refused.value.code, due(world)) == ("RateLimited", MAX_WAITING)
    assert refused.value.retry_after_ms
    work(world)
    assert submit(world) == MAX_WAITING + 1
