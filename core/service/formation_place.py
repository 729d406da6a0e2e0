"""What the drain of formation and the reading with a model say to each other: a place, a lease, an outcome.

What lives here: those values. What must never live here: either of the two. The function that takes submissions in
wakes formation too, and must not load a language engine for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from core.agents.dialogue import Dialogue
from core.agents.formation.ending import Reaction
from core.model.instants import Instant
from core.ports import Clock, Row, Write
from core.service.conversation_record import Record
from core.service.leases import Leases
from core.service.values import Fence

CALL_MS: Final = 180_000  # of one request to the model
LEASE_MS: Final = 300_000  # while a model is asked: a request fits into it with room
COMMIT_MS: Final = 20_000


class Kept:
    """A lease that is renewed as it is used."""

    def __init__(self, leases: Leases, clock: Clock, space_id: str, fence: Fence) -> None:
        self.fence = fence
        self._leases = leases
        self._clock = clock
        self._space_id = space_id

    def renew(self, ttl_ms: int) -> None:
        """Let it last that long from now. Raises `Fenced`."""
        self.fence = self._leases.renew(self._space_id, self.fence, ttl_ms)

    def __call__(self) -> Fence:
        """The fence, good for one more request to the model. Raises `Fenced`."""
        if self.fence.until - self._clock.now() < CALL_MS + COMMIT_MS:
            self.renew(LEASE_MS)
        return self.fence


class Place(msgspec.Struct, frozen=True):
    """Where a conversation is formed: its space, row and content, what ends it, and until when (ms)."""

    space_id: str
    instance: str
    record: Record
    dialogue: Dialogue
    ends: Callable[[Record], tuple[tuple[Write, ...], Row]]
    until: Instant


class Outcome(msgspec.Struct, frozen=True):
    """What became of it. `reason` is for the record where it was not simply formed."""

    reaction: Reaction
    reason: str = ""


class Reader(Protocol):
    """Forming with models."""

    def serves(self, space_id: str) -> bool:
        """Whether a space has a model."""

    def read(self, place: Place, lease: Kept) -> Outcome | None:
        """Form a conversation as far as it goes; None where the space has no model."""


def add_warnings(record: Record, more: list[str]) -> str:
    """The record's warnings and more, as the row keeps them."""
    held = record.text("warnings")
    kept: list[str] = [] if held is None else msgspec.json.decode(held, type=list[str])
    return msgspec.json.encode([*kept, *(one for one in more if one not in kept)]).decode()
