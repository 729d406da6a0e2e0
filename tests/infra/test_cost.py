"""What a commit and a read cost on DynamoDB, against the design's budget."""

from __future__ import annotations

import pytest

from infra.aws.clients import Clients
from infra.aws.objects import S3Objects
from infra.aws.table import DynamoTable
from tests.concurrency.ledger import Ledger
from tests.doubles import FakeClock
from tests.infra.meter import Meter
from tests.ministack import LocalAws

pytestmark = pytest.mark.ministack

READS = ("GetItem", "Query")


@pytest.fixture
def measured(ministack: LocalAws) -> tuple[Ledger, Meter]:
    """A ledger with a warm cache and a meter on its clients."""
    clients = Clients(ministack.session(), endpoint=ministack.url)
    meter = Meter(clients)
    table = DynamoTable(clients, ministack.make_table_name())
    objects = S3Objects(clients, ministack.make_bucket_name())
    ledger = Ledger(table, objects, FakeClock(step_ms=1))
    ledger.create()
    ledger.write("first")
    ledger.spaces.load("ledger")
    meter.take()
    return ledger, meter


def test_a_small_commit_costs_at_most_six_write_units(measured: tuple[Ledger, Meter]) -> None:
    """HEAD, delta and outcome are each written once in one transaction; before it HEAD and the key are read."""
    ledger, meter = measured

    ledger.write("second", bytes_of_text=200)

    units = meter.take()
    assert units.pop("TransactWriteItems") <= 6
    assert sum(units.pop(name, 0) for name in READS) <= 2
    assert units == {}


def test_a_commit_without_a_key_costs_four_write_units(measured: tuple[Ledger, Meter]) -> None:
    """There is no outcome to keep."""
    ledger, meter = measured

    ledger.write("second", keyed=False)

    assert meter.take()["TransactWriteItems"] <= 4


def test_a_warm_read_costs_at_most_two_read_units(measured: tuple[Ledger, Meter]) -> None:
    """The state that is held is served after one look at HEAD."""
    ledger, meter = measured

    ledger.spaces.load("ledger")

    units = meter.take()
    assert sum(units.values()) <= 2
    assert set(units) <= set(READS)


def test_a_large_delta_is_not_billed_as_a_row(measured: tuple[Ledger, Meter]) -> None:
    """Over 8 KB the body goes to an object, and the rows cost what small ones cost."""
    ledger, meter = measured

    ledger.write("second", bytes_of_text=60_000)

    assert meter.take()["TransactWriteItems"] <= 6
