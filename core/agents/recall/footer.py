"""The machine footer of an answer: whether anything was found, and how unsure the model is.

What lives here: reading it, taking it out of every text, and writing what was recalled so that it can hold none. What
must never live here: what is concluded where there is none (`core.agents.recall.answers`).

    <memory_meta>{"found": true, "uncertainty": 0.2}</memory_meta>
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

_TAG: Final = "memory_meta"
_WHOLE: Final = re.compile(
    rf"<{_TAG}[^>]*>(?P<a>.*?)</{_TAG}\s*>|```[ \t]*{_TAG}\b(?P<b>.*?)```", re.DOTALL | re.IGNORECASE
)
# One that begins and is not ended: the tag and what looks like its object, and nothing of the answer behind it.
_BROKEN: Final = re.compile(
    rf"(?:</?{_TAG}[^>\n{{]*>?|```[ \t]*{_TAG}\b)\s*(?P<a>\{{[^{{}}]*\}}?)?", re.DOTALL | re.IGNORECASE
)
_OBJECT: Final = re.compile(r"\{.*\}", re.DOTALL)


class Meta(msgspec.Struct, frozen=True):
    """What the footer says; None for a member that is missing or unusable. `uncertainty`: 0 sure to 1 guessing."""

    found: bool | None = None
    uncertainty: float | None = None


def strip_footers(text: str) -> str:
    """A text without any footer, whole or broken, wherever it stands."""
    return _BROKEN.sub("", _WHOLE.sub("", text)).strip()


def read_footer(text: str) -> Meta:
    """What the answer's own footer says: the last one that begins a line. A quoted one is not the answer's."""
    for pattern in (_WHOLE, _BROKEN):
        own = [match for match in pattern.finditer(text) if _begins_line(text, match.start())]
        if own:
            found = _read(next((part for part in own[-1].groups() if part), ""))
            if found != Meta():
                return found
    return Meta()


def as_data(text: str) -> str:
    """JSON text in which nothing can end a fence or pass for a footer, with the same meaning as JSON."""
    return text.replace("<", "\\u003c").replace("`", "\\u0060").replace(_TAG, "memory\\u005fmeta")


def _begins_line(text: str, place: int) -> bool:
    """Whether nothing but blanks stands before a place in its line, or an answer that ends its last sentence there."""
    line = text[text.rfind("\n", 0, place) + 1 : place].strip()
    return not line or not line.startswith((">", "“", '"', "'", "`", "«"))


def _read(part: str) -> Meta:
    match = _OBJECT.search(part)
    try:
        value = msgspec.json.decode(match.group() if match else part)
    except msgspec.DecodeError:
        return Meta()
    if not isinstance(value, dict):
        return Meta()
    found, unsure = value.get("found"), value.get("uncertainty")
    uncertainty = None
    if isinstance(unsure, (int, float)) and not isinstance(unsure, bool):
        uncertainty = min(1.0, max(0.0, float(unsure)))
    return Meta(found=found if isinstance(found, bool) else None, uncertainty=uncertainty)
