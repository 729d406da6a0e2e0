"""The request envelope: bytes to checked values (KIP §71-75, `kip-request.schema.json`).

What lives here: the shape of a request, every rule that the envelope alone can break, and nothing else. What
must never live here: parsing of commands, authority, state. Who asks is not in a request (KIP §88.1).

The envelope is closed: an unknown member, `null` in place of an absent one, a duplicate key or a number that is
not finite is refused, since each would let two readers understand one request differently.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Final, Literal, NoReturn

import msgspec
from msgspec import UNSET, Meta, UnsetType

from core.errors import NoemaError
from core.model.instants import parse_instant

KIP_VERSION: Final = "2.0"
MAX_OPERATIONS: Final = 256
MAX_INTEGER: Final = 2**63 - 1  # what storage and every JSON reader keep exactly
MAX_BODY_BYTES: Final = 4 * 1024 * 1024

Mode = Literal["independent", "sequence", "atomic"]

_Id = Annotated[str, Meta(min_length=1, max_length=256)]
_Token = Annotated[str, Meta(min_length=1, max_length=8192)]
_Key = Annotated[str, Meta(min_length=1, max_length=1024)]
_Count = Annotated[int, Meta(ge=0)]
_Extensions = dict[str, dict[str, Any]]
_Parameters = dict[str, Any]

_PARAMETER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_EXTENSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._/-]*\Z")
_CAPABILITY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*\Z")


class _Closed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object of the envelope: no member beyond those declared."""


class SpaceSelector(_Closed, frozen=True, kw_only=True):
    """Which space a request means, by id or by URI or by both."""

    id: Annotated[str, Meta(min_length=1, max_length=512)] | UnsetType = UNSET
    uri: Annotated[str, Meta(min_length=1, max_length=2048)] | UnsetType = UNSET


class Execution(_Closed, frozen=True, kw_only=True):
    """How the operations belong together (KIP §75)."""

    mode: Mode
    on_error: Literal["stop", "continue"] | UnsetType = UNSET
    isolation: Annotated[str, Meta(min_length=1, max_length=64)] | UnsetType = UNSET
    idempotency_key: _Key | UnsetType = UNSET
    extensions: _Extensions = {}


class ReadBinding(_Closed, frozen=True, kw_only=True):
    """The state a request wants to read: a token that this service gave (KIP §78)."""

    snapshot_token: _Token | UnsetType = UNSET
    extensions: _Extensions = {}


class Preconditions(_Closed, frozen=True, kw_only=True):
    """What must still be so for a write to commit (KIP §35.4)."""

    space_seq: _Count | UnsetType = UNSET
    schema_environment_version: _Count | UnsetType = UNSET
    extensions: _Extensions = {}


class IngestEvidence(_Closed, frozen=True, kw_only=True):
    """Source material to mint into Evidence, by a request-local key (KIP §71.1)."""

    key: str
    evidence_class: Annotated[str, Meta(min_length=1, max_length=256)]
    payload: Any = UNSET
    payload_artifact: _Token | UnsetType = UNSET
    media_type: Annotated[str, Meta(min_length=1, max_length=256)] | UnsetType = UNSET
    observed_at: str | UnsetType = UNSET
    source_actor: Annotated[str, Meta(min_length=1, max_length=512)] | UnsetType = UNSET
    client_key: _Key | UnsetType = UNSET
    extensions: _Extensions = {}


class Ingest(_Closed, frozen=True, kw_only=True):
    """Everything a request ingests."""

    evidence: Annotated[tuple[IngestEvidence, ...], Meta(min_length=1)] | UnsetType = UNSET
    extensions: _Extensions = {}


class OperationOptions(_Closed, frozen=True, kw_only=True):
    """Reserved by the protocol; only extensions may stand here."""

    extensions: _Extensions = {}


class Operation(_Closed, frozen=True, kw_only=True):
    """One command with its parameters; exactly one of `command` and `ast` (KIP §73)."""

    op_id: _Id | UnsetType = UNSET
    language: Literal["KQL", "KML", "META"] | UnsetType = UNSET
    command: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    ast: dict[str, Any] | UnsetType = UNSET
    parameters: _Parameters = {}
    idempotency_key: _Key | UnsetType = UNSET
    options: OperationOptions = OperationOptions()
    extensions: _Extensions = {}


class RequestContext(_Closed, frozen=True, kw_only=True):
    """What the client says about its request; it grants nothing (KIP §88.1)."""

    purpose: _Id | UnsetType = UNSET
    risk: Annotated[str, Meta(min_length=1, max_length=128)] | UnsetType = UNSET
    locale: Annotated[str, Meta(min_length=1, max_length=64)] | UnsetType = UNSET
    client: _Id | UnsetType = UNSET
    extensions: _Extensions = {}


class RequestOptions(_Closed, frozen=True, kw_only=True):
    """dry_run: compute and commit nothing; deadline_ms: how long the client waits."""

    dry_run: bool = False
    deadline_ms: Annotated[int, Meta(ge=1, le=2**53 - 1)] | UnsetType = UNSET
    extensions: _Extensions = {}


class Request(_Closed, frozen=True, kw_only=True):
    """A KIP 2.0 request."""

    kip: str
    operations: Annotated[tuple[Operation, ...], Meta(min_length=1)]
    request_id: _Id | UnsetType = UNSET
    space: SpaceSelector | UnsetType = UNSET
    compatibility_profile: Annotated[str, Meta(min_length=1, max_length=128)] | UnsetType = UNSET
    execution: Execution | UnsetType = UNSET
    read: ReadBinding = ReadBinding()
    ingest: Ingest = Ingest()
    preconditions: Preconditions = Preconditions()
    parameters: _Parameters = {}
    context: RequestContext = RequestContext()
    requires: dict[str, Any] = {}
    options: RequestOptions = RequestOptions()
    extensions: _Extensions = {}

    @property
    def mode(self) -> Mode:
        """How the operations belong together; a single operation is a sequence of one."""
        return "sequence" if self.execution is UNSET else self.execution.mode


# --- bytes to a JSON value


def decode_json(body: bytes, *, limit: int = MAX_BODY_BYTES) -> Any:  # any JSON value
    """The value of a JSON text, read strictly: UTF-8, no duplicate keys, finite numbers, whole characters.

    Raises:
        NoemaError: InvalidRequestEnvelope, with what is wrong; PayloadTooLarge for more than `limit` bytes.
    """
    if len(body) > limit:
        raise NoemaError(
            "PayloadTooLarge",
            f"the text is larger than {limit >> 20} MiB",
            details={"limit_bytes": limit},
        )
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _envelope("the body is not UTF-8", at=error.start) from error
    try:
        value = _DECODER.decode(text)
    except RecursionError as error:
        raise _envelope("the body nests too deeply") from error
    except json.JSONDecodeError as error:
        problem = f"the body is not JSON: {error.msg}"
        raise _envelope(problem, line=error.lineno, column=error.colno) from error
    if "\\ud" in text.lower():  # only an escape can write half a character
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            raise _envelope("the body holds half of a surrogate pair") from error
    return value


def _envelope(problem: str, **details: Any) -> NoemaError:  # JSON values
    return NoemaError("InvalidRequestEnvelope", problem, details=details)


def _refuse_constant(name: str) -> NoReturn:
    raise _envelope(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise _envelope(f"the number {text[:40]} is too large")
    return number


def _exact(text: str) -> int:
    number = int(text) if len(text) < 21 else MAX_INTEGER + 1
    if not -MAX_INTEGER - 1 <= number <= MAX_INTEGER:
        raise _envelope(f"the integer {text[:40]} has more than 64 bits")
    return number


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _envelope(f"the key {name[:40]!r} stands twice in one object", key=name[:200])
            seen.add(name)
    return found


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_exact
)


# --- a JSON value to a request


def decode_request(body: bytes) -> Request:
    """The checked request in a body; see `read_request` and `decode_json` for what is refused."""
    return read_request(decode_json(body))


def read_request(value: Any) -> Request:  # a JSON value
    """The checked request in a JSON value.

    Raises:
        NoemaError: UnsupportedProtocolVersion, UnsupportedCapability for a critical extension or a
            compatibility profile, else InvalidRequestEnvelope with the place in `details.at`.
    """
    if not isinstance(value, dict):
        raise _envelope("a request is a JSON object")
    version = value.get("kip")
    if isinstance(version, str) and version != KIP_VERSION:
        raise NoemaError(
            "UnsupportedProtocolVersion",
            f"this service speaks KIP {KIP_VERSION}, not {version[:40]}",
            details={"supported": [KIP_VERSION]},
        )
    try:
        request = msgspec.convert(value, Request, strict=True)
    except msgspec.ValidationError as error:
        problem, _, at = str(error).partition(" - at `")
        place = at.rstrip("`") or "$"
        member = place.removeprefix("$.") if place != "$" else "the request"
        raise _envelope(f"{member}: {problem[:1].lower()}{problem[1:]}", at=place) from error
    _check(request)
    return request


def _check(request: Request) -> None:
    operations = request.operations
    if len(operations) > MAX_OPERATIONS:
        raise _envelope(f"a request holds at most {MAX_OPERATIONS} operations", limit=MAX_OPERATIONS)
    if request.execution is UNSET and len(operations) > 1:
        raise _envelope("more than one operation needs execution.mode", at="$.execution")
    if request.execution is not UNSET:
        if request.execution.mode == "atomic" and request.execution.on_error == "continue":
            raise _envelope("an atomic request cannot continue after an error", at="$.execution.on_error")
        _check_extensions(request.execution.extensions, "$.execution")
    if request.space is not UNSET and request.space.id is UNSET and request.space.uri is UNSET:
        raise _envelope("a space is selected by id or by uri", at="$.space")
    if request.compatibility_profile is not UNSET:
        raise NoemaError(
            "UnsupportedCapability",
            f"there is no compatibility profile {request.compatibility_profile}",
            details={"supported": []},
        )
    for name in request.requires:
        if _CAPABILITY.match(name) is None:
            raise _envelope(f"{name[:40]!r} is not a capability's name", at="$.requires")
    _check_parameters(request.parameters, "$.parameters")
    for holder, at in (
        (request, "$"),
        (request.read, "$.read"),
        (request.preconditions, "$.preconditions"),
        (request.context, "$.context"),
        (request.options, "$.options"),
        (request.ingest, "$.ingest"),
    ):
        _check_extensions(holder.extensions, at)
    _check_operations(operations)
    _check_ingest(request)


def _check_operations(operations: tuple[Operation, ...]) -> None:
    seen: set[str] = set()
    for place, operation in enumerate(operations):
        at = f"$.operations[{place}]"
        if (operation.command is UNSET) == (operation.ast is UNSET):
            raise _envelope("an operation has either a command or an ast", at=at)
        if operation.op_id is not UNSET:
            if operation.op_id in seen:
                raise _envelope(f"the op_id {operation.op_id[:40]} is used twice", at=f"{at}.op_id")
            seen.add(operation.op_id)
        _check_parameters(operation.parameters, f"{at}.parameters")
        _check_extensions(operation.extensions, at)
        _check_extensions(operation.options.extensions, f"{at}.options")


def _check_ingest(request: Request) -> None:
    entries = () if request.ingest.evidence is UNSET else request.ingest.evidence
    keys: set[str] = set()
    for place, entry in enumerate(entries):
        at = f"$.ingest.evidence[{place}]"
        if _PARAMETER.match(entry.key) is None:
            raise _envelope(f"{entry.key[:40]!r} cannot name a parameter", at=f"{at}.key")
        if entry.key in keys or entry.key in request.parameters:
            raise _envelope(f"the key {entry.key} is used twice", at=f"{at}.key")
        if any(entry.key in operation.parameters for operation in request.operations):
            raise _envelope(f"the key {entry.key} is also a parameter of an operation", at=f"{at}.key")
        keys.add(entry.key)
        if (entry.payload is UNSET) == (entry.payload_artifact is UNSET):
            raise _envelope("an ingested Evidence has either a payload or a payload_artifact", at=at)
        if entry.observed_at is not UNSET:
            try:
                parse_instant(entry.observed_at)
            except ValueError as error:
                raise _envelope(f"observed_at is {error}", at=f"{at}.observed_at") from error
        _check_extensions(entry.extensions, at)


def _check_parameters(parameters: _Parameters, at: str) -> None:
    for name in parameters:
        if _PARAMETER.match(name) is None:
            raise _envelope(f"{name[:40]!r} cannot name a parameter", at=at)


def _check_extensions(extensions: _Extensions, at: str) -> None:
    for name, value in extensions.items():
        if _EXTENSION.match(name) is None:
            raise _envelope(f"the extension {name[:40]!r} has no namespace", at=f"{at}.extensions")
        critical = value.get("critical", False)
        if not isinstance(critical, bool):
            raise _envelope("critical is true or false", at=f"{at}.extensions.{name}.critical")
        if critical:
            raise NoemaError(
                "UnsupportedCapability",
                f"the extension {name} is critical and not known here",
                details={"extension": name},
            )
