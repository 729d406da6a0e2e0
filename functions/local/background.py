"""The work beside the requests: threads that do for the local process what SQS and EventBridge Scheduler do on AWS.

What lives here: taking messages from the embedded queue to the worker function and giving back what failed, and
ringing the tick function once a minute. What must never live here: the work itself.
"""

from __future__ import annotations

import secrets
import threading
from typing import Final, Protocol

from core.model.instants import Instant
from core.ports import Clock
from functions.local.context import LocalContext
from functions.local.events import failed_messages, scheduler_event, sqs_event
from functions.local.gateway import Handler, Log, describe

TICK_S: Final = 60.0  # as the schedule in template.yaml
WORK_TIMEOUT_MS: Final = 300_000  # as the worker's in template.yaml
MAX_RECEIVES: Final = 5  # as the queue's redrive policy in template.yaml
_WAIT_S: Final = 0.5  # how soon a stop is noticed
_WORKERS: Final = 2  # two spaces can be worked on at once; a third waits


class Message(Protocol):
    """A hint from the queue."""

    @property
    def group(self) -> str:
        """The space."""

    @property
    def body(self) -> str:
        """What there is to do."""

    @property
    def due(self) -> Instant:
        """When it may be handed out (ms)."""

    @property
    def attempt(self) -> int:
        """1 the first time."""


class Source[M: Message](Protocol):
    """The receiving end of the embedded queue."""

    def receive(self, timeout_s: float) -> M | None:
        """The next message, or None after so many seconds."""

    def done(self, message: M) -> None:
        """It has been dealt with."""

    def retry(self, message: M, delay_s: float) -> None:
        """It comes again."""


class Background[M: Message]:
    """The threads. `start` them after the services stand, `stop` them before the process ends.

    Args:
        queue: where the messages come from.
        worker: the worker function's handler; it answers with the ids of the messages that failed.
        tick: the tick function's handler.
        clock: the time in the events.
        log: takes a line when something failed.
        tick_s: seconds between ticks; the first comes at once, to find what a killed process left behind.
    """

    def __init__(
        self,
        queue: Source[M],
        worker: Handler,
        tick: Handler,
        *,
        clock: Clock,
        log: Log,
        tick_s: float = TICK_S,
    ) -> None:
        self._queue = queue
        self._worker = worker
        self._tick = tick
        self._clock = clock
        self._log = log
        self._tick_s = tick_s
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._drain, name=f"worker-{n}") for n in range(_WORKERS)]
        self._threads.append(threading.Thread(target=self._ring, name="tick"))

    def start(self) -> None:
        """Begin to work."""
        for thread in self._threads:
            thread.daemon = True  # a second Ctrl-C must end the process; the rows say what was left undone
            thread.start()

    def stop(self, timeout_s: float = 10.0) -> None:
        """Finish what is in hand and take nothing new."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(timeout_s)

    def _drain(self) -> None:
        while not self._stopping.is_set():
            message = self._queue.receive(_WAIT_S)
            if message is not None:
                self._work(message)

    def _work(self, message: M) -> None:
        message_id = secrets.token_hex(8)
        event = sqs_event(
            group=message.group,
            body=message.body,
            message_id=message_id,
            attempt=message.attempt,
            now_ms=self._clock.now(),
        )
        failed = self._call("worker", self._worker, event, message_id, frozenset({message_id}))
        if message_id not in failed:
            self._queue.done(message)
        elif message.attempt >= MAX_RECEIVES:
            # SQS would move it to the dead letters. Here the row stays due, and the tick brings it back.
            self._log(f"worker: gave up a message for {message.group} after {message.attempt} attempts")
            self._queue.done(message)
        else:
            self._queue.retry(message, min(2.0**message.attempt, 60.0))

    def _ring(self) -> None:
        while True:
            event_id = secrets.token_hex(8)
            event = scheduler_event(event_id=event_id, now_ms=self._clock.now())
            self._call("tick", self._tick, event, event_id, frozenset())
            if self._stopping.wait(self._tick_s):
                return

    def _call(
        self, name: str, handler: Handler, event: dict[str, object], event_id: str, on_error: frozenset[str]
    ) -> frozenset[str]:
        """The ids that failed; `on_error` if the handler raised."""
        context = LocalContext(
            function_name=name,
            aws_request_id=event_id,
            clock=self._clock,
            deadline_ms=self._clock.now() + WORK_TIMEOUT_MS,
        )
        try:
            return failed_messages(handler(event, context))
        except Exception as error:  # noqa: BLE001 - the edge: a function that failed must not end the thread
            self._log(describe(error, name))
            return on_error
