"""Which segments may hold a key: one small read, however many segments there are.

A Bloom filter per segment, cut into blocks of 64 bytes, with all of a key's bits in one block; and the blocks of
all segments lie side by side in one object. So the question "which of sixty segments may have this key" reads
64 bytes per segment from one place. Where a filter has fewer blocks than the object (a power of two, like
every filter's), its blocks repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

BLOCK: Final = 64  # bytes
_KEYS_PER_BLOCK: Final = 64  # 8 bits a key at most: one false hit in about thirty
_HASHES: Final = 6
_MIX: Final = 0x9E3779B97F4A7C15
_WORD: Final = (1 << 64) - 1


def mask_of(found: int) -> int:
    """The bits of a fingerprint within its block."""
    mixed = (found * _MIX) & _WORD
    mask = 0
    for turn in range(_HASHES):
        mask |= 1 << ((mixed >> (10 + 9 * turn)) & 511)
    return mask


def build_filter(prints: Iterable[int], count: int) -> bytes:
    """One segment's filter over `count` fingerprints."""
    blocks = 1
    while blocks * _KEYS_PER_BLOCK < count:
        blocks *= 2
    sums = [0] * blocks
    for found in prints:
        sums[found & (blocks - 1)] |= mask_of(found)
    return b"".join(value.to_bytes(BLOCK, "little") for value in sums)


def weave(filters: Sequence[bytes]) -> tuple[int, bytes]:
    """The filters of all segments, in their order, as one object; and how many blocks each has in it."""
    blocks = max((len(one) // BLOCK for one in filters), default=1)
    parts = []
    for index in range(blocks):
        for one in filters:
            at = (index % (len(one) // BLOCK)) * BLOCK
            parts.append(one[at : at + BLOCK])
    return blocks, b"".join(parts)


def unweave(woven: bytes, segments: int, index: int, blocks: int) -> bytes:
    """One segment's filter of `blocks` blocks out of the woven ones of `segments` segments."""
    row = segments * BLOCK
    return b"".join(woven[at : at + BLOCK] for at in range(index * BLOCK, index * BLOCK + blocks * row, row))


def place(found: int, blocks: int, segments: int) -> tuple[int, int]:
    """First byte and length, in the woven object, of what tells where a fingerprint may be."""
    return (found & (blocks - 1)) * segments * BLOCK, segments * BLOCK


def candidates(row: bytes, found: int) -> list[int]:
    """The segments whose filters have all bits of a fingerprint, from the bytes at its `place`."""
    mask = mask_of(found)
    return [
        at // BLOCK
        for at in range(0, len(row), BLOCK)
        if int.from_bytes(row[at : at + BLOCK], "little") & mask == mask
    ]
