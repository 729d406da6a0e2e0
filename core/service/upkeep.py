"""Upkeep of a space: compaction, thinning, the floor of history, garbage collection, verification.

What lives here: the order in which rows and objects are written and removed, so that a crash at any step leaves
nothing worse than garbage. What must never live here: what the new segments are (`core.storage.compaction`).

* Compaction runs under a lease. It writes objects first and moves the base last, in one transaction that holds
  only if the epoch, the purge generation and the base are as it saw them. A compactor that overslept loses.
* History is trimmed by moving `floor` and `min_delta` first and removing rows after.
* Garbage is found by listing objects **first** and reading the roots **after**: an object that becomes referenced
  in between is referenced in what is read later. Only objects older than an hour go, since a young one may be
  part of a commit on its way. And before the roots are read, HEAD is told up to when objects may go (`swept`):
  a writer that slept longer than that between its upload and its write (a suspended laptop) is refused by the
  write's own condition, and uploads again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from core.model.instants import Instant
from core.ports import (
    Delete,
    Entropy,
    Put,
    Row,
    Unavailable,
    Update,
    When,
)
from core.service.chain import read_chain
from core.service.faults import reading, settled
from core.service.leases import Leases
from core.service.rows import rows_between
from core.service.spaces import Spaces
from core.service.values import Fence
from core.storage.codec import decode_delta
from core.storage.compaction import Plan, fold, plan_compaction
from core.storage.head import SWEPT, Head, epoch_attribute
from core.storage.invariants import check
from core.storage.layout import (
    HEAD,
    delta_key_version,
    delta_sk,
    filter_key,
    manifest_key,
    manifest_sk,
    rows_of,
    segment_key,
    space_pk,
    space_prefix,
    vector_segment,
)
from core.storage.log import LogRow
from core.storage.manifest import Manifest, decode_manifest, encode_manifest
from core.storage.reader import Moved
from core.storage.segments import SegmentsView

MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
MAX_LOG_COMMITS: Final = 256  # what a cold read has to replay
MAX_LOG_BYTES: Final = 1024 * 1024
MAX_LOG_AGE: Final = 10 * MINUTE  # since the last commit: an idle space is opened from segments alone
MIN_LOG_COMMITS: Final = 16  # an idle space with fewer is left as it is
LEASE_MS: Final = 15 * MINUTE  # longer than a Lambda can run
GARBAGE_AGE: Final = HOUR
STORE_CLOCK_MS: Final = 1000  # S3 tells the time of an object in whole seconds
RUN_BYTES: Final = 64 * 1024 * 1024  # of deltas in one compaction; a longer log takes several
BATCH: Final = 100  # rows of one transaction


class Compacted(msgspec.Struct, frozen=True):
    """What a compaction did: from which version to which, and how much it wrote."""

    base: int
    ver: int
    segments: int
    written: int
    written_bytes: int


class Trimmed(msgspec.Struct, frozen=True):
    """Where history begins now, and how many rows went."""

    floor: int
    deltas: int
    manifests: int


class Collected(msgspec.Struct, frozen=True):
    """How many objects were seen, and which were removed."""

    seen: int
    removed: tuple[str, ...]


class ChainReport(msgspec.Struct, frozen=True):
    """What a verification of the log found; `broken` is the first version that does not fit, or None."""

    first: int
    last: int
    redacted: int
    broken: int | None


def due(head: Head, now: Instant) -> bool:
    """Whether a space's log wants folding into segments."""
    if head.state != "active" or head.log_n == 0:
        return False
    if head.log_n > MAX_LOG_COMMITS or head.log_bytes > MAX_LOG_BYTES:
        return True
    return head.log_n >= MIN_LOG_COMMITS and now - head.at > MAX_LOG_AGE


class Upkeep:
    """Background care of spaces. Every method is safe to run again, and at the same time as any other."""

    def __init__(self, spaces: Spaces, leases: Leases, entropy: Entropy) -> None:
        self._table = spaces.table
        self._objects = spaces.objects
        self._clock = spaces.clock
        self._entropy = entropy
        self._spaces = spaces
        self._leases = leases

    # --- compaction

    def compact(self, space_id: str, owner: str) -> Compacted | None:
        """Fold the log since the base into segments; None if another does it, or nothing is to be done.

        Args:
            space_id: the space.
            owner: names this run, uniquely.

        Raises:
            NoemaError: `ServiceUnavailable`; the next run starts over and loses nothing.
        """
        fence = self._leases.acquire(space_id, "compaction", owner, LEASE_MS)
        if fence is None:
            return None
        try:
            return self.compact_under(space_id, fence)
        finally:
            self._leases.release(space_id, fence)

    def compact_under(self, space_id: str, fence: Fence) -> Compacted | None:
        """As `compact`, for a holder of the lease."""
        started = self._clock.now()
        with reading():
            head = self._spaces.read_head(space_id)
            if head.state != "active" or head.ver == head.base_ver:
                return None
            try:
                base = None if head.base_key is None else self._spaces.view(head.base_key)
                first = head.born if base is None else base.manifest.ver + 1
                portion = self._portion(space_id, first, head.ver)
                reader = self._spaces.reader(space_id)
                plan = plan_compaction(
                    base,
                    fold(decode_delta(reader.body(entry)) for entry in portion),
                    seed=self._entropy.token(16),
                    read_filter=lambda: self.read_filter(base),
                )
            except Moved:
                return None  # an erasure or another compactor came first; the lease is lost
            key, manifest = self.store(space_id, plan)
            if not self._move_base(head, fence, manifest, key, portion, uploaded=started):
                return None
        written = [built.body for built in plan.built.values()]
        return Compacted(
            head.base_ver, manifest.ver, len(manifest.segments), len(written), sum(map(len, written))
        )

    def _portion(self, space_id: str, first: int, last: int) -> list[LogRow]:
        """The commits to fold at once: all of them, or as many as one run can hold."""
        portion: list[LogRow] = []
        size = 0
        for entry in self._spaces.reader(space_id).entries(first, last):
            if portion and size + entry.size > RUN_BYTES:
                break
            portion.append(entry)
            size += entry.size
        return portion

    def read_filter(self, view: SegmentsView | None) -> bytes:
        """A manifest's woven filters."""
        body = None if view is None else self._objects.get(view.manifest.filter_key)
        if body is None:
            raise Moved("the key filter is gone")
        return body

    def store(self, space_id: str, plan: Plan) -> tuple[str, Manifest]:
        """Write a plan's new objects, the manifest last; its key and the manifest as stored."""
        suffix = self._entropy.token(8).hex()
        refs = list(plan.manifest.segments)
        for index, built in plan.built.items():
            key = segment_key(space_id, built.ref.digest, f"{suffix}-{index}")
            self._objects.put(key, built.body)
            refs[index] = msgspec.structs.replace(built.ref, key=key)
        ver = plan.manifest.ver
        woven_key, key = filter_key(space_id, ver, suffix), manifest_key(space_id, ver, suffix)
        self._objects.put(woven_key, plan.woven)
        manifest = msgspec.structs.replace(plan.manifest, segments=tuple(refs), filter_key=woven_key)
        self._objects.put(key, encode_manifest(manifest))
        return key, manifest

    def _move_base(
        self,
        head: Head,
        fence: Fence,
        manifest: Manifest,
        key: str,
        portion: Sequence[LogRow],
        *,
        uploaded: Instant,
    ) -> bool:
        count, size = len(portion), sum(entry.size for entry in portion)
        after = msgspec.structs.replace(
            head,
            base_ver=manifest.ver,
            base_key=key,
            log_n=head.log_n - count,
            log_bytes=head.log_bytes - size,
        )
        check(head, after)
        seen: Row = {
            "state": "active",
            "pgen": head.pgen,
            "base_ver": head.base_ver,
            epoch_attribute(fence.role): fence.epoch,
        }
        space_id = manifest.meta.space_id
        pk = space_pk(space_id)
        moved = Update(
            pk,
            HEAD,
            assign={"base_ver": manifest.ver, "base_key": key},
            add={"log_n": -count, "log_bytes": -size},
            when=When(equals=seen, below={SWEPT: uploaded}),
        )
        return settled(
            self._table,
            [
                moved,
                Put(
                    pk,
                    manifest_sk(manifest.ver),
                    manifest_row(manifest, key, self._clock.now()),
                    When(absent=True),
                ),
            ],
            lambda: self._spaces.read_head(space_id).base_key == key,
        )

    # --- history

    def thin_manifests(self, space_id: str) -> int:
        """Remove manifests that history does not need so densely; how many went.

        All of the last day stay, one an hour for a week, one a day for 90 days, one a month before. The base
        stays, and so does the one that the floor is read from. Commits stay, so AS OF is as exact as before
        and only slower in the distant past.
        """
        with reading():
            head, now = self._spaces.read_head(space_id), self._clock.now()
            if head.state != "active":
                return 0
            rows = self.manifests(space_id, head)
            root = max((ver for ver, _ in rows if ver <= head.floor), default=0)
            keep, filled = {head.base_ver, root}, set()
            for ver, row in reversed(rows):  # the newest of each slot stays
                slot = _slot(now - _int(row["made"]), _int(row["made"]))
                if slot is None or slot not in filled:
                    keep.add(ver)
                    filled.add(slot)
            gone = [ver for ver, _ in rows if ver not in keep]
            pk = space_pk(space_id)
            self._remove([Delete(pk, manifest_sk(ver)) for ver in gone])
        return len(gone)

    def trim_history(self, space_id: str, *, keep_ms: int) -> Trimmed:
        """Give up history older than `keep_ms`, as far as a manifest allows; the floor never moves back.

        What is below the floor is answered with `HistoricalSnapshotUnavailable`. The present never changes.
        """
        with reading():
            head = self._spaces.read_head(space_id)
            if head.state != "active":
                return Trimmed(head.floor, 0, 0)
            rows = self.manifests(space_id, head)
            oldest = self._clock.now() - keep_ms
            # the youngest manifest that is old enough: everything before it can go
            roots = [ver for ver, row in rows if _int(row["at"]) <= oldest and ver <= head.base_ver]
            floor = max([head.floor, *roots])
            if floor > head.floor:
                after = msgspec.structs.replace(head, floor=floor, min_delta=floor)
                check(head, after)
                when = When(equals={"state": "active", "pgen": head.pgen, "floor": head.floor})
                moved = Update(
                    space_pk(space_id), HEAD, assign={"floor": floor, "min_delta": floor}, when=when
                )
                if settled(self._table, [moved], lambda: self._spaces.read_head(space_id).floor >= floor):
                    head = after
            deltas = self._drop_below(space_id, "D", head.min_delta)
            manifests = self._drop_below(space_id, "M", max((v for v in roots if v <= head.floor), default=0))
        return Trimmed(head.floor, deltas, manifests)

    def _drop_below(self, space_id: str, letter: str, ver: int) -> int:
        """Remove the log's or the manifests' rows of versions below `ver`; their objects become garbage."""
        pk, gone = space_pk(space_id), 0
        last = delta_sk(ver - 1) if letter == "D" else manifest_sk(ver - 1)
        while ver > 0:
            page = self._table.query(pk, rows_of(letter)[0], last, limit=BATCH)
            self._remove([Delete(pk, sk) for sk, _ in page])
            gone += len(page)
            if len(page) < BATCH:
                break
        return gone

    def manifests(self, space_id: str, head: Head) -> list[tuple[int, Row]]:
        """The rows of the retained manifests of this life of the space, oldest first, by version."""
        pk, first, last = space_pk(space_id), manifest_sk(head.born), rows_of("M")[1]
        return [(_int(row["ver"]), row) for _, row in rows_between(self._table, pk, first, last)]

    # --- garbage

    def collect_garbage(
        self,
        space_id: str,
        *,
        age_ms: int = GARBAGE_AGE,
        still_mine: Callable[[], None] | None = None,
    ) -> Collected:
        """Remove objects of the log that nothing refers to and that are older than `age_ms`.

        Works on a deleted space too, where everything is garbage. While an erasure runs, what it has uploaded
        and does not refer to yet may be old, so only the erasure itself may collect.

        Args:
            space_id: the space.
            age_ms: how old an object must be.
            still_mine: for an erasure: raises if another run has the job, asked between looking and removing.
        """
        with reading():
            limit = self._clock.now() - age_ms
            listed = [
                (key, at)
                for part in OBJECT_PARTS
                for key, at, _ in self._objects.list(f"{space_prefix(space_id)}{part}/")
            ]
            # without an age the time does not count: the store's clock may be ahead of ours
            old = [key for key, at in listed if age_ms == 0 or at <= limit]
            if not old:
                return Collected(len(listed), ())
            self._announce_sweep(space_id, limit + min(age_ms, STORE_CLOCK_MS))
            # after the listing and the announcement: see the module's text
            head = self._spaces.read_head(space_id, deleted=True)
            if head.state == "purging" and still_mine is None:
                return Collected(len(listed), ())
            roots = self.roots(space_id, head, old)
            # the vectors of a segment stay as long as it does: they lie beside it and nothing else names them
            gone = [key for key in old if (vector_segment(key) or key) not in roots]
            if still_mine is not None:
                still_mine()
            for start in range(0, len(gone), BATCH):
                self._objects.delete(gone[start : start + BATCH])
        return Collected(len(listed), tuple(gone))

    def _announce_sweep(self, space_id: str, until: Instant) -> None:
        """From here on nothing can land that refers to an object uploaded by then and not referred to yet."""
        pk = space_pk(space_id)
        when = When(present=True, below={SWEPT: until})
        announced = Update(pk, HEAD, assign={SWEPT: until}, when=when)
        # Refused: it stands at a later time already, or there is no such space.
        settled(self._table, [announced], lambda: self._swept(space_id) >= until)

    def _swept(self, space_id: str) -> Instant:
        return self._spaces.read_head(space_id, deleted=True).number(SWEPT)

    def roots(self, space_id: str, head: Head, keys: Sequence[str]) -> set[str]:
        """Every object that HEAD or a retained manifest refers to, and those of `keys` that the log does.

        The log is not read from end to end: an object of a commit has the commit's version in its name.
        """
        if head.state == "deleted":
            return set()
        roots = set() if head.base_key is None else {head.base_key}
        roots |= {str(row["key"]) for _, row in self.manifests(space_id, head)}
        for key in list(roots):
            body = self._objects.get(key)
            if body is None:
                raise Unavailable(f"the manifest {key} vanished while roots were read; try again")
            roots.update(decode_manifest(body).objects())
        reader = self._spaces.reader(space_id)
        for key in keys:
            ver = delta_key_version(space_id, key)
            entry = None if ver is None else reader.entry(ver)
            if entry is not None and entry.key == key:
                roots.add(key)
        return roots

    def log_rows(self, space_id: str) -> Iterator[tuple[str, Row]]:
        """Every row of the log as it stands, oldest first; what changes meanwhile may be seen or not."""
        return rows_between(self._table, space_pk(space_id), *rows_of("D"))

    # --- verification

    def verify_chain(self, space_id: str) -> ChainReport:
        """Check every kept commit against its digest and the chain, up to HEAD.

        A redacted commit keeps its digest and has lost its bytes: the chain still holds over it.
        """
        with reading():
            head = self._spaces.read_head(space_id)
            found = read_chain(self._spaces.reader(space_id), head.min_delta, head.ver)
        broken = found.broken if found.broken is not None or found.after == head.chain else head.ver
        return ChainReport(head.min_delta, head.ver, found.redacted, broken)

    def _remove(self, deletes: Sequence[Delete]) -> None:
        for start in range(0, len(deletes), BATCH):
            self._table.transact(deletes[start : start + BATCH])


OBJECT_PARTS: Final = ("d", "f", "m", "seg")  # what below a space's prefix belongs to its log


def manifest_row(manifest: Manifest, key: str, made: Instant) -> Row:
    """The row that keeps a manifest as a root. `at`: of its last commit; `made`: when it was compacted."""
    return {"ver": manifest.ver, "seq": manifest.seq, "at": manifest.at, "made": made, "key": key}


def _slot(age: int, made: Instant) -> tuple[int, int] | None:
    """Manifests of one slot stand in for each other; None: this one stands for itself."""
    if age < DAY:
        return None
    width = HOUR if age < 7 * DAY else DAY if age < 90 * DAY else 30 * DAY
    return width, made // width


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value
