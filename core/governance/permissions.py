"""The vocabulary of permissions, and the roles that are shorthand for several (KIP §29, Governance §26, §52-89).

What lives here: names and what each brings with it. What must never live here: who holds them.
"""

from __future__ import annotations

from typing import Final

READING: Final = (
    "discover",
    "read",
    "search",
    "project",
    "read_history",
    "read_raw_origin",
    "export",
    "share",
)
WRITING: Final = (
    "create", "update", "derive", "assert", "record_attributed_assertion", "assert_as_actor", "retract_own",
    "supersede_own", "merge_identity", "bind_canonical_identity", "maintain", "manage_retention", "archive",
    "tombstone", "purge", "legal_hold", "import",
)  # fmt: skip
CONTROL: Final = (
    "manage_membership", "manage_grants", "manage_delegation", "manage_policy", "manage_trust", "manage_schema",
    "manage_actor_binding", "elevate_authority", "classify", "declassify", "quarantine", "approve_high_risk",
    "read_audit",
)  # fmt: skip
"""Permissions of the control plane. No KML clause and no model tool asks for one; the host's API does."""

PROJECT_UNSEEN: Final = "project_unseen"
"""Let claims and grounds that the holder may not discover count in what it asks to be projected (KIP §29.4)."""

ALL: Final = frozenset((*READING, *WRITING, *CONTROL, PROJECT_UNSEEN))

BRINGS: Final[dict[str, frozenset[str]]] = {
    name: frozenset({"discover"}) for name in ("read", "search", "project")
}
"""What an allowed permission allows too: nothing can be read of what may not be known. A deny brings nothing."""

WITHOUT: Final[dict[str, frozenset[str]]] = {"discover": ALL - {PROJECT_UNSEEN}}
"""What a denied permission takes along: on what may not be known, nothing can be done."""

ROLES: Final[dict[str, tuple[str, ...]]] = {
    "reader": ("discover", "read", "search", "project"),
    "writer": ("create", "update", "derive", "record_attributed_assertion"),
    "asserter": ("create", "record_attributed_assertion", "assert_as_actor", "retract_own", "supersede_own"),
    "maintainer": ("maintain", "derive", "manage_retention", "archive"),
    "auditor": ("read_audit", "read_history", "read_raw_origin"),
    "importer": ("import",),
    "exporter": ("export",),
    "steward": tuple(sorted(set(CONTROL) - {"approve_high_risk"})),
    "owner": tuple(sorted(ALL - {PROJECT_UNSEEN})),
}
"""Roles that every space has; its own may be added and may not take these names."""
