"""Retention: what lapses is put aside, never erased (contract §6.2; KIP §14.3, §60.1).

A claim whose announced end has passed becomes `expired`; an element whose retention has run out is archived. Both
are found by the day they lapse on (`core.state.indexes.lapse_key`), so a sweep reads what lapses and nothing
else. A legal hold or a pin keeps an element as it is.
"""

from __future__ import annotations

from typing import Final

import msgspec

from core.model.elements import AnyElement, Assertion
from core.model.instants import Instant
from core.state.indexes import day_of, lapse_key
from core.transaction.draft import Draft

BATCH: Final = 500  # elements changed in one commit
DAYS: Final = 400  # days looked up for one commit


class Swept(msgspec.Struct, frozen=True):
    """One piece of the sweep. `day` is where the next begins; None: the sweep has come to today.

    remaining: elements that lapse later today. refused: what must not be archived, whatever its retention says.
    """

    day: int | None
    archived: int = 0
    expired: int = 0
    held: int = 0
    refused: int = 0
    remaining: int = 0


class _Tally(msgspec.Struct):
    archived: int = 0
    expired: int = 0
    held: int = 0
    refused: int = 0
    remaining: int = 0


def sweep(draft: Draft, day: int, *, batch: int = BATCH) -> Swept:
    """Put aside what lapsed from a day on. A day that is cut off by the bound is begun again next time."""
    today, tally = day_of(draft.now), _Tally()
    for looked in range(day, min(today + 1, day + DAYS)):
        kept = _Tally()
        for element_id in draft.state.find(lapse_key(looked)):
            element = draft.get(element_id)
            if element is not None:
                _put_aside(draft, element, tally, kept)
            if tally.archived + tally.expired >= batch:
                return Swept(
                    looked, tally.archived, tally.expired, tally.held, tally.refused, tally.remaining
                )
        tally.held, tally.refused = tally.held + kept.held, tally.refused + kept.refused
        tally.remaining += kept.remaining
    following = None if day + DAYS > today else day + DAYS
    return Swept(following, tally.archived, tally.expired, tally.held, tally.refused, tally.remaining)


def _put_aside(draft: Draft, element: AnyElement, done: _Tally, kept: _Tally) -> None:
    """Expire or archive one element, or say why it stays. Counted apart, so that a day begun again counts once."""
    now, state = draft.now, element.system.state
    ends = element.retention.expires_at
    claim = element if isinstance(element, Assertion) and element.status == "active" else None
    lapsed = claim is not None and _is_over(claim, now)
    due = state == "active" and ends is not None and ends <= now
    if not lapsed and not due:
        kept.remaining += 1
        return
    if element.retention.legal_hold or element.retention.retention_class == "pinned":
        kept.held += 1
        return
    if due and element.id == draft.meta.self_identity:
        kept.refused += 1
        return
    if claim is not None and lapsed:
        draft.change(claim, status="expired")
        done.expired += 1
    if due:
        draft.change(element, state="archived")
        done.archived += 1


def _is_over(claim: Assertion, now: Instant) -> bool:
    until = claim.valid_time.until
    return until is not None and claim.asserted_at < until <= now
