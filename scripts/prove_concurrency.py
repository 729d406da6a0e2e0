#!/usr/bin/env python3
"""Proves that concurrent writers lose, double and tear nothing, on a real store; prints the counts.

    scripts/prove_concurrency.py [--store aws|embedded] [--writers 64] [--commits 4] [--seed 1] [--seconds 300]

`aws` is the product's DynamoDB and S3 adapters on a local AWS (see tests/ministack.py). The exit code is 1 if
anything was lost, doubled or torn, if history was not exact, or if a late compaction landed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from core.ports import Objects, Table
from infra.local.objects import DirectoryObjects
from infra.local.table import SqliteTable
from infra.system import SystemClock
from tests.concurrency.proof import Plan, Proof
from tests.ministack import start_local_aws


def prove(table: Table, objects: Objects, plan: Plan) -> int:
    """Run, print, and tell whether it held."""
    report = Proof(table, objects, SystemClock(), plan).run()
    print("\n".join(report.lines()))
    return 1 if report.faults else 0


def main() -> int:
    """Prove what was asked for."""
    parser = argparse.ArgumentParser(
        description="Prove that concurrent writers lose, double and tear nothing."
    )
    parser.add_argument("--store", choices=["aws", "embedded"], default="aws")
    parser.add_argument("--writers", type=int, default=64)
    parser.add_argument("--commits", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=300.0)
    asked = parser.parse_args()
    plan = Plan(writers=asked.writers, commits=asked.commits, seed=asked.seed, seconds=asked.seconds)
    if asked.store == "embedded":
        with tempfile.TemporaryDirectory() as folder:
            table = SqliteTable(Path(folder, "table.sqlite"))
            code = prove(table, DirectoryObjects(Path(folder, "objects")), plan)
            table.close()
            return code
    with start_local_aws() as aws:
        if aws is None:
            print("no local AWS: set NOEMA_MINISTACK to a URL or an executable", file=sys.stderr)
            return 2
        return prove(aws.make_table(), aws.make_objects(), plan)


if __name__ == "__main__":
    sys.exit(main())
