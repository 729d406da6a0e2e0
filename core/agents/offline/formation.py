"""Formation without a model: a part of a conversation into one transaction.

Each message becomes Evidence exactly as it came, the part an Event that lists its turns, and what the messages
plainly state becomes claims and commitments that cite them. A long conversation is formed in parts, one commit
each, and every element carries a key derived from the whole input, so forming a part again writes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from core.agents.dialogue import Dialogue, Message, text_of
from core.agents.offline import MODEL
from core.agents.offline.claims import Promise
from core.agents.offline.lines import day
from core.agents.offline.people import People
from core.agents.offline.reader import FAMILIES, read_message
from core.agents.offline.writer import Turn, Writer
from core.agents.vocabulary import EVENT, HAS_TURN, INVOLVES, MENTIONS, TOOL
from core.model.elements import Activity, Concept, Evidence, Json, Payload, StructuralRef
from core.model.instants import Instant, format_instant
from core.transaction.draft import Draft

Reading = Literal["new", "none", "all"]

PART_MESSAGES: Final = 100  # of one commit
PART_BYTES: Final = 256 * 1024
CHUNK_CHARACTERS: Final = 40_000  # at most 160 KB of UTF-8, below the bound of one element


class Formed(msgspec.Struct, frozen=True):
    """What one part became. `next` is the index of the first message not yet formed."""

    next: int
    evidence: int = 0
    claims: int = 0
    commitments: int = 0


def part_end(messages: tuple[Message, ...], start: int) -> int:
    """Where the part that begins at `start` ends (exclusive): at least one message, within the bounds."""
    size, end = 0, start
    while end < len(messages) and end - start < PART_MESSAGES:
        size += len(msgspec.json.encode(messages[end].content))
        if size > PART_BYTES and end > start:
            break
        end += 1
    return end


def form_part(draft: Draft, dialogue: Dialogue, start: int, *, reading: Reading = "new") -> Formed:
    """Write the part of a settled conversation that begins at message `start`.

    Args:
        draft: the transaction.
        dialogue: the conversation, every message dated.
        start: the first message of the part.
        reading: what is read after it was filed: messages that are new to the space, none because a model reads
            them, or all because they were filed for a model that did not come to read them.
    """
    end = part_end(dialogue.messages, start)
    digest = dialogue.digest()
    people = People(draft, dialogue.context, dialogue.messages)
    part = [
        (i, m) for i, m in enumerate(dialogue.messages[start:end], start) if text_of(m.content) or m.content
    ]
    speakers = {i: people.speaker(message) for i, message in part}
    if dialogue.context.counterparty is not None:  # known from now on, whoever spoke (contract §4.12)
        people.known(dialogue.context.counterparty, None)
    participants = tuple({speaker.id: speaker for speaker in speakers.values()}.values())
    writer = Writer(draft, people, participants)
    turns: list[str] = []
    new: list[str] = []
    for index, message in part:
        filed, made = _file(draft, message, speakers[index], f"msg:{digest}:{index}")
        turns += [evidence.id for evidence in filed]
        if made:
            new += [evidence.id for evidence in filed]
        if reading == "all" or (made and reading == "new"):
            turn = Turn(
                filed[0], speakers[index], int(message.timestamp or 0), index, f"msg:{digest}:{index}"
            )
            _read(writer, turn, message)
    if new or writer.claims or writer.commitments:
        event = _event(dialogue, part, turns, writer, f"event:{digest}:{start}")
        if reading != "none":
            read = turns if reading == "all" else new
            _extraction(draft, read, (event.id, *writer.claims, *writer.commitments))
    return Formed(end, len(turns if reading == "all" else new), len(writer.claims), len(writer.commitments))


def _read(writer: Writer, turn: Turn, message: Message) -> None:
    """Write what a message states. A nameless assistant speaks of itself as a tool does: only its promises count."""
    if turn.speaker.schema_ref == TOOL:
        return
    findings = read_message(message.text, turn.said_at, FAMILIES)
    plain_agent = message.role == "assistant" and message.name is None and message.user is None
    for finding in findings:
        if not plain_agent or isinstance(finding, Promise):
            writer.write(turn, finding)


def _file(draft: Draft, message: Message, speaker: Concept, key: str) -> tuple[list[Evidence], bool]:
    """The Evidence of one message and whether it is new; very long text is several, which join to the original."""
    content: list[Json] = [message.content]
    media = "text/plain" if isinstance(message.content, str) else "application/json"
    if isinstance(message.content, str) and len(message.content) > CHUNK_CHARACTERS:
        text = message.content
        content = [text[i : i + CHUNK_CHARACTERS] for i in range(0, len(text), CHUNK_CHARACTERS)]
    filed: list[Evidence] = []
    made = False
    for number, piece in enumerate(content):
        piece_key = key if number == 0 else f"{key}.{number}"
        found = draft.find_client_key("evidence", piece_key)
        if isinstance(found, Evidence):
            filed.append(found)
            continue
        raw = piece.encode() if isinstance(piece, str) else msgspec.json.encode(piece)
        made = True
        filed.append(
            draft.create(
                Evidence,
                evidence_class=message.evidence_class,
                payload=Payload("inline", inline=piece),
                content_digest=f"sha256:{hashlib.sha256(raw).hexdigest()}",
                media_type=media,
                observed_at=message.timestamp,
                source=(speaker.id,),
                client_key=piece_key,
            )
        )
    return filed, made


def _event(
    dialogue: Dialogue, part: list[tuple[int, Message]], turns: list[str], writer: Writer, key: str
) -> Concept:
    """The Event of a part: when it was, who took part, what came up, and its turns in order."""
    draft, participants = writer.draft, writer.participants
    found = draft.find_client_key("concept", key)
    if isinstance(found, Concept):
        return mention(draft, found, writer.touched)
    times: list[Instant] = [int(message.timestamp or 0) for _, message in part]
    people = {person.id for person in participants}
    links = [
        *(StructuralRef(HAS_TURN, turn) for turn in turns),
        *(StructuralRef(INVOLVES, person) for person in _in_order(participants)),
        *(StructuralRef(MENTIONS, element) for element in writer.touched if element not in people),
    ]
    names = ", ".join(str(person.name) for person in participants if person.schema_ref != TOOL)
    attributes: dict[str, Json] = {
        "event_class": "conversation",
        # No words of the messages: the Evidence is the only copy, so that erasing it erases them.
        "summary": f"Conversation of {names} on {day(min(times))}, {len(part)} message{'s' * (len(part) > 1)}",
        "started_at": format_instant(min(times)),
        "ended_at": format_instant(max(times)),
    }
    about = " · ".join(text for text in (dialogue.context.topic, dialogue.context.source) if text)
    if about:
        attributes["context_summary"] = about
    return draft.create(
        Concept, schema_ref=EVENT, client_key=key, attributes=attributes, structural=tuple(links)
    )


def mention(draft: Draft, event: Concept, elements: Iterable[str]) -> Concept:
    """An Event that also mentions these elements, those who took part left out."""
    linked = {ref.target for ref in event.structural}
    more = tuple(StructuralRef(MENTIONS, element) for element in elements if element not in linked)
    return draft.change(event, structural=(*event.structural, *more)) if more else event


def _in_order(participants: tuple[Concept, ...]) -> list[str]:
    """The participants' ids, each once, in the order in which they first spoke."""
    return list(dict.fromkeys(person.id for person in participants))


def _extraction(draft: Draft, inputs: list[str], outputs: tuple[str, ...]) -> None:
    """The Activity that says by which reader the claims were read from the Evidence (KIP §16.5)."""
    draft.create(
        Activity,
        activity_class="extraction",
        status="completed",
        started_at=draft.now,
        ended_at=draft.now,
        inputs=tuple(inputs),
        outputs=outputs,
        parameters_digest=f"sha256:{hashlib.sha256(MODEL.encode()).hexdigest()}",
    )
