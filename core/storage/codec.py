"""Bytes: how values are written down so that every later version of this code can read them.

What lives here: the two-byte header that all stored bytes carry, compression, and the encoders of the values
that are stored whole. What must never live here: segments, whose sections are read piece by piece
(`core.storage.segment`).

Byte 0 is the format version of the value, byte 1 the compression. Bytes of an older version pass through the
upcasters, one version at a time, before they are decoded, so a decoder knows only the newest shape. Writers
use zlib, which every Python has; zstd is read where it can be imported, for stores that a fleet wrote with it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final

import msgspec

from core.model.log import Delta

try:  # Python 3.14 and Pyodide have it; elsewhere zstd is not written, and refused by name when met
    from compression import zstd as _zstd  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    _zstd = None

RAW: Final = 0
ZLIB: Final = 1
ZSTD: Final = 2
_WORTH_IT: Final = 512  # bytes; below it compression saves less than it costs

FORMAT: Final = 1  # of every value, until one of them changes


class Unreadable(Exception):  # noqa: N818 - says what is wrong with the bytes
    """Stored bytes that this code cannot read: a newer format, an unknown compression, or damage."""


# (what, version) -> the payload as the next version writes it
UPCASTERS: dict[tuple[str, int], Callable[[bytes], bytes]] = {}


def compress(payload: bytes, codec: int = ZLIB) -> tuple[int, bytes]:
    """The payload compressed, and the tag that says how; raw where compression does not pay."""
    if codec == ZSTD and _zstd is not None:
        small = _zstd.compress(payload, 1)
    elif codec == ZLIB and len(payload) >= _WORTH_IT:
        small = zlib.compress(payload, 1)
    else:
        return RAW, payload
    return (codec, small) if len(small) < len(payload) else (RAW, payload)


def expand(codec: int, data: bytes) -> bytes:
    """What `compress` was given.

    Raises:
        Unreadable: damaged data, or a compression this Python does not have.
    """
    if codec == RAW:
        return bytes(data)
    try:
        if codec == ZLIB:
            return zlib.decompress(data)
        if codec == ZSTD and _zstd is not None:
            return bytes(_zstd.decompress(data))
    except (zlib.error, ValueError) as fault:
        raise Unreadable("compressed bytes are damaged") from fault
    raise Unreadable(f"compression {codec} is not known here")


def pack(payload: bytes, *, version: int = FORMAT, codec: int = ZLIB) -> bytes:
    """A payload with its header, compressed where that pays."""
    tag, body = compress(payload, codec)
    return bytes((version, tag)) + body


def unpack(what: str, data: bytes, *, newest: int = FORMAT) -> bytes:
    """The payload of packed bytes, brought up to the newest version of `what`.

    Raises:
        Unreadable: the bytes are newer than this code, older than its upcasters, or damaged.
    """
    if len(data) < 2:
        raise Unreadable(f"{what} has no header")
    version, payload = data[0], expand(data[1], data[2:])
    while version < newest:
        upcast = UPCASTERS.get((what, version))
        if upcast is None:
            raise Unreadable(f"{what} of format {version} has no upcaster")
        payload = upcast(payload)
        version += 1
    if version != newest:
        raise Unreadable(f"{what} of format {version} is newer than this code")
    return payload


_encoder: Final = msgspec.msgpack.Encoder()
_delta: Final = msgspec.msgpack.Decoder(Delta)


def encode_delta(delta: Delta) -> bytes:
    """The bytes of one commit."""
    return pack(_encoder.encode(delta))


def decode_delta(data: bytes) -> Delta:
    """What `encode_delta` was given."""
    try:
        return _delta.decode(unpack("delta", data))
    except msgspec.DecodeError as fault:
        raise Unreadable("a delta is damaged") from fault


def encode_json(value: Any) -> bytes:  # a JSON value
    """A JSON value, such as an outcome retained under an idempotency key."""
    return pack(_encoder.encode(value))


def decode_json(data: bytes) -> Any:  # a JSON value
    """What `encode_json` was given."""
    try:
        return msgspec.msgpack.decode(unpack("json", data))
    except msgspec.DecodeError as fault:
        raise Unreadable("a stored value is damaged") from fault
