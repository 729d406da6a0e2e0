"""Standings: what a caller may do in a space, for use cases that have no state at hand; and what they see of records.

What lives here: the question whether a space is governed, answered by HEAD alone, so that one without records pays one
small read or none; and which conversations exist for whom. What must never live here: decisions about elements
(`core.governance.access`).

A conversation exists for who took part in it, as submitter or asker, and for who may see everything. An answer that was
found under other records than now is not shown again: it may hold what its asker may no longer know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from core.authority import Principal, holds
from core.model.ids import Kind
from core.model.instants import Instant
from core.ports import Clock, Row
from core.service.callers import check_held, is_whole, standing
from core.service.conversation_record import Record
from core.service.spaces import Spaces
from core.service.values import Caller
from core.state.space import SpaceState
from core.state.view import Counts
from core.storage.head import Head

GOVERNED: Final = "governed"
"""The HEAD attribute that says that the space has records; written with them."""

STAMP: Final = "authority"
"""The attribute of a recall's row that says under which authority it was answered."""

Shown = Callable[[Record], Record | None]
_ANSWERS: Final = ("answer", "result", "failed_reason", "warnings")


class Standings:
    """Looks up what callers may do. Safe to share between threads."""

    def __init__(self, spaces: Spaces, clock: Clock) -> None:
        self._spaces = spaces
        self._clock = clock

    def of(self, space_id: str, caller: Caller | None, head: Head | None = None) -> Principal | None:
        """The admitted caller of a governed space; None where nothing is to be asked. `head`: as just read.

        Raises:
            NoemaError: NotFoundOrNotVisible, ServiceUnavailable.
        """
        head = self._spaces.head(space_id) if head is None else head
        if caller is None or not head.row.get(GOVERNED):
            return None
        return standing(caller, self._spaces.load(space_id), self._clock.now())

    def check(self, space_id: str, caller: Caller, permission: str) -> None:
        """Refuse who does not hold a permission on anything, where records decide.

        Raises:
            NoemaError: NotAuthorized; as `of`.
        """
        check_held(self.of(space_id, caller), permission)

    def is_whole(self, space_id: str, caller: Caller) -> bool:
        """Whether nothing of the space is withheld from a caller."""
        return is_whole(self.of(space_id, caller))


def stamp_of(who: Principal | None) -> str | None:
    """What an answer is found under; it differs whenever the records or what the caller may do by them differ."""
    access = None if who is None else who.access
    return None if access is None else f"{access.version}:{access.digest}"


def shown_to(who: Principal | None, caller: Caller | None, collection: str) -> Shown | None:
    """What there is of a conversation for a caller; None where that is all of it."""
    if who is None or caller is None or is_whole(who):
        return None
    reads, stamp = holds(who, "read"), stamp_of(who)

    def shown(record: Record) -> Record | None:
        row = record.row
        if not reads or row.get("user") != caller.subject:
            return None
        answered = row.get("answer") is not None or row.get("result") is not None
        if collection == "recall" and answered and row.get(STAMP) != stamp:
            return None
        if collection == "formation" and row.get("model") is not None:
            without: Row = {name: value for name, value in row.items() if name not in _ANSWERS}
            return msgspec.structs.replace(record, row=without)
        return record

    return shown


def counts_for(caller: Caller | None, state: SpaceState, now: Instant) -> Counts | None:
    """How many Concepts and Propositions exist for a caller; None where that is all of them."""
    who = None if caller is None else standing(caller, state, now)
    if who is None or who.access is None or who.access.open:
        return None
    sees = who.access.sees

    def count(kind: Kind) -> int:
        found = (state.get(each) for each in state.ids(kind))
        return sum(element is not None and sees(element) for element in found)

    return Counts(concept=count("concept"), proposition=count("proposition"))
