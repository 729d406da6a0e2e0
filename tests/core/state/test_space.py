"""The fold: a state is what its log says, however it was folded."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from core.model.elements import AnyElement
from core.model.log import Delta, SchemaEnvironment, SpaceMeta, Tier
from core.state.space import genesis
from tests.core.state.oracle import ORIGIN, SCRIPTS, Naive, assert_same, make

META = SpaceMeta(
    space_id="s",
    instance="i",
    salt="aaaaa",
    owner="tester",
    created_at=1,
    tier=Tier(1, 1),
    schema=SchemaEnvironment(1, ()),
)


def log_of(script: list) -> tuple[list[Delta], dict[str, AnyElement]]:
    """A log that carries out a script, and what it leaves."""
    elements: dict[str, AnyElement] = {}
    deltas = [Delta(1, 0, 0, "tx-1", 1, ORIGIN, "management", meta=META)]
    for ver, operations in enumerate(script, 2):
        last: dict[str, AnyElement | None] = {}
        for number, flavour, word in operations:
            one = make(number, flavour or 0, word)
            last[one.id] = None if flavour is None else one
        puts = tuple(one for one in last.values() if one is not None)
        gone = tuple(found for found, one in last.items() if one is None)
        deltas.append(Delta(ver, ver - 1, ver - 2, f"tx-{ver}", ver, ORIGIN, "cognitive", puts, gone))
        elements = {**elements, **{one.id: one for one in puts}}
        elements = {found: one for found, one in elements.items() if found not in gone}
    return deltas, elements


@settings(max_examples=50, deadline=None)
@given(script=SCRIPTS)
def test_replay_is_the_state(script: list) -> None:
    """Folding commit by commit and folding the log at once give the same state: that of its last words."""
    deltas, elements = log_of(script)
    at_once = genesis(deltas[0]).apply(*deltas[1:])
    stepwise = genesis(deltas[0])
    for delta in deltas[1:]:
        stepwise = stepwise.apply(delta)

    for state in (at_once, stepwise):
        assert (state.ver, state.seq, state.at) == (deltas[-1].ver, deltas[-1].seq, deltas[-1].at)
        assert_same(state, Naive(elements))


@settings(max_examples=20, deadline=None)
@given(script=SCRIPTS)
def test_a_state_never_changes(script: list) -> None:
    """Applying more commits leaves the state that they were applied to as it was."""
    deltas, _ = log_of(script)
    states = [genesis(deltas[0])]
    for delta in deltas[1:]:
        states.append(states[-1].apply(delta))

    for length, state in enumerate(states, 1):
        assert_same(state, Naive(log_of(script[: length - 1])[1]))


def test_the_protected_state_is_the_last_one_given() -> None:
    """A commit without protected state leaves it; one with it replaces it."""
    state = genesis(Delta(1, 0, 0, "tx-1", 1, ORIGIN, "management", meta=META))
    renamed = SpaceMeta(**{name: getattr(META, name) for name in META.__struct_fields__} | {"name": "Garden"})

    state = state.apply(Delta(2, 0, 0, "tx-2", 2, ORIGIN, "management", meta=renamed))
    state = state.apply(Delta(3, 1, 0, "tx-3", 3, ORIGIN, "cognitive", puts=(make(0, 0),)))

    assert state.meta.name == "Garden"


def test_a_gap_is_refused() -> None:
    """A commit that does not follow is not applied, and neither is anything after it."""
    state = genesis(Delta(1, 0, 0, "tx-1", 1, ORIGIN, "management", meta=META))
    for ver in (1, 3):
        with pytest.raises(ValueError, match="does not follow"):
            state.apply(Delta(ver, 1, 0, "tx", 1, ORIGIN, "cognitive"))

    assert state.ver == 1
    assert state.apply() is state


def test_a_log_begins_with_protected_state() -> None:
    """The first commit says whose space it is; its version is that of the space's birth."""
    with pytest.raises(ValueError, match="begins"):
        genesis(Delta(1, 0, 0, "tx-1", 1, ORIGIN, "management"))

    assert genesis(Delta(41, 0, 0, "tx-41", 1, ORIGIN, "management", meta=META)).ver == 41
