"""The status of a memory: what was counted while it was used and maintained, without looking at the memory.

What lives here: the use case behind `memory_status`. What must never live here: a scan. Five rows and HEAD are read,
whatever the space holds; what nobody counts is left out of the answer, and so is a rate of nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from core.model.elements import Json
from core.ports import Row, Table
from core.protocol.memory_types import MeaningStatus, MemoryGraph, MemoryMetrics, MemoryStatus, ShadowReport
from core.service.faults import reading
from core.service.ledger import usage_of
from core.service.maintenance_marks import Marks
from core.service.reading_counts import ReadingCounts, counts_of
from core.service.shadow_row import last_report
from core.service.spaces import Spaces
from core.service.standings import counts_for
from core.service.values import Caller
from core.service.vector_upkeep import VectorUpkeep
from core.storage.layout import ledger_total_sk, space_pk


class MemoryStatuses:
    """Reads how memories fare. Safe to share between threads."""

    def __init__(
        self, table: Table, spaces: Spaces, vectors: Callable[[], VectorUpkeep] | None = None
    ) -> None:
        self._table = table
        self._spaces = spaces
        self._marks = Marks(table)
        self._vectors = vectors

    def status(self, space_id: str, caller: Caller | None = None) -> MemoryStatus:
        """How the memory of a space fares; of a governed one who sees a part is told how much that is, and no more.

        Recalls and probes of anonymous readers of a public space are not counted, and a probe that a kept miss
        answered is neither a hit nor a miss.

        Raises:
            NoemaError: `NotFoundOrNotVisible`, `ServiceUnavailable`.
        """
        with reading():
            head, state = self._spaces.read_current(space_id)
            seen = counts_for(caller, state, self._spaces.clock.now())
            if seen is not None:
                part = MemoryGraph(concepts=seen.concept, propositions=seen.proposition)
                return MemoryStatus(metrics=MemoryMetrics(), graph=part)
            marks = self._marks.read(space_id)
            shadow = last_report(self._table, space_id)
            read = counts_of(self._table, space_id, head.instance)
            spent = usage_of(self._table.get(space_pk(space_id), ledger_total_sk()) or {})["maintenance"]
        recalls = read.recalls
        maintained = "updated" in marks
        metrics = MemoryMetrics(
            recalls_completed=recalls,
            **_measured(read),
            self_test_tested=_count(marks, "tested"),
            self_test_grounded=_count(marks, "grounded"),
            reencode_tasks=_count(marks, "reencode"),
            corrections=_count(marks, "corrections"),
            decayed=_count(marks, "decayed"),
            updated_at=_count(marks, "updated"),
        )
        audit = _json(marks, "audit")
        predicates = audit["predicates"] if isinstance(audit, dict) else None
        return MemoryStatus(
            metrics=metrics,
            graph=MemoryGraph(
                concepts=state.counts.concept,
                propositions=state.counts.proposition,
                predicate_types=None if predicates is None else len(predicates),
                as_of=audit["as_of"] if isinstance(audit, dict) else None,
            ),
            groundability=_rate(metrics.self_test_grounded, metrics.self_test_tested),
            probe_hit_rate=_rate(read.hits, read.hits + read.misses),
            avg_uncertainty=read.uncertainty / read.reports if read.reports else None,
            correction_rate=_rate(metrics.corrections, recalls) if maintained else None,
            maintenance_tokens_per_recall=_rate(spent.input_tokens + spent.output_tokens, recalls),
            last_settlement=_json(marks, "settlement"),
            last_self_test=_json(marks, "self_test"),
            last_shadow=_told(shadow, caller),
            last_schema_audit=audit,
            meaning=self._meaning(space_id, head.ver),
        )

    def _meaning(self, space_id: str, ver: int) -> MeaningStatus | None:
        """How far the vectors have come, by one more row."""
        found = None if self._vectors is None else self._vectors().status(space_id)
        if found is None or found.model is None:
            return None
        behind = None if found.ver is None else max(0, ver - found.ver)
        return MeaningStatus(model=found.model, complete=found.complete, behind=behind, reason=found.failed)


def _told(shadow: ShadowReport | None, caller: Caller | None) -> ShadowReport | None:
    """The last evaluation; questions that others asked are not for a guest of a public space."""
    guest = caller is None or caller.kind == "anonymous"
    return shadow if shadow is None or not guest else msgspec.structs.replace(shadow, samples=())


def _measured(read: ReadingCounts) -> dict[str, Any]:  # members of MemoryMetrics
    """What was counted of reading; nothing before anybody read."""
    counts: dict[str, Any] = {
        "entities_recalled": read.entities,
        "probe_hits": read.hits,
        "probe_misses": read.misses,
        "negative_cache_hits": read.cached,
        "uncertainty_reports": read.reports,
        "uncertainty_sum": read.uncertainty,
    }
    return counts if read.updated else {}


def _count(row: Row, name: str) -> int | None:
    value = row.get(name)
    return value if isinstance(value, int) else None


def _rate(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


def _json(row: Row, name: str) -> Json:
    value = row.get(name)
    return msgspec.json.decode(value) if isinstance(value, str) else None
