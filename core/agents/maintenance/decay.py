"""Decay: memories that nothing renews become a little harder to recall each week (contract §6.2, profile §6.1).

A walk over the Concepts in order of creation, a bounded piece at a time, with a place to go on from. Not an index
by the time of the last decay: such an index would change with every decay and for every Concept, and save only
the reading of neighbours, which stand together in a segment. The stamp is written in the same change as the
strength, so a piece walked twice decays once.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

import msgspec

from core.agents.vocabulary import PROFILE
from core.model.elements import Concept, Json
from core.model.ids import ORDINAL_DIGITS, VERSION_DIGITS, sort_key
from core.model.instants import Instant, format_instant, parse_instant
from core.protocol.http_types import MemoryPolicy
from core.schema.library import FACTS_REF
from core.transaction.draft import Draft

MNEMONIC: Final = f"{PROFILE}/MnemonicState"
SLEEP_TASK: Final = f"{PROFILE}/SleepTask"
WEEK_MS: Final = 7 * 24 * 3600 * 1000
UNSAID: Final = 0.5  # the strength of a memory that has none yet
BATCH: Final = 500  # Concepts changed in one commit
LOOKED_AT: Final = 2_000  # Concepts read for one commit
_FACTS: Final = FACTS_REF.partition("@")[0]  # facts fade by rules of their own, in every version
_EXEMPT: Final = frozenset({"SleepTask", "Watch"})
_PLACE: Final = VERSION_DIGITS + ORDINAL_DIGITS


class Decayed(msgspec.Struct, frozen=True):
    """One piece of the walk. `place` is where the next begins; None: the walk has come to the end."""

    looked_at: int
    decayed: int
    place: str | None


def place_of(element_id: str) -> str:
    """Where an element stands in the order of creation; tells nothing else, so that it may outlive the element."""
    return sort_key(element_id)[:_PLACE]


def after_place(place: str | None, salt: str) -> str | None:
    """The id to walk on from."""
    return None if place is None else f"C-{place}{salt}"


def decay(
    draft: Draft, policy: MemoryPolicy, place: str | None, *, batch: int = BATCH, paced: bool = True
) -> Decayed:
    """Let the next Concepts fade that have not faded for a week; with `paced` false, whenever they did."""
    looked, decayed, last = 0, 0, place
    ids = draft.state.ids("concept", after_place(place, draft.meta.salt))
    for element_id in islice(ids, LOOKED_AT):
        looked, last = looked + 1, place_of(element_id)
        concept = draft.get(element_id)
        if isinstance(concept, Concept) and _fades(concept):
            faded = _faded(concept.facets.get(MNEMONIC, {}), policy, draft.now, paced=paced)
            if faded is not None:
                draft.change(concept, facets={**concept.facets, MNEMONIC: faded})
                decayed += 1
                if decayed == batch:
                    return Decayed(looked, decayed, last)
    return Decayed(looked, decayed, last if looked == LOOKED_AT else None)


def _fades(concept: Concept) -> bool:
    name = concept.schema_ref.rpartition("/")[2]
    return (
        concept.system.state == "active"
        and concept.retention.retention_class != "pinned"
        and name not in _EXEMPT
        and not concept.schema_ref.startswith(_FACTS)
    )


def _faded(
    facet: dict[str, Json], policy: MemoryPolicy, now: Instant, *, paced: bool
) -> dict[str, Json] | None:
    """The facet after a week more, or None if it is not its time or there is nothing left to lose."""
    stamp, strength = facet.get("last_metabolized_at"), facet.get("memory_strength")
    if paced and isinstance(stamp, str) and now - parse_instant(stamp) < WEEK_MS:
        return None
    if strength is not None and strength <= policy.decay_floor:
        return None
    held = UNSAID if strength is None else float(strength)
    faded = min(1.0, max(policy.decay_floor, held * policy.memory_strength_decay_factor))
    return {**facet, "memory_strength": faded, "last_metabolized_at": format_instant(now)}
