"""The scan that proves an erasure: every row and every object of a space, unpacked, searched for the bytes.

It does not trust the steps before it: it reads what the store holds, whatever it is, and looks into everything
that any code of ours may have compressed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from core.ports import Value
from core.service.erasure_steps import Job
from core.service.rows import rows_between
from core.service.spaces import Spaces
from core.storage.codec import RAW, ZLIB, ZSTD, Unreadable, expand
from core.storage.layout import ALL_ROWS, HEAD, space_prefix
from core.storage.segment import plain_bytes


class Scan(msgspec.Struct):
    """What a scan read, and where it found what should be gone: row keys and object keys."""

    rows: int = 0
    objects: int = 0
    size: int = 0
    found: list[str] = []


def scan_space(spaces: Spaces, job: Job, *, nothing_may_stay: bool = False) -> Scan:
    """Search everything a space has left, the job's own row excepted: it is replaced by the receipt.

    With `nothing_may_stay`, every row but HEAD and every object is a find.
    """
    scan = Scan()
    words = [found.encode() for found in job.order.erased.removed] + list(job.order.needles)
    for sk, row in rows_between(spaces.table, job.pk, *ALL_ROWS):
        if sk != job.sk:
            _look(scan, sk, [sk, *row.values()], words)
            scan.rows += 1
            if nothing_may_stay and sk != HEAD:
                scan.found.append(sk)
    for key, _, _ in spaces.objects.list(space_prefix(job.space_id)):
        body = spaces.objects.get(key)
        if body is not None:
            _look(scan, key, [key, body], words)
            scan.objects += 1
            if nothing_may_stay:
                scan.found.append(key)
    return scan


def _look(scan: Scan, place: str, values: Sequence[Value], words: Sequence[bytes]) -> None:
    hit = False
    for value in values:
        for plain in _plain(value):
            scan.size += len(plain)
            hit = hit or any(word in plain for word in words)
    if hit:
        scan.found.append(place)


def _plain(value: Value) -> Iterator[bytes]:
    """A value's bytes, as stored and as unpacked."""
    if isinstance(value, str):
        yield value.encode("utf-8", "surrogatepass")
    if not isinstance(value, bytes):
        return
    yield value
    try:
        yield from plain_bytes(value)
    except Unreadable:
        if len(value) > 2 and value[1] in (RAW, ZLIB, ZSTD):  # perhaps a packed value
            try:
                yield expand(value[1], value[2:])
            except Unreadable:
                return
