"""Results that fit: shortened where they are long, with a note, and always JSON."""

import json

import pytest

from core.agents.tools.fitting import fit


def test_what_fits_is_not_touched():
    """A short value is its compact JSON."""
    assert fit({"a": [1, "b"]}, 100) == '{"a":[1,"b"]}'


@pytest.mark.parametrize(
    "value",
    [
        {"rows": [{"n": n, "text": "x" * 50} for n in range(1000)]},
        {"text": "ü" * 100_000},
        [[["y" * 1000] * 50] * 50] * 50,
        {str(n): n for n in range(100_000)},
    ],
)
def test_what_does_not_fit_is_shortened_and_says_so(value: object):
    """It is at most as long as asked for, still JSON, and tells that something is left out."""
    text = fit(value, 4_000)  # type: ignore[arg-type]
    assert len(text) <= 4_000
    json.loads(text)
    assert "more" in text or "too long" in text
