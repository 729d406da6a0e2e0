"""The function that reads: service documents, a space's info, conversations, recall. It needs no right to write."""

from __future__ import annotations

from typing import Any, Final

from core.protocol.http_types import FormationStatus, ServiceInfo, SpaceInfo
from functions import documents
from functions.bootstrap import services
from functions.routing import Route, Routes, respond

ROUTES: Final[Routes] = {
    "service_info": Route(
        admit="open",
        summary="What this service is.",
        call=lambda found, _: documents.service_info(found.settings.sharding),
        response=ServiceInfo,
        media_type="application/json",
    ),
    "skill": Route(
        admit="open",
        summary="How an agent uses this service.",
        call=lambda _, __: documents.skill(),
        media_type="text/markdown",
    ),
    "openapi": Route(
        admit="open",
        summary="This service as an OpenAPI document.",
        call=lambda _, __: documents.openapi(),
        media_type="application/json",
    ),
    "favicon": Route(
        admit="open",
        summary="An icon.",
        call=lambda _, __: documents.favicon(),
        media_type="image/svg+xml",
    ),
    "space_info": Route(
        admit="public",
        summary="What a space is and how much it holds.",
        call=lambda found, call: found.admin.info(call.space),
        response=SpaceInfo,
        labelled=True,
    ),
    "space_status": Route(
        admit="public",
        summary="The same as info.",
        call=lambda found, call: found.admin.info(call.space),
        response=SpaceInfo,
        labelled=True,
    ),
    "formation_status": Route(
        admit="read",
        summary="How far formation has come.",
        call=lambda found, call: found.admin.formation_status(call.space),
        response=FormationStatus,
        labelled=True,
    ),
}


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # an event and a context of Lambda
    """Answer one API Gateway v2 event."""
    return respond(event, context, ROUTES, services)
