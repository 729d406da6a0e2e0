"""Pieces: read once, kept within bounds, and never mistaken for others."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import NoemaError
from core.storage import blocks
from core.storage.blocks import Cache, Pieces, Want, bytes_to_ints, ints_to_bytes, pack_block, unpack_block
from core.storage.memory import MemoryObjects
from tests.doubles import FailingObjects, FakeClock, Faults


@given(st.sampled_from([("H", 2), ("I", 4), ("Q", 8)]), st.data())
def test_integers_come_back(kind: tuple[str, int], data: st.DataObject) -> None:
    """Integers of each width are little-endian bytes and come back as they were."""
    code, width = kind
    values = data.draw(st.lists(st.integers(0, 2 ** (8 * width) - 1)))
    written = ints_to_bytes(code, values)

    assert list(bytes_to_ints(code, written)) == values
    assert written == b"".join(value.to_bytes(width, "little") for value in values)


def test_integers_on_a_big_endian_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the machine's order is the other one, bytes are swapped in both directions."""
    monkeypatch.setattr(blocks, "_SWAP", not blocks._SWAP)

    assert ints_to_bytes("I", [1]) == bytes((0, 0, 0, 1))
    assert bytes_to_ints("I", bytes((0, 0, 0, 1))) == array("I", [1])


@given(st.binary(max_size=2000))
def test_blocks_come_back(payload: bytes) -> None:
    """A block is what was packed."""
    assert unpack_block(pack_block(payload)) == payload


def test_the_cache_gives_up_the_oldest() -> None:
    """What was not used longest goes first, and what is held never exceeds the bound but for one piece."""
    cache = Cache(100)
    for number in range(4):
        cache.put(("a", number), number, 30)
    cache.get(("a", 1))
    cache.put(("a", 9), 9, 30)

    assert [cache.get(("a", number)) for number in (0, 1, 2, 3, 9)] == [None, 1, None, 3, 9]
    assert cache.bytes_held == 90
    cache.put(("a", 9), 99, 10)
    assert (cache.get(("a", 9)), cache.bytes_held) == (99, 70)
    cache.put(("huge", 0), "x", 1000)
    assert (cache.get(("huge", 0)), cache.bytes_held) == ("x", 1000)


def test_the_cache_drops_a_space() -> None:
    """Everything below a prefix goes, and nothing else."""
    cache = Cache(100)
    for key in ("a/seg/1", "a/f/1", "ab/seg/1"):
        cache.put((key, 0), key, 10)

    cache.drop("a/")

    assert [cache.get((key, 0)) for key in ("a/seg/1", "a/f/1", "ab/seg/1")] == [None, None, "ab/seg/1"]
    assert cache.bytes_held == 10


def test_a_piece_is_read_once() -> None:
    """The first use reads its bytes and no others; later ones read nothing."""
    objects = FailingObjects(MemoryObjects(FakeClock()))
    objects.put("k", b"0123456789")
    pieces = Pieces(objects, Cache(1000))

    first = pieces.piece(Want("k", 2, 3, lambda data: (data.decode(), len(data))))

    assert first == "234"
    assert pieces.piece(Want("k", 2, 3, lambda _: ("other", 1))) == "234"
    assert (objects.gets, objects.bytes_read) == (1, 3)


@pytest.mark.parametrize("key", ["gone", "k"], ids=["gone", "short"])
def test_a_piece_that_is_not_there(key: str) -> None:
    """An object that was replaced, or is shorter than it should be, is an error that is safe to try again."""
    objects = MemoryObjects(FakeClock())
    objects.put("k", b"0123")

    with pytest.raises(NoemaError) as failure:
        Pieces(objects, Cache(1000)).piece(Want(key, 2, 3, lambda data: (data, 1)))

    assert failure.value.code == "ServiceUnavailable"


def test_a_piece_without_an_answer() -> None:
    """A store that does not answer is told as such."""
    objects = FailingObjects(MemoryObjects(FakeClock()), Faults([0], reads=True))

    with pytest.raises(NoemaError) as failure:
        Pieces(objects, Cache(1000)).piece(Want("k", 0, 1, lambda data: (data, 1)))

    assert failure.value.code == "ServiceUnavailable"


def test_pieces_are_read_together() -> None:
    """Many pieces take one call; what is held already, or is one alone, is not asked for."""
    objects = FailingObjects(MemoryObjects(FakeClock()))
    objects.put("k", b"0123456789")
    pieces = Pieces(objects, Cache(1000))
    wants = [Want("k", at, 2, lambda data: (data, 2)) for at in (0, 2, 4)]

    pieces.load(wants)

    assert [pieces.piece(want) for want in wants] == [b"01", b"23", b"45"]
    assert objects.gets == 1
    pieces.load([*wants, Want("k", 6, 2, lambda data: (data, 2))])
    pieces.load(wants)
    assert objects.gets == 1


@pytest.mark.parametrize("fault", [True, False], ids=["no answer", "gone"])
def test_pieces_together_that_are_not_there(fault: bool) -> None:
    """One that is missing, or no answer, is told as it would be alone."""
    faults = Faults([0] if fault else [], reads=True)
    objects = FailingObjects(MemoryObjects(FakeClock()), faults)
    objects.objects.put("k", b"0123456789")
    wants = [Want(key, 0, 2, lambda data: (data, 2)) for key in ("k", "gone")]

    with pytest.raises(NoemaError) as failure:
        Pieces(objects, Cache(1000)).load(wants)

    assert failure.value.code == "ServiceUnavailable"
