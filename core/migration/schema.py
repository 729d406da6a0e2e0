"""The compatibility package of a migration: types and predicates that no active package has (KIP §103.4).

What lives here: which 1.x symbols are the profile's and which need a definition of their own, and the package that
defines them. What must never live here: elements. A package version is immutable, so symbols that turn up later go
into the next version, which holds those alone; every version stays active, and each symbol is in exactly one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from core.errors import NoemaError
from core.model.elements import Json
from core.model.ids import Kind
from core.model.log import SpaceMeta
from core.schema.definitions import ConceptType, Definition, PredicateType, SymbolKind
from core.schema.environment import Environment, environment_of, install_package, set_active_packages
from core.schema.validate import admits, check_value

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,55}\Z")
_LEGACY: Final = "kip://legacy/"
End = tuple[Kind, str | None]
"""One end of a Proposition: its kind and, for a Concept, its type."""
_ANYTHING: Final[dict[str, Json]] = {"kinds": ["Concept", "Proposition"]}
_FIELD: Final[dict[str, Json]] = {"required": False, "mutable": False}

LEGACY_FACET: Final = "LegacyKIP1"
MIGRATION_FACET: Final = "LegacyMigration"
IMPORTER: Final = "LegacyNexus"


def package_id(source: str) -> str:
    """The compatibility package of a source."""
    return f"{_LEGACY}{source}"


def symbol_name(name: str) -> str:
    """A 1.x name as a symbol of a package: what a symbol may not contain becomes an underscore."""
    if _NAME.match(name):
        return name
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)[:50]
    return plain if plain[:1].isalpha() else f"x_{plain}"


class Symbols:
    """What 1.x names mean in a space: another package's symbol where it fits, else one of the source's own package.

    An own symbol that another active package has too is spelt `LegacyX` or `legacy_x`, so that no name of the space
    becomes ambiguous by a migration.

    Args:
        meta: the space's protected state.
        source: the old graph's name.
    """

    def __init__(self, meta: SpaceMeta, source: str) -> None:
        self._meta = meta
        self._source = source
        self._env: Environment = environment_of(meta)
        prefix = f"{package_id(source)}@"
        self._versions = [ref for ref in self._env.active if ref.startswith(prefix)]
        self._next = f"{prefix}1.0.{len(self._versions)}"
        self._base = self._versions[0] if self._versions else self._next
        self._types: dict[str, None] = {}
        self._predicates: dict[str, None] = {}

    def facet(self, name: str) -> str:
        """The exact reference of one of the package's own facets."""
        return f"{self._base}/{name}"

    @property
    def mnemonic(self) -> str | None:
        """The profile's facet of how well a Concept is remembered, if the profile is in force."""
        found = self._shared("facet", "MnemonicState")
        return None if found is None else found.ref

    @property
    def importer(self) -> str:
        """The type of the Concept that stands for the old graph as a whole."""
        return f"{self._base}/{IMPORTER}"

    def type(self, name: str, attributes: Mapping[str, Json]) -> tuple[str, dict[str, Json]]:
        """The Concept Type of a 1.x type, and those of a node's attributes that it does not admit.

        A node without an attribute that a shared type requires gets a type of the source's own.
        """
        symbol = symbol_name(name)
        shared = self._shared("type", symbol)
        if isinstance(shared, ConceptType):
            misfits = _misfits(shared, attributes)
            if all(field in attributes and field not in misfits for field in _required(shared)):
                return shared.ref, misfits
        return self._own("type", symbol, f"Legacy{symbol}" if shared is not None else symbol), {}

    def predicate(self, name: str, subject: End, obj: End | None) -> str:
        """The Predicate of a 1.x predicate between two ends; an object of None is a literal."""
        symbol = symbol_name(name)
        shared = self._shared("predicate", symbol)
        if (
            isinstance(shared, PredicateType)
            and obj is not None
            and admits(shared.subject, *subject)
            and admits(shared.object, *obj)
        ):
            return shared.ref
        return self._own("predicate", symbol, f"legacy_{symbol}" if shared is not None else symbol)

    def refs(self, kind: SymbolKind, name: str) -> list[str]:
        """Every exact reference that a 1.x name may have been given so far."""
        symbol = symbol_name(name)
        shared = self._shared(kind, symbol)
        pending = self._types if kind == "type" else self._predicates
        out = [] if shared is None else [shared.ref]
        for spelling in (symbol, f"Legacy{symbol}" if kind == "type" else f"legacy_{symbol}"):
            out += [
                f"{ref}/{spelling}" for ref in self._versions if spelling in self._env.active[ref].table(kind)
            ]
            out += [f"{self._next}/{spelling}"] if spelling in pending else []
        return out

    def published(self) -> str | None:
        """The package version these records need, if that is a new one."""
        return self._next if self._types or self._predicates or not self._versions else None

    def finish(self) -> SpaceMeta:
        """The space's protected state with that version installed and active."""
        if self.published() is None:
            return self._meta
        artifact = _artifact(
            self._source, self._next, list(self._types), list(self._predicates), first=not self._versions
        )
        installed = install_package(self._meta, artifact)
        return set_active_packages(installed, (*self._meta.schema.packages, self._next))

    def _own(self, kind: SymbolKind, symbol: str, spelling: str) -> str:
        for ref in self._versions:
            for name in (spelling, symbol):
                if name in self._env.active[ref].table(kind):
                    return f"{ref}/{name}"
        (self._types if kind == "type" else self._predicates)[spelling] = None
        return f"{self._next}/{spelling}"

    def _shared(self, kind: SymbolKind, symbol: str) -> Definition | None:
        """The definition of another active package, if the name is clear and the package is no migration's."""
        refs = [ref for ref in self._env.names(kind).get(symbol, ()) if not ref.startswith(_LEGACY)]
        return self._env.known(kind, refs[0]) if len(refs) == 1 else None


def _misfits(definition: ConceptType, attributes: Mapping[str, Json]) -> dict[str, Json]:
    """The attributes that a type's rules refuse, each judged alone."""
    out: dict[str, Json] = {}
    for name, value in attributes.items():
        rule = definition.fields.get(name)
        try:
            if rule is not None:
                check_value(value, rule, name)
            elif not definition.open:
                out[name] = value
        except NoemaError:
            out[name] = value
    return out


def _required(definition: ConceptType) -> list[str]:
    return [name for name, rule in definition.fields.items() if rule.required]


def _artifact(
    source: str, ref: str, types: list[str], predicates: list[str], *, first: bool
) -> dict[str, Json]:
    used = f"as the KIP 1.x graph {source} used it."
    described = {name: f"{name}, {used}" for name in types}
    if first:
        described[IMPORTER] = (
            "A KIP 1.x graph as a whole: the asserter of what nobody in it can be shown to have said."
        )
    return {
        "format": "KIP-Schema-Package",
        "format_version": "2.0-draft",
        "manifest": {
            "package_id": package_id(source),
            "version": ref.rpartition("@")[2],
            "package_ref": ref,
            "name": f"Legacy symbols of {source}",
            "description": "Types and predicates taken over from a KIP 1.x graph, and what could not be mapped.",
            "publisher": "urn:noema:migration",
            "purpose": "compatibility",
            "stability": "stable",
            "executable": False,
        },
        "dependencies": [],
        "definitions": {
            "concept_types": {name: _concept_type(f"{ref}/{name}", said) for name, said in described.items()},
            "predicates": {name: _predicate(f"{ref}/{name}", f"{name}, {used}") for name in predicates},
            "facets": _facets(ref) if first else {},
        },
    }


def _concept_type(ref: str, description: str) -> dict[str, Json]:
    return {
        "ref": ref,
        "kind": "ConceptType",
        "description": description,
        "attributes": {"open": True, "fields": {}},
    }


def _predicate(ref: str, description: str) -> dict[str, Json]:
    return {
        "ref": ref,
        "kind": "PredicateType",
        "description": description,
        "subject": _ANYTHING,
        "object": {**_ANYTHING, "literal_types": ["string", "number", "boolean"]},
        "functional": False,
        "open_world": True,
        "complete": False,
    }


def _facets(ref: str) -> dict[str, Json]:
    def field(kind: str, description: str) -> dict[str, Json]:
        return {**_FIELD, "type": kind, "description": description}

    return {
        LEGACY_FACET: {
            "ref": f"{ref}/{LEGACY_FACET}",
            "kind": "FacetDefinition",
            "description": "What a KIP 1.x record said that has no sure place here, as it was. It decides nothing.",
            "closed": True,
            "applicable_to": {"kinds": ["Concept", "Proposition", "Assertion", "Evidence"]},
            "fields": {
                "source": field("string", "The old graph."),
                "id": field("string", "The record's id there, or Type:name."),
                "type": field("string", "Its type there, where that is another here."),
                "metadata": field("object", "Metadata that was not mapped, or not for sure."),
                "attributes": field("object", "Attributes that do not fit."),
                "engine": field("object", "What the old engine kept: versions, times, merges."),
                "doubts": field("array", "Classes of what was not clear."),
            },
        },
        MIGRATION_FACET: {
            "ref": f"{ref}/{MIGRATION_FACET}",
            "kind": "FacetDefinition",
            "description": "How a page of a KIP 1.x graph was taken over.",
            "closed": True,
            "applicable_to": {"kinds": ["Activity"]},
            "fields": {
                "source": field("string", "The old graph."),
                "source_version": field("string", "What its engine called itself."),
                "mapping": field("string", "The mapping, with its version."),
                "snapshot_digest": field("string", "Of the page's records, in canonical JSON."),
                "warnings_digest": field("string", "Of the report's warnings, in canonical JSON."),
                "counts": field("object", "What became of the records."),
            },
        },
    }
