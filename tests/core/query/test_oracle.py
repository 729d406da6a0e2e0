"""The planner against the naive evaluator, on random graphs and random questions."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from core.errors import NoemaError
from core.language import ast
from tests.core.query.brain import Brain, question
from tests.core.query.oracle import Oracle

NAMES = ("n0", "n1", "n2")
TYPES = ("Person", "Project", "Experience", "Step")
VARIABLES = ("x", "y", "z", "w")


def graph(seed: int) -> Brain:
    """A small random graph with every kind of element, some of it archived."""
    chance = random.Random(seed)
    brain = Brain()
    concepts = [
        brain.concept(
            chance.choice(TYPES),
            chance.choice([*NAMES, None]),
            attributes=chance.choice([{}, {"n": 1}, {"n": 2.0}, {"n": True}, {"n": "1"}]),
        )
        for _ in range(chance.randint(2, 7))
    ]
    propositions: list[Any] = []
    tuples = set()
    for _ in range(chance.randint(0, 9)):
        subject = chance.choice([*concepts, *propositions])
        predicate = chance.choice(["knows", "part_of", "says"])
        obj = chance.choice([*concepts, *propositions, 1, True, "1", "n1"])
        key = (subject.id, predicate, getattr(obj, "id", (type(obj), obj)))
        if key not in tuples:
            tuples.add(key)
            propositions.append(brain.says(subject, predicate, obj))
    evidence = [brain.evidence("observation", f"t{i}") for i in range(2)]
    for proposition in propositions:
        if chance.random() < 0.5:
            brain.claim(
                proposition,
                chance.choice(concepts),
                *chance.sample(evidence, chance.randint(0, 2)),
                stance=chance.choice(["support", "reject"]),
            )
    for source in chance.sample(concepts, min(2, len(concepts))):
        brain.link(source, "has_step", *chance.sample(concepts, chance.randint(1, 2)))
    if propositions and chance.random() < 0.5:
        brain.change(chance.choice(propositions), state="archived")
    if chance.random() < 0.5:
        brain.change(chance.choice(concepts), state="archived")
    brain.commit()
    return brain


variable = st.sampled_from(VARIABLES).map(lambda name: f"?{name}")
name = st.sampled_from(NAMES).map(json.dumps)
matcher = st.one_of(
    st.just("{}"),
    name.map(lambda n: f"{{name: {n}}}"),
    variable.map(lambda v: f"{{name: {v}}}"),
    st.sampled_from(TYPES).map(lambda t: f'{{type: "{t}"}}'),
    st.sampled_from(["1", "2", "true", '"1"', "?w"]).map(lambda n: f"{{attributes: {{n: {n}}}}}"),
)
predicate = st.sampled_from(['"knows"', '"part_of"', '"says"'])
path = st.one_of(
    predicate,
    st.just("?w"),
    st.tuples(predicate, st.sampled_from(["{1,2}", "{0,1}", "{2}", "{1,}", "{0,}"])).map("".join),
    st.tuples(predicate, predicate).map(" | ".join),
)
inline = st.one_of(variable, variable, variable, matcher.filter(lambda m: m != "{}"))
ends = st.one_of(
    inline, st.sampled_from(["1", "true", '"1"', '"n1"']), st.just('({name: "n0"}, "knows", ?z)')
)
positive = st.one_of(
    st.tuples(variable, matcher).map(lambda p: f"{p[0]} CONCEPT {p[1]}"),
    st.tuples(inline, path, ends).map(lambda p: f"({p[0]}, {p[1]}, {p[2]})"),
    st.tuples(variable, inline, predicate, ends).map(lambda p: f"{p[0]} ({p[1]}, {p[2]}, {p[3]})"),
    st.tuples(variable, variable).map(lambda p: f"{p[0]} ASSERTION {{proposition: {p[1]}}}"),
    st.tuples(variable, inline).map(lambda p: f'{p[0]} ASSERTION {{asserted_by: {p[1]}, stance: "support"}}'),
    st.tuples(variable, variable).map(lambda p: f"{p[0]} ASSERTION {{evidence: {p[1]}}}"),
    st.tuples(variable, variable).map(lambda p: f'STRUCTURAL ({p[0]}, "has_step", {p[1]})'),
    st.tuples(variable, variable).map(lambda p: f'STRUCTURAL ({p[0]}, "evidence", {p[1]})'),
)
operand = st.one_of(
    variable.map(lambda v: f"{v}.name"),
    variable.map(lambda v: f"{v}.attributes.n"),
    variable,
    st.sampled_from(['"n1"', "1", "true", "1.5"]),
)
comparison = st.tuples(operand, st.sampled_from(["==", "!=", "<", ">", "<=", ">="]), operand).map(" ".join)
condition = st.one_of(
    comparison,
    comparison.map(lambda c: f"!({c})"),
    st.tuples(comparison, comparison).map(" || ".join),
    st.tuples(comparison, comparison).map(" && ".join),
    operand.map(lambda o: f"IS_NULL({o})"),
)
filters = condition.map(lambda c: f"FILTER({c})")


@st.composite
def blocks(draw: st.DrawFn, depth: int) -> list[str]:
    """The clauses of a random block, with blocks inside it so deep."""
    return draw(_BLOCKS[depth])


def _blocks(depth: int) -> Any:
    inner = [positive, positive, filters]
    if depth:
        nested = _blocks(depth - 1)
        for keyword in ("NOT", "OPTIONAL", "UNION"):
            inner.append(nested.map(lambda clauses, k=keyword: f"{k} {{ {' '.join(clauses)} }}"))
    return st.lists(st.one_of(*inner), min_size=1, max_size=4)


_BLOCKS = [_blocks(depth) for depth in range(3)]


def answer(brain: Brain, clauses: list[str]) -> list[str]:
    """The engine's solutions in a form that can be compared."""
    rows = brain.select(" ".join(clauses))
    return sorted(
        json.dumps({name: _shown(value) for name, value in row.items()}, sort_keys=True) for row in rows
    )


def _shown(value: Any) -> Any:
    if value is None:
        return None
    if hasattr(value, "id"):
        return ["ref", value.id]
    content = value.value
    return [
        "lit",
        float(content) if isinstance(content, (int, float)) and not isinstance(content, bool) else content,
    ]


def expected(brain: Brain, where: ast.Where) -> list[str]:
    """The naive evaluator's solutions in the same form."""
    out = []
    for row in Oracle(brain.state).solve(where):
        shown = {}
        for key, value in row.items():
            if value is None:
                shown[key] = None
                continue
            sort, content = value
            number = isinstance(content, (int, float)) and not isinstance(content, bool)
            shown[key] = [sort, float(content) if number else content]
        out.append(json.dumps(shown, sort_keys=True))
    return sorted(out)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(seed=st.integers(0, 60), clauses=blocks(2))
def test_planner_agrees_with_the_naive_evaluator(seed: int, clauses: list[str]) -> None:
    """Whatever the plan, the solutions are those of trying every pattern on every element."""
    brain = graph(seed)
    try:
        found = answer(brain, clauses)
    except NoemaError as error:
        assume(error.code not in {"ReferenceError", "TypeMismatch", "InvalidSyntax"})
        raise
    where = question(f"FIND(?x) WHERE {{ {' '.join(clauses)} }}").where

    assert found == expected(brain, where)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(seed=st.integers(0, 60), clauses=blocks(1), order=st.randoms(use_true_random=False))
def test_order_of_clauses_means_nothing(seed: int, clauses: list[str], order: random.Random) -> None:
    """The same block with its clauses in another order has the same solutions."""
    brain = graph(seed)
    try:
        found = answer(brain, clauses)
    except NoemaError as error:
        assume(error.code not in {"ReferenceError", "TypeMismatch", "InvalidSyntax"})
        raise
    moved = [clause for clause in clauses if not clause.startswith("OPTIONAL")]
    order.shuffle(moved)

    assert answer(brain, [*moved, *(c for c in clauses if c.startswith("OPTIONAL"))]) == found


def test_oracle_and_engine_have_something_to_compare() -> None:
    """The random graphs are not all empty of answers."""
    found = sum(bool(answer(graph(seed), ['(?x, "knows", ?y)', "?x CONCEPT {}"])) for seed in range(20))

    assert found > 5
