"""The use case of the control plane: commands of a space's governance, carried out and read back (KIP §28).

What lives here: the one road by which records change, and what may be told of them to whom. What must never live
here: decisions about memory (`core.governance.access`) and transports. Who calls has verified the principal; whether
it is the host's operator, who may step in where the records have locked everybody out, is the transport's to say.

Every change is a commit of class `management` on the space's own log, with the command in its Commit Record: one
place for state, history and audit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from core.authority import PERMISSIONS, Action, Principal, authorize
from core.epistemic.trust import TrustState, trust_of, with_trust
from core.errors import NoemaError
from core.governance.access import Access, admit
from core.governance.audit import Entry, entry_of, record_of
from core.governance.commands import (
    AnyCommand,
    Classify,
    Declassify,
    Quarantine,
    Release,
    SetInfluence,
    SetSelf,
    SetTrust,
    apply,
    bumped,
    name_of,
)
from core.governance.control import CEILINGS, Control, control_of, to_json, with_control
from core.governance.lineage import rank
from core.governance.standing import Permit, check_gain, permit
from core.model.elements import AnyElement, Concept, Governance, Json
from core.model.instants import Instant
from core.model.log import SpaceMeta
from core.ports import Clock
from core.service.commit import Commits
from core.service.refusals import Refusals
from core.service.spaces import Spaces
from core.service.standings import GOVERNED
from core.service.values import Idempotency, Proposal
from core.state.space import SpaceState
from core.transaction.draft import Draft

MAX_TARGETS = 1_000  # elements of one command
_PAGE, _CHUNK = 1_000, 256


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a command came to.

    version: of the records afterwards. effect: whether anything changed. id: of what the command made, if it did.
    """

    operation: str
    version: int
    effect: bool
    tx_id: str | None = None
    space_seq: int = 0
    id: str | None = None


class GovernanceService:
    """Runs commands of the control plane. Safe to share between threads.

    Args:
        spaces: reads.
        commits: the one commit loop.
        clock: the time.
        refusals: counts what was refused; None: nobody does.
    """

    def __init__(
        self, spaces: Spaces, commits: Commits, clock: Clock, *, refusals: Refusals | None = None
    ) -> None:
        self._spaces = spaces
        self._commits = commits
        self._clock = clock
        self._refusals = refusals

    # --- commands

    def execute(
        self,
        space_id: str,
        command: AnyCommand,
        principal: Principal,
        *,
        deadline: Instant,
        operator: bool = False,
        idempotency: Idempotency | None = None,
        expected: int | None = None,
    ) -> Outcome:
        """Carry out a command under the records in force when it commits.

        A space's first command gives it records; until then its owner, and the host, are all who may send one.

        Args:
            space_id: the space.
            command: see `core.governance.commands.decode_command`.
            principal: the verified caller.
            deadline: when to give up (ms).
            operator: the host vouches for the caller (Governance §171); the audit says so.
            idempotency: the retry key.
            expected: the version of the records that the caller has read; None for any.

        Raises:
            NoemaError: VersionConflict where the records have moved; NotAuthorized, RequiresApproval, RequiresStrongerAuthentication; what is wrong with the
                command; NotFoundOrNotVisible for elements there are not; else as `Commits.commit`.
        """

        def decide(state: SpaceState) -> Proposal:
            attempt = _Attempt(state, command, principal, max(self._clock.now(), state.at), operator=operator)
            _check_version(attempt.before, expected)
            return attempt.proposal()

        with self._counting(space_id, principal):
            committed = self._commits.commit(space_id, decide, deadline=deadline, idempotency=idempotency)
        return msgspec.convert(committed.outcome, Outcome)

    @contextmanager
    def _counting(self, space_id: str, principal: Principal) -> Iterator[None]:
        """Count what is refused."""
        try:
            yield
        except NoemaError as error:
            if self._refusals is not None:
                self._refusals.note(space_id, principal, error.code, error.details)
            raise

    # --- reading

    def describe(self, space_id: str, principal: Principal, *, operator: bool = False) -> dict[str, Json]:
        """Every record of a space, for who may audit or manage it.

        Raises:
            NoemaError: NotAuthorized.
        """
        state = self._spaces.load(space_id)
        self._check_reader(state, principal, operator=operator)
        return self._described(state)

    def as_of(
        self,
        space_id: str,
        principal: Principal,
        *,
        seq: int | None = None,
        time: Instant | None = None,
        version: int | None = None,
        operator: bool = False,
    ) -> dict[str, Json]:
        """The records that were in force at a point of the log, for who may audit today (Governance §176-179).

        Raises:
            NoemaError: NotAuthorized, HistoricalSnapshotUnavailable.
        """
        self._check_reader(self._spaces.load(space_id), principal, operator=operator)
        return self._described(self._spaces.load_at(space_id, seq=seq, time=time, version=version))

    def effective(
        self, space_id: str, principal: Principal, subject: str | None = None, *, operator: bool = False
    ) -> dict[str, Json]:
        """What a principal may do: of oneself for everybody, of another for who may audit (Governance §266).

        Raises:
            NoemaError: NotAuthorized.
        """
        state = self._spaces.load(space_id)
        who = principal
        if subject is not None and subject != principal.id:
            self._check_reader(state, principal, operator=operator)
            who = Principal(subject, principal.channel)
        admitted = admit(who, state.meta, state, self._clock.now())
        access = admitted.access
        if access is None:
            held: Json = "everything" if who.permissions is None else sorted(who.permissions)
            return {"principal": who.id, "governed": False, "permissions": held}
        control = control_of(state.meta) or Control(version=0)
        return {
            "principal": who.id,
            "governed": True,
            "policy_version": access.version,
            "owner": who.id in control.owners,
            "permissions": sorted(access.anywhere),
            "sees_everything": access.open,
            "actors": [to_json(each) for each in control.bindings if each.principal == who.id],
            "delegations": [to_json(each) for each in control.delegations if who.id in {each.delegate, each.delegator}],
        }  # fmt: skip

    def decide(
        self,
        space_id: str,
        principal: Principal,
        subject: Principal,
        action: Action,
        element_id: str | None = None,
        *,
        operator: bool = False,
    ) -> dict[str, Json]:
        """Whether a caller would be let through now, and by which records: for who may audit (Governance §178).

        Raises:
            NoemaError: NotAuthorized; ConstraintViolation for no action; NotFoundOrNotVisible for no element.
        """
        state = self._spaces.load(space_id)
        self._check_reader(state, principal, operator=operator)
        if action not in PERMISSIONS:
            raise NoemaError("ConstraintViolation", f"actions are {', '.join(PERMISSIONS)}")
        element = None if element_id is None else state.get(element_id)
        if element_id is not None and element is None:
            raise NoemaError("NotFoundOrNotVisible", "there is no such element")
        who = admit(subject, state.meta, state, self._clock.now())
        try:
            authorize(who, action, element)
        except NoemaError as error:
            return {"decision": "deny", "reason": error.code, "message": error.message}
        used = [] if who.access is None else who.access.used
        return {"decision": "allow", "records": list(used)}

    def audit(
        self,
        space_id: str,
        principal: Principal,
        *,
        after: int | None = None,
        limit: int = 100,
        control_only: bool = False,
        operator: bool = False,
    ) -> tuple[list[Entry], int]:
        """Entries of the commits after a log version, oldest first, and the version to go on from.

        None as `after` begins with the oldest that is kept.

        Raises:
            NoemaError: NotAuthorized for who has no `read_audit`; HistoricalSnapshotUnavailable for a version before
                what is kept.
        """
        state = self.check_auditor(space_id, principal, operator=operator)
        if after is None:
            after = max(self._spaces.head(space_id).floor - 1, 0)
        found: list[Entry] = []
        limit = min(max(limit, 1), _PAGE)
        while after < state.ver and len(found) < limit:
            deltas = self._spaces.deltas(space_id, after, _CHUNK)
            if not deltas:
                break
            for delta in deltas:
                after = delta.ver
                entry = entry_of(delta)
                if entry is not None and not (control_only and entry.operation == "commit"):
                    found.append(entry)
                if len(found) == limit:
                    break
        return found, after

    # --- who may read them

    def check_auditor(self, space_id: str, principal: Principal, *, operator: bool = False) -> SpaceState:
        """The space's state, for who may read its audit.

        Raises:
            NoemaError: NotAuthorized for who has no `read_audit`.
        """
        state = self._spaces.load(space_id)
        if not operator:
            self._check_permission(state, principal, ("read_audit",))
        return state

    def _described(self, state: SpaceState) -> dict[str, Json]:
        control = control_of(state.meta)
        records: Json = None if control is None else to_json(control)
        return {
            "governed": control is not None,
            "owners": [state.meta.owner] if control is None else list(control.owners),
            "records": records,
            "trust": msgspec.to_builtins(trust_of(state.meta)),
            "self": state.meta.self_identity,
        }

    def _check_reader(self, state: SpaceState, principal: Principal, *, operator: bool) -> None:
        if not operator:
            self._check_permission(state, principal, ("read_audit", "manage_policy", "manage_grants"))

    def _check_permission(self, state: SpaceState, principal: Principal, names: tuple[str, ...]) -> None:
        control = control_of(state.meta) or _first(state.meta)
        access = Access(principal, control, state, self._clock.now())
        if any(access.may(name) for name in names):
            return
        with self._counting(state.meta.space_id, principal):
            raise NoemaError(
                "NotAuthorized",
                "you may not read this space's governance",
                details={"permissions": list(names)},
            )


def _check_version(control: Control, expected: int | None) -> None:
    if expected is not None and expected != control.version:
        raise NoemaError(
            "VersionConflict",
            f"the records are at version {control.version}, not {expected}",
            hint="Read them again and decide on what they are now.",
            details={"version": control.version, "expected": expected},
        )


def _first(meta: SpaceMeta) -> Control:
    """The records of a space that has none: its owner, and scopes as before."""
    control = Control(version=0, owners=(meta.owner,))
    scopes = msgspec.structs.replace(control.policy, default="scopes")
    return msgspec.structs.replace(control, policy=scopes)


class _Attempt:
    """One attempt at one command, on one state."""

    def __init__(
        self,
        state: SpaceState,
        command: AnyCommand,
        principal: Principal,
        now: Instant,
        *,
        operator: bool,
    ) -> None:
        self.state = state
        self.command = command
        self.principal = principal
        self.now = now
        self.before = control_of(state.meta) or _first(state.meta)
        self.permit: Permit = permit(
            self.before,
            command,
            principal.id,
            now,
            bound=principal.permissions,
            strong=principal.strong,
            operator=operator,
        )
        self.draft = Draft(state, now=now, origin=principal.origin, transaction_class="management")

    def proposal(self) -> Proposal:
        """What to commit, and the outcome to give."""
        name = name_of(self.command)
        asked = f"approval:{self.draft.tx_id}"
        after = apply(self.before, self.command, self.principal.id, self.now, asked)
        after = self._on_elements(after)
        made = asked if any(each.id == asked for each in after.approvals) else None
        used = self.permit.approval
        if used is not None:
            kept = tuple(each for each in after.approvals if each.id != used.id)
            after = msgspec.structs.replace(after, approvals=kept)
        if not self.permit.operator:
            check_gain(self.before, after, self.principal.id, self.now)
        stood = control_of(self.state.meta) is not None
        if self._is_idle(after) and stood:
            idle = self._outcome(name, self.before.version, effect=False)
            return Proposal(None, msgspec.to_builtins(idle))
        after = msgspec.structs.replace(after, version=self.before.version + 1)
        self.draft.meta = with_control(self.draft.meta, after)
        delta = self.draft.finish(record_of(self.command, self.permit, self.before.version, after.version))
        assert delta is not None, "the version has moved"
        outcome = msgspec.structs.replace(
            self._outcome(name, after.version, effect=True), tx_id=delta.tx_id, space_seq=delta.seq, id=made
        )
        return Proposal(delta, msgspec.to_builtins(outcome), head={GOVERNED: True})

    def _is_idle(self, after: Control) -> bool:
        same = bumped(self.before, after) is self.before
        return same and not self.draft.changes() and self.draft.meta == self.state.meta

    def _outcome(self, name: str, version: int, *, effect: bool) -> Outcome:
        return Outcome(operation=name, version=version, effect=effect, space_seq=self.state.seq)

    # --- commands about elements and other protected state

    def _on_elements(self, control: Control) -> Control:
        command = self.command
        if isinstance(command, SetTrust):
            self._trust(command)
        elif isinstance(command, SetSelf):
            self._self(command)
        elif isinstance(command, (Classify, Declassify)):
            self._label(command, control)
        elif isinstance(command, (Quarantine, Release)):
            return self._quarantine(command, control)
        elif isinstance(command, SetInfluence):
            for element in self._elements(command.ids):
                self._govern(element, authority=command.ceiling)
        return control

    def _trust(self, command: SetTrust) -> None:
        now = trust_of(self.draft.meta)
        try:
            wanted = msgspec.convert(
                {"records": command.records, "default": command.default, "version": now.version}, TrustState
            )
        except msgspec.ValidationError as error:
            raise NoemaError("InvalidRequestEnvelope", f"this is no trust state: {error}") from error
        if wanted != now:
            self.draft.meta = with_trust(
                self.draft.meta, msgspec.structs.replace(wanted, version=now.version + 1)
            )

    def _self(self, command: SetSelf) -> None:
        if command.concept is not None and not isinstance(self.draft.get(command.concept), Concept):
            raise NoemaError("NotFoundOrNotVisible", "a space's self is a Concept of it")
        self.draft.set_meta(self_identity=command.concept)

    def _label(self, command: Classify | Declassify, control: Control) -> None:
        order, default = control.policy.classifications, control.policy.default_classification
        label = command.label
        if label is not None and label not in order:
            raise NoemaError(
                "ConstraintViolation",
                f"there is no classification {label[:80]!r}",
                details={"classifications": list(order)},
            )
        for element in self._elements(command.ids):
            has = element.governance.classification
            falls = rank(label, order, default) < rank(has, order, default)
            if isinstance(command, Classify) and falls:
                raise NoemaError(
                    "NotAuthorized",
                    "this label is less restricted than the element's: that is declassifying",
                    details={"element": element.id, "permissions": ["declassify"]},
                )
            self._govern(element, classification=label)

    def _quarantine(self, command: Quarantine | Release, control: Control) -> Control:
        wanted = isinstance(command, Quarantine)
        moved = 0
        for element in self._elements(command.ids):
            moved += element.governance.quarantined != wanted
            self._govern(element, quarantined=wanted)
        count = control.quarantined + (moved if wanted else -moved)
        return msgspec.structs.replace(control, quarantined=max(count, 0))

    def _elements(self, ids: tuple[str, ...]) -> list[AnyElement]:
        if not ids or len(ids) > MAX_TARGETS:
            raise NoemaError("ConstraintViolation", f"a command names 1 to {MAX_TARGETS} elements")
        access = Access(self.principal, self.before, self.state, self.now)
        found = []
        for element_id in dict.fromkeys(ids):
            element = self.draft.get(element_id)
            if element is None or element.system.state == "purged" or not self._may_govern(element, access):
                raise NoemaError("NotFoundOrNotVisible", "there is no such element, or you may not see it")
            found.append(element)
        return found

    def _may_govern(self, element: AnyElement, access: Access) -> bool:
        """Whether the caller may do on this very element what the command does."""
        if self.permit.operator:
            return True
        return access.sees(element) and access.can(self.permit.permission, element)

    def _govern(self, element: AnyElement, **fields: Any) -> None:  # fields of Governance
        governance: Governance = msgspec.structs.replace(element.governance, **fields)
        if governance.authority == CEILINGS[0]:  # the least there is, which is what an element has without it
            governance = msgspec.structs.replace(governance, authority=None)
        self.draft.change(element, governance=governance)
