"""The embedded store under `kill -9`, several processes, and the eyes of somebody who reads the disk."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from core.ports import Delete, KeyExists, Put, Unavailable, Update
from infra.local.objects import DirectoryObjects
from infra.local.table import SqliteTable
from tests.doubles import FakeClock

ROOT = Path(__file__).parent.parent.parent
KILLED_AFTER = (1, 7, 40)  # acknowledged commits, of one writer, when both are killed


def start(tmp_path: Path, who: str) -> subprocess.Popen[str]:
    """A writer process."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.infra.writer", tmp_path / "t.sqlite", tmp_path / "objects", who],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("count", KILLED_AFTER)
def test_two_processes_killed_mid_commit_lose_nothing_they_acknowledged(tmp_path: Path, count: int) -> None:
    """Two writers share the store and die by kill -9; every acknowledged commit is there whole, exactly once."""
    writers = [start(tmp_path, who) for who in "ab"]
    acknowledged: list[int] = []
    try:
        assert writers[0].stdout is not None
        for _ in range(count):
            acknowledged.append(int(writers[0].stdout.readline()))
    finally:
        for writer in writers:
            writer.kill()
    for writer in writers:
        assert writer.stdout is not None
        out = writer.stdout.read()  # not communicate(): it would lose what readline() has taken from the pipe
        writer.wait(10)
        acknowledged += [int(line) for line in out.splitlines(keepends=True) if line.endswith("\n")]

    table = SqliteTable(tmp_path / "t.sqlite")
    objects = DirectoryObjects(tmp_path / "objects")
    head = table.get("p", "HEAD")
    deltas = table.query("p", "D#", "D#~", limit=100_000)
    table.close()

    assert head is not None
    assert len(acknowledged) == len(set(acknowledged)), "one version was acknowledged to two writers"
    assert [sk for sk, _ in deltas] == [f"D#{ver:012}" for ver in range(1, len(deltas) + 1)]
    assert len(deltas) == head["ver"] == sum(head.get(f"by_{who}", 0) for who in "ab")  # type: ignore[misc]
    assert set(acknowledged) <= set(range(1, len(deltas) + 1))
    assert len(deltas) - len(acknowledged) <= 2, "at most one commit of each writer was not yet told of"
    for ver, (_, row) in enumerate(deltas, 1):
        key = str(row["key"])
        assert objects.get(key) == f"{ver}{key[-1]}".encode() * 1000


def test_a_reopened_table_has_everything(tmp_path: Path) -> None:
    """Closing and opening changes nothing, and a folder that is missing is made."""
    path = tmp_path / "new" / "deep" / "t.sqlite"
    first = SqliteTable(path)
    first.transact([Put("p", "a", {"n": 1}), Put("p", "b", {"t": "é"})])
    first.close()

    second = SqliteTable(path)
    assert second.query("p", "", "z", limit=9) == [("a", {"n": 1}), ("b", {"t": "é"})]
    second.close()


def test_removed_rows_leave_no_bytes_in_any_file(tmp_path: Path) -> None:
    """After a delete or a replacement, neither the file nor its log holds the old row's bytes."""
    table = SqliteTable(tmp_path / "t.sqlite")
    for number in range(50):
        table.transact([Put("p", f"{number}", {"text": f"my secret is {number} plums " + "x" * 3000})])
    assert holds(tmp_path, b"plums")

    table.transact([Delete("p", f"{number}") for number in range(25)])
    table.transact([Put("p", f"{number}", {"text": "redacted"}) for number in range(25, 50)])

    assert not holds(tmp_path, b"plums")
    table.close()
    assert not holds(tmp_path, b"plums")


def test_expired_rows_go_and_leave_no_bytes(tmp_path: Path) -> None:
    """A row whose `ttl` is past goes with a later commit, within a minute, unless the ttl was moved or taken off."""
    clock = FakeClock()
    table = SqliteTable(tmp_path / "t.sqlite", clock)
    soon = clock.now() // 1000 + 30
    for sk in ("goes", "moved", "kept", "text"):
        table.transact([Put("p", sk, {"ttl": soon, "text": f"plums {sk}"})])
    table.transact([
        Update("p", "moved", {"ttl": soon + 1000}),
        Update("p", "kept", {"ttl": None, "text": "pears"}),
        Put("p", "text", {"ttl": "not a number"}),
    ])  # fmt: skip
    clock.advance(29_000)
    table.transact([Put("p", "other", {})])
    assert table.get("p", "goes") is not None

    clock.advance(60_000)
    table.transact([Put("p", "another", {})])

    assert [sk for sk, _ in table.query("p", "", "z", limit=99)] == [
        "another",
        "kept",
        "moved",
        "other",
        "text",
    ]
    assert not holds(tmp_path, b"plums goes")
    table.close()


def test_removed_rows_leave_the_log_once_its_reader_has_gone(tmp_path: Path) -> None:
    """A reader in the middle of a query holds the log; the next commit after it folds the log away."""
    table = SqliteTable(tmp_path / "t.sqlite")
    table.transact([Put("p", "a", {"text": "plums"})])
    with table._connection() as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM rows").fetchone()
        table.transact([Delete("p", "a")])
        assert holds(tmp_path, b"plums")
        reader.execute("COMMIT")

    table.transact([Update("p", "HEAD", add={"n": 1})])

    assert not holds(tmp_path, b"plums")
    table.close()


def test_what_a_killed_process_left_in_the_log_goes_with_the_next_commit(tmp_path: Path) -> None:
    """A process died between its delete and the folding of the log; whoever opens the file next makes it good."""
    table = SqliteTable(tmp_path / "t.sqlite")
    table.transact([Put("p", "a", {"text": "plums"})])
    with table._connection() as connection:
        connection.execute("DELETE FROM rows")
    assert holds(tmp_path, b"plums")

    heir = SqliteTable(tmp_path / "t.sqlite")
    heir.transact([Put("p", "b", {"text": "pears"})])

    assert not holds(tmp_path, b"plums")
    heir.close()
    table.close()


def test_a_deleted_object_leaves_nothing(tmp_path: Path) -> None:
    """Neither the bytes nor the names of a space stay behind, and a failed put leaves no temporary file."""
    objects = DirectoryObjects(tmp_path)
    objects.put("secretspace/m/1", b"plums")
    with pytest.raises(KeyExists):
        objects.put("secretspace/m/1", b"plums and pears")

    objects.delete(["secretspace/m/1"])

    assert not holds(tmp_path, b"plums")
    assert [path.name for path in tmp_path.rglob("*")] == [".new"]


def test_an_abandoned_temporary_file_is_swept(tmp_path: Path) -> None:
    """What a killed process left is deleted when the store is opened, after an hour; a fresh one stays."""
    DirectoryObjects(tmp_path)
    old, fresh = tmp_path / ".new" / "old", tmp_path / ".new" / "fresh"
    old.write_bytes(b"plums")
    fresh.write_bytes(b"being written")
    os.utime(old, (1, 1))

    objects = DirectoryObjects(tmp_path)

    assert not old.exists()
    assert fresh.exists()
    assert list(objects.list("")) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_only_the_owner_may_read(tmp_path: Path) -> None:
    """Memory is private: files are 0600 and folders 0700."""
    table = SqliteTable(tmp_path / "data" / "t.sqlite")
    table.transact([Put("p", "a", {})])
    DirectoryObjects(tmp_path / "objects").put("sp/m/1", b"x")

    for path in [
        tmp_path / "data",
        tmp_path / "objects",
        *(tmp_path / "objects").rglob("*"),
        *(tmp_path / "data").iterdir(),
    ]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    table.close()


@pytest.mark.parametrize("key", ["", "/", "a/", "/a", "a//b", "k" * 1025, "\ud800"])
def test_a_key_that_cannot_be_a_name_is_refused(tmp_path: Path, key: str) -> None:
    """A malformed key is a bug and is told as one."""
    objects = DirectoryObjects(tmp_path)

    with pytest.raises(ValueError):
        objects.put(key, b"")
    with pytest.raises(ValueError):
        objects.get(key)


def test_no_key_leaves_the_directory(tmp_path: Path) -> None:
    """Dots, backslashes, drive letters and nulls in a key are only characters of it."""
    objects = DirectoryObjects(tmp_path / "objects")
    keys = ["../../escape", "..", "a/../../../b", "C:\\x", "a\\..\\b", "nul\x00byte", "~", "con", "%2e%2e/x"]
    for key in keys:
        objects.put(key, key.encode())

    assert [path.name for path in tmp_path.iterdir()] == ["objects"]
    assert {key: objects.get(key) for key in keys} == {key: key.encode() for key in keys}
    assert [key for key, _, _ in objects.list("")] == sorted(keys)


def test_a_disk_that_refuses_is_unavailable(tmp_path: Path) -> None:
    """An I/O error is the store's fault, not a bug."""
    objects = DirectoryObjects(tmp_path)
    (tmp_path / ".new").rmdir()
    (tmp_path / ".new").touch()

    with pytest.raises(Unavailable):
        objects.put("k", b"x")


def test_a_table_locked_for_too_long_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stuck process elsewhere makes a write Unavailable, and reads go on."""
    monkeypatch.setattr("infra.local.table._LOCK_WAIT_S", 0.05)
    table = SqliteTable(tmp_path / "t.sqlite")
    table.transact([Put("p", "a", {"n": 1})])
    other = SqliteTable(tmp_path / "t.sqlite")
    with other._connection() as stuck:
        stuck.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable):
            table.transact([Put("p", "a", {"n": 2})])
        assert table.get("p", "a") == {"n": 1}
        stuck.execute("ROLLBACK")
    table.transact([Put("p", "a", {"n": 3})])

    assert table.get("p", "a") == {"n": 3}
    table.close()
    other.close()


def holds(folder: Path, text: bytes) -> bool:
    """Whether any file below a folder holds these bytes."""
    return any(text in path.read_bytes() for path in folder.rglob("*") if path.is_file())
