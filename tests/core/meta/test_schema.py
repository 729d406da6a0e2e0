"""The schema as META shows it: exact identities, constraints, environments of now and then, compatibility."""

from __future__ import annotations

import copy

import msgspec
import pytest

from core.schema.environment import set_active_packages
from core.state.space import SpaceState
from tests.conformance.packages import CORE_DOMAIN, SECONDARY, package

DOMAIN = "kip://test/core-domain@1.0.0"


def newer(change):
    """The next version of the test package, changed by a function of its definitions."""
    artifact = copy.deepcopy(package(CORE_DOMAIN))
    artifact["manifest"].update(version="1.1.0", package_ref="kip://test/core-domain@1.1.0")
    artifact.pop("integrity", None)

    def renamed(value):
        if isinstance(value, str):
            return value.replace(DOMAIN, "kip://test/core-domain@1.1.0")
        if isinstance(value, dict):
            return {name: renamed(item) for name, item in value.items()}
        return [renamed(item) for item in value] if isinstance(value, list) else value

    artifact["definitions"] = renamed(artifact["definitions"])
    artifact["aliases"] = renamed(artifact.get("aliases") or {})
    change(artifact["definitions"])
    return artifact


@pytest.mark.parametrize(
    ("topic", "name", "member"),
    [
        ("TYPE", "Person", "schema_ref"),
        ("PREDICATE", "timezone", "predicate_ref"),
        ("FACET", "MnemonicState", "facet_ref"),
        ("STRUCTURAL FIELD", "has_step", "field_ref"),
    ],
)
def test_a_local_name_is_answered_with_its_exact_identity(nexus, topic, name, member):
    """Asked by either name, the answer has the exact reference, package version and digest (KIP2-META-005)."""
    value = nexus.get(f"DESCRIBE {topic} :n", n=name)

    assert value[member] == f"{DOMAIN}/{name}"
    assert value["package"]["package_ref"] == DOMAIN
    assert value["package"]["version"] == "1.0.0"
    assert value["package"]["digest"].startswith("sha256:")
    assert value["writable"] is True
    assert nexus.get(f"DESCRIBE {topic} :n", n=value[member]) == value


def test_a_type_tells_what_may_be_written(nexus):
    """Attributes with their rules, and the facets and structural fields that go with the type."""
    value = nexus.get('DESCRIBE TYPE "Experience"')

    assert set(value["attributes"]) == {"open", "fields"}
    assert f"{DOMAIN}/has_step" in value["structural_fields"]
    assert f"{DOMAIN}/MnemonicState" in value["facets"]


def test_a_predicate_tells_its_ends_and_that_it_is_no_belief(nexus):
    """Constraints and functional hint are told; current truth is not."""
    value = nexus.get('DESCRIBE PREDICATE "timezone"')

    assert value["functional"] is True
    assert value["object"]["literal_types"] == ["string"]
    assert "BELIEF" in value["note"]


def test_core_structural_fields_are_described(nexus):
    """The six reserved fields are there without any package."""
    value = nexus.get('DESCRIBE STRUCTURAL FIELD "evidence"')

    assert value["field_ref"] == "kip://core@2.0.0/evidence"
    assert value["core"] is True
    assert value["source"] == {"kinds": ["assertion"]}


def test_an_ambiguous_name_is_never_guessed(nexus):
    """A name of two active packages is refused with its candidates; the exact reference works (KIP2-META-006)."""
    nexus.activate([package(SECONDARY)])
    names = nexus.get("DESCRIBE SCHEMA ENVIRONMENT")["ambiguous"]
    word, name = next((word, next(iter(found))) for word, found in names.items())
    topic = {"Predicate": "PREDICATE", "Concept Type": "TYPE"}[word]

    error = nexus.refused(f"DESCRIBE {topic} :n", n=name)

    assert error["code"] == "SchemaSymbolAmbiguous"
    for candidate in error["details"]["candidates"]:
        assert nexus.get(f"DESCRIBE {topic} :n", n=candidate)["local_name"]
    listed = nexus.get(f"LIST {topic}S")
    assert [row["ambiguous"] for row in listed if "ambiguous" in row] == [[name], [name]]


@pytest.mark.parametrize("topic", ["TYPE", "PREDICATE", "FACET", "STRUCTURAL FIELD"])
def test_an_unknown_symbol_suggests_its_neighbours(nexus, topic):
    """What there is not is refused, with names that are near."""
    assert nexus.code(f'DESCRIBE {topic} "Nonexistent"') == "SchemaSymbolNotFound"
    assert nexus.code(f'DESCRIBE {topic} "kip://nobody/x@1.0.0/Y"') == "SchemaPackageUnavailable"


def test_lists_are_in_order_of_name_and_paged(nexus):
    """A list reads the same in pages as whole."""
    whole = nexus.get("LIST TYPES")
    seen, cursor = [], None
    while True:
        clause = "" if cursor is None else " CURSOR :c"
        page = nexus.one(f"LIST TYPES LIMIT 3{clause}", **({} if cursor is None else {"c": cursor}))
        seen += page["result"]
        cursor = page.get("next_cursor")
        if cursor is None:
            break

    assert seen == whole
    assert [row["local_name"] for row in whole] == sorted(row["local_name"] for row in whole)
    assert all(row["schema_ref"].startswith("kip://") for row in whole)


def test_a_list_cursor_does_not_outlive_the_environment(nexus):
    """A page of another schema environment is not a page of the same list."""
    cursor = nexus.one("LIST PREDICATES LIMIT 1")["next_cursor"]

    assert nexus.code("LIST TYPES CURSOR :c", c=cursor) == "CursorMismatch"
    nexus.activate([package(SECONDARY)])
    assert nexus.code("LIST PREDICATES CURSOR :c", c=cursor) == "CursorInvalidated"


def test_a_limit_of_zero_gives_nothing_and_no_cursor(nexus):
    """LIMIT 0 is an empty page that goes nowhere."""
    assert nexus.one("LIST FACETS LIMIT 0")["result"] == []
    assert "next_cursor" not in nexus.one("LIST FACETS LIMIT 0")


# --- packages


def test_packages_are_listed_by_status(nexus):
    """Active and available packages, exactly named; what comes with the engine is available, not active."""
    listed = {row["package_ref"]: row["status"] for row in nexus.get("LIST SCHEMA PACKAGES")}

    assert listed[DOMAIN] == "active"
    assert listed["kip://core@2.0.0"] == "active"
    assert listed["kip://profiles/cognitive-memory@2.0.0"] == "available"
    available = nexus.get('LIST SCHEMA PACKAGES STATUS "available"')
    assert {row["status"] for row in available} == {"available"}
    assert nexus.get('LIST SCHEMA PACKAGES STATUS "blocked"') == []
    assert nexus.code('LIST SCHEMA PACKAGES STATUS "new"') == "ConstraintViolation"


def test_a_package_is_described_with_trust_kept_apart(nexus):
    """Manifest, digest, symbols; a verified digest says nothing of signatures or trust."""
    value = nexus.get(f'DESCRIBE PACKAGE "{DOMAIN}"')

    assert value["manifest"]["package_id"] == "kip://test/core-domain"
    assert "timezone" in value["symbols"]["predicates"]
    assert value["integrity"] == {
        "digest_verified": True, "signatures": "not_checked", "trust": "not_assessed",
    }  # fmt: skip
    assert nexus.get('DESCRIBE PACKAGE "kip://core@2.0.0"')["virtual"] is True
    assert nexus.code('DESCRIBE PACKAGE "kip://test/core-domain@9.9.9"') == "SchemaPackageUnavailable"


# --- environments


def test_the_environment_is_a_lock(nexus):
    """Version, exact packages with digests, and a digest over all of it that moves with it."""
    before = nexus.get("DESCRIBE SCHEMA ENVIRONMENT")
    nexus.activate([package(SECONDARY)])
    after = nexus.get("DESCRIBE SCHEMA ENVIRONMENT")

    assert before["environment_version"] + 1 == after["environment_version"]
    assert [each["package_ref"] for each in before["packages"]] == [DOMAIN]
    assert len(after["packages"]) == 2
    assert before["lock_digest"] != after["lock_digest"]
    assert after["resolved_at_seq"] == nexus.state.seq


def test_a_past_environment_is_the_one_in_force_then(nexus):
    """AS OF identifies the environment of that state, not today's (KIP2-HIST-004)."""
    then = nexus.state.at
    version = nexus.state.meta.schema.version
    nexus.activate([package(SECONDARY)])
    nexus.do('CREATE CONCEPT ?x { TYPE "Person" NAME "X" }')

    result = nexus.one("DESCRIBE SCHEMA ENVIRONMENT AS OF TIME :t", t="2026-05-28T20:26:42Z")

    assert then == 1_780_000_002_000
    assert result["result"]["environment_version"] == version
    assert [each["package_ref"] for each in result["result"]["packages"]] == [DOMAIN]
    assert result["context"]["schema_environment_version"] == version
    assert nexus.get("DESCRIBE SCHEMA ENVIRONMENT")["environment_version"] == version + 1


def test_a_past_environment_whose_packages_are_gone_is_refused(nexus):
    """Where a past package is no longer installed, nothing is made up."""
    then = nexus.state
    nexus.manage(_without_packages(nexus.state.meta))
    nexus.states[nexus.states.index(then)] = _broken(then)

    error = nexus.refused("DESCRIBE SCHEMA ENVIRONMENT AS OF TIME :t", t="2026-05-28T20:26:42Z")

    assert error["code"] == "HistoricalSchemaUnavailable"


def _without_packages(meta):
    return set_active_packages(meta, ["kip://profiles/cognitive-memory@2.0.0"])


def _broken(state):
    """A past state whose lock names a package that no longer exists anywhere."""
    schema = msgspec.structs.replace(state.meta.schema, packages=("kip://gone/away@1.0.0",))
    meta = msgspec.structs.replace(state.meta, schema=schema)
    return SpaceState(meta=meta, ver=state.ver, seq=state.seq, at=state.at, tail=state.tail)


# --- compatibility


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: None, "equal_definitions"),
        (lambda d: d["predicates"].update(owns={}), "additive"),
        (lambda d: d["predicates"].pop("timezone"), "breaking"),
        (lambda d: d["predicates"]["timezone"].update(functional=False), "breaking"),
        (lambda d: _fields(d, "Person").update(nickname={"type": "string"}), "additive"),
        (lambda d: _fields(d, "Person").update(nickname={"type": "string", "required": True}), "breaking"),
    ],
)
def test_compatibility_is_computed_and_the_declaration_kept_apart(nexus, change, expected):
    """What changed between two versions, by their definitions; removals and new duties break."""
    artifact = newer(change)
    nexus.activate([artifact])

    value = nexus.get("DESCRIBE COMPATIBILITY FROM :a TO :b", a=DOMAIN, b="kip://test/core-domain@1.1.0")

    assert value["computed"]["class"] == expected
    assert value["from"]["package_ref"] == DOMAIN
    assert "declared" in value
    assert "not a proof" in value["note"]


def _fields(definitions, name):
    return definitions["concept_types"][name].setdefault("attributes", {}).setdefault("fields", {})


def test_compatibility_with_itself_is_identity(nexus):
    """A package compared with itself is identical; an unknown one is refused."""
    value = nexus.get("DESCRIBE COMPATIBILITY FROM :a TO :a", a=DOMAIN)

    assert value["computed"] == {"class": "identical", "changes": []}
    assert (
        nexus.code('DESCRIBE COMPATIBILITY FROM :a TO "kip://x/y@1.0.0"', a=DOMAIN)
        == "SchemaPackageUnavailable"
    )
