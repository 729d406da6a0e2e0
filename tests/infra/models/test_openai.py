"""Chat completions: exact requests to each kind of server, and what becomes of each reply."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from core.models.chat import ChatReply, ChatRequest, ModelFault, ToolCall, Turn, Usage
from tests.infra.models.wire import CITY, HELLO, KEY, SEARCH, Wire, events, exchange, said, streamed

OPENAI = "openai:gpt-4.1-mini@https://api.openai.com/v1"
LOCAL = "openai:gemma@http://127.0.0.1:8080/v1/"
DEEPSEEK = "openai:deepseek-chat@https://api.deepseek.com"
GEMINI = "openai:gemini-3.8-flash@https://generativelanguage.googleapis.com/v1beta/openai"
TOOL = {
    "type": "function",
    "function": {"name": "search", "description": "Searches.", "parameters": SEARCH.parameters},
}
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello."}]
TOLD = (
    "Be brief.\n\nAnswer with one JSON object that follows this JSON Schema, and with nothing else:\n"
    '{"additionalProperties":false,"properties":{"city":{"maxLength":9,"type":"string"}},"required":["city"],"type":"object"}'
)
HISTORY = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Who loves tea?"},
    {
        "role": "assistant", "content": "I look.",
        "tool_calls": [
            {"id": "c-1", "type": "function", "function": {"name": "search", "arguments": '{"word":"tea"}'}},
            {"id": "c-2", "type": "function", "function": {"name": "made_up", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c-1", "content": "Alice."},
    {"role": "tool", "tool_call_id": "c-2", "content": "ERROR: There is no such tool."},
]  # fmt: skip
FORMAT = {"type": "json_schema", "json_schema": {"name": "reply", "schema": CITY, "strict": True}}
LOOSE = {"type": "object", "properties": {"city": {"type": "string"}}}


def asked(**members: Any) -> ChatRequest:
    return msgspec.structs.replace(HELLO, **members)


REQUESTS: dict[str, tuple[str, ChatRequest, dict[str, Any]]] = {
    "OpenAI": (
        OPENAI, HELLO,
        {"model": "gpt-4.1-mini", "messages": MESSAGES, "max_completion_tokens": 100, "temperature": 0.0},
    ),
    "OpenAI's reasoning models": (
        "openai:gpt-5.6@https://api.openai.com/v1", HELLO,
        {"model": "gpt-5.6", "messages": MESSAGES, "max_completion_tokens": 100},
    ),
    "a server of one's own": (
        LOCAL, HELLO, {"model": "gemma", "messages": MESSAGES, "max_tokens": 100, "temperature": 0.0},
    ),
    "DeepSeek, without its thinking": (
        DEEPSEEK, asked(schema=CITY),
        {
            "model": "deepseek-chat",
            "messages": [{"role": "system", "content": TOLD}, MESSAGES[1]],
            "max_tokens": 100, "temperature": 0.0, "thinking": {"type": "disabled"},
            "response_format": {"type": "json_object"},
        },
    ),
    "a strict schema": (
        OPENAI, asked(schema=CITY),
        {
            "model": "gpt-4.1-mini", "messages": MESSAGES, "max_completion_tokens": 100, "temperature": 0.0,
            "response_format": FORMAT,
        },
    ),
    "a schema that is not strict": (
        OPENAI, asked(schema=LOOSE),
        {
            "model": "gpt-4.1-mini", "messages": MESSAGES, "max_completion_tokens": 100, "temperature": 0.0,
            "response_format": {
                "type": "json_schema", "json_schema": {"name": "reply", "schema": LOOSE, "strict": False},
            },
        },
    ),
    "a schema beside tools is told in words": (
        LOCAL, asked(schema=CITY, tools=(SEARCH,)),
        {
            "model": "gemma", "messages": [{"role": "system", "content": TOLD}, MESSAGES[1]], "max_tokens": 100,
            "temperature": 0.0, "tools": [TOOL], "tool_choice": "auto",
        },
    ),
    "tools and an exchange": (
        GEMINI, ChatRequest("Be brief.", exchange(), tools=(SEARCH,), choice="search", max_tokens=100),
        {
            "model": "gemini-3.8-flash", "messages": HISTORY, "max_tokens": 100, "temperature": 0.0, "tools": [TOOL],
            "tool_choice": {"type": "function", "function": {"name": "search"}},
        },
    ),
}  # fmt: skip


def completion(
    content: Any = None, *calls: Any, finish: Any = "stop", usage: Any = ..., **message: Any
) -> dict[str, Any]:
    counted = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15} if usage is ... else usage
    made = {"role": "assistant", "content": content, **message}
    return {
        "id": "x", "object": "chat.completion", "model": "m-1",
        "choices": [{"index": 0, "message": made | ({"tool_calls": list(calls)} if calls else {}), "finish_reason": finish}],
        "usage": counted,
    }  # fmt: skip


def call(
    arguments: Any = '{"word": "tea"}', call_id: Any = "call_a", name: str = "search", **more: Any
) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


@pytest.mark.parametrize("name", REQUESTS)
def test_what_is_sent(name: str) -> None:
    """Each request has exactly these members."""
    choice, request, body = REQUESTS[name]
    wire = Wire(choice, said(completion("Hi.")))

    wire.ask(request)

    assert wire.provider.bodies == [body]
    assert wire.provider.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert wire.provider.requests[0].url.path.endswith("/chat/completions")
    assert "//chat" not in str(wire.provider.requests[0].url)


@pytest.mark.parametrize("choice", ["auto", "none", "required"])
def test_a_choice_of_tools_is_a_word(choice: str) -> None:
    """Only a tool that is named is an object."""
    wire = Wire(OPENAI, said(completion("Hi.")))

    wire.ask(asked(tools=(SEARCH,), choice=choice))

    assert wire.provider.bodies[0]["tool_choice"] == choice


def test_an_exchange_with_calls_goes_out_as_text_where_no_tools_are_offered() -> None:
    """A model that sees no call makes none."""
    wire = Wire(LOCAL, said(completion("Alice.")))

    wire.ask(ChatRequest("", exchange(), choice="none"))

    body = wire.provider.bodies[0]
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert "tools" not in body


def test_half_a_surrogate_pair_is_no_text() -> None:
    """It goes out as U+FFFD; no provider would take it, and a message may hold one."""
    wire = Wire(LOCAL, said(completion("Hi.")))

    wire.ask(ChatRequest("", (Turn("user", "a\ud83db"),)))

    assert wire.provider.bodies[0]["messages"][0]["content"] == "a\ufffdb"


TEA = ToolCall("call_a", "search", {"word": "tea"}, '{"word": "tea"}')


def made(arguments: Any, raw: str, **members: Any) -> ChatReply:
    known = {"id": "call_a", "name": "search", **members}
    return ChatReply("", (ToolCall(arguments=arguments, raw=raw, **known),), "tools")


REPLIES: dict[str, tuple[dict[str, Any], ChatReply]] = {
    "text": (completion("Hi."), ChatReply("Hi.")),
    "text in parts": (completion([{"type": "text", "text": "H"}, {"type": "text", "text": "i."}]), ChatReply("Hi.")),
    "no text": (completion(), ChatReply("")),
    "a call": (completion(None, call(), finish="tool_calls"), ChatReply("", (TEA,), "tools")),
    "a call behind text, called a stop": (completion("So.", call()), ChatReply("So.", (TEA,), "tools")),
    "a call of an older kind of reason": (completion("", call(), finish="function_call"), ChatReply("", (TEA,), "tools")),
    "arguments as an object": (completion(None, call({"word": "tea"})), made({"word": "tea"}, '{"word":"tea"}')),
    "no arguments": (completion(None, call("")), made({}, "")),
    "null as arguments": (completion(None, call(None)), made({}, "")),
    "arguments in a fence": (
        completion(None, call('```json\n{"word": "tea"}\n```')), made({"word": "tea"}, '```json\n{"word": "tea"}\n```'),
    ),
    "broken arguments": (completion(None, call('{"word": "te')), made(None, '{"word": "te')),
    "arguments that are a list": (completion(None, call('["tea"]')), made(None, '["tea"]')),
    "arguments with half a surrogate": (completion(None, call('{"word": "\\ud83d"}')), made(None, '{"word": "\\ud83d"}')),
    "a tool that is not there": (completion(None, call("{}", name="nowhere")), made({}, "{}", name="nowhere")),
    "calls without ids": (
        completion(None, call("{}", None), call("{}", "")),
        ChatReply("", (ToolCall("call_0", "search", {}, "{}"), ToolCall("call_1", "search", {}, "{}")), "tools"),
    ),
    "calls of one id": (
        completion(None, call("{}"), call("{}")),
        ChatReply("", (ToolCall("call_a", "search", {}, "{}"), ToolCall("call_1", "search", {}, "{}")), "tools"),
    ),
    "calls that are none": (completion("Hi.", "x", 3), ChatReply("Hi.")),
    "a call without a function": (completion(None, {"id": "a"}), ChatReply("", (ToolCall("a", "", {}, ""),), "tools")),
    "cut": (completion("Hi th", finish="length"), ChatReply("Hi th", (), "length")),
    "cut in a call": (
        completion(None, call('{"word": "te'), finish="length"),
        ChatReply("", (ToolCall("call_a", "search", None, '{"word": "te'),), "length"),
    ),
    "cut before the arguments": (
        completion(None, call(""), finish="length"), ChatReply("", (ToolCall("call_a", "search", None, ""),), "length"),
    ),
    "filtered": (completion("H", finish="content_filter"), ChatReply("H", (), "refused")),
    "refused": (completion(None, refusal="I won't."), ChatReply("", (), "refused")),
    "an unknown reason": (completion("Hi.", finish="eos"), ChatReply("Hi.")),
    "no reason": (completion("Hi.", finish=None), ChatReply("Hi.")),
    "reason of tools, and none": (completion("Hi.", finish="tool_calls"), ChatReply("Hi.")),
}  # fmt: skip


@pytest.mark.parametrize("name", REPLIES)
def test_what_is_understood(name: str) -> None:
    """Each reply becomes exactly this value."""
    answer, reply = REPLIES[name]
    wire = Wire(LOCAL, said(answer))

    assert wire.ask() == msgspec.structs.replace(reply, usage=Usage(10, 5, 0, 1), model="m-1")


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 8}}, Usage(9, 2, 8, 1)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 7}, Usage(9, 2, 7, 1)),
        ({"prompt_tokens": 9, "prompt_tokens_details": None}, Usage(9, 0, 0, 1)),
        ({"prompt_tokens": -1, "completion_tokens": "many"}, Usage(0, 0, 0, 1)),
        ({"prompt_tokens": 10**30, "completion_tokens": 10**18}, Usage(10**9, 10**9, 0, 1)),
        (None, Usage(0, 0, 0, 1)),
    ],
)  # fmt: skip
def test_usage_is_what_the_server_says(usage: Any, counted: Usage) -> None:
    """Servers spell what was kept in two ways, or say nothing."""
    assert Wire(LOCAL, said(completion("Hi.", usage=usage))).ask().usage == counted


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({}, "bad_reply"),
        ([], "bad_reply"),
        ("Hi.", "bad_reply"),
        ({"choices": []}, "bad_reply"),
        ({"choices": [{"index": 0}]}, "bad_reply"),
        ({"choices": ["x"]}, "bad_reply"),
        (completion(None, finish="eos"), "bad_reply"),
        ({"error": {"message": "busy", "code": 502}}, "unavailable"),
        (completion("H", finish="error"), "unavailable"),
        (completion("H", finish="insufficient_system_resource"), "unavailable"),
    ],
)
def test_what_is_no_reply_is_a_fault(body: Any, kind: str) -> None:
    """A success by its status alone is none."""
    wire = Wire(LOCAL, *[said(body) for _ in range(8)])

    with pytest.raises(ModelFault) as caught:
        wire.ask()

    assert caught.value.kind == kind


def test_what_a_provider_wants_back_goes_back() -> None:
    """DeepSeek's thinking goes with the message, Gemini's signature with its call; neither is ever text."""
    signed = {"google": {"thought_signature": "c2ln"}}
    first = completion("So.", call(extra_content=signed), call("{}", "call_b"), reasoning_content="Tea, hm.")
    wire = Wire(GEMINI, said(first), said(completion("Alice.")))

    reply = wire.ask(asked(tools=(SEARCH,)))
    wire.ask(asked(tools=(SEARCH,), turns=(*HELLO.turns, Turn("assistant", reply.text, reply.calls))))

    sent = wire.provider.bodies[1]["messages"][-1]
    assert sent["reasoning_content"] == "Tea, hm."
    assert sent["tool_calls"][0]["extra_content"] == signed
    assert "extra_content" not in sent["tool_calls"][1]
    assert reply.text == "So."


# --- streams


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "x", "object": "chat.completion.chunk", "model": "m-1", "choices": choices, **more}


def part(index: Any, **members: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, **members}]}


COUNTED = chunk(usage={"prompt_tokens": 10, "completion_tokens": 5})


def test_a_stream_is_passed_on_and_put_together() -> None:
    """Text arrives in its pieces, calls are put together by their index, and the usage comes last."""
    pieces: list[str] = []
    stream = [
        chunk({"role": "assistant", "content": ""}, usage=None), chunk({"content": "I "}), chunk({"content": "look."}),
        chunk(part(0, id="call_a", type="function", function={"name": "search", "arguments": ""})),
        chunk(part(0, function={"arguments": '{"word": '})), chunk(part(0, function={"arguments": '"tea"}'})),
        chunk(part(1, id="call_b", function={"name": "list", "arguments": "{}"})),
        chunk({}, "tool_calls"), COUNTED,
    ]  # fmt: skip
    wire = Wire(OPENAI, streamed(*events(*stream, done=True)))

    reply = wire.ask(on_text=pieces.append)

    assert pieces == ["I ", "look."]
    assert reply == ChatReply(
        "I look.", (TEA, ToolCall("call_b", "list", {}, "{}")), "tools", Usage(10, 5, 0, 1), "m-1"
    )
    assert wire.provider.bodies[0]["stream"] is True
    assert wire.provider.bodies[0]["stream_options"] == {"include_usage": True}


def test_calls_without_an_index_are_each_their_own() -> None:
    """Some servers send whole calls in a stream, and number none."""
    stream = [
        chunk({"tool_calls": [call("{}", "a"), call("{}", "b")]}),
        chunk({"tool_calls": [call("{}", "c")]}, "tool_calls"),
    ]

    reply = Wire(LOCAL, streamed(*events(*stream, done=True))).ask(on_text=lambda _: None)

    assert [each.id for each in reply.calls] == ["a", "b", "c"]


def test_without_a_listener_nothing_is_streamed() -> None:
    """And with one, a reply that came whole is still told."""
    wire = Wire(LOCAL, said(completion("Hi.")))

    wire.ask()

    assert "stream" not in wire.provider.bodies[0]


BROKEN: dict[str, tuple[list[Any], str]] = {
    "it ends without a reason": ([chunk({"content": "Hi"})], "unavailable"),
    "an error within": ([{"error": {"message": "x"}}], "unavailable"),
    "a chunk that is a list": ([[]], "bad_reply"),
    "a choice that is text": ([{"choices": ["x"]}], "bad_reply"),
    "arguments that are an object": ([chunk(part(0, function={"arguments": {"a": 1}}))], "bad_reply"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_stream_is_a_fault(name: str) -> None:
    """Once text went out it is not asked for again; before that it is."""
    stream, kind = BROKEN[name]
    body = b"".join(f"data: {json.dumps(each)}\n\n".encode() for each in stream)
    wire = Wire(LOCAL, *[streamed(body) for _ in range(8)])

    with pytest.raises(ModelFault) as caught:
        wire.ask(on_text=lambda _: None)

    assert caught.value.kind == kind
    assert (len(wire.provider.requests) == 1) == (b"Hi" in body)


def test_a_cancelled_stream_stops_between_pieces() -> None:
    """And its connection is closed."""
    answer = streamed(*events(*[chunk({"content": str(place)}) for place in range(50)]))
    wire = Wire(LOCAL, answer)
    heard: list[str] = []

    with pytest.raises(ModelFault, match="cancelled"):
        wire.ask(on_text=heard.append, cancelled=lambda: len(heard) >= 3)

    assert len(heard) == 3
    assert answer.is_closed
