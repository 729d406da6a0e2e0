"""Endings: what becomes of a conversation after each way a run with a model can end, as one table.

What lives here: the decision. What must never live here: carrying it out (`core.service.formation_model`). Whatever
the ending, the messages are on record; only "done" is success without a word.
"""

from __future__ import annotations

from typing import Final, Literal

from core.models.chat import PASSING
from core.models.run import Ended, Finished

Reaction = Literal["complete", "warn", "again", "later", "offline"]
"""complete: it is formed. warn: it is formed as far as it came, and the record says why no further. again: a failed
round; try again later. later: out of time; go on in another turn. offline: the reader without a model forms it, and
the record says so."""

_WRITTEN: Final[dict[Ended, Reaction]] = {
    "done": "complete",
    "length": "warn", "refused": "warn", "loop": "warn", "context": "warn",
    "turns": "warn", "tokens": "warn", "micros": "warn",
    "time": "later", "cancelled": "later",
}  # fmt: skip
_UNWRITTEN: Final[dict[Ended, Reaction]] = {
    "done": "complete",
    "length": "again", "refused": "again", "loop": "again",
    "context": "offline", "turns": "offline", "tokens": "offline", "micros": "offline",
    "time": "later", "cancelled": "later",
}  # fmt: skip


def react(finished: Finished, *, written: bool) -> Reaction:
    """What to do after a run.

    Args:
        finished: how it ended.
        written: whether anything rests on the conversation's messages by now.
    """
    if finished.ended == "fault":
        if finished.fault in PASSING:
            return "again"
        return "warn" if written else "offline"
    return (_WRITTEN if written else _UNWRITTEN)[finished.ended]


def why(finished: Finished) -> str:
    """The ending in a line for the record; nothing of what a provider wrote, which may quote the conversation."""
    if finished.ended == "fault":
        return f"model_fault: {finished.fault}"
    return f"model_{finished.ended}"
