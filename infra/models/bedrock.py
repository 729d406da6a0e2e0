"""`ChatModel` over Amazon Bedrock's Converse and ConverseStream.

What lives here: Converse's request, reply and stream. What must never live here: retries (`infra.models.patience`;
botocore repeats nothing here) and which model can do what (`infra.models.families`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from core.model.instants import Instant
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
from core.models.choice import ModelChoice
from core.ports import Clock
from infra.models import texts
from infra.models.bedrock_faults import bedrock_faults
from infra.models.patience import Patience, Spoken
from infra.models.wire import Block, Wire, count, member, merged

if TYPE_CHECKING:
    from infra.aws.clients import Clients

_KEEP: Final = {"cachePoint": {"type": "default"}}
_STOPS: Final[dict[str, Stop]] = {
    "end_turn": "end", "stop_sequence": "end", "tool_use": "tools", "max_tokens": "length",
    "model_context_window_exceeded": "length", "guardrail_intervened": "refused", "content_filtered": "refused",
}  # fmt: skip
_MALFORMED: Final = frozenset({"malformed_model_output", "malformed_tool_use"})
_LEAST_S: Final = 0.05


class BedrockModel(Wire[Block]):
    """A model, or an inference profile, of Bedrock in the clients' region."""

    def __init__(
        self,
        choice: ModelChoice,
        clients: Clients,
        clock: Clock,
        patience: Patience,
        capabilities: Capabilities,
    ) -> None:
        super().__init__(choice, patience, capabilities)
        self._clients = clients
        self._clock = clock

    def _encoded(self, request: ChatRequest, *, streams: bool) -> Block:  # noqa: ARG002 - the method asked says it
        scrubbed: Block = texts.scrubbed(self.body(request))
        return scrubbed

    def _ask(self, body: Block, deadline: Instant) -> Any:
        with bedrock_faults(self._clock):
            return self._client(deadline).converse(**body)

    def _events(self, body: Block, deadline: Instant, check: Callable[[], None]) -> Generator[Any]:
        with bedrock_faults(self._clock):
            events = self._client(deadline).converse_stream(**body)["stream"]
            try:
                for event in events:
                    check()
                    yield event
            finally:
                close = getattr(events, "close", None)
                if close is not None:
                    close()

    def _client(self, deadline: Instant) -> Any:  # boto3's
        return self._clients.bedrock(max(_LEAST_S, (deadline - self._clock.now()) / 1000))

    def _assembly(self, spoken: Spoken) -> _Answer:
        return _Answer(spoken)

    # --- the request

    def body(self, request: ChatRequest) -> dict[str, Any]:
        """The arguments of Converse."""
        family = self._family
        offers = bool(request.tools) and request.choice != "none"  # Converse has no choice of "none"
        told = request.schema is not None and family.schema != "json_schema"
        system = texts.in_words(request.system, request.schema or {}) if told else request.system
        turns = request.turns if offers else texts.without_calls(request.turns)
        if system and not family.system:
            turns = (Turn("user", system), *turns)
        settings: Block = {"maxTokens": self._most(request)}
        if family.temperature:
            settings["temperature"] = request.temperature
        body: dict[str, Any] = {
            "modelId": self._choice.model,
            "messages": merged(turns, partial(_blocks, result_status=family.result_status)),
            "inferenceConfig": settings,
        }
        if system and family.system:
            body["system"] = [{"text": system}, *([_KEEP] if family.cache else [])]
        if offers:
            body["toolConfig"] = self._tools(request)
            if family.cache and body["messages"]:
                body["messages"][-1]["content"].append(_KEEP)
        if request.schema is not None and not told:
            schema = texts.encode(texts.closed(request.schema), order="deterministic").decode()
            structure = {"jsonSchema": {"schema": schema, "name": "reply"}}
            body["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": structure}}
        if family.extra:
            body["additionalModelRequestFields"] = dict(family.extra)
        return body

    def _tools(self, request: ChatRequest) -> dict[str, Any]:
        specs = [
            {
                "toolSpec": {
                    "name": tool.name,
                    "description": tool.description,
                    "inputSchema": {"json": tool.parameters},
                }
            }
            for tool in request.tools
        ]
        if request.choice == "auto" or not self._family.forced_tool:
            # Auto is what is done without a choice, and not every model takes the word.
            return {"tools": specs}
        choice: Block = {"any": {}} if request.choice == "required" else {"tool": {"name": request.choice}}
        return {"tools": specs, "toolChoice": choice}

    # --- the reply

    def _reply(self, answer: Any, request: ChatRequest) -> ChatReply:  # JSON of whatever came
        output = answer.get("output") or {}
        content = (output.get("message") or {}).get("content")
        reason, usage = answer.get("stopReason"), _usage(answer)
        if not isinstance(content, list):
            raise ModelFault("bad_reply", "the reply has no content", usage=usage)
        if reason in _MALFORMED:
            raise ModelFault("bad_reply", "the model wrote what Bedrock could not read", usage=usage)
        text = "".join(block["text"] for block in content if "text" in block)
        calls = _calls(content, cut=reason == "max_tokens")
        # Converse does not say which model answered.
        return self._finished(request, text, calls, _STOPS.get(str(reason)), usage)


def _blocks(turn: Turn, *, result_status: bool) -> list[Block]:
    blocks: list[Block] = []
    for call in turn.calls[:1]:
        blocks += msgspec.json.decode(call.opaque, type=list[_Thought]) if call.opaque else []
    blocks = [block.block() if isinstance(block, _Thought) else block for block in blocks]
    for result in turn.results:
        told = result.content if result.content.strip() else "(nothing)"
        answer: Block = {"toolUseId": texts.safe_name(result.id), "content": [{"text": told}]}
        if result.failed and result_status:
            answer["status"] = "error"
        blocks.append({"toolResult": answer})
    if turn.text.strip():
        blocks.append({"text": turn.text})
    for call in turn.calls:
        made = {"toolUseId": texts.safe_name(call.id), "name": texts.safe_name(call.name)}
        blocks.append({"toolUse": {**made, "input": call.arguments or {}}})
    return blocks


class _Thought(msgspec.Struct, omit_defaults=True):
    """A piece of thinking as it goes back: readable with its signature, or bytes that only the model reads."""

    text: str = ""
    signature: str = ""
    redacted: bytes = b""

    def block(self) -> Block:
        if self.redacted:
            return {"reasoningContent": {"redactedContent": self.redacted}}
        readable: Block = {"text": self.text}
        if self.signature:
            readable["signature"] = self.signature
        return {"reasoningContent": {"reasoningText": readable}}


def _thoughts(content: list[Block]) -> list[_Thought]:
    out = []
    for block in content:
        thought = block.get("reasoningContent")
        if isinstance(thought, dict):
            readable = thought.get("reasoningText") or {}
            hidden = thought.get("redactedContent") or b""
            out.append(_Thought(readable.get("text", ""), readable.get("signature", ""), hidden))
    return out


def _calls(content: list[Block], *, cut: bool) -> tuple[ToolCall, ...]:
    """The calls in a reply. Behind the token limit the last one may not be whole, whatever it looks like."""
    thoughts = _thoughts(content)
    opaque = msgspec.json.encode(thoughts).decode() if thoughts else ""
    uses = [block["toolUse"] for block in content if "toolUse" in block]
    return texts.distinct(
        [
            texts.tool_call(
                str(use.get("toolUseId", "")),
                str(use.get("name", "")),
                use.get("input", {}),
                opaque="" if place else opaque,
                cut=cut and place == len(uses) - 1,
            )
            for place, use in enumerate(uses)
        ]
    )


def _usage(answer: Any) -> Usage:  # JSON of whatever came
    counts = member(answer, "usage")
    cached = count(counts, "cacheReadInputTokens")
    fresh = count(counts, "inputTokens") + count(counts, "cacheWriteInputTokens")
    return Usage(fresh + cached, count(counts, "outputTokens"), cached, 1)


class _Answer:
    """An answer, put together from the events of a stream."""

    def __init__(self, spoken: Spoken) -> None:
        self._spoken = spoken
        self._blocks: dict[int, Block] = {}
        self._answer: dict[str, Any] = {}

    def take(self, event: dict[str, Any]) -> None:
        """Note one event."""
        if "contentBlockStart" in event:
            start = event["contentBlockStart"]
            use = start["start"].get("toolUse")
            if use is not None:
                self._blocks[start["contentBlockIndex"]] = {"toolUse": {**use, "input": ""}}
        elif "contentBlockDelta" in event:
            self._delta(event["contentBlockDelta"]["contentBlockIndex"], event["contentBlockDelta"]["delta"])
        elif "messageStop" in event:
            self._answer["stopReason"] = event["messageStop"]["stopReason"]
        elif "metadata" in event:
            self._answer["usage"] = event["metadata"].get("usage")

    def _delta(self, index: int, delta: Block) -> None:
        if "text" in delta:
            block = self._blocks.setdefault(index, {"text": ""})
            block["text"] += delta["text"]
            self._spoken.say(delta["text"])
        elif "toolUse" in delta:
            self._blocks[index]["toolUse"]["input"] += delta["toolUse"]["input"]
        elif "reasoningContent" in delta:
            piece = delta["reasoningContent"]
            block = self._blocks.setdefault(index, {"reasoningContent": {}})["reasoningContent"]
            if "redactedContent" in piece:
                block["redactedContent"] = block.get("redactedContent", b"") + piece["redactedContent"]
            else:
                readable = block.setdefault("reasoningText", {"text": ""})
                for name in ("text", "signature"):
                    if name in piece:
                        readable[name] = readable.get(name, "") + piece[name]

    def usage(self) -> Usage:
        """What was used, as far as the stream has said."""
        return _usage(self._answer)

    def whole(self) -> Block:
        """The whole answer.

        Raises:
            ModelFault: unavailable, if the stream ended before the reply did.
        """
        if "stopReason" not in self._answer:
            raise ModelFault("unavailable", "the reply broke off", usage=self.usage())
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        return {**self._answer, "output": {"message": {"content": blocks}}}
