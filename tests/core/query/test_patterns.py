"""The pattern families of WHERE (KIP §43)."""

from __future__ import annotations

import pytest

from core.errors import NoemaError
from core.model.literals import make_literal
from tests.core.query.brain import NOW, WORLD, Brain, reference


@pytest.fixture
def brain() -> Brain:
    """Alice prefers Dark, knows Bob, and says so; an experience of two steps."""
    b = Brain()
    b.alice = b.concept(
        "Person", "Alice", key="alice", aliases=("Al",), attributes={"age": 5, "home": {"city": "Bonn"}}
    )
    b.bob = b.concept("Person", "Bob", key="bob", client_key="ck-1", canonical_id="urn:bob")
    b.dark = b.concept("Theme", "Dark", key="alice")
    b.prefers = b.says(b.alice, "prefers", b.dark)
    b.knows = b.says(b.alice, "knows", b.bob)
    b.zone = b.says(b.alice, "timezone", "+08:00")
    b.meta = b.says(b.bob, "says", b.prefers)
    b.note = b.evidence("tool_result", "a note", b.bob)
    b.claimed = b.claim(b.prefers, b.alice, b.note, confidence=0.9, since="2026-01-01T00:00:00Z")
    b.doubted = b.claim(b.zone, b.bob, stance="reject", mode="inferred", context_refs=(b.dark.id,))
    b.run = b.activity("inference", [b.note], [b.claimed], associated_actors=(b.bob.id,))
    b.commit()
    return b


def names(brain: Brain, where: str, parameters: object = None) -> list[object]:
    """The names of what ?x stands for."""
    return brain.rows(f"FIND(?x.name) WHERE {{ {where} }}", parameters)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("match", "found"),
    [
        ('{type: "Person"}', ["Alice", "Bob"]),
        (f'{{type: "{WORLD}/Person"}}', ["Alice", "Bob"]),
        (f'{{schema_ref: "{WORLD}/Theme"}}', ["Dark"]),
        ('{name: "Alice"}', ["Alice"]),
        ('{aliases: "Al"}', ["Alice"]),
        ('{key: "alice"}', ["Alice", "Dark"]),
        ('{type: "Person", key: "alice"}', ["Alice"]),
        ('{canonical_id: "urn:bob"}', ["Bob"]),
        ('{client_key: "ck-1"}', ["Bob"]),
        ("{attributes: {age: 5}}", ["Alice"]),
        ("{attributes: {age: 5.0}}", ["Alice"]),
        ('{attributes: {home: {city: "Bonn"}}}', ["Alice"]),
        ('{attributes: {age: "5"}}', []),
        ("{attributes: {age: true}}", []),
        ('{canonical_id: null, type: "Person"}', ["Alice"]),
        ('{_system: {version: 1}, type: "Theme"}', ["Dark"]),
        ('{space_id: "test", type: "Theme"}', ["Dark"]),
        ('{space_id: "other"}', []),
        ("{name: 5}", []),
        ("{}", ["Alice", "Bob", "Dark"]),
    ],
)
def test_concept_pattern(brain: Brain, match: str, found: list[str]) -> None:
    """A Concept pattern matches by each of its fields, with typed equality."""
    assert names(brain, f"?x CONCEPT {match}") == found


def test_name_does_not_find_by_alias(brain: Brain) -> None:
    """The member `name` is the name; an alias is found by `aliases`."""
    assert names(brain, '?x {name: "Al"}') == []


def test_concept_by_id(brain: Brain) -> None:
    """An id given as text or as a reference finds its element."""
    assert names(brain, "?x {id: :id}", {"id": brain.bob.id}) == ["Bob"]
    assert names(brain, "?x {id: :id}", {"id": reference(brain.bob)}) == ["Bob"]
    assert brain.rows(
        'FIND(?o.name) WHERE { ({id: :id}, "prefers", ?o) }', {"id": reference(brain.alice)}
    ) == ["Dark"]
    assert names(brain, '?x {id: "C-none"}') == []
    assert names(brain, '?x {id: "X"}') == []


def test_variable_in_a_match_object_binds_what_is_there(brain: Brain) -> None:
    """A variable in a match object binds the value; an element without one does not match."""
    rows = brain.rows("FIND(?c.name, ?age) WHERE { ?c {attributes: {age: ?age}} }")

    assert rows == [["Alice", 5]]


def test_value_of_an_attribute_joins_with_a_literal_object(brain: Brain) -> None:
    """A scalar read from an attribute and the object of a tuple are one value."""
    brain.concept("Place", "Clock", attributes={"offset": "+08:00"})
    brain.commit()

    assert brain.rows('FIND(?c.name) WHERE { ?c {attributes: {offset: ?o}} (?p, "timezone", ?o) }') == [
        "Clock"
    ]


def test_proposition_pattern_binds_both_ends(brain: Brain) -> None:
    """A tuple pattern binds its subject, object and itself."""
    rows = brain.rows('FIND(?s.name, ?o.name, ?p.id) WHERE { ?p (?s, "prefers", ?o) }')

    assert rows == [["Alice", "Dark", brain.prefers.id]]


def test_predicate_variable_binds_the_exact_reference(brain: Brain) -> None:
    """KQL-003: never a local name."""
    rows = brain.rows('FIND(?pred) WHERE { ({key: "alice", type: "Person"}, ?pred, ?o) } ORDER BY ?pred')

    assert rows == [f"{WORLD}/knows", f"{WORLD}/prefers", f"{WORLD}/timezone"]


def test_bound_predicate_variable_is_compared(brain: Brain) -> None:
    """A predicate variable joins two tuples."""
    brain.says(brain.bob, "knows", brain.alice)
    brain.commit()
    rows = brain.rows("FIND(?a.name, ?b.name) WHERE { (?a, ?p, ?b) (?b, ?p, ?a) } ORDER BY ?a.name")

    assert rows == [["Alice", "Bob"], ["Bob", "Alice"]]


def test_nested_tuple_and_id_form_name_a_proposition(brain: Brain) -> None:
    """A statement about a statement is matched by its tuple or by its id."""
    by_tuple = 'FIND(?w.name) WHERE { (?w, "says", ({name: "Alice"}, "prefers", {name: "Dark"})) }'
    by_id = 'FIND(?w.name) WHERE { (?w, "says", (id: :p)) }'

    assert brain.rows(by_tuple) == ["Bob"]
    assert brain.rows(by_id, {"p": brain.prefers.id}) == ["Bob"]
    assert brain.rows("FIND(?p.id) WHERE { ?p (id: :p) }", {"p": brain.zone.id}) == [brain.zone.id]


def test_inline_matcher_is_not_part_of_the_solution(brain: Brain) -> None:
    """Two people who prefer one theme are one solution when only the theme is named."""
    brain.says(brain.bob, "prefers", brain.dark)
    brain.commit()

    assert brain.rows('FIND(COUNT(?t)) WHERE { ({type: "Person"}, "prefers", ?t) }') == [1]
    assert brain.rows('FIND(COUNT(?t)) WHERE { (?who, "prefers", ?t) }') == [2]


def test_literals_keep_datatype_and_language() -> None:
    """KIP §9.4: a language tag is part of what the value is."""
    b = Brain()
    place = b.concept("Place", "Bonn")
    for value in ("chat", make_literal("chat", language="fr"), 1, True, "1"):
        b.says(place, "says", value)
    b.commit()

    def count(term: str) -> int:
        return len(b.rows(f'FIND(?p.id) WHERE {{ ?p (?s, "says", {term}) }}'))

    assert [count(term) for term in ('"chat"', "1", "1.0", "true", '"1"')] == [1, 1, 1, 1, 1]
    assert count('{value: "chat", language: "fr"}') == 1
    assert b.rows('FIND(?o.language) WHERE { (?s, "says", ?o) FILTER(IS_NOT_NULL(?o.language)) }') == ["fr"]
    assert b.rows('FIND(?o) WHERE { (?s, "says", ?o) FILTER(?o.language == "fr") }') == [
        {"value": "chat", "datatype": None, "language": "fr"}
    ]


def test_string_that_looks_like_an_id_is_a_string(brain: Brain) -> None:
    """A reference is written {id: ...}; the same text as an object is a Literal."""
    brain.says(brain.bob, "prefers", brain.alice.id)
    brain.commit()
    text = 'FIND(?s.name) WHERE { (?s, "prefers", :o) }'

    assert brain.rows(text, {"o": brain.alice.id}) == ["Bob"]
    assert brain.rows(text, {"o": reference(brain.alice)}) == []


@pytest.mark.parametrize(
    ("match", "count"),
    [
        ('{proposition: ?p, stance: "support"}', 1),
        ('{stance: "reject", mode: "inferred"}', 1),
        ('{asserted_by: {name: "Alice"}}', 1),
        ('{asserted_by: {name: "Carol"}}', 0),
        ('{proposition: ({name: "Alice"}, "timezone", "+08:00")}', 1),
        ('{evidence: {evidence_class: "tool_result"}}', 1),
        ('{evidence: [{evidence_class: "tool_result"}]}', 1),
        ('{context_refs: {name: "Dark"}}', 1),
        ('{lifecycle: {status: "active"}}', 2),
        ('{lifecycle: {status: "retracted"}}', 0),
        ('{valid_time: {from: "2026-01-01T01:00:00+01:00"}}', 1),
        ("{confidence: 0.9}", 1),
        ("{confidence: null}", 1),
        ("{}", 2),
    ],
)
def test_assertion_pattern(brain: Brain, match: str, count: int) -> None:
    """KQL-004: an Assertion is matched by its fields, references by element, matcher or tuple."""
    extra = '?p (?s, "prefers", ?o)' if "?p" in match else ""

    assert len(brain.rows(f"FIND(?a.id) WHERE {{ ?a ASSERTION {match} {extra} }}")) == count


def test_assertion_by_the_id_of_its_proposition(brain: Brain) -> None:
    """Where only an element may stand, text is its id (KQL design §219)."""
    rows = brain.rows("FIND(?a.id) WHERE { ?a ASSERTION {proposition: :p} }", {"p": brain.prefers.id})

    assert rows == [brain.claimed.id]


def test_evidence_and_activity_patterns(brain: Brain) -> None:
    """KQL-005, KQL-006."""
    assert brain.rows('FIND(?e.payload.inline) WHERE { ?e EVIDENCE {evidence_class: "tool_result"} }') == [
        "a note"
    ]
    assert brain.rows('FIND(?e.id) WHERE { ?e EVIDENCE {source: {name: "Bob"}} }') == [brain.note.id]
    activity = 'FIND(?x.status) WHERE { ?x ACTIVITY {activity_class: "inference", status: "completed"} }'
    assert brain.rows(activity) == ["completed"]
    assert brain.rows("FIND(?x.id) WHERE { ?x ACTIVITY {outputs: ?a} ?a ASSERTION {} }") == [brain.run.id]
    assert brain.rows('FIND(?x.id) WHERE { ?x ACTIVITY {inputs: {evidence_class: "tool_result"}} }') == [
        brain.run.id
    ]


def test_bare_pattern_sees_active_elements_only(brain: Brain) -> None:
    """An archived element leaves recall, unless the pattern names a state; a tuple about it stays."""
    brain.change(brain.dark, state="archived")
    brain.commit()

    assert names(brain, '?x {type: "Theme"}') == []
    assert names(brain, '?x {type: "Theme", state: "archived"}') == ["Dark"]
    assert names(brain, '?x {_system: {state: "archived"}}') == ["Dark"]
    assert names(brain, '?x {type: "Theme", state: ?s}') == ["Dark"]
    assert names(brain, '?x {type: "Person", state: "active"}') == ["Alice", "Bob"]
    assert brain.rows('FIND(?o.name) WHERE { (?s, "prefers", ?o) }') == ["Dark"]


def test_archived_proposition_is_addressed_by_id(brain: Brain) -> None:
    """The id form is a reference: it reaches what ordinary recall does not."""
    brain.change(brain.zone, state="archived")
    brain.commit()

    assert brain.rows('FIND(?p.id) WHERE { ?p (?s, "timezone", ?o) }') == []
    assert brain.rows("FIND(?p._system.state) WHERE { ?p (id: :p) }", {"p": brain.zone.id}) == ["archived"]


def test_one_variable_twice_in_a_tuple_is_one_element(brain: Brain) -> None:
    """(?x, p, ?x) matches only a tuple whose ends are one."""
    brain.says(brain.bob, "knows", brain.bob)
    brain.commit()

    assert brain.rows('FIND(?x.name) WHERE { (?x, "knows", ?x) }') == ["Bob"]


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ('?x {type: "Spaceship"}', "SchemaSymbolNotFound"),
        ('(?x, "admires", ?y)', "SchemaSymbolNotFound"),
        ('STRUCTURAL (?x, "has_wing", ?y)', "SchemaSymbolNotFound"),
        ("?x {colour: 1}", "SchemaFieldNotFound"),
        ('?x CONCEPT {stance: "support"}', "SchemaFieldNotFound"),
        ('?x ASSERTION {lifecycle: {state: "active"}}', "SchemaFieldNotFound"),
        ('?x {facets: {"Nothing": {a: 1}}}', "SchemaSymbolNotFound"),
        ('?x {facets: {"Mnemonic": {nothing: 1}}}', "SchemaFieldNotFound"),
        ("?x {type: 5}", "TypeMismatch"),
    ],
)
def test_what_cannot_be_is_refused(brain: Brain, where: str, code: str) -> None:
    """A name that means nothing is an error, never an empty answer."""
    with pytest.raises(NoemaError) as refused:
        brain.rows(f"FIND(?x) WHERE {{ {where} }}")

    assert refused.value.code == code


def test_unknown_field_names_the_near_ones(brain: Brain) -> None:
    """The hint of a misspelt field says what exists."""
    with pytest.raises(NoemaError) as refused:
        brain.rows("FIND(?x.nmae) WHERE { ?x {} }")

    assert refused.value.code == "SchemaFieldNotFound"
    assert "name" in refused.value.hint


def test_structural_pattern_over_profile_fields() -> None:
    """KQL-007: an ordered field shows its index, from either end."""
    b = Brain()
    trip = b.concept("Experience", "Trip")
    steps = [b.concept("Step", name) for name in ("pack", "go")]
    b.link(trip, "has_step", steps[1], steps[0])
    b.link(trip, "about", steps[0])
    b.commit()

    assert b.rows(
        'FIND(?s.name, ?e.index) WHERE { ?e STRUCTURAL (?x, "has_step", ?s) } ORDER BY ?e.index'
    ) == [
        ["go", 0],
        ["pack", 1],
    ]
    assert b.rows('FIND(?x.name, ?e.index) WHERE { ?e STRUCTURAL (?x, "about", {name: "pack"}) }') == [
        ["Trip", None]
    ]
    assert b.rows('FIND(?s.name) WHERE { STRUCTURAL ({name: "Trip"}, "has_step", ?s) }') == ["pack", "go"]
    edge = b.rows('FIND(?e) WHERE { ?e STRUCTURAL (?x, "has_step", {name: "go"}) }')[0]
    assert edge == {
        "source": {"id": trip.id},
        "field_ref": f"{WORLD}/has_step",
        "target": {"id": steps[1].id},
        "index": 0,
        "role": None,
        "attributes": {},
    }


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ('?e STRUCTURAL (?a, "evidence", ?b)', 1),
        ('?e STRUCTURAL (?a, "kip://core@2.0.0/evidence", ?b)', 1),
        ('?e STRUCTURAL (?a, "source", {name: "Bob"})', 1),
        ('?e STRUCTURAL (?a, "inputs", ?b)', 1),
        ('?e STRUCTURAL (?a, "outputs", ?b)', 1),
        ('?e STRUCTURAL (?a, "associated_actors", ?b)', 1),
        ('?e STRUCTURAL (?a, "generated_by", ?b)', 0),
    ],
)
def test_structural_pattern_over_core_fields(brain: Brain, pattern: str, count: int) -> None:
    """KIP §20.13: the six reserved fields are traversed like any other."""
    assert len(brain.rows(f"FIND(?e.source, ?e.target) WHERE {{ {pattern} }}")) == count


def test_citation_shows_its_role(brain: Brain) -> None:
    """KQL design §48: the role belongs to the edge."""
    brain.claim(brain.knows, brain.bob, (brain.note, "challenge"))
    brain.commit()
    rows = brain.rows(
        'FIND(?a.id, ?c.role) WHERE { ?c STRUCTURAL (?a, "evidence", ?e) FILTER(?c.role == "challenge") }'
    )

    assert [role for _, role in rows] == ["challenge"]


def test_facets_by_local_and_exact_name() -> None:
    """KQL design §55: a facet is found by either name, in patterns and in paths."""
    b = Brain()
    b.concept("Person", "Alice", facets={f"{WORLD}/Mnemonic": {"salience": 0.5}})
    b.concept("Person", "Bob")
    b.commit()

    assert b.rows('FIND(?c.name) WHERE { ?c {facets: {"Mnemonic": {salience: 0.5}}} }') == ["Alice"]
    assert b.rows('FIND(?c.facets["Mnemonic"].salience) WHERE { ?c {type: "Person"} }') == [0.5, None]
    assert b.rows(f'FIND(?c.facets["{WORLD}/Mnemonic"].salience) WHERE {{ ?c {{name: "Alice"}} }}') == [0.5]
    assert b.rows('FIND(?c.facets) WHERE { ?c {name: "Alice"} }') == [
        {f"{WORLD}/Mnemonic": {"salience": 0.5}}
    ]


def test_field_of_another_kind_reads_as_null(brain: Brain) -> None:
    """A Proposition carries no confidence; asking for it is not an error (shared fixture)."""
    assert brain.rows('FIND(?p.confidence) WHERE { ?p (?s, "prefers", ?o) }') == [None]


def test_virtual_variable_cannot_stand_for_something_else(brain: Brain) -> None:
    """The result of BELIEF or STRUCTURAL has a variable of its own."""
    with pytest.raises(NoemaError) as refused:
        brain.rows('FIND(?e) WHERE { ?e STRUCTURAL (?a, "evidence", ?b) ?e CONCEPT {} }')

    assert refused.value.code == "TypeMismatch"
    assert brain.now == NOW
