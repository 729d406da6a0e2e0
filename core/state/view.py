"""`View`: what a reader may ask of a state, whatever it is made of.

Three things answer as a View: a set of segments read lazily from storage (`core.storage`), a `Layer` of newer
elements over another View, and so the layer a transaction writes into. A query never knows which.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from core.model.elements import AnyElement
from core.model.ids import Kind


class Counts(msgspec.Struct, frozen=True):
    """How many elements of each kind there are, stubs included."""

    concept: int = 0
    proposition: int = 0
    assertion: int = 0
    evidence: int = 0
    activity: int = 0

    def plus(self, kind: Kind, amount: int) -> Counts:
        """These counts with `amount` more of one kind."""
        return msgspec.structs.replace(self, **{kind: getattr(self, kind) + amount})


class TextStats(msgspec.Struct, frozen=True):
    """What ranking needs to know of the whole: how many texts there are and how many terms in all."""

    documents: int = 0
    terms: int = 0


class View(Protocol):
    """Lookups over one immutable state. Ids come in order of creation; nothing here filters by state."""

    @property
    def counts(self) -> Counts:
        """Elements by kind."""

    @property
    def text_stats(self) -> TextStats:
        """Size of the text index."""

    def get(self, element_id: str) -> AnyElement | None:
        """The element, or None if there is none of that id."""

    def find(self, key: str) -> Sequence[str]:
        """Ids of the elements that have an index key (`core.state.indexes`)."""

    def count(self, key: str) -> int:
        """About how many `find` would return: never too few, and cheap. For planning only."""

    def ids(self, kind: Kind, after: str | None = None) -> Iterator[str]:
        """Every id of a kind, after a given one; lazily."""

    def word(self, term: str) -> Sequence[tuple[str, int]]:
        """Ids of the elements whose text has a term, with how often."""

    def text_length(self, element_id: str) -> int:
        """How many terms an element's text has; 0 if it has none."""
