"""Routes as rows of a table, and the one pipeline that answers a request by them.

What lives here: `Route`, `Call`, and `respond`, which takes an event through the same steps whatever it asks
for (`functions.endpoints` has the paths). What must never live here: what any route does. Our own table rather than Powertools' resolver: the
contract's negotiation, errors and admission would have to be built around that one, and its import costs 50 ms
of every cold start where this costs none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.model.ids import check_space_id
from core.model.instants import Instant
from core.ports import Unavailable
from core.service.values import Caller
from functions import endpoints, failures, negotiate
from functions.bootstrap import Services
from functions.http import HttpRequest, HttpResponse, decode_event, encode_event, request_id_of
from functions.identity import Admission
from functions.logs import bug, logger, request_line
from functions.settings import SettingsError

MAX_BODY_BYTES: Final = 6_000_000  # what Lambda takes of a request, with room for the event around it
DEFAULT_DEADLINE_MS: Final = 25_000  # below the 30 s after which API Gateway gives up
_SPARE_MS: Final = 500  # to answer in, before the function is stopped
_IDEMPOTENCY_KEY: Final = re.compile(r"[!-~]{1,128}\Z")


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One admitted, decoded request. `space` is empty where the path names none."""

    caller: Caller
    space: str
    params: Mapping[str, str]
    body: Any  # the route's `body` type
    query: Any  # the route's `query` type
    deadline: Instant
    idempotency_key: str | None
    request: HttpRequest  # for routes that read the body themselves


class Page(msgspec.Struct, frozen=True):
    """A result that goes on behind a cursor."""

    items: Any  # any list msgspec can encode
    next_cursor: str | None


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """What one endpoint does: who may ask, what it takes and gives, and what answers.

    body, query, response: msgspec types; None where there is none.
    text_in: the member that a raw text body becomes (see `negotiate`); text_out: the member that is the
        Markdown answer.
    labelled: whether a token restricted by labels may use it. No element of memory bears labels, so such a
        token may read none.
    media_type: of an answer that is a document and no envelope.
    own_body: the call reads the body itself, by rules of its own; `body` then only documents it.
    deferrable: whether who prefers it (`functions.deferring`) is answered 202 and polls.
    slow: whether it is answered 202 with what there is of its response while it works; ask again.
    refused: how this route words what is refused before its call; None as every route does.
    holds: the permission that the records of a governed space must give the caller; None asks for none here.
    """

    admit: Admission
    call: Callable[[Services, Call], Any]  # a `response`, a Page, or a whole HttpResponse
    summary: str
    response: Any = None
    body: Any = None
    query: Any = None
    text_in: str | None = None
    text_out: str | None = None
    labelled: bool = False
    media_type: str | None = None
    own_body: bool = False
    deferrable: bool = False
    slow: bool = False
    refused: Callable[[NoemaError], HttpResponse] | None = None
    holds: str | None = None


Routes = Mapping[str, Route]  # by the endpoint's name


class _Trace(msgspec.Struct):
    """What the log line will say, filled in as it becomes known."""

    method: str = "?"
    route: str = "?"
    code: str | None = None
    space: str | None = None
    caller: str | None = None


def respond(
    event: Mapping[str, Any], context: Any, routes: Routes, services: Callable[[], Services]
) -> dict[str, Any]:
    """Answer one API Gateway v2 event; never raises.

    Args:
        event: the event.
        context: Lambda's context, or anything with (or without) its attributes.
        routes: the rows this function serves.
        services: builds or finds the services.
    """
    request_id = request_id_of(event, context)
    trace = _Trace()
    began: Instant | None = None
    request: HttpRequest | None = None
    origins: tuple[str, ...] = ()
    clock = None
    try:
        found = services()
        clock, origins = found.clock, found.settings.cors_origins
        began = clock.now()
        request = decode_event(event, request_id)
        trace.method = request.method
        deadline = _deadline(context, began)
        response = _answer(request, routes, found, deadline, trace)
    except NoemaError as error:
        trace.code = error.code
        response = failures.to_response(error)
    except Unavailable as fault:
        # A service tells of its store itself; this is what nobody expected, so the worst is assumed.
        bug(fault, request_id=request_id, route=trace.route)
        trace.code = "ServiceUnavailable" if trace.method == "GET" else "OutcomeUnknown"
        response = failures.to_response(NoemaError(trace.code, "a part of the service did not answer"))
    except SettingsError as error:
        logger().critical("settings", extra={"request_id": request_id, "problem": str(error)})
        trace.code = "InternalError"
        response = failures.to_response(failures.internal(request_id))
    except Exception as error:  # noqa: BLE001 - the edge: what is no NoemaError is a bug, logged with its id
        bug(error, request_id=request_id, route=trace.route)
        trace.code = "InternalError"
        response = failures.to_response(failures.internal(request_id))
    if response.status >= 400 and request is not None and endpoints.is_graymatter(request.path):
        response = failures.bare(response)
    took = 0 if clock is None or began is None else clock.now() - began
    logger().append_keys(request_id=request_id)
    request_line(**msgspec.structs.asdict(trace), status=response.status, ms=took)
    ours = {"x-request-id": request_id, "x-content-type-options": "nosniff"}
    headers = {**response.headers, **_cors(request, origins), **ours}
    return encode_event(msgspec.structs.replace(response, headers=headers))


def _deadline(context: Any, now: Instant) -> Instant:  # a Lambda context
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    left = DEFAULT_DEADLINE_MS if remaining is None else remaining() - _SPARE_MS
    return int(now + max(0, min(left, DEFAULT_DEADLINE_MS)))


def _answer(
    request: HttpRequest, routes: Routes, services: Services, deadline: Instant, trace: _Trace
) -> HttpResponse:
    """The steps, in order: find, check what needs no trust, admit, decode, call, encode."""
    if request.method == "OPTIONS":
        trace.route = "preflight"
        return HttpResponse(status=204, headers={"cache-control": "no-store"}, body=b"")
    name, params = endpoints.find(request.method, request.path)
    trace.route = endpoints.ENDPOINTS[name].path
    route = routes[name]  # a KeyError is a gateway that hands this function another's requests
    try:
        return _serve(request, route, params, services, deadline=deadline, trace=trace)
    except NoemaError as error:
        if route.refused is None:
            raise
        trace.code = error.code
        return route.refused(error)


def _serve(
    request: HttpRequest,
    route: Route,
    params: Mapping[str, str],
    services: Services,
    *,
    deadline: Instant,
    trace: _Trace,
) -> HttpResponse:
    """A request whose route is known."""
    _check_shard(request, services.settings.sharding)
    if len(request.body) > MAX_BODY_BYTES:
        raise _too_large(len(request.body))
    space = params.get("space")
    if space is not None:
        trace.space = check_space_id(space)
    caller = services.gate.admit(route.admit, request, space)
    trace.caller = caller.kind
    if caller.labels is not None and not route.labelled:
        raise NoemaError("NotAuthorized", "a token restricted by labels may not do this")
    call = Call(
        caller=caller,
        space=space or "",
        params=params,
        body=None
        if route.body is None or route.own_body
        else negotiate.decode_body(request, route.body, route.text_in),
        query=None if route.query is None else negotiate.decode_query(request, route.query),
        deadline=deadline,
        idempotency_key=_idempotency_key(request),
        request=request,
    )
    if route.holds is not None:
        services.standings.check(call.space, caller, route.holds)
    result = route.call(services, call)
    if isinstance(result, HttpResponse):
        return result
    return negotiate.encode_result(request, _envelope(result), route.text_out)


def _envelope(result: Any) -> dict[str, Any]:
    """`RpcResponse`: absent members are left out (contract §1.1)."""
    if not isinstance(result, Page):
        return {"result": result}
    if result.next_cursor is None:
        return {"result": result.items}
    return {"result": result.items, "next_cursor": result.next_cursor}


def _check_shard(request: HttpRequest, sharding: int) -> None:
    """`Shard-Id` (or `X-Shard`) is a u32, 0 if absent, and must be this server's."""
    text = request.headers.get("shard-id", request.headers.get("x-shard", "0")).strip()
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else -1
    if not 0 <= number < 2**32 or number != sharding:
        raise NoemaError(
            "InvalidInput",
            "the Shard-Id header does not name this server's shard",
            hint="Send the shard that GET /info shows as `sharding`, or leave the header out for shard 0.",
            details={"header": "Shard-Id", "sharding": sharding},
        )


def _idempotency_key(request: HttpRequest) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is not None and _IDEMPOTENCY_KEY.match(key) is None:
        raise NoemaError(
            "InvalidInput",
            "an Idempotency-Key is 1 to 128 printable ASCII characters",
            details={"header": "Idempotency-Key"},
        )
    return key


def _too_large(size: int) -> NoemaError:
    return NoemaError(
        "PayloadTooLarge",
        f"the body has {size} bytes; at most {MAX_BODY_BYTES} are taken",
        details={"limit_bytes": MAX_BODY_BYTES, "bytes": size},
    )


_CORS_HEADERS: Final = (
    "authorization, content-type, accept, shard-id, x-shard, x-request-id, idempotency-key, prefer, "
    "mcp-protocol-version, mcp-method, mcp-name, mcp-session-id"
)


def _cors(request: HttpRequest | None, origins: tuple[str, ...]) -> dict[str, str]:
    """CORS for the listed origins only, and never with credentials (contract §1.4, the safer default)."""
    if request is None or not origins:
        return {}
    any_origin = "*" in origins
    origin = request.headers.get("origin", "").lower()
    vary = {} if any_origin else {"vary": "accept, origin"}
    if not origin or not (any_origin or origin in origins):
        return vary
    headers = {
        **vary,
        "access-control-allow-origin": "*" if any_origin else request.headers["origin"],
        "access-control-expose-headers": "x-request-id, retry-after, www-authenticate, location, preference-applied",
    }
    if request.method == "OPTIONS":
        headers["access-control-allow-methods"] = "GET, POST, PATCH, DELETE, OPTIONS"
        headers["access-control-allow-headers"] = _CORS_HEADERS
        headers["access-control-max-age"] = "86400"
    return headers
