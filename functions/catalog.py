"""All route tables together, for whatever looks at the whole interface: /openapi.json and the tests."""

from __future__ import annotations

from typing import Final

from functions import management, reads, writes
from functions.mcp import handler as mcp
from functions.routing import Routes

ROUTES: Final[Routes] = {**reads.ROUTES, **writes.ROUTES, **management.ROUTES, **mcp.ROUTES}
