"""Builds models from choices: `core.models.choice.Providers`.

What lives here: which module serves which provider, and what models of one process share. What must never live
here: a wire. Nothing that costs money is built by accident: under pytest every model is refused unless whoever
builds says that it may spend.
"""

# ruff: noqa: PLC0415 - a provider's module is imported when a model of it is built, for the time a cold start takes

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING

import msgspec

from core.models.chat import Capabilities, ChatModel
from core.models.choice import Key, ModelChoice, Price
from core.ports import Clock, Entropy
from infra.models.families import family_of
from infra.models.patience import Patience

if TYPE_CHECKING:
    import ssl

    import httpx

    from infra.aws.clients import Clients
    from infra.models.reach import Reach


class RealProviders:
    """Bedrock, Anthropic and OpenAI-compatible servers. Safe to share between threads.

    Args:
        clock: the time.
        entropy: chance, for jitter.
        clients: AWS clients, when a Bedrock model is wanted.
        prices: by a model's name, such as `anthropic:claude-haiku-4-5`.
        may_spend: that models may be built under pytest.
        transport: how HTTP requests are sent; for tests. The address guard stands around it.
    """

    def __init__(
        self,
        clock: Clock,
        entropy: Entropy,
        clients: Callable[[], Clients],
        *,
        prices: Mapping[str, Price] | None = None,
        may_spend: bool = False,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._clock = clock
        self._patience = Patience(clock, entropy)
        self._clients = clients
        self._prices = prices or {}
        self._may_spend = may_spend
        self._transport = transport
        self._tls: ssl.SSLContext | None = None
        self._lock = Lock()

    def model(self, choice: ModelChoice, key: Key, *, trusted: bool) -> ChatModel:
        """The model of a choice; see `Providers.model`."""
        if "pytest" in sys.modules and not self._may_spend:
            raise RuntimeError(
                f"{choice.name}: no model is built in a test unless it is told that it may spend"
            )
        known = self.capabilities(choice)
        if choice.provider == "bedrock":
            if not trusted:
                raise ValueError(
                    "Bedrock is used with the deployment's own rights, which no key can be given for"
                )
            from infra.models.bedrock import BedrockModel

            return BedrockModel(choice, self._clients(), self._clock, self._patience, known)
        from infra.models.http import Http
        from infra.models.reach import reach_of

        http = Http(self._guarded(reach_of(choice.base_url, trusted=trusted)), self._clock)
        if choice.provider == "anthropic":
            from infra.models.anthropic import AnthropicModel

            return AnthropicModel(choice, key, http, self._patience, known)
        from infra.models.openai import OpenAiModel

        return OpenAiModel(choice, key, http, self._patience, known)

    def capabilities(self, choice: ModelChoice) -> Capabilities:
        """What a model can do and what it costs, as far as we were told."""
        known = family_of(choice).capabilities(choice)
        price = self._prices.get(choice.name)
        if price is None:
            return known
        return msgspec.structs.replace(
            known, price_in=price.price_in, price_out=price.price_out, price_cached=price.cached
        )

    def _guarded(self, reach: Reach) -> httpx.BaseTransport:
        """A transport of its own for each model, so that no two hosts share a connection."""
        import httpx

        from infra.models.reach import GuardedTransport, tls

        with self._lock:
            if self._tls is None and self._transport is None:
                self._tls = tls()
            verify = self._tls or True
        inner = self._transport or httpx.HTTPTransport(verify=verify, trust_env=False)
        return GuardedTransport(reach, inner=inner)
