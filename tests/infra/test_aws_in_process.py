"""The AWS adapters against moto: AWS in this process, quick, for one thread at a time.

Moto loses updates among threads and compares values of different types, so it is no evidence of either; the
contract suite on ministack is. What it gives is a second, independent reading of what our requests mean.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from moto import mock_aws

from core.ports import KeyExists, Put, Refused
from tests.contract.table_cases import TRANSACTIONS, WRITES, Case, fault_of
from tests.ministack import LocalAws


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    """AWS in this process."""
    with mock_aws():
        yield LocalAws(None)


@pytest.mark.parametrize("case", [*WRITES, *TRANSACTIONS], ids=lambda case: case.name)
def test_a_transaction_means_the_same_to_another_reader(aws: LocalAws, case: Case) -> None:
    """Every write kind and every mixed transaction of the contract."""
    table = aws.make_table()
    for sk, row in case.given.items():
        table.transact([Put("p", sk, row)])

    fault = fault_of(case)
    if fault is None:
        table.transact(case.writes)
    else:
        with pytest.raises(fault) as caught:
            table.transact(case.writes)
        if isinstance(caught.value, Refused):
            assert caught.value.failed == case.refused

    expected = {**case.given, **case.then}
    assert {sk: table.get("p", sk) for sk in expected} == expected


def test_objects_mean_the_same_to_another_reader(aws: LocalAws) -> None:
    """Written once, read in ranges, listed in order, deleted."""
    objects = aws.make_objects()
    for key in ("sp/d/2", "sp/d/10", "sp2/d/1"):
        objects.put(key, key.encode())

    with pytest.raises(KeyExists):
        objects.put("sp/d/2", b"again")
    assert objects.get("sp/d/10", 3, 2) == b"d/"
    assert objects.get("sp/d/10", 99) == b""
    assert objects.get("sp/d/3") is None
    assert [(key, size) for key, _, size in objects.list("sp/")] == [("sp/d/10", 7), ("sp/d/2", 6)]
    objects.delete(["sp/d/10", "sp/d/2"])
    assert [key for key, _, _ in objects.list("")] == ["sp2/d/1"]
