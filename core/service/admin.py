"""Spaces as their owners and managers see them: create, resize, describe, configure, delete.

What lives here: use cases over the protected state of one space. What must never live here: who may call them
(a transport's verdict, made before) and anything an agent remembers. Every change is a management commit on the
space's own log, so it has an author, a time and a place in history.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET

from core.errors import NoemaError
from core.model.ids import check_space_id
from core.model.instants import Instant
from core.model.log import SchemaEnvironment, SpaceMeta, Tier
from core.models.chat import Usage as Spent
from core.models.tokens import check_tokenizer
from core.ports import Clock, Table
from core.protocol.http_types import (
    CreateSpaceInput,
    FormationStatus,
    MaintenanceAt,
    SpaceInfo,
    TierView,
    UpdateSpaceInput,
    Usage,
)
from core.schema.library import DEFAULT_PACKAGES
from core.service.commit import Birth, Commits
from core.service.faults import reading
from core.service.ledger import usage_of
from core.service.spaces import Spaces
from core.service.standings import GOVERNED, counts_for
from core.service.values import Caller, Proposal
from core.state.space import SpaceState
from core.state.view import Counts
from core.storage import layout
from core.storage.head import Head
from core.transaction.draft import Draft

PUBLIC: Final = "public"
"""The HEAD attribute that repeats `SpaceMeta.public`.

It is written in the same transaction, so that admitting an anonymous reader takes one small read, and takes the
same one whether the space is private or does not exist.
"""

_COLLECTIONS: Final = ("formation", "recall", "maintenance")
_WIKI: Final = ("wiki_digest", "wiki_audit_reads", "wiki_acl_defaults")


class Admin:
    """Use cases of owners and managers.

    Args:
        table, clock: the ports.
        spaces, commits: how spaces are read and written.
    """

    def __init__(self, table: Table, clock: Clock, spaces: Spaces, commits: Commits) -> None:
        self._table = table
        self._clock = clock
        self._spaces = spaces
        self._commits = commits

    def create_space(self, caller: Caller, wish: CreateSpaceInput, deadline: Instant) -> SpaceInfo:
        """Make a space with the default schema packages.

        Raises:
            NoemaError: `IdentityConflict` if the id is taken, `InvalidInput`, or as `Commits.create`.
        """
        check_space_id(wish.space_id)
        if not wish.user.isprintable() or wish.user != wish.user.strip():
            raise NoemaError("InvalidInput", "user must be a printable subject", details={"member": "user"})

        def describe(birth: Birth) -> SpaceMeta:
            return SpaceMeta(
                space_id=birth.space_id,
                instance=birth.instance,
                salt=birth.salt,
                owner=wish.user,
                created_at=birth.at,
                tier=Tier(wish.tier, birth.at),
                schema=SchemaEnvironment(version=1, packages=DEFAULT_PACKAGES),
            )

        def private(_: SpaceState) -> Proposal:
            # An earlier space of this id may have been public.
            return Proposal(None, head={PUBLIC: False, GOVERNED: False})

        self._commits.create(wish.space_id, describe, origin=caller.origin, deadline=deadline, seed=private)
        return self.info(wish.space_id)

    def update_tier(
        self, caller: Caller, space_id: str, wish: CreateSpaceInput, deadline: Instant
    ) -> TierView:
        """Give the space another size class; the body must name the space that the path names.

        Raises:
            NoemaError: `InvalidInput` for another space, `NotFoundOrNotVisible`, or as `Commits.commit`.
        """
        if wish.space_id != space_id:
            raise NoemaError(
                "InvalidInput",
                "the body names another space than the path",
                details={"member": "space_id", "expected": space_id},
            )
        tier = Tier(wish.tier, self._clock.now())
        self._change(caller, space_id, deadline, {"tier": tier})
        return TierView(tier=tier.tier, updated_at=tier.updated_at)

    def update_space(self, caller: Caller, space_id: str, wish: UpdateSpaceInput, deadline: Instant) -> bool:
        """Change a space's name, description, publicity or memory policy; what is absent stays.

        Raises:
            NoemaError: `InvalidInput` if nothing is named, `NotImplementedYet` for the wiki's settings,
                `NotFoundOrNotVisible`, or as `Commits.commit`.
        """
        wished = {name: getattr(wish, name) for name in UpdateSpaceInput.__struct_fields__}
        fields = {name: value for name, value in wished.items() if value is not UNSET}
        for name in _WIKI:
            if name in fields:
                raise NoemaError(
                    "NotImplementedYet",
                    f"{name}: this deployment has no wiki",
                    hint="Leave the member out.",
                    details={"member": name},
                )
        if not fields:
            raise NoemaError("InvalidInput", "the body names nothing to change")
        if "memory_policy" in fields:
            budget = fields["memory_policy"].recall_budget
            check_tokenizer(
                None if budget is None else budget.tokenizer, "memory_policy.recall_budget.tokenizer"
            )
            fields["memory_policy"] = msgspec.to_builtins(fields["memory_policy"])
        self._change(caller, space_id, deadline, fields)
        return True

    def _change(self, caller: Caller, space_id: str, deadline: Instant, fields: dict[str, Any]) -> None:
        def decide(state: SpaceState) -> Proposal:
            draft = Draft(state, now=self._clock.now(), origin=caller.origin, transaction_class="management")
            draft.set_meta(**fields)
            head = {PUBLIC: fields["public"]} if "public" in fields else {}
            return Proposal(draft.finish({"changed": sorted(fields)}), head=head)

        self._commits.commit(space_id, decide, deadline=deadline)

    # --- reading

    def is_public(self, space_id: str) -> bool:
        """Whether anybody may read the space; False for a space that does not exist."""
        try:
            return self._spaces.head(space_id).row.get(PUBLIC) is True
        except NoemaError as error:
            if error.code != "NotFoundOrNotVisible":
                raise
            return False

    def info(self, space_id: str, caller: Caller | None = None) -> SpaceInfo:
        """What a space is and how much it holds; of a governed space, how much of it exists for the caller.

        Raises:
            NoemaError: `NotFoundOrNotVisible`, `ServiceUnavailable`.
        """
        with reading():
            head, state = self._spaces.read_current(space_id)
            counters = {name: self._counter(space_id, name, head) for name in _COLLECTIONS}
            maintained = self._maintained(space_id)
            spent = usage_of(self._table.get(layout.space_pk(space_id), layout.ledger_total_sk()) or {})
        meta = state.meta
        counts = counts_for(caller, state, self._clock.now())
        if counts is not None:
            return _partly(meta, head, counts)
        return SpaceInfo(
            id=space_id,
            space_id=space_id,
            name=meta.name,
            description=meta.description,
            owner=meta.owner,
            db_stats=_stats(head),
            concepts=state.counts.concept,
            propositions=state.counts.proposition,
            conversations=counters["formation"].get("n", 0),
            public=meta.public,
            tier=TierView(tier=meta.tier.tier, updated_at=meta.tier.updated_at),
            formation_usage=_usage(spent["formation"]),
            recall_usage=_usage(spent["recall"]),
            maintenance_usage=_usage(spent["maintenance"]),
            formation_processed_id=head.number("formed"),
            maintenance_processed_id=head.number("maintained"),
            maintenance_at=maintained,
        )

    def formation_status(self, space_id: str, caller: Caller | None = None) -> FormationStatus:
        """How far formation has come; who may not see all of a governed space is told nothing of others' work.

        Raises:
            NoemaError: `NotFoundOrNotVisible`, `ServiceUnavailable`.
        """
        now = self._clock.now()
        with reading():
            head, state = self._spaces.read_current(space_id)
            counter = self._counter(space_id, "formation", head)
            maintained = self._maintained(space_id)
        counts = counts_for(caller, state, now)
        if counts is not None:
            return FormationStatus(
                id=space_id,
                concepts=counts.concept,
                propositions=counts.proposition,
                maintenance_at=MaintenanceAt(),
                **_NOBODYS,
            )
        return FormationStatus(
            id=space_id,
            concepts=state.counts.concept,
            propositions=state.counts.proposition,
            conversations=counter.get("n", 0),
            formation_processing=head.lease_until("formation") > now,
            maintenance_processing=head.lease_until("maintenance") > now,
            formation_processed_id=head.number("formed"),
            maintenance_processed_id=head.number("maintained"),
            maintenance_at=maintained,
            formation_waiting=max(0, counter.get("n", 0) - head.number("formed")),
            formation_cancelled=counter.get("cancelled", 0),
            formation_last_cancelled=counter.get("last_cancelled", 0),
        )

    def _maintained(self, space_id: str) -> MaintenanceAt:
        row = self._table.get(layout.space_pk(space_id), layout.maintenance_sk()) or {}
        known = {"start_at": row.get("start_at")}
        known |= {scope: row.get(f"at_{scope}") for scope in ("daydream", "full", "quick")}
        return MaintenanceAt(**{name: at for name, at in known.items() if isinstance(at, int)})

    def _counter(self, space_id: str, collection: str, head: Head) -> dict[str, int]:
        row = self._table.get(layout.space_pk(space_id), layout.counter_sk(collection)) or {}
        if row.get("instance", head.instance) != head.instance:
            return {}  # of an earlier life of the space's id
        return {name: value for name, value in row.items() if isinstance(value, int)}


_NOBODYS: Final[dict[str, Any]] = {
    "conversations": 0,
    "formation_processing": False,
    "maintenance_processing": False,
    "formation_processed_id": 0,
    "maintenance_processed_id": 0,
    "formation_waiting": 0,
    "formation_cancelled": 0,
    "formation_last_cancelled": 0,
}
"""What is said of everybody's work to who may not see all of it."""


def _partly(meta: SpaceMeta, head: Head, counts: Counts) -> SpaceInfo:
    """A space as who sees a part of it knows it."""
    return SpaceInfo(
        id=meta.space_id,
        space_id=meta.space_id,
        name=meta.name,
        description=meta.description,
        owner=meta.owner,
        db_stats={"version": head.ver, "space_seq": head.seq},
        concepts=counts.concept,
        propositions=counts.proposition,
        conversations=0,
        public=meta.public,
        tier=TierView(tier=meta.tier.tier, updated_at=meta.tier.updated_at),
        formation_usage=Usage(),
        recall_usage=Usage(),
        maintenance_usage=Usage(),
        formation_processed_id=0,
        maintenance_processed_id=0,
        maintenance_at=MaintenanceAt(),
    )


def _usage(spent: Spent) -> Usage:
    return Usage(**msgspec.structs.asdict(spent))


def _stats(head: Head) -> dict[str, int]:
    return {
        "version": head.ver,
        "space_seq": head.seq,
        "last_commit_at": head.at,
        "commits_since_snapshot": head.log_n,
        "bytes_since_snapshot": head.log_bytes,
    }
