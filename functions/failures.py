"""Errors as HTTP answers: one table from a code to a status, one shape of body, whatever `Accept` says.

A body is `{"error": {"message", "data": {"code", "hint", "retry", "details"}}}` (contract §1.3). A 401 never
says why; an exception that is not a `NoemaError` is a bug, told to the caller by its request id alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from core.errors import REGISTRY, NoemaError
from functions.http import HttpResponse

CHALLENGE: Final = 'Bearer realm="noema"'
DEFAULT_RETRY_MS: Final = 2_000

# By code where one code differs from its category, by category for the rest.
_BY_CODE: Final[dict[str, int]] = {
    "Unauthenticated": 401,
    "NotFoundOrNotVisible": 404,
    "RouteNotFound": 404,
    "MethodNotAllowed": 405,
    "IdentityConflict": 409,
    "ClientKeyConflict": 409,
    "IdentityMergeConflict": 409,
    "EvidenceCorrectionConflict": 409,
    "SupersessionMismatch": 409,
    "LegalHoldConflict": 409,
    "ImportPreviewConflict": 409,
    "SchemaEnvironmentChanged": 409,
    "Busy": 409,
    "ChangeCursorExpired": 410,
    "CursorExpired": 410,
    "HistoricalSnapshotUnavailable": 410,
    "HistoricalSchemaUnavailable": 410,
    "PayloadTooLarge": 413,
    "TransactionTooLarge": 413,
    "ArtifactTooLarge": 413,
    "RateLimited": 429,
    "InternalError": 500,
    "UnsupportedCapability": 501,
    "NotImplementedYet": 501,
    "ServiceUnavailable": 503,
    "SearchIndexUnavailable": 503,
    "OutcomeUnknown": 503,
    "ExecutionTimeout": 504,
    "TransactionUnknown": 404,
    "SpaceTierExceeded": 400,  # contract §1.5: a 400 whose text gives both numbers
    "InvalidLifecycleTransition": 409,
}
_BY_CATEGORY: Final[dict[str, int]] = {
    "syntax": 400,
    "protocol": 400,
    "schema": 400,
    "data": 400,
    "epistemic": 400,
    "governance": 403,
    "transaction": 409,
    "history": 400,
    "search": 400,
    "artifact": 400,
    "resource": 400,
    "system": 500,
    "transport": 400,
}

STATUS: Final[dict[str, int]] = {
    code: _BY_CODE.get(code, _BY_CATEGORY[spec.category]) for code, spec in REGISTRY.items()
}


def to_response(error: NoemaError) -> HttpResponse:
    """The answer that tells a caller of this error."""
    status = STATUS[error.code]
    headers = {"content-type": "application/json", "cache-control": "no-store"}
    if status == 401:
        headers["www-authenticate"] = CHALLENGE
    if status in (429, 503):
        wait = error.retry_after_ms if error.retry_after_ms is not None else DEFAULT_RETRY_MS
        headers["retry-after"] = str(max(1, math.ceil(wait / 1000)))
    allow = error.details.get("allow")
    if status == 405 and isinstance(allow, list):
        headers["allow"] = ", ".join(allow)
    return HttpResponse(status=status, headers=headers, body=msgspec.json.encode(error_body(error)))


def error_body(error: NoemaError) -> Mapping[str, Any]:  # JSON values
    """The JSON of an error."""
    wire = error.to_wire()
    data = {name: wire[name] for name in ("code", "category", "hint", "retry", "details") if name in wire}
    return {"error": {"message": error.message, "data": data}}


def bare(response: HttpResponse) -> HttpResponse:
    """An error as GrayMatter's clients read it: `{"error": "text"}`, with the same status and headers."""
    told = msgspec.json.decode(response.body)["error"]["message"]
    return msgspec.structs.replace(response, body=msgspec.json.encode({"error": told}))


def unauthenticated() -> NoemaError:
    """The one 401: it gives no reason, so that a guesser learns nothing."""
    return NoemaError("Unauthenticated", "authentication failed")


def internal(request_id: str) -> NoemaError:
    """What a caller learns of a bug."""
    return NoemaError(
        "InternalError",
        "something went wrong on our side; nothing is known about the outcome of a write",
        details={"request_id": request_id},
    )
