"""Bytes: whatever was written is read back, by this version and by later ones; what is not ours is refused."""

from __future__ import annotations

import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.log import Delta
from core.storage import codec
from core.storage.codec import (
    FORMAT,
    RAW,
    UPCASTERS,
    ZLIB,
    ZSTD,
    Unreadable,
    compress,
    decode_delta,
    decode_json,
    encode_delta,
    encode_json,
    expand,
    pack,
    unpack,
)
from core.storage.manifest import decode_manifest
from tests.core.state.oracle import ORIGIN, make
from tests.core.storage.test_segments import META

DELTA = Delta(
    3, 2, 1, "tx-3", 5, ORIGIN, "import", tuple(make(n, n % 4, "ünï 東京 \x00") for n in range(8)), ("C-x",), META,
    {"a": [1, {"b": None}]},
)  # fmt: skip


def test_a_delta_comes_back() -> None:
    """Every kind of element, the protected state and the record survive being written down."""
    assert decode_delta(encode_delta(DELTA)) == DELTA


def test_the_same_delta_gives_the_same_bytes() -> None:
    """Writing is a function, so a digest of the bytes is a digest of the commit."""
    assert encode_delta(DELTA) == encode_delta(decode_delta(encode_delta(DELTA)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_json_comes_back(value: object) -> None:
    """Any JSON value is read back as it was."""
    assert decode_json(encode_json(value)) == value


@given(st.binary(max_size=3000))
def test_payloads_come_back(payload: bytes) -> None:
    """Packing never loses a byte, and compresses only where that pays."""
    packed = pack(payload)

    assert unpack("json", packed) == payload
    assert len(packed) <= len(payload) + 2


@given(st.binary(max_size=200))
def test_foreign_bytes_are_refused(data: bytes) -> None:
    """Bytes that are not ours never become a delta or a manifest, and never raise anything else."""
    for read in (decode_delta, decode_manifest):
        with pytest.raises(Unreadable):
            read(data)


def test_header_bytes() -> None:
    """Byte 0 is the format, byte 1 the compression: what is short stays raw."""
    assert pack(b"short")[:2] == bytes((FORMAT, RAW))
    assert pack(b"long " * 500)[:2] == bytes((FORMAT, ZLIB))


def test_a_newer_format_is_refused() -> None:
    """Old code does not guess at what new code wrote."""
    with pytest.raises(Unreadable, match="newer than this code"):
        unpack("delta", pack(b"x", version=FORMAT + 1))


def test_an_older_format_is_brought_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes of an older version pass through one upcaster for each version between."""
    monkeypatch.setitem(UPCASTERS, ("thing", 1), lambda payload: payload + b" two")
    monkeypatch.setitem(UPCASTERS, ("thing", 2), lambda payload: payload + b" three")

    assert unpack("thing", pack(b"one", version=1), newest=3) == b"one two three"
    assert unpack("thing", pack(b"2", version=2), newest=3) == b"2 three"
    with pytest.raises(Unreadable, match="no upcaster"):
        unpack("other", pack(b"one", version=1), newest=3)


@pytest.mark.parametrize(
    ("tag", "data"), [(9, b"x"), (ZLIB, b"not zlib"), (ZLIB, zlib.compress(b"x" * 99)[:-5])]
)
def test_damage_is_refused(tag: int, data: bytes) -> None:
    """An unknown compression and damaged bytes are named as such."""
    with pytest.raises(Unreadable):
        expand(tag, data)


def test_zstd_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without zstd nothing is written with it, and what another wrote is refused by name."""
    monkeypatch.setattr(codec, "_zstd", None)

    assert compress(b"long " * 500, ZSTD)[0] == RAW
    with pytest.raises(Unreadable, match="compression 2"):
        expand(ZSTD, b"x")


def test_zstd_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With zstd both directions work, and damage is refused like any other."""

    class Zstd:
        @staticmethod
        def compress(data: bytes, level: int) -> bytes:
            return zlib.compress(data, level)

        @staticmethod
        def decompress(data: bytes) -> bytes:
            if data == b"damaged":
                raise ValueError("damaged")
            return zlib.decompress(data)

    monkeypatch.setattr(codec, "_zstd", Zstd)

    tag, body = compress(b"long " * 500, ZSTD)
    assert (tag, expand(tag, body)) == (ZSTD, b"long " * 500)
    with pytest.raises(Unreadable):
        expand(ZSTD, b"damaged")


def test_old_bytes_decode_for_ever() -> None:
    """These bytes were written by the first version of the format; every later version must read them."""
    payload = msgspec.msgpack.encode(
        [1, 0, 0, "tx-00000001aaaaa", 7, ["me", "rest"], "cognitive",
         [["C", "C-0000000100000000", [1, 7, 7, "tx-1", "tx-1", ["me", "rest"]], {}, [], [], [], None, "kip://t"]],
         [], None, {}]
    )  # fmt: skip
    delta = decode_delta(bytes((1, RAW)) + payload)

    assert delta.puts[0].schema_ref == "kip://t"
    assert delta.puts[0].retention.retention_class == "standard"
    assert delta.puts[0].system.state == "active"
