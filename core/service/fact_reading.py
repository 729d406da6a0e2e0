"""Namespaces of facts in memory: loaded once, brought up to date by the commits since, dropped when erased.

What lives here: the cache, and when what it holds still fits the log. What must never live here: ranking
(`core.facts`). A namespace is used under its lock, so that what a recall reads is one moment of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, RLock
from typing import Final

from core.errors import NoemaError
from core.facts import records
from core.facts.corpus import Arrays
from core.facts.namespace import Namespace
from core.facts.tokens import TokenizerName
from core.ports import Clock
from core.service.callers import check_held, is_whole, not_held, standing, view_for
from core.service.faults import reading
from core.service.spaces import Spaces
from core.service.values import Caller
from core.state.space import SpaceState
from core.state.view import View
from core.storage.reader import Moved

KEPT_FACTS: Final = 300_000  # in all namespaces that stay in memory
_MAX_GAP: Final = 400  # commits; farther behind, loading anew costs less
_TRIES: Final = 5


class _Held:
    """A namespace in memory, and where on which log it stands. pgen -1: nothing that may be used."""

    __slots__ = ("instance", "lock", "namespace", "pgen", "ver")

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self.instance = ""
        self.pgen = -1
        self.ver = -1
        self.lock = RLock()


class Namespaces:
    """The namespaces of all spaces. Safe to share between threads."""

    def __init__(
        self,
        spaces: Spaces,
        tokenizer: TokenizerName,
        *,
        arrays: Arrays | None = None,
        kept: int = KEPT_FACTS,
    ) -> None:
        self._arrays = arrays
        self._spaces = spaces
        self.tokenizer: TokenizerName = tokenizer
        self._kept = kept
        self._held: OrderedDict[tuple[str, str], _Held] = OrderedDict()
        self._lock = Lock()

    @contextmanager
    def current(self, space_id: str, agent_id: str) -> Iterator[tuple[SpaceState, Namespace]]:
        """The space's state now and the namespace at exactly that version, locked while the block runs.

        Raises:
            NoemaError: `NotFoundOrNotVisible`, `ServiceUnavailable`.
        """
        held = self._find(space_id, agent_id)
        with held.lock:
            with reading():
                state = self._bring_up(held, space_id, agent_id)
            self._trim()
            held.namespace.view = state
            yield state, held.namespace

    def view(self, space_id: str) -> View:
        """What may be read of the space now: all of it.

        Raises:
            NoemaError: as `state`.
        """
        return self.state(space_id)

    def check_whole(self, space_id: str, permission: str) -> None:
        """Refuse who may not see everything and do this: nobody here."""

    def is_whole(self, space_id: str) -> bool:  # noqa: ARG002 - as `SeenNamespaces`
        """Whether nothing is withheld."""
        return True

    def seen_by(self, caller: Caller, clock: Clock) -> SeenNamespaces:
        """The same namespaces as a caller may see them."""
        return SeenNamespaces(self, caller, clock)

    def state(self, space_id: str) -> SpaceState:
        """The space's state now.

        Raises:
            NoemaError: `NotFoundOrNotVisible`, `ServiceUnavailable`.
        """
        return self._spaces.load(space_id)

    def _find(self, space_id: str, agent_id: str) -> _Held:
        key = (space_id, agent_id)
        with self._lock:
            held = self._held.get(key)
            if held is None:
                held = self._held[key] = _Held(Namespace(agent_id, self.tokenizer, None, self._arrays))
            self._held.move_to_end(key)
            return held

    def _bring_up(self, held: _Held, space_id: str, agent_id: str) -> SpaceState:
        for _ in range(_TRIES):
            head, state = self._spaces.read_current(space_id)
            same = (held.instance, held.pgen) == (head.instance, head.pgen)
            if same and held.ver > state.ver:
                continue  # another thread has seen a later version; look again
            known = held.namespace.concept is not None
            if (
                not same
                or not (known or held.ver == state.ver)
                or state.ver - held.ver > _MAX_GAP
                or (held.ver < state.ver and not self._catch_up(held, space_id, state.ver))
            ):
                self._load(held, state, agent_id)
            held.instance, held.pgen, held.ver = head.instance, head.pgen, state.ver
            return state
        raise NoemaError("ServiceUnavailable", "the space is changing too quickly", retry_after_ms=100)

    def _load(self, held: _Held, state: SpaceState, agent_id: str) -> None:
        concept = records.find(state, records.NAMESPACE, agent_id)
        fresh = Namespace(agent_id, self.tokenizer, None if concept is None else concept.id, self._arrays)
        if concept is not None:
            fresh.fill(records.members(state, concept.id))
        held.namespace = fresh

    def _catch_up(self, held: _Held, space_id: str, target: int) -> bool:
        """Take in the commits up to `target`; False if it must be loaded anew."""
        namespace = held.namespace
        try:
            deltas = list(self._spaces.reader(space_id).deltas(held.ver + 1, target))
        except Moved:
            return False
        for delta in deltas:
            if any(element.id == namespace.concept for element in delta.puts):
                return False
            namespace.update(delta.puts)
            for element_id in delta.gone:
                namespace.drop(element_id)
        return True

    def _trim(self) -> None:
        """Let go of the namespaces used longest ago, when too many facts are in memory."""
        with self._lock:
            total = sum(len(held.namespace.facts) + 1 for held in self._held.values())
            while total > self._kept and len(self._held) > 1:
                _, dropped = self._held.popitem(last=False)
                total -= len(dropped.namespace.facts) + 1


class SeenNamespaces(Namespaces):
    """Namespaces as one caller may see them: in a governed space, made anew of what exists for that caller.

    That costs a walk over the namespace's facts for each question. Who sees everything, and everybody in a space
    without records, gets what is in memory.
    """

    def __init__(self, whole: Namespaces, caller: Caller, clock: Clock) -> None:
        self._whole = whole
        self._caller = caller
        self._clock = clock
        self.tokenizer = whole.tokenizer

    @contextmanager
    def current(self, space_id: str, agent_id: str) -> Iterator[tuple[SpaceState, Namespace]]:
        """As `Namespaces.current`; the namespace holds what the caller may see, and its `view` is that."""
        with self._whole.current(space_id, agent_id) as (state, namespace):
            view = view_for(self._caller, state, self._clock.now())
            if view is state:
                yield state, namespace
                return
        concept = records.find(view, records.NAMESPACE, agent_id)
        seen = Namespace(agent_id, self.tokenizer, None if concept is None else concept.id)
        seen.view = view
        if concept is not None:
            seen.fill(records.members(view, concept.id))
        yield state, seen

    def state(self, space_id: str) -> SpaceState:
        """As `Namespaces.state`: for protected state alone."""
        return self._whole.state(space_id)

    def view(self, space_id: str) -> View:
        """What the caller may read of the space now."""
        return view_for(self._caller, self.state(space_id), self._clock.now())

    def is_whole(self, space_id: str) -> bool:
        """Whether nothing is withheld from the caller."""
        return is_whole(standing(self._caller, self.state(space_id), self._clock.now()))

    def check_whole(self, space_id: str, permission: str) -> None:
        """Refuse a deed on everything to who may not see everything, or holds no permission for it.

        Raises:
            NoemaError: NotAuthorized.
        """
        who = standing(self._caller, self.state(space_id), self._clock.now())
        check_held(who, permission)
        if not is_whole(who):
            raise not_held("read", "search")
