"""Strict decoding of JSON, CBOR and text."""

import contextlib
import json
from typing import Any

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import NoemaError
from functions.plain import MAX_DEPTH, decode_cbor, decode_json, decode_text

GOOD = [
    None,
    True,
    0,
    -1,
    2**63,
    2**64 - 1,
    1.5,
    "",
    "é",  # NFC
    "e\u0301",  # NFD: kept as it came, not composed
    "\u202eright to left\u202c",
    "zero\u200bwidth",
    "👩‍👩‍👧",
    "\x00",
    [],
    {},
    {"constructor": {"__proto__": [1, "x", None, False]}},
    {"a": [[[[[]]]]]},
]


@pytest.mark.parametrize("value", GOOD, ids=repr)
def test_json_and_cbor_give_the_value_that_was_sent(value: Any) -> None:
    """What a body says is read exactly, in either format, to the code point."""
    assert decode_json(json.dumps(value).encode()) == value
    assert decode_json(json.dumps(value, ensure_ascii=False).encode()) == value
    assert decode_cbor(cbor2.dumps(value, canonical=True)) == value
    assert decode_cbor(cbor2.dumps(value)) == value


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(PLAIN)
def test_any_plain_value_survives_cbor(value: Any) -> None:
    """Our CBOR reader agrees with the library that writes it."""
    assert decode_cbor(cbor2.dumps(value, canonical=True)) == value


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    """No bytes make the readers fail in another way than by refusing them."""
    for read in (decode_json, decode_cbor, decode_text):
        with contextlib.suppress(NoemaError):
            read(body)


BAD_JSON = {
    "empty": b"",
    "cut": b'{"a": 1',
    "a second value": b"{} {}",
    "trailing comma": b"[1,]",
    "single quotes": b"{'a': 1}",
    "a key twice": b'{"a": 1, "a": 2}',
    "a key twice, deep": b'[{"x": [{"a": 1, "\\u0061": 2}]}]',
    "NaN": b"[NaN]",
    "Infinity": b"-Infinity",
    "a number beyond a double": b"[1e999]",
    "an integer beyond 64 bits": b"18446744073709551616",
    "an integer of 5000 digits": b"1" * 5000,
    "high surrogate alone": b'"\\ud800"',
    "low surrogate alone": b'{"a": "x\\udc00y"}',
    "surrogate in a key": b'{"\\udfff": 1}',
    "surrogates swapped": b'"\\udc00\\ud800"',
    "not UTF-8": b'"\xff"',
    "UTF-8 of a surrogate": b'"\xed\xa0\x80"',
    "overlong UTF-8": b'"\xc0\xaf"',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf{}",
    "too deep": b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
    "far too deep": b"[" * 200_000 + b"]" * 200_000,
    "deep objects": b'{"a":' * 100_000,
    "control character in a string": b'"\x01"',
}


@pytest.mark.parametrize("name", BAD_JSON)
def test_bad_json_is_refused(name: str) -> None:
    """What two parsers could read differently, or one not at all, is InvalidInput."""
    with pytest.raises(NoemaError) as caught:
        decode_json(BAD_JSON[name])

    assert caught.value.code == "InvalidInput"


def test_the_deepest_nesting_allowed_is_read() -> None:
    """The bound on depth is exact in both formats."""
    body = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH

    assert decode_json(body) is not None
    assert decode_cbor(b"\x81" * MAX_DEPTH + b"\x01") is not None
    with pytest.raises(NoemaError):
        decode_cbor(b"\x81" * (MAX_DEPTH + 1) + b"\x01")


BAD_CBOR = {
    "empty": b"",
    "cut head": b"\x19\x01",
    "cut text": b"\x63ab",
    "cut array": b"\x82\x01",
    "cut map": b"\xa1\x61a",
    "a second item": b"\x01\x02",
    "a key twice": b"\xa2\x61a\x01\x61a\x02",
    "a number as key": b"\xa1\x01\x02",
    "a date by tag": b"\xc1\x1a\x00\x00\x00\x00",
    "a bignum by tag": b"\xc2\x41\x01",
    "a pattern by tag": b"\xd8\x23\x63a+b",
    "a shared value": b"\xd8\x1c\x81\xd8\x1d\x00",
    "bytes": b"\x41a",
    "undefined": b"\xf7",
    "a reserved head": b"\x1c",
    "break alone": b"\xff",
    "NaN": b"\xf9\x7e\x00",
    "infinity": b"\xfa\x7f\x80\x00\x00",
    "text not UTF-8": b"\x61\xff",
    "text of a surrogate": b"\x63\xed\xa0\x80",
    "an array longer than the world": b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
    "a text longer than the world": b"\x7b\xff\xff\xff\xff\xff\xff\xff\xff",
    "an array that never ends": b"\x9f\x01\x01",
    "text in pieces with bytes in it": b"\x7f\x61a\x41b\xff",
    "far too deep": b"\x81" * 200_000,
    "far too deep, indefinite": b"\x9f" * 200_000,
}


@pytest.mark.parametrize("name", BAD_CBOR)
def test_bad_cbor_is_refused(name: str) -> None:
    """Tags, bytes, odd keys, what is cut and what is over are InvalidInput."""
    with pytest.raises(NoemaError) as caught:
        decode_cbor(BAD_CBOR[name])

    assert caught.value.code == "InvalidInput"


def test_cbor_in_pieces_is_read() -> None:
    """Strings, arrays and maps of indefinite length are CBOR too (RFC 8949 §3.2)."""
    assert decode_cbor(b"\xbf\x61a\x9f\x01\x7f\x61x\x62yz\xff\xff\xff") == {"a": [1, "xyz"]}


def test_an_error_does_not_repeat_the_body() -> None:
    """A message about a body holds nothing of what the body said but the name of a member."""
    with pytest.raises(NoemaError) as caught:
        decode_json(b'{"k": "my secret"; "k": "another"}')

    assert "secret" not in str(caught.value.to_wire())
