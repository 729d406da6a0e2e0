"""What a run may spend, and what it has spent: values that run out, never advice.

What lives here: limits, the meter of one run, estimates. What must never live here: what a space may spend in a
day (a row of the ledger) and the time (an argument of whoever drives a run).
"""

from __future__ import annotations

from typing import Final

import msgspec

from core.models.chat import Capabilities, ChatRequest, Turn, Usage

_BYTES_PER_TOKEN: Final = 4


class Limits(msgspec.Struct, frozen=True):
    """What one run may spend.

    turns: requests to the model. tokens: input and output, as the provider counts them, all requests together;
    None for no bound. micros: millionths of a dollar; None for no bound, or where the price is not known.
    """

    turns: int = 200
    tokens: int | None = None
    micros: int | None = None


class Meter:
    """What one run has spent. Shared by the parts of a run, so that a review counts with what it reviews."""

    def __init__(self, limits: Limits, prices: Capabilities | None = None) -> None:
        self.limits = limits
        self.turns = 0
        self.usage = Usage()
        self._prices = prices

    @property
    def micros(self) -> int:
        """Millionths of a dollar spent, 0 where the price is not known."""
        return 0 if self._prices is None else price(self.usage, self._prices) or 0

    def spend(self, usage: Usage) -> None:
        """Count one request."""
        self.turns += 1
        self.usage = self.usage.plus(usage)

    def exhausted(self) -> str | None:
        """The limit that has run out: "turns", "tokens" or "micros"; None while there is something left."""
        limits = self.limits
        if self.turns >= limits.turns:
            return "turns"
        if limits.tokens is not None and self.usage.input_tokens + self.usage.output_tokens >= limits.tokens:
            return "tokens"
        if limits.micros is not None and self.micros >= limits.micros:
            return "micros"
        return None


def price(usage: Usage, prices: Capabilities) -> int | None:
    """Millionths of a dollar for what was used, rounded up; None where the price is not known."""
    if prices.price_in is None or prices.price_out is None:
        return None
    cached = prices.price_in if prices.price_cached is None else prices.price_cached
    fresh = max(0, usage.input_tokens - usage.cached_tokens)
    thousandths = (
        fresh * prices.price_in + usage.cached_tokens * cached + usage.output_tokens * prices.price_out
    )
    return -(-thousandths // 1000)


def estimate(text: str) -> int:
    """About how many tokens a text is: a quarter of its bytes in UTF-8, which holds for Latin and Han alike."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)


def estimate_turn(turn: Turn) -> int:
    """About how many tokens a turn is."""
    calls = sum(estimate(call.name) + estimate(call.raw) + 8 for call in turn.calls)
    return 4 + estimate(turn.text) + calls + sum(estimate(result.content) + 8 for result in turn.results)


def estimate_request(request: ChatRequest) -> int:
    """About how many tokens a request is, the reply left out."""
    tools = sum(
        estimate(tool.description) + len(msgspec.json.encode(tool.parameters)) // _BYTES_PER_TOKEN
        for tool in request.tools
    )
    return estimate(request.system) + tools + sum(estimate_turn(turn) for turn in request.turns)
