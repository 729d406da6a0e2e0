"""The commit loop over every store: clean, with a conflict before each write, with a crash around each write."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from core.errors import NoemaError
from core.ports import Objects, Row, Table, Unavailable, Write
from core.service.values import Idempotency
from tests.concurrency.ledger import Ledger, entry
from tests.doubles import Crash, FailingObjects, FailingTable, FakeClock, Faults

SMALL, LARGE = 10, 60_000  # bytes of text: a delta in its row, a delta in an object
SIZES = pytest.mark.parametrize("size", [SMALL, LARGE], ids=["inline", "object"])


def test_commits_are_read_back_by_another_process(table: Table, objects: Objects) -> None:
    """What one process commits, another reads: now, at each version, and as single commits."""
    clock = FakeClock(step_ms=1)
    writer, reader = Ledger(table, objects, clock), Ledger(table, objects, clock, seed=1)
    writer.create()
    committed = [
        writer.write(f"e{number}", bytes_of_text=SMALL if number % 2 else LARGE) for number in range(6)
    ]

    assert [each.ver for each in committed] == [2, 3, 4, 5, 6, 7]
    assert reader.audit().entries == {f"e{number}": number + 1 for number in range(6)}
    for version in range(1, 8):
        past = reader.audit(version)
        assert past.faults() == []
        assert past.ver == version
    deltas = reader.spaces.deltas("ledger", 0, 100)
    assert [delta.ver for delta in deltas] == [1, 2, 3, 4, 5, 6, 7]
    writer.write("last")
    assert reader.audit().value == 7  # a warm cache catches up


def test_a_repeated_request_is_answered_from_its_first_outcome(table: Table, objects: Objects) -> None:
    """The same key replays and writes nothing; the same key for another request is a conflict."""
    clock = FakeClock(step_ms=1)
    Ledger(table, objects, clock).create()
    first = Ledger(table, objects, clock, seed=1).write("a")
    again = Ledger(table, objects, clock, seed=2).write("a")
    other = Ledger(table, objects, clock, seed=3)

    assert (again.outcome, again.ver, again.replayed) == (first.outcome, first.ver, True)
    with pytest.raises(NoemaError) as conflict:
        other.commits.commit(
            "ledger",
            entry("b", clock.now(), 0),
            deadline=clock.now() + 1000,
            idempotency=Idempotency("ledger", "a", "digest of b"),
        )
    assert conflict.value.code == "IdempotencyConflict"
    assert other.audit().entries == {"a": 1}


def test_a_space_is_created_once(table: Table, objects: Objects) -> None:
    """A second creation is an identity conflict and changes nothing."""
    clock = FakeClock(step_ms=1)
    Ledger(table, objects, clock).create()

    with pytest.raises(NoemaError) as conflict:
        Ledger(table, objects, clock, seed=1).create()
    assert conflict.value.code == "IdentityConflict"
    assert Ledger(table, objects, clock, seed=2).audit().ver == 1


def test_a_space_that_was_never_made_is_not_found(table: Table, objects: Objects) -> None:
    """Writing to it writes nothing."""
    ledger = Ledger(table, objects, FakeClock(step_ms=1))

    with pytest.raises(NoemaError) as missing:
        ledger.write("a")
    assert missing.value.code == "NotFoundOrNotVisible"
    assert table.query("S#ledger", "", "\U0010ffff", limit=9) == []


@SIZES
@pytest.mark.parametrize("conflicts", [1, 3])
def test_a_commit_that_others_overtake_is_decided_again(
    table: Table, objects: Objects, size: int, conflicts: int
) -> None:
    """Before each of its writes another commit lands; it is decided again on the newer state and lands once."""
    clock = FakeClock(step_ms=1)
    rival = Ledger(table, objects, clock, seed=1)
    rival.create()
    beaten: list[str] = []

    def overtake(_: object) -> None:
        if len(beaten) < conflicts:
            beaten.append(f"rival {len(beaten)}")
            rival.write(beaten[-1], bytes_of_text=size)

    loser = Ledger(FailingTable(table, before_transact=overtake), objects, clock, seed=2)
    committed = loser.write("mine", bytes_of_text=size)

    assert committed.outcome["value"] == conflicts + 1
    assert not committed.replayed
    audit = Ledger(table, objects, clock, seed=3).audit()
    assert audit.faults() == []
    assert audit.entries == {**{name: number for number, name in enumerate(beaten, 1)}, "mine": conflicts + 1}


def test_a_commit_that_is_always_overtaken_gives_up_at_its_deadline(table: Table, objects: Objects) -> None:
    """It says so, it has written nothing, and the same request may be sent again."""
    clock = FakeClock(step_ms=1)
    rival = Ledger(table, objects, clock, seed=1)
    rival.create()

    def overtake(_: object) -> None:
        rival.write(f"rival {clock.now()}")

    loser = Ledger(FailingTable(table, before_transact=overtake), objects, clock, seed=2)
    with pytest.raises(NoemaError) as conflict:
        loser.write("mine", patience_ms=300)
    assert conflict.value.code == "SerializationConflict"
    assert "mine" not in Ledger(table, objects, clock, seed=3).audit().entries
    assert not Ledger(table, objects, clock, seed=4).write("mine").replayed


@SIZES
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_crash_around_any_write_is_mended_by_sending_it_again(
    table: Table, objects: Objects, size: int, after: bool
) -> None:
    """The process dies before or after each write in turn; a new one, given the same request, completes it once."""
    clock = FakeClock(step_ms=1)
    Ledger(table, objects, clock).create()
    crashed = 0
    for at in range(10):
        faults = Faults([at], after=after, error=Crash)
        dying = Ledger(FailingTable(table, faults), FailingObjects(objects, faults), clock, seed=10 + at)
        try:
            first = dying.write(f"e{at}", bytes_of_text=size)
        except Crash:
            crashed += 1
            first = None
        mended = Ledger(table, objects, clock, seed=50 + at).write(f"e{at}", bytes_of_text=size)
        assert mended.outcome["name"] == f"e{at}"
        if first is not None:
            assert (mended.replayed, mended.ver) == (True, first.ver)
            break
    else:
        pytest.fail("the fault plan never came to an end")

    assert crashed == (1 if size == SMALL else 2), "a commit is one write, or an object and one write"
    audit = Ledger(table, objects, clock, seed=99).audit()
    assert audit.faults() == []
    assert set(audit.entries) == {f"e{at}" for at in range(crashed + 1)}


@SIZES
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "unkeyed"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_answer_lost_around_any_write_is_settled_by_looking(
    table: Table, objects: Objects, size: int, after: bool, keyed: bool
) -> None:
    """The store does not say whether each write in turn happened; the loop finds out and the commit lands once."""
    clock = FakeClock(step_ms=1)
    Ledger(table, objects, clock).create()
    for at in range(3):
        faults = Faults([at], after=after, error=Unavailable)
        ledger = Ledger(FailingTable(table, faults), FailingObjects(objects, faults), clock, seed=10 + at)
        committed = ledger.write(f"e{at}", bytes_of_text=size, keyed=keyed)
        assert (committed.outcome["value"], committed.ver) == (at + 1, at + 2)

    audit = Ledger(table, objects, clock, seed=99).audit()
    assert audit.faults() == []
    assert audit.entries == {f"e{at}": at + 1 for at in range(3)}


def test_an_answer_lost_while_others_commit_is_not_taken_for_a_loss(table: Table, objects: Objects) -> None:
    """The write landed, its answer was lost, and others went on; it is found by its nonce, without a key."""
    clock = FakeClock(step_ms=1)
    rival = Ledger(table, objects, clock, seed=1)
    rival.create()

    class Lossy(FailingTable):
        def transact(self, writes: Sequence[Write]) -> None:
            super().transact(writes)
            if self.transactions == 1:
                rival.write("rival 1")
                rival.write("rival 2")
                raise Unavailable("the answer was lost")

    committed = Ledger(Lossy(table), objects, clock, seed=2).write("mine", keyed=False)

    assert (committed.ver, committed.outcome["value"]) == (2, 1)
    assert Ledger(table, objects, clock, seed=3).audit().entries == {"mine": 1, "rival 1": 2, "rival 2": 3}


@pytest.mark.parametrize("landed", [True, False], ids=["landed", "lost"])
def test_a_store_that_falls_silent_leaves_the_outcome_unknown(
    table: Table, objects: Objects, landed: bool
) -> None:
    """From the write on nothing answers until the deadline: the error says so, and sending it again is exact."""
    clock = FakeClock(step_ms=1)
    Ledger(table, objects, clock).create()

    class Silent(FailingTable):
        def get(self, pk: str, sk: str) -> Row | None:
            if self.transactions:
                raise Unavailable("silence")
            return super().get(pk, sk)

        def transact(self, writes: Sequence[Write]) -> None:
            if landed and not self.transactions:
                super().transact(writes)
            self.transactions += 1
            raise Unavailable("silence")

    with pytest.raises(NoemaError) as unknown:
        Ledger(Silent(table), objects, clock, seed=1).write("a", patience_ms=500)

    assert unknown.value.code == "OutcomeUnknown"
    assert unknown.value.spec.retry == "outcome_lookup_required"
    again = Ledger(table, objects, clock, seed=2).write("a")
    assert (again.outcome["value"], again.replayed) == (1, landed)
    assert Ledger(table, objects, clock, seed=3).audit().entries == {"a": 1}


def test_a_commit_over_the_bounds_writes_nothing(table: Table, objects: Objects) -> None:
    """An element over 256 KB is refused with a clear error, and neither rows nor objects change."""
    clock = FakeClock(step_ms=1)
    ledger = Ledger(table, objects, clock)
    ledger.create()
    before = table.query("S#ledger", "", "\U0010ffff", limit=99), list(objects.list(""))

    with pytest.raises(NoemaError) as too_large:
        ledger.write("big", bytes_of_text=300_000)

    assert too_large.value.code == "TransactionTooLarge"
    assert (table.query("S#ledger", "", "\U0010ffff", limit=99), list(objects.list(""))) == before
