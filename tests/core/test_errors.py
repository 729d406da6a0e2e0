"""The error registry is complete and its wire form is KIP's."""

import json
from pathlib import Path

import pytest

from core.errors import REGISTRY, NoemaError

SHARED = Path(__file__).parents[3] / "shared" / "kip" / "error-registry.json"


@pytest.mark.skipif(not SHARED.exists(), reason="the shared KIP registry is not beside this checkout")
def test_registry_agrees_with_kip() -> None:
    """Every code of KIP's registry stands in ours with the same category and retry class."""
    for row in json.loads(SHARED.read_text()):
        spec = REGISTRY[row["code"]]

        assert (spec.category, spec.retry) == (row["category"], row["retry"]), row["code"]


def test_every_code_says_what_to_do() -> None:
    """No code is without a hint, and every hint is a sentence."""
    assert all(spec.hint.endswith(".") for spec in REGISTRY.values())


def test_wire_form() -> None:
    """The wire form carries code, category, message, hint and retry, and details only where there are some."""
    plain = NoemaError("RateLimited", "too many requests", retry_after_ms=1500).to_wire()
    rich = NoemaError("InvalidSyntax", "expected )", details={"line": 2}, hint="Close the bracket.").to_wire()

    assert plain["retry"] == {"class": "safe_same_request", "after_ms": 1500}
    assert "details" not in plain
    assert rich["details"] == {"line": 2}
    assert rich["hint"] == "Close the bracket."


def test_an_unknown_code_is_a_bug() -> None:
    """A code that is not in the table cannot be raised."""
    with pytest.raises(KeyError):
        NoemaError("NoSuchCode", "x")


def test_what_a_caller_sent_is_quoted_in_part() -> None:
    """A long text in a message or in details loses its middle, never its ends; short ones stay as they are."""
    long = f"Invalid value '{'x' * 100_000}' - at `$.scope`"
    error = NoemaError("InvalidInput", long, details={"got": [long, 7], "member": "scope"})

    assert len(error.message) < 1_000
    assert error.message.startswith("Invalid value 'xxx")
    assert error.message.endswith("xxx' - at `$.scope`")
    assert error.details == {"got": [error.message, 7], "member": "scope"}
    assert NoemaError("InvalidInput", "x" * 1_000).message == "x" * 1_000
