"""Results that fit: what is too long for a model is shortened where it is long, and says so."""

from __future__ import annotations

import json
from typing import Any, Final

from core.model.elements import Json

_TEXT: Final = 2_000  # characters of one text, once something must be shortened
_STEPS: Final = ((_TEXT, 50), (500, 20), (200, 8), (80, 3))


def fit(value: Json, limit: int) -> str:
    """A value as compact JSON of at most `limit` characters, long texts and lists cut, each with a note."""
    text = _encode(value)
    for texts, items in _STEPS:
        if len(text) <= limit:
            return text
        text = _encode(_cut(value, texts, items))
    if len(text) <= limit:
        return text
    return _encode({"note": "the result is too long to show; ask for less", "begins": text[: limit // 4]})


def _encode(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _cut(value: Any, texts: int, items: int) -> Any:  # JSON values
    if isinstance(value, str) and len(value) > texts:
        return f"{value[:texts]}… [{len(value) - texts} more characters]"
    if isinstance(value, list):
        kept = [_cut(item, texts, items) for item in value[:items]]
        return [*kept, f"[{len(value) - items} more; use LIMIT and CURSOR]"] if len(value) > items else kept
    if isinstance(value, dict):
        return {name: _cut(item, texts, items) for name, item in value.items()}
    return value
