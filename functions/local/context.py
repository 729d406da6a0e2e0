"""The second argument of a handler, as the Lambda runtime would give it."""

from __future__ import annotations

import msgspec

from core.ports import Clock


class LocalContext(msgspec.Struct, frozen=True, kw_only=True):
    """Who is invoked and for how long it may run. Attribute names are the Lambda runtime's."""

    function_name: str
    aws_request_id: str
    clock: Clock
    deadline_ms: int
    function_version: str = "$LATEST"
    memory_limit_in_mb: int = 1024
    log_group_name: str = "local"
    log_stream_name: str = "local"

    @property
    def invoked_function_arn(self) -> str:
        """A name of the right form; there is no such resource."""
        return f"arn:aws:lambda:local-1:000000000000:function:{self.function_name}"

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the platform would stop the invocation."""
        return max(0, self.deadline_ms - self.clock.now())
