"""What forming a conversation with a model costs: requests, tokens, what of them a provider can keep, store writes.

`scripts/bench formation` forms conversations of several sizes with a scripted model that claims something of every
third message in two calls a window. Tokens are estimated (a quarter of the bytes); no provider is asked.
"""

from __future__ import annotations

import argparse
from typing import Any

from core.agents.tools.specs import FORMING
from core.models.budget import estimate, estimate_request
from core.models.chat import ChatReply, ChatRequest, ToolSpec
from core.storage.memory import MemoryObjects, MemoryTable
from tests.doubles import FailingTable, FakeClock
from tests.mind import Reading, Thinking, lines_of

SIZES = (1, 10, 50, 200, 800)
WORDS = "We talked about the garden, the trip in spring and what the children want to eat on Sunday. " * 2
PRICE_IN, PRICE_CACHED, PRICE_OUT = 1.0, 0.1, 5.0  # dollars a million tokens, an example


def _read(request: ChatRequest) -> list[str]:
    wanted = [line for line in lines_of(request) if line["msg"] % 3 == 1][:15]
    return [
        f'MUTATE {{ UPSERT CONCEPT ?t {{ MATCH {{type: "Topic", key: "topic {line["msg"]}"}} SET FIELDS {{name: "Topic {line["msg"]}"}} }} '
        f'ASSERT (:{line["by"]}, "likes", ?t) {{by: :{line["by"]}, mode: "stated", evidence: :msg{line["msg"]}}} }}'
        for line in wanted
    ]


class Counting(Reading):
    """A reading model that estimates what each request and reply is."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.tokens_in = self.tokens_out = self.prefix = 0

    def chat(self, request: ChatRequest, **options: Any) -> ChatReply:
        """The next reply, counted."""
        reply = super().chat(request, **options)
        self.tokens_in += estimate_request(request)
        self.prefix += estimate(request.system) + _tools(FORMING)
        self.tokens_out += estimate(reply.text) + sum(estimate(call.raw) for call in reply.calls)
        return reply


def _tools(tools: tuple[ToolSpec, ...]) -> int:
    return estimate_request(ChatRequest("", (), tools))


def form(size: int, *, model: bool) -> tuple[Counting, int]:
    """Form a conversation of `size` messages; the model, and how many transactions it took."""
    clock = FakeClock()
    plain = MemoryTable()
    Thinking(None, plain, MemoryObjects(clock), clock).create()
    counted, asked = FailingTable(plain), Counting(_read)
    world = Thinking(asked if model else None, counted, MemoryObjects(clock), clock, seed=1)
    world.say("home", *[f"{n}: {WORDS}" for n in range(size)])
    before = counted.transactions
    assert world.drain().formed == (1,)
    return asked, counted.transactions - before


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(
        "| messages | requests | tokens in | of them the same in every request | tokens out | $ per 1000, as an example | transactions | without a model |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for size in SIZES:
        model, writes = form(size, model=True)
        _, plain = form(size, model=False)
        cost = (
            (model.tokens_in - model.prefix) * PRICE_IN
            + model.prefix * PRICE_CACHED
            + model.tokens_out * PRICE_OUT
        ) / 1000
        print(
            f"| {size} | {len(model.asked)} | {model.tokens_in} | {model.prefix / model.tokens_in:.0%} "
            f"| {model.tokens_out} | {cost:.2f} | {writes} | {plain} |"
        )


if __name__ == "__main__":
    main()
