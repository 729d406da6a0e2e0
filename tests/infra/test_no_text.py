"""No adapter writes text of a memory anywhere but into its store: not into a log, not into a fault."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from moto import mock_aws

from core.ports import KeyExists, Objects, Put, Refused, StoreFault, Table, TooLarge, Update, When
from infra.aws.table import DynamoTable
from infra.local.objects import DirectoryObjects
from infra.local.queue import EmbeddedQueue
from infra.local.table import SqliteTable
from infra.system import SystemClock
from tests.infra.proxy import Answer, BadNetwork
from tests.ministack import LocalAws

SECRET = "the key is under the third flowerpot"


def faults_of(table: Table, objects: Objects) -> list[BaseException]:
    """Everything that can go wrong with a row and an object that hold the secret."""
    row = {"text": SECRET, "n": "x"}
    table.transact([Put("p", "a", dict(row))])
    objects.put("k", SECRET.encode())
    assert table.get("p", "a") == row
    assert objects.get("k") == SECRET.encode()
    attempts = [
        lambda: table.transact([Put("p", "a", dict(row), When(absent=True))]),
        lambda: table.transact([Put("p", "b", dict(row)), Put("p", "a", dict(row), When(absent=True))]),
        lambda: table.transact([Put("p", "c", {"text": SECRET * 20_000})]),
        lambda: table.transact([Update("p", "a", {"text": SECRET}, {"n": 1})]),
        lambda: table.transact([Put("p", "d", {"text": SECRET + "\ud800"})]),
        lambda: table.transact([Put("p", "d", {"text": [SECRET]})]),  # type: ignore[dict-item]
        lambda: objects.put("k", SECRET.encode()),
    ]
    caught: list[BaseException] = []
    for attempt in attempts:
        with pytest.raises((StoreFault, ValueError)) as fault:
            attempt()
        caught.append(fault.value)
    assert {Refused, TooLarge, KeyExists} <= {type(fault) for fault in caught}
    return caught


def assert_silent(caught: list[BaseException], caplog: pytest.LogCaptureFixture, out: str) -> None:
    """The secret is in no message, log line or stream."""
    assert not any(SECRET in str(fault) for fault in caught)
    assert SECRET not in caplog.text
    assert SECRET not in out


def test_the_embedded_store_is_silent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """SQLite, the directory and the embedded queue log nothing, even when everything is logged."""
    caplog.set_level(logging.DEBUG)
    table = SqliteTable(tmp_path / "t.sqlite")
    caught = faults_of(table, DirectoryObjects(tmp_path / "objects"))
    table.close()
    queue = EmbeddedQueue(SystemClock())
    queue.send("g", SECRET, dedupe="1")
    assert queue.receive(0) is not None

    assert_silent(caught, caplog, "".join(capfd.readouterr()))


def test_the_aws_store_is_silent(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    """DynamoDB and S3 log nothing of it at INFO, which is where the product logs."""
    caplog.set_level(logging.INFO)
    with mock_aws():
        aws = LocalAws(None)
        caught = faults_of(aws.make_table(), aws.make_objects())

    assert_silent(caught, caplog, "".join(capfd.readouterr()))


def test_a_service_that_quotes_what_it_was_sent_is_not_quoted(caplog: pytest.LogCaptureFixture) -> None:
    """An error message of AWS may hold our own words; the fault holds its code only."""
    caplog.set_level(logging.INFO)
    network = BadNetwork()
    clients = network.clients()
    body = f'{{"__type":"x#ValidationException","message":"Invalid value: {SECRET}"}}'
    network.plan = [Answer(400, body.encode())]

    with pytest.raises(StoreFault) as fault:
        DynamoTable(clients, "t").transact([Put("p", "a", {"text": SECRET})])
    network.close()

    assert_silent([fault.value], caplog, "")
