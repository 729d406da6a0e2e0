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


def facts_of(answer: str) -> list[str]:
    """Up to five texts from a JSON array of texts; the whole answer as one where it is none.

    `'["Ann likes tea.", ""]'` -> `["Ann likes tea."]`; `"Ann likes tea."` -> the same, as it is.
    """
    value = _json(answer)
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        kept = list(dict.fromkeys(item.strip() for item in value if item.strip()))
        if kept:
            return kept[:MAX_EXTRACTED]
    return [answer]


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
