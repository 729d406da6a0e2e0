"""Anda's tools: remember conversations, recall from them, look at the space, run read-only KIP (contract §8).

What lives here: thin calls to the services that REST calls too. What must never live here: a
rule that the services do not have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.protocol import http_types as wire
from core.protocol.memory_types import MaintenanceInput, UserInput
from core.protocol.request import KIP_VERSION, decode_json, read_request
from core.service.callers import principal_of
from functions import kip
from functions.echoing import note
from functions.intake import start_maintenance, submit
from functions.mcp.brain_schemas import DEFINITIONS, PREFIX
from functions.mcp.paging import (
    BUDGET,
    Piece,
    Place,
    estimate_tokens,
    read_cursor,
    shortened,
    take,
    write_cursor,
)
from functions.mcp.quoting import quote
from functions.mcp.toolbox import Answer, Tool, Turn

ABSENT: Final = tuple(
    PREFIX + name
    for name in (
        "get_attention", "respond_attention", "get_runtime_status", "wiki_search", "wiki_read", "wiki_commit",
        "wiki_verify", "memory", "stage_memory_source", "memory_receipt",
    )
)  # fmt: skip
"""Names of the contract beside the nine, that this deployment does not have: refused as such."""
_REASON: Final = 500  # characters of why one failed
_EXCERPT: Final = 160  # characters of a conversation in a list


# --- arguments


class GetConversation(msgspec.Struct, frozen=True, kw_only=True):
    """Which conversation; with `delta` only what is new after the offsets."""

    conversation_id: wire.Number
    collection: wire.Collection = "formation"
    delta: bool = False
    messages_offset: wire.Offset = 0
    artifacts_offset: wire.Offset = 0


class ExecuteKip(msgspec.Struct, frozen=True, kw_only=True):
    """One command or several; `parameters` as an object or as its JSON text."""

    command: str | None = None
    commands: list[str | dict[str, Any]] | None = None
    parameters: dict[str, Any] | str | None = None
    dry_run: bool = False


def _arguments[T](arguments: Mapping[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert({k: v for k, v in arguments.items() if k != "cursor" or _pages(kind)}, kind)
    except msgspec.ValidationError as error:
        raise NoemaError("InvalidInput", f"Invalid params: {error}") from error


def _pages(kind: type) -> bool:
    return kind is wire.ListQuery  # whose cursor is the service's own


# --- remember


def _remember(turn: Turn, arguments: dict[str, Any]) -> Answer:
    body = _arguments(arguments, wire.FormationInput)
    output = submit(turn.services, turn.caller, turn.space, body, key=turn.key)
    text = (
        "Nothing was stored."
        if output.conversation is None
        else f"Taken in as conversation {output.conversation}. Forming goes on in the background."
    )
    return Answer(text=text + _noted(output), structured=msgspec.to_builtins(output))


def _noted(output: wire.AgentOutput) -> str:
    """The warnings of an answer, one a line."""
    return "".join(f"\nNote: {each}." for each in output.warnings)


# --- maintain


def _maintain(turn: Turn, arguments: dict[str, Any]) -> Answer:
    wish = _arguments(arguments, MaintenanceInput)
    output = start_maintenance(turn.services, turn.caller, turn.space, wish, key=turn.key)
    text = f"Run {output.conversation} of maintenance begins in the background." + _noted(output)
    return Answer(text=text, structured=msgspec.to_builtins(output))


# --- recall


def _recall(turn: Turn, arguments: dict[str, Any]) -> Answer:
    start = read_cursor("recall_memory", arguments)
    body = _arguments(arguments, wire.RecallInput)
    found = _recalled(turn, body, start)
    items = [found.answer, *(_cited(n, memory) for n, memory in enumerate(found.memories, 1))]

    def cost(item: int, text: str) -> int:  # a memory stands in the text and, with its members, in the object
        if not item:
            return estimate_tokens(text)
        told = {**msgspec.to_builtins(found.memories[item - 1]), "name": text}
        return estimate_tokens(json.dumps(told, ensure_ascii=False))

    page = take(items, start, cost=cost)
    memories = [_memory(found.memories[p.item - 1], p) for p in page.pieces if p.item]
    told: dict[str, Any] = {
        "content": "".join(p.text for p in page.pieces if not p.item),
        "origin": turn.origin("conversations"),
        "found": found.found,
        "uncertainty": found.uncertainty,
        "memories": memories,
        "conversation": found.conversation,
        "model": found.model,
        "usage": msgspec.to_builtins(found.usage),
        "memory_budget": msgspec.to_builtins(found.memory_budget),
        "recall_receipt": msgspec.to_builtins(found.recall_receipt),
        "failed_reason": found.failed_reason,
    }
    rest = None
    if page.rest is not None:
        place = msgspec.structs.replace(page.rest, run=found.conversation or 0)
        rest = write_cursor("recall_memory", arguments, place)
    told["next_cursor"] = rest
    if turn.caller.kind != "anonymous":  # a guest's question must not decide what others may say
        note(turn.services, turn.space, found.answer, found.memories)
    shown = turn.fence("\n".join(quote(p.text) for p in page.pieces), "conversations")
    head = "Recalled:" if found.found else "Nothing was found on that; do not guess."
    if found.uncertainty is not None:
        head += f" (uncertainty {found.uncertainty:.2f}, from 0 sure to 1 guessing)"
    if found.failed_reason is not None:
        head += f"\nThe answer may not be whole: {found.failed_reason}."
    return Answer(
        text=f"{head}\n{shown}",
        structured={name: value for name, value in told.items() if value is not None},
        origin="conversations",
        rest=rest,
        failed=found.failed_reason is not None,
        degraded=found.degraded,
    )


def _recalled(turn: Turn, body: wire.RecallInput, start: Place) -> wire.RecallOutput:
    """The answer; a later page of one is read from its record, so that it is the same answer and paid for once."""
    recall = turn.services.recall
    kept = recall.kept(turn.caller, turn.space, start.run) if start.run else None
    if kept is not None:
        return kept
    return recall.recall_structured(turn.caller, turn.space, body, deadline=turn.deadline)


def _cited(number: int, memory: wire.Memory) -> str:
    parts = (memory.created_at, memory.type, memory.entity, memory.source)
    return f"[{number}] {memory.name or ''} ({', '.join(part for part in parts if part)})"


def _memory(memory: wire.Memory, piece: Piece) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(memory)
    return told if piece.whole else {**told, "name": piece.text}


# --- looking


def _info(turn: Turn, arguments: dict[str, Any]) -> Answer:
    del arguments
    return _plain(turn.services.admin.info(turn.space, turn.caller))


def _status(turn: Turn, arguments: dict[str, Any]) -> Answer:
    del arguments
    return _plain(turn.services.admin.formation_status(turn.space, turn.caller))


def _plain(value: Any) -> Answer:  # a struct of the wire
    told = msgspec.to_builtins(value)
    return Answer(text=quote(json.dumps(told, ensure_ascii=False, indent=1)), structured=told)


def _list(turn: Turn, arguments: dict[str, Any]) -> Answer:
    query = _arguments(arguments, wire.ListQuery)
    limit = query.limit
    while True:
        page, cursor = turn.services.conversations.page(
            turn.space, query.collection, cursor=query.cursor, limit=limit, caller=turn.caller
        )
        shown = [_summary(each) for each in page]
        text = "\n".join(json.dumps(each, ensure_ascii=False) for each in shown)
        if len(shown) < 2 or estimate_tokens(text) <= BUDGET:
            break
        limit = max(1, min(len(shown) - 1, len(shown) * BUDGET // estimate_tokens(text)))
    told: dict[str, Any] = {"conversations": shown, "origin": turn.origin("conversations")}
    if cursor is not None:
        told["next_cursor"] = cursor
    body = turn.fence(quote(text), f"conversations/{query.collection}") if shown else "No conversations."
    return Answer(text=body, structured=told, origin="conversations", rest=cursor)


def _summary(conversation: wire.Conversation) -> dict[str, Any]:
    """A conversation as a list shows it: all but its messages, and how the first of them begins."""
    told: dict[str, Any] = msgspec.to_builtins(conversation)
    messages = told.pop("messages")
    for name in ("resources", "artifacts", "usage", "period", "extra"):
        told.pop(name, None)
    if "failed_reason" in told:
        told["failed_reason"] = shortened(told["failed_reason"], _REASON)
    told["messages"] = len(messages)
    if messages and isinstance(messages[0], dict):
        told["excerpt"] = _content(messages[0])[:_EXCERPT]
    return told


def _content(message: Mapping[str, Any]) -> str:
    """What a message says; parts that are no text as JSON."""
    content = message.get("content", "")
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _get(turn: Turn, arguments: dict[str, Any]) -> Answer:
    start = read_cursor("get_conversation", arguments)
    wish = _arguments(arguments, GetConversation)
    conversations = turn.services.conversations
    found: Any
    if wish.delta:
        found = conversations.delta(
            turn.space,
            wish.collection,
            wish.conversation_id,
            messages_offset=wish.messages_offset,
            artifacts_offset=wish.artifacts_offset,
            caller=turn.caller,
        )
    else:
        found = conversations.get(turn.space, wish.collection, wish.conversation_id, caller=turn.caller)
    told: dict[str, Any] = msgspec.to_builtins(found)
    messages = told.pop("messages")
    head = json.dumps(told, ensure_ascii=False)
    # A head over half the budget (a long report, many artifacts) is paged as text before the messages.
    heads = [head] if estimate_tokens(head) > BUDGET // 2 else []
    if heads:
        told = {name: told[name] for name in ("_id", "status")} | {
            "omitted": sorted(set(told) - {"_id", "status"})
        }
    taken = 0 if heads else estimate_tokens(head)
    page = take([*heads, *map(_content, messages)], start, BUDGET - taken)
    said = [p for p in page.pieces if p.item >= len(heads)]
    origin = turn.origin("conversations")
    shown = [{**messages[p.item - len(heads)], "content": p.text} for p in said]
    told = {**told, "messages": shown, "origin": origin}
    rest = None if page.rest is None else write_cursor("get_conversation", arguments, page.rest)
    if rest is not None:
        told["next_cursor"] = rest
    lines = [head] if not heads else [p.text for p in page.pieces if not p.item]
    lines += [f"{messages[p.item - len(heads)].get('role', '?')}: {p.text}" for p in said]
    fenced = turn.fence(quote("\n".join(lines)), f"conversations/{wish.collection}/{wish.conversation_id}")
    return Answer(text=fenced, structured=told, origin="conversations", rest=rest)


def _user(turn: Turn, arguments: dict[str, Any]) -> Answer:
    wish = _arguments(arguments, UserInput)
    told = turn.services.users.get_or_init_user(turn.caller, turn.space, wish, turn.deadline)
    text = json.dumps(told, ensure_ascii=False, indent=1)
    if estimate_tokens(text) > BUDGET:  # a person with many attributes: what names it stays
        kept = {name: told[name] for name in ("id", "kind", "key", "name") if told.get(name) is not None}
        told = {**kept, "omitted": sorted(set(told) - set(kept))}
        text = json.dumps(told, ensure_ascii=False, indent=1)
    return Answer(text=turn.fence(quote(text), "elements"), structured=told, origin="elements")


# --- KIP


def _kip(turn: Turn, arguments: dict[str, Any]) -> Answer:
    start = read_cursor("execute_kip_readonly", arguments)
    wish = _arguments(arguments, ExecuteKip)
    request = read_request(_envelope(wish))
    deadline = min(turn.deadline, turn.services.clock.now() + kip.DEADLINE_MS)
    who = principal_of(turn.caller, readonly=True)
    response = turn.services.kip.execute(turn.space, request, who, deadline=deadline, readonly=True)
    told: dict[str, Any] = msgspec.to_builtins(response)
    page = take([json.dumps(told, ensure_ascii=False)], start)
    rest = None if page.rest is None else write_cursor("execute_kip_readonly", arguments, page.rest)
    whole = rest is None and start == Place()
    shown = turn.fence("\n".join(quote(p.text) for p in page.pieces), "elements")
    failed = response.status != "succeeded"
    return Answer(text=shown, structured=told if whole else None, origin="elements", rest=rest, failed=failed)


def _envelope(wish: ExecuteKip) -> dict[str, Any]:
    if (wish.command is None) == (wish.commands is None):
        raise NoemaError("InvalidRequestEnvelope", "give either command or commands")
    operations = [wish.command] if wish.commands is None else wish.commands
    envelope: dict[str, Any] = {
        "kip": KIP_VERSION,
        "operations": [{"command": each} if isinstance(each, str) else each for each in operations],
    }
    if len(operations) > 1:
        envelope["execution"] = {"mode": "sequence", "on_error": "continue"}
    parameters = wish.parameters
    if isinstance(parameters, str) and parameters.strip():
        parameters = decode_json(parameters.encode("utf-8", "surrogatepass"))
        if not isinstance(parameters, dict):
            raise NoemaError("InvalidRequestEnvelope", "parameters is the JSON text of an object")
    if parameters:
        envelope["parameters"] = parameters
    if wish.dry_run:
        envelope["options"] = {"dry_run": True}
    return envelope


_CALLS: Final = {
    "remember_conversation": _remember,
    "recall_memory": _recall,
    "run_maintenance": _maintain,
    "get_space_info": _info,
    "get_formation_status": _status,
    "execute_kip_readonly": _kip,
    "get_or_init_user": _user,
    "list_conversations": _list,
    "get_conversation": _get,
}
TOOLS: Final = tuple(Tool(each, _CALLS[each.name.removeprefix(PREFIX)]) for each in DEFINITIONS)
