"""The graded policy's arithmetic (contract 5c), as a table."""

from __future__ import annotations

from typing import Any

import pytest

from core.epistemic.policy import BASELINE, find_policy
from core.epistemic.trust import TrustRecord, TrustState
from core.errors import NoemaError
from tests.core.epistemic.test_belief import Minds

Claim = tuple[str, str, float | None]  # who, stance, confidence


@pytest.mark.parametrize(
    ("claims", "status", "support", "opposition"),
    [
        ([], "insufficient", 0.0, 0.0),
        ([("alice", "support", 0.7)], "accepted", 0.7, 0.0),
        ([("alice", "support", 0.69)], "uncertain", 0.69, 0.0),
        ([("alice", "support", None)], "uncertain", 0.5, 0.0),
        ([("alice", "support", None), ("bob", "support", None)], "accepted", 0.75, 0.0),
        ([("alice", "support", 0.5), ("alice", "support", 0.6)], "uncertain", 0.6, 0.0),
        ([("alice", "reject", 0.9)], "rejected", 0.0, 0.9),
        ([("alice", "support", 0.9), ("bob", "reject", 0.29)], "accepted", 0.9, 0.29),
        ([("alice", "support", 0.9), ("bob", "reject", 0.3)], "contested", 0.9, 0.3),
        ([("alice", "support", 0.2), ("bob", "reject", 0.9)], "rejected", 0.2, 0.9),
        ([("alice", "uncertain", 0.9)], "uncertain", 0.0, 0.0),
        ([("alice", "support", 0.9), ("bob", "uncertain", 0.9)], "accepted", 0.9, 0.0),
        ([("alice", "support", 0.0)], "uncertain", 0.0, 0.0),
        ([("alice", "support", 1.0)], "accepted", 1.0, 0.0),
        ([("liar", "support", 1.0)], "insufficient", 0.0, 0.0),
        ([("weak", "support", 1.0)], "uncertain", 0.5, 0.0),
    ],
)
def test_arithmetic(claims: list[Claim], status: str, support: float, opposition: float) -> None:
    """Groups add up as independent reasons; thresholds are inclusive for acceptance and for materiality."""
    minds = Minds()
    minds.options["trust"] = TrustState(
        (TrustRecord("actor", minds.weak.id, "weak"), TrustRecord("actor", minds.liar.id, "untrusted"))
    )
    for who, stance, confidence in claims:
        minds.claim(minds.fact, getattr(minds, who), stance=stance, confidence=confidence)
    belief = minds.belief(with_="")

    assert belief["status"] == status
    assert belief["support"]["score"] == pytest.approx(support)
    assert belief["opposition"]["score"] == pytest.approx(opposition)


def test_rival_value_opposes_under_a_functional_predicate() -> None:
    """Support for +01:00 counts against +08:00; a reject of it does not."""
    minds = Minds()
    mine, rival = minds.says(minds.alice, "timezone", "+08:00"), minds.says(minds.alice, "timezone", "+01:00")
    minds.claim(mine, minds.alice, confidence=0.9)
    minds.claim(rival, minds.bob, confidence=0.8)
    minds.claim(rival, minds.carol, stance="reject", confidence=0.8)
    belief = minds.belief(mine, with_='WITH EPISTEMIC {explanation: "ledger"}')

    assert (belief["status"], belief["opposition"]["score"]) == ("contested", 0.8)
    assert belief["explanation"]["conflict_set"] == [{"proposition_id": rival.id, "object": "+01:00"}]


@pytest.mark.parametrize("scope", ["actor", "source", "proof", "run", "tool", "origin", "channel"])
def test_trust_scopes(scope: str) -> None:
    """Trust may be in an actor, a source, one record, one run, a tool, an origin or a channel; the worst holds."""
    minds = Minds()
    run = minds.activity("tool_execution")
    proof = minds.evidence("tool_result", "x", minds.carol, generated_by=run.id)
    minds.claim(minds.fact, minds.bob, proof, mode="observed")
    minds.commit()
    subject: tuple[Any, str] = {
        "actor": ("actor", minds.carol.id),
        "source": ("source", minds.carol.id),
        "proof": ("source", proof.id),
        "run": ("tool", run.id),
        "tool": ("tool", "tool_execution"),
        "origin": ("origin", "tester"),
        "channel": ("channel", "test"),
    }[scope]
    trusted, untrusted = TrustRecord(*subject, "trusted"), TrustRecord(*subject, "untrusted")

    minds.options["trust"] = TrustState((trusted,))
    assert minds.belief()["status"] == "accepted"
    minds.options["trust"] = TrustState((trusted, TrustRecord("actor", minds.bob.id, "weak")))
    assert minds.belief()["status"] == "uncertain"
    minds.options["trust"] = TrustState((untrusted, TrustRecord("actor", minds.bob.id, "trusted")))
    assert minds.belief()["status"] == "insufficient"


def test_passing_on_adds_no_trust() -> None:
    """A trusted reporter does not raise a source that nothing is known of; for a bare record it is the source."""
    minds = Minds()
    minds.options["trust"] = TrustState((TrustRecord("actor", minds.bob.id, "trusted"),))
    minds.claim(minds.fact, minds.bob, minds.evidence("message", "heard", minds.carol))
    own = minds.says(minds.bob, "prefers", minds.dark)
    minds.claim(own, minds.bob, minds.evidence("observation", "seen"), mode="observed")
    told = minds.says(minds.carol, "prefers", minds.dark)
    rumour = minds.claim(
        minds.says(minds.carol, "knows", minds.bob), minds.carol, minds.evidence("observation", "x")
    )
    derived = minds.claim(told, minds.bob, mode="inferred")
    minds.activity("inference", [rumour], [derived])

    assert [minds.belief(p)["status"] for p in (minds.fact, own, told)] == [
        "uncertain",
        "accepted",
        "uncertain",
    ]


def test_whoever_is_on_the_way_can_lower() -> None:
    """A trusted source reached through an untrusted reporter is worth nothing."""
    minds = Minds()
    middle = minds.claim(
        minds.says(minds.liar, "knows", minds.bob), minds.liar, minds.evidence("message", "x", minds.carol)
    )
    derived = minds.claim(minds.fact, minds.bob, mode="inferred")
    minds.activity("inference", [middle], [derived])

    assert minds.belief()["status"] == "insufficient"


def test_trust_for_a_purpose_and_a_mode() -> None:
    """A record may hold for one purpose of asking, or for one mode of asserting."""
    minds = Minds()
    minds.claim(minds.fact, minds.bob)
    minds.options["trust"] = TrustState(
        (TrustRecord("actor", minds.bob.id, "trusted", purpose="ui", mode="stated"),)
    )
    asked = 'WITH EPISTEMIC {policy: "test-deterministic", purpose: "ui"}'

    assert minds.belief()["status"] == "uncertain"
    assert minds.belief(with_=asked)["status"] == "accepted"
    assert minds.belief(purpose="ui")["status"] == "accepted"
    minds.options["trust"] = TrustState((TrustRecord("actor", minds.bob.id, "trusted", mode="observed"),))
    assert minds.belief()["status"] == "uncertain"


def test_policies_by_name() -> None:
    """The default is the baseline; an unknown name is refused with what there is."""
    assert find_policy(None) is BASELINE
    with pytest.raises(NoemaError) as refused:
        find_policy("other")
    assert refused.value.details["available"] == [
        "kip:policy:baseline",
        "kip:policy:forecast",
        "kip:policy:closed-world",
        "test-deterministic",
    ]
