"""Answers that come later: the caller prefers it (`Prefer: respond-async`, RFC 7240), and is told where to poll.

What lives here: reading the preference, and the 202. What must never live here: what is deferred (`functions.intake`).
A preference is no demand: who cannot poll, a guest of a public space, is answered at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from core.protocol.http_types import AgentOutput
from functions.http import HttpRequest, HttpResponse
from functions.negotiate import encode_result
from functions.routing import Call

PREFERENCE: Final = "respond-async"
_POLL_S: Final = 2


def prefers_later(call: Call) -> bool:
    """Whether the caller would rather have the answer later, and can fetch it then."""
    return call.caller.kind != "anonymous" and PREFERENCE in _preferences(call.request.headers)


def _preferences(headers: Mapping[str, str]) -> frozenset[str]:
    """The names of the preferences: `respond-async, wait=10; x` -> respond-async and wait."""
    parts = headers.get("prefer", "").split(",")
    return frozenset(part.split(";")[0].split("=")[0].strip().lower() for part in parts)


def accepted(request: HttpRequest, space: str, output: AgentOutput) -> HttpResponse:
    """The 202 that names the conversation to poll."""
    response = encode_result(request, {"result": output}, None)
    headers = {
        **response.headers,
        "location": f"/v1/{space}/conversations/{output.conversation}?collection=recall",
        "preference-applied": PREFERENCE,
        "retry-after": str(_POLL_S),
        "vary": "accept, prefer",
    }
    return msgspec.structs.replace(response, status=202, headers=headers)
