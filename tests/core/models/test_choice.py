"""A model as text, and back."""

from __future__ import annotations

import pytest

from core.models.choice import ModelChoice, for_tier, parse_choice

GOOD = {
    "off": None,
    "": None,
    " off ": None,
    "bedrock:eu.anthropic.claude-haiku-4-5-20251001-v1:0": ModelChoice("bedrock", "eu.anthropic.claude-haiku-4-5-20251001-v1:0"),
    "anthropic:claude-haiku-4-5": ModelChoice("anthropic", "claude-haiku-4-5", "https://api.anthropic.com"),
    "anthropic:m@https://gateway.example/anthropic/": ModelChoice("anthropic", "m", "https://gateway.example/anthropic"),
    "openai:gemma@http://127.0.0.1:8080/v1": ModelChoice("openai", "gemma", "http://127.0.0.1:8080/v1"),
    "openai:org/model:tag@2@https://x.example/v1": ModelChoice("openai", "org/model:tag@2", "https://x.example/v1"),
    "openai:m@http://[::1]:8080/v1": ModelChoice("openai", "m", "http://[::1]:8080/v1"),
}  # fmt: skip
BAD = [
    "claude-haiku-4-5", "gemini:flash", "anthropic:", "bedrock:", "openai:m", "openai:m@", "openai:@https://x/v1",
    "openai:m@ftp://x/v1", "openai:m@https://", "openai:m@https://user:pass@x/v1", "openai:m@https://x/v1?key=1",
    "openai:m@https://x/v1#a", "openai:m@https://x/ v1", "openai:two words@https://x/v1", "anthropic:m@x.example",
    "openai:m\n@https://x/v1", f"openai:{'m' * 300}@https://x/v1", f"openai:m@https://{'x' * 600}", "openai:m@https://ü.example/v1",
    "openai:m@https://x\\@y/v1",
]  # fmt: skip


@pytest.mark.parametrize("text", GOOD)
def test_what_is_a_choice(text: str) -> None:
    """A name may hold colons, slashes and even an @; the base URL stands behind the last one that a scheme follows."""
    assert parse_choice(text) == GOOD[text]


@pytest.mark.parametrize("text", BAD)
def test_what_is_none(text: str) -> None:
    """Refused with what is wrong; a user, a query or a fragment has no place in a base URL."""
    with pytest.raises(ValueError):
        parse_choice(text)


def test_names() -> None:
    """The full name tells servers apart; the public one tells nobody where they are, nor whose account it is."""
    local = ModelChoice("openai", "gemma", "http://10.0.0.5:8080/v1")
    profile = ModelChoice(
        "bedrock", "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.amazon.nova-pro-v1:0"
    )

    assert (local.name, local.public_name) == ("openai:gemma@10.0.0.5:8080", "openai:gemma")
    assert profile.public_name == "bedrock:eu.amazon.nova-pro-v1:0"
    assert ModelChoice("anthropic", "m", "https://x").name == "anthropic:m"


def test_amounts_by_tier() -> None:
    """The highest tier that is reached counts."""
    amounts = ((0, 100), (2, 500))

    assert [for_tier(amounts, tier) for tier in (0, 1, 2, 9)] == [100, 100, 500, 500]
    assert for_tier(((1, 5),), 0) is None
    assert for_tier((), 0) is None
