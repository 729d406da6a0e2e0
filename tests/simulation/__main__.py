"""Run simulations by seed: `python -m tests.simulation --seed 7`, or `--seeds 100` for the first hundred."""

from __future__ import annotations

import argparse
import sys

import msgspec

from tests.simulation.run import simulate


def main() -> int:
    """Run the seeds asked for, print what each did, and stop at the first failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this seed only")
    parser.add_argument("--seeds", type=int, default=20, help="run the seeds from 0 up to this one")
    parser.add_argument("--steps", type=int, default=2500, help="calls of the store in each run")
    asked = parser.parse_args()
    for seed in range(asked.seeds) if asked.seed is None else [asked.seed]:
        print(msgspec.json.encode(simulate(seed, asked.steps)).decode(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
