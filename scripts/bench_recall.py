#!/usr/bin/env python3
"""How well and how fast recall finds the turns that answer a question, on a file of LoCoMo's shape.

    scripts/bench retrieval FILE [--embedder NAME] [--json] [--spaces N] [--answers]
    scripts/bench retrieval --substrings FILE [--json]
    scripts/bench retrieval FILE --grow 10000 --store DIRECTORY

Forms every session as one conversation (speakers as names, the session's date as its timestamp) through the
services over the store in memory, asks every question that has gold evidence, and prints by category, for those
that have an answer (1 to 4) and in all: the share of the evidence turns among the first 5, 10 and 20 turns and
within the first 500, 1,000 and 2,000 tokens (four characters are a token), and the time of a question, from its text
to the ranked turns. `--embedder` takes what NOEMA_EMBEDDER takes (static, minilm, ...); without it words alone rank.

`--answers` also says how often a space answers its own questions (and with a turn that is evidence), questions about what was never said, and another
space's, about their people and about its own: the less often those are answered, and the more doubtfully, the better.

`--substrings` reads dialogues of MemoryBank's shape and asks for pieces of 2 and of 4 characters of what was said:
how often the first turn has the piece, and how often the turn that it was taken from is found at all.

`--grow` forms the conversations over and over, under ever new names, into one space of about N elements in the
embedded store, compacts it, and times questions: the first ones of a new process (cold: nothing read yet), then
warm ones, each from the request to the answer on record. A directory that holds such a space already is used as
it is.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import msgspec

from core.agents.dialogue import Question, text_of
from core.agents.offline.answers import answer
from core.agents.offline.lines import hidden_ids
from core.agents.offline.questions import read_asked, unnamed
from core.agents.offline.quotation import recall_turns
from core.models.embedder import parse_embedder
from core.ports import Embedder
from core.protocol import http_types as wire
from core.search.dense import Dense
from core.search.turns import Turns
from core.service.recall import Recall
from core.service.upkeep import Upkeep
from core.service.vector_upkeep import VectorUpkeep
from core.service.vectors import Vectors
from core.state.space import SpaceState
from core.storage.layout import ALL_ROWS, space_pk
from infra.arrays import load_numpy
from infra.embedders.factory import World as Needs
from infra.embedders.factory import open_embedder
from infra.embedders.weights import NotInstalledError
from infra.local.objects import DirectoryObjects
from infra.local.table import SqliteTable
from scripts.locomo import MISLEADING, Asked, BadFileError, Sample, read
from scripts.scores import HEADING, Score, groups, line, means, score
from tests.services import World

QUESTIONS = 100  # timed, warm
COLD = 10  # new processes, each asked one question
OWN = "its own questions"
PIECES = 4  # of each turn and length that `--substrings` asks for
HOUR = 3_600_000


@dataclass
class Space:
    """A formed conversation: its state, whose Evidence is which turn of the file, and what finds by meaning."""

    state: SpaceState
    turns: dict[str, str]
    hidden: frozenset[str]
    lengths: dict[str, int]
    vectors: Vectors | None
    now: int

    def near(self, text: str) -> Dense | None:
        """What is near a text in meaning."""
        if self.vectors is None:
            return None
        found = self.vectors.nearest(self.state, text, deadline=self.now + HOUR)
        if found.degraded is not None:
            raise SystemExit(f"bench: the embedder does not cover everything: {found.degraded}")
        return found

    def find(self, query: str) -> list[str]:
        """The turns for a question, best first, by the file's ids; the product's own way from text to turns."""
        asked = read_asked(self.state, Question(query=query), self.now)
        dense = self.near(unnamed(asked))
        ranked = recall_turns(self.state, asked, Turns(self.state), self.hidden, dense)
        return [self.turns[turn.id] for turn in ranked]


def form(world: World, space: str, sample: Sample, embedder: Embedder | None = None) -> Space:
    """Form a conversation through the services, compact it and give its turns vectors, as upkeep does."""
    world.create(space, tier=6)
    for session in sample.sessions:
        said = [{"role": "user", "name": turn.speaker, "content": turn.text} for turn in session.turns]
        world.submit(space, said, timestamp=session.at)
    done = world.drain(space)
    upkeep = Upkeep(world.spaces, world.leases, world.entropy)
    upkeep.compact(space, "bench")
    vectors = Vectors(world.spaces, embedder, load_numpy) if embedder is not None else None
    if vectors is not None:
        VectorUpkeep(world.spaces, upkeep, vectors, world.entropy).index(
            space, deadline=world.clock.now() + HOUR
        )
    state = world.spaces.load(space)
    ids = list(state.ids("evidence"))
    if len(ids) != len(sample.turns):
        raise SystemExit(f"bench: {sample.name}: {len(sample.turns)} turns made {len(ids)} Evidence: {done}")
    turns = {one: turn.id for one, turn in zip(ids, sample.turns, strict=True)}
    lengths = {turn.id: len(turn.text) for turn in sample.turns}
    return Space(state, turns, hidden_ids(state), lengths, vectors, world.clock.now())


def measure(space: Space, questions: tuple[Asked, ...]) -> list[Score]:
    """What every question with gold gets."""
    out = []
    for asked in questions:
        if asked.gold:
            begun = time.perf_counter()
            found = space.find(asked.text)
            seconds = time.perf_counter() - begun
            out.append(score(asked, found, space.lengths.__getitem__, seconds))
    return out


# --- whether it answers


def answered(
    space: Space, sample: Sample, people: list[str], *, misleading: bool = False
) -> list[tuple[float | None, bool | None]]:
    """For a conversation's questions, asked about a space's people: how each is answered.

    A pair: the uncertainty, None where there is no answer; and whether a turn that is evidence is cited, None where
    the file names none.
    """
    out = []
    for asked in [one for one in sample.questions if (one.category == MISLEADING) is misleading]:
        text = asked.text
        for name, other in zip(sample.speakers, people, strict=False):
            text = re.sub(rf"\b{re.escape(name)}\b", other, text)
        search = None if space.vectors is None else space.near
        found = answer(space.state, Question(query=text), space.now, search)
        cited = {space.turns[line.entity] for line in found.cited if line.entity in space.turns}
        right = bool(cited & asked.gold) if asked.gold else None
        out.append((found.uncertainty if found.found else None, right))
    return out


def calibration(spaces: list[Space], samples: list[Sample]) -> dict[str, dict[str, float]]:
    """How often spaces answer their own questions, misleading ones, another's, and another's about their people."""
    pairs = [
        (space, sample, samples[(at + 1) % len(samples)])
        for at, (space, sample) in enumerate(zip(spaces, samples, strict=True))
    ]
    asked = {
        OWN: [answered(a, b, b.speakers) for a, b, _ in pairs],
        "about what was never said": [answered(a, b, b.speakers, misleading=True) for a, b, _ in pairs],
        "another's questions": [answered(a, c, c.speakers) for a, _, c in pairs],
        "another's, about its people": [answered(a, c, b.speakers) for a, b, c in pairs],
    }
    out = {}
    for name, several in asked.items():
        doubts = [doubt for some in several for doubt, _ in some]
        given = [one for one in doubts if one is not None]
        out[name] = {
            "questions": len(doubts),
            "answered": round(100 * len(given) / max(len(doubts), 1), 1),
            "uncertainty": round(statistics.mean(given or [0.0]), 2),
        }
        if name == OWN:
            right = [cites for some in several for _, cites in some if cites is not None]
            out[name]["with evidence"] = round(100 * sum(right) / max(len(right), 1), 1)
    return out


# --- pieces of what was said, in a script without spaces


def substrings(path: Path) -> dict[str, dict[str, float]]:
    """By length of the piece: how many were asked for, and how many were found, in per cent."""
    try:
        people = json.loads(path.read_text("utf-8"))
        told = {name: [text for day in one["history"].values() for turn in day for text in turn.values()] for name, one in people.items()}  # fmt: skip
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadFileError(f"{path}: dialogues of MemoryBank's shape are expected: {error!r}") from error
    asked: dict[int, list[tuple[bool, bool]]] = {2: [], 4: []}
    world = World()
    for number, texts in enumerate(told.values()):
        space = f"bench_{number}"
        world.create(space, tier=6)
        kept = [text for text in texts if isinstance(text, str) and text.strip()]
        for at in range(0, len(kept), 20):
            said = [{"role": "user", "name": "\u6211", "content": text} for text in kept[at : at + 20]]
            world.submit(space, said, timestamp=f"2023-05-{1 + at // 20:02d}T10:00:00Z")
        world.drain(space)
        state = world.spaces.load(space)
        for element in state.ids("evidence"):
            text = text_of(state.get(element).payload.inline)
            for length, results in asked.items():
                for piece in pieces(text, length):
                    results.append(found_piece(state, piece, element, world.clock.now()))
    return {
        f"{length} characters": {
            "pieces": len(results),
            "first turn has it": round(100 * statistics.mean(first for first, _ in results), 2),
            "its turn is found": round(100 * statistics.mean(own for _, own in results), 2),
        }
        for length, results in asked.items()
    }


def pieces(text: str, length: int) -> list[str]:
    """A few pieces of a text, spread evenly, each within one run of Chinese characters."""
    found = [
        run.group()[at : at + length]
        for run in re.finditer("[\u4e00-\u9fff]+", text)
        for at in range(len(run.group()) - length + 1)
    ]
    return found[:: max(1, len(found) // PIECES)][:PIECES]


def found_piece(state: SpaceState, piece: str, source: str, now: int) -> tuple[bool, bool]:
    """Whether the first turn found has a piece, and whether the turn it is from is found."""
    asked = read_asked(state, Question(query=piece), now)
    found = [turn.id for turn in recall_turns(state, asked, Turns(state), hidden_ids(state))]
    first = bool(found) and piece in text_of(state.get(found[0]).payload.inline)
    return first, source in found


# --- the command line


def main() -> None:
    """Run as the command line says; a bad file or embedder is a message and exit code 2."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench retrieval",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, nargs="?", help="conversations of LoCoMo's shape")
    parser.add_argument("--embedder", default="none", help="as NOEMA_EMBEDDER; none: words alone")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--spaces", type=int, help="only the first N conversations")
    parser.add_argument(
        "--answers", action="store_true", help="also how often it answers, and what it should not"
    )
    parser.add_argument("--substrings", type=Path, metavar="FILE", help="pieces of Chinese dialogues")
    parser.add_argument("--grow", type=int, help="time questions to one space of N elements")
    parser.add_argument("--store", type=Path, help="where that space is kept")
    options = parser.parse_args()
    if (options.file is None) == (options.substrings is None):
        parser.error("name either a file of conversations or --substrings FILE")
    if options.grow and options.store is None:
        parser.error("--grow needs --store")
    try:
        if options.substrings is not None:
            print_substrings(substrings(options.substrings), as_json=options.json)
            return
        samples = read(options.file)[: options.spaces]
        world = World()
        embedder = embedder_of(options.embedder, world)
    except BadFileError as error:
        parser.error(str(error))
    if options.grow:
        grow(samples, options.grow, options.store, embedder)
    else:
        retrieve(world, samples, embedder, options)


def embedder_of(name: str, world: World) -> Embedder | None:
    """The embedder of a name, as NOEMA_EMBEDDER names it, by the time of a world.

    Raises:
        BadFileError: there is none of that name, or what it needs is not installed.
    """
    try:
        return open_embedder(parse_embedder(name), Needs(world.clock, world.entropy))
    except (ValueError, NotInstalledError) as error:
        raise BadFileError(f"--embedder {name}: {error}") from error


def retrieve(
    world: World, samples: list[Sample], embedder: Embedder | None, options: argparse.Namespace
) -> None:
    """Form, ask and print."""
    spaces: list[Space] = []
    scores: list[Score] = []
    quiet = options.json
    for number, sample in enumerate(samples):
        begun = time.perf_counter()
        space = form(world, f"bench_{number}", sample, embedder)
        formed = time.perf_counter() - begun
        got = measure(space, sample.questions)
        spaces.append(space)
        scores += got
        if not quiet:
            told = f"{sample.name}: {len(space.turns)} turns formed in {formed:.2f} s, {len(got)} questions"
            print(told, file=sys.stderr)
    if not scores:
        raise SystemExit("bench: no question has evidence among the turns")
    model = "none (words alone)" if embedder is None else embedder.model
    found = {name: means(members) for name, members in groups(scores).items()}
    answers = calibration(spaces, samples) if options.answers else None
    if options.json:
        out = {"file": str(options.file), "embedder": model, "results": found}
        print(json.dumps(out | ({"answers": answers} if answers else {}), indent=2))
        return
    print(f"embedder: {model}\n{HEADING}")
    for name, row in found.items():
        print(line(name, row))
    for name, row in (answers or {}).items():
        print(
            f"answers {row['answered']:.0f} % of {row['questions']:.0f} {name}, uncertainty {row['uncertainty']:.2f}"
            + (f"; {row['with evidence']:.0f} % with a turn that is evidence" if name == OWN else "")
        )


def print_substrings(found: dict[str, dict[str, float]], *, as_json: bool) -> None:
    """By length of the piece."""
    if as_json:
        print(json.dumps(found, indent=2))
        return
    for name, row in found.items():
        print(
            f"{name}: of {row['pieces']} pieces, the first turn has {row['first turn has it']} %, "
            f"and the turn that it is from is found for {row['its turn is found']} %"
        )


# --- a large space


def grow(samples: list[Sample], elements: int, store: Path, embedder: Embedder | None = None) -> None:
    """Fill a space of the embedded store, compact it, and time questions cold and warm."""
    world = opened(store, embedder)
    if not list(world.table.query(space_pk("large"), *ALL_ROWS, limit=1)):
        world.create("large", tier=6)
        number = 0
        while sum(msgspec.structs.astuple(world.spaces.load("large").counts)) < elements:
            sample = samples[number % len(samples)]
            for session in sample.sessions:
                messages = [
                    {"role": "user", "name": f"{turn.speaker}{number}", "content": turn.text}
                    for turn in session.turns
                ]
                world.submit("large", messages, timestamp=session.at)
            world.drain("large")
            number += 1
            Upkeep(world.spaces, world.leases, world.entropy).compact("large", f"run {number}")
    if embedder is not None:
        upkeep = Upkeep(world.spaces, world.leases, world.entropy)
        vectors = Vectors(world.spaces, embedder, load_numpy)
        indexing = VectorUpkeep(world.spaces, upkeep, vectors, world.entropy)
        indexing.index("large", deadline=world.clock.now() + HOUR)
    state = world.spaces.load("large")
    counts = state.counts
    print(f"{sum(msgspec.structs.astuple(counts))} elements, {counts.evidence} turns")
    # the names of each conversation's first copy
    queries = [
        re.sub(rf"\b({'|'.join(map(re.escape, sample.speakers))})\b", rf"\g<1>{number}", asked.text)
        for number, sample in enumerate(samples)
        for asked in sample.questions
        if asked.category != MISLEADING
    ]
    queries = queries[:: len(queries) // QUESTIONS]
    cold = [timed(opened(store, embedder), text) for text in queries[:COLD]]
    warm = [timed(world, text) for text in queries * 2][len(queries) :]
    for name, pairs in (("cold, first answer of a process", cold), ("warm", warm)):
        times, work = sorted(wall for wall, _ in pairs), sorted(cpu for _, cpu in pairs)
        middle, late = len(times) // 2, len(times) * 95 // 100
        print(
            f"{name}: p50 {times[middle] * 1e3:.1f} ms, p95 {times[late] * 1e3:.1f} ms;"
            f" of the processor {work[middle] * 1e3:.1f} and {work[late] * 1e3:.1f} ms"
        )


def opened(store: Path, embedder: Embedder | None = None) -> World:
    """A process over the embedded store that has read nothing yet; the embedder's table is in memory already."""
    world = World(
        SqliteTable(store / "rows.sqlite"), DirectoryObjects(store / "objects"), seed=time.time_ns() % 10**6
    )
    if embedder is not None:
        vectors = Vectors(world.spaces, embedder, load_numpy)
        world.recall = Recall(world.clock, world.spaces, world.conversations, vectors)
    return world


def timed(world: World, query: str) -> tuple[float, float]:
    """Seconds from a question to its answer on record: by the clock, and of the processor."""
    begun, worked = time.perf_counter(), time.process_time()
    found = world.recall.recall_structured(world.caller, "large", wire.RecallInput(query=query))
    took = time.perf_counter() - begun, time.process_time() - worked
    if found.degraded is not None:
        raise SystemExit(f"bench: the embedder does not cover everything: {found.degraded}")
    return took


if __name__ == "__main__":
    main()
