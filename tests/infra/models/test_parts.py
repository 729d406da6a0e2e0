"""The parts that the wires share: patience, texts, the table, and what builds models."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.models.chat import ChatReply, FaultKind, ModelFault, Usage
from core.models.choice import ModelChoice, Price, parse_choice
from infra.models import texts
from infra.models.factory import RealProviders
from infra.models.families import TABLE, family_of
from infra.models.patience import TRIES, Patience, Spoken
from tests.doubles import EPOCH, CountingEntropy, FakeClock

# --- patience


def tried(
    *kinds: FaultKind | None, patience_ms: int = 600_000, **options: object
) -> tuple[FakeClock, object]:
    """The clock and the outcome of attempts that end in these faults (None: a reply)."""
    clock, left = FakeClock(), list(kinds)

    def attempt() -> ChatReply:
        kind = left.pop(0)
        if kind is None:
            return ChatReply("Hi.", usage=Usage(1, 1, 0, 1))
        raise ModelFault(kind, "no", usage=Usage(1, 0, 0, 1))

    patience = Patience(clock, CountingEntropy())
    spoken = options.pop("spoken", Spoken(None))
    try:
        return clock, patience.until(EPOCH + patience_ms, attempt, spoken=spoken, size=50, **options)  # type: ignore[arg-type]
    except ModelFault as fault:
        return clock, fault


def test_all_attempts_count() -> None:
    """The reply's usage is of every request that was sent for it."""
    _, reply = tried("rate_limited", "unavailable", None)

    assert isinstance(reply, ChatReply)
    assert reply.usage == Usage(3, 1, 0, 3)


@pytest.mark.parametrize("kind", ["unauthorized", "bad_request", "context_overflow", "cancelled"])
def test_what_no_trying_changes_is_final(kind: FaultKind) -> None:
    """One request, and no waiting."""
    clock, fault = tried(kind, None)

    assert isinstance(fault, ModelFault)
    assert (fault.kind, fault.usage.requests, clock.slept) == (kind, 1, [])


def test_waits_grow_with_full_jitter_and_end() -> None:
    """Each wait is a random part of a bound that doubles."""
    clock, fault = tried(*["unavailable"] * 9)

    assert isinstance(fault, ModelFault)
    assert fault.usage.requests == TRIES["unavailable"]
    assert 0 < clock.time - EPOCH < 500 + 1000 + 2000 + 4000
    assert max(clock.slept) <= 0.25


def test_no_wait_goes_past_the_deadline() -> None:
    """The last fault is told while the caller can still use it."""
    clock, fault = tried(*["unavailable"] * 9, patience_ms=700)

    assert isinstance(fault, ModelFault)
    assert fault.kind == "unavailable"
    assert clock.time < EPOCH + 700


def test_a_deadline_that_is_over_asks_nobody() -> None:
    """A timeout without a request."""
    _, fault = tried(None, patience_ms=0)

    assert isinstance(fault, ModelFault)
    assert (fault.kind, fault.usage) == ("timeout", Usage())


def test_it_is_cancelled_between_tries_and_while_it_waits() -> None:
    """Within a quarter of a second."""
    asked = iter([False, False, True])
    clock, fault = tried("unavailable", "unavailable", cancelled=lambda: next(asked))

    assert isinstance(fault, ModelFault)
    assert (fault.kind, fault.usage.requests) == ("cancelled", 1)
    assert len(clock.slept) <= 1


@pytest.mark.parametrize(
    ("kind", "tokens"), [("timeout", 50), ("bad_reply", 50), ("unavailable", 0), ("rate_limited", 0)]
)
def test_what_is_most_likely_on_the_bill_is_counted(kind: FaultKind, tokens: int) -> None:
    """A request that was taken and not readably answered, at its size; one that was turned away, not."""

    def attempt() -> ChatReply:
        raise ModelFault(kind, "no", usage=Usage(requests=1))

    with pytest.raises(ModelFault) as caught:
        Patience(FakeClock(), CountingEntropy()).until(EPOCH + 600_000, attempt, spoken=Spoken(None), size=50)

    assert caught.value.usage == Usage(tokens * TRIES[kind], 0, 0, TRIES[kind])


def test_what_was_said_is_not_said_again() -> None:
    """Text went out, so the fault is final."""
    spoken = Spoken(lambda _: None)
    spoken.say("Hi")
    _, fault = tried("unavailable", None, spoken=spoken)

    assert isinstance(fault, ModelFault)
    assert fault.usage.requests == 1


# --- texts


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ('  ```\n{"a": 1}```\n', '{"a": 1}'),
        ('```JSON\r\n{"a": 1}\r\n```', '{"a": 1}'),
        ('Sure:\n```json\n{"a": 1}\n```', 'Sure:\n```json\n{"a": 1}\n```'),
        ("```\nunfinished", "```\nunfinished"),
        ("", ""),
    ],
)
def test_fences(text: str, inner: str) -> None:
    """Taken off only where they hold all of the text."""
    assert texts.unfenced(text) == inner


@pytest.mark.parametrize("piece", [" ", "\n", "\r\n", "` ", "```", "``` \n", "a"])
def test_a_reply_made_to_keep_a_process_busy_is_read_in_one_go(piece: str) -> None:
    """A space may bring any server, and a megabyte of anything takes no longer than its length."""
    for text in (piece * 300_000, f"```\n{piece * 300_000}", f"```\n{piece * 300_000}x```"):
        assert isinstance(texts.unfenced(text), str)


def test_a_schema_within_what_providers_take() -> None:
    """Only the shape stays, at every depth, and every object is closed."""
    schema = {
        "type": "object",
        "$comment": "x",
        "minProperties": 1,
        "properties": {
            "n": {"type": "integer", "minimum": 0, "description": "how many"},
            "list": {"type": "array", "maxItems": 3, "items": {"type": "object", "properties": {"pattern": {"type": "string", "pattern": "x"}}}},
            "either": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        },
        "required": ["n"],
    }  # fmt: skip

    assert texts.closed(schema) == {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "description": "how many"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"pattern": {"type": "string"}}, "additionalProperties": False}},
            "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["n"],
        "additionalProperties": False,
    }  # fmt: skip
    assert not texts.strict(texts.closed(schema))  # list and either need not be there
    assert not texts.strict({"type": "array", "items": {"type": "object"}})
    assert texts.strict(
        {"type": "array", "items": {"type": "object", "properties": {}, "additionalProperties": False}}
    )


def test_names_that_a_model_made_up_can_be_sent_back() -> None:
    """Providers take letters, digits, _ and - in the history too."""
    assert texts.safe_name("functions.search: 茶") == "functions_search___"
    assert texts.safe_name("") == "_"
    assert len(texts.safe_name("x" * 500)) == 64


# --- the table


def test_every_table_ends_with_a_row_for_all() -> None:
    """So a model that nobody has heard of is served by what asks for the least."""
    for rows in TABLE.values():
        assert (rows[-1].host, rows[-1].model) == ("", "")
        for row in rows:
            re.compile(row.host)
            re.compile(row.model)


@pytest.mark.parametrize(
    ("choice", "forced", "temperature", "schema", "extra"),
    [
        ("anthropic:claude-haiku-4-5", True, True, "json_schema", {}),
        ("anthropic:claude-opus-4-7", True, False, "json_schema", {}),
        ("anthropic:claude-opus-5", True, False, "json_schema", {"thinking": {"type": "disabled"}}),
        ("anthropic:claude-opus-5-5", False, False, "json_schema", {}),
        ("anthropic:claude-sonnet-5-5", False, False, "json_schema", {"thinking": {"type": "between_tools"}}),
        ("anthropic:claude-3-5-haiku-latest", True, True, "words", {}),
        ("bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0", True, True, "json_schema", {}),
        (
            "bedrock:arn:aws:bedrock:eu-central-1:1:inference-profile/eu.amazon.nova-pro-v1:0",
            True,
            True,
            "words",
            {},
        ),
        ("bedrock:somebody.something", False, True, "words", {}),
        ("openai:o3@https://api.openai.com/v1", True, False, "json_schema", {}),
        ("openai:gpt-5.6@https://x.openai.azure.com/openai/v1", True, False, "json_schema", {}),
        ("openai:gpt-5@http://127.0.0.1:1/v1", True, True, "json_schema", {}),
        ("openai:m@https://notopenai.com/v1", True, True, "json_schema", {}),
    ],
)
def test_rows(choice: str, forced: bool, temperature: bool, schema: str, extra: dict[str, object]) -> None:
    """The first row that fits counts; a host is known by its end, not by what its name contains."""
    parsed = parse_choice(choice)
    assert parsed is not None
    row = family_of(parsed)

    assert (row.forced_tool, row.temperature, row.schema, row.extra) == (forced, temperature, schema, extra)
    assert row.max_tokens == (
        "max_completion_tokens" if ".openai." in choice + "." or "api.openai.com" in choice else "max_tokens"
    )


DOCUMENTED = {
    "Claude 4.5, 4.6": "anthropic:claude-sonnet-4-6",
    "Claude Opus 4.7, 4.8": "anthropic:claude-opus-4-8",
    "Claude Opus 5, Sonnet 5 (thinking switched off)": "anthropic:claude-sonnet-5",
    "Claude Haiku 5.5 (thinking switched off)": "anthropic:claude-haiku-5-5",
    "Claude Sonnet 5.5 (thinks between tools)": "anthropic:claude-sonnet-5-5",
    "Claude Opus 5.5, Fable, Mythos (always think)": "anthropic:claude-fable-5-1",
    "other Claude, and what is compatible": "anthropic:claude-3-5-haiku-latest",
    "Bedrock: Nova": "bedrock:eu.amazon.nova-lite-v1:0",
    "Bedrock: Mistral Large, Pixtral": "bedrock:mistral.mistral-large-2407-v1:0",
    "Bedrock: Mistral 7B, Mixtral, Titan (no system prompt)": "bedrock:mistral.mixtral-8x7b-instruct-v0:1",
    "Bedrock: others": "bedrock:meta.llama3-3-70b-instruct-v1:0",
    "OpenAI and Azure: o-series, GPT-5 and later (`max_completion_tokens`)": "openai:gpt-5.6@https://api.openai.com/v1",
    "OpenAI and Azure: others (`max_completion_tokens`)": "openai:gpt-4.1@https://api.openai.com/v1",
    "DeepSeek (thinking switched off)": "openai:deepseek-flash@https://api.deepseek.com",
    "Gemini": "openai:gemini-3.8-flash@https://generativelanguage.googleapis.com/v1beta/openai",
    "OpenRouter": "openai:a/b@https://openrouter.ai/api/v1",
    "any other server of chat completions": "openai:m@http://127.0.0.1:8080/v1",
}


def test_the_page_shows_the_table() -> None:
    """docs/models.md says of each row what the row says, and leaves none out."""
    page = (Path(__file__).parents[3] / "docs" / "models.md").read_text("utf-8")
    lines = page.split("## What each can do")[1].split("* **forced tool**")[0].splitlines()
    shown = {
        cells[1]: cells[2:7] for line in lines if len(cells := [c.strip() for c in line.split("|")]) == 8
    }
    del shown["models"], shown["---"]

    assert shown.keys() == DOCUMENTED.keys()
    seen = set()
    for name, choice in DOCUMENTED.items():
        parsed = parse_choice(choice)
        assert parsed is not None
        row = family_of(parsed)
        seen.add((row.host, row.model))
        held = {"json_schema": "yes", "json_object": "JSON, and in words", "words": "in words"}[row.schema]
        kept = "by itself" if parsed.provider == "openai" else "marked" if row.cache else "no"
        assert shown[name] == [
            "yes" if row.forced_tool else "offered",
            "yes" if row.temperature else "no",
            held + ("" if row.schema_with_tools else ", but in words beside tools"),
            kept,
            f"{row.context_tokens:,}",
        ], name
    known = {(row.host, row.model) for rows in TABLE.values() for row in rows}
    twice = {each for each in known if each[1].startswith(r"anthropic\.claude")}  # Claude again, on Bedrock
    assert known - twice == seen - twice


# --- what builds models


def providers(**options: object) -> RealProviders:
    return RealProviders(FakeClock(), CountingEntropy(), lambda: None, **options)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("choice", ["anthropic:m", "bedrock:m", "openai:m@http://127.0.0.1:9/v1"])
def test_nothing_that_may_cost_is_built_in_a_test(choice: str) -> None:
    """Unless whoever builds it says so."""
    parsed = parse_choice(choice)
    assert parsed is not None

    with pytest.raises(RuntimeError, match="may spend"):
        providers().model(parsed, lambda: None, trusted=True)


def test_prices_and_sizes_are_the_operators_word() -> None:
    """They go before what the table knows."""
    choice = ModelChoice("anthropic", "claude-haiku-4-5", "https://api.anthropic.com", context_tokens=9_000)
    built = providers(may_spend=True, prices={choice.name: Price(1000, 5000, 100)}).model(
        choice, lambda: "k", trusted=True
    )

    known = built.capabilities
    assert (known.price_in, known.price_out, known.price_cached, known.context_tokens) == (
        1000,
        5000,
        100,
        9_000,
    )
    assert built.name == "anthropic:claude-haiku-4-5"


def test_an_owners_address_is_not_the_operators() -> None:
    """What an operator may reach, the owner of a space may not."""
    local = ModelChoice("openai", "m", "http://127.0.0.1:8080/v1")
    builder = providers(may_spend=True)

    builder.model(local, lambda: None, trusted=True)
    with pytest.raises(ValueError, match="https"):
        builder.model(local, lambda: None, trusted=False)
    with pytest.raises(ValueError, match="own rights"):
        builder.model(ModelChoice("bedrock", "m"), lambda: None, trusted=False)
