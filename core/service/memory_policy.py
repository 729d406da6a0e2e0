"""The memory policy of a space: what is stored, and what holds for one run.

What lives here: reading the policy, and laying a run's parameters over it. What must never live here: the fields
with their defaults and ranges (`core.protocol.http_types.MemoryPolicy`), and storing it: `update_space` replaces
the whole policy, so that an omitted member is its default and never what stood there before (contract §6.7).
"""

from __future__ import annotations

import msgspec

from core.model.log import SpaceMeta
from core.protocol.http_types import MemoryPolicy
from core.protocol.memory_types import MaintenanceParameters

_KNOWN = frozenset(MemoryPolicy.__struct_fields__)


def policy_of(meta: SpaceMeta) -> MemoryPolicy:
    """The policy in force in a space; members that a newer version stored and this one does not know are left out."""
    known = {name: value for name, value in meta.memory_policy.items() if name in _KNOWN}
    return msgspec.convert(known, MemoryPolicy)


def with_parameters(policy: MemoryPolicy, wished: MaintenanceParameters) -> MemoryPolicy:
    """The policy that holds for one run: what its caller says goes before what is stored, and is not stored.

    Where an older spelling and the newer one are both given, the newer one counts.
    """
    given = {
        "stale_event_threshold_days": wished.stale_event_threshold_days,
        "memory_strength_decay_factor": _first(
            wished.memory_strength_decay_factor, wished.confidence_decay_factor
        ),
        "unconsolidated_max_backlog": _first(wished.unconsolidated_max_backlog, wished.unsorted_max_backlog),
        "orphan_max_count": wished.orphan_max_count,
    }
    return msgspec.structs.replace(
        policy, **{name: value for name, value in given.items() if value is not None}
    )


def _first[V](newer: V | None, older: V | None) -> V | None:
    return older if newer is None else newer
