"""`Memo`: values derived from one immutable state, kept as long as the state is.

What lives here: a bounded table that its state owns. What must never live here: anything durable, and anything that
outlives the state it was derived from: the next commit makes another state, whose memo is empty. So nothing in a memo
can be stale, and nothing in it can be read as memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Any, Final

MAX_ENTRIES: Final = 256
MAX_BYTES: Final = 512 * 1024  # of one state; a process may hold a thousand open spaces


class Memo:
    """The least recently used go first. Safe to share between threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> Any:  # what was put
        """What is kept under a key, or None."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: Any, size: int) -> None:  # any immutable value
        """Keep a value of so many bytes; one that is larger than all the room there is, is not kept."""
        with self._lock:
            self._forget(key)
            if size > MAX_BYTES:
                return
            self._kept[key] = value, size
            self._bytes += size
            while len(self._kept) > MAX_ENTRIES or self._bytes > MAX_BYTES:
                self._forget(next(iter(self._kept)))

    def _forget(self, key: Hashable) -> None:
        known = self._kept.pop(key, None)
        if known is not None:
            self._bytes -= known[1]
