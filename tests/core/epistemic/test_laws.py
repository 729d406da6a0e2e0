"""Laws of belief, on random claims: what must never change an answer, and what may only move it one way."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from core.epistemic.trust import TrustRecord, TrustState
from tests.core.epistemic.test_belief import Minds

CLASSES = ("trusted", "unknown", "weak", "low_trust", "untrusted")
POLICIES = ("test-deterministic", "kip:policy:baseline")


class Debate(Minds):
    """Random claims about one statement, by people of random worth, some citing random Evidence."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.chance = random.Random(seed)
        self.people = [self.concept("Person", f"p{i}") for i in range(4)]
        records = [TrustRecord("actor", person.id, self.chance.choice(CLASSES)) for person in self.people]
        self.options["trust"] = TrustState(tuple(records), default=self.chance.choice(CLASSES))
        self.records: list[Any] = []
        self.claims: list[Any] = []
        for _ in range(self.chance.randint(0, 7)):
            self.one()

    def one(self, **fields: Any) -> Any:
        """One more claim."""
        chance = self.chance
        if chance.random() < 0.6:
            source = [chance.choice(self.people)] if chance.random() < 0.5 else []
            kind = chance.choice(["observation", "user_statement", "document"])
            self.records.append(self.evidence(kind, chance.choice("xyz"), *source))
        cited = chance.sample(self.records, min(len(self.records), chance.randint(0, 2)))
        given_fields = {
            "stance": chance.choice(["support", "support", "reject", "uncertain"]),
            "mode": chance.choice(["stated", "observed", "imported"]),
            "confidence": chance.choice([None, 0.2, 0.5, 0.9, 1.0]),
            **fields,
        }
        claim = self.claim(self.fact, chance.choice(self.people), *cited, **given_fields)
        self.claims.append(claim)
        return claim

    def view(self, policy: str) -> dict[str, Any]:
        """What the belief comes to: status, scores, and how many independent groups on each side."""
        belief = self.belief(with_=f'WITH EPISTEMIC {{policy: "{policy}", explanation: "ledger"}}')
        return {
            "status": belief["status"],
            "scores": (belief["support"]["score"], belief["opposition"]["score"]),
            "groups": (len(belief["support"]["root_groups"]), len(belief["opposition"]["root_groups"])),
        }


seeds = st.integers(0, 10_000)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(seed=seeds, policy=st.sampled_from(POLICIES))
def test_what_must_not_count_does_not(seed: int, policy: str) -> None:
    """Retracted, hypothetical, predicted and untimely claims, circles, other statements: no answer changes."""
    debate = Debate(seed)
    before = debate.view(policy)

    debate.change(debate.one(), status="retracted")
    debate.one(mode="hypothetical")
    debate.one(mode="predicted")
    debate.one(until="2020-01-01T00:00:00Z")
    circle = [
        debate.claim(debate.fact, person, mode="inferred", confidence=1.0) for person in debate.people[:2]
    ]
    debate.activity("inference", [circle[0]], [circle[1]])
    debate.activity("inference", [circle[1]], [circle[0]])
    debate.claim(debate.says(debate.people[0], "knows", debate.dark), debate.people[1])

    assert debate.view(policy) == before


@settings(max_examples=120, deadline=None, derandomize=True)
@given(seed=seeds, policy=st.sampled_from(POLICIES))
def test_copies_add_nothing(seed: int, policy: str) -> None:
    """An inference from each claim, by whomever and however sure, makes no side stronger and no new group."""
    debate = Debate(seed)
    before = debate.view(policy)
    belief = debate.belief(with_=f'WITH EPISTEMIC {{policy: "{policy}", explanation: "ledger"}}')
    counted = {item["id"]: item for item in belief["explanation"]["eligible_assertions"]}

    for claim in list(debate.claims):
        known = counted.get(claim.id)
        if known is None or claim.stance == "uncertain":
            continue
        copy = debate.claim(
            debate.fact,
            debate.chance.choice(debate.people),
            stance=claim.stance,
            mode="inferred",
            confidence=min(known.get("weight", 1.0), 1.0),
        )
        debate.activity("summarization", [claim], [copy])
    after = debate.view(policy)

    assert after["status"] == before["status"]
    assert after["scores"] == before["scores"]
    assert after["groups"] == before["groups"]


@settings(max_examples=120, deadline=None, derandomize=True)
@given(seed=seeds)
def test_support_never_lowers_support(seed: int) -> None:
    """One more supporting claim leaves the support at least as strong and the opposition as it was."""
    debate = Debate(seed)
    before = debate.view("kip:policy:baseline")["scores"]
    debate.one(stance="support", mode="observed")
    after = debate.view("kip:policy:baseline")["scores"]

    assert after[1] == before[1]
    assert after[0] >= before[0] or _bridged(debate)


def _bridged(debate: Debate) -> bool:
    """Whether the last claim joined groups that had counted apart: then less is independent than it seemed."""
    return len(debate.claims[-1].evidence) > 0


@settings(max_examples=120, deadline=None, derandomize=True)
@given(seed=seeds)
def test_the_portable_policy_is_its_table(seed: int) -> None:
    """The status follows from which trusted groups there are, and from whether there is anything at all."""
    debate = Debate(seed)
    belief = debate.belief()
    ledger = belief["explanation"]
    support = any(group["trust"] == "trusted" for group in ledger["support_root_groups"])
    opposition = any(group["trust"] == "trusted" for group in ledger["opposition_root_groups"])
    expected = {
        (True, True): "contested",
        (True, False): "accepted",
        (False, True): "rejected",
        (False, False): "uncertain" if ledger["eligible_assertions"] else "insufficient",
    }[support, opposition]

    assert belief["status"] == expected
    assert all(item["trust"] != "untrusted" for item in ledger["eligible_assertions"])
    assert len(ledger["eligible_assertions"]) + len(ledger["excluded_assertions"]) == len(debate.claims)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=seeds, policy=st.sampled_from(POLICIES))
def test_asking_twice_gives_one_answer(seed: int, policy: str) -> None:
    """A projection is a function of the state and the request."""
    debate = Debate(seed)
    text = f'WITH EPISTEMIC {{policy: "{policy}", explanation: "ledger"}}'

    assert debate.belief(with_=text) == debate.belief(with_=text)
