"""Invariants: each rule lets a lawful step pass and stops the step it is about."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from core.model.ids import transaction_id
from core.model.log import Delta
from core.state.layer import Empty
from core.state.space import SpaceState
from core.storage.head import Head, head_of, row_of
from core.storage.invariants import RULES, Violated, check, check_chain, check_delta
from core.storage.log import next_chain
from tests.core.state.oracle import ORIGIN, make
from tests.core.storage.test_segments import META

HEAD = Head(
    ver=10,
    seq=8,
    at=1000,
    instance="one",
    state="active",
    pgen=2,
    floor=3,
    min_delta=3,
    born=1,
    chain=b"c" * 32,
    base_ver=5,
    base_key="s/m/5",
    log_n=5,
    log_bytes=500,
    row={"ep_formation": 4, "formed": 7},
)


def step(**changes: Any) -> Head:
    return msgspec.structs.replace(HEAD, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"ver": 11, "seq": 9, "at": 1000},
        {"ver": 11, "seq": 8, "at": 2000},
        {"base_ver": 10, "base_key": "s/m/10", "log_n": 0, "log_bytes": 0},
        {"floor": 7, "min_delta": 7},
        {"pgen": 3, "state": "purging", "row": {"ep_formation": 5}},
        {"state": "deleted"},
    ],
)
def test_lawful_steps(changes: dict[str, Any]) -> None:
    """Commits, compactions, trimming, erasures and deletion are steps that may be taken."""
    check(HEAD, step(**changes))


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("version_never_falls", {"ver": 9}),
        ("version_never_falls", {"ver": 12}),
        ("sequence_follows_version", {"seq": 7}),
        ("sequence_follows_version", {"seq": 9}),
        ("sequence_follows_version", {"ver": 11, "seq": 10}),
        ("time_never_runs_back", {"at": 999}),
        ("purge_generation_never_falls", {"pgen": 1}),
        ("epochs_never_fall", {"row": {"ep_formation": 3}}),
        ("epochs_never_fall", {"row": {}}),
        ("history_is_ordered", {"base_ver": 11}),
        ("history_is_ordered", {"floor": 11}),
        ("history_is_ordered", {"min_delta": 4}),
        ("history_only_shrinks", {"floor": 2, "min_delta": 2}),
        ("history_only_shrinks", {"base_ver": 4}),
        ("state_follows", {"instance": "two", "seq": 0}),
        ("head_stays_small", {"row": {"ep_formation": 4, "junk": "x" * 1000}}),
    ],
)
def test_unlawful_steps(rule: str, changes: dict[str, Any]) -> None:
    """The step is stopped, and the rule that stops it is named."""
    with pytest.raises(Violated, match=rule):
        check(HEAD, step(**changes))


def test_every_rule_stops_something() -> None:
    """No rule in the list is without a case above."""
    stopped = {
        mark.args[1][i][0] for mark in test_unlawful_steps.pytestmark for i in range(len(mark.args[1]))
    }

    assert {rule.__name__ for rule in RULES} == stopped


def test_deletion_ends_a_life() -> None:
    """After it only another instance may be active, and it begins its sequence again."""
    tombstone = step(state="deleted")

    check(tombstone, step(instance="two", ver=11, seq=0, born=11, floor=11, min_delta=11, base_ver=0))
    for wrong in ({"instance": "one"}, {"instance": "two", "seq": 8}, {"instance": "two", "ver": 10}):
        with pytest.raises(Violated):
            check(
                tombstone, step(**({"ver": 11, "seq": 0, "born": 11, "floor": 11, "min_delta": 11} | wrong))
            )
    with pytest.raises(Violated, match="state_follows"):
        check(tombstone, step(state="purging"))


def test_the_chain_continues() -> None:
    """A commit's chain is the hash of the one before and its digest."""
    digest = b"d" * 32

    check_chain(HEAD, step(chain=next_chain(HEAD.chain, digest)), digest)
    with pytest.raises(Violated, match="chain_continues"):
        check_chain(HEAD, step(chain=b"x" * 32), digest)


def test_a_delta_fits_its_state() -> None:
    """A delta that was decided on another state, or writes an element twice, is stopped."""
    state = SpaceState.on(Empty(), meta=META, ver=4, seq=3, at=1)
    good = Delta(5, 4, 3, transaction_id(5, META.salt), 2, ORIGIN, "cognitive", (make(0, 0),))

    check_delta(state, good)
    for wrong in (
        {"ver": 6},
        {"snapshot_seq": 2},
        {"tx_id": transaction_id(4, META.salt)},
        {"puts": (make(0, 0), make(0, 1))},
        {"gone": (make(0, 0).id,)},
    ):
        with pytest.raises(Violated):
            check_delta(state, msgspec.structs.replace(good, **wrong))


def test_head_comes_back_from_its_row() -> None:
    """Every field and every attribute that services keep in the row survives being written down."""
    read = head_of(row_of(HEAD))

    assert msgspec.structs.replace(read, row={}) == msgspec.structs.replace(HEAD, row={})
    assert (read.epoch("formation"), read.epoch("learning"), read.number("formed")) == (4, 0, 7)
    assert read.lease_owner("formation") is None
