"""Bytes of a request body to plain values, strictly: JSON, CBOR and text of which every reader sees the same.

What lives here: decoding into dict, list, str, int, float, bool and None, and what is refused on the way. What
must never live here: what a body means. A request that two parsers would read differently is refused, not
interpreted: a key given twice, NaN, half of a surrogate pair, CBOR tags, bytes after the end, nesting without
end. CBOR is read by a decoder of our own: the library resolves tags (dates, patterns, shared and cyclic
references) and lets the last of two equal keys win, and offers no switch for either.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any, Final, NoReturn

from core.errors import NoemaError

MAX_DEPTH: Final = 64  # deeper than any document of ours, far below where a C stack ends
_MAX_INTEGER: Final = 2**64  # what CBOR, JSON in other languages, and our store can all carry


def bad(message: str, *, hint: str | None = None, **details: Any) -> NoReturn:  # details are JSON values
    """Refuse the body."""
    raise NoemaError("InvalidInput", message, hint=hint, details=details or None)


def decode_text(body: bytes) -> str:
    """UTF-8 bytes as text."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        bad(f"the body is not UTF-8: the byte at {error.start} does not belong there", position=error.start)


def decode_json(body: bytes) -> Any:  # any JSON value
    """JSON text as plain values."""
    text = decode_text(body)
    try:
        value = json.loads(text, object_pairs_hook=_members, parse_constant=_constant)
    except json.JSONDecodeError as error:
        bad(
            f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            position=error.pos,
        )
    except RecursionError:
        bad(f"the body is nested deeper than {MAX_DEPTH} levels")
    except ValueError:  # a number with more digits than Python reads
        bad("the body holds a number out of range")
    _check(value)
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        bad("a member is given twice in one object", member=_printable(twice))
    return members


def _constant(name: str) -> NoReturn:
    bad(f"{name} is not a JSON number")


def _printable(name: str) -> str:
    return name[:64].encode("ascii", "backslashreplace").decode("ascii")


def _check(value: Any) -> None:  # any plain value
    """Refuse what JSON can spell but not every reader can carry. Walks without recursion."""
    level = [value]
    for _ in range(MAX_DEPTH):
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, str):
                _check_text(item)
            elif isinstance(item, dict):
                for name in item:
                    _check_text(name)
                deeper.extend(item.values())
            elif isinstance(item, list):
                deeper.extend(item)
            elif isinstance(item, float) and not math.isfinite(item):
                bad("a number must be finite")
            elif isinstance(item, int) and abs(item) >= _MAX_INTEGER:
                bad("the body holds a number out of range")
        if not deeper:
            return
        level = deeper
    bad(f"the body is nested deeper than {MAX_DEPTH} levels")


def _check_text(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        bad("the body holds half of a surrogate pair, which is no character", hint="Send valid Unicode text.")


def decode_cbor(body: bytes) -> Any:  # any plain value
    """One CBOR item (RFC 8949) as plain values: no tags, text keys, no key twice, nothing after it."""
    reader = CborReader(body)
    value = reader.item(0)
    if reader.at != len(body):
        reader.fail("there are bytes after the end of the item")
    return value


_SPECIAL: Final[dict[int, bool | None]] = {20: False, 21: True, 22: None}
_FLOATS: Final = {25: ">e", 26: ">f", 27: ">d"}
_INDEFINITE: Final = 31
_BREAK: Final = 0xFF


class CborReader:
    """Reads CBOR items from `data` one after another.

    Args:
        data: the bytes.
        integer_keys: also take integers as keys and byte strings as values (COSE headers and CWT claims).
    """

    def __init__(self, data: bytes, *, integer_keys: bool = False) -> None:
        self.data = data
        self.at = 0
        self._loose = integer_keys

    def fail(self, what: str) -> NoReturn:
        """Refuse the data, telling where."""
        bad(f"the body is not CBOR that we accept: {what} (byte {self.at})", position=self.at)

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        if count > len(self.data) - self.at:
            self.fail("it ends too early")
        taken = self.data[self.at : self.at + count]
        self.at += count
        return taken

    def head(self) -> tuple[int, int, int]:
        """Major type, additional information and argument of the next item."""
        first = self.take(1)[0]
        major, info = first >> 5, first & 31
        if info < 24:
            return major, info, info
        if info < 28:
            return major, info, int.from_bytes(self.take(1 << (info - 24)), "big")
        if info != _INDEFINITE or major in (0, 1, 6):
            self.fail("an item has a malformed head")
        return major, info, 0

    def item(self, depth: int) -> Any:  # any plain value
        """The next item, whole."""
        if depth > MAX_DEPTH:
            self.fail(f"it is nested deeper than {MAX_DEPTH} levels")
        major, info, argument = self.head()
        if major == 0:
            return argument
        if major == 1:
            return -1 - argument
        if major in (2, 3):
            return self._string(major, info, argument)
        if major == 4:
            return [self.item(depth + 1) for _ in self._count(info, argument)]
        if major == 5:
            return self._map(info, argument, depth)
        if major == 6:
            self.fail("tags are not accepted")
        return self._simple(info, argument)

    def _count(self, info: int, argument: int) -> Any:  # an iterator of None
        if info != _INDEFINITE:
            if argument > len(self.data) - self.at:
                self.fail("a length is beyond the end")
            yield from range(argument)
            return
        while True:
            if self.at >= len(self.data):
                self.fail("it ends too early")
            if self.data[self.at] == _BREAK:
                self.at += 1
                return
            yield None

    def _map(self, info: int, argument: int, depth: int) -> dict[Any, Any]:  # text keys unless integer_keys
        out: dict[Any, Any] = {}
        for _ in self._count(info, argument):
            key = self.item(depth + 1)
            allowed = isinstance(key, str) or (
                self._loose and isinstance(key, int) and not isinstance(key, bool)
            )
            if not allowed:
                self.fail("a key is not text")
            if key in out:
                self.fail("a key is given twice in one map")
            out[key] = self.item(depth + 1)
        return out

    def _string(self, major: int, info: int, argument: int) -> Any:  # str or bytes
        if info == _INDEFINITE:
            raw = b"".join(self._chunk(major) for _ in self._count(info, 0))
        else:
            raw = self.take(argument)
        if major == 2:
            return raw if self._loose else self.fail("byte strings are not accepted")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self.fail("a text is not UTF-8")

    def _chunk(self, major: int) -> bytes:
        kind, info, length = self.head()
        if kind != major or info == _INDEFINITE:
            self.fail("a string in pieces has a piece of another kind")
        return self.take(length)

    def _simple(self, info: int, argument: int) -> Any:  # bool, None or float
        if info in _SPECIAL:
            return _SPECIAL[info]
        if info not in _FLOATS:
            self.fail("a simple value has no meaning here")
        number: float = struct.unpack(_FLOATS[info], argument.to_bytes(1 << (info - 24), "big"))[0]
        if not math.isfinite(number):
            self.fail("a number must be finite")
        return number


def encode_json(value: Any) -> bytes:  # JSON values, from a caller of this process
    """A value as JSON, to be sent.

    Raises:
        NoemaError: `InvalidInput` for what JSON cannot say: NaN, half a surrogate pair, other types.
    """
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except (TypeError, ValueError) as error:  # UnicodeEncodeError is a ValueError
        raise NoemaError("InvalidInput", f"what was given is not JSON: {error}") from error
