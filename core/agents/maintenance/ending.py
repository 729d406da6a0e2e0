"""Endings: what becomes of a run of maintenance after each way a phase with a model can end, as one table.

What lives here: the decision. What must never live here: carrying it out (`core.service.maintenance_model`). Whatever the
ending, what the rules settled before stands, and each command that was committed stands.
"""

from __future__ import annotations

from typing import Final, Literal

from core.models.chat import PASSING
from core.models.run import Ended, Finished

Reaction = Literal["next", "warn", "again", "later", "offline", "failed"]
"""next: on to the next phase. warn: the same, and the record says why this one did not come to its end. again: the phase
is begun anew, a few times, then the run has failed. later: out of time; another turn goes on. offline: no more phases in this
run, and the record says so. failed: the run has failed; no mark moves, and it is tried again another time."""

_AFTER: Final[dict[Ended, Reaction]] = {
    "done": "next",
    "length": "warn", "refused": "warn", "loop": "warn", "context": "warn",
    "turns": "failed", "tokens": "failed",
    "micros": "offline",
    "time": "later", "cancelled": "later",
}  # fmt: skip


def react(finished: Finished) -> Reaction:
    """What to do after the run of a phase."""
    if finished.ended == "fault":
        return "again" if finished.fault in PASSING else "offline"
    return _AFTER[finished.ended]
