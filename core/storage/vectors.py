"""The vectors of a segment, in an object beside it; and those of the newest commits, in rows.

    header    fixed width: what made the vectors, of which segment, how many
    ordinals  of the elements that have one, in the segment's order     2 bytes each
    scales    what an integer of a vector stands for                    4 bytes each
    signs     one bit a number                                          dimension / 8 bytes each
    rows      one byte a number                                         dimension bytes each
    prints    fingerprints of the texts; read only to build the next    8 bytes each

What lives here: the bytes and their meaning, and which parts a View is made of. What must never live here: an
embedder, and when vectors are built (`core.service`). The sections stand in the order in which they are needed, so
that one read from the beginning gets what a search wants: all rows of a small memory, only the signs of a large one.

A vector is kept as integers from -127 to 127 and one scale: a quarter of the bytes, and similarities are off by
about 0.002 (docs/benchmarks.md). The key of the object is the segment's with the model's digest behind it: it is
found without being listed, it is garbage when its segment is, and another model's lies elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from core.search.dense import Arrays
from core.state.layer import Layer
from core.state.space import SpaceState
from core.state.view import View
from core.storage.codec import Unreadable
from core.storage.segments import SegmentsView

MAGIC: Final = b"NVEC\x01"
HEADER_BYTES: Final = 512
_ORDINAL, _SCALE, _PRINT = 2, 4, 8


class Header(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """What made the vectors. segment: the digest of the segment they are of; sha256: of everything behind the header."""

    model: str
    dimension: int
    segment: str
    count: int
    sha256: bytes


_encoder: Final = msgspec.msgpack.Encoder()
_header: Final = msgspec.msgpack.Decoder(Header)


class Quantized(msgspec.Struct, frozen=True):
    """Vectors as integers. scales: float32, one each; rows: int8, one row each."""

    scales: Any
    rows: Any

    def __len__(self) -> int:
        return len(self.scales)


def quantize(np: Arrays, vectors: Any) -> Quantized:
    """Vectors of length 1 as integers with a scale each."""
    peaks = np.abs(vectors).max(axis=1) if len(vectors) else np.empty(0, dtype=np.float32)
    scales = np.maximum(peaks, 1e-12).astype(np.float32) / np.float32(127)
    rows = np.rint(vectors / scales[:, None]).astype(np.int8)
    lengths = np.sqrt(np.square(rows, dtype=np.float32).sum(axis=1))
    # What rounding did to the length is put right in the scale, so that a similarity never passes 1.
    return Quantized((1 / np.maximum(lengths, 1e-12)).astype(np.float32), rows)


def rows_at(header: Header, first: int, count: int) -> tuple[int, int]:
    """Where some rows of a segment's vectors stand: the first byte and how many."""
    return size_of(
        header.count, header.dimension, rows=False
    ) + first * header.dimension, count * header.dimension


def size_of(count: int, dimension: int, *, rows: bool) -> int:
    """Bytes from the beginning up to the end of the signs, or of the rows, of so many vectors."""
    signs = count * (_ORDINAL + _SCALE + _signs_bytes(dimension))
    return int(HEADER_BYTES + signs + (count * dimension if rows else 0))


def _signs_bytes(dimension: int) -> int:
    return (dimension + 7) // 8


class Sidecar(msgspec.Struct, frozen=True):
    """A segment's vectors as read. rows and prints are None if they were not read."""

    header: Header
    ordinals: Any  # uint16
    scales: Any  # float32
    signs: Any  # uint8, one row each
    rows: Any = None  # int8, one row each
    prints: Any = None  # uint64

    @property
    def cost(self) -> int:
        """About how many bytes it holds."""
        parts = (self.ordinals, self.scales, self.signs, self.rows, self.prints)
        return HEADER_BYTES + sum(int(part.nbytes) for part in parts if part is not None)


class Source(msgspec.Struct, frozen=True):
    """What vectors are made of: the model, and the digest of the segment."""

    model: str
    segment: str


def encode_sidecar(
    np: Arrays, source: Source, ordinals: Sequence[int], prints: Sequence[int], found: Quantized
) -> bytes:
    """The object of a segment's vectors."""
    dimension = found.rows.shape[1]
    body = b"".join(
        (
            np.asarray(ordinals, dtype="<u2").tobytes(),
            found.scales.astype("<f4").tobytes(),
            np.packbits(found.rows > 0, axis=1).tobytes(),
            found.rows.tobytes(),
            np.asarray(prints, dtype="<u8").tobytes(),
        )
    )
    header = Header(
        model=source.model,
        dimension=dimension,
        segment=source.segment,
        count=len(ordinals),
        sha256=hashlib.sha256(body).digest(),
    )
    told = _encoder.encode(header)
    head = MAGIC + len(told).to_bytes(2, "little") + told
    if len(head) > HEADER_BYTES:
        raise ValueError("the model's name is too long")
    return head.ljust(HEADER_BYTES, b"\0") + body


def decode_header(data: bytes) -> Header:
    """The header of a segment's vectors, from the first `HEADER_BYTES` or more.

    Raises:
        Unreadable: the bytes are none of a segment's vectors.
    """
    if not data.startswith(MAGIC) or len(data) < HEADER_BYTES:
        raise Unreadable("not a segment's vectors")
    begin = len(MAGIC) + 2
    try:
        return _header.decode(data[begin : begin + int.from_bytes(data[len(MAGIC) : begin], "little")])
    except msgspec.DecodeError as fault:
        raise Unreadable("a header of vectors is damaged") from fault


def decode_sidecar(np: Arrays, data: bytes) -> Sidecar:
    """What `encode_sidecar` was given, as far as it was read; at least up to the signs.

    Raises:
        Unreadable: the bytes are none of a segment's vectors, or damaged where the whole was read.
    """
    header = decode_header(data)
    count, dimension, at = header.count, header.dimension, HEADER_BYTES
    sections = []
    for width in (_ORDINAL, _SCALE, _signs_bytes(dimension), dimension, _PRINT):
        end = at + count * width
        sections.append(memoryview(data)[at:end] if end <= len(data) else None)
        at = end
    ordinals, scales, signs, rows, prints = sections
    if ordinals is None or scales is None or signs is None:
        raise Unreadable("vectors are cut short")
    if len(data) >= at and hashlib.sha256(memoryview(data)[HEADER_BYTES:at]).digest() != header.sha256:
        raise Unreadable("vectors are damaged")
    return Sidecar(
        header,
        np.frombuffer(ordinals, dtype="<u2"),
        np.frombuffer(scales, dtype="<f4"),
        np.frombuffer(signs, dtype=np.uint8).reshape(count, _signs_bytes(dimension)),
        None if rows is None else np.frombuffer(rows, dtype=np.int8).reshape(count, dimension),
        None if prints is None else np.frombuffer(prints, dtype="<u8"),
    )


class Pack(msgspec.Struct, frozen=True, array_like=True):
    """Vectors of some elements that the newest commits wrote, as a row keeps them."""

    dimension: int
    ids: tuple[str, ...]
    prints: bytes
    scales: bytes
    rows: bytes


_pack: Final = msgspec.msgpack.Decoder(Pack)


def encode_pack(np: Arrays, ids: Sequence[str], prints: Sequence[int], found: Quantized) -> bytes:
    """The bytes of some vectors with their elements."""
    pack = Pack(
        found.rows.shape[1],
        tuple(ids),
        np.asarray(prints, dtype="<u8").tobytes(),
        found.scales.astype("<f4").tobytes(),
        found.rows.tobytes(),
    )
    return _encoder.encode(pack)


def decode_pack(np: Arrays, data: bytes) -> tuple[Pack, Any, Quantized]:
    """A pack, the fingerprints of its texts, and its vectors.

    Raises:
        Unreadable: the bytes are no pack.
    """
    try:
        pack: Pack = _pack.decode(data)
        rows = np.frombuffer(pack.rows, dtype=np.int8).reshape(len(pack.ids), pack.dimension)
        return (
            pack,
            np.frombuffer(pack.prints, dtype="<u8"),
            Quantized(np.frombuffer(pack.scales, "<f4"), rows),
        )
    except (msgspec.DecodeError, ValueError) as fault:
        raise Unreadable("a pack of vectors is damaged") from fault


class Stack(msgspec.Struct, frozen=True):
    """What a View is made of.

    own: layers over the committed state, which may still be written to; topmost first. tail: the state's own, which
    change no more. base: the segments below. state: None for a View over no committed state.
    """

    own: tuple[Layer, ...]
    tail: tuple[Layer, ...]
    base: SegmentsView | None
    state: SpaceState | None


def stack_of(view: View) -> Stack:
    """The layers of a View over the segments below them."""
    own: list[Layer] = []
    tail: list[Layer] = []
    state = None
    while True:
        if isinstance(view, SpaceState):
            state, view = view, view.tail
        elif isinstance(view, Layer):
            (own if state is None else tail).append(view)
            view = view.below
        else:
            return Stack(tuple(own), tuple(tail), view if isinstance(view, SegmentsView) else None, state)
