"""What the reader writes projects as it should: the engine believes what people last said (KIP §21-25)."""

from typing import Any

import msgspec
import pytest

from core.language import bind, parse
from core.language.ast_kql import Find
from core.query import QueryContext, run
from core.schema.environment import environment_of, initial_environment
from tests.core.agents.memory import NOW, Memory


@pytest.fixture(scope="module")
def memory() -> Memory:
    """Alice changed home, time zone and taste; Bob contradicts her about Anna."""
    memory = Memory()
    memory.state.meta = msgspec.structs.replace(memory.state.meta, schema=initial_environment())
    memory.say(
        "I live in Berlin.",
        "My timezone is UTC+2.",
        "I love sushi.",
        "My sister Anna lives in Paris.",
        at="2026-03-01T10:00:00Z",
    )
    memory.say(
        "I moved to Munich last week.",
        "Actually, my timezone is UTC+1 now.",
        "I hate sushi.",
        "I no longer work for Acme.",
    )
    memory.say("Anna lives in Rome.", by="Bob", at="2026-05-02T10:00:00Z")
    return memory


def believed(memory: Memory, where: str) -> list[Any]:
    """The statuses of a BELIEF pattern."""
    command = parse(f"FIND(?b.status) WHERE {{ ?b BELIEF {where} }}")
    assert isinstance(command, Find)
    context = QueryContext(
        space_id="home", snapshot_seq=memory.state.seq, now=NOW, principal="alice", cursor_key=b"key"
    )
    return run(memory.state, bind(command, {}), environment_of(memory.state.meta), context).rows


@pytest.mark.parametrize(
    ("where", "status"),
    [
        ('({name: "Alice"}, "lives_in", {name: "Munich"})', "accepted"),
        ('({name: "Alice"}, "lives_in", {name: "Berlin"})', "rejected"),
        ('({name: "Alice"}, "timezone", "UTC+1")', "accepted"),
        ('({name: "Alice"}, "timezone", "UTC+2")', "rejected"),
        ('({name: "Alice"}, "dislikes", {name: "sushi"})', "accepted"),
        ('({name: "Alice"}, "likes", {name: "sushi"})', "insufficient"),
        ('({name: "Alice"}, "works_for", {name: "Acme"})', "rejected"),
        ('({name: "Anna"}, "lives_in", {name: "Paris"})', "contested"),
        ('({name: "Anna"}, "lives_in", {name: "Rome"})', "contested"),
    ],
)
def test_the_engine_believes_what_was_last_said(memory: Memory, where: str, status: str) -> None:
    """A current claim is accepted, what it replaced or denies is rejected, a dispute is one."""
    assert believed(memory, where) == [status]
