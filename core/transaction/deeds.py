"""Whether what a transaction has written may be, element by element: for the paths that write without KML.

What lives here: from a written Draft to the deeds it comes to, each asked of the one gate (`core.authority`). What must
never live here: a decision. KML asks as it goes, since what it may see decides what it means; formation, facts and the
like know what they write, and are asked for all of it before it is committed.
"""

from __future__ import annotations

from typing import Any, Final

from core.authority import Action, Principal, authorize, authorize_new
from core.errors import NoemaError
from core.governance import admit
from core.governance.lineage import is_derived
from core.model.elements import AnyElement, Assertion, Proposition
from core.model.instants import Instant
from core.transaction.draft import Draft

REFUSALS: Final = frozenset({
    "NotAuthorized", "NotFoundOrNotVisible", "ActorBindingRequired", "RetractionNotAuthorized", "RequiresApproval",
    "RequiresStrongerAuthentication",
})  # fmt: skip
"""Codes of what `check_deeds` refuses with."""


def check_deeds(draft: Draft, principal: Principal, now: Instant) -> dict[str, Any]:
    """Let all that a transaction has written pass, or refuse it; the Commit Record's member that says by what.

    Args:
        draft: written to the end.
        principal: the caller; it is admitted here, on what the transaction sees.
        now: the time.

    Raises:
        NoemaError: as `core.authority.authorize`; nothing of the draft may then be committed.
    """
    who = admit(principal, draft.state.meta, draft.view, now)
    for change in draft.changes():
        element, before = draft.get(change.id), draft.before(change.id)
        assert element is not None, "what has changed is there"
        if before is None:
            authorize_new(who, _making(element), element)
            if is_derived(element):
                authorize_new(who, "derive", element)
        else:
            authorize(who, _deed(before, element), before)
    access = who.access
    return {} if access is None else {"authority": {"policy_version": access.version, "records": access.used}}


def _making(element: AnyElement) -> Action:
    if isinstance(element, Assertion):
        return "assert"
    return "ensure" if isinstance(element, Proposition) else "create"


def _deed(before: AnyElement, element: AnyElement) -> Action:
    """What was done to an element that stood before."""
    state = element.system.state
    if state != before.system.state:
        named: dict[str, Action] = {"purged": "purge", "archived": "archive", "tombstoned": "tombstone"}
        return named.get(state, "update")
    if isinstance(element, Assertion):
        return "retract" if element.status == "retracted" else "supersede"
    if element.retention != before.retention:
        return "manage_retention"
    return "update"


def refused(error: NoemaError) -> bool:
    """Whether an error says that a deed may not be."""
    return error.code in REFUSALS
