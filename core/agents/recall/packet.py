"""Packets: what a memory holds on a question as items of data, within an exact number of tokens.

What lives here: what a packet looks like, and which items fit. What must never live here: which items there are, and
how tokens are counted (`Count` is an argument; an estimate is never one).

What must be in goes in whole or not at all: open commitments, and the warnings. If they do not fit, nothing else is
delivered either, so that no reader takes what is left for what matters. The other items go in by rank, as many as fit.
A packet never claims to be everything (`semantic_complete`) or to allow anything (`action_ready`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from core.agents.offline.lines import Line
from core.agents.recall.records import MAX_TEXT, row_of
from core.agents.vocabulary import FUNCTIONAL, predicate
from core.model.elements import Json

FORMAT: Final = "noema-recall-packet-1"
MAX_REQUIRED: Final = 64  # open commitments of one packet; more are counted and said to be missing

OUTPUT_EXHAUSTED: Final = "recall_output_budget_exhausted"
REQUIRED_INCOMPLETE: Final = "recall_required_read_incomplete"
CONTEXT_EXHAUSTED: Final = "recall_context_budget_exhausted"
DEADLINE_REACHED: Final = "recall_deadline_reached"
MODEL_UNAVAILABLE: Final = "recall_model_unavailable"
PLANNER_INCOMPLETE: Final = "recall_planner_incomplete"
OVERDUE: Final = "commitment_overdue"
CONTESTED: Final = "claims_disagree"

Count = Callable[[str], int]


class Item(msgspec.Struct, frozen=True):
    """One thing that may be delivered. lane: commitments, claims, said or notes. version: of the element as read."""

    lane: str
    line: Line
    version: int

    def row(self) -> dict[str, Json]:
        """The item as JSON."""
        return {**row_of(self.line), "version": self.version}

    @property
    def trimmed(self) -> bool:
        """Whether its text is longer than is told."""
        return len(self.line.text) > MAX_TEXT or self.line.text.endswith("…")


class Contents(msgspec.Struct, frozen=True):
    """What may go into a packet. missing: required items that could not even be read. optional: by rank."""

    required: tuple[Item, ...] = ()
    optional: tuple[Item, ...] = ()
    missing: int = 0
    codes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    failed_reason: str | None = None


class Packed(msgspec.Struct, frozen=True):
    """A packet. text: its compact JSON, `null` where not even the notice fits. delivered: the items in it."""

    text: str
    tokens: int
    delivered: tuple[Item, ...]
    coverage: dict[str, Json]
    codes: tuple[str, ...]


def pack(contents: Contents, max_tokens: int, count: Count) -> Packed:
    """The fullest packet of at most `max_tokens`, by `count` of its whole text."""

    def fits(kept: int) -> Packed | None:
        packed = _ordinary(contents, kept, count)
        return packed if packed.tokens <= max_tokens else None

    best = fits(0)
    if best is None:
        return _insufficient(contents, max_tokens, count)
    low, high = 0, len(contents.optional)  # `low` items fit
    while low < high:
        middle = (low + high + 1) // 2
        packed = fits(middle)
        if packed is None:
            high = middle - 1
        else:
            low, best = middle, packed
    return best


def _ordinary(contents: Contents, kept: int, count: Count) -> Packed:
    items, left = contents.optional[:kept], contents.optional[kept:]
    codes = contents.codes + ((OUTPUT_EXHAUSTED,) if left else ())
    coverage = _coverage(left, contents.missing)
    told = (*contents.required, *items)
    value: dict[str, Json] = {
        **_head("ordinary", coverage, codes),
        "warnings": list(contents.warnings),
        "required": [item.row() for item in contents.required],
        "items": [item.row() for item in items],
    }
    detail = [{"id": item.line.entity, "trimmed": ["text"]} for item in told if item.trimmed]
    if detail:
        value["recall_detail"] = detail
    if contents.failed_reason is not None:
        value["failed_reason"] = contents.failed_reason
    text = _json(value)
    return Packed(text, count(text), told, coverage, codes)


def _insufficient(contents: Contents, max_tokens: int, count: Count) -> Packed:
    codes = (*contents.codes, OUTPUT_EXHAUSTED)
    coverage = _coverage((*contents.required, *contents.optional), contents.missing)
    for value in (_head("budget_insufficient", coverage, codes), None):
        text = _json(value)
        if (tokens := count(text)) <= max_tokens:
            break
    return Packed(text, tokens, (), coverage, codes)


def _head(status: str, coverage: Json, codes: Sequence[str]) -> dict[str, Json]:
    return {
        "packet": FORMAT,
        "status": status,
        "semantic_complete": False,
        "action_ready": False,
        "coverage": coverage,
        "codes": list(dict.fromkeys(codes)),
    }


def _coverage(left: Sequence[Item], missing: int) -> dict[str, Json]:
    omitted = Counter(item.lane for item in left)
    if missing:
        omitted["commitments"] += missing
    return {"partial": bool(omitted), "omitted": dict(sorted(omitted.items()))}


def warnings_of(required: Sequence[Item], optional: Sequence[Item]) -> tuple[str, ...]:
    """What whoever reads the items must be told beside them."""
    found = []
    if any(not item.line.current for item in required):
        found.append(OVERDUE)
    values: dict[tuple[str, str], set[str]] = {}
    for item in optional:
        line = item.line
        if line.current and item.lane == "claims" and predicate(line.kind) in FUNCTIONAL:
            subject = line.text.partition(" ")[0]
            values.setdefault((line.kind, subject), set()).add(line.text)
    if any(len(texts) > 1 for texts in values.values()):
        found.append(CONTESTED)
    return tuple(found)


def lane_of(line: Line) -> str:
    """The channel through which a line was read."""
    if line.kind in {"commitment", "Commitment"}:
        return "commitments"
    return {"A": "claims", "P": "claims", "E": "said"}.get(line.entity[0], "notes")


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()
