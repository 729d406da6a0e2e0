"""Reading the arguments of GrayMatter's tools by its rules: lax where it always was, strict where v0.20 is.

What lives here: one function per kind of argument. What must never live here: what a tool does with them. Every
refusal is an `InvalidInput` that names the argument, raised before any effect.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from core.errors import NoemaError
from core.facts.labels import check_label, check_weight
from core.facts.values import MAX_QUERIES, TOP_K, RecallOptions

Arguments = Mapping[str, Any]
_RECALL_OPTIONS: Final = ("min_confidence", "confidence_weight")


def refuse(member: str, problem: str) -> NoemaError:
    """The refusal of one argument."""
    return NoemaError("InvalidInput", f"{member} {problem}", details={"member": member})


def text(arguments: Arguments, member: str) -> str:
    """A text that must be there and not be empty; blank ones pass, and nothing is trimmed."""
    found = arguments.get(member)
    if not isinstance(found, str) or not found:
        raise refuse(member, "must be a text that is not empty")
    return found


def texts(arguments: Arguments, member: str, most: int | None = None) -> list[str]:
    """A list of texts with at least one in it."""
    found = arguments.get(member)
    if not isinstance(found, list) or not found or not all(isinstance(each, str) for each in found):
        raise refuse(member, "must be a list of texts that is not empty")
    if most is not None and len(found) > most:
        raise refuse(member, f"may hold at most {most} texts")
    return found


def queries(arguments: Arguments) -> list[str]:
    """The queries of a batch."""
    return texts(arguments, "queries", MAX_QUERIES)


def agent(arguments: Arguments) -> str:
    """`agent_id`, byte for byte."""
    return text(arguments, "agent_id")


def identity(arguments: Arguments) -> str:
    """Who curates: `agent_id` or the older `agent`. Each one given must be good, and the first wins."""
    given = [name for name in ("agent_id", "agent") if name in arguments]
    if not given:
        raise refuse("agent_id", "is missing: say whose memory this is")
    for name in given:
        found = arguments[name]
        if not isinstance(found, str) or not found.strip():
            raise refuse(name, "must be a text that is not blank")
    return str(arguments[given[0]])


def recall_options(arguments: Arguments, *, explain: bool = False) -> RecallOptions:
    """What a search may be asked for. A `top_k` that is no number counts as none, as it always did."""
    label = weight = None
    if "min_confidence" in arguments:
        label = check_label(arguments["min_confidence"], "min_confidence")
    if "confidence_weight" in arguments:
        weight = check_weight(arguments["confidence_weight"])
    if "confidence" in arguments:
        raise refuse("confidence", "is for writing; a search takes min_confidence")
    return RecallOptions(
        top_k=_count(arguments.get("top_k")), min_confidence=label, confidence_weight=weight, explain=explain
    )


def _count(value: Any) -> int:  # a caller's value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return TOP_K
    return int(value)


def confidence(arguments: Arguments) -> str | None:
    """The label of a write; None if none was given, which is not the same as null."""
    return check_label(arguments["confidence"]) if "confidence" in arguments else None


def no_options(arguments: Arguments, *, confident: bool = False) -> None:
    """Refuse the options of a search on a write, and a label where there is none to write."""
    for member in _RECALL_OPTIONS:
        if member in arguments:
            raise refuse(member, "is an option of searches")
    if not confident and "confidence" in arguments:
        raise refuse("confidence", "is for facts that are added or updated")
