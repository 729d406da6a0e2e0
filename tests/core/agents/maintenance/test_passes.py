"""What each pass does to memory, one small step at a time."""

from collections.abc import Callable
from typing import Any

import pytest

from core.agents.maintenance.corrections import DEPENDENTS, read_stretch, revised, tallies
from core.agents.maintenance.decay import LOOKED_AT, MNEMONIC, SLEEP_TASK, WEEK_MS, decay
from core.agents.maintenance.retention import sweep
from core.agents.maintenance.selftest import self_test
from core.agents.maintenance.tasks import conflicting, file_conflict
from core.agents.vocabulary import PERSON, PLACE, predicate
from core.model.elements import Activity, Assertion, Concept, Origin, Retention, ValidTime
from core.model.instants import format_instant
from core.model.literals import Ref
from core.model.log import Delta
from core.protocol.http_types import MemoryPolicy
from core.schema.environment import environment_of
from core.schema.library import FACTS_REF
from core.state.indexes import day_of, entries, lapse_key
from core.state.space import SpaceState
from core.state.view import View
from core.transaction.draft import Draft
from tests.core.agents.memory import NOW, Memory

DAY = 24 * 3600 * 1000
POLICY = MemoryPolicy()


class Mind:
    """A space that commits at once, at a time that is moved by hand."""

    def __init__(self) -> None:
        self.state: SpaceState = Memory().state
        self.now = NOW
        self.deltas: list[Delta] = []

    def draft(self) -> Draft:
        return Draft(self.state, now=self.now, origin=Origin("tester", "rest"))

    def write[R](self, act: Callable[[Draft], R]) -> R:
        draft = self.draft()
        out = act(draft)
        delta = draft.finish()
        if delta is not None:
            self.deltas.append(delta)
            self.state = self.state.apply(delta)
        return out

    def concept(self, key: str = "a", schema_ref: str = PERSON, **fields: Any) -> Concept:
        return self.write(lambda d: d.create(Concept, schema_ref=schema_ref, key=key, **fields))

    def claim(self, subject: str, name: str, place: str, actor: str, **fields: Any) -> Assertion:
        def act(draft: Draft) -> Assertion:
            statement = draft.ensure_proposition(subject, predicate(name), Ref(place))
            given = {"stance": "support", "mode": "stated", "asserted_at": self.now, **fields}
            return draft.create(Assertion, proposition=statement.id, asserted_by=actor, **given)

        return self.write(act)

    def get(self, element: str) -> Any:
        return self.state.get(element)

    def strength(self, element: str) -> Any:
        return self.get(element).facets.get(MNEMONIC, {}).get("memory_strength")


@pytest.fixture
def mind() -> Mind:
    return Mind()


# --- decay


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, 0.475),
        ({}, 0.475),
        ({"memory_strength": None}, 0.475),
        ({"memory_strength": 1.0}, 0.95),
        ({"memory_strength": 1}, 0.95),
        ({"memory_strength": 0.31}, 0.3),
        ({"memory_strength": 0.3}, 0.3),
        ({"memory_strength": 0.1}, 0.1),
    ],
)
def test_what_a_week_costs(mind: Mind, before: Any, after: float) -> None:
    """The strength times the factor, never below the floor; at the floor nothing is written."""
    made = mind.concept(facets={} if before is None else {MNEMONIC: before})

    mind.write(lambda d: decay(d, POLICY, None))

    assert mind.strength(made.id) == pytest.approx(after)


def test_a_week_is_a_week(mind: Mind) -> None:
    """A second walk in the same week changes nothing, the next week's does."""
    made = mind.concept(facets={MNEMONIC: {"memory_strength": 1.0, "salience": 0.7}})
    seen = []
    for wait in (0, WEEK_MS - 1, 1):
        mind.now += wait
        seen.append(mind.write(lambda d: decay(d, POLICY, None)).decayed)

    assert seen == [1, 0, 1]
    facet = mind.get(made.id).facets[MNEMONIC]
    assert facet["memory_strength"] == pytest.approx(0.9025)
    assert facet["salience"] == 0.7
    assert facet["last_metabolized_at"] == format_instant(mind.now)


def test_what_does_not_fade(mind: Mind) -> None:
    """Pins, tasks, facts and what has left recall; and nothing but Concepts has a strength at all."""
    kept = [
        mind.concept("pin", retention=Retention("pinned")),
        mind.concept("task", SLEEP_TASK),
        mind.concept("fact", f"{FACTS_REF}/Fact"),
    ]
    gone = mind.concept("gone")
    mind.write(lambda d: d.change(gone, state="archived"))
    alice, paris = mind.concept("alice"), mind.concept("paris", PLACE)
    claim = mind.claim(alice.id, "lives_in", paris.id, alice.id, confidence=0.9)

    done = mind.write(lambda d: decay(d, POLICY, None))

    assert done.decayed == 2
    assert [mind.strength(each.id) for each in (*kept, gone)] == [None] * 4
    assert mind.get(claim.id) == claim


def test_a_large_space_is_walked_in_pieces(mind: Mind) -> None:
    """Each piece reads and changes no more than its bounds; together they reach every Concept once."""
    mind.write(lambda d: [d.create(Concept, schema_ref=PERSON, key=f"k{n}") for n in range(4200)])
    place: str | None = None
    pieces = []
    while True:
        done = mind.write(lambda d, at=place: decay(d, POLICY, at))  # type: ignore[misc]
        pieces.append(done)
        place = done.place
        if place is None:
            break

    assert sum(piece.decayed for piece in pieces) == 4200
    assert max(piece.decayed for piece in pieces) == 500
    assert all(piece.looked_at <= LOOKED_AT for piece in pieces)
    again = mind.write(lambda d: decay(d, POLICY, None))
    assert (again.looked_at, again.decayed) == (LOOKED_AT, 0)


def test_a_place_outlives_its_element(mind: Mind) -> None:
    """The place to go on from names no element, and an erased one in between does no harm."""
    first, second = mind.concept("a"), mind.concept("b")
    done = mind.write(lambda d: decay(d, POLICY, None, batch=1))

    assert done.place is not None
    assert first.id not in done.place
    assert first.id[2:] not in done.place
    assert mind.write(lambda d: decay(d, POLICY, done.place)).decayed == 1
    assert mind.strength(second.id) == pytest.approx(0.475)


# --- retention


def test_what_lapses_is_put_aside(mind: Mind) -> None:
    """A claim expires at its announced end, an element is archived when its retention ends; not a moment before."""
    alice, rome = mind.concept("alice"), mind.concept("rome", PLACE)
    mind.now += DAY // 2
    end = mind.now + 2 * DAY
    claim = mind.claim(alice.id, "lives_in", rome.id, alice.id, valid_time=ValidTime(None, end))
    note = mind.concept("note", retention=Retention("standard", expires_at=end))
    start = day_of(mind.now)

    mind.now = end - 1
    early = mind.write(lambda d: sweep(d, start))
    assert (early.expired, early.archived, early.remaining, early.day) == (0, 0, 2, None)
    mind.now = end
    done = mind.write(lambda d: sweep(d, start))

    assert (done.expired, done.archived) == (1, 1)
    assert mind.get(claim.id).status == "expired"
    assert mind.get(claim.id).system.state == "active"
    assert mind.get(note.id).system.state == "archived"
    assert mind.write(lambda d: sweep(d, start)).remaining == 0


def test_a_report_of_the_past_never_expires(mind: Mind) -> None:
    """A claim about a time that was over when it was made stays as good as it was."""
    alice, rome = mind.concept("alice"), mind.concept("rome", PLACE)
    past = ValidTime(mind.now - 9 * DAY, mind.now - 3 * DAY)
    claim = mind.claim(alice.id, "lives_in", rome.id, alice.id, valid_time=past)

    mind.now += 30 * DAY
    assert mind.write(lambda d: sweep(d, 0)).expired == 0
    assert mind.get(claim.id).status == "active"


@pytest.mark.parametrize("retention", [Retention("pinned"), Retention("standard", legal_hold=True)])
def test_a_hold_or_a_pin_keeps_it(mind: Mind, retention: Retention) -> None:
    """It is counted as held and changes in nothing."""
    ends = Retention(retention.retention_class, expires_at=mind.now, legal_hold=retention.legal_hold)
    note = mind.concept("note", retention=ends)

    done = mind.write(lambda d: sweep(d, day_of(mind.now)))

    assert (done.archived, done.held) == (0, 1)
    assert mind.get(note.id) == note


def test_the_brain_itself_is_not_archived(mind: Mind) -> None:
    """The Concept that stands for the brain stays, whatever its retention says, and that is reported."""
    me = mind.concept("me", retention=Retention(expires_at=mind.now))
    mind.write(lambda d: d.set_meta(self_identity=me.id))

    assert mind.write(lambda d: sweep(d, day_of(mind.now))).refused == 1
    assert mind.get(me.id).system.state == "active"


def test_a_full_day_is_swept_in_pieces(mind: Mind) -> None:
    """More on one day than one commit takes: the day is begun again, and nothing counts twice."""
    ends = Retention(expires_at=mind.now)
    mind.write(
        lambda d: [d.create(Concept, schema_ref=PERSON, key=f"k{n}", retention=ends) for n in range(25)]
    )
    mind.concept("held", retention=Retention("pinned", expires_at=mind.now))
    day: int | None = day_of(mind.now)
    counts = []
    while day is not None:
        done = mind.write(lambda d, at=day: sweep(d, at, batch=10))  # type: ignore[misc]
        counts.append((done.archived, done.held))
        day = done.day

    assert counts == [(10, 0), (10, 0), (5, 1)]


def test_the_day_something_lapses_on_is_never_before_it_was_written(mind: Mind) -> None:
    """So a sweep that has passed a day misses nothing that is written with an end in the past."""
    mind.now += 10 * DAY
    note = mind.concept("note", retention=Retention(expires_at=mind.now - 5 * DAY))

    assert lapse_key(day_of(mind.now)) in entries(note, "concept")
    assert mind.write(lambda d: sweep(d, day_of(mind.now))).archived == 1
    assert not any(key.startswith("x") for key in entries(mind.get(note.id), "concept"))


def test_many_empty_days_are_passed_in_bounded_pieces(mind: Mind) -> None:
    """Four hundred days at a time."""
    mind.now = 1000 * DAY + mind.now
    begin = day_of(mind.now) - 900

    first = mind.write(lambda d: sweep(d, begin))

    assert first.day == begin + 400


# --- corrections


def moved(mind: Mind) -> tuple[Concept, Assertion, Assertion]:
    alice, rome, oslo = mind.concept("alice"), mind.concept("rome", PLACE), mind.concept("oslo", PLACE)
    old = mind.claim(alice.id, "lives_in", rome.id, alice.id)
    new = mind.claim(alice.id, "lives_in", oslo.id, alice.id, supersedes=(old.id,))
    mind.write(lambda d: d.change(old, status="superseded", superseded_by=(new.id,)))
    return alice, old, new


def test_a_supersession_is_counted_once(mind: Mind) -> None:
    """By the actor whose claim it was; a later change of the superseded claim is no second one."""
    start, before = len(mind.deltas), mind.state
    alice, old, _ = moved(mind)
    mind.now += 5
    mind.write(lambda d: d.change(mind.get(old.id), retention=Retention("pinned")))

    stretch = read_stretch(before, mind.deltas[start:])

    assert [each.claim for each in stretch.corrections] == [old.id]
    assert tallies(stretch.corrections) == {alice.id: (1, mind.now - 5)}
    assert (stretch.version, stretch.seq) == (mind.state.ver, mind.state.seq)
    assert len(stretch.propositions) == 2
    last = read_stretch(mind.state, mind.deltas[-1:])
    assert (last.corrections, last.propositions) == ((), ())


def test_what_rests_on_a_revised_claim(mind: Mind) -> None:
    """Outputs of the Activities that had it as input, and theirs in turn; the successor is no dependent."""
    alice, old, new = moved(mind)
    insight, deeper = mind.concept("insight"), mind.concept("deeper")

    def derive(inputs: tuple[str, ...], outputs: tuple[str, ...], name: str = "reflection") -> None:
        mind.write(
            lambda d: d.create(
                Activity, activity_class=name, status="completed", inputs=inputs, outputs=outputs
            )
        )

    derive((old.id,), (insight.id,))
    derive((insight.id,), (deeper.id, old.id))  # a loop ends
    derive((old.id,), (new.id,), "belief_revision")

    assert revised(mind.state, old.id).dependents == (insight.id, deeper.id)
    assert revised(mind.state, new.id).dependents == ()
    assert alice.id not in revised(mind.state, old.id).dependents


def test_dependents_are_bounded(mind: Mind) -> None:
    """Twenty are named, and that there are more is said."""
    _, old, _ = moved(mind)
    made = mind.write(lambda d: [d.create(Concept, schema_ref=PERSON, key=f"k{n}") for n in range(30)])
    mind.write(
        lambda d: d.create(
            Activity,
            activity_class="reflection",
            status="completed",
            inputs=(old.id,),
            outputs=tuple(each.id for each in made),
        )
    )

    found = revised(mind.state, old.id)

    assert (len(found.dependents), found.more) == (DEPENDENTS, True)


# --- contradictions


def conflict(mind: Mind, view: View, claim: Assertion) -> tuple[Assertion, ...]:
    return conflicting(view, environment_of(mind.state.meta), claim.proposition)


def test_what_contradicts(mind: Mind) -> None:
    """For and against one statement, and two values where there is one at a time; not at times that do not meet."""
    alice, bob = mind.concept("alice"), mind.concept("bob")
    rome, oslo = mind.concept("rome", PLACE), mind.concept("oslo", PLACE)
    first = mind.claim(alice.id, "lives_in", rome.id, alice.id)
    assert conflict(mind, mind.state, first) == ()

    rival = mind.claim(alice.id, "lives_in", oslo.id, bob.id)
    assert {c.id for c in conflict(mind, mind.state, first)} == {first.id, rival.id}
    mind.write(lambda d: d.change(rival, status="retracted"))
    assert conflict(mind, mind.state, first) == ()

    early = ValidTime(None, mind.now - DAY)
    mind.write(lambda d: d.change(first, valid_time=ValidTime(mind.now - DAY, None)))
    mind.claim(alice.id, "lives_in", oslo.id, bob.id, valid_time=early)
    assert conflict(mind, mind.state, first) == ()

    against = mind.claim(alice.id, "lives_in", rome.id, bob.id, stance="reject")
    assert {c.id for c in conflict(mind, mind.state, first)} == {first.id, against.id}


def test_many_likes_are_no_contradiction(mind: Mind) -> None:
    """A predicate that takes many values contradicts itself only by a rejection."""
    alice, tea, rum = mind.concept("alice"), mind.concept("tea", PLACE), mind.concept("rum", PLACE)
    first = mind.claim(alice.id, "likes", tea.id, alice.id)
    mind.claim(alice.id, "likes", rum.id, alice.id)

    assert conflict(mind, mind.state, first) == ()


def test_a_contradiction_leaves_one_task(mind: Mind) -> None:
    """Filed once while it is open, opened again when it had ended; it quotes nothing and decides nothing."""
    alice, bob, rome = mind.concept("alice"), mind.concept("bob"), mind.concept("rome", PLACE)
    first = mind.claim(alice.id, "lives_in", rome.id, alice.id)
    mind.claim(alice.id, "lives_in", rome.id, bob.id, stance="reject")
    claims = conflict(mind, mind.state, first)

    filed = [mind.write(lambda d: file_conflict(d, claims)) for _ in range(2)]

    assert filed == [True, False]
    tasks = [mind.get(i) for i in mind.state.ids("concept") if mind.get(i).schema_ref == SLEEP_TASK]
    assert len(tasks) == 1
    task = tasks[0]
    assert (task.attributes["task_class"], task.attributes["status"]) == ("review_conflict", "pending")
    assert [ref.target for ref in task.structural] == [alice.id]
    assert alice.id not in f"{task.key}{task.attributes}"
    assert all(mind.get(claim.id) == claim for claim in claims)

    mind.write(lambda d: d.change(task, attributes={**task.attributes, "status": "completed"}))
    assert mind.write(lambda d: file_conflict(d, claims)) is True
    assert mind.get(task.id).attributes["status"] == "pending"


# --- the self-test


def test_a_memory_is_found_by_its_own_words(mind: Mind) -> None:
    """New Concepts with words are sampled, a bounded number, and the next test goes on behind them."""
    for name in ("Alice Moore", "Lisbon", "chess club"):
        mind.concept(name, PLACE, name=name)
    mind.concept("nameless")

    first = mind.write(lambda d: self_test(d, None, 2))
    second = mind.write(lambda d: self_test(d, first.place, 2))

    assert (first.tested, first.grounded, second.tested, second.grounded) == (2, 2, 1, 1)
    assert mind.write(lambda d: self_test(d, second.place, 2)).tested == 0


def test_a_memory_that_is_not_found_leaves_a_task(mind: Mind) -> None:
    """Where eight others fit its words as well and are older, the memory is not found: that is worth a look."""
    for n in range(9):
        mind.concept(f"k{n}", PLACE, name="Springfield")

    done = mind.write(lambda d: self_test(d, None, 100))

    assert (done.tested, done.grounded, done.tasks) == (9, 8, 1)
