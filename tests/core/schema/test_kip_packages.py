"""Package artifacts: digests, strict reading, reserved names."""

from __future__ import annotations

import copy

import pytest

from core.errors import NoemaError
from core.protocol.canonical import canonical_json, digest_of
from core.schema.definitions import is_package_ref, split_ref
from core.schema.library import DEFAULT_PACKAGES, builtin, load_package
from tests.conformance.packages import CORE_DOMAIN, SECONDARY, package


def refused(artifact):
    with pytest.raises(NoemaError) as caught:
        load_package(artifact)
    return caught.value


def unsigned(artifact):
    """The artifact without its digest, so that a change of it is judged by its content."""
    return {name: value for name, value in copy.deepcopy(artifact).items() if name != "integrity"}


@pytest.mark.parametrize("name", [CORE_DOMAIN, SECONDARY])
def test_published_digests_are_reproduced(name):
    """The canonical form reproduces the digest that a published package carries."""
    artifact = package(name)

    assert load_package(artifact).digest == artifact["integrity"]["content_digest"]


def test_the_default_packages_ship_and_verify():
    """Every package that is active in a new space is in the distribution and verifies."""
    assert set(DEFAULT_PACKAGES) <= builtin().keys()


def test_a_changed_package_is_refused_by_its_digest():
    """A package whose content is not what its digest names is a DigestMismatch."""
    artifact = copy.deepcopy(package(SECONDARY))
    artifact["definitions"]["predicates"]["service_status"]["functional"] = False

    error = refused(artifact)

    assert error.code == "DigestMismatch"
    assert error.details["expected"] != error.details["actual"]


def test_an_unknown_digest_profile_is_refused_by_name():
    """A digest of another profile is not compared with ours."""
    artifact = copy.deepcopy(package(SECONDARY))
    artifact["integrity"]["digest_profile"] = "rfc8785"

    assert refused(artifact).code == "UnsupportedCapability"


@pytest.mark.parametrize("name", ["evidence", "Assertion"])
def test_a_package_may_not_shadow_core_symbols(name):
    """A reserved Core symbol can be neither defined nor aliased by a package."""
    defined, aliased = unsigned(package(CORE_DOMAIN)), unsigned(package(CORE_DOMAIN))
    defined["definitions"]["predicates"][name] = {"kind": "PredicateType"}
    aliased["aliases"]["predicates"][name] = "kip://test/core-domain@1.0.0/knows"

    assert refused(defined).code == refused(aliased).code == "ProtectedSchemaState"


@pytest.mark.parametrize(
    ("change", "at"),
    [
        (lambda a: a.update(format="zip"), "format"),
        (lambda a: a.update(manifest=[]), "manifest"),
        (lambda a: a["manifest"].update(package_id="kip://Test/Core"), "manifest"),
        (lambda a: a["manifest"].update(executable=True), "manifest.executable"),
        (lambda a: a["definitions"]["facets"]["MnemonicState"]["fields"]["salience"].update(exclusive=1), "MnemonicState.fields.salience"),
        (lambda a: a["definitions"]["facets"]["MnemonicState"]["fields"]["salience"].update(type="float"), "MnemonicState.fields.salience"),
        (lambda a: a["definitions"]["facets"]["MnemonicState"]["fields"]["salience"].update(pattern="("), "MnemonicState.fields.salience"),
        (lambda a: a["definitions"]["predicates"]["knows"].update(subject={"kinds": ["Thing"]}), "knows.subject"),
        (lambda a: a["definitions"]["predicates"]["knows"].update(ref="kip://other@1.0.0/knows"), "definition knows"),
        (lambda a: a["definitions"]["predicates"].update({"two words": {}}), "definitions.predicates.two words"),
    ],
)  # fmt: skip
def test_a_malformed_package_is_refused_with_the_place(change, at):
    """What a package says wrongly, or with a rule that would not be kept, is refused where it stands."""
    artifact = unsigned(package(CORE_DOMAIN))
    change(artifact)

    error = refused(artifact)

    assert error.code == "ArtifactParseError"
    assert error.details["at"] == at


def test_a_minimal_package_is_enough():
    """Omitted members mean: open attributes, no restriction, no aliases, no dependencies."""
    found = load_package(
        {
            "format": "KIP-Schema-Package",
            "manifest": {"package_id": "kip://acme/x", "version": "1.0.0"},
            "definitions": {"concept_types": {"Thing": {}}, "predicates": {"near": {"functional": True}}},
        }
    )

    assert found.ref == "kip://acme/x@1.0.0"
    assert found.types["Thing"].open
    assert found.predicates["near"].subject.anything
    assert found.predicates["near"].functional


def test_references_are_exact_or_nothing():
    """A symbol reference has a path, a whole version and one symbol."""
    assert split_ref("kip://a/b@1.0.0/Name") == ("kip://a/b@1.0.0", "Name")
    assert is_package_ref("kip://a-1/b@10.2.3")
    for text in (
        "kip://a/b/Name",
        "kip://a@1.0/Name",
        "kip://A@1.0.0/Name",
        "kip://a@^1.0.0/Name",
        "a@1.0.0/N",
    ):
        assert split_ref(text) is None


def test_canonical_json_has_one_spelling():
    """Keys are sorted, text is UTF-8, whole and other numbers keep their spelling, and there is no NaN."""
    assert canonical_json({"b": 1, "a": [0.0, "é", None, True]}) == '{"a":[0.0,"é",null,true],"b":1}'.encode()
    assert digest_of({"x": 1, "y": 2}) == digest_of({"y": 2, "x": 1}) != digest_of({"x": 1, "y": 3})
    with pytest.raises(ValueError):
        canonical_json(float("nan"))
