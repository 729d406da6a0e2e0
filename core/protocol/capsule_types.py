"""What a host asks of Capsules: values that a transport reads and `core.capsule` and `core.service` act on.

What lives here: the wishes, light to import. What must never live here: what a Capsule is (`core.capsule.format`).
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

ImportMode = Literal["merge", "isolate", "restore"]


class ExportAsk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a host wants exported of a space.

    since_seq: a delta of the commits after it; None for a snapshot of the whole space.
    as_of_seq: the snapshot's point; None for now. without: classifications that are withheld as redacted.
    """

    since_seq: Annotated[int, Meta(ge=0)] | None = None
    as_of_seq: Annotated[int, Meta(ge=0)] | None = None
    include_schema: bool = False
    include_blobs: bool = True
    sign: bool = True
    without: tuple[str, ...] = ()


class ImportWish(msgspec.Struct, frozen=True, kw_only=True):
    """What an importer asks for. Everything here is part of the plan's digest.

    mappings: local refs (of records or ExternalRefs) -> ids here, approved by whoever imports.
    trust_canonical_ids: whether `canonical_id`s of this Capsule may say who is who; needs a permission of its own.
    partial: leave out what cannot be resolved; otherwise the import is all or nothing.
    lifecycle: whether a delta's archivals and deletions are followed; never as erasure.
    """

    mode: ImportMode = "merge"
    mappings: dict[str, str] = {}
    trust_canonical_ids: bool = False
    partial: bool = False
    lifecycle: Literal["ignore", "follow"] = "ignore"


class RestoreAsk(msgspec.Struct, frozen=True, kw_only=True):
    """How to restore.

    owner: whose the new space is. tier: its size class; None keeps the backup's.
    accept_unsigned: the operator's word that this is the brain's own backup, in place of a signature.
    activate_schema: put the packages that came along into force in the new space.
    """

    owner: str
    tier: int | None = None
    accept_unsigned: bool = False
    activate_schema: bool = False
