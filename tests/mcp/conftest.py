"""What the tests of MCP share."""

import pytest

from tests.mcp.world import Mcp, client


@pytest.fixture
def mcp() -> Mcp:
    """A client of a new service."""
    return client()
