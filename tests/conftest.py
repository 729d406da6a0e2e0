"""Fixtures that every area may use: the local AWS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.ministack import LocalAws, start_local_aws


@pytest.fixture(scope="session")
def ministack() -> Iterator[LocalAws]:
    """A local AWS on a loopback port of its own, or the one that NOEMA_MINISTACK names; skips if there is none."""
    with start_local_aws() as aws:
        if aws is None:
            pytest.skip("no ministack: set NOEMA_MINISTACK to its URL or executable, or run scripts/test")
        yield aws
