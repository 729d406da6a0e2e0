"""What governing costs: the same KIP reads over 100,000 elements without records, under 50 rules, and for the owner.

    scripts/bench governance [--elements 100000] [--rounds 7]

Each cell is the median processor time of a query in milliseconds; the space is in memory, so storage costs nothing.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from core.authority import Principal
from core.governance.access import admit
from core.governance.control import Control, Group, Rule, Selector, with_control
from core.model.elements import (
    AnyElement,
    Concept,
    Evidence,
    Governance,
    Origin,
    Payload,
    Proposition,
    System,
)
from core.model.ids import element_id
from core.model.literals import Ref
from core.model.log import Delta
from core.state.space import SpaceState
from tests.conformance.packages import CORE_DOMAIN, package
from tests.conformance.world import World

PACKAGE: Final = "kip://test/core-domain@1.0.0"
TYPES: Final = ("Person", "Theme", "Document")
LABELS: Final = (None, "public", "internal", "private", "secret")
COMMIT: Final = 10_000
QUERIES: Final = (
    ("COUNT of a type", 'FIND(COUNT(?c)) WHERE {?c CONCEPT {type: "Person"}}'),
    ("COUNT with FILTER", 'FIND(COUNT(?c)) WHERE {?c CONCEPT {type: "Person"} FILTER(CONTAINS(?c.name, "w7 "))}'),
    ("COUNT of statements", 'FIND(COUNT(?p)) WHERE {?p (?s, "prefers", ?o)}'),
    ("FIND by key", 'FIND(?c.name) WHERE {?c CONCEPT {key: "k3"}}'),
    ("FIND a page of 20", 'FIND(?c.name) WHERE {?c CONCEPT {type: "Person"}} LIMIT 20'),
    ("SEARCH CONCEPT", 'SEARCH CONCEPT "w7 w9" LIMIT 20'),
    ("SEARCH COGNITION", 'SEARCH COGNITION "w7 w9" LIMIT 20'),
)  # fmt: skip


def built(elements: int) -> tuple[World, list[AnyElement]]:
    """A space of Concepts, statements about them and Evidence, with labels and ten writers."""
    chance = random.Random(1)
    words = [f"w{number}" for number in range(500)]
    world = World(packages=[package(CORE_DOMAIN)], only=True)
    concepts: list[Concept] = []
    every: list[AnyElement] = []
    while len(every) < elements:
        version, puts = world.state.ver + 1, []
        system = System(1, world.now, world.now, "tx", "tx", Origin(f"p{version % 10}", "bench"))
        for ordinal in range(COMMIT):
            more: Any = {"system": system, "governance": Governance(chance.choice(LABELS))}
            share = chance.random()

            def named(kind: Any, place: int = ordinal, at: int = version) -> str:
                return element_id(kind, at, place, world.state.meta.salt)

            if share < 0.5 or not concepts:
                ref, key = f"{PACKAGE}/{chance.choice(TYPES)}", f"k{len(every)}"
                name = " ".join(chance.choices(words, k=3))
                made: AnyElement = Concept(id=named("concept"), schema_ref=ref, key=key, name=name, **more)
                concepts.append(made)
            elif share < 0.8:
                ends = chance.choice(concepts).id, Ref(chance.choice(concepts).id)
                made = Proposition(
                    id=named("proposition"), subject=ends[0], predicate_ref=f"{PACKAGE}/prefers", object=ends[1], **more
                )  # fmt: skip
            else:
                text = Payload("inline", " ".join(chance.choices(words, k=8)))
                made = Evidence(
                    id=named("evidence"), evidence_class="message", payload=text, content_digest="sha256:0", **more
                )  # fmt: skip
            puts.append(made)
        every.extend(puts)
        world.now += 1000
        seq = world.state.seq
        delta = Delta(
            ver=version, seq=seq + 1, snapshot_seq=seq, tx_id=f"t{version}", at=world.now,
            origin=Origin("bench", "bench"), transaction_class="cognitive", puts=tuple(puts),
        )  # fmt: skip
        world.deltas.append(delta)
        world.states.append(world.state.apply(delta))
    return world, every


def records() -> Control:
    """45 grants to seven groups and five denies."""
    chance = random.Random(2)
    granted = ("read", "search", "project")
    rules = []
    for number in range(45):
        label = chance.choice(("public", "internal", "private"))
        where = Selector(kinds=("proposition", "evidence"), classifications=(label,))
        if number % 2:
            where = Selector(
                types=(f"{PACKAGE}/{chance.choice(TYPES)}",), origins=(f"p{chance.randint(0, 9)}",)
            )
        rules.append(
            Rule(
                id=f"g{number}",
                effect="allow",
                subjects=(f"group:g{number % 7}",),
                permissions=granted,
                where=where,
            )
        )
    rules += [
        Rule(
            id=f"d{number}", effect="deny", subjects=("group:g0",), permissions=("discover",),
            where=Selector(classifications=("secret",), origins=(f"p{number}",)),
        )
        for number in range(5)
    ]  # fmt: skip
    groups = tuple(Group(name=f"g{number}", members=("reader",)) for number in range(7))
    return Control(version=1, owners=("owner",), rules=tuple(rules), groups=groups)


def measured(world: World, state: SpaceState, who: str, text: str, rounds: int) -> float:
    """The median of a query, in milliseconds."""
    world.states[-1] = state
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        reply = world.send({"kip": "2.0", "operations": [{"command": text}]}, principal=Principal(who))
        taken.append(time.process_time() - start)
        assert reply["status"] == "succeeded", reply
    return statistics.median(taken) * 1000


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--elements", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    world, every = built(asked.elements)
    plain = world.state
    governed = SpaceState(
        meta=with_control(plain.meta, records()), ver=plain.ver, seq=plain.seq, at=plain.at, tail=plain.tail
    )
    print("| query | no records | 50 rules | 50 rules, owner |\n|---|---|---|---|")
    for name, text in QUERIES:
        cells = [
            measured(world, state, who, text, asked.rounds)
            for state, who in ((plain, "reader"), (governed, "reader"), (governed, "owner"))
        ]
        print(f"| {name} | {' | '.join(f'{cell:.1f}' for cell in cells)} |")
    start = time.process_time()
    for _ in range(50):
        access = admit(Principal("reader"), governed.meta, governed, 0).access
    assert access is not None
    print(f"\ncompiling the records: {(time.process_time() - start) * 20:.2f} ms a unit")
    for kind in (Concept, Proposition):
        some = [element for element in every if type(element) is kind]
        start = time.process_time()
        seen = sum(access.sees(element) for element in some)
        each = (time.process_time() - start) * 1e6 / len(some)
        print(f"{kind.__name__}: {each:.1f} µs to decide on one of {len(some)}, of which {seen} are seen")


if __name__ == "__main__":
    main()
