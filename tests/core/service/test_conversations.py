"""Conversations: taken in once, numbered without gaps, read back in pages."""

import threading
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from core.errors import NoemaError
from core.ports import Refused, Unavailable
from core.protocol import http_types as wire
from core.service.attempt import KEEP_OUTCOMES_MS
from core.service.conversations import INLINE_BYTES, KEEP_RECALLS_MS, MAX_LIMIT
from core.storage.layout import DUE_PK, conversation_sk, space_pk
from core.storage.memory import MemoryObjects, MemoryTable
from tests.doubles import Crash, FailingObjects, FailingTable, FakeClock, Faults
from tests.services import World

HI = [{"role": "user", "content": "hi"}]


@pytest.fixture
def world() -> World:
    """A process with one space."""
    world = World()
    world.create()
    return world


def test_ids_count_from_one_in_each_space_and_collection(world: World) -> None:
    """A client may rely on the order of ids."""
    world.create("other")

    assert [world.submit("home", HI) for _ in range(3)] == [1, 2, 3]
    assert world.submit("other", HI) == 1
    assert world.ask("anything?").conversation == 1


def test_a_submission_is_recorded_with_its_subject_and_input(world: World) -> None:
    """The verified subject stands on the record, the whole input is the first message, the status is submitted."""
    number = world.submit(
        "home", [{"role": "user", "content": "hi", "user": "mallory"}], context={"source": "chat-7"}
    )

    found = world.conversations.get("home", "formation", number)
    assert (found.user, found.status, found.label, found.thread) == (
        "alice",
        "submitted",
        "formation",
        "chat-7",
    )
    assert found.period == found.created_at // 3_600_000
    assert msgspec.json.decode(found.messages[0]["content"])["messages"] == [
        {"role": "user", "content": "hi", "user": "mallory"}
    ]


def test_a_submission_does_not_touch_head(world: World) -> None:
    """Submitting moves neither the version nor any attribute of HEAD."""
    before = world.spaces.head("home")
    world.submit("home", HI)

    assert world.spaces.head("home") == before


def test_a_warning_is_in_the_answer_and_on_the_record(world: World) -> None:
    """An unusable time is not silent."""
    answer = world.submitted("home", HI, timestamp="whenever")

    assert len(answer.warnings) == 1
    found = world.conversations.get("home", "formation", answer.conversation or 0)
    assert found.extra == {"warnings": list(answer.warnings)}


def test_a_large_body_is_an_object_and_reads_back(world: World) -> None:
    """Over 32 KB the row holds a key, and the conversation reads the same."""
    text = "é" * INLINE_BYTES
    number = world.submit("home", [{"role": "user", "content": text}])

    row = world.table.get(space_pk("home"), conversation_sk("formation", number))
    assert row is not None
    assert "body" not in row
    found = world.conversations.get("home", "formation", number)
    assert msgspec.json.decode(found.messages[0]["content"])["messages"][0]["content"] == text
    (listed,), _ = world.conversations.page("home", "formation")
    assert listed.messages == ()
    assert listed.extra == {"messages_omitted": True}


def test_the_same_key_with_the_same_body_is_one_conversation(world: World) -> None:
    """A retry answers with the first id, also when the tier has filled meanwhile."""
    assert [world.submit("home", HI, key="k") for _ in range(3)] == [1, 1, 1]
    assert world.submit("home", HI, key="other") == 2
    assert world.submit("home", HI) == 3


def test_the_same_key_with_another_body_conflicts(world: World) -> None:
    """A key names one request."""
    world.submit("home", HI, key="k")
    with pytest.raises(NoemaError) as caught:
        world.submit("home", [{"role": "user", "content": "other"}], key="k")

    assert caught.value.code == "IdempotencyConflict"


def test_a_full_tier_refuses_with_both_numbers() -> None:
    """Ten conversations in a space of 100 are let in; the hundred and first is not."""
    world = World()
    world.create(tier=0)
    for _ in range(100):
        world.submit("home", HI)
    with pytest.raises(NoemaError) as caught:
        world.submit("home", HI)

    assert caught.value.code == "SpaceTierExceeded"
    assert "100" in caught.value.message
    assert caught.value.details == {"held": 100, "limit": 100, "tier": 0}


def test_an_unknown_space_and_collection_and_id_are_refused(world: World) -> None:
    """What does not exist is not found; what cannot be named is invalid."""
    for call, code in (
        (lambda: world.submit("nowhere", HI), "NotFoundOrNotVisible"),
        (lambda: world.conversations.get("nowhere", "formation", 1), "NotFoundOrNotVisible"),
        (lambda: world.conversations.page("nowhere", "formation"), "NotFoundOrNotVisible"),
        (lambda: world.conversations.get("home", "formation", 1), "NotFoundOrNotVisible"),
        (lambda: world.conversations.get("home", "formation", -1), "NotFoundOrNotVisible"),
        (lambda: world.conversations.get("home", "formation", 10**30), "NotFoundOrNotVisible"),
        (lambda: world.conversations.get("home", "dreams", 1), "InvalidInput"),
        (lambda: world.conversations.page("home", "__class__"), "InvalidInput"),
    ):
        with pytest.raises(NoemaError) as caught:
            call()
        assert caught.value.code == code


def test_pages_go_back_from_the_newest_and_hold_every_conversation_once(world: World) -> None:
    """Following the cursors visits each id once; inside a page the order ascends; the last page has no cursor."""
    for _ in range(25):
        world.submit("home", HI)

    pages, cursor = [], None
    while True:
        page, cursor = world.conversations.page("home", "formation", cursor=cursor)
        pages.append([item.id for item in page])
        if cursor is None:
            break
    assert pages == [list(range(16, 26)), list(range(6, 16)), list(range(1, 6))]


def test_no_cursor_where_a_full_page_is_the_last(world: World) -> None:
    """A page that ends with id 1 leads nowhere."""
    for _ in range(10):
        world.submit("home", HI)

    page, cursor = world.conversations.page("home", "formation")
    assert len(page) == 10
    assert cursor is None


@pytest.mark.parametrize(("limit", "size"), [(None, 10), (0, 1), (-5, 1), (3, 3), (10**9, MAX_LIMIT)])
def test_the_limit_is_clamped(world: World, limit: int | None, size: int) -> None:
    """Zero is not unbounded, and huge is a hundred."""
    for _ in range(MAX_LIMIT + 1):
        world.submit("home", HI)

    assert len(world.conversations.page("home", "formation", limit=limit)[0]) == size


def test_a_cursor_fits_only_the_list_that_gave_it(world: World) -> None:
    """A cursor from another space or collection, an altered one and an invented one are refused."""
    world.create("other")
    for _ in range(3):
        world.submit("home", HI)
        world.submit("other", HI)
        world.ask("anything?")
    mine = str(world.conversations.page("home", "formation", limit=1)[1])
    raw = urlsafe_b64decode(mine + "=" * (-len(mine) % 4))
    forged = urlsafe_b64encode((99).to_bytes(8, "big") + raw[8:]).decode()
    foreign = [
        ("other", "formation", mine),
        ("home", "recall", mine),
        ("home", "maintenance", mine),
        ("home", "formation", forged),
        ("home", "formation", mine[:-3]),
        ("home", "formation", "AAAA"),
        ("home", "formation", "не base64"),
        ("home", "formation", "%%%"),
        ("home", "formation", mine + mine),
    ]

    for space, collection, cursor in foreign:
        with pytest.raises(NoemaError) as caught:
            world.conversations.page(space, collection, cursor=cursor)
        assert caught.value.code == "CursorMismatch"


def test_an_empty_list_has_no_cursor(world: World) -> None:
    """A collection without conversations is an empty page."""
    assert world.conversations.page("home", "maintenance") == ([], None)


def test_a_delta_gives_what_came_after_the_offsets(world: World) -> None:
    """Polling with the counts consumed gives each message once."""
    number = world.say("home", "I live in Berlin.")
    first = world.conversations.delta("home", "formation", number)
    world.drain()
    second = world.conversations.delta("home", "formation", number, messages_offset=len(first.messages))
    third = world.conversations.delta("home", "formation", number, messages_offset=99, artifacts_offset=-3)

    assert (first.status, second.status) == ("submitted", "completed")
    assert [m["role"] for m in first.messages] == ["user"]
    assert [m["role"] for m in second.messages] == ["assistant"]
    assert third.messages == ()


def test_a_recall_transcript_expires(world: World) -> None:
    """After thirty days a recall's record is gone, even if the table still has the row."""
    number = world.ask("anything?").conversation or 0
    world.clock.advance(KEEP_RECALLS_MS)

    with pytest.raises(NoemaError):
        world.conversations.get("home", "recall", number)
    assert world.conversations.page("home", "recall")[0] == []


def test_submissions_at_once_get_distinct_ids() -> None:
    """Threads that submit together share the sequence without gap or double."""
    world = World()
    world.create()
    numbers: list[int] = []

    def submit(seed: int) -> None:
        mine = World(world.table, world.objects, FakeClock(world.clock.time), seed=seed)
        numbers.extend(mine.submit("home", HI) for _ in range(5))

    threads = [threading.Thread(target=submit, args=(seed,)) for seed in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(numbers) == list(range(1, 31))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("error", [Unavailable, Crash])
@pytest.mark.parametrize("large", [False, True])
def test_a_fault_at_any_write_leaves_one_conversation_or_none(after: bool, error: Any, large: bool) -> None:
    """Whatever write fails, a retry under the same key ends with exactly one conversation."""
    messages = [{"role": "user", "content": "x" * (INLINE_BYTES * 2 if large else 5)}]
    for at in range(3):
        clock = FakeClock()
        table, objects = MemoryTable(), MemoryObjects(clock)
        World(table, objects, clock).create()
        faults = Faults([at], after=after, error=error)
        failing = World(FailingTable(table, faults), FailingObjects(objects, faults), clock, seed=1)
        with suppress(Crash, NoemaError):
            failing.submit("home", messages, key="k")
        number = World(table, objects, clock, seed=2).submit("home", messages, key="k")

        assert number == 1
        assert len(World(table, objects, clock).conversations.page("home", "formation")[0]) == 1


def test_an_unanswered_write_is_found_without_a_key(world: World) -> None:
    """A store that times out after committing makes no second conversation."""
    faults = Faults([0], after=True)
    failing = World(FailingTable(world.table, faults), world.objects, world.clock, seed=3)

    assert failing.submit("home", HI) == 1
    assert world.submit("home", HI) == 2


def test_a_submission_puts_the_space_on_the_due_list(world: World) -> None:
    """The sweep finds a space by its row, not by looking at every space."""
    world.submit("home", HI)

    assert [sk for sk, _ in world.table.query(DUE_PK, "!", "~", limit=10)] == ["formation#home"]


def test_the_record_of_an_earlier_life_is_not_shown() -> None:
    """A row whose instance is not the space's belongs to a space that was deleted."""
    world = World()
    world.create()
    number = world.submit("home", HI)
    pk, sk = space_pk("home"), conversation_sk("formation", number)
    table = world.table
    assert isinstance(table, MemoryTable)
    row = table.get(pk, sk)
    table._set(pk, sk, {**(row or {}), "instance": "earlier"})

    with pytest.raises(NoemaError):
        world.conversations.get("home", "formation", number)


def test_usage_of_offline_work_is_zero(world: World) -> None:
    """No model was asked, so nothing was used."""
    assert world.conversations.get("home", "formation", world.submit("home", HI)).usage == wire.Usage()


def test_a_submission_that_never_comes_first_gives_up_with_a_code(world: World) -> None:
    """Under endless contention the caller is told to try again, and nothing is stored."""

    def refuse(writes: Any) -> None:
        raise Refused({})

    busy = World(FailingTable(world.table, before_transact=refuse), world.objects, world.clock, seed=7)
    with pytest.raises(NoemaError) as caught:
        busy.submit("home", HI)

    assert caught.value.code == "SerializationConflict"
    assert world.conversations.page("home", "formation")[0] == []


def test_a_store_that_never_answers_leaves_the_outcome_unknown(world: World) -> None:
    """The caller is told to look, or to send it again under a key."""
    down = World(FailingTable(world.table, Faults(range(1000))), world.objects, world.clock, seed=8)
    with pytest.raises(NoemaError) as caught:
        down.submit("home", HI)

    assert caught.value.code == "OutcomeUnknown"


def test_a_key_may_be_used_again_when_its_time_is_over(world: World) -> None:
    """A retry key is remembered for a week, then it names a new request."""
    assert world.submit("home", HI, key="k") == 1
    world.clock.advance(KEEP_OUTCOMES_MS)

    assert world.submit("home", [{"role": "user", "content": "other"}], key="k") == 2
