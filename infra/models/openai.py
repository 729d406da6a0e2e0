"""`ChatModel` over chat completions as OpenAI defined them, which most servers speak.

OpenAI, Ollama, vLLM, llama.cpp, DeepSeek, Gemini's compatible endpoint.

What lives here: that interface's request, reply and stream. What must never live here: retries and HTTP
(`infra.models.patience`, `infra.models.http`) and which server can do what (`infra.models.families`).

Servers differ in what they leave out: ids, usage, the text of arguments. What is missing is told from what is
there; what contradicts itself is a `bad_reply`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from core.models.chat import Capabilities, ChatReply, ChatRequest, ModelFault, Stop, ToolCall, Turn, Usage
from core.models.choice import Key, ModelChoice
from infra.models import texts
from infra.models.http import Http
from infra.models.patience import Patience, Spoken
from infra.models.wire import Block, HttpWire, count, member

_STOPS: Final[dict[str, Stop]] = {
    "stop": "end", "length": "length", "tool_calls": "tools", "function_call": "tools", "content_filter": "refused",
}  # fmt: skip
_FAILED: Final = frozenset({"error", "insufficient_system_resource"})  # OpenRouter's, DeepSeek's
_REPLAYED: Final = ("reasoning_content",)  # of a message: DeepSeek wants its thinking back with the calls
_REPLAYED_CALL: Final = ("extra_content",)  # of a call: Gemini's signature


class OpenAiModel(HttpWire):
    """A model behind `<base_url>/chat/completions`."""

    def __init__(
        self, choice: ModelChoice, key: Key, http: Http, patience: Patience, capabilities: Capabilities
    ) -> None:
        super().__init__(choice, key, http, patience, capabilities, path="/chat/completions")

    def _encoded(self, request: ChatRequest, *, streams: bool) -> bytes:
        body = self.body(request)
        if streams:
            body["stream"] = True
            if self._family.stream_usage:
                body["stream_options"] = {"include_usage": True}
        return texts.encode(body)

    def _assembly(self, spoken: Spoken) -> _Completion:
        return _Completion(spoken)

    def _headers(self) -> dict[str, str]:
        key = self._key()
        return {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}

    # --- the request

    def body(self, request: ChatRequest) -> dict[str, Any]:
        """The request's JSON."""
        family = self._family
        schema = request.schema
        held = schema is not None and family.schema != "words"
        if request.tools and not family.schema_with_tools:
            held = False
        told = schema is not None and not (held and family.schema == "json_schema")
        system = texts.in_words(request.system, schema or {}) if told else request.system
        turns = request.turns if request.tools else texts.without_calls(request.turns)
        body: dict[str, Any] = {
            "model": self._choice.model,
            "messages": _messages(system, turns),
            family.max_tokens: self._most(request),
        }
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                    },
                }
                for tool in request.tools
            ]
            body["tool_choice"] = self._tool_choice(request.choice)
        if family.temperature:
            body["temperature"] = request.temperature
        if held:
            body["response_format"] = self._format(schema)
        return body | family.extra

    def _tool_choice(self, choice: str) -> Any:
        if choice in ("auto", "none"):
            return choice
        if not self._family.forced_tool:
            return "auto"
        return choice if choice == "required" else {"type": "function", "function": {"name": choice}}

    def _format(self, schema: Any) -> Block:  # JSON
        if self._family.schema == "json_object":
            return {"type": "json_object"}
        return {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": schema, "strict": texts.strict(schema)},
        }

    # --- the reply

    def _reply(self, answer: Any, request: ChatRequest) -> ChatReply:  # JSON of whatever came
        usage = _usage(answer)
        if isinstance(answer, dict) and answer.get("error"):
            raise ModelFault("unavailable", "the provider answered with an error", usage=usage)
        choices = answer.get("choices") if isinstance(answer, dict) else None
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(message, dict):
            raise ModelFault("bad_reply", "the reply has no choices", usage=usage)
        reason = choice.get("finish_reason")
        if reason in _FAILED:
            raise ModelFault("unavailable", "the provider broke the reply off", usage=usage)
        text, refusal = _text(message.get("content")), message.get("refusal")
        calls = _calls(message, cut=reason == "length")
        stop = "refused" if isinstance(refusal, str) and refusal else _STOPS.get(str(reason))
        return self._finished(request, text, calls, stop, usage, model=str(answer.get("model") or ""))


def _messages(system: str, turns: Iterable[Turn]) -> list[Block]:
    out: list[Block] = [{"role": "system", "content": system}] if system else []
    for turn in turns:
        if turn.speaker == "tool":
            out += [
                {
                    "role": "tool",
                    "tool_call_id": result.id,
                    "content": f"ERROR: {result.content}" if result.failed else result.content,
                }
                for result in turn.results
            ]
        elif turn.speaker == "assistant" and turn.calls:
            out.append({"role": "assistant", "content": turn.text, **_made(turn.calls)})
        elif turn.text:
            out.append({"role": turn.speaker, "content": turn.text})
    return out


def _made(calls: tuple[ToolCall, ...]) -> Block:
    """Calls as they go back. Broken arguments go back as none: servers parse what they are given."""
    message: Block = {}
    made = []
    for call in calls:
        opaque = msgspec.json.decode(call.opaque) if call.opaque else {}
        message |= opaque.get("message", {})
        arguments = "{}" if call.arguments is None else texts.encode(call.arguments).decode()
        function = {"name": texts.safe_name(call.name), "arguments": arguments}
        made.append({"id": call.id, "type": "function", "function": function, **opaque.get("call", {})})
    return {**message, "tool_calls": made}


def _text(content: Any) -> str:  # a text, or parts of one
    if isinstance(content, list):
        return "".join(
            str(part.get("text", ""))
            for part in content
            if isinstance(part, dict) and part.get("type") == "text"
        )
    return content if isinstance(content, str) else ""


def _calls(message: Block, *, cut: bool) -> tuple[ToolCall, ...]:
    found = message.get("tool_calls")
    made = [call for call in found if isinstance(call, dict)] if isinstance(found, list) else []
    thought = {name: message[name] for name in _REPLAYED if isinstance(message.get(name), str)}
    calls = []
    for place, call in enumerate(made):
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        signed = {name: call[name] for name in _REPLAYED_CALL if call.get(name)}
        opaque: Block = {"message": thought} if thought and not place else {}
        opaque |= {"call": signed} if signed else {}
        arguments = function.get("arguments")
        calls.append(
            texts.tool_call(
                str(call.get("id") or ""),
                str(function.get("name") or ""),
                "" if arguments is None else arguments,
                opaque=msgspec.json.encode(opaque).decode() if opaque else "",
                cut=cut and place == len(made) - 1,
            )
        )
    return texts.distinct(calls)


def _usage(completion: Any) -> Usage:  # JSON of whatever came
    counts = member(completion, "usage")
    cached = count(member(counts, "prompt_tokens_details"), "cached_tokens")
    cached = cached or count(counts, "prompt_cache_hit_tokens")
    return Usage(count(counts, "prompt_tokens"), count(counts, "completion_tokens"), cached, 1)


class _Completion:
    """A completion, put together from the chunks of a stream."""

    def __init__(self, spoken: Spoken) -> None:
        self._spoken = spoken
        self._texts: dict[str, list[str]] = {"content": [], "refusal": [], "reasoning_content": []}
        self._made: dict[int, Block] = {}
        self._usage: Any = {}
        self._model = ""
        self._reason: str | None = None

    def take(self, chunk: Any) -> None:  # JSON of whatever came
        """Note one chunk."""
        if not isinstance(chunk, dict):
            raise ModelFault("bad_reply", "a chunk of the reply has another shape")
        if chunk.get("error"):
            raise ModelFault("unavailable", "the provider failed in the middle of the reply")
        self._model = str(chunk.get("model") or self._model)
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices")
        for choice in choices[:1] if isinstance(choices, list) else ():
            try:
                self._reason = choice.get("finish_reason") or self._reason
                self._delta(choice.get("delta") or {})
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                raise ModelFault("bad_reply", "a chunk of the reply has another shape") from error

    def _delta(self, delta: Block) -> None:
        for name, pieces in self._texts.items():
            piece = delta.get(name)
            if isinstance(piece, str):
                pieces.append(piece)
                if name == "content":
                    self._spoken.say(piece)
        for part in delta.get("tool_calls") or ():
            index = part.get("index")
            index = index if isinstance(index, int) else max(self._made, default=-1) + 1
            made = self._made.setdefault(index, {"id": "", "function": {"name": "", "arguments": ""}})
            made["id"] = part.get("id") or made["id"]
            made |= {name: part[name] for name in _REPLAYED_CALL if part.get(name)}
            function = part.get("function") or {}
            made["function"]["name"] += function.get("name") or ""
            made["function"]["arguments"] += function.get("arguments") or ""

    def usage(self) -> Usage:
        """What was used, as far as the stream has said."""
        return _usage({"usage": self._usage})

    def whole(self) -> Block:
        """The whole completion.

        Raises:
            ModelFault: unavailable, if the stream ended before the reply did.
        """
        if self._reason is None:
            raise ModelFault("unavailable", "the reply broke off", usage=self.usage())
        message: Block = {name: "".join(pieces) for name, pieces in self._texts.items() if pieces}
        if self._made:
            message["tool_calls"] = [self._made[index] for index in sorted(self._made)]
        choice = {"message": message, "finish_reason": self._reason}
        return {"choices": [choice], "usage": self._usage, "model": self._model}
