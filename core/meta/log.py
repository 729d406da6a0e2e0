"""The log as META reads it: commits in pieces, asked for as they are needed.

What lives here: walking the commits of a space and what each may show to one caller. What must never live here: any
content of an element. Chronology says that something changed, and when; what it was before, FIND ... AS OF tells,
under the authority of today and without what has been purged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from core.authority import holds
from core.errors import NoemaError
from core.model.elements import AnyElement
from core.model.log import Change, Delta
from core.query.world import World
from core.transaction.record import changes_of
from core.transaction.scope import Scope

CONTROL: Final = "governance"
"""The member of a Commit Record that tells of a change of the control plane (`core.governance.audit`)."""

CHUNK: Final = 256  # commits asked for at a time
MOST: Final = 4_096  # commits looked at for one page; a longer walk goes on with the next page


def walk(scope: Scope, after: int, until: int, expected: int = CHUNK) -> Iterator[Delta]:
    """The commits after one log version up to another, oldest first.

    Args:
        scope: whose log.
        after: a log version.
        until: a log version.
        expected: how many will probably do; no more are asked for at first.

    Raises:
        NoemaError: HistoricalSnapshotUnavailable if some are no longer kept.
        Missing: more of the log must be handed in.
    """
    most = min(expected, CHUNK)
    while after < until:
        found: list[Delta] = scope.context.given.deltas(after, max(1, min(most, until - after)))
        if not found:
            return
        most = CHUNK
        for delta in found:
            if delta.ver > until:
                return
            yield delta
            after = delta.ver


def one(scope: Scope, version: int) -> Delta | None:
    """The commit of one log version, or None if it is no longer kept.

    Raises:
        Missing: it must be handed in.
    """
    try:
        return next((delta for delta in walk(scope, version - 1, version) if delta.ver == version), None)
    except NoemaError as error:
        if error.code == "HistoricalSnapshotUnavailable":
            return None
        raise


def is_shown(delta: Delta, scope: Scope, changes: list[Change]) -> bool:
    """Whether a commit exists for the caller, given those of its changes that do (KIP §30.4).

    One that touched only what is hidden does not; one of the control plane alone does for auditors.
    """
    if changes:
        return True
    if CONTROL in delta.record:
        return holds(scope.context.principal, "read_audit")
    return not (delta.puts or delta.gone) or delta.origin.principal == scope.context.principal.id


def seen_changes(delta: Delta, world: World) -> list[Change]:
    """What a commit did to each element that the caller may know of, as things stand now (KIP §68.2)."""
    changes = changes_of(delta)
    if world.open:
        return changes
    images = {element.id: element for element in delta.puts}
    return [change for change in changes if _may_know(change.id, images.get(change.id), world)]


def _may_know(element_id: str, image: AnyElement | None, world: World) -> bool:
    """Whether an element may be known of: by what it is now, or where it is gone, by what the commit left of it."""
    if world.view.get(element_id) is not None:
        return world.get(element_id) is not None
    visible = world.context.visible
    return image is not None and (visible is None or visible(image))
