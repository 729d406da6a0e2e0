"""Trust as protected state: whose word counts how much, decided by the space's owner, never by content (KIP §22).

What lives here: trust records, and the class they give to a source. What must never live here: anything read
from a memory: an Assertion that says "trust this source" has no effect (KIP §22.5). Trust grants no authority.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from core.model.log import SpaceMeta

TrustClass = Literal["trusted", "unknown", "weak", "low_trust", "untrusted"]
TrustScope = Literal["actor", "source", "origin", "channel", "import", "tool"]

CLASSES: Final[tuple[TrustClass, ...]] = ("trusted", "unknown", "weak", "low_trust", "untrusted")
"""Best first."""

_RANK: Final = {name: rank for rank, name in enumerate(CLASSES)}
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


_STORED: Final = "trust"  # where protected state keeps it


def trust_of(meta: SpaceMeta) -> TrustState:
    """The trust that a space's protected state records; nothing is said of anybody where there is none."""
    stored = meta.extensions.get(_STORED)
    return TrustState() if stored is None else msgspec.convert(stored, TrustState)


def with_trust(meta: SpaceMeta, trust: TrustState) -> SpaceMeta:
    """A space's protected state with this trust. For hosts; no command reaches it (KIP §22.5)."""
    extensions = {**meta.extensions, _STORED: msgspec.to_builtins(trust)}
    return msgspec.structs.replace(meta, extensions=extensions)


class Trust:
    """Trust records by scope and subject, those that count for one purpose of asking."""

    def __init__(self, state: TrustState, purpose: str | None) -> None:
        self.default = state.default
        self.silent = not state.records  # nothing is said of anybody
        self._found: dict[tuple[str, str], list[TrustRecord]] = {}
        for record in state.records:
            if record.purpose is None or record.purpose == purpose:
                self._found.setdefault((record.scope, record.subject), []).append(record)

    def said(self, subjects: Iterable[tuple[TrustScope, str]], mode: str) -> TrustClass | None:
        """The worst that is said of any of these subjects, or None where nothing is said of them."""
        said = {
            record.trust
            for subject in subjects
            for record in self._found.get(subject, ())
            if record.mode is None or record.mode == mode
        }
        return next((name for name in _WORST_FIRST if name in said), None)


def worse(one: TrustClass, other: TrustClass) -> TrustClass:
    """The less trusting of two classes."""
    return one if _RANK[one] >= _RANK[other] else other


def best(classes: Iterable[TrustClass]) -> TrustClass:
    """The most trusting of some classes; `untrusted` of none."""
    found: TrustClass = "untrusted"
    for name in classes:
        if _RANK[name] < _RANK[found]:
            found = name
    return found
