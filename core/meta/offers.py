"""DESCRIBE PROTOCOL, CAPABILITIES and ACCESS: what there is, what this caller may use, and why not (KIP §67).

What lives here: the step from what the engine has (`core.protocol.capabilities`, the one table) to what one caller
may ask for at one endpoint. What must never live here: grants. `available` says that something can be asked for at
all, never that every request will be allowed.
"""

from __future__ import annotations

from typing import Any, Final, get_args

from core.authority import Action, allows, authorize, holds, represents
from core.capsule.format import VERSION
from core.errors import NoemaError
from core.language.ast_meta import Describe
from core.language.limits import MAX_NESTING, MAX_TEXT_BYTES
from core.meta.capsules import CAPABILITIES as CAPSULES
from core.meta.operands import coordinates, options_of, world_of
from core.model.elements import Json
from core.model.ids import KINDS
from core.protocol.canonical import PROFILE
from core.protocol.capabilities import ISOLATION, LIMITS, SUPPORTED, supported
from core.protocol.request import KIP_VERSION, MAX_BODY_BYTES
from core.transaction.scope import Answer, Scope

VERSIONS: Final = {
    "kip": KIP_VERSION,
    "core": KIP_VERSION,
    "kql": KIP_VERSION,
    "kml": KIP_VERSION,
    "meta": KIP_VERSION,
}
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
READS: Final[frozenset[Action]] = frozenset({"read", "read_history", "search", "project", "export"})
"""Actions that leave the space as it is; all others need an endpoint that may write."""

_NEEDS: Final[dict[Action, tuple[str, ...]]] = {
    "project": ("belief_projection", "belief_slot", "projection_ledger", "materialized_projection", "closed_world"),
    "search": ("keyword_search", "semantic_search", "hybrid_search", "historical_search", "search_index_freshness"),
    "create": ("create_concept", "upsert_concept", "create_evidence", "create_activity", "ingestion_context"),
    "ensure": ("ensure_proposition",),
    "assert": ("create_assertion", "assert_sugar"),
    "update": ("facet_mutation", "structural_mutation"),
    "retract": ("assertion_retraction",),
    "supersede": ("assertion_supersession",),
    "correct": ("evidence_correction",),
    "transition": ("activity_transition",),
    "manage_retention": ("set_retention",),
    "archive": ("archive",),
    "tombstone": ("tombstone",),
    "purge": ("purge",),
    "merge_identity": ("non_destructive_merge",),
    "read_history": ("change_stream",),
    "export": ("snapshot_export", "delta_capsule"),
    "import": ("preview_import", "isolate_import", "merge_import", "restore_import"),
}  # fmt: skip
_ACTION_OF: Final = {name: action for action, names in _NEEDS.items() for name in names}
"""Capability -> the permission without which it cannot be used; reading is the rest."""

_WRITING: Final = frozenset({"mutate_block", "forward_local_refs", "dry_run", "client_key", "idempotency"})
"""Capabilities that need no one permission but an endpoint that may write."""


def protocol(_: Describe, scope: Scope) -> Answer:
    """DESCRIBE PROTOCOL: versions and formats; the same for everyone."""
    value: dict[str, Json] = {
        "protocol": "KIP",
        "versions": VERSIONS,
        "compatibility_profiles": [],
        "languages": ["KQL", "KML", "META"],
        "capsule_versions": [VERSION],
        "digest_profiles": [PROFILE],
        "isolation_levels": list(ISOLATION),
        "error_registry": KIP_VERSION,
        "element_kinds": list(KINDS),
        "next": ["DESCRIBE CAPABILITIES", "DESCRIBE PRIMER"],
    }
    return Answer(value=value, context=coordinates(scope))


def capabilities(_: Describe, scope: Scope) -> Answer:
    """DESCRIBE CAPABILITIES: what the engine has, what of it this caller may use here, and the bounds."""
    value: dict[str, Json] = {
        "protocol": VERSIONS,
        "supported": _supported(scope),
        "available": {name: is_available(name, scope) for name in SUPPORTED},
        "limits": limits(scope),
        "search": {
            "modes": ["keyword", "semantic", "hybrid"] if scope.context.semantic else ["keyword"],
            "kinds": list(KINDS),
            "consistency": "transactional",
        },
        "isolation": list(ISOLATION),
        "capsules": CAPSULES,
        "detail": "effective",
        "note": "`available` means that it can be asked for, not that every request is allowed: DESCRIBE ACCESS.",
    }
    return Answer(value=value, context=coordinates(scope))


def _supported(scope: Scope) -> dict[str, bool]:
    return supported(semantic=scope.context.semantic, streaming=scope.context.streaming)


def is_available(name: str, scope: Scope) -> bool:
    """Whether a capability is there and this caller may ask for it at this endpoint."""
    if not _supported(scope).get(name, False):
        return False
    action = _ACTION_OF.get(name)
    allowed = allows(scope.context.principal, action or "read")
    if name in _WRITING or (action is not None and action not in READS):
        return not scope.context.readonly and (allowed or action is None)
    return allowed


def limits(scope: Scope) -> dict[str, int]:
    """The bounds a client may plan with."""
    query = scope.context.limits
    return {
        **LIMITS,
        "max_body_bytes": MAX_BODY_BYTES,
        "max_command_bytes": MAX_TEXT_BYTES,
        "max_nesting": MAX_NESTING,
        "max_query_rows": query.page,
        "max_path_hops": query.path_hops,
        "max_projection_count": query.projections,
        "max_rows_examined": query.rows_examined,
        "max_solutions": query.solutions,
        "max_search_results": 200,
        "cursor_ttl_ms": query.cursor_ttl_ms,
    }


# --- access

_ASKED: Final = frozenset({"operation", "resource", "resource_kind", "actor", "purpose", "space"})


def access(statement: Describe, scope: Scope) -> Answer:
    """DESCRIBE ACCESS: what this caller may do here; WITH an operation, whether that one would be let through.

    A resource that the caller may not discover is answered exactly as one that does not exist (META §250).

    Raises:
        NoemaError: UnsupportedCapability for an unknown option, ConstraintViolation for an unknown operation.
    """
    asked = options_of(statement.options, _ASKED)
    operation = asked.get("operation")
    if operation is None:
        return Answer(
            value={"actions": {name: _decision(name, asked, scope) for name in ACTIONS}},
            context=coordinates(scope),
        )
    action = next((name for name in ACTIONS if name == operation), None)
    if action is None:
        raise NoemaError(
            "ConstraintViolation",
            f"{str(operation)[:40]!r} is not an operation that access is decided for",
            hint=f"Operations: {', '.join(ACTIONS)}.",
            details={"supported": list(ACTIONS)},
        )
    value = {"operation": action, **_decision(action, asked, scope), "commit_guaranteed": False}
    return Answer(value=value, context=coordinates(scope))


_WHY: Final[dict[str, tuple[str, str]]] = {
    "RetractionNotAuthorized": ("denied", "not_the_asserting_actor"),
    "ActorBindingRequired": ("requires_actor_binding", "principal_is_not_bound_to_actor"),
    "RequiresApproval": ("requires_approval", "must_be_approved_by_others"),
    "RequiresStrongerAuthentication": ("denied", "requires_stronger_authentication"),
}
"""Why a deed is not let through, of the codes that tell more than that it is not permitted."""


def _decision(action: Action, asked: dict[str, Any], scope: Scope) -> dict[str, Json]:
    if asked.get("space") not in {None, scope.state.meta.space_id}:
        return {"decision": "denied", "reason": "not_found_or_not_visible"}
    if action not in READS and scope.context.readonly:
        return {"decision": "denied", "reason": "readonly_endpoint"}
    principal = scope.context.principal
    element = None
    if "resource" in asked:
        resource = asked["resource"]
        name = resource.get("id") if isinstance(resource, dict) else resource
        element = world_of(scope).get(str(name)) if holds(principal, "discover") else None
        if element is None:
            return {"decision": "denied", "reason": "not_found_or_not_visible"}
    try:
        authorize(principal, action, element)
    except NoemaError as error:
        decision, reason = _WHY.get(error.code, ("denied", "not_permitted"))
        return {"decision": decision, "reason": reason}
    actor = asked.get("actor")
    if isinstance(actor, str) and not represents(principal, actor):
        return {"decision": "requires_actor_binding", "reason": "principal_is_not_bound_to_actor"}
    return {"decision": "allowed"}
