"""Belief under the portable policy, one test for each rule of the epistemic suite (conformance §15)."""

from __future__ import annotations

from typing import Any

import pytest

from core.epistemic.policy import DETERMINISTIC, POLICIES
from core.epistemic.trust import TrustRecord, TrustState
from core.errors import NoemaError
from core.model.elements import Concept, Origin
from core.model.literals import make_literal
from core.transaction.draft import Draft
from tests.core.query.brain import Brain

PORTABLE = 'WITH EPISTEMIC {policy: "test-deterministic", explanation: "ledger"}'


class Minds(Brain):
    """A brain with people whose word has a known worth."""

    def __init__(self) -> None:
        super().__init__()
        self.alice = self.concept("Person", "Alice")
        self.bob = self.concept("Person", "Bob")
        self.carol = self.concept("Person", "Carol")
        self.weak = self.concept("Person", "Weak")
        self.liar = self.concept("Person", "Liar")
        self.dark = self.concept("Theme", "Dark")
        self.fact = self.says(self.alice, "prefers", self.dark)
        self.trust(alice="trusted", bob="trusted", carol="trusted", weak="weak", liar="untrusted")

    def trust(self, **classes: Any) -> None:
        """Protected trust in people, by name."""
        records = tuple(
            TrustRecord("actor", getattr(self, name).id, value) for name, value in classes.items()
        )
        self.options["trust"] = TrustState(records)

    def belief(
        self, target: Any = None, *, with_: str = PORTABLE, time: str = "", **options: Any
    ) -> dict[str, Any]:
        """The belief about a Proposition, Alice's preference by default."""
        self.commit()
        text = f"FIND(?b) WHERE {{ ?b BELIEF (id: :p) }} {time} {with_}"
        return dict(self.rows(text, {"p": (target or self.fact).id}, **options)[0])

    def slot(
        self, predicate: str, *, with_: str = PORTABLE, time: str = "", **options: Any
    ) -> dict[str, Any]:
        """Alice's slot of a predicate."""
        self.commit()
        text = f'FIND(?s) WHERE {{ ?s BELIEF SLOT ({{name: "Alice"}}, "{predicate}") }} {time} {with_}'
        return dict(self.rows(text, **options)[0])


@pytest.fixture
def minds() -> Minds:
    return Minds()


def reasons(belief: dict[str, Any]) -> list[str]:
    """Why Assertions did not count."""
    return [item["reason"] for item in belief["explanation"]["excluded_assertions"]]


def test_epi_001_proposition_alone_is_insufficient(minds: Minds) -> None:
    """That a statement exists says nothing about it."""
    assert minds.belief()["status"] == "insufficient"


def test_epi_002_absent_statement_is_insufficient_and_not_created(minds: Minds) -> None:
    """A grounded tuple that is not stored has a virtual belief; reading creates nothing."""
    minds.commit()
    text = 'FIND(?b) WHERE { ?b BELIEF ({name: "Alice"}, "is_vegetarian", true) }'
    (belief,) = minds.rows(text)

    assert (belief["status"], belief["proposition_id"]) == ("insufficient", None)
    assert belief["proposition"]["object"] is True
    assert minds.rows('FIND(COUNT(?p)) WHERE { ?p (?s, "is_vegetarian", ?o) }') == [0]


def test_epi_003_trusted_support_is_accepted(minds: Minds) -> None:
    """One trusted independent root decides."""
    claim = minds.claim(minds.fact, minds.bob)
    belief = minds.belief()

    assert belief["status"] == "accepted"
    assert belief["support"]["assertion_ids"] == [claim.id]
    assert belief["uncertainty"]["level"] == "low"


def test_epi_004_trusted_opposition_is_rejected(minds: Minds) -> None:
    """Rejection comes from opposition, never from silence."""
    minds.claim(minds.fact, minds.bob, stance="reject")

    assert minds.belief()["status"] == "rejected"


def test_epi_005_support_and_opposition_are_contested(minds: Minds) -> None:
    """Neither side is dropped."""
    minds.claim(minds.fact, minds.alice)
    minds.claim(minds.fact, minds.bob, stance="reject")
    belief = minds.belief()

    assert belief["status"] == "contested"
    assert len(belief["support"]["assertion_ids"]) == len(belief["opposition"]["assertion_ids"]) == 1
    assert "conflicting_evidence" in belief["uncertainty"]["reasons"]


def test_epi_006_weak_material_is_uncertain(minds: Minds) -> None:
    """Weak, unknown and uncertain material is more than nothing and less than an answer."""
    unknown = minds.concept("Person", "Unknown")
    other = minds.says(minds.bob, "prefers", minds.dark)
    third = minds.says(minds.carol, "prefers", minds.dark)
    minds.claim(minds.fact, minds.weak)
    minds.claim(other, unknown)
    minds.claim(third, minds.bob, stance="uncertain")

    assert [minds.belief(p)["status"] for p in (minds.fact, other, third)] == ["uncertain"] * 3
    assert "low_source_trust" in minds.belief()["uncertainty"]["reasons"]


def test_untrusted_material_is_nothing_at_all(minds: Minds) -> None:
    """Untrusted sources are neither strong nor weak."""
    minds.claim(minds.fact, minds.liar)
    belief = minds.belief()

    assert belief["status"] == "insufficient"
    assert reasons(belief) == ["policy_excluded"]


def test_epi_007_and_024_no_number_without_semantics(minds: Minds) -> None:
    """The portable policy gives no score; the graded one says what its score is."""
    minds.claim(minds.fact, minds.bob, confidence=0.9)

    portable, graded = minds.belief(), minds.belief(with_="")
    assert (portable["support"]["score"], portable["support"]["score_semantics"]) == (None, None)
    assert graded["support"] | {"assertion_ids": 0, "root_groups": 0} == {
        "score": 0.9,
        "score_semantics": "normalized_support_not_probability",
        "assertion_ids": 0,
        "root_groups": 0,
    }


def test_confidence_plays_no_part_in_the_portable_status(minds: Minds) -> None:
    """A missing or small confidence is only reported."""
    minds.claim(minds.fact, minds.bob, confidence=0.01)

    assert minds.belief()["status"] == "accepted"


def test_epi_009_and_022_reads_change_nothing(minds: Minds) -> None:
    """Belief is a view: the state is the same object with the same elements after it."""
    claim = minds.claim(minds.fact, minds.bob, confidence=0.5)
    minds.commit()
    before = minds.state.get(claim.id), minds.state.counts, minds.state.seq
    for _ in range(3):
        minds.belief()

    assert (minds.state.get(claim.id), minds.state.counts, minds.state.seq) == before


@pytest.mark.parametrize(
    ("mode", "reason"),
    [("hypothetical", "hypothetical_not_requested"), ("predicted", "prediction_not_requested")],
)
def test_epi_010_and_012_suppositions_and_forecasts_are_no_facts(
    minds: Minds, mode: str, reason: str
) -> None:
    """They do not count for the current world, under either policy, and the ledger says why."""
    minds.claim(minds.fact, minds.bob, mode=mode, confidence=1.0)

    for policy in (PORTABLE, 'WITH EPISTEMIC {explanation: "ledger"}'):
        belief = minds.belief(with_=policy)
        assert belief["status"] == "insufficient"
        assert reasons(belief) == [reason]


def test_epi_011_hypotheses_count_when_asked_for(minds: Minds) -> None:
    """A scenario includes them; forecasts have a policy of their own."""
    minds.claim(minds.fact, minds.bob, mode="hypothetical", confidence=0.9)
    minds.claim(minds.says(minds.bob, "prefers", minds.dark), minds.bob, mode="predicted", confidence=0.9)
    asked = 'WITH EPISTEMIC {policy: "test-deterministic", include_hypothetical: true}'

    assert minds.belief(with_=asked)["status"] == "accepted"
    forecast = minds.belief(
        minds.draft.state.get(minds.select('?p ({name: "Bob"}, "prefers", ?o)')[0]["p"].id),  # type: ignore[union-attr]
        with_='WITH EPISTEMIC {policy: "kip:policy:forecast"}',
    )
    assert (forecast["status"], forecast["policy"]["id"]) == ("accepted", "kip:policy:forecast")


def test_epi_013_import_is_no_endorsement(minds: Minds) -> None:
    """An imported claim counts only from a trusted source, and alone never convinces the graded policy."""
    minds.claim(minds.fact, minds.weak, mode="imported", confidence=1.0)
    other = minds.says(minds.carol, "prefers", minds.dark)
    minds.claim(other, minds.bob, mode="imported", confidence=1.0)

    assert reasons(minds.belief()) == ["policy_excluded"]
    assert minds.belief(with_="")["status"] == "uncertain"
    assert minds.belief(other)["status"] == "accepted"


def test_imports_of_one_capsule_are_one_origin(minds: Minds) -> None:
    """Two claims that came in together do not confirm each other, and gain no trust by whom they name."""
    minds.commit()
    draft = Draft(minds.state, now=minds.now, origin=Origin("tester", "import", "capsule-1"))
    minds.draft = draft
    minds.claim(minds.fact, minds.bob, mode="imported")
    minds.claim(minds.fact, minds.carol, mode="imported")
    trust: TrustState = minds.options["trust"]
    unsaid = minds.belief()
    minds.options["trust"] = TrustState((*trust.records, TrustRecord("import", "capsule-1", "trusted")))
    belief = minds.belief()

    assert (unsaid["status"], belief["status"]) == ("insufficient", "accepted")
    assert len(belief["support"]["root_groups"]) == 1


def test_epi_014_derivation_keeps_its_roots(minds: Minds) -> None:
    """An inference rests on what its Activity took in; the ledger names it."""
    root = minds.evidence("observation", "seen", minds.bob)
    first = minds.claim(minds.fact, minds.bob, root, mode="observed")
    derived = minds.claim(minds.says(minds.carol, "prefers", minds.dark), minds.carol, mode="inferred")
    minds.activity("inference", [first, root], [derived])
    belief = minds.belief(minds.draft.get(derived.proposition))

    assert belief["explanation"]["eligible_assertions"][0]["roots"] == [root.id]
    assert belief["support"]["root_groups"] == [root.id]


def test_derivation_is_worth_no_more_than_its_root(minds: Minds) -> None:
    """A trusted agent's inference from a weak source is weak; from an untrusted one it is nothing."""
    for person, status in ((minds.weak, "uncertain"), (minds.liar, "insufficient")):
        statement = minds.says(person, "prefers", minds.dark)
        source = minds.claim(minds.says(person, "knows", minds.bob), person)
        derived = minds.claim(statement, minds.alice, mode="inferred")
        minds.activity("inference", [source], [derived])
        assert minds.belief(statement)["status"] == status


def test_epi_015_copies_do_not_multiply(minds: Minds) -> None:
    """A summary and a translation of one document are that document."""
    source = minds.evidence("document", "the text", minds.bob)
    summary = minds.evidence("derived_result", "short", source)
    translated = minds.evidence("derived_result", "autre")
    minds.activity("translation", [source], [translated])
    for cited, who in ((source, minds.bob), (summary, minds.carol), (translated, minds.alice)):
        minds.claim(minds.fact, who, cited, mode="inferred")
    belief = minds.belief()

    assert len(belief["support"]["assertion_ids"]) == 3
    assert belief["support"]["root_groups"] == [source.id]
    assert "correlated_sources" in belief["uncertainty"]["reasons"]


def test_evidence_of_an_activity_rests_on_its_inputs(minds: Minds) -> None:
    """What an Activity made of a source is that source, whichever end of the link is recorded."""
    source = minds.evidence("observation", "seen", minds.bob)
    made = minds.activity("extraction", [source])
    minds.claim(
        minds.fact,
        minds.carol,
        minds.evidence("derived_result", "out", generated_by=made.id),
        mode="inferred",
    )
    belief = minds.belief()

    assert belief["support"]["root_groups"] == [source.id]


def test_process_may_be_the_root(minds: Minds) -> None:
    """An Activity that took in only another Activity's work is traced to that Activity."""
    first = minds.activity("tool_execution", associated_actors=(minds.bob.id,))
    claim = minds.claim(minds.fact, minds.carol, mode="inferred")
    minds.activity("inference", [first, minds.dark], [claim])
    belief = minds.belief()

    assert belief["support"]["root_groups"] == [first.id]
    assert belief["status"] == "accepted"


def test_archived_statement_is_projected_by_id(minds: Minds) -> None:
    """Out of recall it is asked about only by name."""
    minds.claim(minds.fact, minds.bob)
    minds.change(minds.fact, state="archived")

    assert minds.belief()["status"] == "accepted"
    assert minds.slot("prefers")["candidate_projections"] == []


def test_literal_with_a_datatype_is_shown_whole(minds: Minds) -> None:
    """A typed value keeps its type in every result."""
    minds.claim(minds.says(minds.alice, "status", make_literal("x", "code")), minds.bob)

    assert minds.slot("status")["accepted_values"] == [{"value": "x", "datatype": "code", "language": None}]


def test_same_document_twice_is_one_root(minds: Minds) -> None:
    """Two records of one document are one; two observations with the same reading are two."""
    for who in (minds.alice, minds.bob):
        minds.claim(minds.fact, who, minds.evidence("document", "the text"), mode="inferred")
    other = minds.says(minds.carol, "prefers", minds.dark)
    for who in (minds.alice, minds.bob):
        minds.claim(other, who, minds.evidence("measurement", "42"), mode="observed")

    assert len(minds.belief()["support"]["root_groups"]) == 1
    assert len(minds.belief(other)["support"]["root_groups"]) == 2


def test_epi_016_repetition_is_not_independence(minds: Minds) -> None:
    """One person's word, however often recorded, is one root; so is one event cited by many."""
    for i in range(4):
        minds.claim(minds.fact, minds.bob, minds.evidence("user_statement", f"said {i}", minds.bob))
    event = minds.evidence("tool_result", "once", minds.carol)
    other = minds.says(minds.carol, "prefers", minds.dark)
    for who in (minds.alice, minds.bob, minds.carol):
        minds.claim(other, who, event, mode="observed")

    assert len(minds.belief()["support"]["root_groups"]) == 1
    assert len(minds.belief(other)["support"]["root_groups"]) == 1


def test_bare_word_and_own_statement_are_one_source(minds: Minds) -> None:
    """A claim without Evidence and one that cites the same person's statement have one origin."""
    minds.claim(minds.fact, minds.bob)
    minds.claim(minds.fact, minds.bob, minds.evidence("user_statement", "I said", minds.bob))

    assert len(minds.belief()["support"]["root_groups"]) == 1


def test_one_tool_run_is_one_root(minds: Minds) -> None:
    """What one execution gives, it gives once."""
    run = minds.activity("tool_execution")
    for name in ("a", "b"):
        minds.claim(
            minds.fact, minds.bob, minds.evidence("tool_result", name, generated_by=run.id), mode="observed"
        )

    assert len(minds.belief()["support"]["root_groups"]) == 1


def test_epi_017_independent_observations_stay_independent(minds: Minds) -> None:
    """Two events from two sources are two roots, though one observer reports both."""
    sensors = [minds.concept("Place", name) for name in ("sensor a", "sensor b")]
    for sensor in sensors:
        minds.claim(minds.fact, minds.bob, minds.evidence("observation", "42", sensor), mode="observed")
    belief = minds.belief()

    assert len(belief["support"]["root_groups"]) == 2
    assert "correlated_sources" not in belief["uncertainty"]["reasons"]


@pytest.mark.parametrize("mode", ["inferred", "stated", "observed"])
def test_epi_018_circles_are_worth_nothing(minds: Minds, mode: str) -> None:
    """Evidence that rests on itself, and claims that rest on each other, support nothing."""
    one, two = minds.evidence("derived_result", "1"), minds.evidence("derived_result", "2")
    minds.activity("inference", [one], [two])
    minds.activity("inference", [two], [one])
    minds.claim(minds.fact, minds.bob, one, mode=mode, confidence=1.0)
    other = minds.says(minds.bob, "prefers", minds.dark)
    first = minds.claim(other, minds.bob, mode="inferred", confidence=1.0)
    second = minds.claim(other, minds.carol, mode="inferred", confidence=1.0)
    minds.activity("inference", [first], [second])
    minds.activity("inference", [second], [first])

    for statement in (minds.fact, other):
        for policy in (PORTABLE, 'WITH EPISTEMIC {explanation: "ledger"}'):
            belief = minds.belief(statement, with_=policy)
            assert belief["status"] == "insufficient"
            assert set(reasons(belief)) == {"provenance_required_but_missing"}
            assert "circular provenance" in belief["explanation"]["warnings"][0]


def test_smallest_circles(minds: Minds) -> None:
    """Evidence made from itself and an inference from itself are nothing; a statement that was reviewed stays one."""
    loop = minds.evidence("derived_result", "x")
    minds.activity("inference", [loop], [loop])
    own = minds.claim(minds.fact, minds.bob, mode="inferred")
    minds.activity("inference", [own], [own])
    minds.claim(minds.fact, minds.carol, loop, mode="observed")
    other = minds.says(minds.bob, "prefers", minds.dark)
    said = minds.claim(other, minds.bob)
    minds.activity("human_review", [said], [said])

    assert minds.belief()["status"] == "insufficient"
    assert minds.belief(other)["status"] == "accepted"


def test_inference_from_nothing_said_is_a_gap(minds: Minds) -> None:
    """KIP §26.6: an inference should say from what; one that does not counts as its actor's word."""
    minds.claim(minds.fact, minds.bob, mode="inferred")
    belief = minds.belief()

    assert belief["status"] == "accepted"
    assert belief["uncertainty"]["reasons"] == ["missing_provenance", "derived_only"]


def test_trust_follows_a_merge(minds: Minds) -> None:
    """Trust in either identity holds for what was said under the alias."""
    robert = minds.concept("Person", "Robert")
    minds.claim(minds.fact, minds.bob)
    minds.merge(minds.bob, robert)

    for known in (minds.bob, robert):
        minds.options["trust"] = TrustState((TrustRecord("actor", known.id, "trusted"),))
        assert minds.belief()["status"] == "accepted"
    minds.options["trust"] = TrustState()
    assert minds.belief()["status"] == "uncertain"


def test_circle_with_a_root_is_worth_the_root(minds: Minds) -> None:
    """What stands outside a circle carries it, once."""
    root = minds.evidence("observation", "seen", minds.carol)
    one, two = minds.evidence("derived_result", "1", root), minds.evidence("derived_result", "2")
    minds.activity("inference", [one], [two])
    minds.activity("inference", [two], [one])
    minds.claim(minds.fact, minds.bob, one, mode="inferred")
    minds.claim(minds.fact, minds.alice, two, mode="inferred")
    belief = minds.belief()

    assert belief["status"] == "accepted"
    assert belief["support"]["root_groups"] == [root.id]


def test_inference_does_not_confirm_its_premise(minds: Minds) -> None:
    """KIP §26.6: a conclusion about the same statement, however sure of itself, adds no weight to it."""
    premise = minds.claim(minds.fact, minds.bob, confidence=0.6)
    conclusion = minds.claim(minds.fact, minds.carol, mode="inferred", confidence=1.0)
    minds.activity("inference", [premise], [conclusion])
    summary = minds.evidence("derived_result", "short", minds.evidence("document", "long"))
    other = minds.says(minds.bob, "prefers", minds.dark)
    minds.claim(other, minds.carol, minds.draft.get(summary.source[0]), mode="observed", confidence=0.3)
    minds.claim(other, minds.alice, summary, mode="inferred", confidence=1.0)

    assert minds.belief(with_="")["support"]["score"] == 0.6
    assert minds.belief(other, with_="")["support"]["score"] == 0.3


@pytest.mark.parametrize("mode", ["hypothetical", "predicted"])
def test_supposition_does_not_become_a_fact_by_inference(minds: Minds, mode: str) -> None:
    """EPI-010, EPI-012: what is inferred from a hypothesis or a forecast counts only where those do."""
    premise = minds.claim(minds.says(minds.bob, "knows", minds.carol), minds.bob, mode=mode)
    conclusion = minds.claim(minds.fact, minds.alice, mode="inferred", confidence=0.9)
    minds.activity("inference", [premise], [conclusion])

    assert minds.belief()["status"] == minds.belief(with_="")["status"] == "insufficient"
    asked = {
        "hypothetical": 'WITH EPISTEMIC {policy: "test-deterministic", include_hypothetical: true}',
        "predicted": 'WITH EPISTEMIC {policy: "kip:policy:forecast"}',
    }[mode]
    assert minds.belief(with_=asked)["status"] == "accepted"


@pytest.mark.parametrize("status", ["retracted", "superseded"])
def test_withdrawn_premise_carries_nothing(minds: Minds, status: str) -> None:
    """What was inferred from a claim falls with it, unless it rests on something else too."""
    premise = minds.claim(minds.says(minds.bob, "knows", minds.carol), minds.bob)
    conclusion = minds.claim(minds.fact, minds.alice, mode="inferred", confidence=0.9)
    minds.activity("inference", [premise], [conclusion])
    assert minds.belief()["status"] == "accepted"

    minds.change(premise, status=status)
    for policy in (PORTABLE, 'WITH EPISTEMIC {explanation: "ledger"}'):
        belief = minds.belief(with_=policy)
        assert (belief["status"], reasons(belief)) == ("insufficient", ["provenance_required_but_missing"])
        assert "withdrawn" in belief["explanation"]["warnings"][0]

    minds.activity("inference", [minds.evidence("observation", "seen", minds.carol)], [conclusion])
    belief = minds.belief()
    assert (belief["status"], belief["uncertainty"]["reasons"]) == (
        "accepted",
        ["missing_provenance", "derived_only"],
    )


@pytest.mark.parametrize("policy", list(POLICIES))
def test_epi_019_functional_values_conflict(minds: Minds, policy: str) -> None:
    """Two strongly supported values of a functional predicate contest each other; none is picked."""
    mode = "predicted" if policy == "kip:policy:forecast" else "stated"
    for zone, who in (("+08:00", minds.alice), ("+01:00", minds.bob)):
        minds.claim(minds.says(minds.alice, "timezone", zone), who, confidence=0.9, mode=mode)
    slot = minds.slot("timezone", with_=f'WITH EPISTEMIC {{policy: "{policy}"}}')

    assert (slot["status"], slot["accepted_values"]) == ("contested", [])
    assert len(slot["candidate_projections"]) == 2


def test_multi_valued_slot_has_no_conflict(minds: Minds) -> None:
    """KQL design §118: without a functional predicate several values are accepted."""
    light = minds.concept("Theme", "Light")
    minds.claim(minds.fact, minds.alice)
    minds.claim(minds.says(minds.alice, "prefers", light), minds.alice)
    slot = minds.slot("prefers")

    assert slot["status"] == "accepted"
    assert slot["accepted_values"] == [{"id": minds.dark.id}, {"id": light.id}]


def test_rejecting_a_rival_supports_nothing(minds: Minds) -> None:
    """KIP §12.7: rejecting true is not support for false."""
    minds.claim(minds.says(minds.alice, "is_vegetarian", True), minds.bob, stance="reject", confidence=1.0)
    no = minds.says(minds.alice, "is_vegetarian", False)

    for policy in (PORTABLE, ""):
        assert minds.belief(no, with_=policy)["status"] == "insufficient"


def test_epi_020_and_021_values_of_different_times_do_not_conflict(minds: Minds) -> None:
    """FOR TIME selects; from is inclusive and until exclusive, to the millisecond."""
    old, new = minds.says(minds.alice, "timezone", "+08:00"), minds.says(minds.alice, "timezone", "+01:00")
    minds.claim(old, minds.alice, until="2026-03-01T00:00:00Z")
    minds.claim(new, minds.alice, since="2026-03-01T00:00:00Z")

    def accepted(time: str) -> list[str]:
        slot = minds.slot("timezone", time=f'FOR TIME "{time}"')
        assert slot["temporal"]["valid_at"] == time
        return list(slot["accepted_values"])

    assert accepted("2026-02-28T23:59:59.999Z") == ["+08:00"]
    assert accepted("2026-03-01T00:00:00.000Z") == ["+01:00"]
    assert minds.slot("timezone")["accepted_values"] == ["+01:00"]
    belief = minds.belief(old)
    assert reasons(belief) == ["outside_valid_time"]
    assert len(belief["explanation"]["temporal_exclusions"]) == 1


def test_belief_then_and_belief_about_then(minds: Minds) -> None:
    """HIST-007: AS OF and FOR TIME are two axes."""
    old = minds.claim(minds.says(minds.alice, "timezone", "+08:00"), minds.alice)
    minds.commit()
    minds.change(old, status="superseded")
    minds.claim(minds.says(minds.alice, "timezone", "+01:00"), minds.alice)
    minds.commit()
    time = 'FOR TIME "2026-05-01T00:00:00Z"'

    assert minds.slot("timezone", time=time)["accepted_values"] == ["+01:00"]
    then = minds.slot("timezone", time=f"AS OF SEQ 1 {time}", state=minds.past[1])
    assert then["accepted_values"] == ["+08:00"]
    assert then["temporal"] == {"valid_at": "2026-05-01T00:00:00.000Z", "as_of_seq": 1}


def test_valid_time_of_a_past_state_is_that_states(minds: Minds) -> None:
    """Without FOR TIME, AS OF asks what was believed then about then."""
    minds.claim(minds.fact, minds.bob, until="2026-06-01T00:00:01Z")
    minds.commit()
    now = minds.now + 3_600_000

    assert minds.belief(now=now)["status"] == "insufficient"
    assert minds.belief(now=now, time="AS OF SEQ 1")["status"] == "accepted"


def test_epi_023_policy_is_named(minds: Minds) -> None:
    """Every result, and the result context, say which rule made it."""
    assert minds.belief()["policy"] == {"id": DETERMINISTIC.id, "version": "1"}
    answer = minds.find('FIND(?s) WHERE { ?s BELIEF SLOT ({name: "Alice"}, "prefers") }')
    assert answer.context["epistemic_policy"] == {"id": "kip:policy:baseline", "version": "1"}
    assert answer.context["valid_at"] == "2026-06-01T00:00:00.000Z"


def test_epi_025_absence_is_not_opposition(minds: Minds) -> None:
    """KIP §24: open world."""
    slot = minds.slot("is_vegetarian")

    assert (slot["status"], slot["accepted_values"], slot["candidate_projections"]) == (
        "insufficient",
        [],
        [],
    )


@pytest.mark.parametrize("status", ["retracted", "superseded", "expired"])
def test_lifecycle(minds: Minds, status: str) -> None:
    """What is no longer in force does not count; history shows it when asked for."""
    claim = minds.claim(minds.fact, minds.bob)
    minds.change(claim, status=status)
    belief = minds.belief()
    asked = PORTABLE.replace("{", "{include_historical: true, ")

    assert (belief["status"], reasons(belief)) == ("insufficient", [status])
    assert "historical_assertions" not in belief["explanation"]
    (shown,) = minds.belief(with_=asked)["explanation"]["historical_assertions"]
    assert (shown["id"], shown["status"]) == (claim.id, status)


def test_archived_claim_is_out_of_recall_not_retracted(minds: Minds) -> None:
    """KIP §60: archiving says nothing about a claim."""
    minds.change(minds.claim(minds.fact, minds.bob), state="archived")

    assert reasons(minds.belief()) == ["policy_excluded"]


def test_contexts_do_not_conflict(minds: Minds) -> None:
    """KIP §25.3: a claim bound to another context than the one asked about does not count."""
    work, home = minds.concept("Place", "work"), minds.concept("Place", "home")
    minds.claim(minds.fact, minds.alice, context_refs=(work.id,))
    minds.claim(minds.fact, minds.bob, stance="reject", context_refs=(home.id,))

    assert minds.belief()["status"] == "contested"
    asked = PORTABLE.replace("{", f'{{context: "{work.id}", ')
    belief = minds.belief(with_=asked)
    assert (belief["status"], reasons(belief)) == ("accepted", ["context_mismatch"])


def test_merged_identities_are_believed_as_one(minds: Minds) -> None:
    """X-013: after a merge, belief about the survivor sees what was said of the alias; raw rows keep it."""
    minds.claim(minds.fact, minds.bob)
    twin = minds.concept("Person", "Alicia")
    minds.merge(minds.alice, twin)
    minds.commit()
    belief = 'FIND(?b.status) WHERE { ?b BELIEF ({name: "Alicia"}, "prefers", {name: "Dark"}) } ' + PORTABLE
    slot = 'FIND(?s.accepted_values) WHERE { ?s BELIEF SLOT ({name: "Alicia"}, "prefers") } ' + PORTABLE

    assert minds.rows(belief) == ["accepted"]
    assert minds.rows(slot) == [[{"id": minds.dark.id}]]
    assert minds.rows('FIND(?s.id) WHERE { (?s, "prefers", ?o) }') == [minds.alice.id]
    assert minds.rows('FIND(?p) WHERE { ?p ({name: "Alicia"}, "prefers", ?o) }') == []


def test_colliding_statements_after_a_merge_are_one_candidate(minds: Minds) -> None:
    """KIP §11.4: both Propositions keep their ids and Assertions, and count as one statement."""
    twin = minds.concept("Person", "Alicia")
    other = minds.says(twin, "prefers", minds.dark)
    minds.claim(minds.fact, minds.bob)
    minds.claim(other, minds.carol, stance="reject")
    minds.merge(minds.alice, twin)

    assert minds.belief(other)["status"] == minds.belief()["status"] == "contested"
    minds.commit()
    (slot,) = minds.rows('FIND(?s) WHERE { ?s BELIEF SLOT ({name: "Alicia"}, "prefers") } ' + PORTABLE)
    assert len(slot["candidate_projections"]) == 1


def test_merged_value_is_the_survivor(minds: Minds) -> None:
    """An object that was merged away is shown as what it became."""
    black = minds.concept("Theme", "Black")
    minds.claim(minds.fact, minds.bob)
    minds.merge(minds.dark, black)

    assert minds.slot("prefers")["accepted_values"] == [{"id": black.id}]


def test_ledger_has_what_the_policy_promises(minds: Minds) -> None:
    """KIP §27.4: contributions, groups, exclusions with reasons; nothing of it without being asked."""
    minds.claim(minds.fact, minds.bob)
    minds.claim(minds.fact, minds.liar)
    ledger = minds.belief()["explanation"]

    assert {
        "eligible_assertions", "excluded_assertions", "support_root_groups", "opposition_root_groups",
        "uncertainty_reasons", "temporal_exclusions", "method", "warnings",
    } <= set(ledger)  # fmt: skip
    assert minds.belief(with_='WITH EPISTEMIC {policy: "test-deterministic"}')["explanation"] == {}
    summary = minds.belief(with_='WITH EPISTEMIC {explanation: "summary"}')["explanation"]
    assert set(summary) == {"leading_factors", "warnings"}


def test_corroboration_is_explained(minds: Minds) -> None:
    """Epistemic Model §140: three claims, one root."""
    event = minds.evidence("tool_result", "once", minds.carol)
    for who in (minds.alice, minds.bob, minds.carol):
        minds.claim(minds.fact, who, event, mode="observed")
    factors = minds.belief(with_='WITH EPISTEMIC {explanation: "summary"}')["explanation"]["leading_factors"]

    assert factors[0] == "3 Assertions from 1 independent root support it"


def test_purged_evidence_still_counts_once_and_is_a_gap(minds: Minds) -> None:
    """KIP §60.3: a stub keeps the identity of a root; a belief says that it cannot be looked at any more."""
    proof = minds.evidence("observation", "seen", minds.carol)
    minds.claim(minds.fact, minds.bob, proof, mode="observed")
    minds.change(proof, state="purged")
    belief = minds.belief()

    assert belief["support"]["root_groups"] == [proof.id]
    assert "missing_provenance" in belief["uncertainty"]["reasons"]


def test_corrected_evidence_is_warned_of(minds: Minds) -> None:
    """KIP §15.5: the record stays and still counts; the reader is told that it was corrected."""
    wrong = minds.evidence("observation", "wrong", minds.carol)
    minds.claim(minds.fact, minds.bob, wrong, mode="observed")
    right = minds.evidence("observation", "right", minds.carol, corrects=(wrong.id,))
    minds.change(wrong, status="corrected", corrected_by=(right.id,))

    assert "corrected" in minds.belief()["explanation"]["warnings"][0]


def test_challenging_evidence_is_no_root(minds: Minds) -> None:
    """KIP §15.6: what a claim cites against itself does not carry it."""
    against = minds.evidence("observation", "seen", minds.liar)
    minds.claim(minds.fact, minds.bob, (against, "challenge"))
    belief = minds.belief()

    assert belief["status"] == "accepted"
    assert against.id not in belief["support"]["root_groups"]


@pytest.mark.parametrize(
    ("epistemic", "code"),
    [
        ('{policy: "strict"}', "ProjectionPolicyUnavailable"),
        ('{policy: "kip:policy:baseline@2"}', "ProjectionPolicyUnavailable"),
        ("{policy: 5}", "TypeMismatch"),
        ('{explanation: "all"}', "ConstraintViolation"),
        ('{include_hypothetical: "yes"}', "TypeMismatch"),
        ("{certainty: 1}", "ConstraintViolation"),
    ],
)
def test_unknown_epistemic_request_is_refused(minds: Minds, epistemic: str, code: str) -> None:
    """A policy or member that is none is named, also where nothing would be projected."""
    with pytest.raises(NoemaError) as refused:
        minds.rows(
            f'FIND(?b) WHERE {{ ?b BELIEF ({{name: "Nobody"}}, "prefers", ?o) }} WITH EPISTEMIC {epistemic}'
        )

    assert refused.value.code == code


def test_exact_policy_version(minds: Minds) -> None:
    """A policy may be named with its version."""
    assert minds.belief(with_='WITH EPISTEMIC {policy: "test-deterministic@1"}')["policy"]["version"] == "1"


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("?b BELIEF (?nothing)", "ProjectionTargetUnbound"),
        ('?c {name: "Alice"} ?b BELIEF (?c)', "ProjectionTargetUnbound"),
        ("?b BELIEF (?s, ?p, ?o)", "ProjectionTargetUnbounded"),
        ('?b BELIEF (?s, "prefers", ?o)', "ProjectionTargetUnbounded"),
        ('?b BELIEF ({name: "Alice"}, ?p, ?o)', "ProjectionTargetUnbounded"),
        ('?b BELIEF SLOT (?s, "prefers")', "ProjectionTargetUnbounded"),
        ('?b BELIEF ({name: "Alice"}, "timezone", 5)', "TypeMismatch"),
    ],
)
def test_kql_020_belief_is_bounded(minds: Minds, where: str, code: str) -> None:
    """A target that nothing binds is refused, whatever is stored."""
    minds.commit()
    with pytest.raises(NoemaError) as refused:
        minds.rows(f"FIND(?b) WHERE {{ {where} }}")

    assert refused.value.code == code


def test_free_object_binds_each_candidate(minds: Minds) -> None:
    """KQL design §100: one result for each stored value, bound to the variable; none for what is not stored."""
    minds.claim(minds.says(minds.alice, "timezone", "+08:00"), minds.bob)
    minds.says(minds.alice, "timezone", "+01:00")
    minds.commit()
    text = 'FIND(?o, ?b.status) WHERE { ?b BELIEF ({name: "Alice"}, "timezone", ?o) } ' + PORTABLE

    assert minds.rows(text) == [["+01:00", "insufficient"], ["+08:00", "accepted"]]
    assert minds.rows(text.replace("Alice", "Bob")) == []


def test_bound_object_that_is_not_stored_is_virtual(minds: Minds) -> None:
    """Where patterns bind the object, each is a grounded question."""
    minds.concept("Theme", "Light")
    minds.claim(minds.fact, minds.bob)
    minds.commit()
    text = (
        'FIND(?t.name, ?b.status) WHERE { ?b BELIEF ({name: "Alice"}, "prefers", ?t) ?t {type: "Theme"} } '
        + PORTABLE
    )

    assert sorted(minds.rows(text)) == [["Dark", "accepted"], ["Light", "insufficient"]]


def test_beliefs_may_follow_each_other(minds: Minds) -> None:
    """KQL design §94: a belief's object may be the next one's subject, in whatever order they are written."""
    minds.claim(minds.says(minds.alice, "knows", minds.bob), minds.carol)
    minds.claim(minds.says(minds.bob, "knows", minds.carol), minds.carol)
    minds.commit()
    first, second = '?b1 BELIEF ({name: "Alice"}, "knows", ?x)', '?b2 BELIEF (?x, "knows", ?y)'
    rest = 'FILTER(?b1.status == "accepted") FILTER(?b2.status == "accepted")'

    for where in (f"{first} {second} {rest}", f"{rest} {second} {first}"):
        assert minds.rows(f"FIND(?x.name, ?y.name) WHERE {{ {where} }} {PORTABLE}") == [["Bob", "Carol"]]


def test_belief_about_a_bound_statement(minds: Minds) -> None:
    """KQL design §223: raw discovery, then belief about what was found; FILTER sees the result."""
    minds.claim(minds.fact, minds.bob)
    minds.says(minds.bob, "prefers", minds.dark)
    minds.commit()
    where = '?p (?s, "prefers", ?o) ?b BELIEF (?p)'

    assert sorted(minds.rows(f"FIND(?s.name, ?b.status) WHERE {{ {where} }} {PORTABLE}")) == [
        ["Alice", "accepted"],
        ["Bob", "insufficient"],
    ]
    accepted = f'FIND(?s.name) WHERE {{ FILTER(?b.status == "accepted") {where} }} {PORTABLE}'
    assert minds.rows(accepted) == ["Alice"]


def test_belief_in_optional_and_not(minds: Minds) -> None:
    """A missing statement in OPTIONAL leaves its belief null; NOT may ask for belief."""
    minds.claim(minds.fact, minds.bob)
    minds.commit()
    optional = (
        'FIND(?c.name, ?b.status) WHERE { ?c {type: "Person"} OPTIONAL { ?p (?c, "prefers", ?o) ?b BELIEF (?p) } } '
        f"{PORTABLE} ORDER BY ?c.name LIMIT 2"
    )
    without = (
        'FIND(COUNT(?c)) WHERE { ?c {type: "Person"} '
        f'NOT {{ ?b BELIEF (?c, "prefers", ?o) FILTER(?b.status == "accepted") }} }} {PORTABLE}'
    )

    assert minds.rows(optional) == [["Alice", "accepted"], ["Bob", None]]
    assert minds.rows(without) == [4]


def test_unknown_field_of_a_belief(minds: Minds) -> None:
    """A misspelt member of a virtual result is told."""
    minds.commit()
    for path in ("probability", "support.probability", "policy.name"):
        with pytest.raises(NoemaError) as refused:
            minds.rows(f"FIND(?b.{path}) WHERE {{ ?b BELIEF (id: :p) }}", {"p": minds.fact.id})
        assert refused.value.code == "SchemaFieldNotFound"


def test_slot_over_a_merged_subject_and_one_row_each(minds: Minds) -> None:
    """A slot is one row for each bound subject, also where nothing is stored."""
    minds.commit()
    rows = minds.rows(
        'FIND(?c.name, ?s.status) WHERE { ?c {type: "Person"} ?s BELIEF SLOT (?c, "timezone") }'
    )

    assert len(rows) == 5
    assert {status for _, status in rows} == {"insufficient"}
    assert isinstance(minds.state.get(minds.alice.id), Concept)
