"""The embedded queue has the manners of SQS FIFO."""

from __future__ import annotations

from threading import Thread

from infra.local.queue import EmbeddedQueue
from infra.system import SystemClock
from tests.doubles import FakeClock


def test_messages_of_a_group_come_one_at_a_time_in_order() -> None:
    """While a worker holds a message of a group, only other groups are served."""
    queue = EmbeddedQueue(FakeClock())
    for group, body in [("a", "a1"), ("a", "a2"), ("b", "b1"), ("a", "a3")]:
        queue.send(group, body, dedupe=body)

    first, second = queue.receive(0), queue.receive(0)
    assert first is not None
    assert second is not None
    assert (first.body, second.body) == ("a1", "b1")
    assert queue.receive(0) is None
    queue.done(first)
    third = queue.receive(0)
    assert third is not None
    assert third.body == "a2"
    queue.done(second)
    assert queue.receive(0) is None


def test_a_busy_group_does_not_starve_another() -> None:
    """Groups take turns."""
    queue = EmbeddedQueue(FakeClock())
    for number in range(3):
        queue.send("a", f"a{number}", dedupe=f"a{number}")
    queue.send("b", "b0", dedupe="b0")

    served = []
    while (message := queue.receive(0)) is not None:
        served.append(message.body)
        queue.done(message)

    assert served == ["a0", "b0", "a1", "a2"]


def test_a_failed_message_comes_again_first_after_its_delay() -> None:
    """A retry goes to the head of its group, holds the group back until it is due, and counts attempts."""
    clock = FakeClock()
    queue = EmbeddedQueue(clock)
    queue.send("a", "a1", dedupe="1")
    queue.send("a", "a2", dedupe="2")
    message = queue.receive(0)
    assert message is not None

    queue.retry(message, 2.5)

    assert queue.receive(0) is None
    clock.advance(2500)
    again = queue.receive(0)
    assert again is not None
    assert (again.body, again.attempt) == ("a1", 2)


def test_a_repeated_message_is_dropped_for_five_minutes() -> None:
    """The same deduplication id is taken once in five minutes, also when its message has been served."""
    clock = FakeClock()
    queue = EmbeddedQueue(clock)
    queue.send("a", "first", dedupe="d")
    message = queue.receive(0)
    assert message is not None
    queue.done(message)

    queue.send("a", "repeat", dedupe="d")
    clock.advance(299_999)
    queue.send("b", "repeat", dedupe="d")
    assert queue.receive(0) is None
    clock.advance(1)
    queue.send("a", "later", dedupe="d")

    later = queue.receive(0)
    assert later is not None
    assert later.body == "later"


def test_a_message_to_be_tried_again_waits() -> None:
    """A retry's delay holds a message back, and a receiver waits no longer than it was told."""
    clock = FakeClock()
    queue = EmbeddedQueue(clock)
    queue.send("a", "x", dedupe="1")
    first = queue.receive(0)
    assert first is not None
    queue.retry(first, 3)

    assert queue.receive(0) is None
    clock.advance(3000)
    assert queue.receive(0) is not None


def test_a_waiting_receiver_wakes_when_a_message_comes() -> None:
    """Receiving blocks a real thread until another sends."""
    queue = EmbeddedQueue(SystemClock())
    got: list[str] = []

    def work() -> None:
        message = queue.receive(20)
        got.append("" if message is None else message.body)

    thread = Thread(target=work)
    thread.start()
    queue.send("a", "wake", dedupe="1")
    thread.join(10)

    assert got == ["wake"]


def test_every_message_is_served_once_by_several_workers() -> None:
    """Four workers share forty messages of four groups: each is served once, in its group's order."""
    queue = EmbeddedQueue(SystemClock())
    served: list[tuple[str, str]] = []
    for number in range(40):
        queue.send(f"g{number % 4}", f"{number:02}", dedupe=str(number))

    def work() -> None:
        while (message := queue.receive(0.2)) is not None:
            served.append((message.group, message.body))
            queue.done(message)

    workers = [Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(20)

    assert len(served) == 40
    for group in range(4):
        bodies = [body for name, body in served if name == f"g{group}"]
        assert bodies == [f"{number:02}" for number in range(group, 40, 4)]
