"""A small real model over the real wire, for whoever asks for it: NOEMA_E2E_MODEL=1.

`scripts/model` serves it; NOEMA_MODEL_PYTHON names an interpreter that has the packages of requirements/model.in.
It is 270 million parameters of pure continuation, so these tests ask what holds for any model: that replies, cuts,
schemas, calls and overflows are what they are called, and that a service with a bad model loses nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from core.models.chat import ChatModel, ChatRequest, ModelFault, ToolCall, ToolResult, ToolSpec, Turn
from core.models.choice import parse_choice
from infra.models.factory import RealProviders
from infra.system import SystemClock, SystemEntropy
from tests.e2e.local import ROOT, serving
from tests.ministack import free_port

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(not os.environ.get("NOEMA_E2E_MODEL"), reason="asked for with NOEMA_E2E_MODEL=1"),  # noqa: TID251
]
CLOCK = SystemClock()
SEARCH = ToolSpec(
    "search", "Searches the memory for a word.",
    {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
)  # fmt: skip
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "country": {"type": "string"}},
    "required": ["city", "country"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def setting() -> Iterator[str]:
    """The value for NOEMA_MODEL, once the model is served."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [ROOT / "scripts" / "model", str(free_port())], stdout=subprocess.PIPE, stderr=errors
        )
        try:
            assert process.stdout is not None
            said = process.stdout.readline().decode().strip()
            errors.seek(0)
            assert said.startswith("openai:"), errors.read()[-2000:]
            yield said
        finally:
            process.terminate()
            process.wait(20)


@pytest.fixture(scope="module")
def model(setting: str) -> ChatModel:
    choice = parse_choice(setting)
    assert choice is not None
    providers = RealProviders(CLOCK, SystemEntropy(), lambda: None, may_spend=True)  # type: ignore[arg-type, return-value]
    return providers.model(choice, lambda: None, trusted=True)


def ask(model: ChatModel, request: ChatRequest, **options: object):
    return model.chat(request, deadline=CLOCK.now() + 120_000, **options)  # type: ignore[arg-type]


def test_a_reply_is_counted_and_named(model: ChatModel) -> None:
    """Text, tokens of both kinds, and who answered."""
    reply = ask(model, ChatRequest("Answer briefly.", (Turn("user", "What is tea?"),), max_tokens=16))

    assert reply.text
    assert reply.stop in ("end", "length")
    assert reply.usage.input_tokens > 5
    assert 0 < reply.usage.output_tokens <= 16
    assert (reply.usage.requests, reply.model) == (1, "gemma-3-270m")


def test_a_stream_is_the_same_text(model: ChatModel) -> None:
    """At temperature 0 it comes in pieces what otherwise comes at once; its usage is told too."""
    request = ChatRequest("", (Turn("user", "Count: one, two,"),), max_tokens=24)
    pieces: list[str] = []

    streamed, whole = ask(model, request, on_text=pieces.append), ask(model, request)

    assert len(pieces) > 3
    assert "".join(pieces) == streamed.text == whole.text
    assert streamed.usage.output_tokens == whole.usage.output_tokens > 0


def test_a_schema_holds(model: ChatModel) -> None:
    """Even a model that cannot follow an instruction answers in the shape."""
    request = ChatRequest("Extract.", (Turn("user", "I live in Paris, France."),), schema=CITY, max_tokens=80)

    reply = ask(model, request)

    assert reply.stop == "end"
    assert json.loads(reply.text).keys() == {"city", "country"}


def test_an_exchange_with_calls_goes_through(model: ChatModel) -> None:
    """Calls good and broken, to tools that are there and not, and their results are taken by the server."""
    calls = (
        ToolCall("a", "search", {"word": "tea"}, '{"word": "tea"}'),
        ToolCall("b", "no.where", None, '{"word'),
    )
    results = (
        ToolResult("a", "search", "Alice loves tea."),
        ToolResult("b", "no.where", "No such tool.", failed=True),
    )
    turns = (Turn("user", "Search for tea."), Turn("assistant", "", calls), Turn("tool", results=results))

    offered = ask(model, ChatRequest("Use the tool.", turns, tools=(SEARCH,), max_tokens=120))
    told = ask(model, ChatRequest("Use the tool.", turns, choice="none", max_tokens=20))

    for call in offered.calls:
        assert call.name == "search"
        assert call.arguments is None or isinstance(call.arguments.get("word"), str)
    assert offered.stop in ("tools", "length", "end")
    assert told.calls == ()


def test_what_does_not_fit_is_told_as_that(model: ChatModel) -> None:
    """At once, and without another try."""
    with pytest.raises(ModelFault) as caught:
        ask(model, ChatRequest("", (Turn("user", "word " * 12_000),), max_tokens=8))

    assert (caught.value.kind, caught.value.usage.requests) == ("context_overflow", 1)


def test_a_cut_is_told_and_a_cancellation_stops_it(model: ChatModel) -> None:
    """The limit of tokens, and the caller's mind."""
    request = ChatRequest("", (Turn("user", "Write a long story."),), max_tokens=2000)
    heard: list[str] = []

    cut = ask(model, ChatRequest("", request.turns, max_tokens=4))
    with pytest.raises(ModelFault) as caught:
        ask(model, request, on_text=heard.append, cancelled=lambda: len(heard) >= 5)

    assert (cut.stop, cut.usage.output_tokens) == ("length", 4)
    assert (caught.value.kind, len(heard)) == ("cancelled", 5)


def test_a_deadline_is_kept(model: ChatModel) -> None:
    """Though the model would go on for long."""
    request = ChatRequest("", (Turn("user", "Write a long story."),), max_tokens=4000)
    began = CLOCK.now()

    with pytest.raises(ModelFault) as caught:
        model.chat(request, deadline=began + 1500, on_text=lambda _: None)

    assert caught.value.kind == "timeout"
    assert CLOCK.now() - began < 6_000


def test_a_service_with_a_bad_model_loses_nothing(setting: str, tmp_path: Path) -> None:
    """What it is told is kept and can be recalled or is plainly said to have failed; what the model used is counted."""
    with serving(
        tmp_path, NOEMA_MODEL=setting, NOEMA_MODEL_CONTEXT="8192", NOEMA_BUDGET_RUN_TURNS="3",
        NOEMA_BUDGET_DAY_TOKENS="400000",
    ) as service:  # fmt: skip
        service.http.timeout = httpx.Timeout(180)
        assert service.http.get("/info").json()["models"]["recall"] == "openai:gemma-3-270m"
        service.call("POST", "/admin/create_space", {"user": "me", "space_id": "demo", "tier": 2})
        message = {"role": "user", "name": "Ada", "content": "I prefer green tea."}
        sent = service.call("POST", "/v1/demo/formation", {"messages": [message]})
        asked = service.call("POST", "/v1/demo/recall", {"query": "What does Ada prefer?"})
        kept = service.call("GET", f"/v1/demo/conversations/{sent['conversation']}")
        info = service.call("GET", "/v1/demo/info")

    assert "green tea" in json.dumps(kept["messages"])
    assert asked.get("content") or asked.get("failed_reason")
    spent = info["recall_usage"]["requests"] + info["formation_usage"]["requests"]
    assert spent > 0, (asked, info)
