"""What the fact memory's HTTP routes take and give, as the documents show it. Data only."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from core.facts import exports, imports
from core.facts.values import TOP_K, Answered, Retrieval, Signals
from core.facts.wire import FactView, ReceiptView
from core.model.elements import Json

AgentId = Annotated[
    str, msgspec.Meta(description="The namespace, byte for byte; `__shared__` for the shared one.")
]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000)]


# --- what the routes take


class RememberInput(msgspec.Struct, frozen=True, kw_only=True):
    """A fact to keep. Without `confidence` it has no label, which counts as inferred.

    again: keep it also if this memory served the very text within the last day: somebody said it anew.
    """

    agent_id: AgentId
    text: str
    confidence: str | msgspec.UnsetType = msgspec.UNSET
    again: bool = False


class ExtractInput(msgspec.Struct, frozen=True, kw_only=True):
    """A text to take facts from: a model's JSON array of sentences, or any text for the space's own model to read."""

    agent_id: AgentId
    answer: str


class ReviseInput(msgspec.Struct, frozen=True, kw_only=True):
    """An exact old text, and the new one in its place."""

    agent_id: AgentId
    target: str
    text: str
    confidence: str | msgspec.UnsetType = msgspec.UNSET


class TargetInput(msgspec.Struct, frozen=True, kw_only=True):
    """The exact text of the facts meant."""

    agent_id: AgentId
    target: str


class LinkInput(msgspec.Struct, frozen=True, kw_only=True):
    """Two things to link by name."""

    agent_id: AgentId
    source: str
    target: str


class AliasInput(msgspec.Struct, frozen=True, kw_only=True):
    """A word and what means the same."""

    agent_id: AgentId
    term: str
    equivalents: tuple[str, ...]


class AgentInput(msgspec.Struct, frozen=True, kw_only=True):
    """One namespace."""

    agent_id: AgentId


class FactRecallInput(msgspec.Struct, frozen=True, kw_only=True):
    """A query. `scope` agent: the agent's facts; shared: the shared ones; all: both, merged by rank."""

    agent_id: AgentId
    query: str
    scope: Literal["agent", "shared", "all"] = "agent"
    top_k: int = TOP_K
    min_confidence: str | msgspec.UnsetType = msgspec.UNSET
    confidence_weight: float | msgspec.UnsetType = msgspec.UNSET
    explain: bool = False
    hints: bool = False


class BatchRecallInput(msgspec.Struct, frozen=True, kw_only=True):
    """Several queries under one policy."""

    agent_id: AgentId
    queries: tuple[str, ...]
    top_k: int = TOP_K
    min_confidence: str | msgspec.UnsetType = msgspec.UNSET
    confidence_weight: float | msgspec.UnsetType = msgspec.UNSET


class CheckpointInput(msgspec.Struct, frozen=True, kw_only=True):
    """A session's state to save."""

    agent_id: AgentId
    state: dict[str, Json] | None = None
    messages: tuple[dict[str, Json], ...] = ()
    metadata: dict[str, str] = {}


class ImportInput(msgspec.Struct, frozen=True, kw_only=True):
    """A file's text. Without `agent_id` each entry goes where it says."""

    format: imports.Format
    data: str
    agent_id: str | None = None


class TuningInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all facts of the space keep to; what is absent is as by default."""

    confidence_weight: float = 0.0
    min_relevance: float = 0.0
    signals: Signals = Signals()
    consolidate_from: int = 20
    consolidate_above: int = 20
    learn_prefix: int = 0


class AgentQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Whose."""

    agent_id: AgentId


class FactsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Whose facts, how many, and whether retired ones too."""

    agent_id: AgentId
    limit: Limit = 50
    retired: bool = False


class CheckpointsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Whose checkpoints, and how many; 1 is the latest."""

    agent_id: AgentId
    limit: Limit = 50


class ExportQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which format, and whose facts; without an agent all of the space's."""

    format: exports.Format = "json"
    agent_id: str | None = None
    graph: bool = True


# --- what they give


class FactRecallOutput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was found, best first. With `explain` the receipts stand in `explained` and `facts` is empty.

    degraded: why meaning did not rank, or not everything (`no_embedder`, `embedder_unavailable`, `lagging`...).
    """

    agent_id: str
    query: str
    count: int
    facts: tuple[str, ...]
    explained: tuple[ReceiptView, ...] | None = None
    retrieval: Retrieval | None = None
    feedback: str | None = None
    hints: tuple[str, ...] = ()
    degraded: str | None = None


class BatchRecallOutput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What several queries found, and the merged view."""

    agent_id: str
    count: int
    merged: tuple[str, ...]
    per_query: tuple[Answered, ...]
    retrieval: Retrieval | None = None
    degraded: str | None = None


class RevisedOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The replacement, and the ids of what it replaces."""

    fact: FactView
    retired: tuple[str, ...]


class IdsOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that were changed."""

    ids: tuple[str, ...]


class LinkOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The Proposition that links them."""

    proposition: str


class ConsolidatedOutput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a consolidation did; `ran` is false if another one was running."""

    ran: bool
    decayed: int
    consumed: int
    pruned: int
    learnt: int
    summary: FactView | None = None
    problem: str | None = None
    contradictions: tuple[str, ...] = ()


class ExportOutput(msgspec.Struct, frozen=True, kw_only=True):
    """Files by name."""

    files: dict[str, str]
