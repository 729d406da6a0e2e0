"""Forks: a space as it stands, in memory, for work that must leave no trace.

What lives here: the copy, and a store whose reads fall through to the real objects and whose writes stay here. What must
never live here: what is done on a fork (`core.service.shadow`). What is copied is HEAD, the newest manifest and the commits after
it; segments are never changed, so they are read where they are. No lease, conversation, count or clock comes along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from core.errors import NoemaError
from core.model.instants import Instant
from core.ports import Clock, Objects, Put, Range, Row, Table
from core.storage.head import ROLES, head_of, until_attribute
from core.storage.layout import HEAD, delta_sk, maintenance_sk, manifest_sk, space_pk
from core.storage.memory import MemoryObjects, MemoryTable

MAX_COMMITS: Final = 20_000  # above the newest segment; a log that long wants folding first
_PAGE: Final = 100
_TRIES: Final = 5


class ForkObjects:
    """Objects over others: what is written or removed here is so only here. Implements `core.ports.Objects`."""

    def __init__(self, below: Objects, clock: Clock) -> None:
        self._below = below
        self._own = MemoryObjects(clock)

    def put(self, key: str, body: bytes) -> None:
        """Write a new object, here."""
        self._own.put(key, body)

    def get(self, key: str, first: int = 0, length: int | None = None) -> bytes | None:
        """An object's bytes, of here or from below."""
        found = self._own.get(key, first, length)
        return self._below.get(key, first, length) if found is None else found

    def get_many(self, ranges: Sequence[Range]) -> Sequence[bytes | None]:
        """Several pieces."""
        return [self.get(*one) for one in ranges]

    def list(self, prefix: str) -> Iterator[tuple[str, Instant, int]]:
        """What was written here."""
        return self._own.list(prefix)

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects of here; those below stay."""
        self._own.delete(keys)


class Silent:
    """A queue that drops every hint: a fork has no workers. Implements `core.ports.Queue`."""

    def send(self, group: str, body: str, *, dedupe: str) -> None:
        """Drop it."""


def fork_table(table: Table, space_id: str) -> MemoryTable:
    """The rows of a space that its state is read from, as they stand.

    Raises:
        NoemaError: `NotFoundOrNotVisible`, `ServiceUnavailable` where the space keeps moving or something is being erased,
            `ResourceExhausted` where more commits wait to be folded than a fork holds.
    """
    pk = space_pk(space_id)
    for _ in range(_TRIES):
        row = table.get(pk, HEAD)
        head = None if row is None else head_of(row)
        if row is None or head is None or head.state == "deleted":
            raise NoemaError("NotFoundOrNotVisible", f"there is no space {space_id}")
        first = max(head.base_ver + 1, head.born)
        wanted = head.ver - first + 1
        if head.state == "purging":
            break
        if wanted > MAX_COMMITS:
            raise NoemaError("ResourceExhausted", "the space has too many commits that wait to be folded")
        rows = _rows(table, pk, first, head.ver)
        base = _rows(table, pk, head.base_ver, head.base_ver, manifest_sk) if head.base_ver else []
        if len(rows) == wanted and len(base) == bool(head.base_ver):
            rows += base
            return _filled(
                pk, {**row, **{until_attribute(role): 0 for role in ROLES}}, rows, head.ver, head.seq
            )
    raise NoemaError("ServiceUnavailable", "the space kept moving while it was copied", retry_after_ms=1000)


def _rows(
    table: Table, pk: str, first: int, last: int, key: Callable[[int], str] = delta_sk
) -> list[tuple[str, Row]]:
    """The rows of these versions, as many as there are."""
    found: list[tuple[str, Row]] = []
    while first <= last:
        page = table.query(pk, key(first), key(last), limit=_PAGE)
        found += page
        if len(page) < _PAGE:
            break
        first += _PAGE
    return found


def _filled(pk: str, head: Row, rows: list[tuple[str, Row]], ver: int, seq: int) -> MemoryTable:
    """The copy. Corrections are looked for from here on, as nothing of the log before it came along."""
    own = MemoryTable()
    own.transact([
        Put(pk, HEAD, head), Put(pk, maintenance_sk(), {"scan_ver": ver, "scan_seq": seq}),
    ])  # fmt: skip
    for sk, row in rows:
        own.transact([Put(pk, sk, row)])
    return own
