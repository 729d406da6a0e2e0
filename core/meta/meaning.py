"""Candidates of SEARCH by meaning, and by words and meaning together (KIP §66.3).

What lives here: which of the nearest elements a caller may find, and the fusion of two rankings. What must never
live here: vectors, and how near two texts are (`core.search.dense`).

How near an element lies to the query depends on no other element, so nothing hidden moves what is visible. But an
element is found by all of its wording: where the caller may not read a part of that, or not see an end that a
statement is worded by, it is not found by meaning at all (KIP §66, §88.5).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Final

from core.model.elements import AnyElement, Assertion, Concept, Proposition
from core.model.ids import LETTER, Kind
from core.query.world import World
from core.search.dense import Dense
from core.search.wording import WORDED, ends, fields
from core.state.indexes import assertions_key

WORDS_SHARE: Final = 0.5  # of a hybrid score; the rest is the meaning's
_NAMES: Final = frozenset({"name", "aliases", "attributes"})

Candidates = Iterator[tuple[str, float]]


class Meaning:
    """What lies near to one query, of what one caller may find.

    Args:
        world: the view as the caller may see it.
        dense: the nearest elements of the same state.
        kinds: which are wanted.
        predicate_ref: of statements, if one is asked for.
    """

    def __init__(
        self, world: World, dense: Dense, kinds: frozenset[Kind], predicate_ref: str | None = None
    ) -> None:
        self._world = world
        self._dense = dense
        self._letters = frozenset(LETTER[kind] for kind in kinds)
        self._predicate = predicate_ref
        self._open = world.open and world.context.hidden_fields is None

    def ranked(self) -> Candidates:
        """Elements and their similarities above 0, nearest first; Assertions behind their Proposition."""
        claims = "A" in self._letters
        letters = "".join(
            letter for letter in WORDED if letter in self._letters or (letter == "P" and claims)
        )
        for element_id, similarity in self._dense.ranked(letters):
            self._world.spend()
            if similarity <= 0:
                return
            element = self._world.get(element_id)
            if element is None or not self._findable(element):
                continue
            if element_id[0] in self._letters:
                yield element_id, min(similarity, 1.0)
            if claims and isinstance(element, Proposition):
                for claim in self._world.find(assertions_key(element_id)):
                    yield claim, min(similarity, 1.0)

    def of(self, element_id: str) -> float:
        """How near one element is; 0 where it has no vector or may not be found by it."""
        element = self._world.get(element_id)
        if isinstance(element, Assertion):
            element = self._world.get(element.proposition)
        if element is None or not self._findable(element):
            return 0.0
        return min(max(self._dense.of([element.id]).get(element.id, 0.0), 0.0), 1.0)

    def _findable(self, element: AnyElement) -> bool:
        if isinstance(element, Proposition) and self._predicate not in {None, element.predicate_ref}:
            return False
        if self._open:
            return True
        if self._hides(element, fields(element)):
            return False
        return not isinstance(element, Proposition) or all(self._names(end) for end in ends(element))

    def _names(self, element_id: str) -> bool:
        """Whether the caller may read by which name an end goes."""
        element = self._world.get(element_id)
        if element is None:
            return False
        return not isinstance(element, Concept) or not self._hides(element, _NAMES)

    def _hides(self, element: AnyElement, paths: frozenset[str]) -> bool:
        hidden = self._world.hidden(element)
        if not hidden:
            return False
        outer = {path.partition(".")[0] for path in paths}
        return any(path in paths or path.partition(".")[0] in outer for path in hidden)


def fused(words: Candidates, meaning: Candidates, score_of: Callable[[str], float]) -> Candidates:
    """Two rankings as one, best first, read only as far as the answer needs.

    Args:
        words: best first by words, from 0 to 1.
        meaning: best first by meaning, from 0 to 1.
        score_of: what an element earns by both.
    """
    sources = [words, meaning]
    shares = [WORDS_SHARE, 1 - WORDS_SHARE]
    most = [1.0, 1.0]  # what an element that a ranking has not shown yet can still have in it
    waiting: list[tuple[float, str, str]] = []
    seen: set[str] = set()
    while True:
        for place, source in enumerate(sources):
            found = next(source, None) if most[place] else None
            if found is None:
                most[place] = 0.0
                continue
            element_id, most[place] = found[0], min(most[place], found[1])
            if element_id not in seen:
                seen.add(element_id)
                heapq.heappush(waiting, (-score_of(element_id), element_id[2:], element_id))
        bound = sum(share * score for share, score in zip(shares, most, strict=True))
        while waiting and (-waiting[0][0] >= bound or not any(most)):
            score, _, element_id = heapq.heappop(waiting)
            yield element_id, -score
        if not waiting and not any(most):
            return
