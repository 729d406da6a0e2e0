#!/usr/bin/env python3
"""Measures the stores: latency of each operation, and what a commit costs.

    scripts/measure_store.py [--count 200] [--store embedded|aws|all]

`aws` is a local AWS (see tests/ministack.py): its latency says nothing of AWS, its capacity units do.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from core.ports import Objects, Put, Table, Update, When
from infra.aws.clients import Clients
from infra.aws.objects import S3Objects
from infra.aws.table import DynamoTable
from infra.local.objects import DirectoryObjects
from infra.local.table import SqliteTable
from infra.system import SystemClock
from tests.concurrency.ledger import Ledger
from tests.infra.meter import Meter
from tests.ministack import start_local_aws


def timed(name: str, count: int, do: Callable[[int], object]) -> None:
    """Print the median and the 95th percentile of `count` calls."""
    times = []
    for number in range(count):
        start = time.perf_counter()
        do(number)
        times.append((time.perf_counter() - start) * 1000)
    times.sort()
    print(f"  {name:34} p50 {statistics.median(times):7.2f} ms   p95 {times[int(len(times) * 0.95)]:7.2f} ms")


def measure(table: Table, objects: Objects, count: int) -> None:
    """Every operation of the two ports, and a commit and a read through the services."""
    table.transact([Put("p", "HEAD", {"ver": 0, "pad": "x" * 700})])
    timed("table.get, 0.7 KB", count, lambda _: table.get("p", "HEAD"))
    timed(
        "table.transact, one write",
        count,
        lambda n: table.transact([Put("p", f"Q#{n}", {"body": b"x" * 1000})]),
    )
    timed(
        "table.transact, three writes, 1 KB",
        count,
        lambda n: table.transact([
            Update("p", "HEAD", {"ver": n + 1}, when=When(equals={"ver": n})),
            Put("p", f"D#{n + 1:012}", {"body": b"x" * 1000}, When(absent=True)),
            Put("p", f"I#{n}", {"digest": "x" * 64}, When(absent=True)),
        ]),
    )  # fmt: skip
    timed("table.query, 100 rows of 1 KB", count // 4, lambda _: table.query("p", "D#", "D#~", limit=100))
    timed("objects.put, 64 KB", count, lambda n: objects.put(f"sp/d/{n}", b"x" * 65536))
    timed("objects.get, 64 KB", count, lambda n: objects.get(f"sp/d/{n}"))
    ledger = Ledger(table, objects, SystemClock())
    ledger.create()
    timed("commit, 1 KB", count, lambda n: ledger.write(f"e{n}", bytes_of_text=500))
    timed("warm read of the state", count, lambda _: ledger.spaces.load("ledger"))


def measure_cost(table: Table, objects: Objects, meter: Meter) -> None:
    """Capacity units of a commit and of a read."""
    ledger = Ledger(table, objects, SystemClock(), space="cost")
    ledger.create()
    for size in (500, 4_000, 12_000, 60_000):
        ledger.write(f"warm {size}")
        meter.take()
        ledger.write(f"e{size}", bytes_of_text=size)
        print(f"  commit of {size:6} bytes of hex text: {meter.take()}")
    ledger.spaces.load("cost")
    meter.take()
    ledger.spaces.load("cost")
    print(f"  warm read: {meter.take()}")
    Ledger(table, objects, SystemClock(), space="cost").spaces.load("cost")
    print(f"  cold read of 9 commits: {meter.take()}")


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description="Measure the stores.")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--store", choices=["embedded", "aws", "all"], default="all")
    asked = parser.parse_args()
    if asked.store in ("embedded", "all"):
        with tempfile.TemporaryDirectory() as folder:
            print("embedded store (SQLite, directory)")
            table = SqliteTable(Path(folder, "table.sqlite"))
            measure(table, DirectoryObjects(Path(folder, "objects")), asked.count)
            table.close()
    if asked.store in ("aws", "all"):
        with start_local_aws() as aws:
            if aws is None:
                sys.exit("no ministack: set NOEMA_MINISTACK")
            print("AWS store on a local AWS")
            clients = Clients(aws.session(), endpoint=aws.url)
            dynamo = DynamoTable(clients, aws.make_table_name())
            bucket = S3Objects(clients, aws.make_bucket_name())
            measure(dynamo, bucket, asked.count)
            measure_cost(dynamo, bucket, Meter(clients))


if __name__ == "__main__":
    main()
