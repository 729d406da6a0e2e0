"""Callers as the records of a space know them: from a verified credential to a Principal.

What lives here: the one mapping from a credential's scope to permissions, and what a use case asks about a caller in a
governed space. What must never live here: anything a request body says. In a space without records nothing is asked:
scopes have decided at the door, and `standing` is None.
"""

from __future__ import annotations

from typing import Any, Final

from core.agents.recall.sight import is_limited, seen_by
from core.authority import PERMISSIONS, Action, Principal, allows, holds, visible
from core.errors import NoemaError
from core.governance import admit
from core.governance.control import is_governed
from core.governance.nobody import NOBODY
from core.model.elements import AnyElement
from core.model.instants import Instant
from core.service.values import Caller
from core.state.space import SpaceState
from core.state.view import View
from core.transaction.deeds import check_deeds
from core.transaction.draft import Draft

READING: Final = frozenset(
    {"discover", "read", "search", "project", "export", "read_history", "read_raw_origin"}
)
WRITING: Final = frozenset(name for names in PERMISSIONS.values() for name in names) - READING


def principal_of(caller: Caller, *, readonly: bool) -> Principal:
    """An admitted caller as KIP knows it: `write` does not include `read`, and a guest may not export."""
    permissions = READING if readonly else WRITING
    if caller.kind == "anonymous":
        permissions -= {"export"}
    return Principal(
        caller.subject,
        caller.channel,
        None if caller.scope == "*" else permissions,
        everywhere=caller.everywhere,
        strong=caller.kind in {"cwt", "system"},
    )


def standing(caller: Caller, state: SpaceState, now: Instant) -> Principal | None:
    """What a caller may do in a governed space now; None where nothing is to be asked.

    That is so in a space without records, and for the service's own work, which is nobody's (`kind` system).
    """
    if caller.kind == "system" or not is_governed(state.meta):
        return None
    return admit(principal_of(caller, readonly=caller.scope != "write"), state.meta, state, now)


def view_for(caller: Caller, state: SpaceState, now: Instant) -> View:
    """The state as a caller may see it; the state itself for who sees everything."""
    who = standing(caller, state, now)
    return state if who is None else seen_by(state, who)


def is_whole(who: Principal | None) -> bool:
    """Whether nothing of the memory is withheld from a caller."""
    return who is None or not is_limited(who)


def check_action(who: Principal | None, action: Action) -> None:
    """Refuse who may not do this on anything.

    Raises:
        NoemaError: NotAuthorized.
    """
    if who is not None and not allows(who, action):
        raise not_held(*PERMISSIONS[action])


def check_held(who: Principal | None, permission: str) -> None:
    """Refuse who does not hold a permission on anything.

    Raises:
        NoemaError: NotAuthorized.
    """
    if who is not None and not holds(who, permission):
        raise not_held(permission)


def not_held(*permissions: str) -> NoemaError:
    """That a permission is missing."""
    return NoemaError(
        "NotAuthorized",
        "the records of this space do not let you do this",
        details={"permissions": list(permissions)},
    )


def check_draft(caller: Caller, draft: Draft, now: Instant) -> dict[str, Any]:
    """Let what a caller has written pass, or refuse it; what the Commit Record says of it.

    Raises:
        NoemaError: as `core.transaction.deeds.check_deeds`.
    """
    if caller.kind == "system" or not is_governed(draft.state.meta):
        return {}
    return check_deeds(draft, principal_of(caller, readonly=False), now)


def seen(who: Principal | None, element: AnyElement | None) -> AnyElement | None:
    """An element that a caller named, if it is there for them; what is hidden and what is not cost the same."""
    if who is None:
        return element
    there = visible(who, NOBODY if element is None else element)
    return element if there else None


def shows(who: Principal | None, state: SpaceState, element_id: str) -> bool:
    """Whether an element is there for a caller."""
    element = state.get(element_id)
    return element is not None and (who is None or visible(who, element))
