"""`ChatModel` over Anthropic's Messages API.

What lives here: that API's request, reply and stream of events. What must never live here: retries and HTTP
(`infra.models.patience`, `infra.models.http`) and which model can do what (`infra.models.families`).

Prompt and tools carry a mark up to which the provider keeps them; where tools are offered, the end of the exchange
carries one too, for the next turn will begin with it. Thinking, where a model thinks, goes back as it came with the
calls that followed it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from core.models.chat import Capabilities, ChatReply, ChatRequest, ModelFault, Stop, ToolCall, Turn, Usage
from core.models.choice import Key, ModelChoice
from infra.models import texts
from infra.models.http import Http
from infra.models.patience import Patience, Spoken
from infra.models.wire import Block, HttpWire, count, member, merged

VERSION: Final = "2023-06-01"
_KEEP: Final = {"cache_control": {"type": "ephemeral"}}
_STOPS: Final[dict[str, Stop]] = {
    "end_turn": "end", "stop_sequence": "end", "pause_turn": "end", "tool_use": "tools",
    "max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "refused",
}  # fmt: skip


class AnthropicModel(HttpWire):
    """A model behind `<base_url>/v1/messages`."""

    def __init__(
        self, choice: ModelChoice, key: Key, http: Http, patience: Patience, capabilities: Capabilities
    ) -> None:
        path = "/messages" if choice.base_url.endswith("/v1") else "/v1/messages"
        super().__init__(choice, key, http, patience, capabilities, path=path)

    def _encoded(self, request: ChatRequest, *, streams: bool) -> bytes:
        return texts.encode({**self.body(request), **({"stream": True} if streams else {})})

    def _assembly(self, spoken: Spoken) -> _Message:
        return _Message(spoken)

    def _headers(self) -> dict[str, str]:
        key = self._key() or ""
        named = {"authorization": f"Bearer {key}"} if self._choice.bearer else {"x-api-key": key}
        return {"content-type": "application/json", "anthropic-version": VERSION, **named}

    # --- the request

    def body(self, request: ChatRequest) -> dict[str, Any]:
        """The request's JSON, in the order in which a prefix stays the same the longest."""
        family = self._family
        told = request.schema is not None and family.schema != "json_schema"
        system = texts.in_words(request.system, request.schema or {}) if told else request.system
        turns = request.turns if request.tools else texts.without_calls(request.turns)
        body: dict[str, Any] = {"model": self._choice.model, "max_tokens": self._most(request)}
        if request.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
                for tool in request.tools
            ]
            body["tool_choice"] = self._tool_choice(request.choice)
        if system:
            mark = _KEEP if family.cache else {}
            body["system"] = [{"type": "text", "text": system, **mark}]
        body["messages"] = merged(turns, _blocks)
        if request.tools and family.cache and body["messages"]:
            body["messages"][-1]["content"][-1].update(_KEEP)
        if family.temperature:
            body["temperature"] = request.temperature
        if request.schema is not None and not told:
            schema = texts.closed(request.schema)
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return body | family.extra

    def _tool_choice(self, choice: str) -> dict[str, str]:
        if choice in ("auto", "none"):
            return {"type": choice}
        if not self._family.forced_tool:
            return {"type": "auto"}
        return {"type": "any"} if choice == "required" else {"type": "tool", "name": choice}

    # --- the reply

    def _reply(self, answer: Any, request: ChatRequest) -> ChatReply:  # JSON of whatever came
        content = answer.get("content") if isinstance(answer, dict) else None
        if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
            raise ModelFault("bad_reply", "the reply has no content", usage=Usage(requests=1))
        reason = answer.get("stop_reason")
        text = "".join(str(block.get("text", "")) for block in content if block.get("type") == "text")
        calls = _calls(content, cut=reason == "max_tokens")
        stop = _STOPS.get(str(reason))
        model = str(answer.get("model") or "")
        return self._finished(request, text, calls, stop, _usage(answer), model=model)


def _blocks(turn: Turn) -> list[Block]:
    blocks: list[Block] = []
    for call in turn.calls[:1]:
        blocks += msgspec.json.decode(call.opaque) if call.opaque else []
    blocks += [
        {
            "type": "tool_result",
            "tool_use_id": texts.safe_name(result.id),
            "content": result.content,
            **({"is_error": True} if result.failed else {}),
        }
        for result in turn.results
    ]
    if turn.text.strip():
        blocks.append({"type": "text", "text": turn.text})
    blocks += [
        {
            "type": "tool_use",
            "id": texts.safe_name(call.id),
            "name": texts.safe_name(call.name),
            "input": call.arguments or {},
        }
        for call in turn.calls
    ]
    return blocks


def _calls(content: list[Block], *, cut: bool) -> tuple[ToolCall, ...]:
    """The calls in a reply. Behind the token limit the last one may not be whole, whatever it looks like."""
    thinking = [block for block in content if block.get("type") in ("thinking", "redacted_thinking")]
    opaque = msgspec.json.encode(thinking).decode() if thinking else ""
    uses = [block for block in content if block.get("type") == "tool_use"]
    last = len(uses) - 1
    return texts.distinct(
        [
            texts.tool_call(
                str(block.get("id", "")),
                str(block.get("name", "")),
                block.get("input", {}),
                opaque="" if place else opaque,
                cut=cut and place == last and block is content[-1],
            )
            for place, block in enumerate(uses)
        ]
    )


def _usage(message: Any) -> Usage:  # JSON of whatever came
    counts = member(message, "usage")
    cached = count(counts, "cache_read_input_tokens")
    fresh = count(counts, "input_tokens") + count(counts, "cache_creation_input_tokens")
    return Usage(fresh + cached, count(counts, "output_tokens"), cached, 1)


class _Message:
    """A message, put together from the events of a stream."""

    def __init__(self, spoken: Spoken) -> None:
        self._spoken = spoken
        self._blocks: dict[int, Block] = {}
        self._inputs: dict[int, list[str]] = {}
        self._usage: dict[str, Any] = {}
        self._model = ""
        self._reason: str | None = None
        self._ended = False

    def take(self, event: Any) -> None:  # JSON of whatever came
        """Note one event; those of unknown types are passed over, as the API asks."""
        kind = event.get("type") if isinstance(event, dict) else None
        try:
            if kind == "message_start":
                self._model = str(event["message"].get("model", ""))
                self._usage |= event["message"].get("usage") or {}
            elif kind == "content_block_start":
                self._blocks[event["index"]] = dict(event["content_block"])
            elif kind == "content_block_delta":
                self._delta(event["index"], event["delta"])
            elif kind == "message_delta":
                self._reason = event["delta"].get("stop_reason") or self._reason
                self._usage |= {name: value for name, value in event.get("usage", {}).items() if value}
            elif kind == "message_stop":
                self._ended = True
            elif kind == "error":
                raise _stream_fault(event.get("error"))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ModelFault("bad_reply", "an event of the reply has another shape") from error

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        block = self._blocks[index]
        match delta.get("type"):
            case "text_delta":
                block["text"] = block.get("text", "") + delta["text"]
                self._spoken.say(delta["text"])
            case "input_json_delta":
                self._inputs.setdefault(index, []).append(delta["partial_json"])
            case "thinking_delta":
                block["thinking"] = block.get("thinking", "") + delta["thinking"]
            case "signature_delta":
                block["signature"] = block.get("signature", "") + delta["signature"]

    def usage(self) -> Usage:
        """What was used, as far as the stream has said."""
        return _usage({"usage": self._usage})

    def whole(self) -> Block:
        """The whole message.

        Raises:
            ModelFault: unavailable, if the stream ended before the message did.
        """
        if not self._ended:
            raise ModelFault("unavailable", "the reply broke off", usage=self.usage())
        for index, pieces in self._inputs.items():
            if any(pieces):
                self._blocks[index]["input"] = "".join(pieces)
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        return {"content": blocks, "stop_reason": self._reason, "usage": self._usage, "model": self._model}


def _stream_fault(error: Any) -> ModelFault:  # JSON of whatever came
    kind = error.get("type") if isinstance(error, dict) else None
    if kind == "rate_limit_error":
        return ModelFault("rate_limited", "the provider limits how much may be asked")
    if kind in ("authentication_error", "permission_error", "billing_error"):
        return ModelFault("unauthorized", f"the provider refuses the key ({kind})")
    if kind in ("invalid_request_error", "not_found_error"):
        return ModelFault("bad_request", f"the provider refuses the request ({kind})")
    return ModelFault("unavailable", "the provider failed in the middle of the reply")
