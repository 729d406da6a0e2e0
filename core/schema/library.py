"""The packages that ship with the engine, and the verification every package passes (KIP §20.11, §20.13).

What lives here: reading the package files that are part of this distribution (the one read of its own data that
`core` does, once per process), the digest check, and the virtual Core package. What must never live here: what
is active in a space (`environment`).
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, Final

from core.errors import NoemaError
from core.model.ids import KINDS, Kind
from core.protocol.canonical import PROFILE, digest_of
from core.schema.definitions import Ends, Package, StructuralField, read_package

CORE_REF: Final = "kip://core@2.0.0"
PROFILE_REF: Final = "kip://profiles/cognitive-memory@2.0.0"
NOEMA_REF: Final = "kip://noema/memory@1.0.0"
FACTS_REF: Final = "kip://noema/fact-memory@1.0.0"

DEFAULT_PACKAGES: Final = (PROFILE_REF, NOEMA_REF, FACTS_REF)
"""What is active in every new space, besides the Core."""

ANY_KIND: Final = Ends(kinds=KINDS)

_CORE_FIELDS: Final[tuple[tuple[str, Kind, Ends, int | None, str], ...]] = (
    ("evidence", "assertion", Ends(kinds=("evidence",)), None, "Evidence an Assertion cites, by role."),
    ("source", "evidence", Ends(kinds=("concept", "evidence")), None, "Where Evidence came from."),
    ("generated_by", "evidence", Ends(kinds=("activity",)), 1, "The Activity that made the Evidence."),
    ("inputs", "activity", ANY_KIND, None, "What an Activity used."),
    ("outputs", "activity", ANY_KIND, None, "What an Activity produced or changed."),
    ("associated_actors", "activity", Ends(kinds=("concept",)), None, "Who took part; no authority."),
)

CORE_STRUCTURAL: Final[dict[str, StructuralField]] = {
    name: StructuralField(
        ref=f"{CORE_REF}/{name}",
        name=name,
        source=Ends(kinds=(source,)),
        target=target,
        maximum=maximum,
        unique=True,
        core=True,
        document={"description": description},
    )
    for name, source, target, maximum, description in _CORE_FIELDS
}
"""The reserved Core structural fields (KIP §20.13), by local name."""

CORE_SYMBOLS: Final = frozenset({kind.capitalize() for kind in KINDS} | set(CORE_STRUCTURAL))
"""Names that no package may define or alias (KIP §20.13)."""


def load_package(artifact: dict[str, Any]) -> Package:
    """Verify an artifact and read it: digest, format, reserved names (KIP §20.11).

    Raises:
        NoemaError: DigestMismatch, ArtifactParseError, or ProtectedSchemaState for a shadowed Core symbol.
    """
    digest = digest_of({name: value for name, value in artifact.items() if name != "integrity"})
    integrity = artifact.get("integrity")
    if isinstance(integrity, dict):
        claimed = integrity.get("content_digest")
        if integrity.get("digest_profile", PROFILE) != PROFILE:
            raise NoemaError(
                "UnsupportedCapability", f"the digest profile {integrity['digest_profile']} is not known here"
            )
        if claimed != digest:
            raise NoemaError(
                "DigestMismatch",
                "the package's content is not what its digest names",
                details={"expected": str(claimed), "actual": digest},
            )
    package = read_package(artifact, digest)
    names = {
        name
        for table in (package.types, package.predicates, package.facets, package.structural)
        for name in table
    }
    shadowed = CORE_SYMBOLS & (names | {name for table in package.aliases.values() for name in table})
    if shadowed or package.ref.startswith("kip://core@"):
        raise NoemaError(
            "ProtectedSchemaState",
            f"{package.ref} would shadow reserved Core symbols: {', '.join(sorted(shadowed)) or 'the package'}",
        )
    return package


@cache
def builtin() -> dict[str, Package]:
    """The packages of this distribution by exact reference; verified when first asked for."""
    found: dict[str, Package] = {}
    for entry in resources.files("core.schema").joinpath("packages").iterdir():
        if entry.name.endswith(".json"):
            package = load_package(json.loads(entry.read_text("utf-8")))
            found[package.ref] = package
    return found
