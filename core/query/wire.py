"""The wire form of an element: what a bare variable projects, and what META and receipts show (KIP §6.2).

What lives here: element -> JSON. What must never live here: who may see it; the caller says what is hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from core.model.elements import KIND_OF_TYPE, AnyElement, Json
from core.model.literals import Ref
from core.query.fields import FIELDS, without
from core.query.values import IdText, plain

_OPTIONAL: Final = frozenset({"client_key", "merged_into", "structural"})
OPAQUE: Final = frozenset({"attributes", "facets", "payload"})
"""Fields that hold an author's own JSON: what looks like a reference there is none (KIP §8)."""

Seen = Callable[[str], bool]  # whether an element of that id exists for the caller


def to_wire(
    element: AnyElement, space_id: str, *, hidden: frozenset[str] | None = None, seen: Seen | None = None
) -> dict[str, Json]:
    """An element as JSON: the common envelope and its kind's fields (KIP §6.2, §10.2, §12.2, §13.2, §15.3, §16.3).

    What need not be there (`client_key`, `merged_into`, `structural`) is left out where it is empty.

    Args:
        element: of any kind.
        space_id: of the space it stands in.
        hidden: dot paths of fields that are left out.
        seen: for callers who may not see everything; references to what it denies are left out.
    """
    return dict(_members(element, space_id, hidden, seen))


def _members(
    element: AnyElement, space_id: str, hidden: frozenset[str] | None, seen: Seen | None
) -> Iterator[tuple[str, Json]]:
    yield "id", element.id
    yield "kind", KIND_OF_TYPE[type(element)]
    yield "space_id", space_id
    for name, getter in FIELDS[type(element)].items():
        if name in {"id", "kind"} or (hidden and name in hidden):
            continue
        value = getter(element)
        if name in _OPTIONAL and not value:
            continue
        if hidden:
            value = without(value, name, hidden)
        if seen is not None and name not in OPAQUE:
            value = conceal(value, seen)
        yield name, plain(value)


def conceal(value: Any, seen: Seen) -> Any:  # JSON with Refs inside
    """A field's value without references to what the caller may not see (KIP §30.4)."""
    if isinstance(value, Ref):
        return value if seen(value.id) else None
    if isinstance(value, list):
        return [conceal(item, seen) for item in value if _may_show(item, seen)]
    if isinstance(value, dict):
        return {name: conceal(item, seen) for name, item in value.items()}
    return value


def _may_show(item: Any, seen: Seen) -> bool:
    if isinstance(item, Ref):
        return seen(item.id)
    if isinstance(item, IdText):
        return seen(item)
    if isinstance(item, dict) and isinstance(item.get("id"), str):
        return seen(item["id"])
    return True
