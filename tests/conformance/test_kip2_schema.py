"""KIP2-SCHEMA-001..016 (conformance paper §14)."""

from __future__ import annotations

import pytest

from core.errors import NoemaError
from core.schema.environment import environment_of
from core.schema.library import load_package
from tests.conformance.packages import CORE_DOMAIN, SECONDARY, package
from tests.conformance.world import World

CORE_REF = "kip://test/core-domain@1.0.0"
SECOND_REF = "kip://test/secondary@1.0.0"


@pytest.fixture
def ambiguous():
    """A space in which the alias `status` means two things, with a project, a service and a status."""
    world = World(packages=[package(CORE_DOMAIN), package(SECONDARY)], only=True)
    made = world.ok('MUTATE {CREATE CONCEPT ?service {TYPE "Service"} CREATE CONCEPT ?project {TYPE "Project"} '
                    'CREATE CONCEPT ?ok {TYPE "StatusValue" SET ATTRIBUTES {code: "active"}}}')  # fmt: skip
    world.ref = {name: {"id": handle["id"]} for name, handle in made["handles"].items()}
    return world


def test_kip2_schema_001_durable_concept_schema_ref_is_exact_versioned(people):
    """A Concept created by a local name is stored under the exact reference."""
    assert people.get(people.ref["alice"]).schema_ref == f"{CORE_REF}/Person"
    assert people.do('FIND(?c.schema_ref) WHERE {?c CONCEPT {key: "alice"}}') == [f"{CORE_REF}/Person"]


def test_kip2_schema_002_durable_predicate_ref_is_exact_versioned(people):
    """A tuple ensured by a local name, or an alias, is stored under the exact reference."""
    made = people.handles('ENSURE PROPOSITION ?p (:alice, "timezone", "x")', people.ref)

    assert people.get(made["p"]).predicate_ref == f"{CORE_REF}/timezone"


def test_kip2_schema_003_ambiguous_alias_fails(ambiguous):
    """A name of two packages is refused for writing and reading, and nothing is stored."""
    command = 'ENSURE PROPOSITION (:service, "status", :ok)'

    assert ambiguous.error(command, ambiguous.ref) == "SchemaSymbolAmbiguous"
    assert ambiguous.error('FIND(?p) WHERE {?p PROPOSITION (?s, "status", ?o)}') == "SchemaSymbolAmbiguous"


def test_kip2_schema_004_exact_ref_succeeds_under_ambiguity(ambiguous):
    """The exact reference works where the alias does not, and is the symbol that is stored."""
    exact = f"{SECOND_REF}/service_status"
    made = ambiguous.ok(f'ENSURE PROPOSITION ?p (:service, "{exact}", :ok)', ambiguous.ref)["handles"]["p"]

    assert ambiguous.state.get(made["id"]).predicate_ref == exact


def test_kip2_schema_005_subject_type_constraint_enforced(people):
    """A Project has no timezone, and no tuple is stored."""
    made = people.handles('CREATE CONCEPT ?project {TYPE "Project"}')

    assert people.no('ENSURE PROPOSITION (:project, "timezone", "+08")', **made) == "TypeMismatch"
    assert people.do("FIND(COUNT(?p)) WHERE {?p PROPOSITION (?s, ?r, ?o)}") == [0]


def test_kip2_schema_006_literal_datatype_constraint_enforced(people):
    """A boolean is no timezone."""
    assert people.no('ENSURE PROPOSITION (:alice, "timezone", true)') == "TypeMismatch"
    assert people.do("FIND(COUNT(?p)) WHERE {?p PROPOSITION (?s, ?r, ?o)}") == [0]


def test_kip2_schema_007_structural_target_constraint_enforced(people):
    """An Organization is no step of an Experience."""
    command = 'MUTATE {CREATE CONCEPT ?e {TYPE "Experience" SET STRUCTURAL {("has_step", ?o)}} CREATE CONCEPT ?o {TYPE "Organization"}}'

    assert people.no(command) == "StructuralReferenceInvalid"
    assert people.do('FIND(COUNT(?c)) WHERE {?c CONCEPT {type: "Organization"}}') == [0]


def test_kip2_schema_008_unknown_facet_field_rejected(people):
    """A field that a closed facet does not have is not accepted."""
    assert people.no('UPDATE :alice SET FACET "MnemonicState" {mood: 1}') == "SchemaFieldNotFound"
    assert people.get(people.ref["alice"]).facets == {}


def test_kip2_schema_009_schema_cannot_authorize_governance(people):
    """A package whose hints claim authority is a package; nothing it says is a permission."""
    people.activate([{"format": "KIP-Schema-Package", "manifest": {"package_id": "kip://acme/admin", "version": "1.0.0"},
                      "definitions": {"concept_types": {"Administrator": {"model_hints": {"authority": "executable"}}}}}])  # fmt: skip
    made = people.handles('CREATE CONCEPT ?c {TYPE "Administrator"}')

    assert people.do(
        "FIND(?c.governance.max_influence_authority, ?c.governance.policy_ref) WHERE {?c CONCEPT {id: :i}}",
        i=made["c"]["id"],
    ) == [[None, None]]
    assert people.state.meta.owner == "owner"


@pytest.mark.parametrize("field", ["schema_environment: {}", "schema_lock: {}", "schema_packages: []"])
def test_kip2_schema_010_ordinary_kml_cannot_activate_schema(people, field):
    """No field that a command writes reaches the environment."""
    before = people.state.meta

    assert people.no(f"UPDATE :alice SET FIELDS {{{field}}}") == "ProtectedSchemaState"
    assert people.no(f'CREATE CONCEPT ?c {{TYPE "Person" SET FIELDS {{{field}}}}}') == "ProtectedSchemaState"
    assert people.state.meta == before


def test_kip2_schema_011_validation_only_embedded_schema_stays_inactive(people):
    """Loading a package to look at it changes no environment: its names stay unknown."""
    load_package(package(SECONDARY))

    assert people.no('ENSURE PROPOSITION (:alice, "service_status", :bob)') == "SchemaSymbolNotFound"
    assert people.state.meta.schema.packages == (CORE_REF,)


def test_kip2_schema_012_schema_environment_is_space_specific(people):
    """Two spaces with other active packages resolve one name to two symbols."""
    other = World("other")
    made = other.ok('CREATE CONCEPT ?c {TYPE "Person"}')["handles"]["c"]["id"]

    assert people.get(people.ref["alice"]).schema_ref == f"{CORE_REF}/Person"
    assert other.state.get(made).schema_ref == "kip://profiles/cognitive-memory@2.0.0/Person"
    assert other.error('CREATE CONCEPT ?c {TYPE "Theme"}') == "SchemaSymbolNotFound"


def test_kip2_schema_013_atomic_transaction_uses_one_schema_environment(people):
    """A transaction begun before an environment change cannot commit half in one and half in the other."""
    request = {"kip": "2.0", "execution": {"mode": "atomic"},
               "operations": [{"command": 'CREATE CONCEPT ?a {TYPE "Theme"}'}, {"command": 'CREATE CONCEPT ?b {TYPE "Theme"}'}]}  # fmt: skip
    paused = people.tentative(request)
    people.activate([{"format": "KIP-Schema-Package", "manifest": {"package_id": "kip://acme/x", "version": "1.0.0"},
                      "definitions": {"concept_types": {"Theme": {}}}}])  # fmt: skip

    assert {element.schema_ref for element in paused.deltas[0].puts} == {f"{CORE_REF}/Theme"}
    with pytest.raises(ValueError, match="does not follow"):
        people.state.apply(
            *paused.deltas
        )  # the log takes it only onto the state, and so the schema, it began with
    resumed = people.send(request)
    assert resumed["results"][0]["error"]["code"] == "SchemaSymbolAmbiguous"


def test_kip2_schema_014_schema_precondition_detects_change(people):
    """A request that expects an older environment version fails and writes nothing."""
    version = people.state.meta.schema.version
    people.activate([package(SECONDARY)])
    request = {
        "kip": "2.0",
        "preconditions": {"schema_environment_version": version},
        "operations": [{"command": 'CREATE CONCEPT ?c {TYPE "Theme"}'}],
    }
    response = people.send(request)

    assert response["results"][0]["error"]["code"] == "SchemaEnvironmentChanged"
    assert people.do('FIND(COUNT(?c)) WHERE {?c CONCEPT {type: "Theme"}}') == [2]


def test_kip2_schema_015_package_verification_does_not_activate(people):
    """VERIFY of a sound package says so and leaves the environment as it was."""
    before = people.state.meta
    response = people.run("VERIFY SCHEMA PACKAGE :artifact", {"artifact": package(SECONDARY)})

    assert response["status"] == "succeeded", response
    assert people.state.meta == before
    assert SECOND_REF not in environment_of(people.state.meta).active


def test_kip2_schema_016_describe_type_returns_exact_identity(people):
    """DESCRIBE TYPE of a local name gives its exact symbol."""
    assert f"{CORE_REF}/Person" in str(people.do('DESCRIBE TYPE "Person"'))


def test_a_package_that_fails_verification_is_refused():
    """A changed package does not load at all."""
    broken = {**package(SECONDARY), "constraints": [1]}
    with pytest.raises(NoemaError):
        load_package(broken)
