"""The function of owners and managers: spaces, their settings and their tokens."""

from __future__ import annotations

from typing import Any, Final

from core.errors import NoemaError
from core.migration.legacy import MigrationInput
from core.migration.report import Report
from core.model.checkpoints import LogCheckpoint
from core.protocol.byok_types import ByokInput, ByokView
from core.protocol.http_types import (
    AddSpaceTokenInput,
    CreateSpaceInput,
    DeleteSpaceInput,
    RestartFormationInput,
    RevokeSpaceTokenInput,
    SpaceInfo,
    SpaceToken,
    TierView,
    UpdateSpaceInput,
)
from core.protocol.memory_types import ShadowInput, ShadowReport
from core.service.chain import CheckpointInput
from core.service.erasure import ErasureReceipt
from functions import capsules, facts, governance, operators
from functions.bootstrap import Services, services
from functions.routing import Call, Route, Routes, respond
from functions.shadowing import evaluate


def _delete_space(found: Services, call: Call) -> ErasureReceipt:
    if call.body.space_id != call.space:
        raise NoemaError(
            "InvalidInput",
            "the body names another space than the path",
            details={"member": "space_id", "expected": call.space},
        )
    owner = found.entropy.token(12).hex()
    return found.erasures.delete_space(call.space, call.caller.subject, owner=owner)


def _update_byok(found: Services, call: Call) -> bool:
    """True, as the contract's clients read it; GET shows what is set now."""
    found.byok.update(call.caller, call.space, call.body)
    return True


ROUTES: Final[Routes] = {
    **facts.MANAGES,
    **capsules.MANAGES,
    **governance.HOSTS,
    **operators.ROUTES,
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
    "delete_space": Route(
        admit="admin",
        summary="Delete a space with everything in it, physically and for good.",
        call=_delete_space,
        body=DeleteSpaceInput,
        response=ErasureReceipt,
    ),
    "restart_formation": Route(
        admit="manage",
        holds="maintain",
        summary="Form again from a conversation that failed or was set aside.",
        call=lambda found, call: found.formation.restart(call.space, call.body.conversation),
        body=RestartFormationInput,
        response=bool,
    ),
    "update_space": Route(
        admit="manage",
        holds="manage_policy",
        summary="Change a space's name, description, publicity or memory policy.",
        call=lambda found, call: found.admin.update_space(call.caller, call.space, call.body, call.deadline),
        body=UpdateSpaceInput,
        response=bool,
    ),
    "migrate": Route(
        admit="manage",
        holds="import",
        summary="Take over a page of a KIP 1.x graph, or say what that would come to.",
        call=lambda found, call: found.migration.migrate(call.caller, call.space, call.body, call.deadline),
        body=MigrationInput,
        response=Report,
    ),
    "shadow_eval": Route(
        admit="manage",
        holds="manage_policy",
        summary="Try a memory policy on a copy of the space, with questions that were asked; ask again for the report.",
        call=evaluate,
        body=ShadowInput,
        response=ShadowReport,
        slow=True,
    ),
    "get_space_byok": Route(
        admit="manage",
        holds="manage_policy",
        summary="The space's own model, without its key.",
        call=lambda found, call: found.byok.view(call.space),
        response=ByokView,
    ),
    "update_space_byok": Route(
        admit="manage",
        holds="manage_policy",
        summary="Set, change or take away the space's own model; no answer ever shows its key.",
        call=_update_byok,
        body=ByokInput,
        response=bool,
    ),
    "log_checkpoint": Route(
        admit="manage",
        holds="read_audit",
        summary="A signed checkpoint of the space's log, for somebody else to keep; VERIFY CHECKPOINT checks it.",
        call=lambda found, call: found.checkpoints.make(call.space, call.body),
        body=CheckpointInput,
        response=LogCheckpoint,
    ),
    "list_space_tokens": Route(
        admit="manage",
        holds="manage_membership",
        summary="The space's tokens, without their values.",
        call=lambda found, call: found.tokens.listing(call.space),
        response=list[SpaceToken],
    ),
    "add_space_token": Route(
        admit="manage",
        holds="manage_membership",
        summary="Mint a token; the answer is the only place that ever shows its value.",
        call=lambda found, call: found.tokens.add(call.space, call.caller, call.body),
        body=AddSpaceTokenInput,
        response=SpaceToken,
    ),
    "revoke_space_token": Route(
        admit="manage",
        holds="manage_membership",
        summary="Revoke a token by its value or its name.",
        call=lambda found, call: found.tokens.revoke(call.space, call.body),
        body=RevokeSpaceTokenInput,
        response=bool,
    ),
}


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # an event and a context of Lambda
    """Answer one API Gateway v2 event."""
    return respond(event, context, ROUTES, services)
