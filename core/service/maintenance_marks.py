"""The maintenance row of a space: which run is to be made, how far each pass has come, and the space's clock.

What lives here: reading the row, and moving it together with the clock's row in `DUE`. What must never live here:
when the clock is set and for what (`core.service.maintenance`). The two rows change in one transaction, so the clock
row that the space's row names is there, and any other is a leftover that a tick may remove.
"""

from __future__ import annotations

from typing import Final

from core.model.instants import Instant
from core.ports import Delete, Put, Refused, Row, Table, Update, Value, When, Write
from core.service.faults import reading
from core.storage.layout import DUE_PK, clock_sk, maintenance_sk, space_pk

DAY_MS: Final = 24 * 3600 * 1000


class Marks:
    """Reads and moves maintenance rows. Safe to share between threads."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def read(self, space_id: str) -> Row:
        """The row as it stands; empty if maintenance has never had to do with the space."""
        with reading():
            return self.table.get(space_pk(space_id), maintenance_sk()) or {}

    def moved(self, space_id: str, seen: Row, due: Instant, assign: Row) -> list[Write]:
        """The row changed and the clock set to `due`, if the row still names the same run and clock as `seen`."""
        row = Update(
            space_pk(space_id),
            maintenance_sk(),
            assign={**assign, "due": due},
            when=When(equals={"run": seen.get("run"), "due": seen.get("due")}),
        )
        writes: list[Write] = [row]
        before = seen.get("due")
        if before != due:
            writes.append(Put(DUE_PK, clock_sk(due, space_id), {"space": space_id}))
            if isinstance(before, int):
                writes.append(Delete(DUE_PK, clock_sk(before, space_id)))
        return writes

    def wind(self, space_id: str, seen: Row, due: Instant, **assign: Value) -> None:
        """Set the clock outside a run; where the row has moved meanwhile, nothing is to be done."""
        with reading():
            try:
                self.table.transact(self.moved(space_id, seen, due, assign))
            except Refused:
                return
