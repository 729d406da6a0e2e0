"""KIP answers in frames over HTTP, where the gateway can send them: `Accept: application/x-ndjson` (docs/kip.md).

What lives here: who is asked again before each page, and how a stream that cannot go on is ended. What must never live
here: pages (`core.service.streaming`). API Gateway and Lambda gather an answer before they send it, so there a request
for frames is refused by name; `functions.local.gateway` sends each as it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import UNSET

from core.authority import Principal
from core.errors import NoemaError
from core.ports import Unavailable
from core.protocol.frames import MEDIA_TYPE, Framer
from core.protocol.request import Request
from core.service.callers import principal_of
from functions import failures
from functions.bootstrap import Services
from functions.http import HttpRequest, HttpResponse
from functions.identity import Admission
from functions.logs import bug
from functions.routing import Call

STREAM_MS: Final = 300_000  # the longest a stream may last


def wants_frames(request: HttpRequest) -> bool:
    """Whether the caller takes an answer in frames."""
    return MEDIA_TYPE in request.headers.get("accept", "").lower()


def no_frames() -> NoemaError:
    """What is said where frames cannot be sent."""
    return NoemaError(
        "UnsupportedCapability",
        "this service does not have: streaming",
        hint="Ask for application/json, and go on from page to page by next_cursor.",
        details={"missing": ["streaming"]},
    )


def in_frames(
    services: Services, call: Call, request: Request, *, admission: Admission, readonly: bool
) -> HttpResponse:
    """The answer to a request as a stream that begins when the gateway takes the first frame.

    Raises:
        NoemaError: NotFoundOrNotVisible or ServiceUnavailable for the space itself.
    """
    services.spaces.head(call.space)

    def admit() -> Principal:
        """The caller, verified anew: a token that was revoked meanwhile reads no further page."""
        caller = services.gate.admit(admission, call.request, call.space)
        return principal_of(caller, readonly=readonly)

    op_id = request.operations[0].op_id if len(request.operations) == 1 else UNSET
    framer = Framer(services.entropy.token(12).hex(), request.request_id, op_id)
    deadline = services.clock.now() + STREAM_MS
    lines = services.streams.lines(call.space, request, framer, admit, deadline=deadline, readonly=readonly)
    headers = {"content-type": MEDIA_TYPE, "cache-control": "no-store", "vary": "accept"}
    stream = _ended(lines, framer, call, lambda: services.streams.writes(request))
    return HttpResponse(status=200, headers=headers, body=b"", stream=stream)


def _ended(lines: Iterator[bytes], framer: Framer, call: Call, writes: Callable[[], bool]) -> Iterator[bytes]:
    """The lines, and the frame that says why there are no more of them."""
    try:
        yield from lines
    except NoemaError as error:
        yield framer.error(error)
    except Unavailable as fault:
        bug(fault, request_id=call.request.request_id, route="stream")
        code = "OutcomeUnknown" if writes() else "ServiceUnavailable"
        yield framer.error(NoemaError(code, "a part of the service did not answer"))
    except Exception as error:  # noqa: BLE001 - the edge: a bug, told by its id as everywhere
        bug(error, request_id=call.request.request_id, route="stream")
        yield framer.error(failures.internal(call.request.request_id))
