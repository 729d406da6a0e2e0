"""Every command prints to a text that parses to the same command, and its other forms are as faithful."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from core.language import Command, ast, format_command, from_json, language_of, parse, to_canonical
from tests.core.language import strategies

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

_bounded = settings(
    max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


def _checked(command: Command) -> None:
    text = format_command(command)
    again = parse(text)
    assert again == command, text
    assert format_command(again) == text
    assert language_of(again) == language_of(command)
    assert to_canonical(again) == to_canonical(command)
    assert to_canonical(from_json(to_canonical(command))) == to_canonical(command)


@_bounded
@given(strategies.finds)
def test_every_query_prints_and_parses_to_itself(command: Command) -> None:
    """FIND in all its parts is the same after printing and parsing."""
    _checked(command)


@_bounded
@given(strategies.mutations())
def test_every_mutation_prints_and_parses_to_itself(command: Command) -> None:
    """MUTATE with every family of clause is the same after printing and parsing."""
    _checked(command)


@_bounded
@given(strategies.metas)
def test_every_meta_statement_prints_and_parses_to_itself(command: Command) -> None:
    """META in all its families is the same after printing and parsing."""
    _checked(command)


@_bounded
@given(strategies.commands)
def test_the_json_form_is_read_as_the_same_command(command: Command) -> None:
    """The tree sent as JSON in `ast` is the command its text is."""
    form = json.loads(msgspec.json.encode(command))

    assert from_json(form) == command


@_bounded
@given(strategies.expressions)
def test_an_expression_keeps_its_shape_with_as_few_parentheses_as_it_needs(
    expression: ast.Expression,
) -> None:
    """Precedence is printed, not lost."""
    filtered = parse(f"FIND(?x) WHERE {{ FILTER({_text(expression)}) }}")

    assert filtered.where == (ast.Filter(condition=expression),)


def _text(expression: ast.Expression) -> str:
    whole = parse("FIND(?x) WHERE { FILTER(?x) }")
    line = format_command(msgspec.structs.replace(whole, where=(ast.Filter(condition=expression),)))
    return line.split("FILTER(", 1)[1].rsplit(")", 1)[0]
