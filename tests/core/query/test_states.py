"""An answer depends on the elements, never on what the state is made of: layers, segments, or a layer over them."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import core.storage.compaction as compaction
import core.storage.segment as segment
from core.errors import NoemaError
from core.query import run, select
from core.state.layer import Layer
from core.state.view import View
from tests.core.query.brain import Brain, question
from tests.core.query.test_oracle import blocks, graph
from tests.core.storage.test_segments import Shelf, delta_of


def elements_of(view: View) -> list[object]:
    """Everything a state holds."""
    return [
        view.get(i)
        for k in ("concept", "proposition", "assertion", "evidence", "activity")
        for i in view.ids(k)
    ]  # type: ignore[arg-type]


def compacted(brain: Brain) -> View:
    """The same elements as small segments."""
    return Shelf().fold([delta_of(1, elements_of(brain.state))])  # type: ignore[arg-type]


def half_compacted(brain: Brain) -> View:
    """Half of the elements in segments, the others in a layer over them."""
    every = elements_of(brain.state)
    layer = Layer(Shelf().fold([delta_of(1, every[::2])]))  # type: ignore[arg-type]
    for element in every[1::2]:
        layer.put(element)  # type: ignore[arg-type]
    return layer


@pytest.fixture(scope="module", autouse=True)
def _small_segments() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "MAX_ELEMENTS", 5)
        patch.setattr(segment, "BLOCK_BYTES", 400)
        yield


def solutions(view: View, brain: Brain, block: str) -> list[str]:
    where = question(f"FIND(?unused_) WHERE {{ {block} }}").where
    rows = select(view, where, brain.env, brain.context())
    return [json.dumps({name: repr(value) for name, value in sorted(row.items())}) for row in rows]


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 60), clauses=blocks(1))
def test_solutions_and_their_order_are_the_same(seed: int, clauses: list[str]) -> None:
    """The plan may differ, for indexes have other sizes; the answer and its order do not."""
    brain = graph(seed)
    block = " ".join(clauses)
    try:
        found = solutions(brain.state, brain, block)
    except NoemaError as error:
        assume(error.code not in {"ReferenceError", "TypeMismatch", "InvalidSyntax"})
        raise

    assert solutions(compacted(brain), brain, block) == found
    assert solutions(half_compacted(brain), brain, block) == found


def test_pages_go_on_over_another_form_of_the_state() -> None:
    """A page may be answered by a container that has compacted what the first one had in layers."""
    brain = Brain()
    for i in range(20):
        brain.concept("Person", f"p{i:02}")
    brain.commit()
    text = 'FIND(?c.name) WHERE { ?c {type: "Person"} } LIMIT 7'
    views, names, cursor = [brain.state, compacted(brain), half_compacted(brain)], [], ""
    for view in views:
        answer = run(view, question(text + cursor), brain.env, brain.context())
        names += answer.rows
        cursor = f' CURSOR "{answer.next_cursor}"'

    assert names == [f"p{i:02}" for i in range(20)]


def test_belief_is_the_same_over_segments() -> None:
    """A projection walks provenance through whatever holds it."""
    brain = Brain()
    alice, dark = brain.concept("Person", "Alice"), brain.concept("Theme", "Dark")
    fact = brain.says(alice, "prefers", dark)
    root = brain.evidence("observation", "seen", alice)
    first = brain.claim(fact, alice, root, mode="observed", confidence=0.8)
    second = brain.claim(fact, dark, mode="inferred", confidence=0.9)
    brain.activity("inference", [first], [second])
    brain.commit()
    find = question(
        'FIND(?b) WHERE { ?b BELIEF ({name: "Alice"}, "prefers", ?o) } WITH EPISTEMIC {explanation: "ledger"}'
    )
    answers = [
        run(view, find, brain.env, brain.context()).rows
        for view in (brain.state, compacted(brain), half_compacted(brain))
    ]

    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0]["support"]["root_groups"] == [root.id]
