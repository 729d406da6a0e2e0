"""The canonical form is one per meaning, and the JSON form is read as strictly as text."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from core.errors import NoemaError
from core.language import ast, bind, from_json, parse, to_canonical


def _same(one: str, two: str) -> bool:
    first, second = to_canonical(parse(one)), to_canonical(parse(two))
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("FIND(?x) WHERE { ?x {a: 1, b: 2} }", "find ( ?x )\nwhere{?x concept{b:2,a:1}}// note"),
        ("UPDATE :x SET FIELDS {a: 1, b: {c: 1, d: 2}}", "UPDATE :x SET FIELDS {b: {d: 2, c: 1}, a: 1}"),
        ("UPDATE :x SET FIELDS {a: 1.0}", "UPDATE :x SET FIELDS {a: 1}"),
        ("UPDATE :x SET FIELDS {a: -0.0}", "UPDATE :x SET FIELDS {a: 0}"),
        (
            "UPDATE :x SET FIELDS {a: 1} UNSET ATTRIBUTES {b}",
            "UPDATE :x UNSET ATTRIBUTES {b} SET FIELDS {a: 1}",
        ),
    ],
)
def test_what_means_the_same_has_one_canonical_form(one: str, two: str) -> None:
    """Layout, case, member order and the spelling of a number do not change the digest of a request."""
    assert _same(one, two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("UPDATE :x SET FIELDS {a: 1}", "UPDATE :x SET FIELDS {a: true}"),
        ("UPDATE :x SET FIELDS {a: 1}", 'UPDATE :x SET FIELDS {a: "1"}'),
        ("UPDATE :x SET FIELDS {a: null}", "UPDATE :x SET FIELDS {}"),
        ("UPDATE :x SET FIELDS {a: 1}", "UPDATE :y SET FIELDS {a: 1}"),
        ("UPDATE :x SET FIELDS {a: [1, 2]}", "UPDATE :x SET FIELDS {a: [2, 1]}"),
        ("UPDATE :x SET FIELDS {a: {}}", "UPDATE :x SET FIELDS {a: []}"),
        ("UPDATE :x SET FIELDS {a: 9007199254740993}", "UPDATE :x SET FIELDS {a: 9007199254740992.0}"),
        ("UPDATE :x SET FIELDS {} UNSET ATTRIBUTES {}", "UPDATE :x SET FIELDS {}"),
        ("FIND(?x) WHERE {} LIMIT 1", "FIND(?x) WHERE {}"),
    ],
)
def test_what_differs_in_meaning_differs_in_canonical_form(one: str, two: str) -> None:
    """Types, order in lists, absence and every clause count."""
    assert not _same(one, two)


def test_a_parameter_counts_by_its_value() -> None:
    """After `bind`, a parameter and the value written out are one request."""
    bound = bind(parse("UPDATE :x SET FIELDS {a: :v}"), {"x": "C-1", "v": {"b": 2.0, "a": 1}})

    assert to_canonical(bound) == to_canonical(parse('UPDATE "C-1" SET FIELDS {a: {a: 1, b: 2}}'))


def test_the_canonical_form_is_json_without_places() -> None:
    """Nothing in it depends on where things stood or how they were laid out."""
    assert to_canonical(parse("\n\nARCHIVE :x")) == {
        "node": "Archive",
        "target": {"node": "Parameter", "name": "x"},
    }


def _form(text: str) -> dict[str, Any]:
    return msgspec.to_builtins(parse(text))


def test_a_tree_without_places_is_a_command() -> None:
    """A sender need not invent spans; the command read has those of its canonical text."""
    form = {"node": "Archive", "target": {"node": "Literal", "value": "C-1"}}
    command = from_json(form)

    assert command == parse('ARCHIVE "C-1"')
    assert command.span == ast.Span(1, 1, 0)


@pytest.mark.parametrize(
    ("form", "path"),
    [
        (None, "$"),
        ([], "$"),
        ({}, "$"),
        ({"node": "Drop"}, "$.node"),
        ({"node": "Archive"}, "$"),
        ({"node": "Archive", "target": {"node": "Literal", "value": ["x"]}}, "$.target.value"),
        ({"node": "Archive", "target": {"node": "Literal", "value": "x"}, "force": True}, "$"),
        (
            {"node": "Find", "projections": [{"node": "Literal", "value": 1}], "where": []},
            "$.projections[0].node",
        ),
    ],
)
def test_json_of_the_wrong_shape_is_refused_with_its_path(form: Any, path: str) -> None:
    """A node that does not exist or lacks a member is named by where it stands."""
    with pytest.raises(NoemaError) as caught:
        from_json(form)

    assert caught.value.code == "InvalidSyntax"
    assert caught.value.details == {"path": path}


def _archive(target: dict[str, Any]) -> dict[str, Any]:
    return {"node": "Archive", "target": target}


@pytest.mark.parametrize(
    ("form", "code"),
    [
        (_archive({"node": "Parameter", "name": 'x CONFIRM "PURGE"'}), "InvalidSyntax"),
        (_archive({"node": "Parameter", "name": "x EXPECT STATE :y"}), "InvalidSyntax"),
        (_archive({"node": "Literal", "value": 5}), "InvalidSyntax"),
        (_archive({"node": "Variable", "name": "x"}), "ReferenceError"),
        ({"node": "Mutate", "clauses": []}, "InvalidSyntax"),
        ({"node": "Find", "projections": [], "where": []}, "InvalidSyntax"),
        ({**_form("FIND(?x) WHERE {}"), "where": [{"node": "Filter", "condition": {"node": "And", "operands": []}}]}, "InvalidSyntax"),
        ({**_form("SNAPSHOT"), "as_of": {"node": "AsOf", "axis": "SEQ", "value": {"node": "Literal", "value": 2**64}}}, "InvalidSyntax"),
        ({"node": "Describe", "topic": "PROTOCOL", "subject": {"node": "Literal", "value": "x"}}, "InvalidSyntax"),
        ({"node": "Describe", "topic": "TYPE"}, "InvalidSyntax"),
        ({"node": "Changes"}, "InvalidSyntax"),
    ],
)  # fmt: skip
def test_a_tree_that_no_text_has_is_refused(form: Any, code: str) -> None:
    """The JSON form is a way to write commands, not a way around the grammar and its checks."""
    with pytest.raises(NoemaError) as caught:
        from_json(form)

    assert caught.value.code == code


def test_json_nested_beyond_reason_is_refused() -> None:
    """Depth is bounded before anything walks the tree."""
    form: Any = {"node": "Literal", "value": 1}
    for _ in range(5000):
        form = {"node": "Not", "operand": form}

    with pytest.raises(NoemaError) as caught:
        from_json({"node": "Find", "projections": [], "where": [{"node": "Filter", "condition": form}]})
    assert caught.value.code == "ResourceExhausted"
