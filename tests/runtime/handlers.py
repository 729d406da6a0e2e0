"""Handlers that misbehave, to see that the emulator treats them as the platform does."""

import os
import time


def raises(event, context):
    raise ValueError("no")


def sleeps(event, context):
    """Sleeps when told to, and tells its process."""
    time.sleep(event.get("sleep", 0))  # noqa: TID251 - running out of time is the point
    return {"pid": os.getpid(), "left": context.get_remaining_time_in_millis()}
