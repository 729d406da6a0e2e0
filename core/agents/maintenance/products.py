"""Products: what a phase has made, and the Activity that says from what.

What lives here: finding them by their origin, so that a phase that begins anew after its worker died knows them, and
recording them. What must never live here: whether they should have been made (`core.agents.maintenance.rules`).
"""

from __future__ import annotations

from itertools import islice
from typing import Final

import msgspec

from core.agents.formation.captured import ensure_reader
from core.agents.maintenance.material import ROLE
from core.agents.maintenance.phases import Phase
from core.agents.maintenance.rules import SOURCES
from core.model.elements import Activity, Assertion, Concept
from core.model.ids import MAX_ORDINAL, Kind, element_id
from core.model.instants import Instant
from core.state.view import View
from core.transaction.draft import Draft

LOOKED_AT: Final = 2_000  # elements of a kind that were made since a phase began
_KINDS: Final[tuple[Kind, ...]] = ("concept", "assertion")


class Products(msgspec.Struct, frozen=True):
    """What was made, and what it says it rests on."""

    made: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


def find_products(view: View, salt: str, since: int, principal: str) -> Products:
    """The Concepts and claims that maintenance has made since a version of the log, for one caller."""
    made: list[str] = []
    sources: dict[str, None] = {}
    for kind in _KINDS:
        for element in islice(view.ids(kind, element_id(kind, since, MAX_ORDINAL, salt)), LOOKED_AT):
            found = view.get(element)
            if found is None or (found.system.origin.principal, found.system.origin.channel) != (
                principal,
                ROLE,
            ):
                continue
            if isinstance(found, Concept):
                made.append(element)
                sources |= dict.fromkeys(ref.target for ref in found.structural if ref.field in SOURCES)
            elif isinstance(found, Assertion):
                made.append(element)
                sources |= dict.fromkeys(citation.evidence for citation in found.evidence)
    return Products(tuple(made), tuple(each for each in sources if each not in made))


def record_products(draft: Draft, phase: Phase, products: Products, *, key: str, began: Instant) -> None:
    """Record what a phase has made from what, once."""
    if not products.made or draft.find_client_key("activity", key) is not None:
        return
    draft.create(
        Activity,
        activity_class=phase.activity,
        client_key=key,
        status="completed",
        started_at=min(began, draft.now),
        ended_at=draft.now,
        inputs=products.sources,
        outputs=products.made,
        associated_actors=(ensure_reader(draft).id,),
    )
