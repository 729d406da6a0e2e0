"""Spaces as owners and managers see them."""

from typing import Any

import msgspec
import pytest

from core.errors import NoemaError
from core.ports import Put
from core.protocol.http_types import CreateSpaceInput, MemoryPolicy, RecallBudget, UpdateSpaceInput, Usage
from core.schema.library import DEFAULT_PACKAGES
from core.service.admin import PUBLIC, Admin
from core.service.commit import Commits
from core.service.spaces import Spaces
from core.service.values import Caller
from core.storage.head import MAX_HEAD_BYTES
from core.storage.layout import HEAD, counter_sk, ledger_total_sk, space_pk
from core.storage.memory import MemoryObjects, MemoryTable
from core.storage.rows import row_bytes
from tests.doubles import CountingEntropy, FailingTable, FakeClock, Faults

BOSS = Caller(subject="boss", channel="rest", scope="write", manager=True)
OWNER = Caller(subject="alice", channel="rest", scope="write")


class Place:
    """Admin over a store in memory."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.clock, self.rows = FakeClock(step_ms=1), MemoryTable()
        table, objects = FailingTable(self.rows, faults), MemoryObjects(self.clock)
        self.spaces = Spaces(table, objects, self.clock)
        self.commits = Commits(table, objects, self.clock, CountingEntropy(), self.spaces)
        self.admin = Admin(table, self.clock, self.spaces, self.commits)

    def create(self, space: str = "demo", user: str = "alice", tier: int = 1) -> Any:
        wish = CreateSpaceInput(user=user, space_id=space, tier=tier)
        return self.admin.create_space(BOSS, wish, self.clock.time + 5000)

    def update(self, space: str = "demo", **wish: Any) -> bool:
        return self.admin.update_space(OWNER, space, UpdateSpaceInput(**wish), self.clock.time + 5000)

    def resize(self, tier: int, path: str = "demo", body: str = "demo") -> Any:
        wish = CreateSpaceInput(user="alice", space_id=body, tier=tier)
        return self.admin.update_tier(BOSS, path, wish, self.clock.time + 5000)


def refused(call: Any, *args: Any, **kwargs: Any) -> NoemaError:
    with pytest.raises(NoemaError) as caught:
        call(*args, **kwargs)
    return caught.value


def test_a_new_space_is_empty_private_and_its_owners() -> None:
    """Creation answers with the space's info, and remembers who asked and with which packages."""
    place = Place()

    info = place.create()

    assert (info.id, info.space_id, info.owner, info.tier.tier) == ("demo", "demo", "alice", 1)
    assert (info.concepts, info.propositions, info.conversations, info.public) == (0, 0, 0, False)
    meta = place.spaces.load("demo").meta
    assert meta.schema.packages == DEFAULT_PACKAGES
    assert meta.created_at == meta.tier.updated_at
    assert place.spaces.deltas("demo", 0, 10)[0].origin.principal == "boss"


def test_an_id_is_given_once() -> None:
    """A second space of an id is a conflict and changes nothing of the first."""
    place = Place()
    place.create()
    before = place.admin.info("demo")

    assert refused(place.create, user="mallory", tier=9).code == "IdentityConflict"
    assert place.admin.info("demo") == before


@pytest.mark.parametrize("space", ["", "Demo", "a-b", "a/b", "../x", "x" * 65, "ü", "a b", "demo\n"])
def test_a_bad_id_makes_no_space(space: str) -> None:
    """Ids are 1 to 64 lower-case letters, digits and underscores."""
    assert refused(Place().create, space).code == "InvalidInput"


@pytest.mark.parametrize("user", [" alice", "a\nb", "\u200b"])
def test_an_owner_has_a_printable_name(user: str) -> None:
    """A subject that nobody could show is refused."""
    assert refused(Place().create, user=user).code == "InvalidInput"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (CreateSpaceInput, {"user": "a", "space_id": "x", "tier": -1}),
        (CreateSpaceInput, {"user": "a", "space_id": "x", "tier": 15}),
        (CreateSpaceInput, {"user": "a", "space_id": "x", "tier": 1.5}),
        (CreateSpaceInput, {"user": "a", "space_id": "x", "tier": True}),
        (CreateSpaceInput, {"user": "", "space_id": "x", "tier": 1}),
        (CreateSpaceInput, {"user": "x" * 129, "space_id": "x", "tier": 1}),
        (CreateSpaceInput, {"user": "a", "space_id": "x", "tier": 1, "owner": "b"}),
        (UpdateSpaceInput, {"public": "yes"}),
        (UpdateSpaceInput, {"public": None}),
        (UpdateSpaceInput, {"publc": True}),
        (UpdateSpaceInput, {"name": "x" * 129}),
        (UpdateSpaceInput, {"memory_policy": {"recall_max_rounds": 51}}),
        (UpdateSpaceInput, {"memory_policy": {"decay_floor": 1.0}}),
        (UpdateSpaceInput, {"memory_policy": {"memory_strength_decay_factor": 0}}),
        (UpdateSpaceInput, {"memory_policy": {"unknown": 1}}),
        (UpdateSpaceInput, {"memory_policy": None}),
    ],
)
def test_bodies_out_of_bounds_cannot_be_built(kind: Any, body: dict[str, Any]) -> None:
    """Bounds are part of the types."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(body, kind)


def test_a_space_can_be_resized() -> None:
    """The new size class holds at once, with the time it began."""
    place = Place()
    created = place.create()

    view = place.resize(3)

    assert view.tier == 3
    assert view.updated_at > created.tier.updated_at
    assert place.admin.info("demo").tier == view


def test_resizing_takes_the_same_space_twice() -> None:
    """Path and body must agree, and the space must exist."""
    place = Place()
    place.create()

    assert refused(place.resize, 2, body="other").code == "InvalidInput"
    assert refused(place.resize, 2, path="none", body="none").code == "NotFoundOrNotVisible"
    assert place.admin.info("demo").tier.tier == 1


def test_what_is_named_changes_and_the_rest_stays() -> None:
    """Absent keeps, null clears; every change is a management commit by its author."""
    place = Place()
    place.create()
    assert place.update(name="My space", description="For tests") is True
    assert place.update(name=None, public=True) is True

    info = place.admin.info("demo")

    assert (info.name, info.description, info.public) == (None, "For tests", True)
    deltas = place.spaces.deltas("demo", 1, 10)
    assert [delta.transaction_class for delta in deltas] == ["management", "management"]
    assert deltas[0].origin.principal == "alice"
    assert place.spaces.head("demo").seq == 0  # protected state is not memory (KIP §32.8)


def test_the_same_again_writes_nothing() -> None:
    """A change that changes nothing is no commit."""
    place = Place()
    place.create()
    place.update(name="x")
    before = place.spaces.head("demo").ver

    assert place.update(name="x") is True
    assert place.spaces.head("demo").ver == before


def test_a_memory_policy_is_replaced_whole() -> None:
    """What a new policy omits takes its default, not the old policy's value."""
    place = Place()
    place.create()
    place.update(memory_policy=MemoryPolicy(recall_max_rounds=3, recall_budget=RecallBudget(max_tokens=99)))
    place.update(memory_policy=MemoryPolicy(decay_floor=0.1))

    policy = msgspec.convert(place.spaces.load("demo").meta.memory_policy, MemoryPolicy)

    assert policy == MemoryPolicy(decay_floor=0.1)


def test_an_empty_change_and_the_wikis_are_refused() -> None:
    """A body that names nothing is a mistake; what the wiki would need is refused by name."""
    place = Place()
    place.create()

    assert refused(place.update).code == "InvalidInput"
    error = refused(place.update, name="x", wiki_digest=True)
    assert (error.code, error.details) == ("NotImplementedYet", {"member": "wiki_digest"})
    assert place.admin.info("demo").name is None


def test_an_unknown_space_is_not_found() -> None:
    """Reading and changing what is not there is NotFoundOrNotVisible, and nothing comes to be."""
    place = Place()
    for call in (place.admin.info, place.admin.formation_status, place.update):
        kwargs = {"name": "x"} if call == place.update else {}
        assert refused(call, "nowhere", **kwargs).code == "NotFoundOrNotVisible"
    assert place.admin.is_public("nowhere") is False
    assert place.rows.query(space_pk("nowhere"), "!", "~", limit=10) == []


def test_publicity_is_repeated_in_head() -> None:
    """Whether anybody may read is one small read, and always what the protected state says."""
    place = Place()
    place.create()
    for public in (True, False, True):
        place.update(public=public)
        assert place.admin.is_public("demo") is public
        assert place.spaces.load("demo").meta.public is public
    row = place.rows.get(space_pk("demo"), HEAD)
    assert row is not None
    assert row[PUBLIC] is True
    assert row_bytes(space_pk("demo"), HEAD, row) < MAX_HEAD_BYTES


def test_a_new_life_of_an_id_is_private() -> None:
    """What HEAD said of a deleted space is not taken over by the next one."""
    place = Place()
    place.create()
    place.update(public=True)
    row = place.rows.get(space_pk("demo"), HEAD)
    assert row is not None
    place.rows.transact([Put(space_pk("demo"), HEAD, {**row, "state": "deleted"})])

    place.create()

    assert place.admin.is_public("demo") is False


def test_a_store_that_does_not_answer_is_not_a_private_space() -> None:
    """A failed look is ServiceUnavailable, never a verdict."""
    place = Place(Faults(range(1000), reads=True))

    assert refused(place.admin.is_public, "demo").code == "ServiceUnavailable"
    assert refused(place.admin.info, "demo").code == "ServiceUnavailable"


def test_status_and_info_read_the_counters_and_leases() -> None:
    """Conversations, token usage, the high-water mark and running work come from their rows."""
    place = Place()
    place.create()
    pk = space_pk("demo")
    head = place.rows.get(pk, HEAD)
    assert head is not None
    until = place.clock.time + 60_000
    usage = {"formation_in": 11, "formation_out": 5, "formation_cached": 1, "formation_requests": 2}
    place.rows.transact(
        [
            Put(pk, counter_sk("formation"), {"n": 7}),
            Put(pk, ledger_total_sk(), usage),
            Put(pk, HEAD, {**head, "formed": 5, "lt_formation": until}),
        ]
    )

    status, info = place.admin.formation_status("demo"), place.admin.info("demo")

    assert (status.conversations, status.formation_processed_id) == (7, 5)
    assert (status.formation_processing, status.maintenance_processing) == (True, False)
    assert info.formation_usage == Usage(input_tokens=11, output_tokens=5, cached_tokens=1, requests=2)
    assert info.recall_usage.requests == 0
    place.clock.time = until
    assert place.admin.formation_status("demo").formation_processing is False
