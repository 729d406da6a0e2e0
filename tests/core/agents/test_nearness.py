"""What nearness in meaning adds to an answer by extraction, and what it takes away."""

from collections.abc import Collection, Iterator

import numpy as np
import pytest

from core.agents.dialogue import Question
from core.agents.offline.answers import Answer, answer
from core.agents.offline.fitting import TELLING
from core.agents.offline.questions import read_asked, unnamed
from core.ports import EmbedderUnavailable
from core.protocol import http_types as wire
from core.search.dense import Coverage, Dense, nothing
from core.service.recall import Recall
from core.service.vectors import Vectors
from tests.core.agents.memory import NOW, Memory
from tests.doubles import HashEmbedder
from tests.services import World


class Near(Dense):
    """Similarities by what turns say: 1 for the texts given, 0 for all others."""

    def __init__(self, memory: Memory, *texts: str, deviation: float = 0.2) -> None:
        super().__init__(Coverage(model="fixed"))
        self.turns = {one.id: str(one.payload.inline) for one in memory.all("evidence")}
        self.texts = texts
        self.deviation = deviation

    def of(self, ids: Collection[str]) -> dict[str, float]:
        return {one: float(self.turns[one] in self.texts) for one in ids}

    def ranked(self, letters: str, limit: int | None = None) -> Iterator[tuple[str, float]]:
        pairs = sorted(self.of(self.turns).items(), key=lambda pair: -pair[1])
        yield from pairs[:limit]

    def spread(self, letters: str) -> tuple[float, float]:
        return 0.0, self.deviation


def grown() -> Memory:
    """A memory of more than a hundred turns, among them two about a lake."""
    memory = Memory()
    for number in range(TELLING):
        memory.say(f"Number {number} was on the list.", at="2026-04-01T10:00:00Z")
    memory.say("The lake was frozen and we skated.", by="Bob", at="2026-05-02T10:00:00Z")
    return memory


def ask(memory: Memory, query: str, near: Dense) -> tuple[Answer, list[str]]:
    """An answer, and what was looked for by its meaning."""
    looked: list[str] = []

    def search(text: str) -> Dense:
        looked.append(text)
        return near

    return answer(memory.state, Question(query=query), NOW, search), looked


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("What did Bob see at Bob's lake?", "What did see at lake?"),
        ("what did bob see?", "what did see?"),
        ("Bob?", "Bob?"),
        ("Where is Bobsville?", "Where is Bobsville?"),
        ("What did Zoe see?", "What did Zoe see?"),
    ],
)
def test_who_is_meant_is_not_looked_for_by_meaning(query: str, left: str) -> None:
    """The names of persons known here are cut out; a question of nothing else, and other names, stay."""
    memory = Memory()
    memory.say("Hello.", by="Bob")

    assert unnamed(read_asked(memory.state, Question(query=query), NOW)) == left


def test_words_said_of_something_else_do_not_answer() -> None:
    """Of a large memory a turn that holds half of the question but is not near is no answer; near, it is."""
    memory = grown()
    query = "Was the shore of the frozen lake crowded when Bob came?"
    far, looked = ask(memory, query, Near(memory))
    near, _ = ask(memory, query, Near(memory, "The lake was frozen and we skated."))

    assert looked == ["Was the shore of the frozen lake crowded when came?"]
    assert not far.found
    assert near.found


def test_a_small_memory_is_answered_from_by_words() -> None:
    """The spread of a few turns tells nothing, so it takes no answer away."""
    memory = Memory()
    memory.say("The lake was frozen and we skated.", by="Bob", at="2026-05-02T10:00:00Z")

    assert ask(memory, "Was the lake frozen solid?", Near(memory))[0].found


@pytest.mark.parametrize("query", ["Was the lake frozen?", "Who plays chess?"])
def test_what_meaning_did_not_cover_is_told(query: str) -> None:
    """An answer from words alone, and no answer, say why meaning did not rank."""
    memory = grown()
    found, _ = ask(memory, query, nothing(Coverage(model="m", degraded="embedder_unavailable")))

    assert found.degraded == "embedder_unavailable"
    assert answer(memory.state, Question(query=query), NOW).degraded is None


def test_recall_says_over_the_services_that_the_embedder_was_down() -> None:
    """The answer comes from words, with the reason beside it; with the embedder back there is none."""
    world = World()
    world.create()
    embedder = HashEmbedder()
    world.say("home", "We saw a dog on the way.")
    world.drain()
    vectors = Vectors(world.spaces, embedder, lambda: np)
    recall = Recall(world.clock, world.spaces, world.conversations, vectors)
    question = wire.RecallInput(query="Did we see a dog?")

    embedder.fault = EmbedderUnavailable("down")
    down = recall.recall_structured(world.caller, "home", question)
    prose = recall.recall(world.caller, "home", question)
    embedder.fault = None
    up = recall.recall_structured(world.caller, "home", question)

    assert down.found
    assert down.degraded == "embedder_unavailable"
    assert prose.warnings == ("dense: embedder_unavailable",)
    assert up.degraded is None
    assert up.found
