"""Erasure: bytes that must be gone are gone, from the log, from every retained manifest and from what was derived.

What lives here: the order of the steps, and the job row that makes them restartable. What must never live here:
who may erase what, or what a KIP PURGE means; that is decided before.

    begin     HEAD: pgen + 1, every epoch + 1, state = purging; P#<pgen>: the job       one transaction
    log       every commit that mentions the elements is rewritten, digest and chain kept
    manifests every segment that mentions them is rewritten, in every retained manifest
    vectors   those of rewritten segments, of what refers to the elements, and of the newest commits
    derived   idempotency outcomes of those commits, conversations if asked
    objects   what nothing refers to any more is deleted at once: everything in flight is fenced by now
    scan      every row and object of the space is searched for the bytes
    end       HEAD: state = active; P#<pgen>: the receipt                              one transaction

From `begin` on nobody can read the space or write to it, and nothing loaded before is served. Each step can be
run again: what is rewritten already mentions nothing. The job row has an epoch of its own, which every step's
write checks, so that a run that was overtaken can change nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from core.errors import NoemaError
from core.model.elements import AnyElement
from core.model.ids import is_element_id
from core.model.instants import Instant
from core.ports import Delete, Entropy, Put, Row, Update, Value, When, Write
from core.service.erasure_scan import Scan, scan_space
from core.service.erasure_steps import COUNTERS, JOB_MS, ErasureSteps, Job, Order, Overtaken
from core.service.faults import reading, settled
from core.service.rows import number_in
from core.service.spaces import Spaces
from core.service.upkeep import Upkeep
from core.storage.head import ENDS, ROLES, Head, epoch_attribute, row_of, until_attribute
from core.storage.invariants import check
from core.storage.layout import DIRECTORY_PK, HEAD, purge_sk, space_pk
from core.storage.redaction import Erased

__all__ = ["ErasureReceipt", "Erasures", "Overtaken"]

MAX_IDS: Final = 1000  # of one erasure
_SWEEPS: Final = 3  # of a space that is deleted, for what late writers leave behind
MAX_JOB_BYTES: Final = 300_000


class ErasureReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """Proof of an erasure, kept in its `P#` row.

    ids: sha256 of each erased id. deltas, segments, manifests, outcomes, conversations, objects: how many were
    rewritten or removed. rows_scanned, objects_scanned, bytes_scanned: what the last scan read, unpacked.
    found: where the scan still saw an id or a needle; empty is the proof.
    """

    pgen: int
    kind: str
    by: str
    started: Instant
    at: Instant
    ids: tuple[str, ...] = ()
    needles: int = 0
    deltas: int = 0
    segments: int = 0
    manifests: int = 0
    outcomes: int = 0
    conversations: int = 0
    objects: int = 0
    rows: int = 0
    rows_scanned: int = 0
    objects_scanned: int = 0
    bytes_scanned: int = 0
    found: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether the scan found nothing."""
        return not self.found


class Erasures:
    """Erases elements, and whole spaces. Safe to share between threads."""

    def __init__(self, spaces: Spaces, upkeep: Upkeep, entropy: Entropy) -> None:
        self._table = spaces.table
        self._clock = spaces.clock
        self._spaces = spaces
        self._upkeep = upkeep
        self._entropy = entropy

    # --- what a caller may ask

    def erase(
        self,
        space_id: str,
        ids: Sequence[str],
        principal: str,
        *,
        owner: str,
        needles: Sequence[str] = (),
        conversations: Sequence[tuple[str, int]] = (),
    ) -> ErasureReceipt:
        """Erase elements physically, now and from all history.

        Args:
            space_id: the space.
            ids: elements. One that is a stub now (KIP PURGE) keeps the stub, everywhere; any other is removed
                with every reference to it.
            principal: who asks; recorded in the receipt.
            owner: names this run, uniquely.
            needles: texts that must not be found afterwards. They are looked for, not removed.
            conversations: conversations to remove, as (collection, number).

        Raises:
            NoemaError: `LegalHoldConflict`; `InvalidInput` for ids that are none; `ServiceUnavailable` while
                another erasure runs here.
        """
        if not all(is_element_id(found) for found in ids) or len(ids) > MAX_IDS:
            raise NoemaError("InvalidInput", f"an erasure names at most {MAX_IDS} elements by their ids")
        with reading():
            head, state = self._spaces.read_current(space_id)
            stubs: dict[str, AnyElement] = {}
            for found in ids:
                element = state.get(found)
                if element is not None and element.retention.legal_hold:
                    raise NoemaError(
                        "LegalHoldConflict", "a legal hold keeps an element", details={"id": found}
                    )
                if element is not None and element.system.state == "purged":
                    stubs[found] = element
            removed = tuple(sorted(found for found in set(ids) if found not in stubs))
            order = Order(
                Erased(removed, stubs),
                tuple(needle.encode("utf-8", "surrogatepass") for needle in needles if needle),
                tuple(conversations),
            )
            job = self._begin(space_id, head, order, principal, owner, kind="elements")
            return self._run(job, "elements")

    def delete_space(self, space_id: str, principal: str, *, owner: str) -> ErasureReceipt:
        """Delete a whole space: every row and object. What remains is a tombstone that keeps versions growing.

        The id can be used again; the new space is another instance, and nothing of this one fits it.
        """
        with reading():
            head = self._spaces.read_head(space_id)
            job = self._begin(space_id, head, Order(), principal, owner, kind="space")
            return self._run(job, "space")

    def resume(self, space_id: str, owner: str) -> ErasureReceipt | None:
        """Finish an erasure whose run died; None if there is none, or its run is alive.

        Args:
            space_id: the space.
            owner: names this run, uniquely.
        """
        with reading():
            head = self._spaces.read_head(space_id, deleted=True)
            if head.state != "purging":
                return None
            pk, sk, now = space_pk(space_id), purge_sk(head.pgen), self._clock.now()
            row = self._table.get(pk, sk)
            if row is None or row.get("stage") != "running" or number_in(row, "until") > now:
                return None
            epoch = number_in(row, "ep") + 1
            claim = Update(
                pk,
                sk,
                assign={"ep": epoch, "owner": owner, "until": now + JOB_MS},
                when=When(equals={"ep": epoch - 1, "stage": "running"}),
            )
            if not settled(self._table, [claim], lambda: self._row(pk, sk).get("owner") == owner):
                return None
            order = row["order"]
            assert isinstance(order, bytes)
            job = Job(space_id, head.pgen, epoch, msgspec.msgpack.decode(order, type=Order))
            return self._run(job, row["kind"])

    def receipt(self, space_id: str, pgen: int) -> ErasureReceipt | None:
        """The receipt of a finished erasure, by its purge generation."""
        with reading():
            row = self._table.get(space_pk(space_id), purge_sk(pgen))
        if row is None or row.get("stage") != "done":
            return None
        body = row["receipt"]
        assert isinstance(body, bytes)
        return msgspec.msgpack.decode(body, type=ErasureReceipt)

    # --- begin

    def _begin(
        self, space_id: str, head: Head, order: Order, principal: str, owner: str, *, kind: str
    ) -> Job:
        """Raise the purge generation and every epoch, and write the job."""
        pgen, now = head.pgen + 1, self._clock.now()
        raised: Row = {epoch_attribute(role): head.epoch(role) + 1 for role in ROLES}
        ended: Row = {until_attribute(role): None for role in ROLES}
        assign: Row = {**raised, **ended, "pgen": pgen, "state": "purging"}
        seen: Row = {"pgen": head.pgen, "state": head.state, "ver": head.ver}
        if kind == "space":
            assign[ENDS] = 1
            del seen["ver"]  # whatever was committed meanwhile goes too
        seen |= {epoch_attribute(role): head.epoch(role) or None for role in ROLES}
        check(
            head,
            msgspec.structs.replace(head, pgen=pgen, state="purging", row={**head.row, **assign}),
        )
        body = msgspec.msgpack.encode(order)
        if len(body) > MAX_JOB_BYTES:
            raise NoemaError("InvalidInput", "the erasure names too much at once; split it")
        row: Row = {
            "kind": kind,
            "stage": "running",
            "by": principal,
            "at": now,
            "order": body,
            "ep": 1,
            "owner": owner,
            "until": now + JOB_MS,
        }
        pk, sk = space_pk(space_id), purge_sk(pgen)
        writes: list[Write] = [
            Update(pk, HEAD, assign=assign, when=When(equals=seen)),
            Put(pk, sk, row, When(absent=True)),
        ]
        if not settled(self._table, writes, lambda: self._row(pk, sk).get("owner") == owner):
            raise NoemaError("ServiceUnavailable", "the space moved; ask again", retry_after_ms=100)
        self._spaces.forget(space_id)
        return Job(space_id, pgen, 1, order)

    # --- run

    def _run(self, job: Job, kind: Value) -> ErasureReceipt:
        """Do everything that is not done yet, look for what is left, and write the receipt."""
        steps = ErasureSteps(self._spaces, self._upkeep, self._entropy, job)
        if kind == "space":
            return self._run_space(job, steps)
        steps.redact_log()
        steps.rewrite_manifests()
        steps.remove_vectors()
        steps.redact_outcomes()
        steps.remove_conversations()
        steps.remove_garbage()
        return self._end(job, kind, scan_space(self._spaces, job))

    def _run_space(self, job: Job, steps: ErasureSteps) -> ErasureReceipt:
        for _ in range(_SWEEPS):
            steps.remove_everything()
            scan = scan_space(self._spaces, job, nothing_may_stay=True)
            if not scan.found:
                break
        return self._end(job, "space", scan)

    def _end(self, job: Job, kind: Value, scan: Scan) -> ErasureReceipt:
        """HEAD active again, or a tombstone; the receipt in place of the job."""
        row = self._row(job.pk, job.sk)
        if row.get("ep") != job.epoch or row.get("stage") != "running":
            raise Overtaken(job.sk)
        erased = job.order.erased
        receipt = ErasureReceipt(
            pgen=job.pgen,
            kind=str(kind),
            by=str(row["by"]),
            started=number_in(row, "at"),
            at=self._clock.now(),
            ids=tuple(
                sorted(
                    hashlib.sha256(found.encode()).hexdigest() for found in (*erased.removed, *erased.stubs)
                )
            ),
            needles=len(job.order.needles),
            **{name: number_in(row, name) for name in COUNTERS},
            rows_scanned=scan.rows,
            objects_scanned=scan.objects,
            bytes_scanned=scan.size,
            found=tuple(scan.found[:100]),
        )
        done: Row = {"stage": "done", "kind": str(kind), "receipt": msgspec.msgpack.encode(receipt)}
        writes: list[Write] = [
            self._head_after(job, kind),
            Put(job.pk, job.sk, done, When(equals={"ep": job.epoch, "stage": "running"})),
        ]
        if kind == "space":
            writes.append(Delete(DIRECTORY_PK, job.space_id))
        if not settled(self._table, writes, lambda: self._row(job.pk, job.sk).get("stage") == "done"):
            raise Overtaken(job.sk)
        self._spaces.forget(job.space_id)
        return receipt

    def _head_after(self, job: Job, kind: Value) -> Write:
        head = self._spaces.read_head(job.space_id, deleted=True)
        when = When(equals={"pgen": job.pgen, "state": "purging"})
        if kind != "space":
            check(head, msgspec.structs.replace(head, state="active"))
            return Update(job.pk, HEAD, assign={"state": "active"}, when=when)
        epochs = {name: value for name, value in head.row.items() if name.startswith("ep_")}
        tombstone = msgspec.structs.replace(
            head, state="deleted", base_key=None, log_n=0, log_bytes=0, row=epochs
        )
        check(head, tombstone)
        return Put(job.pk, HEAD, row_of(tombstone), when)

    def _row(self, pk: str, sk: str) -> Row:
        return self._table.get(pk, sk) or {}
