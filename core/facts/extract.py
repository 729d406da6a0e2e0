"""What a model answered, read: facts it extracted, and a summary it proposes. Nothing a model says is trusted.

What lives here: the reading of two shapes of JSON, with or without a Markdown fence around them. What must never
live here: prompts and calls. An answer that cannot be read is told from one that can, never guessed at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, Final

import msgspec

MAX_EXTRACTED: Final = 5
_FENCE: Final = re.compile(r"\A\s*```[A-Za-z]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)


def is_extracted(text: str) -> bool:
    """Whether a text is a JSON array of texts, as a model answers that was asked for facts."""
    return _texts(text) is not None


def facts_of(text: str, answer: str | None = None) -> list[str]:
    """Up to five facts: those of a model's answer, else those of a text that is an array itself, else the text whole.

    `'["Ann likes tea.", ""]'` -> `["Ann likes tea."]`; `"Ann likes tea."` -> the same, as it is. An answer of `[]`
    says that there is nothing to keep.

    Args:
        text: what was given.
        answer: what a model made of it; None if none was asked.
    """
    found = _texts(text if answer is None else answer)
    if found is not None and (found or answer is not None):
        return found[:MAX_EXTRACTED]
    return [text]


def _texts(answer: str) -> list[str] | None:
    """The distinct texts of an array, trimmed, blank ones left out; None if it is no array of texts."""
    value = _json(answer)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return None
    return list(dict.fromkeys(item.strip() for item in value if item.strip()))


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a model would put in place of some facts: a text, and the ids of what it stands for."""

    text: str
    consumes: tuple[str, ...]
    contradictions: tuple[str, ...] = ()


def summary_of(answer: str, shown: Collection[str]) -> Summary | None:
    """The summary in an answer: `{"summary", "consumes": [ids], "contradictions"?}`; None if it is unusable.

    Args:
        answer: what the model said.
        shown: ids of the facts it was shown. Others are passed over, and each counts once.
    """
    value = _json(answer)
    if not isinstance(value, dict):
        return None
    text, consumes = value.get("summary"), value.get("consumes")
    if not isinstance(text, str) or not text.strip() or not isinstance(consumes, list):
        return None
    kept = tuple(dict.fromkeys(each for each in consumes if isinstance(each, str) and each in shown))
    noted = value.get("contradictions")
    told = tuple(each for each in noted if isinstance(each, str)) if isinstance(noted, list) else ()
    return Summary(text=text.strip(), consumes=kept, contradictions=told) if kept else None


def _json(answer: str) -> Any:  # any JSON value, or None
    fenced = _FENCE.match(answer)
    try:
        return json.loads(answer if fenced is None else fenced.group(1))
    except (ValueError, RecursionError):
        return None
