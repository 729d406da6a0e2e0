"""Grounding: which elements fit some words, best first, for one caller (KIP §66, META §84-112).

What lives here: candidates and their scores, over all five kinds. What must never live here: how a hit is shown
(`search`), and any reading of a score as confidence or belief: it is relevance to these words, nothing else.

Concepts, Evidence and Activities have words of their own in the text index. What a Proposition or an Assertion
says stands mostly in other elements, so their words are put together when asked (`statements`). All are weighed
by BM25 with one weight per word, so that all kinds stand in one order. A score is given as the share of the best
that any text could earn, which makes it a number between 0 and 1 that a THRESHOLD can name: about 0.45 for a text
of average length that has every word once.

An element that the caller may not see takes no part: not in the candidates, not in the frequencies of words. And
for such a caller the index's size, which hidden texts are part of, is replaced by a constant (KIP §66, §88.6).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from core.meta.meaning import WORDS_SHARE, Candidates, Meaning, fused
from core.meta.statements import Statements
from core.model.elements import AnyElement, Concept
from core.model.ids import LETTER, Kind
from core.query.world import World
from core.search.bm25 import Basis, basis_of, score
from core.search.text import texts_of, words

RANKING: Final = "noema-bm25-1"
MEANING: Final = "noema-dense-1"
_NEUTRAL: Final = Basis(documents=1_000_000, average=12.0)  # for callers from whom something is hidden
_TEXTS: Final = frozenset({"concept", "evidence", "activity"})  # kinds with words of their own


class Probe(msgspec.Struct, frozen=True):
    """What is looked for: distinct terms, in which kinds, of which type or predicate."""

    terms: tuple[str, ...]
    kinds: frozenset[Kind]
    type_ref: str | None = None
    predicate_ref: str | None = None


class Hit(msgspec.Struct, frozen=True):
    """An element that fits. `merged`: the merged Concept whose words led to it, where it was found by another id."""

    element: AnyElement
    score: float
    merged: str | None = None


class Grounding:
    """One search over one view. `cut` says afterwards whether some statements were left unranked.

    Args:
        world: the view as the caller may see it.
        probe: what is looked for.
        meaning: what lies near to it; None for a search by words alone.
        by_words: False for a search by meaning alone.
    """

    def __init__(
        self, world: World, probe: Probe, meaning: Meaning | None = None, *, by_words: bool = True
    ) -> None:
        self.world = world
        self.probe = probe
        self.cut = False
        self._meaning = meaning
        self._by_words = by_words
        open_to_all = world.open and world.context.hidden_fields is None
        basis = basis_of(world.view) if open_to_all else _NEUTRAL
        self._letters = "".join(LETTER[kind] for kind in sorted(probe.kinds & _TEXTS))
        lending = "CP" if probe.kinds - _TEXTS else ""  # what statements take their words from
        self._scores = score(
            world.view,
            probe.terms if by_words else (),
            basis,
            letters=self._letters + lending,
            admits=None if open_to_all else self._admits,
            times=None if world.context.hidden_fields is None else self._times,
            length=None if world.context.hidden_fields is None else self._length,
        )
        world.spend(len(self._scores.bounds))

    def hits(self, threshold: float) -> Iterator[Hit]:
        """Everything that fits at least so well, best first; ties in order of creation."""
        seen: set[str] = set()
        for element_id, share in self._candidates():
            self.world.spend()
            if share < threshold:
                return
            hit = self._hit(element_id, share)
            if hit is not None and hit.element.id not in seen:
                seen.add(hit.element.id)
                yield hit

    def _candidates(self) -> Candidates:
        """Ids and scores from 0 to 1, best first: by words, by meaning, or by both."""
        if self._meaning is None:
            return self._worded(self._statements())
        if not self._by_words:
            return self._meaning.ranked()
        statements, meaning = self._statements(), self._meaning

        def score_of(element_id: str) -> float:
            best = self._scores.best_possible
            if element_id[0] in self._letters:
                earned = self._scores.earned(element_id)
            else:
                earned = statements.get(element_id, 0.0)
            told = WORDS_SHARE * earned / best if best else 0.0
            return told + (1 - WORDS_SHARE) * meaning.of(element_id)

        return fused(self._worded(statements), meaning.ranked(), score_of)

    def _worded(self, statements: dict[str, float]) -> Candidates:
        best = self._scores.best_possible
        if best:
            for element_id, earned in self._scores.ranked(self._letters, statements):
                yield element_id, earned / best

    def _statements(self) -> dict[str, float]:
        """What every candidate among the statements earned."""
        if not self.probe.kinds - _TEXTS:
            return {}
        statements = Statements(self.world, self._scores, self.probe.predicate_ref)
        out: dict[str, float] = {}
        propositions = statements.propositions()
        if "proposition" in self.probe.kinds:
            out.update(propositions)
        if "assertion" in self.probe.kinds:
            out.update(statements.assertions(propositions))
        self.cut = statements.cut
        return out

    def _hit(self, element_id: str, share: float) -> Hit | None:
        """The candidate as a hit, if it is still in use and of the type asked for."""
        element = self.world.get(element_id)
        if element is None:
            return None
        merged = None
        if isinstance(element, Concept) and element.system.state == "merged":
            merged = element_id
            element = self.world.get(self.world.canonical(element_id))
        if element is None or element.system.state != "active":
            return None
        if self.probe.type_ref is not None and (
            not isinstance(element, Concept) or element.schema_ref != self.probe.type_ref
        ):
            return None
        return Hit(element, share, merged)

    def _admits(self, element_id: str, term: str) -> bool:
        """Whether the caller may know that an element has a term."""
        return self._times(element_id, term, 1) > 0

    def _times(self, element_id: str, term: str, often: int) -> int:
        """How often an element has a term for the caller; 0 where it does not exist for them."""
        element = self.world.get(element_id)
        if element is None:
            return 0
        hidden = self.world.hidden(element)
        if not _hides_texts(hidden):
            return often
        return sum(words(text).count(term) for _, text in visible_texts(element, hidden))

    def _length(self, element_id: str) -> int:
        """How many terms an element's text has for the caller."""
        element = self.world.get(element_id)
        hidden = None if element is None else self.world.hidden(element)
        if element is None or not _hides_texts(hidden):
            return self.world.view.text_length(element_id)
        return sum(len(words(text)) for _, text in visible_texts(element, hidden))


def _hides_texts(hidden: frozenset[str] | None) -> bool:
    """Whether some hidden field can hold words; where an element comes from has none."""
    return hidden is not None and any(not path.startswith("_system") for path in hidden)


def visible_texts(element: AnyElement, hidden: frozenset[str] | None) -> list[tuple[str, str]]:
    """The texts an element is found by and the caller may read, each with the dot path of its field."""
    found = texts_of(element)
    return [(path, text) for path, text in found if not _is_hidden(path, hidden)] if hidden else found


def _is_hidden(path: str, hidden: frozenset[str]) -> bool:
    outer = path.partition(".")[0]
    return path in hidden or outer in hidden or (outer == "payload" and "payload.inline" in hidden)
