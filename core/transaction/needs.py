"""What an execution lacks, said as a value: the engine never fetches (KIP §32; the engine is pure).

What lives here: the kinds of things a request may need besides the current state, `Given` which holds what was
handed in, and the signal that something is missing. The driver answers a `Need` and executes again; the same
request then gets further. What must never live here: any loading.
"""

from __future__ import annotations

from typing import Any

import msgspec

from core.errors import NoemaError
from core.model.checkpoints import ChainReading
from core.model.proofs import Signature, Verdict
from core.query import Coordinate
from core.search.dense import Dense
from core.state.indexes import state_key
from core.state.layer import Layer
from core.state.space import SpaceState
from core.state.view import View


class Deltas(msgspec.Struct, frozen=True):
    """The commits after log version `after`, oldest first, at most `limit`. Answered with `list[Delta]`."""

    after: int
    limit: int


class RetainedOutcome(msgspec.Struct, frozen=True):
    """What an idempotency key of the caller stands for. Answered with the retained JSON outcome or None."""

    scope: str
    key: str


class RetainedParts(msgspec.Struct, frozen=True):
    """What a key of the caller stands for where its request was several transactions.

    Answered with `{place: outcome}`, each as a `RetainedOutcome`'s; those that are not kept are not there.
    """

    scope: str
    key: str


class Directory(msgspec.Struct, frozen=True):
    """Which spaces there are, for a caller who may know. Answered with at most `limit` ids in order after one."""

    after: str
    limit: int


class Artifact(msgspec.Struct, frozen=True):
    """The bytes of a staged artifact by its opaque handle (KIP §85). Answered with `bytes`."""

    handle: str


class Signed(msgspec.Struct, frozen=True):
    """A signature of the deployment over bytes. Answered with `Signature`."""

    payload: bytes


class Checked(msgspec.Struct, frozen=True):
    """Whether a key's holder signed bytes. Answered with `Verdict`."""

    key_id: str
    payload: bytes
    value: bytes


class Chain(msgspec.Struct, frozen=True):
    """The hash chain through the log from one version to another, recomputed. Answered with `ChainReading`."""

    first: int
    last: int


class Nearest(msgspec.Struct, frozen=True):
    """How near the elements of the committed state at a `space_seq` lie to a text. Answered with `Dense`."""

    text: str
    seq: int


Need = (
    Nearest
    | Coordinate
    | Deltas
    | RetainedOutcome
    | RetainedParts
    | Directory
    | Artifact
    | Signed
    | Checked
    | Chain
)
"""A `Coordinate` asks for the `SpaceState` at that point of the log."""


class Missing(Exception):  # noqa: N818 - a signal to the driver, not a failure
    """Raised inside an execution that needs something it was not given; `core.engine` turns it into an Outcome."""

    def __init__(self, need: Need) -> None:
        self.need = need
        super().__init__(f"needs {need}")


class Given:
    """What a driver has handed in so far. A value that is a `NoemaError` is the answer "that cannot be had"."""

    def __init__(self, values: dict[Need, Any] | None = None) -> None:
        self._values = dict(values or {})

    def plus(self, need: Need, value: Any) -> Given:  # the value's type depends on the need
        """These answers and one more."""
        return Given({**self._values, need: value})

    def _get(self, need: Need) -> Any:  # the value's type depends on the need
        if need not in self._values:
            raise Missing(need)
        value = self._values[need]
        if isinstance(value, NoemaError):
            raise value
        return value

    def state_at(self, need: Coordinate) -> SpaceState:
        """The state at a point of the log. Raises `Missing`, or HistoricalSnapshotUnavailable and its like."""
        found = self._get(need)
        assert isinstance(found, SpaceState)
        return found

    def deltas(self, after: int, limit: int) -> list[Any]:
        """Commits after a version, as `core.model.log.Delta`. Raises `Missing`."""
        return list(self._get(Deltas(after, limit)))

    def retained(self, scope: str, key: str) -> Any:  # a JSON value
        """The outcome retained under an idempotency key, or None. Raises `Missing`."""
        return self._get(RetainedOutcome(scope, key))

    def retained_parts(self, scope: str, key: str) -> dict[int, Any]:  # JSON values
        """The outcomes retained for a request of several transactions, by their places. Raises `Missing`."""
        return dict(self._get(RetainedParts(scope, key)))

    def directory(self, after: str, limit: int) -> list[str]:
        """Ids of spaces. Raises `Missing`."""
        return list(self._get(Directory(after, limit)))

    def artifact(self, handle: str) -> bytes:
        """The bytes of an artifact. Raises `Missing`, or ArtifactUnavailable."""
        found = self._get(Artifact(handle))
        assert isinstance(found, bytes)
        return found

    def signed(self, payload: bytes) -> Signature:
        """The deployment's signature. Raises `Missing`, or UnsupportedCapability where it has no key."""
        found = self._get(Signed(payload))
        assert isinstance(found, Signature)
        return found

    def chain(self, first: int, last: int) -> ChainReading:
        """The chain through a stretch of the log. Raises `Missing`, or HistoricalSnapshotUnavailable."""
        found = self._get(Chain(first, last))
        assert isinstance(found, ChainReading)
        return found

    def nearest(self, text: str, seq: int) -> Dense:
        """How near a committed state's elements lie to a text. Raises `Missing`, or why the state cannot be had."""
        found = self._get(Nearest(text, seq))
        assert isinstance(found, Dense)
        return found

    def checked(self, key_id: str, payload: bytes, value: bytes) -> Verdict:
        """What checking a signature came to. Raises `Missing`."""
        found = self._get(Checked(key_id, payload, value))
        assert isinstance(found, Verdict)
        return found


def past_view(past: SpaceState, present: View) -> View:
    """A past state as it may be read today: what has been purged since is gone from the past too (KIP §60.3)."""
    purged = [found for found in present.find(state_key("purged")) if past.get(found) is not None]
    if not purged:
        return past
    layer = Layer(past)
    for found in purged:
        stub = present.get(found)
        if stub is not None:
            layer.put(stub)
    return layer
