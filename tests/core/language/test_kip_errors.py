"""The refusals of `errors.kip`: code, position, words and hint."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.errors import NoemaError
from core.language import parse, verdict

_FILE = Path(__file__).parents[2] / "fixtures" / "language" / "errors.kip"


def _cases() -> list[tuple[str, str]]:
    lines = [line for line in _FILE.read_text().splitlines() if not line.startswith("//")]
    blocks = [block.strip("\n") for block in re.split(r"\n\n+", "\n".join(lines)) if block.strip()]
    return [(text, f"=> {told}") for text, told in (block.split("\n=> ") for block in blocks)]


@pytest.mark.parametrize(("text", "told"), _cases())
def test_a_refusal_says_where_and_why(text: str, told: str) -> None:
    """The error has the code, the line and column, the words and the hint of the file."""
    with pytest.raises(NoemaError) as caught:
        parse(text)

    error = caught.value
    place, _, message = error.message.partition(": ")
    line, column = error.details["line"], error.details["column"]
    assert f"=> {error.code} {line}:{column} {message}\n   {error.hint}" == told
    assert place == f"line {line}, column {column}"
    assert text.split("\n")[line - 1][column - 1 :] == text[error.details["offset"] :].partition("\n")[0]


def test_a_refusal_of_what_the_engine_protects_names_the_reason() -> None:
    """Where the text alone gives the fault away, `reason` is the code the state would have given."""
    reasons = {}
    for text in (
        'CREATE CONCEPT ?c { TYPE "Person" SET FIELDS {governance: {}} }',
        'UPDATE ?a SET FIELDS {stance: "reject"} WHERE { ?a ASSERTION {} }',
        'UPDATE ?e SET FIELDS {payload: "x"} WHERE { ?e EVIDENCE {} }',
        "UPDATE ?p SET FIELDS {object: 1} WHERE { ?p (:a, :b, :c) }",
        'UPDATE ?a UNSET STRUCTURAL { ("inputs", :x) } WHERE { ?a ACTIVITY {} }',
    ):
        with pytest.raises(NoemaError) as caught:
            parse(text)
        reasons[caught.value.details["reason"]] = caught.value.code

    assert reasons == dict.fromkeys(
        (
            "ProtectedGovernanceField",
            "EpistemicRevisionRequired",
            "EvidenceCorrectionRequired",
            "ImmutableField",
            "ActivityTerminal",
        ),
        "InvalidSyntax",
    )


def test_a_memory_is_not_repeated_in_an_error() -> None:
    """The text of a string never appears in a message, for it may be somebody's memory."""
    with pytest.raises(NoemaError) as caught:
        parse('FIND(?x) WHERE { ?x "my secret" }')

    assert "my secret" not in str(caught.value.to_wire())


def test_the_verdict_on_a_text_is_its_language_or_its_error() -> None:
    """`verdict` tells what a caller needs to know before anything runs."""
    assert verdict("FIND(?x) WHERE {}") == {"accepts": True, "language": "KQL"}
    assert verdict('ARCHIVE "C-1"') == {"accepts": True, "language": "KML"}
    assert verdict("SNAPSHOT") == {"accepts": True, "language": "META"}
    assert verdict("MUTATE {") == {"accepts": False, "error": "InvalidSyntax"}
    assert verdict("FIND(?) WHERE {}") == {"accepts": False, "error": "InvalidIdentifier"}
