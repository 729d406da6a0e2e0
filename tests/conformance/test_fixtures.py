"""The eighty shared fixture cases, and that a wrong answer among them would be seen."""

from __future__ import annotations

import json

import pytest

from functions.cli.fixtures import run_fixture
from tests.conformance.ids import SHARED

FIXTURES = SHARED / "fixtures"


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.json")), ids=lambda path: path.stem)
def test_fixture_file(path):
    """Every case of the file gets its expected answer."""
    cases = run_fixture(json.loads(path.read_text("utf-8")))

    assert [f"{case.name}: {case.problem}" for case in cases if case.problem] == []


def test_the_fixtures_are_there():
    """The shared fixtures are beside the repository, or this says that they are not."""
    if not FIXTURES.is_dir():
        pytest.skip("no ../shared/kip/fixtures beside the repository")

    assert len(list(FIXTURES.glob("*.json"))) == 8


CREATE = 'MUTATE {CREATE CONCEPT ?a {TYPE "Person" NAME "A"} CREATE CONCEPT ?b {TYPE "Person" NAME "B"}}'
NAMES = 'FIND(?p.name, ?p.id) WHERE {?p CONCEPT {type: "Person"}}'
PAIRS = [["A", "C:<1>"], ["B", "C:<2>"]]


@pytest.mark.parametrize(
    ("case", "passes"),
    [
        ({"command": NAMES, "expect": {"result": PAIRS}}, True),
        ({"command": NAMES, "expect": {"result": PAIRS[:1]}}, False),
        ({"command": NAMES, "expect": {"result": PAIRS[::-1]}, "ordered": True}, False),
        ({"command": NAMES, "expect": {"error": "InvalidSyntax"}}, False),
        ({"command": "FIND(", "expect": {"error": "InvalidSyntax"}}, True),
        ({"command": "FIND(", "expect": {}}, False),
        ({"command": "FIND(COUNT(?p)) WHERE {?p CONCEPT {}}", "expect": {"result": [True]}}, False),
    ],
)
def test_a_case_is_judged_by_result_order_and_error(case, passes):
    """A case passes only with the expected rows (in order where asked), or with the expected error."""
    [verdict] = run_fixture({"name": "f", "setup": [CREATE], "cases": [{"name": "c", **case}]})

    assert (verdict.problem is None) is passes


def test_a_setup_that_fails_is_told():
    """Nothing is judged over a setup that did not succeed."""
    [verdict] = run_fixture(
        {"name": "f", "setup": ["FIND("], "cases": [{"name": "c", "command": NAMES, "expect": {}}]}
    )

    assert verdict.name == "setup"
