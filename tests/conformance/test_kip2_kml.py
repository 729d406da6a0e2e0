"""KIP2-KML-001..033 (conformance paper §20)."""

from __future__ import annotations

import pytest

from core.authority import Principal
from tests.core.mutation.conftest import People

SAY = 'ASSERT ?a (:alice, "timezone", "+08:00") {by: :alice, mode: "stated", confidence: 0.9}'
MESSAGE = 'CREATE EVIDENCE ?m {SET FIELDS {evidence_class: "user_statement", payload: "I moved"}}'
EXPERIENCE = 'CREATE CONCEPT ?e {TYPE "Experience" CLIENT KEY "exp:1" NAME "Deploy"}'


def count(people, pattern):
    return people.do(f"FIND(COUNT(?x)) WHERE {{{pattern}}}")[0]


def one(people, command, name, **more):
    return {name: people.handles(command, {**people.ref, **more})[name]}


def test_kip2_kml_001_create_concept_creates_distinct_event_like_identity(people):
    """CREATE with a client key makes one new typed Concept."""
    made = one(people, EXPERIENCE, "e")

    assert people.get(made["e"]).client_key == "exp:1"
    assert count(people, '?x CONCEPT {type: "Experience"}') == 1


def test_kip2_kml_002_upsert_stable_key_is_idempotent(people):
    """The same UPSERT twice is one Concept in one state, without a second commit."""
    command = 'UPSERT CONCEPT ?p {MATCH {type: "Project", key: "kip"} SET FIELDS {name: "KIP"}}'
    first, commits = one(people, command, "p"), len(people.deltas)

    assert one(people, command, "p") == first
    assert len(people.deltas) == commits
    assert count(people, '?x CONCEPT {type: "Project"}') == 1


def test_kip2_kml_003_name_only_native_upsert_rejected(people):
    """A type and a name are no identity."""
    code = people.no('UPSERT CONCEPT ?p {MATCH {type: "Person", name: "Alice"} SET FIELDS {name: "A"}}')

    assert code in {"NameIdentityForbidden", "IdentitySelectorRequired"}
    assert people.get(people.ref["alice"]).name == "Alice"


def test_kip2_kml_004_ensure_proposition_creates_no_assertion(people):
    """ENSURE leaves a tuple and no claim."""
    people.do('ENSURE PROPOSITION (:alice, "knows", :bob)')

    assert (count(people, "?x PROPOSITION (?s, ?r, ?o)"), count(people, "?x ASSERTION {}")) == (1, 0)


def test_kip2_kml_005_create_assertion_preserves_actor_origin_distinction(people):
    """What the recorder records is asserted by Alice and originates from the recorder."""
    response = people.run(SAY, people.ref, principal=Principal("recorder", actors=frozenset()))
    claim = people.get(response["results"][0]["result"]["handles"]["a"]["id"])

    assert (claim.asserted_by, claim.system.origin.principal) == (people.ref["alice"]["id"], "recorder")


def test_kip2_kml_006_create_activity_records_structural_provenance(people):
    """Inputs and outputs of an Activity are found as structure."""
    made = one(
        people,
        'CREATE ACTIVITY ?x {SET FIELDS {activity_class: "inference"} SET STRUCTURAL {("inputs", :alice) ("outputs", :bob)}}',
        "x",
    )

    assert people.do('FIND(?i.id) WHERE {STRUCTURAL (:x, "inputs", ?i)}', **made) == [
        people.ref["alice"]["id"]
    ]
    assert people.do('FIND(?o.id) WHERE {STRUCTURAL (:x, "outputs", ?o)}', **made) == [
        people.ref["bob"]["id"]
    ]


def test_kip2_kml_007_mutate_compound_transition_is_atomic(people):
    """Evidence, Proposition, Assertion and Activity share one commit, or none is there."""
    plan = "MUTATE {{{} {} {}}}".format(
        MESSAGE, SAY.replace("0.9", "0.9, evidence: ?m"),
        'CREATE ACTIVITY ?x {SET FIELDS {activity_class: "ingest"} SET STRUCTURAL {("outputs", ?a) ("outputs", ?m)}}',
    )  # fmt: skip
    commits = len(people.deltas)
    people.do(plan)
    assert len(people.deltas) == commits + 1
    assert len(people.deltas[-1].puts) == 4

    assert people.no(plan[:-1] + ' CREATE CONCEPT ?bad {TYPE "Spaceship"}}') == "SchemaSymbolNotFound"
    assert count(people, "?x EVIDENCE {}") == 1


def test_kip2_kml_008_forward_local_refs_work_in_full_profile(people):
    """Evidence and the Activity that made it name each other in one statement."""
    made = people.handles('MUTATE {CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "tool_result", payload: 1} SET STRUCTURAL {("generated_by", ?x)}} '
                          'CREATE ACTIVITY ?x {SET FIELDS {activity_class: "tool_execution"} SET STRUCTURAL {("outputs", ?e)}}}')  # fmt: skip

    assert people.get(made["e"]).generated_by == made["x"]["id"]
    assert people.get(made["x"]).outputs == (made["e"]["id"],)


def test_kip2_kml_009_duplicate_local_handle_fails(people):
    """A handle declared twice is refused and nothing commits."""
    assert (
        people.no('MUTATE {CREATE CONCEPT ?x {TYPE "Theme"} CREATE CONCEPT ?x {TYPE "Theme"}}')
        == "DuplicateLocalHandle"
    )


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_kip2_kml_010_conflicting_final_mutation_fails(people, order):
    """Two values for one field are refused, whichever comes last."""
    clauses = " ".join(f"UPDATE :alice SET ATTRIBUTES {{n: {value}}}" for value in order)

    assert people.no(f"MUTATE {{{clauses}}}") == "DuplicateMutationTarget"
    assert people.get(people.ref["alice"]).attributes == {}


def test_kip2_kml_011_update_never_creates(people):
    """A WHERE that matches nothing answers with zeros and makes nothing."""
    before = people.state
    result = people.do('UPDATE ?c SET ATTRIBUTES {a: 1} WHERE {?c CONCEPT {type: "Person", name: "Nobody"}}')

    assert (result["matched"], result["updated"]) == (0, 0)
    assert people.state is before


def test_kip2_kml_012_update_legal_mnemonic_facet(people):
    """Only the facet field named changes."""
    people.do('UPDATE :alice SET FACET "MnemonicState" {memory_strength: 0.8, salience: 0.9}')
    before = people.get(people.ref["alice"])
    people.do('UPDATE :alice SET FACET "MnemonicState" {memory_strength: 0.4}')
    after = people.get(people.ref["alice"])

    assert list(after.facets.values()) == [{"memory_strength": 0.4, "salience": 0.9}]
    assert (after.name, after.attributes, after.structural) == (
        before.name,
        before.attributes,
        before.structural,
    )


@pytest.mark.parametrize(
    "field",
    [
        "_system: {version: 9}",
        'origin: "me"',
        "version: 9",
        'created_at: "2020-01-01T00:00:00Z"',
        "space_seq: 9",
    ],
)
def test_kip2_kml_013_update_cannot_write_system(people, field):
    """Engine truth is refused as such."""
    before = people.get(people.ref["alice"])

    assert people.no(f"UPDATE :alice SET FIELDS {{{field}}}") == "ProtectedSystemField"
    assert people.get(people.ref["alice"]) == before


@pytest.mark.parametrize(
    "field", ['classification: "public"', 'policy_ref: "p"', 'authority: "executable"', "quarantine: false"]
)
def test_kip2_kml_014_update_cannot_write_governance(people, field):
    """The control plane is refused as such; written as a whole block it is refused by the grammar, with the reason."""
    assert people.no(f"UPDATE :alice SET FIELDS {{{field}}}") == "ProtectedGovernanceField"
    response = people.run("UPDATE :alice SET FIELDS {governance: {}}", people.ref)
    assert response["results"][0]["error"]["details"]["reason"] == "ProtectedGovernanceField"
    assert people.get(people.ref["alice"]).governance.classification is None


def test_kip2_kml_015_assertion_confidence_rewrite_rejected(people):
    """Confidence is history."""
    made = one(people, SAY, "a")

    assert people.no("UPDATE :a SET FIELDS {confidence: 0.1}", **made) == "EpistemicRevisionRequired"
    assert people.get(made["a"]).confidence == 0.9


def test_kip2_kml_016_evidence_payload_rewrite_rejected(people):
    """A payload is history."""
    made = one(people, MESSAGE, "m")

    assert people.no('UPDATE :m SET FIELDS {payload: "other"}', **made) == "EvidenceCorrectionRequired"
    assert people.get(made["m"]).payload.inline == "I moved"


def test_kip2_kml_017_belief_revision_uses_new_assertion(people):
    """A revised claim from new Evidence leaves the old payload."""
    old = one(people, SAY, "a")
    payload = people.get(old["a"])
    people.do(f"MUTATE {{{MESSAGE} {SAY.replace('?a', '?b').replace('0.9', '0.2, evidence: ?m')}}}")

    assert people.get(old["a"]) == payload
    assert count(people, "?x ASSERTION {}") == 2


def test_kip2_kml_018_own_supersession_succeeds(people):
    """Alice revises Alice; both ends of the lineage agree."""
    old = one(people, SAY, "a")["a"]
    new = one(people, SAY + " SUPERSEDING :old", "a", old=old)["a"]

    assert people.get(old).superseded_by == (new["id"],)
    assert people.get(new).supersedes == (old["id"],)


def test_kip2_kml_019_different_actor_disagreement_cannot_supersede(people):
    """Bob cannot erase what Alice said."""
    old = one(people, SAY, "a")["a"]

    assert (
        people.no(
            'ASSERT (:alice, "timezone", "+01:00") {by: :bob, mode: "stated"} SUPERSEDING :old', old=old
        )
        == "SupersessionMismatch"
    )
    assert people.get(old).status == "active"
    assert count(people, "?x ASSERTION {}") == 1


def test_kip2_kml_020_retraction_preserves_payload(people):
    """A withdrawn claim is still what was said."""
    made = one(people, SAY, "a")
    people.do("RETRACT ASSERTION :a", **made)

    assert people.do("FIND(?a.lifecycle.status, ?a.confidence, ?a.stance) WHERE {?a ASSERTION {}}") == [
        ["retracted", 0.9, "support"]
    ]


def test_kip2_kml_021_retraction_requires_representation_authority(people):
    """A recorder that may not speak for Alice cannot withdraw for her."""
    made = one(people, SAY, "a")
    recorder = Principal(
        "recorder",
        permissions=frozenset({"read", "create", "record_attributed_assertion", "retract_own"}),
        actors=frozenset(),
    )

    assert people.error("RETRACT ASSERTION :a", made, principal=recorder) == "RetractionNotAuthorized"
    assert people.get(made["a"]).status == "active"


def test_kip2_kml_022_evidence_correction_can_be_transaction_atomic(people):
    """A failing clause takes the correction and the new Evidence with it."""
    made = one(people, MESSAGE, "m")
    plan = 'MUTATE {CREATE EVIDENCE ?n {SET FIELDS {evidence_class: "x", payload: "y"}} CORRECT EVIDENCE :m BY ?n CREATE CONCEPT ?bad {TYPE "Spaceship"}}'

    assert people.no(plan, **made) == "SchemaSymbolNotFound"
    assert people.get(made["m"]).status == "active"
    assert count(people, "?x EVIDENCE {}") == 1


def test_kip2_kml_023_maintenance_cannot_decay_assertion_confidence(people):
    """A sweep over claims cannot lower their confidence."""
    one(people, SAY, "a")
    maintenance = Principal(
        "maintenance", permissions=frozenset({"read", "maintain", "archive", "manage_retention"})
    )
    response = people.run(
        "UPDATE ?a SET FIELDS {confidence: MUL(?a.confidence, 0.5)} WHERE {?a ASSERTION {}}",
        principal=maintenance,
    )

    assert response["status"] == "failed"
    assert people.do("FIND(?a.confidence) WHERE {?a ASSERTION {}}") == [0.9]


def test_kip2_kml_024_maintenance_can_decay_memory_strength(people):
    """A bounded sweep over a mutable facet is maintenance's work."""
    people.do('UPDATE :alice SET FACET "MnemonicState" {memory_strength: 0.8}')
    maintenance = Principal("maintenance", permissions=frozenset({"read", "maintain"}))
    response = people.run(
        'UPDATE ?c SET FACET "MnemonicState" {memory_strength: CLAMP(MUL(?c.facets["MnemonicState"].memory_strength, 0.5), 0, 1)} '
        'WHERE {?c CONCEPT {type: "Person"} FILTER(IS_NOT_NULL(?c.facets["MnemonicState"].memory_strength))} LIMIT 500',
        principal=maintenance,
    )  # fmt: skip

    assert response["status"] == "succeeded"
    assert list(people.get(people.ref["alice"]).facets.values()) == [{"memory_strength": 0.4}]


def test_kip2_kml_025_archive_is_not_retraction(people):
    """An archived claim was not withdrawn."""
    made = one(people, SAY, "a")
    people.do("ARCHIVE :a", **made)

    assert (
        people.get(made["a"]).system.state,
        people.get(made["a"]).status,
        people.get(made["a"]).retracted_at,
    ) == ("archived", "active", None)


def test_kip2_kml_026_tombstone_is_not_purge(people):
    """A tombstoned Concept keeps its identity and its history."""
    people.do("TOMBSTONE :carol")

    assert people.do('FIND(?c.id, ?c.name, ?c.key) WHERE {?c CONCEPT {state: "tombstoned"}}') == [
        [people.ref["carol"]["id"], "Carol", "carol"]
    ]


def test_kip2_kml_027_legal_hold_blocks_purge(people):
    """Held Evidence is not erased."""
    made = one(people, MESSAGE, "m")
    people.do("SET RETENTION :m {legal_hold: true}", **made)

    assert people.no('PURGE :m CONFIRM "PURGE"', **made) == "LegalHoldConflict"
    assert people.get(made["m"]).payload.inline == "I moved"


def test_kip2_kml_028_referenced_evidence_purge_denied_conservatively(people):
    """Cited Evidence is not erased, and neither is what cites it."""
    made = people.handles(f"MUTATE {{{MESSAGE} {SAY.replace('0.9', '0.9, evidence: ?m')}}}", people.ref)

    assert people.no('PURGE :m CONFIRM "PURGE"', **made) == "PurgeDenied"
    assert people.get(made["m"]).payload.inline == "I moved"
    assert people.get(made["a"]).system.state == "active"


def test_kip2_kml_029_merge_is_non_destructive(people):
    """The source stays, as merged, with what it was."""
    people.do("MERGE CONCEPT :bob INTO :alice")
    bob = people.get(people.ref["bob"])

    assert (bob.system.state, bob.name, bob.key) == ("merged", "Bob", "bob")


def test_kip2_kml_030_merge_requires_identity_authority(people):
    """Permission to update is none to merge."""
    updater = Principal("updater", permissions=frozenset({"read", "create", "update"}))

    assert people.error("MERGE CONCEPT :bob INTO :alice", people.ref, principal=updater) == "NotAuthorized"
    assert people.get(people.ref["bob"]).merged_into is None


def test_kip2_kml_031_assert_sugar_desugars_exactly(people):
    """ASSERT leaves element for element what its desugared form leaves, with and without supersession."""
    other = People()
    for world, long in ((people, False), (other, True)):
        made = one(world, MESSAGE, "m")
        old = one(world, SAY, "a")["a"]
        supersede = " SUPERSEDE ASSERTION :old BY ?a" if long else " SUPERSEDING :old"
        create = (
            'MUTATE {ENSURE PROPOSITION ?p (:alice, "timezone", "+08:00") CREATE ASSERTION ?a {SET FIELDS {proposition: ?p, '
            'asserted_by: :alice, stance: "support", mode: "stated", confidence: 0.9} SET STRUCTURAL {("evidence", :m) {role: "support"}}}'
            + supersede + "}"
        ) if long else SAY.replace("0.9", "0.9, evidence: :m") + supersede  # fmt: skip
        world.do(create, old=old, **made)

    assert {e.id: e for e in people.deltas[-1].puts} == {e.id: e for e in other.deltas[-1].puts}
    assert count(people, '?x PROPOSITION (?s, "timezone", ?o)') == 1
    assert (count(people, "?x EVIDENCE {}"), count(people, "?x ACTIVITY {}")) == (1, 0)


def test_kip2_kml_032_upsert_creates_the_type_its_match_declares(people):
    """The new Concept has MATCH's type exactly; without a type nothing is made."""
    command = 'UPSERT CONCEPT ?p {MATCH {type: "Person", key: "zoe"} SET FIELDS {name: "Zoe"}}'
    made = one(people, command, "p")

    assert people.do('FIND(?p.id) WHERE {?p CONCEPT {type: "Person", key: "zoe"}}') == [made["p"]["id"]]
    assert people.get(made["p"]).schema_ref == "kip://test/core-domain@1.0.0/Person"
    assert (
        people.no('UPSERT CONCEPT ?p {MATCH {key: "nobody"} SET FIELDS {name: "N"}}')
        == "SchemaSymbolNotFound"
    )


def test_kip2_kml_033_a_logical_key_is_identity_within_its_type(people):
    """One key in two types is two identities, and without a type it names neither."""
    made = one(people, 'UPSERT CONCEPT ?t {MATCH {type: "Theme", key: "alice"}}', "t")

    assert made["t"] != people.ref["alice"]
    assert people.get(made["t"]).schema_ref != people.get(people.ref["alice"]).schema_ref
    assert people.no('UPSERT CONCEPT ?x {MATCH {key: "alice"} SET FIELDS {name: "?"}}') == "IdentityConflict"
    assert people.no('CREATE CONCEPT ?x {TYPE "Person" SET FIELDS {key: "alice"}}') == "IdentityConflict"
