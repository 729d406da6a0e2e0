"""What names mean in a space, and how its schema changes."""

from __future__ import annotations

import copy
import json

import pytest

from core.errors import NoemaError
from core.schema.environment import environment_of, install_package, set_active_packages
from core.schema.library import PROFILE_REF
from tests.conformance.packages import CORE_DOMAIN, SECONDARY, package
from tests.conformance.world import World

CORE_REF = "kip://test/core-domain@1.0.0"
SECOND_REF = "kip://test/secondary@1.0.0"


def code_of(call, *args, **kwargs):
    with pytest.raises(NoemaError) as caught:
        call(*args, **kwargs)
    return caught.value.code


@pytest.fixture
def meta():
    """Protected state with both test packages installed and nothing but the defaults active."""
    found = World().state.meta
    for name in (CORE_DOMAIN, SECONDARY):
        found = install_package(found, package(name))
    return found


def test_a_local_name_means_the_one_symbol_of_the_active_packages(meta):
    """A local name resolves to the exact reference, which resolves to itself."""
    env = environment_of(set_active_packages(meta, [CORE_REF]))

    assert env.type("Person").ref == f"{CORE_REF}/Person"
    assert env.type(f"{CORE_REF}/Person") is env.type("Person")
    assert env.predicate("status").ref == f"{CORE_REF}/project_status"


def test_an_ambiguous_name_is_refused_and_the_exact_reference_is_not(meta):
    """Two meanings make a local name unusable; the candidates are named and the exact reference works."""
    env = environment_of(set_active_packages(meta, [CORE_REF, SECOND_REF]))

    with pytest.raises(NoemaError) as caught:
        env.predicate("status")

    assert caught.value.code == "SchemaSymbolAmbiguous"
    assert caught.value.details["candidates"] == [
        f"{CORE_REF}/project_status",
        f"{SECOND_REF}/service_status",
    ]
    assert env.predicate(f"{SECOND_REF}/service_status").functional


def test_the_space_may_choose_what_an_ambiguous_name_means(meta):
    """The protected alias table of a space decides between candidates."""
    chosen = set_active_packages(meta, [CORE_REF, SECOND_REF], {"status": f"{SECOND_REF}/service_status"})

    assert environment_of(chosen).predicate("status").ref == f"{SECOND_REF}/service_status"


def test_an_unknown_name_is_refused_with_what_is_near(meta):
    """A misspelt name is SchemaSymbolNotFound, and the hint offers the nearest."""
    env = environment_of(set_active_packages(meta, [CORE_REF]))

    with pytest.raises(NoemaError) as caught:
        env.type("Persn")

    assert caught.value.code == "SchemaSymbolNotFound"
    assert "Person" in caught.value.hint


def test_an_inactive_package_is_readable_but_takes_no_new_data(meta):
    """An exact reference into an installed package resolves for reading and is refused for writing."""
    env = environment_of(set_active_packages(meta, [CORE_REF]))

    assert env.type(f"{PROFILE_REF}/Person").name == "Person"
    assert code_of(env.type, f"{PROFILE_REF}/Person", write=True) == "SchemaPackageUnavailable"
    assert code_of(env.type, "kip://nobody/else@1.0.0/Person") == "SchemaPackageUnavailable"


def test_core_structural_fields_go_by_kind_and_cannot_be_shadowed(meta):
    """The six Core fields resolve by the source's kind, by local and exact name."""
    env = environment_of(meta)

    assert env.structural("evidence", "assertion").core
    assert env.structural("kip://core@2.0.0/inputs", "activity").name == "inputs"
    assert code_of(env.structural, "evidence", "concept") == "StructuralReferenceInvalid"
    assert code_of(env.structural, "nothing") == "SchemaSymbolNotFound"


def test_a_dependency_must_be_active_with_the_same_content(meta):
    """A package is activated only together with exactly what it depends on."""
    changed = copy.deepcopy(package(SECONDARY))
    changed["manifest"].update(version="1.0.1", package_ref="kip://test/secondary@1.0.1")
    changed["definitions"]["predicates"]["service_status"]["ref"] = (
        "kip://test/secondary@1.0.1/service_status"
    )
    changed["aliases"]["predicates"] = {}
    changed["dependencies"][0]["digest"] = "sha256:" + "0" * 64
    del changed["integrity"]

    assert code_of(set_active_packages, meta, [SECOND_REF]) == "SchemaPackageUnavailable"
    other = install_package(meta, changed)
    assert code_of(set_active_packages, other, [CORE_REF, "kip://test/secondary@1.0.1"]) == "DigestMismatch"


def test_an_installed_reference_names_one_content_for_ever(meta):
    """Installing the same content again changes nothing; another content under the reference is refused."""
    changed = copy.deepcopy(package(CORE_DOMAIN))
    changed["definitions"]["predicates"]["knows"]["functional"] = True
    del changed["integrity"]

    assert install_package(meta, package(CORE_DOMAIN)) == meta
    assert code_of(install_package, meta, changed) == "IdentityConflict"


def test_activation_moves_the_environment_version_and_unknown_packages_are_refused(meta):
    """Each change of the active set is a new version; what is not installed cannot be active."""
    changed = set_active_packages(meta, [*meta.schema.packages, CORE_REF])

    assert changed.schema.version == meta.schema.version + 1
    assert changed.schema.packages == (*meta.schema.packages, CORE_REF)
    assert code_of(set_active_packages, meta, ["kip://test/none@1.0.0"]) == "SchemaPackageUnavailable"
    assert code_of(set_active_packages, meta, [CORE_REF], {"x": "kip://a@1.0.0/x"}) == "SchemaSymbolNotFound"


def test_two_versions_of_a_package_make_their_names_ambiguous(meta):
    """Side by side, two versions of one symbol need the space's choice; stored references stay readable."""
    newer = copy.deepcopy(package(CORE_DOMAIN))
    text = json.dumps(newer).replace("core-domain@1.0.0", "core-domain@1.1.0")
    newer = json.loads(text)
    newer["manifest"]["version"] = "1.1.0"
    del newer["integrity"]
    both = install_package(meta, newer)
    refs = [CORE_REF, "kip://test/core-domain@1.1.0"]

    assert code_of(environment_of(set_active_packages(both, refs)).type, "Person") == "SchemaSymbolAmbiguous"
    chosen = environment_of(set_active_packages(both, refs, {"Person": f"{refs[1]}/Person"}))
    assert chosen.type("Person").ref == f"{refs[1]}/Person"
    assert chosen.type(f"{CORE_REF}/Person").ref == f"{CORE_REF}/Person"


def test_each_space_has_its_own_environment(meta):
    """What one space activates is not active in another."""
    one, other = (
        environment_of(set_active_packages(meta, [CORE_REF])),
        environment_of(World("other").state.meta),
    )

    assert one.type("Project").ref == f"{CORE_REF}/Project"
    assert code_of(other.type, "Project") == "SchemaSymbolNotFound"
