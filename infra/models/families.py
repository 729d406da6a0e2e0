"""What each provider's models can do and how their wires spell it: one table, the first row that fits counts.

What lives here: data. What must never live here: a request being built, which reads its row. A row is written from
the provider's published interface; a model that no row names gets its provider's last row, which asks for the
least. A wrong row costs a refused request (`bad_request`), never a wrong answer: replies are checked anyway.
"""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec

from core.model.elements import Json
from core.models.chat import Capabilities
from core.models.choice import ModelChoice

SchemaMode = Literal["json_schema", "json_object", "words"]
"""How a reply is held to a schema: by the schema itself, to JSON at least, or by being told."""


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """One row. `host` and `model` are regular expressions searched in the base URL's host and the model's name.

    forced_tool: it takes a tool choice other than auto and none. temperature: it takes one at all. schema: see
    `SchemaMode`. schema_with_tools: also in a request that offers tools. system: it has a system prompt.
    max_tokens: the field's name. cache: it takes marks of what to keep (cache_control, cachePoint). result_status:
    it takes the mark of a failed tool result. stream: it sends text as it comes. stream_usage: it is asked for the
    usage of a stream. extra: members that every request has, such as thinking switched off, which would come out of
    the reply's tokens and forbid a forced tool.
    """

    host: str = ""
    model: str = ""
    forced_tool: bool = True
    temperature: bool = True
    schema: SchemaMode = "words"
    schema_with_tools: bool = True
    system: bool = True
    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    cache: bool = False
    result_status: bool = True
    stream: bool = True
    stream_usage: bool = True
    extra: dict[str, Json] = {}
    context_tokens: int = 128_000

    def capabilities(self, choice: ModelChoice) -> Capabilities:
        """The row as the rest of the product sees it."""
        return Capabilities(
            forced_tool=self.forced_tool,
            schema=self.schema == "json_schema",
            streaming=self.stream,
            context_tokens=choice.context_tokens or self.context_tokens,
        )


_NO_THINKING: Final[dict[str, Json]] = {"thinking": {"type": "disabled"}}
_BETWEEN: Final[dict[str, Json]] = {"thinking": {"type": "between_tools"}}


def _claude(prefix: str) -> tuple[Family, ...]:
    """Claude's rows, the same on both wires. From 4.7 on no temperature is taken; from 5 on it thinks by default."""
    return (
        # Thinking cannot be switched off, and a forced tool is refused while it is on.
        Family(
            model=rf"{prefix}(opus-5-5|fable-|mythos-)", forced_tool=False, temperature=False,
            schema="json_schema", cache=True, context_tokens=1_000_000,
        ),
        Family(
            model=rf"{prefix}sonnet-5-5", forced_tool=False, temperature=False,
            schema="json_schema", cache=True, extra=_BETWEEN, context_tokens=1_000_000,
        ),
        # Whether Haiku 5.5 takes a forced tool is not published; so it is not asked to.
        Family(
            model=rf"{prefix}haiku-5", forced_tool=False, temperature=False,
            schema="json_schema", cache=True, extra=_NO_THINKING, context_tokens=1_000_000,
        ),
        Family(
            model=rf"{prefix}(opus|sonnet)-5", temperature=False,
            schema="json_schema", cache=True, extra=_NO_THINKING, context_tokens=1_000_000,
        ),
        Family(
            model=rf"{prefix}opus-4-[78]", temperature=False,
            schema="json_schema", cache=True, context_tokens=200_000,
        ),
        Family(
            model=rf"{prefix}(opus|sonnet|haiku)-4-[56]",
            schema="json_schema", cache=True, context_tokens=200_000,
        ),
    )  # fmt: skip


ANTHROPIC: Final[tuple[Family, ...]] = (
    *_claude("claude-"),
    Family(cache=True, context_tokens=200_000),  # older, or one of a compatible endpoint
)

BEDROCK: Final[tuple[Family, ...]] = (
    *_claude(r"anthropic\.claude-"),
    Family(model=r"anthropic\.claude", cache=True, context_tokens=200_000),
    Family(model=r"amazon\.nova-(micro|lite|pro|premier|2)", cache=True, context_tokens=128_000),
    Family(model=r"mistral\.(mistral-large|pixtral)", result_status=False, context_tokens=128_000),
    Family(
        model=r"(mistral\.(mistral-7b|mixtral)|amazon\.titan)",
        forced_tool=False, system=False, result_status=False, context_tokens=8_000,
    ),
    Family(forced_tool=False, result_status=False, context_tokens=32_000),
)  # fmt: skip

OPENAI: Final[tuple[Family, ...]] = (
    # Reasoning models take no temperature.
    Family(
        host=r"(^|\.)(openai\.com|openai\.azure\.com)(:|$)", model=r"^(o\d|gpt-[5-9])",
        temperature=False, schema="json_schema", max_tokens="max_completion_tokens", context_tokens=200_000,
    ),
    Family(
        host=r"(^|\.)(openai\.com|openai\.azure\.com)(:|$)",
        schema="json_schema", max_tokens="max_completion_tokens", context_tokens=128_000,
    ),
    Family(host=r"(^|\.)deepseek\.com(:|$)", schema="json_object", extra=_NO_THINKING, context_tokens=128_000),
    Family(host=r"(^|\.)generativelanguage\.googleapis\.com(:|$)", schema="json_schema", context_tokens=1_000_000),
    Family(host=r"(^|\.)openrouter\.ai(:|$)", schema="json_schema"),
    # llama.cpp, vLLM, Ollama and whatever else: a grammar for the schema, but not beside tools.
    Family(schema="json_schema", schema_with_tools=False, context_tokens=32_000),
)  # fmt: skip

TABLE: Final[dict[str, tuple[Family, ...]]] = {"anthropic": ANTHROPIC, "bedrock": BEDROCK, "openai": OPENAI}


def family_of(choice: ModelChoice) -> Family:
    """The row of a model."""
    host = choice.base_url.partition("://")[2].partition("/")[0].lower()
    return next(
        row
        for row in TABLE[choice.provider]
        if re.search(row.host, host) and re.search(row.model, choice.model.lower())
    )
