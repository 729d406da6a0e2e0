"""One stack, deployed to one ministack, for all tests of this folder that a process runs."""

from collections.abc import Iterator

import pytest

from tests.e2e.deployed import Stack, deploy, strict_aws
from tests.ministack import LocalAws


@pytest.fixture(name="aws", scope="session")
def _aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    with strict_aws(tmp_path_factory.mktemp("ministack")) as aws:
        yield aws


@pytest.fixture(name="stack", scope="session")
def _stack(aws: LocalAws) -> Stack:
    """The bucket's policy alone is taken away: it asks for TLS, and for a condition key ministack does not know."""
    return deploy(aws, "SpaceModels=on")
