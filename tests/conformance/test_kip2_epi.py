"""KIP2-EPI-001..027 (conformance paper §15): one test per id; the status, what is durable, what must not happen.

The policy is the portable one throughout (§11, §32); the fixture trusts Self, Alice and Bob, and nothing is said of
Carol.
"""

from __future__ import annotations

import json

import pytest

from core.epistemic.trust import TrustRecord
from core.model.elements import Assertion, Origin
from core.model.instants import format_instant
from core.protocol.capabilities import SUPPORTED
from core.transaction.draft import Draft
from tests.conformance.harness import CORE, request

ZONE = '(:alice, "timezone", "+08:00")'
OTHER = '(:alice, "timezone", "+01:00")'
DIET = '(:alice, "is_vegetarian", true)'
TIE = "2026-01-01T00:00:00Z"
BEFORE, AFTER = "2025-06-01T00:00:00Z", "2026-06-01T00:00:00Z"


def say(world, triple=ZONE, by="bob", stance="support", mode="stated", more="", **parameters):
    """Record a claim; what it is, as a parameter."""
    members = f'by: :{by}, stance: "{stance}", mode: "{mode}"{more and ", " + more}'
    return world.ok(f"ASSERT ?a {triple} {{{members}}}", **parameters).id("a")


def belief(world, target=ZONE, *, clauses="", epistemic="", pattern="BELIEF", **parameters):
    """The whole virtual result about a target."""
    options = f'{{policy: "test-deterministic", explanation: "ledger"{epistemic and ", " + epistemic}}}'
    [row] = world.rows(
        f"FIND(?b) WHERE {{?b {pattern} {target}}} {clauses} WITH EPISTEMIC {options}", **parameters
    )
    return row


def status(world, target=ZONE, **options):
    return belief(world, target, **options)["status"]


def excluded(found):
    """Why claims did not count, by their ids."""
    return {item["id"]: item["reason"] for item in found["explanation"]["excluded_assertions"]}


def evidence(world, kind, payload, links="", **parameters):
    """Record Evidence; what it is, as a parameter."""
    structural = links and f"SET STRUCTURAL {{{links}}}"
    command = f"CREATE EVIDENCE ?e {{SET FIELDS {{evidence_class: :kind, payload: :payload}} {structural}}}"
    return world.ok(command, kind=kind, payload=payload, **parameters).id("e")


def activity(world, kind, links, **parameters):
    """Record a completed Activity."""
    command = (
        'CREATE ACTIVITY ?x {SET FIELDS {activity_class: :kind, status: "completed"} '
        f"SET STRUCTURAL {{{links}}}}}"
    )
    return world.ok(command, kind=kind, **parameters).id("x")


def test_kip2_epi_001_no_assertion_yields_insufficient(world):
    """That a Proposition is stored is neither support nor opposition."""
    world.ok(f"ENSURE PROPOSITION ?p {ZONE}")
    with world.unchanged():
        found = belief(world)

    assert found["status"] == "insufficient"
    assert found["support"]["assertion_ids"] == found["opposition"]["assertion_ids"] == []


def test_kip2_epi_002_absent_grounded_proposition_is_insufficient_without_creation(world):
    """A grounded tuple that is not stored has a status, no proposition, and is still not stored afterwards."""
    with world.unchanged():
        found = belief(world)

    assert (found["status"], found["proposition_id"]) == ("insufficient", None)
    assert world.elements("proposition") == []


def test_kip2_epi_003_trusted_support_yields_accepted(world):
    """One eligible trusted independent support root decides."""
    claim = say(world)
    found = belief(world)

    assert found["status"] == "accepted"
    assert found["support"]["assertion_ids"] == [claim["id"]]
    assert len(found["support"]["root_groups"]) == 1


def test_kip2_epi_004_trusted_opposition_yields_rejected(world):
    """One eligible trusted independent reject root decides."""
    claim = say(world, stance="reject")
    found = belief(world)

    assert found["status"] == "rejected"
    assert found["opposition"]["assertion_ids"] == [claim["id"]]


def test_kip2_epi_005_support_plus_opposition_yields_contested(world):
    """Both sides are there in the result, however strong each calls itself."""
    one = say(world, more="confidence: 0.99")
    two = say(world, by="self", stance="reject", more="confidence: 0.1")
    found = belief(world)

    assert found["status"] == "contested"
    assert (found["support"]["assertion_ids"], found["opposition"]["assertion_ids"]) == (
        [one["id"]],
        [two["id"]],
    )


@pytest.mark.parametrize("trust", ["weak", "low_trust", None])
@pytest.mark.parametrize("stance", ["support", "reject"])
def test_kip2_epi_006_weak_material_may_yield_uncertain(world, trust, stance):
    """Only weak, low-trust or unknown material, on whichever side, is uncertain: neither accepted nor rejected."""
    if trust is not None:
        world.trust(TrustRecord("actor", world.ref["carol"]["id"], trust))
    say(world, by="carol", stance=stance)

    assert status(world) == "uncertain"


def test_kip2_epi_007_confidence_does_not_equal_belief_probability(world):
    """0.9 is the claim's own; the portable policy gives no score, and the graded one names what its score is."""
    claim = say(world, more="confidence: 0.9")
    portable = belief(world)
    [graded] = world.rows(f"FIND(?b) WHERE {{?b BELIEF {ZONE}}}")

    assert (portable["support"]["score"], portable["support"]["score_semantics"]) == (None, None)
    assert graded["support"]["score_semantics"] == "normalized_support_not_probability"
    assert world.element(claim).confidence == 0.9


def test_kip2_epi_008_search_score_does_not_become_confidence(world):
    """A retrieval score is of its answer; the claim that was found is as confident as before."""
    claim = say(world, more="confidence: 0.6")
    before = world.element(claim)
    with world.unchanged():
        hits = world.rows('SEARCH ASSERTION "timezone Alice"')

    assert [hit["id"] for hit in hits] == [claim["id"]]
    assert hits[0]["retrieval"]["score"] > 0
    assert world.element(claim) == before
    assert world.rows("FIND(?a.confidence) WHERE {?a ASSERTION {id: :a}}", a=claim["id"]) == [0.6]


def test_kip2_epi_009_reads_do_not_reinforce_cognition(world):
    """Confidence, memory strength and the number of records are the same after many reads."""
    claim = say(world, more="confidence: 0.5")
    world.ok('UPDATE :dark_mode SET FACET "MnemonicState" {memory_strength: 0.3}')
    with world.unchanged():
        for _ in range(3):
            world.rows(f"FIND(?p) WHERE {{?p PROPOSITION {ZONE}}}")
            world.rows("FIND(?c) WHERE {?c CONCEPT {id: :i}}", i=world.ref["dark_mode"]["id"])
            belief(world)

    assert world.element(claim).confidence == 0.5
    [facet] = world.element(world.ref["dark_mode"]).facets.values()
    assert facet["memory_strength"] == 0.3
    assert len(world.elements("evidence")) == 0


def test_kip2_epi_010_hypothetical_excluded_by_ordinary_policy(world):
    """A supposition does not make the current world, and the ledger says why it did not count."""
    claim = say(world, mode="hypothetical", more="confidence: 1.0")
    found = belief(world)

    assert found["status"] == "insufficient"
    assert excluded(found) == {claim["id"]: "hypothetical_not_requested"}
    assert world.rows(f"FIND(?b.status) WHERE {{?b BELIEF {ZONE}}}") == ["insufficient"]


def test_kip2_epi_011_hypothetical_may_be_included_explicitly(world):
    """A scenario that asks for suppositions gets them, under the same named policy; the next read does not."""
    say(world, mode="hypothetical")
    found = belief(world, epistemic="include_hypothetical: true")

    assert (found["status"], found["policy"]["id"]) == ("accepted", "test-deterministic")
    assert status(world) == "insufficient"


def test_kip2_epi_012_predicted_is_not_observed(world):
    """A forecast is not material for what is, although it stays a forecast that can be read."""
    claim = say(world, mode="predicted", more="confidence: 1.0")
    found = belief(world)

    assert found["status"] == "insufficient"
    assert excluded(found) == {claim["id"]: "prediction_not_requested"}
    assert world.element(claim).mode == "predicted"


def test_kip2_epi_013_imported_is_not_local_endorsement(world):
    """A claim that came in by an import, whoever it names, is stored and does not make itself accepted."""
    made = world.ok(f"ENSURE PROPOSITION ?p {ZONE}").id("p")

    def imported(draft: Draft) -> None:
        draft.origin = Origin("importer", "import", "capsule-1")
        draft.create(
            Assertion, proposition=made["id"], asserted_by=world.ref["carol"]["id"], stance="support",
            mode="imported", asserted_at=draft.now, confidence=1.0,
        )  # fmt: skip

    world.host(imported, management=False)
    [claim] = world.elements("assertion")
    found = belief(world)

    assert claim.system.origin.import_id == "capsule-1"
    assert found["status"] == "insufficient"
    assert excluded(found) == {claim.id: "policy_excluded"}
    assert world.rows(f"FIND(?b.status) WHERE {{?b BELIEF {ZONE}}}") == ["uncertain"]


def test_kip2_epi_014_derived_assertion_preserves_provenance_roots(world):
    """An inference from a claim that cites Evidence rests on that Evidence, not on who inferred it."""
    root = evidence(world, "observation", "a clock", '("source", :carol)')
    first = say(world, mode="observed", more="evidence: [:e]", e=root)
    derived = say(world, OTHER, by="alice", mode="inferred")
    activity(world, "inference", '("inputs", :first) ("outputs", :derived)', first=first, derived=derived)
    found = belief(world, OTHER)
    [ledger] = found["explanation"]["eligible_assertions"]

    assert ledger["roots"] == [root["id"]]
    assert found["support"]["root_groups"] == [root["id"]]
    assert ledger["trust"] == "unknown"  # Carol's word, whoever passed it on
    assert found["status"] == "uncertain"


def test_kip2_epi_015_derived_copies_do_not_multiply_evidence(world):
    """A source, its summary and its translation are one root group under three claims."""
    source = evidence(world, "document", "the text", '("source", :bob)')
    summary = evidence(world, "derived_result", "short", '("source", :s)', s=source)
    translation = evidence(world, "derived_result", "autre")
    activity(world, "translation", '("inputs", :s) ("outputs", :t)', s=source, t=translation)
    for who, cited in (("bob", source), ("self", summary), ("alice", translation)):
        say(world, by=who, mode="inferred", more="evidence: [:e]", e=cited)
    found = belief(world)

    assert len(found["support"]["assertion_ids"]) == 3
    assert found["support"]["root_groups"] == [source["id"]]


def test_kip2_epi_016_repeated_same_source_statement_is_not_source_diversity(world):
    """One event cited by several, and one person's word said again and again, are one root each."""
    event = evidence(world, "tool_result", "once", '("source", :bob)')
    for who in ("alice", "bob", "self"):
        say(world, by=who, mode="observed", more="evidence: [:e]", e=event)
    for _ in range(3):
        say(world, OTHER)

    assert belief(world)["support"]["root_groups"] == [event["id"]]
    assert len(belief(world, OTHER)["support"]["root_groups"]) == 1


def test_kip2_epi_017_independent_observations_may_remain_independent(world):
    """Two events of separate origin are two roots, even where they read the same."""
    for who in ("alice", "bob"):
        seen = evidence(world, "measurement", "+08:00", f'("source", :{who})')
        say(world, by=who, mode="observed", more="evidence: [:e]", e=seen)

    assert len(belief(world)["support"]["root_groups"]) == 2


def test_kip2_epi_018_circular_provenance_does_not_amplify(world):
    """Claims that rest on each other alone are worth nothing, under either policy; with a root they are worth it."""
    one = say(world, by="alice", mode="inferred", more="confidence: 1.0")
    two = say(world, by="bob", mode="inferred", more="confidence: 1.0")
    activity(world, "inference", '("inputs", :one) ("outputs", :two)', one=one, two=two)
    activity(world, "inference", '("inputs", :two) ("outputs", :one)', one=one, two=two)
    found = belief(world)

    assert found["status"] == "insufficient"
    assert found["support"]["root_groups"] == []
    assert set(excluded(found).values()) == {"provenance_required_but_missing"}
    assert world.rows(f"FIND(?b.status) WHERE {{?b BELIEF {ZONE}}}") == ["insufficient"]

    root = evidence(world, "observation", "a clock", '("source", :bob)')
    activity(world, "inference", '("inputs", :root) ("outputs", :one)', root=root, one=one)
    assert belief(world)["support"]["root_groups"] == [root["id"]]


def test_kip2_epi_019_functional_predicate_conflicting_values_are_detected(world):
    """Two trusted values of a functional slot at one time are a conflict, and both are among the candidates."""
    say(world)
    say(world, OTHER, by="self")
    found = belief(world, '(:alice, "timezone")', pattern="BELIEF SLOT")

    assert found["status"] == "contested"
    assert {item["proposition"]["object"] for item in found["candidate_projections"]} == {"+08:00", "+01:00"}


def test_kip2_epi_020_non_overlapping_valid_times_need_not_conflict(world):
    """Each time has its value, and neither is contested by the other's time."""
    say(world, more=f'valid: {{until: "{TIE}"}}')
    say(world, OTHER, more=f'valid: {{from: "{TIE}"}}')

    for moment, value in ((BEFORE, "+08:00"), (AFTER, "+01:00"), (TIE, "+01:00")):
        found = belief(world, '(:alice, "timezone")', pattern="BELIEF SLOT", clauses=f'FOR TIME "{moment}"')
        assert (found["status"], found["accepted_values"]) == ("accepted", [value])


def test_kip2_epi_021_as_of_and_for_time_are_independent(world):
    """What was believed then, and what is believed now about then, are two questions with two answers."""
    then = say(world, more=f'valid: {{until: "{TIE}"}}')
    seq = world.state().seq
    world.ok("RETRACT ASSERTION :a", a=then)
    about = f'FOR TIME "{BEFORE}"'
    held, now = belief(world, clauses=f"AS OF SEQ {seq} {about}"), belief(world, clauses=about)

    assert (held["status"], now["status"]) == ("accepted", "insufficient")
    assert held["temporal"]["valid_at"] == now["temporal"]["valid_at"] == "2025-06-01T00:00:00.000Z"
    assert (held["temporal"]["as_of_seq"], now["temporal"]["as_of_seq"]) == (seq, world.state().seq)
    assert status(world, clauses=f'AS OF SEQ {seq} FOR TIME "{AFTER}"') == "insufficient"


def test_kip2_epi_022_projection_is_read_only(world):
    """However often it is asked, there is no commit, no element and no envelope more."""
    say(world)
    commits, seq = len(world.log()), world.state().seq
    with world.unchanged():
        answers = {status(world) for _ in range(5)}

    assert answers == {"accepted"}
    assert (len(world.log()), world.state().seq) == (commits, seq)


@pytest.mark.parametrize("policy", ["test-deterministic", "kip:policy:baseline", None])
def test_kip2_epi_023_projection_policy_identity_is_observable(world, policy):
    """Result and result context name the policy and its version, the default one too."""
    say(world)
    options = "" if policy is None else f'WITH EPISTEMIC {{policy: "{policy}"}}'
    reply = world.ok(f"FIND(?b) WHERE {{?b BELIEF {ZONE}}} {options}")
    identity = {"id": policy or "kip:policy:baseline", "version": "1"}

    assert reply.result[0]["policy"] == identity
    assert reply["results"][0]["context"]["epistemic_policy"] == identity
    assert world.refused(
        f'FIND(?b) WHERE {{?b BELIEF {ZONE}}} WITH EPISTEMIC {{policy: "nobody:knows"}}'
    ) == ("ProjectionPolicyUnavailable")


def test_kip2_epi_024_numeric_epistemic_scores_declare_semantics(world):
    """Wherever a number is given, in any policy and shape, it says what it means."""
    say(world, more="confidence: 0.9")
    say(world, by="self", stance="reject", more="confidence: 0.4")
    names = [row["policy_id"] for row in world.rows("LIST EPISTEMIC POLICIES")]
    scores = 0
    for name in names:
        [found] = world.rows(f"FIND(?b) WHERE {{?b BELIEF {ZONE}}} WITH EPISTEMIC {{policy: :n}}", n=name)
        for side in ("support", "opposition"):
            assert (found[side]["score"] is None) or found[side]["score_semantics"]
            scores += found[side]["score"] is not None

    assert len(names) >= 3
    assert scores > 0


def test_kip2_epi_025_absence_of_evidence_is_not_evidence_of_absence(world):
    """Nothing is known, so neither the fact nor its contrary is decided."""
    for value in ("true", "false"):
        assert status(world, f'(:alice, "is_vegetarian", {value})') == "insufficient"
    say(world, DIET, stance="reject")

    assert status(world, DIET) == "rejected"
    assert status(world, '(:alice, "is_vegetarian", false)') == "insufficient"
    graded = 'FIND(?b.status) WHERE {?b BELIEF (:alice, "is_vegetarian", false)}'
    assert world.rows(graded) == ["insufficient"]


REGISTRY = {
    "format": "KIP-Schema-Package",
    "manifest": {
        "package_id": "kip://test/registry",
        "version": "1.0.0",
        "package_ref": "kip://test/registry@1.0.0",
    },
    "definitions": {
        "predicates": {
            "enrolled_at": {
                "subject": {"concept_types": [f"{CORE}/Person"]},
                "object": {"concept_types": [f"{CORE}/Organization"]},
                "open_world": False,
                "closed_world": {"evidence_class": "authoritative_record"},
            }
        }
    },
}
"""A predicate of which authoritative records are declared to be complete."""


def test_kip2_epi_026_closed_world_exception_is_explicit(world):
    """Absence rejects only where schema, record and policy all say so, and the result names what closed the world."""
    globex = world.ok('CREATE CONCEPT ?c {TYPE "Organization" NAME "Globex"}').id("c")
    if not SUPPORTED["closed_world"]:
        assert world.refused(request("DESCRIBE PROTOCOL", requires={"closed_world": True})) == (
            "UnsupportedCapability"
        )
        pytest.skip("closed_world is not advertised")
    world.activate([REGISTRY])
    record = evidence(world, "authoritative_record", "the roll", '("source", :bob)')
    other = evidence(world, "message", "heard", '("source", :bob)')
    doubtful = evidence(world, "authoritative_record", "a copy", '("source", :carol)')
    for subject, cited in (("alice", record), ("self", other), ("carol", doubtful)):
        claim = f'(:{subject}, "enrolled_at", :org_acme)'
        say(world, claim, mode="observed", more="evidence: [:e]", e=cited)
    say(world, '(:alice, "works_for", :org_acme)', mode="observed", more="evidence: [:e]", e=record)

    def absent(policy, subject="alice", predicate="enrolled_at"):
        ask = f'FIND(?b) WHERE {{?b BELIEF (:{subject}, "{predicate}", :globex)}}'
        with world.unchanged():
            [found] = world.rows(
                f"{ask} WITH EPISTEMIC {{policy: :policy}}" if policy else ask, globex=globex, policy=policy
            )
        return found

    closing = world.rows("DESCRIBE PROJECTION CAPABILITY")["closed_world"]
    assert closing
    for policy in closing:
        found = absent(policy)
        assert (found["status"], found["policy"]["id"]) == ("rejected", policy)
        assert record["id"] in json.dumps(found)  # by whose record
        assert found["opposition"]["assertion_ids"] == []  # nobody said so
        assert absent(policy, predicate="works_for")["status"] == "insufficient"  # the schema leaves it open
        for subject in ("bob", "self", "carol"):  # no record; none of the class; none that is trusted
            assert absent(policy, subject)["status"] == "insufficient"
    names = [row["policy_id"] for row in world.rows("LIST EPISTEMIC POLICIES")]
    for policy in (None, *(name for name in names if name not in closing)):
        assert absent(policy)["status"] == "insufficient"
    say(world, '(:alice, "enrolled_at", :globex)', by="carol", more="confidence: 0.2", globex=globex)
    assert {absent(policy)["status"] for policy in closing} == {"uncertain"}  # somebody speaks of it
    assert len(world.elements("assertion")) == 5


def test_kip2_epi_027_materialized_projection_discloses_its_basis(world):
    """However often and by whom belief was asked before, an answer is of the state, time, trust and caller it names."""
    if not SUPPORTED["materialized_projection"]:
        required = request("DESCRIBE PROTOCOL", requires={"materialized_projection": True})
        assert world.refused(required) == "UnsupportedCapability"
    ask = f"FIND(?b) WHERE {{?b BELIEF {ZONE}}}"
    portable = 'WITH EPISTEMIC {policy: "test-deterministic"}'
    served: list[str] = []

    def asked(principal="owner", clauses="", **parameters):
        """The status, the same however often it is asked, with its basis held against what the answer says."""
        answers = [
            world.invoke(principal, f"{ask} {clauses} {portable}", **parameters) for _ in range(3)
        ]  # fmt: skip
        assert len({str(reply.result[0]["status"]) for reply in answers}) == 1
        context = answers[-1]["results"][0]["context"]
        assert context["epistemic_policy"] == {"id": "test-deterministic", "version": "1"}
        assert context["snapshot_seq"] == answers[-1].result[0]["temporal"]["as_of_seq"]
        if not clauses:
            assert context["snapshot_seq"] == world.state().seq
        for reply in answers:
            basis = reply["results"][0]["context"].get("extensions", {}).get("noema/materialized_projection")
            if basis is not None:  # served, not formed: from what is told (KIP §21.9, §50)
                served.append(principal)
                assert basis["epistemic_policy"] == context["epistemic_policy"]
                assert basis["snapshot_seq"] == reply.result[0]["temporal"]["as_of_seq"]
                assert basis["valid_at"][0] <= reply.result[0]["temporal"]["valid_at"]
        return answers[-1].result[0]["status"]

    soon = format_instant(world.clock.now() + 60_000)
    claim = say(world, more=f'valid: {{from: "{TIE}", until: "{soon}"}}')
    first = world.state().seq
    assert asked() == "accepted"
    assert asked(clauses=f'FOR TIME "{BEFORE}"') == "insufficient"
    assert asked() == "accepted"
    world.ok("UPDATE :carol SET ATTRIBUTES {unrelated: true}")
    assert asked() == "accepted"
    against = say(world, by="self", stance="reject")
    assert asked() == "contested"
    assert asked(clauses="AS OF SEQ :n", n=first) == "accepted"
    world.classify(against)
    assert (asked("reader_hidden"), asked()) == ("accepted", "contested")
    world.trust(TrustRecord("actor", world.ref["self"]["id"], "untrusted"))
    assert asked() == "accepted"
    world.clock.advance(120_000)
    assert asked() == "insufficient"
    assert [found.id for found in world.elements("assertion")] == [claim["id"], against["id"]]
    assert world.elements("evidence") == []
    assert bool(served) == SUPPORTED["materialized_projection"]
    assert "reader_hidden" not in served
    if not SUPPORTED["materialized_projection"]:
        pytest.skip("materialized_projection is not advertised")


def test_kip2_epi_027_what_is_served_again_names_its_basis(world):
    """Policy, state and world time under which it was formed stand in the result context; a fresh one has none."""
    say(world)
    ask = f'FIND(?b) WHERE {{?b BELIEF {ZONE}}} WITH EPISTEMIC {{policy: "test-deterministic"}}'

    def asked():
        reply = world.ok(ask)
        context = reply["results"][0]["context"]
        return reply.result[0], context, context.get("extensions", {}).get("noema/materialized_projection")

    with world.unchanged():
        (fresh, at, none), (served, again, basis) = asked(), asked()
    assert none is None
    assert at["valid_at"] < again["valid_at"]
    assert served == {**fresh, "temporal": {**fresh["temporal"], "valid_at": again["valid_at"]}}
    assert basis == {
        "beliefs": 1,
        "epistemic_policy": {"id": "test-deterministic", "version": "1"},
        "snapshot_seq": world.state().seq,
        "valid_at": [at["valid_at"], at["valid_at"]],
    }

    say(world, by="self", stance="reject")
    new, _, stale = asked()
    assert (new["status"], stale) == ("contested", None)
    assert (
        new["support"]["root_groups"] == fresh["support"]["root_groups"]
    )  # what was served counts for nothing
