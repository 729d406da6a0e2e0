"""The environment's part on models: which ones, their keys, their prices, and what may be spent.

What lives here: reading those variables into values, or refusing them by name. What must never live here: building a
model, and a key in a message: what a variable holds is never quoted if it might be one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from core.models.chat import ROLES, ModelFault
from core.models.choice import Budgets, Key, ModelChoice, Price, parse_choice
from core.ports import Secrets, StoreFault, Unavailable

_MAX_AMOUNT: Final = 2**53
_SECRET: Final = "secret:"  # noqa: S105 - how a name of a secret begins
_PARAMETER: Final = "ssm:"


class KeySource(msgspec.Struct, frozen=True):
    """Where a key comes from: `text` itself, or the secret it names. Neither is ever printed."""

    text: str = ""

    @property
    def secret(self) -> str | None:
        """The name of the secret to read, or None if the text is the key."""
        if self.text.startswith(_SECRET):
            return self.text.removeprefix(_SECRET)
        return self.text if self.text.startswith(_PARAMETER) else None

    def __repr__(self) -> str:
        return "KeySource(...)" if self.text else "KeySource()"


class ModelSetting(msgspec.Struct, frozen=True):
    """A model of the operator's, and where its key comes from."""

    choice: ModelChoice
    key: KeySource = KeySource()


class ModelSettings(msgspec.Struct, frozen=True):
    """Everything on models. `models` is by role and "default"; a role that is None stays offline.

    kms_key: the KMS key that seals the keys that spaces bring.
    """

    models: dict[str, ModelSetting | None] = {}
    prices: dict[str, Price] = {}
    budgets: Budgets = Budgets()
    kms_key: str = ""


def public_names(settings: ModelSettings) -> dict[str, str]:
    """Which model does what, for anybody to read: no host, no account, no key."""
    found = {role: settings.models.get(role, settings.models.get("default")) for role in ROLES}
    return {role: "offline" if each is None else each.choice.public_name for role, each in found.items()}


def models_in_words(settings: ModelSettings) -> str:
    """Who thinks, in one line for a person."""
    names = public_names(settings)
    if set(names.values()) == {"offline"}:
        return "none: plain statements and extractive answers, no key, no network"
    return ", ".join(f"{role} {name}" for role, name in names.items())


def read_models(environ: Mapping[str, str]) -> ModelSettings:
    """The settings in a mapping of variables.

    Raises:
        ValueError: a variable is wrong; the message names it.
    """
    models: dict[str, ModelSetting | None] = {}
    default = _setting(environ, "")
    if default is not None:
        models["default"] = default
    for role in ROLES:
        suffix = f"_{role.upper()}"
        if environ.get(f"NOEMA_MODEL{suffix}", "").strip():
            models[role] = _setting(environ, suffix, default)
    settings = ModelSettings(
        models=models,
        prices=_prices(environ),
        budgets=_budgets(environ),
        kms_key=environ.get("NOEMA_KMS_KEY", ""),
    )
    _check_prices(settings)
    return settings


def _setting(
    environ: Mapping[str, str], suffix: str, default: ModelSetting | None = None
) -> ModelSetting | None:
    """The model of one role. It takes over the default's key only if it goes to the same place."""
    name = f"NOEMA_MODEL{suffix}"
    try:
        choice = parse_choice(environ.get(name, ""))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if choice is None:
        return None
    context = _amount(environ, f"NOEMA_MODEL_CONTEXT{suffix}")
    choice = msgspec.structs.replace(choice, context_tokens=context or 0)
    key = KeySource(environ.get(f"NOEMA_MODEL_KEY{suffix}", "").strip())
    same = default is not None and (default.choice.provider, default.choice.base_url) == (
        choice.provider,
        choice.base_url,
    )
    if not key.text and same and default is not None:
        key = default.key
    if not key.text and choice.provider == "anthropic":
        raise ValueError(f"NOEMA_MODEL_KEY{suffix} is not set; {name} needs it")
    return ModelSetting(choice, key)


def _prices(environ: Mapping[str, str]) -> dict[str, Price]:
    text = environ.get("NOEMA_PRICES", "").strip()
    if not text:
        return {}
    try:
        prices = msgspec.json.decode(text, type=dict[str, Price])
    except msgspec.DecodeError as error:
        raise ValueError(
            f'NOEMA_PRICES is not like {{"anthropic:m": {{"in": 1000, "out": 5000}}}}: {error}'
        ) from error
    if any(
        amount is not None and amount < 0
        for price in prices.values()
        for amount in msgspec.structs.astuple(price)
    ):
        raise ValueError("NOEMA_PRICES: a price is not below 0")
    return prices


def _budgets(environ: Mapping[str, str]) -> Budgets:
    turns = _amount(environ, "NOEMA_BUDGET_RUN_TURNS")
    if turns == 0:
        raise ValueError("NOEMA_BUDGET_RUN_TURNS must be at least 1")
    return Budgets(
        day_tokens=_by_tier(environ, "NOEMA_BUDGET_DAY_TOKENS"),
        day_micros=_by_tier(environ, "NOEMA_BUDGET_DAY_MICROS"),
        run_turns=turns or Budgets().run_turns,
        run_tokens=_amount(environ, "NOEMA_BUDGET_RUN_TOKENS"),
        run_micros=_amount(environ, "NOEMA_BUDGET_RUN_MICROS"),
    )


def _amount(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "").strip()
    return None if not text else _number(text, name)


def _by_tier(environ: Mapping[str, str], name: str) -> tuple[tuple[int, int], ...]:
    """`50000` for every tier, or `0:50000,2:1000000`: from which tier on, and how much."""
    text = environ.get(name, "").strip()
    if not text:
        return ()
    out: dict[int, int] = {}
    for entry in text.split(","):
        tier, colon, amount = entry.strip().rpartition(":")
        out[_number(tier, name) if colon else 0] = _number(amount, name)
    return tuple(sorted(out.items()))


def _number(text: str, name: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdigit() and int(text) <= _MAX_AMOUNT):
        raise ValueError(f"{name} must be a whole number, or tier:number pairs where it says so")
    return int(text)


def _check_prices(settings: ModelSettings) -> None:
    """A budget in money would stop every run of a model whose price is not known: better said at the start."""
    budgets = settings.budgets
    if not budgets.day_micros and budgets.run_micros is None:
        return
    for setting in settings.models.values():
        if setting is not None and setting.choice.name not in settings.prices:
            raise ValueError(
                f"NOEMA_PRICES does not say what {setting.choice.name} costs; a budget in money needs it"
            )


def key_of(source: KeySource, secrets: Secrets | None) -> Key:
    """Gives the operator's key; a secret is read when it is needed, so that a new one is soon used."""
    name = source.secret
    if name is None:
        return lambda: source.text or None

    def read() -> str:
        try:
            if secrets is None:
                raise ModelFault(
                    "unauthorized", "the model's key is a secret, which this store has no reader for"
                )
            return secrets.get(name)
        except Unavailable as fault:
            raise ModelFault("unavailable", "the model's key cannot be reached") from fault
        except StoreFault as fault:
            raise ModelFault("unauthorized", "the model's key cannot be read") from fault

    return read
