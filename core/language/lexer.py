"""Command text to tokens, in one pass of one regular expression.

What lives here: the lexical grammar, decoding of strings and numbers, and the errors of a text that has no
tokens. What must never live here: keywords. A keyword is only a word until the grammar asks for it, so every
keyword may also be a field name.

Tokens are three lists of equal length. `keys` is what the grammar compares: a word in upper case, a mark as
itself, and one of the constants below for the rest. `values` is what was written: a word's own spelling, the
name of a variable or parameter, the value of a string or number. `offsets` is where each token begins.
"""

from __future__ import annotations

import bisect
import json
import math
import re
from typing import Any, Final

from core.errors import NoemaError
from core.language.ast import Span
from core.language.limits import MAX_INTEGER, MAX_NESTING, MAX_TEXT_BYTES, MIN_INTEGER

VARIABLE: Final = "?"
PARAMETER: Final = "$"  # no mark of the language, so it cannot be mistaken for one
STRING: Final = '"'
NUMBER: Final = "0"
END: Final = ""

_TOKEN: Final = re.compile(
    r"(?:[ \t\r\n]+|//[^\n]*)*+"
    r"(?:([A-Za-z_][A-Za-z0-9_]*)"
    r"|\?([A-Za-z_][A-Za-z0-9_]*)"
    r"|:([A-Za-z_][A-Za-z0-9_]*)"
    r'|"([^"\\\x00-\x1f]*)"'
    r'|("(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*+")'
    r"|(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![A-Za-z0-9_])"
    r"|(==|!=|<=|>=|&&|\|\||[(){}\[\],.:<>!|-])"
    r"|(.)|\Z)",
    re.DOTALL,
)
_WORD, _VARIABLE, _PARAMETER, _PLAIN, _ESCAPED, _NUMBER, _MARK = range(1, 8)

_STRAY_HINTS: Final[dict[str, str]] = {
    ";": "One command is one statement without ';'; MUTATE { ... } commits several mutations together.",
    "'": "Strings stand in double quotes.",
    "“": "Strings stand in plain double quotes.",
    "”": "Strings stand in plain double quotes.",
    "=": "Compare with ==.",
    "&": "Combine conditions with &&.",
    "+": "There are no arithmetic operators; UPDATE has ADD, MUL, CLAMP and COALESCE.",
    "*": "There are no arithmetic operators; COUNT takes a variable.",
    "/": "A comment begins with //.",
    "#": "A comment begins with //.",
    "@": "Schema references are quoted strings.",
    "$": "A parameter is written :name.",
}


class Tokens:
    """The tokens of one text, and where each offset lies in it."""

    __slots__ = ("_breaks", "keys", "offsets", "text", "values")

    def __init__(self, text: str) -> None:
        self.text = text
        self.keys: list[str] = []
        self.values: list[Any] = []  # a word, a name, a string or a number
        self.offsets: list[int] = []
        self._breaks = [match.start() for match in re.finditer("\n", text)]

    def span(self, offset: int) -> Span:
        """The line, column and offset of an offset."""
        if not self._breaks:
            return Span(1, offset + 1, offset)
        line = bisect.bisect_left(self._breaks, offset)
        return Span(line + 1, offset - (self._breaks[line - 1] if line else -1), offset)


def tokenize(text: str) -> Tokens:
    """The tokens of a command, ending with an END token.

    Raises:
        NoemaError: InvalidSyntax or InvalidIdentifier at the place that is no token; ResourceExhausted for a
            text that is too long or too deeply nested.
    """
    _check_text(text)
    tokens = Tokens(text)
    keys, values, offsets = tokens.keys, tokens.values, tokens.offsets
    for match in _TOKEN.finditer(text):
        group = match.lastindex
        if group is None:
            break
        value: Any = match[group]
        start = match.start(group)
        if group == _MARK:
            key = value
        elif group == _WORD:
            key = value.upper()
        elif group == _VARIABLE:
            key, start = VARIABLE, start - 1
        elif group == _PLAIN:
            key, start = STRING, start - 1
        elif group == _PARAMETER:
            key, start = PARAMETER, start - 1
        elif group == _NUMBER:
            key, value = NUMBER, _number(tokens, value, start)
        elif group == _ESCAPED:
            key, value = STRING, _string(tokens, value, start)
        else:
            raise _stray(tokens, start)
        keys.append(key)
        values.append(value)
        offsets.append(start)
    keys.append(END)
    values.append(None)
    offsets.append(len(text))
    _check_nesting(tokens)
    return tokens


def syntax_error(
    tokens: Tokens,
    offset: int,
    message: str,
    *,
    hint: str | None = None,
    code: str = "InvalidSyntax",
    **details: Any,
) -> NoemaError:
    """An error about one place of a text. `details` are JSON values added to its position."""
    span = tokens.span(offset)
    place = {"line": span.line, "column": span.column, "offset": span.offset}
    return NoemaError(
        code, f"line {span.line}, column {span.column}: {message}", hint=hint, details={**place, **details}
    )


def _check_text(text: str) -> None:
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError as error:
        raise syntax_error(Tokens(text), error.start, "half of a surrogate pair is not a character") from None
    if size > MAX_TEXT_BYTES:
        raise NoemaError(
            "ResourceExhausted",
            f"the command has {size} bytes; at most {MAX_TEXT_BYTES} are read",
            hint="Pass long values as parameters or as ingested evidence.",
            details={"limit": MAX_TEXT_BYTES, "actual": size},
        )


def _check_nesting(tokens: Tokens) -> None:
    text = tokens.text
    if text.count("(") + text.count("[") + text.count("{") <= MAX_NESTING:
        return
    depth = 0
    for key, offset in zip(tokens.keys, tokens.offsets, strict=True):
        if key in {"(", "[", "{"}:
            depth += 1
            if depth > MAX_NESTING:
                raise syntax_error(
                    tokens,
                    offset,
                    f"brackets are nested more than {MAX_NESTING} deep",
                    hint="Pass deep values as parameters.",
                    code="ResourceExhausted",
                    limit=MAX_NESTING,
                )
        elif key in {")", "]", "}"}:
            depth -= 1


def _number(tokens: Tokens, text: str, start: int) -> int | float:
    if "." not in text and "e" not in text and "E" not in text:
        # More digits than the range has are refused before they are converted.
        value = int(text) if len(text) <= 20 else None
        if value is not None and MIN_INTEGER <= value <= MAX_INTEGER:
            return value
        raise syntax_error(
            tokens,
            start,
            "this integer is outside the range of 64 bits",
            hint="Write a larger number as a string, or with a decimal point.",
        )
    number = float(text)
    if not math.isfinite(number):
        raise syntax_error(tokens, start, "this number is too large to be finite")
    return number


def _string(tokens: Tokens, text: str, start: int) -> str:
    value: str = json.loads(text)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise syntax_error(
            tokens, start, "this string has half of a surrogate pair", hint="Write \\uD83D\\uDE00 as a pair."
        ) from None
    return value


def _stray(tokens: Tokens, start: int) -> NoemaError:
    """The error for a character that begins no token."""
    text = tokens.text
    character = text[start]
    if character == '"':
        return _bad_string(tokens, start)
    if character == "?":
        return syntax_error(
            tokens,
            start,
            "? is not followed by a name",
            hint="A variable is ? and a name of ASCII letters, digits and _ that does not begin with a digit.",
            code="InvalidIdentifier",
        )
    if character in "-0123456789":
        return syntax_error(
            tokens, start, "this is not a number", hint="Numbers are as in JSON; quote anything else."
        )
    hint = _STRAY_HINTS.get(character)
    if hint is None and not character.isascii():
        hint = "Names are ASCII; other text stands in quoted strings."
    return syntax_error(tokens, start, f"unexpected character {character!r}", hint=hint, found=character)


def _bad_string(tokens: Tokens, start: int) -> NoemaError:
    """The error for a string that does not end, or that holds what a JSON string may not."""
    text = tokens.text
    at = start + 1
    while at < len(text) and text[at] != '"':
        if text[at] < " ":
            return syntax_error(
                tokens,
                at,
                "a string may not hold a line break or control character",
                hint="Write it as \\n, \\t or \\u00XX.",
            )
        if text[at] == "\\":
            if not re.compile(r'\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})').match(text, at):
                return syntax_error(
                    tokens,
                    at,
                    "this is no escape of a string",
                    hint='Use \\" \\\\ \\/ \\b \\f \\n \\r \\t or \\uXXXX.',
                )
            at += 1
        at += 1
    return syntax_error(tokens, start, "this string is not closed", hint='Close it with ".')
