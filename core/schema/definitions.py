"""What a Schema Package defines, as frozen values read from its artifact (KIP §20.5, Schema Packages §32-69).

What lives here: the shapes, and the strict reading of an artifact's JSON into them. What must never live here:
name resolution (`environment`) and the checks (`validate`).

A rule that this engine does not know is refused when the package is read, so that no constraint is ever
accepted and then silently not kept.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal

import msgspec

from core.errors import NoemaError
from core.model.ids import KINDS, Kind

SymbolKind = Literal["type", "predicate", "facet", "structural"]

SYMBOL_WORDS: Final[dict[SymbolKind, str]] = {
    "type": "Concept Type",
    "predicate": "Predicate",
    "facet": "Facet",
    "structural": "Structural Field",
}

VALUE_TYPES: Final = frozenset({
    "string", "number", "integer", "boolean", "null", "array", "object",
    "timestamp", "datetime", "date", "duration", "uri", "json_scalar", "json_object", "json_array", "any",
})  # fmt: skip

_PACKAGE_REF: Final = re.compile(
    r"kip://[a-z0-9-]+(?:/[a-z0-9-]+)*@[0-9]+\.[0-9]+\.[0-9]+(?:[-+][0-9A-Za-z.+-]+)?\Z"
)
_SYMBOL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_RULE_MEMBERS: Final = frozenset({
    "type", "value_type", "required", "nullable", "mutable", "enum", "minimum", "maximum", "min_length",
    "max_length", "pattern", "description", "model_hints",
})  # fmt: skip


class Rule(msgspec.Struct, frozen=True):
    """What one attribute or facet field admits. `types` empty means any JSON value."""

    types: tuple[str, ...] = ()
    required: bool = False
    nullable: bool = False
    mutable: bool = True
    enum: tuple[Any, ...] = ()  # JSON scalars
    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None


class Ends(msgspec.Struct, frozen=True):
    """What may stand at an end of a tuple or of a structural reference; all empty means anything.

    kinds: Core kinds; types: exact Concept Types; literals: scalar types, with `datatype` and value rules of
    their own in `rule`.
    """

    kinds: tuple[Kind, ...] = ()
    types: tuple[str, ...] = ()
    literals: tuple[str, ...] = ()
    rule: Rule | None = None

    @property
    def anything(self) -> bool:
        """Whether nothing is restricted."""
        return not (self.kinds or self.types or self.literals)


class ConceptType(msgspec.Struct, frozen=True):
    """A Concept Type: its attributes, and whether others are allowed (Schema Packages §32-39)."""

    ref: str
    name: str
    open: bool = True
    fields: dict[str, Rule] = {}
    document: dict[str, Any] = {}  # the definition as published


class PredicateType(msgspec.Struct, frozen=True):
    """A Predicate (Schema Packages §41-57). `functional` shapes belief, never what may be stored.

    closed_by: the class of Evidence whose records of a subject are complete (KIP §24.2, Schema Packages §51); None
    where the world is open.
    """

    ref: str
    name: str
    subject: Ends = Ends()
    object: Ends = Ends()
    functional: bool = False
    open_world: bool = True
    complete: bool = False
    closed_by: str | None = None
    document: dict[str, Any] = {}


class Facet(msgspec.Struct, frozen=True):
    """A Facet: validated state beside the Core fields of an element (KIP §18)."""

    ref: str
    name: str
    applicable_to: Ends = Ends()
    closed: bool = True
    fields: dict[str, Rule] = {}
    document: dict[str, Any] = {}


class StructuralField(msgspec.Struct, frozen=True):
    """A Structural Field (KIP §17). `core` marks the six reserved ones, which a kind's own fields hold."""

    ref: str
    name: str
    source: Ends = Ends()
    target: Ends = Ends()
    minimum: int = 0
    maximum: int | None = None
    ordered: bool = False
    unique: bool = True
    core: bool = False
    document: dict[str, Any] = {}


Definition = ConceptType | PredicateType | Facet | StructuralField


class Dependency(msgspec.Struct, frozen=True):
    """Another package that a package needs, by exact reference; the digest is absent only for the Core."""

    ref: str
    digest: str | None = None
    required: bool = True


class Package(msgspec.Struct, frozen=True):
    """One immutable package version, read from its artifact."""

    ref: str
    digest: str
    dependencies: tuple[Dependency, ...]
    types: dict[str, ConceptType]
    predicates: dict[str, PredicateType]
    facets: dict[str, Facet]
    structural: dict[str, StructuralField]
    aliases: dict[SymbolKind, dict[str, str]]
    registries: dict[str, tuple[str, ...]]
    artifact: dict[str, Any]  # the JSON as published

    def table(self, kind: SymbolKind) -> dict[str, Any]:
        """The definitions of one kind of symbol, by local name."""
        tables: dict[SymbolKind, dict[str, Any]] = {
            "type": self.types,
            "predicate": self.predicates,
            "facet": self.facets,
            "structural": self.structural,
        }
        return tables[kind]


def split_ref(ref: str) -> tuple[str, str] | None:
    """`kip://a/b@1.0.0/Name` -> (`kip://a/b@1.0.0`, `Name`); None if it is not an exact symbol reference."""
    package, _, symbol = ref.rpartition("/")
    if _PACKAGE_REF.match(package) is None or _SYMBOL.match(symbol) is None:
        return None
    return package, symbol


def is_package_ref(text: str) -> bool:
    """Whether `text` names one exact package version (KIP §20.2)."""
    return _PACKAGE_REF.match(text) is not None


# --- reading an artifact


def read_package(artifact: dict[str, Any], digest: str) -> Package:
    """The package an artifact describes; its digest was computed by the caller.

    Raises:
        NoemaError: ArtifactParseError, with the place of the mistake in `details.at`.
    """
    if artifact.get("format") != "KIP-Schema-Package":
        raise _malformed("format", "must be KIP-Schema-Package")
    manifest = _object(artifact, "manifest", "manifest")
    ref = f"{manifest.get('package_id')}@{manifest.get('version')}"
    if _PACKAGE_REF.match(ref) is None or manifest.get("package_ref", ref) != ref:
        raise _malformed("manifest", "package_id and version must form the exact package reference")
    if manifest.get("executable"):
        raise _malformed("manifest.executable", "a package is never executable")
    definitions = _object(artifact, "definitions", "definitions")
    return Package(
        ref=ref,
        digest=digest,
        dependencies=tuple(_dependency(item) for item in artifact.get("dependencies") or ()),
        types={n: _concept_type(ref, n, d) for n, d in _members(definitions, "concept_types")},
        predicates={n: _predicate(ref, n, d) for n, d in _members(definitions, "predicates")},
        facets={n: _facet(ref, n, d) for n, d in _members(definitions, "facets")},
        structural={n: _structural(ref, n, d) for n, d in _members(definitions, "structural_fields")},
        aliases=_aliases(artifact.get("aliases") or {}),
        registries={
            name: tuple(item["values"])
            for name, item in (definitions.get("registry_extensions") or {}).items()
            if isinstance(item, dict) and isinstance(item.get("values"), list)
        },
        artifact=artifact,
    )


def _malformed(at: str, problem: str) -> NoemaError:
    return NoemaError("ArtifactParseError", f"the package's {at} {problem}", details={"at": at})


def _object(holder: dict[str, Any], name: str, at: str) -> dict[str, Any]:
    value = holder.get(name)
    if not isinstance(value, dict):
        raise _malformed(at, "must be an object")
    return value


def _members(definitions: dict[str, Any], table: str) -> list[tuple[str, dict[str, Any]]]:
    members = definitions.get(table) or {}
    if not isinstance(members, dict):
        raise _malformed(f"definitions.{table}", "must be an object")
    for name, definition in members.items():
        if _SYMBOL.match(name) is None or not isinstance(definition, dict):
            raise _malformed(f"definitions.{table}.{name}", "must be a named definition")
    return list(members.items())


def _symbol_ref(package: str, name: str, definition: dict[str, Any]) -> str:
    ref = f"{package}/{name}"
    if definition.get("ref", ref) != ref:
        raise _malformed(f"definition {name}", f"must have the reference {ref}")
    return ref


def _dependency(item: dict[str, Any]) -> Dependency:
    ref = item.get("package_ref") or f"{item.get('package_id')}@{item.get('version')}"
    if not isinstance(ref, str) or _PACKAGE_REF.match(ref) is None:
        raise _malformed("dependencies", "must name exact package versions")
    return Dependency(ref, item.get("digest"), bool(item.get("required", True)))


def _rules(fields: Any, at: str) -> dict[str, Rule]:  # JSON
    if not isinstance(fields, dict):
        raise _malformed(at, "must be an object of field rules")
    return {name: _rule(rule, f"{at}.{name}") for name, rule in fields.items()}


def _rule(rule: Any, at: str) -> Rule:  # JSON
    if not isinstance(rule, dict):
        raise _malformed(at, "must be a field rule")
    unknown = sorted(set(rule) - _RULE_MEMBERS)
    if unknown:
        raise _malformed(at, f"has a rule this engine does not keep: {', '.join(unknown)}")
    stated = rule.get("type", rule.get("value_type")) or ()
    types = (stated,) if isinstance(stated, str) else tuple(str(name) for name in stated)
    if not set(types) <= VALUE_TYPES:
        raise _malformed(at, f"has an unknown type: {', '.join(sorted(set(types) - VALUE_TYPES))}")
    if not isinstance(rule.get("enum", []), list):
        raise _malformed(at, "has an enum that is not an array of values")
    pattern = rule.get("pattern")
    if pattern is not None:
        try:
            re.compile(pattern)
        except (re.error, TypeError) as error:
            raise _malformed(at, "has a pattern that is not a regular expression") from error
    return Rule(
        types=tuple(kind for kind in types if kind != "null"),
        required=bool(rule.get("required", False)),
        nullable="null" in types or bool(rule.get("nullable", False)),
        mutable=bool(rule.get("mutable", True)),
        enum=tuple(rule.get("enum") or ()),
        minimum=rule.get("minimum"),
        maximum=rule.get("maximum"),
        min_length=rule.get("min_length"),
        max_length=rule.get("max_length"),
        pattern=pattern,
    )


def _ends(value: Any, at: str) -> Ends:  # JSON
    if value is None:
        return Ends()
    if not isinstance(value, dict):
        raise _malformed(at, "must be an object")
    kinds = tuple(str(kind).lower() for kind in value.get("kinds") or ())
    if not set(kinds) <= set(KINDS):
        raise _malformed(at, "names a kind that is not one of KIP's five")
    literals = tuple(value.get("literal_types") or ())
    return Ends(
        kinds=kinds,  # type: ignore[arg-type]  # checked to be kinds just above
        types=tuple(value.get("concept_types") or ()),
        literals=literals,
        rule=_rule(value["literal"], f"{at}.literal") if "literal" in value else None,
    )


def _concept_type(package: str, name: str, definition: dict[str, Any]) -> ConceptType:
    attributes = definition.get("attributes") or {}
    return ConceptType(
        ref=_symbol_ref(package, name, definition),
        name=name,
        open=bool(attributes.get("open", True)),
        fields=_rules(attributes.get("fields") or {}, f"{name}.attributes"),
        document=definition,
    )


def _predicate(package: str, name: str, definition: dict[str, Any]) -> PredicateType:
    return PredicateType(
        ref=_symbol_ref(package, name, definition),
        name=name,
        subject=_ends(definition.get("subject"), f"{name}.subject"),
        object=_ends(definition.get("object"), f"{name}.object"),
        functional=bool(definition.get("functional", False)),
        open_world=bool(definition.get("open_world", True)),
        complete=bool(definition.get("complete", False)),
        closed_by=_closing(definition, f"{name}.closed_world"),
        document=definition,
    )


def _closing(definition: dict[str, Any], at: str) -> str | None:
    """What closes the world of a predicate: declared as such, and by Evidence that is named (Schema Packages §51)."""
    declared = definition.get("closed_world")
    if declared is None:
        return None
    if not isinstance(declared, dict) or set(declared) != {"evidence_class"}:
        raise _malformed(at, "must name an evidence_class and nothing else")
    name = declared["evidence_class"]
    if not isinstance(name, str) or not name:
        raise _malformed(at, "must name an evidence_class")
    if definition.get("open_world") is not False:
        raise _malformed(at, "contradicts open_world, which must be false beside it")
    return name


def _facet(package: str, name: str, definition: dict[str, Any]) -> Facet:
    return Facet(
        ref=_symbol_ref(package, name, definition),
        name=name,
        applicable_to=_ends(definition.get("applicable_to"), f"{name}.applicable_to"),
        closed=bool(definition.get("closed", True)),
        fields=_rules(definition.get("fields") or {}, f"{name}.fields"),
        document=definition,
    )


def _structural(package: str, name: str, definition: dict[str, Any]) -> StructuralField:
    cardinality = definition.get("cardinality") or {}
    return StructuralField(
        ref=_symbol_ref(package, name, definition),
        name=name,
        source=_ends(definition.get("source"), f"{name}.source"),
        target=_ends(definition.get("target"), f"{name}.target"),
        minimum=int(cardinality.get("min") or 0),
        maximum=cardinality.get("max"),
        ordered=bool(definition.get("ordered", False)),
        unique=bool(definition.get("unique", True)),
        document=definition,
    )


def _aliases(aliases: dict[str, Any]) -> dict[SymbolKind, dict[str, str]]:
    tables: dict[str, SymbolKind] = {
        "concept_types": "type",
        "predicates": "predicate",
        "facets": "facet",
        "structural_fields": "structural",
    }
    out: dict[SymbolKind, dict[str, str]] = {}
    for table, kind in tables.items():
        out[kind] = dict(aliases.get(table) or {})
        for name, ref in out[kind].items():
            if _SYMBOL.match(name) is None or split_ref(ref) is None:
                raise _malformed(f"aliases.{table}.{name}", "must name an exact symbol")
    return out
