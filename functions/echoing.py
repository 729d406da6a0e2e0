"""The echo guard of conversations: what this memory served and gets back is left out before it is taken in.

What lives here: one rule for every transport. What must never live here: what counts as served
(`core.service.echoes`), and facts (`core.service.facts` guards its own). Fenced passages go, whoever sends them;
lines that were served lately go from everybody but users, since what a user says is said anew, even in the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Any, Final

import msgspec

from core.protocol.http_types import FormationInput, Message
from core.protocol.http_types import Memory as Recalled
from functions.bootstrap import Services
from functions.mcp.quoting import without_fences

KEPT: Final = "[recalled from this memory; left out]"
NOTHING_NEW: Final = (
    "every message was recalled from this memory, so there is nothing new in it; nothing was stored"
)


def note(found: Services, space: str, answer: str, memories: Iterable[Recalled]) -> None:
    """Note what a recall from conversations served: its lines, and what was said with and without its speaker."""
    names = [memory.name for memory in memories if memory.name]
    said = [name.partition(": ")[2] for name in names]
    found.echoes.served(space, [*answer.splitlines(), *said, *names])


def without_echoes(
    found: Services, space: str, body: FormationInput, is_whole: Callable[[], bool]
) -> tuple[FormationInput, int]:
    """The conversation without what this memory served, and how many passages were left out.

    Of who `is_whole` says does not see all of the memory only fenced passages go: they must not learn what it served to
    others.
    """
    lines = [
        line
        for m in body.messages
        if m.role != "user"
        for part in _parts(m)
        for line in _text(part).split("\n")
    ]
    known = found.echoes.known(space, lines)
    if known and not is_whole():
        known = set()
    out, left_out = [], 0
    for message in body.messages:
        echoed = known if message.role != "user" else frozenset()
        before = _parts(message)
        after = [_without(part, echoed) for part in before]
        changed = sum(new != old for new, old in zip(after, before, strict=True))
        left_out += changed
        if not changed:
            out.append(message)
        elif any(_text(part).replace(KEPT, "").strip() for part in after):
            content = after if isinstance(message.content, list) else _text(after[0])
            out.append(msgspec.structs.replace(message, content=content))
    return (msgspec.structs.replace(body, messages=out) if left_out else body), left_out


Part = str | dict[str, Any]


def _parts(message: Message) -> list[Part]:
    return [message.content] if isinstance(message.content, str) else message.content


def _text(part: Part) -> str:
    """The text in a part of a message; a picture has none."""
    return part if isinstance(part, str) else str(part.get("text") or "")


def _without(part: Part, echoed: AbstractSet[str]) -> Part:
    """A part without fenced passages and echoed lines; the same where there are none."""
    text = _text(part)
    plain = without_fences(text, KEPT)
    if echoed:
        plain = "\n".join(KEPT if line in echoed else line for line in plain.split("\n"))
    if plain == text:
        return part
    return plain if isinstance(part, str) else {**part, "text": plain}
