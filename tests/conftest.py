"""What every area shares: the local AWS, and that a property is tried on the same examples in every run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.ministack import LocalAws, start_local_aws

settings.register_profile("noema", derandomize=True, deadline=None)
settings.load_profile("noema")


@pytest.fixture(scope="session", autouse=True)
def no_models() -> None:
    """No test, and no process that one starts, uses the models that whoever runs the tests has configured."""
    ours = ("NOEMA_MODEL", "NOEMA_BUDGET", "NOEMA_PRICES")
    environ = os.environ  # noqa: TID251
    for name in [name for name in environ if name.startswith(ours) and name != "NOEMA_MODEL_PYTHON"]:
        del environ[name]


@pytest.fixture(scope="session")
def ministack() -> Iterator[LocalAws]:
    """A local AWS on a loopback port of its own, or the one that NOEMA_MINISTACK names; skips if there is none."""
    with start_local_aws() as aws:
        if aws is None:
            pytest.skip("no ministack: set NOEMA_MINISTACK to its URL or executable, or run scripts/test")
        yield aws
