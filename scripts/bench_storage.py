"""Measure the storage core: what a commit and a read cost as a space grows.

Runs over the reference store in memory, so the numbers are the core's own work, without a network; calls and bytes
read are counted, because on AWS they are what takes the time. Prints a table, and JSON with --json FILE.

    python scripts/bench_storage.py            10^3 to 10^5 elements, about a minute
    python scripts/bench_storage.py --million  10^6 as well, several minutes and 2 GB
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from core.model.elements import (
    Assertion,
    Citation,
    Concept,
    Evidence,
    Origin,
    Payload,
    Proposition,
)
from core.model.literals import Literal
from core.model.log import SchemaEnvironment, SpaceMeta, Tier
from core.service.commit import Birth, Commits
from core.service.leases import Leases
from core.service.spaces import Spaces
from core.service.upkeep import Upkeep
from core.service.values import Proposal
from core.state.indexes import concept_key, subject_key
from core.state.space import SpaceState
from core.storage.memory import MemoryObjects, MemoryTable
from core.transaction.draft import Draft
from infra.system import SystemClock, SystemEntropy
from tests.doubles import FailingObjects, FailingTable

SPACE, ORIGIN, TYPE = "bench", Origin("bench", "cli"), "kip://bench@1.0.0/Person"
WORDS = [f"word{number}" for number in range(20_000)]
LOAD = 2_500  # statements of a loading commit: four elements each


class Bench:
    """One space over a store in memory, grown step by step."""

    def __init__(self) -> None:
        self.clock, self.entropy = SystemClock(), SystemEntropy()
        self.table = FailingTable(MemoryTable())
        self.objects = FailingObjects(MemoryObjects(self.clock))
        self.rng = random.Random(1)
        self.elements = 0
        self.spaces, self.commits, self.upkeep = self.process()
        self.commits.create(SPACE, describe, origin=ORIGIN, deadline=self.clock.now() + 60_000)

    def process(self) -> tuple[Spaces, Commits, Upkeep]:
        """A process with cold caches."""
        spaces = Spaces(self.table, self.objects, self.clock)
        commits = Commits(self.table, self.objects, self.clock, self.entropy, spaces)
        return spaces, commits, Upkeep(spaces, Leases(self.table, self.clock), self.entropy)

    def statements(self, count: int) -> Callable[[SpaceState], Proposal]:
        """A decision to remember some statements: a person, what they said, what it says, and the claim."""

        def decide(state: SpaceState) -> Proposal:
            draft = Draft(state, now=self.clock.now(), origin=ORIGIN)
            for at in range(count):
                number = self.elements + 4 * at
                words = " ".join(self.rng.choices(WORDS, k=20))
                person = draft.create(Concept, schema_ref=TYPE, key=f"p{number}", name=f"Person {number}")
                said = draft.create(
                    Evidence,
                    evidence_class="message",
                    payload=Payload("inline", words),
                    content_digest="sha256:" + "0" * 64,
                )
                claim = draft.create(
                    Proposition,
                    subject=person.id,
                    predicate_ref="kip://bench@1.0.0/likes",
                    object=Literal(words[:40]),
                )
                draft.create(
                    Assertion,
                    proposition=claim.id,
                    asserted_by=person.id,
                    stance="support",
                    mode="stated",
                    asserted_at=self.clock.now(),
                    evidence=(Citation(said.id),),
                )
            return Proposal(draft.finish(), outcome={"count": count})

        return decide

    def commit(self, count: int = 1) -> None:
        """One commit of some statements."""
        self.commits.commit(SPACE, self.statements(count), deadline=self.clock.now() + 60_000)
        self.elements += 4 * count

    def grow(self, elements: int) -> float:
        """Load the space up to a number of elements, compacting as upkeep would; seconds of compaction."""
        spent = 0.0
        while self.elements < elements:
            self.commit(min(LOAD, (elements - self.elements + 3) // 4))
            if self.spaces.head(SPACE).log_bytes > 2**22 or self.elements >= elements:
                start = time.perf_counter()
                self.upkeep.compact(SPACE, f"grow {self.elements}")
                spent += time.perf_counter() - start
        return spent

    def measure(self) -> dict[str, float]:
        """What things cost at the present size; times in milliseconds."""
        found: dict[str, float] = {"elements": self.elements}
        self.spaces.load(SPACE)
        self.commit()
        found["commit"] = median(self.commit, 40)
        found["warm_read"] = median(lambda: self.spaces.load(SPACE), 200)
        known = self.rng.sample(list(self.spaces.load(SPACE).find(f"T{TYPE}")), 40)
        keys = [
            element.key for one in known if isinstance(element := self.spaces.load(SPACE).get(one), Concept)
        ]
        self.cold(found, "cold_open", lambda state: state.ver)
        self.cold(found, "cold_id", lambda state: state.get(self.rng.choice(known)))
        self.cold(found, "cold_key", lambda state: list(state.find(concept_key(TYPE, self.rng.choice(keys)))))
        self.cold(
            found,
            "cold_facts",
            lambda state: [state.get(one) for one in state.find(subject_key(self.rng.choice(known)))],
        )
        self.cold(found, "cold_word", lambda state: list(state.word(self.rng.choice(WORDS))))
        start = time.perf_counter()
        done = self.upkeep.compact(SPACE, f"measure {self.elements}")
        found["compact"] = (time.perf_counter() - start) * 1000
        found["compact_segments"] = done.written if done else 0
        found["segments"] = done.segments if done else 0
        return found

    def cold(self, found: dict[str, float], name: str, ask: Callable[[SpaceState], object]) -> None:
        """A new process opens the space and answers one question; time, store calls and bytes of objects."""
        times, calls, read = [], 0, 0
        for _ in range(9):
            spaces, _, _ = self.process()
            before = (self.table.reads + self.objects.gets, self.objects.bytes_read)
            start = time.perf_counter()
            ask(spaces.load(SPACE))
            times.append((time.perf_counter() - start) * 1000)
            calls = self.table.reads + self.objects.gets - before[0]
            read = self.objects.bytes_read - before[1]
        found[name] = sorted(times)[4]
        found[f"{name}_calls"], found[f"{name}_kb"] = calls, read / 1024


def describe(birth: Birth) -> SpaceMeta:
    """The protected state of the measured space."""
    return SpaceMeta(
        space_id=SPACE,
        instance=birth.instance,
        salt=birth.salt,
        owner="bench",
        created_at=birth.at,
        tier=Tier(9, birth.at),
        schema=SchemaEnvironment(1, ()),
    )


def median(act: Callable[[], object], times: int) -> float:
    """The middle of some measurements, in milliseconds."""
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        act()
        spent.append((time.perf_counter() - start) * 1000)
    return sorted(spent)[times // 2]


def main() -> int:
    """Grow, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--million", action="store_true", help="measure a million elements as well")
    parser.add_argument("--json", type=Path, help="write the numbers here, too")
    asked = parser.parse_args()
    bench, rows = Bench(), []
    for size in (1_000, 10_000, 100_000, *([1_000_000] if asked.million else [])):
        seconds = bench.grow(size)
        rows.append({**bench.measure(), "grow_compaction_s": seconds})
        print(f"{size:>9,} elements measured", file=sys.stderr)
    print(f"{'ms':<20}" + "".join(f"{int(row['elements']):>12,}" for row in rows) + "   last / second")
    for name in rows[0]:
        if name != "elements":
            ratio = rows[-1][name] / rows[1][name] if rows[1][name] else float("nan")
            print(f"{name:<20}" + "".join(f"{row[name]:>12.3f}" for row in rows) + f"{ratio:>12.2f}")
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
