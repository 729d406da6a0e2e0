"""A Capsule of a space with one Person, for tests that call every route."""

from __future__ import annotations

from typing import Any

from tests.functions.world import World


def made_capsule() -> dict[str, Any]:
    """What the export route answers."""
    world = World().make_space("source")
    command = 'CREATE CONCEPT ?c {TYPE "Person" NAME "Ada"}'
    assert world.ask("POST", "/v1/source/execute_kip", command, token=world.token(aud="source")).status == 200
    answer = world.ask("POST", "/host/v1/source/capsules/export", {}, token=world.token(aud="source"))
    found: dict[str, Any] = answer.result
    return found


CAPSULE = made_capsule()
RESTORE = {"capsule": CAPSULE, "owner": "alice", "accept_unsigned": True}
