"""Which of the turns found answer: bars by words, by meaning, and against what somebody else says of themselves."""

import pytest

from core.agents.dialogue import Question
from core.agents.offline.answers import NOTHING, Answer, answer
from core.agents.offline.fitting import TELLING
from tests.core.agents.memory import NOW, Memory
from tests.core.agents.test_nearness import Near

CAR = "Last week I purchased an automobile."


def ask(memory: Memory, query: str, near: Near | None = None) -> Answer:
    """An answer, by words alone or with what is near."""
    search = None if near is None else lambda _: near
    return answer(memory.state, Question(query=query), NOW, search)


def listed(memory: Memory) -> Memory:
    """The memory with more turns than are needed for their spread to tell something."""
    for number in range(TELLING):
        memory.say(f"Number {number} was on the list.", by="Bob", at="2026-04-01T10:00:00Z")
    return memory


@pytest.mark.parametrize("large", [False, True])
def test_what_is_near_in_meaning_answers_without_a_word_of_the_question(large: bool) -> None:
    """In a small memory as in a large one; what is not near, or is said of nobody asked about, does not."""
    memory = Memory()
    memory.say(CAR, by="Ada")
    memory.say("The kettle is on the stove.", by="Bob")
    if large:
        listed(memory)
    query = "Which vehicle did Ada acquire?"

    found = ask(memory, query, Near(memory, CAR, deviation=0.1))
    assert CAR in found.text
    assert 0.3 <= found.uncertainty < 1
    assert ask(memory, query).text == NOTHING
    assert ask(memory, query, Near(memory)).text == NOTHING
    assert ask(memory, "Which vehicle did Bob acquire?", Near(memory, CAR)).text == NOTHING


def test_in_a_small_memory_near_is_what_stands_apart() -> None:
    """Where everything is as similar as the best, similarity tells nothing."""
    memory = Memory()
    others = [f"The kettle number {number} is on the stove." for number in range(3)]
    memory.say(CAR, *others, by="Ada")

    assert ask(memory, "Which vehicle did Ada acquire?", Near(memory, CAR)).found
    assert not ask(memory, "Which vehicle did Ada acquire?", Near(memory, CAR, *others)).found


def test_beside_a_good_turn_one_that_holds_less_is_cited_too() -> None:
    """The bar for there to be an answer is higher than for being part of one."""
    memory = listed(Memory())
    memory.say("The frozen lake was crowded all winter.", by="Ada", at="2026-05-02T10:00:00Z")
    memory.say("The lake looked wonderful from above.", by="Ada", at="2026-05-09T10:00:00Z")
    query = "Was the frozen lake crowded in winter, Ada?"
    weak = "The lake looked wonderful from above."

    both = ask(memory, query, Near(memory, "The frozen lake was crowded all winter.", weak))
    assert [line.text for line in both.cited] == ["The frozen lake was crowded all winter.", weak]


def test_what_another_says_of_themselves_does_not_answer() -> None:
    """Ada mentions opera, Bob has been there: that Ada went is not known."""
    memory = Memory()
    memory.say("Music is on the radio, opera too.", by="Ada", at="2026-05-02T10:00:00Z")
    memory.say("I went to the opera in Verona with my aunt.", by="Bob", at="2026-05-09T10:00:00Z")

    assert not ask(memory, "Who went to the opera in Verona with Ada's aunt, was it Ada?").found
    assert ask(memory, "Did Bob go to the opera in Verona with an aunt?").found


@pytest.mark.parametrize(
    "said",
    [
        "Ada went to the opera in Verona, I heard.",  # of Ada
        "The opera in Verona is open.",  # of nobody
    ],
)
def test_what_another_says_of_the_person_or_of_nobody_is_no_rival(said: str) -> None:
    """Only what they say of themselves."""
    memory = Memory()
    memory.say("I liked the opera.", by="Ada", at="2026-05-02T10:00:00Z")
    memory.say(said, by="Bob", at="2026-05-09T10:00:00Z")

    assert ask(memory, "Did Ada go to the opera in Verona?").found


def test_an_assistant_is_no_rival() -> None:
    """Its "I" is no person's: "I found you the opera in Verona"."""
    memory = Memory()
    memory.say("I liked the opera.", by="Ada", at="2026-05-02T10:00:00Z")
    memory.form(
        [{"role": "assistant", "content": "I found the opera in Verona on a map."}], at="2026-05-09T10:00:00Z"
    )

    assert ask(memory, "Did Ada go to the opera in Verona?").found
