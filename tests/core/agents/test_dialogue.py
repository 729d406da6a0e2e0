"""What is accepted as a dialogue or a question, and how it is read."""

from typing import Any

import msgspec
import pytest

from core.agents.dialogue import Context, Dialogue, check_query, read_dialogue
from core.errors import NoemaError
from core.model.instants import parse_instant
from core.protocol import http_types as wire

NOW = parse_instant("2026-06-01T00:00:00Z")
HI = [{"role": "user", "content": "hi"}]


def read(**body: Any) -> tuple[Dialogue, list[str]]:
    """A dialogue from what JSON decodes to."""
    return read_dialogue(msgspec.convert({"messages": HI, **body}, wire.FormationInput), now=NOW)


@pytest.mark.parametrize(
    ("content", "kept", "text"),
    [
        ("plain", "plain", "plain"),
        (["one part"], "one part", "one part"),
        ([{"type": "text", "text": "one part"}], "one part", "one part"),
        (["a", {"type": "text", "text": "b"}], ["a", {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "image", "url": "u"}, "seen"], [{"type": "image", "url": "u"}, "seen"], "seen"),
        ([{"type": "text", "text": "a", "lang": "en"}], [{"type": "text", "text": "a", "lang": "en"}], "a"),
    ],
)
def test_content_is_text_or_parts_kept_as_they_came(content: Any, kept: Any, text: str) -> None:
    """One plain text part is its text; any other array stays as it came, and its words are its text parts."""
    (message,) = read(messages=[{"role": "user", "content": content}])[0].messages

    assert message.content == kept
    assert message.text == text


@pytest.mark.parametrize(
    "context",
    [
        {"counterparty": "u1", "topic": "tea"},
        {"user": "u1", "topic": "tea"},
        '{"counterparty": "u1", "topic": "tea"}',
        '"{\\"counterparty\\": \\"u1\\", \\"topic\\": \\"tea\\"}"',
    ],
)
def test_context_comes_as_an_object_or_as_text_of_one(context: Any) -> None:
    """An object, its older member name, and the object encoded once or twice are one context."""
    assert read(context=context)[0].context == Context(counterparty="u1", topic="tea")


@pytest.mark.parametrize("context", [None, "", "  ", "null", {}])
def test_no_context_is_no_context(context: Any) -> None:
    """Null and empty text are no context."""
    assert read(context=context)[0].context == Context()


@pytest.mark.parametrize("context", ["not json", "[1]", "{", "3"])
def test_a_context_that_is_no_object_is_refused(context: str) -> None:
    """Text that is not an object's JSON is refused by name."""
    with pytest.raises(NoemaError) as caught:
        read(context=context)

    assert caught.value.details == {"member": "context"}


@pytest.mark.parametrize("role", ["constructor", "__proto__", "narrator", "USER", "функция"])
def test_an_unknown_role_is_kept_and_files_messages(role: str) -> None:
    """Roles are data: an unknown one is no error and no attribute."""
    (message,) = read(messages=[{"role": role, "content": "hi"}])[0].messages

    assert message.role == role
    assert message.evidence_class == "message"


@pytest.mark.parametrize(
    ("role", "name"),
    [
        ("user", "user_statement"),
        ("assistant", "agent_statement"),
        ("tool", "tool_result"),
        ("system", "message"),
    ],
)
def test_the_evidence_class_goes_by_role(role: str, name: str) -> None:
    """A closed table gives the evidence class."""
    (message,) = read(messages=[{"role": role, "content": "hi"}])[0].messages

    assert message.evidence_class == name


@pytest.mark.parametrize("when", ["2026-05-08T13:56:00+08:00", 1_778_219_760_000, 1_778_219_760_000.0])
def test_a_time_is_rfc_3339_or_milliseconds(when: Any) -> None:
    """Any offset becomes UTC milliseconds."""
    dialogue, warnings = read(timestamp=when)

    assert dialogue.timestamp == 1_778_219_760_000
    assert warnings == []


@pytest.mark.parametrize(
    "when",
    [
        "yesterday",
        "2026-13-01T00:00:00Z",
        "2026-05-08",
        "2090-01-01T00:00:00Z",
        -(10**17),
        1e300,
        "2026-05-08T13:56:00.1234567Z",
    ],
)
def test_an_unusable_time_is_left_out_with_a_warning(when: Any) -> None:
    """A time that is none, is impossible, or lies in the future is replaced, and the answer says so."""
    dialogue, warnings = read(timestamp=when, messages=[{**HI[0], "timestamp": when}])

    assert dialogue.timestamp is None
    assert dialogue.messages[0].timestamp is None
    assert [text.partition(" is ")[0] for text in warnings] == ["messages[0].timestamp", "timestamp"]


def test_messages_take_their_own_time_else_the_conversations_else_the_arrival() -> None:
    """Settling dates every message."""
    dialogue, _ = read(messages=[{**HI[0], "timestamp": 5}, HI[0]], timestamp="2026-05-01T00:00:00Z")
    bare, _ = read()

    assert [m.timestamp for m in dialogue.settled(9).messages] == [5, parse_instant("2026-05-01T00:00:00Z")]
    assert [m.timestamp for m in bare.settled(9).messages] == [9]


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": ""}],
        [{"role": "user", "content": " \n\t"}],
        [{"role": "tool", "content": []}],
    ],
)
def test_a_conversation_without_words_is_refused(messages: list[Any]) -> None:
    """At least one message must hold something."""
    with pytest.raises(NoemaError) as caught:
        read(messages=messages)

    assert caught.value.code == "InvalidInput"


def test_empty_messages_beside_a_full_one_are_kept() -> None:
    """An empty message keeps its place."""
    assert len(read(messages=[{"role": "user", "content": ""}, *HI])[0].messages) == 2


@pytest.mark.parametrize("where", ["content", "role", "name", "user", "parts"])
def test_a_lone_surrogate_is_refused_by_name(where: str) -> None:
    """Text without a UTF-8 form cannot be kept as it came, so it is refused, and nothing crashes."""
    message: dict[str, Any] = {"role": "user", "content": "hi"}
    message["content" if where == "parts" else where] = (
        ["a", {"type": "text", "text": "\ud800"}] if where == "parts" else "a\udc00b"
    )
    body = wire.FormationInput(messages=[wire.Message(**message)])

    with pytest.raises(NoemaError) as caught:
        read_dialogue(body, now=NOW)

    assert "surrogate" in caught.value.message
    assert caught.value.details["member"].startswith("messages[0]")


def test_a_conversation_over_the_size_is_refused_with_both_numbers() -> None:
    """100,000 estimated tokens pass, one more does not."""
    read(messages=[{"role": "user", "content": "a" * 400_000}])
    with pytest.raises(NoemaError) as caught:
        read(messages=[{"role": "user", "content": "a" * 400_001}])

    assert caught.value.code == "PayloadTooLarge"
    assert caught.value.details == {"estimated_tokens": 100_001, "limit_tokens": 100_000}


def test_a_question_is_bounded_and_not_blank() -> None:
    """65,535 estimated tokens pass; blank and larger ones do not."""
    check_query("a" * 4 * 65_535)
    for bad in ("", "  ", "a" * (4 * 65_535 + 1), "\ud800"):
        with pytest.raises(NoemaError):
            check_query(bad)


def test_equal_input_has_one_digest_and_any_difference_another() -> None:
    """The identity of Evidence covers messages, context and time."""
    digests = {
        read(**body)[0].settled(7).digest()
        for body in (
            {},
            {"timestamp": 5},
            {"context": {"topic": "x"}},
            {"messages": [*HI, *HI]},
            {"messages": [{**HI[0], "name": "A"}]},
        )
    }

    assert len(digests) == 5
    assert read()[0].settled(7).digest() == read()[0].settled(7).digest()
    assert read()[0].settled(8).digest() != read()[0].settled(7).digest()
