"""Print how long each Lambda function takes to import, in a fresh process: the median of several runs.

Usage: python scripts/import_time.py [RUNS] [--limit-ms N]

With `--limit-ms` the exit code is 1 if the read path (the reads function with the AWS table's client) takes more
CPU time than that; wall clock is shown too, but other processes of the machine are in it.
"""

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = {
    "python itself": "pass",
    "reads": "import functions.reads",
    "reads, with services and the DynamoDB client": (
        "import os; os.environ.update(NOEMA_STORE='aws', NOEMA_TABLE='t', NOEMA_BUCKET='b', NOEMA_QUEUE_URL='q',"
        " AWS_DEFAULT_REGION='eu-central-1'); import functions.reads; from functions.bootstrap import services;"
        " s = services(); s.gate; s.spaces; s.table._clients.dynamodb"
    ),
    "writes": "import functions.writes",
    "management": "import functions.management",
    "mcp": "import functions.mcp.handler",
    "worker": "import functions.worker",
    "tick": "import functions.tick",
    "a CWT's first verification, on top": "import cbor2; from cwt import COSE, COSEKey",
}
READ_PATH = "reads, with services and the DynamoDB client"


def measure(code: str, runs: int) -> tuple[float, float]:
    """Milliseconds of wall clock and of CPU to run `code`, the interpreter's own start not counted."""
    timed = (
        "import time; wall, cpu = time.perf_counter(), time.process_time()\n"
        f"{code}\n"
        "print((time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000)"
    )
    times = []
    for _ in range(runs + 1):  # the first run compiles bytecode and is not counted
        command = [sys.executable, "-c", timed]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            sys.exit(1)
        wall, cpu = done.stdout.split()[-2:]
        times.append((float(wall), float(cpu)))
    return statistics.median(t[0] for t in times[1:]), statistics.median(t[1] for t in times[1:])


def main() -> int:
    """Measure every case and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="?", type=int, default=5)
    parser.add_argument("--limit-ms", type=float)
    options = parser.parse_args()
    results = {name: measure(code, options.runs) for name, code in CASES.items()}
    print("   wall     CPU")
    for name, (wall, cpu) in results.items():
        print(f"{wall:4.0f} ms {cpu:4.0f} ms  {name}")
    over = options.limit_ms is not None and results[READ_PATH][1] > options.limit_ms
    if over:
        print(f"the read path is over {options.limit_ms:.0f} ms", file=sys.stderr)
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
