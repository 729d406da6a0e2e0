"""A segment's index: from a key or a word to the ordinals of the elements that have it.

A key is stood in for by a **fingerprint**, 64 bits of a keyed hash. The seed is drawn at random for each space
and never shown, so nobody can make two keys collide, and what an erased key said cannot be read from an index.
Fingerprints are spread evenly, so their top bits say in which bucket one lies: a lookup reads one bucket of
some kilobytes, whatever the size of the segment.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

import msgspec

from core.storage.blocks import bytes_to_ints, ints_to_bytes, pack_block, unpack_block

_PER_BUCKET: Final = 1024  # fingerprints, on average: about 16 KB
_BITS: Final = 64


def fingerprint(seed: bytes, index: str, text: str) -> int:
    """The 64 bits that stand for a key (index `k`) or a word (index `w`)."""
    data = (index + text).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8, key=seed).digest(), "little")


class Directory(msgspec.Struct, frozen=True, array_like=True):
    """Where an index's buckets lie: bucket `b` is at `offset + starts[b]`, up to the next one's start."""

    offset: int
    bits: int  # there are 2**bits buckets
    starts: tuple[int, ...]  # one more than there are buckets
    counted: bool  # whether every posting comes with a number (how often the word stands there)

    def bucket(self, found: int) -> tuple[int, int]:
        """The first byte and the length of the bucket that a fingerprint lies in."""
        index = found >> (_BITS - self.bits) if self.bits else 0
        return self.offset + self.starts[index], self.starts[index + 1] - self.starts[index]


class Bucket(msgspec.Struct, frozen=True):
    """One unpacked bucket: sorted fingerprints, where the postings of each end, and the postings."""

    prints: array[int]
    ends: array[int]
    ordinals: array[int]
    times: array[int]

    def span(self, found: int) -> tuple[int, int]:
        """First and end of a fingerprint's postings; equal if it is not here."""
        at = bisect_left(self.prints, found)
        if at == len(self.prints) or self.prints[at] != found:
            return 0, 0
        return (self.ends[at - 1] if at else 0), self.ends[at]


def unpack_bucket(data: bytes) -> tuple[Bucket, int]:
    """A bucket and about how many bytes it takes."""
    payload = memoryview(unpack_block(data))
    prints, postings, counted = bytes_to_ints("I", payload[:12])
    at = 12
    parts = []
    for code, count, width in (
        ("Q", prints, 8),
        ("I", prints, 4),
        ("H", postings, 2),
        ("I", postings * counted, 4),
    ):
        parts.append(bytes_to_ints(code, payload[at : at + count * width]))
        at += count * width
    return Bucket(*parts), len(payload)


def build_index(
    postings: Mapping[int, list[tuple[int, int]]], offset: int, *, counted: bool
) -> tuple[Directory, bytes]:
    """An index as bytes, to be written at `offset`, and its directory.

    Args:
        postings: fingerprint -> (ordinal, times) in order of the ordinals.
        offset: where in the object the bytes will stand.
        counted: whether the times are kept.
    """
    bits = max(0, (len(postings) // _PER_BUCKET).bit_length())
    groups: list[list[int]] = [[] for _ in range(1 << bits)]
    for found in sorted(postings):
        groups[found >> (_BITS - bits) if bits else 0].append(found)
    starts, parts = [0], []
    for group in groups:
        ends, total = [], 0
        for found in group:
            total += len(postings[found])
            ends.append(total)
        pairs = [pair for found in group for pair in postings[found]]
        payload = (
            ints_to_bytes("I", (len(group), total, int(counted)))
            + ints_to_bytes("Q", group)
            + ints_to_bytes("I", ends)
            + ints_to_bytes("H", (ordinal for ordinal, _ in pairs))
            + (ints_to_bytes("I", (times for _, times in pairs)) if counted else b"")
        )
        parts.append(pack_block(payload))
        starts.append(starts[-1] + len(parts[-1]))
    return Directory(offset, bits, tuple(starts), counted), b"".join(parts)
