"""Confidence labels: what a writer declared, how far it counts, and the checks of what a caller may ask.

What lives here: levels, factors and input checks. What must never live here: any claim that a label is a
probability. Words that are no label are kept as they are and count as unverified.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from core.errors import NoemaError
from core.facts.values import (
    LABELS,
    MAX_AGENT_CHARS,
    MAX_QUERY_CHARS,
    MAX_TEXT_BYTES,
    MAX_TOP_K,
    MAX_WEIGHT,
    RecallOptions,
)

MAX_COUNT: Final = 1_000_000
_LEVEL: Final = {"verified": 2, "inferred": 1, "": 1, "unverified": 0}
_OF_LEVEL: Final = ("unverified", "inferred", "verified")


def level(label: str) -> int:
    """How far a label counts: verified 2, inferred or none 1, anything else 0."""
    return _LEVEL.get(label, 0)


def effective(label: str) -> str:
    """The label that counts: `""` -> inferred, `gut feeling` -> unverified."""
    return _OF_LEVEL[level(label)]


def factor(label: str, weight: float) -> float:
    """What a fused score is multiplied with: 1 + w for verified, 1 - w for unverified."""
    return 1.0 + weight * (level(label) - 1)


def conservative(labels: Iterable[str]) -> str:
    """The label of what replaces facts with these labels: the lowest of them, and at most inferred."""
    return _OF_LEVEL[min([1, *(level(label) for label in labels)])]


# --- checks of input


def _refuse(member: str, problem: str, **details: Any) -> NoemaError:  # JSON values
    return NoemaError("InvalidInput", f"{member} {problem}", details={"member": member, **details})


def check_label(label: Any, member: str = "confidence") -> str:  # a caller's value
    """The label, if it is one of the three.

    Raises:
        NoemaError: `InvalidInput`; the labels are case-sensitive.
    """
    if not isinstance(label, str) or label not in LABELS:
        raise _refuse(member, f"must be one of {', '.join(LABELS)}", allowed=list(LABELS))
    return label


def check_weight(weight: Any) -> float:  # a caller's value
    """The weight, if it is a finite number from 0 to 0.5.

    Raises:
        NoemaError: `InvalidInput`.
    """
    return check_share(weight, "confidence_weight", most=MAX_WEIGHT)


def check_share(value: Any, member: str, *, most: float = 1.0) -> float:  # a caller's value
    """A finite number from 0 to `most`.

    Raises:
        NoemaError: `InvalidInput`.
    """
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not 0 <= value <= most:
        raise _refuse(member, f"must be a number from 0 to {most:g}")
    return float(value)


def check_count(value: Any, member: str) -> int:  # a caller's value
    """A whole number from 0 to a million.

    Raises:
        NoemaError: `InvalidInput`.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_COUNT:
        raise _refuse(member, f"must be a whole number from 0 to {MAX_COUNT}")
    return value


def check_prefix(value: Any) -> int:  # a caller's value
    """How long a beginning two words must share to be paired: 0 for never, else 3 to 32; shorter ones pair anything.

    Raises:
        NoemaError: `InvalidInput`.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not (value == 0 or 3 <= value <= 32):
        raise _refuse("learn_prefix", "must be 0 or a whole number from 3 to 32")
    return value


def check_options(options: RecallOptions) -> RecallOptions:
    """The options, if every one of them may be asked for.

    Raises:
        NoemaError: `InvalidInput`, naming the member.
    """
    if options.min_confidence is not None:
        check_label(options.min_confidence, "min_confidence")
    if options.confidence_weight is not None:
        check_weight(options.confidence_weight)
    if options.count > MAX_TOP_K:
        raise _refuse("top_k", f"may be at most {MAX_TOP_K}", limit=MAX_TOP_K)
    return options


def check_agent(agent_id: Any) -> str:  # a caller's value
    """The namespace, byte for byte; blank ones are refused, nothing is trimmed.

    Raises:
        NoemaError: `InvalidInput`.
    """
    if not isinstance(agent_id, str) or not agent_id.strip():
        raise _refuse("agent_id", "must be a text that is not blank")
    if len(agent_id) > MAX_AGENT_CHARS:
        raise _refuse("agent_id", f"may have at most {MAX_AGENT_CHARS} characters", limit=MAX_AGENT_CHARS)
    _encoded(agent_id, "agent_id")
    return agent_id


def check_text(text: Any, member: str = "text") -> str:  # a caller's value
    """A fact's text, verbatim.

    Raises:
        NoemaError: `InvalidInput` for an empty one or half a surrogate pair, `PayloadTooLarge`.
    """
    if not isinstance(text, str) or not text:
        raise _refuse(member, "must be a text that is not empty")
    size = len(_encoded(text, member))
    if size > MAX_TEXT_BYTES:
        raise NoemaError(
            "PayloadTooLarge",
            f"{member} has {size} bytes; a fact may have {MAX_TEXT_BYTES}",
            details={"member": member, "bytes": size, "limit_bytes": MAX_TEXT_BYTES},
            hint="Keep the document elsewhere and remember the facts it holds, one by one.",
        )
    return text


def check_query(query: Any) -> str:  # a caller's value
    """A query's text; it may be empty, for then recency alone ranks.

    Raises:
        NoemaError: `InvalidInput`, `PayloadTooLarge`.
    """
    if not isinstance(query, str):
        raise _refuse("query", "must be a text")
    if len(query) > MAX_QUERY_CHARS:
        raise NoemaError(
            "PayloadTooLarge",
            f"the query has {len(query)} characters; at most {MAX_QUERY_CHARS} are taken",
            details={"member": "query", "limit": MAX_QUERY_CHARS},
        )
    _encoded(query, "query")
    return query


def _encoded(text: str, member: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise _refuse(member, "holds half a surrogate pair") from None
