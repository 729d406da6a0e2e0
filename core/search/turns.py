"""Turns: the order in which things were said.

Turns that one commit filed are one session, in the order of their ids. So the order is known from ids alone, and
only of the sessions somebody asks for: nothing is built that grows with the memory. What must never live here: what
a turn is worth (`core.search.fusion`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from core.model.elements import AnyElement
from core.model.ids import Kind, sort_key
from core.search.bm25 import Postings

_SESSION: Final = slice(2, 10)  # the part of an id that names the commit


class Memory(Postings, Protocol):
    """What is asked of a View (`core.state.view`)."""

    def get(self, element_id: str) -> AnyElement | None:
        """An element."""

    def ids(self, kind: Kind, after: str | None = None) -> Iterable[str]:
        """Ids of a kind in order, after a given one."""


def session_of(element_id: str) -> str:
    """The commit that filed an element, as its id has it: what is of one commit is one session."""
    return element_id[_SESSION]


class Turns:
    """The order of the turns of one state, looked up session by session and kept for one question."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._sessions: dict[str, tuple[str, ...]] = {}

    def session(self, commit: str) -> tuple[str, ...]:
        """The turns that a commit filed, in order."""
        found = self._sessions.get(commit)
        if found is None:
            taken = []
            for element in self._memory.ids("evidence", f"E-{commit}"):
                if element[_SESSION] != commit:
                    break
                taken.append(element)
            found = self._sessions[commit] = tuple(taken)
        return found

    def around(self, element_id: str) -> tuple[str, ...]:
        """A turn with its neighbours of the same session."""
        turns = self.session(session_of(element_id))
        place = turns.index(element_id)
        return turns[max(0, place - 1) : place + 2]

    def before(self, element_id: str) -> str | None:
        """The turn before, of the same session."""
        turns = self.session(session_of(element_id))
        place = turns.index(element_id)
        return turns[place - 1] if place else None


def is_among(ids: Sequence[str], element: str) -> bool:
    """Whether an id is among some in order of creation, of which only a few are looked at."""
    at = bisect_left(ids, sort_key(element), key=sort_key)
    return at < len(ids) and ids[at] == element
