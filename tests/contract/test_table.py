"""Every store is the same Table."""

from __future__ import annotations

import pytest

from core.ports import Put, Refused, Row, Table, When
from tests.contract.table_cases import CASES, Case, fault_of


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_transaction_does_what_the_case_says(table: Table, case: Case) -> None:
    """A transaction lands whole, or is refused with the rows as they stand and changes nothing."""
    for sk, row in case.given.items():
        table.transact([Put("p", sk, row)])

    fault = fault_of(case)
    if fault is None:
        table.transact(case.writes)
    else:
        with pytest.raises(fault) as caught:
            table.transact(case.writes)
        if case.refused is not None:
            assert isinstance(caught.value, Refused)
            assert caught.value.failed == case.refused

    expected: dict[str, Row | None] = {**case.given, **case.then}
    assert {sk: exactly(table.get("p", sk)) for sk in expected} == {
        sk: exactly(row) for sk, row in expected.items()
    }


def exactly(row: Row | None) -> dict[str, tuple[type, object]] | None:
    """A row in which true differs from 1."""
    return None if row is None else {name: (type(value), value) for name, value in row.items()}


KEYS = ["A", "D#000000000001", "D#000000000002", "D#000000000010", "D$", "a", "z", "é", "\uffff", "😀"]  # fmt: skip


@pytest.fixture
def filled(table: Table) -> Table:
    """A partition with keys that sort in more than one way, between two others."""
    for number, sk in enumerate(KEYS):
        table.transact([Put("p", sk, {"n": number})])
    table.transact([Put("o", "D#000000000001", {"n": -1}), Put("p2", "D#000000000001", {"n": -1})])
    return table


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("", "\U0010ffff", KEYS),
        ("D#", "D#~", KEYS[1:4]),
        ("D#000000000002", "D#000000000010", KEYS[2:4]),
        ("D#000000000002", "D#000000000002", KEYS[2:3]),
        ("D#000000000003", "D#000000000009", []),
        ("z", "a", []),
        ("b", "😀", KEYS[6:]),
        ("\uffff", "😀", KEYS[8:]),
    ],
)
def test_a_query_includes_both_bounds_in_byte_order(
    filled: Table, first: str, last: str, expected: list[str]
) -> None:
    """Both bounds are included, and keys come in the order of their UTF-8 bytes, up or down."""
    up = filled.query("p", first, last, limit=100)
    down = filled.query("p", first, last, limit=100, reverse=True)

    assert [sk for sk, _ in up] == expected
    assert [sk for sk, _ in down] == expected[::-1]
    assert [row for _, row in up] == [{"n": KEYS.index(sk)} for sk in expected]


@pytest.mark.parametrize("limit", [0, 1, 3, len(KEYS), len(KEYS) + 1])
def test_a_query_gives_the_first_rows_of_its_direction(filled: Table, limit: int) -> None:
    """The limit cuts from the beginning of the direction asked for."""
    up = filled.query("p", "", "\U0010ffff", limit=limit)
    down = filled.query("p", "", "\U0010ffff", limit=limit, reverse=True)

    assert [sk for sk, _ in up] == KEYS[:limit]
    assert [sk for sk, _ in down] == KEYS[::-1][:limit]


def test_a_query_of_an_unknown_partition_is_empty(table: Table) -> None:
    """There are no rows where nothing was written."""
    assert table.query("nobody", "", "z", limit=5) == []
    assert table.get("nobody", "a") is None


def test_a_query_crosses_pages(table: Table) -> None:
    """A query over more than DynamoDB's page of 1 MB returns all of it, in order, with the limit kept."""
    for number in range(9):
        table.transact([Put("p", f"{number:03}", {"x": bytes([number]) * 380_000})])

    everything = table.query("p", "", "~", limit=100)
    seven = table.query("p", "", "~", limit=7, reverse=True)

    assert [(sk, row["x"]) for sk, row in everything] == [
        (f"{number:03}", bytes([number]) * 380_000) for number in range(9)
    ]
    assert [sk for sk, _ in seven] == ["008", "007", "006", "005", "004", "003", "002"]


def test_an_answer_is_the_callers_own(table: Table) -> None:
    """Changing a row that was read, or that was written, changes nothing in the store."""
    given: Row = {"n": 1}
    table.transact([Put("p", "a", given)])
    given["n"] = 2
    read = table.get("p", "a")
    assert read is not None
    read["n"] = 3
    table.query("p", "a", "a", limit=1)[0][1]["n"] = 4
    with pytest.raises(Refused) as refused:
        table.transact([Put("p", "a", {}, when=When(absent=True))])
    current = refused.value.failed[0]
    assert current is not None
    current["n"] = 5

    assert table.get("p", "a") == {"n": 1}
