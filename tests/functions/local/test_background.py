"""The worker and tick threads do what SQS and the Scheduler do: in order by group, again on failure, not for ever."""

import threading

from functions.local.background import MAX_RECEIVES, Background
from infra.local.queue import EmbeddedQueue
from infra.system import SystemClock

DEADLINE_S = 20.0


class EagerQueue(EmbeddedQueue):
    """The embedded queue, with no wait before a retry."""

    def retry(self, message, delay_s: float) -> None:
        super().retry(message, 0.0)


class Worker:
    """A handler that notes what it gets, fails as told, and says when it has seen enough."""

    def __init__(self, fails: dict[str, int], enough: int) -> None:
        self.fails = fails
        self.seen: list[tuple[str, str, int]] = []
        self.enough = threading.Event()
        self._count = enough
        self._lock = threading.Lock()

    def __call__(self, event, context):
        (record,) = event["Records"]
        body = record["body"]
        attempt = int(record["attributes"]["ApproximateReceiveCount"])
        with self._lock:
            self.seen.append((record["attributes"]["MessageGroupId"], body, attempt))
            if len(self.seen) >= self._count:
                self.enough.set()
        assert context.get_remaining_time_in_millis() > 0
        if attempt <= self.fails.get(body, 0):
            if body == "raises":
                raise RuntimeError("no")
            return {"batchItemFailures": [{"itemIdentifier": record["messageId"]}]}
        return {"batchItemFailures": []}


def run(worker: Worker, sent: list[tuple[str, str]], tick=lambda event, context: None) -> list[str]:
    clock = SystemClock()
    queue = EagerQueue(clock)
    lines: list[str] = []
    background = Background(queue, worker, tick, clock=clock, log=lines.append, tick_s=3600)
    for number, (group, body) in enumerate(sent):
        queue.send(group, body, dedupe=str(number))
    background.start()
    assert worker.enough.wait(DEADLINE_S), worker.seen
    background.stop()
    return lines


def test_messages_of_a_group_come_in_order() -> None:
    """Two groups are served, each in the order in which it was sent."""
    worker = Worker({}, enough=6)

    run(worker, [(group, str(n)) for n in range(3) for group in ("a", "b")])

    assert [body for group, body, _ in worker.seen if group == "a"] == ["0", "1", "2"]
    assert [body for group, body, _ in worker.seen if group == "b"] == ["0", "1", "2"]


def test_a_message_that_failed_comes_again_before_the_next() -> None:
    """A reported failure and a raised one are tried again, at the head of their group."""
    worker = Worker({"first": 2, "raises": 1}, enough=6)

    lines = run(worker, [("a", "first"), ("a", "raises"), ("a", "last")])

    assert worker.seen == [
        ("a", "first", 1), ("a", "first", 2), ("a", "first", 3), ("a", "raises", 1), ("a", "raises", 2), ("a", "last", 1),
    ]  # fmt: skip
    assert any("RuntimeError" in line for line in lines)
    assert not any(line == "no" for line in lines)


def test_a_message_is_given_up_after_five_attempts() -> None:
    """A poisoned message does not hold its group for ever; the log says so."""
    worker = Worker({"poison": 99}, enough=MAX_RECEIVES + 1)

    lines = run(worker, [("a", "poison"), ("a", "next")])

    assert [body for _, body, _ in worker.seen] == ["poison"] * MAX_RECEIVES + ["next"]
    assert any("gave up" in line for line in lines)


def test_the_tick_rings_at_once_and_survives_its_failures() -> None:
    """The first tick comes when the process starts, and a tick that fails does not end the thread."""
    rung = threading.Event()

    def tick(event, context):
        assert event["source"] == "aws.scheduler"
        rung.set()
        raise RuntimeError("no")

    lines = run(Worker({}, enough=1), [("a", "x")], tick)

    assert rung.wait(DEADLINE_S)
    assert any(line.startswith("tick: RuntimeError") for line in lines)
