"""The canonical test world of the KIP 2.0 conformance paper (§8-11): its schema, people and principals."""

from __future__ import annotations

import pytest

from tests.conformance.harness import World
from tests.core.mutation.conftest import People
from tests.core.service.test_kip import Speaker


@pytest.fixture
def people() -> People:
    """Alice, Bob, Carol and two themes in the core-domain schema, in memory."""
    return People()


@pytest.fixture
def speaker() -> Speaker:
    """A process over a durable store, and a new space in it."""
    return Speaker.born()


@pytest.fixture
def world() -> World:
    """The conformance harness: one durable space in the canonical schema, its bindings and principals."""
    return World()
