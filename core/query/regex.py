r"""REGEX without surprise: a small regular expression language that always runs in linear time (KQL design §249).

What lives here: a parser, and a matcher that follows all possibilities at once (Thompson's construction, with the
reached sets remembered). What must never live here: Python's `re`, whose backtracking a caller could make
exponential. What a finite automaton cannot do (back references, look-around) is refused by name.

The language: literals, `.`, `[a-z]`, `[^...]`, `\d \w \s \D \W \S`, escaped marks, `( )`, `(?: )`, `|`,
`* + ? {n} {n,} {n,m}` (a following `?` changes nothing about whether there is a match), `^` and `$`; a leading
`(?i)` ignores case. The pattern may match anywhere in the text unless it is anchored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, NoReturn

from core.errors import NoemaError

MAX_PATTERN: Final = 512  # characters; a longer one is no pattern a person wrote
MAX_STATES: Final = 4_096  # after counted repetition is written out
_MAX_SETS: Final = 2_048  # remembered sets before the memory is emptied
_UNIT: Final = 64  # tests of a character that count as looking at one record

Test = Callable[[str], bool]

_CLASSES: Final[dict[str, Test]] = {
    "d": str.isdigit,
    "w": lambda c: c.isalnum() or c == "_",
    "s": str.isspace,
    "D": lambda c: not c.isdigit(),
    "W": lambda c: not (c.isalnum() or c == "_"),
    "S": lambda c: not c.isspace(),
}
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_START: Final = "^"
_END: Final = "$"
_SPLIT: Final = "|"


def _for_free(units: int) -> None:
    """Work that nobody counts."""


class _State:
    """One state: a character test and its successor, or a free step (split, or an anchor) to others."""

    __slots__ = ("next", "number", "test")

    def __init__(self, number: int, test: Test | str, following: list[_State]) -> None:
        self.number = number
        self.test = test  # a test of a character, or one of the marks above
        self.next = following


Fragment = Callable[["_State"], "_State"]  # given what follows, the state where it begins


class Regex:
    """A compiled pattern. `search` says whether it matches anywhere in a text."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > MAX_PATTERN:
            raise NoemaError("ResourceExhausted", f"a pattern may have at most {MAX_PATTERN} characters")
        self._count = 0
        self._ignore_case = pattern.startswith("(?i)")
        self._text = pattern[4:] if self._ignore_case else pattern
        self._at = 0
        fragment = self._alternatives()
        if self._at < len(self._text):
            self._refuse("this ')' closes nothing")
        self._accept = self._state(_SPLIT, [])
        self._begin = fragment(self._accept)
        self._moves: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        self._states: dict[int, _State] = {}

    def search(self, text: str, spend: Callable[[int], None] = _for_free) -> bool:
        """Whether the pattern matches somewhere in the text.

        Args:
            text: of any length; each character costs at most the states of the pattern.
            spend: told of the work as it is done, about one unit for `_UNIT` tests; it may raise.
        """
        if self._ignore_case:
            text = text.casefold()
        first = self._closure([self._begin], at_start=True, at_end=not text)
        if self._accept.number in first:
            return True
        again = self._closure([self._begin], at_start=False, at_end=False)
        reached = first
        last = len(text) - 1
        for index, character in enumerate(text):
            key = (reached, character)
            known = self._moves.get(key) if index < last else None
            if known is None:
                spend(1 + len(reached) // _UNIT)
                known = self._step(reached, character, at_end=index == last, again=again)
                if index < last:
                    if len(self._moves) >= _MAX_SETS:
                        self._moves.clear()
                    self._moves[key] = known
            reached = known
            if self._accept.number in reached:
                return True
        return False

    def _step(
        self, reached: frozenset[int], character: str, *, at_end: bool, again: frozenset[int]
    ) -> frozenset[int]:
        """The states that one more character leads to, and those where a match may begin behind it."""
        following = [
            state.next[0]
            for number in reached
            if not isinstance((state := self._states[number]).test, str) and state.test(character)
        ]
        found = self._closure(following, at_start=False, at_end=at_end)
        return found | (self._closure([self._begin], at_start=False, at_end=True) if at_end else again)

    def _closure(self, states: Iterable[_State], *, at_start: bool, at_end: bool) -> frozenset[int]:
        """All states reached without reading: an anchor is passed only where it holds."""
        pending, seen = list(states), set[int]()
        while pending:
            state = pending.pop()
            if state.number in seen:
                continue
            seen.add(state.number)
            self._states[state.number] = state
            passes = {_SPLIT: True, _START: at_start, _END: at_end}
            if isinstance(state.test, str) and passes[state.test]:
                pending.extend(state.next)
        return frozenset(seen)

    # --- reading the pattern

    def _state(self, test: Test | str, following: list[_State]) -> _State:
        self._count += 1
        if self._count > MAX_STATES:
            raise NoemaError(
                "ResourceExhausted", "the pattern is too large once its repetitions are written out"
            )
        return _State(self._count, test, following)

    def _peek(self) -> str:
        return self._text[self._at] if self._at < len(self._text) else ""

    def _take(self) -> str:
        character = self._peek()
        self._at += 1
        return character

    def _refuse(self, problem: str) -> NoReturn:
        raise NoemaError(
            "InvalidSyntax",
            f"REGEX, character {self._at + 1} of the pattern: {problem}",
            details={"pattern_offset": self._at},
        )

    def _alternatives(self) -> Fragment:
        choices = [self._sequence()]
        while self._peek() == "|":
            self._take()
            choices.append(self._sequence())
        if len(choices) == 1:
            return choices[0]
        return lambda after: self._state(_SPLIT, [choice(after) for choice in choices])

    def _sequence(self) -> Fragment:
        parts: list[Fragment] = []
        while self._peek() not in {"", "|", ")"}:
            parts.append(self._repeated(self._atom()))

        def chain(after: _State) -> _State:
            for part in reversed(parts):
                after = part(after)
            return after

        return chain

    def _repeated(self, atom: Fragment) -> Fragment:
        while self._peek() and self._peek() in "*+?{":
            atom = self._times(atom, *self._quantifier())
            if self._peek() == "?":  # a lazy quantifier matches the same texts
                self._take()
        return atom

    def _quantifier(self) -> tuple[int, int | None]:
        mark = self._take()
        if mark != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[mark]
        end = self._text.find("}", self._at)
        parts = self._text[self._at : end].split(",") if end > 0 else []
        low = parts[0] if parts else ""
        high = parts[1] if len(parts) == 2 else low
        if len(parts) not in {1, 2} or not low.isdecimal() or not (high.isdecimal() or high == ""):
            self._refuse("a count is written {n}, {n,} or {n,m}; write \\{ for the character")
        self._at = end + 1
        least, most = int(low), int(high) if high else None
        if least > MAX_STATES or (most is not None and (most < least or most > MAX_STATES)):
            self._refuse("this count is out of range")
        return least, most

    def _times(self, atom: Fragment, least: int, most: int | None) -> Fragment:
        def build(after: _State) -> _State:
            if most is None:
                loop = self._state(_SPLIT, [])
                loop.next = [atom(loop), after]
                after = loop
            else:
                end = after
                for _ in range(most - least):
                    after = self._state(_SPLIT, [atom(after), end])
            for _ in range(least):
                after = atom(after)
            return after

        return build

    def _atom(self) -> Fragment:
        character = self._take()
        if character == "(":
            return self._group()
        if character in {_START, _END}:
            return lambda after: self._state(character, [after])
        if character in "*+?{":
            self._at -= 1
            self._refuse("there is nothing to repeat here")
        test: Test
        if character == ".":
            test = _not_newline
        elif character == "[":
            test = self._set()
        elif character == "\\":
            test = self._escape()
        else:
            test = self._literal(character)
        return lambda after: self._state(test, [after])

    def _group(self) -> Fragment:
        if self._text.startswith("?:", self._at):
            self._at += 2
        elif self._peek() == "?":
            self._refuse("look-around and named groups are not part of this language")
        inner = self._alternatives()
        if self._take() != ")":
            self._refuse("this group is not closed")
        return inner

    def _literal(self, character: str) -> Test:
        wanted = character.casefold() if self._ignore_case else character
        return lambda c: c == wanted

    def _escape(self) -> Test:
        character = self._take()
        if character in _CLASSES:
            return _CLASSES[character]
        return self._literal(self._escaped(character))

    def _escaped(self, character: str) -> str:
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character == "" or character.isalnum():
            self._refuse(f"\\{character} is not part of this language")
        return character

    def _set(self) -> Test:
        negated = self._peek() == "^"
        if negated:
            self._take()
        tests: list[Test] = []
        first = True
        while first or self._peek() != "]":
            first = False
            if self._peek() == "":
                self._refuse("this set is not closed")
            tests.append(self._member())
        self._take()
        return (
            (lambda c: not any(test(c) for test in tests))
            if negated
            else (lambda c: any(test(c) for test in tests))
        )

    def _member(self) -> Test:
        low = self._take()
        if low == "\\":
            low = self._take()
            if low in _CLASSES:
                return _CLASSES[low]
            low = self._escaped(low)
        if self._peek() != "-" or self._text[self._at + 1 : self._at + 2] in {"]", ""}:
            return self._literal(low)
        self._take()
        high = self._take()
        if high == "\\":
            high = self._escaped(self._take())
        if high < low:
            self._refuse("this range ends before it begins")
        if self._ignore_case:
            return lambda c: low <= c <= high or low <= c.upper() <= high
        return lambda c: low <= c <= high


def _not_newline(character: str) -> bool:
    return character != "\n"


@lru_cache(maxsize=128)
def compile_regex(pattern: str) -> Regex:
    """The pattern, read once.

    Raises:
        NoemaError: InvalidSyntax with the place in the pattern; ResourceExhausted for one that is too large.
    """
    return Regex(pattern)
