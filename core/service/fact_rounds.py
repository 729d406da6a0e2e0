"""Consolidation of a space's facts by itself: which namespaces are due, one after the other, until the time is over.

What lives here: when a namespace is due, and a run over those of one space. What must never live here: the clock
(`core.service.fact_schedule`) and consolidating (`core.service.fact_upkeep`). Two runs of a space at once are one:
only one can claim the clock, and a consolidation holds a lease besides.
"""

from __future__ import annotations

from typing import Final

import msgspec

from core.facts import records
from core.facts.recalling import Tuning
from core.model.instants import Instant
from core.ports import Clock
from core.service.fact_access import Accesses
from core.service.fact_reading import Namespaces
from core.service.fact_schedule import IDLE_MS, FactSchedule
from core.service.fact_settings import tuning_of
from core.service.fact_upkeep import MAX_PRUNED, Consolidation
from core.service.faults import reading
from core.service.values import Caller

GAP_MS: Final = 3600 * 1000  # between two consolidations of a namespace that is written to all the time
_LATER_MS: Final = 60_000  # until what could not be done is tried again
_LEAST_MS: Final = 30_000  # time left, below which no further namespace is begun
_SYSTEM: Final = Caller("facts", "schedule", None, kind="system")


class FactRound(msgspec.Struct, frozen=True, kw_only=True):
    """What a run did. `ran`: False if the space was not due or another run has it. problems: of models, by name."""

    ran: bool
    namespaces: int = 0
    decayed: int = 0
    consumed: int = 0
    pruned: int = 0
    problems: tuple[str, ...] = ()
    more: bool = False


class FactRounds:
    """Runs over the namespaces of a space. Safe to share between threads."""

    def __init__(
        self,
        clock: Clock,
        *,
        namespaces: Namespaces,
        accesses: Accesses,
        schedule: FactSchedule,
        consolidation: Consolidation,
    ) -> None:
        self._clock = clock
        self._namespaces = namespaces
        self._accesses = accesses
        self._schedule = schedule
        self._consolidation = consolidation

    def run(self, space_id: str, deadline: Instant) -> FactRound:
        """Consolidate what is due in a space, if its clock has run out.

        Raises:
            NoemaError: the store failed, or the space is gone; the clock rings again.
        """
        claim = self._schedule.claim(space_id)
        if claim is None:
            return FactRound(ran=False)
        done = FactRound(ran=True)
        state = self._namespaces.state(space_id)
        tuning, following = tuning_of(state), [self._clock.now() + IDLE_MS]
        for agent_id in records.namespaces(state):
            due = self._due(space_id, agent_id, tuning)
            if due is None:
                continue
            if due <= self._clock.now():
                if self._clock.now() + _LEAST_MS > deadline:
                    done = msgspec.structs.replace(done, more=True)
                    following.append(self._clock.now())
                    break
                done, due = self._consolidate(done, space_id, agent_id, deadline)
            following.append(due)
        self._schedule.done(space_id, claim, min(following))
        return done

    def _due(self, space_id: str, agent_id: str, tuning: Tuning) -> Instant | None:
        """When a namespace is to be consolidated as it stands; None if never.

        One that was written to is due as soon as it has enough rows, at most once an hour; any other once a week.
        """
        with self._namespaces.current(space_id, agent_id) as (_, namespace):
            created = [fact.created_at for fact in namespace.facts.values()]
        if not created or not tuning.consolidate_from:
            return None
        with reading():
            last = self._accesses.last_consolidated(space_id, agent_id)
        if max(created) > last and len(created) >= tuning.consolidate_from:
            return last + GAP_MS if last else self._clock.now()
        return (last or min(created)) + IDLE_MS

    def _consolidate(
        self, before: FactRound, space_id: str, agent_id: str, deadline: Instant
    ) -> tuple[FactRound, Instant]:
        """One namespace; what was done in all, and when to come again."""
        done, now = self._consolidation.run(_SYSTEM, space_id, agent_id, deadline), self._clock.now()
        if not done.ran:
            return before, now + _LATER_MS  # the lease is somebody else's just now
        problems = before.problems if done.problem is None else (*before.problems, done.problem)
        after = msgspec.structs.replace(
            before,
            namespaces=before.namespaces + 1,
            decayed=before.decayed + done.decayed,
            consumed=before.consumed + done.consumed,
            pruned=before.pruned + done.pruned,
            problems=problems,
        )
        return after, now + (_LATER_MS if done.pruned == MAX_PRUNED else IDLE_MS)
