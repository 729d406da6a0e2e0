"""`Queue` in this process: hints for the local worker, with the manners of SQS FIFO.

What lives here: groups, order, deduplication and waiting. What must never live here: durability. A message lost
with the process is no loss: the truth is a row, and the tick finds rows that are due.
"""

from __future__ import annotations

from collections import deque
from threading import Condition
from typing import Final

import msgspec

from core.model.instants import Instant
from core.ports import Clock

_DEDUPE_MS: Final = 300_000  # SQS FIFO's window


class Message(msgspec.Struct, frozen=True):
    """One hint in the hands of a worker, who must give it to `done` or `retry`."""

    group: str
    body: str
    due: Instant
    attempt: int = 1


class EmbeddedQueue:
    """Messages by group: at most one of a group is with a worker at a time, and they come in order."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = Condition()
        self._waiting: dict[str, deque[Message]] = {}  # in the order in which groups are served
        self._taken: set[str] = set()
        self._seen: dict[str, Instant] = {}  # deduplication id -> when it was sent, oldest first

    def send(self, group: str, body: str, *, dedupe: str) -> None:
        """Hand over one message; a repeat of `dedupe` within five minutes is dropped."""
        with self._changed:
            now = self._clock.now()
            while self._seen and next(iter(self._seen.values())) <= now - _DEDUPE_MS:
                del self._seen[next(iter(self._seen))]
            if dedupe in self._seen:
                return
            self._seen[dedupe] = now
            message = Message(group, body, now)
            self._waiting.setdefault(group, deque()).append(message)
            self._changed.notify()

    def receive(self, timeout_s: float) -> Message | None:
        """The next message of a group that no worker holds; waits at most `timeout_s`, then None."""
        with self._changed:
            deadline = self._clock.now() + round(timeout_s * 1000)
            while True:
                now = self._clock.now()
                message, next_due = self._ready(now)
                if message is not None or now >= deadline:
                    return message
                wake = deadline if next_due is None else min(deadline, next_due)
                self._changed.wait(max(wake - now, 1) / 1000)

    def done(self, message: Message) -> None:
        """The work is finished: the group's next message may go."""
        with self._changed:
            self._taken.discard(message.group)
            self._changed.notify()

    def retry(self, message: Message, delay_s: float) -> None:
        """The work failed: the message goes back to the head of its group, to come again after `delay_s`."""
        with self._changed:
            self._taken.discard(message.group)
            again = msgspec.structs.replace(
                message, due=self._clock.now() + round(delay_s * 1000), attempt=message.attempt + 1
            )
            self._waiting.setdefault(message.group, deque()).appendleft(again)
            self._changed.notify()

    def _ready(self, now: Instant) -> tuple[Message | None, Instant | None]:
        """Take a message that is due, or tell when the next one will be."""
        next_due: Instant | None = None
        for group, messages in self._waiting.items():
            if group in self._taken:
                continue
            if messages[0].due <= now:
                message = messages.popleft()
                del self._waiting[group]
                if messages:
                    self._waiting[group] = messages  # last now, so that one busy group starves no other
                self._taken.add(group)
                return message, None
            next_due = messages[0].due if next_due is None else min(next_due, messages[0].due)
        return None, next_due
