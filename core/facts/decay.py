"""Weight: how a fact fades when nobody recalls it. Idempotent, and never upwards.

What lives here: the arithmetic of decay, over when a fact was last recalled and when its namespace was last
consolidated. What must never live here: ranking, which never reads a weight, and the rows that hold the numbers
(`core.service.fact_access`).

A consolidation at time R gives every unpinned fact min(weight, 2^-(hours since access / 720)). Because this only
falls with time, the weight at any moment follows from the last consolidation alone, for as long as the fact is
not recalled; and at a recall the fall so far is taken into the number that is kept. So a consolidation writes one
time, however many facts there are.
"""

from __future__ import annotations

from typing import Final

import msgspec

from core.facts.values import Fact
from core.model.instants import Instant

HALF_LIFE_HOURS: Final = 720
PRUNED_BELOW: Final = 0.01  # reached after 6.64 half-lives, 199.3 days
_HOUR_MS: Final = 3_600_000


class Access(msgspec.Struct, frozen=True, array_like=True):
    """What is kept beside the log of one fact: how often it was recalled, when last, and its weight by then."""

    count: int = 0
    at: Instant = 0
    weight: float = 1.0


def faded(hours: float) -> float:
    """What is left of a weight of 1 after hours without a recall: 1, 0.5 at 720, 0.25 at 1440."""
    return float(2.0 ** (-max(hours, 0.0) / HALF_LIFE_HOURS))


def weight_at(weight: float, accessed: Instant, consolidated: Instant) -> float:
    """A weight after the consolidation at `consolidated`; one before the last access changes nothing."""
    if consolidated <= accessed:
        return weight
    return min(weight, faded((consolidated - accessed) / _HOUR_MS))


def counts_for(fact: Fact, consolidated: Instant) -> Instant:
    """The last consolidation that counts against a fact: none while it is pinned, nor those before its unpinning."""
    return 0 if fact.pinned or consolidated <= (fact.decays_from or 0) else consolidated


def recalled(fact: Fact, before: Access | None, times: int, at: Instant, consolidated: Instant) -> Access:
    """The record after `times` more recalls, the last at `at`; the fall since the one before is taken in."""
    seen = observed(fact, before, min(consolidated, at))
    count = 0 if before is None else before.count
    return Access(count + times, max(seen.accessed_at, at), seen.weight)


def observed(fact: Fact, access: Access | None, consolidated: Instant) -> Fact:
    """The fact with its counts and its weight as they stand.

    Args:
        fact: as the log has it: `weight` is what was last set deliberately.
        access: what is kept beside the log; None if it was never recalled.
        consolidated: when its namespace was last consolidated; 0 for never.
    """
    count, accessed, weight = fact.access_count, fact.accessed_at, fact.weight
    if access is not None:
        count += access.count
        accessed = max(accessed, access.at)
        weight = min(weight, access.weight)
    weight = weight_at(weight, accessed, counts_for(fact, consolidated))
    return msgspec.structs.replace(fact, access_count=count, accessed_at=accessed, weight=weight)
