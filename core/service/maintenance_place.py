"""What a run of maintenance and the phases with a model say to each other: a place to work in, and what became of it.

What lives here: those values. What must never live here: either of the two. The function that takes a wish for a run in
must not load a language engine for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from core.model.elements import Json, Origin
from core.model.instants import Instant
from core.ports import Row
from core.protocol.http_types import MemoryPolicy
from core.service.conversation_record import Record
from core.service.formation_place import Kept
from core.transaction.draft import Draft

ROLE: Final = "maintenance"


class Pen(Protocol):
    """Writes on the run's row, and memory with it; each call is one commit under the lease."""

    def write(
        self, assign: Row, act: Callable[[Draft], None] | None = None, *, note: dict[str, Json] | None = None
    ) -> None:
        """Move the row on. note: what the run's report gains.

        Raises:
            Fenced: the lease is lost. RowRefused: the row moved under us.
        """


class Sitting(msgspec.Struct, frozen=True):
    """What a phase is worked in: the run, what it may know, and until when (ms)."""

    space_id: str
    instance: str
    record: Record
    marks: Row
    policy: MemoryPolicy
    assessment: dict[str, Json]
    lease: Kept
    pen: Pen
    until: Instant

    @property
    def origin(self) -> Origin:
        """Who the run is made for."""
        return Origin(self.record.text("user") or ROLE, ROLE)

    @property
    def owner(self) -> str:
        """The name under which the run holds tasks."""
        return f"{self.instance}:{self.record.number}"


class Sat(msgspec.Struct, frozen=True):
    """What became of a turn at the phases.

    over: no phase is left; marks: the space's marks then. failed: why the run has failed. later: out of time.
    """

    over: bool = False
    marks: Row = {}
    failed: str | None = None
    later: bool = False
    offline: str | None = None


class Quizzed(msgspec.Struct, frozen=True):
    """Questions by memory, or why there are none; and what the run's row says of what they cost."""

    queries: dict[str, str] | None
    reason: str
    asked: int
    row: Row


class Maintainer(Protocol):
    """Maintaining with models."""

    def sit(self, sitting: Sitting) -> Sat | None:
        """Work the next phase that has something to look at; None where the space has no model."""

    def quiz(self, sitting: Sitting, place: str | None, sample: int) -> Quizzed | None:
        """Questions for the next memories to be tested; None where there is no model or no memory to ask for."""
