"""Whether the records of a Capsule are what their schema says (KIP §69.2, design §160-§165).

What lives here: records against definitions, in the destination's environment with the Capsule's own packages loaded
beside it for this one look. What must never live here: installing or activating anything. A package that came along
is never in force: it lets its records be read, and nothing be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from core.capsule.format import (
    ActivityRecord,
    AnyRecord,
    ConceptRecord,
    ObjectTerm,
    Pointer,
    PropositionRecord,
)
from core.capsule.read import Capsule
from core.capsule.records import literal_of
from core.errors import NoemaError
from core.model.elements import AnyElement, Concept, Evidence, Origin, Payload, StructuralRef, System
from core.model.ids import Kind
from core.mutation.lifecycle import ACTIVITY_STATES
from core.schema.definitions import ConceptType, Facet, Package, PredicateType, StructuralField, SymbolKind
from core.schema.environment import Environment
from core.schema.library import load_package
from core.schema.validate import (
    admits,
    check_attributes,
    check_cardinality,
    check_facet,
    check_literal_object,
    check_object,
    check_source,
    check_subject,
    check_target,
)

MAX_PROBLEMS: Final = 20
_NOBODY: Final = System(1, 0, 0, "", "", Origin("", ""))


def with_embedded(capsule: Capsule, env: Environment) -> Environment:
    """The environment with the packages a Capsule carries, readable for this look and never in force.

    Raises:
        NoemaError: DigestMismatch for a package that is not what its digest says, or is known here with another
            content; ArtifactParseError.
    """
    known = {**env.readable, **env.active}
    carried: dict[str, Package] = {}
    for dependency in capsule.artifact.payload.schema:
        ref = f"{dependency.package}@{dependency.version}"
        here = known.get(ref)
        if here is not None and here.digest != dependency.digest:
            raise NoemaError(
                "DigestMismatch",
                f"{ref} has another content here than at the source",
                details={"package": ref, "expected": dependency.digest, "actual": here.digest},
            )
        if dependency.artifact is None:
            continue
        package = load_package(dependency.artifact)
        if package.ref != ref or package.digest != dependency.digest:
            raise NoemaError(
                "DigestMismatch", f"the package that comes as {ref} is another one", details={"package": ref}
            )
        if here is None:
            carried[ref] = package
    if not carried:
        return env
    return Environment(
        env.version,
        env.active.values(),
        [*env.readable.values(), *carried.values()],
        env.defaults,
    )


def inactive_packages(capsule: Capsule, env: Environment) -> list[str]:
    """Packages that the records need and that are not in force here."""
    wanted = (f"{each.package}@{each.version}" for each in capsule.artifact.payload.schema)
    return sorted(ref for ref in wanted if ref not in env.active)


Ends = Callable[[Pointer | ObjectTerm], tuple[Kind | None, str | None]]
"""The kind and type of what a pointer points to, as far as it is told; a redacted end tells nothing."""


def check_records(capsule: Capsule, env: Environment) -> list[dict[str, object]]:
    """What the records break of their schema, at most `MAX_PROBLEMS` of it; empty if nothing."""
    problems: list[dict[str, object]] = []

    def ends(pointer: Pointer | ObjectTerm) -> tuple[Kind | None, str | None]:
        if pointer.external is not None:
            external = capsule.externals[pointer.external]
            return external.element_kind, external.schema_ref
        kind, record = capsule.records[str(pointer.ref)]
        return kind, record.schema_ref if isinstance(record, ConceptRecord) else None

    for ref, (kind, record) in capsule.records.items():
        if record.state == "purged":
            continue
        try:
            check_record(env, ends, kind, record)
        except NoemaError as error:
            problems.append({"ref": ref, **error.to_wire()})
            if len(problems) == MAX_PROBLEMS:
                break
    return problems


def check_record(env: Environment, ends: Ends, kind: Kind, record: AnyRecord) -> None:
    """Refuse a record that is not what its schema says.

    Raises:
        NoemaError: SchemaPackageUnavailable, TypeMismatch, ConstraintViolation and the like.
    """
    schema_ref = record.schema_ref if isinstance(record, ConceptRecord) else None
    if isinstance(record, ConceptRecord):
        definition = _known(env, "type", record.schema_ref)
        assert isinstance(definition, ConceptType)
        check_attributes(definition, record.attributes)
    elif isinstance(record, PropositionRecord):
        _check_tuple(env, ends, record)
    elif isinstance(record, ActivityRecord) and record.status not in ACTIVITY_STATES:
        raise NoemaError("ConstraintViolation", f"{record.status[:40]!r} is no status of an Activity")
    for ref, values in record.facets.items():
        facet = _known(env, "facet", ref)
        assert isinstance(facet, Facet)
        check_facet(facet, _stand_in(schema_ref), kind, values)
    _check_structural(env, ends, kind, record, schema_ref)


def _known(
    env: Environment, kind: SymbolKind, ref: str
) -> ConceptType | Facet | StructuralField | PredicateType:
    found = env.known(kind, ref)
    if found is None:
        package = ref.rpartition("/")[0]
        raise NoemaError(
            "SchemaPackageUnavailable" if "@" in package else "SchemaSymbolNotFound",
            f"there is no definition of {ref[:200]} here, and the Capsule does not bring one",
            hint="Ask for a Capsule with include_schema, or have the package installed.",
            details={"symbol": ref[:512], "package": package[:512]},
        )
    return found


def _stand_in(schema_ref: str | None) -> AnyElement:
    """An element for checks that look at nothing but its kind and type."""
    if schema_ref is not None:
        return Concept(id="", system=_NOBODY, schema_ref=schema_ref)
    return Evidence(id="", system=_NOBODY, evidence_class="", payload=Payload("purged"), content_digest="")


# --- ends


def _check_tuple(env: Environment, ends: Ends, record: PropositionRecord) -> None:
    predicate = _known(env, "predicate", record.predicate_ref)
    assert isinstance(predicate, PredicateType)
    kind, schema_ref = ends(record.subject)
    if _is_told(kind, schema_ref):
        check_subject(predicate, kind or "concept", schema_ref)
    literal = literal_of(record.object)
    if literal is not None:
        check_literal_object(predicate, literal)
        return
    kind, schema_ref = ends(record.object)
    if _is_told(kind, schema_ref):
        check_object(predicate, kind or "concept", schema_ref)


def _is_told(kind: Kind | None, schema_ref: str | None) -> bool:
    """Whether enough is said of an end to judge it; a redacted one is judged where it lands, if it ever does."""
    return kind is not None and (kind != "concept" or schema_ref is not None)


def _check_structural(
    env: Environment, ends: Ends, kind: Kind, record: AnyRecord, schema_ref: str | None
) -> None:
    fields: dict[str, StructuralField] = {}
    found: dict[str, list[StructuralRef]] = {}
    for item in record.structural:
        field = _known(env, "structural", item.field)
        assert isinstance(field, StructuralField)
        check_source(field, kind, schema_ref)
        target_kind, target_type = ends(item.target)
        if _is_told(target_kind, target_type):
            check_target(field, target_kind or "concept", target_type)
        fields[field.ref] = field
        found.setdefault(field.ref, []).append(StructuralRef(item.field, "", item.options))
    for field in _required(env, schema_ref) if record.state == "active" else ():
        fields.setdefault(field.ref, field)
    for field in fields.values():
        check_cardinality(field, found.get(field.ref, []))


def _required(env: Environment, schema_ref: str | None) -> Iterator[StructuralField]:
    if schema_ref is not None:
        for field in env.required_structural:
            if admits(field.source, "concept", schema_ref) and schema_ref in field.source.types:
                yield field
