"""Structural references: topology with order and cardinality, and never a Proposition."""

from __future__ import annotations

import pytest

from core.errors import NoemaError
from core.model.elements import StructuralRef
from core.mutation.structural import Addition, Removal, arrange
from core.schema.definitions import StructuralField

ORDERED = StructuralField(ref="f", name="f", ordered=True)
PLAIN = StructuralField(ref="f", name="f")
SINGLE = StructuralField(ref="f", name="f", maximum=1)


def refs(text):
    return tuple(StructuralRef("f", name) for name in text)


def add(field, *wanted):
    """Additions from `"a"` (append) and `("b", 0)` (at a place)."""
    pairs = [(item, None) if isinstance(item, str) else item for item in wanted]
    return [Addition(field, target, {}, index) for target, index in pairs]


def order(before, additions=(), removals=()):
    return "".join(ref.target for ref in arrange(refs(before), additions, removals, "x"))


@pytest.mark.parametrize(
    ("before", "wanted", "after"),
    [
        ("", ["a", "b"], "ab"),
        ("ab", ["c"], "abc"),
        ("ab", [("c", 0)], "cab"),
        ("ab", [("c", 2)], "abc"),
        ("abc", [("c", 0)], "cab"),
        ("abc", [("a", 2)], "bca"),
        ("", [("c", 2), ("a", 0), ("b", 1)], "abc"),
        ("xy", ["b", ("a", 0), "c"], "axybc"),
        ("ab", ["a"], "ab"),
    ],
)
def test_order_is_dense_and_follows_the_plan(before, wanted, after):
    """Unplaced references append in the order written; placed ones stand where they say, among all."""
    assert order(before, add(ORDERED, *wanted)) == after


@pytest.mark.parametrize(
    ("field", "before", "wanted", "code"),
    [
        (ORDERED, "", [("a", 1)], "ConstraintViolation"),
        (ORDERED, "ab", [("c", 5)], "ConstraintViolation"),
        (ORDERED, "ab", [("c", -1)], "ConstraintViolation"),
        (ORDERED, "ab", [("c", 0), ("d", 0)], "DuplicateMutationTarget"),
        (ORDERED, "ab", [("c", 0), ("c", 1)], "DuplicateMutationTarget"),
        (PLAIN, "ab", [("c", 0)], "ConstraintViolation"),
        (SINGLE, "", ["a", "b"], "DuplicateMutationTarget"),
    ],
)
def test_places_that_cannot_be(field, before, wanted, code):
    """A gap, two claims on one place, an index without order and two for one fail."""
    with pytest.raises(NoemaError) as caught:
        order(before, add(field, *wanted))

    assert caught.value.code == code


def test_removal_closes_the_gap_and_a_single_field_replaces():
    """Removing keeps the order dense; adding to a field of one replaces; adding what is removed fails."""
    assert order("abc", removals=[Removal(ORDERED, "b")]) == "ac"
    assert order("abc", add(ORDERED, ("d", 1)), [Removal(ORDERED, "a")]) == "bdc"
    assert order("a", add(SINGLE, "b")) == "b"
    with pytest.raises(NoemaError):
        order("ab", add(PLAIN, "b"), [Removal(PLAIN, "b")])


STEPS = """MUTATE {
  CREATE CONCEPT ?day { TYPE "Experience" SET STRUCTURAL { ("has_step", ?b) {index: 1} ("has_step", ?a) {index: 0} ("experienced_by", :alice) } }
  CREATE CONCEPT ?a { TYPE "ExperienceStep" NAME "a" }
  CREATE CONCEPT ?b { TYPE "ExperienceStep" NAME "b" }
  CREATE CONCEPT ?c { TYPE "ExperienceStep" NAME "c" }
}"""


def steps(people, ref):
    names = []
    for found in people.get(ref).structural:
        if found.field.endswith("has_step"):
            names.append(people.get(found.target).name)
    return "".join(names)


def test_a_trajectory_in_one_statement(people):
    """Forward references, explicit places and the virtual index work together; no fact arises from topology."""
    made = people.handles(STEPS, people.ref)

    assert steps(people, made["day"]) == "ab"
    found = people.do('FIND(?s.name, ?e.index) WHERE {?e STRUCTURAL (?d, "has_step", ?s)} ORDER BY ?e.index')
    assert found == [["a", 0], ["b", 1]]
    assert people.do("FIND(COUNT(?p)) WHERE {?p PROPOSITION (?s, ?r, ?o)}") == [0]


def test_set_and_unset_on_what_exists(people):
    """SET appends or places, a field of one is replaced, UNSET removes; the rest stays."""
    made = people.handles(STEPS, people.ref)
    people.do('UPDATE :day SET STRUCTURAL {("has_step", :c) {index: 0} ("experienced_by", :bob)}', **made)
    assert steps(people, made["day"]) == "cab"
    people.do('UPDATE :day UNSET STRUCTURAL {("has_step", :a)}', **made)

    assert steps(people, made["day"]) == "cb"
    owners = [
        ref.target for ref in people.get(made["day"]).structural if ref.field.endswith("experienced_by")
    ]
    assert owners == [people.ref["bob"]["id"]]


def test_adding_what_is_there_has_no_effect(people):
    """A reference that exists is not added twice."""
    made = people.handles(STEPS, people.ref)

    assert people.status('UPDATE :day SET STRUCTURAL {("has_step", :a)}', **made) == "no_effect"


@pytest.mark.parametrize(
    ("clause", "code"),
    [
        ('("has_step", :alice)', "StructuralReferenceInvalid"),
        ('("evidence", :alice)', "StructuralReferenceInvalid"),
        ('("nothing", :alice)', "SchemaSymbolNotFound"),
        ('("has_step", :c) {index: 9}', "ConstraintViolation"),
        ('("has_step", :c) {index: "first"}', "TypeMismatch"),
        ('("experienced_by", :alice) {index: 0}', "ConstraintViolation"),
        ('("has_step", "C-00000000000zzzzz")', "NotFoundOrNotVisible"),
        ('("has_step", "step one")', "NotFoundOrNotVisible"),
    ],
)
def test_topology_that_does_not_fit(people, clause, code):
    """Wrong kinds, unknown fields, impossible places and dangling ids are refused."""
    made = people.handles(STEPS, people.ref)

    assert people.no(f"UPDATE :day SET STRUCTURAL {{{clause}}}", **made) == code


def test_a_source_of_the_wrong_type(people):
    """A field stands only on the types it is declared for."""
    assert (
        people.no('UPDATE :alice SET STRUCTURAL {("experienced_by", :bob)}') == "StructuralReferenceInvalid"
    )


def test_targets_may_come_from_the_selection(people):
    """What the WHERE binds beside the target may be linked; each solution adds its reference."""
    made = people.handles(STEPS, people.ref)
    people.do(
        'UPDATE ?d SET STRUCTURAL {("has_step", ?s)} WHERE {?d CONCEPT {type: "Experience"} ?s CONCEPT {type: "ExperienceStep"}}'
    )

    assert steps(people, made["day"]) == "abc"
