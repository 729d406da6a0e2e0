"""Corners: arrays and objects in match objects, joins over values and edges, references in FILTER."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import NoemaError
from core.language.ast import Filter, Parameter
from core.language.ast_kql import Find
from core.query import Limits, run
from core.state.indexes import type_key
from tests.core.query.brain import WORLD, Brain, question, reference


@pytest.fixture
def brain() -> Brain:
    """Three things with structured attributes, two trips that share a step."""
    b = Brain()
    b.one = b.concept(
        "Project", "one", aliases=("a", "b"), attributes={"tags": ["x", "y"], "at": [{"n": 1, "m": 2}]}
    )
    b.two = b.concept("Project", "two", aliases=("b",), attributes={"tags": ["x"], "of": "one", "n": 5})
    b.three = b.concept("Project", "three", attributes={"tags": "x", "same": ["x", "y"]})
    trips = [b.concept("Experience", name) for name in ("north", "south")]
    steps = [b.concept("Step", name) for name in ("pack", "go")]
    b.link(trips[0], "has_step", *steps)
    b.link(trips[1], "has_step", steps[1])
    b.fact = b.says(b.one, "part_of", b.two)
    b.says(b.one, "knows", b.two)
    b.says(b.two, "knows", b.one)
    b.note = b.evidence("document", "text")
    b.claimed = b.claim(b.fact, b.three, b.note)
    b.commit()
    return b


@pytest.mark.parametrize(
    ("match", "found"),
    [
        ('{attributes: {tags: ["x", "y"]}}', ["one"]),
        ('{attributes: {tags: ["y", "x"]}}', []),
        ('{attributes: {tags: ["x"]}}', ["two"]),
        ('{attributes: {tags: "x"}}', ["three"]),
        ("{attributes: {tags: [?first, ?second]}}", ["one"]),
        ("{attributes: {tags: [?same, ?same]}}", []),
        ("{attributes: {at: [{n: 1}]}}", ["one"]),
        ("{attributes: {at: [{n: 2}]}}", []),
        ("{attributes: {at: [{n: ?n, m: 2}]}}", ["one"]),
        ('{attributes: {tags: [{n: 1}, "y"]}}', []),
        ("{attributes: {n: [1]}}", []),
        ('{aliases: ["a", "b"]}', ["one"]),
        ('{aliases: "b"}', ["one", "two"]),
        ('{aliases: ?alias, name: "one"}', ["one"]),
        ("{name: ?n, attributes: {n: 5}}", ["two"]),
        ("{attributes: {}}", ["one", "two", "three"]),
    ],
)
def test_structured_values_in_patterns(brain: Brain, match: str, found: list[str]) -> None:
    """An array matches item by item, an object by the members named, a list of Core values by any member."""
    rows = brain.rows(f'FIND(?x.name) WHERE {{ ?x {match} ?x {{type: "Project"}} }}')

    assert list(dict.fromkeys(rows)) == found


def test_values_join_elements(brain: Brain) -> None:
    """A value of one element finds another by its name; a structured value joins with an equal one."""
    by_name = "FIND(?y.name) WHERE { ?x {attributes: {of: ?n}} ?y {name: ?n} }"
    whole = "FIND(?x.name, ?y.name) WHERE { ?x {attributes: {tags: ?t}} ?y {attributes: {same: ?t}} }"

    assert brain.rows(by_name) == ["one"]
    assert brain.rows(whole) == [["one", "three"]]
    assert brain.rows("FIND(?t) WHERE { ?x {attributes: {same: ?t}} }") == [["x", "y"]]


def test_value_that_is_no_element_is_no_end_of_a_tuple(brain: Brain) -> None:
    """A number or an array joins no subject, no predicate and no path."""
    for where in (
        '?x {attributes: {tags: ?t}} (?t, "knows", ?o)',
        "?x {attributes: {n: ?t}} (?s, ?t, ?o)",
        '?x {attributes: {tags: ?t}} (?t, "knows"{1,2}, ?o)',
        '?x {attributes: {tags: ?t}} (?s, "knows"{1,2}, ?t)',
        "?x {attributes: {n: ?t}} ?a ASSERTION {proposition: ?t}",
        '?x {attributes: {n: ?t}} STRUCTURAL (?s, "about", ?t)',
        '?x {attributes: {n: ?t}} ?y {type: "Project", key: ?t}',
        '?x {attributes: {n: ?t}} (?s, "knows", ?t)',
    ):
        assert brain.rows(f"FIND(COUNT(?x)) WHERE {{ {where} }}") == [0], where


def test_structural_edge_joins_as_itself(brain: Brain) -> None:
    """One edge variable in two patterns is one edge, in every order of doing it."""
    where = '?e STRUCTURAL ({name: "north"}, "has_step", ?s) ?e STRUCTURAL (?x, "has_step", {name: "go"})'

    assert brain.rows(f"FIND(?s.name, ?x.name, ?e.index) WHERE {{ {where} }}") == [["go", "north", 1]]


def test_reference_in_filter(brain: Brain) -> None:
    """A reference parameter compares with an element, alone and in a list."""
    where = '?x {type: "Project"} '

    assert brain.rows(f"FIND(?x.name) WHERE {{ {where} FILTER(?x == :r) }}", {"r": reference(brain.one)}) == [
        "one"
    ]
    listed = {"r": [reference(brain.one), reference(brain.two)]}
    assert brain.rows(f"FIND(?x.name) WHERE {{ {where} FILTER(IN(?x, :r)) }}", listed) == ["one", "two"]
    assert brain.rows(f"FIND(?x.name) WHERE {{ {where} FILTER(?x == :r) }}", {"r": brain.one.id}) == []
    nested = f"FIND(?x.name) WHERE {{ {where} FILTER(?x.attributes.at == [{{n: 1, m: 2}}]) }}"
    assert brain.rows(nested) == ["one"]


def test_contains(brain: Brain) -> None:
    """CONTAINS finds members of arrays, elements among citations, and parts of text."""
    cited = "FIND(?a.id) WHERE { ?e EVIDENCE {} ?a ASSERTION {} FILTER(CONTAINS(?a.evidence, ?e)) }"

    assert brain.rows('FIND(?x.name) WHERE { ?x {} FILTER(CONTAINS(?x.attributes.tags, "y")) }') == ["one"]
    assert brain.rows(cited) == [brain.claimed.id]
    assert brain.rows('FIND(?x.name) WHERE { ?x {} FILTER(CONTAINS(?x.name, "hre")) }') == ["three"]


def test_null_object_and_missing_match_are_two_things() -> None:
    """A literal null is a value that a predicate may have; OPTIONAL without a match is none."""
    b = Brain()
    one = b.concept("Place", "one")
    b.concept("Place", "two")
    b.says(one, "says", None)
    b.commit()
    text = 'FIND(?x.name, ?o) WHERE { ?x {type: "Place"} OPTIONAL { (?x, "says", ?o) } FILTER(%s) } ORDER BY ?x.name'

    assert b.rows(text % "IS_NULL(?o)") == [["one", None], ["two", None]]
    assert b.rows(text % "IS_LITERAL(?o)") == [["one", None]]
    assert b.rows('FIND(?x.name) WHERE { (?x, "says", null) }') == ["one"]


def test_regex_looks_at_bounded_texts(brain: Brain) -> None:
    """A very long text is refused, not searched."""
    brain.concept("Project", "long", attributes={"t": "x" * 70_000})
    brain.commit()
    with pytest.raises(NoemaError) as refused:
        brain.rows('FIND(?x) WHERE { ?x {} FILTER(REGEX(?x.attributes.t, "y")) }')

    assert refused.value.code == "ResourceExhausted"
    assert brain.rows("FIND(?x.name) WHERE { ?x {} FILTER(REGEX(?x.name, ?x.attributes.n)) }") == []


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ('IS_KIND(?x, "thing")', "TypeMismatch"),
        ("?y.name == 1", "ReferenceError"),
        ("?x.nme == 1", "SchemaFieldNotFound"),
    ],
)
def test_conditions_that_are_refused(brain: Brain, condition: str, code: str) -> None:
    """A condition that can mean nothing is an error."""
    with pytest.raises(NoemaError) as refused:
        brain.rows(f"FIND(?x) WHERE {{ ?x {{}} FILTER({condition}) }}")

    assert refused.value.code == code


def test_unbound_parameter_is_refused(brain: Brain) -> None:
    """A tree with a parameter left in it is not run."""
    find = question("FIND(?x) WHERE { ?x {} }")
    broken = (
        Find(projections=find.projections, where=(*find.where, Filter(condition=Parameter(name="p")))),
        Find(projections=find.projections, where=find.where, limit=Parameter(name="p")),
    )
    for command in broken:
        with pytest.raises(NoemaError) as refused:
            run(brain.state, command, brain.env, brain.context())
        assert refused.value.code == "InvalidRequestEnvelope"


def test_path_into_a_value(brain: Brain) -> None:
    """A variable that a pattern bound to JSON is read like any JSON."""
    assert brain.rows("FIND(?at.n) WHERE { ?x {attributes: {at: [?at]}} }") == [1]
    assert brain.rows("FIND(?t.n) WHERE { ?x {attributes: {tags: ?t}} } LIMIT 1") == [None]


def test_page_continues_whichever_way_it_is_found(brain: Brain) -> None:
    """A page that began by streaming ends the same when the rest is found by another plan."""
    text = 'FIND(?x.name) WHERE { ?x {type: "Project"} ({type: "Project"}, "knows"{0,1}, ?x) } LIMIT 2'
    first = brain.find(text)
    rest = brain.rows(f'{text} CURSOR "{first.next_cursor}"')

    assert first.rows + rest == ["one", "two", "three"]


def test_predicate_of_a_package_no_longer_installed(brain: Brain) -> None:
    """Old data are read by their exact reference; belief about them needs no definition (HIST-005)."""
    gone = "kip://old/words@1.0.0/likes"
    old = brain.says(brain.one, "knows", brain.three)
    brain.change(old, predicate_ref=gone)
    brain.claim(old, brain.two, confidence=0.9)
    brain.commit()
    where = '({name: "one"}, ?p, {name: "three"}) ?b BELIEF ({name: "one"}, ?p, {name: "three"})'

    assert brain.rows(f"FIND(?p, ?b.status) WHERE {{ {where} }}") == [[gone, "accepted"]]
    virtual = '(?s, ?p, {name: "three"}) ?b BELIEF ({name: "two"}, ?p, 5)'
    assert brain.rows(f"FIND(?b.status) WHERE {{ {virtual} }}") == ["insufficient"]


def test_belief_joins_are_refused_or_dropped() -> None:
    """A row whose tuple the schema does not admit gives no belief; a subject that is none gives none either."""
    b = Brain()
    one = b.concept("Person", "one", attributes={"zone": 5})
    b.commit()
    rows: list[Any] = b.rows('FIND(?b) WHERE { ?x {attributes: {zone: ?z}} ?b BELIEF (?x, "timezone", ?z) }')

    assert rows == []
    assert b.rows('FIND(?s) WHERE { ?x {attributes: {zone: ?z}} ?s BELIEF SLOT (?z, "timezone") }') == []
    assert b.rows('FIND(?b) WHERE { ?b BELIEF (id: "P-0000000000000000") }') == []
    assert b.rows("FIND(?b) WHERE { ?b BELIEF (id: :c) }", {"c": one.id}) == []
    assert b.rows('FIND(?x.name) WHERE { ?x {type: "Person"} }', limits=Limits(page=1)) == ["one"]
    assert b.rows("FIND(?x.kind) WHERE { ?x {} FILTER(?x._system.updated_tx == ?x._system.created_tx) }") == [
        "concept"
    ]


@pytest.mark.parametrize(
    "where",
    [
        " ".join(["?x {}"] * 129),
        " ".join(["FILTER(true)"] * 129),
        " ".join(['({name: "one"}, "knows", {name: "two"})'] * 50),
        "?x {attributes: {" + ", ".join(f"a{i}: ?v{i}" for i in range(200)) + "}}",
    ],
)
def test_size_of_a_query_is_bounded(brain: Brain, where: str) -> None:
    """A query of very many patterns is refused before it is planned."""
    with pytest.raises(NoemaError) as refused:
        brain.rows(f"FIND(COUNT(?x)) WHERE {{ ?x {{}} {where} }}")

    assert refused.value.code == "ResourceExhausted"


def test_no_hops_lead_from_everything_to_itself(brain: Brain) -> None:
    """With both ends free, {0,...} reaches every element, whatever its kind."""
    count = brain.rows('FIND(COUNT(?x)) WHERE { (?x, "part_of"{0}, ?x) }')

    assert count == [
        sum(1 for kind in ("concept", "proposition", "assertion", "evidence") for _ in brain.state.ids(kind))
    ]  # type: ignore[arg-type]
    assert brain.rows('FIND(COUNT(?y)) WHERE { (?x, "part_of"{0,1}, ?y) ?x {name: "one"} }') == [2]
    assert brain.rows('FIND(?y) WHERE { ({id: "C-0000000000000000"}, "part_of"{0,1}, ?y) }') == []


def test_one_virtual_variable_for_two_beliefs_is_refused(brain: Brain) -> None:
    """Each BELIEF has a variable of its own."""
    with pytest.raises(NoemaError) as refused:
        brain.rows("FIND(?b) WHERE { ?b BELIEF (id: :p) ?b BELIEF (id: :p) }", {"p": brain.fact.id})

    assert refused.value.code == "TypeMismatch"


def test_null_reference_matches_what_refers_to_nothing(brain: Brain) -> None:
    """A reference field compared with null, and one that may not be read."""
    assert brain.rows("FIND(?e.id) WHERE { ?e EVIDENCE {generated_by: null} }") == [brain.note.id]
    assert brain.rows('FIND(?x.name) WHERE { ?x CONCEPT {merged_into: null, name: "one"} }') == ["one"]
    hidden = {"hidden_fields": lambda element: frozenset({"evidence"})}
    cited = "FIND(?a.id) WHERE { ?a ASSERTION {evidence: ?e} }"
    assert brain.rows(cited) == [brain.claimed.id]
    assert brain.rows(cited, **hidden) == []
    assert brain.rows('FIND(?a.id) WHERE { STRUCTURAL (?a, "evidence", ?e) }', **hidden) == []


def test_structural_references_in_a_path(brain: Brain) -> None:
    """A path names a structural field by its local name, as a pattern does."""
    (steps,) = brain.rows('FIND(?x.structural["has_step"]) WHERE { ?x {name: "north"} }')

    assert [set(step) for step in steps] == [{"id"}, {"id"}]


@pytest.mark.parametrize(
    ("clause", "code"),
    [
        ("FOR TIME :v", "TypeMismatch"),
        ("AS OF TX :v", "TypeMismatch"),
        ('FOR TIME "2026-01-01"', "TypeMismatch"),
        ('FOR TIME "2026-01-01T00:00:00.0001Z"', "TypeMismatch"),
    ],
)
def test_times_that_are_none(brain: Brain, clause: str, code: str) -> None:
    """A time is RFC 3339 text, to the millisecond; asked for or not, a wrong one is told."""
    with pytest.raises(NoemaError) as refused:
        brain.rows(f"FIND(?x) WHERE {{ ?x {{}} }} {clause}", {"v": 5})

    assert refused.value.code == code


def test_belief_of_a_past_instant_is_about_that_instant(brain: Brain) -> None:
    """AS OF TIME without FOR TIME asks about the time it names."""
    answer = brain.find(
        'FIND(?b.temporal.valid_at) WHERE { ?b BELIEF (id: :p) } AS OF TIME "2026-06-01T00:00:00Z"',
        {"p": brain.fact.id},
    )

    assert answer.rows == ["2026-06-01T00:00:00.000Z"]


def test_an_index_that_lists_too_much_is_not_believed_about_kinds(brain: Brain) -> None:
    """Whatever stands under a key, an element of another kind is never listed or counted (docs/kip.md)."""
    person = brain.concept("Person", "Solo")
    stray = brain.says(person, "knows", person)
    brain.commit()
    key = type_key(f"{WORLD}/Person")

    class Collides:
        """The state, with a key of the same fingerprint as that of a type."""

        def __getattr__(self, name: str) -> object:
            return getattr(brain.state, name)

        def find(self, wanted: str) -> list[str]:
            return [*brain.state.find(wanted), *([stray.id] if wanted in {key, "!concept"} else [])]

    def rows(text: str) -> list[object]:
        return run(Collides(), question(text), brain.env, brain.context()).rows  # type: ignore[arg-type]

    for where in ('?c CONCEPT {type: "Person"}', "?c CONCEPT {}"):
        assert rows(f"FIND(COUNT(?c)) WHERE {{ {where} }}") == brain.rows(
            f"FIND(COUNT(?c)) WHERE {{ {where} }}"
        )
        assert stray.id not in str(rows(f"FIND(?c) WHERE {{ {where} }}"))
