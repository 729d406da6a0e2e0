"""`Objects` in a directory: the embedded store's immutable bytes.

What lives here: files and their faults. What must never live here: which objects exist for what reason.

A new object is written to a temporary file, flushed to the disk, and then linked under its name. Linking fails
if the name exists, so an object is written once, and it appears whole or not at all, whatever crashes.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from core.model.instants import Instant
from core.ports import KeyExists, Range, Unavailable
from infra.system import SystemClock

_UNSAFE: Final = re.compile(rb"[^a-z0-9_-]")  # upper case too: some file systems do not tell it from lower
_ESCAPE: Final = re.compile(rb"%([0-9a-f]{2})")
_SUFFIX: Final = ".bin"  # holds a dot, which an escaped name never does, so `a` and `a/b` can both be keys
_TEMPORARY: Final = ".new"
_ABANDONED_MS: Final = 3_600_000  # a temporary file this old belongs to a process that died
_MAX_KEY_BYTES: Final = 1024  # S3's bound
_ATTEMPTS: Final = 5  # of a put whose folder another process removes, being empty, at the same moment


class DirectoryObjects:
    """Objects under the directory `root`, which is made if absent, readable by its owner only.

    Safe for many threads and many processes at once.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._temporary = root / _TEMPORARY
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._temporary.mkdir(mode=0o700, exist_ok=True)
        self._sweep(SystemClock().now() - _ABANDONED_MS)

    def put(self, key: str, body: bytes) -> None:
        """Write a new object; raises `KeyExists`."""
        path = self._path(key)
        temporary = self._temporary / secrets.token_hex(16)
        try:
            _write_through(temporary, body)
            self._link(temporary, path)
        except FileExistsError as error:
            raise KeyExists(key) from error
        except OSError as error:
            raise Unavailable(f"the object could not be written: {error.strerror}") from error
        finally:
            with suppress(OSError):  # what cannot be removed now is swept later
                temporary.unlink()

    def get(self, key: str, first: int = 0, length: int | None = None) -> bytes | None:
        """The object's bytes from `first`, or None if there is no such object."""
        if first < 0 or (length is not None and length < 0):
            raise ValueError("a range begins at 0 or later and has a length of 0 or more")
        try:
            with self._path(key).open("rb") as file:
                file.seek(first)
                return file.read() if length is None else file.read(length)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unavailable(f"the object could not be read: {error.strerror}") from error

    def get_many(self, ranges: Sequence[Range]) -> Sequence[bytes | None]:
        """Several pieces, one after the other."""
        return [self.get(*one) for one in ranges]

    def list(self, prefix: str) -> Iterator[tuple[str, Instant, int]]:
        """Every key that begins with `prefix`, in order, with its time and size."""
        folder = self._root.joinpath(*(_escape(part) for part in prefix.split("/")[:-1]))
        found = []
        for directory, _, files in os.walk(folder):
            for name in files:
                path = Path(directory, name)
                if name.endswith(_SUFFIX) and (key := self._key(path)).startswith(prefix):
                    with suppress(FileNotFoundError):  # deleted since the walk saw it
                        status = path.stat()
                        found.append((key, status.st_mtime_ns // 1_000_000, status.st_size))
        yield from sorted(found)

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects, and the folders they leave empty."""
        for key in keys:
            path = self._path(key)
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise Unavailable(f"the object could not be deleted: {error.strerror}") from error
            with suppress(OSError):  # not empty, or gone already
                for parent in path.parents:
                    if parent == self._root:
                        break
                    parent.rmdir()

    def _link(self, temporary: Path, path: Path) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                _make_folder(path.parent)
                os.link(temporary, path)
            except FileNotFoundError:
                if attempt == _ATTEMPTS:
                    raise
            else:
                _flush_folder(path.parent)
                return

    def _path(self, key: str) -> Path:
        if not 0 < len(key.encode()) <= _MAX_KEY_BYTES or "" in key.split("/"):
            raise ValueError("a key is 1 to 1024 bytes, without an empty part")
        *folders, name = (_escape(part) for part in key.split("/"))
        return self._root.joinpath(*folders, name + _SUFFIX)

    def _key(self, path: Path) -> str:
        parts = path.relative_to(self._root).as_posix().removesuffix(_SUFFIX)
        return _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), parts.encode()).decode()

    def _sweep(self, before: Instant) -> None:
        for path in self._temporary.iterdir():
            with suppress(FileNotFoundError):
                if path.stat().st_mtime_ns // 1_000_000 < before:
                    path.unlink()


def _escape(part: str) -> str:
    return _UNSAFE.sub(lambda match: b"%%%02x" % match[0][0], part.encode()).decode()


def _write_through(path: Path, body: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())


def _make_folder(folder: Path) -> None:
    """Make a folder and its parents, each one durable in the one above."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    _flush_folder(folder.parent)


def _flush_folder(folder: Path) -> None:
    if os.name == "nt":  # Windows cannot open a folder, and keeps its directory journal itself
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
