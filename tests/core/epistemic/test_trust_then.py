"""Trust is part of the state that a belief is of: what was believed then, by the trust of then (KIP §48.4)."""

from __future__ import annotations

import pytest

from core.epistemic.trust import TrustRecord
from tests.conformance.harness import World

ASK = 'FIND(?b.status) WHERE {?b BELIEF (:alice, "timezone", "+08:00")}'
PORTABLE = 'WITH EPISTEMIC {policy: "test-deterministic"}'


@pytest.fixture
def world() -> World:
    """Bob, whose word is trusted, has said something; then he is found out."""
    world = World()
    world.ok('ASSERT ?a (:alice, "timezone", "+08:00") {by: :bob, stance: "support", mode: "stated"}')
    return world


def found_out(world: World) -> int:
    """Bob is trusted no longer; the `space_seq` before."""
    before = world.state().seq
    world.ok('CREATE CONCEPT ?c {TYPE "Document"}')
    world.trust(TrustRecord("actor", world.ref["bob"]["id"], "untrusted"))
    return before


def test_as_of_takes_the_trust_of_then(world: World) -> None:
    """The past was believed by whoever was trusted; the present is not."""
    before = found_out(world)

    assert world.rows(f"{ASK} {PORTABLE}") == ["insufficient"]
    assert world.rows(f"{ASK} AS OF SEQ :n {PORTABLE}", n=before) == ["accepted"]
    assert world.rows(f'{ASK} FOR TIME "2020-01-01T00:00:00Z" {PORTABLE}') == ["insufficient"]


def test_a_later_page_takes_the_trust_of_the_first(world: World) -> None:
    """A cursor pins the state, trust included, so that one answer is by one measure."""
    world.ok('ASSERT ?a (:alice, "timezone", "+01:00") {by: :bob, stance: "support", mode: "stated"}')
    ask = f'FIND(?v, ?b.status) WHERE {{?b BELIEF (:alice, "timezone", ?v)}} {PORTABLE} LIMIT 1'
    first = world.ok(ask)
    found_out(world)
    rest = world.ok(f"{ask} CURSOR :c", c=first.cursor)

    assert sorted(first.result + rest.result) == [["+01:00", "accepted"], ["+08:00", "accepted"]]
