"""What a memory served and gets back over REST is not taken for news; what a person says again is."""

import json
from typing import Any

import pytest

from functions.library import Memory
from functions.local.library import in_process
from functions.mcp.quoting import fenced, quote
from functions.worker import work
from tests.functions.world import World

TEA = "The user drinks green tea."
DAY = 24 * 3600 * 1000


@pytest.fixture
def world() -> World:
    return World().make_space()


def post(world: World, path: str, body: Any, **headers: str) -> Any:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return world.ask("POST", f"/v1/demo/{path}", body, token=world.token(), headers=given)


def keep(world: World, text: str, agent: str = "ann", **more: Any) -> Any:
    return post(world, "facts", {"agent_id": agent, "text": text, **more})


def recall(world: World, query: str, agent: str = "ann", **more: Any) -> Any:
    return post(world, "facts/recall", {"agent_id": agent, "query": query, **more}).result


def facts(world: World, agent: str = "ann") -> list[str]:
    return [fact.text for fact in world.services.facts.facts("demo", agent)]


def form(world: World) -> None:
    queue: Any = world.queue
    records = [
        {"messageId": f"m{n}", "body": body, "attributes": {"MessageGroupId": group}}
        for n, (group, body, _) in enumerate(queue.sent)
    ]
    queue.sent.clear()
    assert work({"Records": records}, None, world.services) == {"batchItemFailures": []}


# --- facts


@pytest.mark.parametrize("how", ["recall", "batch", "explain", "all", "graymatter"])
def test_a_recalled_fact_sent_back_is_the_fact_it_is(world: World, how: str) -> None:
    """Whichever way it was recalled: the same fact comes back and nothing is written, also in a list's clothes."""
    first = keep(world, TEA).result
    if how == "batch":
        post(world, "facts/recall_batch", {"agent_id": "ann", "queries": ["tea"]})
    elif how == "graymatter":
        world.ask("GET", "/v1/demo/graymatter/recall", token=world.token(), query="agent=ann&q=tea")
    else:
        recall(world, "tea", explain=how == "explain", scope="all" if how == "all" else "agent")
    version = world.services.spaces.head("demo").ver
    for again in (TEA, f"- {TEA}", f"  {TEA.upper()}"):
        assert keep(world, again).result["id"] == first["id"]
    assert post(world, "graymatter/remember", {"agent": "ann", "text": TEA}).json == {"status": "ok"}
    assert world.services.spaces.head("demo").ver == version


def test_who_says_it_again_on_purpose_is_heard(world: World) -> None:
    """With `again`, after a day, in other words, or where it was never served: a new fact."""
    keep(world, TEA)
    keep(world, TEA)
    assert len(facts(world)) == 2
    recall(world, "tea")
    assert keep(world, TEA, again=True).status == 200
    assert keep(world, "The user drinks green tea no more.").status == 200
    assert len(facts(world)) == 4
    world.clock.advance(DAY + 3600_000)
    keep(world, TEA)
    assert len(facts(world)) == 5


def test_a_forgotten_text_is_news(world: World) -> None:
    """Served, forgotten, and said again: the fact is new, for there is none any more."""
    first = keep(world, TEA).result
    recall(world, "tea")
    post(world, "facts/forget", {"agent_id": "ann", "target": TEA})
    assert keep(world, TEA).result["id"] != first["id"]


def test_a_shared_fact_does_not_become_ones_own(world: World) -> None:
    """Recalled from the shared namespace it is the shared fact; another agent's is none of ours."""
    shared = keep(world, TEA, "__shared__").result
    recall(world, "tea", scope="shared")
    assert keep(world, TEA).result == {
        **keep(world, TEA).result,
        "agent_id": "__shared__",
        "id": shared["id"],
    }
    keep(world, "Bob's door code is 7421.", "bob")
    recall(world, "door", "bob")
    assert keep(world, "Bob's door code is 7421.").result["agent_id"] == "ann"


def test_another_label_is_not_lost_in_silence(world: World) -> None:
    """Served without a label and sent back with one: refused with the way to change it, and that way works."""
    keep(world, TEA)
    recall(world, "tea")
    said = keep(world, TEA, confidence="verified")
    assert (said.status, said.code) == (409, "PreconditionFailed")
    assert "Revise" in said.json["error"]["data"]["hint"]
    post(world, "facts/revise", {"agent_id": "ann", "target": TEA, "text": TEA, "confidence": "verified"})
    assert keep(world, TEA, confidence="verified").result["confidence"] == "verified"
    assert len(facts(world)) == 2


def test_a_retry_key_outlives_what_became_an_echo(world: World) -> None:
    """Kept, served, and the very same request sent again: the same fact."""
    first = keep_keyed(world, TEA)
    recall(world, "tea")
    assert keep_keyed(world, TEA).result == first.result
    assert len(facts(world)) == 1


def keep_keyed(world: World, text: str) -> Any:
    return post(world, "facts", {"agent_id": "ann", "text": text}, idempotency_key="k1")


def test_extraction_leaves_echoes_out(world: World) -> None:
    """Of a model's sentences only those that are news are kept."""
    keep(world, TEA)
    recall(world, "tea")
    made = post(world, "facts/extract", {"agent_id": "ann", "answer": json.dumps([TEA, "Ann moved."])}).result
    assert [fact["text"] for fact in made] == ["Ann moved."]


def test_words_out_of_a_conversation_are_no_fact(world: World) -> None:
    """Recalled from what was said, they are refused with the way to say them anew."""
    post(
        world,
        "formation",
        {"messages": [{"role": "user", "name": "Alice", "content": "I love Lisbon in May."}]},
    )
    form(world)
    found = post(world, "recall_structured", {"query": "What does Alice love?"}).result
    assert found["found"]
    said = keep(world, "I love Lisbon in May.")
    assert (said.status, said.code) == (409, "PreconditionFailed")
    assert "again" in said.json["error"]["data"]["hint"]
    assert keep(world, "I love Lisbon in May.", again=True).status == 200


def test_the_library_means_the_same(world: World) -> None:
    """A directory's memory: recalled and remembered is the same fact; `again` is another one."""
    memory = Memory("", transport=in_process(world.services, "mine"))
    first = memory.remember("ann", TEA)
    memory.recall("ann", "tea")
    assert memory.remember("ann", TEA).id == first.id
    assert memory.remember("ann", TEA, again=True).id != first.id


# --- conversations


def messages(world: World, number: int) -> str:
    answer = world.ask("GET", f"/v1/demo/conversations/{number}", token=world.token()).result
    return json.dumps(answer["messages"])


def test_an_assistants_recalled_words_are_left_out_and_a_users_stay(world: World) -> None:
    """Lines that were served: gone from assistant and tool, kept from users; a note says how many."""
    post(
        world,
        "formation",
        {"messages": [{"role": "user", "name": "Alice", "content": "I love Lisbon in May."}]},
    )
    form(world)
    post(world, "recall_structured", {"query": "What does Alice love?"})
    talk = [
        {"role": "user", "content": "I love Lisbon in May."},
        {"role": "assistant", "content": "I love Lisbon in May.\nShall I book a flight?"},
        {
            "role": "tool",
            "content": [{"type": "image", "url": "x"}, {"type": "text", "text": "I love Lisbon in May."}],
        },
    ]
    told = post(world, "formation", {"messages": talk}).result
    kept = messages(world, told["conversation"])
    assert "2 recalled passages" in told["warnings"][0]
    assert kept.count("Lisbon") == 1
    assert "Shall I book a flight?" in kept


def test_a_fenced_passage_is_left_out_whoever_sends_it(world: World) -> None:
    """Marks of ours around recalled text, in a user's message too."""
    block = fenced(quote("The door code is 7421."), number="abc", origin="demo/facts")
    talk = [{"role": "user", "content": f"Look what you told me:\n{block}\nIs that right?"}]
    told = post(world, "formation", {"messages": talk}).result
    kept = messages(world, told["conversation"])
    assert "7421" not in kept
    assert "Is that right?" in kept


def test_nothing_but_echoes_is_not_taken_in(world: World) -> None:
    """No conversation, and a warning that says why."""
    block = fenced(quote("The door code is 7421."), number="abc", origin="demo/facts")
    told = post(world, "formation", {"messages": [{"role": "assistant", "content": block}]}).result
    assert "conversation" not in told
    assert "nothing was stored" in told["warnings"][0]


def test_a_conversation_sent_again_after_it_was_recalled_is_the_same_one(world: World) -> None:
    """The key's first answer comes back, although the words are echoes by now."""
    talk = {"messages": [{"role": "assistant", "name": "Bot", "content": "Alice loves Lisbon in May."}]}
    first = post(world, "formation", talk, idempotency_key="c1").result
    form(world)
    post(world, "recall_structured", {"query": "Who loves Lisbon?"})
    post(world, "probe", {"query": "Lisbon"})
    talk["messages"].append({"role": "user", "content": "Yes."})
    second = post(world, "formation", talk, idempotency_key="c2").result
    assert second["conversation"] == first["conversation"] + 1
    again = post(world, "formation", talk, idempotency_key="c2").result
    assert again["conversation"] == second["conversation"]


def test_a_guest_of_a_public_space_silences_nobody(world: World) -> None:
    """What was served to nobody in particular is noted nowhere, so that no question keeps words out of the memory."""
    post(
        world,
        "formation",
        {"messages": [{"role": "user", "name": "Alice", "content": "I live in Lisbon now."}]},
    )
    form(world)
    world.make_public()
    before = world.table.get("S#demo", "E#served")
    for path in ("recall", "recall_structured", "probe"):
        assert world.ask("POST", f"/v1/demo/{path}", {"query": "Where does Alice live?"}).status == 200

    assert world.table.get("S#demo", "E#served") == before is None
