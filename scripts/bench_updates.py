"""How well memory keeps up with change: the share of generated cases that end with the right belief and history.

`scripts/bench updates` runs them with the reader without a model, and with a scripted model that knows what each
message means and writes it through the real tools: the first measures reading, the second everything behind it.
"""

from __future__ import annotations

import argparse
import time

from tests.updates import Share, cases, measure


def _table(title: str, shares: list[Share], seconds: float) -> None:
    print(f"{title} ({seconds:.1f} s)")
    print("| family | cases | current right | history right | both |")
    print("|---|---|---|---|---|")
    for share in shares:
        part = share.right / share.cases
        print(f"| {share.family} | {share.cases} | {share.current} | {share.history} | {part:.0%} |")
    print()


def main() -> None:
    """Print the shares of both readers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=5, help="another set of cases of the same families")
    given = parser.parse_args()
    found = cases(given.seed)
    for title, model in (("without a model", False), ("with a scripted model", True)):
        began = time.perf_counter()
        shares = measure(found, model=model)
        _table(title, shares, time.perf_counter() - began)


if __name__ == "__main__":
    main()
