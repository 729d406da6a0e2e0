"""Checkpoints: the state of a session, saved to go on from, and found again. And facts that come from files.

What lives here: the use cases that only append. What must never live here: recalling (`core.service.fact_recall`)
and changing (`core.service.facts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from core.facts import labels, records, writing
from core.facts.imports import Imported
from core.facts.ulid import ulid
from core.facts.values import Checkpoint, Fact, ImportReport
from core.model.elements import Concept, Json
from core.model.instants import Instant
from core.service.fact_reading import Namespaces
from core.service.fact_schedule import FactSchedule
from core.service.fact_writing import MAX_TARGETS, Writer, check_room
from core.service.faults import reading
from core.service.values import Caller
from core.transaction.draft import Draft

_PART_BYTES: Final = 1_500_000  # of texts imported in one commit
LATE: Final = 50  # of the checkpoints written last, the latest is looked for: clocks of writers may differ


class Appending:
    """Saves checkpoints and imports facts; `core.service.facts.Facts` is one, and documents the arguments."""

    def __init__(self, namespaces: Namespaces, writer: Writer, schedule: FactSchedule | None) -> None:
        self._namespaces = namespaces
        self._writer = writer
        self._schedule = schedule

    def _written(self, space_id: str) -> None:
        """There are new facts: they are looked at soon."""
        if self._schedule is not None:
            self._schedule.written(space_id)

    def import_facts(
        self, caller: Caller, space_id: str, imported: Imported, *, deadline: Instant
    ) -> ImportReport:
        """Keep the facts of a file, part by part; those whose id stands already are passed over.

        Replacements come before what they replace. A run that is interrupted is simply run again.
        """
        added = linked = 0
        ordered = sorted(imported.facts, key=lambda fact: (-fact.created_at, fact.id))
        for part in _parts(ordered):

            def decide(draft: Draft, part: Sequence[Fact] = part) -> Json:
                check_room(draft, len(part))
                return len(writing.add_all(draft, part))

            added += int(self._writer.commit(caller, space_id, deadline, {"do": "import"}, decide))
        for start in range(0, len(imported.links), MAX_TARGETS):
            some = imported.links[start : start + MAX_TARGETS]

            def relate(draft: Draft, some: Sequence[tuple[str, str]] = some) -> Json:
                return len([writing.link(draft, source, target) for source, target in some])

            linked += int(self._writer.commit(caller, space_id, deadline, {"do": "import"}, relate))
        self._written(space_id)
        return ImportReport(
            added=added,
            present=len(imported.facts) - added,
            linked=linked,
            passed_over=imported.passed_over,
            notes=imported.notes,
        )

    def save_checkpoint(
        self,
        caller: Caller,
        space_id: str,
        agent_id: str,
        *,
        deadline: Instant,
        state: Mapping[str, Json] | None = None,
        messages: Sequence[Mapping[str, Json]] = (),
        metadata: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> Checkpoint:
        """Save a session's state."""
        labels.check_agent(agent_id)
        chance = self._writer.chance()
        given: dict[str, Any] = {
            "state": None if state is None else dict(state),
            "messages": [dict(each) for each in messages],
            "metadata": dict(metadata or {}),
        }

        def decide(draft: Draft) -> Json:
            made = msgspec.convert(
                {
                    "id": ulid(draft.now, chance),
                    "agent_id": agent_id,
                    "created_at": draft.now,
                    **given,
                },
                Checkpoint,
            )
            writing.save(draft, made)
            return msgspec.to_builtins(made)

        request = {"do": "save_checkpoint", "agent": agent_id, **given}
        saved = self._writer.commit(caller, space_id, deadline, request, decide, key=key)
        return msgspec.convert(saved, Checkpoint)

    def latest_checkpoint(self, space_id: str, agent_id: str) -> Checkpoint | None:
        """The checkpoint saved last; None if there is none."""
        return next(iter(self.checkpoints(space_id, agent_id)), None)

    def checkpoint(self, space_id: str, agent_id: str, checkpoint_id: str) -> Checkpoint | None:
        """One checkpoint of an agent by its id; None if there is none."""
        found = self._checkpoint(space_id, agent_id, checkpoint_id)
        return None if found is None else records.read_checkpoint(found, agent_id)

    def _checkpoint(self, space_id: str, agent_id: str, checkpoint_id: str) -> Concept | None:
        labels.check_agent(agent_id)
        with reading():
            state = self._namespaces.view(space_id)
            series = records.find(state, records.SERIES, agent_id)
            found = records.find(state, records.CHECKPOINT, checkpoint_id)
        if series is None or found is None:
            return None
        return found if any(ref.target == series.id for ref in found.structural) else None

    def checkpoints(self, space_id: str, agent_id: str, *, limit: int = 50) -> tuple[Checkpoint, ...]:
        """Checkpoints, the newest first."""
        labels.check_agent(agent_id)
        with reading():
            state = self._namespaces.view(space_id)
            found = records.find(state, records.SERIES, agent_id)
            if found is None:
                return ()
            written = islice(records.series(state, found.id), max(limit, LATE))
            saved = [records.read_checkpoint(each, agent_id) for each in written]
        saved.sort(key=lambda each: (-each.created_at, each.id))
        return tuple(saved[:limit])


def _parts(facts: Sequence[Fact]) -> Iterator[list[Fact]]:
    """Facts in parts that one commit can take, by count and by size."""
    part: list[Fact] = []
    size = 0
    for fact in facts:
        bulk = len(fact.text.encode())
        if part and (len(part) == MAX_TARGETS or size + bulk > _PART_BYTES):
            yield part
            part, size = [], 0
        part.append(fact)
        size += bulk
    if part:
        yield part
