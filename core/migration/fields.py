"""What each field of a 1.x record means in KIP 2.0 (KIP §103.4).

What lives here: the classification of attributes and metadata, one record at a time, as a value; pure tables and
small rules. What must never live here: writing. A field is mapped only where its meaning is sure; everything else
stays, as it was, among the leftovers, and a doubt is named by its class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from core.migration.legacy import MigrationInput
from core.model.elements import Json, ValidTime
from core.model.instants import Instant, parse_instant

Doubt = Literal[
    "legacy_author_ambiguous", "legacy_confidence_semantics_mixed", "legacy_source_unresolvable",
    "legacy_merge_history_missing", "legacy_access_level_ambiguous", "legacy_timestamp_semantics_unknown",
    "legacy_schema_constraint_unrepresentable", "legacy_lifecycle_unreconstructable",
]  # fmt: skip
"""The classes of what could not be mapped for sure (Migration guide §39), and one of our own for lifecycles."""

CLASSIFICATIONS: Final = frozenset({"public", "internal", "private", "sensitive"})
UNKNOWN_ACCESS: Final = "sensitive"
"""What an access level nobody explained is taken for: too little shown can be mended, too much cannot."""

_ENGINE: Final = "_"
_DECAYED: Final = ("decay_applied_at", "confidence_decayed_at", "decayed_at", "confidence_before_decay")
_SUPERSEDED: Final = ("superseded", "superseded_at", "superseded_by")


class Mapped(msgspec.Struct, frozen=True):
    """A record's metadata, taken apart.

    confidence: of an Assertion. strength, salience: mnemonic. source, author: as they were, where they are texts.
    observed_at, valid_time, expires_at: as KIP 2.0 means them. classification: protected. superseded: the old graph
    had put something in its place. leftovers: metadata without a sure place; engine: the old engine's bookkeeping.
    """

    confidence: float | None = None
    strength: float | None = None
    salience: float | None = None
    source: str | None = None
    author: str | None = None
    observed_at: Instant | None = None
    valid_time: ValidTime = ValidTime()
    expires_at: Instant | None = None
    classification: str | None = None
    superseded: bool = False
    leftovers: dict[str, Json] = {}
    engine: dict[str, Json] = {}
    doubts: tuple[Doubt, ...] = ()


def map_metadata(metadata: Mapping[str, Json], body: MigrationInput) -> Mapped:
    """Take a record's metadata apart."""
    return _Reading(metadata, body).mapped()


class _Reading:
    """One record's metadata while it is taken apart: what is taken leaves `left`."""

    def __init__(self, metadata: Mapping[str, Json], body: MigrationInput) -> None:
        self.body = body
        self.left = {name: value for name, value in metadata.items() if not name.startswith(_ENGINE)}
        self.engine = {name: value for name, value in metadata.items() if name.startswith(_ENGINE)}
        self.doubts: dict[Doubt, None] = {}

    def mapped(self) -> Mapped:
        confidence, strength = self._confidence()
        start, until = self._time("valid_from"), self._time("valid_until")
        if start is not None and until is not None and until <= start:
            self.left |= {"valid_from": start, "valid_until": until}
            start = until = None
            self.doubts["legacy_timestamp_semantics_unknown"] = None
        superseded = bool(self.left.get("superseded")) or any(
            self.left.get(name) not in (None, False) for name in _SUPERSEDED[1:]
        )
        return Mapped(
            confidence=confidence,
            strength=strength,
            salience=self._share("salience"),
            source=self._text("source"),
            author=self._text("author"),
            observed_at=self._time("observed_at"),
            valid_time=ValidTime(start, until),
            expires_at=self._time("expires_at"),
            classification=self._access(),
            superseded=superseded,
            leftovers=self.left,
            engine=self.engine,
            doubts=tuple(self.doubts),
        )

    def _confidence(self) -> tuple[float | None, float | None]:
        """Belief and accessibility; a value whose meaning is lost stays among the leftovers (KIP §103.5)."""
        strength = self._share("memory_strength")
        if "confidence" not in self.left:
            return None, strength
        meaning = "unknown" if any(name in self.left for name in _DECAYED) else self.body.confidence
        if meaning == "unknown":
            self.doubts["legacy_confidence_semantics_mixed"] = None
            return None, strength
        value = self._share("confidence")
        if meaning == "strength":
            return None, value if strength is None else strength
        return value, strength

    def _share(self, name: str) -> float | None:
        value = self.left.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            return None
        del self.left[name]
        return float(value)

    def _text(self, name: str) -> str | None:
        value = self.left.get(name)
        if not isinstance(value, str) or not value.strip():
            return None
        del self.left[name]
        return value

    def _time(self, name: str) -> Instant | None:
        value = self.left.get(name)
        if value is None:
            return None
        try:
            found = parse_instant(value) if isinstance(value, str) else None
        except ValueError:
            found = None
        if found is None:
            self.doubts["legacy_timestamp_semantics_unknown"] = None
            return None
        del self.left[name]
        return found

    def _access(self) -> str | None:
        """The classification; a word nobody explained stays among the leftovers."""
        level = self.left.get("access_level")
        if level is None:
            return None
        known = self.body.access_levels.get(level) if isinstance(level, str) else None
        if known is None and level in CLASSIFICATIONS:
            known = str(level)
        if known is not None:
            del self.left["access_level"]
            return known
        self.doubts["legacy_access_level_ambiguous"] = None
        return UNKNOWN_ACCESS


def is_specific(source: str) -> bool:
    """Whether a source names one artifact, rather than a kind of place: `message-123`, not `web`."""
    return len(source) <= 2000 and (
        any(letter.isdigit() for letter in source) or any(mark in source for mark in ("://", "#", "/", ":"))
    )


def merged_names(engine: Mapping[str, Json], target_type: str) -> list[str]:
    """The names of nodes that 1.x merged into this one and of its own type, from `_merged_from`."""
    entries = engine.get("_merged_from")
    prefix = f"{target_type}:"
    if not isinstance(entries, list):
        return []
    return [entry[len(prefix) :] for entry in entries if isinstance(entry, str) and entry.startswith(prefix)]
