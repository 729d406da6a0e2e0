"""The reference store: `Table` and `Objects` in dicts, exact in meaning and in bounds.

For tests, for Pyodide, and as the measure for the other stores: where an adapter and this file differ, the
adapter is wrong. What writes and conditions mean is `core.storage.rows`; here is only where rows are kept.
Every call is atomic under one lock.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from threading import RLock

from core.model.instants import Instant
from core.ports import Clock, KeyExists, Range, Row, Write
from core.storage.rows import apply_writes, check_writes


class MemoryTable:
    """`core.ports.Table` in dicts."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._rows: dict[str, dict[str, Row]] = {}
        self._order: dict[str, list[str]] = {}  # pk -> its sort keys in order

    def get(self, pk: str, sk: str) -> Row | None:
        """The row as it stands, or None."""
        with self._lock:
            row = self._rows.get(pk, {}).get(sk)
            return None if row is None else dict(row)

    def query(
        self, pk: str, first: str, last: str, *, limit: int, reverse: bool = False
    ) -> list[tuple[str, Row]]:
        """Rows with `first <= sk <= last` in key order (descending if `reverse`), at most `limit`."""
        with self._lock:
            order = self._order.get(pk, [])
            low, high = bisect_left(order, first), bisect_right(order, last)
            keys = (
                order[max(low, high - limit) : high][::-1] if reverse else order[low : min(high, low + limit)]
            )
            return [(sk, dict(self._rows[pk][sk])) for sk in keys]

    def transact(self, writes: Sequence[Write]) -> None:
        """Apply all the writes or none."""
        check_writes(writes)
        with self._lock:
            standing = [self._rows.get(write.pk, {}).get(write.sk) for write in writes]
            after = apply_writes(writes, [None if row is None else dict(row) for row in standing])
            for write, row in zip(writes, after, strict=True):
                self._set(write.pk, write.sk, row)

    def _set(self, pk: str, sk: str, row: Row | None) -> None:
        rows, order = self._rows.setdefault(pk, {}), self._order.setdefault(pk, [])
        if row is None:
            if rows.pop(sk, None) is not None:
                del order[bisect_left(order, sk)]
            return
        if sk not in rows:
            insort(order, sk)
        rows[sk] = row


class MemoryObjects:
    """`core.ports.Objects` in a dict. The clock gives each object the time it was written."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = RLock()
        self._objects: dict[str, tuple[bytes, Instant]] = {}

    def put(self, key: str, body: bytes) -> None:
        """Write a new object."""
        if not key:
            raise ValueError("a key must not be empty")
        with self._lock:
            if key in self._objects:
                raise KeyExists(key)
            self._objects[key] = (bytes(body), self._clock.now())

    def get(self, key: str, first: int = 0, length: int | None = None) -> bytes | None:
        """The object's bytes from `first`, `length` of them or to the end; None if there is none."""
        with self._lock:
            found = self._objects.get(key)
        if found is None:
            return None
        return found[0][first:] if length is None else found[0][first : first + length]

    def get_many(self, ranges: Sequence[Range]) -> Sequence[bytes | None]:
        """Several pieces, one after the other."""
        return [self.get(*one) for one in ranges]

    def list(self, prefix: str) -> Iterator[tuple[str, Instant, int]]:
        """Every key below `prefix` in order, with the time it was written (ms) and its size."""
        with self._lock:
            found = sorted(
                (key, at, len(body)) for key, (body, at) in self._objects.items() if key.startswith(prefix)
            )
        return iter(found)

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; an absent key is no error."""
        with self._lock:
            for key in keys:
                self._objects.pop(key, None)
