"""The syntax tree shared by KQL, KML and META: terms, values, expressions and WHERE patterns.

What lives here: one frozen node per grammar production that more than one of the three languages uses. What
must never live here: parsing, printing, names resolved against a schema, anything evaluated. The statements
are in `ast_kql`, `ast_kml` and `ast_meta`.

A node says what was written, not what it means. Keywords, comments, whitespace, parentheses and the order of
clauses whose order has no meaning are gone; everything else is there. Two texts that mean the same by the
grammar alone have equal trees. A node may carry the place where it was written (`span`); a span never takes
part in equality or hashing, so a tree built by hand equals a parsed one.

The same structs are the JSON form of a command (`ast` of a request's operation): every node carries its class
name in the member `node`, and unknown members are refused.
"""

from __future__ import annotations

import typing

import msgspec


class Span(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Where a node begins in the command text: 1-based line and column, 0-based offset, all in characters.

    All spans are equal and hash alike, so that a node's place never decides whether two nodes are equal.
    """

    line: int
    column: int
    offset: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Span)

    def __hash__(self) -> int:
        return 0


NOWHERE: typing.Final = Span(0, 0, 0)
"""The span of a node that was not read from a text."""


class Node(
    msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="node", forbid_unknown_fields=True,
    omit_defaults=True,
):  # fmt: skip
    """What every node has: a class name under `node` in its JSON form, and the place where it was written."""

    span: Span = NOWHERE


# --- Terminals --------------------------------------------------------------------------------------------


class Variable(Node, frozen=True, kw_only=True):
    """`variable`: `?name`, written without its question mark. In KML also a handle of the block."""

    name: str


class Parameter(Node, frozen=True, kw_only=True):
    """`parameter`: `:name`, a complete value supplied beside the command. Gone after `bind`."""

    name: str


class Literal(Node, frozen=True, kw_only=True, eq=False):
    """`literal`: a finite JSON scalar. Equal only to a literal of the same JSON type: 1, 1.0 and true differ.

    `datatype` and `language` are set only in a tuple's term written `{value: "...", language: "fr"}`
    (KIP §9.1, §9.4): such an object is a typed literal, not a match.
    """

    value: str | int | float | bool | None
    datatype: str | None = None
    language: str | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[object, ...]:
        return (type(self.value), self.value, self.datatype, self.language)


Scalar = Literal | Parameter
"""`scalar_value`, `scalar_or_parameter`, `meta_value`: a literal or a parameter."""

Symbol = Literal | Parameter
"""`schema_symbol`: a quoted local name or exact `kip://` reference, or a parameter; the value is a string."""

TargetRef = Variable | Parameter | Literal
"""`target_ref`: an element by a variable of WHERE or a handle, by a parameter, or by its quoted id."""


# --- Values -----------------------------------------------------------------------------------------------


class Array(Node, frozen=True, kw_only=True):
    """`array_literal`: `[value, ...]`."""

    items: tuple[DataValue, ...] = ()


class Member(Node, frozen=True, kw_only=True):
    """`object_member`, `assignment_member`: `name: value`. Names within one object are distinct."""

    name: str
    value: DataValue


class Object(Node, frozen=True, kw_only=True):
    """`object_literal`, `assignment_object`: `{name: value, ...}`, in the order written.

    In a place that takes an element, `{id: "..."}` is the reference to it.
    """

    members: tuple[Member, ...] = ()

    def get(self, name: str) -> DataValue | None:
        """The value of the member with that name, or None where there is none."""
        return next((member.value for member in self.members if member.name == name), None)


class FieldAccess(Node, frozen=True, kw_only=True):
    """`field_access` with at least one step: `?variable.step["exact step"]`; `.a` and `["a"]` are one step.

    A variable with no step is a `Variable`.
    """

    variable: str
    path: tuple[str, ...]


class FunctionCall(Node, frozen=True, kw_only=True):
    """`function_call`: a registered function by its upper-case name (`core.language.functions`)."""

    name: str
    arguments: tuple[Expression, ...]


DataValue = Variable | Parameter | Literal | Array | Object | FieldAccess | FunctionCall
"""`data_value`, `mutation_value`: what may be assigned."""


# --- Expressions ------------------------------------------------------------------------------------------

ComparisonOperator = typing.Literal["==", "!=", "<", "<=", ">", ">="]


class Comparison(Node, frozen=True, kw_only=True):
    """`equality_expression`, `relational_expression`: two operands; a chain is refused."""

    operator: ComparisonOperator
    left: Expression
    right: Expression


class And(Node, frozen=True, kw_only=True):
    """`and_expression` of two or more operands, in the order written."""

    operands: tuple[Expression, ...]


class Or(Node, frozen=True, kw_only=True):
    """`or_expression` of two or more operands, in the order written."""

    operands: tuple[Expression, ...]


class Not(Node, frozen=True, kw_only=True):
    """`unary_expression` with `!`."""

    operand: Expression


class Minus(Node, frozen=True, kw_only=True):
    """`unary_expression` with `-` before anything but a number; a negative number is a `Literal`."""

    operand: Expression


Expression = DataValue | Comparison | And | Or | Not | Minus
"""`expression`: parentheses leave no node."""


# --- Terms and match objects ------------------------------------------------------------------------------


class PatternMember(Node, frozen=True, kw_only=True):
    """`pattern_member`: `name: value` of a match object. Names within one object are distinct."""

    name: str
    value: PatternValue


class ObjectPattern(Node, frozen=True, kw_only=True):
    """`object_pattern`: `{name: value, ...}`; as a term it matches (or, as `{id: ...}`, names) an element."""

    members: tuple[PatternMember, ...] = ()

    def get(self, name: str) -> PatternValue | None:
        """The value of the member with that name, or None where there is none."""
        return next((member.value for member in self.members if member.name == name), None)


class ArrayPattern(Node, frozen=True, kw_only=True):
    """`array_pattern`: `[value, ...]` within a match object."""

    items: tuple[PatternValue, ...] = ()


class PropositionById(Node, frozen=True, kw_only=True):
    """`proposition_tuple` of the form `(id: value)`: a known Proposition (KIP §43.2); match-only."""

    id: Scalar


class PathAtom(Node, frozen=True, kw_only=True):
    """`predicate_path_atom`: a predicate walked `minimum` to `maximum` times; no maximum means unbounded."""

    predicate: PredicateAtom
    minimum: int = 1
    maximum: int | None = 1


class PredicatePath(Node, frozen=True, kw_only=True):
    """`raw_predicate_expression` with a quantifier or alternatives (KIP §45): raw KQL tuples only.

    One alternative walked exactly once is not a path but its bare predicate.
    """

    alternatives: tuple[PathAtom, ...]


class Triple(Node, frozen=True, kw_only=True):
    """`proposition_tuple` of the form `(subject, predicate, object)`. The subject is never a Literal."""

    subject: Term
    predicate: PredicateAtom | PredicatePath
    object: Term


PredicateAtom = Literal | Parameter | Variable
"""`predicate_atom`: a quoted symbol, a parameter, or (in a pattern) a variable that binds the exact ref."""

PropositionTuple = Triple | PropositionById
"""`proposition_tuple`."""

Term = Variable | Parameter | Literal | ObjectPattern | Triple | PropositionById
"""`term`: an endpoint of a tuple. A nested tuple is a statement about a statement."""

PatternValue = Variable | Parameter | Literal | ArrayPattern | ObjectPattern | Triple | PropositionById
"""`pattern_value`: what a member of a match object is compared with or bound to."""


# --- WHERE ------------------------------------------------------------------------------------------------

ElementKind = typing.Literal["concept", "assertion", "evidence", "activity"]


class ElementPattern(Node, frozen=True, kw_only=True):
    """`concept_pattern`, `assertion_pattern`, `evidence_pattern`, `activity_pattern`: `?x KIND {...}`."""

    kind: ElementKind
    variable: str
    match: ObjectPattern


class PropositionPattern(Node, frozen=True, kw_only=True):
    """`proposition_pattern`: `[?p] [PROPOSITION] (...)`; that it exists, never that it is believed."""

    variable: str | None = None
    tuple: PropositionTuple


class StructuralPattern(Node, frozen=True, kw_only=True):
    """`structural_pattern`: `[?edge] STRUCTURAL (source, "field", target)` (KIP §43.7)."""

    variable: str | None = None
    source: Term
    field: Symbol
    target: Term


class BeliefPattern(Node, frozen=True, kw_only=True):
    """`belief_pattern`: `?b BELIEF (?p)`, `(id: v)` or an exact triple (KIP §46). FIND only."""

    variable: str
    target: Variable | PropositionById | Triple


class BeliefSlotPattern(Node, frozen=True, kw_only=True):
    """`belief_slot_pattern`: `?s BELIEF SLOT (subject, predicate)` (KIP §47). FIND only."""

    variable: str
    subject: Term
    predicate: PredicateAtom


class Filter(Node, frozen=True, kw_only=True):
    """`filter_clause`: `FILTER(expression)`."""

    condition: Expression


class NotBlock(Node, frozen=True, kw_only=True):
    """`not_clause`: `NOT {...}`, no visible match (KIP §44.3)."""

    where: Where


class OptionalBlock(Node, frozen=True, kw_only=True):
    """`optional_clause`: `OPTIONAL {...}`, a left join (KIP §44.4)."""

    where: Where


class UnionBlock(Node, frozen=True, kw_only=True):
    """`union_clause`: `UNION {...}`, an independent branch beside the block before it (KIP §44.5)."""

    where: Where


WhereClause = (
    ElementPattern
    | PropositionPattern
    | StructuralPattern
    | BeliefPattern
    | BeliefSlotPattern
    | Filter
    | NotBlock
    | OptionalBlock
    | UnionBlock
)
"""`where_clause`. BELIEF and BELIEF SLOT stand only in FIND."""

Where = tuple[WhereClause, ...]
"""`where_block`: its clauses in the order written; the order has no meaning."""


AsOfAxis = typing.Literal["SEQ", "TX", "TIME"]


class AsOf(Node, frozen=True, kw_only=True):
    """`as_of_clause`: cognitive time by commit number, transaction id or instant (KIP §48.1)."""

    axis: AsOfAxis
    value: Scalar
