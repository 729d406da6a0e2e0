"""Write skew on the local AWS: two at once that each leave the last other on duty; one of them must stay.

Neither writes what the other writes, so only a store that holds what was read can refuse it (KIP2-HA-001).
"""

from __future__ import annotations

import threading

import pytest

from core.authority import Principal
from core.model.elements import Origin
from core.model.log import SpaceMeta, Tier
from core.ports import Objects, Table
from core.protocol.request import read_request
from core.schema.environment import initial_environment
from core.service.commit import Birth, Commits
from core.service.erasure import Erasures
from core.service.kip import Kip
from core.service.leases import Leases
from core.service.spaces import Spaces
from core.service.upkeep import Upkeep
from infra.system import SystemClock, SystemEntropy
from tests.ministack import LocalAws

ROUNDS = 12
LEAVE = (
    "UPDATE ?me SET ATTRIBUTES {duty: false} WHERE {?me CONCEPT {key: :me} "
    "?other CONCEPT {key: :other} FILTER(?other.attributes.duty == true)}"
)
OWNER = Principal("owner")


class Process:
    """A service process over the shared store, with a cache of its own."""

    def __init__(self, table: Table, objects: Objects) -> None:
        self.clock, entropy = SystemClock(), SystemEntropy()
        self.spaces = Spaces(table, objects, self.clock)
        self.commits = Commits(table, objects, self.clock, entropy, self.spaces)
        upkeep = Upkeep(self.spaces, Leases(table, self.clock), entropy)
        self.kip = Kip(
            self.spaces, self.commits, Erasures(self.spaces, upkeep, entropy), self.clock, secret=b"skew"
        )

    def run(self, command: str, **parameters: object) -> dict[str, int]:
        """The result of one command, which must succeed."""
        body = {"kip": "2.0", "operations": [{"command": command, "parameters": parameters}]}
        response = self.kip.execute("skew", read_request(body), OWNER, deadline=self.clock.now() + 20_000)
        assert response.status == "succeeded", response
        result: dict[str, int] = response.results[0].result
        return result


def describe(birth: Birth) -> SpaceMeta:
    return SpaceMeta(
        space_id=birth.space_id, instance=birth.instance, salt=birth.salt, owner="owner",
        created_at=birth.at, tier=Tier(3, birth.at), schema=initial_environment(),
    )  # fmt: skip


@pytest.mark.ministack
def test_two_that_each_rely_on_the_other_cannot_both_go(ministack: LocalAws) -> None:
    """In every round of a race exactly one leaves, and somebody stays on duty."""
    table, objects = ministack.make_table(), ministack.make_objects()
    first, second = Process(table, objects), Process(table, objects)
    until = first.clock.now() + 20_000
    first.commits.create("skew", describe, origin=Origin("owner", "test"), deadline=until)
    for _ in range(ROUNDS):
        for key in ("a", "b"):
            first.run(
                'UPSERT CONCEPT ?p {MATCH {type: "Person", key: :k} SET ATTRIBUTES {duty: true}}', k=key
            )
        start = threading.Barrier(2)
        left: list[int] = []

        def leave(process: Process, me: str, other: str) -> None:
            start.wait(timeout=20)
            left.append(process.run(LEAVE, me=me, other=other)["updated"])

        threads = [
            threading.Thread(target=leave, args=(first, "a", "b")),
            threading.Thread(target=leave, args=(second, "b", "a")),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert sorted(left) == [0, 1]
        duty = second.run('FIND(?p.attributes.duty) WHERE {?p CONCEPT {type: "Person"}}')
        assert sorted(duty) == [False, True]
