"""A table of questions in several phrasings each, with what must be answered, doubted, or left unanswered."""

import pytest

from core.agents.offline.answers import NOTHING
from tests.core.agents.memory import Memory
from tests.core.agents.test_questions import ask


@pytest.fixture(scope="module")
def memory() -> Memory:
    """Ada with her sister, Nora with her children, Carl with his dog; Bob is only mentioned."""
    memory = Memory()
    memory.say("I moved to Lisbon in May. I prefer green tea.", by="Ada", at="2026-05-20T10:00:00Z")
    memory.say(
        "Actually, I live in Porto now. My sister Anna is a doctor. I will send Bob the report by Friday.",
        "My timezone is UTC+1. We decided to use PostgreSQL for the billing service.",
        by="Ada",
        at="2026-05-27T10:00:00Z",
    )
    memory.say(
        "I love boat trips with my fam. I enjoy pottery.",
        "My kids love dinosaurs.",
        by="Nora",
        at="2026-05-10T10:00:00Z",
    )
    memory.say(
        "I hate jazz. I love tennis and I love sushi. I work for Acme.",
        "My dog Rex eats carrots. My favourite colour is teal.",
        "I need to renew my passport before June 20. I have a dentist appointment on June 12.",
        "My brother Tom lives in Oslo. I speak Dutch.",
        by="Carl",
        at="2026-05-15T10:00:00Z",
    )
    return memory


ANSWERED = [
    # likings, under many verbs
    ("What does Ada like?", "Ada prefers green tea"),
    ("What does Ada enjoy?", "Ada prefers green tea"),
    ("What does Ada prefer?", "Ada prefers green tea"),
    ("What does Ada like to drink?", "Ada prefers green tea"),
    ("What does Ada drink?", "Ada prefers green tea"),
    ("What is Ada's favourite drink?", "Ada prefers green tea"),
    ("What is Ada's favorite beverage?", "Ada prefers green tea"),
    ("Which tea does Ada like?", "Ada prefers green tea"),
    ("Does Ada like green tea?", "Ada prefers green tea"),
    ("Is Ada fond of tea?", "Ada prefers green tea"),
    ("what does ada like?", "Ada prefers green tea"),
    ("What would Ada rather have?", "Ada prefers green tea"),
    ("What does Nora love?", "Nora likes"),
    ("What are Nora's hobbies?", "Nora likes"),
    ("What activities does Nora enjoy?", "Nora likes"),
    ("What is Nora interested in?", "Nora likes"),
    ("What does Nora do in her free time?", "Nora likes"),
    ("Is Nora into pottery?", "Nora likes pottery"),
    ("What food does Carl like?", "Carl likes sushi"),
    ("What does Carl like to eat?", "Carl likes sushi"),
    ("What sport does Carl like?", "Carl likes tennis"),
    ("What does Carl dislike?", "Carl dislikes jazz"),
    ("What music does Carl hate?", "Carl dislikes jazz"),
    ("Does Carl like jazz?", "Carl dislikes jazz"),
    ("What can't Carl stand?", "Carl dislikes jazz"),
    ("What is Carl's favourite colour?", "Carl's favourite colour is teal"),
    ("What's Carl's favorite color?", "Carl's favourite colour is teal"),
    # commitments, under many verbs
    ("What does Ada need to send?", "send Bob the report"),
    ("What does Ada have to do?", "send Bob the report"),
    ("What must Ada do?", "send Bob the report"),
    ("What should I remind Ada of?", "send Bob the report"),
    ("What did Ada promise?", "send Bob the report"),
    ("What did Ada promise Bob?", "send Bob the report"),
    ("What does Ada owe Bob?", "send Bob the report"),
    ("What is on Ada's to-do list?", "send Bob the report"),
    ("What are Ada's deadlines?", "send Bob the report"),
    ("When is the report due?", "due 29 May 2026"),
    ("Who has to send the report?", "Ada (promise)"),
    ("By when must the report be sent?", "due 29 May 2026"),
    ("What does Carl need to renew?", "renew my passport"),
    ("What are Carl's upcoming appointments?", "dentist appointment"),
    ("What is due on June 12?", "dentist appointment"),
    # places, work, time zone
    ("Where does Ada live?", "Ada lives in Porto"),
    ("Where is Ada living now?", "Ada lives in Porto"),
    ("What city is Ada based in?", "Ada lives in Porto"),
    ("Does Ada live in Lisbon?", "Ada lives in Porto"),
    ("What time zone is Ada in?", "Ada's time zone is UTC+1"),
    ("Who does Carl work for?", "Carl works for Acme"),
    ("Which languages does Carl speak?", "Carl speaks Dutch"),
    # somebody's relative
    ("Who is Ada's sister?", "Anna is Ada's sibling"),
    ("What is Ada's sister called?", "Anna is Ada's sibling"),
    ("What is the name of Ada's sister?", "Anna is Ada's sibling"),
    ("What does Ada's sister do?", "Anna's job is doctor"),
    ("What is Ada's sister's job?", "Anna's job is doctor"),
    ("What does Anna do for a living?", "Anna's job is doctor"),
    ("Where does Carl's brother live?", "Tom lives in Oslo"),
    ("Where does Tom live?", "Tom lives in Oslo"),
    ("What is Carl's dog called?", "Rex is Carl's pet"),
    # who it is
    ("Who lives in Porto?", "Ada lives in Porto"),
    ("Who likes tennis?", "Carl likes tennis"),
    ("who loves sushi?", "Carl likes sushi"),
    ("Who hates jazz?", "Carl dislikes jazz"),
    ("Who works at Acme?", "Carl works for Acme"),
    ("Who is a doctor?", "Anna's job is doctor"),
    ("Who prefers green tea?", "Ada prefers green tea"),
    ("Who speaks Dutch?", "Carl speaks Dutch"),
    # when, and what was before
    ("When did Ada move to Lisbon?", "Ada lived in Lisbon from 1 May 2026 until 27 May 2026"),
    ("Where did Ada live before?", "Ada lives in Porto"),
    ("Has Ada ever lived in Lisbon?", "Ada lives in Porto"),
]


@pytest.mark.parametrize(("query", "expected"), ANSWERED)
def test_every_phrasing_of_a_question_is_answered(memory: Memory, query: str, expected: str) -> None:
    """The first line answers, and with little doubt."""
    found = ask(memory, query)

    assert expected in found.text.splitlines()[0]
    assert found.found
    assert found.uncertainty <= 0.3


@pytest.mark.parametrize(
    "query",
    [
        "Where does Bob live?",
        "where does bob live?",
        "Where is Bob's home?",
        "What does Bob like?",
        "What is Bob's time zone?",
        "What is Bob's favourite drink?",
        "Who is Bob's sister?",
        "What does Bob need to renew?",
        "Where does Zoe live?",
        "What does Zoe prefer?",
        "Did Zoe promise anything?",
        "Where does Anna live?",
        "What does Anna like?",
        "Where does Nora live?",
        "What does Nora need to do?",
        "What does Tom like?",
        "What music does Ada like?",
        "What sport does Ada like?",
        "What is Ada's favourite spaceship?",
        "Does Ada like opera?",
        "What does Nora drink?",
        "What does Ada need to buy?",
        "What does Ada owe Zoe?",
        "What does Ada's brother do?",
        "Where does Nora's sister live?",
        "What is Ada's dog called?",
        "What is due on July 4?",
        "Who likes opera?",
        "What does Ada's sister like?",
        "What does Carl's sister do?",
    ],
)
def test_another_persons_fact_answers_nothing(memory: Memory, query: str) -> None:
    """What is not known of whom or what the question names is not made up from what is known of others."""
    assert ask(memory, query).text == NOTHING


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("Who is Bob?", "send Bob the report"),
        ("What about Bob?", "send Bob the report"),
        ("What do Nora's kids love?", "My kids love dinosaurs."),
        ("What do Nora's children like?", "My kids love dinosaurs."),
        ("What does Carl's dog eat?", "My dog Rex eats carrots."),
    ],
)
def test_what_is_only_mentioned_is_doubted(memory: Memory, query: str, said: str) -> None:
    """Of somebody who never spoke, the words of others are quoted, with doubt, and nothing else."""
    found = ask(memory, query)

    assert said in found.text
    assert found.uncertainty >= 0.5
    assert [line.kind for line in found.cited] == ["user_statement"]


@pytest.mark.parametrize("query", ["Why did Ada move?", "Why does Carl hate jazz?"])
def test_a_fact_is_half_a_reason(memory: Memory, query: str) -> None:
    """Asked why, what is known is told, and doubted as an answer."""
    found = ask(memory, query)

    assert found.found
    assert found.uncertainty >= 0.5


@pytest.mark.parametrize("query", ["What do I like?", "Where do I live?", "What's my time zone?"])
def test_who_asks_without_being_known_gets_no_ones_fact(memory: Memory, query: str) -> None:
    """Saying "I" without a counterparty, where many speak, is answered by nobody's claim and with doubt."""
    found = ask(memory, query)

    assert all(line.kind == "user_statement" for line in found.cited)
    assert found.uncertainty >= 0.5


def test_the_first_person_of_a_liking_is_resolved(memory: Memory) -> None:
    """What somebody said of "my family" is said of theirs, by name where others like it too."""
    text = ask(memory, "What does Nora like?").text

    assert "Nora likes boat trips with their fam" in text
    assert "my fam" not in text.splitlines()[0]
    assert memory.claims(predicate="likes")[0] == "Nora> Nora likes boat trips with Nora's fam"


def test_what_was_said_twice_is_quoted_once() -> None:
    """The same words of the same speaker are one line of the answer, with the receipt of the best turn."""
    memory = Memory()
    for day in ("10", "11", "12"):
        memory.say("The invoices go out on the first of the month.", by="Ada", at=f"2026-05-{day}T10:00:00Z")
    memory.say("The invoices go out on the first of the month.", by="Bob", at="2026-05-13T10:00:00Z")

    found = ask(memory, "When do the invoices go out?")

    assert sorted(line.speaker for line in found.cited) == ["Ada", "Bob"]
