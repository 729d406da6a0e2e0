"""What a model is shown of a conversation: all of it, in pieces that fit, as data."""

import json
from typing import Any

import msgspec
import pytest

from core.agents.dialogue import read_dialogue
from core.agents.formation.captured import find_captured, find_events, find_products
from core.agents.formation.ending import react, why
from core.agents.formation.telling import (
    LARGEST,
    Telling,
    cut_windows,
    size_of,
    tell,
    tell_done,
    tell_uncovered,
    window_room,
)
from core.models.chat import PASSING
from core.models.run import Finished
from core.protocol import http_types as wire
from tests.core.agents.memory import NOW, Memory


class Read:
    """A conversation that was captured and read without a model."""

    def __init__(self, *messages: dict[str, Any], **members: Any) -> None:
        self.memory = Memory()
        given = {"messages": list(messages), "timestamp": "2026-05-01T10:00:00Z", **members}
        body = msgspec.convert(given, wire.FormationInput)
        self.memory.form(list(messages), **members)
        self.dialogue = read_dialogue(body, now=NOW)[0].settled(NOW)
        self.captured = find_captured(self.memory.state, self.dialogue)

    def lines(self, room: int) -> list[dict[str, Any]]:
        """Every line of every window."""
        windows = cut_windows(self.dialogue, self.captured, room)
        return [json.loads(line) for window in windows for line in window.lines]

    def told(self, **members: Any) -> str:
        """The opening of the only window."""
        [window] = cut_windows(self.dialogue, self.captured, 10_000)
        telling = Telling(window, 0, 1, "the vocabulary", **members)
        return tell(self.memory.state, self.dialogue, self.captured, telling)


def said(text: Any, by: str = "Alice", **more: Any) -> dict[str, Any]:
    """A message."""
    return {"role": "user", "name": by, "content": text, **more}


def test_messages_are_numbered_and_those_without_content_left_out():
    """Numbers follow the Evidence; who speaks is numbered by first appearance; times are told."""
    read = Read(said("one"), said(""), said("two", "Bob"), said("three"))
    assert [(line["msg"], line["by"], line["text"]) for line in read.lines(9_000)] == [
        (1, "who1", "one"),
        (2, "who2", "two"),
        (3, "who1", "three"),
    ]
    assert read.lines(9_000)[0]["at"] == "2026-05-01T10:00:00.000Z"


@pytest.mark.parametrize("room", [500, 2_000, 24_000])
def test_windows_hold_every_word_once(room: int):
    """However small the room, all text is in some window, in order, and no window is larger."""
    texts = [f"{n} " + "слово 言葉 " * (n * 20) for n in range(30)]
    read = Read(*(said(text) for text in texts))
    found: dict[int, str] = {}
    for line in read.lines(room):
        found[line["msg"]] = found.get(line["msg"], "") + line["text"]
    assert list(found.values()) == texts
    for window in cut_windows(read.dialogue, read.captured, room):
        assert len(window.lines) == 1 or sum(len(line.encode()) for line in window.lines) / 4 <= room + len(
            window.lines
        )


def test_a_message_longer_than_a_line_says_which_part_a_line_is():
    """A very long message is several Evidence and several lines, each with its part."""
    read = Read(said("x" * 90_000))
    [(_, captured)] = read.captured
    assert len(captured.pieces) == 2
    assert [line["part"] for line in read.lines(24_000)][:2] == ["1/23", "2/23"]


def test_content_that_is_no_text_is_told_as_it_came():
    """Parts of other kinds are shown as JSON."""
    read = Read(said([{"type": "text", "text": "a"}, {"type": "image", "url": "u"}]))
    assert json.loads(read.lines(9_000)[0]["text"])[1] == {"type": "image", "url": "u"}


def test_the_opening_tells_what_is_known_of_the_speakers():
    """Their open claims are listed by id, the newest last; of others nothing is."""
    read = Read(said("I live in Berlin."), said("My time zone is UTC+1."), said("I'm a nurse.", "Bob"))
    told = read.told()
    assert told.index("lives_in") < told.index("timezone")
    assert '"Alice (C-' in told
    assert "the vocabulary" in told
    assert "Your notes" not in told
    assert "window" not in told
    assert "no orders" in read.told(notes=[{"id": "a", "begins": "b"}])


def test_what_the_caller_may_not_see_is_not_told():
    """A claim is listed only if it and all that it speaks of exists for whoever the run is made for."""
    read = Read(said("I live in Berlin."), said("My time zone is UTC+1."))
    state = read.memory.state
    berlin = next(one for one in state.ids("concept") if getattr(state.get(one), "name", "") == "Berlin")
    told = read.told(sees=lambda element: element.id != berlin)
    assert "lives_in" not in told
    assert "timezone" in told
    assert "until now, the newest last:\nnothing" in read.told(sees=lambda _: False)


def test_the_context_is_told():
    """Topic, thread and counterparty are there, nothing that was not given is."""
    read = Read(said("Hi"), context={"topic": "travel", "counterparty": "bob-7"})
    assert '{"counterparty": "bob-7", "topic": "travel"}' in read.told()


def test_products_are_what_rests_on_the_messages():
    """Claims, commitments and the Concepts talked about are found from the Evidence."""
    read = Read(said("I live in Berlin."), said("Remind me to call Bob tomorrow."), said("Thanks!"))
    products = find_products(read.memory.state, [one for _, one in read.captured])
    assert (len(products.claims), products.commitments, len(products.concepts)) == (1, 1, 1)
    assert [read.memory.state.get(one).name for one in products.touched] == ["Alice", "Berlin"]  # type: ignore[union-attr]
    assert len(find_events(read.memory.state, read.dialogue)) == 1
    done = tell_done(read.memory.state, products)
    assert products.claims[0] in done
    assert "Commitment" in done
    assert tell_uncovered(read.memory.state, read.captured, products).endswith("msg2, msg3.")


def test_claims_are_told_with_stance_and_interval():
    """A rejection and an interval are part of what a claim says."""
    read = Read(
        said("I live in Berlin."), said("I no longer live in Berlin."), said("I used to live in Rome.")
    )
    told = read.told()
    assert '"stance": "reject"' in told
    assert '"until"' in told


def test_room_is_what_the_prompt_leaves():
    """Half of what is left is for messages, within bounds."""
    assert window_room(200_000, 4_096, 6_000) == LARGEST
    assert window_room(32_000, 4_000, 6_000) == (25_600 - 12_000) // 2
    assert window_room(8_000, 1_000, 6_000) == 500


def test_the_size_of_a_conversation_is_that_of_its_words():
    """About a quarter of its bytes, which holds for scripts of several bytes a letter too."""
    assert size_of(Read(said("x" * 400)).dialogue) == 100
    assert size_of(Read(said("語" * 400)).dialogue) == 300


ENDS = ["done", "length", "refused", "loop", "context", "turns", "tokens", "micros", "time", "cancelled"]


@pytest.mark.parametrize("ended", ENDS)
@pytest.mark.parametrize("written", [False, True])
def test_every_ending_has_a_reaction(ended: Any, written: bool):
    """Only "done" is success without a word; with something written nothing is done over."""
    reaction = react(Finished(ended, ""), written=written)
    assert (reaction == "complete") == (ended == "done")
    if written:
        assert reaction in ("complete", "warn", "later")
    assert why(Finished(ended, "", reason="said by a provider")) == f"model_{ended}"


@pytest.mark.parametrize(
    "kind", [*sorted(PASSING), "unauthorized", "bad_request", "context_overflow", "cancelled"]
)
def test_every_fault_has_a_reaction(kind: Any):
    """A passing fault is tried again; one that stays ends in a warning or without the model."""
    fault = Finished("fault", "", fault=kind, reason="key sk-123")
    assert react(fault, written=True) == ("again" if kind in PASSING else "warn")
    assert react(fault, written=False) == ("again" if kind in PASSING else "offline")
    assert why(fault) == f"model_fault: {kind}"
