"""The bytes of vectors: what is written is read, whole or from the beginning; damage is told."""

from __future__ import annotations

import numpy as np
import pytest

from core.storage.codec import Unreadable
from core.storage.layout import (
    vector_key,
    vector_model,
    vector_part_key,
    vector_row_sk,
    vector_rows,
    vector_segment,
    vectors_sk,
)
from core.storage.vectors import (
    HEADER_BYTES,
    Quantized,
    Source,
    decode_header,
    decode_pack,
    decode_sidecar,
    encode_pack,
    encode_sidecar,
    quantize,
    rows_at,
    size_of,
)

SOURCE = Source("static:m:20", "d1g3st")


def unit(count: int, dimension: int, seed: int = 1) -> np.ndarray:
    """Random vectors of length 1."""
    rows = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("dimension", [4, 20, 64, 256, 384, 1536])
def test_eight_bits_keep_similarities(dimension: int) -> None:
    """Off by less than a hundredth at most, and a vector's with itself is 1."""
    vectors = unit(200, dimension)
    found = quantize(np, vectors)
    rough = found.rows.astype(np.float32) * found.scales[:, None]
    assert np.abs(vectors @ vectors.T - vectors @ rough.T).max() < 0.01
    assert np.linalg.norm(rough, axis=1) == pytest.approx(1, abs=1e-5)
    assert len(quantize(np, vectors[:0])) == 0


def made(count: int = 9, dimension: int = 20) -> tuple[bytes, Quantized]:
    """An object of vectors, and these."""
    found = quantize(np, unit(count, dimension))
    ordinals, prints = [3 * place for place in range(count)], [place << 50 for place in range(count)]
    return encode_sidecar(np, SOURCE, ordinals, prints, found), found


@pytest.mark.parametrize("count", [0, 1, 9, 1000])
def test_what_is_written_is_read(count: int) -> None:
    """All sections of the whole object."""
    body, found = made(count)
    read = decode_sidecar(np, body)
    assert (read.header.model, read.header.dimension, read.header.segment, read.header.count) == (
        "static:m:20", 20, "d1g3st", count,
    )  # fmt: skip
    assert list(read.ordinals) == [3 * place for place in range(count)]
    assert list(read.prints) == [place << 50 for place in range(count)]
    assert (read.scales == found.scales).all()
    assert (read.rows == found.rows).all()
    assert (np.unpackbits(read.signs, axis=1)[:, :20].astype(bool) == (found.rows > 0)).all()
    assert read.cost > count * 20


def test_a_search_reads_only_the_beginning() -> None:
    """Up to the rows, or up to the signs and then single rows; a shorter read is told."""
    body, found = made()
    upto = decode_sidecar(np, body[: size_of(9, 20, rows=True)])
    assert (upto.rows == found.rows).all()
    assert upto.prints is None
    signs = decode_sidecar(np, body[: size_of(9, 20, rows=False)])
    assert signs.rows is None
    first, length = rows_at(signs.header, 4, 2)
    assert body[first : first + length] == found.rows[4:6].tobytes()
    for end in (0, 10, HEADER_BYTES, size_of(9, 20, rows=False) - 1):
        with pytest.raises(Unreadable):
            decode_sidecar(np, body[:end])


def test_damage_is_told() -> None:
    """In the header, and anywhere in an object that was read whole."""
    body, _ = made()
    for place in (0, 5, 9, HEADER_BYTES + 3, len(body) - 1):
        broken = bytearray(body)
        broken[place] ^= 0xFF
        with pytest.raises(Unreadable):
            decode_sidecar(np, bytes(broken))
    with pytest.raises(Unreadable):
        decode_header(b"NSEG" + body[4:])


def test_a_model_of_any_name_fits_or_is_refused() -> None:
    """A name too long for the header is refused when it is written."""
    found = quantize(np, unit(1, 8))
    with pytest.raises(ValueError, match="too long"):
        encode_sidecar(np, Source("m" * 600, "d"), [0], [0], found)


def test_a_pack_is_read_as_it_was_written() -> None:
    """Ids, fingerprints and vectors; damage is told."""
    found = quantize(np, unit(3, 8))
    body = encode_pack(np, ["E-1", "C-2", "P-3"], [1, 2, 2**63], found)
    pack, prints, read = decode_pack(np, body)
    assert pack.ids == ("E-1", "C-2", "P-3")
    assert list(prints) == [1, 2, 2**63]
    assert (read.rows == found.rows).all()
    assert (read.scales == found.scales).all()
    for broken in (b"", b"\x00", body[:-3], body + b"x"):
        with pytest.raises(Unreadable):
            decode_pack(np, broken)


def test_keys_tell_segment_model_and_version() -> None:
    """A segment's vectors are found from its key, and its key from theirs; rows of a model lie in order."""
    segment = "home/seg/0123-ab-0"
    key = vector_key(segment, "m")
    assert vector_segment(key) == segment
    assert vector_segment(vector_part_key(segment, "m", "ff")) == segment
    assert vector_segment(segment) is None
    assert (
        vector_model(key)
        == vector_model(vector_part_key(segment, "m", "ff"))
        != vector_model(vector_key(segment, "n"))
    )
    first, last = vector_rows("m", 4, 9)
    inside = [vector_row_sk("m", ver, part) for ver in (5, 9) for part in (0, 7)]
    outside = [vector_row_sk("m", 4, 0), vector_row_sk("m", 10, 0), vectors_sk("m"), vector_row_sk("n", 5, 0)]
    assert all(first <= sk <= last for sk in inside)
    assert not any(first <= sk <= last for sk in outside)
