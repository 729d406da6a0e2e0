"""Recall: what is believed and what was said, with receipts; and nothing where there is nothing."""

import json
import re
from pathlib import Path

import pytest

from core.agents.offline.answers import NOTHING
from core.errors import NoemaError
from core.model.elements import Assertion, Evidence
from core.protocol import http_types as wire
from core.service.erasure import Erasures
from core.service.erasure_scan import _plain
from core.service.forgetting import Forgetting
from core.service.upkeep import Upkeep
from core.service.values import Caller
from core.storage.layout import ALL_ROWS, space_pk
from scripts.bench_recall import form
from scripts.locomo import read
from tests.doubles import FailingTable, Faults
from tests.services import World

BENCH = Path(__file__).resolve().parents[4] / "shared" / "bench" / "locomo-dev.json"


@pytest.fixture(scope="module")
def world() -> World:
    """A space that knows Alice, her sister Anna and Bob."""
    world = World()
    world.create()
    world.say(
        "home",
        "Hi! I'm a nurse and I live in Berlin.",
        "My timezone is UTC+2.",
        "My sister Anna lives in Paris.",
        at="2026-03-01T10:00:00Z",
    )
    world.say(
        "home",
        "I love hiking in the Alps.",
        "We climbed Mont Blanc yesterday, it was freezing!",
        name="Bob",
        at="2026-04-10T10:00:00Z",
    )
    world.say(
        "home",
        "I moved to Munich last week.",
        "My favourite colour is green.",
        "I hate sushi.",
        at="2026-05-01T10:00:00Z",
    )
    world.say(
        "home",
        "Actually, my timezone is UTC+1 now.",
        "Remind me to call the plumber on June 3.",
        at="2026-05-02T10:00:00Z",
    )
    world.say(
        "home", "我昨天在绿禾公园看到了一只可爱的松鼠。", "我喜欢喝茶", name="李雪", at="2026-05-03T10:00:00Z"
    )
    world.drain()
    return world


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where does Alice live?", "Alice lives in Munich since 20 April 2026"),
        ("where does alice live", "Alice lives in Munich"),
        ("What is Alice's time zone?", "Alice's time zone is UTC+1"),
        ("What is Alice's favorite color?", "Alice's favourite colour is green"),
        ("Does Alice like sushi?", "Alice dislikes sushi"),
        ("Where does Anna live?", "Anna lives in Paris (said by Alice, 1 March 2026)"),
        ("What does Bob like?", "Bob likes hiking in the Alps"),
        ("What are Alice's reminders?", "call the plumber on June 3, due 3 June 2026"),
    ],
)
def test_a_question_about_a_belief_is_answered_with_it(world: World, question: str, expected: str) -> None:
    """The current belief comes first, says whose word it is and when it was said, and cites the claim."""
    found = world.ask(question)

    assert expected in found.answer.splitlines()[0]
    assert found.answer.splitlines()[0].endswith("[1].")
    assert found.found
    assert found.uncertainty is not None
    assert found.uncertainty <= 0.3
    state = world.spaces.load("home")
    assert state.get(found.memories[0].entity) is not None
    assert isinstance(state.get(found.memories[0].source or ""), Evidence)


def test_the_first_person_is_the_counterparty(world: World) -> None:
    """Saying "I" is who asks: the context's counterparty."""
    assert "Alice lives in Munich" in world.ask("Where do I live?", counterparty="Alice").answer
    assert (
        "Anna lives in Paris"
        in world.ask("Where does my sister live?", counterparty="Alice").answer.splitlines()[0]
    )
    assert "Anna is Alice's sibling" in world.ask("Who is my sister?", counterparty="Alice").answer


def test_a_superseded_belief_is_told_only_when_the_past_is_asked_for(world: World) -> None:
    """Now: what holds and since when. Before: what held and until when."""
    now, before = world.ask("Where does Alice live?"), world.ask("Where did Alice live before?")

    assert "Alice lived in Berlin" not in now.answer
    assert "Earlier: Alice lived in Berlin until 20 April 2026" in before.answer
    assert "Alice lives in Munich since 20 April 2026" in before.answer.splitlines()[0]


def test_a_date_asks_for_what_held_then(world: World) -> None:
    """A question with a date is answered with the claim that held on it."""
    found = world.ask("Where did Alice live in March 2026?")

    assert "Alice lived in Berlin" in found.answer.splitlines()[0]
    assert "Alice lives in Munich" not in found.answer


def test_a_question_about_what_happened_is_answered_by_the_turn(world: World) -> None:
    """Where no claim answers, the turn does, with speaker and date, and is cited as Evidence."""
    found = world.ask("Which mountain did Bob climb?")

    assert "Bob, 10 April 2026: “We climbed Mont Blanc yesterday, it was freezing!”" in found.answer
    (turn,) = [m for m in found.memories if "Mont Blanc" in (m.name or "")]
    assert isinstance(world.spaces.load("home").get(turn.entity), Evidence)
    assert turn.created_at == "2026-04-10T10:00:00.000Z"


@pytest.mark.parametrize("question", ["绿禾公园", "松鼠", "绿禾公园有什么", "在绿禾公园看到了什么", "喝茶"])
def test_chinese_is_found_by_any_two_characters(world: World, question: str) -> None:
    """A question that shares characters with a turn finds it, without any word boundary."""
    found = world.ask(question)

    assert found.found
    assert any("绿禾公园" in (m.name or "") or "喝茶" in (m.name or "") for m in found.memories)


@pytest.mark.parametrize(
    "question",
    [
        "What is Alice's favourite spaceship?",
        "Who won the 1998 world cup?",
        "How many zebras does Bob own?",
        "?!",
        "the of and",
        "🦄",
        "量子力学的历史",
    ],
)
def test_nothing_is_said_to_be_nothing(world: World, question: str) -> None:
    """Where nothing bears on a question the answer says so, and is certain of nothing."""
    found = world.ask(question)

    assert (found.answer, found.found, found.uncertainty, found.memories) == (NOTHING, False, 1.0, ())


def test_every_number_in_the_answer_is_a_citation(world: World) -> None:
    """[n] is the n-th memory."""
    for question in (
        "Where did Alice live before?",
        "What did Bob do?",
        "Alice",
        "What is Alice's time zone?",
    ):
        found = world.ask(question)
        numbers = [int(n) for n in re.findall(r"\[(\d+)\]", found.answer)]

        assert numbers == list(range(1, len(numbers) + 1)) or numbers[-1] <= len(found.memories)
        assert max(numbers) <= len(found.memories)


def test_a_recall_writes_a_conversation_and_no_commit(world: World) -> None:
    """Reading leaves a transcript and moves nothing in the log."""
    before = world.spaces.head("home")
    found = world.ask("Where does Alice live?")

    assert world.spaces.head("home") == before
    record = world.conversations.get("home", "recall", found.conversation or 0)
    assert (record.label, record.status, record.user) == ("recall", "completed", "alice")
    assert json.loads(record.messages[0]["content"])["query"] == "Where does Alice live?"
    assert record.messages[1] == {"role": "assistant", "content": found.answer}


def test_prose_and_structure_say_the_same(world: World) -> None:
    """Both forms of recall give the same answer."""
    body = wire.RecallInput(query="Where does Alice live?")
    prose = world.recall.recall(world.caller, "home", body)

    assert prose.content == world.ask("Where does Alice live?").answer
    assert prose.model == "offline-extractive-1"


def test_what_is_formed_is_found_by_the_next_question(world: World) -> None:
    """The kept order of turns follows the log."""
    own = World(world.table, world.objects, world.clock, seed=4)
    assert own.ask("What is Carol's parrot called?").found is False
    own.say("home", "My parrot is called Polly.", name="Carol", at="2026-05-05T10:00:00Z")
    own.drain()

    assert "Polly" in own.ask("What is Carol's parrot called?").answer
    assert "Polly" in world.ask("What is Carol's parrot called?").answer


def test_two_who_disagree_are_both_heard(world: World) -> None:
    """A contested value is answered with both, and with doubt."""
    own = World()
    own.create()
    own.say("home", "My sister Anna lives in Paris.", at="2026-03-01T10:00:00Z")
    own.say("home", "Anna lives in Rome.", name="Bob", at="2026-03-02T10:00:00Z")
    own.drain()
    found = own.ask("Where does Anna live?")

    assert "Paris (said by Alice" in found.answer
    assert "Rome (said by Bob" in found.answer
    assert found.uncertainty == 0.5


def test_a_probe_looks_without_answering(world: World) -> None:
    """A probe lists what has the words, and says whether it looked at everything."""
    found = world.recall.probe("home", wire.ProbeInput(query="munich"))
    missed = world.recall.probe("home", wire.ProbeInput(query="zebra"))
    cut = world.recall.probe("home", wire.ProbeInput(query="Alice Munich Berlin", limit=0))

    assert found.found
    assert {hit.type for hit in found.hits} >= {"Place", "user_statement"}
    assert (missed.found, missed.search_exhaustive, missed.hits) == (False, True, ())
    assert (len(cut.hits), cut.search_exhaustive) == (1, False)
    assert not found.negative_cached


def test_bad_questions_are_refused(world: World) -> None:
    """Blank, oversized, malformed and budgeted questions, and questions to no space."""
    for body, code in (
        (wire.RecallInput(query="  "), "InvalidInput"),
        (wire.RecallInput(query="\ud800"), "InvalidInput"),
        (wire.RecallInput(query="a" * 300_000), "PayloadTooLarge"),
        (wire.RecallInput(query="who?", context="["), "InvalidInput"),
        (wire.RecallInput(query="who?", budget=wire.RecallBudget()), "NotImplementedYet"),  # no tokenizer
    ):
        with pytest.raises(NoemaError) as caught:
            world.recall.recall_structured(world.caller, "home", body)
        assert caught.value.code == code
    with pytest.raises(NoemaError) as caught:
        world.ask("who?", "nowhere")
    assert caught.value.code == "NotFoundOrNotVisible"


def test_a_reader_that_never_formed_reads_the_same(world: World) -> None:
    """Another process answers from the log as the first one does."""
    other = World(world.table, world.objects, world.clock, seed=5)

    assert other.ask("Where does Alice live?").answer == world.ask("Where does Alice live?").answer


@pytest.mark.skipif(not BENCH.exists(), reason="the evaluation data is not beside this repository")
def test_a_real_conversation_is_formed_and_recalled() -> None:
    """Nineteen sessions go in through the services, and questions come back with the right turns."""
    sample = read(BENCH)[0]
    world = World()
    dia = form(world, "real", sample).turns
    questions = [item for item in sample.questions if item.category in (1, 2, 4)][:30]

    hits = 0
    for item in questions:
        found = world.ask(item.text, "real")
        cited = {dia.get(m.entity) or dia.get(m.source or "") for m in found.memories}
        hits += bool(cited & item.gold)

    state = world.spaces.load("real")
    assert world.spaces.head("real").number("formed") == 19
    assert len(dia) == state.counts.evidence == 419
    assert all(isinstance(state.get(a), Assertion) for a in state.ids("assertion"))
    assert hits >= 20


def test_an_answer_does_not_wait_for_its_record(world: World) -> None:
    """If the record of a recall cannot be written, the answer is given without its id."""
    faults = Faults(range(1000))
    failing = World(FailingTable(world.table, faults), world.objects, world.clock, seed=6)
    found = failing.ask("Where does Alice live?")

    assert found.conversation is None
    assert "Alice lives in Munich" in found.answer


def test_a_long_question_is_kept_in_part(world: World) -> None:
    """The record of a recall is one row, however long the question."""
    found = world.ask("Where does Alice live? " * 3000)
    record = world.conversations.get("home", "recall", found.conversation or 0)

    assert len(record.messages[0]["content"]) < 5000


def test_an_anonymous_reader_leaves_no_row(world: World) -> None:
    """Reading a public space without a credential is answered and recorded nowhere."""
    before = world.table.query(space_pk("home"), *ALL_ROWS, limit=10_000)
    body = wire.RecallInput(query="Where does Alice live?")
    nobody = Caller("anonymous", "rest", "read", "anonymous")
    found = world.recall.recall_structured(nobody, "home", body)

    assert "Alice lives in Munich" in found.answer
    assert found.conversation is None
    assert world.recall.recall(nobody, "home", body).conversation is None
    assert world.table.query(space_pk("home"), *ALL_ROWS, limit=10_000) == before


def test_forgetting_takes_the_recalls_that_quoted_it() -> None:
    """After forgetting a message and its transcript no byte of it is left, in no answer on record either."""
    world = World()
    world.create()
    number = world.say("home", "The treasure lies under the quincunx.")
    world.say("home", "I live in Berlin.", at="2026-05-02T10:00:00Z")
    world.drain()
    quoted = world.ask("Where is the treasure?")
    other = world.ask("Where does Alice live?")
    assert "quincunx" in quoted.answer
    upkeep = Upkeep(world.spaces, world.leases, world.entropy)
    wish = wire.ForgetInput(entities=[quoted.memories[0].entity], conversations=[number])
    Forgetting(world.spaces, Erasures(world.spaces, upkeep, world.entropy)).forget(
        world.caller, "home", wish, owner="me"
    )

    values = [
        v for _, row in world.table.query(space_pk("home"), *ALL_ROWS, limit=10_000) for v in row.values()
    ]
    values += [world.objects.get(key) for key, _, _ in world.objects.list("home/")]
    assert not any(b"quincunx" in piece for value in values for piece in _plain(value))
    with pytest.raises(NoemaError):
        world.conversations.get("home", "recall", quoted.conversation or 0)
    assert world.conversations.get("home", "recall", other.conversation or 0).status == "completed"
    assert world.ask("Where is the treasure?").found is False
    assert "Berlin" in world.ask("Where does Alice live?").answer
