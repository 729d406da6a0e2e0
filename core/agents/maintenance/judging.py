"""Judging: two answers to one question are compared blind (contract §6.8).

What lives here: what a judge is shown, reading its verdict, and the comparison by rules where there is no judge. What must
never live here: how the answers came about (`core.service.shadow`). Who is A changes with every question, by its number,
so that a judge who prefers a place prefers nobody.
"""

from __future__ import annotations

import json
import re
from typing import Final, Literal

import msgspec

from core.agents.prompts.judging import SYSTEM
from core.models.chat import Turn
from core.models.run import Script

OFFLINE_JUDGE: Final = "offline-receipts-1"
"""The comparison by rules: an answer before none, more receipts before fewer, then less uncertainty before more."""
MAX_ANSWER: Final = 4_000  # characters of an answer that a judge reads
MAX_REASON: Final = 300
MAX_REPLY: Final = 512
_CLEARLY: Final = 0.05  # of uncertainty: less than this is no difference
_OBJECT: Final = re.compile(r"\{.*\}", re.DOTALL)

Winner = Literal["baseline", "candidate", "tie"]


class Told(msgspec.Struct, frozen=True):
    """An answer as it is compared."""

    text: str
    found: bool
    cited: int = 0
    uncertainty: float | None = None
    failed: bool = False


class Verdict(msgspec.Struct, frozen=True):
    """Who is better, and why."""

    winner: Winner
    reason: str = ""


class _Said(msgspec.Struct):
    winner: Literal["A", "B", "tie"]
    reason: str = ""


def same(baseline: Told, candidate: Told) -> bool:
    """Whether there is nothing to compare."""
    return baseline == candidate


def judge_by_rules(baseline: Told, candidate: Told) -> Verdict:
    """The comparison without a judge; it reads no text."""
    for reason, sign in (
        ("answered", _sign(not candidate.failed, not baseline.failed)),
        ("found something", _sign(candidate.found, baseline.found)),
        ("more receipts", _sign(candidate.cited, baseline.cited)),
        ("less uncertain", _surer(baseline, candidate)),
    ):
        if sign:
            return Verdict("candidate" if sign > 0 else "baseline", reason)
    return Verdict("tie")


def ask_judge(query: str, baseline: Told, candidate: Told, number: int, context_tokens: int) -> Script:
    """What the judge is asked; with an even number A is the baseline."""
    a, b = (baseline, candidate) if number % 2 == 0 else (candidate, baseline)
    shown = {"question": query[:MAX_ANSWER], "A": _shown(a), "B": _shown(b)}
    return Script(
        system=SYSTEM,
        opening=(Turn("user", json.dumps(shown, ensure_ascii=False)),),
        max_tokens=MAX_REPLY,
        context_tokens=context_tokens,
    )


def read_verdict(text: str, number: int) -> Verdict | None:
    """The verdict, with the places taken back; None for an answer that is none."""
    found = _OBJECT.search(text)
    try:
        said = msgspec.json.decode(found.group() if found else "", type=_Said)
    except msgspec.DecodeError:
        return None
    if said.winner == "tie":
        return Verdict("tie", said.reason[:MAX_REASON])
    first = (said.winner == "A") == (number % 2 == 0)
    return Verdict("baseline" if first else "candidate", said.reason[:MAX_REASON])


def _shown(told: Told) -> dict[str, object]:
    return {"answer": told.text[:MAX_ANSWER], "found": told.found, "citations": told.cited}


def _sign(candidate: int, baseline: int) -> int:
    return (candidate > baseline) - (candidate < baseline)


def _surer(baseline: Told, candidate: Told) -> int:
    if baseline.uncertainty is None or candidate.uncertainty is None:
        return 0
    if abs(baseline.uncertainty - candidate.uncertainty) < _CLEARLY:
        return 0
    return 1 if candidate.uncertainty < baseline.uncertainty else -1
