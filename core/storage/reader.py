"""Reading the log: rows page by page, bodies from the row or from their object, never across a gap."""

from __future__ import annotations

from collections.abc import Iterator

from core.model.log import Delta
from core.ports import Objects, Table
from core.storage.codec import decode_delta
from core.storage.layout import delta_sk, delta_version, space_pk
from core.storage.log import LogRow, entry_of

PAGE = 200  # rows of one query


class Moved(Exception):  # noqa: N818 - not an error: the reader looks again
    """What was to be read is not there any more, because upkeep or an erasure replaced it meanwhile."""


class LogReader:
    """The log of one space as it stands in the store."""

    def __init__(self, table: Table, objects: Objects, space_id: str) -> None:
        self._table = table
        self._objects = objects
        self._pk = space_pk(space_id)

    def entry(self, ver: int) -> LogRow | None:
        """One commit's row, or None."""
        row = self._table.get(self._pk, delta_sk(ver))
        return None if row is None else entry_of(ver, row)

    def entries(self, first: int, last: int) -> Iterator[LogRow]:
        """The rows of the versions from `first` to `last`, each exactly once, in order.

        Raises:
            Moved: one of them is missing.
        """
        wanted = first
        while wanted <= last:
            size = min(PAGE, last - wanted + 1)
            page = self._table.query(self._pk, delta_sk(wanted), delta_sk(last), limit=size)
            for sk, row in page:
                if delta_version(sk) != wanted:
                    raise Moved(f"version {wanted} is missing")
                yield entry_of(wanted, row)
                wanted += 1
            if len(page) < size:
                break
        if wanted <= last:
            raise Moved(f"version {wanted} is missing")

    def body(self, entry: LogRow) -> bytes:
        """The stored bytes of a commit.

        Raises:
            Moved: the object is gone; an erasure has moved what was left of it into the row.
        """
        if entry.body is not None:
            return entry.body
        body = None if entry.key is None else self._objects.get(entry.key)
        if body is None:
            raise Moved(f"the body of version {entry.ver} is missing")
        return body

    def deltas(self, first: int, last: int) -> Iterator[Delta]:
        """The commits from `first` to `last`, decoded.

        Raises:
            Moved: one of them is missing.
        """
        for entry in self.entries(first, last):
            yield decode_delta(self.body(entry))
