"""Probes: what is there, what is not, and how long a miss may be believed."""

from typing import Any

import msgspec
import pytest

from core.authority import Principal
from core.model.elements import Governance
from core.protocol import http_types as wire
from core.service.memory_status import MemoryStatuses
from core.service.probes import KEEP_MS, MAX_CHARS, MAX_MISSES, MAX_SPACES, Misses, fold_query
from core.service.reading_counts import counts_of
from core.service.values import Caller
from tests.doubles import FailingTable, says
from tests.recalling import SURE, Recalling, model


@pytest.fixture
def world() -> Recalling:
    """A filled space."""
    return Recalling(None).filled()


def probe(world: Recalling, query: str, caller: Caller | None = None, **members: Any) -> wire.ProbeOutput:
    """Probe as a caller."""
    body = msgspec.convert({"query": query, **members}, wire.ProbeInput)
    return world.recall.probe("home", body, caller or world.caller)


def test_a_miss_is_kept_under_one_spelling(world: Recalling) -> None:
    """Case and blanks do not matter; the second look says that it comes from the cache."""
    first, second = probe(world, "Zaphod Beeblebrox"), probe(world, "  zaphod\n BEEBLEBROX ")

    assert (first.found, first.negative_cached, first.search_exhaustive) == (False, False, True)
    assert (second.found, second.negative_cached, second.search_exhaustive) == (False, True, True)
    assert not probe(world, "zaphod").negative_cached


def test_a_hit_is_never_kept(world: Recalling) -> None:
    """Only what is not there."""
    assert [probe(world, "Lisbon").negative_cached for _ in range(2)] == [False, False]


def test_a_miss_is_over_after_an_hour(world: Recalling) -> None:
    """Not a moment later."""
    probe(world, "zaphod")
    world.clock.advance(KEEP_MS - 1)
    assert probe(world, "zaphod").negative_cached
    world.clock.advance(1)

    assert not probe(world, "zaphod").negative_cached


CLEARS: dict[str, Any] = {
    "a conversation formed": lambda w: (w.say("home", "I met Zaphod."), w.drain()),
    "an erasure": lambda w: w.forget(w.evidence(0)),
    "a change by the host": lambda w: w.host(w.evidence(0), governance=Governance(classification="x")),
    "a policy": lambda w: w.admin.update_space(
        w.caller, "home", wire.UpdateSpaceInput(name="x"), w.clock.now() + 10_000
    ),
}


@pytest.mark.parametrize("name", CLEARS)
def test_every_commit_clears(world: Recalling, name: str) -> None:
    """Whatever it was, a miss of before is searched anew."""
    probe(world, "zaphod")
    probe(world, "trillian")
    CLEARS[name](world)

    again = [probe(world, word) for word in ("zaphod", "trillian")]

    assert [each.negative_cached for each in again] == [False, False]
    assert again[0].found == (name == "a conversation formed")
    assert probe(world, "trillian").negative_cached


def test_a_miss_whose_search_began_before_a_commit_is_not_kept_for_after_it() -> None:
    """A search that overslept keeps nothing, even if it ends after newer ones."""
    misses, old, new = Misses(), ("i", 0, 7), ("i", 0, 8)
    assert misses.add("home", new, "a", 0)

    assert not misses.add("home", old, "b", 0)

    assert misses.has("home", new, "a", 1)
    assert not misses.has("home", new, "b", 1)
    assert not misses.has("home", old, "b", 1)
    assert not misses.has("home", ("i", 1, 8), "a", 1)


def test_another_life_of_the_space_knows_nothing_of_the_first() -> None:
    """Whatever its version."""
    misses = Misses()
    misses.add("home", ("i", 0, 70), "a", 0)

    assert misses.add("home", ("j", 0, 1), "b", 0)

    assert not misses.has("home", ("i", 0, 70), "a", 0)


def test_the_cache_is_bounded() -> None:
    """1,024 misses of a space; then what is over makes room, and nothing else does; spaces go by last use."""
    misses, stamp = Misses(), ("i", 0, 7)
    assert all(misses.add("home", stamp, f"q{n}", n) for n in range(MAX_MISSES))
    assert not misses.add("home", stamp, "one more", MAX_MISSES)
    assert misses.add("home", stamp, "one more", KEEP_MS + 10)
    for n in range(MAX_SPACES):
        misses.add(f"s{n}", stamp, "q", 0)

    assert not misses.has("home", stamp, "one more", KEEP_MS + 10)


def test_a_long_query_is_not_kept(world: Recalling) -> None:
    """Over 512 characters."""
    exact, longer = "z" * MAX_CHARS, "z" * (MAX_CHARS + 1)
    assert [probe(world, exact).negative_cached for _ in range(2)] == [False, True]

    assert [probe(world, longer).negative_cached for _ in range(2)] == [False, False]


def test_a_kept_miss_costs_one_small_read(world: Recalling) -> None:
    """HEAD, and the count; no state is loaded."""
    table = FailingTable(world.table)
    other = Recalling(None, table, world.objects, world.clock)
    probe(other, "zaphod")
    table.reads = 0

    probe(other, "zaphod")

    assert table.reads == 1


@pytest.mark.parametrize("query", ["sleep task", "consolidate backlog"])
def test_plumbing_is_no_memory(world: Recalling, query: str) -> None:
    """Notes of the service to itself are not found."""
    assert not probe(world, query).found


def test_what_may_not_be_seen_is_not_found_and_the_miss_is_its_callers_own(world: Recalling) -> None:
    """A guest's miss does not hide from the owner what the guest may not see."""

    def principal(caller: Caller) -> Principal:
        hidden = frozenset({"secret"}) if caller.subject == "guest" else frozenset()
        return Principal(caller.subject, hidden=hidden)

    found = world.evidence(2)
    world.host(found, governance=Governance(classification="secret"))
    other = Recalling(None, world.table, world.objects, world.clock, principal_of=principal)
    guest = Caller("guest", "rest", "read")

    missed = [hit.entity for hit in probe(other, "hiking", guest).hits]

    assert found not in missed
    assert found in [hit.entity for hit in probe(other, "hiking").hits]


def test_what_is_read_is_counted_beside_the_log() -> None:
    """Recalls, entities, uncertainty, hits, misses and kept misses; guests leave no row, and the log is unchanged."""
    world = Recalling(model(last=says("Lisbon." + SURE))).filled()
    before = world.log()
    found = world.structured("Where does Alice live?")
    for query in ("Lisbon", "zaphod", "zaphod"):
        probe(world, query)
    guest = Caller("anonymous", "rest", "read", kind="anonymous")
    probe(world, "Lisbon", guest)
    world.recall.recall(guest, "home", wire.RecallInput(query="Where?"))

    counts = counts_of(world.table, "home", world.spaces.head("home").instance)

    assert (counts.recalls, counts.entities) == (1, len(found.memories))
    assert (counts.hits, counts.misses, counts.cached) == (1, 1, 1)
    assert (counts.reports, counts.uncertainty, counts.failed) == (1, 0.1, 0)
    assert world.log() == before
    status = MemoryStatuses(world.table, world.spaces).status("home")
    assert (status.metrics.probe_hits, status.metrics.probe_misses, status.metrics.negative_cache_hits) == (
        1,
        1,
        1,
    )
    assert (status.metrics.recalls_completed, status.metrics.entities_recalled) == (1, len(found.memories))
    assert (status.probe_hit_rate, status.avg_uncertainty) == (0.5, 0.1)


def test_one_spelling() -> None:
    """As the contract folds a key."""
    assert fold_query("  A\tB \n c") == "a b c"
