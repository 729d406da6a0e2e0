"""Taking work in: stored at once, and the worker told that there is work. For every transport."""

from __future__ import annotations

from core.ports import Unavailable
from core.protocol.http_types import AgentOutput, FormationInput
from core.protocol.memory_types import MaintenanceInput
from core.service.hints import FORMATION, MAINTENANCE, Work, send_hint
from core.service.values import Caller
from functions.bootstrap import Services
from functions.logs import logger


def submit(
    found: Services, caller: Caller, space: str, body: FormationInput, *, key: str | None
) -> AgentOutput:
    """Store a conversation to be formed and hint at it.

    Raises:
        NoemaError: as `Conversations.submit`.
    """
    output = found.conversations.submit(caller, space, body, key=key)
    _hint(found, space, FORMATION)
    return output


def start_maintenance(
    found: Services, caller: Caller, space: str, body: MaintenanceInput, *, key: str | None
) -> AgentOutput:
    """Store a run of maintenance to be made and hint at it.

    Raises:
        NoemaError: as `Maintenance.submit`.
    """
    output = found.maintenance.submit(caller, space, body, key=key)
    _hint(found, space, MAINTENANCE)
    return output


def _hint(found: Services, space: str, work: Work) -> None:
    try:
        send_hint(found.queue, found.entropy, space, work)
    except Unavailable:
        # The work is stored and due; the next tick finds it. Failing now would invite a second copy.
        logger().warning("hint lost", extra={"space": space, "work": work})
