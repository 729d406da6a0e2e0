"""Materialized projections: when one may be served again, and what is said of it (KIP §21.9)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.epistemic.trust import TrustRecord, TrustState
from core.model.instants import format_instant
from core.query.belief import MATERIALIZED
from tests.core.epistemic.test_belief import Minds

HOUR = 3_600_000
SECOND = 1_000


def ask(
    minds: Minds, *, with_: str = "", clauses: str = "", **options: Any
) -> tuple[Any, dict[str, Any] | None]:
    """The belief in Alice's preference, and the basis it was served on, if it was not formed anew."""
    minds.commit()
    text = f"FIND(?b) WHERE {{ ?b BELIEF (id: :p) }} {clauses} {with_ and f'WITH EPISTEMIC {{{with_}}}'}"
    result = minds.find(text, {"p": minds.fact.id}, **options)
    return result.rows[0], result.context.get("extensions", {}).get(MATERIALIZED)


@pytest.fixture
def minds() -> Minds:
    made = Minds()
    made.claim(made.fact, made.bob, since=format_instant(made.now), until=format_instant(made.now + HOUR))
    return made


def test_the_second_asking_is_served_and_says_so(minds: Minds) -> None:
    """Policy, state and world time of its making; the belief is about the time asked."""
    fresh, none = ask(minds)
    minds.now, then = minds.now + SECOND, minds.now
    served, basis = ask(minds)

    assert none is None
    assert basis == {
        "beliefs": 1,
        "epistemic_policy": fresh["policy"],
        "snapshot_seq": minds.state.seq,
        "valid_at": [format_instant(then)] * 2,
    }
    assert served["temporal"] == {"valid_at": format_instant(minds.now), "as_of_seq": minds.state.seq}
    assert {**served, "temporal": None} == {**fresh, "temporal": None}


def test_any_commit_ends_it(minds: Minds) -> None:
    """The next state has none of what the last one kept, even where it changed nothing that counts."""
    ask(minds)
    minds.concept("Person", "Somebody else")
    _, basis = ask(minds)

    assert basis is None
    assert len(minds.past[minds.state.seq - 1].memo) == 1


@pytest.mark.parametrize(
    ("shift", "same"), [(0, True), (HOUR - 1, True), (HOUR, False), (-1, False), (-HOUR, False)]
)
def test_it_holds_while_the_same_claims_count(minds: Minds, shift: int, same: bool) -> None:
    """From where a claim begins to count, inclusive, until one ends, exclusive."""
    here, _ = ask(minds)
    there, basis = ask(minds, clauses=f'FOR TIME "{format_instant(minds.now + shift)}"')

    assert (basis is not None, there["status"] == here["status"]) == (same, same)


@pytest.mark.parametrize(
    "other",
    [
        {"with_": 'policy: "test-deterministic"'},
        {"with_": 'explanation: "ledger"'},
        {"with_": "include_hypothetical: true"},
        {"with_": "include_historical: true"},
        {"with_": 'purpose: "ui"'},
        {"with_": 'risk: "high"'},
        {"with_": 'context: "C-somewhere"'},
        {"trust": TrustState((TrustRecord("actor", "C-nobody", "trusted"),))},
    ],
)
def test_another_question_is_not_served(minds: Minds, other: dict[str, Any]) -> None:
    """Everything that a belief depends on is part of what it is kept under."""
    ask(minds)
    _, basis = ask(minds, **other)
    _, again = ask(minds, **other)

    assert basis is None
    assert again is not None


@pytest.mark.parametrize(
    "limited",
    [
        {"visible": lambda _: True},
        {"projectable": lambda _: True},
        {"hidden_fields": lambda _: frozenset()},
    ],
)
def test_who_may_not_see_everything_is_never_served(minds: Minds, limited: dict[str, Any]) -> None:
    """Nor does what is formed for such a caller stay."""
    ask(minds, **limited)
    assert len(minds.state.memo) == 0
    ask(minds)
    assert ask(minds, **limited)[1] is None


def test_an_older_state_keeps_its_own(minds: Minds) -> None:
    """What is served AS OF a state was formed from that state."""
    ask(minds)
    before = minds.state
    minds.claim(minds.fact, minds.alice, stance="reject", confidence=1.0)
    now, _ = ask(minds)
    then, basis = ask(minds, state=before)

    assert basis is not None
    assert basis["snapshot_seq"] == before.seq
    assert then["temporal"]["as_of_seq"] == before.seq
    assert then["opposition"]["assertion_ids"] != now["opposition"]["assertion_ids"]


def test_a_served_value_is_nobodys_to_change(minds: Minds) -> None:
    """What one caller does to an answer is not seen in another's."""
    ask(minds)
    spoilt, _ = ask(minds)
    spoilt["support"]["assertion_ids"].clear()

    assert ask(minds)[0]["support"]["assertion_ids"]


def test_slots_are_kept_with_all_their_candidates(minds: Minds) -> None:
    """A slot holds as long as each of its values does, and every part of it is about the time asked."""
    late = format_instant(minds.now + 2 * HOUR)
    minds.claim(minds.says(minds.alice, "prefers", minds.concept("Theme", "Light")), minds.bob, since=late)
    minds.commit()

    def slot(at: int) -> tuple[Any, bool]:
        text = 'FIND(?s) WHERE { ?s BELIEF SLOT ({name: "Alice"}, "prefers") } FOR TIME '
        found = minds.find(f'{text} "{format_instant(minds.now + at)}"')
        return found.rows[0], MATERIALIZED in found.context.get("extensions", {})

    first, served = slot(0)
    assert not served
    again, served = slot(SECOND)
    assert served
    assert {each["temporal"]["valid_at"] for each in again["candidate_projections"]} == {
        format_instant(minds.now + SECOND)
    }
    assert len(first["candidate_projections"]) == 2
    assert [slot(at)[1] for at in (HOUR, HOUR, 2 * HOUR, 2 * HOUR - 1)] == [False, True, False, False]


@settings(max_examples=40, deadline=None)
@given(
    spans=st.lists(st.tuples(st.none() | st.integers(0, 9), st.none() | st.integers(0, 9)), max_size=5),
    asked=st.lists(st.integers(-1, 10), min_size=2, max_size=8),
)
def test_what_is_served_is_what_would_be_formed(
    spans: list[tuple[int | None, int | None]], asked: list[int]
) -> None:
    """For any claims and any order of times, an answer is the one that a caller without a memo gets."""
    minds = Minds()
    for place, (start, until) in enumerate(spans):
        at = [None if edge is None else format_instant(minds.now + edge) for edge in (start, until)]
        minds.claim(minds.fact, minds.bob if place % 2 else minds.carol, since=at[0], until=at[1])
    for moment in asked:
        clauses = f'FOR TIME "{format_instant(minds.now + moment)}"'
        with_ = 'policy: "test-deterministic", explanation: "ledger"'
        kept, _ = ask(minds, with_=with_, clauses=clauses)
        formed, none = ask(minds, with_=with_, clauses=clauses, hidden_fields=lambda _: frozenset())
        assert none is None
        assert kept == formed
