"""What a KIP 1.x graph gives us, and what its owner tells us about it.

What lives here: the shapes of 1.x records (a concept node and a proposition link, as 1.x returns them), and the
request. What must never live here: what they become in KIP 2.0 (`fields`, `write`).
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from core.errors import NoemaError
from core.model.elements import Json

MAX_RECORDS: Final = 1000
"""Of one request; a larger graph goes in pages, concepts before the links between them."""

SCHEMA_TYPES: Final = frozenset({"$ConceptType", "$PropositionType"})
"""1.x kept its schema as nodes of these types. In 2.0 a schema is a package, and no node is one."""

ConfidenceMeaning = Literal["truth", "strength", "unknown"]


class LegacyConcept(msgspec.Struct, frozen=True):
    """A concept node of 1.x: its identity is the pair of type and name."""

    type: str
    name: str
    id: str | None = None
    attributes: dict[str, Json] = {}
    metadata: dict[str, Json] = {}

    @property
    def label(self) -> str:
        """`Type:name`, which in 1.x is unique."""
        return f"{self.type}:{self.name}"


class LegacyLink(msgspec.Struct, frozen=True):
    """A proposition link of 1.x. An end is an element's id, `Type:name`, or one of the objects below.

    `{"id": ...}`; `{"type": ..., "name": ...}`; `{"subject": ..., "predicate": ..., "object": ...}` for another link;
    and, for objects, `{"value": ...}` or a bare number or boolean. A bare string is always a reference: that it
    might be a text would be a guess.
    """

    subject: Json
    predicate: str
    object: Json
    id: str | None = None
    attributes: dict[str, Json] = {}
    metadata: dict[str, Json] = {}


class MigrationInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One page of a migration.

    source: a name for the old graph, the same in every page; it keeps what came from it apart.
    source_version: what the old engine called itself. confidence: what `metadata.confidence` meant there: how much
    the statement was believed ("truth"), how easily it came to mind ("strength"), or nobody knows ("unknown").
    A record whose confidence is marked as decayed is taken as unknown in any case. access_levels: the
    classification each old access level stands for, where it is not the word itself. dry_run: say what would be
    done, and do nothing.
    """

    source: str
    source_version: str = "1.x"
    concepts: list[LegacyConcept] = []
    propositions: list[LegacyLink] = []
    confidence: ConfidenceMeaning = "truth"
    access_levels: dict[str, str] = {}
    dry_run: bool = False


def check_input(body: MigrationInput) -> MigrationInput:
    """Refuse what cannot be a page of a migration.

    Raises:
        NoemaError: InvalidInput, with the member; PayloadTooLarge for too many records.
    """
    if not 1 <= len(body.source) <= 40 or not set(body.source) <= _SOURCE or body.source[0] == "-":
        raise NoemaError(
            "InvalidInput",
            "source must be 1 to 40 lower-case letters, digits and hyphens",
            details={"member": "source"},
        )
    if len(body.concepts) + len(body.propositions) > MAX_RECORDS:
        raise NoemaError(
            "PayloadTooLarge",
            f"a page takes at most {MAX_RECORDS} records",
            hint="Send the concepts in pages first, then the propositions.",
            details={"limit": MAX_RECORDS},
        )
    for place, concept in enumerate(body.concepts):
        if not concept.type.strip() or not concept.name.strip():
            raise NoemaError(
                "InvalidInput",
                "a concept of KIP 1.x has a type and a name",
                details={"member": f"concepts[{place}]"},
            )
    for place, link in enumerate(body.propositions):
        if not link.predicate.strip():
            raise NoemaError(
                "InvalidInput", "a proposition has a predicate", details={"member": f"propositions[{place}]"}
            )
    return body


_SOURCE: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
