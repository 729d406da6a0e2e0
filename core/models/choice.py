"""Which model is meant: a provider, the model's name there, and where it is reached; and the port that builds it.

What lives here: reading and writing such a choice as text, what makes one usable at all, and the operator's terms. What must never live
here: keys (they travel beside a choice and are never part of it) and any wire.

    off
    bedrock:<model id or inference profile>
    anthropic:<model>[@<base URL>]
    openai:<model>@<base URL>          anything that speaks chat completions
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, Protocol, get_args

import msgspec

from core.models.chat import ChatModel

Provider = Literal["bedrock", "anthropic", "openai"]
PROVIDERS: Final[tuple[Provider, ...]] = get_args(Provider)
OFF: Final = "off"
MAX_NAME: Final = 256
MAX_URL: Final = 512
ANTHROPIC_URL: Final = "https://api.anthropic.com"

Key = Callable[[], str | None]
"""Gives a provider's key when it is needed; None where none is needed. Never kept by whoever calls it."""


class ModelChoice(msgspec.Struct, frozen=True):
    """One model.

    provider: whose wire. model: its name there. base_url: where the wire is, "" for Bedrock.
    context_tokens, max_output: what fits and how long a reply may be, where the operator knows better than our
    table; 0 leaves it to the table. bearer: the key goes out as `Authorization: Bearer`, whatever the wire's habit.
    """

    provider: Provider
    model: str
    base_url: str = ""
    context_tokens: int = 0
    max_output: int = 0
    bearer: bool = False

    @property
    def name(self) -> str:
        """`anthropic:claude-haiku-4-5`; with the host where the provider has many: `openai:gemma@localhost:8080`."""
        host = self.base_url.partition("://")[2].partition("/")[0]
        return f"{self.provider}:{self.model}" + (f"@{host}" if self.provider == "openai" else "")

    @property
    def public_name(self) -> str:
        """The name without where it is reached, and without the account in an ARN."""
        return f"{self.provider}:{self.model.rpartition('/')[2] if self.model.startswith('arn:') else self.model}"


class Price(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"price_in": "in", "price_out": "out"}
):
    """What a model costs, in micro-dollars for a thousand tokens: a thousand times the dollars for a million."""

    price_in: int
    price_out: int
    cached: int | None = None


class Budgets(msgspec.Struct, frozen=True):
    """What the operator lets spaces and runs spend.

    day_tokens, day_micros: of a space in one UTC day, as (tier from which it holds, amount) in order of tiers;
    empty for no bound. micros are millionths of a dollar. run_*: of one run, as of `core.models.budget.Limits`.
    """

    day_tokens: tuple[tuple[int, int], ...] = ()
    day_micros: tuple[tuple[int, int], ...] = ()
    run_turns: int = 200
    run_tokens: int | None = None
    run_micros: int | None = None


def for_tier(amounts: tuple[tuple[int, int], ...], tier: int) -> int | None:
    """The amount that holds for a size class; None for no bound."""
    found = [amount for least, amount in amounts if least <= tier]
    return found[-1] if found else None


class Providers(Protocol):
    """Builds models. Building asks nobody anything; it refuses what cannot work."""

    def model(self, choice: ModelChoice, key: Key, *, trusted: bool) -> ChatModel:
        """The model of a choice.

        Args:
            choice: which.
            key: gives its key.
            trusted: the operator chose it; False for an address a space's owner gave, which must be public.

        Raises:
            ValueError: it cannot be reached as it is written, and why.
        """


def parse_choice(text: str) -> ModelChoice | None:
    """The choice written as text; None for "off" and for nothing.

    `openai:gemma-3@http://127.0.0.1:8080/v1` -> `ModelChoice("openai", "gemma-3", "http://127.0.0.1:8080/v1")`.

    Raises:
        ValueError: it is none, and what is wrong.
    """
    text = text.strip()
    if text in ("", OFF):
        return None
    head, _, rest = text.partition(":")
    provider = next((known for known in PROVIDERS if known == head), None)
    if provider is None or not rest:
        raise ValueError("it must be off, bedrock:<id>, anthropic:<id> or openai:<id>@<base URL>")
    model, at, url = (rest, "", "") if provider == "bedrock" else _cut(rest)
    if at and not url:
        raise ValueError("a base URL must follow the @")
    return make_choice(provider, model, url)


def _cut(rest: str) -> tuple[str, str, str]:
    """A name may hold an @ itself, a base URL begins behind the last one that a scheme follows."""
    for scheme in ("@https://", "@http://"):
        model, found, tail = rest.rpartition(scheme)
        if found:
            return model, "@", scheme[1:] + tail
    return rest.partition("@")


def make_choice(provider: Provider, model: str, base_url: str = "") -> ModelChoice:
    """A choice whose parts fit together.

    Raises:
        ValueError: what is wrong.
    """
    if not model or len(model) > MAX_NAME or not model.isprintable() or " " in model:
        raise ValueError(f"a model's name has 1 to {MAX_NAME} printable characters and no blank")
    if provider == "bedrock":
        if base_url:
            raise ValueError("Bedrock has no base URL: region and account are the deployment's")
        return ModelChoice(provider, model)
    if not base_url and provider == "openai":
        raise ValueError("an OpenAI-compatible model needs a base URL, such as @https://api.openai.com/v1")
    return ModelChoice(provider, model, check_url(base_url or ANTHROPIC_URL))


def check_url(url: str) -> str:
    """A base URL without the slash at its end.

    Raises:
        ValueError: it is no plain http(s) URL: no user, query or fragment may stand in it.
    """
    scheme, _, rest = url.partition("://")
    host = rest.partition("/")[0]
    plain = url.isascii() and url.isprintable() and not set(url) & set(' @?#\\"<>')
    if scheme not in ("https", "http") or not host or not plain or len(url) > MAX_URL:
        raise ValueError("a base URL looks like https://host[:port][/path], without user, query or fragment")
    return url.rstrip("/")
