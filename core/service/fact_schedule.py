"""When a space's facts are consolidated by themselves: soon after somebody wrote, else once a week.

What lives here: the space's schedule row and its clock row in `DUE`, which stands in order of time and is moved in
the same transaction, so that a tick reads what is due and no other space. What must never live here: consolidating
(`core.service.fact_upkeep`).

A write winds the clock to `SOON_MS` from now if it stands later, or is not wound at all, or if a run has claimed it:
what was written may be behind what the run has read. A run claims the clock before it reads anything, and sets it
for the next time only if nobody wound it meanwhile. So no write is left unseen, and two runs are never one too few.
Winding is best effort: a write whose clock could not be wound is seen with the next one, or after the week.
"""

from __future__ import annotations

from threading import Lock
from typing import Final

import msgspec

from core.model.instants import Instant
from core.ports import (
    Clock,
    Delete,
    Entropy,
    Put,
    Queue,
    Refused,
    Row,
    StoreFault,
    Table,
    Update,
    When,
    Write,
)
from core.service.faults import reading
from core.service.hints import FACTS, send_hint
from core.service.rows import number_in, rows_between
from core.storage.layout import (
    DUE_PK,
    fact_clock_of,
    fact_clock_rows,
    fact_clock_sk,
    fact_schedule_sk,
    space_pk,
)

SOON_MS: Final = 10 * 60_000  # from a write to the consolidation that sees it
# Between consolidations of facts that nobody writes; a weight halves in 30 days.
IDLE_MS: Final = 7 * 24 * 3600 * 1000
CLAIM_MS: Final = 20 * 60_000  # when a run that died is taken over: longer than any run may last
_MARGIN_MS: Final = 60_000  # by which clocks may differ
_SWEPT: Final = 1_000  # spaces that one tick hints at
_KNOWN: Final = 10_000  # spaces whose clock this process remembers


class Claim(msgspec.Struct, frozen=True):
    """A run's hold on a space's clock: the time it stands at while the run works."""

    at: Instant


class FactSchedule:
    """The clocks of all spaces' facts. Safe to share between threads."""

    def __init__(self, table: Table, queue: Queue, clock: Clock, entropy: Entropy) -> None:
        self._table = table
        self._queue = queue
        self._clock = clock
        self._entropy = entropy
        self._wound: dict[str, Instant] = {}
        self._lock = Lock()

    def written(self, space_id: str) -> None:
        """Facts of a space were written: see to it that they are looked at soon."""
        now = self._clock.now()
        if self._wound.get(space_id, 0) > now + _MARGIN_MS:
            return
        try:
            self._remember(space_id, self._wind(space_id, now))
        except StoreFault:
            return

    def _wind(self, space_id: str, now: Instant) -> Instant:
        """When the clock rings now. It is never later than soon."""
        seen = self._read(space_id)
        due, claimed = number_in(seen, "due"), bool(seen.get("claimed"))
        if not claimed and now + _MARGIN_MS < due <= now + SOON_MS:
            return due
        self._table.transact(self._moved(space_id, seen, now + SOON_MS, claimed=False))
        return now + SOON_MS

    def _remember(self, space_id: str, due: Instant) -> None:
        with self._lock:
            if len(self._wound) >= _KNOWN:
                self._wound.clear()
            self._wound[space_id] = due

    def sweep(self) -> list[str]:
        """Hint at every space whose clock has run out; for the tick. Clocks of spaces that are gone are removed."""
        found: list[str] = []
        with reading():
            for sk, _ in rows_between(self._table, DUE_PK, *fact_clock_rows(self._clock.now())):
                at, space_id = fact_clock_of(sk)
                if number_in(self._read(space_id), "due") != at:
                    self._table.transact([Delete(DUE_PK, sk)])
                    continue
                send_hint(self._queue, self._entropy, space_id, FACTS)
                found.append(space_id)
                if len(found) == _SWEPT:
                    break
        return found

    def due(self, space_id: str) -> Instant | None:
        """When a space's facts are looked at next; None if it never had any."""
        with reading():
            return number_in(self._read(space_id), "due") or None

    def claim(self, space_id: str) -> Claim | None:
        """Take a space's clock that has run out; None if it has not, or another run was first."""
        now = self._clock.now()
        with reading():
            seen = self._read(space_id)
            if not 0 < number_in(seen, "due") <= now:
                return None
            try:
                self._table.transact(self._moved(space_id, seen, now + CLAIM_MS, claimed=True))
            except Refused:
                return None
        return Claim(now + CLAIM_MS)

    def done(self, space_id: str, claim: Claim, due: Instant) -> None:
        """A run has ended: the clock is set for the next one, unless somebody wound it meanwhile.

        Args:
            space_id: the space.
            claim: the run's.
            due: when there is something to do again.
        """
        seen: Row = {"due": claim.at, "claimed": 1}
        with reading():
            try:
                self._table.transact(self._moved(space_id, seen, due, claimed=False))
            except Refused:
                return

    def _read(self, space_id: str) -> Row:
        return self._table.get(space_pk(space_id), fact_schedule_sk()) or {}

    def _moved(self, space_id: str, seen: Row, due: Instant, *, claimed: bool) -> list[Write]:
        """Both rows moved, if the schedule is as it was seen."""
        when = When(equals={"due": seen.get("due"), "claimed": seen.get("claimed")})
        assign: Row = {"due": due, "claimed": 1 if claimed else None}
        writes: list[Write] = [Update(space_pk(space_id), fact_schedule_sk(), assign=assign, when=when)]
        before = number_in(seen, "due")
        if before != due:
            writes.append(Put(DUE_PK, fact_clock_sk(due, space_id), {"space": space_id}))
            if before:
                writes.append(Delete(DUE_PK, fact_clock_sk(before, space_id)))
        return writes
