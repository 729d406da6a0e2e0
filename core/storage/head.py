"""`Head`: where a space's log stands, as a value; and the row that says so.

The HEAD row is the one thing that every commit of a space changes, and what orders them. It stays below 1 KB,
because a table bills a change by the size of the whole row. Epochs make work that overslept fail: each role's
epoch moves when its lease is taken by another and when anything is erased.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from core.model.instants import Instant
from core.ports import Row

HeadState = Literal["active", "purging", "deleted"]
ROLES: Final = ("formation", "maintenance", "compaction", "learning")
MAX_HEAD_BYTES: Final = 1024
# An attribute: what was uploaded by then (ms) and is not referred to may have been collected.
SWEPT: Final = "swept"
# An attribute, 1 while a backup is being restored: only the restore sees the space.
RESTORING: Final = "restoring"
ENDS: Final = "ends"  # attribute, 1 while a whole space is being deleted: to readers it is gone already


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """One space's HEAD row as it was read.

    ver, seq, at: the last commit's log version, its KIP `space_seq` and its time (ms; never runs backwards).
    instance: which life of the space id this is. chain: the hash chain's last value.
    base_ver, base_key: the newest manifest; 0 and None before the first compaction.
    pgen: how often something was erased; what was loaded under another pgen must not be served.
    floor: the oldest version AS OF can answer. min_delta: the oldest version whose delta row exists.
    born: the version of this instance's first commit; greater than 1 where the id had an earlier life.
    log_n, log_bytes: commits and delta bytes since base, which decide when to compact.
    row: the whole row, for attributes that services keep there (`formed`, leases).
    """

    ver: int
    seq: int
    at: Instant
    instance: str
    state: HeadState
    pgen: int
    floor: int
    min_delta: int
    born: int
    chain: bytes
    base_ver: int = 0
    base_key: str | None = None
    log_n: int = 0
    log_bytes: int = 0
    row: Row = {}

    def number(self, name: str) -> int:
        """A numeric attribute of the row; 0 where it is missing."""
        value = self.row.get(name)
        return value if isinstance(value, int) else 0

    def epoch(self, role: str) -> int:
        """How often the role's lease changed hands, erasures included."""
        return self.number(epoch_attribute(role))

    def lease_until(self, role: str) -> Instant:
        """When the role's lease ends (ms); 0 if there is none."""
        return self.number(until_attribute(role))

    def lease_owner(self, role: str) -> str | None:
        """Who holds the role's lease, or None."""
        value = self.row.get(owner_attribute(role))
        return value if isinstance(value, str) else None


_FIELDS: Final = tuple(name for name in Head.__struct_fields__ if name != "row")


def epoch_attribute(role: str) -> str:
    """The attribute that holds a role's epoch."""
    return f"ep_{role}"


def owner_attribute(role: str) -> str:
    """The attribute that names who holds a role's lease."""
    return f"lo_{role}"


def until_attribute(role: str) -> str:
    """The attribute that says when a role's lease ends (ms)."""
    return f"lt_{role}"


def head_of(row: Row) -> Head:
    """The value of a HEAD row."""
    known = {name: row[name] for name in _FIELDS if name in row}
    return Head(**known, row=row)  # type: ignore[arg-type]  # only `row_of` and the commit loop write it


def row_of(head: Head) -> Row:
    """The HEAD row of a value; `row` supplies what the value does not name."""
    named = {name: getattr(head, name) for name in _FIELDS}
    return {name: value for name, value in {**head.row, **named}.items() if value is not None}
