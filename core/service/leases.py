"""Leases: who does a space's background work just now, and proof that nobody else does it any more.

A lease gives liveness: its end lets another take over from a holder that died. Its **epoch** gives safety: every
write made under a lease is conditional on it, and it moves whenever the lease changes hands, so a holder that
overslept can write nothing, whatever its clock says. The attributes stand in HEAD, so that the condition is
part of the very write it protects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from core.ports import Clock, Row, Table, Unavailable, Update, When
from core.service.faults import reading, settled
from core.service.values import Fence, Role
from core.storage.head import ROLES, Head, epoch_attribute, head_of, owner_attribute, until_attribute
from core.storage.layout import HEAD, space_pk

_TRIES: Final = 5  # of raising epochs that others move at the same time


class Fenced(Exception):  # noqa: N818 - not an error of a caller: the work was overtaken and must stop
    """The lease's epoch has moved: another holds it, or something was erased. Never retried."""


class Leases:
    """Takes, keeps and gives back leases. Safe to share between threads."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock

    def acquire(
        self, space_id: str, role: Role, owner: str, ttl_ms: int, *, apart: Role | None = None
    ) -> Fence | None:
        """The lease of a role, or None if another holds it, or the space is gone or being erased.

        Args:
            space_id: the space.
            role: what work it is for.
            owner: names this run; must be unique, or two runs would take each other for themselves.
            ttl_ms: how long it lasts without a renewal.
            apart: a role whose work must not run at the same time: its lease must be over, and whoever held it
                last is fenced, so that work which overslept cannot write beside this one.
        """
        with reading():
            head, now = self._head(space_id), self._clock.now()
            if head is None or head.state != "active" or head.lease_until(role) > now:
                return None
            if apart is not None and head.lease_until(apart) > now:
                return None
            seen, until = head.epoch(role), now + ttl_ms
            equals: Row = {epoch_attribute(role): seen or None, "state": "active"}
            row: Row = {
                epoch_attribute(role): seen + 1,
                owner_attribute(role): owner,
                until_attribute(role): until,
            }
            if apart is not None and head.lease_owner(apart) is not None:
                equals[epoch_attribute(apart)] = head.epoch(apart) or None
                equals[until_attribute(apart)] = head.row.get(until_attribute(apart))
                row[epoch_attribute(apart)] = head.epoch(apart) + 1
            elif apart is not None:
                equals[owner_attribute(apart)] = None
            when = When(equals=equals)
            if not self._write(space_id, row, when, lambda after: self._is(after, role, seen + 1, owner)):
                return None
            return Fence(role, seen + 1, owner, until)

    def renew(self, space_id: str, fence: Fence, ttl_ms: int) -> Fence:
        """The same lease, lasting `ttl_ms` from now.

        Raises:
            Fenced: it is lost, even if nobody has taken it yet and it only ran out: then another could have.
        """
        with reading():
            until = self._clock.now() + ttl_ms
            row: Row = {until_attribute(fence.role): until}

            def landed(after: Head) -> bool:
                return self._holds(after, fence) and after.lease_until(fence.role) == until

            if not self._write(space_id, row, self._mine(fence), landed):
                raise Fenced(fence.role)
            return msgspec.structs.replace(fence, until=until)

    def release(self, space_id: str, fence: Fence) -> None:
        """Let the next run begin at once; no error if the lease is lost already."""
        with reading():
            row: Row = {until_attribute(fence.role): 0}

            def landed(after: Head) -> bool:
                return not self._holds(after, fence) or after.lease_until(fence.role) == 0

            self._write(space_id, row, self._mine(fence), landed)

    def raise_epochs(self, space_id: str, roles: Sequence[Role] = ROLES) -> None:
        """Fence whatever runs under these roles' leases: nothing begun before now lands after now.

        For changes that a person makes and that background work must not undo (corrections, suppressions).
        """
        with reading():
            for _ in range(_TRIES):
                head = self._head(space_id)
                if head is None:
                    return
                seen: Row = {epoch_attribute(role): head.epoch(role) or None for role in roles}
                raised: Row = {epoch_attribute(role): head.epoch(role) + 1 for role in roles}
                ended: Row = {until_attribute(role): 0 for role in roles}
                if self._write(space_id, {**raised, **ended}, When(present=True, equals=seen), _never):
                    return
            raise Unavailable("the leases kept changing hands")

    def _mine(self, fence: Fence) -> When:
        return When(
            equals={
                epoch_attribute(fence.role): fence.epoch,
                owner_attribute(fence.role): fence.owner,
                "state": "active",
            }
        )

    def _holds(self, head: Head, fence: Fence) -> bool:
        return self._is(head, fence.role, fence.epoch, fence.owner)

    def _is(self, head: Head, role: Role, epoch: int, owner: str) -> bool:
        return head.epoch(role) == epoch and head.lease_owner(role) == owner and head.state == "active"

    def _head(self, space_id: str) -> Head | None:
        row = self._table.get(space_pk(space_id), HEAD)
        return None if row is None else head_of(row)

    def _write(self, space_id: str, row: Row, when: When, landed: Callable[[Head], bool]) -> bool:
        """Change HEAD's lease attributes; False if the condition did not hold.

        A write without an answer is settled by looking: `landed` says of HEAD whether it happened.
        """

        def seen() -> bool:
            head = self._head(space_id)
            return head is not None and landed(head)

        return settled(self._table, [Update(space_pk(space_id), HEAD, assign=row, when=when)], seen)


def _never(head: Head) -> bool:  # noqa: ARG001 - raising twice does no harm
    return False
