"""What people say, as values: a dialogue to form, a question to answer.

What lives here: the values and the one way to read each from what crossed the wire (`core.protocol.http_types`),
with the tolerances of the Anda Brain contract §1.5. What must never live here: storage, time, or any judgement
on what was said. Roles are data: an unknown one is kept as it came, and nothing is looked up by it except in a
closed table. Text must be valid Unicode: a lone surrogate has no UTF-8 bytes, so it could be neither stored nor
digested as it came, and is refused by name.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.model.elements import Json
from core.model.instants import MAX_INSTANT, MIN_INSTANT, Instant, parse_instant
from core.protocol import http_types as wire

CHARS_PER_TOKEN: Final = 4
MAX_NAME: Final = 256
MAX_CONTEXT: Final = 4096
MAX_LEAD_MS: Final = 24 * 3600 * 1000  # a message cannot have been said more than a day after it arrived

# Any other role: `message` (contract §4.7).
EVIDENCE_CLASS: Final = {
    "user": "user_statement",
    "assistant": "agent_statement",
    "tool": "tool_result",
}


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn. `content` is text, or an array of parts kept exactly as it came.

    timestamp: when it was said (Unix ms); None where none was given or the one given is unusable.
    """

    role: str
    content: Json = ""
    name: str | None = None
    user: str | None = None
    timestamp: Instant | None = None

    @property
    def evidence_class(self) -> str:
        """The KIP evidence class of this role."""
        return EVIDENCE_CLASS.get(self.role, "message")

    @property
    def text(self) -> str:
        """The words of the message; the empty text if it holds none."""
        return text_of(self.content)


class Context(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who and what a conversation is about. `source` names a thread; it is never a key to tell copies by."""

    counterparty: str | None = None
    agent: str | None = None
    source: str | None = None
    topic: str | None = None


class Dialogue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation to form. `timestamp` is None until it is known when the conversation took place."""

    messages: tuple[Message, ...]
    context: Context = Context()
    timestamp: Instant | None = None

    def settled(self, created_at: Instant) -> Dialogue:
        """This input with every message dated: its own time, else the conversation's, else the arrival."""
        base = created_at if self.timestamp is None else self.timestamp
        messages = tuple(
            msgspec.structs.replace(m, timestamp=base) if m.timestamp is None else m for m in self.messages
        )
        return msgspec.structs.replace(self, messages=messages, timestamp=base)

    def digest(self) -> str:
        """SHA-256 over the whole settled input: the identity of its Evidence (contract §4.7)."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()


class Question(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question, with who asks it."""

    query: str
    context: Context = Context()


def text_of(content: Json) -> str:
    """The words in a message's content: the text itself, or its text parts, one a line."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part if isinstance(part, str) else part.get("text") for part in content if part]
    return "\n".join(part for part in parts if isinstance(part, str))


def estimate_tokens(characters: int) -> int:
    """The contract's estimate: four characters are a token."""
    return -(-characters // CHARS_PER_TOKEN)


# --- reading


def read_dialogue(body: wire.FormationInput, *, now: Instant) -> tuple[Dialogue, list[str]]:
    """The dialogue in a formation request.

    Args:
        body: what came over the wire.
        now: when it arrived; a time of saying that lies more than a day after it is unusable.

    Returns:
        The dialogue, and a warning for each time that was unusable and therefore left out (contract §1.5).

    Raises:
        NoemaError: `InvalidInput` naming the member, or `PayloadTooLarge` with the estimate and the limit.
    """
    warnings: list[str] = []
    messages = tuple(_message(item, f"messages[{i}]", now, warnings) for i, item in enumerate(body.messages))
    if not any(message.text.strip() for message in messages):
        raise _invalid("messages", "must hold at least one message that is not empty")
    size = sum(
        len(m.content) if isinstance(m.content, str) else len(msgspec.json.encode(m.content))
        for m in messages
    )
    _check_size(estimate_tokens(size), wire.MAX_FORMATION_TOKENS, "conversation")
    timestamp = _time(body.timestamp, "timestamp", now, warnings)
    return Dialogue(messages=messages, context=_context(body.context), timestamp=timestamp), warnings


def read_question(body: wire.RecallInput) -> Question:
    """The question in a recall request.

    Raises:
        NoemaError: `InvalidInput`, `PayloadTooLarge`.
    """
    return Question(query=check_query(body.query), context=_context(body.context))


def check_query(query: str) -> str:
    """A question that may be asked: not blank, valid Unicode, within the size limit."""
    _check_unicode(query, "query")
    if not query.strip():
        raise _invalid("query", "must be a question that is not blank")
    _check_size(estimate_tokens(len(query)), wire.MAX_RECALL_TOKENS, "question")
    return query


def _message(item: wire.Message, where: str, now: Instant, warnings: list[str]) -> Message:
    if not item.role.strip():
        raise _invalid(f"{where}.role", "must be a text such as user, assistant or tool")
    _check_unicode([item.role, item.content], where)
    return Message(
        role=item.role,
        content=_content(item.content),
        name=_line(item.name, f"{where}.name", MAX_NAME),
        user=_line(item.user, f"{where}.user", MAX_NAME),
        timestamp=_time(item.timestamp, f"{where}.timestamp", now, warnings),
    )


def _content(content: Json) -> Json:
    """Content as it is kept: an array that is one plain text is the same as that text."""
    if not isinstance(content, list) or len(content) != 1:
        return content
    only = content[0]
    if isinstance(only, str):
        return only
    plain = only.get("type", "text") in ("text", "Text") and only.keys() <= {"type", "text"}
    return only["text"] if plain and isinstance(only.get("text"), str) else content


def _context(raw: wire.InputContext | str | None) -> Context:
    try:
        given = wire.parse_context(raw)
    except (ValueError, msgspec.DecodeError):
        raise _invalid("context", "must be an object, or that object as JSON text") from None
    if given is None:
        return Context()
    members = ("counterparty", "agent", "source", "topic")
    return Context(**{name: _line(getattr(given, name), f"context.{name}", MAX_CONTEXT) for name in members})


def _time(value: Json, where: str, now: Instant, warnings: list[str]) -> Instant | None:
    """A usable instant, or None with a warning that says what is used instead."""
    if value is None or value == "":
        return None
    found = usable_time(value, now)
    if found is None:
        used = "the time the conversation was received" if where == "timestamp" else "the conversation's time"
        warnings.append(f"{where} is not a usable time; {used} is used instead")
    return found


def usable_time(value: Json, now: Instant) -> Instant | None:
    """The instant that a client's time means (RFC 3339, or Unix ms as a number); None if it cannot be used.

    Args:
        value: what the client sent.
        now: when it arrived; what lies more than a day after it cannot have been.
    """
    found: Instant | None = None
    if isinstance(value, str):
        try:
            found = parse_instant(value.strip())
        except ValueError:
            found = None
    elif isinstance(value, (int, float)) and abs(value) < 2**53:
        found = int(value)
    if found is not None and MIN_INSTANT <= found <= min(MAX_INSTANT, now + MAX_LEAD_MS):
        return found
    return None


def _line(value: str | None, where: str, limit: int) -> str | None:
    """A text member, None where it is absent or blank."""
    if value is None:
        return None
    _check_unicode(value, where)
    if len(value) > limit:
        raise _invalid(where, f"must be at most {limit} characters")
    return value if value.strip() else None


def _check_unicode(value: Any, where: str) -> None:  # JSON of any shape
    """Refuse text that has no UTF-8 form, at any depth."""
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise _invalid(where, "holds a lone surrogate, which is not valid Unicode") from None
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_unicode(key, where)
            _check_unicode(item, where)
    elif isinstance(value, list):
        for item in value:
            _check_unicode(item, where)


def _check_size(size: int, limit: int, what: str) -> None:
    if size > limit:
        raise NoemaError(
            "PayloadTooLarge",
            f"the {what} is about {size} tokens; at most {limit} are taken at once",
            details={"estimated_tokens": size, "limit_tokens": limit},
        )


def _invalid(member: str, problem: str) -> NoemaError:
    return NoemaError("InvalidInput", f"`{member}` {problem}", details={"member": member})
