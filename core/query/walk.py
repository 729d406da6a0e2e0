"""Raw paths: chains of stored Propositions, walked a bounded number of times (KIP §45).

What lives here: reachability. What must never live here: belief; a path says that the tuples exist, not that they
hold (KIP §45).

The ends of `"p"{m,n}` are reached level by level: level k holds what k hops reach, so a cycle costs nothing and is
walked as often as the quantifier asks. With no maximum the walk goes on until nothing new is reached. No hops at
all (`{0,...}`) lead from an element to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from core.errors import NoemaError
from core.model.elements import Proposition
from core.model.ids import KINDS
from core.model.literals import Literal, Ref, term_key
from core.query.logic import UNBOUND, Hop, Row, Term, Var, Walk, known_value
from core.query.world import World
from core.state.indexes import object_key, predicate_key, subject_key

Node = Ref | Literal
Nodes = dict[str, Node]  # by term key: each node once, in the order reached
Neighbours = Callable[[Node, str], Iterator[Node]]


def walker(world: World, pattern: Walk) -> Callable[[Row], Iterator[tuple[Node, Node]]]:
    """A function that gives every pair of ends of a path, for what a row already knows of them."""

    def pairs(row: Row) -> Iterator[tuple[Node, Node]]:
        start, end = _known(pattern.subject, row), _known(pattern.object, row)
        if start is None or end is None:
            return
        seen: set[tuple[str, str]] = set()
        for hop in pattern.hops:
            for pair in _pairs(world, hop, start, end):
                key = (term_key(pair[0]), term_key(pair[1]))
                if key not in seen:
                    seen.add(key)
                    yield pair

    return pairs


_FREE = Literal("?", datatype="unbound")  # no stored literal; stands for an end that is not known


def _known(term: Term, row: Row) -> Node | None:
    """An end of a path: a node, `_FREE`, or None for a value that is no end of a tuple."""
    value = known_value(term, row) if isinstance(term, Var) else term
    if value is UNBOUND:
        return _FREE
    return value if isinstance(value, (Ref, Literal)) else None


def _pairs(world: World, hop: Hop, start: Node, end: Node) -> Iterator[tuple[Node, Node]]:
    def forward(node: Node, predicate: str) -> Iterator[Node]:
        if isinstance(node, Ref):
            for element in _propositions(world, subject_key(node.id, predicate)):
                if element.subject == node.id and element.predicate_ref == predicate:
                    yield element.object

    def backward(node: Node, predicate: str) -> Iterator[Node]:
        wanted = term_key(node)
        for element in _propositions(world, object_key(node, predicate)):
            if element.predicate_ref == predicate and term_key(element.object) == wanted:
                yield Ref(element.subject)

    if start is not _FREE:
        for node in _reached(world, hop, start, forward):
            yield start, node
    elif end is not _FREE:
        for node in _reached(world, hop, end, backward):
            if isinstance(node, Ref):
                yield node, end
    else:
        for source in list(_sources(world, hop)):
            for node in _reached(world, hop, source, forward):
                yield source, node


def _sources(world: World, hop: Hop) -> Iterator[Ref]:
    """With both ends free: every element that a tuple of the predicate begins at; with no hops, every element."""
    if hop.minimum == 0:  # a scan of the whole space, within the bound on rows examined
        for kind in KINDS:
            for found in world.view.ids(kind):
                world.spend()
                yield Ref(found)
        return
    seen = dict.fromkeys(element.subject for element in _propositions(world, predicate_key(hop.predicate)))
    yield from (Ref(found) for found in seen)


def _propositions(world: World, key: str) -> Iterator[Proposition]:
    for found in world.find(key):
        element = world.get(found)
        if isinstance(element, Proposition) and element.system.state == "active":
            obj = element.object
            seen = world.open or (
                world.sees(element.subject) and (isinstance(obj, Literal) or world.sees(obj.id))
            )
            if seen and world.tells(element):
                yield element


def _reached(world: World, hop: Hop, start: Node, neighbours: Neighbours) -> list[Node]:
    """Everything that `minimum` to `maximum` hops reach."""
    if isinstance(start, Ref) and world.get(start.id) is None:
        return []
    level: Nodes = {term_key(start): start}
    for _ in range(hop.minimum):
        level = _next(hop, level, neighbours)
    reached = dict(level)
    hops = hop.minimum
    while level and (hop.maximum is None or hops < hop.maximum):
        following = _next(hop, level, neighbours)
        # Without a maximum, only what is new can lead to more; with one, a longer way round is a way too, but
        # what it reaches from an old node was reached from it before.
        level = {key: node for key, node in following.items() if key not in reached}
        reached.update(level)
        hops += 1
        limit = world.context.limits.path_hops
        if level and hop.maximum is None and hops >= limit:
            raise NoemaError(
                "ResourceExhausted",
                f"the path goes on after {limit} hops, the most that are walked here",
                hint="Give the path a maximum, {1,n}.",
                details={"limit": limit},
            )
    return list(reached.values())


def _next(hop: Hop, level: Nodes, neighbours: Neighbours) -> Nodes:
    return {term_key(found): found for node in level.values() for found in neighbours(node, hop.predicate)}
