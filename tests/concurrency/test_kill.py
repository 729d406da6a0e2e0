"""Writer processes on the embedded store are killed with `kill -9` in the middle of commits, and started again."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from core.service.leases import Leases
from core.service.upkeep import Upkeep
from tests.concurrency.process import open_ledger

ROOT = Path(__file__).parent.parent.parent
WRITERS = "abc"
LIVES = 3  # of each writer
ACKNOWLEDGED = (1, 25)  # entries that the first writer of a life tells of before all are killed


def start(folder: Path, who: str, first: int) -> subprocess.Popen[str]:
    """A writer process, from its entry `first` on."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.concurrency.process", folder, who, str(first)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def live_and_die(folder: Path, first: dict[str, int], count: int) -> dict[str, list[tuple[int, int, int]]]:
    """Run all writers until the first has told of `count` entries; kill all; what each told."""
    writers = {who: start(folder, who, first[who]) for who in WRITERS}
    told: dict[str, list[tuple[int, int, int]]] = {}
    try:
        stdout = writers[WRITERS[0]].stdout
        assert stdout is not None
        head = [stdout.readline() for _ in range(count)]
    finally:
        for writer in writers.values():
            writer.kill()
    for who, writer in writers.items():
        rest, _ = writer.communicate(timeout=10)
        lines = [*(head if who == WRITERS[0] else []), *rest.splitlines(keepends=True)]
        told[who] = [
            (number, ver, replayed)
            for number, ver, replayed in (map(int, line.split()) for line in lines if line.endswith("\n"))
        ]
    return told


def test_killed_writers_lose_and_double_nothing(tmp_path: Path) -> None:
    """Three processes are killed three times; sent again, the entry in doubt is replayed or written, never both."""
    ledger, table = open_ledger(tmp_path, seed=1)
    ledger.create()
    chance = random.Random(7)
    acknowledged: dict[str, int] = {}
    first = dict.fromkeys(WRITERS, 0)
    for _ in range(LIVES):
        for who, lines in live_and_die(tmp_path, first, chance.randint(*ACKNOWLEDGED)).items():
            for number, ver, _ in lines:
                acknowledged[f"{who}-{number}"] = ver
                first[who] = number + 1
    in_doubt = 0
    for who in WRITERS:  # what a client would do: send what was not acknowledged again
        committed = ledger.write(f"{who}-{first[who]}", bytes_of_text=100)
        acknowledged[f"{who}-{first[who]}"] = committed.ver
        in_doubt += committed.replayed
    table.close()

    reopened, table = open_ledger(tmp_path, seed=2)
    audit = reopened.audit()
    middle = audit.ver // 2
    past = reopened.audit(middle)
    upkeep = Upkeep(reopened.spaces, Leases(table, reopened.clock), reopened.entropy)
    chain = upkeep.verify_chain("ledger")
    table.close()

    print(
        f"{len(acknowledged)} acknowledged, {audit.ver} versions, {in_doubt} of {len(WRITERS)} in doubt had landed"
    )
    assert audit.faults() == []
    assert audit.entries == {name: ver - 1 for name, ver in acknowledged.items()}
    assert past.faults() == []
    assert past.entries == {name: ver - 1 for name, ver in acknowledged.items() if ver <= middle}
    assert chain.broken is None
