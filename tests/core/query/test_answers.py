"""From solutions to rows: shape, grouping, order (KIP §44.6-44.7)."""

from __future__ import annotations

import pytest

from core.errors import NoemaError
from tests.core.query.brain import Brain

PERSON = '?c {type: "Person"}'


@pytest.fixture
def brain() -> Brain:
    """Alice (30) knows Bob and Carol, Bob (20) knows Carol, Carol has no age and knows nobody."""
    b = Brain()
    alice = b.concept("Person", "Alice", attributes={"age": 30, "group": "x"})
    bob = b.concept("Person", "Bob", attributes={"age": 20.5, "group": "x"})
    carol = b.concept("Person", "Carol", attributes={"group": "y"})
    b.says(alice, "knows", bob)
    b.says(alice, "knows", carol)
    b.says(bob, "knows", carol)
    b.commit()
    return b


def test_one_projection_gives_scalars_and_several_give_arrays(brain: Brain) -> None:
    """The shape of a row (shared fixtures)."""
    assert brain.rows('FIND(?c.name) WHERE { ?c {name: "Alice"} }') == ["Alice"]
    assert brain.rows('FIND(?c.name, ?c.attributes.age) WHERE { ?c {name: "Alice"} }') == [["Alice", 30]]


def test_aggregates(brain: Brain) -> None:
    """Aggregates skip nulls; 1 and 1.0 are one number."""
    rows = brain.rows(
        "FIND(COUNT(?c), COUNT(?c.attributes.age), SUM(?c.attributes.age), AVG(?c.attributes.age), "
        f"MIN(?c.attributes.age), MAX(?c.name)) WHERE {{ {PERSON} }}"
    )

    assert rows == [[3, 2, 50.5, 25.25, 20.5, "Carol"]]


def test_aggregates_over_nothing(brain: Brain) -> None:
    """COUNT of nothing is 0, of the others null; a grouped answer over nothing has no groups."""
    assert brain.rows('FIND(COUNT(?c), SUM(?c.attributes.age), MIN(?c.name)) WHERE { ?c {name: "Z"} }') == [
        [0, None, None]
    ]
    assert brain.rows('FIND(?c.name, COUNT(?c)) WHERE { ?c {name: "Z"} }') == []


def test_count_of_an_unmatched_optional_is_zero(brain: Brain) -> None:
    """KIP §44.6."""
    rows = brain.rows(
        f'FIND(?c.name, COUNT(?o)) WHERE {{ {PERSON} OPTIONAL {{ (?c, "knows", ?o) }} }} ORDER BY ?c.name'
    )

    assert rows == [["Alice", 2], ["Bob", 1], ["Carol", 0]]


def test_grouping_by_value_and_by_element(brain: Brain) -> None:
    """Plain projections form the group; an element groups as itself."""
    by_value = f"FIND(?c.attributes.group, COUNT(?c)) WHERE {{ {PERSON} }} ORDER BY ?c.attributes.group"
    by_element = 'FIND(?c, COUNT(?o)) WHERE { (?c, "knows", ?o) } ORDER BY ?c.name'

    assert brain.rows(by_value) == [["x", 2], ["y", 1]]
    assert [(row[0]["name"], row[1]) for row in brain.rows(by_element)] == [("Alice", 2), ("Bob", 1)]


def test_order_by_an_aggregate(brain: Brain) -> None:
    """An aggregate orders groups, projected or not."""
    where = 'WHERE { (?c, "knows", ?o) }'

    assert brain.rows(f"FIND(?c.name, COUNT(?o)) {where} ORDER BY COUNT(?o)") == [["Bob", 1], ["Alice", 2]]
    assert brain.rows(f"FIND(?c.name) {where} ORDER BY COUNT(?o) DESC") == ["Alice", "Bob"]


def test_order_of_a_group_by_what_it_does_not_have_is_refused(brain: Brain) -> None:
    """A sort key must have one value for each group."""
    with pytest.raises(NoemaError) as refused:
        brain.rows(f"FIND(?c.attributes.group, COUNT(?c)) WHERE {{ {PERSON} }} ORDER BY ?c.name")

    assert refused.value.code == "InvalidSyntax"


def test_distinct(brain: Brain) -> None:
    """COUNT counts solutions, COUNT(DISTINCT) values."""
    where = 'WHERE { (?c, "knows", ?o) }'

    assert brain.rows(f"FIND(COUNT(?o), COUNT(DISTINCT ?o), COUNT(DISTINCT ?c)) {where}") == [[3, 2, 2]]


def test_equal_projections_of_different_solutions_stay(brain: Brain) -> None:
    """KQL design §78: only complete duplicate bindings collapse."""
    assert brain.rows(f"FIND(?c.attributes.group) WHERE {{ {PERSON} }} ORDER BY ?c.attributes.group") == [
        "x",
        "x",
        "y",
    ]


def test_values_that_are_not_numbers_are_left_out_of_sums(brain: Brain) -> None:
    """A sum says what it left out."""
    answer = brain.find(f"FIND(SUM(?c.attributes.group)) WHERE {{ {PERSON} }}")

    assert answer.rows == [None]
    assert "3 values" in answer.warnings[0]


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ("?c.attributes.age", ["Bob", "Alice", "Carol"]),
        ("?c.attributes.age DESC", ["Alice", "Bob", "Carol"]),
        ("?c.attributes.group DESC, ?c.name DESC", ["Carol", "Bob", "Alice"]),
        ("?c.attributes.group, ?c.name DESC", ["Bob", "Alice", "Carol"]),
        ("?c.attributes.nothing", ["Alice", "Bob", "Carol"]),
        ("?c", ["Alice", "Bob", "Carol"]),
        ("?c DESC", ["Carol", "Bob", "Alice"]),
    ],
)
def test_order(brain: Brain, order: str, found: list[str]) -> None:
    """KQL-014, KQL-015: keys from left to right, nulls last either way, equal ones in order of creation."""
    assert brain.rows(f"FIND(?c.name) WHERE {{ {PERSON} }} ORDER BY {order}") == found


def test_order_over_unlike_types_is_total() -> None:
    """Values of several types have a fixed order among each other."""
    b = Brain()
    for value in ("b", 2, True, None, 1.5, False, "a", ["x"]):
        b.concept("Person", attributes={"v": value})
    b.commit()

    assert b.rows("FIND(?c.attributes.v) WHERE { ?c {} } ORDER BY ?c.attributes.v") == [
        False, True, 1.5, 2, "a", "b", ["x"], None,
    ]  # fmt: skip


def test_context_of_the_answer(brain: Brain) -> None:
    """KIP §50: the state and the schema that were read; no policy where none was used."""
    answer = brain.find(f"FIND(?c) WHERE {{ {PERSON} }}")

    assert answer.context == {"space_id": "test", "snapshot_seq": 1, "schema_environment_version": 1}


def test_whole_element(brain: Brain) -> None:
    """A bare variable is the element in its wire form (KIP §6.2, §10.2)."""
    (element,) = brain.rows('FIND(?c) WHERE { ?c {name: "Alice"} }')

    assert element["kind"] == "concept"
    assert element["_system"]["origin"] == {"principal_id": "tester", "channel": "test", "import_id": None}
    assert element["_system"]["created_at"] == "2026-06-01T00:00:00.000Z"
    assert element["attributes"] == {"age": 30, "group": "x"}
    assert element["retention"] == {"retention_class": "standard", "expires_at": None, "legal_hold": False}
