"""Compaction: a manifest and the commits since, folded into the next manifest. Pure; reads through a View.

What lives here: what the new segments are. What must never live here: the lease, the upload and the move of the
base (`core.service.upkeep`). Only segments whose range a changed element falls into are built again; elements
newer than all segments fill up the last one and then new ones.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from core.model.elements import AnyElement
from core.model.ids import sort_key
from core.model.log import Delta, SpaceMeta
from core.search.text import ANALYZER
from core.storage.keyfilter import unweave, weave
from core.storage.manifest import Manifest
from core.storage.segment import (
    MAX_ELEMENTS,
    MAX_RECORD_BYTES,
    Built,
    SegmentRef,
    build_segment,
    encode_element,
)
from core.storage.segments import SegmentsView

Change = Callable[[AnyElement], AnyElement | None]


class Folded(msgspec.Struct, frozen=True):
    """What some commits leave of each element they touched (None: gone), and where they end."""

    elements: dict[str, AnyElement | None]
    meta: SpaceMeta | None  # the newest protected state among them
    last: Delta


class Plan(msgspec.Struct, frozen=True):
    """The next manifest in the making: kept segments and new ones, in order.

    `manifest` has every field but the keys of what is not stored yet; `built` maps the places of new segments
    in `manifest.segments` to their bytes; `woven` is the filter object.
    """

    manifest: Manifest
    built: dict[int, Built]
    woven: bytes


def fold(deltas: Iterable[Delta]) -> Folded:
    """The last word of each element over some commits, at least one."""
    elements: dict[str, AnyElement | None] = {}
    meta, last = None, None
    for delta in deltas:
        last, meta = delta, delta.meta or meta
        elements.update((element.id, element) for element in delta.puts)
        elements.update(dict.fromkeys(delta.gone))
    if last is None:
        raise ValueError("nothing to fold")
    return Folded(elements, meta, last)


def plan_compaction(
    base: SegmentsView | None, folded: Folded, *, seed: bytes, read_filter: Callable[[], bytes]
) -> Plan:
    """The manifest after some commits.

    Args:
        base: the manifest they follow; None for a space that has none yet.
        folded: the commits, folded; the last one carries the protected state or leaves it to the base.
        seed: keys the fingerprints where there is no base yet.
        read_filter: reads the base's woven filters, for the segments that are kept.
    """
    meta = folded.meta or (None if base is None else base.manifest.meta)
    assert meta is not None
    manifest = Manifest(
        ver=folded.last.ver,
        seq=folded.last.seq,
        at=folded.last.at,
        meta=meta,
        seed=seed if base is None else base.manifest.seed,
        analyzer=ANALYZER,
        segments=(),
        filter_key="",
        filter_blocks=1,
    )
    return _rebuilt(base, manifest, _by_segment(base, folded.elements), read_filter)


def rewrite(elements: Iterator[AnyElement], change: Change, seed: bytes) -> list[Built]:
    """The segments of one segment's elements after `change` (None removes one); none if nothing is left."""
    kept = (now for element in elements if (now := change(element)) is not None)
    return [build_segment(portion, seed) for portion in _portions(kept)]


def assemble(manifest: Manifest, parts: Sequence[tuple[SegmentRef, bytes]]) -> Plan:
    """A manifest over other segments, all stored already, each with its key filter."""
    blocks, woven = weave([key_filter for _, key_filter in parts])
    refs = tuple(ref for ref, _ in parts)
    return Plan(msgspec.structs.replace(manifest, segments=refs, filter_blocks=blocks), {}, woven)


def _by_segment(
    base: SegmentsView | None, elements: dict[str, AnyElement | None]
) -> dict[int, dict[str, AnyElement | None]]:
    """Changed elements by the place of the segment they belong to; what is newer than all to the last one."""
    if base is None or not base.segments:
        return {-1: elements}
    out: dict[int, dict[str, AnyElement | None]] = {}
    if base.manifest.analyzer != ANALYZER:  # an index of another analyzer is rebuilt, never mixed
        out = {index: {} for index in range(len(base.segments))}
    firsts = [segment.ref.first for segment in base.segments]
    for found, element in elements.items():
        index = max(0, bisect_right(firsts, sort_key(found)) - 1)
        out.setdefault(index, {})[found] = element
    return out


def _rebuilt(
    base: SegmentsView | None,
    manifest: Manifest,
    changed: dict[int, dict[str, AnyElement | None]],
    read_filter: Callable[[], bytes],
) -> Plan:
    refs, filters, built = [], [], {}
    old = [] if base is None else list(base.segments)
    kept = any(index not in changed for index in range(len(old)))
    woven = read_filter() if kept else b""
    for index in range(len(old)) if old else (-1,):
        if index not in changed:
            ref = old[index].ref
            refs.append(ref)
            filters.append(unweave(woven, len(old), index, ref.filter_blocks))
            continue
        standing = old[index].elements() if old else iter(())
        for elements in _portions(_merged(standing, changed[index])):
            one = build_segment(elements, manifest.seed)
            built[len(refs)] = one
            refs.append(one.ref)
            filters.append(one.key_filter)
    blocks, body = weave(filters)
    done = msgspec.structs.replace(manifest, segments=tuple(refs), filter_blocks=blocks, filter_key="")
    return Plan(done, built, body)


def _merged(standing: Iterator[AnyElement], changed: dict[str, AnyElement | None]) -> Iterator[AnyElement]:
    """A segment's elements with the changed ones in their places."""
    fresh = dict(changed)
    merged: dict[str, AnyElement | None] = {}
    for element in standing:
        merged[element.id] = fresh.pop(element.id, element)
    merged |= fresh
    for found in sorted(merged, key=sort_key):
        now = merged[found]
        if now is not None:
            yield now


def _portions(elements: Iterator[AnyElement]) -> Iterator[list[AnyElement]]:
    """Elements cut into what one segment may hold."""
    portion: list[AnyElement] = []
    size = 0
    for element in elements:
        length = len(encode_element(element))
        if portion and (len(portion) >= MAX_ELEMENTS or size + length > MAX_RECORD_BYTES):
            yield portion
            portion, size = [], 0
        portion.append(element)
        size += length
    if portion:
        yield portion
