"""Loading a space: its HEAD, its state now, its state as of a point of its history.

What lives here: the warm cache and how it catches up. What must never live here: writing. A read asks the
store for HEAD, strongly consistent, and then serves what it holds if the version is the same, adds the newer
commits if it is behind, and opens the newest manifest and the log's tail if it holds nothing that fits. What
was loaded under another purge generation or in another life of the space id is dropped, never served.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Final

import msgspec

from core.errors import NoemaError
from core.model.ids import check_space_id, version_of_transaction
from core.model.instants import Instant
from core.model.log import Delta
from core.ports import Clock, Objects, Table
from core.service.faults import RETRY_AFTER_MS, reading
from core.state.space import SpaceState, genesis
from core.storage.blocks import Cache, Pieces
from core.storage.head import ENDS, RESTORING, Head, head_of
from core.storage.layout import (
    ALL_ROWS,
    DIRECTORY_PK,
    HEAD,
    MAX_VERSION,
    following,
    manifest_sk,
    space_pk,
    space_prefix,
)
from core.storage.log import LogRow
from core.storage.manifest import decode_manifest
from core.storage.reader import LogReader, Moved
from core.storage.segments import SegmentsView

CACHE_BYTES: Final = 256 * 1024 * 1024
_TRIES: Final = 6  # how often a load starts over when upkeep moves the ground under it
_DECODED: Final = 6  # a decoded delta takes about this many times its bytes
_FIXED_BYTES: Final = 64 * 1024  # of an open space, before any element is decoded


class _Open(msgspec.Struct, frozen=True):
    """A cached state and what it was loaded under."""

    instance: str
    pgen: int
    base_key: str | None
    state: SpaceState
    cost: int


class Spaces:
    """Reads spaces. One instance per process; safe to share between threads.

    Args:
        table: the store's rows.
        objects: the store's objects.
        clock: tells whether a time is in the future.
        cache_bytes: about how much memory open spaces may take together: half of it for pieces of segments,
            half for what was committed since.
        restoring: sees spaces that are being restored, which nobody else may (KIP §41, Capsule design §222).
    """

    def __init__(
        self,
        table: Table,
        objects: Objects,
        clock: Clock,
        *,
        cache_bytes: int = CACHE_BYTES,
        restoring: bool = False,
    ) -> None:
        self.table = table
        self.objects = objects
        self.clock = clock
        self.pieces = Pieces(objects, Cache(cache_bytes // 2))
        self._cache_bytes = cache_bytes // 2
        self._restoring = restoring
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._cost = 0
        self._lock = Lock()

    # --- now

    def head(self, space_id: str) -> Head:
        """Where the space's log stands, strongly consistent.

        Raises:
            NoemaError: `NotFoundOrNotVisible` if there is no such space, or it was deleted.
        """
        with reading():
            return self.read_head(space_id)

    def load(self, space_id: str, at_least: int | None = None) -> SpaceState:
        """The space's state now.

        Args:
            space_id: the space.
            at_least: a version the caller has seen (read your writes across processes).

        Raises:
            NoemaError: `NotFoundOrNotVisible`; `ServiceUnavailable` while something is being erased;
                `PreconditionFailed` if the space has never reached `at_least`.
        """
        with reading():
            _, state = self.read_current(space_id)
        if at_least is not None and state.ver < at_least:
            raise NoemaError(
                "PreconditionFailed",
                f"the space is at version {state.ver} and has not reached {at_least}",
                details={"version": state.ver, "at_least": at_least},
            )
        return state

    def ids(self, after: str = "", limit: int = 100) -> list[str]:
        """Ids of the spaces that exist, in order, after a given one. For sweepers and managers."""
        with reading():
            rows = self.table.query(
                DIRECTORY_PK, following(after) if after else ALL_ROWS[0], ALL_ROWS[1], limit=limit
            )
        return [sk for sk, _ in rows]

    # --- the past

    def deltas(self, space_id: str, after_version: int, limit: int) -> list[Delta]:
        """At most `limit` commits that follow `after_version`, oldest first.

        Raises:
            NoemaError: `HistoricalSnapshotUnavailable` if some of them are no longer kept.
        """
        with reading():
            for _ in range(_TRIES):
                head = self._readable_head(space_id)
                first = max(after_version + 1, head.born)
                last = min(first + limit - 1, head.ver)
                if first < head.min_delta:
                    raise _below(head.min_delta)
                try:
                    return list(self.reader(space_id).deltas(first, last))
                except Moved:
                    continue
        raise _busy()

    def load_at(
        self,
        space_id: str,
        *,
        version: int | None = None,
        seq: int | None = None,
        time: Instant | None = None,
        tx: str | None = None,
    ) -> SpaceState:
        """The state as of a point of history, named in exactly one way.

        Args:
            space_id: the space.
            version: the log version.
            seq: the KIP `space_seq`: the state after the last commit that has it.
            time: an instant (ms): the state after the last commit made by then.
            tx: the id of the transaction whose outcome is wanted.

        Raises:
            NoemaError: `HistoricalSnapshotUnavailable` before the floor, `InvalidInput` in the future,
                `TransactionUnknown` for an id that is not of this space.
        """
        if sum(point is not None for point in (version, seq, time, tx)) != 1:
            raise ValueError("a point of history is named by version, seq, time or tx, one of them")
        with reading():
            for _ in range(_TRIES):
                head, now = self.read_current(space_id)
                if tx is not None:
                    version = version_of_transaction(tx, now.meta.salt)
                    if version is None or not head.born <= version <= head.ver:
                        raise NoemaError("TransactionUnknown", "the space has no transaction of this id")
                try:
                    target = self._version_at(space_id, head, seq, time) if version is None else version
                    self._check_kept(head, target)
                    return now if target == head.ver else self._open_at(space_id, head, target)
                except Moved:
                    continue
        raise _busy()

    def _check_kept(self, head: Head, target: int) -> None:
        if target > head.ver:
            raise NoemaError(
                "InvalidInput",
                f"version {target} is in the future; the space is at {head.ver}",
                details={"version": head.ver},
            )
        if target < head.floor:
            raise _below(head.floor)

    def _version_at(self, space_id: str, head: Head, seq: int | None, time: Instant | None) -> int:
        """The last version at or before a `space_seq` or a time; `floor - 1` if the floor is after it."""
        if seq is not None and seq > head.seq:
            raise NoemaError(
                "InvalidInput",
                f"space_seq {seq} is in the future; the space is at {head.seq}",
                details={"space_seq": head.seq},
            )
        if time is not None and time > self.clock.now():
            raise NoemaError("InvalidInput", "the time is in the future")
        reader = self.reader(space_id)
        # Invariant: `low` is at or before the point, what follows `high` is not.
        low, high = head.floor - 1, head.ver
        while low < high:
            middle = (low + high + 1) // 2
            entry = reader.entry(middle)
            if entry is None:
                raise Moved(f"version {middle} is missing")
            if _is_by(entry, seq, time):
                low = middle
            else:
                high = middle - 1
        return low

    def _open_at(self, space_id: str, head: Head, target: int) -> SpaceState:
        """The state at a kept version: the nearest manifest at or before it, and the commits since."""
        rows = self.table.query(
            space_pk(space_id), manifest_sk(head.born), manifest_sk(target), limit=1, reverse=True
        )
        if not rows and head.min_delta > head.born:
            raise _below(head.floor)
        key = str(rows[0][1]["key"]) if rows else None
        return self._forward(space_id, head, self._base(space_id, head, key), target)

    # --- the pieces, for the services that write; these let the store's faults through

    def reader(self, space_id: str) -> LogReader:
        """The space's log."""
        return LogReader(self.table, self.objects, space_id)

    def read_head(self, space_id: str, *, deleted: bool = False) -> Head:
        """As `head`, but the store's faults pass through; with `deleted`, what is left of a space is one too."""
        row = self.table.get(space_pk(check_space_id(space_id)), HEAD)
        head = None if row is None else head_of(row)
        if head is None or (not deleted and (head.state == "deleted" or head.number(ENDS))):
            raise NoemaError("NotFoundOrNotVisible", f"there is no space {space_id}")
        return head

    def read_current(self, space_id: str) -> tuple[Head, SpaceState]:
        """HEAD and the state at exactly its version; the store's faults pass through."""
        for _ in range(_TRIES):
            head = self._readable_head(space_id)
            try:
                return head, self._catch_up(space_id, head)
            except Moved:
                continue
        raise _busy()

    def view(self, manifest_key: str) -> SegmentsView:
        """The state a manifest holds, its segments unread; the store's faults pass through.

        Raises:
            Moved: the manifest is gone: upkeep or an erasure has replaced it.
        """
        body = self.objects.get(manifest_key)
        if body is None:
            raise Moved(f"the manifest {manifest_key} is gone")
        return SegmentsView(decode_manifest(body), self.pieces)

    def advance(self, space_id: str, state: SpaceState, delta: Delta) -> None:
        """Take note of a commit this process has just made on `state`, so that nobody reads it back.

        Only a cache: whatever was cached since, or under other conditions, stays as it is.
        """
        with self._lock:
            held = self._open.get(space_id)
            if held is not None and held.state is state:
                self._open[space_id] = msgspec.structs.replace(held, state=state.apply(delta))

    def forget(self, space_id: str) -> None:
        """Drop everything that is cached of a space, pieces of segments included: some of it was erased."""
        self._close(space_id)
        self.pieces.forget(space_prefix(space_id))

    def _close(self, space_id: str) -> None:
        with self._lock:
            dropped = self._open.pop(space_id, None)
            if dropped is not None:
                self._cost -= dropped.cost

    def _readable_head(self, space_id: str) -> Head:
        head = self.read_head(space_id)
        if head.number(RESTORING) and not self._restoring:
            raise NoemaError(
                "ServiceUnavailable", "the space is being restored", retry_after_ms=RETRY_AFTER_MS
            )
        if head.state == "purging":
            self.forget(space_id)
            raise NoemaError(
                "ServiceUnavailable", "something is being erased here", retry_after_ms=RETRY_AFTER_MS
            )
        return head

    def _catch_up(self, space_id: str, head: Head) -> SpaceState:
        """The state at `head.ver`, from the cache as far as that fits."""
        with self._lock:
            held = self._open.get(space_id)
        fits = held is not None and (held.instance, held.pgen, held.base_key) == (
            head.instance,
            head.pgen,
            head.base_key,
        )
        if held is None or not fits:
            if held is not None and (held.instance, held.pgen) != (head.instance, head.pgen):
                self.forget(space_id)
            self._close(space_id)
            state = self._forward(space_id, head, self._base(space_id, head, head.base_key), head.ver)
        elif held.state.ver > head.ver:
            raise Moved("another reader has seen a later version; look at HEAD again")
        else:
            state = self._forward(space_id, head, held.state, head.ver)
        self._keep(space_id, head, state)
        return state

    def _forward(self, space_id: str, head: Head, state: SpaceState | None, target: int) -> SpaceState:
        """The state at `target`, from an earlier one or, for None, from the space's first commit."""
        deltas = list(self.reader(space_id).deltas(head.born if state is None else state.ver + 1, target))
        try:
            if state is None:
                return genesis(deltas[0]).apply(*deltas[1:])
            return state.apply(*deltas)
        except ValueError as gap:
            raise Moved("the log does not continue the state") from gap

    def _base(self, space_id: str, head: Head, key: str | None) -> SpaceState | None:
        """The state a manifest holds, its segments unread; None if there is no manifest yet."""
        if key is None:
            return None
        view = self.view(key)
        manifest = view.manifest
        if manifest.meta.instance != head.instance:
            raise Moved(f"the manifest of {space_id} is of another life")
        return SpaceState.on(view, meta=manifest.meta, ver=manifest.ver, seq=manifest.seq, at=manifest.at)

    def _keep(self, space_id: str, head: Head, state: SpaceState) -> None:
        cost = _FIXED_BYTES + head.log_bytes * _DECODED
        with self._lock:
            before = self._open.pop(space_id, None)
            self._cost += cost - (0 if before is None else before.cost)
            self._open[space_id] = _Open(head.instance, head.pgen, head.base_key, state, cost)
            while self._cost > self._cache_bytes and len(self._open) > 1:
                _, evicted = self._open.popitem(last=False)
                self._cost -= evicted.cost


def _is_by(entry: LogRow, seq: int | None, time: Instant | None) -> bool:
    return entry.seq <= seq if seq is not None else entry.at <= (MAX_VERSION if time is None else time)


def _below(floor: int) -> NoemaError:
    return NoemaError(
        "HistoricalSnapshotUnavailable",
        "the point asked for is older than what is kept of this space",
        details={"floor": floor},
    )


def _busy() -> NoemaError:
    return NoemaError(
        "ServiceUnavailable", "the space kept moving while it was read", retry_after_ms=RETRY_AFTER_MS
    )
