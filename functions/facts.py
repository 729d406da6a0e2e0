"""The fact memory over HTTP: the routes below `/v1/{space}/facts`.

What lives here: what these routes take and give, and which use case answers. What must never live here: what a
fact is, and GrayMatter's own paths (`functions.graymatter`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from core.errors import NoemaError
from core.facts import exports, imports
from core.facts.recalling import Tuning
from core.facts.values import SHARED, Consolidated, Fact, ImportReport, Recalled, RecallOptions
from core.facts.wire import (
    CheckpointView,
    FactView,
    StatsView,
    view,
    view_checkpoint,
    view_receipt,
    view_stats,
)
from functions.bootstrap import Services
from functions.fact_types import (
    AgentInput,
    AgentQuery,
    AliasInput,
    BatchRecallInput,
    BatchRecallOutput,
    CheckpointInput,
    CheckpointsQuery,
    ConsolidatedOutput,
    ExportOutput,
    ExportQuery,
    ExtractInput,
    FactRecallInput,
    FactRecallOutput,
    FactsQuery,
    IdsOutput,
    ImportInput,
    LinkInput,
    LinkOutput,
    RememberInput,
    RevisedOutput,
    ReviseInput,
    TargetInput,
    TuningInput,
)
from functions.routing import Call, Route, Routes

if TYPE_CHECKING:
    from core.service.facts import Facts

MAX_EXPORT_BYTES: Final = 5_000_000
_LATEST: Final = "latest"  # in the place of a checkpoint's id


def facts_of(found: Services, call: Call) -> Facts:
    """The fact memory as the caller may see it."""
    return found.facts.seen_by(call.caller)


# --- our own routes


def _unset(value: Any) -> Any:  # what a body may leave out
    return None if value is msgspec.UNSET else value


def _options(body: FactRecallInput | BatchRecallInput) -> RecallOptions:
    return RecallOptions(
        top_k=body.top_k,
        min_confidence=_unset(body.min_confidence),
        confidence_weight=_unset(body.confidence_weight),
        explain=getattr(body, "explain", False),
        hints=getattr(body, "hints", False),
    )


def keep(
    found: Services,
    call: Call,
    agent_id: str,
    text: str,
    *,
    confidence: str | None = None,
    again: bool = False,
) -> Fact:
    """Keep a text, or give the fact that it is already: what this memory served lately is no news.

    Raises:
        NoemaError: as `Facts.remember`; `PreconditionFailed` for a text out of a conversation, and for one that
            stands with another label than the one given.
    """
    facts, until = facts_of(found, call), call.deadline
    remember = facts.remember if again else facts.remember_news
    made = remember(
        call.caller,
        call.space,
        agent_id,
        text,
        deadline=until,
        confidence=confidence,
        key=call.idempotency_key,
    )
    if made is None:
        made = facts.standing(call.space, agent_id, text)
    if made is not None and confidence is not None and confidence != made.confidence:
        raise NoemaError(
            "PreconditionFailed",
            "this memory served that very text lately, where it stands with another label",
            hint='Revise it, with the same text and the new label; or send it with "again": true.',
            details={"member": "confidence", "fact_id": made.id, "confidence": made.confidence},
        )
    if made is None:
        raise NoemaError(
            "PreconditionFailed",
            "this memory served that very text out of a conversation lately, and a memory does not confirm itself",
            hint='If somebody said it anew, send it with "again": true.',
            details={"member": "text"},
        )
    return made


def _remember(found: Services, call: Call) -> FactView:
    body: RememberInput = call.body
    label = _unset(body.confidence)
    return view(keep(found, call, body.agent_id, body.text, confidence=label, again=body.again))


def _extract(found: Services, call: Call) -> list[FactView]:
    body: ExtractInput = call.body
    made = facts_of(found, call).remember_extracted(
        call.caller,
        call.space,
        body.agent_id,
        body.answer,
        deadline=call.deadline,
        key=call.idempotency_key,
    )
    return [view(fact) for fact in made]


def _revise(found: Services, call: Call) -> RevisedOutput:
    body: ReviseInput = call.body
    done = facts_of(found, call).revise(
        call.caller,
        call.space,
        body.agent_id,
        body.target,
        body.text,
        deadline=call.deadline,
        confidence=_unset(body.confidence),
        key=call.idempotency_key,
    )
    return RevisedOutput(fact=view(done.fact), retired=done.retired)


def _on_target(
    act_of: Callable[[Facts], Callable[..., tuple[str, ...]]],
) -> Callable[[Services, Call], IdsOutput]:
    """A route that changes the facts of an exact text."""

    def answer(found: Services, call: Call) -> IdsOutput:
        act, body = act_of(facts_of(found, call)), call.body
        return IdsOutput(ids=act(call.caller, call.space, body.agent_id, body.target, deadline=call.deadline))

    return answer


def _link(found: Services, call: Call) -> LinkOutput:
    body: LinkInput = call.body
    proposition = facts_of(found, call).link(
        call.caller, call.space, body.agent_id, body.source, body.target, deadline=call.deadline
    )
    return LinkOutput(proposition=proposition)


def _alias(found: Services, call: Call) -> FactView:
    body: AliasInput = call.body
    return view(
        facts_of(found, call).alias(
            call.caller,
            call.space,
            body.agent_id,
            body.term,
            body.equivalents,
            deadline=call.deadline,
            key=call.idempotency_key,
        )
    )


def _recall(found: Services, call: Call) -> FactRecallOutput:
    body: FactRecallInput = call.body
    options = _options(body)
    if body.scope == "all":
        recalled = facts_of(found, call).recall_all(
            call.caller, call.space, body.agent_id, body.query, options
        )
    else:
        agent = SHARED if body.scope == "shared" else body.agent_id
        recalled = facts_of(found, call).recall(call.caller, call.space, agent, body.query, options)
    return _recalled(body.agent_id, body.query, recalled, explain=body.explain)


def _recalled(agent_id: str, query: str, recalled: Recalled, *, explain: bool) -> FactRecallOutput:
    return FactRecallOutput(
        agent_id=agent_id,
        query=query,
        count=len(recalled.texts),
        facts=() if explain else recalled.texts,
        explained=tuple(view_receipt(each) for each in recalled.receipts) if explain else None,
        retrieval=recalled.retrieval,
        feedback=recalled.feedback,
        hints=recalled.hints,
        degraded=recalled.degraded,
    )


def _recall_batch(found: Services, call: Call) -> BatchRecallOutput:
    body: BatchRecallInput = call.body
    batch = facts_of(found, call).recall_batch(
        call.caller, call.space, body.agent_id, body.queries, _options(body)
    )
    return BatchRecallOutput(
        agent_id=body.agent_id,
        count=len(batch.merged),
        merged=batch.merged,
        per_query=batch.per_query,
        retrieval=batch.retrieval,
        degraded=batch.degraded,
    )


def _list(found: Services, call: Call) -> list[FactView]:
    query: FactsQuery = call.query
    facts = facts_of(found, call).facts(call.space, query.agent_id, retired=query.retired, limit=query.limit)
    return [view(fact) for fact in facts]


def _get(found: Services, call: Call) -> FactView:
    fact = facts_of(found, call).get(call.space, call.query.agent_id, call.params["fact_id"])
    if fact is None:
        raise NoemaError("NotFoundOrNotVisible", "the namespace has no fact of this id")
    return view(fact)


def _checkpoints(found: Services, call: Call) -> list[CheckpointView]:
    query: CheckpointsQuery = call.query
    saved = facts_of(found, call).checkpoints(call.space, query.agent_id, limit=query.limit)
    return [view_checkpoint(each) for each in saved]


def _checkpoint(found: Services, call: Call) -> CheckpointView:
    agent_id, checkpoint_id = call.query.agent_id, call.params["checkpoint_id"]
    if checkpoint_id == _LATEST:
        saved = facts_of(found, call).latest_checkpoint(call.space, agent_id)
    else:
        saved = facts_of(found, call).checkpoint(call.space, agent_id, checkpoint_id)
    if saved is None:
        raise NoemaError(
            "NotFoundOrNotVisible", "this agent has no such checkpoint", hint="List its checkpoints."
        )
    return view_checkpoint(saved)


def _delete_checkpoint(found: Services, call: Call) -> bool:
    agent_id, checkpoint_id = call.query.agent_id, call.params["checkpoint_id"]
    return facts_of(found, call).delete_checkpoint(call.caller, call.space, agent_id, checkpoint_id)


def _save_checkpoint(found: Services, call: Call) -> CheckpointView:
    body: CheckpointInput = call.body
    return view_checkpoint(
        facts_of(found, call).save_checkpoint(
            call.caller,
            call.space,
            body.agent_id,
            deadline=call.deadline,
            state=body.state,
            messages=body.messages,
            metadata=body.metadata,
            key=call.idempotency_key,
        )
    )


def _consolidate(found: Services, call: Call) -> ConsolidatedOutput:
    done: Consolidated = facts_of(found, call).consolidate(
        call.caller, call.space, call.body.agent_id, deadline=call.deadline
    )
    return ConsolidatedOutput(
        ran=done.ran,
        decayed=done.decayed,
        consumed=done.consumed,
        pruned=done.pruned,
        learnt=done.learnt,
        summary=None if done.summary is None else view(done.summary),
        problem=done.problem,
        contradictions=done.contradictions,
    )


def _export(found: Services, call: Call) -> ExportOutput:
    query: ExportQuery = call.query
    agents = facts_of(found, call).agents(call.space) if query.agent_id is None else (query.agent_id,)
    facts = [fact for agent in agents for fact in facts_of(found, call).facts(call.space, agent)]
    files = exports.export(facts, query.format, graph=query.graph)
    size = sum(len(text.encode()) for text in files.values())
    if size > MAX_EXPORT_BYTES:
        raise NoemaError(
            "ResourceExhausted",
            f"the export has {size} bytes; an answer may have {MAX_EXPORT_BYTES}",
            hint="Export one agent at a time.",
            details={"bytes": size, "limit_bytes": MAX_EXPORT_BYTES},
        )
    return ExportOutput(files=files)


def _import(found: Services, call: Call) -> ImportReport:
    body: ImportInput = call.body
    read = imports.read(body.data, body.format, agent_id=body.agent_id, now=found.clock.now())
    return facts_of(found, call).import_facts(call.caller, call.space, read, deadline=call.deadline)


def _delete(found: Services, call: Call) -> bool:
    return facts_of(found, call).delete(call.caller, call.space, call.query.agent_id, call.params["fact_id"])


def _tune(found: Services, call: Call) -> Tuning:
    body: TuningInput = call.body
    tuning = Tuning(
        confidence_weight=body.confidence_weight,
        min_relevance=body.min_relevance,
        signals=body.signals,
        consolidate_from=body.consolidate_from,
        consolidate_above=body.consolidate_above,
        learn_prefix=body.learn_prefix,
    )
    return facts_of(found, call).tune(call.caller, call.space, tuning, deadline=call.deadline)


READS: Final[Routes] = {
    "facts_recall": Route(
        admit="read",
        summary="The facts that fit a query best, with receipts if asked for.",
        call=_recall,
        body=FactRecallInput,
        response=FactRecallOutput,
    ),
    "facts_recall_batch": Route(
        admit="read",
        summary="Several queries under one policy, and their merged view.",
        call=_recall_batch,
        body=BatchRecallInput,
        response=BatchRecallOutput,
    ),
    "list_facts": Route(
        admit="read",
        summary="The facts of an agent, newest first.",
        call=_list,
        query=FactsQuery,
        response=list[FactView],
    ),
    "facts_stats": Route(
        admit="read",
        summary="What an agent's namespace holds.",
        call=lambda found, call: view_stats(facts_of(found, call).stats(call.space, call.query.agent_id)),
        query=AgentQuery,
        response=StatsView,
    ),
    "facts_agents": Route(
        admit="read",
        summary="The agents that have facts.",
        call=lambda found, call: list(facts_of(found, call).agents(call.space)),
        response=list[str],
    ),
    "list_checkpoints": Route(
        admit="read",
        summary="An agent's checkpoints, the latest first.",
        call=_checkpoints,
        query=CheckpointsQuery,
        response=list[CheckpointView],
    ),
    "get_checkpoint": Route(
        admit="read",
        summary="One checkpoint by its id, or the latest.",
        call=_checkpoint,
        query=AgentQuery,
        response=CheckpointView,
    ),
    "export_facts": Route(
        admit="read",
        summary="Facts as files: JSON that imports back, Markdown, or an Obsidian vault.",
        call=_export,
        query=ExportQuery,
        response=ExportOutput,
    ),
    "get_fact": Route(
        admit="read",
        summary="One fact by its id.",
        call=_get,
        query=AgentQuery,
        response=FactView,
    ),
}
"""Rows of the function that reads."""

WRITES: Final[Routes] = {
    "remember_fact": Route(
        admit="write",
        summary="Keep a text verbatim as a new fact.",
        call=_remember,
        body=RememberInput,
        response=FactView,
    ),
    "extract_facts": Route(
        admit="write",
        summary="Keep up to five facts from a model's answer, as unverified.",
        call=_extract,
        body=ExtractInput,
        response=list[FactView],
    ),
    "revise_fact": Route(
        admit="write",
        summary="Replace every live fact of an exact text by a new one.",
        call=_revise,
        body=ReviseInput,
        response=RevisedOutput,
    ),
    "forget_fact": Route(
        admit="write",
        summary="Retire every live fact of an exact text; history keeps it.",
        call=_on_target(lambda facts: facts.forget),
        body=TargetInput,
        response=IdsOutput,
    ),
    "pin_fact": Route(
        admit="write",
        summary="Keep every live fact of an exact text from decay.",
        call=_on_target(lambda facts: facts.pin),
        body=TargetInput,
        response=IdsOutput,
    ),
    "unpin_fact": Route(
        admit="write",
        summary="Let every fact of an exact text decay again.",
        call=_on_target(lambda facts: facts.unpin),
        body=TargetInput,
        response=IdsOutput,
    ),
    "link_facts": Route(
        admit="write",
        summary="Link two things by name in the knowledge graph.",
        call=_link,
        body=LinkInput,
        response=LinkOutput,
    ),
    "add_alias": Route(
        admit="write",
        summary="Teach a namespace that words mean the same.",
        call=_alias,
        body=AliasInput,
        response=FactView,
    ),
    "consolidate_facts": Route(
        admit="write",
        summary="Let weights fade, and prune what has faded.",
        call=_consolidate,
        body=AgentInput,
        response=ConsolidatedOutput,
    ),
    "save_checkpoint": Route(
        admit="write",
        summary="Save a session's state.",
        call=_save_checkpoint,
        body=CheckpointInput,
        response=CheckpointView,
    ),
    "import_facts": Route(
        admit="write",
        summary="Keep the facts of a file: ours, GrayMatter's, mem0's, or the MCP memory server's.",
        call=_import,
        body=ImportInput,
        response=ImportReport,
    ),
    "delete_checkpoint": Route(
        admit="write",
        summary="Erase one checkpoint physically.",
        call=_delete_checkpoint,
        query=AgentQuery,
        response=bool,
    ),
    "delete_fact": Route(
        admit="write",
        summary="Erase one fact physically.",
        call=_delete,
        query=AgentQuery,
        response=bool,
    ),
}
"""Rows of the function that writes."""

MANAGES: Final[Routes] = {
    "tune_facts": Route(
        admit="manage",
        summary="Set what all recalls of facts keep to.",
        call=_tune,
        body=TuningInput,
        response=Tuning,
    ),
}
"""Rows of the function that manages."""
