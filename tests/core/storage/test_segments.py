"""Segments: a compacted state answers every lookup as the elements alone would, reading only what it returns."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given, settings

import core.storage.compaction as compaction
import core.storage.segment as segment
from core.model.elements import AnyElement
from core.model.log import Delta, SchemaEnvironment, SpaceMeta, Tier
from core.state.indexes import concept_key
from core.state.layer import Layer
from core.storage.blocks import Cache, Pieces
from core.storage.codec import Unreadable
from core.storage.compaction import Plan, assemble, fold, plan_compaction, rewrite
from core.storage.keyfilter import BLOCK, build_filter, candidates, place, unweave, weave
from core.storage.manifest import Manifest, decode_manifest, encode_manifest
from core.storage.memory import MemoryObjects
from core.storage.postings import fingerprint
from core.storage.segment import build_segment, plain_bytes
from core.storage.segments import SegmentsView
from tests.core.state.oracle import ORIGIN, SCRIPTS, Naive, assert_same, make
from tests.doubles import FailingObjects, FakeClock

SEED = b"a seed of some bytes"
META = SpaceMeta(
    space_id="s",
    instance="i",
    salt="aaaaa",
    owner="tester",
    created_at=1,
    tier=Tier(1, 1),
    schema=SchemaEnvironment(1, ()),
)


class Shelf:
    """Where a test keeps segments: an object store that counts, and small limits."""

    def __init__(self) -> None:
        self.objects = FailingObjects(MemoryObjects(FakeClock()))
        self.view: SegmentsView | None = None
        self.made = 0
        self.built = 0

    def fold(self, deltas: list[Delta]) -> SegmentsView:
        """The next view, over what the deltas leave."""
        plan = plan_compaction(self.view, fold(deltas), seed=SEED, read_filter=self.read_filter)
        return self.keep(plan)

    def read_filter(self) -> bytes:
        assert self.view is not None
        return self.objects.get(self.view.manifest.filter_key) or b""

    def keep(self, plan: Plan) -> SegmentsView:
        self.made += 1
        self.built = len(plan.built)
        refs = list(plan.manifest.segments)
        for index, built in plan.built.items():
            refs[index] = msgspec.structs.replace(built.ref, key=f"seg/{self.made}-{index}")
            self.objects.put(refs[index].key, built.body)
        self.objects.put(f"f/{self.made}", plan.woven)
        manifest = msgspec.structs.replace(plan.manifest, segments=tuple(refs), filter_key=f"f/{self.made}")
        manifest = decode_manifest(encode_manifest(manifest))
        self.view = SegmentsView(manifest, Pieces(self.objects, Cache(1 << 24)))
        return self.view


def delta_of(ver: int, puts: list[AnyElement], gone: list[str] | None = None) -> Delta:
    return Delta(
        ver, ver, ver - 1, f"tx-{ver}", ver, ORIGIN, "cognitive", tuple(puts), tuple(gone or ()), META
    )


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of five elements and blocks of a few, so that little data makes many of them."""
    monkeypatch.setattr(compaction, "MAX_ELEMENTS", 5)
    monkeypatch.setattr(segment, "BLOCK_BYTES", 400)


@settings(max_examples=60, deadline=None)
@given(script=SCRIPTS)
def test_segments_and_a_layer_are_a_dict(script: list) -> None:
    """After each commit is compacted or layered, every lookup gives what a plain dict of elements gives."""
    patch = pytest.MonkeyPatch()
    patch.setattr(compaction, "MAX_ELEMENTS", 5)
    patch.setattr(segment, "BLOCK_BYTES", 400)
    try:
        elements: dict[str, AnyElement] = {}
        shelf = Shelf()
        view: SegmentsView | Layer | None = None
        for ver, operations in enumerate(script, 1):
            last: dict[str, AnyElement | None] = {}
            for number, flavour, word in operations:
                one = make(number, flavour or 0, word)
                last[one.id] = None if flavour is None else one
            for found, one in last.items():
                if one is None:
                    elements.pop(found, None)
                else:
                    elements[found] = one
            delta = delta_of(ver, [o for o in last.values() if o], [f for f, o in last.items() if o is None])
            layer = Layer(shelf.view) if shelf.view is not None else None
            view = shelf.fold([delta])
            assert_same(view, Naive(elements))
            if layer is not None:
                for found, one in last.items():
                    layer.put(one) if one is not None else layer.drop(found)
                assert_same(layer, Naive(elements))
    finally:
        patch.undo()


def hundred(small: None) -> tuple[Shelf, list[AnyElement]]:
    shelf, elements = Shelf(), [make(number, 0, f"word{number}") for number in range(100)]
    shelf.fold([delta_of(1, elements)])
    return shelf, sorted(elements, key=lambda one: one.id[2:])


def test_segments_do_not_overlap(small: None) -> None:
    """Each segment covers its own range of ids, in order, and none is over its limit."""
    shelf, elements = hundred(small)

    refs = shelf.view.manifest.segments

    assert len(refs) == 20
    assert sum(ref.count for ref in refs) == len(elements)
    assert all(left.last < right.first for left, right in itertools.pairwise(refs))


def test_a_lookup_reads_what_it_returns(small: None) -> None:
    """An id is read from one segment, in two pieces; the second time from none."""
    shelf, elements = hundred(small)
    before = shelf.objects.gets

    assert shelf.view.get(elements[50].id) == elements[50]
    first = shelf.objects.gets - before
    assert shelf.view.get(elements[50].id) == elements[50]

    assert first == 2
    assert shelf.objects.gets - before == 2


def test_a_key_asks_few_segments(small: None) -> None:
    """The filter sends a key to the segment that has it, and rarely to another."""
    shelf, elements = hundred(small)
    asked = []
    for element in elements[::4]:
        key = concept_key(element.schema_ref, element.key) if hasattr(element, "key") else None
        if key is not None:
            found = fingerprint(SEED, "k", key)
            asked.append(len(shelf.view._may_have(found)))
            assert list(shelf.view.find(key)) == [element.id]

    assert sum(asked) / len(asked) < 1.5


def test_compaction_rewrites_only_what_was_touched(small: None) -> None:
    """One changed element makes one new segment; the others are kept as they are, by their keys."""
    shelf, _elements = hundred(small)
    before = {ref.key for ref in shelf.view.manifest.segments}

    shelf.fold([delta_of(2, [make(48, 1, "new")])])

    after = {ref.key for ref in shelf.view.manifest.segments}
    assert shelf.built == 1
    assert len(before & after) == 19
    assert list(shelf.view.word("new")) == [(make(48, 1).id, 1)]


def test_new_elements_are_appended(small: None) -> None:
    """What is newer than all segments fills up the last one and then new ones."""
    shelf, _elements = hundred(small)

    shelf.fold([delta_of(2, [make(number, 0) for number in range(100, 112)])])

    assert len(shelf.view.manifest.segments) == 23
    assert shelf.built == 4
    assert shelf.view.counts.concept == 28


def test_a_segment_that_loses_everything_is_gone(small: None) -> None:
    """No empty segments, and a space that lost everything has none."""
    shelf, elements = hundred(small)

    shelf.fold([delta_of(2, [], [element.id for element in elements])])

    assert shelf.view.manifest.segments == ()
    assert shelf.view.get(elements[0].id) is None
    assert list(shelf.view.ids("concept")) == []
    shelf.fold([delta_of(3, [make(500, 0)])])
    assert shelf.view.counts.concept == 1


def test_another_analyzer_rebuilds_everything(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index of one analyzer is never mixed with another's."""
    shelf, _ = hundred(small)
    monkeypatch.setattr(compaction, "ANALYZER", "another")

    shelf.fold([delta_of(2, [make(3, 1)])])

    assert shelf.built == 20
    assert shelf.view.manifest.analyzer == "another"


def test_the_same_elements_give_the_same_bytes() -> None:
    """Building is a function: nothing random, nothing of the process's own is in a segment."""
    elements = sorted((make(number, 1, "same") for number in range(30)), key=lambda one: one.id[2:])

    assert build_segment(elements, SEED).body == build_segment(list(elements), SEED).body
    assert build_segment(elements, SEED).body != build_segment(elements, b"another seed").body


def test_a_damaged_segment_is_refused() -> None:
    """Reading a whole segment checks its digest."""
    body = bytearray(build_segment([make(1, 1, "x")], SEED).body)
    list(plain_bytes(bytes(body)))
    body[30] ^= 1

    with pytest.raises(Unreadable):
        list(plain_bytes(bytes(body)))


@pytest.mark.parametrize("data", [b"", b"NSEG", b"NSEG\x01", b"no segment at all"])
def test_what_is_no_segment_is_refused(data: bytes) -> None:
    """Other bytes are not taken for a segment."""
    with pytest.raises(Unreadable):
        list(plain_bytes(data))


def test_rewriting_removes_bytes(small: None) -> None:
    """A rewritten segment holds nothing of a removed element, and the manifest over it is whole."""
    shelf, elements = hundred(small)
    victim = next(one for one in elements if one.id.startswith("E-"))
    old = shelf.view.segment_of(victim.id)
    index = list(shelf.view.segments).index(old)

    built = rewrite(old.elements(), lambda one: None if one.id == victim.id else one, SEED)
    woven = shelf.read_filter()
    parts = []
    for at, one in enumerate(shelf.view.segments):
        if at == index:
            shelf.objects.put("seg/new", built[0].body)
            parts.append((msgspec.structs.replace(built[0].ref, key="seg/new"), built[0].key_filter))
        else:
            parts.append((one.ref, unweave(woven, len(shelf.view.segments), at, one.ref.filter_blocks)))
    view = shelf.keep(assemble(shelf.view.manifest, parts))

    assert not any(victim.id[2:].encode() in plain for plain in plain_bytes(built[0].body))
    assert view.get(victim.id) is None
    left = {one.id: one for one in elements if one is not victim}
    oracle = Naive(left)
    assert list(view.ids("evidence")) == list(oracle.ids("evidence"))
    assert view.counts == oracle.counts


def test_the_filter_never_misses() -> None:
    """Every key of a segment is found by its filter, also after filters of different sizes were woven."""
    groups = [
        [fingerprint(SEED, "k", f"{group}/{n}") for n in range(10 ** (group % 4))] for group in range(7)
    ]
    filters = [build_filter(group, len(group)) for group in groups]
    blocks, woven = weave(filters)

    for group, prints in enumerate(groups):
        assert unweave(woven, 7, group, len(filters[group]) // BLOCK) == filters[group]
        for found in prints:
            at, length = place(found, blocks, 7)
            assert group in candidates(woven[at : at + length], found)


def test_the_filter_is_selective() -> None:
    """A key that a full filter does not have is mistaken for one it has in less than one case in twelve."""
    prints = [fingerprint(SEED, "k", str(number)) for number in range(4096)]
    blocks, woven = weave([build_filter(prints, len(prints))])
    wrong = 0
    for number in range(4096, 8192):
        found = fingerprint(SEED, "k", str(number))
        at, length = place(found, blocks, 1)
        wrong += len(candidates(woven[at : at + length], found))

    assert wrong / 4096 < 1 / 12


def test_a_manifest_stays_small() -> None:
    """A million elements in sixty segments take a manifest of some kilobytes."""
    ref = build_segment([make(0, 0)], SEED).ref
    refs = tuple(
        msgspec.structs.replace(ref, key=f"space/seg/{n:024d}-0123456789abcdef-{n}") for n in range(62)
    )
    manifest = Manifest(
        ver=1,
        seq=1,
        at=1,
        meta=META,
        seed=SEED,
        analyzer="a",
        segments=refs,
        filter_key="f",
        filter_blocks=4096,
    )

    assert len(encode_manifest(manifest)) < 12_000
    assert decode_manifest(encode_manifest(manifest)) == manifest


def test_answers_are_sequences(small: None) -> None:
    """What a lookup gives can be counted, indexed from both ends, cut and turned around, like any sequence."""
    shelf, elements = hundred(small)
    concepts = [one.id for one in elements if one.id.startswith("C-")]
    found = shelf.view.find("!concept")
    shelf.fold([delta_of(2, [make(number, 0, "salt") for number in range(100)])])
    said = shelf.view.word("salt")
    pairs = list(said)

    assert list(found) == concepts
    assert (found[0], found[-1], found[3:6]) == (concepts[0], concepts[-1], concepts[3:6])
    assert (said[0], said[-1], list(said[3:6])) == (pairs[0], pairs[-1], pairs[3:6])
    assert len(said) == len(pairs)
    for sequence in (found, said):
        with pytest.raises(IndexError):
            sequence[len(sequence)]
        with pytest.raises(IndexError):
            sequence[-len(sequence) - 1]


def test_a_word_in_every_segment_takes_few_reads(small: None) -> None:
    """The pieces of twenty segments are read together: indexes, then postings."""
    shelf, _ = hundred(small)
    shelf.fold([delta_of(2, [make(number, 0, "salt") for number in range(100)])])
    before = shelf.objects.gets

    found = shelf.view.word("salt")
    lengths = [shelf.view.text_length(one) for one, _ in found]

    assert len(found) > 40
    assert all(lengths)
    assert shelf.objects.gets - before == 3  # the filter, the indexes, the postings with the lengths


def test_an_element_is_decoded_once_and_forgotten_with_its_segment() -> None:
    """A second look gives the very same value; what an erasure makes a process forget is read from the store again."""
    shelf = Shelf()
    one = make(1, 0, "tea")
    view = shelf.fold([delta_of(1, [one])])
    pieces = Pieces(shelf.objects, Cache(1 << 24))
    view = SegmentsView(view.manifest, pieces)
    first = view.get(one.id)

    assert first == one
    assert view.get(one.id) is first
    assert view.get("C-00000009000aaaaa") is None
    pieces.forget("seg/")
    assert view.get(one.id) is not first
