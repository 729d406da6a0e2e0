"""The ten phases that maintenance thinks through with a model: what each is for, and when it comes.

What lives here: the table. What must never live here: what a phase is shown (`core.agents.maintenance.material`) and
told (`core.agents.prompts.maintenance`). A phase for which the host found nothing is not begun and costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from core.protocol.memory_types import MaintenanceScope


class Phase(msgspec.Struct, frozen=True):
    """One phase. classes: the tasks that are its own; activity: what its results are recorded as."""

    name: str
    activity: str
    classes: tuple[str, ...] = ()


PHASES: Final[tuple[Phase, ...]] = (
    Phase("tasks", "reflection", ("review_derived", "review_schema")),
    Phase("consolidation", "semantic_consolidation", ("consolidate",)),
    Phase("skills", "skill_compilation", ("review_skill",)),
    Phase("salience", "mnemonic_metabolism"),
    Phase("identity", "entity_merge", ("resolve_identity",)),
    Phase("contradictions", "conflict_review", ("review_conflict",)),
    Phase("commitments", "commitment_review"),
    Phase("self_model", "self_model_refresh", ("refresh_self_model",)),
    Phase("imports", "reflection", ("inspect_quarantine",)),
    Phase("retention", "reflection", ("review_retention",)),
)
CLASSES: Final = frozenset(name for phase in PHASES for name in phase.classes)

SCOPES: Final[Mapping[MaintenanceScope, tuple[Phase, ...]]] = {
    "daydream": tuple(phase for phase in PHASES if phase.name in {"consolidation", "salience"}),
    "quick": tuple(
        phase
        for phase in PHASES
        if phase.name in {"tasks", "consolidation", "identity", "contradictions", "commitments"}
    ),
    "full": PHASES,
}
"""Contract §6.1: a daydream gives weight and consolidates a little, a quick run sees to what is urgent, and consolidates
only where more episodes wait than the space's policy lets wait."""
