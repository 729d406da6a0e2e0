"""The environment's part on models."""

from __future__ import annotations

from typing import Any

import pytest

from core.models.choice import Budgets, ModelChoice, Price
from functions.model_settings import KeySource, ModelSetting, ModelSettings, public_names, read_models
from functions.settings import SettingsError, read_settings

KEY = "sk-operator-0123456789-secret"
CLAUDE = {"NOEMA_MODEL": "anthropic:claude-haiku-4-5", "NOEMA_MODEL_KEY": KEY}
HAIKU = ModelChoice("anthropic", "claude-haiku-4-5", "https://api.anthropic.com")


def test_nothing_is_offline() -> None:
    """And so is "off"."""
    assert (
        read_models({}) == read_models({"NOEMA_MODEL": "off"}) == read_settings({}).models == ModelSettings()
    )
    assert set(public_names(ModelSettings()).values()) == {"offline"}


def test_one_model_for_all_roles_and_others_for_some() -> None:
    """A role may have its own, or none although there is a default."""
    settings = read_models(
        {
            **CLAUDE,
            "NOEMA_MODEL_RECALL": "bedrock:eu.amazon.nova-lite-v1:0",
            "NOEMA_MODEL_JUDGE": "off",
            "NOEMA_MODEL_MAINTENANCE": "openai:gemma@http://127.0.0.1:8080/v1",
            "NOEMA_MODEL_CONTEXT_MAINTENANCE": "8192",
        }
    )

    local = ModelChoice("openai", "gemma", "http://127.0.0.1:8080/v1", context_tokens=8192)
    assert settings.models == {
        "default": ModelSetting(HAIKU, KeySource(KEY)),
        "recall": ModelSetting(ModelChoice("bedrock", "eu.amazon.nova-lite-v1:0")),
        "maintenance": ModelSetting(local),
        "judge": None,
    }
    assert public_names(settings) == {
        "formation": "anthropic:claude-haiku-4-5",
        "recall": "bedrock:eu.amazon.nova-lite-v1:0",
        "maintenance": "openai:gemma",
        "judge": "offline",
    }


def test_a_key_goes_along_to_the_same_place_only() -> None:
    """A role at another host gets the default's key only if it is told."""
    settings = read_models(
        {
            "NOEMA_MODEL": "openai:big@https://one.example/v1",
            "NOEMA_MODEL_KEY": KEY,
            "NOEMA_MODEL_RECALL": "openai:small@https://one.example/v1",
            "NOEMA_MODEL_JUDGE": "openai:small@https://two.example/v1",
            "NOEMA_MODEL_FORMATION": "openai:small@https://three.example/v1",
            "NOEMA_MODEL_KEY_FORMATION": "another",
        }
    )

    keys = {role: setting.key.text for role, setting in settings.models.items() if setting is not None}
    assert keys == {"default": KEY, "recall": KEY, "judge": "", "formation": "another"}


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (KEY, None),
        ("secret:noema/model", "noema/model"),
        (
            "secret:arn:aws:secretsmanager:eu-central-1:1:secret:x",
            "arn:aws:secretsmanager:eu-central-1:1:secret:x",
        ),
        ("ssm:/noema/model", "ssm:/noema/model"),
        ("", None),
    ],
)
def test_where_a_key_comes_from(text: str, secret: str | None) -> None:
    """From the variable itself or from the secret it names; printed it is neither."""
    assert KeySource(text).secret == secret
    assert not text or text not in repr(ModelSetting(HAIKU, KeySource(text)))


def test_prices_and_budgets() -> None:
    """Prices in micro-dollars for a thousand tokens; budgets for all, or from a tier on."""
    settings = read_models(
        {
            **CLAUDE,
            "NOEMA_PRICES": '{"anthropic:claude-haiku-4-5": {"in": 1000, "out": 5000, "cached": 100}}',
            "NOEMA_BUDGET_DAY_TOKENS": "2:1000000, 0:50000",
            "NOEMA_BUDGET_DAY_MICROS": "90000",
            "NOEMA_BUDGET_RUN_TURNS": "50",
            "NOEMA_BUDGET_RUN_TOKENS": "70000",
            "NOEMA_BUDGET_RUN_MICROS": "8000",
        }
    )

    assert settings.prices == {"anthropic:claude-haiku-4-5": Price(1000, 5000, 100)}
    assert settings.budgets == Budgets(((0, 50_000), (2, 1_000_000)), ((0, 90_000),), 50, 70_000, 8_000)


BAD: dict[str, dict[str, str]] = {
    "NOEMA_MODEL": {"NOEMA_MODEL": "gpt-5"},
    "NOEMA_MODEL_RECALL": {"NOEMA_MODEL_RECALL": "openai:m"},
    "NOEMA_MODEL_KEY": {"NOEMA_MODEL": "anthropic:m"},
    "NOEMA_MODEL_KEY_JUDGE": {"NOEMA_MODEL_JUDGE": "anthropic:m"},
    "NOEMA_MODEL_CONTEXT": {**CLAUDE, "NOEMA_MODEL_CONTEXT": "much"},
    "NOEMA_PRICES": {"NOEMA_PRICES": "cheap"},
    "NOEMA_PRICES: ": {"NOEMA_PRICES": '{"m": {"in": -1, "out": 1}}'},
    "NOEMA_PRICES is not": {"NOEMA_PRICES": '{"m": {"in": 1, "out": 1, "per": "token"}}'},
    "NOEMA_BUDGET_DAY_TOKENS": {"NOEMA_BUDGET_DAY_TOKENS": "lots"},
    "NOEMA_BUDGET_DAY_MICROS": {"NOEMA_BUDGET_DAY_MICROS": "1:-5"},
    "NOEMA_BUDGET_RUN_TURNS": {"NOEMA_BUDGET_RUN_TURNS": "0"},
    "NOEMA_BUDGET_RUN_TOKENS": {"NOEMA_BUDGET_RUN_TOKENS": "1.5"},
    "NOEMA_PRICES does not say": {**CLAUDE, "NOEMA_BUDGET_RUN_MICROS": "1"},
}


@pytest.mark.parametrize("message", BAD)
def test_what_is_wrong_is_refused_by_name(message: str) -> None:
    """At the start, and without any key in the message."""
    with pytest.raises(SettingsError, match=message) as caught:
        read_settings(BAD[message])

    assert KEY not in str(caught.value)


def test_a_key_is_in_no_printed_settings() -> None:
    """Nobody can log it by accident."""
    environ: dict[str, Any] = {
        **CLAUDE,
        "NOEMA_MODEL_KEY_RECALL": "other-secret",
        "NOEMA_MODEL_RECALL": "openai:m@https://x.example",
    }

    printed = repr(read_settings(environ))

    assert KEY not in printed
    assert "other-secret" not in printed
