"""Due commitments: each is raised once, when its time has come, by an Activity that says so.

What lives here: finding them, a bounded piece at a time, in order of creation. What must never live here: what is to
be done about one: that a time has passed fulfils nothing, cancels nothing and forgets nothing.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

import msgspec

from core.agents.maintenance.decay import place_of
from core.agents.vocabulary import COMMITMENT
from core.model.elements import Activity, Concept
from core.model.instants import Instant, format_instant, parse_instant
from core.state.indexes import type_key
from core.state.view import View
from core.transaction.draft import Draft

LOOKED_AT: Final = 500  # Commitments read for one commit
REVIEWED: Final = "commitment_review"
_OPEN: Final = frozenset({"pending", "blocked"})


class Raised(msgspec.Struct, frozen=True):
    """One piece of the walk: the Commitments that were raised. `place` is where the next begins; None: the end."""

    raised: tuple[str, ...]
    place: str | None


def raise_due(draft: Draft, place: str | None) -> Raised:
    """Raise the next open Commitments that are due and were not raised for this due time before."""
    raised: list[str] = []
    last: str | None = None
    found = draft.view.find(type_key(COMMITMENT))
    ahead = [each for each in found if place is None or place_of(each) > place]
    for element in islice(ahead, LOOKED_AT):
        last = place_of(element)
        at = due_at(draft.view, element)
        if at is None or at > draft.now:
            continue
        key = f"{REVIEWED}:{element}:{format_instant(at)}"
        if draft.find_client_key("activity", key) is not None:
            continue
        draft.create(
            Activity,
            activity_class=REVIEWED,
            client_key=key,
            status="completed",
            started_at=draft.now,
            ended_at=draft.now,
            inputs=(element,),
        )
        raised.append(element)
    return Raised(tuple(raised), last if len(ahead) > LOOKED_AT else None)


def due_at(view: View, element_id: str) -> Instant | None:
    """When an open Commitment is due; None for one that is not open or never due."""
    made = view.get(element_id)
    if not isinstance(made, Concept) or made.system.state != "active":
        return None
    due = made.attributes.get("due_at")
    if made.attributes.get("status") not in _OPEN or not isinstance(due, str):
        return None
    try:
        return parse_instant(due)
    except ValueError:
        return None
