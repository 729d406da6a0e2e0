"""Conversation files become formation requests, with nothing that was said changed."""

import json

import pytest

from functions.cli.terminal import Failure
from functions.cli.transcripts import MAX_CHARACTERS, MAX_MESSAGES, read

LOCOMO = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bo",
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_2": [{"speaker": "Bo", "text": "Second.", "dia_id": "D2:1"}],
        "session_1_date_time": "12:09 am on 13 September, 2023",
        "session_1": [
            {"speaker": "Ann", "text": "Look!", "blip_caption": "a dog", "dia_id": "D1:1"},
            {"speaker": "Bo", "text": "  Nice.  ", "dia_id": "D1:2"},
        ],
        "session_3_date_time": "later",
        "session_3": [],
    },
}


def test_locomo_sessions_come_in_order_with_speaker_and_date() -> None:
    """Each session is one request, dated in UTC; empty ones are left out."""
    first, second = read(json.dumps(LOCOMO), "f.json")

    assert first.body == {
        "messages": [
            {"role": "user", "name": "Ann", "content": "Look! [shows a picture: a dog]"},
            {"role": "user", "name": "Bo", "content": "  Nice.  "},
        ],
        "context": {"source": "conv-1 session 1"},
        "timestamp": "2023-09-13T00:09:00Z",
    }
    assert second.body["timestamp"] == "2023-05-08T13:56:00Z"


def test_one_of_several_samples_is_chosen_by_name() -> None:
    """A file with several conversations asks which, and names them."""
    text = json.dumps([LOCOMO, {**LOCOMO, "sample_id": "conv-2"}])

    assert read(text, "f.json", "conv-2")[0].label == "conv-2 session 1"
    with pytest.raises(Failure) as unnamed:
        read(text, "f.json")
    assert unnamed.value.hint == "Choose one with --sample: conv-1, conv-2"
    with pytest.raises(Failure, match="no sample conv-9"):
        read(text, "f.json", "conv-9")


MESSAGE = {"role": "user", "content": "hi", "name": "Ann", "timestamp": 1}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([MESSAGE, MESSAGE]),
        json.dumps({"messages": [MESSAGE, MESSAGE]}),
        json.dumps([{"messages": [MESSAGE, MESSAGE]}]),
        json.dumps(MESSAGE) + "\n\n" + json.dumps(MESSAGE) + "\n",
        json.dumps({"messages": [MESSAGE, MESSAGE], "unknown": 1}),
    ],
)
def test_messages_stay_as_they_are(text: str) -> None:
    """JSON and JSONL, bare messages and conversations, come to the same request."""
    (session,) = read(text, "f")

    assert session.body == {"messages": [MESSAGE, MESSAGE]}


def test_a_long_conversation_goes_in_parts() -> None:
    """Every message is in exactly one part, in order."""
    messages = [{"role": "user", "content": str(n)} for n in range(2 * MAX_MESSAGES + 1)]

    parts = read(json.dumps(messages), "f")

    assert [len(part.body["messages"]) for part in parts] == [MAX_MESSAGES, MAX_MESSAGES, 1]
    assert [m for part in parts for m in part.body["messages"]] == messages
    assert len({part.key for part in parts}) == 3


def test_long_messages_go_in_parts_by_size() -> None:
    """A part stays below what a request may carry; a message that is longer itself goes alone and whole."""
    sizes = [MAX_CHARACTERS // 2, MAX_CHARACTERS // 3, MAX_CHARACTERS // 3, MAX_CHARACTERS * 2, 10]
    messages = [{"role": "user", "content": "x" * size} for size in sizes]

    parts = read(json.dumps(messages), "f")

    assert [[len(m["content"]) for m in part.body["messages"]] for part in parts] == [
        sizes[:2], sizes[2:3], sizes[3:4], sizes[4:],
    ]  # fmt: skip


def test_a_key_follows_the_content() -> None:
    """The same conversation has the same key in a file that has grown; another content has another."""
    one = {"messages": [MESSAGE]}
    two = {"messages": [{**MESSAGE, "content": "ho \ud800"}]}

    short, grown = read(json.dumps([one]), "f"), read(json.dumps([one, two]), "f")

    assert short[0].key == grown[0].key
    assert grown[0].key != grown[1].key


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "holds no messages"),
        ("[]", "holds no messages"),
        ("hello", "line 1 cannot be read"),
        ('{"role": "user", "content": "x"}\n{oops}', "line 2 cannot be read"),
        ("[1]", "item 1 is not an object"),
        ('[{"role": "user"}]', "neither a message nor a conversation"),
        ('{"messages": "x"}', "neither a message nor a conversation"),
    ],
)
def test_another_file_is_refused_by_what_is_wrong(text: str, told: str) -> None:
    """The message names the item or line."""
    with pytest.raises(Failure, match=told):
        read(text, "f.json")
