"""Budgeted recall: exact tokens, required items first, and a receipt of what was delivered."""

import json
from typing import Any

import msgspec
import pytest

from core.errors import NoemaError
from core.models.chat import ChatReply, ChatRequest, ModelFault
from core.models.tokens import O200K
from core.protocol import http_types as wire
from core.service.recall_packets import Counted
from core.service.recall_run import effective
from tests.doubles import ScriptedModel, calls, says
from tests.recalling import Recalling, Words, many, model, results

WIDE = {"max_tokens": 60_000, "context_tokens": 100_000}


def packed(*script: Any, last: ChatReply | None = None) -> tuple[Recalling, ScriptedModel]:
    """A filled world whose planner is scripted; characters are its tokens."""
    mind = model(*script, last=last)
    return Recalling(mind if script or last else None, tokenizer=Words()).filled(), mind


def packet(found: wire.RecallOutput) -> dict[str, Any]:
    """The packet in an answer."""
    return json.loads(found.answer)


def test_a_packet_holds_what_is_open_and_what_bears_on_the_question() -> None:
    """The promise is required, whatever is asked; the rest comes by rank, with ids, versions and provenance."""
    world, _ = packed()

    found = world.structured("Where does Alice live?", budget=WIDE)

    told = packet(found)
    assert told["status"] == "ordinary"
    assert (told["semantic_complete"], told["action_ready"]) == (False, False)
    assert "call the plumber" in told["required"][0]["text"]
    assert told["required"][0]["version"] == 1
    assert any("Lisbon" in item["text"] for item in told["items"])
    assert all({"id", "version", "kind", "text", "when"} <= item.keys() for item in told["items"])
    assert told["coverage"] == {"partial": False, "omitted": {}}
    assert (found.found, found.memories, found.uncertainty, found.model) == (True, (), None, "host-packet-1")
    assert found.memory_budget == wire.MemoryBudget(
        tokenizer=O200K, token_limit=60_000, tokens=len(found.answer), context_token_limit=100_000
    )


@pytest.mark.parametrize("limit", [60_000, 3_000, 1_500, 1_000, 800, 400, 200, 100, 20, 4, 1])
def test_a_packet_never_takes_more_than_its_limit(limit: int) -> None:
    """Optional items go first, then all of it but the notice, then the notice."""
    world, _ = packed()

    found = world.structured("What does Alice love? Bob? hiking tea Lisbon", budget={"max_tokens": limit})

    tokens = len(found.answer)
    assert tokens <= limit or (limit < 4 and found.answer == "null")
    told = packet(found)
    if told is None:
        assert not found.found
        return
    assert found.memory_budget is not None
    assert found.memory_budget.tokens == tokens
    if told["status"] == "ordinary":
        assert told["required"]
        assert told["coverage"]["partial"] == bool(told["coverage"]["omitted"])
    else:
        assert told["status"] == "budget_insufficient"
        assert "items" not in told
        assert told["codes"] == ["recall_output_budget_exhausted"]
        assert not found.found


def test_every_item_that_fits_is_in() -> None:
    """One more would be too many: bisection finds the last that fits."""
    world, _ = packed()
    question = "What does Alice love? Bob? hiking tea Lisbon"
    whole = world.structured(question, budget=WIDE)
    total = len(packet(whole)["items"])
    seen = set()
    for limit in range(len(whole.answer) // 3, len(whole.answer) + 1, 40):
        told = packet(world.structured(question, budget={"max_tokens": limit}))
        if told["status"] == "ordinary":
            kept = len(told["items"])
            assert sum(told["coverage"]["omitted"].values()) == total - kept
            seen.add(kept)

    assert total in seen | {total}
    assert len(seen) > 2


def test_the_receipt_says_what_was_delivered_without_its_words() -> None:
    """Digests and versions on the record, under the handle of the answer; nothing for prose but its delivery."""
    world, _ = packed()
    found = world.structured("Where does Alice live?", budget=WIDE)

    row = world.conversations.record("home", "recall", found.conversation or 0).row
    receipt = json.loads(str(row["receipt"]))
    assert found.recall_receipt is not None
    assert found.recall_receipt.id == f"recall-{found.conversation}"
    assert found.recall_receipt.scope.space_id == "home"
    told = packet(found)
    ids = [item["id"] for item in (*told["required"], *told["items"])]
    assert [item["ref"] for item in receipt["items"]] == ids
    assert receipt["coverage"] == told["coverage"]
    assert "Lisbon" not in json.dumps(receipt)
    plain = world.structured("Where does Alice live?")
    assert plain.recall_receipt is None
    kept = world.conversations.get("home", "recall", plain.conversation or 0)
    assert kept.extra is not None
    assert kept.extra["delivery"] == "legacy_trace_only"


def test_the_policy_enforces_a_budget_and_a_request_only_tightens() -> None:
    """The smaller of each bound holds."""
    policy = wire.RecallBudget(max_tokens=1000, context_tokens=5000)
    asked = wire.RecallBudget(max_tokens=4000, context_tokens=100)

    assert effective(None, None) is None
    assert effective(None, policy) == wire.RecallBudget(tokenizer=O200K, max_tokens=1000, context_tokens=5000)
    assert effective(asked, policy) == wire.RecallBudget(tokenizer=O200K, max_tokens=1000, context_tokens=100)
    world, _ = packed()
    wish = wire.UpdateSpaceInput(memory_policy=wire.MemoryPolicy(recall_budget=policy))
    world.admin.update_space(world.caller, "home", wish, world.clock.now() + 10_000)
    assert packet(world.structured("Where does Alice live?"))["packet"] == "noema-recall-packet-1"


def test_another_tokenizer_and_a_deployment_without_one_are_refused() -> None:
    """Both spellings of ours are taken; nothing is ever estimated."""
    world, _ = packed()
    for name in (O200K, "o200k_base@tiktoken-rs-0.12"):
        assert world.structured("x", budget={"tokenizer": name}).memory_budget is not None
    with pytest.raises(NoemaError) as caught:
        world.structured("x", budget={"tokenizer": "cl100k_base"})
    assert caught.value.code == "InvalidInput"
    with pytest.raises(NoemaError) as caught:
        Recalling(None).filled().structured("x", budget={})
    assert caught.value.code == "NotImplementedYet"
    policy = wire.MemoryPolicy(recall_budget=wire.RecallBudget(tokenizer="chars/4"))
    wish = wire.UpdateSpaceInput(memory_policy=policy)
    with pytest.raises(NoemaError) as caught:
        world.admin.update_space(world.caller, "home", wish, world.clock.now() + 10_000)
    assert caught.value.details["member"] == "memory_policy.recall_budget.tokenizer"


# --- the planner


def test_a_planner_chooses_and_writes_nothing() -> None:
    """Its items in its order; its own words are delivered nowhere."""
    world, mind = packed()
    tea, hike = world.evidence(1), world.evidence(2)
    world.models.model = mind
    mind.script = [
        many(("search_memory", {"query": "hiking"}), ("search_memory", {"query": "green tea"})),
        calls("select_items", {"ids": [hike, "E-00000009001zzzzz", tea]}),
        says("The answer is 42."),
    ]

    found = world.structured("What is fun?", budget=WIDE)

    told = packet(found)
    assert [item["id"] for item in told["items"]] == [hike, tea]
    assert '"unknown":["E-00000009001zzzzz"]' in results(mind.asked[2])[2]
    assert "42" not in found.answer
    assert (found.model, found.usage.requests) == ("scripted-1", 3)


def test_a_planner_finds_what_the_question_does_not() -> None:
    """Words that the question lacks; what is required is there in any case, and once."""
    world, mind = packed()
    world.models.model = mind
    tea = world.evidence(1)
    mind.script = [
        many(("search_memory", {"query": "green tea"})), calls("select_items", {"ids": [tea]}), says("done"),
    ]  # fmt: skip

    told = packet(world.structured("זאפוד", budget=WIDE))

    assert [item["id"] for item in told["items"]] == [tea]
    assert len(told["required"]) == 1


PLANNERS: dict[str, tuple[list[Any], str, str | None]] = {
    "nothing chosen": ([says("done")], "recall_planner_incomplete", None),
    "all rounds": (
        [calls("search_memory", {"query": f"tea {n}"}) for n in range(4)],
        "recall_planner_incomplete",
        None,
    ),
    "down": ([ModelFault("unavailable", "x")], "recall_model_unavailable", "recall_model_unavailable"),
    "refused": ([says("", stop="refused")], "recall_model_unavailable", "recall_model_unavailable"),
}


@pytest.mark.parametrize("name", PLANNERS)
def test_a_planner_that_fails_leaves_the_hosts_order(name: str) -> None:
    """With the code for it; a model that is down is an error and never a budget's."""
    script, code, failed = PLANNERS[name]
    world, _ = packed(*script)

    found = world.structured("Where does Alice live?", budget=WIDE)

    told = packet(found)
    assert told["codes"] == [code]
    assert code in told["warnings"]
    assert told["items"]
    assert (found.failed_reason, told.get("failed_reason")) == (failed, failed)


def test_what_the_planner_is_sent_is_counted_whole_each_time() -> None:
    """The system prompt counts on every pass; what no longer fits is not sent, and the packet says so."""
    world, mind = packed(*(calls("search_memory", {"query": f"tea {n}"}) for n in range(4)))
    sizes: list[int] = []
    mind.script = [
        echo_size(sizes, calls("search_memory", {"query": f"tea {n}"}, call_id=f"c{n}")) for n in range(4)
    ]
    world.structured("Where does Alice live?", budget=WIDE)
    assert len(sizes) == 4
    mind.script = [
        echo_size([], calls("search_memory", {"query": f"tea {n}"}, call_id=f"c{n}")) for n in range(4)
    ]
    mind.asked.clear()
    limit = sizes[0] + sizes[1] + 1

    found = world.structured("Where does Alice live?", budget={"max_tokens": 60_000, "context_tokens": limit})

    assert len(mind.asked) == 2
    assert packet(found)["codes"] == ["recall_context_budget_exhausted"]
    assert (found.failed_reason, bool(packet(found)["items"])) == (None, True)


def echo_size(sizes: list[int], reply: ChatReply) -> Any:
    """A reply that notes how large its request was."""

    def said(request: ChatRequest) -> ChatReply:
        sizes.append(len(msgspec.json.encode(request)))
        return reply

    return said


def test_a_counted_model_sends_nothing_that_is_too_large() -> None:
    """Nothing is asked, nothing is spent."""
    mind = model(last=says("x"))
    counted = Counted(mind, len, 10)
    with pytest.raises(ModelFault) as caught:
        counted.chat(ChatRequest("system", ()), deadline=1)

    assert (caught.value.kind, mind.asked, counted.left) == ("context_overflow", [], 10)
