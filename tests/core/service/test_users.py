"""Users: persons found and made by a caller's key; pins; the memory policy."""

from typing import Any

import msgspec
import pytest

from core.agents.vocabulary import PERSON
from core.errors import NoemaError
from core.model.elements import Concept, Retention
from core.protocol.http_types import MemoryPolicy, UpdateSpaceInput
from core.protocol.memory_types import MaintenanceInput, MaintenanceParameters, PinInput, UserInput
from core.service.memory_policy import policy_of, with_parameters
from core.service.pins import Pins
from core.service.users import Users
from core.service.values import Caller, Proposal
from core.transaction.draft import Draft
from tests.services import MINUTE, World

ALICE = Caller("alice", "rest", "write")


class Place(World):
    """A space with users and pins."""

    def __init__(self) -> None:
        super().__init__()
        self.create()
        self.users, self.pins = Users(self.clock, self.commits), Pins(self.clock, self.commits)

    def user(self, user: str, name: str | None = None) -> Any:
        wish = UserInput(user=user, name=name)
        return self.users.get_or_init_user(ALICE, "home", wish, self.clock.now() + MINUTE)

    def pin(self, entity: str, pinned: bool = True) -> Any:
        wish = PinInput(entity=entity, pinned=pinned)
        return self.pins.pin(ALICE, "home", wish, self.clock.now() + MINUTE)

    @property
    def version(self) -> int:
        return self.spaces.head("home").ver

    def change(self, element: str, **fields: Any) -> None:
        def decide(state: Any) -> Proposal:
            draft = Draft(state, now=self.clock.now(), origin=ALICE.origin)
            found = draft.get(element)
            assert found is not None
            draft.change(found, **fields)
            return Proposal(draft.finish())

        self.commits.commit("home", decide, deadline=self.clock.now() + MINUTE)


@pytest.fixture
def place() -> Place:
    return Place()


def refused(call: Any, *args: Any) -> str:
    with pytest.raises(NoemaError) as caught:
        call(*args)
    return caught.value.code


def test_a_new_user_is_a_person_called_by_the_key(place: Place) -> None:
    """The answer is the Concept as KIP shows it; asking again gives the same and writes nothing."""
    made = place.user("u-17")
    version = place.version

    again = place.user(" u-17 ")

    assert (made["kind"], made["schema_ref"], made["key"], made["name"]) == (
        "concept", PERSON, "u-17", "u-17",
    )  # fmt: skip
    assert {"id", "attributes", "facets", "retention", "_system"} <= set(made)
    assert (again, place.version) == (made, version)


def test_only_a_name_given_renames(place: Place) -> None:
    """Without a name the stored one stays; with one it is replaced and the old one is an alias."""
    place.user("u-17", "Alice")
    assert place.user("u-17")["name"] == "Alice"

    renamed = place.user("u-17", "Alice Moore")

    assert (renamed["name"], renamed["aliases"]) == ("Alice Moore", ["Alice"])
    assert place.user("u-17")["name"] == "Alice Moore"


@pytest.mark.parametrize(("user", "name"), [("  ", None), ("a\nb", None), ("a", "\t"), ("a", "x\x00")])
def test_keys_and_names_are_printable(place: Place, user: str, name: str | None) -> None:
    """A blank or unprintable key or name is refused, and nothing is written."""
    before = place.version
    assert refused(place.user, user, name) == "InvalidInput"
    assert place.version == before


def test_a_merged_user_is_the_survivor(place: Place) -> None:
    """After a merge the key of the one that was merged leads to the other."""
    old, kept = place.user("old"), place.user("kept")
    place.change(old["id"], merged_into=kept["id"], state="merged")

    assert place.user("old")["id"] == kept["id"]


def test_formation_knows_its_counterparty_by_the_same_lookup(place: Place) -> None:
    """The person made here is the one who speaks there, and one who only listened is known from then on."""
    made = place.user("alice", "Alice")
    place.submit("home", [{"role": "user", "content": "I love tea."}], context={"counterparty": "alice"})
    note = {"role": "assistant", "content": "Hello.", "name": "Noa"}
    place.submit("home", [note], context={"counterparty": "bob"})
    place.drain()

    state = place.spaces.load("home")
    people = {e.key: e for i in state.ids("concept") if isinstance(e := state.get(i), Concept) and e.key}

    assert people["alice"].id == made["id"]
    assert people["alice"].name == "Alice"
    assert people["bob"].schema_ref == PERSON


def test_a_pin_is_a_retention_class(place: Place) -> None:
    """Pinned, pinned again, unpinned: `updated` says whether it moved, and the rest of the retention stays."""
    person = place.user("alice")["id"]
    place.change(person, retention=Retention(expires_at=5, legal_hold=True))

    answers = [place.pin(person), place.pin(person), place.pin(person, pinned=False)]

    assert [(a.pinned, a.updated) for a in answers] == [(True, True), (True, False), (False, True)]
    found = place.spaces.load("home").get(person)
    assert found is not None
    assert found.retention == Retention("standard", expires_at=5, legal_hold=True)


def test_unpinning_leaves_another_class(place: Place) -> None:
    """Only a pin is taken away."""
    person = place.user("alice")["id"]
    place.change(person, retention=Retention("ephemeral"))

    assert place.pin(person, pinned=False).updated is False


def test_what_cannot_be_pinned(place: Place) -> None:
    """What is no id, what is not there, and what changes no more."""
    person = place.user("alice")["id"]
    place.change(person, state="tombstoned")

    assert refused(place.pin, "alice") == "InvalidInput"
    assert refused(place.pin, person[:-1] + ("0" if person[-1] != "0" else "1")) in (
        "NotFoundOrNotVisible", "InvalidInput",
    )  # fmt: skip
    assert refused(place.pin, person) == "InvalidLifecycleTransition"


def test_a_policy_is_replaced_whole(place: Place) -> None:
    """An omitted member takes its default, whatever stood there; members of a newer version are passed over."""
    assert policy_of(place.spaces.load("home").meta) == MemoryPolicy()
    for policy in ({"decay_floor": 0.1, "recall_max_rounds": 50}, {"decay_floor": 0.2}):
        wish = msgspec.convert({"memory_policy": policy}, UpdateSpaceInput)
        place.admin.update_space(ALICE, "home", wish, place.clock.now() + MINUTE)

    meta = place.spaces.load("home").meta
    assert policy_of(meta) == MemoryPolicy(decay_floor=0.2)
    later = msgspec.structs.replace(meta, memory_policy={**meta.memory_policy, "from_the_future": 1})
    assert policy_of(later) == MemoryPolicy(decay_floor=0.2)


@pytest.mark.parametrize(
    ("member", "good", "bad"),
    [
        ("version", (1,), (0, "1", 1.5)),
        ("memory_strength_decay_factor", (0.01, 1), (0, -1, 1.01)),
        ("decay_floor", (0, 0.99), (-0.1, 1)),
        ("recall_reinforcement", (0, 1), (-0.1, 1.1)),
        ("correction_penalty", (0.1, 1), (0, 2)),
        ("stale_event_threshold_days", (1, 365), (0, 366)),
        ("unconsolidated_max_backlog", (1, 10_000), (0, 10_001)),
        ("orphan_max_count", (1, 10_000), (0, 10_001)),
        ("self_test_queries_per_cycle", (0, 100), (-1, 101)),
        ("self_test_token_budget", (1_000, 1_000_000), (999, 1_000_001)),
        ("recall_search_threshold", (0.1, 1), (0, 1.1)),
        ("recall_max_rounds", (1, 50), (0, 51)),
        ("recall_budget", (None, {"max_tokens": 1}), ({"max_tokens": 0}, 7)),
        ("shadow_replay_sample", (1, 16), (0, 17)),
        ("no_such_member", (), (1,)),
    ],
)
def test_ranges_of_the_policy(member: str, good: tuple[Any, ...], bad: tuple[Any, ...]) -> None:
    """Each member has its range, and a member nobody knows is refused."""
    for value in good:
        msgspec.convert({member: value}, MemoryPolicy)
    for value in bad:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({member: value}, MemoryPolicy)


def test_a_runs_parameters_go_before_the_policy() -> None:
    """Older spellings count where the newer one is absent."""
    policy = MemoryPolicy(orphan_max_count=3)
    wished = MaintenanceParameters(
        confidence_decay_factor=0.5, unsorted_max_backlog=7, unconsolidated_max_backlog=8
    )

    run = with_parameters(policy, wished)

    assert (run.memory_strength_decay_factor, run.unconsolidated_max_backlog, run.orphan_max_count) == (
        0.5, 8, 3,
    )  # fmt: skip
    assert with_parameters(policy, MaintenanceParameters()) == policy


@pytest.mark.parametrize(
    "body",
    [
        {"scope": "deep"},
        {"trigger": "whim"},
        {"parameters": {"memory_strength_decay_factor": 0}},
        {"parameters": {"confidence_decay_factor": 1.1}},
        {"parameters": {"stale_event_threshold_days": 366}},
        {"parameters": {"unsorted_max_backlog": 10_001}},
        {"parameters": {"orphan_max_count": 0}},
        {"parameters": []},
    ],
)
def test_ranges_of_a_run(body: Any) -> None:
    """What a run may not be asked for."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(body, MaintenanceInput)
