"""What the tests of the Anda Brain contract share beside its shapes and its table."""

from typing import Any

from functions.worker import work
from tests.functions.world import World


def form(world: World) -> None:
    """Let the worker do what the queue hints at, and what is due."""
    queue: Any = world.queue
    world.services.formation.sweep()
    records = [
        {"messageId": f"m{n}", "body": body, "attributes": {"MessageGroupId": group}}
        for n, (group, body, _) in enumerate(queue.sent)
    ]
    queue.sent.clear()
    work({"Records": records}, None, world.services)
