"""The small world of the mutation tests, spoken to in whole requests."""

from __future__ import annotations

import pytest

from tests.core.mutation.conftest import People


@pytest.fixture
def people() -> People:
    """The world, fresh."""
    return People()
