"""The shapes of users, pins, maintenance and the memory's status, as the REST contract names them.

What lives here: structs and their bounds, as in `core.protocol.http_types`. What must never live here: anything
that decides.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from core.model.elements import Json
from core.protocol.http_types import Line, MemoryPolicy, Usage

MaintenanceTrigger = Literal["scheduled", "threshold", "on_demand"]
MaintenanceScope = Literal["full", "quick", "daydream"]

ElementId = Annotated[str, Meta(min_length=1, max_length=128)]
Factor = Annotated[float, Meta(gt=0, le=1)]
Days = Annotated[int, Meta(ge=1, le=365)]
Backlog = Annotated[int, Meta(ge=1, le=10_000)]


class UserInput(msgspec.Struct, frozen=True, kw_only=True):
    """The person of a key: `user` is the caller's own name for them and never changes; `name` is how they are called."""

    user: Line
    name: Line | None = None


class PinInput(msgspec.Struct, frozen=True, kw_only=True):
    """An element to keep out of forgetting, or with `pinned` false to let it fade again."""

    entity: ElementId
    pinned: bool = True


class PinOutput(msgspec.Struct, frozen=True, kw_only=True):
    """How an element now stands; `updated` is false where it stood so already."""

    entity: str
    pinned: bool
    updated: bool


class MaintenanceParameters(msgspec.Struct, frozen=True, kw_only=True):
    """What one run does otherwise than the space's policy says. The aliases are older spellings."""

    stale_event_threshold_days: Days | None = None
    memory_strength_decay_factor: Factor | None = None
    confidence_decay_factor: Factor | None = None  # alias of memory_strength_decay_factor
    unconsolidated_max_backlog: Backlog | None = None
    unsorted_max_backlog: Backlog | None = None  # alias of unconsolidated_max_backlog
    orphan_max_count: Backlog | None = None


class MaintenanceInput(msgspec.Struct, frozen=True, kw_only=True):
    """A run of maintenance. `assessment` and `formation_id` are the host's to fill; what a caller sends is dropped."""

    trigger: MaintenanceTrigger = "on_demand"
    scope: MaintenanceScope = "daydream"
    timestamp: str | int | float | None = None
    parameters: MaintenanceParameters = MaintenanceParameters()
    assessment: Any = None
    formation_id: Any = None


class ShadowInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A policy to try out beside the one in force, on so many questions that were asked lately."""

    policy: MemoryPolicy
    replay_sample: Annotated[int, Meta(ge=1, le=16)] | None = None


ShadowWinner = Literal["baseline", "candidate", "tie", "error"]
ShadowStatus = Literal["working", "completed", "failed"]


class ShadowSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question that was asked again, and whose answer is better; `error` where no judge said so."""

    query: str
    winner: ShadowWinner
    reason: str | None = None


class ShadowReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a policy would have done. Nothing is changed by it: a person puts a policy in force, or does not.

    compared_at: Unix ms; of the start while it works. replayed: questions answered by both. judge: who compared;
    `offline-receipts-1` compares by rules and reads no text.
    """

    status: ShadowStatus
    compared_at: int
    replayed: int
    baseline_wins: int
    candidate_wins: int
    ties: int
    judge_errors: int
    candidate_policy: dict[str, Any]
    usage: Usage
    samples: tuple[ShadowSample, ...]
    judge: str
    failed_reason: str | None = None


class MemoryMetrics(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Counts since the space began, kept beside the log: at worst a few are lost. Absent: it is not counted here."""

    self_test_tested: int | None = None
    self_test_grounded: int | None = None
    reencode_tasks: int | None = None
    corrections: int | None = None
    decayed: int | None = None
    recalls_completed: int | None = None
    entities_recalled: int | None = None
    probe_hits: int | None = None
    probe_misses: int | None = None
    negative_cache_hits: int | None = None
    uncertainty_reports: int | None = None
    uncertainty_sum: float | None = None
    updated_at: int | None = None


class MemoryGraph(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much there is; `predicate_types` is of the last census, at `as_of` (Unix ms)."""

    concepts: int
    propositions: int
    predicate_types: int | None = None
    as_of: int | None = None


class MeaningStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Search by meaning: which model, and whether its vectors cover the memory.

    complete: all but the newest commits are covered. behind: how many of the newest commits are not; absent where
    a question embeds them itself. reason: why the last run of the worker gave up, if it did, or why there is no search.
    """

    model: str
    complete: bool
    behind: int | None = None
    reason: str | None = None


class MemoryStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a space's memory fares. What was never measured is absent, never 0.

    meaning: absent where there is no search by meaning.
    """

    metrics: MemoryMetrics
    graph: MemoryGraph
    groundability: float | None = None
    correction_rate: float | None = None
    probe_hit_rate: float | None = None
    avg_uncertainty: float | None = None
    maintenance_tokens_per_recall: float | None = None
    last_settlement: Json = None
    last_self_test: Json = None
    last_shadow: ShadowReport | None = None
    last_schema_audit: Json = None
    meaning: MeaningStatus | None = None
