"""`ChatModel` over chat completions as OpenAI defined them, which most servers speak.

OpenAI, Ollama, vLLM, llama.cpp, DeepSeek, Gemini's compatible endpoint.

What lives here: that interface's request, reply and stream. What must never live here: retries and HTTP
(`infra.models.patience`, `infra.models.http`) and which server can do what (`infra.models.families`).

Servers differ in what they leave out: ids, usage, the text of arguments. What is missing is told from what is
there; what contradicts itself is a `bad_reply`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any, Final

import msgspec

from core.model.instants import Instant
from core.models.budget import estimate_request
from core.models.chat import (
    Capabilities,
    ChatReply,
    ChatRequest,
    ModelFault,
    Stop,
    ToolCall,
    Turn,
    Usage,
)
from core.models.choice import Key, ModelChoice
from infra.models import texts
from infra.models.families import family_of
from infra.models.http import Http
from infra.models.patience import Cancelled, Patience, Spoken

_STOPS: Final[dict[str, Stop]] = {
    "stop": "end", "length": "length", "tool_calls": "tools", "function_call": "tools", "content_filter": "refused",
}  # fmt: skip
_FAILED: Final = frozenset({"error", "insufficient_system_resource"})  # OpenRouter's, DeepSeek's
_REPLAYED: Final = ("reasoning_content",)  # of a message: DeepSeek wants its thinking back with the calls
_REPLAYED_CALL: Final = ("extra_content",)  # of a call: Gemini's signature

Part = dict[str, Any]  # JSON of a part of a message


class OpenAiModel:
    """A model behind `<base_url>/chat/completions`."""

    def __init__(
        self, choice: ModelChoice, key: Key, http: Http, patience: Patience, capabilities: Capabilities
    ) -> None:
        self._choice = choice
        self._family = family_of(choice)
        self._key = key
        self._http = http
        self._patience = patience
        self._capabilities = capabilities
        self._url = f"{choice.base_url}/chat/completions"

    @property
    def name(self) -> str:
        """As the operator configured it."""
        return self._choice.name

    @property
    def capabilities(self) -> Capabilities:
        """What the wire can do."""
        return self._capabilities

    def chat(
        self,
        request: ChatRequest,
        *,
        deadline: Instant,
        on_text: Callable[[str], None] | None = None,
        cancelled: Cancelled = None,
    ) -> ChatReply:
        """One reply; see `ChatModel.chat`."""
        spoken = Spoken(on_text)
        streams = spoken.wanted and self._family.stream
        body = self.body(request)
        if streams:
            body["stream"] = True
            if self._family.stream_usage:
                body["stream_options"] = {"include_usage": True}
        sent = texts.encode(body)

        def attempt() -> ChatReply:
            if not streams:
                return self._reply(self._http.ask(self._url, self._headers(), sent, deadline), request)
            return self._streamed(sent, request, deadline, spoken, cancelled)

        reply = self._patience.until(
            deadline, attempt, spoken=spoken, size=estimate_request(request), cancelled=cancelled
        )
        if not streams:
            spoken.say(reply.text)
        return reply

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
        limit = self._choice.max_output or request.max_tokens
        body: dict[str, Any] = {
            "model": self._choice.model,
            "messages": _messages(system, turns),
            family.max_tokens: min(request.max_tokens, limit),
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

    def _format(self, schema: Any) -> Part:  # JSON
        if self._family.schema == "json_object":
            return {"type": "json_object"}
        return {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": schema, "strict": texts.strict(schema)},
        }

    # --- the reply

    def _streamed(
        self, body: bytes, request: ChatRequest, deadline: Instant, spoken: Spoken, cancelled: Cancelled
    ) -> ChatReply:
        whole = _Assembly(spoken)

        def check() -> None:
            self._patience.check(deadline, cancelled, whole.usage())

        events = self._http.events(self._url, self._headers(), body, deadline, check)
        try:
            with closing(events):
                for event in events:
                    whole.take(event)
        except ModelFault as fault:
            kept = ModelFault(
                fault.kind, fault.message, retry_after_ms=fault.retry_after_ms, usage=whole.usage()
            )
            raise kept from fault
        return self._reply(whole.completion(), request)

    def _reply(self, completion: Any, request: ChatRequest) -> ChatReply:  # JSON of whatever came
        """The reply in a completion.

        Raises:
            ModelFault: bad_reply, if there is none; unavailable, if the server says it failed.
        """
        usage = _usage(completion)
        if isinstance(completion, dict) and completion.get("error"):
            raise ModelFault("unavailable", "the provider answered with an error", usage=usage)
        choices = completion.get("choices") if isinstance(completion, dict) else None
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
        if stop is None and not text and not calls:
            raise ModelFault("bad_reply", "the reply is empty and does not say why", usage=usage)
        if calls and stop not in ("refused", "length"):
            stop = "tools"
        return ChatReply(
            text=texts.unfenced(text) if request.schema is not None else text,
            calls=calls,
            stop="end" if stop is None or (stop == "tools" and not calls) else stop,
            usage=usage,
            model=str(completion.get("model") or self._choice.model),
        )


def _messages(system: str, turns: Iterable[Turn]) -> list[Part]:
    out: list[Part] = [{"role": "system", "content": system}] if system else []
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


def _made(calls: tuple[ToolCall, ...]) -> Part:
    """Calls as they go back. Broken arguments go back as none: servers parse what they are given."""
    message: Part = {}
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


def _calls(message: Part, *, cut: bool) -> tuple[ToolCall, ...]:
    found = message.get("tool_calls")
    made = [call for call in found if isinstance(call, dict)] if isinstance(found, list) else []
    thought = {name: message[name] for name in _REPLAYED if isinstance(message.get(name), str)}
    calls = []
    for place, call in enumerate(made):
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        signed = {name: call[name] for name in _REPLAYED_CALL if call.get(name)}
        opaque: Part = {"message": thought} if thought and not place else {}
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
    found = completion.get("usage") if isinstance(completion, dict) else None
    counts = found if isinstance(found, dict) else {}
    details = counts.get("prompt_tokens_details")
    cached = _count(details, "cached_tokens") or _count(counts, "prompt_cache_hit_tokens")
    return Usage(_count(counts, "prompt_tokens"), _count(counts, "completion_tokens"), cached, 1)


def _count(counts: Any, name: str) -> int:  # JSON of whatever came
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if isinstance(value, int) and value > 0 else 0


class _Assembly:
    """A completion, put together from the chunks of a stream."""

    def __init__(self, spoken: Spoken) -> None:
        self._spoken = spoken
        self._texts: dict[str, list[str]] = {"content": [], "refusal": [], "reasoning_content": []}
        self._made: dict[int, Part] = {}
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

    def _delta(self, delta: Part) -> None:
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

    def completion(self) -> Part:
        """The whole completion.

        Raises:
            ModelFault: unavailable, if the stream ended before the reply did.
        """
        if self._reason is None:
            raise ModelFault("unavailable", "the reply broke off", usage=self.usage())
        message: Part = {name: "".join(pieces) for name, pieces in self._texts.items() if pieces}
        if self._made:
            message["tool_calls"] = [self._made[index] for index in sorted(self._made)]
        choice = {"message": message, "finish_reason": self._reason}
        return {"choices": [choice], "usage": self._usage, "model": self._model}
