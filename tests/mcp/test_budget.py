"""Every answer of every tool keeps to the stated budget, whatever the memory holds, and the rest is behind a cursor.

The size itself is checked by `tests.mcp.world.check`, which every call goes through.
"""

import json
from typing import Any

import msgspec
import pytest

from core.facts.values import MAX_TOP_K
from functions.mcp.facts import PART
from functions.mcp.handler import TOOLBOX
from functions.mcp.paging import BUDGET, CUT
from tests.mcp.world import Mcp, client

A = "ann"
LONG = "word " * 6_000


@pytest.fixture
def mcp() -> Mcp:
    return client()


def walk(mcp: Mcp, tool: str, **arguments: Any) -> list[dict[str, Any]]:
    """Every page of an answer."""
    pages = []
    while True:
        result = mcp.call(tool, **arguments)
        pages.append(result)
        assert len(pages) < 400
        cursor = result["_meta"].get("noema/next_cursor")
        if cursor is None:
            return pages
        assert cursor in result["content"][0]["text"]
        arguments["cursor"] = cursor


def fill(mcp: Mcp, count: int, size: int = 40) -> list[str]:
    texts = [f"Fact {n} about tea " + f"word{n} " * size for n in range(count)]
    for text in texts:
        mcp.world.services.facts.remember(
            _caller(mcp), "demo", A, text, deadline=mcp.world.clock.now() + 60_000
        )
    return texts


def _caller(mcp: Mcp) -> Any:
    from core.service.values import Caller  # noqa: PLC0415 - one test's helper

    return Caller("alice", "mcp", "*")


def test_receipts_count_with_all_they_say(mcp: Mcp) -> None:
    """A receipt is many times its text; all of them come, a few on each page, none twice."""
    texts = fill(mcp, 60, 1)
    pages = walk(mcp, "memory_search", agent_id=A, query="tea", top_k=MAX_TOP_K, explain=True)
    seen = [each["text"] for page in pages for each in page["structuredContent"]["explained"]]
    assert len(pages) > 2
    assert sorted(seen) == sorted(texts)
    assert all(
        page["structuredContent"]["count"] == len(page["structuredContent"]["explained"]) for page in pages
    )


def test_a_batch_counts_a_fact_with_every_query_that_found_it(mcp: Mcp) -> None:
    """Thirty-two long queries that all find the same: no page is over the budget, and nothing is lost."""
    texts = fill(mcp, 12)
    queries = [f"tea fact number {n} " + "please " * 200 for n in range(32)]
    pages = walk(mcp, "memory_search_batch", agent_id=A, queries=queries, top_k=12)
    seen = [text for page in pages for text in page["structuredContent"]["merged"]]
    assert len(pages) > 1
    whole = "".join(text.removesuffix(CUT) for text in seen)
    assert all(text in whole for text in texts)
    assert all(len(page["structuredContent"]["per_query"]) == 32 for page in pages)


def test_an_answer_repeats_only_the_beginning_of_a_long_query(mcp: Mcp) -> None:
    """The query is the caller's own; its beginning names it, and the feedback names few of its words."""
    fill(mcp, 3)
    query = " ".join(f"unknown{n}" for n in range(5_000))
    told = mcp.ok("memory_search", agent_id=A, query=query)
    assert query.startswith(told["query"].removesuffix("…"))
    assert "more" in told["feedback"]
    mcp.ok("memory_search", agent_id=A, query="x" * 65_000)


def test_what_is_written_is_not_repeated_at_length(mcp: Mcp) -> None:
    """A hundred long equivalents, five hundred retired copies: the answer says how many more."""
    told = mcp.ok(
        "memory_alias", agent_id=A, term="t" * 5_000, equivalents=[f"{n} " + "e" * 900 for n in range(100)]
    )
    assert 0 < len(told["equivalents"]) < 100
    for _ in range(40):
        mcp.world.services.facts.remember(
            _caller(mcp), "demo", A, "the same", deadline=mcp.world.clock.now() + 60_000
        )
    result = mcp.call("memory_reflect", action="update", agent_id=A, target="the same", text="another")
    assert "and 20 more" in result["content"][0]["text"]
    receipt = mcp.ok("memory_search", agent_id=A, query="another", explain=True)["explained"][0]
    assert len(receipt["provenance"]["supersedes"]) == 20


def test_a_large_state_is_resumed_in_pieces(mcp: Mcp) -> None:
    """Each page has a piece of the state's JSON text and the cursor to the next; together they are the state."""
    state = {"plan": [f'step {n}: "quoted" ' + "detail " * 30 for n in range(60)], "茶": "茶" * 3_000}
    mcp.ok("checkpoint_save", agent_id=A, state=json.dumps(state, ensure_ascii=False))
    pages = walk(mcp, "checkpoint_resume", agent_id=A)
    parts = [page["structuredContent"]["state"] for page in pages]
    assert len(pages) > 3
    assert json.loads("".join(part[PART] for part in parts)) == state
    cursors = [part.get("noema/next_cursor") for part in parts]
    assert cursors == [page["_meta"].get("noema/next_cursor") for page in pages]
    assert mcp.failed("checkpoint_resume", agent_id="bob", cursor=cursors[0], on_missing="empty").startswith(
        "CursorMismatch"
    )


def test_a_state_within_the_budget_is_the_object_itself(mcp: Mcp) -> None:
    """Nothing of ours stands in it."""
    state = {"note": "x" * (BUDGET * 3)}
    mcp.ok("checkpoint_save", agent_id=A, state=json.dumps(state))
    assert mcp.ok("checkpoint_resume", agent_id=A)["state"] == state


def test_a_recall_of_many_long_sayings_goes_on_behind_cursors(mcp: Mcp) -> None:
    """The answer first, then what it rests on; each page fits."""
    messages = [
        {"role": "user", "name": "Alice", "content": f"I drink tea number {n}. " + LONG} for n in range(4)
    ]
    mcp.ok("anda_brain_remember_conversation", messages=messages)
    mcp.form()
    pages = walk(mcp, "anda_brain_recall_memory", query="What does Alice drink?")
    assert pages[0]["structuredContent"]["found"] is True


def test_conversations_of_any_shape_are_read_within_the_budget(mcp: Mcp) -> None:
    """Parts, long messages, many messages; the messages put together are what was said."""
    parts = [{"type": "text", "text": LONG}, {"type": "text", "text": "the end"}]
    messages = [
        {"role": "user", "content": parts},
        *({"role": "user", "content": f"line {n}"} for n in range(300)),
    ]
    told = mcp.ok("anda_brain_remember_conversation", messages=messages)
    pages = walk(mcp, "anda_brain_get_conversation", conversation_id=told["conversation"])
    shown = [each["content"] for page in pages for each in page["structuredContent"]["messages"]]
    assert len(pages) > 3
    assert json.loads("".join(text.removesuffix(CUT) for text in shown))["messages"] == messages
    for page in walk(mcp, "anda_brain_list_conversations", limit=100):
        assert page["structuredContent"]["conversations"]


def test_a_long_report_is_paged_as_text(mcp: Mcp) -> None:
    """What hangs on a conversation beside its messages and is over the budget comes first, as text."""
    told = mcp.ok("anda_brain_remember_conversation", messages=[{"role": "user", "content": "hello there"}])
    conversations = mcp.world.services.conversations
    real = conversations.get

    def with_artifacts(*where: Any, **who: Any) -> Any:
        return msgspec.structs.replace(
            real(*where, **who), artifacts=tuple({"report": f"{n} " + LONG} for n in range(3))
        )

    conversations.get = with_artifacts  # type: ignore[method-assign]
    pages = walk(mcp, "anda_brain_get_conversation", conversation_id=told["conversation"])
    assert len(pages) > 5
    assert "artifacts" in pages[0]["structuredContent"]["omitted"]
    assert "hello there" in pages[-1]["structuredContent"]["messages"][0]["content"]


def test_kip_answers_of_any_size_come_in_pieces(mcp: Mcp) -> None:
    """Many rows: text behind cursors."""
    fill(mcp, 40)
    pages = walk(mcp, "anda_brain_execute_kip_readonly", command='SEARCH CONCEPT "tea" LIMIT 40')
    assert len(pages) > 1


def test_no_tool_was_forgotten() -> None:
    """Each tool of the list is called with much data above, or can only answer with little."""
    small = {
        "anda_brain_get_space_info",
        "anda_brain_get_formation_status",
        "anda_brain_run_maintenance",
        "anda_brain_get_or_init_user",
        "memory_add",
        "checkpoint_save",
    }
    with open(__file__, encoding="utf-8") as file:
        text = file.read()
    assert {tool["name"] for tool in TOOLBOX.listed} == small | {
        tool["name"] for tool in TOOLBOX.listed if f'"{tool["name"]}"' in text.split("def test_no_tool")[0]
    }
