"""Faults of the store: how a read that failed is told to a caller, and how a write without an answer is settled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from core.errors import NoemaError
from core.ports import Refused, Table, Unavailable, Write

RETRY_AFTER_MS = 1000
_TRIES = 5  # of a write that the store answered with "collided" or not at all


@contextmanager
def reading() -> Iterator[None]:
    """Around reads: a store that did not answer becomes `ServiceUnavailable`, which is safe to try again."""
    try:
        yield
    except Unavailable as fault:
        raise NoemaError(
            "ServiceUnavailable", "the store did not answer in time", retry_after_ms=RETRY_AFTER_MS
        ) from fault


def settled(table: Table, writes: Sequence[Write], landed: Callable[[], bool]) -> bool:
    """Write, and know whether it is written: False if a condition did not hold.

    For writes whose effect can be seen and that no other can make (they carry an owner, a fresh key, an epoch).

    Args:
        table: where.
        writes: one transaction.
        landed: looks whether it happened; asked when the store gave no answer, and when it refused a write
            that had been tried before, for then it may be our own effect that stands in the way.

    Raises:
        Unavailable: the store keeps giving no answer.
    """
    tried = False
    for _ in range(_TRIES):
        try:
            table.transact(writes)
        except Refused as refused:
            if refused.failed:
                return tried and landed()
        except Unavailable:
            tried = True
            if landed():
                return True
        else:
            return True
    raise Unavailable("the store gave no answer to a write")
