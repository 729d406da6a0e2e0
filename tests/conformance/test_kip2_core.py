"""KIP2-CORE-001..022 (conformance paper §13): one test per id; wire answer, durable state, forbidden outcome."""

from __future__ import annotations

import pytest

from core.authority import Principal
from core.model.elements import Assertion, Evidence
from core.model.instants import parse_instant

TIMEZONE = 'ENSURE PROPOSITION ?p (:alice, "timezone", "+08:00")'
SAY = 'ASSERT ?a (:alice, "timezone", "+08:00") {by: :alice, mode: "stated", confidence: 0.6}'


def count(people, pattern):
    return people.do(f"FIND(COUNT(?x)) WHERE {{{pattern}}}")[0]


def handle(people, command, name="a", **more):
    return {name: people.handles(command, {**people.ref, **more})[name]}


def test_kip2_core_001_proposition_existence_is_truth_neutral(people):
    """A stored tuple is found by raw KQL, is insufficient as belief, and gains no Assertion by being asked."""
    people.do(TIMEZONE)
    raw = people.do('FIND(?p.object) WHERE {?p PROPOSITION (:alice, "timezone", ?o)}')
    belief = people.do(
        'FIND(?b.status) WHERE {?b BELIEF (:alice, "timezone", "+08:00")} WITH EPISTEMIC {policy: "test-deterministic"}'
    )

    assert (raw, belief) == (["+08:00"], ["insufficient"])
    assert count(people, "?x ASSERTION {}") == 0


@pytest.mark.parametrize("field", ['object: "+01:00"', 'predicate_ref: "knows"', "subject: 1"])
def test_kip2_core_002_proposition_tuple_is_immutable(people, field):
    """UPDATE of a tuple's object, predicate or subject fails and the Proposition is unchanged."""
    made = handle(people, TIMEZONE, "p")
    before = people.get(made["p"])

    assert people.no(f"UPDATE :p SET FIELDS {{{field}}}", **made) == "ImmutableField"
    assert people.get(made["p"]) == before


def test_kip2_core_003_ensure_proposition_is_canonical(people):
    """ENSURE twice leaves one Proposition and both answers name it."""
    assert handle(people, TIMEZONE, "p") == handle(people, TIMEZONE, "p")
    assert count(people, "?x PROPOSITION (?s, ?r, ?o)") == 1


def test_kip2_core_004_concurrent_ensure_converges(speaker):
    """Two processes that ENSURE one tuple at the same moment leave one active Proposition."""
    setup = 'MUTATE {CREATE CONCEPT ?a {TYPE "Person"} CREATE CONCEPT ?d {TYPE "Preference"}}'
    ids = {name: {"id": h["id"]} for name, h in speaker.ok(setup)["handles"].items()}
    ensure = 'ENSURE PROPOSITION ?p (:a, "prefers", :d)'
    late, first = speaker.racing(lambda: speaker.again().ok(ensure, ids))
    second = late.ok(ensure, ids)

    assert first[0]["handles"]["p"]["id"] == second["handles"]["p"]["id"]
    assert second["handles"]["p"]["created"] is False
    assert speaker.ok("FIND(COUNT(?p)) WHERE {?p PROPOSITION (?s, ?r, ?o)}") == [1]


@pytest.mark.parametrize("target", ["", "proposition: [:p, :q],"])
def test_kip2_core_005_assertion_targets_exactly_one_proposition(people, target):
    """An Assertion with no or several targets fails validation and is not stored."""
    made = {
        **handle(people, TIMEZONE, "p"),
        **handle(people, 'ENSURE PROPOSITION ?q (:bob, "timezone", "x")', "q"),
    }
    code = people.no(
        f'CREATE ASSERTION ?a {{SET FIELDS {{{target} asserted_by: :alice, stance: "support", mode: "stated"}}}}',
        **made,
    )

    assert code == "ConstraintViolation"
    assert count(people, "?x ASSERTION {}") == 0


def test_kip2_core_006_assertion_confidence_is_not_trust(people):
    """Equal confidence of two sources stays equal after projection; no trust is written into it."""
    for actor in ("alice", "bob"):
        people.do(f'ASSERT (:carol, "timezone", "x") {{by: :{actor}, mode: "stated", confidence: 0.7}}')
    people.do('FIND(?b.status) WHERE {?b BELIEF (:carol, "timezone", "x")}')

    assert people.do("FIND(?a.confidence) WHERE {?a ASSERTION {}}") == [0.7, 0.7]


@pytest.mark.parametrize("field", ['stance: "reject"', "confidence: 0.1", "asserted_by: 1", "proposition: 1"])
def test_kip2_core_007_assertion_epistemic_payload_is_immutable(people, field):
    """UPDATE of stance, confidence, actor or target needs a revision and changes nothing."""
    made = handle(people, SAY)
    before = people.get(made["a"])

    assert people.no(f"UPDATE :a SET FIELDS {{{field}}}", **made) == "EpistemicRevisionRequired"
    assert people.get(made["a"]) == before


def test_kip2_core_008_assertion_revision_preserves_history(people):
    """A superseding claim leaves the older one as it was said, addressable and superseded."""
    old = handle(people, SAY)
    new = handle(people, SAY.replace("0.6", "0.9") + " SUPERSEDING :old", old=old["a"])
    first, second = people.get(old["a"]), people.get(new["a"])

    assert isinstance(first, Assertion)
    assert (first.confidence, first.status) == (0.6, "superseded")
    assert (second.confidence, second.status, second.supersedes) == (0.9, "active", (first.id,))


EVIDENCE = 'CREATE EVIDENCE ?a {CLIENT KEY :k SET FIELDS {evidence_class: "observation", payload: :v}}'


def test_kip2_core_009_evidence_payload_is_immutable(people):
    """An overwrite of a payload needs a correction and changes nothing."""
    made = handle(people, EVIDENCE, k="k", v="one")
    before = people.get(made["a"])

    assert people.no('UPDATE :a SET FIELDS {payload: "two"}', **made) == "EvidenceCorrectionRequired"
    assert people.get(made["a"]) == before


def test_kip2_core_010_evidence_correction_preserves_original(people):
    """CORRECT EVIDENCE links the two and leaves the first one's bytes."""
    one, two = handle(people, EVIDENCE, k="1", v="one")["a"], handle(people, EVIDENCE, k="2", v="two")["a"]
    people.do("CORRECT EVIDENCE :one BY :two", one=one, two=two)
    old, new = people.get(one), people.get(two)

    assert isinstance(old, Evidence)
    assert (old.payload.inline, old.corrected_by, new.corrects) == ("one", (new.id,), (old.id,))
    assert people.do("FIND(?e.payload.inline) WHERE {?e EVIDENCE {id: :i}}", i=old.id) == ["one"]


def test_kip2_core_011_equal_digest_does_not_force_evidence_identity(people):
    """Two observations of equal bytes are two Evidence elements."""
    one, two = handle(people, EVIDENCE, k="1", v="same")["a"], handle(people, EVIDENCE, k="2", v="same")["a"]

    assert one != two
    assert people.get(one).content_digest == people.get(two).content_digest


def test_kip2_core_012_evidence_client_key_retry_deduplicates(people):
    """An exact retry under a client key leaves one Evidence."""
    assert handle(people, EVIDENCE, k="K", v="A") == handle(people, EVIDENCE, k="K", v="A")
    assert count(people, "?x EVIDENCE {}") == 1


def test_kip2_core_013_conflicting_client_key_fails(people):
    """Another payload under a bound client key conflicts and replaces nothing."""
    made = handle(people, EVIDENCE, k="K", v="A")

    assert people.no(EVIDENCE, k="K", v="B") == "ClientKeyConflict"
    assert people.get(made["a"]).payload.inline == "A"


def test_kip2_core_014_activity_and_transaction_are_distinct(people):
    """An Activity's id and the tx_id of its commit are two identities."""
    response = people.run('CREATE ACTIVITY ?a {SET FIELDS {activity_class: "review", status: "completed"}}')
    activity, tx = response["results"][0]["result"]["handles"]["a"]["id"], response["receipt"]["tx_id"]

    assert activity != tx
    assert people.get(activity).system.created_tx == tx
    assert people.get(tx) is None


def test_kip2_core_015_completed_activity_topology_is_immutable(people):
    """Inputs and outputs of a completed Activity cannot be changed by any command."""
    made = handle(
        people,
        'CREATE ACTIVITY ?a {SET FIELDS {activity_class: "x", status: "completed"} SET STRUCTURAL {("inputs", :alice)}}',
    )
    before = people.get(made["a"])

    assert people.no('UPDATE :a SET STRUCTURAL {("outputs", :bob)}', **made) == "ActivityTerminal"
    assert people.no('UPDATE :a UNSET STRUCTURAL {("inputs", :alice)}', **made) == "ActivityTerminal"
    assert (
        people.no('TRANSITION ACTIVITY :a TO "completed" SET STRUCTURAL {("outputs", :bob)}', **made)
        == "ActivityTerminal"
    )
    assert people.get(made["a"]) == before


def test_kip2_core_016_structural_reference_is_not_proposition(people):
    """has_step is found as topology and never as a fact."""
    people.do(
        'MUTATE {CREATE CONCEPT ?e {TYPE "Experience" SET STRUCTURAL {("has_step", ?s)}} CREATE CONCEPT ?s {TYPE "ExperienceStep"}}'
    )

    assert len(people.do('FIND(?s.id) WHERE {STRUCTURAL (?e, "has_step", ?s)}')) == 1
    assert count(people, "?x PROPOSITION (?s, ?r, ?o)") == 0


def test_kip2_core_017_facet_cannot_bypass_core(people):
    """A facet that mirrors protected or Core fields is refused and the Core stays."""
    before = people.get(people.ref["alice"])

    assert (
        people.no('UPDATE :alice SET FACET "MnemonicState" {_system: {origin: "me"}}')
        == "ProtectedSystemField"
    )
    assert people.no('UPDATE :alice SET FACET "MnemonicState" {proposition: "P"}') == "SchemaFieldNotFound"
    assert (
        people.no('CREATE CONCEPT ?c {TYPE "Person" SET FACET "Origin" {principal: "me"}}')
        == "SchemaSymbolNotFound"
    )
    assert people.get(people.ref["alice"]) == before


def test_kip2_core_018_memory_strength_is_not_confidence(people):
    """Weakening a memory leaves the claim about it as confident as it was."""
    made = handle(
        people, 'ASSERT ?a (:alice, "prefers", :dark) {by: :alice, mode: "stated", confidence: 0.9}'
    )
    people.do('UPDATE :dark SET FACET "MnemonicState" {memory_strength: 0.2}')
    people.do('UPDATE :dark SET FACET "MnemonicState" {memory_strength: 0.1}')

    assert people.get(made["a"]).confidence == 0.9
    assert people.get(made["a"]).system.version == 1


def test_kip2_core_019_retention_time_is_not_valid_time(people):
    """Storage expiry and world validity are stored apart; setting one leaves the other."""
    made = handle(
        people,
        'ASSERT ?a (:alice, "timezone", "x") {by: :alice, mode: "stated", valid: {until: "2030-01-01T00:00:00Z"}}',
    )
    people.do('SET RETENTION :a {expires_at: "2027-01-01T00:00:00Z"}', **made)
    claim = people.get(made["a"])

    assert claim.valid_time.until == parse_instant("2030-01-01T00:00:00Z")
    assert claim.retention.expires_at == parse_instant("2027-01-01T00:00:00Z")
    assert claim.status == "active"


def test_kip2_core_020_concept_merge_is_non_destructive(people):
    """The source stays addressable as merged and resolves to the target; its id and key are not reused."""
    people.do("MERGE CONCEPT :bob INTO :alice")
    found = people.do('FIND(?c.id, ?c.name, ?c.merged_into.id) WHERE {?c CONCEPT {state: "merged"}}')

    assert found == [[people.ref["bob"]["id"], "Bob", people.ref["alice"]["id"]]]
    assert (
        people.handles('UPSERT CONCEPT ?c {MATCH {type: "Person", key: "bob"}}')["c"] == people.ref["alice"]
    )


def test_kip2_core_021_merge_preserves_raw_historical_endpoint(people):
    """Old tuples keep naming the source; new ones name the target."""
    old = handle(people, 'ENSURE PROPOSITION ?a (:bob, "knows", :carol)')
    people.do("MERGE CONCEPT :bob INTO :alice")
    new = handle(people, 'ENSURE PROPOSITION ?a (:bob, "timezone", "x")')

    assert people.get(old["a"]).subject == people.ref["bob"]["id"]
    assert people.get(old["a"]).system.version == 1
    assert people.get(new["a"]).subject == people.ref["alice"]["id"]


def test_kip2_core_022_merge_collision_preserves_assertion_history(people):
    """Claims about two tuples that become one stay two claims about two Propositions."""
    one = handle(people, 'ASSERT ?a (:alice, "timezone", "x") {by: :carol, mode: "stated"}')["a"]
    two = handle(people, 'ASSERT ?a (:bob, "timezone", "x") {by: :carol, mode: "stated"}')["a"]
    people.do("MERGE CONCEPT :bob INTO :alice")

    assert people.get(one).proposition != people.get(two).proposition
    assert count(people, "?x ASSERTION {}") == 2
    assert {people.get(one).system.version, people.get(two).system.version} == {1}
    assert Principal("owner").id == people.get(two).system.origin.principal
