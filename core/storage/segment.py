"""A segment: some thousand elements, neighbours by creation, immutable, readable piece by piece.

    records   blocks of ~64 KB: offset table, then one record per element     read when an element is touched
    keys      buckets: fingerprint of an index key -> ordinals                 read when the key is asked for
    words     buckets: fingerprint of a term -> (ordinal, how often)           read when the term is asked for
    lengths   terms per text, one number per element                           read by the first ranked search
    ids       fixed width, in order of creation: the ordinal is the place      read on the first touch, ...
    footer    where all of that is, and the sha256 of what is before the ids   ... in the same range as the ids
    tail      how long ids and footer are, for whoever has the object and no manifest

What lives here: the bytes and their meaning. What must never live here: which segments a space has
(`core.storage.manifest`) and lookups over many of them (`core.storage.segments`).
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from core.model.elements import KIND_OF_TYPE, AnyElement
from core.model.ids import sort_key
from core.search.text import searchable, terms
from core.state.indexes import entries
from core.state.view import Counts, TextStats
from core.storage.blocks import (
    BLOCK_BYTES,
    Pieces,
    Want,
    bytes_to_ints,
    ints_to_bytes,
    pack_block,
    unpack_block,
)
from core.storage.codec import Unreadable
from core.storage.keyfilter import BLOCK, build_filter
from core.storage.postings import Bucket, Directory, build_index, fingerprint, unpack_bucket

MAGIC: Final = b"NSEG\x01"
MAX_ELEMENTS: Final = 16_384  # of one segment; ordinals take two bytes
MAX_RECORD_BYTES: Final = 32 * 1024 * 1024  # of one segment, so that large elements make smaller ones
_TAIL: Final = 4  # bytes
ID_WIDTH: Final = 17  # the 16 characters that sort, then the letter of the kind

_encoder: Final = msgspec.msgpack.Encoder()
_element: Final = msgspec.msgpack.Decoder(AnyElement)


class SegmentRef(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """What a manifest knows of a segment: enough to pass it over without reading it.

    first, last: the range of its ids (`sort_key`). index: first byte and length of its ids and footer.
    filter_blocks: size of its key filter. records: bytes of its records before compression.
    """

    key: str
    digest: str
    size: int
    count: int
    first: str
    last: str
    index: tuple[int, int]
    filter_blocks: int
    records: int
    counts: Counts
    text: TextStats


class Footer(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """Where a segment's pieces are. `blocks`: (first ordinal, offset) of each, and a last one for the end."""

    count: int
    blocks: tuple[tuple[int, int], ...]
    keys: Directory
    words: Directory
    lengths: tuple[int, int]
    sha256: bytes


_footer: Final = msgspec.msgpack.Decoder(Footer)


class Built(msgspec.Struct, frozen=True):
    """A segment as made: its bytes, its key filter, and its reference but for the key it is stored under."""

    body: bytes
    key_filter: bytes
    ref: SegmentRef


def encode_element(element: AnyElement) -> bytes:
    """An element's record."""
    return _encoder.encode(element)


def decode_element(record: bytes | memoryview) -> AnyElement:
    """What `encode_element` was given."""
    return _element.decode(record)


def id_column(element_id: str) -> bytes:
    """An id as the column has it."""
    return (element_id[2:] + element_id[0]).encode("ascii")


class _Inverted:
    """What elements are found by, turned around: fingerprint -> (ordinal, times)."""

    def __init__(self, elements: Sequence[AnyElement], seed: bytes) -> None:
        self.keys: dict[int, list[tuple[int, int]]] = {}
        self.words: dict[int, list[tuple[int, int]]] = {}
        self.lengths = array("I")
        tally: dict[str, int] = {}
        for ordinal, element in enumerate(elements):
            kind = KIND_OF_TYPE[type(element)]
            tally[kind] = tally.get(kind, 0) + 1
            for key in entries(element, kind):
                self.keys.setdefault(fingerprint(seed, "k", key), []).append((ordinal, 0))
            counted = terms(searchable(element))
            for term, times in counted.items():
                self.words.setdefault(fingerprint(seed, "w", term), []).append((ordinal, times))
            self.lengths.append(counted.total())
        self.counts = Counts(**tally)
        self.text = TextStats(sum(1 for length in self.lengths if length), sum(self.lengths))


def build_segment(elements: Sequence[AnyElement], seed: bytes) -> Built:
    """The segment of some elements, which are in order of creation; the same elements give the same bytes."""
    blocks, body = _records([encode_element(element) for element in elements])
    inverted = _Inverted(elements, seed)
    keys, key_bytes = build_index(inverted.keys, len(body), counted=False)
    words, word_bytes = build_index(inverted.words, len(body) + len(key_bytes), counted=True)
    body += key_bytes + word_bytes
    lengths = pack_block(ints_to_bytes("I", inverted.lengths))
    ids = pack_block(b"".join(id_column(element.id) for element in elements))
    footer = Footer(
        count=len(elements),
        blocks=tuple((first, offset) for first, offset, _ in blocks),
        keys=keys,
        words=words,
        lengths=(len(body), len(lengths)),
        sha256=hashlib.sha256(body + lengths).digest(),
    )
    body += lengths
    index = ints_to_bytes("I", (len(ids),)) + ids + _encoder.encode(footer)
    prints = [*inverted.keys, *inverted.words]
    key_filter = build_filter(prints, len(prints))
    ref = SegmentRef(
        key="",
        digest=hashlib.sha256(body + index).hexdigest(),
        size=len(body) + len(index) + _TAIL,
        count=len(elements),
        first=sort_key(elements[0].id),
        last=sort_key(elements[-1].id),
        index=(len(body), len(index)),
        filter_blocks=len(key_filter) // BLOCK,
        records=blocks[-1][2],
        counts=inverted.counts,
        text=inverted.text,
    )
    return Built(body + index + ints_to_bytes("I", (len(index),)), key_filter, ref)


def _records(records: Sequence[bytes]) -> tuple[list[tuple[int, int, int]], bytes]:
    """Records as packed blocks: (first ordinal, offset, record bytes before it) of each and of the end."""
    out, blocks, first, before = bytearray(MAGIC), [], 0, 0
    pending: list[bytes] = []
    size = 0
    for ordinal, record in enumerate(records):
        pending.append(record)
        size += len(record)
        if size >= BLOCK_BYTES or ordinal == len(records) - 1:
            blocks.append((first, len(out), before))
            ends, total = [], 0
            for one in pending:
                total += len(one)
                ends.append(total)
            table = ints_to_bytes("I", (len(pending), *ends))
            out += pack_block(table + b"".join(pending))
            first, before, pending, size = ordinal + 1, before + size, [], 0
    blocks.append((len(records), len(out), before))
    return blocks, bytes(out)


class _Block(msgspec.Struct, frozen=True):
    """An unpacked block of records: where each ends, and their bytes."""

    ends: array[int]
    records: memoryview

    def record(self, place: int) -> memoryview:
        """The record at a place in the block."""
        return self.records[self.ends[place - 1] if place else 0 : self.ends[place]]


def _unpack_records(data: bytes) -> tuple[_Block, int]:
    payload = memoryview(unpack_block(data))
    count = bytes_to_ints("I", payload[:4])[0]
    split = 4 + 4 * count
    return _Block(bytes_to_ints("I", payload[4:split]), payload[split:]), len(payload)


class _Index(msgspec.Struct, frozen=True):
    """A segment's footer and id column, unpacked."""

    footer: Footer
    ids: bytes


def _unpack_index(data: bytes) -> tuple[_Index, int]:
    length = bytes_to_ints("I", data[:4])[0]
    ids = unpack_block(data[4 : 4 + length])
    return _Index(_footer.decode(data[4 + length :]), ids), len(ids) + 2 * len(data)


def _unpack_lengths(data: bytes) -> tuple[array[int], int]:
    lengths = bytes_to_ints("I", unpack_block(data))
    return lengths, 4 * len(lengths)


_DECODED: Final = 8  # a decoded element takes about this many times the bytes of its record


class Segment:
    """A stored segment, read through `Pieces`. Cheap to make; nothing is read until it is asked for."""

    __slots__ = ("_pieces", "ref")

    def __init__(self, ref: SegmentRef, pieces: Pieces) -> None:
        self.ref = ref
        self._pieces = pieces

    def get(self, element_id: str) -> AnyElement | None:
        """The element of an id, or None."""
        place = self.ref.key, element_id
        held: AnyElement | None = self._pieces.held(place)
        if held is not None:  # finding and decoding it takes ten times as long
            return held
        ordinal = self.ordinal(element_id)
        if ordinal is None:
            return None
        record = self._record(ordinal)
        element = decode_element(record)
        self._pieces.hold(place, element, _DECODED * len(record))
        return element

    def ordinal(self, element_id: str) -> int | None:
        """Where an id stands, or None."""
        wanted = id_column(element_id)
        low = self.seek(wanted)
        found = self._index().ids[low * ID_WIDTH : (low + 1) * ID_WIDTH] == wanted
        return low if found else None

    def seek(self, wanted: bytes) -> int:
        """The ordinal of the first entry of the id column that is not before `wanted`, or before its beginning."""
        ids = self._index().ids
        low, high = 0, self.ref.count
        while low < high:
            middle = (low + high) // 2
            if ids[middle * ID_WIDTH : (middle + 1) * ID_WIDTH] < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def ids(self) -> bytes:
        """The id column: `ID_WIDTH` bytes an ordinal."""
        return self._index().ids

    def elements(self) -> Iterator[AnyElement]:
        """Every element in order; reads the whole segment, block by block."""
        for records in self.record_blocks():
            yield from map(decode_element, records)

    def record_blocks(self) -> Iterator[list[memoryview]]:
        """Every record in order, a block at a time."""
        for block in range(len(self._index().footer.blocks) - 1):
            unpacked = self._block(block)
            yield [unpacked.record(place) for place in range(len(unpacked.ends))]

    def having_key(self, found: int) -> array[int]:
        """Ordinals of the elements that have a key, given its fingerprint."""
        bucket = self._pieces.piece(self.want_key(found))
        first, end = bucket.span(found)
        return bucket.ordinals[first:end]

    def count_key(self, found: int) -> int:
        """How many elements have a key."""
        first, end = self._pieces.piece(self.want_key(found)).span(found)
        return end - first

    def having_word(self, found: int) -> tuple[array[int], array[int]]:
        """Ordinals of the elements whose text has a term, and how often, given the term's fingerprint."""
        bucket = self._pieces.piece(self.want_word(found))
        first, end = bucket.span(found)
        return bucket.ordinals[first:end], bucket.times[first:end]

    def text_length(self, ordinal: int) -> int:
        """How many terms an element's text has."""
        return self._pieces.piece(self.want_lengths())[ordinal]

    def want_index(self) -> Want[_Index]:
        """The piece that every lookup needs first."""
        return Want(self.ref.key, *self.ref.index, _unpack_index)

    def want_key(self, found: int) -> Want[Bucket]:
        """The piece that says which elements have a key; needs the index."""
        return Want(self.ref.key, *self._index().footer.keys.bucket(found), unpack_bucket)

    def want_word(self, found: int) -> Want[Bucket]:
        """The piece that says which texts have a term; needs the index."""
        return Want(self.ref.key, *self._index().footer.words.bucket(found), unpack_bucket)

    def want_lengths(self) -> Want[array[int]]:
        """The piece that says how long the texts are; needs the index."""
        return Want(self.ref.key, *self._index().footer.lengths, _unpack_lengths)

    def _index(self) -> _Index:
        return self._pieces.piece(self.want_index())

    def _record(self, ordinal: int) -> memoryview:
        blocks = self._index().footer.blocks
        block = bisect_right(blocks, (ordinal, 1 << 62)) - 1
        return self._block(block).record(ordinal - blocks[block][0])

    def _block(self, block: int) -> _Block:
        blocks = self._index().footer.blocks
        offset = blocks[block][1]
        return self._pieces.piece(Want(self.ref.key, offset, blocks[block + 1][1] - offset, _unpack_records))


def id_of(column: bytes, ordinal: int) -> str:
    """The id at an ordinal of an id column."""
    text = column[ordinal * ID_WIDTH : (ordinal + 1) * ID_WIDTH].decode("ascii")
    return f"{text[-1]}-{text[:-1]}"


def plain_bytes(body: bytes) -> Iterator[bytes]:
    """Everything a segment says, unpacked, piece by piece: for the scan that proves an erasure.

    Raises:
        Unreadable: these are not the bytes of an undamaged segment.
    """
    start = len(body) - _TAIL - (bytes_to_ints("I", body[-_TAIL:])[0] if len(body) > _TAIL else 0)
    if start < 0 or not body.startswith(MAGIC):
        raise Unreadable("not a segment")
    index, _ = _unpack_index(body[start:-_TAIL])
    if hashlib.sha256(body[:start]).digest() != index.footer.sha256:
        raise Unreadable("a segment is damaged")
    yield index.ids
    for (_, first), (_, end) in pairwise(index.footer.blocks):
        yield unpack_block(body[first:end])
