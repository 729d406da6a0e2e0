"""Updates: after a change the current belief is the new one, and the old one is still on record, linked."""

from dataclasses import dataclass

import pytest

from core.agents.vocabulary import FUNCTIONAL, predicate
from core.model.elements import Assertion
from tests.core.agents.memory import Memory


@dataclass
class Slot:
    """How one slot is stated, and how its change is."""

    predicate: str
    states: tuple[str, ...]
    changes: tuple[str, ...]
    old: str
    new: str


SLOTS = [
    Slot("lives_in", ("I live in {}.", "I'm based in {}.", "I moved to {} last year."),
         ("I moved to {}.", "I live in {} now.", "Actually, I live in {}.", "not Berlin, {}", "It's {}, not Berlin.", "I relocated to {} last week."),
         "Berlin", "Munich"),
    Slot("timezone", ("My timezone is {}.", "I'm in {}."),
         ("My time zone is {} now.", "Actually, it's {} now.", "It's {}, not UTC+2.", "I'm in {} now."), "UTC+2", "UTC+1"),
    Slot("job", ("I'm a {}.", "I work as a {}."), ("I'm a {} now.", "I became a {}.", "My job is {} now."), "nurse", "teacher"),
    Slot("works_for", ("I work for {}.", "I work at {}."), ("I joined {} last month.", "I work for {} now.", "I got a job at {}."), "Acme", "Globex"),
    Slot("relationship_status", ("I'm {}.",), ("I'm {} now.", "Actually, I'm {}."), "single", "married"),
    Slot("diet", ("I'm {}.",), ("I became {}.", "I'm {} now."), "vegetarian", "vegan"),
    Slot("birthday", ("My birthday is {}.",), ("Sorry, my birthday is {}.", "Actually, my birthday is {}."), "May 5", "May 6"),
    Slot("value", ("My favourite colour is {}.",), ("My favorite color is {} now.", "Actually, it's {} now.", "It's {}, not green."), "green", "blue"),
    Slot("name", ("My name is {}.",), ("My name is {} now.",), "Ben", "Max"),
]  # fmt: skip
CASES = [(slot, state, change) for slot in SLOTS for state in slot.states for change in slot.changes]


def test_there_are_enough_cases() -> None:
    """The table makes at least forty updates."""
    assert len(CASES) >= 40


@pytest.mark.parametrize(
    ("slot", "state", "change"), CASES, ids=[f"{s.predicate}|{a}|{b}" for s, a, b in CASES]
)
@pytest.mark.parametrize("together", [True, False], ids=["one conversation", "two conversations"])
def test_a_change_replaces_the_belief_and_keeps_the_old_one(
    slot: Slot, state: str, change: str, together: bool
) -> None:
    """The new value is the only current one of the slot; the old one is superseded by it, linked both ways."""
    memory = Memory()
    first, second = state.format(slot.old), change.format(slot.new)
    if together:
        memory.say(first, second)
    else:
        memory.say(first, at="2026-04-01T10:00:00Z")
        if slot.predicate == "value" and " it's" in second.lower() and "not" not in second:
            memory.say(first, second)  # a bare "it" needs the subject in the same conversation
        else:
            memory.say(second)

    current = memory.claims(predicate=slot.predicate)
    assert len(current) == 1
    kept = memory.claims(predicate=slot.predicate, status="superseded")
    assert len(kept) == 1
    old, new = _pair(memory, slot)
    assert old.superseded_by == (new.id,)
    assert new.supersedes == (old.id,)
    assert old.evidence != new.evidence or together


def _pair(memory: Memory, slot: Slot) -> tuple[Assertion, Assertion]:
    found = [
        claim
        for claim in memory.all("assertion")
        if isinstance(claim, Assertion)
        and memory.state.get(claim.proposition).predicate_ref == predicate(slot.predicate)  # type: ignore[union-attr]
    ]
    old, new = found
    said = {"May 5": "--05-05", "May 6": "--05-06"}
    words = [memory.words(memory.state.get(claim.proposition).object) for claim in (old, new)]  # type: ignore[union-attr]
    assert words == [said.get(slot.old, slot.old), said.get(slot.new, slot.new)]
    return old, new


@pytest.mark.parametrize(
    "slot", [slot for slot in SLOTS if slot.predicate != "name"], ids=lambda slot: slot.predicate
)
def test_what_was_said_earlier_never_replaces_what_was_said_later(slot: Slot) -> None:
    """A conversation that arrives late is filed into the past: its claim is superseded by the later one."""
    memory = Memory()
    memory.say(slot.states[0].format(slot.new), at="2026-05-01T10:00:00Z")
    memory.say(slot.states[0].format(slot.old), at="2026-03-01T10:00:00Z")

    later, earlier = memory.all("assertion")
    assert isinstance(later, Assertion)
    assert isinstance(earlier, Assertion)
    assert (earlier.status, later.status) == ("superseded", "active")
    assert earlier.superseded_by == (later.id,)
    assert later.supersedes == (earlier.id,)


@pytest.mark.parametrize("slot", SLOTS, ids=lambda slot: slot.predicate)
def test_saying_it_again_adds_no_claim(slot: Slot) -> None:
    """A repeated statement is Evidence again, and the same belief."""
    memory = Memory()
    for day in (1, 2, 3):
        memory.say(slot.states[0].format(slot.old), at=f"2026-05-0{day}T10:00:00Z")

    assert len(memory.all("assertion")) == 1
    assert len(memory.all("evidence")) == 3


@pytest.mark.parametrize("name", ["lives_in", "job", "timezone"])
def test_another_persons_word_replaces_nothing(name: str) -> None:
    """Two people who disagree both stay on record, active."""
    memory = Memory()
    memory.say("My sister Anna lives in Paris.", "My sister Anna works as a nurse.")
    memory.say("Anna lives in Rome.", "Anna works as a teacher.", by="Bob", at="2026-05-02T10:00:00Z")

    assert memory.claims(status="superseded") == []
    assert len(memory.claims(predicate="lives_in")) == 2
    assert predicate(name) in FUNCTIONAL


def test_an_end_is_a_rejection_that_supersedes() -> None:
    """Saying "I no longer live in Berlin" rejects the claim from now on and keeps it."""
    memory = Memory()
    memory.say("I live in Berlin.", at="2026-04-01T10:00:00Z")
    memory.say("I no longer live in Berlin.")

    assert memory.claims() == ["Alice> Alice not lives_in Berlin"]
    assert memory.claims(status="superseded") == ["Alice> Alice lives_in Berlin"]


def test_changing_jobs_ends_job_and_employer() -> None:
    """Saying "I changed jobs" ends what was held of the job, and the new one is current."""
    memory = Memory()
    memory.say("I'm a nurse and I work for Mercy Hospital.", at="2026-04-01T10:00:00Z")
    memory.say("I changed jobs, I'm a teacher now")

    assert memory.claims() == [
        "Alice> Alice not works_for Mercy Hospital",
        "Alice> Alice not job nurse",
        "Alice> Alice job teacher",
    ]


def test_hating_ends_loving() -> None:
    """A claim of dislike supersedes the same actor's claim of like about the same thing, and the other way round."""
    memory = Memory()
    memory.say("I love sushi.", at="2026-03-01T10:00:00Z")
    memory.say("I hate sushi now.", at="2026-04-01T10:00:00Z")
    assert memory.claims() == ["Alice> Alice dislikes sushi"]

    memory.say("I love sushi again.", at="2026-05-01T10:00:00Z")

    assert memory.claims() == ["Alice> Alice likes sushi"]
    assert len(memory.claims(status="superseded")) == 2


def test_many_values_stand_side_by_side() -> None:
    """A predicate that is not functional keeps every value."""
    memory = Memory()
    memory.say("I love sushi.", "I love jazz.", "I have a dog named Rex.", "I have a cat named Tom.")

    assert len(memory.claims(predicate="likes")) == 2
    assert len(memory.claims(predicate="owns_pet")) == 2
    assert memory.claims(status="superseded") == []


def test_a_past_home_is_no_current_one() -> None:
    """Saying "I used to live in X" has an end in world time and leaves the current home alone."""
    memory = Memory()
    memory.say("I live in Berlin.", "I used to live in Hamburg.")

    old = [claim for claim in memory.all("assertion") if isinstance(claim, Assertion)][1]
    assert memory.claims(status="superseded") == []
    assert old.valid_time.until == old.asserted_at


def test_leaving_what_was_never_claimed_says_nothing() -> None:
    """Saying "I left Acme" denies neither a job nor a home that nobody claimed, and makes no Concept of it."""
    memory = Memory()
    memory.say("I left Acme.")

    assert memory.claims(status=None) == []
    assert [c.name for c in memory.all("concept") if c.name] == ["Alice"]  # type: ignore[union-attr]


def test_a_correction_of_an_unclear_value_is_left_alone() -> None:
    """Saying "Not X, Y" changes nothing where X is no current value, or "it" could be anything."""
    memory = Memory()
    memory.say("I live in Berlin.", "Not today, thanks", "It's raining now.", "That is cool now")

    assert memory.claims() == ["Alice> Alice lives_in Berlin"]
