"""Statements by their words: Propositions and Assertions are found through what they are about (KIP §66.2).

What lives here: candidates out of the indexes, and what a statement's words earn. What must never live here: the
text of Concepts and Evidence, which the text index has.

The words of a Proposition are those of its subject's and object's names, of its predicate's name, and of a
Literal object; those of an Assertion, its Proposition's and its actor's name. They are put together when asked,
never stored: a Concept that is renamed or merged needs no statement reindexed, and none can be found by a name
that is gone.

The work is bounded. Candidates come from the postings of Concepts whose name has a word, of predicates whose name
has one, and of Literals, the shortest list first, and within a list the newest first. If more fit than are looked
at, `cut` says so.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from typing import Final

from core.model.elements import AnyElement, Assertion, Concept, Proposition
from core.model.literals import Ref
from core.query.world import World
from core.schema.definitions import split_ref
from core.search.bm25 import Scores, weight
from core.search.text import words
from core.state.indexes import actor_key, assertions_key, object_key, predicate_key, subject_key

MAX_CONCEPTS: Final = 100  # whose statements are looked at, best names first
MAX_STATEMENTS: Final = 500  # of each kind that are weighed: a few milliseconds of work
_AVERAGE: Final = 8.0  # words of a statement, against which a longer one is held back
_LENT: Final = 0.75  # the words of a statement are lent from its ends: what bears a name comes before it
_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")  # worksFor, works_for -> works for
_DEPTH: Final = 2  # statements about statements: how far their words count

_NOTHING: Final[frozenset[str]] = frozenset()


class Statements:
    """Statements that have words of one query, in one view."""

    def __init__(self, world: World, scores: Scores, predicate_ref: str | None) -> None:
        self.world = world
        self.cut = False
        self._weights = scores.weights
        self._asked = frozenset(scores.weights)
        self._predicate = predicate_ref
        self._labels: dict[str, frozenset[str]] = {}
        self._named: dict[str, frozenset[str]] = {}
        self._concepts = list(self._matching(scores))
        self._literals = self._best(scores, "P", MAX_STATEMENTS)

    # --- Propositions

    def propositions(self) -> dict[str, float]:
        """What each Proposition with a word of the query earned."""
        earned: dict[str, float] = {}
        for candidate in self._taken(self._proposition_keys(), self._literals):
            element = self.world.get(candidate)
            if not isinstance(element, Proposition) or not self._is_wanted(element):
                continue
            gain = self._gain(self._said(element))
            if gain > 0:
                earned[candidate] = gain
        return earned

    def _is_wanted(self, element: Proposition) -> bool:
        return element.system.state == "active" and self._predicate in {None, element.predicate_ref}

    def _proposition_keys(self) -> Iterator[str]:
        for concept in self._concepts:
            yield subject_key(concept, self._predicate)
            yield object_key(Ref(concept), self._predicate)
        refs = [definition.ref for definition in self.world.env.definitions("predicate")]
        for ref in refs if self._predicate is None else [self._predicate]:
            if self._asked & self._predicate_words(ref):
                yield predicate_key(ref)

    # --- Assertions

    def assertions(self, propositions: dict[str, float]) -> dict[str, float]:
        """What each Assertion about one of these Propositions, or by an actor with such a name, earned."""
        about = heapq.nlargest(MAX_STATEMENTS, propositions, key=propositions.__getitem__)
        keys = [assertions_key(proposition) for proposition in about]
        if self._predicate is None:
            keys.extend(actor_key(concept) for concept in self._concepts)
        earned: dict[str, float] = {}
        for candidate in self._taken(iter(keys), []):
            element = self.world.get(candidate)
            if not isinstance(element, Assertion) or element.system.state != "active":
                continue
            proposition = self.world.get(element.proposition)
            said = self._said(proposition) if isinstance(proposition, Proposition) else _NOTHING
            gain = self._gain(said | self._label(element.asserted_by))
            if gain > 0:
                earned[candidate] = gain
        return earned

    # --- candidates

    def _matching(self, scores: Scores) -> Iterator[str]:
        """Concepts whose name has a word of the query, and those merged with them."""
        seen: set[str] = set()
        for found in self._best(scores, "C", MAX_CONCEPTS):
            if self._asked & self._label(found):
                for concept in self.world.aliases(found):
                    if concept not in seen:
                        seen.add(concept)
                        yield concept

    def _best(self, scores: Scores, letter: str, most: int) -> list[str]:
        """The elements of a kind whose own text fits best."""
        found = [(bound, element) for element, bound in scores.bounds.items() if element[0] == letter]
        self.cut = self.cut or len(found) > most
        return [element for _, element in heapq.nlargest(most, found)]

    def _taken(self, keys: Iterator[str], first: list[str]) -> Iterator[str]:
        """Distinct candidates as far as the bound allows: those given, then those of the shortest lists."""
        taken: set[str] = set()
        lists = sorted((self._found(key) for key in dict.fromkeys(keys)), key=len)
        for ids in (first, *map(reversed, lists)):
            for found in ids:
                if found in taken:
                    continue
                if len(taken) == MAX_STATEMENTS:
                    self.cut = True
                    return
                taken.add(found)
                yield found
            self.world.spend()

    def _found(self, key: str) -> Sequence[str]:
        """Ids under a key; where something is hidden, those that are not, so that the bound tells nothing of it."""
        found = self.world.view.find(key)
        if self.world.open:
            return found
        self.world.spend(len(found))
        return [each for each in found if self.world.get(each) is not None]

    # --- words

    def _gain(self, said: frozenset[str]) -> float:
        one = _LENT * weight(1, len(said), _AVERAGE)
        return sum(self._weights[term] * one for term in self._asked & said)

    def _said(self, proposition: Proposition, depth: int = 0) -> frozenset[str]:
        if not self.world.tells(proposition):
            return _NOTHING
        obj = proposition.object
        target = self._label(obj.id, depth) if isinstance(obj, Ref) else frozenset(words(str(obj.value)))
        return (
            self._label(proposition.subject, depth)
            | self._predicate_words(proposition.predicate_ref)
            | target
        )

    def _label(self, element_id: str, depth: int = 0) -> frozenset[str]:
        """The words of an end's name, its survivor's included; of a Proposition as an end, what it says."""
        known = self._labels.get(element_id)
        if known is None:
            known = self._labels[element_id] = self._named_by(self.world.get(element_id), depth)
        return known

    def _named_by(self, element: AnyElement | None, depth: int) -> frozenset[str]:
        if isinstance(element, Proposition) and depth < _DEPTH:
            return self._said(element, depth + 1)
        if not isinstance(element, Concept):
            return _NOTHING
        hidden = self.world.hidden(element) or _NOTHING
        texts = [] if "name" in hidden else [element.name or ""]
        texts.extend(() if "aliases" in hidden else element.aliases)
        own = frozenset(word for text in texts for word in words(text))
        if element.merged_into is None:
            return own
        survivor = self.world.canonical(element.id)
        return own if survivor == element.id else own | self._label(survivor, depth)

    def _predicate_words(self, ref: str) -> frozenset[str]:
        known = self._named.get(ref)
        if known is None:
            parts = split_ref(ref)
            known = self._named[ref] = frozenset(words(_HUMPS.sub(" ", parts[1] if parts else ref)))
        return known
