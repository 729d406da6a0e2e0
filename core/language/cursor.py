"""A place in the tokens of a command, and how every complaint about it is worded.

What lives here: moving over tokens and saying what was expected where. What must never live here: a production
of the grammar. The parser never goes back: one token of look-ahead (two, where a tuple may be `(id: ...)`)
decides every alternative.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Final, NoReturn

from core.language.ast import Span
from core.language.habits import hint_for
from core.language.lexer import END, NUMBER, PARAMETER, STRING, VARIABLE, Tokens, syntax_error

_CLOSES: Final[dict[str, str]] = {")": "(", "]": "[", "}": "{"}


class Cursor:
    """The next token of a text. `keys` and `values` are the token lists, `index` the next token.

    `language` is "KQL", "KML" or "META": a few shared productions differ between them. `handles` maps each
    local handle declared so far to its token; `references` lists the uses of variables that must turn out to
    be handles, as (name, token).
    """

    __slots__ = ("handles", "index", "keys", "language", "references", "tokens", "values")

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.keys = tokens.keys
        self.values = tokens.values
        self.index = 0
        self.language = "KQL"
        self.handles: dict[str, int] = {}
        self.references: list[tuple[str, int]] = []

    def span(self) -> Span:
        """Where the next token begins."""
        return self.tokens.span(self.tokens.offsets[self.index])

    def key(self) -> str:
        """What the next token is, as `lexer` defines keys."""
        return self.keys[self.index]

    def take(self) -> Any:  # a token's value is a str, an int or a float
        """The next token's value; the cursor moves past it."""
        value = self.values[self.index]
        self.index += 1
        return value

    def match(self, key: str) -> bool:
        """Whether the next token is this keyword or mark; if so, the cursor moves past it."""
        if self.keys[self.index] == key:
            self.index += 1
            return True
        return False

    def expect(self, key: str, hint: str | None = None) -> None:
        """Moves past this keyword or mark.

        Raises:
            NoemaError: InvalidSyntax where something else stands.
        """
        if self.keys[self.index] != key:
            self.fail(key if key.isalpha() else f"'{key}'", hint)
        self.index += 1

    def expect_words(self, *words: str) -> None:
        """Moves past several keywords in a row."""
        for word in words:
            self.expect(word)

    def expect_colon(self) -> None:
        """Moves past the ':' of a member.

        `name:true` reads as a name and the parameter `:true`; here, where only a ':' may stand, it is a ':'
        and a word.
        """
        if self.keys[self.index] == PARAMETER:
            self.keys[self.index] = self.values[self.index].upper()
            self.tokens.offsets[self.index] += 1
        else:
            self.expect(":")

    def choice(self, words: Iterable[str]) -> str:
        """Moves past one of these keywords and says which."""
        key = self.keys[self.index]
        if key not in words:
            self.fail_choice(words)
        self.index += 1
        return key

    def fail(self, expected: str, hint: str | None = None) -> NoReturn:
        """Raises InvalidSyntax: `expected` was expected, the next token was found."""
        offset = self.tokens.offsets[self.index]
        found = self._found()
        if hint is None:
            before = self.keys[self.index - 1] if self.index else None
            hint = self._unclosed() or hint_for(before, self.key())
        message = f"expected {expected}, found {found}"
        raise syntax_error(self.tokens, offset, message, hint=hint, expected=expected, found=found)

    def fail_choice(self, words: Iterable[str], hint: str | None = None) -> NoReturn:
        """Raises InvalidSyntax naming the keywords that may stand here, and the one that was nearly written."""
        *some, last = words
        near = difflib.get_close_matches(self.key(), [*some, last], n=1, cutoff=0.75)
        hint = f"Did you mean {near[0]}?" if near else hint
        self.fail(f"{', '.join(some)} or {last}" if some else last, hint)

    def refuse(
        self, index: int, message: str, *, hint: str | None = None, code: str = "InvalidSyntax"
    ) -> NoReturn:
        """Raises an error about the token at an index."""
        raise syntax_error(self.tokens, self.tokens.offsets[index], message, hint=hint, code=code)

    def refuse_at(
        self,
        span: Span,
        message: str,
        *,
        hint: str | None = None,
        code: str = "InvalidSyntax",
        **details: Any,
    ) -> NoReturn:
        """Raises an error about a node already built; `details` are JSON values."""
        raise syntax_error(self.tokens, span.offset, message, hint=hint, code=code, **details)

    def _found(self) -> str:
        """What the next token is, in words; a string's text is not repeated, for it may be a memory."""
        key, value = self.keys[self.index], self.values[self.index]
        if key == END:
            return "the end of the command"
        if key == STRING:
            return "a string"
        if key == NUMBER:
            return f"the number {value}"
        if key == VARIABLE:
            return f"?{value[:40]}"
        if key == PARAMETER:
            return f":{value[:40]}"
        return str(value)[:40] if value[0].isalpha() else f"'{value}'"

    def _unclosed(self) -> str | None:
        """For a command that ends too soon: which bracket is still open."""
        if self.key() != END:
            return None
        opened: list[int] = []
        for index, key in enumerate(self.keys):
            if key in {"(", "[", "{"}:
                opened.append(index)
            elif opened and _CLOSES.get(key) == self.keys[opened[-1]]:
                opened.pop()
        if not opened:
            return None
        span = self.tokens.span(self.tokens.offsets[opened[-1]])
        return f"The '{self.keys[opened[-1]]}' of line {span.line}, column {span.column} is not closed."
