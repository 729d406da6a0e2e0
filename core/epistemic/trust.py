"""Trust as protected state: whose word counts how much, decided by the space's owner, never by content (KIP §22).

What lives here: trust records, and the class they give to a source. What must never live here: anything read
from a memory: an Assertion that says "trust this source" has no effect (KIP §22.5). Trust grants no authority.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

TrustClass = Literal["trusted", "unknown", "weak", "low_trust", "untrusted"]
TrustScope = Literal["actor", "source", "origin", "channel", "import", "tool"]

_WORST_FIRST: Final[tuple[TrustClass, ...]] = ("untrusted", "low_trust", "weak", "trusted")


class TrustRecord(msgspec.Struct, frozen=True):
    """One scoped decision of the space's owner (KIP §22.5).

    scope and subject: `actor` and `source` name an element id (a Concept, or Evidence as a source), `origin` an
    authenticated principal, `channel` a way in, `import` an import id, `tool` an activity class or an Activity id.
    purpose and mode: where set, the record counts only for that purpose of asking, or that assertion mode.
    """

    scope: TrustScope
    subject: str
    trust: TrustClass
    purpose: str | None = None
    mode: str | None = None


class TrustState(msgspec.Struct, frozen=True):
    """All trust records of a space, and what is assumed where none applies."""

    records: tuple[TrustRecord, ...] = ()
    default: TrustClass = "unknown"
    version: int = 1

    def lookup(self, *, purpose: str | None) -> TrustLookup:
        """The records that count for a purpose, ready to be asked."""
        return TrustLookup(self, purpose)


class TrustLookup:
    """Trust records by scope and subject, for one projection."""

    def __init__(self, state: TrustState, purpose: str | None) -> None:
        self.default = state.default
        self._found: dict[tuple[str, str], list[TrustRecord]] = {}
        for record in state.records:
            if record.purpose is None or record.purpose == purpose:
                self._found.setdefault((record.scope, record.subject), []).append(record)

    def stated(self, scope: TrustScope, subject: str, mode: str) -> TrustClass | None:
        """What the records say of one subject: the worst where they disagree, None where they are silent."""
        records = self._found.get((scope, subject))
        if not records:
            return None
        return worst(record.trust for record in records if record.mode is None or record.mode == mode)


def worst(classes: object) -> TrustClass | None:
    """The least trusting of some classes; `unknown` counts only where nothing else is said; None for none."""
    said = set(classes)  # type: ignore[call-overload]  # any iterable of classes
    for name in _WORST_FIRST:
        if name in said:
            return name
    return "unknown" if "unknown" in said else None
