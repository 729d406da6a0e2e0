"""The vector ranking of facts: from what an index says of elements to the facts that may be ranked.

What lives here: which of the nearest elements are eligible facts, in a total order. What must never live here:
vectors and embedders (`core.search.dense`). Only eligible facts take a place, so the ranks are dense whatever else
the space holds: retired facts, other namespaces, concepts of the brain.
"""

from __future__ import annotations

from typing import Final

from core.facts.corpus import Corpus
from core.facts.namespace import Namespace
from core.search.dense import Dense

_CONCEPTS: Final = "C"  # facts are Concepts
_FEW: Final = 2000  # facts; so many are looked up one by one, of more the index is walked from the nearest on


def nearest_facts(dense: Dense, namespace: Namespace, corpus: Corpus, count: int) -> list[str]:
    """The ids of the `count` nearest facts: similarity descending, ties by id. Facts without a vector have no place.

    Nor has one of which a model has nothing to say: its vector is all zeros, and its similarity exactly 0.
    """
    if len(corpus) <= _FEW:
        elements = {fact.element: fact_id for fact_id, fact in corpus.facts.items()}
        found = [(-score, elements[element]) for element, score in dense.of(elements).items() if score]
        return [fact_id for _, fact_id in sorted(found)[:count]]
    found = []
    for element, score in dense.ranked(_CONCEPTS):
        if len(found) >= count and score < -found[-1][0]:
            break
        fact_id = namespace.id_of(element)
        if score and fact_id is not None and fact_id in corpus.facts:
            found.append((-score, fact_id))
    return [fact_id for _, fact_id in sorted(found)[:count]]
