"""Probes: whether a space has anything on some words, and the misses that are kept.

What lives here: the search, and the negative cache. What must never live here: a model, or any conclusion that what is
not found is false.

A miss is kept with the version of the log that was searched, and stands only while HEAD is at that version: every
commit clears the cache, be it a conversation formed, maintenance, forgetting, a change of trust or of who may see
what. So a search that began before a commit can never be taken for one after it, and there is nothing to clear. The
misses live in the process, and each is its caller's own, for others may see more: a probe costs no row, leaves no words of a query behind for an erasure to find, and a
guest of a public space cannot make it grow.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Final

from core.agents.dialogue import check_query, text_of
from core.agents.maintenance.decay import SLEEP_TASK
from core.agents.offline.lines import hidden_ids
from core.agents.offline.quotation import best_passage
from core.agents.recall.sight import seen_by
from core.agents.vocabulary import local_name
from core.governance import admit
from core.model.elements import AnyElement, Concept, Evidence, Proposition
from core.model.ids import kind_of
from core.model.instants import Instant, format_instant
from core.model.literals import Literal
from core.ports import Clock
from core.protocol import http_types as wire
from core.search.bm25 import basis_of, score
from core.search.text import words
from core.service.faults import reading
from core.service.readers import PrincipalOf, reader_of
from core.service.reading_counts import count
from core.service.spaces import Spaces
from core.service.values import Caller
from core.state.indexes import type_key
from core.state.view import View
from core.storage.head import Head

MAX_PROBE: Final = 100
KEEP_MS: Final = 3600 * 1000
MAX_MISSES: Final = 1024  # of one space; when it is full only what is over makes room
MAX_CHARS: Final = 512  # a longer query is not kept
MAX_SPACES: Final = 256  # of one process; the one unused the longest goes

PLUMBING: Final = (
    SLEEP_TASK,
    *(f"kip://noema/fact-memory@1.0.0/{name}" for name in ("FactNamespace", "CheckpointSeries")),
)
"""Types of what the service keeps for itself; having it is no memory of anything."""

Stamp = tuple[str, int, int]  # the life of the space, its purge generation and its log version


class Misses:
    """Probes that found nothing, by space. Safe to share between threads."""

    def __init__(self) -> None:
        self._spaces: OrderedDict[str, tuple[Stamp, dict[str, Instant]]] = OrderedDict()
        self._lock = Lock()

    def has(self, space_id: str, stamp: Stamp, key: str, now: Instant) -> bool:
        """Whether a search of this very state has missed, lately enough."""
        with self._lock:
            kept = self._spaces.get(space_id)
            return kept is not None and kept[0] == stamp and kept[1].get(key, now - KEEP_MS) + KEEP_MS > now

    def add(self, space_id: str, stamp: Stamp, key: str, now: Instant) -> bool:
        """Keep a miss of a search of the state `stamp` names; False if there is no room, or a newer state is known."""
        with self._lock:
            before, kept = self._spaces.get(space_id, (stamp, {}))
            if before != stamp:
                if before[0] == stamp[0] and before[1:] > stamp[1:]:
                    return False
                kept = {}
            if len(kept) >= MAX_MISSES:
                kept = {name: at for name, at in kept.items() if at + KEEP_MS > now}
            room = len(kept) < MAX_MISSES
            if room:
                kept[key] = now
            self._spaces[space_id] = (stamp, kept)
            self._spaces.move_to_end(space_id)
            while len(self._spaces) > MAX_SPACES:
                self._spaces.popitem(last=False)
            return room


def fold_query(query: str) -> str:
    """One spelling for queries that differ in case and blanks only."""
    return " ".join(query.lower().split())


class Probes:
    """Looks without answering. Safe to share between threads."""

    def __init__(self, clock: Clock, spaces: Spaces, *, principal_of: PrincipalOf = reader_of) -> None:
        self._clock = clock
        self._spaces = spaces
        self._principal_of = principal_of
        self._misses = Misses()

    def probe(self, space_id: str, body: wire.ProbeInput, caller: Caller | None = None) -> wire.ProbeOutput:
        """Whether anything visible has a word of the query, without answering.

        Nothing is cut off while searching, so a miss is exhaustive. `search_exhaustive` is false where there are more
        hits than the limit shows. `negative_cached`: an equal search of the same state missed within the last hour.

        Raises:
            NoemaError: `InvalidInput`, `PayloadTooLarge`, `NotFoundOrNotVisible`, `ServiceUnavailable`.
        """
        query, now = check_query(body.query), self._clock.now()
        asking = ("" if caller is None else caller.subject) + "\x1f"
        head = self._spaces.head(space_id)
        key = fold_query(query)
        if head.state == "active" and self._misses.has(space_id, _stamp(head), asking + key, now):
            self._count(space_id, head, caller, "cached")
            return wire.ProbeOutput(found=False, negative_cached=True, search_exhaustive=True)
        with reading():
            head, state = self._spaces.read_current(space_id)
        view: View = state
        if caller is not None:
            view = seen_by(state, admit(self._principal_of(caller), state.meta, state, now))
        mine = frozenset({state.meta.self_identity} if state.meta.self_identity else ())
        output = _search(view, query, max(1, min(MAX_PROBE, body.limit)), mine)
        if not output.found and len(key) <= MAX_CHARS:
            self._misses.add(space_id, _stamp(head), asking + key, now)
        self._count(space_id, head, caller, "hits" if output.found else "misses")
        return output

    def _count(self, space_id: str, head: Head, caller: Caller | None, name: str) -> None:
        if caller is not None and caller.kind != "anonymous":  # a guest's reading costs the owner no row
            count(self._spaces.table, space_id, head.instance, self._clock.now(), {name: 1})


def _stamp(head: Head) -> Stamp:
    return head.instance, head.pgen, head.ver


def _search(view: View, query: str, limit: int, hidden: frozenset[str]) -> wire.ProbeOutput:
    terms = words(query)
    hidden |= hidden_ids(view).union(*(view.find(type_key(each)) for each in PLUMBING))
    found = score(view, terms, basis_of(view), letters="CEP", admits=lambda element, _: element not in hidden)
    hits = [element for element, _ in found.ranked("CEP", {})]
    shown = (view.get(element) for element in hits[:limit])
    return wire.ProbeOutput(
        found=bool(hits),
        negative_cached=False,
        search_exhaustive=len(hits) <= limit,
        hits=tuple(_hit(element, terms) for element in shown if element is not None),
    )


def _hit(element: AnyElement, terms: list[str]) -> wire.Memory:
    """A probe's hit in the citation's shape."""
    text, kind = "", kind_of(element.id)
    source = None
    at = element.system.created_at
    if isinstance(element, Evidence):
        text, kind_name = best_passage(text_of(element.payload.inline), tuple(terms)), element.evidence_class
        at = element.observed_at or at
        source = next(iter(element.source), None)
    elif isinstance(element, Concept):
        text, kind_name = (
            element.name or str(element.attributes.get("summary", "")),
            local_name(element.schema_ref),
        )
    elif isinstance(element, Proposition) and isinstance(element.object, Literal):
        text, kind_name = str(element.object.value), local_name(element.predicate_ref)
    else:
        kind_name = kind
    return wire.Memory(
        entity=element.id, type=kind_name, name=text or None, source=source, created_at=format_instant(at)
    )
