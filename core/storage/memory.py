"""The reference store: `Table` and `Objects` in dicts, exact in meaning and in bounds.

For tests, for Pyodide, and as the measure for the other stores: where an adapter and this file differ, the
adapter is wrong. Every call is atomic under one lock.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from threading import RLock

from core.model.instants import Instant
from core.ports import (
    MAX_ROW_BYTES,
    MAX_TRANSACTION_BYTES,
    MAX_WRITES,
    Check,
    Clock,
    Delete,
    KeyExists,
    Put,
    Refused,
    Row,
    TooLarge,
    Update,
    Value,
    When,
    Write,
)


def holds(when: When | None, row: Row | None) -> bool:
    """Whether a condition holds for a row as it stands (None: there is none)."""
    if when is None:
        return True
    if (when.absent and row is not None) or (when.present and row is None):
        return False
    standing = row or {}
    if any(not _same(standing.get(name), value) for name, value in when.equals.items()):
        return False
    return all(_less(standing.get(name), bound) for name, bound in when.below.items())


def _same(left: Value, right: Value) -> bool:
    """Equal in value and in type: a table tells `True` from 1."""
    return type(left) is type(right) and left == right


def _less(value: Value, bound: int) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value < bound)


def row_bytes(pk: str, sk: str, row: Row) -> int:
    """The size of a row as bounds count it: names and values, keys included."""
    size = len(pk.encode("utf-8", "surrogatepass")) + len(sk.encode("utf-8", "surrogatepass"))
    for name, value in row.items():
        size += len(name) + 3
        if isinstance(value, str):
            size += len(value.encode("utf-8", "surrogatepass"))
        elif isinstance(value, bytes):
            size += len(value)
        elif isinstance(value, bool) or value is None:
            size += 1
        else:
            size += len(str(value)) // 2 + 2
    return size


def after_write(write: Write, row: Row | None) -> Row | None:
    """The row as a write leaves it; None if it removes it."""
    if isinstance(write, Delete):
        return None
    if isinstance(write, Check):
        return row
    if isinstance(write, Put):
        return {name: value for name, value in write.row.items() if value is not None}
    changed = dict(row or {})
    for name, amount in write.add.items():
        before = changed.get(name, 0)
        if not isinstance(before, int) or isinstance(before, bool):
            raise TypeError(f"attribute {name} is not a number")
        changed[name] = before + amount
    for name, value in write.assign.items():
        if value is None:
            changed.pop(name, None)
        else:
            changed[name] = value
    return changed


def check_writes(writes: Sequence[Write]) -> None:
    """Raise `TooLarge` or `ValueError` if these writes cannot be one transaction, whatever the rows are."""
    if len(writes) > MAX_WRITES:
        raise TooLarge(f"{len(writes)} writes are more than the {MAX_WRITES} of one transaction")
    if len({(write.pk, write.sk) for write in writes}) != len(writes):
        raise ValueError("at most one write of a transaction may touch a row")
    for write in writes:
        if not write.pk or not write.sk:
            raise ValueError("a key must not be empty")
        if isinstance(write, Update) and write.assign.keys() & write.add.keys():
            raise ValueError("an attribute is either assigned or added to")


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
            keys = order[max(low, high - limit) : high][::-1] if reverse else order[low : min(high, low + limit)]
            return [(sk, dict(self._rows[pk][sk])) for sk in keys]

    def transact(self, writes: Sequence[Write]) -> None:
        """Apply all the writes or none."""
        check_writes(writes)
        with self._lock:
            standing = [self._rows.get(write.pk, {}).get(write.sk) for write in writes]
            failed = {
                index: None if row is None else dict(row)
                for index, (write, row) in enumerate(zip(writes, standing, strict=True))
                if not holds(write.when, row)
            }
            if failed:
                raise Refused(failed)
            after = [after_write(write, row) for write, row in zip(writes, standing, strict=True)]
            self._check_sizes(writes, after)
            for write, row in zip(writes, after, strict=True):
                self._set(write.pk, write.sk, row)

    def _check_sizes(self, writes: Sequence[Write], after: Sequence[Row | None]) -> None:
        sizes = [row_bytes(w.pk, w.sk, row) for w, row in zip(writes, after, strict=True) if row is not None]
        if any(size > MAX_ROW_BYTES for size in sizes):
            raise TooLarge(f"a row is over {MAX_ROW_BYTES} bytes")
        if sum(sizes) > MAX_TRANSACTION_BYTES:
            raise TooLarge(f"a transaction is over {MAX_TRANSACTION_BYTES} bytes")

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
