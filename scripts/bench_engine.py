#!/usr/bin/env python3
"""What a KIP command costs as a space grows: in this process, and over HTTP, both on the embedded store.

    scripts/bench engine [--sizes 1000,10000,100000] [--rounds 200] [--json FILE] [--profile NAME] [--no-http]

For each size a space is filled with people, whom they know, what they prefer and who said so, and compacted as
upkeep does it. Then every command runs `--rounds` times, each time on other elements, and once more on the same ones:
"first touch" reads and decodes what it needs, "warm" has it in memory. Every command but the last SEARCH touches a
constant number of elements, so its time should not grow with the space. Prints milliseconds (median,
fastest tenth, processor time in the service) and how processor time grew from size to size. `--profile NAME` runs one command of
the largest size under cProfile instead and prints where its time goes.
"""

from __future__ import annotations

import argparse
import cProfile
import http.client
import json
import os
import pstats
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec

from core.authority import Principal
from core.model.elements import Assertion, Citation, Concept, Evidence, Origin, Payload, Proposition
from core.model.literals import Ref
from core.protocol.http_types import CreateSpaceInput
from core.protocol.request import decode_request
from core.protocol.response import encode_response
from core.service.values import Caller, Proposal
from core.state.space import SpaceState
from core.transaction.draft import Draft
from functions.adapters import adapters
from functions.bootstrap import Services, build
from functions.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
SPACE, MINUTE = "bench", 60_000
PERSON = "kip://profiles/cognitive-memory@2.0.0/Person"
PREFERENCE = "kip://profiles/cognitive-memory@2.0.0/Preference"
PREFERS = "kip://profiles/cognitive-memory@2.0.0/prefers"
KNOWS = "kip://noema/memory@1.0.0/knows"
FRIENDS, CLAIMS = 3, 500
PER_COMMIT = 1_000  # people
WRITES = ("UPSERT by key", "ASSERT")

Send = Callable[..., bytes]  # (request, *, writes) -> response
Command = Callable[[int], tuple[str, dict]]  # which round -> command and parameters


def commands(people: int) -> dict[str, Command]:
    """The commands by name; each picks other elements in each round."""

    def person(turn: int) -> str:
        return f"p{(turn * 7919 + 13) % people}"

    upsert = 'UPSERT CONCEPT ?p {MATCH {type: "Person", key: :k} SET FIELDS {name: :n}}'
    claims = """ASSERT ({type: "Person", key: :k}, "prefers", {type: "Preference", key: :o})
        {by: {type: "Person", key: :k}, mode: "stated", confidence: 0.8}"""
    find = 'FIND(?p.name) WHERE {?p CONCEPT {type: "Person", key: :k}}'
    hops = 'FIND(?c.name) WHERE {?a CONCEPT {type: "Person", key: :k} (?a, "knows", ?b) (?b, "knows", ?c)}'
    counts = """FIND(?b.name, COUNT(?o)) WHERE {
        ({type: "Person", key: :k}, "knows", ?b) OPTIONAL {(?b, "prefers", ?o)}}"""
    belief = """FIND(?b.status, ?b.support.root_groups) WHERE {
        ?b BELIEF ({type: "Person", key: "crowd"}, "prefers", {type: "Preference", key: "t0"})}"""
    search = "SEARCH CONCEPT :q LIMIT 10"
    return {
        "FIND by key": lambda turn: (find, {"k": person(turn)}),
        "two-hop join": lambda turn: (hops, {"k": person(turn)}),
        "COUNT with OPTIONAL": lambda turn: (counts, {"k": person(turn)}),
        # Never kept.
        "BELIEF over 500": lambda _: (
            f"{belief} WITH EPISTEMIC {{purpose: :p}}",
            {"p": os.urandom(4).hex()},
        ),
        "BELIEF, kept": lambda _: (belief, {}),
        "SEARCH": lambda turn: (
            search,
            {"q": f"rare{turn * 31 % (people // 10)} odd{turn * 17 % (people // 7)}"},
        ),
        "SEARCH a 1 % word": lambda turn: (search, {"q": f"word{turn % 97}"}),
        "UPSERT by key": lambda turn: (
            upsert,
            {"k": person(turn), "n": f"Renamed {turn} {os.urandom(4).hex()}"},
        ),
        "ASSERT": lambda turn: (claims, {"k": person(turn), "o": f"t{turn % 50}"}),
    }


# --- a space to measure


def fill(found: Services, size: int) -> int:
    """Make a space of about `size` elements; how many people it has."""
    caller = Caller("bench", "cli", "*")
    wish = CreateSpaceInput(user="bench", space_id=SPACE, tier=6)
    found.admin.create_space(caller, wish, found.clock.now() + MINUTE)
    people = max(100, (size - 2 * CLAIMS) // (2 + FRIENDS + 1))
    ids: list[str] = []

    def commit(write: Callable[[Draft], None]) -> None:
        def decide(state: SpaceState) -> Proposal:
            draft = Draft(state, now=max(found.clock.now(), state.at), origin=Origin("bench", "cli"))
            write(draft)
            return Proposal(draft.finish())

        found.commits.commit(SPACE, decide, deadline=found.clock.now() + MINUTE)

    topics: list[str] = []

    def things(draft: Draft) -> None:
        for number in range(50):
            made = draft.create(Concept, schema_ref=PREFERENCE, key=f"t{number}", name=f"Topic {number}")
            topics.append(made.id)

    commit(things)
    for first in range(0, people, PER_COMMIT):
        fresh: list[str] = []

        def some(draft: Draft, first: int = first, fresh: list[str] = fresh, known: list[str] = ids) -> None:
            fresh.clear()
            for number in range(first, min(first + PER_COMMIT, people)):
                name = f"Person {number} rare{number // 10} odd{number // 7} word{number % 97}"
                made = draft.create(Concept, schema_ref=PERSON, key=f"p{number}", name=name)
                fresh.append(made.id)
            everybody = [*known, *fresh]
            for place, mine in enumerate(fresh):
                for step in range(1, FRIENDS + 1):
                    friend = everybody[(first + place + step * 37) % len(everybody)]
                    draft.create(Proposition, subject=mine, predicate_ref=KNOWS, object=Ref(friend))
                liked = draft.create(
                    Proposition, subject=mine, predicate_ref=PREFERS, object=Ref(topics[place % 49 + 1])
                )
                claim(draft, liked.id, mine)

        commit(some)
        ids += fresh

    def crowd(draft: Draft) -> None:
        one = draft.create(Concept, schema_ref=PERSON, key="crowd", name="Crowd")
        liked = draft.create(Proposition, subject=one.id, predicate_ref=PREFERS, object=Ref(topics[0]))
        for number in range(CLAIMS):
            said = draft.create(
                Evidence, evidence_class="message", payload=Payload("inline", f"claim {number}"),
                content_digest=f"sha256:{number:064x}", observed_at=draft.now,
            )  # fmt: skip
            claim(draft, liked.id, ids[number % len(ids)], said.id)

    commit(crowd)
    found.upkeep.compact(SPACE, "bench")
    return people


def claim(draft: Draft, proposition: str, by: str, evidence: str | None = None) -> None:
    """Somebody's support for a Proposition."""
    cited = () if evidence is None else (Citation(evidence),)
    draft.create(
        Assertion, proposition=proposition, asserted_by=by, stance="support", mode="stated", confidence=0.7,
        asserted_at=draft.now, evidence=cited,
    )  # fmt: skip


def body(command: str, parameters: dict) -> bytes:
    """A request's bytes."""
    return msgspec.json.encode({"kip": "2.0", "operations": [{"command": command, "parameters": parameters}]})


# --- the two ways in


def in_process(found: Services) -> Send:
    """Requests as bytes to the use case, responses as bytes."""
    who = Principal("bench", "cli")

    def send(request: bytes, *, writes: bool) -> bytes:
        deadline = found.clock.now() + MINUTE
        response = found.kip.execute(
            SPACE, decode_request(request), who, deadline=deadline, readonly=not writes
        )
        return encode_response(response)

    return send


def own_cpu() -> float:
    """Milliseconds of processor time that this process has taken."""
    return time.process_time() * 1000


class Served:
    """`noema serve` over a folder, and one connection to it."""

    def __init__(self, folder: str) -> None:
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("NOEMA_", "ED25519"))}  # noqa: TID251
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "functions.cli", "serve", "--port", "0", "--data", folder, "--quiet"],
            env={**environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        found = (re.search(r"127\.0\.0\.1:(\d+)", line) for line in self.process.stdout)
        port = next((int(match[1]) for match in found if match), None)
        if port is None:
            sys.exit("noema: `noema serve` did not start; run it by hand to see why")
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def send(self, request: bytes, *, writes: bool) -> bytes:
        """One request; the response's body."""
        path = f"/v1/{SPACE}/execute_kip{'' if writes else '_readonly'}"
        self.connection.request("POST", path, request, {"content-type": "application/json"})
        answer = self.connection.getresponse()
        content = answer.read()
        assert answer.status == 200, content
        return content

    def cpu(self) -> float:
        """Milliseconds of processor time that the process has taken, over all its threads."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(each.read_text().split()[0]) for each in tasks) / 1e6

    def stop(self) -> None:
        """End the process."""
        self.connection.close()
        self.process.terminate()
        self.process.wait(30)


class Series(NamedTuple):
    """The rounds of one command: milliseconds each took, and of processor time a round took in the service."""

    ms: list[float]
    cpu: float


def measured(send: Send, cpu: Callable[[], float], people: int, rounds: int) -> dict[str, dict[str, Series]]:
    """Every command's rounds, when its elements are first touched and when they are warm."""
    out: dict[str, dict[str, Series]] = {"first touch": {}, "warm": {}}
    for name, command in commands(people).items():
        writes = name in WRITES
        for turn in range(rounds, rounds + 3):  # what a process does only once
            answer = send(body(*command(turn)), writes=writes)
            assert json.loads(answer)["status"] == "succeeded", (name, answer[:600])
        requests = [body(*command(turn)) for turn in range(rounds)]
        for when, series in out.items():
            if writes and when == "warm":  # other names, so that there is something to write
                requests = [body(*command(turn)) for turn in range(rounds)]
            times, used = [], cpu()
            for request in requests:
                start = time.perf_counter()
                send(request, writes=writes)
                times.append((time.perf_counter() - start) * 1000)
            series[name] = Series(times, (cpu() - used) / rounds)
    return out


# --- the report


def runs(sizes: list[int], rounds: int, *, over_http: bool) -> Iterator[tuple[str, int, dict[str, Series]]]:
    """(way, size, times) for each way and size."""
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="noema-bench-") as folder:
            settings = Settings(store="embedded", data_dir=folder)
            found = build(settings, adapters(settings))
            start = time.perf_counter()
            people = fill(found, size)
            counts = found.spaces.load(SPACE).counts
            total = sum(getattr(counts, name) for name in counts.__struct_fields__)
            print(
                f"{total} elements, {people} people, filled in {time.perf_counter() - start:.1f} s",
                file=sys.stderr,
            )
            for when, times in measured(in_process(found), own_cpu, people, rounds).items():
                yield f"in process, {when}", size, times
            found.upkeep.compact(SPACE, "bench")  # else the service begins with that
            found.table.close()  # type: ignore[attr-defined]  # the embedded store's
            if over_http:
                served = Served(folder)
                try:
                    for when, times in measured(served.send, served.cpu, people, rounds).items():
                        yield f"over HTTP, {when}", size, times
                finally:
                    served.stop()


def show(results: dict[tuple[str, int], dict[str, Series]], sizes: list[int]) -> None:
    """A table for each way: milliseconds at each size, and how processor time grew between sizes.

    Where other work shares the machine the median waits with it, the fastest tenth hardly does, and processor time
    not at all; so growth is told by that.
    """
    for way in dict.fromkeys(way for way, _ in results):
        heads = "".join(f"{size:>24,}" for size in sizes)
        print(f"\n{way}: ms, median (fastest tenth) processor\n{'':<20}{heads}   growth")
        for name in results[way, sizes[0]]:
            series = [results[way, size][name] for size in sizes]
            cells = "".join(
                f"{statistics.median(ms):.2f} ({statistics.quantiles(ms, n=10)[0]:.2f}) {cpu:.2f}".rjust(24)
                for ms, cpu in series
            )
            growth = " ".join(f"{b.cpu / a.cpu:.2f}" for a, b in pairwise(series))
            print(f"{name:<20}{cells}   {growth}")


def profile(name: str, size: int, rounds: int) -> None:
    """Where the time of one command goes, in this process."""
    with tempfile.TemporaryDirectory(prefix="noema-bench-") as folder:
        settings = Settings(store="embedded", data_dir=folder)
        found = build(settings, adapters(settings))
        people = fill(found, size)
        command, send = commands(people)[name], in_process(found)
        writes = name in WRITES
        requests = [body(*command(turn)) for turn in range(rounds + 10)]
        for request in requests[:10]:
            send(request, writes=writes)
        with cProfile.Profile() as profiler:
            for request in requests[10:]:
                send(request, writes=writes)
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(45)
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench engine", description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", type=Path, dest="file")
    parser.add_argument("--profile", metavar="NAME", choices=list(commands(1000)))
    parser.add_argument("--no-http", action="store_true")
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.sizes.split(",")]
    if asked.profile:
        profile(asked.profile, sizes[-1], asked.rounds)
        return
    results = {
        (way, size): times for way, size, times in runs(sizes, asked.rounds, over_http=not asked.no_http)
    }
    show(results, sizes)
    if asked.file is not None:
        rows = [
            {"way": way, "size": size, "command": name, "cpu_ms": series.cpu, "ms": series.ms}
            for (way, size), times in results.items()
            for name, series in times.items()
        ]
        asked.file.write_text(json.dumps(rows), "utf-8")


if __name__ == "__main__":
    main()
