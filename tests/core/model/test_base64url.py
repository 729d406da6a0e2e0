"""Bytes as text for a URL."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.base64url import decode_base64url, encode_base64url


@given(st.binary(max_size=40))
def test_bytes_come_back(data: bytes) -> None:
    """What is written is read again, and stands in a URL as it is."""
    text = encode_base64url(data)

    assert decode_base64url(text) == data
    assert set(text).isdisjoint("+/=")


def test_padding_may_be_there() -> None:
    """A text with its padding is read as the one without."""
    assert encode_base64url(b"\xfb\xff") == "-_8"
    assert decode_base64url("-_8=") == decode_base64url("-_8") == b"\xfb\xff"


@pytest.mark.parametrize("text", ["a", "ab cd", "ab\ncd", "ab*d", "abcde", "é", "ab==cd"])
def test_what_is_no_such_text_is_refused(text: str) -> None:
    """Nothing is passed over: no blank, no other character, no dangling one, no padding in the middle."""
    with pytest.raises(ValueError, match=r".*"):
        decode_base64url(text)
