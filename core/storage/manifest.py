"""A manifest: the state of a space at one version, as a list of segments. The root of every cold read.

It says everything about the state that is small (protected state, counts, where the segments are) and nothing
about single elements, so it stays some kilobytes at a million of them. Segments do not overlap: each covers a
range of ids, in order, so an id is in at most one of them.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

import msgspec

from core.model.instants import Instant
from core.model.log import SpaceMeta
from core.state.view import Counts, TextStats
from core.storage.codec import Unreadable, pack, unpack
from core.storage.segment import SegmentRef


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The state after commit `ver`.

    seed: keys the fingerprints of this space's indexes; drawn at the first compaction and kept.
    analyzer: what turned texts into terms; segments of another one are rebuilt, never mixed.
    filter_key, filter_blocks: the woven key filters of the segments, in their order.
    """

    ver: int
    seq: int
    at: Instant
    meta: SpaceMeta
    seed: bytes
    analyzer: str
    segments: tuple[SegmentRef, ...]
    filter_key: str
    filter_blocks: int

    @property
    def counts(self) -> Counts:
        """Elements by kind."""
        return reduce(_add_counts, (ref.counts for ref in self.segments), Counts())

    @property
    def text(self) -> TextStats:
        """Size of the text index."""
        return TextStats(
            sum(ref.text.documents for ref in self.segments), sum(ref.text.terms for ref in self.segments)
        )

    def objects(self) -> list[str]:
        """Every object the manifest needs, itself left out."""
        return [ref.key for ref in self.segments] + [self.filter_key]


def _add_counts(left: Counts, right: Counts) -> Counts:
    return Counts(
        *(a + b for a, b in zip(msgspec.structs.astuple(left), msgspec.structs.astuple(right), strict=True))
    )


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Manifest)


def encode_manifest(manifest: Manifest) -> bytes:
    """The bytes of a manifest."""
    return pack(_encoder.encode(manifest))


def decode_manifest(data: bytes) -> Manifest:
    """What `encode_manifest` was given."""
    try:
        return _decoder.decode(unpack("manifest", data))
    except msgspec.DecodeError as fault:
        raise Unreadable("a manifest is damaged") from fault
