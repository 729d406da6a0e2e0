"""Every store is the same Objects."""

from __future__ import annotations

import pytest

from core.ports import KeyExists, Objects
from infra.system import SystemClock

BODY = bytes(range(256)) * 40


@pytest.mark.parametrize("body", [b"", b"\x00", BODY, b"x" * 5_000_000], ids=["empty", "nul", "10k", "5M"])
def test_an_object_reads_back_byte_for_byte(objects: Objects, body: bytes) -> None:
    """What was put is what is got, from nothing to megabytes."""
    objects.put("space/d/1", body)

    assert objects.get("space/d/1") == body
    assert [(key, size) for key, _, size in objects.list("space/")] == [("space/d/1", len(body))]


def test_an_object_is_written_once(objects: Objects) -> None:
    """A second put under a key is refused, even of the same bytes, and the first stands."""
    objects.put("k", b"first")

    for body in (b"second", b"first", b""):
        with pytest.raises(KeyExists):
            objects.put("k", body)
    assert objects.get("k") == b"first"


def test_a_deleted_key_is_free(objects: Objects) -> None:
    """After a delete there is nothing, and deleting it again is no error."""
    objects.put("k/a", b"1")
    objects.put("k/b", b"2")

    objects.delete(["k/a", "k/never"])
    objects.delete(["k/a"])
    objects.delete([])

    assert objects.get("k/a") is None
    assert objects.get("k/b") == b"2"
    assert [key for key, _, _ in objects.list("")] == ["k/b"]


def test_many_ranges_are_each_a_range(objects: Objects) -> None:
    """Pieces asked for together come in the order asked, each as it would come alone."""
    objects.put("a", BODY)
    objects.put("b", b"0123456789")
    asked = [("b", 2, 3), ("a", 0, 10), ("never", 0, 5), ("b", 8, 100), ("a", 1000, 1), ("b", 2, 3)] * 8

    assert list(objects.get_many(asked)) == [objects.get(*one) for one in asked]
    assert list(objects.get_many(asked[:1])) == [b"234"]
    assert list(objects.get_many([])) == []


@pytest.mark.parametrize(
    ("first", "length"),
    [(0, None), (0, 0), (0, 1), (0, 256), (5, 10), (10_239, 1), (10_239, 5), (10_240, None), (10_240, 3),
     (99_999, None), (99_999, 0), (0, 99_999), (256, None)],
)  # fmt: skip
def test_a_range_is_a_slice(objects: Objects, first: int, length: int | None) -> None:
    """A range gives what a slice gives, also past the end."""
    objects.put("k", BODY)

    expected = BODY[first:] if length is None else BODY[first : first + length]
    assert objects.get("k", first, length) == expected


@pytest.mark.parametrize(("first", "length"), [(0, None), (0, 0), (3, None), (3, 5)])
def test_a_range_of_an_empty_object_is_empty_and_of_none_is_none(
    objects: Objects, first: int, length: int | None
) -> None:
    """An empty object is told from an object that does not exist."""
    objects.put("empty", b"")

    assert objects.get("empty", first, length) == b""
    assert objects.get("absent", first, length) is None


KEYS = [
    "sp", "sp-1/d/1", "sp/d/000000000002-zz", "sp/d/000000000010-aa", "sp/m/1", "sp/m/1/x", "sp/seg/ABC",
    "sp/seg/abc", "sp/é", "sp/%20 +&=?", "sp/..", "sp/../up", "sp2/d/1", "sp/.new/x", "sp/a.bin", "sp/a.bin/b",
]  # fmt: skip


@pytest.mark.parametrize(
    "prefix",
    ["", "s", "sp", "sp/", "sp/d", "sp/d/", "sp/m/1", "sp/seg/A", "sp/..", "x", "sp/d/000000000002-zz"],
)
def test_a_list_is_every_key_with_the_prefix_in_order(objects: Objects, prefix: str) -> None:
    """Keys that begin with the prefix come in the order of their bytes; a prefix need not end at a slash."""
    for key in KEYS:
        objects.put(key, key.encode())

    listed = [(key, size) for key, _, size in objects.list(prefix)]

    assert listed == sorted((key, len(key.encode())) for key in KEYS if key.startswith(prefix))
    assert [objects.get(key) for key in KEYS] == [key.encode() for key in KEYS]


def test_a_list_tells_when_an_object_was_written(objects: Objects) -> None:
    """The time is the store's, in milliseconds, to the second."""
    before = SystemClock().now()
    objects.put("k", b"")
    after = SystemClock().now()

    ((_, at, _),) = objects.list("k")
    assert before - 1500 <= at <= after + 1500


def test_a_list_and_a_delete_cross_pages(objects: Objects) -> None:
    """More than S3's page of a thousand keys are listed and deleted, in one call."""
    keys = [f"space/d/{number:012}" for number in range(1005)]
    for key in keys:
        objects.put(key, b"")

    assert [key for key, _, _ in objects.list("space/")] == keys
    objects.delete(keys)
    assert list(objects.list("")) == []
