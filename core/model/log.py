"""The log's values: what a space is configured to be, what one commit did, and where the log stands.

A space is the fold of its log: `SpaceState` = `Delta` after `Delta`. A delta holds **after-images** (whole
elements as the commit left them), so replay needs no engine and old deltas never depend on new code.
Bytes and keys are `core.storage`'s business.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from core.model.elements import AnyElement, Json, Origin
from core.model.instants import Instant

TransactionClass = Literal["cognitive", "management", "import", "maintenance", "erasure"]


class Tier(msgspec.Struct, frozen=True):
    """A space's size class: it admits `10 ** (tier + 2)` Concepts or conversations (Anda Brain §1.5)."""

    tier: int
    updated_at: Instant

    @property
    def limit(self) -> int:
        """How many nodes this tier admits."""
        return int(10 ** (self.tier + 2))


class SchemaEnvironment(msgspec.Struct, frozen=True):
    """The exact package versions in force in a space, and a counter that moves when they change (KIP §20.8)."""

    version: int
    packages: tuple[str, ...]  # exact references, e.g. kip://profiles/cognitive-memory@2.0.0
    aliases: dict[str, str] = {}  # local name -> exact symbol reference, where a default was chosen


class SpaceMeta(msgspec.Struct, frozen=True, omit_defaults=True):
    """Protected state of one space, on the same log as its memory. No KML clause reaches it (KIP §5.6, §20.8).

    `instance` tells one life of a space id from the next; `salt` goes into every id the space mints.
    """

    space_id: str
    instance: str
    salt: str
    owner: str
    created_at: Instant
    tier: Tier
    schema: SchemaEnvironment
    name: str | None = None
    description: str | None = None
    public: bool = False
    self_identity: str | None = None
    memory_policy: dict[str, Json] = {}
    extensions: dict[str, Json] = {}


class Delta(msgspec.Struct, frozen=True, array_like=True):
    """One commit: its place in the order, who made it, and every element as it left them.

    `ver` counts commits of any class; `seq` is the KIP `space_seq` after it, which only changes of memory or schema
    move (KIP §32.8). `gone` names elements that no longer exist at all, not even as a stub.
    `record` holds the Commit Record's digests and summaries (KIP §33.1). `meta` is the protected state as
    this commit left it, or None where it did not change.
    """

    ver: int
    seq: int
    snapshot_seq: int
    tx_id: str
    at: Instant
    origin: Origin
    transaction_class: TransactionClass
    puts: tuple[AnyElement, ...] = ()
    gone: tuple[str, ...] = ()
    meta: SpaceMeta | None = None
    record: dict[str, Any] = {}  # JSON values; the keys are KIP §33.1's


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a change summary: which element, what happened to it, its version after (KIP §36.1)."""

    id: str
    op: Literal["created", "updated", "purged"]
    version: int
