#!/usr/bin/env python3
"""How well and how fast recall finds the turns that answer a question, on a file in LoCoMo's format.

    scripts/bench_recall.py ../shared/bench/locomo-dev.json [--spaces N] [--answers]
    scripts/bench_recall.py ../shared/bench/locomo-dev.json --grow 10000 --store DIRECTORY

Forms every session as one conversation (speakers as names, the session's date as its timestamp) through the
services over the memory store, asks every question of categories 1 to 4 that has gold evidence, and prints the
share of the evidence turns among the first 5, 10 and 20 turns and within the first 500, 1,000 and 2,000 tokens
(four characters are a token), and the time of a question. It also asks each space the questions of the next
one, about their people and about its own: the less often those are answered, and the more doubtfully, the better. `--answers` prints what is answered to the first ten questions.

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
from bisect import bisect_right
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import msgspec

from core.agents.dialogue import Question, estimate_tokens, text_of
from core.agents.offline.answers import answer
from core.agents.offline.lines import hidden_ids
from core.agents.offline.questions import read_asked
from core.agents.offline.quotation import recall_turns
from core.model.elements import Evidence
from core.protocol import http_types as wire
from core.search.turns import Turns
from core.service.upkeep import Upkeep
from core.storage.layout import ALL_ROWS, space_pk
from infra.local.objects import DirectoryObjects
from infra.local.table import SqliteTable
from tests.services import World

CUTS = (5, 10, 20)
BUDGETS = (500, 1000, 2000)  # tokens
QUESTIONS = 100  # timed, warm
COLD = 10  # new processes, each asked one question


def sessions(conversation: dict) -> list[tuple[str, list[dict]]]:
    """The sessions in order: RFC 3339 time and turns."""
    out = []
    for number in range(1, 1000):
        turns = conversation.get(f"session_{number}")
        if turns is None:
            return out
        text = conversation[f"session_{number}_date_time"]
        said = datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        out.append((said.strftime("%Y-%m-%dT%H:%M:00Z"), turns))
    return out


def import_conversation(world: World, space: str, conversation: dict) -> dict[str, str]:
    """Form a conversation through the services; evidence id -> the file's id of the turn."""
    world.create(space, tier=6)
    dia: list[str] = []
    for at, turns in sessions(conversation):
        messages = [{"role": "user", "name": turn["speaker"], "content": turn["text"]} for turn in turns]
        world.submit(space, messages, timestamp=at)
        dia += [turn["dia_id"] for turn in turns]
    done = world.drain(space)
    ids = list(world.spaces.load(space).ids("evidence"))
    assert len(ids) == len(dia), f"{len(dia)} turns made {len(ids)} Evidence: {done}"
    return dict(zip(ids, dia, strict=True))


def measure(
    world: World, space: str, sample: dict, dia: dict[str, str]
) -> tuple[list[list[float]], list[float]]:
    """Recall at each cut and seconds, for every question of categories 1 to 4 with evidence."""
    state = world.spaces.load(space)
    hidden, now = hidden_ids(state), world.clock.now()
    known, shares, seconds = set(dia.values()), [], []
    for item in sample["qa"]:
        gold = {one for text in item["evidence"] for one in re.findall(r"D\d+:\d+", text)} & known
        if item["category"] == 5 or not gold:
            continue
        begun = time.perf_counter()
        ranked = recall_turns(
            state, read_asked(state, Question(query=item["question"]), now), Turns(state), hidden
        )
        seconds.append(time.perf_counter() - begun)
        found = [dia[turn.id] for turn in ranked]
        sizes = list(accumulate(_tokens(state.get(turn.id)) for turn in ranked[:200]))
        cuts = [*CUTS, *(bisect_right(sizes, budget) for budget in BUDGETS)]
        shares.append([len(gold & set(found[:cut])) / len(gold) for cut in cuts])
    return shares, seconds


def _tokens(evidence: Evidence) -> int:
    return estimate_tokens(len(text_of(evidence.payload.inline)))


def answered(world: World, space: str, sample: dict, people: tuple[str, str]) -> list[tuple[bool, float]]:
    """For a conversation's questions, asked about two people of a space: whether they are answered, how doubtfully."""
    state, now = world.spaces.load(space), world.clock.now()
    out = []
    for item in [one for one in sample["qa"] if one["category"] != 5][:100]:
        text = item["question"]
        for name, other in zip(_speakers(sample), people, strict=True):
            text = re.sub(rf"\b{name}\b", other, text)
        found = answer(state, Question(query=text), now)
        out.append((found.found, found.uncertainty))
    return out


def print_answered(world: World, samples: list[dict]) -> None:
    """How often a space answers its own questions, another's, and another's asked about its own people."""
    for name, step, renamed in (
        ("its own questions", 0, False),
        ("another's questions", 1, False),
        ("another's questions, about its people", 1, True),
    ):
        results = []
        for i, sample in enumerate(samples):
            other = samples[(i + step) % len(samples)]
            results += answered(world, f"bench_{i}", other, _speakers(sample if renamed else other))
        share = 100 * statistics.mean(found for found, _ in results)
        doubt = statistics.mean([uncertainty for found, uncertainty in results if found] or [0])
        print(f"answered: {share:.0f} % of {name}, with a mean uncertainty of {doubt:.2f}")


def main() -> None:
    """Run over the file named on the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--spaces", type=int, default=None, help="only the first N conversations")
    parser.add_argument("--answers", action="store_true", help="print the first ten answers of each")
    parser.add_argument("--grow", type=int, help="time questions to one space of N elements")
    parser.add_argument("--store", type=Path, help="where that space is kept")
    options = parser.parse_args()
    if options.grow and options.store is None:
        parser.error("--grow needs --store")
    world = World()
    shares: list[list[float]] = []
    seconds: list[float] = []
    samples = json.loads(options.file.read_text())[: options.spaces]
    if options.grow:
        grow(samples, options.grow, options.store)
        return
    for number, sample in enumerate(samples):
        space = f"bench_{number}"
        begun = time.perf_counter()
        dia = import_conversation(world, space, sample["conversation"])
        formed = time.perf_counter() - begun
        got, took = measure(world, space, sample, dia)
        shares += got
        seconds += took
        print(
            f"{sample['sample_id']}: {len(dia)} turns formed in {formed:.2f} s; {len(got)} questions, {means(got)}"
        )
        if options.answers:
            print_answers(world, space, sample)
    seconds.sort()
    middle, late = seconds[len(seconds) // 2], seconds[len(seconds) * 95 // 100]
    print(f"all: {len(shares)} questions, recall@5/10/20 and within 500/1000/2000 tokens {means(shares)}")
    print(f"ranking: p50 {middle * 1e3:.2f} ms, p95 {late * 1e3:.2f} ms")
    print_answered(world, samples)


def means(shares: list[list[float]]) -> str:
    """The mean of each column, in per cent."""
    columns = [f"{100 * statistics.mean(column):.1f}" for column in zip(*shares, strict=True)]
    return f"{'/'.join(columns[:3])} {'/'.join(columns[3:])}"


# --- a large space


def grow(samples: list[dict], elements: int, store: Path) -> None:
    """Fill a space of the embedded store, compact it, and time questions cold and warm."""
    world = opened(store)
    if not list(world.table.query(space_pk("large"), *ALL_ROWS, limit=1)):
        world.create("large", tier=6)
        number = 0
        while sum(msgspec.structs.astuple(world.spaces.load("large").counts)) < elements:
            sample = samples[number % len(samples)]
            for at, turns in sessions(sample["conversation"]):
                names = [f"{turn['speaker']}{number}" for turn in turns]
                said = zip(names, turns, strict=True)
                messages = [{"role": "user", "name": name, "content": turn["text"]} for name, turn in said]
                world.submit("large", messages, timestamp=at)
            world.drain("large")
            number += 1
            Upkeep(world.spaces, world.leases, world.entropy).compact("large", f"run {number}")
    state = world.spaces.load("large")
    counts = state.counts
    print(f"{sum(msgspec.structs.astuple(counts))} elements, {counts.evidence} turns")
    # the names of each conversation's first copy
    queries = [
        re.sub(rf"\b({'|'.join(_speakers(sample))})\b", rf"\g<1>{number}", item["question"])
        for number, sample in enumerate(samples)
        for item in sample["qa"]
        if item["category"] != 5
    ]
    queries = queries[:: len(queries) // QUESTIONS]
    cold = [timed(opened(store), text) for text in queries[:COLD]]
    warm = [timed(world, text) for text in queries * 2][len(queries) :]
    for name, pairs in (("cold, first answer of a process", cold), ("warm", warm)):
        times, work = sorted(wall for wall, _ in pairs), sorted(cpu for _, cpu in pairs)
        middle, late = len(times) // 2, len(times) * 95 // 100
        print(
            f"{name}: p50 {times[middle] * 1e3:.1f} ms, p95 {times[late] * 1e3:.1f} ms;"
            f" of the processor {work[middle] * 1e3:.1f} and {work[late] * 1e3:.1f} ms"
        )


def _speakers(sample: dict) -> tuple[str, str]:
    return sample["conversation"]["speaker_a"], sample["conversation"]["speaker_b"]


def opened(store: Path) -> World:
    """A process over the embedded store that has read nothing yet."""
    return World(
        SqliteTable(store / "rows.sqlite"), DirectoryObjects(store / "objects"), seed=time.time_ns() % 10**6
    )


def timed(world: World, query: str) -> tuple[float, float]:
    """Seconds from a question to its answer on record: by the clock, and of the processor."""
    begun, worked = time.perf_counter(), time.process_time()
    world.recall.recall_structured(world.caller, "large", wire.RecallInput(query=query))
    return time.perf_counter() - begun, time.process_time() - worked


def print_answers(world: World, space: str, sample: dict) -> None:
    """The first ten questions with what the service answers."""
    for item in sample["qa"][:10]:
        out = world.recall.recall_structured(world.caller, space, wire.RecallInput(query=item["question"]))
        print(f"\n? {item['question']}  (expected: {item.get('answer')}; evidence {item['evidence']})")
        print(f"  found {out.found}, uncertainty {out.uncertainty}")
        print("  " + out.answer.replace("\n", "\n  "))
        print("  " + msgspec.json.encode(out.memories[:1]).decode())


if __name__ == "__main__":
    main()
