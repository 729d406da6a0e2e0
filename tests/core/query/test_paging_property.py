"""Pages of random questions add up to the whole, whatever made each page."""

from __future__ import annotations

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from core.errors import NoemaError
from tests.core.query.brain import Brain
from tests.core.query.test_oracle import blocks, graph

SHAPES = (
    "FIND(?x) WHERE {{ {where} }}",
    "FIND(?x, ?y) WHERE {{ {where} }}",
    "FIND(?x.name, COUNT(?y)) WHERE {{ {where} }}",
    "FIND(?x.name) WHERE {{ {where} }} ORDER BY ?x.name DESC",
    "FIND(?x.name) WHERE {{ {where} }} ORDER BY COUNT(?y), ?x.name",
)


def answer(brain: Brain, text: str, size: int) -> list[object]:
    """All pages of an answer, one after the other."""
    rows: list[object] = []
    cursor = ""
    while True:
        page = brain.find(f"{text} LIMIT {size}{cursor}")
        rows += page.rows
        if page.next_cursor is None:
            return rows
        assert len(page.rows) == size
        cursor = f' CURSOR "{page.next_cursor}"'


@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.filter_too_much]
)
@given(seed=st.integers(0, 60), clauses=blocks(1), shape=st.sampled_from(SHAPES), size=st.integers(1, 4))
def test_pages_add_up(seed: int, clauses: list[str], shape: str, size: int) -> None:
    """Nothing twice, nothing missing, nothing out of place."""
    brain = graph(seed)
    text = shape.format(where=" ".join(["?x CONCEPT {}", *clauses]))
    try:
        whole = brain.rows(text)
    except NoemaError as error:
        assume(error.code not in {"ReferenceError", "TypeMismatch", "InvalidSyntax"})
        raise

    assert answer(brain, text, size) == whole
