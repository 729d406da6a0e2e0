"""`Prefer: respond-async` over HTTP: 202, a place to poll, and the worker that answers."""

import json
from typing import Any

import pytest

from core.models.chat import ChatModel
from core.ports import StoreFault
from functions.adapters import Adapters
from functions.bootstrap import build
from functions.tick import tick
from functions.worker import work
from tests.doubles import FixedModels, ScriptedModel, says
from tests.functions.world import KEYED, World

LATER = {"prefer": "respond-async"}
SURE = '\n<memory_meta>{"found": true, "uncertainty": 0.1}</memory_meta>'


@pytest.fixture
def world() -> World:
    """A space with one conversation formed."""
    world = World().make_space()
    body = {"messages": [{"role": "user", "name": "Alice", "content": "I live in Lisbon."}]}
    assert world.ask("POST", "/v1/demo/formation", body, token=world.token()).status == 200
    world.services.formation.drain("demo", world.clock.now() + 60_000)
    world.queue.sent.clear()
    return world


def think(world: World, model: ChatModel) -> None:
    """Give every space a model."""
    adapters = Adapters(
        world.table, world.objects, world.queue, world.clock, world.entropy, models=FixedModels(model)
    )
    world.services = build(KEYED, adapters)


def ask(world: World, path: str = "recall", **headers: str) -> Any:
    """Ask where Alice lives."""
    body = {"query": "Where does Alice live?"}
    return world.ask("POST", f"/v1/demo/{path}", body, token=world.token(), headers=headers)


def deliver(world: World) -> None:
    """Hand the worker what the queue holds."""
    records = [
        {"messageId": str(n), "body": body, "attributes": {"MessageGroupId": group}}
        for n, (group, body, _) in enumerate(world.queue.sent)
    ]
    world.queue.sent.clear()
    assert work({"Records": records}, None, world.services) == {"batchItemFailures": []}


@pytest.mark.parametrize("path", ["recall", "recall_structured"])
@pytest.mark.parametrize("prefer", ["respond-async", "Respond-Async; x=1", "wait=10, respond-async"])
def test_who_prefers_it_is_answered_later(world: World, path: str, prefer: str) -> None:
    """202 with where to poll and which preference was honoured; then the answer in the conversation."""
    taken = ask(world, path, prefer=prefer)

    assert taken.status == 202
    assert taken.headers["location"] == "/v1/demo/conversations/1?collection=recall"
    assert taken.headers["preference-applied"] == "respond-async"
    assert taken.json == {"result": {"content": "", "conversation": 1}}
    assert [group for group, _, _ in world.queue.sent] == ["demo.recall"]
    place, _, query = taken.headers["location"].partition("?")
    assert world.ask("GET", place, token=world.token(), query=query).result["status"] == "submitted"

    deliver(world)

    found = world.ask("GET", place, token=world.token(), query=query).result
    assert found["status"] == "completed"
    assert "Alice lives in Lisbon" in found["messages"][1]["content"]
    assert found["extra"]["result"]["memories"][0]["name"] == "Alice: Alice lives in Lisbon"


def test_what_is_answered_later_is_no_news_to_the_memory(world: World) -> None:
    """An agent that sends back what it was served adds nothing, as with an answer given at once."""
    ask(world, **LATER)
    deliver(world)

    body = {"messages": [{"role": "assistant", "content": "Alice lives in Lisbon"}]}
    sent = world.ask("POST", "/v1/demo/formation", body, token=world.token())

    assert "conversation" not in sent.result
    assert "recalled from this memory" in sent.result["warnings"][0]


@pytest.mark.parametrize("prefer", ["return=minimal", "wait=5", "", "respond-asynchronously"])
def test_other_preferences_are_passed_over(world: World, prefer: str) -> None:
    """Answered at once."""
    assert ask(world, prefer=prefer).status == 200


def test_a_guest_cannot_poll_and_is_answered_at_once(world: World) -> None:
    """A preference is no demand."""
    world.make_public()
    found = world.ask("POST", "/v1/demo/recall", {"query": "Where does Alice live?"}, headers=LATER)

    assert found.status == 200
    assert "preference-applied" not in found.headers


def test_a_queue_that_may_not_be_sent_to_loses_no_question(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stored is taken in, whatever the queue says: a failure would invite a second copy of the question."""

    def send(*_: object, **__: object) -> None:
        raise StoreFault("SendMessage: AccessDenied")

    monkeypatch.setattr(world.services.queue, "send", send)

    assert ask(world, **LATER).status == 202
    assert world.services.later_recalls.sweep(0) == ["demo"]


def test_a_lost_hint_is_sent_again_by_the_tick(world: World) -> None:
    """The row is the truth."""
    ask(world, **LATER)
    world.queue.sent.clear()
    world.clock.advance(31_000)

    assert tick(world.services)["recall"] == 1

    deliver(world)
    found = world.ask("GET", "/v1/demo/conversations/1", token=world.token(), query="collection=recall")
    assert found.result["status"] == "completed"


def test_a_bad_question_is_refused_before_it_is_taken_in(world: World) -> None:
    """And a retry key makes a retry safe."""
    bad = world.ask("POST", "/v1/demo/recall", {"query": " "}, token=world.token(), headers=LATER)
    first, second = (ask(world, **LATER, **{"idempotency-key": "k"}) for _ in range(2))

    assert (bad.status, first.json, world.queue.sent[0][1]) == (
        400, second.json, json.dumps({"work": "recall", "space": "demo"}, separators=(",", ":")),
    )  # fmt: skip


def test_a_model_answers_over_http_with_its_usage(world: World) -> None:
    """`usage` and `model` on both routes; a failed run is a 200 with `failed_reason`."""
    think(
        world, ScriptedModel([says("In Lisbon." + SURE), says("In Lisbon." + SURE), says("", stop="refused")])
    )

    plain, structured, failed = ask(world), ask(world, "recall_structured"), ask(world, "recall_structured")

    assert (plain.result["content"], plain.result["model"]) == ("In Lisbon.", "scripted-1")
    assert plain.result["usage"] == {
        "input_tokens": 10,
        "output_tokens": 5,
        "cached_tokens": 0,
        "requests": 1,
    }
    assert structured.result["uncertainty"] == 0.1
    assert structured.result["memories"]
    assert (failed.status, failed.result["failed_reason"]) == (200, "the model refused to answer")
    assert world.services.ledger.today("demo").usage["recall"].requests == 3


def test_a_budget_over_http_is_a_packet(world: World) -> None:
    """As JSON in the answer, and as the Markdown of it."""
    body = {"query": "Where does Alice live?", "budget": {"max_tokens": 500}}
    found = world.ask("POST", "/v1/demo/recall_structured", body, token=world.token())
    text = world.ask(
        "POST", "/v1/demo/recall", body, token=world.token(), headers={"accept": "text/markdown"}
    )

    told = json.loads(found.result["answer"])
    assert told["items"]
    assert json.loads(text.body) == told
    assert found.result["memory_budget"]["tokens"] <= 500
    assert found.result["recall_receipt"]["scope"]["space_id"] == "demo"
