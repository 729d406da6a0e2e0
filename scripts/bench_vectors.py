"""Measure dense search: what a question costs as a memory grows, cold and warm, and what eight bits lose.

Vectors are random directions with neighbours planted near each question, of the size an embedder gives, so the
numbers are the index's own: reading, comparing, ordering. Objects are in memory; reads and bytes are counted.

    scripts/bench vectors                          10 and 100 thousand texts of 256 numbers, a minute or two
    scripts/bench vectors --sizes 10000 --dimension 384
    scripts/bench vectors --embedder static --loss FILE   what eight bits lose on a file's turns (LoCoMo's shape)
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from core.model.elements import Evidence, Payload
from core.models.embedder import parse_embedder
from core.service import vector_search
from core.service.commit import Commits
from core.service.leases import Leases
from core.service.spaces import Spaces
from core.service.upkeep import Upkeep
from core.service.values import Proposal
from core.service.vector_upkeep import VectorUpkeep
from core.service.vectors import Vectors
from core.storage.memory import MemoryObjects, MemoryTable
from core.storage.vectors import quantize
from core.transaction.draft import Draft
from infra.embedders.factory import World, open_embedder
from infra.system import SystemClock, SystemEntropy
from scripts.bench_storage import ORIGIN, SPACE, describe

LOAD, QUESTIONS, TOP = 4_000, 20, 10


class Directions:
    """An embedder of random directions: a text's is drawn from its digest, a question's lies near its text's."""

    local = True

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.model = f"directions:{dimension}"

    def embed(self, texts: Sequence[str], kind: str, deadline: int) -> Any:
        del deadline
        out = np.empty((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            seed = int.from_bytes(hashlib.sha256(text.removeprefix("? ").encode()).digest()[:8], "little")
            rng = np.random.default_rng(seed)
            out[row] = rng.standard_normal(self.dimension, dtype=np.float32)
            if kind == "query":
                noise = np.random.default_rng(seed + 1).standard_normal(self.dimension, dtype=np.float32)
                out[row] += noise
        return out


class CountingObjects:
    """Objects that count what is read."""

    def __init__(self, inner: MemoryObjects) -> None:
        self._inner = inner
        self.reads, self.bytes = 0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def get(self, key: str, first: int = 0, length: int | None = None) -> bytes | None:
        body = self._inner.get(key, first, length)
        self.reads, self.bytes = self.reads + 1, self.bytes + len(body or b"")
        return body

    def get_many(self, ranges: Any) -> Any:
        return [self.get(*one) for one in ranges]


class Bench:
    """A memory of so many texts, compacted and indexed."""

    def __init__(self, size: int, dimension: int) -> None:
        self.clock, entropy = SystemClock(), SystemEntropy()
        table, self.objects = MemoryTable(), CountingObjects(MemoryObjects(self.clock))
        self.spaces = Spaces(table, self.objects, self.clock)
        commits = Commits(table, self.objects, self.clock, entropy, self.spaces)
        upkeep = Upkeep(self.spaces, Leases(table, self.clock), entropy)
        self.vectors = Vectors(self.spaces, Directions(dimension), lambda: np)
        building = VectorUpkeep(self.spaces, upkeep, self.vectors, entropy)
        commits.create(SPACE, describe, origin=ORIGIN, deadline=self.clock.now() + 60_000)
        for first in range(0, size, LOAD):
            commits.commit(
                SPACE, _filing(self.clock, first, min(size, first + LOAD)), deadline=self.clock.now() + 60_000
            )
            upkeep.compact(SPACE, "bench")
        started = time.perf_counter()
        building.index(SPACE, deadline=self.clock.now() + 3_600_000)
        self.indexing = time.perf_counter() - started
        self.size = size

    def ask(self, number: int) -> tuple[float, Any]:
        """Seconds of one question with its first ten answers, and these."""
        state = self.spaces.load(SPACE)
        started = time.perf_counter()
        dense = self.vectors.nearest(state, f"? text {number}", deadline=self.clock.now() + 60_000)
        found = list(dense.ranked("E", TOP))
        return time.perf_counter() - started, (dense, found)

    def row(self) -> dict[str, Any]:
        """One line of the table."""
        self.spaces.forget(SPACE)
        state = self.spaces.load(SPACE)
        state.word("nothing")
        self.objects.reads = self.objects.bytes = 0
        cold, (dense, _) = self.ask(0)
        reads, size = self.objects.reads, self.objects.bytes
        step = self.size // QUESTIONS
        warm = sorted(self.ask(number * step + 1)[0] for number in range(QUESTIONS))
        hits = sum(self._first_is_right(number * step + 1) for number in range(QUESTIONS))
        return {
            "texts": self.size,
            "bounded": dense.coverage.bounded,
            "index_s": round(self.indexing, 2),
            "cold_ms": round(cold * 1000, 1),
            "cold_reads": reads,
            "cold_mb": round(size / 1e6, 1),
            "warm_p50_ms": round(warm[len(warm) // 2] * 1000, 1),
            "warm_max_ms": round(warm[-1] * 1000, 1),
            "found": f"{hits}/{QUESTIONS}",
        }

    def _first_is_right(self, number: int) -> bool:
        _, (_, found) = self.ask(number)
        element = self.spaces.load(SPACE).get(found[0][0]) if found else None
        return isinstance(element, Evidence) and element.payload.inline == f"text {number}"


def _filing(clock: SystemClock, first: int, last: int) -> Any:
    def decide(state: Any) -> Proposal:
        draft = Draft(state, now=clock.now(), origin=ORIGIN)
        for number in range(first, last):
            draft.create(
                Evidence,
                evidence_class="message",
                content_digest="",
                payload=Payload("inline", f"text {number}"),
            )
        return Proposal(draft.finish())

    return decide


def loss(name: str, file: Path) -> dict[str, Any]:
    """What eight bits lose on real texts: the error of similarities, and how the first ten change."""
    embedder = open_embedder(parse_embedder(name), World(SystemClock(), SystemEntropy()))
    assert embedder is not None
    texts, questions = _locomo(json.loads(file.read_text()))
    far = 1 << 60
    passages = np.asarray(embedder.embed(texts, "passage", far), dtype=np.float32)
    asked = np.asarray(embedder.embed(questions, "query", far), dtype=np.float32)
    found = quantize(np, passages)
    exact = asked @ passages.T
    rough = asked @ (found.rows.astype(np.float32) * found.scales[:, None]).T
    first = [set(np.argsort(-row)[:TOP]) for row in exact]
    second = [set(np.argsort(-row)[:TOP]) for row in rough]
    kept = sum(len(a & b) for a, b in zip(first, second, strict=True)) / (TOP * len(first))
    signs = vector_search.signed_scores(np, np.packbits(found.rows > 0, axis=1), asked)
    candidates = [set(np.argsort(-row)[: vector_search.NEAREST]) for row in signs.T]
    covered = sum(len(a & b) for a, b in zip(first, candidates, strict=True)) / (TOP * len(first))
    return {
        "embedder": embedder.model,
        "texts": len(texts),
        "questions": len(questions),
        "error_mean": float(np.abs(exact - rough).mean()),
        "error_max": float(np.abs(exact - rough).max()),
        "top10_kept": round(kept, 4),
        "top10_among_nearest_by_signs": round(covered, 4),
    }


def _locomo(value: Any) -> tuple[list[str], list[str]]:
    """All turns' texts and all questions in a file of LoCoMo's shape."""
    texts: dict[str, None] = {}
    questions: dict[str, None] = {}

    def walk(one: Any) -> None:
        if isinstance(one, dict):
            if isinstance(one.get("text"), str):
                texts[one["text"]] = None
            if isinstance(one.get("question"), str):
                questions[one["question"]] = None
            for inner in one.values():
                walk(inner)
        elif isinstance(one, list):
            for inner in one:
                walk(inner)

    walk(value)
    return list(texts), list(questions)


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="10000,100000", help="numbers of texts, with commas")
    parser.add_argument("--dimension", type=int, default=256)
    parser.add_argument(
        "--signs", action="store_true", help="compare by signs first, as in a memory over the bound"
    )
    parser.add_argument("--embedder", default="static")
    parser.add_argument("--loss", type=Path, help="a file of LoCoMo's shape; measures that alone")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    if chosen.loss:
        rows = [loss(chosen.embedder, chosen.loss)]
    else:
        if chosen.signs:
            vector_search.EXACT_BYTES = 0  # type: ignore[misc]
        rows = [Bench(int(size), chosen.dimension).row() for size in chosen.sizes.split(",")]
    for row in rows:
        print("  ".join(f"{name} {value}" for name, value in row.items()))
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
