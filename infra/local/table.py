"""`Table` in one SQLite file: the embedded store's rows.

What lives here: SQL and its faults. What must never live here: what a condition or a write means, which is
`core.storage.rows`. A transaction reads the rows it names under SQLite's write lock, lets `apply_writes`
decide, and writes the outcome; so it is serial among all threads and processes that have the file open.

Durability: write-ahead log with `synchronous=FULL`, one fsync for each commit. `NORMAL` would survive a
`kill -9` too, but not the loss of power, and an acknowledged commit must survive both.

Expiry: a row whose `ttl` (Unix seconds) is past is removed sooner or later, as DynamoDB does; readers that care
look at the time themselves.

Erasure: `secure_delete` overwrites what a transaction removed, and the log, which still holds older pages,
is folded into the file and truncated after a transaction that removed or replaced a row.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from core.model.instants import Instant
from core.ports import Clock, Delete, Put, Row, Unavailable, Update, Write
from core.storage.rows import apply_writes, check_key, check_writes
from infra.system import SystemClock

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS rows (
    pk TEXT NOT NULL, sk TEXT NOT NULL, body BLOB NOT NULL, ttl INTEGER, PRIMARY KEY (pk, sk)
) STRICT
"""
_INDEX: Final = "CREATE INDEX IF NOT EXISTS rows_by_ttl ON rows (ttl) WHERE ttl IS NOT NULL"
_EXPIRE: Final = (
    "DELETE FROM rows WHERE rowid IN (SELECT rowid FROM rows WHERE ttl <= ? ORDER BY ttl LIMIT ?)"
)
_EXPIRY_MS: Final = 60_000  # how often expired rows are looked for
_EXPIRY_ROWS: Final = 500  # removed at once, so that no commit waits long
_LOCK_WAIT_S: Final = 10.0  # a commit takes milliseconds; a lock held for longer is a stuck process
_ATTEMPTS: Final = 40  # two seconds in all


class SqliteTable:
    """Rows in the file `path`, which is made if absent, readable by its owner only.

    Safe for many threads and many processes at once. A connection serves one call at a time; idle ones are kept.

    Args:
        path: the file; SQLite keeps two more beside it.
        clock: tells which rows have expired; without one none do.
    """

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock
        self._next_expiry: Instant = 0
        self._idle: deque[sqlite3.Connection] = deque()
        self._log_holds_removed_rows = True  # a process that was killed may have left it so
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        with self._connection() as connection:
            _enter_wal(connection)
            connection.execute(_SCHEMA)
            connection.execute(_INDEX)

    def get(self, pk: str, sk: str) -> Row | None:
        """The row as it stands, or None."""
        check_key(pk, sk)
        with self._connection() as connection:
            return _read(connection, pk, sk)

    def query(
        self, pk: str, first: str, last: str, *, limit: int, reverse: bool = False
    ) -> list[tuple[str, Row]]:
        """Rows with `first <= sk <= last` in key order, at most `limit`."""
        if limit <= 0:
            return []
        order = "DESC" if reverse else "ASC"  # TEXT compares as UTF-8 bytes, which is DynamoDB's order
        statement = (
            f"SELECT sk, body FROM rows WHERE pk = ? AND sk BETWEEN ? AND ? ORDER BY sk {order} LIMIT ?"  # noqa: S608 - one of two words
        )
        with self._connection() as connection:
            found = connection.execute(statement, (pk, first, last, limit)).fetchall()
        return [(sk, _decode(body)) for sk, body in found]

    def transact(self, writes: Sequence[Write]) -> None:
        """Apply all the writes or none."""
        check_writes(writes)
        if not writes:
            return
        with self._connection() as connection:
            # IMMEDIATE takes the write lock before the reads: what the conditions saw is what is changed.
            connection.execute("BEGIN IMMEDIATE")
            try:
                rows = [_read(connection, write.pk, write.sk) for write in writes]
                for write, row in zip(writes, apply_writes(writes, rows), strict=True):
                    _write(connection, write, row)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            if any(_removes(write, row) for write, row in zip(writes, rows, strict=True)):
                self._log_holds_removed_rows = True
            self._expire(connection)
            if self._log_holds_removed_rows:
                self._log_holds_removed_rows = not _fold_log(connection)

    def close(self) -> None:
        """Close the idle connections; the last one of all folds the log into the file."""
        while self._idle:
            self._idle.pop().close()

    def _expire(self, connection: sqlite3.Connection) -> None:
        """Remove some rows that have expired, once a minute, behind a commit that has landed."""
        if self._clock is None or (now := self._clock.now()) < self._next_expiry:
            return
        self._next_expiry = now + _EXPIRY_MS
        with suppress(sqlite3.OperationalError):  # another process writes: the next time will do
            if connection.execute(_EXPIRE, (now // 1000, _EXPIRY_ROWS)).rowcount:
                self._log_holds_removed_rows = True

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """An idle connection or a new one, given back afterwards; SQLite's faults become `Unavailable`."""
        try:
            connection = self._take()
            try:
                yield connection
            finally:
                self._idle.append(connection)
        except sqlite3.OperationalError as error:
            # Locked for too long, disk full or an I/O error. After a failed COMMIT nobody knows the outcome.
            raise Unavailable(f"the embedded table did not answer: {error}") from error

    def _take(self) -> sqlite3.Connection:
        with suppress(IndexError):  # none is idle
            return self._idle.pop()
        connection = sqlite3.connect(
            self._path, timeout=_LOCK_WAIT_S, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
        return connection


def _enter_wal(connection: sqlite3.Connection) -> None:
    """Put the file into write-ahead mode, which it then keeps.

    Two processes that make the file at the same moment collide here, and SQLite does not wait in this one case.
    """
    for attempt in range(_ATTEMPTS, 0, -1):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if attempt == 1:
                raise
            SystemClock().sleep(0.05)
        else:
            return


def _read(connection: sqlite3.Connection, pk: str, sk: str) -> Row | None:
    found = connection.execute("SELECT body FROM rows WHERE pk = ? AND sk = ?", (pk, sk)).fetchone()
    return None if found is None else _decode(found[0])


def _decode(body: bytes) -> Row:
    # Untyped, because msgspec does not take a union of str and bytes; MessagePack itself tells them apart.
    row: Row = msgspec.msgpack.decode(body)
    return row


def _write(connection: sqlite3.Connection, write: Write, row: Row | None) -> None:
    match write:
        case Put() | Update():
            connection.execute(
                "INSERT INTO rows VALUES (?, ?, ?, ?) "
                "ON CONFLICT (pk, sk) DO UPDATE SET body = excluded.body, ttl = excluded.ttl",
                (write.pk, write.sk, msgspec.msgpack.encode(row), _ttl(row)),
            )
        case Delete():
            connection.execute("DELETE FROM rows WHERE pk = ? AND sk = ?", (write.pk, write.sk))


def _ttl(row: Row | None) -> int | None:
    value = None if row is None else row.get("ttl")
    return value if type(value) is int else None


def _removes(write: Write, row: Row | None) -> bool:
    """Whether a write took away bytes that may be someone's memory; an `Update` changes counters and states."""
    return row is not None and isinstance(write, Put | Delete)


def _fold_log(connection: sqlite3.Connection) -> bool:
    """Move the log into the file and truncate it; False if a reader holds it, so that a later commit tries again."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError:
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(_LOCK_WAIT_S * 1000)}")
    return not busy
