"""Users: the person whom a caller knows by a key of their own, found or made.

What lives here: the use case behind `get_or_init_user`. What must never live here: how a conversation's speakers
are found (`core.agents.offline.people`), whose lookup this is, so that a user made here and one met while
forming are the same person.
"""

from __future__ import annotations

from core.agents.dialogue import Context
from core.agents.offline.people import People
from core.authority import visible
from core.errors import NoemaError
from core.model.elements import Json
from core.model.instants import Instant
from core.ports import Clock
from core.protocol.memory_types import UserInput
from core.query.wire import to_wire
from core.service.callers import check_draft, standing
from core.service.commit import Commits
from core.service.values import Caller, Proposal
from core.state.space import SpaceState
from core.transaction.draft import Draft


class Users:
    """Finds and makes Person Concepts by key. Safe to share between threads."""

    def __init__(self, clock: Clock, commits: Commits) -> None:
        self._clock = clock
        self._commits = commits

    def get_or_init_user(
        self, caller: Caller, space_id: str, wish: UserInput, deadline: Instant
    ) -> dict[str, Json]:
        """The Person with key `user`, as a KIP Concept; made if there is none.

        Without a name the stored one stays (a new person is called by the key); with one it is replaced, and the
        old one becomes an alias (contract §4.12). Nothing is written where nothing changes.

        Raises:
            NoemaError: `InvalidInput` for a key or a name that cannot be printed, `NotFoundOrNotVisible`, or as
                `Commits.commit`.
        """
        key, name = _text("user", wish.user), None if wish.name is None else _text("name", wish.name)

        def decide(state: SpaceState) -> Proposal:
            now = max(self._clock.now(), state.at)
            draft = Draft(state, now=now, origin=caller.origin)
            person = People(draft, Context(), ()).known(key, name)
            who = standing(caller, state, now)
            if who is not None and state.get(person.id) is not None and not visible(who, person):
                raise NoemaError("NotFoundOrNotVisible", "this key is not there for you, or is taken")
            passed = check_draft(caller, draft, now)
            hidden = None if who is None or who.access is None else who.access.hidden(person)
            told = to_wire(person, space_id, hidden=hidden or None)
            return Proposal(draft.finish({"user": person.id, **passed}), outcome=told)

        found: dict[str, Json] = self._commits.commit(space_id, decide, deadline=deadline).outcome
        return found


def _text(member: str, value: str) -> str:
    """A key or a name without the blanks around it."""
    text = value.strip()
    if not text or not text.isprintable():
        raise NoemaError(
            "InvalidInput", f"{member} must be printable and not blank", details={"member": member}
        )
    return text
