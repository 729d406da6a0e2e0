"""How long a warm recall of facts takes, by how many facts there are.

python scripts/bench_facts.py [--sizes 1000,10000,100000] [--queries 200] [--json]

Each size is a namespace of made-up facts in a memory store, committed through the service, asked through the
handler (an API Gateway event in, an answer out). Words follow a Zipf law, as they do in texts: some queries name
words that thousands of facts have. The first recall, which loads the namespace, is told apart; so is the first time
that each query is asked, when the postings of its words are loaded.
"""

import argparse
import json
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from core.facts import writing
from core.model.elements import Origin
from core.service.values import Proposal
from core.transaction.draft import Draft
from functions.logs import logger
from tests.functions.world import World

AGENT = "bench"
# Queries before any is timed: a word's postings are taken from the state when it is first asked for.
WARM_UP = 300
PART = 5000  # facts of one commit
VOCABULARY = 20_000


def words(chance: random.Random, weights: list[float], count: int) -> list[str]:
    return [f"word{n}" for n in chance.choices(range(VOCABULARY), cum_weights=weights, k=count)]


def cumulative() -> list[float]:
    total, out = 0.0, []
    for rank in range(1, VOCABULARY + 1):
        total += 1 / (rank + 10)
        out.append(total)
    return out


def fill(world: World, size: int) -> None:
    """Write `size` facts of 8 to 25 words."""
    world.make_space()
    chance, weights = random.Random(1), cumulative()
    for start in range(0, size, PART):
        texts = [
            " ".join(words(chance, weights, chance.randint(8, 25))) for _ in range(min(PART, size - start))
        ]
        seed = chance.randbytes(10)

        def decide(state, texts=texts, seed=seed):
            draft = Draft(state, now=world.clock.now(), origin=Origin(AGENT, "script"))
            writing.remember(draft, AGENT, texts, seed)
            return Proposal(draft.finish())

        world.services.commits.commit("demo", decide, deadline=world.clock.now() + 60_000)
        world.clock.advance(1000)


def measure(size: int, queries: int) -> dict[str, float]:
    world = World()
    fill(world, size)
    chance, weights = random.Random(2), cumulative()
    token = world.token()

    def ask(text: str) -> tuple[float, float]:
        began, used = time.perf_counter(), time.process_time()
        body = {"agent_id": AGENT, "query": text}
        answer = world.ask("POST", "/v1/demo/facts/recall", body, token=token)
        took, cpu = (time.perf_counter() - began) * 1000, (time.process_time() - used) * 1000
        assert answer.status == 200, answer.body
        assert answer.result["count"] == 8
        return took, cpu

    cold = ask("word1")[0]
    asked = [" ".join(words(chance, weights, chance.randint(2, 8))) for _ in range(queries)]
    # a word's postings are taken from the state when it is first asked for
    fresh, fresh_cpu = (sorted(each) for each in zip(*[ask(text) for text in asked], strict=True))
    taken = [ask(text) for text in asked]
    wall, cpu = (sorted(each) for each in zip(*taken, strict=True))
    place = int(queries * 0.95)
    return {
        "facts": size,
        "first_ms": round(cold, 1),
        "fresh_p50_ms": round(statistics.median(fresh), 2),
        "fresh_cpu_p50_ms": round(statistics.median(fresh_cpu), 2),
        "p50_ms": round(statistics.median(wall), 2),
        "p95_ms": round(wall[place], 2),
        "cpu_p50_ms": round(statistics.median(cpu), 2),
        "cpu_p95_ms": round(cpu[place], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    logger().setLevel("ERROR")  # a line for each request is not what is measured
    rows = []
    for size in map(int, given.sizes.split(",")):
        rows.append(measure(size, given.queries))
        if not given.json:
            line = "{facts:>8} facts: first {first_ms} ms, new words p50 {fresh_p50_ms} ms (processor {fresh_cpu_p50_ms}), warm p50 {p50_ms} ms, p95 {p95_ms} ms; "
            print((line + "processor p50 {cpu_p50_ms} ms, p95 {cpu_p95_ms} ms").format(**rows[-1]))
    warm, new = (rows[-1][name] / rows[0][name] for name in ("cpu_p50_ms", "fresh_cpu_p50_ms"))
    if given.json:
        grown = {"growth_cpu_p50": round(warm, 2), "growth_fresh_cpu_p50": round(new, 2)}
        print(json.dumps({"rows": rows, **grown}))
    else:
        sizes = f"from {rows[0]['facts']} to {rows[-1]['facts']} facts"
        print(f"growth of the processor's p50 {sizes}: {warm:.2f}x warm, {new:.2f}x with new words")


if __name__ == "__main__":
    main()
