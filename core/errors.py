"""The error registry: every failure a caller can meet, as one table.

What lives here: `NoemaError`, the one exception that crosses a public boundary, and the table that gives
each code its category, its retry class and its default hint (KIP §86-87, plus the few codes a service needs
that a protocol does not). What must never live here: HTTP statuses or JSON-RPC numbers (those are a
transport's business, see `functions/failures.py`) and faults of the store (see `core/ports.py`).

An error exists so that its reader can react. The reader is often a language model, so `message` says what
was wrong in the caller's own terms and `hint` says what to do next. Any other exception is a bug.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

Category = Literal[
    "syntax", "protocol", "schema", "data", "epistemic", "governance",
    "transaction", "history", "search", "artifact", "resource", "system", "transport",
]  # fmt: skip

Retry = Literal[
    "safe_same_request", "requires_refresh", "requires_different_input", "requires_authority",
    "requires_new_snapshot", "requires_reacquire_artifact", "outcome_lookup_required", "non_retryable",
]  # fmt: skip


class ErrorSpec(msgspec.Struct, frozen=True):
    """One row of the registry: what kind of failure a code is and how its reader should react."""

    category: Category
    retry: Retry
    hint: str


def _rows(category: Category, rows: dict[str, tuple[Retry, str]]) -> dict[str, ErrorSpec]:
    return {code: ErrorSpec(category, retry, hint) for code, (retry, hint) in rows.items()}


_INPUT: Final = "requires_different_input"
_REFRESH: Final = "requires_refresh"
_AUTHORITY: Final = "requires_authority"
_SNAPSHOT: Final = "requires_new_snapshot"
_REACQUIRE: Final = "requires_reacquire_artifact"

REGISTRY: Final[dict[str, ErrorSpec]] = {
    **_rows("syntax", {  # KIP §87.1
        "InvalidSyntax": (_INPUT, "Correct the command at the position given and send it again."),
        "InvalidIdentifier": (_INPUT, "Use an identifier that begins with a letter or underscore."),
    }),
    **_rows("protocol", {  # KIP §87.1
        "InvalidRequestEnvelope": (_INPUT, "Correct the named member of the request and send it again."),
        "UnsupportedProtocolVersion": ("non_retryable", 'Send kip: "2.0".'),
        "UnsupportedCapability": ("non_retryable", "Ask DESCRIBE CAPABILITIES what this service offers."),
        "UnsupportedIsolation": ("non_retryable", "Ask for an isolation level that CAPABILITIES lists."),
        "LanguageMismatch": (_INPUT, "Label the operation with the language its command is written in."),
        "ReadonlyViolation": (_INPUT, "Send a command that writes to the endpoint that may write."),
        "DuplicateLocalHandle": (_INPUT, "Give each clause of the block its own ?handle."),
        "DuplicateMutationTarget": (_INPUT, "Write each element once in a block, or agree on its value."),
    }),
    **_rows("schema", {  # KIP §87.2
        "SchemaSymbolNotFound": (_INPUT, "LIST TYPES or LIST PREDICATES shows the names in force."),
        "SchemaSymbolAmbiguous": (_INPUT, "Use the exact kip:// reference instead of the local name."),
        "SchemaFieldNotFound": (_INPUT, "DESCRIBE TYPE or DESCRIBE FACET shows the fields in force."),
        "SchemaPackageUnavailable": (_REFRESH, "LIST SCHEMA PACKAGES shows what is installed."),
        "SchemaEnvironmentChanged": (_REFRESH, "Read DESCRIBE SCHEMA ENVIRONMENT and plan again."),
        "HistoricalSchemaUnavailable": ("non_retryable", "Read a later point in history."),
        "TypeMismatch": (_INPUT, "Send a value of the type the message names."),
        "ConstraintViolation": (_INPUT, "Send a value that keeps the constraint the message names."),
    }),
    **_rows("data", {  # KIP §87.3
        "NotFoundOrNotVisible": (_INPUT, "Check the id; SEARCH or a list finds what you may see."),
        "ReferenceError": (_INPUT, "Bind the handle or refer to an element that exists."),
        "StructuralReferenceInvalid": (_INPUT, "DESCRIBE STRUCTURAL FIELD shows what may be linked."),
        "IdentitySelectorRequired": (_INPUT, "Select by id, or by type and key."),
        "NameIdentityForbidden": (_INPUT, "A name is not an identity: use an id, or type and key."),
        "IdentityConflict": (_INPUT, "Choose another identity, or read the one that holds it."),
        "ClientKeyConflict": (_INPUT, "The key names another content: use a new client key."),
        "IdentityMergeConflict": (_INPUT, "Read both Concepts; one is already merged elsewhere."),
    }),
    **_rows("epistemic", {  # KIP §87.4
        "ImmutableField": (_INPUT, "Record a new element instead of rewriting this one."),
        "EpistemicRevisionRequired": (_INPUT, "ASSERT the new claim SUPERSEDING the old one."),
        "EvidenceCorrectionRequired": (_INPUT, "CORRECT EVIDENCE with a new Evidence element."),
        "InvalidLifecycleTransition": (_INPUT, "Read the current state; only some states may follow it."),
        "RetractionNotAuthorized": (_AUTHORITY, "Only who asserted, or a representative, may retract."),
        "SupersessionMismatch": (_REFRESH, "Supersede a claim of the same actor and lineage."),
        "EvidenceCorrectionConflict": (_REFRESH, "Read the Evidence; it was corrected meanwhile."),
        "ActivityTerminal": (_INPUT, "The Activity has ended: record another one."),
        "ProjectionTargetUnbound": (_INPUT, "Bind the subject and predicate before BELIEF."),
        "ProjectionTargetUnbounded": (_INPUT, "Bound the BELIEF by subject and predicate."),
        "ProjectionNotAuthorized": (_AUTHORITY, "Ask the space's owner for permission to project."),
        "ProjectionPolicyUnavailable": (_REFRESH, "LIST EPISTEMIC POLICIES shows what exists."),
    }),
    **_rows("governance", {  # KIP §87.5
        "Unauthenticated": (_AUTHORITY, "Send a valid token: Authorization: Bearer <token>."),
        "NotAuthorized": (_AUTHORITY, "Use a token whose scope allows this, or ask the space's owner."),
        "RequiresApproval": (_AUTHORITY, "Ask an approver named by the policy."),
        "RequiresStrongerAuthentication": (_AUTHORITY, "Authenticate again with a stronger method."),
        "ActorBindingRequired": (_AUTHORITY, "Ask the owner to bind your principal to the actor."),
        "ProtectedSystemField": ("non_retryable", "The engine maintains this field; leave it out."),
        "ProtectedGovernanceField": ("non_retryable", "Use the host's governance API for this field."),
        "ProtectedSchemaState": ("non_retryable", "Use the host's schema API for this change."),
        "LegalHoldConflict": (_AUTHORITY, "A legal hold keeps this element; ask who placed it."),
        "PurgeDenied": (_AUTHORITY, "Remove what refers to the element, or choose a reference policy."),
    }),
    **_rows("transaction", {  # KIP §87.6
        "VersionConflict": (_REFRESH, "Read the element again and decide on its new version."),
        "PreconditionFailed": (_REFRESH, "Read the current state; the guard did not hold."),
        "SerializationConflict": ("safe_same_request", "Send the same request again."),
        "IdempotencyConflict": (_INPUT, "The key was used for another request: use a new key."),
        "TransactionUnknown": ("outcome_lookup_required", "Check the transaction id or key."),
        "OutcomeUnknown": ("outcome_lookup_required", "Send it again with the same idempotency key."),
        "TransactionTooLarge": (_INPUT, "Split the request into smaller ones."),
    }),
    **_rows("history", {  # KIP §87.7
        "HistoricalSnapshotUnavailable": (_SNAPSHOT, "Read a later point; `floor` is the oldest kept."),
        "CursorMismatch": (_INPUT, "A cursor continues only the request that gave it."),
        "CursorTypeMismatch": (_INPUT, "Use the cursor with the kind of request that gave it."),
        "CursorExpired": (_SNAPSHOT, "Start again from the first page."),
        "CursorInvalidated": (_SNAPSHOT, "Start again from the first page."),
        "ChangeCursorExpired": (_SNAPSHOT, "Take a new SNAPSHOT and follow CHANGES from there."),
        "ChangeCursorInvalid": (_INPUT, "Send the change cursor exactly as it was given."),
    }),
    **_rows("search", {  # KIP §87.8
        "SearchModeUnsupported": (_INPUT, "Use a mode that CAPABILITIES lists."),
        "SearchIndexUnavailable": ("safe_same_request", "Try again shortly."),
        "HistoricalSearchUnavailable": ("non_retryable", "Search the present, or read history by id."),
    }),
    **_rows("artifact", {  # KIP §87.9
        "ArtifactUnavailable": (_REACQUIRE, "Upload the artifact again."),
        "ArtifactTooLarge": (_INPUT, "Send a smaller artifact."),
        "ArtifactParseError": (_INPUT, "Send the artifact in the format its kind requires."),
        "DigestMismatch": (_REACQUIRE, "The bytes are not what the digest names: fetch them again."),
        "ProofInvalid": ("non_retryable", "The signature does not verify: do not use the artifact."),
        "SignerUnknown": ("non_retryable", "Ask the owner to register the signer."),
        "BlobUnavailable": (_REACQUIRE, "Supply the blob again."),
        "CapsuleValidationFailed": (_INPUT, "Correct the Capsule as the details say."),
        "ImportPreviewConflict": (_REFRESH, "Preview the import again; the space has moved."),
    }),
    **_rows("resource", {  # KIP §87.10
        "ResourceExhausted": (_INPUT, "Ask for less, or in smaller parts."),
        "ResultLimitExceeded": (_INPUT, "Lower LIMIT or narrow the question, and page."),
        "ExecutionTimeout": ("safe_same_request", "Try again, or narrow the question."),
        "RateLimited": ("safe_same_request", "Wait as long as Retry-After says, then send it again."),
    }),
    **_rows("system", {  # KIP §87.10
        "InternalError": ("safe_same_request", "Report the request id; trying again may help."),
    }),
    # The service's own codes: things a protocol has no name for.
    **_rows("transport", {
        "InvalidInput": (_INPUT, "Correct what the message names and send it again."),
        "RouteNotFound": (_INPUT, "GET /SKILL.md and GET /openapi.json list the routes."),
        "MethodNotAllowed": (_INPUT, "Use the method that /openapi.json gives for this path."),
        "PayloadTooLarge": (_INPUT, "Send it in smaller parts."),
        "NotImplementedYet": ("non_retryable", "This deployment does not have the capability."),
        "ServiceUnavailable": ("safe_same_request", "Wait as long as Retry-After says, then try again."),
    }),
    **_rows("resource", {
        "SpaceTierExceeded": (_AUTHORITY, "Ask a manager to raise the space's tier."),
        "Busy": ("safe_same_request", "Another run holds this space; try again when it has ended."),
    }),
}  # fmt: skip


TEXT_LIMIT: Final = 1_000
"""Characters of a message, and of each text in an error's details: a reader may be a model that pays for them."""


def _bounded(value: Any) -> Any:  # JSON values
    """The value, its long texts without their middles (what a message ends with often says where)."""
    match value:
        case str() if len(value) > TEXT_LIMIT:
            half = TEXT_LIMIT // 2 - 20
            return f"{value[:half]} … {len(value) - 2 * half:,} characters … {value[-half:]}"
        case list():
            return [_bounded(each) for each in value]
        case dict():
            return {name: _bounded(each) for name, each in value.items()}
    return value


class NoemaError(Exception):
    """A failure with a code from `REGISTRY`, told in terms its reader can act on.

    Args:
        code: a key of `REGISTRY`.
        message: what was wrong, in plain words; never a user's memory text, never a secret. What a caller sent
            may be quoted at any length: the middle of a text beyond `TEXT_LIMIT` characters is left out.
        hint: what to do next; the registry's hint for the code when omitted.
        details: structured facts (position, element, expected, actual), JSON values only; bounded likewise.
        retry_after_ms: how long to wait before `safe_same_request` is worth trying.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        details: dict[str, Any] | None = None,  # JSON values of many shapes
        retry_after_ms: int | None = None,
    ) -> None:
        self.spec = REGISTRY[code]
        self.code = code
        self.message = _bounded(message)
        self.hint = hint or self.spec.hint
        self.details = {name: _bounded(value) for name, value in (details or {}).items()}
        self.retry_after_ms = retry_after_ms
        super().__init__(f"{code}: {self.message}")

    def to_wire(self) -> dict[str, Any]:
        """The KIP error object: code, category, message, hint, retry and details (KIP §86)."""
        retry: dict[str, Any] = {"class": self.spec.retry}
        if self.retry_after_ms is not None:
            retry["after_ms"] = self.retry_after_ms
        wire: dict[str, Any] = {
            "code": self.code,
            "category": self.spec.category,
            "message": self.message,
            "hint": self.hint,
            "retry": retry,
        }
        if self.details:
            wire["details"] = self.details
        return wire
