"""Update functions: deterministic, over the target alone, in the state the statement began in."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("ADD(?c.attributes.n, 1)", 5),
        ("ADD(?c.attributes.n, 0.5)", 4.5),
        ("MUL(?c.attributes.n, -2)", -8),
        ("CLAMP(?c.attributes.n, 0, 3)", 3),
        ("CLAMP(?c.attributes.n, 5, 9)", 5),
        ("COALESCE(?c.attributes.none, 7)", 7),
        ("COALESCE(?c.attributes.n, 7)", 4),
        ('COALESCE(?c.facets["MnemonicState"].salience, 0.25)', 0.25),
        ("ADD(COALESCE(?c.attributes.deep.inner, 1), MUL(?c.attributes.n, 10))", 41),
        ("?c.name", "Alice"),
        ("?c._system.version", 2),
        ("[?c.attributes.n, {a: ADD(1, 1)}]", [4, {"a": 2}]),
    ],
)
def test_functions_and_paths(people, expression, value):
    """Each function computes what it says, and a path reads the target as it was."""
    people.do("UPDATE :alice SET ATTRIBUTES {n: 4}")
    people.do(f'UPDATE ?c SET ATTRIBUTES {{out: {expression}}} WHERE {{?c CONCEPT {{key: "alice"}}}}')

    out = people.get(people.ref["alice"]).attributes["out"]
    assert (out, type(out)) == (value, type(value))


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("ADD(?c.attributes.none, 1)", "TypeMismatch"),
        ("MUL(?c.name, 2)", "TypeMismatch"),
        ("ADD(true, 1)", "TypeMismatch"),
        ("CLAMP(1, 5, 2)", "ConstraintViolation"),
        ("MUL(1e300, 1e300)", "ConstraintViolation"),
        ("?c.governance", "SchemaFieldNotFound"),
        ('?c.facets["Nonsense"].x', "SchemaSymbolNotFound"),
        ("MAX(1, 2)", "InvalidSyntax"),
        ("ADD(1)", "InvalidSyntax"),
        ("?other.name", "InvalidSyntax"),
    ],
)
def test_what_does_not_compute_is_refused(people, expression, code):
    """A missing operand, a wrong type, an endless number or another variable fails the statement."""
    command = f'UPDATE ?c SET ATTRIBUTES {{out: {expression}}} WHERE {{?c CONCEPT {{key: "alice"}}}}'

    assert people.no(command) == code


def test_every_row_reads_the_state_before_the_sweep(people):
    """A sweep and a second clause on the same elements compute from the same start, in any order."""
    people.do("MUTATE {UPDATE :alice SET ATTRIBUTES {n: 1} UPDATE :bob SET ATTRIBUTES {n: 2}}")
    clauses = [
        'UPDATE ?c SET ATTRIBUTES {n: ADD(?c.attributes.n, 10)} WHERE {?c CONCEPT {type: "Person"} FILTER(IS_NOT_NULL(?c.attributes.n))}',
        'UPDATE ?c SET ATTRIBUTES {was: ?c.attributes.n} WHERE {?c CONCEPT {type: "Person"} FILTER(IS_NOT_NULL(?c.attributes.n))}',
    ]
    people.do(f"MUTATE {{{clauses[0]} {clauses[1]}}}")
    people.do(f"MUTATE {{{clauses[1]} {clauses[0]}}}")

    assert people.get(people.ref["alice"]).attributes == {"n": 21, "was": 11}
    assert people.get(people.ref["bob"]).attributes == {"n": 22, "was": 12}


def test_a_selection_does_not_see_what_its_statement_creates(people):
    """The WHERE of a clause reads the state before the MUTATE, whatever stands before it."""
    result = people.do(
        'MUTATE {CREATE CONCEPT ?new {TYPE "Person" NAME "New"} ARCHIVE ?p WHERE {?p CONCEPT {type: "Person"}}}'
    )

    assert result["matched"] == 3
    assert people.get(result["handles"]["new"]).system.state == "active"


def test_a_reference_is_no_plain_value(people):
    """A handle has no place in attributes."""
    assert (
        people.no('MUTATE {CREATE CONCEPT ?t {TYPE "Theme"} UPDATE :alice SET ATTRIBUTES {likes: ?t}}')
        == "TypeMismatch"
    )
