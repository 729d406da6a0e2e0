"""What is asked of a language model and what it answers, as values, and the port that providers implement.

What lives here: requests, replies, tools, usage, capabilities, faults and the `ChatModel` protocol. What must never
live here: any provider's wire (`infra/models`), any prompt (`core.agents`), any loop (`core.models.run`).

A model is never believed: its arguments may be no JSON, its tools may not exist, its answer may be cut. Each of
these is a value here, so that whoever runs it must say what becomes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, Protocol, get_args

import msgspec

from core.model.elements import Json
from core.model.instants import Instant

Speaker = Literal["user", "assistant", "tool"]
Stop = Literal["end", "tools", "length", "refused"]
"""Why a reply ended: it was done, it calls tools, it was cut at the token limit, or the provider or model refused."""

Role = Literal["formation", "recall", "maintenance", "judge"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
"""What models work at: each may have one of its own, and is billed apart."""

FaultKind = Literal[
    "rate_limited", "timeout", "unavailable", "unauthorized", "bad_request", "context_overflow", "bad_reply",
    "cancelled",
]  # fmt: skip
PASSING: Final[frozenset[FaultKind]] = frozenset({"rate_limited", "timeout", "unavailable", "bad_reply"})
"""Faults of which another try may be rid; the others stay until somebody changes something."""


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool the model may call. `parameters` is a JSON Schema object without `$ref` or root combinators."""

    name: str
    description: str
    parameters: dict[str, Json]


class ToolCall(msgspec.Struct, frozen=True):
    """A call the model makes. `arguments` is None if `raw`, what it wrote, is no JSON object.

    `opaque` is what the provider wants back with this call, word for word (its thinking, a signature); it belongs
    into no log and no answer.
    """

    id: str
    name: str
    arguments: dict[str, Json] | None
    raw: str = ""
    opaque: str = ""


class ToolResult(msgspec.Struct, frozen=True):
    """The answer to the call of the same id; `failed` tells the model that it was refused or went wrong."""

    id: str
    name: str
    content: str
    failed: bool = False


class Turn(msgspec.Struct, frozen=True):
    """One turn of the exchange: `text` of a user or the assistant, `calls` of the assistant, `results` of tools."""

    speaker: Speaker
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


class ChatRequest(msgspec.Struct, frozen=True):
    """One request to a model.

    system: the prompt; its text is the same bytes in every request of a kind, so that providers may cache it.
    choice: "auto", "none", "required", or the name of the tool it must call. schema: the JSON Schema its text must
    follow; a provider without structured output is told in words, and the reader checks in any case.
    max_tokens: of the reply. temperature: 0 for as repeatable as the provider can.
    """

    system: str
    turns: tuple[Turn, ...]
    tools: tuple[ToolSpec, ...] = ()
    choice: str = "auto"
    schema: dict[str, Json] | None = None
    max_tokens: int = 4096
    temperature: float = 0.0


class Usage(msgspec.Struct, frozen=True):
    """Tokens as the provider counted them; `cached_tokens` is the part of the input it had kept."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    requests: int = 0

    def plus(self, other: Usage) -> Usage:
        """Both together."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.requests + other.requests,
        )


class ChatReply(msgspec.Struct, frozen=True):
    """What a model answered. `model` is the name the provider says answered."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    stop: Stop = "end"
    usage: Usage = Usage()
    model: str = ""


class Capabilities(msgspec.Struct, frozen=True):
    """What a provider's wire can do; the adapter works around what it cannot.

    tools: it takes tools. forced_tool: it can be made to call one. schema: it holds a reply to a JSON Schema.
    streaming: it sends text as it comes. context_tokens: what fits, input and output together.
    price_in, price_out, price_cached: micro-dollars for a thousand tokens; None where nobody told us.
    """

    tools: bool = True
    forced_tool: bool = True
    schema: bool = False
    streaming: bool = False
    context_tokens: int = 128_000
    price_in: int | None = None
    price_out: int | None = None
    price_cached: int | None = None


class ModelFault(Exception):  # noqa: N818 - a fault of the world, told from an error of a caller
    """A model gave no usable reply. `retry_after_ms` is the provider's word on when to try again.

    `usage` is what the failed request cost all the same, as far as the provider said; a request that it took without a
    readable answer is counted at about its size.
    """

    def __init__(
        self, kind: FaultKind, message: str, *, retry_after_ms: int | None = None, usage: Usage | None = None
    ) -> None:
        self.kind = kind
        self.message = message
        self.retry_after_ms = retry_after_ms
        self.usage = Usage() if usage is None else usage
        super().__init__(f"{kind}: {message}")

    def costing(self, usage: Usage) -> ModelFault:
        """The same fault of a request that cost so much."""
        return ModelFault(self.kind, self.message, retry_after_ms=self.retry_after_ms, usage=usage)


class ChatModel(Protocol):
    """A language model behind some provider's wire. Safe to share between threads."""

    @property
    def name(self) -> str:
        """The model as the operator configured it, e.g. `anthropic:claude-haiku-4-5`; goes into every record."""

    @property
    def capabilities(self) -> Capabilities:
        """What the wire can do."""

    def chat(
        self,
        request: ChatRequest,
        *,
        deadline: Instant,
        on_text: Callable[[str], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> ChatReply:
        """One reply. Transient faults are retried inside, until the deadline (unix ms).

        Args:
            request: what is asked.
            deadline: when an answer is of no more use.
            on_text: gets pieces of the text as they come, where the wire streams; all of it at once elsewhere.
            cancelled: asked between pieces and before each try; True gives up.

        Raises:
            ModelFault: no usable reply, and why.
        """


class Models(Protocol):
    """Which model serves a space. The answer may differ by space (its own key) and by role."""

    def of(self, space_id: str, role: Role) -> ChatModel | None:
        """The model, or None where there is none: the offline provider does the work then."""
