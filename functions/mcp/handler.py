"""The function that serves MCP: one endpoint for every space, `POST /mcp/{space}`."""

from __future__ import annotations

from typing import Any, Final

from functions.bootstrap import services
from functions.mcp import brain, facts
from functions.mcp.http import Endpoint, refused
from functions.mcp.rpc import Message
from functions.mcp.toolbox import Toolbox
from functions.routing import Route, Routes, respond

TOOLBOX: Final = Toolbox((*brain.TOOLS, *facts.TOOLS), brain.ABSENT)

ROUTES: Final[Routes] = {
    "mcp": Route(
        admit="any",
        summary="One message of the Model Context Protocol (docs/mcp.md). The answer is a JSON-RPC message.",
        call=Endpoint(TOOLBOX).serve,
        body=Message,
        own_body=True,
        media_type="application/json",
        refused=refused,
    ),
}


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # an event and a context of Lambda
    """Answer one API Gateway v2 event."""
    return respond(event, context, ROUTES, services)
