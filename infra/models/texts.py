"""What models write, read with care: arguments that may be no JSON, JSON inside code fences, text that is no text.

What lives here: pure functions shared by the wires. What must never live here: a wire.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from core.model.elements import Json
from core.models.chat import ToolCall, Turn

_FENCE: Final = "```"
_KIND: Final = re.compile(r"[\w.+-]*[ \t]*\r?\Z")
_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def unfenced(text: str) -> str:
    """What stands inside a code fence that is all of the text, or else the text."""
    kind, newline, rest = text.strip().removeprefix(_FENCE).partition("\n")
    fenced = text.lstrip().startswith(_FENCE) and rest.endswith(_FENCE)
    if not fenced or not newline or _KIND.match(kind) is None:
        return text
    return rest.removesuffix(_FENCE).rstrip(" \t").removesuffix("\n").removesuffix("\r")


def tool_call(call_id: str, name: str, arguments: Any, *, opaque: str = "", cut: bool = False) -> ToolCall:
    """A call as the model made it. Whatever is no JSON object leaves `arguments` None and is kept in `raw`.

    Args:
        call_id: as of `ToolCall`.
        name: likewise.
        opaque: likewise.
        arguments: the text the model wrote, or an object where the wire has parsed it.
        cut: the reply was cut behind this call, so that it may not be whole.
    """
    if not isinstance(arguments, str):
        raw = msgspec.json.encode(arguments).decode()
        good = isinstance(arguments, dict) and not cut
        return ToolCall(call_id, name, arguments if good else None, raw, opaque)
    try:
        parsed = msgspec.json.decode(unfenced(arguments)) if arguments.strip() else {}
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        parsed = None
    if cut and not arguments.strip():
        parsed = None
    return ToolCall(call_id, name, parsed if isinstance(parsed, dict) else None, arguments, opaque)


def distinct(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls with an id each: some servers give none, or the same to all."""
    out: list[ToolCall] = []
    seen: set[str] = set()
    for place, call in enumerate(calls):
        known = call.id
        while not known or known in seen:
            known = f"call_{place}" if known != f"call_{place}" else f"{known}_"
        seen.add(known)
        out.append(call if known == call.id else msgspec.structs.replace(call, id=known))
    return tuple(out)


def safe_name(name: str) -> str:
    """A tool's or a call's name as every wire takes it back, were it a name the model made up."""
    return _NAME.sub("_", name)[:64] or "_"


def in_words(system: str, schema: Mapping[str, Json]) -> str:
    """The prompt with the schema told in words, for a wire that cannot hold a reply to it."""
    told = encode(schema, order="deterministic").decode()
    return f"{system}\n\nAnswer with one JSON object that follows this JSON Schema, and with nothing else:\n{told}"


def without_calls(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """An exchange with its calls and results told as text, for a request that offers no tools.

    A wire refuses the blocks of tools it was not given, and a model that is shown none cannot call any.
    """
    out: list[Turn] = []
    for turn in turns:
        if turn.calls:
            told = [f"[called {call.name} with {call.raw or '{}'}]" for call in turn.calls]
            out.append(Turn("assistant", "\n".join([turn.text, *told] if turn.text else told)))
        elif turn.results:
            answers = [
                f"[{each.name} {'failed' if each.failed else 'answered'}: {each.content}]"
                for each in turn.results
            ]
            out.append(Turn("user", "\n".join(answers)))
        else:
            out.append(turn)
    return tuple(out)


def encode(body: Any, *, order: Any = None) -> bytes:  # JSON values; msgspec's own choice of orders
    """A body as JSON. Half a surrogate pair, which is no text, becomes U+FFFD: no provider takes it."""
    try:
        return msgspec.json.encode(body, order=order)
    except UnicodeEncodeError:
        return msgspec.json.encode(scrubbed(body), order=order)


def scrubbed(value: Any) -> Any:  # JSON values
    """The value without halves of surrogate pairs."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {scrubbed(name): scrubbed(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [scrubbed(each) for each in value]
    return value


# --- schemas

_KEPT: Final = frozenset({
    "type", "properties", "required", "items", "enum", "const", "anyOf", "description", "title", "additionalProperties",
})  # fmt: skip


def closed(schema: Any) -> Any:  # JSON values
    """A schema within what providers take that generate under it: only its shape, and every object closed.

    Bounds of numbers and lengths fall away; whoever reads the reply checks those.
    """
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    out: dict[str, Any] = {}
    for name, value in schema.items():
        if name == "properties":
            out[name] = {key: closed(each) for key, each in value.items()}
        elif name in ("items", "anyOf"):
            out[name] = closed(value)
        elif name in _KEPT:
            out[name] = value
    if "properties" in out or out.get("type") == "object":
        out["additionalProperties"] = False
    return out


def strict(schema: Any) -> bool:  # JSON values
    """Whether every object of a schema is closed and asks for each of its members: what OpenAI's strict mode takes."""
    if isinstance(schema, list):
        return all(strict(each) for each in schema)
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        members = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(members):
            return False
    return all(strict(each) for name, each in schema.items() if name in ("items", "anyOf")) and all(
        strict(each) for each in schema.get("properties", {}).values()
    )
