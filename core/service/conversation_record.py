"""One conversation: its row as a value, and as the contract shows it.

What lives here: reading a row. What must never live here: rows being written or looked up (`core.service.conversations`).
"""

from __future__ import annotations

from typing import Final

import msgspec

from core.model.elements import Json
from core.ports import Row
from core.protocol import http_types as wire

_HOUR_MS: Final = 3600 * 1000


class Record(msgspec.Struct, frozen=True):
    """One conversation as its row holds it: its id, the row, and the body where it was loaded."""

    number: int
    row: Row
    body: Json = None

    def text(self, name: str) -> str | None:
        """A text attribute, or None."""
        value = self.row.get(name)
        return value if isinstance(value, str) else None

    def count(self, name: str) -> int:
        """A numeric attribute; 0 where it is missing."""
        value = self.row.get(name)
        return value if isinstance(value, int) else 0

    @property
    def status(self) -> str:
        """Where the conversation stands (contract §3)."""
        return str(self.row["status"])


def view_of(record: Record, collection: wire.Collection, *, whole: bool = True) -> wire.Conversation:
    """The record as the contract shows it (§3): the input as JSON text first, then what the run answered."""
    messages: list[Json] = []
    if record.body is not None:
        messages.append({"role": "user", "content": msgspec.json.encode(record.body).decode()})
    answer = record.text("answer")
    if answer is not None:
        messages.append({"role": "assistant", "content": answer})
    extra: dict[str, Json] = {}
    if record.body is None:
        extra["messages_omitted"] = True
    warnings = record.text("warnings")
    if warnings is not None:
        extra["warnings"] = msgspec.json.decode(warnings)
    if record.count("rounds"):
        extra["rounds"] = record.count("rounds")
    for name, attribute in (("prompt", "prompt"), ("steps", "turns")):
        value = record.row.get(attribute)
        if isinstance(value, (str, int)) and value:
            extra[name] = value
    extra |= {name: text for name in ("model", "delivery") if (text := record.text(name)) is not None}
    result = record.text("result")
    if result is not None:
        extra |= {"result": msgspec.json.decode(result)} if whole else {"result_omitted": True}
    return wire.Conversation(
        id=record.number,
        user=record.text("user") or "",
        label=collection,
        messages=tuple(messages),
        resources=(),
        artifacts=(),
        status=msgspec.convert(record.status, wire.ConversationStatus),
        period=record.count("created") // _HOUR_MS,
        created_at=record.count("created"),
        updated_at=record.count("updated"),
        usage=wire.Usage(**{name: record.count(name) for name in wire.Usage.__struct_fields__}),
        thread=record.text("thread"),
        failed_reason=record.text("failed_reason"),
        extra=extra or None,
    )
