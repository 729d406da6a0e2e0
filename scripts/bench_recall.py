#!/usr/bin/env python3
"""How well and how fast recall finds the turns that answer a question, on a file in LoCoMo's format.

    scripts/bench_recall.py ../shared/bench/locomo-dev.json [--spaces N] [--answers]

Forms every session as one conversation (speakers as names, the session's date as its timestamp) through the
services over the memory store, asks every question of categories 1 to 4 that has gold evidence, and prints the
share of the evidence turns among the first 5, 10 and 20 turns, and the time of a question. `--answers` prints
what is answered to the first ten questions of each conversation.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import msgspec

from core.agents.dialogue import Question
from core.agents.offline.questions import read_asked
from core.agents.offline.recollection import hidden_ids, recall_turns
from core.protocol import http_types as wire
from core.search.turns import Turns
from tests.services import World

CUTS = (5, 10, 20)


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
        found = [dia[turn.id] for turn in ranked[: max(CUTS)]]
        shares.append([len(gold & set(found[:cut])) / len(gold) for cut in CUTS])
    return shares, seconds


def main() -> None:
    """Run over the file named on the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--spaces", type=int, default=None, help="only the first N conversations")
    parser.add_argument("--answers", action="store_true", help="print the first ten answers of each")
    options = parser.parse_args()
    world = World()
    shares: list[list[float]] = []
    seconds: list[float] = []
    for number, sample in enumerate(json.loads(options.file.read_text())[: options.spaces]):
        space = f"bench_{number}"
        begun = time.perf_counter()
        dia = import_conversation(world, space, sample["conversation"])
        formed = time.perf_counter() - begun
        got, took = measure(world, space, sample, dia)
        shares += got
        seconds += took
        mean = "/".join(f"{100 * statistics.mean(row[i] for row in got):.1f}" for i in range(len(CUTS)))
        print(
            f"{sample['sample_id']}: {len(dia)} turns formed in {formed:.2f} s; {len(got)} questions, {mean}"
        )
        if options.answers:
            print_answers(world, space, sample)
    total = "/".join(f"{100 * statistics.mean(row[i] for row in shares):.1f}" for i in range(len(CUTS)))
    seconds.sort()
    middle, late = seconds[len(seconds) // 2], seconds[len(seconds) * 95 // 100]
    print(
        f"all: {len(shares)} questions, recall@5/10/20 {total}; p50 {middle * 1e3:.2f} ms, p95 {late * 1e3:.2f} ms"
    )


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
