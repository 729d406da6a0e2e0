"""The commit loop: exactly once, whatever moves and whatever fails."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pytest

from core.errors import NoemaError
from core.model.elements import Concept
from core.ports import KeyExists, Put, Refused, TooLarge, Unavailable, When
from core.service.attempt import KEEP_OUTCOMES_MS
from core.service.commit import Fenced, RowRefused
from core.service.values import Idempotency, Proposal
from core.storage.head import MAX_HEAD_BYTES, row_of
from core.storage.layout import HEAD, conversation_sk, delta_sk, space_pk
from core.storage.log import entry_of
from core.storage.rows import row_bytes
from core.transaction.draft import Draft
from tests.core.service.world import ORIGIN, SPACE, TYPE, World, describe, until_clean
from tests.doubles import Crash, FailingObjects, FailingTable, FakeClock, Faults

PK = space_pk(SPACE)


@dataclass
class Setting:
    """A world with one counter element, and a second process over a store that fails as told."""

    world: World = field(default_factory=World)

    def __post_init__(self) -> None:
        self.world.create()
        self.counter = self.world.note("counter").outcome["ids"][0]

    def process(self, faults: Faults) -> World:
        return self.world.again(
            table=FailingTable(self.world.table, faults), objects=FailingObjects(self.world.objects, faults)
        )

    def count(self) -> int:
        element = self.world.again(7).spaces.load(SPACE).get(self.counter)
        assert isinstance(element, Concept)
        return element.attributes.get("n", 0)


def test_a_space_begins_at_version_one() -> None:
    """Creation is the first commit, carries the protected state, and moves no space_seq."""
    world = World()

    committed = world.create()

    state = world.spaces.load(SPACE)
    assert (committed.ver, committed.seq, committed.effect) == (1, 0, True)
    assert state.meta.owner == "tester"
    assert state.counts.concept == 0
    assert world.spaces.ids() == [SPACE]


def test_a_space_is_created_once() -> None:
    """An id that a space has is a conflict, and the first space stays."""
    world = World()
    world.create()

    with pytest.raises(NoemaError) as failure:
        world.again().create()

    assert failure.value.code == "IdentityConflict"


@pytest.mark.parametrize("name", ["", "A", "a-b", "a" * 65, "ä", "a/b", "..", "S#x"])
def test_a_bad_space_id_is_refused(name: str) -> None:
    """What cannot be a space id never reaches the store."""
    world = World()

    with pytest.raises(NoemaError) as failure:
        world.create(name)

    assert failure.value.code == "InvalidInput"


def test_a_space_may_be_born_with_memory() -> None:
    """What the seed decides is part of the first commit, and its ids bear the first version."""
    world = World()

    committed = world.commits.create(
        SPACE, describe, origin=ORIGIN, deadline=world.clock.time + 1000, seed=world.noting("self")
    )

    assert (committed.ver, committed.seq) == (1, 1)
    assert world.names() == ["self"]


def test_commits_follow_each_other() -> None:
    """Versions count commits, and the newest state holds them all."""
    world = World()
    world.create()

    versions = [world.note(f"note {number}").ver for number in range(5)]

    assert versions == [2, 3, 4, 5, 6]
    assert world.names() == [f"note {number}" for number in range(5)]


def test_an_unknown_space_is_not_there() -> None:
    """A commit to no space names the space and writes nothing."""
    world = World()

    with pytest.raises(NoemaError) as failure:
        world.note("lost")

    assert failure.value.code == "NotFoundOrNotVisible"
    assert world.everything() == {}


def test_head_stays_below_a_kilobyte() -> None:
    """However much was committed and leased, HEAD is small, because every commit pays for its size."""
    world = World()
    world.create("x" * 64)
    for role in ("formation", "maintenance", "compaction", "learning"):
        world.leases.acquire("x" * 64, role, "owner-" + "0" * 40, 60_000)

    head = world.spaces.head("x" * 64)

    assert row_bytes(space_pk("x" * 64), HEAD, row_of(head)) < MAX_HEAD_BYTES


def test_a_large_delta_is_an_object() -> None:
    """A delta of up to 8,192 bytes stands in its row, a larger one in a write-once object."""
    world = World()
    world.create()
    small = world.note("small")
    noise = "".join(chr(33 + byte % 90) for byte in world.entropy.token(20_000))
    large = world.note(noise)

    rows = [entry_of(one.ver, world.table.get(PK, delta_sk(one.ver)) or {}) for one in (small, large)]

    assert rows[0].body is not None
    assert rows[0].key is None
    assert rows[1].body is None
    assert world.objects.get(str(rows[1].key)) is not None
    assert world.again().names() == ["small", noise]


# --- idempotency


def test_a_repeated_request_is_replayed() -> None:
    """The same key and request give the first outcome and write nothing, in any process."""
    world = World()
    world.create()
    first = world.note("once", "key")

    second = world.again().note("once", "key")

    assert second.outcome == first.outcome
    assert second.replayed
    assert not first.replayed
    assert (second.ver, second.tx_id, second.at) == (first.ver, first.tx_id, first.at)
    assert world.names() == ["once"]


def test_a_key_names_one_request() -> None:
    """The same key with another request is a conflict, also while the first is known only to the store."""
    world = World()
    world.create()
    world.note("once", "key")

    with pytest.raises(NoemaError) as failure:
        world.commit(world.noting("twice"), idempotency=Idempotency("tester", "key", "another digest"))

    assert failure.value.code == "IdempotencyConflict"
    assert world.names() == ["once"]


def test_keys_are_scoped() -> None:
    """Two principals may use the same key for their own requests."""
    world = World()
    world.create()
    world.note("mine", "key")

    world.commit(world.noting("yours"), idempotency=Idempotency("somebody else", "key", "theirs"))

    assert world.names() == ["mine", "yours"]


def test_no_effect_is_an_outcome_too() -> None:
    """A request that changed nothing is replayed as that, even if it would change something now."""
    world = World()
    world.create()
    nothing = world.commit(lambda _: Proposal(None, outcome="nothing to do"), "key")

    later = world.note("something", "key")

    assert not nothing.effect
    assert later.replayed
    assert later.outcome == "nothing to do"
    assert world.names() == []


def test_a_failed_decision_does_not_bind_its_key() -> None:
    """What decide raises passes through, writes nothing, and leaves the key free."""
    world = World()
    world.create()

    def refuse(_: object) -> Proposal:
        raise NoemaError("PreconditionFailed", "not now")

    with pytest.raises(NoemaError):
        world.commit(refuse, "key")

    assert world.note("now", "key").replayed is False
    assert world.names() == ["now"]


def test_an_expired_key_is_free() -> None:
    """After its time a key may be used again, though the store still has its row."""
    world = World()
    world.create()
    world.note("old", "key")
    world.clock.advance(KEEP_OUTCOMES_MS + 1)

    again = world.note("new", "key")

    assert not again.replayed
    assert world.names() == ["old", "new"]


# --- conflicts


def test_a_conflict_decides_again_on_the_newer_state() -> None:
    """When another commit comes first, the decision is made again and nothing is lost."""
    setting = Setting()
    others = iter(range(3))

    def interfere(_: object) -> None:
        if next(others, None) is not None:
            setting.world.commit(setting.world.counting(setting.counter))

    process = setting.world.again(table=FailingTable(setting.world.table, before_transact=interfere))
    committed = process.commit(process.counting(setting.counter))

    assert committed.outcome == {"n": 4}
    assert setting.count() == 4


def test_the_deadline_ends_it() -> None:
    """When others are always first, the caller is told to send the same request again; nothing is written."""
    setting = Setting()

    def interfere(_: object) -> None:
        setting.world.commit(setting.world.counting(setting.counter))

    process = setting.world.again(table=FailingTable(setting.world.table, before_transact=interfere))

    with pytest.raises(NoemaError) as failure:
        process.commit(process.noting("never"), deadline=setting.world.clock.time + 2000)

    assert failure.value.code == "SerializationConflict"
    assert failure.value.spec.retry == "safe_same_request"
    assert setting.world.names() == ["counter"]


def test_pauses_are_jittered_and_bounded() -> None:
    """The waits between attempts differ, never exceed a second, and never pass the deadline."""
    setting = Setting()

    def interfere(_: object) -> None:
        setting.world.commit(setting.world.counting(setting.counter))

    process = setting.world.again(table=FailingTable(setting.world.table, before_transact=interfere))
    clock = setting.world.clock
    start = clock.time
    with pytest.raises(NoemaError):
        process.commit(process.noting("never"), deadline=start + 5000)

    assert len(set(clock.slept)) > 3
    assert max(clock.slept) <= 1.0
    assert clock.time - start < 5100


# --- fences


def test_a_moved_epoch_fences() -> None:
    """Work under a lease that another has taken writes nothing and is not tried again."""
    world = World()
    world.create()
    old = world.leases.acquire(SPACE, "formation", "first", 1000)
    world.clock.advance(2000)
    world.leases.acquire(SPACE, "formation", "second", 1000)

    with pytest.raises(Fenced):
        world.note("zombie", fence=old)

    assert world.names() == []


def test_an_epoch_that_moves_during_the_write_fences() -> None:
    """The epoch is a condition of the write itself, not only of the look before it."""
    world = World()
    world.create()
    fence = world.leases.acquire(SPACE, "formation", "first", 1000)
    once = iter([True])

    def overtake(_: object) -> None:
        if next(once, False):
            world.clock.advance(5000)
            assert world.leases.acquire(SPACE, "formation", "second", 1000)

    process = world.again(table=FailingTable(world.table, before_transact=overtake))

    with pytest.raises(Fenced):
        process.note("zombie", fence=fence)

    assert world.names() == []


def test_one_role_does_not_fence_another() -> None:
    """A compactor's lease says nothing about a formation's."""
    world = World()
    world.create()
    fence = world.leases.acquire(SPACE, "formation", "first", 1000)
    world.leases.acquire(SPACE, "compaction", "second", 1000)

    world.note("mine", fence=fence)

    assert world.names() == ["mine"]


# --- rows that ride along


def test_rows_and_head_attributes_ride_along() -> None:
    """What a proposal brings is written in the same transaction, and HEAD attributes with it."""
    world = World()
    world.create()
    row = Put(PK, conversation_sk("formation", 1), {"status": "completed"}, When(absent=True))

    def decide(state: object) -> Proposal:
        return msgspec.structs.replace(world.noting("formed")(state), rows=(row,), head={"formed": 1})

    world.commit(decide)

    assert world.table.get(PK, row.sk) == {"status": "completed"}
    assert world.spaces.head(SPACE).number("formed") == 1


def test_rows_may_ride_without_a_delta() -> None:
    """A proposal that changes no memory can still write its rows, under the same fence, moving no version."""
    world = World()
    world.create()
    row = Put(PK, conversation_sk("formation", 1), {"status": "failed"})

    committed = world.commit(lambda _: Proposal(None, rows=(row,), head={"formed": 1}))

    assert not committed.effect
    assert world.spaces.head(SPACE).ver == 1
    assert world.table.get(PK, row.sk) == {"status": "failed"}


def test_a_refused_row_is_told_at_once() -> None:
    """A row that does not stand as its condition says ends the commit; trying again could not help."""
    world = World()
    world.create()
    row = Put(PK, conversation_sk("formation", 1), {"status": "x"}, When(equals={"status": "submitted"}))

    with pytest.raises(RowRefused) as refusal:
        world.commit(lambda state: msgspec.structs.replace(world.noting("no")(state), rows=(row,)))

    assert refusal.value.write == row
    assert refusal.value.row is None
    assert world.names() == []
    assert world.clock.slept == []


@pytest.mark.parametrize("sk", [HEAD, delta_sk(9), "I#x", "M#1", "P#1"])
def test_the_logs_own_rows_cannot_ride(sk: str) -> None:
    """A proposal cannot write what only the log may write."""
    world = World()
    world.create()

    with pytest.raises(Exception, match="proposed_rows_are_not_the_log"):
        world.commit(lambda _: Proposal(None, rows=(Put(PK, sk, {"x": 1}),)))


# --- bounds


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"elements": 20_001}, id="elements"),
        pytest.param({"rows": 100}, id="writes"),
        pytest.param({"outcome": 600_000}, id="outcome"),
        pytest.param({"row": 400_000}, id="row"),
    ],
)
def test_too_large_writes_nothing(change: dict[str, int]) -> None:
    """A commit over any bound is refused with nothing written, not even an object."""
    world = World()
    world.create()
    before = world.everything()
    noise = world.entropy.token(change.get("outcome", 0) // 2).hex()

    def decide(state: object) -> Proposal:
        draft = Draft(state, now=world.clock.time, origin=ORIGIN)
        for number in range(change.get("elements", 1)):
            draft.create(Concept, schema_ref=TYPE, name=str(number))
        rows = [Put(PK, conversation_sk("x", number), {}) for number in range(change.get("rows", 0))]
        rows += (
            [Put(PK, "C#big", {"text": "x" * size}) for size in [change["row"]] if size]
            if "row" in change
            else []
        )
        return Proposal(draft.finish(), outcome=noise, rows=tuple(rows))

    with pytest.raises(NoemaError) as failure:
        world.commit(decide, "key")

    assert failure.value.code == "TransactionTooLarge"
    assert world.everything() == before


# --- every fault, at every call


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("reads", [False, True], ids=["writes", "calls"])
@pytest.mark.parametrize("keyed", [False, True], ids=["plain", "keyed"])
@pytest.mark.parametrize("large", [False, True], ids=["inline", "object"])
def test_no_answer_at_any_call(after: bool, reads: bool, keyed: bool, large: bool) -> None:
    """A store that does not answer, at whichever call, whether or not it acted: the commit lands exactly once."""

    def run(at: int) -> bool:
        setting = Setting()
        faults = Faults([at], after=after, reads=reads)
        process = setting.process(faults)
        text = "x" * 9 if not large else "".join(map(chr, range(256, 12_000)))

        def decide(state: object) -> Proposal:
            proposal = process.counting(setting.counter)(state)
            draft = Draft(state, now=0, origin=ORIGIN)
            draft.change(draft.get(setting.counter), attributes={"n": proposal.outcome["n"], "text": text})
            return Proposal(draft.finish(), outcome=proposal.outcome)

        committed = process.commit(decide, "key" if keyed else None)

        assert committed.outcome == {"n": 1}
        assert not committed.replayed
        assert setting.count() == 1
        assert setting.world.upkeep.verify_chain(SPACE).broken is None
        return faults.count > at

    assert until_clean(run) > 0


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_process_that_dies_at_any_call(after: bool) -> None:
    """After a crash at any call, a retry with the same key finds or makes exactly one commit."""

    def run(at: int) -> bool:
        setting = Setting()
        faults = Faults([at], after=after, error=Crash, reads=True)
        process = setting.process(faults)
        crashed = False
        try:
            process.commit(process.counting(setting.counter), "key")
        except Crash:
            crashed = True

        again = setting.world.again(2)
        committed = again.commit(again.counting(setting.counter), "key")

        assert committed.outcome == {"n": 1}
        assert setting.count() == 1
        return crashed

    assert until_clean(run) > 2


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_creation_survives_no_answer_at_any_call(after: bool) -> None:
    """A creation whose answer was lost is recognised as one's own, not taken for somebody else's space."""

    def run(at: int) -> bool:
        world = World()
        faults = Faults([at], after=after, reads=True)
        process = world.again(table=FailingTable(world.table, faults))

        committed = process.create()

        assert committed.ver == 1
        assert world.spaces.load(SPACE).ver == 1
        return faults.count > at

    assert until_clean(run) > 1


def test_an_outcome_that_cannot_be_known_is_said_so() -> None:
    """When the store never answers again after a write, the caller is told that the outcome is unknown."""
    setting = Setting()
    table = FailingTable(setting.world.table, Faults(range(3, 10_000), reads=True))
    process = setting.world.again(table=table)
    process.spaces.load(SPACE)  # calls 0 and 1; then HEAD is read again, and the write is call 3

    with pytest.raises(NoemaError) as failure:
        process.commit(process.counting(setting.counter), deadline=setting.world.clock.time + 1000)

    assert failure.value.code == "OutcomeUnknown"


def test_a_late_write_is_recognised() -> None:
    """An attempt that lands only after the next one was made counts once, with its own outcome."""
    setting = Setting()
    held: list[object] = []

    class Slow(FailingTable):
        def transact(self, writes: object) -> None:
            if not held:
                held.append(writes)  # on its way; the caller hears nothing
                raise Unavailable("no answer")
            self.table.transact(held[0])
            super().transact(writes)

    process = setting.world.again(table=Slow(setting.world.table))

    committed = process.commit(process.counting(setting.counter))

    assert committed.outcome == {"n": 1}
    assert setting.count() == 1


def test_a_frozen_upload_is_given_up() -> None:
    """A process that slept until its upload was collected makes another attempt with another object."""
    setting = Setting()
    once = iter([True])
    collected: list[str] = []

    class Frozen(FailingObjects):
        def put(self, key: str, body: bytes) -> None:
            super().put(key, body)
            if next(once, False):
                setting.world.clock.advance(2 * 3_600_000)
                collected.extend(setting.world.again(5).upkeep.collect_garbage(SPACE).removed)

    process = setting.world.again(objects=Frozen(setting.world.objects))
    text = process.entropy.token(9000).hex()

    process.commit(process.noting(text), deadline=setting.world.clock.time + 10**8)

    objects = [key for key, _, _ in setting.world.objects.list(f"{SPACE}/d/")]
    assert len(collected) == len(objects) == 1
    assert setting.world.again().names() == ["counter", text]


# --- the corners


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_no_effect_survives_no_answer_at_any_call(after: bool) -> None:
    """An outcome without an effect is retained once, whichever call got no answer."""

    def run(at: int) -> bool:
        setting = Setting()
        faults = Faults([at], after=after, reads=True)
        process = setting.process(faults)

        committed = process.commit(lambda _: Proposal(None, outcome="nothing", head={"formed": 3}), "key")

        assert (committed.outcome, committed.effect, committed.ver) == ("nothing", False, 2)
        assert setting.world.commit(setting.world.noting("x"), "key").outcome == "nothing"
        assert setting.world.spaces.head(SPACE).number("formed") == 3
        return faults.count > at

    assert until_clean(run) > 2


def test_rows_without_anything_to_know_them_by() -> None:
    """A write that changes no memory, under no key, and gets no answer: nothing will ever tell, and that is said."""
    setting = Setting()
    process = setting.process(Faults([0], after=True))
    row = Put(PK, conversation_sk("formation", 1), {"status": "failed"})

    with pytest.raises(NoemaError) as failure:
        process.commit(lambda _: Proposal(None, rows=(row,)))

    assert failure.value.code == "OutcomeUnknown"


def test_nothing_to_write_writes_nothing() -> None:
    """A proposal that changes nothing, under no key, is no transaction."""
    setting = Setting()
    table = FailingTable(setting.world.table)

    committed = setting.world.again(table=table).commit(lambda _: Proposal(None, outcome="fine"))

    assert (committed.outcome, committed.effect, table.transactions) == ("fine", False, 0)


def test_a_key_that_is_taken_is_drawn_again() -> None:
    """An object of the same name, however unlikely, costs another attempt and nothing else."""
    setting = Setting()
    taken: list[str] = []

    class Taken(FailingObjects):
        def put(self, key: str, body: bytes) -> None:
            if not taken:
                taken.append(key)
                raise KeyExists(key)
            super().put(key, body)

    process = setting.world.again(objects=Taken(setting.world.objects))
    text = process.entropy.token(9000).hex()

    process.commit(process.noting(text))

    assert setting.world.again().names() == ["counter", text]
    assert [key for key, _, _ in setting.world.objects.list(f"{SPACE}/d/")] != taken


def test_a_store_with_smaller_bounds_is_believed() -> None:
    """When the store itself finds the transaction too large, the caller is told the same."""
    setting = Setting()

    def refuse(_: object) -> None:
        raise TooLarge("four million bytes")

    process = setting.world.again(table=FailingTable(setting.world.table, before_transact=refuse))

    with pytest.raises(NoemaError) as failure:
        process.note("x")

    assert failure.value.code == "TransactionTooLarge"


def test_a_collision_without_reasons_is_tried_again() -> None:
    """A store that says only that transactions met is asked again."""
    setting = Setting()
    times = iter(range(2))

    def collide(_: object) -> None:
        if next(times, None) is not None:
            raise Refused({})

    process = setting.world.again(table=FailingTable(setting.world.table, before_transact=collide))

    assert process.commit(process.counting(setting.counter)).outcome == {"n": 1}
    assert setting.count() == 1


def test_a_space_that_is_deleted_meanwhile() -> None:
    """A write without an answer, whose space and log are gone when it is looked for: nobody can know."""
    setting = Setting()

    class Vanishing(FailingTable):
        def transact(self, writes: object) -> None:
            self.table.transact(writes)
            setting.world.erasures.delete_space(SPACE, "owner", owner="run")
            setting.world.create()
            raise Unavailable("no answer")

    process = setting.world.again(table=Vanishing(setting.world.table))

    with pytest.raises(NoemaError) as failure:
        process.note("lost or not")

    assert failure.value.code == "OutcomeUnknown"


def test_an_attempt_that_an_erasure_fenced_is_made_again() -> None:
    """A write that never landed and no longer can is not waited for: the decision is made on the erased state."""
    setting = Setting()
    once = iter([True])

    class Erasing(FailingTable):
        def transact(self, writes: object) -> None:
            if next(once, False):
                setting.world.erasures.erase(SPACE, [setting.counter], "owner", owner="run")
                raise Unavailable("no answer")
            super().transact(writes)

    process = setting.world.again(table=Erasing(setting.world.table))

    assert process.note("after").ver == 3
    assert setting.world.again().names() == ["after"]


def test_a_writer_waits_for_an_erasure() -> None:
    """While something is erased a commit pauses; it lands when the erasure has ended, decided on what is left."""
    setting = Setting()
    dying = setting.process(Faults([1], error=Crash))
    with pytest.raises(Crash):
        dying.erasures.erase(SPACE, [setting.counter], "owner", owner="first")
    waits: list[float] = []

    class Waiting(FakeClock):
        def sleep(self, seconds: float) -> None:
            waits.append(seconds)
            super().sleep(seconds)
            if len(waits) == 3:
                self.advance(16 * 60_000)
                setting.world.clock.time = self.time
                assert setting.world.erasures.resume(SPACE, "second").clean

    writer = World(setting.world.table, setting.world.objects, Waiting(setting.world.clock.time))

    assert writer.note("after", deadline=writer.clock.time + 10**8).effect
    assert len(waits) == 3
    assert setting.world.again().names() == ["after"]


def test_a_writer_gives_up_waiting_at_its_deadline() -> None:
    """An erasure that takes longer than the caller has is told as unavailable, which is safe to try again."""
    setting = Setting()
    dying = setting.process(Faults([1], error=Crash))
    with pytest.raises(Crash):
        dying.erasures.erase(SPACE, [setting.counter], "owner", owner="first")

    with pytest.raises(NoemaError) as failure:
        setting.world.note("x", deadline=setting.world.clock.time + 500)

    assert failure.value.code == "ServiceUnavailable"
