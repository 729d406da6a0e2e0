"""A WHERE block as logic: names resolved, inline matchers written out, every variable a numbered slot.

What lives here: the values between the syntax tree and the plan. What must never live here: an order of doing.
A block says what must hold; `planner` decides how to find it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from core.language import ast
from core.model.ids import Kind
from core.model.literals import Literal, Ref
from core.query.context import Value
from core.query.fields import Path
from core.schema.definitions import StructuralField


class Unbound:
    """The mark of a slot that nothing has been tried for; None is "tried, no match"."""

    def __repr__(self) -> str:
        return "UNBOUND"


UNBOUND = Unbound()

Row = list[Any]  # one Value or UNBOUND for each slot of the query's frame
Evaluate = Callable[[Row], Any]  # an expression, ready to be asked: a JSON value or a bound value


class Var(msgspec.Struct, frozen=True):
    """A variable: its slot, and the name it was written with; an inline matcher has one without a name."""

    slot: int
    name: str | None


class Items(msgspec.Struct, frozen=True):
    """An array that must match item by item."""

    items: tuple[Want, ...]


class Members(msgspec.Struct, frozen=True):
    """An object that must have at least these members."""

    members: tuple[tuple[str, Want], ...]


Term = Var | Ref | Literal
Want = Var | Ref | Literal | Items | Members


class Test(msgspec.Struct, frozen=True):
    """One member of a match object: what must stand at a path of the element.

    many: the field is a list, and one of its members must be what is wanted.
    """

    path: Path
    want: Want
    many: bool = False


class Elements(msgspec.Struct, frozen=True):
    """`?x KIND {...}`: an element of a kind that passes every test; active unless the pattern names a state."""

    var: Var
    kind: Kind
    tests: tuple[Test, ...]
    any_state: bool = False


class Tuples(msgspec.Struct, frozen=True):
    """`?p (s, p, o)`: an active Proposition with this tuple. `predicates` are exact references, any one of them."""

    var: Var | None
    subject: Term
    predicates: tuple[str, ...] | Var
    object: Term


class Known(msgspec.Struct, frozen=True):
    """`?p (id: v)`: the Proposition of that id, whatever its state (KIP §43.2)."""

    var: Var | None
    id: str


class Hop(msgspec.Struct, frozen=True):
    """One alternative of a path: a predicate walked so many times; no maximum means as far as it goes."""

    predicate: str
    minimum: int
    maximum: int | None


class Walk(msgspec.Struct, frozen=True):
    """`(s, "p"{m,n} | ..., o)`: a chain of active Propositions (KIP §45)."""

    subject: Term
    hops: tuple[Hop, ...]
    object: Term


class Edges(msgspec.Struct, frozen=True):
    """`?e STRUCTURAL (source, "field", target)`: record topology, whatever the source's state (KIP §43.7)."""

    var: Var | None
    source: Term
    field: StructuralField
    target: Term


Raw = Elements | Tuples | Known | Walk | Edges


class Belief(msgspec.Struct, frozen=True):
    """`?b BELIEF (?p)` or `?b BELIEF (s, p, o)` (KIP §46).

    enumerates: the object is a variable that only BELIEF patterns bind, so every stored candidate is one result
    and an absent tuple is none (KQL design §100).
    """

    var: Var
    target: Term | None
    subject: Term | None = None
    predicate: str | Var | None = None
    object: Term | None = None
    enumerates: bool = False


class BeliefSlot(msgspec.Struct, frozen=True):
    """`?s BELIEF SLOT (s, p)` (KIP §47)."""

    var: Var
    subject: Term
    predicate: str | Var


Virtual = Belief | BeliefSlot


class Condition(msgspec.Struct, frozen=True):
    """A FILTER: `holds` is asked with a row; `uses` are the slots it reads; `node` is what was written."""

    holds: Evaluate
    uses: frozenset[int]
    node: ast.Expression


class Block(msgspec.Struct, frozen=True):
    """One WHERE block. UNION branches stand beside everything else (KQL grammar, note 5)."""

    raw: tuple[Raw, ...] = ()
    virtual: tuple[Virtual, ...] = ()
    filters: tuple[Condition, ...] = ()
    optionals: tuple[Block, ...] = ()
    nots: tuple[Block, ...] = ()
    unions: tuple[Block, ...] = ()


def variables(pattern: Raw | Virtual) -> Iterator[Var]:
    """Every variable a pattern names, hidden ones too."""
    if isinstance(pattern, Elements):
        yield pattern.var
        for test in pattern.tests:
            yield from _wanted(test.want)
        return
    for name in pattern.__struct_fields__:
        part = getattr(pattern, name)
        if isinstance(part, Var):
            yield part


def _wanted(want: Want) -> Iterator[Var]:
    if isinstance(want, Var):
        yield want
    elif isinstance(want, Items):
        for item in want.items:
            yield from _wanted(item)
    elif isinstance(want, Members):
        for _, member in want.members:
            yield from _wanted(member)


def slots_of(pattern: Raw | Virtual) -> frozenset[int]:
    """The slots a pattern binds or checks."""
    return frozenset(var.slot for var in variables(pattern))


def raw_slots(block: Block) -> frozenset[int]:
    """The slots that a block's raw patterns bind in every solution."""
    return frozenset(slot for pattern in block.raw for slot in slots_of(pattern))


def own_slots(block: Block) -> frozenset[int]:
    """The slots a block's main branch may bind: raw patterns, belief, OPTIONAL."""
    found = set(raw_slots(block))
    for pattern in block.virtual:
        found |= slots_of(pattern)
    for inner in block.optionals:
        found |= escaping(inner)
    return frozenset(found)


def escaping(block: Block) -> frozenset[int]:
    """The slots whose values leave a block: those of its main branch and of every UNION branch."""
    found = set(own_slots(block))
    for inner in block.unions:
        found |= escaping(inner)
    return frozenset(found)


def believes(block: Block) -> bool:
    """Whether a block, or one inside it, asks for belief."""
    inner = (*block.optionals, *block.nots, *block.unions)
    return bool(block.virtual) or any(believes(part) for part in inner)


def stands_on_unions(block: Block) -> bool:
    """Whether a block has no pattern of its own beside its UNION branches; its filters then apply to those."""
    return bool(block.unions) and not (block.raw or block.virtual or block.optionals)


def known_value(term: Term, row: Row) -> Value | Unbound:
    """What a term stands for in a row: a constant, a bound variable's value, or UNBOUND."""
    return row[term.slot] if isinstance(term, Var) else term
