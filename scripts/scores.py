"""How much of the gold a ranking finds, and how that is printed; the same for every retrieval that is measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from core.agents.dialogue import estimate_tokens
from scripts.locomo import MISLEADING, Asked

CUTS = (5, 10, 20)
BUDGETS = (500, 1000, 2000)  # tokens
COLUMNS = (*(f"recall@{cut}" for cut in CUTS), *(f"within_{budget}" for budget in BUDGETS))


@dataclass(frozen=True)
class Score:
    """What one question got: the share of its gold at each cut and within each budget, and how long it took (s)."""

    category: int
    shares: tuple[float, ...]
    seconds: float


def score(asked: Asked, found: Sequence[str], length_of: Callable[[str], int], seconds: float) -> Score:
    """How much of a question's gold is among the first turns found.

    Args:
        asked: the question; it has gold.
        found: ids of turns, best first.
        length_of: characters of a turn's text; four are a token.
        seconds: how long finding took.
    """
    sizes = list(accumulate(estimate_tokens(length_of(turn)) for turn in found))
    cuts = [*CUTS, *(sum(size <= budget for size in sizes) for budget in BUDGETS)]
    return Score(
        asked.category, tuple(len(asked.gold & set(found[:cut])) / len(asked.gold) for cut in cuts), seconds
    )


def groups(scores: Sequence[Score]) -> dict[str, list[Score]]:
    """By category, of categories 1 to 4 (those that have an answer), and all; empty ones left out."""
    categories = sorted({one.category for one in scores})
    found = {f"category {number}": [one for one in scores if one.category == number] for number in categories}
    answerable = [one for one in scores if one.category != MISLEADING]
    found |= {"categories 1-4": answerable, "all": list(scores)}
    return {name: members for name, members in found.items() if members}


def means(scores: Sequence[Score]) -> dict[str, float]:
    """The mean of each column in per cent, the number of questions, and the times in milliseconds."""
    columns = zip(*(one.shares for one in scores), strict=True)
    out: dict[str, float] = {"questions": len(scores)}
    out |= {
        name: round(100 * statistics.mean(column), 1) for name, column in zip(COLUMNS, columns, strict=True)
    }
    seconds = sorted(one.seconds for one in scores)
    out["p50_ms"] = round(1e3 * seconds[len(seconds) // 2], 2)
    out["p95_ms"] = round(1e3 * seconds[len(seconds) * 95 // 100], 2)
    return out


def line(name: str, found: dict[str, float]) -> str:
    """One line of a table whose heading is `HEADING`."""
    shares = [" / ".join(f"{found[column]:.1f}" for column in COLUMNS[at : at + 3]) for at in (0, 3)]
    times = f"{found['p50_ms']:.1f} / {found['p95_ms']:.1f}"
    return f"{name:<24} {found['questions']:>9.0f}  {shares[0]:<22} {shares[1]:<34} {times}"


HEADING = (
    f"{'':<24} questions  {'recall@5/10/20':<22} {'within 500/1,000/2,000 tokens':<34} ms a question, p50/p95"
)
