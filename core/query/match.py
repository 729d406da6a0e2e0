"""The matcher: extends a row by every match of a pattern, one small generator for each pattern family.

What lives here: `matcher`, which turns a plan step into a function of a row. What must never live here: the order
of steps, OPTIONAL, NOT and UNION (`solve`), paths (`walk`).

A row is a list of values, one slot a variable. A generator never changes the row it is given. A variable that has
a value is compared; None, the mark of an OPTIONAL that found nothing, matches nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from core.model.elements import (
    Activity,
    AnyElement,
    Assertion,
    Concept,
    Evidence,
    Proposition,
)
from core.model.ids import LETTER, Kind, sort_key
from core.model.literals import Literal, Ref
from core.query.access import candidates
from core.query.context import Edge, Value
from core.query.fields import FIELDS, MANY_REFS, SINGLE_REFS
from core.query.logic import (
    UNBOUND,
    Edges,
    Elements,
    Items,
    Known,
    Members,
    Raw,
    Row,
    Term,
    Test,
    Tuples,
    Var,
    Walk,
    Want,
)
from core.query.plan import Access
from core.query.values import as_value, instant_of, joins, same
from core.query.walk import walker
from core.query.world import World

Extend = Callable[[Row], Iterator[Row]]
CLASS_OF: dict[Kind, type] = {
    "concept": Concept,
    "proposition": Proposition,
    "assertion": Assertion,
    "evidence": Evidence,
    "activity": Activity,
}


def matcher(world: World, pattern: Raw, access: Access, *, after: str | None = None) -> Extend:
    """The function that extends a row by every match of a raw pattern; of elements, those behind `after`."""
    if isinstance(pattern, Elements):
        return _match_elements(world, pattern, access, after)
    if isinstance(pattern, Tuples):
        return _match_tuples(world, pattern, access)
    if isinstance(pattern, Known):
        return _match_known(world, pattern)
    if isinstance(pattern, Edges):
        return _match_edges(world, pattern, access)
    return _match_walk(world, pattern)


# --- unification


def bind(row: Row, slot: int, value: Value) -> Row | None:
    """The row with a variable bound, or None if it is bound to something else. A missing value binds nothing."""
    current = row[slot]
    if current is UNBOUND:
        row = row.copy()
        row[slot] = value
        return row
    return row if joins(current, value) else None


def bind_term(row: Row, term: Term, value: Value) -> Row | None:
    """The row in which a term stands for a value, or None."""
    if isinstance(term, Var):
        return bind(row, term.slot, value)
    return row if joins(term, value) else None


def unify(row: Row, want: Want, found: Any) -> Row | None:  # a JSON value or a Ref
    """The row in which a wanted value is what was found, or None."""
    if isinstance(want, Var):
        value = as_value(found)
        if isinstance(value, Literal) and value.value is None:
            return None  # a variable stands for what is there
        return bind(row, want.slot, value)
    if isinstance(want, Items):
        if not isinstance(found, list) or len(found) != len(want.items):
            return None
        for item, value in zip(want.items, found, strict=True):
            extended = unify(row, item, value)
            if extended is None:
                return None
            row = extended
        return row
    if isinstance(want, Members):
        if not isinstance(found, dict):
            return None
        for name, member in want.members:
            extended = unify(row, member, found.get(name))
            if extended is None:
                return None
            row = extended
        return row
    return row if same(want, found) else None


# --- elements

Check = Callable[[AnyElement], bool]


def _match_elements(world: World, pattern: Elements, access: Access, after: str | None) -> Extend:
    every = candidates(world, pattern, access)
    ids = every if after is None else lambda row: _behind(every(row), after)
    cls = CLASS_OF[pattern.kind]
    any_state, slot = pattern.any_state, pattern.var.slot
    # then every candidate has the type, which is never cut short; where fields are hidden, it may be one of them
    by_type = world.context.hidden_fields is None and access.index in {"type", "type+key"}
    checks = [
        _check(world, cls, test)
        for test in pattern.tests
        if _is_constant(test.want) and not (by_type and test.path == ("schema_ref",))
    ]
    binders = [_binder(world, test) for test in pattern.tests if not _is_constant(test.want)]
    plain = world.open and world.context.hidden_fields is None
    if plain and not checks and not binders and access.index in {"type", "kind"}:
        return _listed(world, slot, ids, LETTER[pattern.kind])

    def extend(row: Row) -> Iterator[Row]:
        for found in world.each(ids(row)):
            element = world.get(found)
            if type(element) is not cls:
                continue
            known = cast("AnyElement", element)
            if not any_state and known.system.state != "active":
                continue
            for check in checks:
                if not check(known):
                    break
            else:
                extended = bind(row, slot, Ref(known.id))
                if extended is None:
                    continue
                if binders:
                    yield from _bind_all(binders, 0, extended, known)
                else:
                    yield extended

    return extend


def _listed(world: World, slot: int, ids: Callable[[Row], Sequence[str]], letter: str) -> Extend:
    """Active elements of a type or kind, as the index lists them: counting them reads none of them.

    The one place where an index is believed (docs/kip.md, "What an index may get wrong"): an id tells its kind, so
    only a Concept under another key of the same 64-bit fingerprint could be listed wrongly.
    """

    def extend(row: Row) -> Iterator[Row]:
        for found in world.each(ids(row)):
            if found[0] == letter and found not in world.inactive:
                extended = bind(row, slot, Ref(found))
                if extended is not None:
                    yield extended

    return extend


def _behind(ids: Sequence[str], after: str) -> Sequence[str]:
    """The rest of a list of ids, which stand in order of creation."""
    return ids[bisect_right(ids, sort_key(after), key=sort_key) :]


def _is_constant(want: Want) -> bool:
    return isinstance(want, (Ref, Literal))


def _check(world: World, cls: type, test: Test) -> Check:
    """A test whose value is known before any row."""
    ids = _referred(world, test)
    want = test.want
    if ids is not None:
        if isinstance(want, Ref):
            wanted = want.id
            return lambda element: wanted in ids(element)
        return lambda element: not ids(element)  # null: refers to nothing
    path, many = test.path, test.many
    if len(path) == 1 and not many and world.context.hidden_fields is None and path[0] in FIELDS[cls]:
        getter = FIELDS[cls][path[0]]
        text = want.value if isinstance(want, Literal) and want.datatype is want.language is None else None
        if isinstance(text, str) and instant_of(text) is None:  # by far the most frequent
            return lambda element: getter(element) == text
        return lambda element: same(want, getter(element))
    if many:
        return lambda element: any(same(want, item) for item in world.field(element, path) or ())
    return lambda element: same(want, world.field(element, path))


def _referred(world: World, test: Test) -> Callable[[AnyElement], list[str]] | None:
    """For a field of references: the ids that an element refers to by it, as the caller may see them."""
    path = test.path
    name = path[-1]
    if not (len(path) == 1 or path[0] == "lifecycle"):
        return None
    single, several = SINGLE_REFS.get(name), MANY_REFS.get(name)
    if single is None and several is None:
        return None
    whole = ".".join(path)

    def ids(element: AnyElement) -> list[str]:
        hidden = world.hidden(element)
        if hidden and (path[0] in hidden or whole in hidden):
            return []
        if not hasattr(element, name):
            return []
        found = [single(element)] if single is not None else list(cast("Any", several)(element))
        return [target for target in found if target is not None and world.sees(target)]

    return ids


Binder = Callable[[Row, AnyElement], Iterator[Row]]


def _binder(world: World, test: Test) -> Binder:
    """A test that binds or compares variables."""
    ids = _referred(world, test)
    if ids is not None and isinstance(test.want, Var):
        slot = test.want.slot

        def bind_refs(row: Row, element: AnyElement) -> Iterator[Row]:
            for target in dict.fromkeys(ids(element)):
                extended = bind(row, slot, Ref(target))
                if extended is not None:
                    yield extended

        return bind_refs

    def bind_field(row: Row, element: AnyElement) -> Iterator[Row]:
        found = world.field(element, test.path)
        for item in (found or ()) if test.many else (found,):
            extended = unify(row, test.want, item)
            if extended is not None:
                yield extended

    return bind_field


def _bind_all(binders: list[Binder], at: int, row: Row, element: AnyElement) -> Iterator[Row]:
    if at == len(binders):
        yield row
        return
    for extended in binders[at](row, element):
        yield from _bind_all(binders, at + 1, extended, element)


# --- propositions


def _match_tuples(world: World, pattern: Tuples, access: Access) -> Extend:
    ids = candidates(world, pattern, access)
    subject, obj, var = pattern.subject, pattern.object, pattern.var
    predicates = pattern.predicates
    allowed = frozenset(predicates) if isinstance(predicates, tuple) else None
    predicate_slot = predicates.slot if isinstance(predicates, Var) else -1

    def extend(row: Row) -> Iterator[Row]:
        for found in world.each(ids(row)):
            element = world.get(found)
            if not isinstance(element, Proposition) or element.system.state != "active":
                continue
            if not world.tells(element):
                continue
            if allowed is not None and element.predicate_ref not in allowed:
                continue
            extended = bind_term(row, subject, Ref(element.subject))
            if extended is None:
                continue
            extended = bind_term(extended, obj, element.object)
            if extended is not None and allowed is None:
                extended = bind(extended, predicate_slot, Literal(element.predicate_ref))
            if extended is not None and var is not None:
                extended = bind(extended, var.slot, Ref(element.id))
            if extended is not None and ends_visible(world, element):
                yield extended

    return extend


def ends_visible(world: World, proposition: Proposition) -> bool:
    """Whether the caller may know of both ends; a tuple about what is hidden is itself hidden (KIP §30.4)."""
    if world.open:
        return True
    obj = proposition.object
    return world.sees(proposition.subject) and (not isinstance(obj, Ref) or world.sees(obj.id))


def _match_known(world: World, pattern: Known) -> Extend:
    def extend(row: Row) -> Iterator[Row]:
        world.spend()
        element = world.get(pattern.id)
        if isinstance(element, Proposition) and ends_visible(world, element) and world.tells(element):
            extended = row if pattern.var is None else bind(row, pattern.var.slot, Ref(element.id))
            if extended is not None:
                yield extended

    return extend


def _match_walk(world: World, pattern: Walk) -> Extend:
    walk = walker(world, pattern)

    def extend(row: Row) -> Iterator[Row]:
        for start, end in walk(row):
            extended = bind_term(row, pattern.subject, start)
            if extended is not None:
                extended = bind_term(extended, pattern.object, end)
            if extended is not None:
                yield extended

    return extend


# --- structural references


def edges_of(element: AnyElement, pattern: Edges, sees: Callable[[str], bool]) -> list[Edge]:
    """The references of an element in one structural field, in order (KIP §17), to what may be seen.

    Places are counted among those: a gap would tell of what stands in it (KIP §30.4).
    """
    field = pattern.field
    targets: list[tuple[str, str | None, dict[str, Any]]]
    if not field.core:
        targets = [(ref.target, None, ref.options) for ref in element.structural if ref.field == field.ref]
    elif isinstance(element, Assertion) and field.name == "evidence":
        targets = [(citation.evidence, citation.role, {}) for citation in element.evidence]
    elif field.name == "generated_by":
        made_by = element.generated_by if isinstance(element, Evidence) else None
        targets = [] if made_by is None else [(made_by, None, {})]
    elif hasattr(element, field.name):
        targets = [(target, None, {}) for target in getattr(element, field.name)]
    else:
        targets = []
    return [
        Edge(
            source=element.id,
            field=field.ref,
            target=target,
            ordinal=ordinal,
            index=ordinal if field.ordered else None,
            role=role or options.get("role"),
            options={name: value for name, value in options.items() if name not in {"role", "index"}},
        )
        for ordinal, (target, role, options) in enumerate(each for each in targets if sees(each[0]))
    ]


def _match_edges(world: World, pattern: Edges, access: Access) -> Extend:
    if access.index == "bound" and isinstance(access.parts[0], Var):
        return _match_known_edge(pattern, access.parts[0])
    one = Access("bound", access.parts) if access.index == "source" else access
    ids = candidates(world, pattern, one)
    name = pattern.field.name if pattern.field.core else "structural"

    def extend(row: Row) -> Iterator[Row]:
        for found in world.each(ids(row)):
            element = world.get(found)
            if element is None or (name in (world.hidden(element) or ())):
                continue
            for edge in edges_of(element, pattern, world.sees):
                yield from _bind_edge(row, pattern, edge)

    return extend


def _match_known_edge(pattern: Edges, var: Var) -> Extend:
    def extend(row: Row) -> Iterator[Row]:
        edge = row[var.slot]
        if isinstance(edge, Edge) and edge.field == pattern.field.ref:
            yield from _bind_edge(row, pattern, edge)

    return extend


def _bind_edge(row: Row, pattern: Edges, edge: Edge) -> Iterator[Row]:
    extended = bind_term(row, pattern.source, Ref(edge.source))
    if extended is not None:
        extended = bind_term(extended, pattern.target, Ref(edge.target))
    if extended is not None and pattern.var is not None:
        extended = bind(extended, pattern.var.slot, edge)
    if extended is not None:
        yield extended
