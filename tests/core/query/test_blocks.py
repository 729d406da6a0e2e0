"""FILTER, NOT, OPTIONAL and UNION: what each sees and what leaves it (KIP §44)."""

from __future__ import annotations

import pytest

from core.errors import NoemaError
from tests.core.query.brain import Brain


@pytest.fixture
def brain() -> Brain:
    """Alice prefers Dark; Bob nothing; Carol knows Alice."""
    b = Brain()
    alice = b.concept("Person", "Alice", attributes={"age": 30})
    b.concept("Person", "Bob", attributes={"age": "30"})
    carol = b.concept("Person", "Carol", attributes={"age": True})
    dark = b.concept("Theme", "Dark")
    b.says(alice, "prefers", dark)
    b.says(carol, "knows", alice)
    b.commit()
    return b


def people(brain: Brain, where: str) -> list[object]:
    """Names of ?c, in order."""
    return brain.rows(f"FIND(?c.name) WHERE {{ {where} }} ORDER BY ?c.name")


PERSON = '?c {type: "Person"}'


def test_not_keeps_what_the_pattern_does_not_extend(brain: Brain) -> None:
    """NOT means: no visible match."""
    assert people(brain, PERSON + ' NOT { (?c, "prefers", ?o) }') == ["Bob", "Carol"]


def test_not_and_filter_may_stand_before_their_binder(brain: Brain) -> None:
    """The order of clauses has no meaning."""
    assert people(brain, 'NOT { (?c, "prefers", ?o) } ' + PERSON) == ["Bob", "Carol"]
    assert people(brain, 'FILTER(?c.name != "Bob") ' + PERSON) == ["Alice", "Carol"]


def test_variables_of_not_do_not_leave_it(brain: Brain) -> None:
    """What NOT binds is bound nowhere else."""
    with pytest.raises(NoemaError) as refused:
        brain.rows(f'FIND(?o) WHERE {{ {PERSON} NOT {{ (?c, "prefers", ?o) }} }}')

    assert refused.value.code == "ReferenceError"


def test_two_nots_may_use_one_inner_name(brain: Brain) -> None:
    """Each NOT has its own inner variables."""
    assert people(brain, PERSON + ' NOT { (?c, "prefers", ?o) } NOT { (?c, "knows", ?o) }') == ["Bob"]


def test_not_sees_what_optional_bound(brain: Brain) -> None:
    """NOT is asked last, of everything the block binds."""
    where = PERSON + ' NOT { ?t {name: "Dark"} } OPTIONAL { (?c, "prefers", ?t) }'

    assert people(brain, where) == ["Bob", "Carol"]


def test_optional_pads_with_null(brain: Brain) -> None:
    """KQL-010: no match is null, and a path from it is null."""
    rows = brain.rows(
        f'FIND(?c.name, ?t.name, ?t) WHERE {{ {PERSON} OPTIONAL {{ (?c, "knows", ?t) }} }} ORDER BY ?c.name'
    )

    assert [row[:2] for row in rows] == [["Alice", None], ["Bob", None], ["Carol", "Alice"]]
    assert rows[0][2] is None


def test_filter_sees_what_optional_bound(brain: Brain) -> None:
    """A FILTER of the block is asked after its OPTIONALs where it needs them."""
    assert people(brain, PERSON + ' FILTER(IS_NULL(?t)) OPTIONAL { (?c, "prefers", ?t) }') == ["Bob", "Carol"]


def test_later_optional_continues_an_earlier_one(brain: Brain) -> None:
    """What the first left null matches nothing in the second."""
    rows = brain.rows(
        f'FIND(?c.name, ?b.name) WHERE {{ {PERSON} OPTIONAL {{ (?c, "knows", ?a) }} '
        f'OPTIONAL {{ (?a, "prefers", ?b) }} }} ORDER BY ?c.name'
    )

    assert rows == [["Alice", None], ["Bob", None], ["Carol", "Dark"]]


def test_union_does_not_see_the_block_beside_it(brain: Brain) -> None:
    """A branch is alone: its ?c is any ?c, and rows of both stand beside each other."""
    rows = brain.rows(
        'FIND(?c.name, ?t.name) WHERE { ?c {name: "Alice"} UNION { (?c, "knows", ?t) } } ORDER BY ?c.name'
    )

    assert rows == [["Alice", None], ["Carol", "Alice"]]


def test_union_rows_are_a_set(brain: Brain) -> None:
    """The same solution from two branches is one."""
    assert brain.rows('FIND(COUNT(?c)) WHERE { ?c {name: "Alice"} UNION { ?c {name: "Alice"} } }') == [1]


def test_block_of_branches_alone_is_filtered_as_one(brain: Brain) -> None:
    """Where a block has no pattern of its own, its FILTER and NOT are about its branches."""
    branches = 'UNION { ?c {name: "Alice"} } UNION { ?c {name: "Bob"} }'

    assert people(brain, branches) == ["Alice", "Bob"]
    assert people(brain, branches + ' FILTER(?c.name > "Alice")') == ["Bob"]
    assert people(brain, branches + ' NOT { (?c, "prefers", ?t) }') == ["Bob"]


def test_filter_of_a_branch_does_not_see_outside(brain: Brain) -> None:
    """A variable of the surrounding block is not bound inside UNION."""
    with pytest.raises(NoemaError) as refused:
        brain.rows(f'FIND(?c) WHERE {{ {PERSON} UNION {{ ?t {{type: "Theme"}} FILTER(?c.name == "A") }} }}')

    assert refused.value.code == "ReferenceError"


def test_union_inside_not_agrees_with_the_outer_row(brain: Brain) -> None:
    """NOT with alternatives: neither may match what is outside."""
    assert people(brain, PERSON + ' NOT { (?c, "prefers", ?a) UNION { (?c, "knows", ?b) } }') == ["Bob"]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("?c.attributes.age == 30", ["Alice"]),
        ('?c.attributes.age == "30"', ["Bob"]),
        ("?c.attributes.age == true", ["Carol"]),
        ("?c.attributes.age == 1", []),
        ("?c.attributes.age > 5", ["Alice"]),
        ("!(?c.attributes.age > 5)", ["Bob", "Carol"]),
        ("?c.attributes.age < 5 || ?c.attributes.age >= 5", ["Alice"]),
        ("?c.attributes.age > null", []),
        ("?c.attributes.nothing < 1", []),
        ("?c.attributes.nothing == null", ["Alice", "Bob", "Carol"]),
        ("?c.attributes.age != 30", ["Bob", "Carol"]),
        ('?c.name >= "B" && ?c.name <= "Bz"', ["Bob"]),
        ("-?c.attributes.age < -5", ["Alice"]),
        ('IN(?c.name, ["Bob", "Carol"])', ["Bob", "Carol"]),
        ('IN(?c.attributes.age, [1, "30"])', ["Bob"]),
        ('CONTAINS(?c.name, "o")', ["Bob", "Carol"]),
        ('STARTS_WITH(?c.name, "A")', ["Alice"]),
        ('ENDS_WITH(?c.name, "b")', ["Bob"]),
        ('REGEX(?c.name, "^[AB]")', ["Alice", "Bob"]),
        ('REGEX(?c.attributes.age, "3")', ["Bob"]),
        ("IS_NOT_NULL(?c.attributes.age)", ["Alice", "Bob", "Carol"]),
        ("IS_ELEMENT(?c)", ["Alice", "Bob", "Carol"]),
        ('IS_KIND(?c, "concept")', ["Alice", "Bob", "Carol"]),
        ('IS_KIND(?c, "evidence")', []),
        ("IS_LITERAL(?c.attributes.age)", ["Alice", "Bob", "Carol"]),
        ("IS_LITERAL(?c)", []),
        ('LITERAL_TYPE(?c.attributes.age) == "boolean"', ["Carol"]),
        ("?c.attributes.age", ["Carol"]),
        ("!?c.attributes.age", ["Alice", "Bob"]),
    ],
)
def test_filter(brain: Brain, condition: str, found: list[str]) -> None:
    """Typed comparison decides nothing between unlike values; functions are total."""
    assert people(brain, f"{PERSON} FILTER({condition})") == found


def test_instants_compare_as_instants() -> None:
    """An offset or missing milliseconds never decide between two instants."""
    b = Brain()
    b.concept("Person", "Alice", attributes={"at": "2026-05-01T02:00:00+02:00"})
    b.commit()

    def holds(condition: str) -> bool:
        return b.rows(f"FIND(?c.name) WHERE {{ ?c {{}} FILTER({condition}) }}") == ["Alice"]

    assert holds('?c.attributes.at == "2026-05-01T00:00:00Z"')
    assert holds('?c.attributes.at >= "2026-05-01T00:00:00.000Z"')
    assert not holds('?c.attributes.at < "2026-05-01T00:00:00Z"')
    assert holds('?c._system.created_at >= "2026-06-01T00:00:00Z"')
    assert holds('?c.attributes.at > "2026"')


def test_elements_compare_by_identity(brain: Brain) -> None:
    """Two variables are equal if they are one element; an element is never equal to text."""
    where = '?a {name: "Alice"} (?c, "knows", ?b) '

    assert people(brain, where + "FILTER(?a == ?b)") == ["Carol"]
    assert people(brain, where + "FILTER(?a == ?a.id)") == []
    assert people(brain, where + "FILTER(?a.id == ?b.id)") == ["Carol"]


def test_reference_fields_compare_with_elements(brain: Brain) -> None:
    """A path that ends at a reference is the element it names."""
    where = '?p (?c, "knows", ?o) '

    assert people(brain, where + "FILTER(?p.subject == ?c)") == ["Carol"]
    assert people(brain, where + "FILTER(?p.subject.id == ?c.id)") == ["Carol"]
    assert people(brain, where + "FILTER(?p.object == ?c)") == []


def test_regex_that_is_none_is_refused_before_any_row() -> None:
    """A pattern with a mistake is told even over an empty space."""
    b = Brain()
    b.commit()
    with pytest.raises(NoemaError) as refused:
        b.rows('FIND(?c) WHERE { ?c {} FILTER(REGEX(?c.name, "(a")) }')

    assert refused.value.code == "InvalidSyntax"


def test_empty_block_binds_nothing(brain: Brain) -> None:
    """A variable that no pattern binds is a mistake, not a null."""
    with pytest.raises(NoemaError) as refused:
        brain.rows("FIND(COUNT(?x)) WHERE {}")

    assert refused.value.code == "ReferenceError"
