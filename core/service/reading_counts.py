"""What is counted of reading, recalls and probes, in one row beside the log. Tokens are the ledger's.

What lives here: adding to the row, and reading it. What must never live here: anything about what was read. The counts
are observations: at worst a few are lost, and none can change a memory. The row's key names the life of the space, so
that a later space of the same id begins at nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from core.ports import StoreFault, Table, Update
from core.service.faults import reading
from core.storage.layout import reading_sk, space_pk

_MILLIONTHS = 1_000_000


class ReadingCounts(msgspec.Struct, frozen=True):
    """The counts, since the space began.

    recalls: those that ended well. reports: how many said how unsure they were; unsure: their sum in millionths.
    hits, misses: probes that searched; cached: probes that a kept miss answered. updated: when (ms) last.
    """

    recalls: int = 0
    failed: int = 0
    entities: int = 0
    reports: int = 0
    unsure: int = 0
    hits: int = 0
    misses: int = 0
    cached: int = 0
    updated: int = 0

    @property
    def uncertainty(self) -> float:
        """The sum of all uncertainties reported."""
        return self.unsure / _MILLIONTHS


def millionths(uncertainty: float) -> int:
    """A share as it is counted."""
    return round(uncertainty * _MILLIONTHS)


def count(table: Table, space_id: str, instance: str, at: int, counts: Mapping[str, int]) -> bool:
    """Add to the counts; False if the store did not take it, which is no error of what was counted."""
    write = Update(
        space_pk(space_id),
        reading_sk(instance),
        assign={"updated": at},
        add={name: number for name, number in counts.items() if number},
    )
    try:
        table.transact([write])
    except StoreFault:
        return False
    return True


def counts_of(table: Table, space_id: str, instance: str) -> ReadingCounts:
    """The counts as they stand.

    Raises:
        NoemaError: ServiceUnavailable.
    """
    with reading():
        row = table.get(space_pk(space_id), reading_sk(instance)) or {}
    known = {name: row[name] for name in ReadingCounts.__struct_fields__ if name in row}
    return msgspec.convert(known, ReadingCounts)
