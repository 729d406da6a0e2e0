"""The values that use cases exchange: who asks, what a commit proposes, what became of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from core.model.elements import Json, Origin
from core.model.instants import Instant
from core.model.log import Delta
from core.ports import Row, Write
from core.state.space import SpaceState

Role = Literal["formation", "maintenance", "compaction", "learning"]
Scope = Literal["read", "write", "*"]


class Caller(msgspec.Struct, frozen=True):
    """Who the transport has verified, and what the credential allows. Never built from a request body.

    subject: the CWT `sub`, or `token:<name>` for a space token, or `anonymous` on a public space.
    channel: rest, mcp, kip, cli, queue or schedule.
    labels: restrictions of a labelled space token; None is unrestricted.
    everywhere: the credential is good for every space. operator: the host vouches for the caller (break glass).
    """

    subject: str
    channel: str
    scope: Scope | None
    kind: Literal["cwt", "space_token", "anonymous", "system"] = "cwt"
    manager: bool = False
    labels: tuple[str, ...] | None = None
    everywhere: bool = False
    operator: bool = False

    @property
    def origin(self) -> Origin:
        """What the engine records as the origin of everything this caller writes (KIP §6.2)."""
        return Origin(principal=self.subject, channel=self.channel)


class Fence(msgspec.Struct, frozen=True):
    """Proof of a lease: every write made under it carries `epoch`, so a holder that overslept writes nothing."""

    role: Role
    epoch: int
    owner: str
    until: Instant


class Idempotency(msgspec.Struct, frozen=True):
    """A retry key: its scope (principal and endpoint class, KIP §34.2), the key, and the request's digest."""

    scope: str
    key: str
    digest: str


class Proposal(msgspec.Struct, frozen=True):
    """What one attempt wants to commit.

    delta: the change of the space, from `Draft.finish`; None if memory does not change.
    outcome: the answer to give, retained under the idempotency key and replayed from there.
    rows: other rows of the same space to write in the same transaction (a conversation's status, a counter).
    head: attributes of HEAD to set with it (small numbers such as `formed`, the formation high-water mark).
    """

    delta: Delta | None
    outcome: Json = None
    rows: tuple[Write, ...] = ()
    head: Row = {}


class Committed(msgspec.Struct, frozen=True):
    """What became of a proposal.

    replayed: the key had been used for the same request; `outcome` is the first one's and nothing was written.
    effect: False for a proposal that changed nothing durable in memory.
    """

    outcome: Json
    ver: int
    seq: int
    effect: bool
    replayed: bool = False
    tx_id: str | None = None
    at: Instant | None = None


Decide = Callable[[SpaceState], Proposal]  # pure: it runs again on a newer state after a conflict
