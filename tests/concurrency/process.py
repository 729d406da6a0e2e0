"""A process that writes a ledger on the embedded store, to be killed. It prints each acknowledged entry.

Usage: python -m tests.concurrency.process FOLDER WHO FIRST
"""

from __future__ import annotations

import sys
from pathlib import Path

from infra.local.objects import DirectoryObjects
from infra.local.table import SqliteTable
from infra.system import SystemClock
from tests.concurrency.ledger import Ledger

LARGE_EVERY = 5  # each fifth delta goes to an object


def open_ledger(folder: Path, seed: int) -> tuple[Ledger, SqliteTable]:
    """The ledger of a folder, as a process that has just started sees it."""
    table = SqliteTable(folder / "table.sqlite")
    return Ledger(table, DirectoryObjects(folder / "objects"), SystemClock(), seed=seed), table


def main(folder: Path, who: str, first: int) -> None:
    """Write entries `who-first`, `who-first+1`, ... until killed."""
    ledger, _ = open_ledger(folder, seed=ord(who) * 10_000 + first)
    number = first
    while True:
        # A client does something between two requests; three that do not would starve one another.
        ledger.clock.sleep(0.003)
        committed = ledger.write(
            f"{who}-{number}", bytes_of_text=40_000 if number % LARGE_EVERY == 0 else 100
        )
        print(number, committed.ver, int(committed.replayed), flush=True)
        number += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
