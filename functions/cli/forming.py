"""Submitting conversations and waiting until they have been formed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from functions.cli.client import Client
from functions.cli.terminal import Failure, pause

_POLL_S: Final = 0.3
_PATIENCE_POLLS: Final = 1000  # five minutes without any progress


def submit(client: Client, space: str, body: Any, key: str) -> int:
    """Send one conversation (a JSON object); its id. Sending it again under the same key gives the same id."""
    answer = client.result("POST", f"/v1/{space}/formation", body, key=key, patient=True)
    return int(answer["conversation"])


def wait(
    client: Client, space: str, conversations: list[int], seen: Callable[[int], None]
) -> list[dict[str, Any]]:
    """Wait until every conversation has been formed or set aside.

    Args:
        client: the service.
        space: the space.
        conversations: their ids, in order.
        seen: called with how many more have ended.

    Returns:
        The conversations that could not be formed, as the service tells of them.

    Raises:
        Failure: nothing moved for five minutes.
    """
    failed = []
    idle = 0
    for conversation in conversations:
        while True:
            found = client.result("GET", f"/v1/{space}/conversations/{conversation}", patient=True)
            if found["status"] in ("completed", "cancelled"):
                break
            idle += 1
            if idle > _PATIENCE_POLLS:
                raise Failure(
                    f"conversation {conversation} is still {found['status']}",
                    f"`noema space info {space}` shows the state of formation; the work goes on without you.",
                )
            pause(_POLL_S)
        idle = 0
        if found["status"] == "cancelled":
            failed.append(found)
        seen(1)
    return failed
