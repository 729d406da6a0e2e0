"""Faults of the store, told to a caller: the one place where a read that failed becomes an error with a code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import NoemaError
from core.ports import Unavailable

RETRY_AFTER_MS = 1000


@contextmanager
def reading() -> Iterator[None]:
    """Around reads: a store that did not answer becomes `ServiceUnavailable`, which is safe to try again."""
    try:
        yield
    except Unavailable as fault:
        raise NoemaError(
            "ServiceUnavailable", "the store did not answer in time", retry_after_ms=RETRY_AFTER_MS
        ) from fault
