"""Questions and what the record gives to them, without services."""

from typing import Any

import pytest

from core.agents.dialogue import Context, Question
from core.agents.offline.answers import NOTHING, Answer, answer
from core.agents.offline.questions import find_asker, read_asked
from core.agents.offline.quotation import best_passage
from core.model.elements import Concept
from tests.core.agents.memory import NOW, Memory


def ask(memory: Memory, query: str, **context: Any) -> Answer:
    """The answer of a memory."""
    return answer(memory.state, Question(query=query, context=Context(**context)), NOW)


@pytest.fixture(scope="module")
def memory() -> Memory:
    """Alice and Bob, in two months of two years."""
    memory = Memory()
    memory.say(
        "I live in Berlin.",
        "Eve is my boss.",
        "I have two kids.",
        "I used to live in Hamburg.",
        at="2025-03-01T10:00:00Z",
    )
    memory.say("The lake was frozen and we skated all day.", by="Bob", at="2025-03-02T10:00:00Z")
    memory.say("The lake was warm and we swam all day.", by="Bob", at="2026-05-02T10:00:00Z")
    memory.say("Where did you hide the key?", by="Bob", at="2026-05-03T10:00:00Z")
    memory.form(
        [
            {"role": "user", "name": "Bob", "content": "Which instrument did you practise?"},
            {"role": "user", "name": "Alice", "content": "Mostly the cello."},
            {"role": "user", "name": "Alice", "content": "Bye!"},
        ],
        at="2026-05-04T10:00:00Z",
    )
    return memory


def test_who_somebody_is_is_told_by_their_relations(memory: Memory) -> None:
    """A question without a predicate is answered with what relates others to the person named."""
    assert ask(memory, "Who is Eve?").text.startswith("Eve is Alice's boss")


@pytest.mark.parametrize("name", ["dora", "Dora"])
@pytest.mark.parametrize("asked", ["dora", "Dora"])
def test_a_name_is_known_in_either_spelling(name: str, asked: str) -> None:
    """Who is known by a key in small letters alone is meant by the name with a capital, and the other way round."""
    memory = Memory()
    memory.say("I live in Berlin.", by=name)

    assert "Berlin" in ask(memory, f"Where does {asked} live?").text


@pytest.mark.parametrize("query", ["Alice", "Tell me about Alice", "What do you know about Alice?"])
def test_a_broad_question_gets_all_that_is_believed(memory: Memory, query: str) -> None:
    """Who asks for nothing in particular is told everything."""
    text = ask(memory, query).text

    assert "Alice lives in Berlin" in text
    assert "Eve is Alice's boss" in text
    assert "Alice's number of children is 2" in text


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("What happened at the lake in 2025?", "frozen"),
        ("What happened at the lake in May 2026?", "warm"),
        ("The lake in March?", "frozen"),
    ],
)
def test_months_and_years_lead_to_what_was_said_then(memory: Memory, query: str, said: str) -> None:
    """The date of saying is as good as a word."""
    assert said in ask(memory, query).cited[0].text


def test_the_answer_to_a_question_in_the_dialogue_is_found_by_the_question(memory: Memory) -> None:
    """A turn that shares no word is cited when it follows the question that does; small talk behind it is not."""
    found = ask(memory, "Which instrument was practised?")

    assert "Mostly the cello." in [line.text for line in found.cited]
    assert "Bye!" not in [line.text for line in found.cited]


def test_a_past_home_is_told_when_the_past_is_asked_for(memory: Memory) -> None:
    """What has ended is told as ended."""
    assert "Alice lived in Hamburg until 1 March 2025" in ask(memory, "Where did Alice live before?").text


def test_a_person_named_in_lower_case_is_known(memory: Memory) -> None:
    """Careless spelling finds the person all the same."""
    assert [p.name for p in read_asked(memory.state, Question(query="and bob?"), NOW).named] == ["Bob"]


def test_the_asker_is_the_counterparty_or_the_nameless_user() -> None:
    """A key or a name says who asks; without either it is the one nameless user."""
    memory = Memory()
    memory.form([{"role": "user", "content": "I live in Berlin."}])
    memory.form(
        [{"role": "user", "user": "u-1", "name": "Carol", "content": "I live in Rome."}],
        at="2026-05-02T10:00:00Z",
    )

    for counterparty, name in ((None, "user"), ("u-1", "Carol"), ("Carol", "Carol")):
        found = find_asker(memory.state, counterparty)
        assert isinstance(found, Concept)
        assert found.name == name
    assert find_asker(memory.state, "nobody") is None
    assert "user lives in Berlin" in ask(memory, "Where do I live?").text
    assert "Carol lives in Rome" in ask(memory, "Where do I live?", counterparty="u-1").text
    assert ask(memory, "Where do I live?", counterparty="nobody").cited[0].kind != "lives_in"


def test_commitments_are_listed_by_when_they_are_due() -> None:
    """What is open comes with its date, the next first, what is overdue last; only of whom the question names."""
    memory = Memory()
    memory.say(
        "Remind me to water the plants on June 20.",
        "Remind me to pay rent on June 5.",
        "I'll send the report by May 8.",
        at="2026-05-01T10:00:00Z",
    )
    memory.say("I'll fix the fence by June 9.", by="Bob", at="2026-05-02T10:00:00Z")

    lines = [
        line.text
        for line in ask(memory, "What are the upcoming reminders?").cited
        if line.kind == "commitment"
    ]
    assert [text.partition(": ")[2].split(" on ")[0].split(" by ")[0] for text in lines] == [
        "pay rent",
        "fix the fence",
        "water the plants",
        "send the report",
    ]
    mine = [
        line.text for line in ask(memory, "What are Bob's commitments?").cited if line.kind == "commitment"
    ]
    assert mine == ["Bob (promise): fix the fence by June 9, due 9 June 2026"]
    assert "pay rent" in ask(memory, "When is the rent due?").cited[0].text


def test_an_empty_memory_has_nothing() -> None:
    """Nothing known, nothing said."""
    assert ask(Memory(), "Where does Alice live?").text == NOTHING


def test_a_long_text_is_quoted_where_it_fits() -> None:
    """The passage that holds the question's words is cut out between words, and says that it was cut."""
    text = "padding " * 200 + "the treasure lies under the old oak " + "filler " * 200
    passage = best_passage(text, ("treasur", "oak"))

    assert "treasure lies under the old oak" in passage
    assert len(passage) < 350
    assert passage.startswith("…")
    assert passage.endswith("…")
    assert best_passage("short  text\n", ("x",)) == "short text"
    assert best_passage("a" * 1000, ("x",)).endswith("…")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("What did Bob share on May 2?", "The lake was warm and we swam all day."),
        ("5月2日说了什么？", "The lake was warm and we swam all day."),
        ("Anything on 2025-03-02?", "The lake was frozen and we skated all day."),
    ],
)
def test_a_day_leads_to_what_was_said_on_it(memory: Memory, query: str, said: str) -> None:
    """A question that names a day gets that day's turns, whatever words they use."""
    assert ask(memory, query).cited[0].text == said


@pytest.mark.parametrize(
    "query",
    [
        "Tell me about Bob",
        "Can you tell me where Bob lives?",
        "I wonder where Bob lives",
        "Remind me where Bob lives",
    ],
)
def test_a_manner_of_asking_is_not_about_the_asker(query: str) -> None:
    """Saying "Tell me" names nobody: only Bob is told of."""
    memory = Memory()
    memory.say("I live in Rome.", by="Bob")
    memory.say("I live in Berlin.")

    text = ask(memory, query, counterparty="Alice").text
    assert "Bob lives in Rome" in text
    assert "Alice lives" not in text


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("My birthday is May 5th, 1990.", "birthday is 5 May 1990"),
        ("I was born on 5 May.", "birthday is 5 May"),
    ],
)
def test_a_day_is_told_as_one_says_it(said: str, told: str) -> None:
    """A date that was claimed is spelled in the answer, not coded."""
    memory = Memory()
    memory.say(said)

    text = ask(memory, "When is Alice's birthday?").text
    assert f"{told} (said by" in text
    assert "--" not in text


@pytest.mark.parametrize("piece", ["A", "a-", " ", "'s ", "wor "])
def test_a_question_made_to_keep_a_process_busy_is_read_in_one_go(piece: str) -> None:
    """Patterns look at its beginning alone, which took minutes of the whole; words count wherever they stand."""
    memory = Memory()
    memory.say("I live in Berlin.", "The zeppelin landed on Tuesday.")

    long = "What became of it? " + piece * (250_000 // len(piece))
    assert ask(memory, f"Where do I live? {long}", counterparty="Alice").found
    assert "zeppelin" in ask(memory, f"{long} zeppelin landed").text
