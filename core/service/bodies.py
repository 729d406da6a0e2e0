"""Bodies: what of a conversation is too large for its row, and what becomes of one whose row never came.

A submission uploads the body and then writes the row. If it dies between the two, the object is left and nothing
refers to it. Collecting such objects goes as the log's garbage does (`core.service.upkeep`): objects are listed
**first**, then the collection's counter row is told up to when bodies may go, and only then rows are read. Every
submission writes the counter, on condition that its upload is younger than that; so one that slept meanwhile is
refused, and uploads again.

A body's key holds the least id that its row can have, so a row is found without reading the others. And what an
earlier run has looked at (`checked`) is not looked at again.
"""

from __future__ import annotations

from typing import Final

from core.model.instants import Instant
from core.ports import Update, When
from core.service.faults import reading, settled
from core.service.rows import number_in, rows_between
from core.service.spaces import Spaces
from core.service.upkeep import BATCH, GARBAGE_AGE, HOUR, STORE_CLOCK_MS
from core.storage.head import SWEPT
from core.storage.layout import (
    body_place,
    body_prefix,
    conversation_sk,
    counter_sk,
    space_pk,
)

CHECKED: Final = "checked"  # attribute of the counter row: bodies uploaded by then (ms) have been looked at
_PAGE: Final = 10  # rows: the one that refers to a body is nearly always the first


def collect_bodies(spaces: Spaces, space_id: str, *, age_ms: int = GARBAGE_AGE) -> tuple[str, ...]:
    """Remove bodies of a space that no conversation refers to and that are older than `age_ms`; their keys.

    Raises:
        NoemaError: the store failed, or there is no such space; a later run starts over.
    """
    with reading():
        head, limit = spaces.read_head(space_id), spaces.clock.now() - age_ms
        if head.state != "active":
            return ()
        listed: dict[str, list[tuple[str, int, Instant]]] = {}
        for key, at, _ in spaces.objects.list(body_prefix(space_id)):
            place = body_place(space_id, key)
            if place is not None and at <= limit:
                listed.setdefault(place[0], []).append((key, place[1], at))
        gone: list[str] = []
        for collection, bodies in listed.items():
            counter = spaces.table.get(space_pk(space_id), counter_sk(collection))
            if counter is None or counter.get("instance") != head.instance:
                continue  # nothing to announce a sweep on: the first submission may be on its way
            seen = number_in(counter, CHECKED)
            fresh = [body for body in bodies if body[2] > seen]
            if not fresh:
                continue
            _announce(spaces, space_id, collection, SWEPT, limit + min(age_ms, STORE_CLOCK_MS))
            found = [
                body[0] for body in fresh if not _has_row(spaces, space_id, collection, body, age_ms=age_ms)
            ]
            for start in range(0, len(found), BATCH):
                spaces.objects.delete(found[start : start + BATCH])
            _announce(spaces, space_id, collection, CHECKED, limit)
            gone += found
    return tuple(gone)


def _has_row(
    spaces: Spaces, space_id: str, collection: str, body: tuple[str, int, Instant], *, age_ms: int
) -> bool:
    """Whether a conversation refers to a body: one from its least id on, made before the upload became too old."""
    key, least, at = body
    until = at + age_ms
    pk = space_pk(space_id)
    first, last = conversation_sk(collection, least), conversation_sk(collection, 10**16 - 1)
    for _, row in rows_between(spaces.table, pk, first, last, page=_PAGE):
        if row.get("body_key") == key:
            return True
        if number_in(row, "created") > until + HOUR:
            return False
    return False


def _announce(spaces: Spaces, space_id: str, collection: str, name: str, until: Instant) -> None:
    """Set a mark of a collection's counter row; it never goes back."""
    pk, sk = space_pk(space_id), counter_sk(collection)
    move = Update(pk, sk, assign={name: until}, when=When(present=True, below={name: until}))
    settled(spaces.table, [move], lambda: number_in(spaces.table.get(pk, sk) or {}, name) >= until)
