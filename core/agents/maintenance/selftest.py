"""The self-test: whether what was remembered lately is found by its own words (contract §6.5, without a model).

With a model, the queries would be what somebody might ask. Without one they are the memory's own words, so what is
measured is that the index holds what the memory holds: a smaller claim, and one that can be made truthfully.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

import msgspec

from core.agents.maintenance.decay import after_place, place_of
from core.agents.maintenance.tasks import file_unfindable
from core.model.elements import Concept
from core.search.bm25 import basis_of, score
from core.search.text import searchable, words
from core.transaction.draft import Draft

LOOKED_AT: Final = 200  # Concepts read to find the sample
SHOWN: Final = 8  # among how many hits the memory must be, as a probe shows them
WORDS: Final = 8  # of the memory that make the query
_PLUMBING: Final = frozenset({"SleepTask", "Watch", "Tool"})


class Tested(msgspec.Struct, frozen=True):
    """What a test found. `place` is the last Concept looked at; the next test begins behind it."""

    place: str | None
    tested: int = 0
    grounded: int = 0
    tasks: int = 0


def self_test(draft: Draft, place: str | None, sample: int) -> Tested:
    """Probe for the next Concepts with words; those that are not found get a task."""
    view, tested, grounded, tasks, last = draft.state, 0, 0, 0, place
    basis = basis_of(view)
    for element_id in islice(view.ids("concept", after_place(place, draft.meta.salt)), LOOKED_AT):
        if tested == sample:
            break
        last, concept = place_of(element_id), draft.get(element_id)
        terms = _query(concept) if isinstance(concept, Concept) else []
        if not isinstance(concept, Concept) or not terms:
            continue
        tested += 1
        hits = score(view, terms, basis, letters="CEP").ranked("CEP", {})
        if element_id in {hit for hit, _ in islice(iter(hits), SHOWN)}:
            grounded += 1
        else:
            tasks += file_unfindable(draft, concept)
    return Tested(last, tested, grounded, tasks)


def _query(concept: Concept) -> list[str]:
    if concept.system.state != "active" or concept.schema_ref.rpartition("/")[2] in _PLUMBING:
        return []
    return list(dict.fromkeys(words(searchable(concept))))[:WORDS]
