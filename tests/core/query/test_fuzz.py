"""Any tree that the grammar admits is answered or refused by name; nothing else ever leaves the evaluator."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import NoemaError
from core.language import bind, parameter_names
from core.language.ast import Variable
from core.language.ast_kql import Find
from core.language.checks import bound_variables
from core.query import Limits, plan_json, run, snapshot_needed
from core.schema.definitions import ConceptType, Definition, Facet, PredicateType, StructuralField, SymbolKind
from core.schema.environment import Environment
from tests.core.language.strategies import finds
from tests.core.query.brain import WORLD, Brain, package, reference


class Willing(Environment):
    """A schema in which every name means something, so that random trees get past their names."""

    def resolve(self, kind: SymbolKind, name: str, *, write: bool = False) -> Definition:
        try:
            return super().resolve(kind, name, write=write)
        except NoemaError:
            known = ("Person", "knows", "Mnemonic", "has_step")
            ref = f"{WORLD}/{known[len(name) % 4]}"
            made = {"type": ConceptType, "predicate": PredicateType, "structural": StructuralField}
            return Facet(ref, "Mnemonic", closed=False) if kind == "facet" else made[kind](ref, ref)


def world() -> Brain:
    """A few elements of every kind."""
    b = Brain()
    b.env = Willing(1, [package()])
    alice = b.concept(
        "Person", "Alice", key="a", attributes={"a": [1, {"b": None}]}, facets={f"{WORLD}/Mnemonic": {"x": 1}}
    )
    bob = b.concept("Person", "Bob")
    known = b.says(alice, "knows", bob)
    b.says(known, "knows", "text")
    note = b.evidence("document", "x", bob)
    made = b.claim(known, alice, note, confidence=0.5)
    b.activity("inference", [note], [made])
    b.link(alice, "has_step", bob)
    b.merge(b.concept("Person", "Al"), alice)
    b.commit()
    b.options["limits"] = Limits(rows_examined=20_000, solutions=5_000)
    return b


BRAIN = world()
ALICE = BRAIN.select('?x {key: "a"}')[0]["x"]
values = st.sampled_from(
    [
        "a",
        "Alice",
        1,
        0,
        -1,
        1.5,
        True,
        None,
        "2026-01-01T00:00:00Z",
        reference(ALICE),
        [1, "a"],
        {"b": 1},
        "concept",
    ]
)


@st.composite
def trees(draw: st.DrawFn) -> Find:
    """Any FIND that the grammar admits."""
    return draw(finds)


def settled(find: Find) -> Find:
    """The tree without what only ever stops it early: projections of nothing, cursors, pages of no number."""
    names = sorted(bound_variables(find.where))
    kept = [
        item
        for item in find.order_by
        if isinstance(item.expression, Variable) and item.expression.name in names
    ]
    return msgspec.structs.replace(
        find,
        projections=tuple(Variable(name=name) for name in names[:3]) or find.projections,
        order_by=tuple(kept),
        limit=None,
        cursor=None,
        as_of=None,
        for_time=None,
        epistemic=None,
    )


@settings(max_examples=500, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(find=trees(), settle=st.booleans(), data=st.data())
def test_every_tree_is_answered_or_refused(find: Find, settle: bool, data: st.DataObject) -> None:
    """An answer is JSON; a refusal is a NoemaError. The plan of the same tree behaves alike."""
    command = settled(find) if settle else find
    given_values: dict[str, Any] = {name: data.draw(values) for name in sorted(parameter_names(command))}
    context = BRAIN.context()
    try:
        command = bind(command, given_values)
        snapshot_needed(command, context, head_seq=BRAIN.state.seq, head_at=BRAIN.state.at)
        plan = plan_json(BRAIN.state, command, BRAIN.env, context)
        answer = run(BRAIN.state, command, BRAIN.env, context)
    except NoemaError:
        return

    json.dumps([plan, answer.rows, answer.context])
