"""KIP over HTTP: what stands in a body, who asks, and how the answer is written (KIP §71, §76, §82).

What lives here: the step between an HTTP request and `core.service.kip`. What must never live here: KIP's meaning.

KIP's rule is that the body says what became of a request: whatever reaches the engine, and every envelope that it
cannot take, is answered with a KIP response under status 200. What the transport itself refuses (a credential, a
path, a space that is not there) keeps its own status.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.protocol.request import KIP_VERSION, Execution, Request, decode_json, read_request
from core.protocol.response import Response, encode_response, failure
from core.service.callers import principal_of
from functions.bootstrap import Services
from functions.frames import in_frames, no_frames, wants_frames
from functions.http import HttpRequest, HttpResponse
from functions.identity import Admission
from functions.negotiate import MEDIA_TYPES, encode_cbor, request_format, response_format
from functions.plain import decode_cbor
from functions.routing import Call

DEADLINE_MS: Final = 15_000  # contract §1.5


def execute_readonly(services: Services, call: Call) -> HttpResponse:
    """Answer a request that may not write; what it is follows from what parses."""
    return _execute(services, call, readonly=True, admission="public")


def execute(services: Services, call: Call) -> HttpResponse:
    """Answer a request that may write."""
    return _execute(services, call, readonly=False, admission="write")


def _execute(services: Services, call: Call, *, readonly: bool, admission: Admission) -> HttpResponse:
    framed = wants_frames(call.request)
    try:
        if framed and not services.sends_frames:
            raise no_frames()
        request = _keyed(read_body(call.request), call.idempotency_key)
    except NoemaError as error:
        return _answer(call.request, failure(error))
    if framed:
        return in_frames(services, call, request, admission=admission, readonly=readonly)
    deadline = min(call.deadline, services.clock.now() + DEADLINE_MS)
    who = principal_of(call.caller, readonly=readonly)
    response = services.kip.execute(call.space, request, who, deadline=deadline, readonly=readonly)
    return _answer(call.request, response)


# --- bodies


def read_body(http: HttpRequest) -> Request:
    """The request in a body: an envelope, its short form, or a bare command.

    `Content-Type` decides as everywhere (contract §1.2). A JSON or CBOR text, and a body of text that is not JSON,
    is one command. An object without `kip` is the short form: `command` or `operations` (whose entries may be bare
    commands), `parameters`, `dry_run` and any other member of the envelope.

    Raises:
        NoemaError: InvalidRequestEnvelope and its like.
    """
    form = request_format(http.headers.get("content-type"))
    if form == "markdown":
        value = _text_or_json(http.body)
    elif form == "cbor":
        value = _cbor(http.body)
    else:
        value = _json(http.body)
    return read_request(envelope_of(value))


def envelope_of(value: Any) -> Any:  # JSON values
    """The envelope that a body means; what is already one, or is none at all, stays as it is."""
    if isinstance(value, str):
        return {"kip": KIP_VERSION, "operations": [{"command": value}]}
    if not isinstance(value, dict) or "kip" in value:
        return value
    envelope = {"kip": KIP_VERSION, **value}
    if "command" in envelope:
        if "operations" in envelope:
            raise NoemaError("InvalidRequestEnvelope", "a request has either a command or operations")
        envelope["operations"] = [envelope.pop("command")]
    operations = envelope.get("operations")
    if isinstance(operations, list):
        envelope["operations"] = [{"command": each} if isinstance(each, str) else each for each in operations]
    if "dry_run" in envelope:
        options = envelope.get("options", {})
        if not isinstance(options, dict):
            raise NoemaError("InvalidRequestEnvelope", "options is an object")
        envelope["options"] = {**options, "dry_run": envelope.pop("dry_run")}
    return envelope


def _text_or_json(body: bytes) -> Any:  # a JSON value
    """Text is a command; a command cannot begin as a JSON object or text does."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoemaError("InvalidRequestEnvelope", "the body is not UTF-8") from error
    return decode_json(body) if text.lstrip()[:1] in ("{", '"') else text


def _json(body: bytes) -> Any:  # a JSON value
    try:
        return decode_json(body)
    except NoemaError as error:
        if error.code == "InvalidRequestEnvelope" and body.lstrip()[:1].isalpha():
            hint = "Send a bare command with content-type: text/plain, or as a JSON text in quotes."
            raise NoemaError(error.code, error.message, hint=hint, details=error.details) from error
        raise


def _cbor(body: bytes) -> Any:  # a JSON value
    """CBOR under the rules of JSON: the value is written as JSON and read as strictly as that."""
    try:
        value = decode_cbor(body)
    except NoemaError as error:
        raise NoemaError("InvalidRequestEnvelope", error.message, details=error.details) from error
    return decode_json(msgspec.json.encode(value))


def _keyed(request: Request, key: str | None) -> Request:
    """A request with the key of the `Idempotency-Key` header, where it names none itself."""
    own = [operation.idempotency_key for operation in request.operations]
    execution = request.execution
    if isinstance(execution, Execution):
        own.append(execution.idempotency_key)
    if key is None or any(isinstance(each, str) for each in own):
        return request
    if isinstance(execution, Execution):
        keyed = msgspec.structs.replace(execution, idempotency_key=key)
        return msgspec.structs.replace(request, execution=keyed)
    operation = msgspec.structs.replace(request.operations[0], idempotency_key=key)
    return msgspec.structs.replace(request, operations=(operation,))


# --- answers


def _answer(http: HttpRequest, response: Response) -> HttpResponse:
    """The response in the format that `Accept` asks for; as Markdown it is JSON for the eye."""
    form = response_format(http.headers.get("accept"))
    if form == "cbor":
        body = encode_cbor(response)
    elif form == "json":
        body = encode_response(response)
    else:
        body = json.dumps(msgspec.to_builtins(response), indent=2, ensure_ascii=False).encode("utf-8")
    headers = {"content-type": MEDIA_TYPES[form], "cache-control": "no-store", "vary": "accept"}
    return HttpResponse(status=200, headers=headers, body=body)
