"""Structured logs: one JSON line with an event name and facts, never text of a user's memory, never a secret.

Powertools' Logger writes them; the request id is its correlation id. What may be logged is decided here by
what `request_line` takes: route templates, statuses, codes, kinds and durations.
"""

from __future__ import annotations

import traceback
from functools import lru_cache

from aws_lambda_powertools import Logger


@lru_cache(maxsize=1)
def logger() -> Logger:
    """The process's logger."""
    return Logger(service="noema", utc=True, log_uncaught_exceptions=False)


def request_line(
    *, route: str, method: str, status: int, code: str | None, space: str | None, caller: str | None, ms: int
) -> None:
    """One line for one answered request. `route` is the template, `caller` the kind of credential."""
    facts = {"route": route, "method": method, "status": status, "code": code, "space": space}
    logger().info("request", extra={**facts, "caller": caller, "ms": ms})


def bug(error: Exception, **facts: str | None) -> None:
    """An exception that nobody expected: its type and its places in our code, never its message.

    A message may quote what was being worked on, and that is somebody's memory.
    """
    places = [
        f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
    ]
    logger().error("bug", extra={"error": type(error).__name__, "places": places, **facts})
