"""From the syntax tree of a WHERE block to its logic: names made exact, matchers and nested tuples written out.

What lives here: `Lowering`. What must never live here: the order of evaluation, or anything read from the state.

Every name is resolved here, in the environment of the state that is read, so a local name never reaches the
evaluation (KIP §20.4). An inline matcher `({type: "Person"}, ...)` and a nested tuple become patterns of their own
over a variable without a name: it takes part in the join and not in the solution.
"""

from __future__ import annotations

from typing import Final

from core.errors import NoemaError
from core.language import ast
from core.model.ids import KINDS, Kind
from core.model.literals import Literal, Ref, make_literal
from core.query.expressions import Expressions, Scope
from core.query.fields import ALL_FIELDS, KIND_FIELDS, MANY_REFS, SINGLE_REFS, Path, check_path
from core.query.logic import (
    Belief,
    BeliefSlot,
    Block,
    Condition,
    Edges,
    Elements,
    Hop,
    Items,
    Known,
    Members,
    Raw,
    Term,
    Test,
    Tuples,
    Var,
    Virtual,
    Walk,
    Want,
    escaping,
    own_slots,
    raw_slots,
    slots_of,
    stands_on_unions,
)
from core.query.world import World

_REF_KINDS: Final[dict[str, tuple[Kind, ...]]] = {
    "proposition": ("proposition",),
    "asserted_by": ("concept",),
    "generated_by": ("activity",),
    "merged_into": ("concept",),
    "evidence": ("evidence",),
    "source": ("concept", "evidence"),
    "associated_actors": ("concept",),
    "supersedes": ("assertion",),
    "superseded_by": ("assertion",),
    "corrects": ("evidence",),
    "corrected_by": ("evidence",),
}
_NO_PROPOSITION: Final = frozenset(
    {"concept", "assertion", "evidence", "activity", "value", "edge", "belief", "slot"}
)
_LISTS: Final = frozenset({"aliases", *MANY_REFS})


class Lowering:
    """Lowers the blocks of one query. `scope` gathers its variables as they are met."""

    def __init__(self, world: World, *, belief: bool = True) -> None:
        self.world = world
        self.env = world.env
        self.scope = Scope()
        self._clauses = 0
        self.belief = belief  # whether BELIEF may stand here (FIND only, KIP §46)

    # --- blocks

    def block(self, where: ast.Where, incoming: frozenset[int] = frozenset()) -> Block:
        """The logic of a WHERE block.

        Args:
            where: the clauses as written.
            incoming: slots that already have a value where the block is evaluated.

        Raises:
            NoemaError: a name that means nothing or too much, a field that cannot exist, a variable that nothing
                binds, a BELIEF without bounds.
        """
        return self._filtered(where, self._patterns(where), incoming)

    def _patterns(self, where: ast.Where) -> Block:
        """Everything but FILTER: first all patterns, so that a filter may stand before what binds it."""
        raw: list[Raw] = []
        virtual: list[Virtual] = []
        inner: dict[type, list[Block]] = {ast.OptionalBlock: [], ast.NotBlock: [], ast.UnionBlock: []}
        for clause in where:
            self._count()
            if isinstance(clause, (ast.OptionalBlock, ast.NotBlock, ast.UnionBlock)):
                inner[type(clause)].append(self._patterns(clause.where))
            elif isinstance(clause, (ast.BeliefPattern, ast.BeliefSlotPattern)):
                virtual.append(self._virtual(clause, raw))
            elif not isinstance(clause, ast.Filter):
                self._raw(clause, raw)
        return Block(
            tuple(raw),
            tuple(virtual),
            (),
            tuple(inner[ast.OptionalBlock]),
            tuple(inner[ast.NotBlock]),
            tuple(inner[ast.UnionBlock]),
        )

    def _filtered(self, where: ast.Where, block: Block, incoming: frozenset[int]) -> Block:
        """The same block with its filters, and with BELIEF targets checked for being bound."""
        virtual = self._bounded(block, incoming)
        known = incoming | own_slots(block)
        if stands_on_unions(block):
            known |= escaping(block)
        blocks = {ast.OptionalBlock: block.optionals, ast.NotBlock: block.nots, ast.UnionBlock: block.unions}
        done: dict[type, list[Block]] = {kind: [] for kind in blocks}
        filters = []
        seen = incoming | raw_slots(block) | {slot for pattern in virtual for slot in slots_of(pattern)}
        for clause in where:
            if isinstance(clause, ast.Filter):
                filters.append(self._condition(clause, known))
            elif isinstance(clause, (ast.OptionalBlock, ast.NotBlock, ast.UnionBlock)):
                kind = type(clause)
                inner = blocks[kind][len(done[kind])]
                scope = {ast.OptionalBlock: seen, ast.NotBlock: known, ast.UnionBlock: incoming}[kind]
                done[kind].append(self._filtered(clause.where, inner, scope))
                if kind is ast.OptionalBlock:
                    seen |= own_slots(inner)
        return Block(
            block.raw,
            virtual,
            tuple(filters),
            tuple(done[ast.OptionalBlock]),
            tuple(done[ast.NotBlock]),
            tuple(done[ast.UnionBlock]),
        )

    def _condition(self, clause: ast.Filter, known: frozenset[int]) -> Condition:
        expressions = Expressions(self.world, self.scope, known)
        holds = expressions.compile(clause.condition)
        return Condition(holds, frozenset(expressions.uses), clause.condition)

    # --- raw patterns

    def _raw(self, clause: ast.Node, out: list[Raw]) -> None:
        if isinstance(clause, ast.ElementPattern):
            var = self._var(clause.variable, clause.kind)
            out.append(self._elements(var, clause.kind, clause.match, out))
        elif isinstance(clause, ast.PropositionPattern):
            name = clause.variable
            var_or_none = None if name is None else self._var(name, "proposition")
            out.append(self._tuple(var_or_none, clause.tuple, out))
        elif isinstance(clause, ast.StructuralPattern):
            field = self.env.structural(_text_of(clause.field, "a structural field"))
            targets = field.target.kinds or (("concept",) if field.target.types else KINDS)
            out.append(
                Edges(
                    var=None if clause.variable is None else self._var(clause.variable, "edge"),
                    source=self._reference(clause.source, field.source.kinds or ("concept",), out),
                    field=field,
                    target=self._reference(clause.target, targets, out),
                )
            )
        else:
            raise NoemaError("UnsupportedCapability", f"{type(clause).__name__} is no pattern")

    def _var(self, name: str, sort: str) -> Var:
        slot = self.scope.slot(name)
        sorts = self.scope.sorts[slot]
        virtual = {"belief", "slot", "edge"}
        others = sorts - {sort} if sort in virtual else sorts & virtual
        if others:
            raise NoemaError(
                "TypeMismatch",
                f"?{name} stands for a virtual result and for something else",
                hint="Give the BELIEF, BELIEF SLOT or STRUCTURAL result a variable of its own.",
            )
        if sort in virtual and sort in sorts and sort != "edge":
            raise NoemaError("TypeMismatch", f"?{name} is bound by two BELIEF patterns; use two variables")
        sorts.add(sort)
        return Var(slot, name)

    def _count(self) -> None:
        """Bound what the planner orders and the solver nests."""
        self._clauses += 1
        self._check_size(self._clauses, "patterns and conditions")

    def _check_size(self, size: int, what: str) -> None:
        limit = self.world.context.limits.patterns
        if size > limit:
            raise NoemaError(
                "ResourceExhausted",
                f"a query has at most {limit} {what}",
                hint="Ask in several queries, or join conditions with && and IN.",
                details={"limit": limit},
            )

    def _hidden(self, sort: str) -> Var:
        self._count()
        slot = self.scope.fresh()
        self.scope.sorts[slot].add(sort)
        return Var(slot, None)

    # --- terms

    def _reference(self, node: ast.Node, kinds: tuple[Kind, ...], out: list[Raw]) -> Term:
        """A term where only an element may stand; a string there is an id."""
        if isinstance(node, ast.Literal):
            return Ref(_text_of(node, "the id of an element"))
        if isinstance(node, ast.ObjectPattern):
            return self._matcher(node, kinds, out)
        return self._term(node, out, "element")

    def _term(self, node: ast.Node, out: list[Raw], sort: str = "object") -> Term:
        if isinstance(node, ast.Variable):
            return self._var(node.name, sort)
        if isinstance(node, ast.Literal):
            return make_literal(node.value, node.datatype, node.language)
        if isinstance(node, ast.PropositionById):
            return Ref(_text_of(node.id, "the id of a Proposition"))
        if isinstance(node, ast.Triple):
            var = self._hidden("proposition")
            out.append(self._tuple(var, node, out))
            return var
        if isinstance(node, ast.ObjectPattern):
            return self._matcher(node, ("concept",), out)
        raise _unfilled(node)

    def _matcher(self, node: ast.ObjectPattern, kinds: tuple[Kind, ...], out: list[Raw]) -> Term:
        """`{id: "..."}` refers to an element; any other match object is a pattern over a hidden variable."""
        only = _id_of(node.members[0].value) if len(node.members) == 1 and node.get("id") else None
        if isinstance(only, ast.Literal):
            return Ref(_text_of(only, "the id of an element"))
        names = {member.name for member in node.members} - {"type", "state"}
        fitting = [kind for kind in kinds if names <= KIND_FIELDS[kind]]
        kind = fitting[0] if fitting else kinds[0]
        if kind == "proposition":
            raise NoemaError(
                "SchemaFieldNotFound",
                "a Proposition has no fields to match",
                hint='Write its tuple (subject, "predicate", object) or (id: "...").',
            )
        var = self._hidden(kind)
        out.append(self._elements(var, kind, node, out))
        return var

    def _tuple(self, var: Var | None, node: ast.PropositionTuple, out: list[Raw]) -> Raw:
        if isinstance(node, ast.PropositionById):
            return Known(var, _text_of(node.id, "the id of a Proposition"))
        subject = self._reference(node.subject, ("concept",), out)
        if isinstance(node.predicate, ast.PredicatePath):
            hops = tuple(self._hop(atom) for atom in node.predicate.alternatives)
            obj = self._term(node.object, out)
            if all(hop.minimum == hop.maximum == 1 for hop in hops):
                return Tuples(var, subject, tuple(dict.fromkeys(hop.predicate for hop in hops)), obj)
            if var is not None:
                raise NoemaError(
                    "InvalidSyntax",
                    f"a path is many Propositions, so it cannot be ?{var.name}",
                    hint="Leave the variable out, or write each hop as its own pattern.",
                )
            return Walk(subject, hops, obj)
        predicate = self._predicate(node.predicate)
        wanted = predicate if isinstance(predicate, Var) else (predicate,)
        return Tuples(var, subject, wanted, self._term(node.object, out))

    def _predicate(self, node: ast.Node) -> str | Var:
        if isinstance(node, ast.Variable):
            return self._var(node.name, "value")
        return self.env.predicate(_text_of(node, "a predicate")).ref

    def _hop(self, atom: ast.PathAtom) -> Hop:
        if isinstance(atom.predicate, ast.Variable):
            raise NoemaError(
                "UnsupportedCapability",
                f"?{atom.predicate.name} cannot be a step of a path",
                hint="Name the predicates of a path; a predicate variable stands alone in a tuple.",
            )
        limit = self.world.context.limits.path_hops
        if atom.minimum > limit or (atom.maximum or 0) > limit:
            raise NoemaError(
                "ResourceExhausted",
                f"a path has at most {limit} hops here",
                details={"limit": limit},
            )
        if atom.maximum is not None and atom.maximum < atom.minimum:
            raise NoemaError("InvalidSyntax", "the path's maximum is below its minimum")
        predicate = self.env.predicate(_text_of(atom.predicate, "a predicate")).ref
        return Hop(predicate, atom.minimum, atom.maximum)

    # --- match objects

    def _elements(self, var: Var, kind: Kind, match: ast.ObjectPattern, out: list[Raw]) -> Elements:
        tests: list[Test] = []
        for member in match.members:
            self._member(kind, member.name, member.value, tests, out)
        self._check_size(len(tests), "members in one match object")
        any_state = any(test.path == ("_system", "state") for test in tests)
        return Elements(var, kind, tuple(tests), any_state)

    def _member(
        self, kind: Kind, name: str, node: ast.PatternValue, tests: list[Test], out: list[Raw]
    ) -> None:
        if name == "type" and kind == "concept":
            if isinstance(node, ast.Literal):
                ref = self.env.type(_text_of(node, "a Concept Type")).ref
                tests.append(Test(("schema_ref",), Literal(ref)))
            else:
                tests.append(Test(("schema_ref",), self._want(node, out)))
            return
        if name == "id":
            node = _id_of(node)
        path: Path = ("_system", "state") if name == "state" else (name,)
        if path[0] not in KIND_FIELDS[kind]:
            if path[0] not in ALL_FIELDS:
                check_path(path, self.env)  # says which names are near
            raise NoemaError(
                "SchemaFieldNotFound", f"{kind} has no field {name}", details={"field": name, "kind": kind}
            )
        self._test(path, node, tests, out)

    def _test(self, path: Path, node: ast.PatternValue, tests: list[Test], out: list[Raw]) -> None:
        last = path[-1] if len(path) == 1 or path[0] == "lifecycle" else ""
        if last in SINGLE_REFS or last in MANY_REFS:
            self._reference_test(path, last, node, tests, out)
        elif isinstance(node, ast.ObjectPattern):
            for member in node.members:
                self._test(check_path((*path, member.name), self.env), member.value, tests, out)
        else:
            many = last in _LISTS and not isinstance(node, (ast.ArrayPattern, ast.Variable))
            tests.append(Test(path, self._want(node, out), many))

    def _reference_test(
        self, path: Path, name: str, node: ast.PatternValue, tests: list[Test], out: list[Raw]
    ) -> None:
        kinds = _REF_KINDS.get(name, KINDS)
        if name in MANY_REFS:
            items = node.items if isinstance(node, ast.ArrayPattern) else (node,)
            tests.extend(Test(path, self._reference(item, kinds, out), many=True) for item in items)
        elif isinstance(node, ast.Literal) and node.value is None:
            tests.append(Test(path, Literal(None)))
        else:
            tests.append(Test(path, self._reference(node, kinds, out)))

    def _want(self, node: ast.PatternValue, out: list[Raw]) -> Want:
        if isinstance(node, ast.Variable):
            return self._var(node.name, "value")
        if isinstance(node, ast.ArrayPattern):
            return Items(tuple(self._want(item, out) for item in node.items))
        if isinstance(node, ast.ObjectPattern):
            return Members(tuple((member.name, self._want(member.value, out)) for member in node.members))
        return self._term(node, out)

    # --- belief

    def _virtual(self, clause: ast.BeliefPattern | ast.BeliefSlotPattern, out: list[Raw]) -> Virtual:
        if not self.belief:
            raise NoemaError("UnsupportedCapability", "BELIEF stands only in FIND")
        if isinstance(clause, ast.BeliefSlotPattern):
            return BeliefSlot(
                self._var(clause.variable, "slot"),
                self._reference(clause.subject, ("concept",), out),
                self._predicate(clause.predicate),
            )
        var = self._var(clause.variable, "belief")
        target = clause.target
        if isinstance(target, ast.Triple):
            if isinstance(target.predicate, ast.PredicatePath):
                raise NoemaError("InvalidSyntax", "BELIEF takes one exact predicate, never a path")
            return Belief(
                var,
                None,
                self._reference(target.subject, ("concept",), out),
                self._predicate(target.predicate),
                self._term(target.object, out),
            )
        if isinstance(target, ast.Variable):
            return Belief(var, Var(self.scope.slot(target.name), target.name))
        return Belief(var, self._reference(target, ("proposition",), out))

    def _bounded(self, block: Block, incoming: frozenset[int]) -> tuple[Virtual, ...]:
        """The belief patterns in the order in which their targets become bound (KIP §46.3).

        An object variable that no raw pattern binds is bound by BELIEF itself, to the stored candidates.
        """
        grounded = incoming | raw_slots(block)
        enumerated = {
            pattern.object.slot
            for pattern in block.virtual
            if isinstance(pattern, Belief) and isinstance(pattern.object, Var)
        } - grounded
        for pattern in block.virtual:
            self._check_target(pattern)
        bound, waiting, done = set(grounded), list(block.virtual), list[Virtual]()
        while waiting:
            ready = next((pattern for pattern in waiting if _needs(pattern) <= bound), None)
            if ready is None:
                raise _unbound(waiting[0])
            waiting.remove(ready)
            bound.add(ready.var.slot)
            if isinstance(ready, Belief) and isinstance(ready.object, Var):
                bound.add(ready.object.slot)
                if ready.object.slot in enumerated:
                    ready = Belief(
                        ready.var, None, ready.subject, ready.predicate, ready.object, enumerates=True
                    )
            done.append(ready)
        return tuple(done)

    def _check_target(self, pattern: Virtual) -> None:
        """BELIEF (?p) needs a Proposition; what is known to be something else never is one (KQL-020)."""
        target = pattern.target if isinstance(pattern, Belief) else None
        sorts = self.scope.sorts[target.slot] if isinstance(target, Var) else set()
        if isinstance(target, Var) and sorts and sorts <= _NO_PROPOSITION:
            raise NoemaError(
                "ProjectionTargetUnbound",
                f"?{target.name} is not a Proposition, so there is nothing to believe of it",
                hint='Write BELIEF (subject, "predicate", object), or bind the variable by a tuple.',
                details={"variable": target.name},
            )


def _needs(pattern: Virtual) -> set[int]:
    parts = (
        (pattern.subject, pattern.predicate)
        if isinstance(pattern, BeliefSlot)
        else (pattern.target, pattern.subject, pattern.predicate)
    )
    return {part.slot for part in parts if isinstance(part, Var)}


def _unbound(pattern: Virtual) -> NoemaError:
    if isinstance(pattern, Belief) and pattern.target is not None:
        name = pattern.target.name if isinstance(pattern.target, Var) else None
        return NoemaError(
            "ProjectionTargetUnbound",
            f"nothing binds ?{name} to a Proposition before BELIEF (?{name})",
            details={"variable": name},
        )
    return NoemaError(
        "ProjectionTargetUnbounded",
        "belief needs its subject and its predicate bound",
        hint="Bind the subject by a pattern or an id, and name the predicate.",
    )


def _id_of(node: ast.PatternValue) -> ast.PatternValue:
    """What is written where an id is meant: text, or the reference that holds it."""
    inner = node.get("id") if isinstance(node, ast.ObjectPattern) else None
    return node if inner is None else inner


def _text_of(node: ast.Node, what: str) -> str:
    if isinstance(node, ast.Literal) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Literal):
        raise NoemaError("TypeMismatch", f"{what} is written as a string")
    raise _unfilled(node)


def _unfilled(node: ast.Node) -> NoemaError:
    if isinstance(node, ast.Parameter):
        return NoemaError("InvalidRequestEnvelope", f"no value was given for :{node.name[:40]}")
    return NoemaError("UnsupportedCapability", f"{type(node).__name__} may not stand here")
