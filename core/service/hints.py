"""Hints that a space has work: what a queue message says, in one place.

The row is the truth, so a message names a kind of work and a space and nothing else, and losing it or getting
it twice does no harm. Kept apart from the services that do the work, which cost an import many times over.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from core.ports import Entropy, Queue

Work = Literal["formation", "maintenance", "upkeep", "facts", "recall", "shadow"]
FORMATION: Final[Work] = "formation"
MAINTENANCE: Final[Work] = "maintenance"
UPKEEP: Final[Work] = "upkeep"
FACTS: Final[Work] = "facts"
RECALL: Final[Work] = "recall"
SHADOW: Final[Work] = "shadow"


class Hint(msgspec.Struct, frozen=True, kw_only=True):
    """A message: `{"work": "formation", "space": "demo"}`."""

    work: Work
    space: str


def send_hint(queue: Queue, entropy: Entropy, space_id: str, work: Work) -> None:
    """Say that a space has work; the store's `Unavailable` passes through.

    Every message has a new deduplication id: a queue that dropped a later hint as a repeat of an earlier one
    would lose what happened in between.
    """
    body = msgspec.json.encode(Hint(work=work, space=space_id)).decode()
    # Who asks does not wait for what is formed, and nobody waits for a comparison.
    group = f"{space_id}.{work}" if work in (RECALL, SHADOW) else space_id
    queue.send(group, body, dedupe=f"{work}:{space_id}:{entropy.token(8).hex()}")


def read_hint(body: str) -> Hint:
    """The hint in a message.

    Raises:
        msgspec.MsgspecError: the message is none of ours.
    """
    return msgspec.json.decode(body, type=Hint)
