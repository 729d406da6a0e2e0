"""What this engine can do, as one table that both negotiation and introspection read (KIP §67, §71 `requires`).

What lives here: the names and their truth. What must never live here: what one caller may do with them
(`DESCRIBE CAPABILITIES` tells that from the principal) and anything not built yet set to true.
"""

from __future__ import annotations

from typing import Any, Final

from core.errors import NoemaError
from core.protocol.request import MAX_OPERATIONS

ISOLATION: Final = ("serializable", "snapshot")
"""Levels that a request may ask for; every transaction is serializable, which is at least either."""

SUPPORTED: Final[dict[str, bool]] = {
    # KQL (META paper §142)
    "assertion_patterns": True, "evidence_patterns": True, "activity_patterns": True,
    "structural_patterns": True, "belief_projection": True, "belief_slot": True, "historical_as_of": True,
    "historical_by_time": True, "raw_path_operators": True, "projection_ledger": True,
    "grouped_aggregation": True, "materialized_projection": True, "closed_world": True,
    # KML (§143)
    "mutate_block": True, "forward_local_refs": True, "create_concept": True, "upsert_concept": True,
    "ensure_proposition": True, "create_evidence": True, "create_assertion": True, "create_activity": True,
    "assert_sugar": True, "facet_mutation": True, "structural_mutation": True, "assertion_retraction": True,
    "assertion_supersession": True, "evidence_correction": True, "activity_transition": True, "archive": True,
    "tombstone": True, "purge": True, "set_retention": True, "non_destructive_merge": True, "dry_run": True,
    "client_key": True,
    # transactions and runtime (§144)
    "atomic_transactions": True, "serializable_transactions": True, "serializable_isolation": True,
    "read_snapshots": True, "historical_reads": True, "idempotency": True, "change_stream": True,
    "transaction_lookup": True, "ingestion_context": True, "structured_ast": True, "readonly_endpoint": True,
    "strict_json": True, "streaming": False, "artifact_handles": False, "multi_space_atomic": False,
    "signed_receipts": True,
    # schema (§146)
    "schema_packages": True, "multi_version_schema": True, "historical_schema_environment": True,
    "package_signature_verification": True,
    # search (§147)
    "keyword_search": True, "semantic_search": False, "hybrid_search": False, "historical_search": True,
    "search_index_freshness": True,
    # capsules (§145)
    "snapshot_export": True, "delta_capsule": True, "signed_capsule": True, "preview_import": True,
    "isolate_import": True, "merge_import": True, "restore_import": True,
}  # fmt: skip
"""Capability name -> whether the engine has it."""

LIMITS: Final[dict[str, int]] = {
    "max_transaction_operations": MAX_OPERATIONS,
    "max_command_bytes": 262_144,
    "max_element_bytes": 262_144,
    "idempotency_retention_days": 7,
}
"""Bounds a client may plan with."""


MEANING: Final = frozenset({"semantic_search", "hybrid_search"})
"""What a deployment has that has an embedder, and no other."""


STREAMING: Final = frozenset({"streaming"})
"""What a transport has that can send an answer in frames, and no other."""


def supported(*, semantic: bool = False, streaming: bool = False) -> dict[str, bool]:
    """What this deployment can do: the table, search by meaning with an embedder, frames where they can be sent."""
    more = (MEANING if semantic else frozenset()) | (STREAMING if streaming else frozenset())
    return {**SUPPORTED, **dict.fromkeys(more, True)} if more else SUPPORTED


def check_requirements(requires: dict[str, Any], *, semantic: bool = False, streaming: bool = False) -> None:
    """Refuse a request that requires what is not there (KIP §71, Protocol Runtime §294-297).

    Raises:
        NoemaError: UnsupportedCapability, naming everything that is missing.
    """
    there = supported(semantic=semantic, streaming=streaming)
    missing = [name for name, wanted in requires.items() if not _satisfied(name, wanted, there)]
    if missing:
        raise NoemaError(
            "UnsupportedCapability",
            f"this service does not have: {', '.join(sorted(missing))}",
            details={"missing": sorted(missing)},
        )


def _satisfied(name: str, wanted: Any, there: dict[str, bool]) -> bool:  # a JSON value
    if wanted is False or wanted is None:
        return True
    if name in LIMITS and isinstance(wanted, int) and not isinstance(wanted, bool):
        return wanted <= LIMITS[name]
    return wanted is True and there.get(name, False)
