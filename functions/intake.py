"""Taking work in: stored at once, and the worker told that there is work. For every transport."""

from __future__ import annotations

import msgspec

from core.agents.dialogue import usable_time
from core.errors import NoemaError
from core.ports import StoreFault
from core.protocol.http_types import AgentOutput, FormationInput, RecallInput
from core.protocol.memory_types import MaintenanceInput
from core.service.hints import FORMATION, MAINTENANCE, RECALL, Work, send_hint
from core.service.values import Caller
from functions.bootstrap import Services
from functions.echoing import NOTHING_NEW, without_echoes
from functions.logs import logger


def submit(
    found: Services, caller: Caller, space: str, body: FormationInput, *, key: str | None
) -> AgentOutput:
    """Store a conversation to be formed and hint at it; what this memory itself served lately is left out.

    Raises:
        NoemaError: as `Conversations.submit`.
    """
    kept, left_out = without_echoes(found, space, body, lambda: found.standings.is_whole(space, caller))
    if not kept.messages:
        return AgentOutput(content="", warnings=(NOTHING_NEW,))
    try:
        output = found.conversations.submit(caller, space, kept, key=key)
    except NoemaError as error:
        # Sent before, and an echo only since then: the same request has the same answer.
        if not left_out or error.code != "IdempotencyConflict":
            raise
        return found.conversations.submit(caller, space, body, key=key)
    _hint(found, space, FORMATION)
    if not left_out:
        return output
    warning = f"{left_out} recalled passages were left out: memory does not confirm itself"
    return msgspec.structs.replace(output, warnings=(*output.warnings, warning))


def start_maintenance(
    found: Services, caller: Caller, space: str, body: MaintenanceInput, *, key: str | None
) -> AgentOutput:
    """Store a run of maintenance to be made and hint at it.

    Raises:
        NoemaError: as `Maintenance.submit`.
    """
    found.standings.check(space, caller, "maintain")
    output = found.maintenance.submit(caller, space, body, key=key)
    _hint(found, space, MAINTENANCE)
    if body.timestamp in (None, "") or usable_time(body.timestamp, found.clock.now()) is not None:
        return output
    warning = "timestamp is not a usable time; the run goes by its own clock"
    return msgspec.structs.replace(output, warnings=(*output.warnings, warning))


def ask_later(
    found: Services, caller: Caller, space: str, body: RecallInput, *, key: str | None
) -> AgentOutput:
    """Store a question to be answered later and hint at it.

    Raises:
        NoemaError: as `LaterRecalls.submit`.
    """
    output = found.later_recalls.submit(caller, space, body, key=key)
    _hint(found, space, RECALL)
    return output


def _hint(found: Services, space: str, work: Work) -> None:
    try:
        send_hint(found.queue, found.entropy, space, work)
    except StoreFault:
        # The work is stored and due; the next tick finds it. Failing now would invite a second copy.
        logger().warning("hint lost", extra={"space": space, "work": work})
