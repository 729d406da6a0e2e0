"""Pieces of objects: integers as bytes, byte ranges read on demand, and the cache of what was read.

Everything a segment holds is read in pieces of some tens of kilobytes, each compressed by itself, so that a
lookup costs what it returns and not what the space holds. What was read and unpacked stays in a cache that is
bounded in bytes and shared by all open spaces.
"""

from __future__ import annotations

import sys
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.ports import Objects, Unavailable
from core.storage.codec import compress, expand

BLOCK_BYTES: Final = 64 * 1024  # of records, before compression: one range read of an object
_SWAP: Final = sys.byteorder == "big"  # integers are stored little-endian


def ints_to_bytes(code: str, values: Iterable[int]) -> bytes:
    """Integers of an `array` type code (H, I or Q: 2, 4 or 8 bytes) as little-endian bytes."""
    out = array(code, values)
    if _SWAP:
        out.byteswap()
    return out.tobytes()


def bytes_to_ints(code: str, data: bytes | memoryview) -> array[int]:
    """What `ints_to_bytes` was given."""
    out = array(code)
    out.frombytes(data)
    if _SWAP:
        out.byteswap()
    return out


def pack_block(payload: bytes) -> bytes:
    """A piece with its compression tag before it."""
    tag, body = compress(payload)
    return bytes((tag,)) + body


def unpack_block(data: bytes) -> bytes:
    """What `pack_block` was given."""
    return expand(data[0], data[1:])


class Cache:
    """Unpacked pieces by (object key, offset) and decoded elements by (object key, id).

    The least recently used is given up first.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: OrderedDict[tuple[str, int | str], tuple[Any, int]] = (
            OrderedDict()
        )  # Any: pieces of many types
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: tuple[str, int | str]) -> Any | None:
        """The piece, if it is held."""
        with self._lock:
            found = self._held.get(key)
            if found is None:
                return None
            self._held.move_to_end(key)
            return found[0]

    def put(self, key: tuple[str, int | str], value: Any, cost: int) -> None:
        """Hold a piece that takes `cost` bytes."""
        with self._lock:
            before = self._held.pop(key, None)
            self._bytes += cost - (0 if before is None else before[1])
            self._held[key] = (value, cost)
            while self._bytes > self._limit and len(self._held) > 1:
                _, (_, freed) = self._held.popitem(last=False)
                self._bytes -= freed

    def drop(self, prefix: str) -> None:
        """Give up every piece of the objects whose keys begin with `prefix`."""
        with self._lock:
            for key in [key for key in self._held if key[0].startswith(prefix)]:
                self._bytes -= self._held.pop(key)[1]

    @property
    def bytes_held(self) -> int:
        """How much is held."""
        return self._bytes


class Want[T](msgspec.Struct, frozen=True):
    """A piece of an object: where it is, and what makes a value of its bytes, with about how many bytes it takes."""

    key: str
    first: int
    length: int
    unpack: Callable[[bytes], tuple[T, int]]


class Pieces:
    """Reads pieces of immutable objects through the cache."""

    def __init__(self, objects: Objects, cache: Cache) -> None:
        self._objects = objects
        self._cache = cache
        self.held = cache.get
        self.hold = cache.put

    def forget(self, prefix: str) -> None:
        """Give up what is held of the objects whose keys begin with `prefix`."""
        self._cache.drop(prefix)

    def piece[T](self, want: Want[T]) -> T:
        """One piece of an object, unpacked.

        Raises:
            NoemaError: `ServiceUnavailable` if the store does not answer, or the object is gone because an
                erasure replaced it: the state that names it must be loaded again.
        """
        held: T | None = self._cache.get((want.key, want.first))
        if held is not None:
            return held
        with _told():
            data = self._objects.get(want.key, want.first, want.length)
        return self._keep(want, data)

    def load(self, wants: Sequence[Want[Any]]) -> None:  # Any: pieces of many types
        """Read together what will be asked for, so that many pieces take the time of one.

        Raises:
            NoemaError: as `piece`.
        """
        missing = [want for want in wants if self._cache.get((want.key, want.first)) is None]
        if len(missing) < 2:  # `piece` will read it
            return
        with _told():
            bodies = self._objects.get_many([(want.key, want.first, want.length) for want in missing])
        for want, data in zip(missing, bodies, strict=True):
            self._keep(want, data)

    def _keep[T](self, want: Want[T], data: bytes | None) -> T:
        if data is None or len(data) != want.length:
            raise NoemaError("ServiceUnavailable", "the space was rewritten meanwhile", retry_after_ms=0)
        value, cost = want.unpack(data)
        self._cache.put((want.key, want.first), value, cost)
        return value


@contextmanager
def _told() -> Iterator[None]:
    """Around reads that a query makes in passing: it knows no faults of a store."""
    try:
        yield
    except Unavailable as fault:
        raise NoemaError(
            "ServiceUnavailable", "the store did not answer in time", retry_after_ms=1000
        ) from fault
