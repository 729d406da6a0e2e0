"""`Sight`: a state as one caller may see it, so that nothing hidden enters a ranking, a prompt or an answer.

What lives here: a View that leaves out what the caller may not see, and an element of which it may not read all that
it says: a prompt has no half elements. What must never live here: who may see what (`core.authority`,
`core.governance`). A caller without restrictions gets the state itself, and pays nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from core.authority import Principal, visible
from core.model.elements import AnyElement
from core.model.ids import Kind
from core.state.view import Counts, TextStats, View

_FRAME: Final = frozenset({"_system", "governance", "retention"})
"""Fields that say nothing of what an element holds, and which recall does not tell."""


def is_limited(principal: Principal) -> bool:
    """Whether anything may be withheld from a caller, as `core.governance.admit` has it."""
    access = principal.access
    if access is None:
        return bool(principal.hidden or principal.projected)
    return not (access.searches_all and access.unmasked)


def seen_by(view: View, principal: Principal) -> View:
    """A state as an admitted caller sees it."""
    return Sight(view, principal) if is_limited(principal) else view


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
        return found if found is not None and self._shows(found) else None

    def _shows(self, element: AnyElement) -> bool:
        access = self._principal.access
        if access is None:
            return visible(self._principal, element)
        return access.finds(element) and all(
            path.partition(".")[0] in _FRAME for path in access.hidden(element)
        )

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
