"""Hypothesis strategies for the syntax tree: every node the parser can build, and no other."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from core.language import ast, ast_kml, ast_kql, ast_meta
from core.language.functions import FILTER_FUNCTIONS, UPDATE_FUNCTIONS
from core.language.limits import MAX_INTEGER, MIN_INTEGER

_WORDS = ["a", "x1", "_b", "find", "WHERE", "not", "true", "id", "facets", "by", "index", "key"]
identifiers = st.sampled_from(_WORDS)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = identifiers | texts.filter(lambda text: text != "value")  # {value: ...} in a term is a typed literal
scalars = (
    st.none()
    | st.booleans()
    | st.integers(MIN_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
literals = scalars.map(lambda value: ast.Literal(value=value))
strings = texts.map(lambda value: ast.Literal(value=value))
parameters = identifiers.map(lambda name: ast.Parameter(name=name))
variables = identifiers.map(lambda name: ast.Variable(name=name))
accesses = st.builds(
    lambda variable, path: ast.FieldAccess(variable=variable, path=tuple(path)),
    identifiers,
    st.lists(identifiers | texts, min_size=1, max_size=3),
)
scalar_values = parameters | literals
symbols = parameters | strings


def tuples_of(items: st.SearchStrategy[Any], minimum: int = 0, maximum: int = 3) -> st.SearchStrategy[Any]:
    return st.lists(items, min_size=minimum, max_size=maximum).map(tuple)


def objects_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[ast.Object]:
    return st.dictionaries(names, values, max_size=3).map(
        lambda members: ast.Object(
            members=tuple(ast.Member(name=name, value=value) for name, value in members.items())
        )
    )


def values_of(leaves: st.SearchStrategy[Any], functions: dict[str, int] | None) -> st.SearchStrategy[Any]:
    """Assigned values: leaves, arrays, objects, and calls of these functions."""

    def grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        grown = tuples_of(inner).map(lambda items: ast.Array(items=items)) | objects_of(inner)
        return grown | calls_of(functions, inner) if functions else grown

    return st.recursive(leaves, grow, max_leaves=6)


def calls_of(functions: dict[str, int], arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from(sorted(functions)).flatmap(
        lambda name: tuples_of(arguments, functions[name], functions[name]).map(
            lambda drawn: ast.FunctionCall(name=name, arguments=drawn)
        )
    )


constants = objects_of(values_of(literals | parameters, None))


def _grow_expression(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def is_number(node: Any) -> bool:
        return isinstance(node, ast.Literal) and type(node.value) in {int, float}

    operators = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    return (
        st.builds(lambda op, a, b: ast.Comparison(operator=op, left=a, right=b), operators, inner, inner)
        | tuples_of(inner, 2).map(lambda items: ast.And(operands=items))
        | tuples_of(inner, 2).map(lambda items: ast.Or(operands=items))
        | inner.map(lambda item: ast.Not(operand=item))
        | inner.filter(lambda item: not is_number(item)).map(lambda item: ast.Minus(operand=item))
        | calls_of(FILTER_FUNCTIONS, inner)
    )


expressions = st.recursive(variables | accesses | parameters | literals, _grow_expression, max_leaves=8)


def _patterns_of(tuples: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    leaves = variables | parameters | literals | tuples

    def grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return tuples_of(inner).map(lambda items: ast.ArrayPattern(items=items)) | matches_of(inner)

    return st.recursive(leaves, grow, max_leaves=4)


def matches_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[ast.ObjectPattern]:
    return st.dictionaries(names, values, max_size=3).map(
        lambda members: ast.ObjectPattern(
            members=tuple(ast.PatternMember(name=name, value=value) for name, value in members.items())
        )
    )


by_id = scalar_values.map(lambda value: ast.PropositionById(id=value))
atoms = symbols | variables
matches = matches_of(_patterns_of(by_id))
typed = st.builds(
    lambda value, language: ast.Literal(value=value, language=language),
    texts,
    st.sampled_from(["fr", "de-AT"]),
)
hops = st.builds(
    lambda atom, low, more: ast.PathAtom(
        predicate=atom, minimum=low, maximum=None if more is None else low + more
    ),
    atoms,
    st.integers(0, 4),
    st.none() | st.integers(0, 3),
)
paths = tuples_of(hops, 2).map(lambda items: ast.PredicatePath(alternatives=items)) | hops.filter(
    lambda hop: (hop.minimum, hop.maximum) != (1, 1)
).map(lambda hop: ast.PredicatePath(alternatives=(hop,)))


def triples_of(
    predicates: st.SearchStrategy[Any], variable: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    """Tuples, up to two deep."""

    def grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.builds(
            lambda subject, predicate, target: ast.Triple(
                subject=subject, predicate=predicate, object=target
            ),
            inner,
            predicates,
            inner | literals | typed,
        )

    elements = variable | parameters | matches_of(literals | parameters) | by_id
    return grow(elements) | grow(grow(elements))


exact_triples = triples_of(atoms, variables)
raw_triples = triples_of(atoms | paths, variables)
elements = variables | parameters | matches | exact_triples


def _clauses_of(triples: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    kinds = st.sampled_from(["concept", "assertion", "evidence", "activity"])
    optional = st.none() | identifiers
    return (
        st.builds(
            lambda kind, name, match: ast.ElementPattern(kind=kind, variable=name, match=match),
            kinds,
            identifiers,
            matches,
        )
        | st.builds(
            lambda name, item: ast.PropositionPattern(variable=name, tuple=item), optional, triples | by_id
        )
        | st.builds(
            lambda name, a, field, b: ast.StructuralPattern(variable=name, source=a, field=field, target=b),
            optional,
            elements,
            symbols,
            elements,
        )
        | expressions.map(lambda item: ast.Filter(condition=item))
    )


def where_of(clauses: st.SearchStrategy[Any], minimum: int = 0) -> st.SearchStrategy[ast.Where]:
    def grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        block = tuples_of(inner)
        return (
            block.map(lambda where: ast.NotBlock(where=where))
            | block.map(lambda where: ast.OptionalBlock(where=where))
            | block.map(lambda where: ast.UnionBlock(where=where))
        )

    return tuples_of(st.recursive(clauses, grow, max_leaves=4), minimum)


beliefs = st.builds(
    lambda name, target: ast.BeliefPattern(variable=name, target=target),
    identifiers,
    variables | by_id | exact_triples,
) | st.builds(
    lambda name, subject, atom: ast.BeliefSlotPattern(variable=name, subject=subject, predicate=atom),
    identifiers,
    elements,
    atoms,
)
find_where = where_of(_clauses_of(raw_triples) | beliefs)
as_of = st.builds(
    lambda axis, value: ast.AsOf(axis=axis, value=value),
    st.sampled_from(["SEQ", "TX", "TIME"]),
    scalar_values,
)
aggregates = st.builds(
    lambda function, distinct, argument: ast_kql.Aggregate(
        function=function, distinct=distinct, argument=argument
    ),
    st.sampled_from(["COUNT", "SUM", "AVG", "MIN", "MAX"]),
    st.booleans(),
    expressions,
)
projections = variables | accesses | aggregates
maybe = st.none() | scalar_values

finds = st.builds(
    ast_kql.Find,
    projections=tuples_of(projections, 1),
    where=find_where,
    as_of=st.none() | as_of,
    for_time=maybe,
    epistemic=st.none() | constants,
    order_by=tuples_of(
        st.builds(
            lambda item, down: ast_kql.OrderItem(expression=item, descending=down), projections, st.booleans()
        )
    ),
    limit=maybe,
    cursor=maybe,
    span=st.just(ast.NOWHERE),
)

# --- KML --------------------------------------------------------------------------------------------------

_SELECTED = ast.ElementPattern(kind="concept", variable="t", match=ast.ObjectPattern())
"""Binds the target ?t of every selecting statement, so that its WHERE accounts for it."""


def _contents(leaves: st.SearchStrategy[Any], *, unset: bool) -> st.SearchStrategy[ast_kml.Content]:
    values = values_of(leaves, UPDATE_FUNCTIONS if leaves is _closed else None)
    fields = objects_of(values)
    unset_names = st.lists(names, max_size=3, unique=True).map(tuple)

    def facets(build: Any) -> st.SearchStrategy[Any]:
        return st.lists(build, max_size=2, unique_by=lambda facet: facet.facet).map(tuple)

    def references(node: Any, **more: Any) -> st.SearchStrategy[Any]:
        return tuples_of(
            st.builds(node, field=symbols, target=values, span=st.just(ast.NOWHERE), **more), 0, 2
        )

    set_facets = st.builds(lambda facet, item: ast_kml.SetFacet(facet=facet, values=item), symbols, fields)
    unset_facets = st.builds(
        lambda facet, item: ast_kml.UnsetFacet(facet=facet, fields=item), symbols, unset_names
    )
    removed = {
        "unset_attributes": st.none() | unset_names,
        "unset_facets": facets(unset_facets),
        "unset_structural": references(ast_kml.StructuralRemoval),
    }
    return st.builds(
        ast_kml.Content,
        fields=st.none() | fields,
        attributes=st.none() | fields,
        facets=facets(set_facets),
        structural=references(ast_kml.StructuralAssignment, options=st.none() | constants),
        span=st.just(ast.NOWHERE),
        **(removed if unset else {}),
    )


_closed = literals | parameters


@st.composite
def mutations(draw: st.DrawFn) -> ast_kml.Mutate:
    """A MUTATE of a few clauses whose handles are distinct and whose variables are these handles."""
    handles = [f"h{number}" for number in range(draw(st.integers(1, 4)))]
    own = st.sampled_from(handles).map(lambda name: ast.Variable(name=name))
    clauses = [draw(_creating(name, own)) for name in handles]
    clauses += draw(st.lists(_changing(own), max_size=3))
    return ast_kml.Mutate(clauses=tuple(draw(st.permutations(clauses))))


def _creating(handle: str, own: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    content = _contents(_closed, unset=False)
    linked = _contents(_closed | own, unset=False)
    identity = st.dictionaries(st.sampled_from(["type", "name"]), _closed, max_size=2).flatmap(
        lambda more: st.sampled_from(["id", "key"]).map(lambda key: {**more, key: ast.Parameter(name="k")})
    )
    match = identity.map(
        lambda members: ast.ObjectPattern(
            members=tuple(ast.PatternMember(name=name, value=value) for name, value in members.items())
        )
    )
    span = st.just(ast.NOWHERE)
    value = values_of(_closed | own, None)
    written = triples_of(symbols, own)
    by_handle = {"handle": st.just(handle), "span": span}
    return (
        st.builds(
            ast_kml.CreateConcept,
            type=symbols,
            client_key=maybe,
            name=maybe,
            content=content | linked,
            **by_handle,
        )
        | st.builds(
            ast_kml.CreateRecord,
            kind=st.sampled_from(["evidence", "assertion", "activity"]),
            client_key=maybe,
            content=linked.map(lambda item: ast_kml.Content(fields=item.fields, structural=item.structural)),
            **by_handle,
        )
        | st.builds(
            ast_kml.UpsertConcept,
            match=match,
            expect_version=maybe,
            content=_contents(_closed | own, unset=True),
            **by_handle,
        )
        | st.builds(ast_kml.EnsureProposition, tuple=written, expect_version=maybe, **by_handle)
        | st.builds(
            ast_kml.Assert,
            tuple=written,
            by=value,
            mode=value,
            stance=st.none() | value,
            confidence=st.none() | value,
            at=st.none() | value,
            valid=st.none() | value,
            evidence=st.none() | value,
            key=st.none() | value,
            superseding=st.none() | own | symbols,
            **by_handle,
        )
    )


def _changing(own: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    target = own | symbols | st.just(ast.Variable(name="t"))
    free = _clauses_of(triples_of(atoms, variables))
    where = where_of(free).map(lambda clauses: (_SELECTED, *clauses))
    span = st.just(ast.NOWHERE)
    content = _contents(_closed, unset=True).filter(lambda item: item != ast_kml.Content())
    selected = {"target": target, "where": where, "limit": maybe, "span": span}
    states = {"expect_state": maybe, "span": span}
    known = own | symbols
    return (
        st.builds(ast_kml.Update, expect_version=maybe, content=content, **selected)
        | st.builds(ast_kml.RetractAssertion, **selected, expect_state=maybe)
        | st.builds(ast_kml.Archive, **selected, expect_state=maybe)
        | st.builds(ast_kml.Tombstone, **selected, expect_state=maybe)
        | st.builds(ast_kml.Purge, **selected, reference_policy=maybe)
        | st.builds(
            ast_kml.SetRetention,
            values=objects_of(values_of(_closed, None)),
            expect_version=maybe,
            **selected,
        )
        | st.builds(ast_kml.SupersedeAssertion, target=known, by=known, **states)
        | st.builds(ast_kml.CorrectEvidence, target=known, by=known, **states)
        | st.builds(
            ast_kml.TransitionActivity,
            target=known,
            to=scalar_values,
            fields=st.none() | objects_of(values_of(_closed, None)),
            **states,
        )
        | st.builds(
            ast_kml.MergeConcept, source=target, target=target, where=where, expect_version=maybe, span=span
        )
    )


# --- META -------------------------------------------------------------------------------------------------

_PAGE = {"limit": maybe, "cursor": maybe, "span": st.just(ast.NOWHERE)}
_DESCRIBED = [
    "PACKAGE",
    "TYPE",
    "PREDICATE",
    "FACET",
    "STRUCTURAL FIELD",
    "ERROR",
    "TRANSACTION",
    "IDEMPOTENCY KEY",
]
_PLAIN = ["PROTOCOL", "EXECUTION CONTEXT", "CAPABILITIES", "PROJECTION CAPABILITY"]
describes = (
    st.builds(
        lambda topic, item: ast_meta.Describe(topic=topic, subject=item),
        st.sampled_from([*_DESCRIBED, "CAPSULE", "SPACE", "EPISTEMIC POLICY", "TRUST"]),
        scalar_values,
    )
    | st.sampled_from([*_PLAIN, "SPACE", "EPISTEMIC POLICY", "TRUST", "PRIMER", "ACCESS", "SNAPSHOT"]).map(
        lambda topic: ast_meta.Describe(topic=topic)
    )
    | as_of.map(lambda item: ast_meta.Describe(topic="SCHEMA ENVIRONMENT", as_of=item))
    | constants.map(lambda item: ast_meta.Describe(topic="ACCESS", options=item))
    | st.builds(
        lambda a, b: ast_meta.Describe(topic="COMPATIBILITY", subject=a, to=b), scalar_values, scalar_values
    )
)
modes = (
    st.none()
    | parameters
    | st.sampled_from(["keyword", "semantic", "hybrid"]).map(lambda mode: ast.Literal(value=mode))
)
searches = st.builds(
    ast_meta.Search,
    kind=st.sampled_from(["concept", "proposition", "assertion", "evidence", "activity", "cognition"]),
    term=scalar_values,
    type=maybe,
    predicate=maybe,
    mode=modes,
    threshold=maybe,
    as_of_seq=maybe,
    **_PAGE,
)
exports = st.builds(
    lambda where, options, item: ast_meta.ExportCapsule(
        target=ast.Variable(name="t"), where=(_SELECTED, *where), options=options, as_of=item
    ),
    where_of(_clauses_of(exact_triples)),
    st.none() | constants,
    st.none() | as_of,
)
metas = (
    describes
    | searches
    | exports
    | st.builds(
        ast_meta.ListStatement, topic=st.sampled_from(["SPACES", "TYPES", "SCHEMA PACKAGES"]), **_PAGE
    )
    | st.builds(ast_meta.History, element=maybe, from_seq=maybe, to_seq=maybe, **_PAGE)
    | st.builds(lambda a, n: ast_meta.Changes(since=a, limit=n), scalar_values, maybe)
    | st.builds(lambda a, n: ast_meta.Changes(after_seq=a, limit=n), scalar_values, maybe)
    | st.builds(
        lambda target, item, options: ast_meta.Validate(target=target, subject=item, options=options),
        st.sampled_from(["KQL", "KML", "CAPSULE", "SCHEMA PACKAGE", "IMPORT PLAN"]),
        scalar_values,
        st.none() | constants,
    )
    | st.builds(lambda item: ast_meta.PreviewKml(command=item), scalar_values)
    | st.builds(lambda a, b: ast_meta.PreviewImport(capsule=a, into=b), scalar_values, scalar_values)
    | (st.none() | as_of).map(lambda item: ast_meta.Snapshot(as_of=item))
)

commands = finds | mutations() | metas
