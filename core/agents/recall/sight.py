"""`Sight`: a state as one caller may see it, so that nothing hidden enters a ranking, a prompt or an answer.

What lives here: a View that leaves out what the caller may not see. What must never live here: who may see what
(`core.authority`). A caller without restrictions gets the state itself, and pays nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.authority import Principal, visible
from core.model.elements import AnyElement
from core.model.ids import Kind
from core.state.view import Counts, TextStats, View


def seen_by(view: View, principal: Principal) -> View:
    """A state as a caller sees it."""
    return Sight(view, principal) if principal.hidden or principal.projected else view


class Sight:
    """A View of what is visible. The counts and the size of the index are the state's: they only weigh."""

    def __init__(self, view: View, principal: Principal) -> None:
        self._view = view
        self._principal = principal

    @property
    def counts(self) -> Counts:
        """As the state's."""
        return self._view.counts

    @property
    def text_stats(self) -> TextStats:
        """As the state's."""
        return self._view.text_stats

    def get(self, element_id: str) -> AnyElement | None:
        """The element, if it is visible."""
        found = self._view.get(element_id)
        return found if found is not None and visible(self._principal, found) else None

    def _sees(self, element_id: str) -> bool:
        return self.get(element_id) is not None

    def find(self, key: str) -> Sequence[str]:
        """Ids of visible elements that have an index key."""
        return [element for element in self._view.find(key) if self._sees(element)]

    def count(self, key: str) -> int:
        """As the state's: never too few."""
        return self._view.count(key)

    def ids(self, kind: Kind, after: str | None = None) -> Iterator[str]:
        """Every visible id of a kind."""
        return (element for element in self._view.ids(kind, after) if self._sees(element))

    def word(self, term: str) -> Sequence[tuple[str, int]]:
        """Ids of visible elements whose text has a term."""
        return [pair for pair in self._view.word(term) if self._sees(pair[0])]

    def text_length(self, element_id: str) -> int:
        """How many terms the text of a visible element has."""
        return self._view.text_length(element_id) if self._sees(element_id) else 0
