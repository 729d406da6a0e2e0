"""The schema as META shows it: packages, symbols, environments, and what changed between versions (KIP §65).

What lives here: definitions as JSON with their exact identity, whatever name they were asked by. What must never
live here: resolution (`core.schema.environment`) and anything that installs or activates: looking never changes
what is in force.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.language.ast_meta import Describe, ListStatement
from core.meta.operands import coordinates, optional_text, past_scope, state_at, text_of
from core.meta.paging import page_of
from core.model.elements import Json
from core.protocol.canonical import digest_of
from core.schema.definitions import (
    SYMBOL_WORDS,
    ConceptType,
    Definition,
    Ends,
    Facet,
    Package,
    PredicateType,
    Rule,
    StructuralField,
    SymbolKind,
)
from core.schema.environment import Environment
from core.schema.library import CORE_REF, CORE_STRUCTURAL, CORE_SYMBOLS
from core.transaction.scope import Answer, Scope

_USUAL, _MOST = 100, 1_000

_KINDS: Final[dict[str, SymbolKind]] = {
    "TYPE": "type", "PREDICATE": "predicate", "FACET": "facet", "STRUCTURAL FIELD": "structural",
    "TYPES": "type", "PREDICATES": "predicate", "FACETS": "facet", "STRUCTURAL FIELDS": "structural",
}  # fmt: skip
_REF_NAMES: Final[dict[SymbolKind, str]] = {
    "type": "schema_ref", "predicate": "predicate_ref", "facet": "facet_ref", "structural": "field_ref",
}  # fmt: skip


# --- symbols


def symbol(statement: Describe, scope: Scope) -> Answer:
    """DESCRIBE TYPE, PREDICATE, FACET and STRUCTURAL FIELD, by local name or exact reference.

    Raises:
        NoemaError: SchemaSymbolNotFound, SchemaSymbolAmbiguous, SchemaPackageUnavailable.
    """
    kind = _KINDS[statement.topic]
    name = text_of(statement.subject, f"DESCRIBE {statement.topic}")
    definition = scope.env.structural(name) if kind == "structural" else scope.env.resolve(kind, name)
    return Answer(value=describe(definition, scope.env), context=coordinates(scope))


def symbols(statement: ListStatement, scope: Scope) -> Answer:
    """LIST TYPES, PREDICATES, FACETS and STRUCTURAL FIELDS: what may be written now, by local name."""
    kind = _KINDS[statement.topic]
    return _paged(statement, scope, sorted_symbols(kind, scope.env), lambda found: brief(found, scope.env))


def sorted_symbols(kind: SymbolKind, env: Environment) -> list[Definition]:
    """The definitions in force, by local name; the Core's structural fields first."""
    own = sorted(env.definitions(kind), key=lambda found: (found.name, found.ref))
    return [*CORE_STRUCTURAL.values(), *own] if kind == "structural" else own


def _paged[T](
    statement: ListStatement, scope: Scope, found: list[T], row: Callable[[T], dict[str, Json]]
) -> Answer:
    """A page of a list under the schema environment of its first page."""
    page = page_of("list", statement, scope, usual=_USUAL, most=_MOST)
    if page.at and page.at["n"] != scope.env.version:
        raise NoemaError("CursorInvalidated", "the schema environment has changed since the first page")
    start = int(page.at.get("o", 0))
    end = start + page.size
    more = page.size > 0 and end < len(found)
    return Answer(
        value=[row(each) for each in found[start:end]],
        context=coordinates(scope),
        next_cursor=page.cursor(o=end, n=scope.env.version) if more else None,
    )


def kind_of_definition(definition: Definition) -> SymbolKind:
    """Which kind of symbol a definition is of."""
    if isinstance(definition, ConceptType):
        return "type"
    if isinstance(definition, PredicateType):
        return "predicate"
    return "facet" if isinstance(definition, Facet) else "structural"


def brief(definition: Definition, env: Environment) -> dict[str, Json]:
    """A symbol in a list: its exact identity and what tells it from its neighbours."""
    kind = kind_of_definition(definition)
    row: dict[str, Json] = {
        _REF_NAMES[kind]: definition.ref,
        "local_name": definition.name,
        "package": definition.ref.rpartition("/")[0],
        "description": str(definition.document.get("description", "")),
        "aliases": _aliases(kind, definition, env),
    }
    unclear = [name for name in (definition.name, *row["aliases"]) if len(env.names(kind).get(name, ())) > 1]
    if unclear:
        row["ambiguous"] = unclear  # these names mean nothing here: use the exact reference
    if isinstance(definition, PredicateType):
        row.update(subject=_ends(definition.subject), object=_ends(definition.object))
        row["functional"] = definition.functional
    elif isinstance(definition, Facet):
        row["applicable_to"] = _ends(definition.applicable_to)
    elif isinstance(definition, StructuralField):
        row.update(source=_ends(definition.source), target=_ends(definition.target))
    return row


def describe(definition: Definition, env: Environment) -> dict[str, Json]:
    """A symbol in full: exact identity, constraints, what may be written and what may be changed."""
    kind = kind_of_definition(definition)
    package_ref = definition.ref.rpartition("/")[0]
    value: dict[str, Json] = {
        "symbol_kind": SYMBOL_WORDS[kind],
        **brief(definition, env),
        "package": _identity(package_ref, env),
        "writable": package_ref in env.active or package_ref == CORE_REF,
    }
    hints = definition.document.get("model_hints")
    if hints:
        value["model_hints"] = hints
    if isinstance(definition, ConceptType):
        value["attributes"] = {"open": definition.open, "fields": _rules(definition.fields)}
        value["identity"] = ["id", "key (unique within the type)", "canonical_id"]
        value["facets"] = [f.ref for f in _facets_of(definition, env)]
        value["structural_fields"] = [f.ref for f in _structural_of(definition, env)]
    elif isinstance(definition, PredicateType):
        value.update(open_world=definition.open_world, complete=definition.complete)
        if definition.closed_by is not None:
            value["closed_world"] = {"evidence_class": definition.closed_by}
        value["note"] = "What may be said, not what is believed: FIND with BELIEF answers that."
    elif isinstance(definition, Facet):
        value.update(closed=definition.closed, fields=_rules(definition.fields))
    else:
        cardinality = {"min": definition.minimum, "max": definition.maximum}
        value.update(cardinality=cardinality, ordered=definition.ordered, unique=definition.unique)
        value["core"] = definition.core
        value["note"] = "Record topology, not a Predicate: it says nothing that can be believed."
    return value


def _facets_of(definition: ConceptType, env: Environment) -> Iterator[Definition]:
    for found in env.definitions("facet"):
        if isinstance(found, Facet) and _admits(found.applicable_to, definition):
            yield found


def _structural_of(definition: ConceptType, env: Environment) -> Iterator[Definition]:
    for found in env.definitions("structural"):
        if isinstance(found, StructuralField) and _admits(found.source, definition):
            yield found


def _admits(ends: Ends, definition: ConceptType) -> bool:
    """Whether a Concept of a type may stand at an end."""
    if ends.types:
        return definition.ref in ends.types or definition.name in ends.types
    return not ends.kinds or "concept" in ends.kinds


def _aliases(kind: SymbolKind, definition: Definition, env: Environment) -> list[str]:
    return sorted(
        name for name, refs in env.names(kind).items() if definition.ref in refs and name != definition.name
    )


def _rules(fields: dict[str, Rule]) -> dict[str, Json]:
    return {name: _rule(rule) for name, rule in fields.items()}


def _rule(rule: Rule) -> dict[str, Json]:
    """What a field admits; what does not restrict it is left out, except what every writer must know."""
    out: dict[str, Json] = {
        "type": list(rule.types) or ["any"],
        "required": rule.required,
        "nullable": rule.nullable,
        "mutable": rule.mutable,
    }
    for name in ("minimum", "maximum", "min_length", "max_length", "pattern"):
        value = getattr(rule, name)
        if value is not None:
            out[name] = value
    if rule.enum:
        out["enum"] = list(rule.enum)
    return out


def _ends(ends: Ends) -> Json:
    if ends.anything:
        return "any"
    out: dict[str, Json] = {}
    for name, values in (
        ("kinds", ends.kinds),
        ("concept_types", ends.types),
        ("literal_types", ends.literals),
    ):
        if values:
            out[name] = list(values)
    if ends.rule is not None:
        out["literal"] = _rule(ends.rule)
    return out


# --- packages


def _identity(ref: str, env: Environment) -> dict[str, Json]:
    package_id, _, version = ref.rpartition("@")
    identity: dict[str, Json] = {"package_ref": ref, "package_id": package_id, "version": version}
    package = env.active.get(ref) or env.readable.get(ref)
    if package is not None:
        identity["digest"] = package.digest
    return {**identity, "status": _status(ref, env)}


def _status(ref: str, env: Environment) -> str:
    return "active" if ref in env.active or ref == CORE_REF else "available"


def package(statement: Describe, scope: Scope) -> Answer:
    """DESCRIBE PACKAGE by exact reference.

    Raises:
        NoemaError: SchemaPackageUnavailable.
    """
    ref = text_of(statement.subject, "DESCRIBE PACKAGE")
    value = _identity(ref, scope.env)
    if ref == CORE_REF:
        value.update(virtual=True, symbols=sorted(CORE_SYMBOLS))
        return Answer(value=value, context=coordinates(scope))
    found = find_package(ref, scope.env)
    artifact = found.artifact
    value.update(
        manifest=artifact["manifest"],
        dependencies=[msgspec.to_builtins(item) for item in found.dependencies],
        symbols={_KIND_TABLES[kind]: sorted(found.table(kind)) for kind in SYMBOL_WORDS},
        aliases={_KIND_TABLES[kind]: names for kind, names in found.aliases.items() if names},
        registries={name: list(values) for name, values in found.registries.items()},
        compatibility=artifact.get("compatibility") or {},
        migrations=artifact.get("migrations") or [],
        model_hints=artifact.get("model_hints") or {},
        integrity={"digest_verified": True, "signatures": "not_checked", "trust": "not_assessed"},
    )
    return Answer(value=value, context=coordinates(scope))


_KIND_TABLES: Final[dict[SymbolKind, str]] = {
    "type": "concept_types", "predicate": "predicates", "facet": "facets", "structural": "structural_fields",
}  # fmt: skip


def find_package(ref: str, env: Environment) -> Package:
    """A package that is here, active or not.

    Raises:
        NoemaError: SchemaPackageUnavailable.
    """
    found = env.active.get(ref) or env.readable.get(ref)
    if found is None:
        raise NoemaError(
            "SchemaPackageUnavailable",
            f"there is no package {ref[:200]!r} here",
            hint="A package is named exactly, with its version; LIST SCHEMA PACKAGES shows them.",
            details={"package": ref[:200], "installed": sorted([CORE_REF, *env.active, *env.readable])},
        )
    return found


def packages(statement: ListStatement, scope: Scope) -> Answer:
    """LIST SCHEMA PACKAGES, of one STATUS or of all.

    Raises:
        NoemaError: ConstraintViolation for an unknown status.
    """
    wanted = optional_text(statement.status, "STATUS")
    if wanted not in {None, "active", "available", "blocked"}:
        raise NoemaError("ConstraintViolation", "STATUS is active, available or blocked")
    env = scope.env
    refs = [CORE_REF, *env.active, *sorted(env.readable)]
    return _paged(
        statement,
        scope,
        [ref for ref in refs if wanted in {None, _status(ref, env)}],
        lambda ref: _listed(ref, env),
    )


def _listed(ref: str, env: Environment) -> dict[str, Json]:
    row = _identity(ref, env)
    found = env.active.get(ref) or env.readable.get(ref)
    if found is None:
        return {**row, "name": "KIP Core", "virtual": True}
    manifest = found.artifact["manifest"]
    return {**row, "name": manifest.get("name"), "publisher": manifest.get("publisher")}


# --- environments


def environment(statement: Describe, scope: Scope) -> Answer:
    """DESCRIBE SCHEMA ENVIRONMENT [AS OF]: the exact packages that give local names their meaning.

    Raises:
        NoemaError: HistoricalSchemaUnavailable for a past environment whose packages are no longer here.
    """
    state = state_at(scope, statement.as_of)
    try:
        inner = past_scope(scope, state)
    except NoemaError as error:
        raise NoemaError("HistoricalSchemaUnavailable", error.message, details=error.details) from error
    env = inner.env
    locked = [_identity(ref, env) for ref in env.active]
    ambiguous = {
        SYMBOL_WORDS[kind]: {name: list(refs) for name, refs in env.names(kind).items() if len(refs) > 1}
        for kind in SYMBOL_WORDS
    }
    value: dict[str, Json] = {
        "environment_version": env.version,
        "resolved_at_seq": state.seq,
        "core": CORE_REF,
        "packages": locked,
        "available": sorted(env.readable),
        "aliases": env.defaults,
        "ambiguous": {word: names for word, names in ambiguous.items() if names},
        "compatibility_profile": None,
        "lock_digest": digest_of(
            [env.version, [[p["package_ref"], p["digest"]] for p in locked], env.defaults]
        ),
    }
    return Answer(value=value, context=coordinates(inner))


# --- compatibility


def compatibility(statement: Describe, scope: Scope) -> Answer:
    """DESCRIBE COMPATIBILITY FROM one package TO another: what is declared, and what the definitions show.

    Raises:
        NoemaError: SchemaPackageUnavailable.
    """
    source = find_package(text_of(statement.subject, "FROM"), scope.env)
    target = find_package(text_of(statement.to, "TO"), scope.env)
    changes = list(_differences(source, target))
    breaking = [change for change in changes if change["breaking"]]
    if source.digest == target.digest:
        found = "identical"
    else:
        found = "breaking" if breaking else "additive" if changes else "equal_definitions"
    value: dict[str, Json] = {
        "from": _identity(source.ref, scope.env),
        "to": _identity(target.ref, scope.env),
        "declared": target.artifact.get("compatibility") or {},
        "migrations": target.artifact.get("migrations") or [],
        "computed": {"class": found, "changes": changes},
        "note": "A declaration is not a proof; neither is a comparison of definitions that data migrate safely.",
    }
    return Answer(value=value, context=coordinates(scope))


def _differences(source: Package, target: Package) -> Iterator[dict[str, Json]]:
    for kind in SYMBOL_WORDS:
        before, after = source.table(kind), target.table(kind)
        for name in sorted(before.keys() | after.keys()):
            if name not in after:
                yield _change(kind, name, "removed", breaking=True)
            elif name not in before:
                yield _change(kind, name, "added", breaking=False)
            elif _meaning(before[name]) != _meaning(after[name]):
                yield _change(kind, name, "changed", breaking=not _widens(before[name], after[name]))


def _change(kind: SymbolKind, name: str, change: str, *, breaking: bool) -> dict[str, Json]:
    return {"symbol_kind": SYMBOL_WORDS[kind], "name": name, "change": change, "breaking": breaking}


def _meaning(definition: Definition) -> dict[str, Any]:
    """What a definition constrains: without its reference, its prose, and the version of its own package."""
    own = definition.ref.rpartition("/")[0].encode()
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(definition).replace(own, b"kip://own"))
    return {name: value for name, value in found.items() if name not in {"ref", "document"}}


def _widens(before: Definition, after: Definition) -> bool:
    """Whether everything that fitted before still fits: only optional fields were added, and nothing else changed."""
    if not isinstance(before, (ConceptType, Facet)) or type(before) is not type(after):
        return False
    old, new = _meaning(before), _meaning(after)
    was, now = old.pop("fields"), new.pop("fields")
    added = [rule for name, rule in now.items() if name not in was]
    kept = all(now.get(name) == rule for name, rule in was.items())
    return old == new and kept and not any(rule["required"] for rule in added)
