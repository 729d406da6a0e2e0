"""The function that takes in what is to be remembered. It stores and hands over; forming is the worker's."""

from __future__ import annotations

from typing import Any, Final

from functions.bootstrap import services
from functions.routing import Routes, respond

ROUTES: Final[Routes] = {}


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # an event and a context of Lambda
    """Answer one API Gateway v2 event."""
    return respond(event, context, ROUTES, services)
