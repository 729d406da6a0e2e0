"""The function that a schedule rings once a minute: it hints again at work that nobody seems to be doing.

It only looks and hints; the worker works. Each part is tried on its own, so that one that fails does not keep
the others from being done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from core.errors import NoemaError
from core.ports import Unavailable
from core.service.hints import RECALL, send_hint
from functions.bootstrap import Services, services
from functions.logs import bug, logger


def _waiting(found: Services) -> list[str]:
    """Hint at questions that wait for an answer."""
    spaces = found.later_recalls.sweep()
    for space_id in spaces:
        send_hint(found.queue, found.entropy, space_id, RECALL)
    return spaces


_PARTS: Final[Mapping[str, Callable[[Services], list[str]]]] = {
    "formation": lambda found: found.formation.sweep(),
    "maintenance": lambda found: found.maintenance.sweep(),
    "upkeep": lambda found: found.caretaking.round(),
    "recall": _waiting,
    "facts": lambda found: found.fact_schedule.sweep(),
}


def tick(found: Services) -> dict[str, int]:
    """Look for work that waits; how many spaces were hinted at, by kind. A part that failed is left out."""
    counts: dict[str, int] = {}
    for name, part in _PARTS.items():
        try:
            counts[name] = len(part(found))
        except (NoemaError, Unavailable) as error:
            logger().warning("sweep failed", extra={"part": name, "error": type(error).__name__})
        except Exception as error:  # noqa: BLE001 - the edge: the other parts still run
            bug(error, part=name)
    logger().info("tick", extra=counts)
    return counts


def handler(event: dict[str, Any], context: Any) -> dict[str, int]:  # of EventBridge Scheduler and Lambda
    """One tick."""
    del event, context
    return tick(services())
