"""The limits of a text: its length, its depth, its numbers, and that none of them is a crash or a trap."""

from __future__ import annotations

import json

import msgspec
import pytest

from core.errors import NoemaError
from core.language import bind, format_command, from_json, parse, to_canonical
from core.language.limits import MAX_NESTING, MAX_TEXT_BYTES


def _refusal(text: str) -> NoemaError:
    with pytest.raises(NoemaError) as caught:
        parse(text)
    return caught.value


def _padded(size: int, filler: str = "a") -> str:
    start, end = 'FIND(?x) WHERE { ?x {name: "', '"} }'
    return start + filler * ((size - len(start) - len(end)) // len(filler.encode())) + end


def test_a_text_may_have_256_kib_and_no_byte_more() -> None:
    """The length counts bytes of UTF-8, not characters."""
    parse(_padded(MAX_TEXT_BYTES))

    assert _refusal(_padded(MAX_TEXT_BYTES) + " ").details == {"limit": 262144, "actual": 262145}
    assert _refusal(_padded(MAX_TEXT_BYTES, "é") + "  ").code == "ResourceExhausted"


_DEEP = {
    "groups": lambda depth: f"FIND(?x) WHERE {{ FILTER({'(' * (depth - 2)}?a{')' * (depth - 2)}) }}",
    "blocks": lambda depth: f"FIND(?x) WHERE {{ {'NOT {' * (depth - 1)}{'}' * (depth - 1)} }}",
    "objects": lambda depth: f"UPDATE :x SET FIELDS {'{a: ' * depth}1{'}' * depth}",
    "arrays": lambda depth: f"FIND(?x) WHERE {{ ?x {{a: {'[' * (depth - 2)}{']' * (depth - 2)}}} }}",
    "tuples": lambda depth: (
        "FIND(?x) WHERE { " + "(" * (depth - 1) + ":a" + ', "p", :b)' * (depth - 1) + " }"
    ),
    "operators": lambda depth: (
        "FIND(?x) WHERE { FILTER("
        + "(?a || ?b && 1 < 2 == !" * (depth - 2)
        + "?c"
        + ")" * (depth - 2)
        + ") }"
    ),
}


@pytest.mark.parametrize("shape", _DEEP)
def test_brackets_nest_64_deep_and_no_deeper(shape: str) -> None:
    """What the limit allows is parsed, printed, bound and put in canonical form; one more is refused."""
    command = parse(_DEEP[shape](MAX_NESTING))

    assert parse(format_command(command)) == command
    assert bind(command, {"a": {"id": "C-1"}, "b": 1, "x": "C-1"}) != 0
    assert to_canonical(command)
    assert _refusal(_DEEP[shape](MAX_NESTING + 1)).code == "ResourceExhausted"
    assert _refusal(_DEEP[shape](20_000)).code == "ResourceExhausted"


def test_brackets_within_strings_and_side_by_side_do_not_nest() -> None:
    """Only brackets within brackets count."""
    assert "{[(" * 500 in format_command(parse('FIND(?x) WHERE { ?x {name: "' + "{[(" * 500 + '"} }'))
    assert format_command(parse("FIND(?x) WHERE { " + "?x {a: 1} " * 500 + "}")).count("?x {a: 1}") == 500


def test_long_lists_of_operands_do_not_nest() -> None:
    """A thousand conditions joined by && are one node."""
    command = parse("FIND(?x) WHERE { FILTER(" + " && ".join(["?x.a == 1"] * 1000) + ") }")

    assert parse(format_command(command)) == command


@pytest.mark.parametrize(
    "number", ["-9223372036854775808", "18446744073709551615", "0", "-0", "1e308", "5e-324"]
)
def test_numbers_of_64_bits_are_read(number: str) -> None:
    """Signed and unsigned 64-bit integers and every finite float are literals."""
    printed = format_command(parse(f"FIND(?x) WHERE {{ ?x {{a: {number}}} }}"))

    assert json.loads(printed.partition("a: ")[2].partition("}")[0]) == json.loads(number)


@pytest.mark.parametrize(
    "number",
    ["-9223372036854775809", "18446744073709551616", "9" * 5000, "1e309", "-1e309", "01", "1.", ".5", "+1", "1e", "0x1", "NaN"],
)  # fmt: skip
def test_what_is_no_number_of_64_bits_is_refused(number: str) -> None:
    """Numbers out of range and spellings that JSON has not are refused, at their place."""
    error = _refusal(f"FIND(?x) WHERE {{ ?x {{a: {number}}} }}")

    assert error.code == "InvalidSyntax"
    assert error.details["line"] == 1


def test_a_negated_number_keeps_the_range() -> None:
    """`-` before a positive number cannot leave 64 bits."""
    assert _refusal("FIND(?x) WHERE { FILTER(-(18446744073709551615) < 1) }").code == "InvalidSyntax"


@pytest.mark.parametrize(
    "text",
    [
        'FIND(?x) WHERE { ?x {a: "' + "a" * 200_000,
        'FIND(?x) WHERE { ?x {a: "' + "\\n" * 100_000,
        "FIND(?x) WHERE { ?x {a: " + "1" * 200_000 + "x} }",
        "//" * 100_000,
        " " * 200_000 + "=",
        "- " * 100_000,
        "FIND(" + "?x," * 80_000,
        "FIND(?x) WHERE { FILTER(" + "!" * 200_000 + "?x) }",
    ],
)
def test_a_long_faulty_text_is_refused_like_a_short_one(text: str) -> None:
    """No text makes the lexer or the parser go back over what it has read."""
    assert _refusal(text).code == "InvalidSyntax"


def test_half_a_surrogate_pair_is_refused() -> None:
    """A text is Unicode scalar values; an escape must not make what UTF-8 cannot carry."""
    assert _refusal('FIND(?x) WHERE { ?x {a: "\ud800"} }').details["offset"] == 25
    assert _refusal('FIND(?x) WHERE { ?x {a: "\\ud800"} }').details["offset"] == 24
    parse('FIND(?x) WHERE { ?x {a: "\\ud83d\\ude00"} }')


def test_the_json_form_of_a_deep_text_is_read_back() -> None:
    """The depth limit of the JSON form has room for objects as deep as a text's."""
    command = parse(_DEEP["objects"](MAX_NESTING))

    assert from_json(msgspec.to_builtins(command)) == command
