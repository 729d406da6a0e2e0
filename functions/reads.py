"""The function that reads: service documents, a space's info, conversations, recall.

It writes one kind of row: a recall leaves a record of what was asked and answered. It never writes memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from core.errors import NoemaError
from core.protocol.http_types import (
    AgentOutput,
    Conversation,
    ConversationDelta,
    ConversationQuery,
    DeltaQuery,
    FormationStatus,
    ListQuery,
    Memory,
    ProbeInput,
    ProbeOutput,
    RecallInput,
    RecallOutput,
    ServiceInfo,
    SpaceInfo,
)
from core.protocol.memory_types import MemoryStatus
from core.protocol.request import Request
from core.protocol.response import Response
from functions import documents, facts, graymatter, kip
from functions.bootstrap import Services, services
from functions.deferring import accepted, prefers_later
from functions.echoing import note
from functions.http import HttpResponse
from functions.intake import ask_later
from functions.routing import Call, Page, Route, Routes, respond


def _list(found: Services, call: Call) -> Page:
    query: ListQuery = call.query
    page = found.conversations.page(
        call.space, query.collection, cursor=query.cursor, limit=query.limit, caller=call.caller
    )
    return Page(*page)


def _get(found: Services, call: Call) -> Conversation:
    return found.conversations.get(call.space, call.query.collection, _number(call), caller=call.caller)


def _delta(found: Services, call: Call) -> ConversationDelta:
    query: DeltaQuery = call.query
    return found.conversations.delta(
        call.space,
        query.collection,
        _number(call),
        messages_offset=query.messages_offset,
        artifacts_offset=query.artifacts_offset,
        caller=call.caller,
    )


def _number(call: Call) -> int:
    """The conversation in the path: a whole number from 1."""
    text = call.params["id"]
    if text.isascii() and text.isdigit() and len(text) <= 16 and int(text) > 0:
        return int(text)
    raise NoemaError("InvalidInput", "a conversation is named by a whole number", details={"member": "id"})


def _recall(found: Services, call: Call) -> AgentOutput | HttpResponse:
    if prefers_later(call):
        return _later(found, call)
    said = found.recall.recall(call.caller, call.space, call.body, deadline=call.deadline)
    _served(found, call, said.content, ())
    return said


def _recall_structured(found: Services, call: Call) -> RecallOutput | HttpResponse:
    if prefers_later(call):
        return _later(found, call)
    said = found.recall.recall_structured(call.caller, call.space, call.body, deadline=call.deadline)
    _served(found, call, said.answer, said.memories)
    return said


def _served(found: Services, call: Call, answer: str, memories: Iterable[Memory]) -> None:
    """Note what was served, but to nobody in particular: a guest's question must not decide what others may say."""
    if call.caller.kind != "anonymous":
        note(found, call.space, answer, memories)


def _later(found: Services, call: Call) -> HttpResponse:
    output = ask_later(found, call.caller, call.space, call.body, key=call.idempotency_key)
    return accepted(call.request, call.space, output)


def _probe(found: Services, call: Call) -> ProbeOutput:
    seen = found.recall.probe(call.space, call.body, call.caller)
    _served(found, call, "", seen.hits)
    return seen


ROUTES: Final[Routes] = {
    **facts.READS,
    **graymatter.READS,
    "service_info": Route(
        admit="open",
        summary="What this service is.",
        call=lambda found, _: documents.service_info(found.settings),
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
    "touch_icon": Route(
        admit="open",
        summary="The icon as a picture.",
        call=lambda _, __: documents.touch_icon(),
        media_type="image/webp",
    ),
    "space_info": Route(
        admit="public",
        summary="What a space is and how much it holds.",
        call=lambda found, call: found.admin.info(call.space, call.caller),
        response=SpaceInfo,
        labelled=True,
    ),
    "space_status": Route(
        admit="public",
        summary="The same as info.",
        call=lambda found, call: found.admin.info(call.space, call.caller),
        response=SpaceInfo,
        labelled=True,
    ),
    "formation_status": Route(
        admit="read",
        summary="How far formation has come.",
        call=lambda found, call: found.admin.formation_status(call.space, call.caller),
        response=FormationStatus,
        labelled=True,
    ),
    "memory_status": Route(
        admit="public",
        summary="How the memory fares: counts and rates of what was measured.",
        call=lambda found, call: found.memory_statuses.status(call.space, call.caller),
        response=MemoryStatus,
    ),
    "recall": Route(
        admit="public",
        summary="Answer a question from the memory, in prose.",
        call=_recall,
        body=RecallInput,
        response=AgentOutput,
        text_in="query",
        text_out="content",
        deferrable=True,
    ),
    "recall_structured": Route(
        admit="public",
        summary="Answer a question from the memory, with citations.",
        call=_recall_structured,
        body=RecallInput,
        response=RecallOutput,
        text_in="query",
        text_out="answer",
        deferrable=True,
    ),
    "probe": Route(
        admit="public",
        summary="Look whether there is anything on a subject, without answering.",
        call=_probe,
        body=ProbeInput,
        response=ProbeOutput,
    ),
    "execute_kip_readonly": Route(
        admit="public",
        summary="Run KIP commands that only read. The answer's body, not its status, says what became of it.",
        call=kip.execute_readonly,
        body=Request,
        own_body=True,
        text_in="command",
        response=Response,
        media_type="application/json",
    ),
    "list_conversations": Route(
        admit="read",
        summary="Conversations, the newest page first.",
        call=_list,
        query=ListQuery,
        response=list[Conversation],
    ),
    "get_conversation": Route(
        admit="read",
        summary="One conversation and what became of it.",
        call=_get,
        query=ConversationQuery,
        response=Conversation,
    ),
    "get_conversation_delta": Route(
        admit="read",
        summary="What a conversation gained since the caller last looked.",
        call=_delta,
        query=DeltaQuery,
        response=ConversationDelta,
    ),
}


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # an event and a context of Lambda
    """Answer one API Gateway v2 event."""
    return respond(event, context, ROUTES, services)
