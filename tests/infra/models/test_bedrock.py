"""Converse and ConverseStream: exact requests against botocore's own model of the service, and each reply."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import msgspec
import pytest
from botocore.exceptions import (
    ConnectTimeoutError,
    EventStreamError,
    NoCredentialsError,
    ReadTimeoutError,
)
from botocore.stub import Stubber

from core.models.chat import ChatReply, ChatRequest, ModelFault, ToolCall, Turn, Usage
from core.models.choice import ModelChoice
from infra.aws.clients import Clients
from infra.models.factory import RealProviders
from tests.doubles import CountingEntropy, FakeClock
from tests.infra.models.wire import CITY, HELLO, SEARCH, exchange

CLAUDE = "eu.anthropic.claude-haiku-4-5-20251001-v1:0"
NOVA = "amazon.nova-lite-v1:0"
KEEP = {"cachePoint": {"type": "default"}}
TOOL = {
    "toolSpec": {"name": "search", "description": "Searches.", "inputSchema": {"json": SEARCH.parameters}}
}
USER = [{"role": "user", "content": [{"text": "Hello."}]}]
COUNTED = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}


class Aws:
    """A Bedrock model whose client answers from a list, and checks what it is sent against the service's model."""

    def __init__(self, model: str = CLAUDE) -> None:
        self.clock = FakeClock()
        session = boto3.Session(aws_access_key_id="x", aws_secret_access_key="y", region_name="eu-central-1")
        self.clients = Clients(session)
        self.client = self.clients.bedrock(60)
        self.clients.bedrock = lambda _: self.client  # type: ignore[method-assign]
        self.stub = Stubber(self.client)
        providers = RealProviders(self.clock, CountingEntropy(), lambda: self.clients, may_spend=True)
        self.model = providers.model(ModelChoice("bedrock", model), lambda: None, trusted=True)

    def ask(self, request: ChatRequest = HELLO, **options: Any) -> ChatReply:
        with self.stub:
            reply = self.model.chat(request, deadline=self.clock.time + 60_000, **options)
            self.stub.assert_no_pending_responses()
        return reply


def answer(*content: Any, stop: str = "end_turn", **usage: int) -> dict[str, Any]:
    return {
        "output": {"message": {"role": "assistant", "content": list(content)}},
        "stopReason": stop,
        "usage": {**COUNTED, **usage},
        "metrics": {"latencyMs": 1},
    }


def use(call_id: str = "t1", name: str = "search", **arguments: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": call_id, "name": name, "input": arguments}}


HISTORY = [
    {"role": "user", "content": [{"text": "Who loves tea?"}]},
    {"role": "assistant", "content": [{"text": "I look."}, use("c-1", word="tea"), use("c-2", "made_up")]},
    {
        "role": "user",
        "content": [
            {"toolResult": {"toolUseId": "c-1", "content": [{"text": "Alice."}]}},
            {"toolResult": {"toolUseId": "c-2", "content": [{"text": "There is no such tool."}], "status": "error"}},
            KEEP,
        ],
    },
]  # fmt: skip
PLAIN = {
    "modelId": CLAUDE,
    "messages": USER,
    "inferenceConfig": {"maxTokens": 100, "temperature": 0.0},
    "system": [{"text": "Be brief."}, KEEP],
}
SCHEMA = '{"additionalProperties":false,"properties":{"city":{"type":"string"}},"required":["city"],"type":"object"}'
REQUESTS: dict[str, tuple[str, ChatRequest, dict[str, Any]]] = {
    "plain": (CLAUDE, HELLO, PLAIN),
    "another family": (NOVA, HELLO, {**PLAIN, "modelId": NOVA}),
    "a family without marks": (
        "meta.llama3-3-70b-instruct-v1:0", HELLO,
        {**PLAIN, "modelId": "meta.llama3-3-70b-instruct-v1:0", "system": [{"text": "Be brief."}]},
    ),
    "a family without a system prompt": (
        "mistral.mistral-7b-instruct-v0:2", HELLO,
        {
            "modelId": "mistral.mistral-7b-instruct-v0:2", "inferenceConfig": PLAIN["inferenceConfig"],
            "messages": [{"role": "user", "content": [{"text": "Be brief."}, {"text": "Hello."}]}],
        },
    ),
    "a schema": (
        CLAUDE, msgspec.structs.replace(HELLO, schema=CITY),
        {
            **PLAIN,
            "outputConfig": {
                "textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": SCHEMA, "name": "reply"}}},
            },
        },
    ),
    "tools": (
        CLAUDE, ChatRequest("Be brief.", exchange(), tools=(SEARCH,), max_tokens=100),
        {**PLAIN, "messages": HISTORY, "toolConfig": {"tools": [TOOL]}},
    ),
    "a tool that must be called": (
        NOVA, msgspec.structs.replace(HELLO, tools=(SEARCH,), choice="search"),
        {
            **PLAIN, "modelId": NOVA, "messages": [{"role": "user", "content": [{"text": "Hello."}, KEEP]}],
            "toolConfig": {"tools": [TOOL], "toolChoice": {"tool": {"name": "search"}}},
        },
    ),
    "any tool": (
        CLAUDE, msgspec.structs.replace(HELLO, tools=(SEARCH,), choice="required"),
        {
            **PLAIN, "messages": [{"role": "user", "content": [{"text": "Hello."}, KEEP]}],
            "toolConfig": {"tools": [TOOL], "toolChoice": {"any": {}}},
        },
    ),
    "none, which Converse does not know": (
        CLAUDE, ChatRequest("", exchange()[:2], tools=(SEARCH,), choice="none", max_tokens=100),
        {
            **{name: value for name, value in PLAIN.items() if name != "system"},
            "messages": [
                HISTORY[0],
                {
                    "role": "assistant",
                    "content": [{"text": 'I look.\n[called search with {"word": "tea"}]\n[called made.up with {"word]'}],
                },
            ],
        },
    ),
    "thinking switched off": (
        "global.anthropic.claude-sonnet-5-v1:0", HELLO,
        {
            **PLAIN, "modelId": "global.anthropic.claude-sonnet-5-v1:0", "inferenceConfig": {"maxTokens": 100},
            "additionalModelRequestFields": {"thinking": {"type": "disabled"}},
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_what_is_sent(name: str) -> None:
    """Each request has exactly these members, and botocore finds nothing wrong with them."""
    model, request, expected = REQUESTS[name]
    aws = Aws(model)
    aws.stub.add_response("converse", answer({"text": "Hi."}), expected)

    assert aws.ask(request).text == "Hi."


SEARCHED = ToolCall("t1", "search", {"word": "tea"}, '{"word":"tea"}')
REPLIES: dict[str, tuple[dict[str, Any], ChatReply]] = {
    "text": (answer({"text": "Hi "}, {"text": "there."}), ChatReply("Hi there.")),
    "a call": (answer({"text": "So."}, use(word="tea"), stop="tool_use"), ChatReply("So.", (SEARCHED,), "tools")),
    "a call to nowhere": (
        answer(use(name="nowhere"), stop="tool_use"), ChatReply("", (ToolCall("t1", "nowhere", {}, "{}"),), "tools"),
    ),
    "cut": (answer({"text": "Hi"}, stop="max_tokens"), ChatReply("Hi", (), "length")),
    "cut in a call": (
        answer(use(word="te"), stop="max_tokens"),
        ChatReply("", (ToolCall("t1", "search", None, '{"word":"te"}'),), "length"),
    ),
    "the window is full": (answer({"text": "Hi"}, stop="model_context_window_exceeded"), ChatReply("Hi", (), "length")),
    "a guardrail": (answer({"text": "Blocked."}, stop="guardrail_intervened"), ChatReply("Blocked.", (), "refused")),
    "filtered": (answer(stop="content_filtered"), ChatReply("", (), "refused")),
    "an unknown reason": (answer({"text": "Hi."}, stop="sudden_end"), ChatReply("Hi.")),
    "tools without a call": (answer({"text": "Hi."}, stop="tool_use"), ChatReply("Hi.")),
    "nothing": (answer(), ChatReply("")),
}  # fmt: skip


@pytest.mark.parametrize("name", REPLIES)
def test_what_is_understood(name: str) -> None:
    """Each reply becomes exactly this value."""
    sent, reply = REPLIES[name]
    aws = Aws()
    aws.stub.add_response("converse", sent)

    assert aws.ask() == msgspec.structs.replace(reply, usage=Usage(10, 5, 0, 1), model=CLAUDE)


def test_usage_counts_what_was_kept_as_input() -> None:
    """Bedrock counts fresh, written and read tokens apart."""
    aws = Aws()
    aws.stub.add_response(
        "converse", answer({"text": "Hi."}, cacheReadInputTokens=100, cacheWriteInputTokens=20)
    )

    assert aws.ask().usage == Usage(130, 5, 100, 1)


@pytest.mark.parametrize("stop", ["malformed_model_output", "malformed_tool_use", "sudden_end"])
def test_what_bedrock_could_not_read_is_a_bad_reply(stop: str) -> None:
    """It is asked for once more."""
    aws = Aws()
    aws.stub.add_response("converse", answer(stop=stop))
    aws.stub.add_response("converse", answer({"text": "Hi."}))

    assert aws.ask().usage == Usage(20, 10, 0, 2)


def test_thinking_goes_back_as_it_came() -> None:
    """Readable with its signature, or as bytes that only the model reads."""
    thoughts = [
        {"reasoningContent": {"reasoningText": {"text": "Tea.", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": b"\x00\xff"}},
    ]
    aws = Aws("anthropic.claude-opus-5-5-v1:0")
    aws.stub.add_response("converse", answer(*thoughts, use(word="tea"), stop="tool_use"))
    reply = aws.ask(msgspec.structs.replace(HELLO, tools=(SEARCH,)))
    turns = (*HELLO.turns, Turn("assistant", reply.text, reply.calls))

    body = aws.model.body(msgspec.structs.replace(HELLO, tools=(SEARCH,), turns=turns))  # type: ignore[attr-defined]

    assert body["messages"][1]["content"][:2] == thoughts


ERRORS = {
    "ThrottlingException": (429, "x", "rate_limited", 6),
    "ServiceQuotaExceededException": (400, "x", "rate_limited", 6),
    "ServiceUnavailableException": (503, "x", "unavailable", 5),
    "InternalServerException": (500, "x", "unavailable", 5),
    "ModelNotReadyException": (429, "x", "unavailable", 5),
    "ModelErrorException": (424, "x", "unavailable", 5),
    "ModelTimeoutException": (408, "x", "unavailable", 5),
    "AccessDeniedException": (403, "x", "unauthorized", 1),
    "ExpiredTokenException": (403, "x", "unauthorized", 1),
    "ResourceNotFoundException": (404, "x", "bad_request", 1),
    "ValidationException": (400, "The prompt says secret things", "bad_request", 1),
    "NewException": (400, "x", "bad_request", 1),
    "OtherException": (500, "x", "unavailable", 5),
}


@pytest.mark.parametrize("code", ERRORS)
def test_an_error_is_a_fault(code: str) -> None:
    """Its code is told, its message never: it may quote the prompt."""
    status, message, kind, tries = ERRORS[code]
    aws = Aws()
    for _ in range(tries):
        aws.stub.add_client_error("converse", code, message, status)

    with pytest.raises(ModelFault) as caught:
        aws.ask()

    aws.stub.assert_no_pending_responses()
    assert (caught.value.kind, caught.value.usage.requests) == (kind, tries)
    assert code in caught.value.message
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "message",
    [
        "Input is too long for requested model.",
        "The model returned the following errors: prompt is too long: 9",
    ],
)
def test_an_input_that_does_not_fit_is_told_apart(message: str) -> None:
    """So that its history can be shortened."""
    aws = Aws()
    aws.stub.add_client_error("converse", "ValidationException", message, 400)

    with pytest.raises(ModelFault) as caught:
        aws.ask()

    assert caught.value.kind == "context_overflow"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ReadTimeoutError(endpoint_url="x"), "timeout"),
        (ConnectTimeoutError(endpoint_url="x"), "unavailable"),
        (NoCredentialsError(), "unauthorized"),
    ],
)
def test_what_botocore_raises_is_a_fault(error: Exception, kind: str) -> None:
    """None of its exceptions comes out."""
    aws = Aws()

    def fail(**_: Any) -> Any:
        raise error

    aws.client.converse = fail
    with pytest.raises(ModelFault) as caught:
        aws.ask()

    assert caught.value.kind == kind


# --- streams

TALK: list[dict[str, Any]] = [
    {"messageStart": {"role": "assistant"}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "I "}}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "look."}}},
    {"contentBlockStop": {"contentBlockIndex": 0}},
    {
        "contentBlockStart": {
            "contentBlockIndex": 1,
            "start": {"toolUse": {"toolUseId": "t1", "name": "search"}},
        }
    },
    {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '{"word":'}}}},
    {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '"tea"}'}}}},
    {"contentBlockDelta": {"contentBlockIndex": 2, "delta": {"reasoningContent": {"text": "Hm"}}}},
    {
        "contentBlockDelta": {
            "contentBlockIndex": 2,
            "delta": {"reasoningContent": {"text": "m.", "signature": "s"}},
        }
    },
]
STOP: list[dict[str, Any]] = [
    {"messageStop": {"stopReason": "tool_use"}},
    {"metadata": {"usage": COUNTED, "metrics": {"latencyMs": 1}}},
]


class Events:
    """A stream as botocore gives one."""

    def __init__(self, events: list[Any]) -> None:
        self.events = events
        self.closed = False

    def __iter__(self) -> Iterator[Any]:
        for event in self.events:
            if isinstance(event, Exception):
                raise event
            yield event

    def close(self) -> None:
        self.closed = True


@contextmanager
def streaming(*streams: list[Any]) -> Iterator[tuple[Aws, list[Events]]]:
    aws, given = Aws(), [Events(stream) for stream in streams]
    left = iter(given)
    aws.client.converse_stream = lambda **_: {"stream": next(left)}
    yield aws, given


def test_a_stream_is_passed_on_and_put_together() -> None:
    """Text arrives in its pieces; the arguments of a call are put together."""
    heard: list[str] = []
    with streaming([*TALK, *STOP]) as (aws, given):
        reply = aws.ask(on_text=heard.append)

    opaque = '[{"text":"Hmm.","signature":"s"}]'
    call = ToolCall("t1", "search", {"word": "tea"}, '{"word":"tea"}', opaque)
    assert heard == ["I ", "look."]
    assert reply == ChatReply("I look.", (call,), "tools", Usage(10, 5, 0, 1), CLAUDE)
    assert given[0].closed


@pytest.mark.parametrize(
    ("broken", "kind", "tries"),
    [
        ([*TALK], "unavailable", 1),
        ([TALK[0]], "unavailable", 5),
        ([*TALK, EventStreamError({"Error": {"Code": "modelStreamErrorException"}}, "ConverseStream")], "unavailable", 1),
        ([EventStreamError({"Error": {"Code": "throttlingException"}}, "ConverseStream")], "rate_limited", 6),
        ([EventStreamError({"Error": {"Code": "validationException"}}, "ConverseStream")], "bad_request", 1),
    ],
)  # fmt: skip
def test_a_broken_stream_is_a_fault(broken: list[Any], kind: str, tries: int) -> None:
    """Tried again only while no text went out; closed in any case."""
    with streaming(*[broken] * 6) as (aws, given), pytest.raises(ModelFault) as caught:
        aws.ask(on_text=lambda _: None)

    assert caught.value.kind == kind
    assert [each.closed for each in given] == [True] * tries + [False] * (6 - tries)


def test_a_cancelled_stream_is_closed() -> None:
    """Between two pieces."""
    heard: list[str] = []
    with streaming([*TALK, *STOP]) as (aws, given), pytest.raises(ModelFault, match="cancelled"):
        aws.ask(on_text=heard.append, cancelled=lambda: bool(heard))

    assert (heard, given[0].closed) == (["I "], True)


def test_the_client_waits_no_longer_than_there_is_time() -> None:
    """A client's time is fixed when it is built, so one is chosen for each request."""
    session = boto3.Session(aws_access_key_id="x", aws_secret_access_key="y", region_name="eu-central-1")
    clients = Clients(session)

    times = {left: clients.bedrock(left).meta.config.read_timeout for left in (0.1, 7, 29, 60, 900)}

    assert times == {0.1: 5.0, 7: 5.0, 29: 15.0, 60: 60.0, 900: 300.0}
    assert clients.bedrock(7) is clients.bedrock(0.1)
    assert clients.bedrock(7).meta.config.retries["total_max_attempts"] == 1
