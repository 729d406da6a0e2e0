"""Dense search over durable spaces: what is compared, what is said of the rest, and what is built when."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from core.errors import NoemaError
from core.ports import EmbedderGarbled, EmbedderRefused, EmbedderUnavailable
from core.protocol.memory_types import MeaningStatus
from core.service.caretaking import Caretaking
from core.service.erasure import Erasures
from core.service.memory_status import MemoryStatuses
from core.service.upkeep import DAY, HOUR, Upkeep
from core.service.vector_search import Search
from core.service.vector_upkeep import VectorUpkeep
from core.service.vectors import Vectors
from core.storage.layout import space_pk, vector_key, vector_segment
from core.storage.memory import MemoryObjects
from core.storage.vectors import stack_of
from tests.doubles import FakeClock, HashEmbedder
from tests.services import MINUTE, World

LATER = 10**15


class Meter:
    """Objects that count what is read of them."""

    def __init__(self, inner: MemoryObjects) -> None:
        self.inner = inner
        self.read: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def get(self, key: str, first: int = 0, length: int | None = None) -> bytes | None:
        self.read.append(key)
        return self.inner.get(key, first, length)

    def get_many(self, ranges: Any) -> Any:
        self.read += [one[0] for one in ranges]
        return self.inner.get_many(ranges)


class Home:
    """A space with an embedder."""

    def __init__(self, embedder: HashEmbedder | None = None, world: World | None = None) -> None:
        if world is None:
            clock = FakeClock(step_ms=1)
            world = World(objects=Meter(MemoryObjects(clock)), clock=clock)  # type: ignore[arg-type]
            world.create()
        self.world = world
        self.embedder = embedder or HashEmbedder()
        self.vectors = Vectors(world.spaces, self.embedder, lambda: np)
        self.upkeep = Upkeep(world.spaces, world.leases, world.entropy)
        self.building = VectorUpkeep(world.spaces, self.upkeep, self.vectors, world.entropy)
        self.erasures = Erasures(world.spaces, self.upkeep, world.entropy)

    def say(self, *texts: str, name: str = "Alice") -> None:
        self.world.say("home", *texts, name=name)
        self.world.drain()

    def compact(self) -> None:
        assert self.upkeep.compact("home", "me") is not None

    def index(self) -> Any:
        return self.building.index("home", deadline=LATER)

    def state(self) -> Any:
        return self.world.spaces.load("home")

    def near(self, text: str, view: Any = None) -> Any:
        return self.vectors.nearest(view or self.state(), text, deadline=LATER)

    def said(self, element_id: str) -> str:
        return str(self.state().get(element_id).payload.inline)

    def first(self, text: str, letters: str = "E") -> str:
        return next(iter(self.near(text).ranked(letters)))[0]

    def sidecars(self) -> list[str]:
        return [key for key, _, _ in self.world.objects.list("home/seg/") if vector_segment(key)]

    def rows(self) -> list[str]:
        return [sk for sk, _ in self.world.table.query(space_pk("home"), "V#", "V#~", limit=100)]


@pytest.fixture
def home() -> Home:
    return Home()


def test_what_was_said_just_now_is_near_what_means_the_same() -> None:
    """A local embedder embeds the newest commits when they are searched; the answer covers the whole state."""
    home = Home(HashEmbedder(alike={"automobil": "car"}))
    home.say("I bought a red car yesterday.", "The cat sleeps on the sofa.")
    dense = home.near("automobile")
    (element, similarity), *_ = dense.ranked("E")
    assert "red car" in home.said(element)
    assert 0 < similarity <= 1.0001
    assert dense.degraded is None
    assert dense.coverage.index_seq == dense.coverage.state_seq == home.state().seq


def test_each_text_is_embedded_once(home: Home) -> None:
    """A second question embeds nothing but itself, and the same question nothing at all."""
    home.say("I bought a red car yesterday.")
    home.near("car")
    asked = len(home.embedder.asked)
    home.near("sofa")
    assert home.embedder.asked[asked:] == [["sofa"]]
    home.near("sofa")
    assert len(home.embedder.asked) == asked + 1
    home.say("The cat sleeps on the sofa.")
    home.near("sofa")
    assert not any("red car" in text for texts in home.embedder.asked[asked:] for text in texts)


def test_segments_answer_from_what_lies_beside_them(home: Home) -> None:
    """After compaction and indexing the answer is the one from before, and no text is embedded for it."""
    home.say("I bought a red car yesterday.", "The cat sleeps on the sofa.")
    before = list(home.near("red car").ranked("CPEX"))
    home.compact()
    done = home.index()
    assert (done.segments, done.more, done.failed) == (1, False, None)
    asked = len(home.embedder.asked)
    home.world.spaces.forget("home")
    after = list(home.near("red car").ranked("CPEX"))
    assert home.embedder.asked[asked:] == []
    assert {e for e, _ in after} == {e for e, _ in before}
    assert dict(after) == pytest.approx(dict(before), abs=1e-6)
    assert home.near("red car").degraded is None


def test_without_its_vectors_a_segment_is_said_to_be_missing(home: Home) -> None:
    """Compacted and not indexed yet: nothing is compared, and the answer says so instead of seeming empty."""
    home.say("I bought a red car yesterday.")
    home.compact()
    dense = home.near("car")
    assert dense.degraded == "not_indexed"
    assert (list(dense.ranked("E")), dense.coverage.index_seq) == ([], 0)
    home.index()
    assert home.near("car").degraded is None


def test_a_change_hides_what_the_segments_say(home: Home) -> None:
    """An element that a newer commit changed counts once, with the newer vector."""
    home.say("I bought a red car yesterday.")
    home.compact()
    home.index()
    home.say("I live in Oslo.")
    dense = home.near("Alice")
    found = [element for element, _ in dense.ranked("C")]
    assert len(found) == len(set(found))
    assert dense.degraded is None


def test_an_embedder_that_is_not_local_waits_for_the_worker() -> None:
    """What nobody embedded yet is said to be lagging, up to which commit is said, and the worker catches up."""
    home = Home(HashEmbedder(local=False))
    home.say("I bought a red car yesterday.")
    assert home.near("car").degraded == "lagging"
    assert home.near("car").coverage.index_seq == 0
    done = home.index()
    assert done.packed > 0
    seq = home.state().seq
    assert home.near("car").degraded is None
    home.say("The cat sleeps on the sofa.")
    dense = home.near("cat")
    assert (dense.degraded, dense.coverage.index_seq) == ("lagging", seq)
    assert dense.coverage.missing > 0
    assert "red car" in home.said(home.first("car"))
    home.index()
    assert home.near("cat").degraded is None
    assert "cat" in home.said(home.first("cat"))


def test_compaction_takes_vectors_over(home: Home) -> None:
    """What has a vector is not embedded again: not from rows, and not from the segments before."""
    home = Home(HashEmbedder(local=False))
    home.say("I bought a red car yesterday.")
    home.index()
    home.compact()
    asked = len(home.embedder.asked)
    home.index()
    assert home.embedder.asked[asked:] == []
    assert [sk for sk in home.rows() if sk.count("#") > 1] == []
    home.say("The cat sleeps on the sofa.")
    home.compact()
    home.index()
    assert not any("red car" in text for texts in home.embedder.asked[asked:] for text in texts)
    assert home.near("cat").degraded is None


def test_another_model_is_another_index(home: Home) -> None:
    """Another model's vectors are never compared: not indexed until the worker built them; then the old ones go."""
    home.say("I bought a red car yesterday.")
    home.compact()
    home.index()
    other = Home(HashEmbedder("hash:2", dimension=32), home.world)
    head = home.world.spaces.head("home")
    assert other.near("car").degraded == "not_indexed"
    assert (home.building.lags("home", head), other.building.lags("home", head)) == (False, True)
    home.world.clock.advance(2 * DAY)
    other.index()
    assert not other.building.lags("home", head)
    assert "red car" in other.said(other.first("car"))
    assert len(other.sidecars()) == 1
    assert home.near("car").degraded in {None, "not_indexed"}  # None only from what this process holds


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (EmbedderUnavailable("slow"), "embedder_unavailable"),
        (EmbedderRefused("no key"), "embedder_refused"),
        (EmbedderGarbled("html"), "embedder_garbled"),
    ],
)
def test_an_embedder_that_is_down_is_said_to_be(home: Home, fault: Exception, reason: str) -> None:
    """A question finds nothing and says why; an index run says why and writes no vectors; both recover."""
    home.say("I bought a red car yesterday.")
    home.embedder.fault = fault  # type: ignore[assignment]
    dense = home.near("car")
    assert (dense.degraded, list(dense.ranked("E"))) == (reason, [])
    home.compact()
    assert home.index().failed == reason
    assert home.sidecars() == []
    assert home.building.status("home").failed == reason
    home.embedder.fault = None
    assert home.index().failed is None
    assert home.near("car").degraded is None
    assert home.building.status("home").complete


@pytest.mark.parametrize(
    "spoil",
    [
        lambda rows: [row[:-1] for row in rows],
        lambda rows: rows[:-1],
        lambda rows: [*rows, rows[0]],
        lambda rows: [[float("nan"), *row[1:]] for row in rows],
        lambda rows: [[float("inf"), *row[1:]] for row in rows],
        lambda rows: [["x", *row[1:]] for row in rows],
        lambda rows: [row[: 1 + place % 2] for place, row in enumerate(rows)],
        lambda _: None,
        lambda _: "vectors",
    ],
    ids=["dimension", "fewer", "more", "nan", "infinite", "text", "ragged", "none", "string"],
)
def test_what_is_no_answer_never_enters_the_index(home: Home, spoil: Any) -> None:
    """Wrong counts, wrong dimensions and what is no number are refused before anything is stored or compared."""
    home.say("I bought a red car yesterday.", "And a cat.")
    home.compact()
    home.embedder.spoil = spoil
    assert home.near("car").degraded == "embedder_garbled"
    assert home.index().failed == "embedder_garbled"
    assert home.sidecars() == []


def test_no_embedder_is_said_and_costs_nothing(home: Home) -> None:
    """Without an embedder, or without numpy, the answer is empty and says which; nothing is built."""
    home.say("I bought a red car yesterday.")
    spaces = home.world.spaces
    none = Vectors(spaces, None, lambda: np)
    bare = Vectors(spaces, HashEmbedder(), lambda: None)
    assert none.nearest(home.state(), "car", deadline=LATER).degraded == "no_embedder"
    assert bare.nearest(home.state(), "car", deadline=LATER).degraded == "no_arrays"
    building = VectorUpkeep(spaces, home.upkeep, none, home.world.entropy)
    assert not building.index("home", deadline=LATER).segments
    assert building.status("home").model is None


def test_nobody_reads_vectors_who_does_not_ask(home: Home) -> None:
    """A cold lookup by words reads no object of vectors; the first dense question reads one a segment."""
    home.say("I bought a red car yesterday.")
    home.compact()
    home.index()
    home.world.spaces.forget("home")
    meter = home.world.objects
    meter.read.clear()  # type: ignore[attr-defined]
    home.world.ask("What did Alice buy?")
    assert not [key for key in meter.read if vector_segment(key)]  # type: ignore[attr-defined]
    home.near("car")
    assert [key for key in meter.read if vector_segment(key)] == home.sidecars()  # type: ignore[attr-defined]


def test_garbage_collection_keeps_vectors_as_long_as_their_segment(home: Home) -> None:
    """Vectors go with their segment and not before; those of nothing go too."""
    home.say("I bought a red car yesterday.")
    home.compact()
    home.index()
    kept = home.sidecars()
    stray = vector_key("home/seg/0123-gone", "hash:1")
    home.world.objects.put(stray, b"x")
    home.world.clock.advance(2 * HOUR)
    assert home.upkeep.collect_garbage("home").removed == (stray,)
    assert home.sidecars() == kept
    home.say("The cat sleeps on the sofa.")
    home.compact()
    home.index()
    home.world.clock.advance(40 * DAY)
    home.upkeep.trim_history("home", keep_ms=DAY)
    home.upkeep.collect_garbage("home")
    assert len(home.sidecars()) == 1
    assert home.sidecars() != kept
    assert home.near("red car").degraded is None


def everything(home: Home) -> Iterator[bytes]:
    """Every byte the space has left, in rows and objects."""
    for key, _, _ in home.world.objects.list("home/"):
        yield home.world.objects.get(key) or b""
    for sk, row in home.world.table.query(space_pk("home"), "!", "~", limit=1000):
        if not sk.startswith("P#"):
            yield from (value for value in row.values() if isinstance(value, bytes))


@pytest.mark.parametrize("local", [True, False])
def test_erasure_takes_the_vectors_along(local: bool) -> None:
    """Neither the numbers of what was erased nor its id stand anywhere after; what stays is found again."""
    home = Home(HashEmbedder(local=local))
    home.say("I bought a red car yesterday.", "The cat sleeps on the sofa.")
    home.index()
    home.compact()
    home.index()
    home.say("The dog barks.")
    home.index()
    element = home.first("red car")
    dense = home.near("red car")
    assert element in dense.of([element])
    base = stack_of(home.state()).base
    assert base is not None
    sidecar = Search(
        home.world.spaces, home.vectors.embedding, home.state(), lambda _, m: m, LATER
    )._sidecars()  # type: ignore[arg-type]
    [(segment, found)] = sidecar[0]
    row = list(found.ordinals).index(segment.ordinal(element))
    numbers = found.rows[row].tobytes()
    assert any(numbers in body for body in everything(home))
    receipt = home.erasures.erase("home", [element], "alice", owner="me")
    assert receipt.clean
    assert not any(numbers in body or element.encode() in body for body in everything(home))
    assert element not in home.near("red car").of([element])
    assert home.building.lags("home", home.world.spaces.head("home"))
    home.index()
    assert home.near("cat").degraded is None
    assert "cat" in home.said(home.first("cat"))


def test_erasing_a_name_takes_along_what_is_worded_by_it(home: Home) -> None:
    """A statement is worded by its ends' names: its vector goes with the name, though its segment may stay."""
    home.say("I live in Oslo.")
    home.compact()
    home.index()
    person = next(e for e, _ in home.near("Alice").ranked("C"))
    before = home.sidecars()
    home.erasures.erase("home", [person], "alice", owner="me")
    assert not set(before) & set(home.sidecars())


def test_deleting_a_space_leaves_no_vectors() -> None:
    """Rows and objects of vectors go with everything else."""
    home = Home(HashEmbedder(local=False))
    home.say("I bought a red car yesterday.")
    home.compact()
    home.index()
    home.say("The cat sleeps on the sofa.")
    home.index()
    assert home.sidecars()
    assert home.rows()
    assert home.erasures.delete_space("home", "alice", owner="me").clean
    assert home.sidecars() == []
    assert home.rows() == []


def test_an_erasure_in_between_takes_back_what_was_being_built(home: Home) -> None:
    """A builder that read before an erasure and writes after it leaves nothing."""
    home.say("I bought a red car yesterday.", "The cat sleeps on the sofa.")
    home.compact()
    element = home.first("x") if home.near("x").coverage.vectors else next(iter(home.state().ids("evidence")))
    inner = home.embedder.embed

    def embed(texts: Any, kind: Any, deadline: Any) -> Any:
        home.embedder.embed = inner  # type: ignore[method-assign]
        home.erasures.erase("home", [element], "alice", owner="me")
        return inner(texts, kind, deadline)

    home.embedder.embed = embed  # type: ignore[method-assign]
    home.index()
    assert home.sidecars() == []
    assert not any(element.encode() in body for body in everything(home))


def test_a_compaction_in_between_does_no_harm(home: Home) -> None:
    """What is built for a base that has moved on is garbage or taken over; the next run completes the new base."""
    home.say("I bought a red car yesterday.")
    home.compact()
    inner = home.embedder.embed

    def embed(texts: Any, kind: Any, deadline: Any) -> Any:
        home.embedder.embed = inner  # type: ignore[method-assign]
        home.say("The cat sleeps on the sofa.")
        home.compact()
        return inner(texts, kind, deadline)

    home.embedder.embed = embed  # type: ignore[method-assign]
    home.index()
    assert home.building.lags("home", home.world.spaces.head("home"))
    home.index()
    assert not home.building.lags("home", home.world.spaces.head("home"))
    assert home.near("red car").degraded is None


def test_the_past_is_searched_as_it_was(home: Home) -> None:
    """An older state is compared with its own vectors; where they are gone, that is said."""
    home.say("I bought a red car yesterday.")
    home.compact()
    home.index()
    then = home.state().ver
    home.say("The cat sleeps on the sofa.")
    home.compact()
    home.index()
    past = home.world.spaces.load_at("home", version=then)
    dense = home.near("cat", past)
    assert dense.degraded is None
    assert all("cat" not in home.said(element) for element, _ in dense.ranked("E"))
    old = next(
        key for key in home.sidecars() if vector_segment(key) in {s.ref.key for s in past.tail.below.segments}
    )
    home.world.objects.delete([old])
    home.world.spaces.pieces.forget("home/")
    assert home.near("cat", past).degraded == "not_indexed"
    assert home.near("cat").degraded is None


def test_what_was_embedded_before_the_time_was_up_is_kept() -> None:
    """A run without time for all stores a part; the next one embeds only what is left, and the parts go."""
    home = Home()
    home.say(*[f"Sentence number {n} about topic {n * 7}." for n in range(700)])
    home.compact()
    deadline = home.world.clock.now() + 1000
    inner = home.embedder.embed

    def embed(texts: Any, kind: Any, until: Any) -> Any:
        home.world.clock.advance(2000)
        return inner(texts, kind, until)

    home.embedder.embed = embed  # type: ignore[method-assign]
    first = home.building.index("home", deadline=deadline)
    assert first.more
    assert first.embedded == 512
    assert len(home.sidecars()) == 1
    assert home.near("topic").degraded == "not_indexed"
    second = home.index()
    assert not second.more
    assert first.embedded + second.embedded < 800
    assert len(home.sidecars()) == 1
    assert home.near("topic").degraded is None


def test_damaged_vectors_count_as_none_and_are_built_again(home: Home) -> None:
    """A damaged object is never believed: not compared, said to be missing, replaced by the next run."""
    home.say("I bought a red car yesterday.")
    home.compact()
    home.index()
    [key] = home.sidecars()
    body = bytearray(home.world.objects.get(key) or b"")
    body[5] ^= 0xFF
    home.world.objects.delete([key])
    home.world.objects.put(key, bytes(body))
    home.world.spaces.forget("home")
    assert home.near("car").degraded == "not_indexed"
    assert home.index().segments == 1
    assert home.near("red car").degraded is None


def test_a_large_memory_is_compared_by_signs_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the bound only signs are read of all, the nearest are compared exactly, and the answer says so."""
    home = Home(HashEmbedder(dimension=256))
    home.say(
        *[
            f"Sentence number {n} about thing {hashlib.md5(str(n).encode()).hexdigest()[:5]}."
            for n in range(300)
        ]
    )
    home.compact()
    home.index()
    exact = home.near("Sentence number 123 about thing")
    assert not exact.coverage.bounded
    monkeypatch.setattr("core.service.vector_search.EXACT_BYTES", 1000)
    monkeypatch.setattr("core.service.vector_search.NEAREST", 32)
    home.world.spaces.forget("home")
    rough = home.near("Sentence number 123 about thing")
    assert rough.coverage.bounded
    assert rough.degraded is None
    assert rough.coverage.vectors == exact.coverage.vectors
    top = [element for element, _ in exact.ranked("E", 5)]
    assert [element for element, _ in rough.ranked("E", 1)] == top[:1]
    assert rough.of(top[:1]) == pytest.approx(exact.of(top[:1]), abs=1e-5)
    assert len(list(rough.ranked("E"))) == 300
    monkeypatch.setattr("core.service.vector_search.SIGNS_BYTES", 1000)
    assert home.near("thing").degraded == "not_indexed"


def test_the_caretaker_embeds_and_finds_what_lags() -> None:
    """The tick finds a space whose vectors lag, by one row; tending it builds them."""
    home = Home(HashEmbedder(local=False))
    world = home.world
    caretaking = Caretaking(
        world.table,
        world.queue,
        world.entropy,
        spaces=world.spaces,
        upkeep=home.upkeep,
        erasures=home.erasures,
        vectors=home.building,
    )
    home.say("I bought a red car yesterday.")
    assert caretaking.round() == ["home"]
    tended = caretaking.tend("home", world.clock.now() + MINUTE)
    assert tended.indexed.packed > 0
    assert caretaking.round() == []
    assert home.near("car").degraded is None


def test_a_space_that_is_gone_cannot_be_indexed(home: Home) -> None:
    """The reason is the space's, not the index's."""
    with pytest.raises(NoemaError, match="there is no space"):
        home.building.index("nowhere", deadline=LATER)


def test_the_status_of_a_memory_tells_of_its_vectors() -> None:
    """Which model, whether it is complete, how far behind, and why it gave up; nothing where there is none."""
    home = Home(HashEmbedder(local=False))
    statuses = MemoryStatuses(home.world.table, home.world.spaces, lambda: home.building)
    home.say("I bought a red car yesterday.")
    behind = statuses.status("home").meaning
    assert behind is not None
    assert (behind.model, behind.complete, behind.behind) == ("hash:1", True, home.state().ver)
    home.index()
    assert statuses.status("home").meaning == MeaningStatus(model="hash:1", complete=True, behind=0)
    home.compact()
    home.embedder.fault = EmbedderUnavailable("slow")
    home.erasures.erase("home", [next(iter(home.state().ids("evidence")))], "alice", owner="me")
    home.index()
    found = statuses.status("home").meaning
    assert found is not None
    assert (found.complete, found.reason) == (False, "embedder_unavailable")
    assert MemoryStatuses(home.world.table, home.world.spaces).status("home").meaning is None
