"""Corrections: whose claims were superseded since the last look, and what may rest on them (contract §6.2).

What lives here: reading a stretch of the log for supersessions and new claims, and the elements derived from a
superseded one. What must never live here: what follows for anybody's trust; this only counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from core.model.elements import Activity, Assertion
from core.model.instants import Instant
from core.model.log import Delta
from core.state.indexes import referrers_key
from core.state.view import View

DEPTH: Final = 8  # of what is derived from what is derived
DEPENDENTS: Final = 20  # of one root that are named
_LOOKED_AT: Final = 200  # referrers of one root
_NO_DERIVATION: Final = frozenset(
    {"belief_revision", "conflict_review"}
)  # their outputs rest on other things


class Correction(msgspec.Struct, frozen=True):
    """One claim that was superseded: which, whose, and when (ms)."""

    claim: str
    actor: str
    at: Instant


class Stretch(msgspec.Struct, frozen=True):
    """What a stretch of the log has of interest: what was corrected, and on which Propositions claims were made."""

    corrections: tuple[Correction, ...]
    propositions: tuple[str, ...]
    version: int
    seq: int


class Revised(msgspec.Struct, frozen=True):
    """A superseded claim and the elements that were derived from it; `more` if there are others."""

    root: str
    dependents: tuple[str, ...]
    more: bool


def read_stretch(before: View, deltas: Iterable[Delta]) -> Stretch:
    """Find the supersessions and new claims of some commits that follow each other.

    Args:
        before: the state before the first of them, which tells a claim superseded there from one that already was.
        deltas: at least one commit.
    """
    statuses: dict[str, str] = {}
    found: list[Correction] = []
    touched: dict[str, None] = {}
    version = seq = 0
    for delta in deltas:
        version, seq = delta.ver, delta.seq
        for element in delta.puts:
            if not isinstance(element, Assertion):
                continue
            was = statuses.get(element.id) or _status(before, element.id)
            if element.status == "superseded" and was != "superseded":
                found.append(Correction(element.id, element.asserted_by, delta.at))
            if element.status == "active" and was is None:
                touched[element.proposition] = None
            statuses[element.id] = element.status
    return Stretch(tuple(found), tuple(touched), version, seq)


def _status(view: View, element_id: str) -> str | None:
    element = view.get(element_id)
    return element.status if isinstance(element, Assertion) else None


def tallies(corrections: Iterable[Correction]) -> Mapping[str, tuple[int, Instant]]:
    """How often each actor was corrected, and when last."""
    out: dict[str, tuple[int, Instant]] = {}
    for each in corrections:
        count, last = out.get(each.actor, (0, 0))
        out[each.actor] = (count + 1, max(last, each.at))
    return out


def revised(view: View, root: str) -> Revised:
    """What was derived from a claim: outputs of the Activities that had it, or something so derived, as input."""
    seen: dict[str, None] = {}
    waiting, looked = [root], 0
    for _ in range(DEPTH):
        nearer, waiting = waiting, []
        for current in nearer:
            for derived in _derived(view, current):
                looked += 1
                if looked > _LOOKED_AT or len(seen) > DEPENDENTS:
                    return Revised(root, tuple(seen)[:DEPENDENTS], more=True)
                if derived != root and derived not in seen:
                    seen[derived] = None
                    waiting.append(derived)
    return Revised(root, tuple(seen)[:DEPENDENTS], more=len(seen) > DEPENDENTS or bool(waiting))


def _derived(view: View, element_id: str) -> Iterator[str]:
    for referrer in view.find(referrers_key(element_id)):
        activity = view.get(referrer)
        if not isinstance(activity, Activity) or activity.activity_class in _NO_DERIVATION:
            continue
        if element_id in activity.inputs:
            yield from activity.outputs
