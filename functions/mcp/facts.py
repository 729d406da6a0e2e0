"""GrayMatter's seven tools over the fact memory: its wire contract v0.20, field for field.

What lives here: the calls and the shapes of their results. What must never live here: ranking and writing
(`core.service.facts`), and how arguments are read (`arguments`). The definitions stand in `fact_schemas`.

Two things are ours. A text that this memory served lately and that comes back as a new fact is not stored
(`stored` is false). And an answer over its budget is cut between facts and goes on behind a cursor, which the
closed shapes have no member for: it stands in the text, in `_meta`, and in `feedback`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.facts.values import MAX_QUERIES, Recalled, Receipt, Retrieval
from core.model.instants import format_instant
from functions.mcp import arguments as args
from functions.mcp import fact_schemas as shapes
from functions.mcp.paging import (
    BUDGET,
    CUT,
    Page,
    estimate_tokens,
    read_cursor,
    shortened,
    take,
    write_cursor,
)
from functions.mcp.quoting import numbered, quote
from functions.mcp.toolbox import NEXT_CURSOR, Answer, Tool, Turn
from functions.plain import decode_json

PART: Final = "noema/part"  # a piece of a state's JSON text, where the whole is over the budget
_BY_DESIGN: Final = ("no_embedder", "no_arrays")  # a deployment that ranks by words and age alone
_ECHO: Final = (
    "Not stored: this memory served that very text a moment ago, and a memory does not confirm itself. "
    "To change it, use memory_reflect with update; to keep it from fading, with pin."
)


_ECHOED: Final = 1_000  # characters of an argument that an answer repeats
_EACH: Final = 40  # characters of JSON around the query and the facts of one query of a batch
_LISTED: Final = 20  # ids that one answer names


# --- searching


def _search(turn: Turn, arguments: dict[str, Any]) -> Answer:
    agent, query = args.agent(arguments), args.text(arguments, "query")
    explain = arguments.get("explain") is True
    options = args.recall_options(arguments, explain=explain)
    start = read_cursor("memory_search", arguments)
    found = turn.facts.recall(turn.caller, turn.space, agent, query, options)
    receipts = [_receipt(each) for each in found.receipts]

    def cost(item: int, text: str) -> int:
        if not explain:
            return estimate_tokens(text) + 2
        return estimate_tokens(json.dumps({**receipts[item], "text": text}, ensure_ascii=False))

    shown = shortened(query, _ECHOED)
    page = take(found.texts, start, _left(agent, shown, found.feedback or ""), cost)
    rest = None if page.rest is None else write_cursor("memory_search", arguments, page.rest)
    explained = [{**receipts[p.item], "text": p.text} for p in page.pieces] if explain else []
    told: dict[str, Any] = {
        "agent_id": agent,
        "query": shown,
        "count": len(page.pieces),
        "facts": [] if explain else [p.text for p in page.pieces],
    }
    if explain:
        told["explained"] = explained
    feedback = _feedback(found, rest)
    if feedback:
        told["feedback"] = feedback
    if found.retrieval is not None:
        told["retrieval"] = _retrieval(found.retrieval)
    lines = _scored(explained) if explain else [p.text for p in page.pieces]
    text = _prose(turn, lines, page, found.retrieval, found.feedback) + _lexical(found.degraded)
    return Answer(text=text, structured=told, origin="facts", rest=rest, degraded=found.degraded)


def _left(*said: str) -> int:
    """What the budget leaves for facts beside what an answer repeats or adds; never nothing."""
    return max(BUDGET // 4, BUDGET - sum(map(estimate_tokens, said)))


def _batch(turn: Turn, arguments: dict[str, Any]) -> Answer:
    agent, queries = args.agent(arguments), args.queries(arguments)
    options = args.recall_options(arguments)
    start = read_cursor("memory_search_batch", arguments)
    found = turn.facts.recall_batch(turn.caller, turn.space, agent, queries, options)
    asked = [shortened(each.query, _ECHOED // MAX_QUERIES * 2) for each in found.per_query]
    hits = [1 + sum(text in each.facts for each in found.per_query) for text in found.merged]

    def cost(item: int, text: str) -> int:  # a text stands in `merged` and with every query that found it
        return (estimate_tokens(text) + 2) * hits[item]

    page = take(found.merged, start, _left(agent, *asked, " " * _EACH * len(asked)), cost)
    rest = None if page.rest is None else write_cursor("memory_search_batch", arguments, page.rest)
    shown = {found.merged[p.item]: p.text for p in page.pieces}
    per_query = []
    for query, each in zip(asked, found.per_query, strict=True):
        one: dict[str, Any] = {"query": query, "facts": [shown[t] for t in each.facts if t in shown]}
        per_query.append(one if each.error is None else {**one, "error": each.error})
    told: dict[str, Any] = {
        "agent_id": agent,
        "count": len(page.pieces),
        "merged": [p.text for p in page.pieces],
        "per_query": per_query,
    }
    if found.retrieval is not None:
        told["retrieval"] = _retrieval(found.retrieval)
    text = _prose(turn, [p.text for p in page.pieces], page, found.retrieval, None)
    places = {piece.text: piece.item + 1 for piece in page.pieces}
    for number, one in enumerate(per_query, 1):
        listed = ", ".join(str(places[fact]) for fact in one["facts"]) or "nothing"
        text += f"\nQuery {number} " + (f"failed: {one['error']}" if "error" in one else f"found {listed}.")
    text += _lexical(found.degraded)
    return Answer(text=text, structured=told, origin="facts", rest=rest, degraded=found.degraded)


def _lexical(degraded: str | None) -> str:
    """Said aloud where there should be a ranking by meaning and is none; a deployment without one says so in `_meta`."""
    if degraded is None or degraded in _BY_DESIGN:
        return ""
    return f"\nRanked by words and age, not by meaning, or not all of it ({degraded})."


def _prose(
    turn: Turn, lines: Sequence[str], page: Page, retrieval: Retrieval | None, feedback: str | None
) -> str:
    """The answer for a reader, recalled words fenced and our own outside."""
    if page.pieces:
        count = len(page.pieces)
        head = f"Found {count} relevant {'memory' if count == 1 else 'memories'}:"
        parts = [head, turn.fence(numbered(lines, page.pieces[0].item + 1), "facts")]
    else:
        parts = ["No memories found."]
    if feedback:
        parts += [
            "By words the match is weak. What this memory has words for:",
            turn.fence(quote(feedback), "facts", again=bool(page.pieces)),
        ]
    if retrieval is not None:
        least = retrieval.min_confidence or "none"
        parts.append(
            f"Policy {retrieval.policy}: min_confidence {least}, confidence_weight {retrieval.confidence_weight}; "
            "scores are final scores."
        )
    return "\n".join(parts)


def _scored(receipts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each receipt as a line: its text, its score, and where it comes from."""
    lines = []
    for receipt in receipts:
        ranks, came = receipt["ranks"], receipt["provenance"]
        score = receipt.get("ranking", {}).get("final_score", ranks["fused_score"])
        places = "/".join(str(ranks[f"{name}_rank"]) for name in ("vector", "keyword", "recency"))
        lines.append(
            f"{receipt['text']} (score {score:.8f}, ranks {places}, {came['fact_id']}, {came['written_at']})"
        )
    return lines


def _feedback(found: Recalled, rest: str | None) -> str | None:
    more = None if rest is None else f'More was found than fits: call again with "cursor": "{rest}".'
    lexical = _lexical(found.degraded).strip()
    return "\n".join(part for part in (found.feedback, lexical, more) if part) or None


def _receipt(receipt: Receipt) -> dict[str, Any]:
    """A receipt as the wire has it: what is empty is left out, and of long lists the beginning stands."""
    came = receipt.provenance
    provenance: dict[str, Any] = {"fact_id": came.fact_id, "written_at": format_instant(came.written_at)}
    for name in ("superseded_by", "confidence", "pinned"):
        if getattr(came, name):
            provenance[name] = getattr(came, name)
    if came.supersedes:
        provenance["supersedes"] = list(came.supersedes[:_LISTED])
    told: dict[str, Any] = {
        "text": receipt.text,
        "weight": receipt.weight,
        "age_days": receipt.age_days,
        "ranks": msgspec.to_builtins(receipt.ranks),
        "provenance": provenance,
    }
    if receipt.kg_links:
        told["kg_links"] = list(receipt.kg_links[:_LISTED])
    if receipt.ranking is not None:
        told["ranking"] = msgspec.to_builtins(receipt.ranking)
    return told


def _retrieval(retrieval: Retrieval) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(retrieval)
    return {name: value for name, value in told.items() if value is not None}


# --- writing


def _add(turn: Turn, arguments: dict[str, Any]) -> Answer:
    agent, text = args.agent(arguments), args.text(arguments, "text")
    args.no_options(arguments, confident=True)
    label = args.confidence(arguments)
    fact = turn.facts.remember_news(
        turn.caller, turn.space, agent, text, deadline=turn.deadline, confidence=label, key=turn.key
    )
    if fact is None:
        return Answer(text=_ECHO, structured={"agent_id": agent, "stored": False})
    told: dict[str, Any] = {"agent_id": agent, "stored": True}
    if label is not None:
        told |= {"fact_id": fact.id, "confidence": label}
    return Answer(text=f"Stored as fact {fact.id}.", structured=told)


def _alias(turn: Turn, arguments: dict[str, Any]) -> Answer:
    agent, term = args.agent(arguments), args.text(arguments, "term")
    equivalents = args.texts(arguments, "equivalents")
    args.no_options(arguments)
    turn.facts.alias(turn.caller, turn.space, agent, term, equivalents, deadline=turn.deadline, key=turn.key)
    term = shortened(term, _ECHOED)
    page = take([shortened(each, _ECHOED) for each in equivalents], budget=_left(agent, term))
    equivalents = [piece.text for piece in page.pieces]
    told = {"agent_id": agent, "term": term, "equivalents": equivalents, "stored": True}
    more = "" if page.rest is None else " and more"
    shown = quote(f"{term} = {', '.join(equivalents)}{more}")
    return Answer(
        text=f"Stored. Searches for one of these words now find the others:\n{shown}", structured=told
    )


# --- checkpoints


def _save(turn: Turn, arguments: dict[str, Any]) -> Answer:
    agent = args.agent(arguments)
    args.no_options(arguments)
    saved = turn.facts.save_checkpoint(
        turn.caller,
        turn.space,
        agent,
        deadline=turn.deadline,
        state=_state(arguments.get("state")),
        metadata={"source": "mcp"},
        key=turn.key,
    )
    told = {"agent_id": agent, "checkpoint_id": saved.id, "created_at": format_instant(saved.created_at)}
    return Answer(text=f"Saved checkpoint {saved.id} at {told['created_at']}.", structured=told)


def _state(value: Any) -> dict[str, Any] | None:  # a caller's value
    """The object in a JSON text; none where the text is empty or absent."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise args.refuse("state", "must be a text that holds a JSON object")
    try:
        state = decode_json(value.encode("utf-8", "surrogatepass"))
    except NoemaError as error:
        raise args.refuse("state", "must hold a JSON object; it is not JSON") from error
    if state is None:
        return None
    if not isinstance(state, dict):
        raise args.refuse("state", "must hold a JSON object")
    return state


def _resume(turn: Turn, arguments: dict[str, Any]) -> Answer:
    agent = args.agent(arguments)
    args.no_options(arguments)
    missing = arguments.get("on_missing", "error")
    if missing not in ("error", "empty"):
        raise args.refuse("on_missing", "must be error or empty")
    start = read_cursor("checkpoint_resume", arguments)
    found = turn.facts.latest_checkpoint(turn.space, agent)
    if found is None:
        if missing == "error":
            raise NoemaError(
                "NotFoundOrNotVisible",
                "there is no checkpoint of this agent",
                hint="Save one with checkpoint_save; with on_missing empty, none is no error.",
            )
        return Answer(text="There is no checkpoint.", structured={"found": False, "agent_id": agent})
    told: dict[str, Any] = {"id": found.id, "created_at": format_instant(found.created_at)}
    if found.messages:
        told["message_count"] = len(found.messages)
    head = f"Checkpoint {found.id} of {told['created_at']}"
    if not found.state:
        return Answer(text=f"{head}, without a state.", structured=told, origin="checkpoints")
    page = take([msgspec.json.encode(found.state).decode()], start, cost=_escaped)
    piece = page.pieces[0]
    rest = None if page.rest is None else write_cursor("checkpoint_resume", arguments, page.rest)
    if piece.whole and rest is None:
        told["state"] = found.state
    else:  # a state over the budget comes as pieces of its JSON text, which put together are the state
        part = piece.text.removesuffix(CUT)
        told["state"] = {PART: part} if rest is None else {PART: part, NEXT_CURSOR: rest}
        head += ", a part of the JSON text of its state"
    text = turn.fence(quote(piece.text), "checkpoints")
    return Answer(text=f"{head}:\n{text}", structured=told, origin="checkpoints", rest=rest)


def _escaped(item: int, text: str) -> int:  # noqa: ARG001 - as `Cost`
    """What a part of a JSON text takes when it stands in JSON as a text."""
    return estimate_tokens(json.dumps(text, ensure_ascii=False))


# --- curating


def _reflect(turn: Turn, arguments: dict[str, Any]) -> Answer:
    action = arguments.get("action")
    if action not in shapes.ACTIONS:
        raise args.refuse("action", f"must be one of {', '.join(shapes.ACTIONS)}")
    agent = args.identity(arguments)
    args.no_options(arguments, confident=action in ("add", "update"))
    told: dict[str, Any] = {"action": action, "agent": agent, "ok": True}
    if action == "add":
        return _reflect_add(turn, agent, arguments, told)
    if action == "update":
        return _reflect_update(turn, agent, arguments, told)
    facts, until = turn.facts, turn.deadline
    if action == "link":
        source, target = args.text(arguments, "text"), args.text(arguments, "target")
        facts.link(turn.caller, turn.space, agent, source, target, deadline=until)
        return Answer(text="Linked.", structured=told)
    target = args.text(arguments, "target" if arguments.get("target") else "text")
    change = {"forget": facts.forget, "pin": facts.pin, "unpin": facts.unpin}[action]
    ids = change(turn.caller, turn.space, agent, target, deadline=until)
    return Answer(text=f"Done ({action}): {_named(ids)}.", structured=told)


def _reflect_add(turn: Turn, agent: str, arguments: dict[str, Any], told: dict[str, Any]) -> Answer:
    text, label = args.text(arguments, "text"), args.confidence(arguments)
    fact = turn.facts.remember_news(
        turn.caller, turn.space, agent, text, deadline=turn.deadline, confidence=label, key=turn.key
    )
    if fact is None:
        return Answer(text=_ECHO, structured={**told, "ok": False})
    if label is not None:
        told = {**told, "fact_id": fact.id, "confidence": label}
    return Answer(text=f"Stored as fact {fact.id}.", structured=told)


def _reflect_update(turn: Turn, agent: str, arguments: dict[str, Any], told: dict[str, Any]) -> Answer:
    target, text = args.text(arguments, "target"), args.text(arguments, "text")
    label = args.confidence(arguments)
    try:
        revised = turn.facts.revise(
            turn.caller,
            turn.space,
            agent,
            target,
            text,
            deadline=turn.deadline,
            confidence=label,
            key=turn.key,
        )
    except NoemaError as error:
        committed = error.details.get("fact_id")
        if committed is None:
            raise
        message = f"the replacement was committed as fact {committed}, but: {error.message}"
        raise NoemaError(error.code, message, hint=error.hint, details=error.details) from error
    if label is not None:
        told = {**told, "fact_id": revised.fact.id, "confidence": label}
    return Answer(text=f"Replaced by fact {revised.fact.id}: {_named(revised.retired)}.", structured=told)


def _named(ids: Sequence[str]) -> str:
    """Ids as far as an answer names them, and how many there are beside."""
    more = len(ids) - _LISTED
    return ", ".join(ids[:_LISTED]) + (f" and {more} more" if more > 0 else "")


_CALLS: Final = {
    "memory_search": _search,
    "memory_search_batch": _batch,
    "memory_add": _add,
    "memory_alias": _alias,
    "checkpoint_save": _save,
    "checkpoint_resume": _resume,
    "memory_reflect": _reflect,
}
TOOLS: Final = tuple(Tool(each, _CALLS[each.name], told=True) for each in shapes.DEFINITIONS)
