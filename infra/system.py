"""The real clock and the real source of chance.

What lives here: the only places in the product that read the time, wait, or draw random bytes. What must
never live here: anything that decides.
"""

from __future__ import annotations

import random
import secrets
import time

from core.model.instants import Instant


class SystemClock:
    """Implements `core.ports.Clock` with the machine's wall clock."""

    def now(self) -> Instant:
        """Unix milliseconds now."""
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        """Wait in this thread."""
        time.sleep(seconds)  # noqa: TID251 - this is the adapter that the ban points to


class SystemEntropy:
    """Implements `core.ports.Entropy` with the operating system's generator."""

    def __init__(self) -> None:
        # From the operating system at each call, so that two containers restored from one snapshot differ.
        self._random = random.SystemRandom()

    def token(self, count: int) -> bytes:
        """`count` unpredictable bytes."""
        return secrets.token_bytes(count)

    def uniform(self, low: float, high: float) -> float:
        """A number between `low` and `high`."""
        return self._random.uniform(low, high)
