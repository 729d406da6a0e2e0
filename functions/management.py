"""The function of owners and managers: spaces, their settings and their tokens."""

from __future__ import annotations

from typing import Any, Final

from core.protocol.http_types import (
    AddSpaceTokenInput,
    CreateSpaceInput,
    RevokeSpaceTokenInput,
    SpaceInfo,
    SpaceToken,
    TierView,
    UpdateSpaceInput,
)
from functions.bootstrap import services
from functions.routing import Route, Routes, respond

ROUTES: Final[Routes] = {
    "create_space": Route(
        admit="admin",
        summary="Make a space.",
        call=lambda found, call: found.admin.create_space(call.caller, call.body, call.deadline),
        body=CreateSpaceInput,
        response=SpaceInfo,
    ),
    "update_space_tier": Route(
        admit="admin",
        summary="Give a space another size class.",
        call=lambda found, call: found.admin.update_tier(call.caller, call.space, call.body, call.deadline),
        body=CreateSpaceInput,
        response=TierView,
    ),
    "update_space": Route(
        admit="manage",
        summary="Change a space's name, description, publicity or memory policy.",
        call=lambda found, call: found.admin.update_space(call.caller, call.space, call.body, call.deadline),
        body=UpdateSpaceInput,
        response=bool,
    ),
    "list_space_tokens": Route(
        admit="manage",
        summary="The space's tokens, without their values.",
        call=lambda found, call: found.tokens.listing(call.space),
        response=list[SpaceToken],
    ),
    "add_space_token": Route(
        admit="manage",
        summary="Mint a token; the answer is the only place that ever shows its value.",
        call=lambda found, call: found.tokens.add(call.space, call.caller, call.body),
        body=AddSpaceTokenInput,
        response=SpaceToken,
    ),
    "revoke_space_token": Route(
        admit="manage",
        summary="Revoke a token by its value or its name.",
        call=lambda found, call: found.tokens.revoke(call.space, call.body),
        body=RevokeSpaceTokenInput,
        response=bool,
    ),
}


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # an event and a context of Lambda
    """Answer one API Gateway v2 event."""
    return respond(event, context, ROUTES, services)
