"""Forming under the records of a space: a conversation writes what its submitter may write, now, and nothing else.

What lives here: the check of what the reader without a model has written, before it is committed. What must never live
here: reading. A run with a model writes through KIP, which asks as it goes.

The submitter's credential is gone when a conversation is formed, so what bounds a run is what the records let the
submitter do at that moment, and of that only what a run may do for anybody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from core.agents.dialogue import Dialogue
from core.agents.offline.formation import Formed, Reading
from core.authority import Principal
from core.errors import NoemaError
from core.governance.control import is_governed
from core.transaction.deeds import check_deeds, refused
from core.transaction.draft import Draft

Form = Callable[..., Formed]
"""What writes a part of a conversation into a Draft."""

RIGHTS: Final = frozenset({
    "read", "search", "project", "create", "update", "record_attributed_assertion", "retract_own",
    "supersede_own", "derive",
})  # fmt: skip
"""What a run may do on the caller's behalf: nothing that deletes, archives, merges, shares or governs."""


def check_formed(draft: Draft) -> dict[str, Any]:
    """Let what was formed pass, or refuse it; what the Commit Record says of it.

    Raises:
        NoemaError: NotAuthorized.
    """
    if not is_governed(draft.state.meta):
        return {}
    who = Principal(draft.origin.principal, draft.origin.channel, RIGHTS)
    try:
        return check_deeds(draft, who, draft.now)
    except NoemaError as error:
        if not refused(error):
            raise
        raise NoemaError(
            "NotAuthorized", "who submitted the conversation may not have it written", details=error.details
        ) from error


def formed_for(
    form: Form, draft: Draft, dialogue: Dialogue, start: int, reading: Reading
) -> tuple[Draft, Formed, dict[str, Any]]:
    """Form a part as far as its submitter may: what was said is filed, also where claims may not be made of it.

    Args:
        form: writes a part, as `core.agents.offline.formation.form_part`.
        draft: an empty transaction.
        dialogue: the conversation.
        start: the part's first message.
        reading: as of `form_part`.

    Raises:
        NoemaError: NotAuthorized where not even that may be.
    """
    part = form(draft, dialogue, start) if reading == "new" else form(draft, dialogue, start, reading=reading)
    try:
        return draft, part, check_formed(draft)
    except NoemaError as error:
        if not refused(error) or reading == "none":
            raise
    plain = Draft(draft.state, now=draft.now, origin=draft.origin)
    part = form(plain, dialogue, start, reading="none")
    return plain, part, check_formed(plain)
