"""The planner: which pattern first, by which index, and every filter as early as it can be asked.

What lives here: logic -> plan, by the ordered `REWRITES`. What must never live here: anything that changes what a
query means. Conjunction is commutative, so any order of patterns is right; a bad one is only slow.

Indexes whose key is known are asked for their size (`View.count`, cheap); a key that depends on an earlier row is
guessed by `_TYPICAL`. Two scans are unavoidable, both within the bound on rows examined: a pattern with nothing to
look up (`?a ASSERTION {}`, or only conditions on open attributes) reads every element of its kind, and a path of
no hops with both ends free reads every element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from core.model.literals import Literal, Ref
from core.query.access import count_of
from core.query.logic import (
    Block,
    Edges,
    Elements,
    Known,
    Raw,
    Term,
    Test,
    Tuples,
    Var,
    Walk,
    Want,
    escaping,
    own_slots,
    slots_of,
    stands_on_unions,
)
from core.query.plan import Access, Believe, Index, Keep, Match, Maybe, Plan, Step, Without
from core.query.world import World

_TYPICAL: Final[dict[Index, int]] = {
    "tuple": 1, "type+key": 1, "id": 1, "key": 1, "canonical_id": 1, "client_key": 1, "proposition": 3, "name": 2,
    "subject+predicate": 4, "source": 6, "subject": 12, "object+predicate": 24, "referrers": 24, "target": 24,
    "object": 48, "path": 64, "asserted_by": 400, "class": 2_000, "type": 2_000, "facet": 4_000, "state": 2_000,
    "predicate": 4_000, "kind": 100_000,
}  # fmt: skip
"""About how many candidates an index gives when its key is known only at run time."""


class Draft:
    """A plan in the making: the block, what is bound before it, and the steps so far."""

    def __init__(self, world: World, block: Block, bound: frozenset[int]) -> None:
        self.world = world
        self.block = block
        self.incoming = bound
        self.bound = set(bound)
        self.steps: list[Step] = []
        self.filters = list(block.filters)

    def place_filters(self) -> None:
        """Put every filter whose variables all have their value here."""
        for condition in [condition for condition in self.filters if condition.uses <= self.bound]:
            self.steps.append(Keep(condition))
            self.filters.remove(condition)


def place_raw_patterns(draft: Draft) -> None:
    """Raw patterns, cheapest next; patterns that cost the same in the order written."""
    draft.place_filters()
    waiting = list(draft.block.raw)
    while waiting:
        choices = [(best_access(draft.world, pattern, draft.bound), pattern) for pattern in waiting]
        access, pattern = min(choices, key=lambda choice: choice[0].expected)
        waiting.remove(pattern)
        draft.steps.append(Match(pattern, access))
        draft.bound |= slots_of(pattern)
        draft.place_filters()


def place_beliefs(draft: Draft) -> None:
    """Projections after all raw patterns: what they are over is then known, and they are few."""
    for pattern in draft.block.virtual:
        draft.steps.append(Believe(pattern))
        draft.bound |= slots_of(pattern)
        draft.place_filters()


def place_optionals(draft: Draft) -> None:
    """OPTIONAL blocks in the order written: a later one may continue an earlier one."""
    for inner in draft.block.optionals:
        fills = sorted(escaping(inner) - draft.bound)
        draft.steps.append(Maybe(plan_block(draft.world, inner, frozenset(draft.bound)), tuple(fills)))
        draft.bound |= set(fills)


def place_late_filters(draft: Draft) -> None:
    """Filters over what only an OPTIONAL, or a branch of a UNION that stands alone, may have bound."""
    draft.steps.extend(Keep(condition) for condition in draft.filters)


def place_negations(draft: Draft) -> None:
    """NOT blocks last: they see everything the block binds (KIP §44.3)."""
    bound = draft.bound | (escaping(draft.block) if stands_on_unions(draft.block) else set())
    for inner in draft.block.nots:
        draft.steps.append(Without(plan_block(draft.world, inner, frozenset(bound))))


REWRITES: Final[tuple[Callable[[Draft], None], ...]] = (
    place_raw_patterns,
    place_beliefs,
    place_optionals,
    place_late_filters,
    place_negations,
)


def plan_block(world: World, block: Block, bound: frozenset[int] = frozenset()) -> Plan:
    """The plan of a block whose `bound` slots already have a value."""
    draft = Draft(world, block, bound)
    for rewrite in REWRITES:
        rewrite(draft)
    return Plan(
        steps=tuple(draft.steps),
        unions=tuple(plan_block(world, branch, bound) for branch in block.unions),
        main=not stands_on_unions(block),
        fills=tuple(sorted(escaping(block) - bound))
        if block.unions
        else tuple(sorted(own_slots(block) - bound)),
    )


# --- access paths


def best_access(world: World, pattern: Raw, bound: set[int]) -> Access:
    """The cheapest way to the candidates of a pattern, given which slots have a value."""
    best: Access | None = None
    for index, parts in _ways(pattern, bound):
        expected = _expected(world, pattern, index, parts)
        if best is None or expected < best.expected:
            best = Access(index, parts, expected)
    assert best is not None  # every pattern can be found in some way
    return best


def _expected(world: World, pattern: Raw, index: Index, parts: tuple[Term | str, ...]) -> int:
    if index == "bound":
        return 0
    if index in {"id", "path"} or any(isinstance(part, Var) for part in parts):
        return _TYPICAL[index]
    return count_of(world, pattern, index, parts)


Ways = Iterator[tuple[Index, tuple[Term | str, ...]]]


def _ways(pattern: Raw, bound: set[int]) -> Ways:
    if isinstance(pattern, Elements):
        return _element_ways(pattern, bound)
    if isinstance(pattern, Tuples):
        return _tuple_ways(pattern, bound)
    if isinstance(pattern, Known):
        return iter([("id", (Ref(pattern.id),))])
    if isinstance(pattern, Edges):
        return _edge_ways(pattern, bound)
    return _walk_ways(pattern, bound)


def _is_known(term: Term | Want | None, bound: set[int]) -> bool:
    if isinstance(term, Var):
        return term.slot in bound
    return isinstance(term, (Ref, Literal))


# Each of these yields only ways that no other one includes: what stands under a subject and a predicate stands
# under the subject too, and everything is of a kind.


def _element_ways(pattern: Elements, bound: set[int]) -> Ways:
    if pattern.var.slot in bound:
        yield "bound", (pattern.var,)
        return
    known = {test.path: test for test in pattern.tests if _is_known(test.want, bound)}
    if ("id",) in known:
        yield "id", (_term(known["id",]),)
        return
    if ("schema_ref",) in known and ("key",) in known:
        yield "type+key", (_term(known["schema_ref",]), _term(known["key",]))
        return
    scan = True
    for path, test in known.items():
        index = _FIELD_INDEX.get(path[0] if len(path) == 1 else ".".join(path))
        if index is not None and not _wants_nothing(test) and (index != "state" or _leaves_active(test)):
            scan = False
            yield index, (_term(test),)
    for test in pattern.tests:
        if test.path[0] == "facets" and len(test.path) > 1 and not _wants_nothing(test):
            scan = False
            yield "facet", (test.path[1],)
    if scan:
        yield "kind", ()


_FIELD_INDEX: Final[dict[str, Index]] = {
    "key": "key", "name": "name", "aliases": "name", "canonical_id": "canonical_id",
    "client_key": "client_key", "schema_ref": "type", "proposition": "proposition", "asserted_by": "asserted_by",
    "mode": "class", "evidence_class": "class", "activity_class": "class", "_system.state": "state",
    "evidence": "referrers", "context_refs": "referrers", "source": "referrers", "generated_by": "referrers",
    "inputs": "referrers", "outputs": "referrers", "associated_actors": "referrers", "merged_into": "referrers",
    "lifecycle.supersedes": "referrers", "lifecycle.corrects": "referrers",
}  # fmt: skip
"""Which index finds elements by a field."""


def _term(test: Test) -> Term:
    assert isinstance(test.want, (Var, Ref, Literal))
    return test.want


def _wants_nothing(test: Test) -> bool:
    return isinstance(test.want, Literal) and test.want.value is None


def _leaves_active(test: Test) -> bool:
    """The state index lists every state but `active`."""
    return isinstance(test.want, Literal) and test.want.value != "active"


def _tuple_ways(pattern: Tuples, bound: set[int]) -> Ways:
    if pattern.var is not None and pattern.var.slot in bound:
        yield "bound", (pattern.var,)
        return
    subject = (pattern.subject,) if _is_known(pattern.subject, bound) else ()
    obj = (pattern.object,) if _is_known(pattern.object, bound) else ()
    predicates: tuple[Term | str, ...] = ()
    if isinstance(pattern.predicates, tuple):
        predicates = pattern.predicates
    elif pattern.predicates.slot in bound:
        predicates = (pattern.predicates,)
    if subject and obj and predicates:
        yield "tuple", (*subject, *obj, *predicates)
        return
    if subject:
        yield ("subject+predicate" if predicates else "subject"), (*subject, *predicates)
    if obj:
        yield ("object+predicate" if predicates else "object"), (*obj, *predicates)
    if not subject and not obj:
        yield ("predicate" if predicates else "kind"), predicates


def _edge_ways(pattern: Edges, bound: set[int]) -> Ways:
    if pattern.var is not None and pattern.var.slot in bound:
        yield "bound", (pattern.var,)
        return
    source, target = _is_known(pattern.source, bound), _is_known(pattern.target, bound)
    if source:
        yield "source", (pattern.source,)
    if target:
        yield "target", (pattern.target,)
    if not source and not target:
        yield "kind", ()


def _walk_ways(pattern: Walk, bound: set[int]) -> Ways:
    if _is_known(pattern.subject, bound) or _is_known(pattern.object, bound):
        yield "path", ()
    elif any(hop.minimum == 0 for hop in pattern.hops):
        yield "kind", ()
    else:
        yield "predicate", tuple(hop.predicate for hop in pattern.hops)
