"""Parameters become what the same value written in the text would have become, and never anything else."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import NoemaError
from core.language import ast, bind, format_command, parameter_names, parse, plain_value


def _bound(text: str, **parameters: Any) -> str:
    return format_command(bind(parse(text), parameters)).replace("\n", " ")


def _refusal(text: str, **parameters: Any) -> NoemaError:
    with pytest.raises(NoemaError) as caught:
        bind(parse(text), parameters)
    return caught.value


@pytest.mark.parametrize(
    ("written", "bound", "parameters"),
    [
        (
            'FIND(?x) WHERE { (:p, "k", ?x) }',
            'FIND(?x) WHERE { ({id: "C-1"}, "k", ?x) }',
            {"p": {"id": "C-1"}},
        ),
        ("FIND(?x) WHERE { (?x, :p, :q) }", 'FIND(?x) WHERE { (?x, "k", 5) }', {"p": "k", "q": 5}),
        (
            "FIND(?x) WHERE { (?x, ?k, :p) }",
            'FIND(?x) WHERE { (?x, ?k, {value: "oui", language: "fr"}) }',
            {"p": {"value": "oui", "language": "fr"}},
        ),
        (
            'FIND(?x) WHERE { (?x, ?k, {value: :p, language: "fr"}) }',
            'FIND(?x) WHERE { (?x, ?k, {value: "oui", language: "fr"}) }',
            {"p": "oui"},
        ),
        (
            "FIND(?x) WHERE { ?x {type: :p, tags: :q} }",
            'FIND(?x) WHERE { ?x {type: "T", tags: ["a", {b: null}]} }',
            {"p": "T", "q": ["a", {"b": None}]},
        ),
        (
            "FIND(?x) WHERE { FILTER(IN(?x.a, :p) && -:q < 1) }",
            "FIND(?x) WHERE { FILTER(IN(?x.a, [1, 2]) && -5 < 1) }",
            {"p": [1, 2], "q": 5},
        ),
        (
            "FIND(?x) WHERE {} AS OF TX :p FOR TIME :q WITH EPISTEMIC {risk: :r} LIMIT :n CURSOR :c",
            'FIND(?x) WHERE {} AS OF TX "t" FOR TIME "2026" WITH EPISTEMIC {risk: "low"} LIMIT 3 CURSOR "c"',
            {"p": "t", "q": "2026", "r": "low", "n": 3, "c": "c"},
        ),
        ("ARCHIVE :p", 'ARCHIVE "C-1"', {"p": {"id": "C-1"}}),
        ("ARCHIVE :p", 'ARCHIVE "C-1"', {"p": "C-1"}),
        (
            'ASSERT (:a, "p", :b) {by: :a, mode: "stated", evidence: :e} SUPERSEDING :o',
            'ASSERT ({id: "C-1"}, "p", 1) {by: {id: "C-1"}, mode: "stated", evidence: [{id: "E-1"}]} SUPERSEDING "A-1"',
            {"a": {"id": "C-1"}, "b": 1, "e": [{"id": "E-1"}], "o": {"id": "A-1"}},
        ),
        (
            "CREATE CONCEPT ?c { TYPE :t SET FACET :f {a: :x} SET STRUCTURAL { (:s, :o) {index: :i} } }",
            'CREATE CONCEPT ?c { TYPE "T" SET FACET "F" {a: [{}]} SET STRUCTURAL { ("s", {id: "C-2"}) {index: 0} } }',
            {"t": "T", "f": "F", "x": [{}], "s": "s", "o": {"id": "C-2"}, "i": 0},
        ),
        ("FIND(?x) WHERE { ?x (id: :p) }", 'FIND(?x) WHERE { ?x (id: "P-1") }', {"p": {"id": "P-1"}}),
        (
            'FIND(?x) WHERE { (?x, "p", {value: :p, datatype: "xsd:int"}) }',
            'FIND(?x) WHERE { (?x, "p", {value: "1", datatype: "xsd:int"}) }',
            {"p": "1"},
        ),
        (
            'FIND(?x) WHERE { (?x, "p", {name: :p}) ?x STRUCTURAL ({id: "C-1"}, :f, ?t) }',
            'FIND(?x) WHERE { (?x, "p", {name: "N"}) ?x STRUCTURAL ({id: "C-1"}, "f", ?t) }',
            {"p": "N", "f": "f"},
        ),
        ("HISTORY ELEMENT :p FROM SEQ :a", 'HISTORY ELEMENT "C-1" FROM SEQ 4', {"p": {"id": "C-1"}, "a": 4}),
    ],
)
def test_a_bound_command_is_the_one_with_its_values_written_out(
    written: str, bound: str, parameters: dict[str, Any]
) -> None:
    """Each kind of place takes the JSON values that its own grammar could have spelled."""
    assert " ".join(_bound(written, **parameters).split()) == bound
    assert parameter_names(parse(written)) == set(parameters)
    assert bind(parse(written), parameters) == bind(parse(bound), {})


def test_an_artifact_may_be_a_whole_object() -> None:
    """Places that take an artifact take its JSON as it is."""
    artifact = {"format": "capsule", "n": [1]}
    verified: Any = bind(parse("VERIFY CAPSULE :a"), {"a": artifact})
    described: Any = bind(parse("DESCRIBE CAPSULE :a"), {"a": artifact})

    assert plain_value(verified.artifact) == artifact
    assert plain_value(described.subject) == artifact


@pytest.mark.parametrize(
    "hostile", ['x", "y', "} RETRACT", "?x", ":other", 'A" } CONFIRM "PURGE', "// gone", "\\"]
)
def test_a_value_is_data_and_never_text(hostile: str) -> None:
    """No string can add a clause, end a string or refer to another parameter (KIP §71)."""
    command: Any = bind(parse("FIND(?x) WHERE { ?x {name: :p} }"), {"p": hostile, "other": "no"})

    assert command.where[0].match.get("name").value == hostile
    assert bind(parse(format_command(command)), {}) == command


def test_a_command_without_parameters_is_returned_as_it_is() -> None:
    """Nothing to bind is nothing to copy, and parameters it does not use are ignored."""
    command = parse('FIND(?x) WHERE { ?x {name: "A"} } LIMIT 3')

    assert bind(command, {"unused": 1}) is command


def test_parameters_without_a_value_are_all_named() -> None:
    """A missing parameter is a fault of the request."""
    error = _refusal('ASSERT (:a, "p", :b) {by: :c, mode: "stated"}', b=1)

    assert error.code == "InvalidRequestEnvelope"
    assert error.details == {"missing": ["a", "c"]}


@pytest.mark.parametrize(
    ("text", "value", "expected", "actual"),
    [
        ('FIND(?x) WHERE { (:p, "k", ?x) }', "C-1", 'a reference such as {"id": "..."}', "a string"),
        (
            'FIND(?x) WHERE { (:p, "k", ?x) }',
            {"value": "a", "language": "b"},
            'a reference such as {"id": "..."}',
            "an object",
        ),
        ('FIND(?x) WHERE { (?x, "k", :p) }', [1], "a literal or a reference", "an array"),
        ('FIND(?x) WHERE { (?x, :p, "k") }', 1, "a schema name", "a number"),
        ("FIND(?x) WHERE { STRUCTURAL (:p, :p, ?x) }", "s", 'a reference such as {"id": "..."}', "a string"),
        ("FIND(?x) WHERE { ?b BELIEF SLOT (:p, :p) }", 1, 'a reference such as {"id": "..."}', "a number"),
        ("FIND(?x) WHERE {} LIMIT :p", "3", "a whole number of 0 or more", "a string"),
        ("FIND(?x) WHERE {} LIMIT :p", True, "a whole number of 0 or more", "a boolean"),
        ("FIND(?x) WHERE {} LIMIT :p", -1, "a whole number of 0 or more", "a negative number"),
        ("FIND(?x) WHERE {} LIMIT :p", 1.5, "a whole number of 0 or more", "a number"),
        ("FIND(?x) WHERE {} CURSOR :p", None, "a string", "null"),
        ("FIND(?x) WHERE {} AS OF SEQ :p", "4", "a whole number of 0 or more", "a string"),
        ("FIND(?x) WHERE {} AS OF TIME :p", 4, "a string", "a number"),
        ("FIND(?x) WHERE { FILTER(-:p < 1) }", "a", "a number", "a string"),
        ("UPDATE :p SET FIELDS {a: 1}", {"key": "a"}, "the id of an element", "an object"),
        ("UPDATE :p SET FIELDS {a: 1}", 5, "the id of an element", "a number"),
        ("CREATE CONCEPT ?c { TYPE :p }", None, "a schema name", "null"),
        ('ARCHIVE "C-1" EXPECT STATE :p', 1, "a string", "a number"),
        (
            'ENSURE PROPOSITION ({id: "a"}, "b", 1) EXPECT VERSION :p',
            "0",
            "a whole number of 0 or more",
            "a string",
        ),
        ('SEARCH CONCEPT "x" THRESHOLD :p', "0.5", "a number", "a string"),
        ("PREVIEW KML :p", {"a": 1}, "a string", "an object"),
        ("VALIDATE KQL :p", {"a": 1}, "a string", "an object"),
        ("VERIFY BLOB :p", [1], "an artifact", "an array"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_with_both_kinds(
    text: str, value: Any, expected: str, actual: str
) -> None:
    """The error names the parameter, what was expected and what was given, never the value (RT §340)."""
    error = _refusal(text, p=value)

    assert error.code == "TypeMismatch"
    assert error.details["expected"] == expected
    assert error.details["actual"] == actual


def test_a_literal_of_the_wrong_kind_is_refused_where_it_stands() -> None:
    """What a parameter may not be, a literal may not be either."""
    error = _refusal('FIND(?x) WHERE {}\nLIMIT "3"')

    assert error.code == "TypeMismatch"
    assert (error.details["line"], error.details["column"]) == (2, 7)


def test_a_tree_built_by_hand_meets_the_same_rules() -> None:
    """A literal where an element must stand is refused also in a tree that no text had, without a position."""
    triple = ast.Triple(
        subject=ast.Literal(value="C-1"), predicate=ast.Literal(value="p"), object=ast.Literal(value=1)
    )

    with pytest.raises(NoemaError) as caught:
        bind(triple, {})
    assert caught.value.details == {"expected": 'a reference such as {"id": "..."}', "actual": "a string"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**64, -(2**63) - 1, [{"a": [2**70]}]])
def test_a_number_that_json_cannot_carry_is_refused(value: Any) -> None:
    """Endless numbers and integers beyond 64 bits are refused wherever they hide (KIP §9.3)."""
    assert _refusal("FIND(?x) WHERE { ?x {a: :p} }", p=value).code == "ConstraintViolation"


def test_a_value_nested_too_deep_is_refused() -> None:
    """The depth of a parameter is bounded as that of a text is."""
    fits: Any = 1
    for _ in range(64):
        fits = [fits]

    bind(parse("FIND(?x) WHERE { ?x {a: :p} }"), {"p": fits})
    assert _refusal("FIND(?x) WHERE { ?x {a: :p} }", p=[fits]).code == "ConstraintViolation"


def test_a_plain_value_is_the_json_that_was_written() -> None:
    """Constants come back as JSON, whatever their nesting."""
    command: Any = parse('SET RETENTION :x {a: [1, {b: null}], "c d": true, e: {}}')

    assert plain_value(command.values) == {"a": [1, {"b": None}], "c d": True, "e": {}}


@pytest.mark.parametrize("value", ["?c.name", "ADD(1, 2)", ":unbound"])
def test_what_is_no_constant_has_no_plain_value(value: str) -> None:
    """Dot paths, functions and unbound parameters are the engine's to evaluate."""
    command: Any = parse(f"UPDATE ?c SET FIELDS {{a: [{value}]}} WHERE {{ ?c {{}} }}")

    with pytest.raises(NoemaError) as caught:
        plain_value(command.content.fields)
    assert caught.value.code == "TypeMismatch"
    assert caught.value.details == {"line": 1, "column": 27}
