"""Rows as a table gives them: a range of them page by page, and a number in one.

What lives here: the one way to read a range to its end. What must never live here: what a row means. A store that
does not answer is the caller's to tell (`core.service.faults.reading`).
"""

from __future__ import annotations

from collections.abc import Iterator

from core.ports import Row, Table
from core.storage.layout import following

PAGE = 100


def rows_between(
    table: Table, pk: str, first: str, last: str, *, page: int = PAGE
) -> Iterator[tuple[str, Row]]:
    """The rows of a partition from `first` to `last`, in order, a page at a time as they are wanted.

    What is written meanwhile may be seen or not; a row that was seen may be removed.

    Raises:
        Unavailable: the store gave no answer.
    """
    while True:
        found = table.query(pk, first, last, limit=page)
        yield from found
        if len(found) < page:
            return
        first = following(found[-1][0])


def number_in(row: Row, name: str) -> int:
    """A numeric attribute; 0 where there is none."""
    value = row.get(name)
    return value if isinstance(value, int) else 0
