"""Facts from elsewhere: our own JSON and GrayMatter's, mem0's export, the MCP memory server's JSONL.

What lives here: from a text to facts, and to what was passed over and why. What must never live here: writing
them. Nothing that a file says is trusted: what does not fit is passed over and told, one entry at a time. An entry
has the same id however often it is read, so importing a file twice adds nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

import msgspec

from core.errors import NoemaError
from core.facts import labels
from core.facts.ulid import MAX_LENGTH
from core.facts.values import RETIRED_BY_AGENT, Fact
from core.model.instants import MAX_INSTANT, MIN_INSTANT, Instant, parse_instant

Format = Literal["noema", "graymatter", "mem0", "mcp-memory"]

MAX_ENTRIES: Final = 100_000
_FINER: Final = re.compile(r"(\.\d{3})\d+")
_MAX_NOTES: Final = 20


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds: facts, links between named things, and what was passed over (the first few, and how many)."""

    facts: tuple[Fact, ...]
    links: tuple[tuple[str, str], ...] = ()
    passed_over: int = 0
    notes: tuple[str, ...] = ()


class _Unusable(Exception):  # noqa: N818 - one entry of a file, never shown as it is
    """An entry that is no fact."""


def read(text: str, form: Format, *, agent_id: str | None, now: Instant) -> Imported:
    """The facts in a file.

    Args:
        text: the file.
        form: which of the formats it has.
        agent_id: the namespace of everything in it; None: the one each entry names.
        now: the time of entries that have none (ms).

    Raises:
        NoemaError: `InvalidInput` if the file is not of that format at all.
    """
    entries = _lines(text) if form == "mcp-memory" else _list(text, form)
    if len(entries) > MAX_ENTRIES:
        raise NoemaError("ResourceExhausted", f"a file may have {MAX_ENTRIES} entries", hint="Split it.")
    facts: dict[str, Fact] = {}
    links: list[tuple[str, str]] = []
    problems: list[str] = []
    read_one = _READERS[form]
    for number, entry in enumerate(entries, 1):
        try:
            for found in read_one(entry, agent_id, now):
                if isinstance(found, Fact):
                    facts.setdefault(found.id, found)
                else:
                    links.append(found)
        except (_Unusable, NoemaError) as problem:
            told = problem.message if isinstance(problem, NoemaError) else str(problem)
            problems.append(f"entry {number}: {told}")
    return Imported(
        facts=tuple(facts.values()),
        links=tuple(links),
        passed_over=len(problems),
        notes=tuple(problems[:_MAX_NOTES]),
    )


def _list(text: str, form: Format) -> list[Any]:
    value = _json(text, form)
    if isinstance(value, dict):
        value = next((value[name] for name in ("results", "memories", "facts") if name in value), None)
    if not isinstance(value, list):
        raise NoemaError("InvalidInput", f"this is no {form} export: it must hold a JSON array")
    return value


def _lines(text: str) -> list[Any]:
    return [_json(line, "mcp-memory") for line in text.splitlines() if line.strip()]


def _json(text: str, form: Format) -> Any:  # any JSON value
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NoemaError("InvalidInput", f"this is no {form} export: it is not JSON") from error


# --- one entry


def _raw_fact(entry: Any, agent_id: str | None, now: Instant) -> Iterator[Fact]:
    """A fact as GrayMatter and our own export write it; absent members are as in an old store."""
    fields = _object(entry)
    created = _instant(fields.get("created_at")) or now
    weight = fields.get("weight", 1.0)
    if not isinstance(weight, (int, float)) or isinstance(weight, bool) or not math.isfinite(weight):
        raise _Unusable("weight is no number")
    count = fields.get("access_count", 0)
    pinned_at = _instant(fields.get("pinned_at"))
    kind = _text(fields, "kind")
    if kind not in ("", "fact", "alias"):
        raise _Unusable(f"{kind[:40]} is no kind of fact")
    yield Fact(
        id=_id(fields.get("id")),
        element="",
        agent_id=_agent(agent_id, fields.get("agent_id")),
        text=labels.check_text(fields.get("text")),
        created_at=created,
        accessed_at=_instant(fields.get("accessed_at")) or created,
        access_count=count if isinstance(count, int) and count >= 0 else 0,
        weight=min(max(float(weight), 0.0), 1.0),
        superseded_by=_text(fields, "superseded_by")[:MAX_LENGTH],
        confidence=_text(fields, "confidence")[:64],
        pinned_at=(pinned_at or created) if fields.get("pinned") is True else None,
        kind="alias" if kind == "alias" else "fact",
        alias_source=_text(fields, "alias_source")[:64],
        decays_from=_instant(fields.get("decays_from")),
    )


def _mem0(entry: Any, agent_id: str | None, now: Instant) -> Iterator[Fact]:
    """A memory of mem0: whose it is comes from agent_id, user_id or run_id."""
    fields = _object(entry)
    text = next((fields[name] for name in ("memory", "text", "data") if fields.get(name)), None)
    whose = next((fields[name] for name in ("agent_id", "user_id", "run_id") if fields.get(name)), None)
    created = _instant(fields.get("created_at")) or now
    yield Fact(
        id=_id(fields.get("id")),
        element="",
        agent_id=_agent(agent_id, whose),
        text=labels.check_text(text, "memory"),
        created_at=created,
        accessed_at=max(created, _instant(fields.get("updated_at")) or created),
        confidence="unverified",  # a model extracted it
    )


def _mcp_memory(entry: Any, agent_id: str | None, now: Instant) -> Iterator[Fact | tuple[str, str]]:
    """A line of the MCP reference memory server: an entity with its observations, or a relation."""
    fields = _object(entry)
    agent = _agent(agent_id, None)
    if fields.get("type") == "relation":
        source, verb, target = (_required(fields, name) for name in ("from", "relationType", "to"))
        yield _told(agent, f"{source} {verb} {target}", now)
        yield source, target
        return
    if fields.get("type") != "entity":
        raise _Unusable("neither an entity nor a relation")
    name, kind = _required(fields, "name"), _text(fields, "entityType")
    observations = fields.get("observations")
    texts = [each for each in observations if isinstance(each, str)] if isinstance(observations, list) else []
    for text in texts:
        yield _told(agent, f"{name}: {text}", now)
    if not texts:
        yield _told(agent, f"{name} is a {kind}" if kind else name, now)


def _told(agent_id: str, text: str, now: Instant) -> Fact:
    """A fact whose source has no ids: the same text in the same namespace has the same one."""
    digest = hashlib.sha256(f"{agent_id}\x1f{text}".encode()).hexdigest()
    labels.check_text(text)
    return Fact(
        id=f"mcp-{digest[:32]}", element="", agent_id=agent_id, text=text, created_at=now, accessed_at=now
    )


# --- members


def _object(entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise _Unusable("no object")
    return entry


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _required(fields: dict[str, Any], name: str) -> str:
    value = _text(fields, name)
    if not value.strip():
        raise _Unusable(f"{name} is missing")
    return value


def _id(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_LENGTH or not value.isprintable():
        raise _Unusable(f"id must be a text of 1 to {MAX_LENGTH} characters")
    if value == RETIRED_BY_AGENT:
        raise _Unusable("agent is no id")
    return value


def _agent(given: str | None, named: Any) -> str:
    return labels.check_agent(named if given is None else given)


def _instant(text: Any) -> Instant | None:
    """An instant, finer parts cut off; None for none, and for Go's zero time."""
    if not isinstance(text, str) or text.startswith("0001-01-01"):
        return None
    try:
        found = parse_instant(_FINER.sub(r"\1", text))
    except ValueError:
        raise _Unusable(f"{text[:40]} is no time") from None
    return found if MIN_INSTANT <= found <= MAX_INSTANT else None


_Reader = Callable[[Any, str | None, Instant], Iterator[Fact | tuple[str, str]]]
_READERS: Final[dict[Format, _Reader]] = {
    "noema": _raw_fact,
    "graymatter": _raw_fact,
    "mem0": _mem0,
    "mcp-memory": _mcp_memory,
}
