"""The values of the fact memory: a fact, what a caller may ask of a recall, and what comes back.

What lives here: shapes and constants. What must never live here: arithmetic (`ranking`) and how a fact stands in
the nexus (`records`). The names are GrayMatter's v0.20, because its users know them.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from core.model.elements import Json
from core.model.instants import Instant

SHARED: Final = "__shared__"
"""The namespace that all agents of a space share."""

RETIRED_BY_AGENT: Final = "agent"
"""What `superseded_by` says of a fact that nothing replaces."""

LABELS: Final = ("verified", "inferred", "unverified")
POLICY: Final = "confidence-v1"
K: Final = 60  # of reciprocal rank fusion, for every signal and for merging namespaces
TOP_K: Final = 8
MAX_TOP_K: Final = 1000
MAX_WEIGHT: Final = 0.5
MAX_QUERIES: Final = 32
MAX_TEXT_BYTES: Final = 200_000  # of a fact, in UTF-8; an element may take 256 KiB
MAX_QUERY_CHARS: Final = 65_535
MAX_AGENT_CHARS: Final = 1024
MAX_EQUIVALENTS: Final = 100

FactKind = Literal["fact", "alias"]
Kg = Literal["suppressed_min_confidence", "hints_without_confidence_receipts"]


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One fact.

    id: a ULID, ordered by creation; element: the id of the Concept it stands as. agent_id: its namespace, byte
    for byte. superseded_by: empty while it is live; else the id of its replacement, or `agent`. confidence: the
    writer's label, empty if there was none. weight: 0 to 1, for decay and pruning only; ranking never reads it.
    """

    id: str
    element: str
    agent_id: str
    text: str
    created_at: Instant
    accessed_at: Instant
    access_count: int = 0
    weight: float = 1.0
    superseded_by: str = ""
    confidence: str = ""
    pinned_at: Instant | None = None
    kind: FactKind = "fact"
    alias_source: str = ""
    decays_from: Instant | None = None

    @property
    def live(self) -> bool:
        """Whether it is neither replaced nor retired."""
        return not self.superseded_by

    @property
    def pinned(self) -> bool:
        """Whether it is kept from decay and pruning."""
        return self.pinned_at is not None


class Signals(msgspec.Struct, frozen=True):
    """How much each ranking counts in the fusion; 0 switches it off."""

    vector: float = 1.0
    keyword: float = 1.0
    recency: float = 0.5


class RecallOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller may ask of one recall.

    top_k: how many facts; 0 and less is the default, 8. min_confidence: a label, below which facts are dropped
    before anything is counted; None is no filter. confidence_weight: 0 to 0.5; None is the space's default.
    explain: whether receipts are wanted. hints: whether neighbours in the knowledge graph are wanted.
    """

    top_k: int = TOP_K
    min_confidence: str | None = None
    confidence_weight: float | None = None
    explain: bool = False
    hints: bool = False

    @property
    def count(self) -> int:
        """How many facts are wanted."""
        return self.top_k if self.top_k > 0 else TOP_K


class Ranks(msgspec.Struct, frozen=True):
    """Where each signal ranked a fact, from 1; 0: it did not. `fused_score` follows from these and `k`."""

    vector_rank: int
    keyword_rank: int
    recency_rank: int
    fused_score: float
    k: int = K


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Where a recalled text comes from. `supersedes`: ids of all facts it replaces, through any number of steps."""

    fact_id: str
    written_at: Instant
    superseded_by: str = ""
    confidence: str = ""
    pinned: bool = False
    supersedes: tuple[str, ...] = ()


class Preference(msgspec.Struct, frozen=True, kw_only=True):
    """How confidence moved a score: final = base x factor."""

    base_score: float
    final_score: float
    factor: float
    effective_confidence: str
    confidence_weight: float
    policy: str = POLICY


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """Why a fact was recalled. `ranking` is there where confidence was asked for or counts by default."""

    text: str
    weight: float
    age_days: float
    ranks: Ranks
    provenance: Provenance
    kg_links: tuple[str, ...] = ()
    ranking: Preference | None = None


class Retrieval(msgspec.Struct, frozen=True, kw_only=True):
    """The policy a recall kept to; told where any option was explicit or confidence counts by default."""

    min_confidence: str | None
    confidence_weight: float
    kg: Kg
    policy: str = POLICY


class Recalled(msgspec.Struct, frozen=True, kw_only=True):
    """What a recall found, best first. `texts` and `facts` go together; `receipts` only where asked for.

    Of a recall over two namespaces `facts` are the ones whose texts are listed. hints: labels from the knowledge
    graph, never facts. degraded: why the vector signal is absent or does not cover all facts (`core.search.dense`);
    None if it is whole.
    """

    texts: tuple[str, ...]
    facts: tuple[Fact, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    retrieval: Retrieval | None = None
    feedback: str | None = None
    hints: tuple[str, ...] = ()
    degraded: str | None = None


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What one query of a batch found; `error` instead of facts where it failed."""

    query: str
    facts: tuple[str, ...] = ()
    error: str | None = None


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What several queries found, and their one merged view."""

    merged: tuple[str, ...]
    per_query: tuple[Answered, ...]
    retrieval: Retrieval | None = None
    degraded: str | None = None


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """What a namespace holds: every stored fact and alias counts, retired ones included; and how often it was recalled."""

    agent_id: str
    fact_count: int
    oldest_at: Instant | None
    newest_at: Instant | None
    avg_weight: float
    live: int = 0
    pinned: int = 0
    aliases: int = 0
    consolidations: int = 0
    facts_consumed: int = 0
    recalls: int = 0


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A session's state, saved to go on from. Never changed; the latest one is resumed."""

    id: str
    agent_id: str
    created_at: Instant
    state: dict[str, Json] | None = None
    messages: tuple[dict[str, Json], ...] = ()
    metadata: dict[str, str] = {}


class Revised(msgspec.Struct, frozen=True, kw_only=True):
    """A replacement, and the ids of what it replaces."""

    fact: Fact
    retired: tuple[str, ...]


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an import did: facts added, facts that were there, links, and entries passed over with why."""

    added: int
    present: int
    linked: int
    passed_over: int
    notes: tuple[str, ...] = ()


class Consolidated(msgspec.Struct, frozen=True, kw_only=True):
    """What a consolidation did; `ran` is False if another one was running, and then nothing was done.

    decayed: facts whose weight fell. consumed: facts a summary replaced. pruned: facts erased. learnt: aliases
    taken from use. problem: why there is no summary although one was wanted. contradictions: facts that do not agree,
    as the model saw it; nothing was decided about them.
    """

    ran: bool
    decayed: int = 0
    consumed: int = 0
    pruned: int = 0
    learnt: int = 0
    summary: Fact | None = None
    problem: str | None = None
    contradictions: tuple[str, ...] = ()
