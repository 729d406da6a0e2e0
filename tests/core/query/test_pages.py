"""LIMIT and CURSOR, and which state a query reads (KIP §44.8, §48)."""

from __future__ import annotations

import pytest

from core.errors import NoemaError
from core.model.instants import parse_instant
from core.query import Coordinate, Limits, snapshot_needed
from core.query.cursor import seal_cursor
from tests.core.query.brain import NOW, Brain, question

ALL = 'FIND(?c.name) WHERE { ?c {type: "Person"} }'
ORDERED = ALL + " ORDER BY ?c.attributes.rank DESC"
JOINED = 'FIND(?c.name, ?o.name) WHERE { (?c, "knows", ?o) }'
GROUPED = 'FIND(?c.name, COUNT(?o)) WHERE { (?c, "knows", ?o) }'


@pytest.fixture
def brain() -> Brain:
    """Seven people in two ranks, each knowing the next two."""
    b = Brain()
    people = [b.concept("Person", f"p{i}", attributes={"rank": i % 2}) for i in range(7)]
    for i, person in enumerate(people):
        b.says(person, "knows", people[(i + 1) % 7])
        b.says(person, "knows", people[(i + 2) % 7])
    b.commit()
    return b


def pages(brain: Brain, text: str, size: int, **options: object) -> list[list[object]]:
    """Every page of an answer."""
    out = []
    cursor = ""
    while True:
        answer = brain.find(f"{text} LIMIT {size}{cursor}", **options)
        out.append(answer.rows)
        if answer.next_cursor is None:
            return out
        cursor = f' CURSOR "{answer.next_cursor}"'


@pytest.mark.parametrize("text", [ALL, ORDERED, JOINED, GROUPED])
@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_pages_are_the_whole_in_order(brain: Brain, text: str, size: int) -> None:
    """No row twice, none missing, the same order; the last page has no cursor."""
    found = pages(brain, text, size)

    assert [row for page in found for row in page] == brain.rows(text)
    assert all(len(page) == size for page in found[:-1])


def test_limit_zero_and_bad_limits(brain: Brain) -> None:
    """LIMIT 0 is an empty answer; a negative or odd one is refused."""
    assert brain.find(ALL + " LIMIT 0").next_cursor is None
    assert brain.rows(ORDERED + " LIMIT 0") == []
    for limit in (-1, 1.5, True, "3"):
        with pytest.raises(NoemaError) as refused:
            brain.rows(ALL + " LIMIT :n", {"n": limit})
        assert refused.value.code in {"TypeMismatch", "ConstraintViolation"}


def test_page_bound_of_the_service(brain: Brain) -> None:
    """Without LIMIT, or above the bound, a page ends at the bound and says how to go on."""
    answer = brain.find(ALL, limits=Limits(page=5))

    assert len(answer.rows) == 5
    assert answer.next_cursor is not None


@pytest.mark.parametrize("text", [ALL, ORDERED])
def test_cursor_pins_the_snapshot(brain: Brain, text: str) -> None:
    """KQL-016: a row committed between two pages is not on the second; the second asks for the old state."""
    first = brain.find(text + " LIMIT 3")
    before = brain.state
    brain.concept("Person", "new", attributes={"rank": 1})
    brain.commit()
    following = f'{text} LIMIT 100 CURSOR "{first.next_cursor}"'

    needed = snapshot_needed(
        question(following), brain.context(), head_seq=brain.state.seq, head_at=brain.now
    )
    assert needed == Coordinate(seq=1)
    assert len(brain.rows(following, state=before)) == 4
    with pytest.raises(NoemaError) as refused:
        brain.rows(following)
    assert refused.value.code == "CursorInvalidated"


def test_cursor_of_another_query_space_or_caller_is_refused(brain: Brain) -> None:
    """KQL-017: a cursor continues only what it came from."""
    cursor = brain.find(ALL + " LIMIT 3").next_cursor

    def code(text: str, **options: object) -> str:
        with pytest.raises(NoemaError) as refused:
            brain.rows(f'{text} LIMIT 3 CURSOR "{cursor}"', **options)
        return refused.value.code

    assert code('FIND(?c.name) WHERE { ?c {type: "Project"} }') == "CursorMismatch"
    assert code(ORDERED) == "CursorMismatch"
    assert code(ALL, principal="other") == "CursorMismatch"
    assert code(ALL, space_id="other") == "CursorMismatch"
    assert code(ALL, authority="less") == "CursorInvalidated"
    assert code(ALL, instance="two") == "CursorInvalidated"
    assert code(ALL, cursor_key=b"other") == "CursorInvalidated"
    assert code(ALL, now=NOW + 4_000_000) == "CursorExpired"


def test_cursor_survives_another_page_size_and_spelling(brain: Brain) -> None:
    """LIMIT is not part of what a cursor continues, nor is layout."""
    cursor = brain.find(ALL + " LIMIT 3").next_cursor

    assert (
        len(brain.rows(f'find( ?c.name )\n where {{ ?c {{type: "Person"}} }} LIMIT 2 CURSOR "{cursor}"')) == 2
    )


def test_cursor_of_another_family_is_refused(brain: Brain) -> None:
    """KQL-018: families are not interchangeable."""
    cursor = seal_cursor("search", {"o": 1}, b"key", now=NOW)
    with pytest.raises(NoemaError) as refused:
        brain.rows(f'{ALL} CURSOR "{cursor}"')

    assert refused.value.code == "CursorTypeMismatch"


@pytest.mark.parametrize("text", ["", "x", "kql.", "kql.AAAA", "kql.é", "a.b.c", "kql." + "A" * 9000])
def test_text_that_is_no_cursor(brain: Brain, text: str) -> None:
    """Anything else is refused by name, never an internal failure."""
    with pytest.raises(NoemaError) as refused:
        brain.rows(ALL + " CURSOR :c", {"c": text})

    assert refused.value.code in {"CursorInvalidated", "TypeMismatch"}


def need(text: str, brain: Brain) -> Coordinate | None:
    """The older state a query asks for."""
    return snapshot_needed(question(text), brain.context(), head_seq=brain.state.seq, head_at=brain.state.at)


def test_as_of_names_a_state(brain: Brain) -> None:
    """KIP §48.1: by commit number, transaction or time; the present needs nothing."""
    assert need(ALL, brain) is None
    assert need(ALL + " AS OF SEQ 1", brain) is None
    assert need(ALL + " AS OF SEQ 0", brain) == Coordinate(seq=0)
    assert need(ALL + ' AS OF TX "tx-1"', brain) == Coordinate(tx="tx-1")
    time = parse_instant("2026-05-31T00:00:00Z")
    assert need(ALL + ' AS OF TIME "2026-05-31T02:00:00+02:00"', brain) == Coordinate(time=time)
    assert need(ALL + ' AS OF TIME "2026-06-01T00:00:00Z"', brain) is None


@pytest.mark.parametrize(
    ("clause", "code"),
    [
        ("AS OF SEQ 2", "HistoricalSnapshotUnavailable"),
        ('AS OF TIME "2026-06-01T00:00:00.001Z"', "HistoricalSnapshotUnavailable"),
        ("AS OF SEQ -1", "TypeMismatch"),
        ('AS OF TIME "yesterday"', "TypeMismatch"),
    ],
)
def test_what_is_no_coordinate(brain: Brain, clause: str, code: str) -> None:
    """A coordinate the space has not reached is refused, never rounded to the present."""
    with pytest.raises(NoemaError) as refused:
        need(f"{ALL} {clause}", brain)

    assert refused.value.code == code


def test_reading_an_older_state(brain: Brain) -> None:
    """KQL-024: the old state answers with its own values, and says which it was."""
    (person,) = list(brain.select('?c {name: "p0"}'))
    brain.change(brain.state.get(person["c"].id), name="renamed")  # type: ignore[union-attr]
    brain.commit()
    answer = brain.find(ALL + " AS OF SEQ 1", state=brain.past[1])

    assert "p0" in answer.rows
    assert answer.context["snapshot_seq"] == 1
    assert "p0" not in brain.rows(ALL)


def test_select_orders_by_the_target(brain: Brain) -> None:
    """A mutation's sweep takes its targets in order of creation."""
    rows = brain.select('(?a, "knows", ?b)', first="b")
    ids = [row["b"].id for row in rows]  # type: ignore[union-attr]

    assert ids == sorted(ids)
    assert set(rows[0]) == {"a", "b"}


def test_select_starts_from_what_is_bound(brain: Brain) -> None:
    """A handle given from outside restricts the block; BELIEF has no place there."""
    (person,) = brain.select('?c {name: "p3"}')
    found = brain.select('(?a, "knows", ?b)', bound={"a": person["c"]})

    assert len(found) == 2
    with pytest.raises(NoemaError) as refused:
        brain.select("?b BELIEF (?a)")
    assert refused.value.code == "UnsupportedCapability"
