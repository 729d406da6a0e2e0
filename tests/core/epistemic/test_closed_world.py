"""Rejection by absence: each of the declarations it needs, and everything that keeps the world open (KIP §24.2)."""

from __future__ import annotations

from typing import Any

import pytest

from core.epistemic.policy import POLICIES
from core.epistemic.trust import TrustRecord, TrustState
from core.errors import NoemaError
from core.model.elements import Governance, Proposition
from core.model.literals import Literal
from core.schema.definitions import Package, read_package
from core.schema.environment import Environment
from tests.core.query.brain import ARTIFACT, WORLD, Brain

CLOSED = {"open_world": False, "closed_world": {"evidence_class": "roster"}}
POLICY = "kip:policy:closed-world"


def package(declared: dict[str, Any]) -> Package:
    """The test vocabulary with `has_member`, declared in some way."""
    definitions = ARTIFACT["definitions"]
    predicates = {**definitions["predicates"], "has_member": declared}
    artifact = {**ARTIFACT, "definitions": {**definitions, "predicates": predicates}}
    return read_package(artifact, "sha256:test")


class Team(Brain):
    """A project with a roster, kept by a trusted registrar, that lists Ann."""

    def __init__(self) -> None:
        super().__init__()
        self.env = Environment(1, [package(CLOSED)])
        self.registrar = self.concept("Person", "Registrar")
        self.project = self.concept("Project", "Alpha")
        self.ann = self.concept("Person", "Ann")
        self.bob = self.concept("Person", "Bob")
        self.roster = self.evidence("roster", "Ann", self.registrar)
        self.on = self.says(self.project, "has_member", self.ann)
        self.listed = self.claim(self.on, self.registrar, self.roster, mode="observed")
        self.options["trust"] = TrustState((TrustRecord("actor", self.registrar.id, "trusted"),))

    def member(
        self, who: Any = None, policy: str = POLICY, clauses: str = "", predicate: str = "has_member", **options: Any
    ) -> dict[str, Any]:  # fmt: skip
        """The belief that somebody, Bob if not said, is a member."""
        self.commit()
        text = (
            f'FIND(?b) WHERE {{ ?b BELIEF ((id: :p), "{predicate}", (id: :w)) }} {clauses} '
            f'WITH EPISTEMIC {{policy: "{policy}", explanation: "ledger"}}'
        )
        return dict(self.rows(text, {"p": self.project.id, "w": (who or self.bob).id}, **options)[0])


@pytest.fixture
def team() -> Team:
    return Team()


def open_for_a_gap(belief: dict[str, Any]) -> bool:
    """Whether the belief says that the world could not be closed."""
    assert "closed_world" not in belief
    return belief["status"] == "insufficient" and "coverage_gap" in belief["uncertainty"]["reasons"]


def test_what_a_complete_record_leaves_out_is_rejected(team: Team) -> None:
    """The result names the scope and the record; nobody is made to have said it."""
    found = team.member()

    assert found["status"] == "rejected"
    assert found["closed_world"] == {
        "subject": {"id": team.project.id},
        "predicate_ref": f"{WORLD}/has_member",
        "evidence_ids": [team.roster.id],
    }
    assert found["opposition"]["assertion_ids"] == found["explanation"]["eligible_assertions"] == []
    assert found["uncertainty"]["reasons"] == []
    assert "left out by 1 complete record of its subject" in found["explanation"]["leading_factors"]


def test_what_the_record_lists_is_as_believed_as_ever(team: Team) -> None:
    """A closed world changes nothing of what is said."""
    team.claim(team.on, team.bob)
    belief = team.member(team.ann)

    assert belief["status"] == team.member(team.ann, "kip:policy:baseline")["status"]
    assert "closed_world" not in belief


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != POLICY])
def test_only_the_policy_that_says_so_closes_the_world(team: Team, policy: str) -> None:
    """The default and every other leave it open, and do not even speak of a gap."""
    found = team.member(policy=policy)

    assert found["status"] == "insufficient"
    assert "closed_world" not in found
    assert "coverage_gap" not in found["uncertainty"]["reasons"]


@pytest.mark.parametrize("declared", [{}, {"open_world": False}, {"complete": True}])
def test_a_predicate_that_declares_no_record_is_open(team: Team, declared: dict[str, Any]) -> None:
    """To say that a predicate is not open is not yet to say what closes it."""
    team.env = Environment(1, [package(declared)])
    found = team.member()

    assert (found["status"], "closed_world" in found) == ("insufficient", False)


@pytest.mark.parametrize(
    "declared",
    [
        {"open_world": False, "closed_world": True},
        {"open_world": False, "closed_world": {}},
        {"open_world": False, "closed_world": {"evidence_class": ""}},
        {"open_world": False, "closed_world": {"evidence_class": "roster", "since": 1}},
        {"closed_world": {"evidence_class": "roster"}},
        {"open_world": True, "closed_world": {"evidence_class": "roster"}},
    ],
)
def test_a_package_cannot_half_close_a_world(declared: dict[str, Any]) -> None:
    """What does not name its Evidence, or contradicts itself, is refused when the package is read."""
    with pytest.raises(NoemaError) as refused:
        package(declared)
    assert refused.value.code == "ArtifactParseError"
    assert refused.value.details["at"] == "has_member.closed_world"


@pytest.mark.parametrize("trust", [(), (("actor", "weak"),), (("actor", "trusted"), ("source", "low_trust"))])
def test_a_record_that_is_not_trusted_closes_nothing(team: Team, trust: tuple[tuple[Any, Any], ...]) -> None:
    """Authority is what the space's owner says of the record, by the worst that is said."""
    of = {"actor": team.registrar.id, "source": team.roster.id}
    team.options["trust"] = TrustState(tuple(TrustRecord(scope, of[scope], value) for scope, value in trust))

    assert open_for_a_gap(team.member())


def test_the_trust_of_another_root_is_not_the_records(team: Team) -> None:
    """A claim that a trusted witness supports too does not make an unknown record authoritative."""
    witness = team.concept("Person", "Witness")
    seen = team.evidence("observation", "seen", witness)
    team.change(
        team.listed, evidence=(*team.listed.evidence, type(team.listed.evidence[0])(seen.id, "support"))
    )
    team.options["trust"] = TrustState((TrustRecord("actor", witness.id, "trusted"),))

    assert open_for_a_gap(team.member())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda team: team.change(team.roster, status="corrected"),
        lambda team: team.change(team.roster, state="archived"),
        lambda team: team.change(team.roster, evidence_class="message"),
        lambda team: team.change(team.listed, status="retracted"),
        lambda team: team.change(team.listed, state="archived"),
        lambda team: team.change(team.listed, stance="reject"),
        lambda team: team.change(team.listed, mode="hypothetical"),
        lambda team: team.change(team.on, state="archived"),
    ],
)
def test_a_record_that_no_longer_stands_closes_nothing(team: Team, spoil: Any) -> None:
    """Corrected, out of recall, of another class, or cited by no claim that counts."""
    spoil(team)
    assert open_for_a_gap(team.member())


def test_another_subject_and_another_predicate_are_not_covered(team: Team) -> None:
    """One record closes the slot it is about."""
    team.project, other = team.concept("Project", "Beta"), team.project
    assert open_for_a_gap(team.member())
    team.project = other
    assert "closed_world" not in team.member(predicate="knows")


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"state": "archived"}, "archived"),
        ({"mode": "hypothetical"}, "supposed"),
        ({"context_refs": ("C-other",)}, "elsewhere"),
    ],
)
def test_a_value_that_somebody_still_says_is_not_absent(
    team: Team, fields: dict[str, Any], state: str
) -> None:
    """A claim left out of belief for any reason but that it is over keeps the question open."""
    said = team.claim(team.says(team.project, "has_member", team.bob), team.ann)
    team.change(said, **fields)
    if state == "elsewhere":
        text = (
            'FIND(?b) WHERE { ?b BELIEF ((id: :p), "has_member", (id: :w)) } '
            f'WITH EPISTEMIC {{policy: "{POLICY}", context: "C-here"}}'
        )
        team.commit()
        [found] = team.rows(text, {"p": team.project.id, "w": team.bob.id})
    else:
        found = team.member()

    assert open_for_a_gap(found)


@pytest.mark.parametrize("over", [{"status": "retracted"}, {"status": "superseded"}])
def test_a_withdrawn_claim_leaves_its_value_absent(team: Team, over: dict[str, Any]) -> None:
    """Who took it back does not say it."""
    said = team.claim(team.says(team.project, "has_member", team.bob), team.ann)
    team.change(said, **over)

    assert team.member()["status"] == "rejected"


def test_weak_material_is_still_material(team: Team) -> None:
    """What somebody says is weighed as ever; absence is only asked where nobody speaks."""
    team.claim(team.says(team.project, "has_member", team.bob), team.ann, confidence=0.1)

    assert team.member()["status"] == "uncertain"


@pytest.mark.parametrize("state", ["archived", "tombstoned"])
def test_a_statement_out_of_recall_is_not_absent(team: Team, state: str) -> None:
    """It is kept, and that says nothing against it."""
    team.change(team.says(team.project, "has_member", team.bob), state=state)

    assert open_for_a_gap(team.member())
    assert team.member(team.registrar)["status"] == "rejected"  # nor anything about other values


def test_an_erased_statement_might_have_been_this_one(team: Team) -> None:
    """A purged statement of the predicate keeps all of it open, and one of another predicate nothing."""
    other = team.says(team.project, "knows", team.bob)
    team.change(other, subject=other.id, object=Literal(None), state="purged")
    assert team.member()["status"] == "rejected"

    erased: Proposition = team.says(team.project, "has_member", team.bob)
    team.change(erased, subject=erased.id, object=Literal(None), state="purged")
    assert open_for_a_gap(team.member())


def test_who_does_not_see_everything_is_not_told_that_there_is_nothing(team: Team) -> None:
    """What is hidden from a caller might be the value: for that caller the world stays open."""
    team.change(team.bob, governance=Governance("public"))
    assert open_for_a_gap(team.member(visible=lambda element: element.governance.classification != "secret"))


def test_the_record_closes_the_world_for_as_long_as_its_claims_hold(team: Team) -> None:
    """World time counts for absence as it does for claims."""
    team.change(team.listed, valid_time=type(team.listed.valid_time)(team.now, None))

    assert team.member()["status"] == "rejected"
    assert open_for_a_gap(team.member(clauses='FOR TIME "2020-01-01T00:00:00Z"'))


def test_a_merged_subject_is_covered_under_each_of_its_names(team: Team) -> None:
    """The record spoke of an identity, whichever of its ids is asked by."""
    twin = team.concept("Project", "Alpha again")
    team.merge(team.project, twin)
    assert team.member()["status"] == "rejected"
    team.project = twin
    assert team.member()["status"] == "rejected"


def test_a_slot_shows_stored_values_only(team: Team) -> None:
    """A closed world adds no value to a slot."""
    team.commit()
    text = (
        f'FIND(?s) WHERE {{ ?s BELIEF SLOT ((id: :p), "has_member") }} WITH EPISTEMIC {{policy: "{POLICY}"}}'
    )
    [slot] = team.rows(text, {"p": team.project.id})

    assert [each["proposition_id"] for each in slot["candidate_projections"]] == [team.on.id]
