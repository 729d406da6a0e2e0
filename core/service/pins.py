"""Pins: elements that forgetting leaves alone.

What lives here: the use case behind `memory/pin`. What must never live here: what a pin means to a run of
maintenance (`core.agents.maintenance`).
"""

from __future__ import annotations

from typing import Final

import msgspec

from core.errors import NoemaError
from core.model.elements import Retention
from core.model.ids import is_element_id
from core.model.instants import Instant
from core.mutation.lifecycle import EDITABLE
from core.ports import Clock
from core.protocol.memory_types import PinInput, PinOutput
from core.service.callers import check_draft, seen, standing
from core.service.commit import Commits
from core.service.values import Caller, Proposal
from core.state.space import SpaceState
from core.transaction.draft import Draft

PINNED: Final = "pinned"  # the retention class
STANDARD: Final = Retention().retention_class


class Pins:
    """Pins and unpins elements. Safe to share between threads."""

    def __init__(self, clock: Clock, commits: Commits) -> None:
        self._clock = clock
        self._commits = commits

    def pin(self, caller: Caller, space_id: str, wish: PinInput, deadline: Instant) -> PinOutput:
        """Pin an element of any kind, or unpin it. Unpinning leaves any other retention class as it is.

        Raises:
            NoemaError: `InvalidInput` for what is no id, `NotFoundOrNotVisible`, `InvalidLifecycleTransition` for
                an element that changes no more, or as `Commits.commit`.
        """
        if not is_element_id(wish.entity):
            raise NoemaError(
                "InvalidInput", "entity is not the id of an element", details={"member": "entity"}
            )

        def decide(state: SpaceState) -> Proposal:
            draft = Draft(state, now=max(self._clock.now(), state.at), origin=caller.origin)
            element = seen(standing(caller, state, draft.now), draft.get(wish.entity))
            if element is None:
                raise NoemaError(
                    "NotFoundOrNotVisible", "there is no such element", details={"id": wish.entity}
                )
            if element.system.state not in EDITABLE:
                raise NoemaError(
                    "InvalidLifecycleTransition",
                    f"an element that is {element.system.state} changes no more",
                    details={"element": element.id, "state": element.system.state},
                )
            held = element.retention.retention_class
            wanted = PINNED if wish.pinned else STANDARD if held == PINNED else held
            retention = msgspec.structs.replace(element.retention, retention_class=wanted)
            draft.change(element, retention=retention)
            passed = check_draft(caller, draft, draft.now)
            delta = draft.finish({"pinned": wish.pinned, **passed})
            return Proposal(delta, outcome={"updated": delta is not None})

        committed = self._commits.commit(space_id, decide, deadline=deadline)
        return PinOutput(entity=wish.entity, pinned=wish.pinned, updated=committed.outcome["updated"])
