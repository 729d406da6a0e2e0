"""Whatever is said, in any script and any nonsense, is filed exactly and read without a fault."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from core.model.elements import Assertion, Evidence
from tests.core.agents.memory import Memory

WORDS = st.sampled_from(
    [
        "I",
        "my",
        "am",
        "not",
        "no longer",
        "live in",
        "moved to",
        "Berlin",
        "Munich",
        "from",
        "used to",
        "love",
        "hate",
        "sushi",
        "is",
        "it's",
        "actually",
        "sister",
        "Anna",
        "'s",
        "named",
        "and",
        ",",
        ".",
        "?",
        "!",
        '"',
        "“",
        "”",
        "last week",
        "on Friday",
        "since 2019",
        "UTC+1",
        "a nurse",
        "work for",
        "Acme",
        "remind me to",
        "I'll",
        "send",
        "by",
        "tomorrow",
        "birthday",
        "May 5",
        "favorite color",
        "blue",
        "\n",
        "if",
        "said",
        ">",
        "`",
        ";",
        "…",
        "我",
        "住在",
        "北京",
        "🙂",
        "\u200b",
        "\u202e",
        "İ",
    ]
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=30).map(" ".join)
ANYTHING = st.text(st.characters(codec="utf-8"), min_size=1, max_size=80)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "tool", "constructor"]),
            "content": SENTENCES | ANYTHING,
        },
        optional={
            "name": st.sampled_from(["Alice", "Bob", "Anna"]) | ANYTHING,
            "timestamp": st.integers(0, 1_770_000_000_000),
        },
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(MESSAGES)
def test_any_conversation_is_filed_exactly(messages: list[Any]) -> None:
    """Every message that is not empty is one Evidence with its exact text, in order, and lineage holds together."""
    memory = Memory()
    if not any(message["content"].strip() for message in messages):
        return
    memory.form(messages)

    filed = [e.payload.inline for e in memory.all("evidence") if isinstance(e, Evidence)]
    assert filed == [message["content"] for message in messages]
    for claim in memory.all("assertion"):
        assert isinstance(claim, Assertion)
        assert (claim.status == "superseded") == bool(claim.superseded_by)
        assert all(memory.state.get(found) is not None for found in (*claim.superseded_by, *claim.supersedes))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(MESSAGES, MESSAGES)
def test_forming_twice_is_forming_once(first: list[Any], second: list[Any]) -> None:
    """A conversation formed again after another one adds nothing."""
    for messages in (first, second):
        if not any(message["content"].strip() for message in messages):
            return
    memory = Memory()
    memory.form(first)
    memory.form(second, at="2026-05-02T10:00:00Z")
    before = memory.state

    memory.form(first)
    memory.form(second, at="2026-05-02T10:00:00Z")
    assert memory.state is before
