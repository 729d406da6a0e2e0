"""The self-test: whether what was remembered lately is found again (contract §6.5).

What lives here: the sample, the search, and the task for what is not found. What must never live here: asking a model
(`core.agents.maintenance.quizzing` says what one is asked). With a model the queries are what somebody might ask.
Without one they are the memory's own words, so what is measured is that the index holds what the memory holds: a
smaller claim, and one that can be made truthfully.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

import msgspec

from core.agents.maintenance.decay import after_place, place_of
from core.agents.maintenance.tasks import file_unfindable
from core.model.elements import Concept
from core.search.bm25 import basis_of, score
from core.search.text import searchable, words
from core.state.view import View
from core.transaction.draft import Draft

LOOKED_AT: Final = 200  # Concepts read to find the sample
SHOWN: Final = 8  # among how many hits the memory must be, as a probe shows them
WORDS: Final = 8  # of the memory that make the query
QUERY_WORDS: Final = 24  # of a question that are searched for
_PLUMBING: Final = frozenset({"SleepTask", "Watch", "Tool"})


class Tested(msgspec.Struct, frozen=True):
    """What a test found. `place` is the last Concept looked at; the next test begins behind it."""

    place: str | None
    tested: int = 0
    grounded: int = 0
    tasks: int = 0


def sample_of(view: View, salt: str, place: str | None, sample: int) -> tuple[list[Concept], str | None]:
    """The next Concepts with words of their own, and the place of the last one that was looked at."""
    found: list[Concept] = []
    for element_id, concept in _walk(view, salt, place):
        if len(found) == sample:
            break
        place = place_of(element_id)
        if concept is not None and _query(concept):
            found.append(concept)
    return found, place


def self_test(
    draft: Draft, place: str | None, sample: int, queries: Mapping[str, str] | None = None
) -> Tested:
    """Probe for the next Concepts with words; those that are not found get a task.

    Args:
        draft: the transaction.
        place: where the test before this one ended.
        sample: how many are tested.
        queries: what to ask for each, by id, where somebody made questions; None for the memory's own words. What has
            no question is not tested.
    """
    concepts, last = sample_of(draft.view, draft.meta.salt, place, sample)
    tested = grounded = tasks = 0
    for concept in concepts:
        terms = _query(concept) if queries is None else _terms(queries.get(concept.id, ""))
        if not terms:
            continue
        tested += 1
        if _found(draft.state, concept, terms):
            grounded += 1
        else:
            tasks += file_unfindable(draft, concept)
    return Tested(last, tested, grounded, tasks)


def is_findable(view: View, concept: Concept) -> bool:
    """Whether a Concept is found by its own words."""
    terms = _query(concept)
    return bool(terms) and _found(view, concept, terms)


def _walk(view: View, salt: str, place: str | None) -> Iterator[tuple[str, Concept | None]]:
    for element_id in islice(view.ids("concept", after_place(place, salt)), LOOKED_AT):
        concept = view.get(element_id)
        yield element_id, concept if isinstance(concept, Concept) else None


def _found(view: View, concept: Concept, terms: list[str]) -> bool:
    hits = score(view, terms, basis_of(view), letters="CEP").ranked("CEP", {})
    return concept.id in {hit for hit, _ in islice(iter(hits), SHOWN)}


def _terms(query: str) -> list[str]:
    return list(dict.fromkeys(words(query)))[:QUERY_WORDS]


def _query(concept: Concept) -> list[str]:
    if concept.system.state != "active" or concept.schema_ref.rpartition("/")[2] in _PLUMBING:
        return []
    return list(dict.fromkeys(words(searchable(concept))))[:WORDS]
