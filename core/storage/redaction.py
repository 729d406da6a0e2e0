"""Redaction: what remains of commits and elements when some elements must leave no bytes behind. Pure.

Two ways to go. An element that KIP PURGE has turned into a **stub** keeps the stub, everywhere and at every point
of history: who reads the past finds "purged", not what was there. Any other element is **removed**, and where
something else refers to it, its id is overwritten with the id of nothing, which has the same length, so that
everything around it stays as it was. Doing it twice changes nothing more.
"""

from __future__ import annotations

import msgspec

from core.model.elements import AnyElement
from core.model.ids import BODY_DIGITS
from core.model.log import Delta
from core.storage.codec import encode_delta, unpack
from core.storage.segment import decode_element, encode_element


class Erased(msgspec.Struct, frozen=True):
    """What is to be erased: ids to remove, and the stubs of those that keep one."""

    removed: tuple[str, ...] = ()
    stubs: dict[str, AnyElement] = {}

    def touches(self, data: bytes | memoryview) -> bool:
        """Whether bytes mention any of the ids; a cheap look before anything is decoded."""
        plain = bytes(data)
        return any(found.encode() in plain for found in (*self.removed, *self.stubs))


def nothing_id(element_id: str) -> str:
    """The id of no element, of the same kind: what a reference to a removed element becomes."""
    return element_id[:2] + "0" * BODY_DIGITS


def redact_element(element: AnyElement, erased: Erased) -> AnyElement | None:
    """The element as it may stay; None if it may not."""
    if element.id in erased.removed:
        return None
    stub = erased.stubs.get(element.id)
    if stub is not None:
        return stub
    record = encode_element(element)
    scrubbed = _scrub(record, erased)
    return element if scrubbed == record else decode_element(scrubbed)


def redact_delta(delta: Delta, erased: Erased) -> Delta:
    """The commit as it may stay; equal to what was given if nothing in it is to be erased."""
    puts = tuple(now for element in delta.puts if (now := redact_element(element, erased)) is not None)
    gone = tuple(found for found in delta.gone if found not in erased.removed)
    kept = msgspec.structs.replace(delta, puts=puts, gone=gone)
    payload = unpack("delta", encode_delta(kept))
    if not any(found.encode() in payload for found in erased.removed):
        return kept
    record = msgspec.msgpack.decode(_scrub(msgspec.msgpack.encode(kept.record), erased))
    return msgspec.structs.replace(kept, record=record)


def _scrub(data: bytes, erased: Erased) -> bytes:
    for found in erased.removed:
        data = data.replace(found.encode(), nothing_id(found).encode())
    return data
