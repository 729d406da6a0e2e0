"""From an access path to candidate ids: which key of which index, for a pattern in a row.

What lives here: index name -> `core.state.indexes` key. What must never live here: whether a candidate matches;
an index may give too many (long values are found by their digest), never too few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from core.model.ids import KINDS, Kind
from core.model.literals import Literal, Ref
from core.query.logic import Edges, Elements, Raw, Row, Term, Var, Walk, known_value
from core.query.plan import Access, Index
from core.query.world import World
from core.state import indexes
from core.state.indexes import kind_key

KeyOf = Callable[
    [Kind, Any], str | None
]  # the kind, and the term's value -> a key, None if nothing can match


def _text(value: Any) -> str | None:  # a Value
    text = value.value if isinstance(value, Literal) else None
    return text if isinstance(text, str) else None


def _by_text(key: Callable[[str], str]) -> KeyOf:
    def build(_: Kind, value: Any) -> str | None:
        text = _text(value)
        return None if text is None else key(text)

    return build


def _by_kind_and_text(key: Callable[[Kind, str], str]) -> KeyOf:
    def build(kind: Kind, value: Any) -> str | None:
        text = _text(value)
        return None if text is None else key(kind, text)

    return build


def _by_ref(key: Callable[[str], str]) -> KeyOf:
    return lambda _, value: key(value.id) if isinstance(value, Ref) else None


_ELEMENT_KEYS: Final[dict[Index, KeyOf]] = {
    "key": _by_text(indexes.any_type_key),
    "name": _by_text(indexes.name_key),
    "canonical_id": _by_text(indexes.canonical_key),
    "client_key": _by_kind_and_text(indexes.client_key),
    "type": _by_text(indexes.type_key),
    "class": _by_kind_and_text(indexes.class_key),
    "state": _by_text(indexes.state_key),
    "facet": lambda _, value: indexes.facet_key(str(value)),
    "proposition": _by_ref(indexes.assertions_key),
    "asserted_by": _by_ref(indexes.actor_key),
    "referrers": _by_ref(indexes.referrers_key),
}


def kinds_of(pattern: Raw) -> tuple[Kind, ...]:
    """The kinds of element that are a pattern's candidates."""
    if isinstance(pattern, Elements):
        return (pattern.kind,)
    if isinstance(pattern, Edges):
        return pattern.field.source.kinds or (("concept",) if pattern.field.source.types else KINDS)
    return ("proposition",)


def keys_of(pattern: Raw, index: Index, values: Sequence[Any]) -> list[str]:
    """The index keys under which the candidates stand; none if nothing can match these values."""
    if index == "kind":
        return [kind_key(kind) for kind in kinds_of(pattern)]
    if isinstance(pattern, Elements):
        if index == "type+key":
            ref, key = _text(values[0]), _text(values[1])
            return [] if ref is None or key is None else [indexes.concept_key(ref, key)]
        found = _ELEMENT_KEYS[index](pattern.kind, values[0])
        return [] if found is None else [found]
    if isinstance(pattern, Edges):
        return [indexes.referrers_key(values[0].id)] if isinstance(values[0], Ref) else []
    return list(_tuple_keys(index, values))


def _tuple_keys(index: Index, values: Sequence[Any]) -> Iterable[str]:
    if index == "predicate":
        return [indexes.predicate_key(ref) for ref in _predicates(values)]
    first = values[0]
    if index in {"tuple", "subject+predicate", "subject"}:
        if not isinstance(first, Ref):
            return []
        if index == "subject":
            return [indexes.subject_key(first.id)]
        if index == "subject+predicate":
            return [indexes.subject_key(first.id, ref) for ref in _predicates(values[1:])]
        obj = values[1]
        if not isinstance(obj, (Ref, Literal)):
            return []
        return [indexes.tuple_key(first.id, ref, obj) for ref in _predicates(values[2:])]
    if not isinstance(first, (Ref, Literal)):
        return []
    if index == "object":
        return [indexes.object_key(first)]
    return [indexes.object_key(first, ref) for ref in _predicates(values[1:])]


def _predicates(values: Sequence[Any]) -> Iterable[str]:
    for value in values:
        text = value if isinstance(value, str) else _text(value)
        if text is not None:
            yield text


def _all_kinds(world: World) -> int:
    return sum(world.count(kind_key(kind)) for kind in KINDS)


def count_of(world: World, pattern: Raw, index: Index, parts: Sequence[Term | str]) -> int:
    """About how many candidates constant parts give; never too few."""
    if isinstance(pattern, Walk) and index == "kind":
        return _all_kinds(world)
    return sum(world.count(key) for key in keys_of(pattern, index, parts))


def candidates(world: World, pattern: Raw, access: Access) -> Callable[[Row], Sequence[str]]:
    """The candidate ids of a pattern as a function of a row."""
    index, parts = access.index, access.parts
    if index in {"id", "bound"}:
        (term,) = parts
        return _one(term)  # type: ignore[arg-type]  # these indexes have a term
    if not any(isinstance(part, Var) for part in parts):
        return lambda _: _found(world, keys_of(pattern, index, parts))
    return lambda row: _found(
        world,
        keys_of(
            pattern, index, [part if isinstance(part, str) else known_value(part, row) for part in parts]
        ),
    )


def _one(term: Term) -> Callable[[Row], Sequence[str]]:
    def ids(row: Row) -> Sequence[str]:
        value = known_value(term, row)
        if isinstance(value, Ref):
            return (value.id,)
        text = _text(value)  # `id: "C-..."` is written as text
        return () if text is None else (text,)

    return ids


def _found(world: World, keys: list[str]) -> Sequence[str]:
    if len(keys) == 1:
        return world.view.find(keys[0])
    return [found for key in keys for found in world.view.find(key)]
