"""The one entry point of META: a statement and its surroundings in, an answer out.

What lives here: two tables, from statement and from topic to who answers it, and the topics that need no module of
their own. What must never live here: writing.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, Final

from core.errors import REGISTRY, NoemaError
from core.language.ast_meta import (
    Changes,
    Describe,
    DescribeTopic,
    ExportCapsule,
    History,
    ListStatement,
    ListTopic,
    MetaStatement,
    PreviewImport,
    PreviewKml,
    Search,
    Snapshot,
    Validate,
    Verify,
)
from core.meta import capsules, identity, offers, policies, schema, transactions
from core.meta.artifacts import verify
from core.meta.changes import changes
from core.meta.coordinates import describe_snapshot, snapshot
from core.meta.history import history
from core.meta.legality import preview, validate
from core.meta.operands import coordinates, text_of
from core.meta.primer import primer
from core.meta.search import search
from core.model.elements import Json
from core.transaction.scope import Answer, Scope

Respond = Callable[[Any, Scope], Answer]  # a statement of the table's kind


def answer(statement: MetaStatement, scope: Scope) -> Answer:
    """The answer to a bound META statement.

    Raises:
        NoemaError: what is wrong with it.
        Missing: something must be handed in first (`core.transaction.needs`).
    """
    _check_guest(statement, scope)
    if isinstance(statement, Describe):
        return _DESCRIBE[statement.topic](statement, scope)
    if isinstance(statement, ListStatement):
        return _LIST[statement.topic](statement, scope)
    return _FAMILIES[type(statement)](statement, scope)


_OPEN: Final[frozenset[DescribeTopic]] = frozenset(
    {"PROTOCOL", "CAPABILITIES", "EXECUTION CONTEXT", "ACCESS", "ERROR", "IDEMPOTENCY KEY"}
)
"""Topics that tell of the protocol, and of the caller itself."""


def _check_guest(statement: MetaStatement, scope: Scope) -> None:
    """Whoever holds nothing in a governed space learns of itself, and nothing of the space (KIP §30.4, §67).

    Raises:
        NoemaError: NotAuthorized.
    """
    access = scope.context.principal.access
    open_topic = isinstance(statement, Describe) and statement.topic in _OPEN
    if access is not None and not access.anywhere and not open_topic:
        raise NoemaError("NotAuthorized", "you hold no permission here")


# --- topics without a module of their own

_RETRY: Final[dict[str, str]] = {
    "safe_same_request": "The same request may be sent again.",
    "requires_refresh": "Read the current state, then decide again.",
    "requires_different_input": "Change the request; as it is, it will always fail.",
    "requires_authority": "Somebody with more authority must act first.",
    "requires_new_snapshot": "Start again from a newer state.",
    "requires_reacquire_artifact": "Get the artifact again, then retry.",
    "outcome_lookup_required": "Find out what became of it before doing anything again.",
    "non_retryable": "No retry can succeed.",
}


def _error(statement: Describe, scope: Scope) -> Answer:
    """DESCRIBE ERROR: a code of the registry and how to react to it."""
    code = text_of(statement.subject, "DESCRIBE ERROR")
    spec = REGISTRY.get(code)
    if spec is None:
        near = difflib.get_close_matches(code, list(REGISTRY), n=3)
        raise NoemaError(
            "NotFoundOrNotVisible",
            f"there is no error code {code[:80]!r}",
            hint=f"Did you mean {' or '.join(near)}?" if near else "Codes are names such as VersionConflict.",
            details={"near": near},
        )
    value: dict[str, Json] = {
        "code": code,
        "category": spec.category,
        "retry": {"class": spec.retry, "meaning": _RETRY[spec.retry]},
        "recovery": spec.hint,
        "note": "A hint is advice; it permits nothing.",
    }
    return Answer(value=value, context=coordinates(scope))


# --- the tables

_DESCRIBE: Final[dict[DescribeTopic, Respond]] = {
    "PRIMER": primer,
    "PROTOCOL": offers.protocol,
    "EXECUTION CONTEXT": identity.execution_context,
    "CAPABILITIES": offers.capabilities,
    "SPACE": identity.space,
    "SCHEMA ENVIRONMENT": schema.environment,
    "PACKAGE": schema.package,
    "TYPE": schema.symbol,
    "PREDICATE": schema.symbol,
    "FACET": schema.symbol,
    "STRUCTURAL FIELD": schema.symbol,
    "COMPATIBILITY": schema.compatibility,
    "ERROR": _error,
    "TRANSACTION": transactions.by_id,
    "IDEMPOTENCY KEY": transactions.by_key,
    "SNAPSHOT": describe_snapshot,
    "CAPSULE": capsules.describe,
    "EPISTEMIC POLICY": policies.policy,
    "PROJECTION CAPABILITY": policies.capability,
    "TRUST": policies.trust,
    "ACCESS": offers.access,
}

_LIST: Final[dict[ListTopic, Respond]] = {
    "SPACES": identity.spaces,
    "SCHEMA PACKAGES": schema.packages,
    "TYPES": schema.symbols,
    "PREDICATES": schema.symbols,
    "FACETS": schema.symbols,
    "STRUCTURAL FIELDS": schema.symbols,
    "EPISTEMIC POLICIES": policies.policies,
}

_FAMILIES: Final[dict[type[Any], Respond]] = {
    Search: search,
    History: history,
    Changes: changes,
    Snapshot: snapshot,
    Validate: validate,
    Verify: verify,
    PreviewKml: preview,
    PreviewImport: capsules.preview_import,
    ExportCapsule: capsules.export,
}
