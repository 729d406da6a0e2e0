"""The state machines of the five kinds, as tables (KIP §14, §15, §16.6, §19).

What lives here: which state may follow which, and the check of one move. What must never live here: who may
make a move (`core.authority`) or what else it changes (`transitions`, `purge`, `merge`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.errors import NoemaError
from core.model.elements import State

ENGINE_STATES: Final[Mapping[str, frozenset[str]]] = {
    "active": frozenset({"archived", "tombstoned", "merged", "purged"}),
    "archived": frozenset({"tombstoned", "merged", "purged"}),
    "merged": frozenset({"tombstoned", "purged"}),
    "tombstoned": frozenset({"purged"}),
    "purged": frozenset(),
}
"""`_system.state`: nothing comes back, and a stub is the end."""

ASSERTION_STATES: Final[Mapping[str, frozenset[str]]] = {
    "active": frozenset({"retracted", "superseded", "expired"}),
    "retracted": frozenset(),
    "superseded": frozenset(),
    "expired": frozenset(),
}
"""`lifecycle.status` of an Assertion (KIP §14)."""

EVIDENCE_STATES: Final[Mapping[str, frozenset[str]]] = {
    "active": frozenset({"corrected"}),
    "corrected": frozenset(),
}
"""`lifecycle.status` of Evidence (KIP §15.5)."""

ACTIVITY_STATES: Final[Mapping[str, frozenset[str]]] = {
    "pending": frozenset({"running", "completed", "failed", "cancelled"}),
    "running": frozenset({"completed", "failed", "cancelled"}),
    "completed": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
}
"""`status` of an Activity (KIP §16.6)."""

TERMINAL_ACTIVITY: Final = frozenset({"completed", "failed", "cancelled"})

EDITABLE: Final[frozenset[State]] = frozenset({"active", "archived"})
"""Engine states in which an element's mutable state may still change."""


def check_move(
    table: Mapping[str, frozenset[str]], current: str, to: str, element: str, *, code: str | None = None
) -> None:
    """Refuse a move that the table does not have.

    Raises:
        NoemaError: InvalidLifecycleTransition or `code`, with both states in `details`.
    """
    if to not in table.get(current, frozenset()):
        raise NoemaError(
            code or "InvalidLifecycleTransition",
            f"an element that is {current} cannot become {to}",
            details={"element": element, "from": current, "to": to},
        )


def expect_state(expected: object, actual: str, element: str) -> None:
    """`EXPECT STATE` (KIP §35.3): the guard holds or the statement fails.

    Raises:
        NoemaError: PreconditionFailed.
    """
    if expected is not None and expected != actual:
        raise NoemaError(
            "PreconditionFailed",
            f"the element is {actual}, not {expected}",
            details={"element": element, "expected": expected, "actual": actual},
        )
