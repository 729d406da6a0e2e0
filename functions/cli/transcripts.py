"""Conversation files: what can be imported, and how it becomes formation requests.

What lives here: pure functions from a file's text to `Session` values. Three kinds of file are read:

* LoCoMo: an object, or a list of them, with `conversation: {session_1: [{speaker, text}], session_1_date_time}`.
* JSON: a list of messages `{role, content, name?, timestamp?}`; one conversation `{messages: [...], timestamp?,
  context?}`; or a list of conversations.
* JSONL: one message, or one conversation, on each line.

What must never live here: HTTP, and any change to what was said.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from functions.cli.terminal import Failure

Json = Any  # a JSON value

MAX_MESSAGES: Final = 100  # of one request; longer conversations go in parts, in order
MAX_CHARACTERS: Final = 300_000  # of one request's messages: the service takes 100,000 tokens of four
_SESSION: Final = re.compile(r"session_(\d+)\Z")
_LOCOMO_TIME: Final = "%I:%M %p on %d %B, %Y"


class Session(msgspec.Struct, frozen=True):
    """One formation request: a label for people, and the body to send."""

    label: str
    body: dict[str, Json]

    @property
    def key(self) -> str:
        """The same for the same conversation under the same label: what makes sending it again harmless."""
        content = json.dumps([self.label, self.body], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def read(text: str, name: str, sample: str | None = None) -> list[Session]:
    """The conversations in a file, in order.

    Args:
        text: the file's content.
        name: the file's name, for labels and messages.
        sample: of a LoCoMo file with several samples, which.

    Raises:
        Failure: the file is none of the three kinds.
    """
    value = _decode(text, name)
    samples = value if isinstance(value, list) else [value]
    if samples and all(
        isinstance(each, dict) and isinstance(each.get("conversation"), dict) for each in samples
    ):
        chosen = _choose(samples, sample)
        found = list(_locomo(chosen["conversation"], str(chosen.get("sample_id", name))))
    else:
        found = list(_plain(samples, name))
    if not found:
        raise Failure(
            f"{name} holds no messages", "`noema import --help` describes the files that can be read."
        )
    return [part for each in found for part in _parts(each)]


def _decode(text: str, name: str) -> Json:
    try:
        return json.loads(text)
    except ValueError:
        pass
    lines = [line for line in text.splitlines() if line.strip()]
    out = []
    for number, line in enumerate(lines, start=1):
        try:
            out.append(json.loads(line))
        except ValueError as error:
            raise Failure(
                f"{name} is neither JSON nor JSON lines: line {number} cannot be read",
                "A plain text goes with `noema remember`.",
            ) from error
    return out


def _choose(samples: list[dict[str, Json]], wanted: str | None) -> dict[str, Json]:
    names = [str(each.get("sample_id", number)) for number, each in enumerate(samples)]
    if wanted is None and len(samples) == 1:
        return samples[0]
    if wanted not in names:
        raise Failure(
            "the file holds several conversations" if wanted is None else f"there is no sample {wanted}",
            f"Choose one with --sample: {', '.join(names)}",
        )
    return samples[names.index(wanted)]


def _locomo(conversation: dict[str, Json], sample: str) -> Iterator[Session]:
    numbers = sorted(int(found.group(1)) for name in conversation if (found := _SESSION.match(name)))
    for number in numbers:
        turns = conversation[f"session_{number}"]
        if not turns:
            continue
        label = f"{sample} session {number}"
        body: dict[str, Json] = {
            "messages": [{"role": "user", "name": turn["speaker"], "content": _said(turn)} for turn in turns],
            "context": {"source": label},
        }
        told = conversation.get(f"session_{number}_date_time")
        if told:
            body["timestamp"] = _locomo_time(str(told))
        yield Session(label, body)


def _said(turn: dict[str, Json]) -> str:
    """What was said in a turn; a picture that was shown stands behind it in words, as the file has it."""
    text = str(turn.get("text", ""))
    caption = turn.get("blip_caption")
    return f"{text} [shows a picture: {caption}]" if caption else text


def _locomo_time(text: str) -> str:
    """`1:56 pm on 8 May, 2023` -> `2023-05-08T13:56:00Z`; another spelling goes as it is, for the service to judge."""
    try:
        said = datetime.strptime(text.strip(), _LOCOMO_TIME).replace(tzinfo=UTC)
    except ValueError:
        return text
    return said.strftime("%Y-%m-%dT%H:%M:%SZ")


def _plain(values: list[Json], name: str) -> Iterator[Session]:
    """Conversations as they are; messages on their own are one conversation together."""
    loose: list[dict[str, Json]] = []
    for number, value in enumerate(values, start=1):
        if not isinstance(value, dict):
            raise Failure(f"{name}: item {number} is not an object")
        if isinstance(value.get("messages"), list):
            members = {k: value[k] for k in ("messages", "context", "timestamp") if value.get(k) is not None}
            yield Session(f"{name} #{number}", members)
        elif "content" in value:
            loose.append(value)
        else:
            raise Failure(
                f"{name}: item {number} is neither a message nor a conversation",
                'A message is {"role": ..., "content": ...}; a conversation is {"messages": [...]}.',
            )
    if loose:
        yield Session(name, {"messages": loose})


def _parts(session: Session) -> Iterator[Session]:
    """A long conversation in parts that one request each can carry; a message is never cut."""
    parts: list[list[Json]] = [[]]
    size = 0
    for message in session.body["messages"]:
        length = len(json.dumps(message, ensure_ascii=False))
        if parts[-1] and (len(parts[-1]) == MAX_MESSAGES or size + length > MAX_CHARACTERS):
            parts.append([])
            size = 0
        parts[-1].append(message)
        size += length
    if len(parts) == 1:
        yield session
        return
    for number, messages in enumerate(parts, start=1):
        yield Session(f"{session.label} part {number}", {**session.body, "messages": messages})
