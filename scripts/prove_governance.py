#!/usr/bin/env python3
"""Proves that a governed space shows nobody more than their part: three runs, each from a seed.

    scripts/prove_governance.py [--cases 5000] [--fuzz 10000] [--pairs 3000] [--seed 1]

* cases: random spaces, records and questions; each answer is held against that of a filtered copy.
* fuzz: ids, keys and cursors across spaces and principals over HTTP; nothing hidden may come out, and a hidden name is
  answered byte for byte as one that was never given.
* pairs: how long a request for something hidden takes, and one for something that is not there, taken in turns and in
  random order; the distribution of both, and what a distinguisher could make of them.

The exit code is 1 if anything differed or came out. Times are reported, never judged here: see docs/security.md.
"""

from __future__ import annotations

import argparse
import logging
import math
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from functions.logs import logger
from tests.core.governance.fuzz import BY_FACT, BY_ID, Fuzz, Shape
from tests.core.governance.oracle import difference

_EVERY = 1000


def prove_cases(seed: int, cases: int) -> int:
    """Differences between governed answers and those of filtered copies."""
    wrong, began = 0, time.monotonic()
    for number in range(cases):
        found = difference(seed * 1_000_000 + number)
        if found is not None:
            wrong += 1
            print(f"seed {seed * 1_000_000 + number}: {found}")
        if (number + 1) % _EVERY == 0:
            print(f"  {number + 1} cases, {wrong} differences, {time.monotonic() - began:.0f} s", flush=True)
    print(f"cases: {cases} spaces of four questions each, {wrong} differences")
    return wrong


def prove_fuzz(seed: int, cases: int) -> int:
    """Leaks of fuzzed names."""
    began = time.monotonic()
    wrong = Fuzz(seed).run(cases)
    print("\n".join(wrong[:20]))
    print(f"fuzz: {cases} requests, {len(wrong)} leaks, {time.monotonic() - began:.0f} s")
    return len(wrong)


def time_pairs(seed: int, pairs: int) -> None:
    """Print how long the hidden and the absent take, request by request."""
    fuzz, chance = Fuzz(seed), random.Random(seed)
    print(
        f"pairs: {pairs} of each; microseconds; auc: how often the hidden takes longer, .5 tells nothing; p of Mann and Whitney"
    )
    print(f"{'request':<64}{'hidden':>9}{'absent':>9}{'spread':>8}{'auc':>7}{'p':>8}")
    shapes = [(shape, fuzz.ids[0], "C-0z000002000jhaew") for shape in BY_ID[:11]]
    shapes += [(shape, fuzz.world.hidden_facts[0], "0" * 26) for shape in BY_FACT]
    for shape, hidden, absent in shapes:
        taken: dict[str, list[float]] = {hidden: [], absent: []}
        for _ in range(pairs):
            order = [hidden, absent]
            chance.shuffle(order)
            for name in order:
                taken[name].append(_timed(fuzz, shape, name))
        _print_row(f"{shape[0]} {shape[1]} {str(shape[2])[:34]}", taken[hidden], taken[absent])


def _timed(fuzz: Fuzz, shape: Shape, name: str) -> float:
    began = time.perf_counter_ns()
    fuzz.ask(("bob", "*"), shape, name)
    return (time.perf_counter_ns() - began) / 1000


def _print_row(name: str, hidden: Sequence[float], absent: Sequence[float]) -> None:
    quarters = statistics.quantiles(absent, n=4)
    spread = quarters[2] - quarters[0]
    auc, p = _rank_test(hidden, absent)
    middle = statistics.median(hidden), statistics.median(absent)
    print(f"{name:<64}{middle[0]:>9.1f}{middle[1]:>9.1f}{spread:>8.1f}{auc:>7.3f}{p:>8.3f}", flush=True)


def _rank_test(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """Mann-Whitney: how often one takes longer than the other, and the two-sided p by the normal approximation."""
    marked = sorted([(value, 0) for value in one] + [(value, 1) for value in other])
    ranks = sum(place for place, (_, side) in enumerate(marked, 1) if side == 0)
    n, m = len(one), len(other)
    u = ranks - n * (n + 1) / 2
    z = (u - n * m / 2) / math.sqrt(n * m * (n + m + 1) / 12)
    return u / (n * m), math.erfc(abs(z) / math.sqrt(2))


def main() -> int:
    """Prove what was asked for."""
    parser = argparse.ArgumentParser(
        description="Prove that a governed space shows nobody more than their part."
    )
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--fuzz", type=int, default=10_000)
    parser.add_argument("--pairs", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    logger().setLevel(logging.CRITICAL)
    wrong = prove_cases(asked.seed, asked.cases) if asked.cases else 0
    wrong += prove_fuzz(asked.seed, asked.fuzz) if asked.fuzz else 0
    if asked.pairs:
        time_pairs(asked.seed, asked.pairs)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
