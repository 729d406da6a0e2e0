"""Instants: milliseconds and RFC 3339 text, exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.instants import MAX_INSTANT, MIN_INSTANT, format_instant, parse_instant


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.001Z", 1),
        ("1969-12-31T23:59:59.999Z", -1),
        ("2026-05-08T13:56:00+08:00", 1778219760000),
        ("2026-05-08 05:56:00z", 1778219760000),
        ("2026-05-08T05:56:00.500000Z", 1778219760500),
    ],
)
def test_text_to_milliseconds(text: str, instant: int) -> None:
    """Any offset and any fraction that a millisecond can hold is read."""
    assert parse_instant(text) == instant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-05-08",
        "2026-05-08T05:56:00",
        "2026-02-30T00:00:00Z",
        "2026-05-08T05:56:00.0001Z",
        "2026-05-08T25:00:00Z",
        "yesterday",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    """No date, no such date, no offset or too fine an instant is refused, never guessed or rounded."""
    with pytest.raises(ValueError):
        parse_instant(text)


@given(st.integers(MIN_INSTANT, MAX_INSTANT))
def test_text_form_reads_back(instant: int) -> None:
    """Every instant prints to text that reads back as itself."""
    assert parse_instant(format_instant(instant)) == instant
