"""The report of a migration, dry or real: what became of what, and what was not clear (Migration guide §38, §39)."""

from __future__ import annotations

from typing import Final

import msgspec

from core.migration.fields import Doubt
from core.model.elements import Json

_EXAMPLES: Final = 5


class Warning(msgspec.Struct, frozen=True):  # noqa: A001 - the report's word
    """One class of doubt: how many records have it, and a few of them."""

    code: str
    count: int
    examples: list[str]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a page of a migration came to.

    committed: False for a dry run, and where everything was there already. counts: the records of the page.
    mapping: what they became. already_there: records that an earlier run took over; nothing about them is changed.
    governance_changes: what was protected, and what the owner should do about it. unresolved: links left out,
    because an end is not known; send its concept first. schema_package: the compatibility package published.
    """

    source: str
    snapshot_digest: str
    committed: bool
    counts: dict[str, int]
    mapping: dict[str, int]
    already_there: int
    warnings: list[Warning]
    governance_changes: list[str]
    unresolved: list[str]
    schema_package: str | None = None
    activity: str | None = None


class Tally:
    """Counts and doubts while a page is written."""

    def __init__(self) -> None:
        self.mapping: dict[str, int] = dict.fromkeys(
            ("concepts", "propositions", "assertions", "evidence", "legacy_facets", "schema_nodes"), 0
        )
        self.already_there = 0
        self.unresolved: list[str] = []
        self.levels: dict[str, int] = {}
        self._doubts: dict[str, list[str]] = {}

    def add(self, what: str) -> None:
        """One more of something."""
        self.mapping[what] += 1

    def doubt(self, code: Doubt, record: str) -> None:
        """A record has something that was not clear."""
        self._doubts.setdefault(code, []).append(record)

    def protect(self, classification: str) -> None:
        """An element was given a classification."""
        self.levels[classification] = self.levels.get(classification, 0) + 1

    def warnings(self) -> list[Warning]:
        """The doubts, by class."""
        return [
            Warning(code, len(records), [record[:200] for record in records[:_EXAMPLES]])
            for code, records in sorted(self._doubts.items())
        ]

    def governance_changes(self, importer: str | None) -> list[str]:
        """What was protected, and what only the owner can decide, in words."""
        told = [f"{count} elements are classified {level}" for level, count in sorted(self.levels.items())]
        if told:
            told.append("check that the space's policies say who may see these classifications")
        if importer is not None and self.mapping["assertions"]:
            told.append(
                f"what nobody can be shown to have said is asserted by {importer}: trust it as far as you do"
            )
        return told

    def counts(self) -> dict[str, Json]:
        """What became of the records, for the Activity."""
        return {**self.mapping, "already_there": self.already_there, "unresolved": len(self.unresolved)}
