"""What a space remembers of its imports, in its protected state: how far each source has come, and who was who.

What lives here: reading and writing that part of `SpaceMeta.extensions`. What must never live here: decisions. What an
import created remembers its source itself (`Origin.sources`); here stands only what no element can remember: that a
source's Concept was found to be one that was here before, and up to which commit of the source everything has come.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from core.model.elements import SourceRef
from core.model.log import SpaceMeta

_STORED: Final = "imports"
MAX_ALIASES: Final = 5_000  # found identities that are remembered; about 300 KB
MAX_SOURCES: Final = 200


class Lineage(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far one source has come: its `space_seq`, the name of that point, the artifact, and who signed it.

    txs: our transactions that imported it; what was written last by one of them has not been changed here since.
    """

    seq: int
    tx: str
    digest: str
    signers: tuple[str, ...] = ()
    txs: tuple[str, ...] = ()


class Imports(msgspec.Struct, frozen=True, omit_defaults=True):
    """A space's imports."""

    sources: dict[str, Lineage] = {}
    aliases: dict[str, str] = {}  # the digest of a SourceRef -> the id of what it was found to be here


def imports_of(meta: SpaceMeta) -> Imports:
    """What the space remembers; nothing where it never imported."""
    stored = meta.extensions.get(_STORED)
    return Imports() if stored is None else msgspec.convert(stored, Imports)


def with_imports(meta: SpaceMeta, imports: Imports) -> dict[str, Any]:
    """The space's extensions with this in them; the oldest is given up beyond the bounds."""
    sources = dict(list(imports.sources.items())[-MAX_SOURCES:])
    aliases = dict(list(imports.aliases.items())[-MAX_ALIASES:])
    return {**meta.extensions, _STORED: msgspec.to_builtins(Imports(sources, aliases))}


def source_name(nexus: str, space: str) -> str:
    """One source space, as a name."""
    return f"{nexus} {space}"


def alias_name(source: SourceRef) -> str:
    """One element of a source, as a short name."""
    told = f"{source.nexus}\x1f{source.space}\x1f{source.element}"
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:32]
