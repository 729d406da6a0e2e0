"""What a provider's refusal means: an answer other than 200, its error and its headers, as a `ModelFault`.

What lives here: those tables. What must never live here: sending, and any text of a provider in a message: it may
quote the prompt or the key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec

from core.model.instants import Instant
from core.models.chat import FaultKind, ModelFault, Usage

_LONGEST_RETRY_MS: Final = 3_600_000
_CODE: Final = re.compile(r"[A-Za-z_]{1,48}\Z")  # no digits: a server might echo a key
_BY_STATUS: Final[dict[int, tuple[FaultKind, str]]] = {
    401: ("unauthorized", "the provider does not accept the key"),
    402: ("unauthorized", "the provider's account has no credit"),
    403: ("unauthorized", "the key may not use this model"),
    404: ("bad_request", "the provider knows no such model or path"),
    408: ("unavailable", "the provider gave up waiting for the request"),
    409: ("unavailable", "the provider asks to try again"),
    413: ("context_overflow", "the request is larger than the provider takes"),
    425: ("unavailable", "the provider asks to try again later"),
    429: ("rate_limited", "the provider limits how much may be asked"),
    529: ("unavailable", "the provider is overloaded"),
}
OVERFLOW: Final = re.compile(
    r"context[_ ]length|context[_ ]size|context[_ ]window|maximum context|prompt is too long|too many (input )?tokens"
    r"|input is too long|token count .{0,40}exceeds|exceeds? the (available|maximum) context|input length and",
    re.IGNORECASE,
)
_NO_CREDIT: Final = re.compile(r"insufficient_quota|billing|credit balance", re.IGNORECASE)


def fault_of(status: int, headers: Mapping[str, str], body: bytes, now: Instant) -> ModelFault:
    """The fault that an answer other than 200 is."""
    code, text = _error(body)
    kind, said = _BY_STATUS.get(status, ("bad_request", "the provider refuses the request"))
    if status >= 500 and status not in _BY_STATUS:
        kind, said = "unavailable", "the provider failed"
    elif 300 <= status < 400:
        said = "the provider redirects, which is not followed"
    if status in (400, 413, 422, 500) and OVERFLOW.search(text):  # llama.cpp has answered 500 for it
        kind, said = "context_overflow", "the request does not fit into the model's context"
    elif status in (400, 402, 403, 429) and _NO_CREDIT.search(text):
        kind, said = "unauthorized", "the provider's account has no credit"
    named = f" {code}" if code else ""
    return ModelFault(
        kind,
        f"{said} (HTTP {status}{named})",
        retry_after_ms=retry_after(headers, now),
        usage=Usage(requests=1),
    )


def _error(body: bytes) -> tuple[str, str]:
    """The error's code, if it looks like one, and everything to search for what it means."""
    text = body.decode("utf-8", "replace")
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return "", text
    if isinstance(found, list) and found:  # Gemini's
        found = found[0]
    error = found.get("error", found) if isinstance(found, dict) else None
    if isinstance(error, dict):
        for name in ("code", "type", "status"):
            value = error.get(name)
            if isinstance(value, str) and _CODE.match(value):
                return value, text
    return "", text


def retry_after(headers: Mapping[str, str], now: Instant) -> int | None:
    """Milliseconds that the provider asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date."""
    for name, scale in (("retry-after-ms", 1), ("retry-after", 1000)):
        text = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
            return min(_LONGEST_RETRY_MS, int(float(text) * scale))
    try:
        at = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError):
        return None
    return max(0, min(_LONGEST_RETRY_MS, int(at.timestamp() * 1000) - now))
