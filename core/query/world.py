"""`World`: the state as one query may see it, and what looking at it costs.

What lives here: the visibility predicate, asked before anything is matched or counted (KIP §88.6), and the bounds
on work. What must never live here: patterns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, get_args

from core.errors import NoemaError
from core.governance.nobody import NOBODY
from core.model.elements import AnyElement, Concept, Json, State
from core.query.context import QueryContext
from core.query.fields import Path, read_field
from core.query.wire import OPAQUE, conceal, to_wire
from core.schema.environment import Environment
from core.state.indexes import referrers_key, state_key
from core.state.view import View

_CHECK_EVERY: Final = 1024  # rows between two looks at the clock: a few milliseconds of work
_PORTION: Final = 64  # candidates that are paid for at once
_NONE: Final[frozenset[str]] = frozenset()
_TUPLE: Final = frozenset({"subject", "predicate_ref", "object"})
_REMEMBERED: Final = 8_192  # elements kept for the rest of the query: a decoded one is not decoded again


class World:
    """One view under one context. Made for one query, thrown away with it."""

    def __init__(self, view: View, env: Environment, context: QueryContext) -> None:
        self.view = view
        self.env = env
        self.context = context
        self.open = context.visible is None  # everything is visible
        self._visible = context.visible
        self._left = context.limits.rows_examined
        self._until_check = 1
        self._read: dict[str, AnyElement] = {}
        self._inactive: frozenset[str] | None = None
        self._counts: dict[str, int] = {}
        self._merges: bool | None = None

    # --- what exists for the caller

    def get(self, element_id: str) -> AnyElement | None:
        """The element, or None if there is none that the caller may know of."""
        element = self.stored(element_id)
        if self._visible is None:
            return element
        seen = self._visible(NOBODY if element is None else element)
        return element if seen else None

    def stored(self, element_id: str) -> AnyElement | None:
        """The element, whoever asks; for what the engine must know itself, such as merges."""
        element = self._read.get(element_id)
        if element is None:
            element = self.view.get(element_id)
            if element is not None and len(self._read) < _REMEMBERED:
                self._read[element_id] = element
        return element

    def sees(self, element_id: str) -> bool:
        """Whether a reference to this id may be shown: to what is visible, and to what is gone for good."""
        return self.open or self.get(element_id) is not None or self.stored(element_id) is None

    def find(self, key: str) -> Sequence[str]:
        """Ids under an index key, all of which will be looked at."""
        found = self.view.find(key)
        self.spend(len(found))
        return found

    def count(self, key: str) -> int:
        """About how many ids stand under an index key, never too few; looked up once in a query."""
        known = self._counts.get(key)
        if known is None:
            known = self._counts[key] = self.view.count(key)
        return known

    @property
    def inactive(self) -> frozenset[str]:
        """Ids of every element that is not active, from the index of states."""
        if self._inactive is None:
            away = (state for state in get_args(State) if state != "active")
            self._inactive = frozenset(found for state in away for found in self.find(state_key(state)))
        return self._inactive

    def each(self, ids: Sequence[str]) -> Iterable[str]:
        """Candidates one by one; those never looked at cost nothing."""
        if len(ids) <= _PORTION:
            self.spend(len(ids))
            return ids
        return self._each(ids)

    def _each(self, ids: Sequence[str]) -> Iterator[str]:
        for place, found in enumerate(ids):
            if place % _PORTION == 0:
                self.spend(_PORTION)
            yield found

    def tells(self, proposition: AnyElement) -> bool:
        """Whether the caller may read what a Proposition says; one who may only know that it is there may not."""
        return not (self.hidden(proposition) or _NONE) & _TUPLE

    def hidden(self, element: AnyElement) -> frozenset[str] | None:
        """Dot paths of an element's fields that the caller may not read."""
        fields = self.context.hidden_fields
        return None if fields is None else fields(element)

    def field(self, element: AnyElement, path: Path) -> Any:  # JSON with Refs inside
        """The value at a checked path of an element, as the caller may see it."""
        value = read_field(element, path, self.context.space_id, self.hidden(element))
        return value if self.open or path[0] in OPAQUE else conceal(value, self.sees)

    def wire(self, element: AnyElement) -> dict[str, Json]:
        """The element as JSON, as the caller may see it."""
        return to_wire(
            element,
            self.context.space_id,
            hidden=self.hidden(element),
            seen=None if self.open else self.sees,
        )

    # --- identity after merges

    def canonical(self, element_id: str) -> str:
        """The id a Concept resolves to after merges (KIP §11.1), as far as the caller may see; any other is itself.

        Two Concepts that are one only through a third, of which the caller may not know, are two to them (KIP §30.4).
        """
        if not self.has_merges:
            return element_id
        known = element_id
        while True:  # merges never form a circle (KIP §11.1)
            found = self.stored(known)
            if not isinstance(found, Concept) or found.merged_into is None:
                return known
            if not self.open and self.get(found.merged_into) is None:
                return known
            known = found.merged_into

    @property
    def has_merges(self) -> bool:
        """Whether any Concept of the space has been merged; most spaces need never look further."""
        if self._merges is None:
            self._merges = self.view.count(state_key("merged")) > 0
        return self._merges

    def aliases(self, element_id: str) -> list[str]:
        """Every id that resolves to the same Concept as this one, itself included, the survivor first."""
        survivor = self.canonical(element_id)
        if not self.has_merges:
            return [survivor]
        out = [survivor]
        for known in out:
            keys = referrers_key(known), state_key("merged")
            for found in self.find(min(keys, key=self.view.count)):
                element = self.get(found)
                if isinstance(element, Concept) and element.merged_into == known and found not in out:
                    out.append(found)
        return out

    # --- what it costs

    def spend(self, rows: int = 1) -> None:
        """Account for rows looked at.

        Raises:
            NoemaError: ResultLimitExceeded beyond the bound; ExecutionTimeout once the deadline has passed.
        """
        self._left -= rows
        self._until_check -= rows
        if self._left < 0:
            limit = self.context.limits.rows_examined
            raise NoemaError(
                "ResultLimitExceeded",
                f"the query looks at more than {limit} records",
                hint="Name a key, an id or a type, so that fewer records have to be looked at.",
                details={"limit": limit},
            )
        if self._until_check <= 0:
            self._until_check = _CHECK_EVERY
            if self.context.overdue():
                raise NoemaError("ExecutionTimeout", "the query took longer than its deadline allows")
