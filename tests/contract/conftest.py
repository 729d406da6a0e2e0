"""The three stores that must be one: in memory, embedded, and AWS on a local AWS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.ports import Objects, Table
from core.storage.memory import MemoryObjects, MemoryTable
from infra.local.objects import DirectoryObjects
from infra.local.table import SqliteTable
from infra.system import SystemClock
from tests.ministack import LocalAws

STORES = ["memory", "embedded", pytest.param("aws", marks=pytest.mark.ministack)]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    """The name of the store under test."""
    return request.param


@pytest.fixture
def table(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Table]:
    """A new empty table of the store."""
    if store == "memory":
        yield MemoryTable()
    elif store == "embedded":
        embedded = SqliteTable(tmp_path / "table.sqlite")
        yield embedded
        embedded.close()
    else:
        aws: LocalAws = request.getfixturevalue("ministack")
        yield aws.make_table()


@pytest.fixture
def objects(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> Objects:
    """New empty objects of the store."""
    if store == "memory":
        return MemoryObjects(SystemClock())
    if store == "embedded":
        return DirectoryObjects(tmp_path / "objects")
    aws: LocalAws = request.getfixturevalue("ministack")
    return aws.make_objects()
