"""The eighty shared fixture cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.runner import run_fixture

FIXTURES = Path(__file__).parents[3] / "shared" / "kip" / "fixtures"


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.json")), ids=lambda path: path.stem)
def test_fixture_file(path):
    """Every case of the file gets its expected answer."""
    problems = [f"{case.name}: {case.problem}" for case in run_fixture(path) if case.problem]

    assert problems == []


def test_the_fixtures_are_there():
    """The shared fixtures are beside the repository, or this says that they are not."""
    if not FIXTURES.is_dir():
        pytest.skip("no ../shared/kip/fixtures beside the repository")

    assert len(list(FIXTURES.glob("*.json"))) == 8
