"""Anthropic's Messages API: exact requests, and what becomes of each reply."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from core.models.chat import ChatReply, ChatRequest, ModelFault, ToolCall, Turn, Usage
from core.models.choice import ModelChoice
from infra.models.factory import RealProviders
from tests.infra.models.wire import CITY, HELLO, KEY, SEARCH, Wire, events, exchange, said, streamed

OLD, NEW = "anthropic:claude-haiku-4-5", "anthropic:claude-sonnet-5"
MARK = {"cache_control": {"type": "ephemeral"}}
SYSTEM = [{"type": "text", "text": "Be brief.", **MARK}]
TOOL = {"name": "search", "description": "Searches.", "input_schema": SEARCH.parameters}
CLOSED = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def message(*content: Any, stop: str | None = "end_turn", **usage: int) -> dict[str, Any]:
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5-20251001",
        "content": list(content), "stop_reason": stop, "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5, **usage},
    }  # fmt: skip


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def use(call_id: str = "toolu_1", name: str = "search", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


HISTORY = [
    {"role": "user", "content": [text("Who loves tea?")]},
    {
        "role": "assistant",
        "content": [text("I look."), use("c-1", word="tea"), use("c-2", "made_up")],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c-1", "content": "Alice."},
            {
                "type": "tool_result", "tool_use_id": "c-2", "content": "There is no such tool.",
                "is_error": True, **MARK,
            },
        ],
    },
]  # fmt: skip
PLAIN = {
    "model": "claude-haiku-4-5",
    "max_tokens": 100,
    "system": SYSTEM,
    "messages": [{"role": "user", "content": [text("Hello.")]}],
    "temperature": 0.0,
}
REQUESTS: dict[str, tuple[str, ChatRequest, dict[str, Any]]] = {
    "plain": (OLD, HELLO, PLAIN),
    "no prompt": (OLD, ChatRequest("", HELLO.turns, max_tokens=100), {k: v for k, v in PLAIN.items() if k != "system"}),
    "from 4.7 on without a temperature": (
        "anthropic:claude-opus-4-8", HELLO, {**{k: v for k, v in PLAIN.items() if k != "temperature"}, "model": "claude-opus-4-8"},
    ),
    "from 5 on without thinking": (
        NEW, HELLO,
        {**{k: v for k, v in PLAIN.items() if k != "temperature"}, "model": "claude-sonnet-5", "thinking": {"type": "disabled"}},
    ),
    "between tools": (
        "anthropic:claude-sonnet-5-5", HELLO,
        {
            **{k: v for k, v in PLAIN.items() if k != "temperature"},
            "model": "claude-sonnet-5-5", "thinking": {"type": "between_tools"},
        },
    ),
    "schema": (
        OLD, msgspec.structs.replace(HELLO, schema=CITY),
        {**PLAIN, "output_config": {"format": {"type": "json_schema", "schema": CLOSED}}},
    ),
    "tools, and the end of the exchange is kept": (
        OLD, ChatRequest("Be brief.", exchange(), tools=(SEARCH,), max_tokens=100),
        {**PLAIN, "tools": [TOOL], "tool_choice": {"type": "auto"}, "messages": HISTORY},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_what_is_sent(name: str) -> None:
    """Each request has exactly these members."""
    choice, request, body = REQUESTS[name]
    wire = Wire(choice, said(message(text("Hi."))))

    wire.ask(request)

    assert wire.provider.bodies == [body]
    sent = wire.provider.requests[0]
    assert str(sent.url) == "https://api.anthropic.com/v1/messages"
    assert (sent.headers["x-api-key"], sent.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in sent.headers


@pytest.mark.parametrize(
    ("model", "choice", "sent"),
    [
        (OLD, "auto", {"type": "auto"}),
        (OLD, "none", {"type": "none"}),
        (OLD, "required", {"type": "any"}),
        (OLD, "search", {"type": "tool", "name": "search"}),
        ("anthropic:claude-opus-5-5", "required", {"type": "auto"}),
        ("anthropic:claude-fable-5-1", "search", {"type": "auto"}),
        (NEW, "search", {"type": "tool", "name": "search"}),
    ],
)
def test_a_tool_is_forced_where_the_model_takes_that(model: str, choice: str, sent: dict[str, str]) -> None:
    """A model that thinks always refuses a forced tool, so it is only offered one."""
    wire = Wire(model, said(message(text("Hi."))))

    wire.ask(msgspec.structs.replace(HELLO, tools=(SEARCH,), choice=choice))

    assert wire.provider.bodies[0]["tool_choice"] == sent


def test_an_exchange_with_calls_goes_out_as_text_where_no_tools_are_offered() -> None:
    """The API refuses blocks of tools it was not given."""
    wire = Wire(OLD, said(message(text("Alice."))))

    wire.ask(ChatRequest("Be brief.", exchange(), choice="none"))

    body = wire.provider.bodies[0]
    assert "tools" not in body
    assert body["messages"][1]["content"] == [
        text('I look.\n[called search with {"word": "tea"}]\n[called made.up with {"word]')
    ]
    assert body["messages"][2]["role"] == "user"
    assert "[made.up failed: There is no such tool.]" in body["messages"][2]["content"][0]["text"]


SEARCHED = ToolCall("toolu_1", "search", {"word": "tea"}, '{"word":"tea"}')
REPLIES: dict[str, tuple[dict[str, Any], ChatReply]] = {
    "text": (message(text("Hi "), text("there.")), ChatReply("Hi there.")),
    "a call": (
        message(text("I look."), use(word="tea"), stop="tool_use"), ChatReply("I look.", (SEARCHED,), "tools"),
    ),
    "two calls": (
        message(use(word="tea"), use("toolu_2", word="cup"), stop="tool_use"),
        ChatReply("", (SEARCHED, ToolCall("toolu_2", "search", {"word": "cup"}, '{"word":"cup"}')), "tools"),
    ),
    "a call to a tool that is not there": (
        message(use(name="nowhere"), stop="tool_use"), ChatReply("", (ToolCall("toolu_1", "nowhere", {}, "{}"),), "tools"),
    ),
    "a call without a reason": (message(use(word="tea"), stop="end_turn"), ChatReply("", (SEARCHED,), "tools")),
    "cut text": (message(text("Hi th"), stop="max_tokens"), ChatReply("Hi th", (), "length")),
    "a cut call, whose object looks whole": (
        message(use(word="te"), stop="max_tokens"),
        ChatReply("", (ToolCall("toolu_1", "search", None, '{"word":"te"}'),), "length"),
    ),
    "cut in the text behind a call": (
        message(use(word="tea"), text("And"), stop="max_tokens"), ChatReply("And", (SEARCHED,), "length"),
    ),
    "refused": (message(text("No."), stop="refusal"), ChatReply("No.", (), "refused")),
    "refused without a word": (message(stop="refusal"), ChatReply("", (), "refused")),
    "the window is full": (message(text("Hi"), stop="model_context_window_exceeded"), ChatReply("Hi", (), "length")),
    "nothing more to say": (message(), ChatReply("")),
    "an unknown reason with text": (message(text("Hi."), stop="sudden_end"), ChatReply("Hi.")),
    "no reason with text": (message(text("Hi."), stop=None), ChatReply("Hi.")),
    "a reason of tools without any": (message(text("Hi."), stop="tool_use"), ChatReply("Hi.")),
    "blocks of a kind that is not known": (message({"type": "hologram"}, text("Hi.")), ChatReply("Hi.")),
}  # fmt: skip


@pytest.mark.parametrize("name", REPLIES)
def test_what_is_understood(name: str) -> None:
    """Each reply becomes exactly this value."""
    answer, reply = REPLIES[name]
    wire = Wire(OLD, said(answer))

    expected = msgspec.structs.replace(reply, usage=Usage(10, 5, 0, 1), model="claude-haiku-4-5-20251001")
    assert wire.ask(msgspec.structs.replace(HELLO, tools=(SEARCH,))) == expected


def test_usage_counts_what_was_kept_as_input() -> None:
    """The API counts fresh, written and read tokens apart; the input is all of them."""
    wire = Wire(
        OLD, said(message(text("Hi."), cache_creation_input_tokens=100, cache_read_input_tokens=1000))
    )

    assert wire.ask().usage == Usage(1110, 5, 1000, 1)


def test_json_comes_out_of_its_fence_where_json_was_asked_for() -> None:
    """A model that was told a schema in words may put a fence around its answer."""
    fenced = '```json\n{"city": "Oslo"}\n```'

    assert (
        Wire(OLD, said(message(text(fenced)))).ask(msgspec.structs.replace(HELLO, schema=CITY)).text
        == '{"city": "Oslo"}'
    )
    assert Wire(OLD, said(message(text(fenced)))).ask().text == fenced


@pytest.mark.parametrize(
    "body", [{}, [], None, {"content": None}, {"content": "Hi"}, {"content": [1]}, message(stop="sudden_end")]
)
def test_a_reply_of_another_shape_is_a_fault(body: Any) -> None:
    """It is asked for once more, and then told as a bad reply."""
    wire = Wire(OLD, said(body), said(body))

    with pytest.raises(ModelFault) as caught:
        wire.ask()

    assert caught.value.kind == "bad_reply"
    assert len(wire.provider.requests) == 2


def test_thinking_goes_back_as_it_came() -> None:
    """It travels with the first call, which is what the API wants when the results come."""
    thinking = [
        {"type": "thinking", "thinking": "Tea.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eHg="},
    ]
    first = message(*thinking, text("I look."), use(word="tea"), stop="tool_use")
    wire = Wire("anthropic:claude-opus-5-5", said(first), said(message(text("Alice."))))
    request = ChatRequest("", (Turn("user", "Who?"),), tools=(SEARCH,))

    reply = wire.ask(request)
    wire.ask(
        msgspec.structs.replace(request, turns=(*request.turns, Turn("assistant", reply.text, reply.calls)))
    )

    assert wire.provider.bodies[1]["messages"][1]["content"][:2] == thinking
    assert "Tea." not in reply.text


def test_a_bearer_token_where_one_is_wanted() -> None:
    """A compatible endpoint may take the key as OpenAI's do."""
    wire = Wire(OLD, said(message(text("Hi."))))
    providers = RealProviders(wire.clock, None, lambda: None, may_spend=True, transport=wire.provider)  # type: ignore[arg-type]
    choice = ModelChoice("anthropic", "m", "https://gateway.example/anthropic/v1", bearer=True, max_output=7)
    providers.model(choice, lambda: KEY, trusted=True).chat(HELLO, deadline=wire.clock.time + 1000)

    sent = wire.provider.requests[0]
    assert str(sent.url) == "https://gateway.example/anthropic/v1/messages"
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in sent.headers
    assert wire.provider.bodies[0]["max_tokens"] == 7


# --- streams

START = {
    "type": "message_start",
    "message": {
        **message(stop=None),
        "content": [],
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 4, "output_tokens": 1},
    },
}


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *[{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas],
        {"type": "content_block_stop", "index": index},
    ]


def words(*pieces: str) -> list[dict[str, Any]]:
    return block(0, text(""), *[{"type": "text_delta", "text": piece} for piece in pieces])


def end(stop: str) -> list[dict[str, Any]]:
    return [
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": {"output_tokens": 9},
        },
        {"type": "message_stop"},
    ]


def test_a_stream_is_passed_on_and_put_together() -> None:
    """Text arrives in its pieces; calls and thinking are put together; usage is of the last word on it."""
    pieces: list[str] = []
    stream = [
        START, {"type": "ping"}, *words("I ", "look."),
        *block(
            1, {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {}},
            {"type": "input_json_delta", "partial_json": ""}, {"type": "input_json_delta", "partial_json": '{"wo'},
            {"type": "input_json_delta", "partial_json": 'rd":"tea"}'},
        ),
        *block(2, {"type": "tool_use", "id": "toolu_2", "name": "list", "input": {}}),
        *end("tool_use"),
    ]  # fmt: skip
    wire = Wire(OLD, streamed(*events(*stream)))

    reply = wire.ask(msgspec.structs.replace(HELLO, tools=(SEARCH,)), on_text=pieces.append)

    assert pieces == ["I ", "look."]
    assert reply == ChatReply(
        "I look.", (SEARCHED, ToolCall("toolu_2", "list", {}, "{}")), "tools", Usage(14, 9, 4, 1), "claude-haiku-4-5-20251001",
    )  # fmt: skip
    assert wire.provider.bodies[0]["stream"] is True


def test_a_stream_may_be_cut_anywhere_into_pieces() -> None:
    """Events are told apart by their lines, not by how they travel; characters of several bytes are put together."""
    whole = b"".join(events(START, *words("Grüße, 茶."), *end("end_turn"))).replace(b"\n", b"\r\n")

    for size in (1, 3, 7, 64):
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        assert Wire(OLD, streamed(*pieces)).ask(on_text=lambda _: None).text == "Grüße, 茶."


def test_arguments_cut_at_the_limit_are_none() -> None:
    """What was written is kept, and called broken."""
    stream = [
        START,
        *block(0, use(), {"type": "input_json_delta", "partial_json": '{"word": "te'}),
        *end("max_tokens"),
    ]

    reply = Wire(OLD, streamed(*events(*stream))).ask(on_text=lambda _: None)

    assert reply.calls == (ToolCall("toolu_1", "search", None, '{"word": "te'),)
    assert reply.stop == "length"


BROKEN = {
    "it ends without an end": ([START, *words("Hi")], "unavailable"),
    "overloaded": (
        [START, {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}],
        "unavailable",
    ),
    "limited": ([{"type": "error", "error": {"type": "rate_limit_error", "message": "x"}}], "rate_limited"),
    "refused": (
        [{"type": "error", "error": {"type": "invalid_request_error", "message": "x"}}],
        "bad_request",
    ),
    "no right": ([{"type": "error", "error": {"type": "permission_error", "message": "x"}}], "unauthorized"),
    "a delta of no block": ([START, *words("Hi")[1:2]], "bad_reply"),
    "an event of another shape": ([{"type": "message_start"}], "bad_reply"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_stream_is_a_fault(name: str) -> None:
    """Nothing of it counts as a reply; what it had cost by then is told."""
    stream, kind = BROKEN[name]
    wire = Wire(OLD, *[streamed(*events(*stream)) for _ in range(8)])

    with pytest.raises(ModelFault) as caught:
        wire.ask(on_text=lambda _: None)

    assert caught.value.kind == kind
    assert caught.value.usage.requests == len(wire.provider.requests)
    if stream[0] is START and "Hi" in json.dumps(stream) and kind == "unavailable":
        assert len(wire.provider.requests) == 1  # text went out: never again
        assert caught.value.usage.input_tokens == 14
