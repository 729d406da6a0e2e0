"""64 writers, crashes, zombies and a garbage collector: nothing lost, nothing twice, nothing torn."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.local.objects import DirectoryObjects
from infra.local.table import SqliteTable
from infra.system import SystemClock
from tests.concurrency.proof import Plan, Proof, Report
from tests.ministack import LocalAws


def assert_proven(report: Report) -> None:
    """The run held, and it was a run worth the name: there were crashes, conflicts, and compactors that overslept."""
    print("\n".join(report.lines()))
    assert report.faults == []
    assert report.acknowledged >= report.plan.writers
    assert report.versions == report.acknowledged + 1
    assert len(report.as_of) >= 12
    for happened in (
        "transactions refused",
        "writers crashed before a commit",
        "writers crashed after a commit",
        "outcomes replayed",
        "compactions landed",
        "compactors woke after their lease",
        "compactions rejected, overslept",
        "objects removed at the end",
    ):
        assert report.counts.get(happened, 0) > 0, f"no {happened}: the run proves nothing"
    assert (
        report.counts["compactors woke after their lease"] == report.counts["compactions rejected, overslept"]
    )


@pytest.mark.ministack
def test_64_writers_on_dynamodb_and_s3_lose_nothing(ministack: LocalAws) -> None:
    """On the AWS store every acknowledged commit is there once, whole, at its version, and late compactions fail."""
    plan = Plan(writers=64, commits=3, seconds=30)

    report = Proof(ministack.make_table(), ministack.make_objects(), SystemClock(), plan).run()

    assert_proven(report)


def test_64_writers_on_the_embedded_store_lose_nothing(tmp_path: Path) -> None:
    """The same on SQLite and a directory."""
    table = SqliteTable(tmp_path / "table.sqlite")
    plan = Plan(writers=64, commits=6, seconds=15)

    report = Proof(table, DirectoryObjects(tmp_path / "objects"), SystemClock(), plan).run()
    table.close()

    assert_proven(report)
