"""KIP2-MIG-001..011 (conformance paper §25): one test per id; what 1.x knew is kept, what it did not is not made up."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from core.agents.maintenance.decay import decay
from core.migration.legacy import MigrationInput
from core.migration.report import Report
from core.migration.write import migrate
from core.model.elements import Assertion, Proposition, ValidTime
from core.model.instants import parse_instant
from core.protocol.http_types import MemoryPolicy
from core.schema.environment import set_active_packages
from core.schema.library import DEFAULT_PACKAGES
from core.transaction.draft import Draft
from tests.conformance.harness import World

PROFILE = "kip://profiles/cognitive-memory@2.0.0"
YEAR = 365 * 24 * 3_600_000
ALICE = {"id": "c1", "type": "Person", "name": "Alice", "attributes": {"display_name": "Alice"}}
BERLIN = {"id": "c2", "type": "City", "name": "Berlin"}
LIVES = {"id": "p1", "subject": "c1", "predicate": "lives_in_city", "object": "c2"}


@pytest.fixture(autouse=True)
def profile(world: World) -> None:
    """The profile is in force, as in every space the product makes."""

    def change(draft: Draft) -> None:
        draft.meta = set_active_packages(draft.meta, DEFAULT_PACKAGES)

    world.host(change)


def take(
    world: World, *concepts: dict[str, Any], links: list[dict[str, Any]] | None = None, **members: Any
) -> Report:
    """Migrate one page; its report."""
    body = msgspec.convert(
        {"source": "old", "concepts": list(concepts), "propositions": links or [], **members}, MigrationInput
    )
    reports: list[Report] = []
    world.host(lambda draft: reports.append(migrate(draft, body)), management=False)
    return reports[-1]


def named(world: World, name: str) -> Any:
    """The active Concept of a name that came from the old graph."""
    return only([each for each in world.elements("concept") if each.name == name and each.client_key])


def only(found: list[Any]) -> Any:
    [element] = found
    return element


def claim(world: World) -> Assertion:
    return only(world.elements("assertion"))


def legacy(element: Any) -> dict[str, Any]:
    """What an element keeps of its old record."""
    [facet] = [value for ref, value in element.facets.items() if ref.endswith("/LegacyKIP1")]
    return dict(facet)


def test_kip2_mig_001_legacy_concept_becomes_v2_concept(world):
    """A node keeps its type, name and attributes; its key is its old identity, and no canonical id is made of it."""
    report = take(world, ALICE, BERLIN)

    alice, berlin = named(world, "Alice"), named(world, "Berlin")
    assert alice.schema_ref == f"{PROFILE}/Person"
    assert alice.attributes == {"display_name": "Alice"}
    assert (alice.key, alice.canonical_id) == ("old:Alice", None)
    assert legacy(alice)["id"] == "c1"
    assert berlin.schema_ref == "kip://legacy/old@1.0.0/City"
    assert report.mapping["concepts"] == 2
    assert report.schema_package == "kip://legacy/old@1.0.0"


def test_kip2_mig_001_a_name_that_is_taken_is_another_person(world):
    """A person of the target with the same name stays another: a name is no identity across spaces."""
    mine = world.ok('CREATE CONCEPT ?p {TYPE "Person" NAME "Alice" SET FIELDS {key: "Alice"}}').id("p")
    take(world, ALICE)
    assert named(world, "Alice").id != mine["id"]
    assert world.element(mine).system.version == 1


def test_kip2_mig_001_migrating_again_adds_nothing(world):
    """A page sent again, in part or whole, finds everything there."""
    take(world, ALICE, BERLIN, links=[LIVES])
    with world.unchanged():
        again = take(world, BERLIN, ALICE, links=[LIVES])
    assert (again.already_there, again.committed) == (3, False)


def test_kip2_mig_002_legacy_factual_proposition_gets_migrated_assertion(world):
    """A link becomes a truth-neutral Proposition and a positive Assertion, and what was a fact is believed."""
    take(world, ALICE, BERLIN, links=[LIVES])

    proposition: Proposition = only(world.elements("proposition"))
    assert (proposition.subject, proposition.object.id) == (
        named(world, "Alice").id,
        named(world, "Berlin").id,
    )
    assertion = claim(world)
    assert (assertion.proposition, assertion.stance, assertion.mode, assertion.status) == (
        proposition.id, "support", "imported", "active",
    )  # fmt: skip
    activity = only(world.elements("activity"))
    assert activity.activity_class == "import"
    assert {proposition.id, assertion.id} <= set(activity.outputs)


def test_kip2_mig_003_legacy_confidence_maps_to_assertion_not_proposition(world):
    """Confidence goes to the Assertion; nothing of the Proposition holds a confidence."""
    take(world, ALICE, BERLIN, links=[{**LIVES, "metadata": {"confidence": 0.9}}])
    assert claim(world).confidence == 0.9
    assert "confidence" not in json.dumps(msgspec.to_builtins(only(world.elements("proposition"))))


@pytest.mark.parametrize(
    ("author", "asserter"),
    [("Alice", "Alice"), ("Person:Alice", "Alice"), ("crawler-7", None), ("$system", None), (None, None)],
)
def test_kip2_mig_004_legacy_source_author_is_decomposed(world, author, asserter):
    """A Person of the old graph asserts what it authored; any other author is kept as a word, and binds nobody."""
    metadata = {"source": "web"} | ({"author": author} if author else {})
    report = take(world, ALICE, BERLIN, links=[{**LIVES, "metadata": metadata}])

    assertion = claim(world)
    actor = world.element(assertion.asserted_by)
    assert actor.name == (asserter or "KIP 1.x graph old")
    kept = legacy(assertion)["metadata"]
    assert kept["source"] == "web"  # a kind of place is no Evidence
    assert world.elements("evidence") == []
    assert kept.get("author") == (None if asserter else author)
    codes = {warning.code for warning in report.warnings}
    assert ("legacy_author_ambiguous" in codes) == (author == "crawler-7")
    assert "legacy_source_unresolvable" in codes


def test_kip2_mig_005_legacy_observed_at_maps_to_evidence_time_where_valid(world):
    """The time of an observation is that of the Evidence for its source; without a source it makes no Evidence."""
    seen = {"source": "message-123", "observed_at": "2025-03-01T10:00:00Z"}
    take(world, ALICE, BERLIN, links=[{**LIVES, "metadata": seen}])
    evidence = only(world.elements("evidence"))
    assert evidence.observed_at == parse_instant("2025-03-01T10:00:00Z")
    assert evidence.payload.inline == {"nexus": "old", "reference": "message-123"}
    assert [each.evidence for each in claim(world).evidence] == [evidence.id]
    assert claim(world).asserted_at != evidence.observed_at

    bare = {**LIVES, "id": "p2", "predicate": "visited", "metadata": {"observed_at": "2025-03-01T10:00:00Z"}}
    take(world, links=[bare])
    assert len(world.elements("evidence")) == 1
    assert "observed_at_ms" in legacy(world.elements("assertion")[-1])["metadata"]


def test_kip2_mig_006_legacy_valid_from_until_maps_to_assertion_valid_time(world):
    """When a fact held is the claim's valid time, and says nothing of how long it is stored."""
    times = {"valid_from": "2024-01-01T00:00:00Z", "valid_until": "2024-12-31T00:00:00Z"}
    take(world, ALICE, BERLIN, links=[{**LIVES, "metadata": times}])
    assert claim(world).valid_time == ValidTime(
        parse_instant("2024-01-01T00:00:00Z"), parse_instant("2024-12-31T00:00:00Z")
    )
    assert claim(world).retention.expires_at is None


def test_kip2_mig_007_legacy_expires_at_maps_to_retention(world):
    """When a record may go is its retention, and bounds no claim in the world."""
    take(world, ALICE, BERLIN, links=[{**LIVES, "metadata": {"expires_at": "2030-01-01T00:00:00Z"}}])
    assert claim(world).retention.expires_at == parse_instant("2030-01-01T00:00:00Z")
    assert claim(world).valid_time == ValidTime()


@pytest.mark.parametrize(
    ("level", "table", "classification"),
    [("private", {}, "private"), ("team", {"team": "internal"}, "internal"), ("cosmic", {}, "sensitive")],
)
def test_kip2_mig_008_legacy_access_level_maps_to_governance(world, level, table, classification):
    """An access level is protected state of all that it was said of, and no attribute; an unknown one shows least."""
    protected = {"metadata": {"access_level": level}}
    report = take(world, {**ALICE, **protected}, BERLIN, links=[{**LIVES, **protected}], access_levels=table)

    made = [named(world, "Alice"), only(world.elements("proposition")), claim(world)]
    assert {element.governance.classification for element in made} == {classification}
    assert named(world, "Berlin").governance.classification is None
    assert "access_level" not in named(world, "Alice").attributes
    assert report.governance_changes
    assert any(each.code == "legacy_access_level_ambiguous" for each in report.warnings) == (
        level == "cosmic"
    )


def test_kip2_mig_009_legacy_confidence_decay_is_not_native_assertion_metabolism(world):
    """A decayed confidence is kept as a word, not taken as belief; and years of maintenance change no confidence."""
    decayed = {"confidence": 0.43, "decay_applied_at": "2025-06-01T00:00:00Z"}
    other = {**LIVES, "id": "p2", "predicate": "likes_city", "metadata": {"confidence": 0.8}}
    node = {**ALICE, "metadata": {"memory_strength": 0.9}}
    report = take(world, node, BERLIN, links=[{**LIVES, "metadata": decayed}, other])

    first, second = world.elements("assertion")
    assert (first.confidence, second.confidence) == (None, 0.8)
    assert legacy(first)["metadata"] == decayed
    assert any(each.code == "legacy_confidence_semantics_mixed" for each in report.warnings)

    world.clock.advance(YEAR)
    world.host(lambda draft: decay(draft, MemoryPolicy(), None), management=False)
    assert named(world, "Alice").facets[f"{PROFILE}/MnemonicState"]["memory_strength"] < 0.9
    assert [each.confidence for each in world.elements("assertion")] == [None, 0.8]


def test_kip2_mig_010_legacy_destructive_merge_becomes_non_destructive_consolidation(world):
    """The merged node's name leads to the survivor and is on record; no node is made up; a merge now keeps both."""
    merged = {"id": "t1", "type": "Tool", "name": "JavaScript", "metadata": {"_merged_from": ["Tool:JS"]}}
    link = {"subject": "c1", "predicate": "uses_tool", "object": {"type": "Tool", "name": "JS"}}
    take(world, ALICE, merged)
    take(world, links=[link])

    survivor = named(world, "JavaScript")
    assert survivor.aliases == ("JS",)
    assert legacy(survivor)["engine"] == {"_merged_from": ["Tool:JS"]}
    assert only(world.elements("proposition")).object.id == survivor.id
    assert [each.name for each in world.elements("concept") if each.name == "JS"] == []

    take(world, {"id": "t2", "type": "Tool", "name": "ECMAScript"})
    source = named(world, "ECMAScript").id
    world.ok("MERGE CONCEPT :a INTO :b", a={"id": source}, b={"id": survivor.id})
    assert (world.element(source).merged_into, world.element(source).name) == (survivor.id, "ECMAScript")


def test_kip2_mig_011_legacy_export_script_is_not_native_capsule_identity(world):
    """An old EXPORT script is no Capsule: it verifies as nothing, and no command takes it for one."""
    script = (
        'UPSERT { CONCEPT ?a { {type: "Person", name: "Alice"} SET ATTRIBUTES { display_name: "Alice" } } }'
    )
    with world.unchanged():
        reply = world.invoke("owner", "VERIFY CAPSULE :c", c=script)
        as_artifact = world.invoke("owner", "VERIFY CAPSULE :c", c={"kip1_export": script})
        run = world.invoke("owner", script)
    assert reply.code is not None
    assert as_artifact.code is not None or as_artifact.result.get("valid") is not True
    assert run["status"] == "failed"
