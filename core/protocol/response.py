"""The response envelope: results, contexts and receipts as the wire carries them (KIP §81-86).

What lives here: the shapes of `kip-response.schema.json` and the rule that gives a request its one status. What
must never live here: what happened; the engine says that.

A member that does not apply is left out, never null, except `snapshot` and `receipt`, whose null says "none".
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from core.errors import NoemaError
from core.protocol.request import KIP_VERSION, Mode, Request

OperationStatus = Literal["succeeded", "failed", "skipped", "rolled_back", "no_effect"]
Status = Literal["succeeded", "failed", "partial", "outcome_unknown"]
ReceiptStatus = Literal["committed", "aborted", "no_effect", "pending", "unknown"]

_DONE: Final = frozenset({"succeeded", "no_effect"})


class PolicyIdentity(msgspec.Struct, frozen=True):
    """Which epistemic policy a projection ran under (KIP §27.2)."""

    id: str
    version: str | int


class SearchContext(msgspec.Struct, frozen=True, kw_only=True):
    """How fresh and of what kind a search was (KIP §66)."""

    index_seq: int
    current_space_seq: int | UnsetType = UNSET  # where it is known: not under a snapshot token
    consistency: str
    mode: Literal["keyword", "semantic", "hybrid"]
    score_semantics: str


class ResultContext(msgspec.Struct, frozen=True, kw_only=True):
    """The coordinates of one result (KIP §50): which space and state, which schema, which policy and world time."""

    space_id: str | UnsetType = UNSET
    snapshot_seq: int | UnsetType = UNSET
    schema_environment_version: int | UnsetType = UNSET
    epistemic_policy: PolicyIdentity | UnsetType = UNSET
    valid_at: str | UnsetType = UNSET
    search: SearchContext | UnsetType = UNSET
    cursor: str | UnsetType = UNSET
    extensions: dict[str, Any] | UnsetType = UNSET


class Warning(msgspec.Struct, frozen=True):  # noqa: A001 - the protocol's word
    """A caveat that is no failure (KIP §81)."""

    code: str
    message: str | UnsetType = UNSET
    details: dict[str, Any] | UnsetType = UNSET


class OperationResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one operation (KIP §83)."""

    status: OperationStatus
    op_id: str | UnsetType = UNSET
    result: Any = UNSET
    context: ResultContext | UnsetType = UNSET
    warnings: list[Warning] | UnsetType = UNSET
    error: dict[str, Any] | UnsetType = UNSET
    next_cursor: str | UnsetType = UNSET


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The one state that all reads of an atomic request saw (KIP §78)."""

    space_id: str
    snapshot_seq: int
    schema_environment_version: int
    snapshot_token: str | UnsetType = UNSET


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """The client's view of a transaction's outcome (KIP §33.2)."""

    status: ReceiptStatus
    tx_id: str | UnsetType = UNSET
    space_id: str | UnsetType = UNSET
    snapshot_seq: int | UnsetType = UNSET
    space_seq: int | UnsetType = UNSET
    committed_at: str | UnsetType = UNSET
    transaction_class: str | UnsetType = UNSET
    request_digest: str | UnsetType = UNSET
    semantic_plan_digest: str | UnsetType = UNSET
    result_digest: str | UnsetType = UNSET
    schema_environment_version: int | UnsetType = UNSET
    change_summary: dict[str, Any] | UnsetType = UNSET
    proofs: list[dict[str, Any]] | UnsetType = UNSET


class ExecutionEcho(msgspec.Struct, frozen=True, kw_only=True):
    """How the request was run, which is how it asked to be."""

    mode: Mode
    on_error: Literal["stop", "continue"] | UnsetType = UNSET
    isolation: str | UnsetType = UNSET


class ResponseContext(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for the whole response."""

    space_id: str | UnsetType = UNSET
    schema_environment_version: int | UnsetType = UNSET


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """A KIP 2.0 response."""

    status: Status
    results: list[OperationResult]
    kip: str = KIP_VERSION
    request_id: str | UnsetType = UNSET
    execution: ExecutionEcho | UnsetType = UNSET
    context: ResponseContext | UnsetType = UNSET
    snapshot: Snapshot | None = None
    receipt: Receipt | None = None
    warnings: list[Warning] | UnsetType = UNSET
    error: dict[str, Any] | UnsetType = UNSET


def status_of(results: list[OperationResult]) -> Status:
    """The status of a request by those of its operations (KIP §82)."""
    done = sum(result.status in _DONE for result in results)
    if done == len(results):
        return "succeeded"
    return "partial" if done else "failed"


def failure(error: NoemaError, request: Request | None = None) -> Response:
    """The response to a request that could not be run at all, or whose outcome cannot be established."""
    return Response(
        status="outcome_unknown" if error.code == "OutcomeUnknown" else "failed",
        results=[],
        request_id=UNSET if request is None else request.request_id,
        error=error.to_wire(),
    )


_ENCODER: Final = msgspec.json.Encoder()


def encode_response(response: Response) -> bytes:
    """A response as JSON bytes that validate against `kip-response.schema.json`."""
    return _ENCODER.encode(response)
