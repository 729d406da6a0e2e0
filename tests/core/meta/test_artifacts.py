"""VERIFY and the checks of packages: digests compared, trust left alone."""

from __future__ import annotations

import copy
import json

import msgspec
import pytest

from core.model.elements import Origin
from core.transaction.draft import Draft
from tests.conformance.packages import CORE_DOMAIN, SECONDARY, package


def tampered():
    """A package with a definition changed after its digest was taken."""
    artifact = copy.deepcopy(package(SECONDARY))
    artifact["manifest"]["description"] = "something else"
    return artifact


# --- Schema Packages


def test_an_intact_package_verifies_and_is_not_thereby_trusted(nexus):
    """The digest holds; trust, truth and activation are said to be other questions (KIP2-META-013)."""
    value = nexus.get("VERIFY SCHEMA PACKAGE :p", p=package(SECONDARY))

    assert value["integrity_valid"] is True
    assert value["digest_valid"] is True
    assert value["content_digest"] == package(SECONDARY)["integrity"]["content_digest"]
    assert value["trust"] == value["truth"] == "not_assessed"
    listed = {row["package_ref"] for row in nexus.get("LIST SCHEMA PACKAGES")}
    assert "kip://test/secondary@1.0.0" not in listed


def test_a_changed_package_does_not_verify(nexus):
    """A tampered package is DigestMismatch, with both digests."""
    error = nexus.refused("VERIFY SCHEMA PACKAGE :p", p=tampered())

    assert error["code"] == "DigestMismatch"
    assert error["details"]["expected"] != error["details"]["actual"]


def test_a_package_without_a_digest_claims_nothing(nexus):
    """Without a claimed digest there is nothing to verify, and that is said."""
    artifact = {name: value for name, value in package(SECONDARY).items() if name != "integrity"}
    value = nexus.get("VERIFY SCHEMA PACKAGE :p", p=artifact)

    assert value["integrity_valid"] is False
    assert value["digest_valid"] is None
    assert value["content_digest"].startswith("sha256:")


def test_a_digest_profile_that_is_not_known_is_refused(nexus):
    """A digest by another rule cannot be checked here."""
    artifact = {**package(SECONDARY), "integrity": {"digest_profile": "other", "content_digest": "sha256:x"}}

    assert nexus.code("VERIFY SCHEMA PACKAGE :p", p=artifact) == "UnsupportedCapability"


def test_a_package_is_given_as_object_text_or_handle(nexus):
    """JSON text and a staged artifact do as well; nothing is fetched from a URL."""
    body = json.dumps(package(SECONDARY))
    nexus.artifacts["staged-1"] = body.encode()

    whole = nexus.get("VERIFY SCHEMA PACKAGE :p", p=package(SECONDARY))
    assert nexus.get("VERIFY SCHEMA PACKAGE :p", p=body) == whole
    assert nexus.get('VERIFY SCHEMA PACKAGE "staged-1"') == whole
    assert nexus.code('VERIFY SCHEMA PACKAGE "https://example.com/p.json"') == "ArtifactUnavailable"
    assert nexus.code("VERIFY SCHEMA PACKAGE :p", p='{"format": ') == "ArtifactParseError"
    assert nexus.code("VERIFY SCHEMA PACKAGE :p", p=5) == "ArtifactParseError"


def test_a_package_is_validated_without_being_installed(nexus):
    """Format, symbols, dependencies and clashes of names are told; the environment stays as it is."""
    before = nexus.get("DESCRIBE SCHEMA ENVIRONMENT")

    value = nexus.get("VALIDATE SCHEMA PACKAGE :p", p=package(SECONDARY))

    assert value["valid"] is True
    assert value["package_ref"] == "kip://test/secondary@1.0.0"
    assert value["ambiguous_if_active"] == ["status"]
    assert value["installed"] is False
    assert nexus.get("DESCRIBE SCHEMA ENVIRONMENT") == before
    own = nexus.get("VALIDATE SCHEMA PACKAGE :p", p=package(CORE_DOMAIN))
    assert (own["active"], own["ambiguous_if_active"]) == (True, [])


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda a: a.update(format="zip"), "ArtifactParseError"),
        (lambda a: a["definitions"].update(concept_types={"Concept": {}}), "ProtectedSchemaState"),
        (lambda a: a["manifest"].update(executable=True), "ArtifactParseError"),
    ],
)
def test_a_malformed_package_is_invalid(nexus, change, code):
    """What is wrong with a package is told as an answer."""
    artifact = copy.deepcopy(package(SECONDARY))
    artifact.pop("integrity")
    change(artifact)

    value = nexus.get("VALIDATE SCHEMA PACKAGE :p", p=artifact)

    assert value["valid"] is False
    assert value["error"]["code"] == code


def test_a_package_whose_dependency_is_missing_is_invalid(nexus):
    """Required packages that are not here are named."""
    artifact = copy.deepcopy(package(SECONDARY))
    artifact.pop("integrity")
    artifact["dependencies"] = [{"package_ref": "kip://not/here@1.0.0"}]

    value = nexus.get("VALIDATE SCHEMA PACKAGE :p", p=artifact)

    assert (value["valid"], value["missing_dependencies"]) == (False, ["kip://not/here@1.0.0"])


# --- receipts


def test_a_receipt_is_held_against_the_log(nexus):
    """A true receipt is vouched for by the commit it names; it is not signed, and that is said."""
    receipt = nexus.run('UPDATE :bob SET FIELDS {name: "Rob"}', nexus.ref)["receipt"]

    value = nexus.get("VERIFY RECEIPT :r", r=receipt)

    assert value["integrity_valid"] is True
    assert "result_digest" in value["checked"]
    assert value["attestation"].startswith("unsigned")
    assert value["proofs"] == []


@pytest.mark.parametrize(
    "member", ["space_seq", "committed_at", "request_digest", "result_digest", "space_id"]
)
def test_a_changed_receipt_does_not_verify(nexus, member):
    """Any member that the log does not confirm is named."""
    receipt = nexus.run('UPDATE :bob SET FIELDS {name: "Rob"}', nexus.ref)["receipt"]
    changed = {**receipt, member: 77 if member == "space_seq" else "other"}

    error = nexus.refused("VERIFY RECEIPT :r", r=changed)

    assert error["code"] == "DigestMismatch"
    assert error["details"]["mismatched"] == [member]


def test_a_receipt_of_no_commit_cannot_be_vouched_for(nexus):
    """A receipt without a commit in this log is unknown, not false."""
    assert nexus.code("VERIFY RECEIPT :r", r={"status": "no_effect"}) == "TransactionUnknown"
    assert nexus.code("VERIFY RECEIPT :r", r={"tx_id": "tx-00000zzzabcde"}) == "TransactionUnknown"


# --- blobs


def test_evidence_is_verified_against_its_digest(nexus):
    """Inline content is what its digest names."""
    value = nexus.get("VERIFY BLOB :message")

    assert value["digest_valid"] is True
    assert value["evidence"] == nexus.id("message")


def test_content_that_is_not_what_its_digest_names_is_told(nexus):
    """A digest that does not fit its content is DigestMismatch."""
    nexus.now += 1000
    draft = Draft(nexus.state, now=nexus.now, origin=Origin("host", "test"))
    draft.change(nexus.state.get(nexus.id("message")), content_digest="sha256:00")
    nexus._append(draft.finish())

    assert nexus.code("VERIFY BLOB :message") == "DigestMismatch"


def test_content_that_is_not_here_cannot_be_verified(nexus):
    """Erased content is unavailable; what is no Evidence is not found."""
    nexus.do('PURGE :message REFERENCE POLICY "tombstone_reference" CONFIRM "PURGE"')

    assert nexus.code("VERIFY BLOB :message") == "BlobUnavailable"
    assert nexus.code("VERIFY BLOB :alice") == "NotFoundOrNotVisible"
    assert nexus.code('VERIFY BLOB "nonsense"') == "NotFoundOrNotVisible"


def test_verifying_changes_nothing(nexus):
    """No verification leaves a trace."""
    before = nexus.state.ver, msgspec.json.encode(nexus.state.get(nexus.id("message")))
    nexus.get("VERIFY BLOB :message")
    nexus.get("VERIFY SCHEMA PACKAGE :p", p=package(SECONDARY))

    assert (nexus.state.ver, msgspec.json.encode(nexus.state.get(nexus.id("message")))) == before


def test_signatures_are_named_and_not_believed(nexus):
    """A signature of a form that is not known here is told as that: neither good nor bad, of nobody."""
    signed = {**package(SECONDARY), "integrity": {**package(SECONDARY)["integrity"], "signatures": [{}, {}]}}

    value = nexus.get("VERIFY SCHEMA PACKAGE :p", p=signed)

    assert (value["signer"], value["signatures"], len(value["proofs"])) == ("unresolved", "checked", 2)
    assert {proof["cryptographically_valid"] for proof in value["proofs"]} == {None}
