"""The function that takes in what is to be remembered, and what is to be forgotten. Forming is the worker's."""

from __future__ import annotations

from typing import Any, Final

from core.protocol.http_types import AgentOutput, ForgetInput, ForgetReport, FormationInput
from core.protocol.memory_types import MaintenanceInput, PinInput, PinOutput, UserInput
from core.protocol.request import Request
from core.protocol.response import Response
from functions import facts, graymatter, kip
from functions.bootstrap import Services, services
from functions.intake import start_maintenance, submit
from functions.routing import Call, Route, Routes, respond


def _submit(found: Services, call: Call) -> AgentOutput:
    return submit(found, call.caller, call.space, call.body, key=call.idempotency_key)


def _maintain(found: Services, call: Call) -> AgentOutput:
    return start_maintenance(found, call.caller, call.space, call.body, key=call.idempotency_key)


def _forget(found: Services, call: Call) -> ForgetReport:
    owner = found.entropy.token(12).hex()
    return found.forgetting.forget(call.caller, call.space, call.body, owner=owner)


ROUTES: Final[Routes] = {
    **facts.WRITES,
    **graymatter.WRITES,
    "formation": Route(
        admit="write",
        summary="Remember a conversation. Answers at once; forming goes on in the background.",
        call=_submit,
        body=FormationInput,
        response=AgentOutput,
        text_in="messages",
        text_out="content",
    ),
    "execute_kip": Route(
        admit="write",
        summary="Run KIP commands that may write. The answer's body, not its status, says what became of it.",
        call=kip.execute,
        body=Request,
        own_body=True,
        text_in="command",
        response=Response,
        media_type="application/json",
    ),
    "forget": Route(
        admit="write",
        summary="Erase elements physically, from the present and from all history.",
        call=_forget,
        body=ForgetInput,
        response=ForgetReport,
    ),
    "maintenance": Route(
        admit="write",
        summary="Settle what time has done to the memory. Answers at once; the run goes on in the background.",
        call=_maintain,
        body=MaintenanceInput,
        response=AgentOutput,
    ),
    "pin": Route(
        admit="write",
        summary="Keep an element out of forgetting, or let it fade again.",
        call=lambda found, call: found.pins.pin(call.caller, call.space, call.body, call.deadline),
        body=PinInput,
        response=PinOutput,
    ),
    "get_or_init_user": Route(
        admit="write",
        summary="The person a key of yours stands for, made if there is none.",
        call=lambda found, call: found.users.get_or_init_user(
            call.caller, call.space, call.body, call.deadline
        ),
        body=UserInput,
        response=dict[str, Any],
    ),
}


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # an event and a context of Lambda
    """Answer one API Gateway v2 event."""
    return respond(event, context, ROUTES, services)
