"""A provider that answers from a list, and a model over it: what the tests of the wires share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import httpx

from core.models.chat import ChatModel, ChatRequest, ToolCall, ToolResult, ToolSpec, Turn
from core.models.choice import parse_choice
from infra.models.factory import RealProviders
from tests.doubles import CountingEntropy, FakeClock

Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]
KEY = "sk-a-key-of-the-tests-0123456789"

SEARCH = ToolSpec(
    "search",
    "Searches.",
    {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
)
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 9}},
    "required": ["city"],
    "additionalProperties": False,
}
HELLO = ChatRequest(system="Be brief.", turns=(Turn("user", "Hello."),), max_tokens=100)


def exchange(opaque: str = "") -> tuple[Turn, ...]:
    """A question, a call with text, its failed result, and a word of the user."""
    call = ToolCall("c-1", "search", {"word": "tea"}, '{"word": "tea"}', opaque)
    broken = ToolCall("c-2", "made.up", None, '{"word')
    return (
        Turn("user", "Who loves tea?"),
        Turn("assistant", "I look.", calls=(call, broken)),
        Turn(
            "tool",
            results=(
                ToolResult("c-1", "search", "Alice."),
                ToolResult("c-2", "made.up", "There is no such tool.", failed=True),
            ),
        ),
    )


class Provider(httpx.BaseTransport):
    """Answers each request with the next of `answers`, and keeps the requests."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The next answer."""
        request.read()
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else answer(request)

    @property
    def bodies(self) -> list[Any]:
        """The JSON of each request."""
        return [json.loads(request.content) for request in self.requests]


class Wire:
    """A model over a provider, with time and chance that stand still."""

    def __init__(self, choice: str, *answers: Answer) -> None:
        self.clock = FakeClock()
        self.provider = Provider(answers)
        providers = RealProviders(
            self.clock, CountingEntropy(), lambda: None, may_spend=True, transport=self.provider
        )
        parsed = parse_choice(choice)
        assert parsed is not None
        self.model: ChatModel = providers.model(parsed, lambda: KEY, trusted=True)

    def ask(self, request: ChatRequest = HELLO, *, patience_ms: int = 60_000, **options: Any) -> Any:
        """A reply."""
        return self.model.chat(request, deadline=self.clock.time + patience_ms, **options)


def said(body: Any, status: int = 200, **headers: str) -> httpx.Response:
    """An answer in JSON."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json=body, headers=named)


class Pieces(httpx.SyncByteStream):
    """A body that comes in pieces; an exception among them breaks it off."""

    def __init__(self, pieces: Iterable[bytes | Exception]) -> None:
        self.pieces = pieces
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    def close(self) -> None:
        """Note it."""
        self.closed = True


def streamed(*pieces: bytes | Exception) -> httpx.Response:
    """An answer as a stream of events."""
    return httpx.Response(
        200, stream=Pieces(pieces), headers={"content-type": "text/event-stream; charset=utf-8"}
    )


def events(*data: Any, done: bool = False) -> list[bytes]:
    """Server-sent events, each a piece of its own."""
    out = [f"event: {each.get('type', 'message')}\ndata: {json.dumps(each)}\n\n".encode() for each in data]
    return [*out, b"data: [DONE]\n\n"] if done else out
