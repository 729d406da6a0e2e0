"""The control plane of one space as values: who is who, who may do what, and under which policy (KIP §28).

What lives here: the records, and where protected state keeps them. What must never live here: decisions
(`access`), changes (`commands`), and anything that an author of memory can write. The records stand in the
space's protected state (`SpaceMeta.extensions`), on the same log as its memory: so every version of them is kept,
`AS OF` reads them, every change has a commit, and no KML clause reaches them.

A space without these records is governed by the scopes of its tokens alone, and its owner may do everything.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from core.errors import NoemaError
from core.model.elements import Json
from core.model.ids import Kind
from core.model.instants import Instant
from core.model.log import SpaceMeta

EVERYONE: Final = "*"
LATTICE: Final = ("public", "internal", "private", "sensitive", "secret")
"""The usual labels, least restricted first (Governance §93)."""

MAX_RECORDS: Final = 5_000  # of one space: protected state is read whole
MAX_BYTES: Final = 4 * 1024 * 1024

Effect = Literal["allow", "deny"]
Standing = Literal["active", "suspended", "revoked"]
Ceiling = Literal["descriptive", "advisory", "behavioral", "executable"]
CEILINGS: Final[tuple[Ceiling, ...]] = ("descriptive", "advisory", "behavioral", "executable")
"""How strongly a memory may influence action, least first (KIP §31.3). It is no tool permission."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What every record is: a value with a strict JSON form."""


class Selector(Record, frozen=True):
    """Which elements a record is about, by trusted properties alone (Governance §90); empty: all of them.

    Members given must all hold; within one, any value does.

    kinds: of element. types: exact `schema_ref` of Concepts, or a package reference for all of its types.
    predicates: exact references, of Propositions and of the Assertions about them. classifications: labels; an
    element without one has the policy's default. ids: single elements. origins: the principals that wrote them.
    own: written by the caller. imported: came with an import.
    """

    kinds: tuple[Kind, ...] = ()
    types: tuple[str, ...] = ()
    predicates: tuple[str, ...] = ()
    classifications: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    own: bool | None = None
    imported: bool | None = None


ANYTHING: Final = Selector()


class Rule(Record, frozen=True):
    """A grant or an explicit deny (KIP §28.5, §30.2).

    subjects: `principal:<id>`, `group:<name>` or `*`. permissions: names of KIP §29, `role:<name>`, or `*`.
    where: the elements it is about. fields: of a grant to read, the dot paths that stay hidden; of a deny, the
    paths that are hidden, and then nothing else is denied. since, until: when it is in force (ms).
    """

    id: str
    effect: Effect
    subjects: tuple[str, ...]
    permissions: tuple[str, ...]
    where: Selector = ANYTHING
    fields: tuple[str, ...] = ()
    since: Instant | None = None
    until: Instant | None = None


class Delegation(Record, frozen=True):
    """Part of one principal's authority, lent to another (KIP §28.5).

    It gives what the delegator may do at the moment of use and no more, and not a delegation's authority unless
    that one says `redelegable`.
    """

    id: str
    delegator: str
    delegate: str
    permissions: tuple[str, ...]
    where: Selector = ANYTHING
    until: Instant | None = None
    redelegable: bool = False


class Binding(Record, frozen=True):
    """ActorBinding: a principal may speak as a semantic actor, about some claims or all (KIP §28.3)."""

    id: str
    principal: str
    actor: str
    binding_class: Literal[
        "self", "service_identity", "represents", "organization_agent", "maintenance_identity"
    ] = "represents"
    where: Selector = ANYTHING
    until: Instant | None = None


class Party(Record, frozen=True):
    """A principal the space has something to say of; all others are active (Governance §8-9)."""

    id: str
    principal_class: str = "agent"
    status: Standing = "active"


class Group(Record, frozen=True):
    """A named set of principals; protected, never derived from what a memory says."""

    name: str
    members: tuple[str, ...] = ()


class Role(Record, frozen=True):
    """A name for several permissions; the permissions are what counts (Governance §27)."""

    name: str
    permissions: tuple[str, ...]


class Approval(Record, frozen=True):
    """A request for approval and who has approved it (Governance §167-170).

    operation: the name of a command of the control plane, or a permission. digest: what exactly was asked. ids: of
    an operation on memory, the elements. until: it is good for nothing afterwards.
    """

    id: str
    operation: str
    requested_by: str
    digest: str
    until: Instant
    ids: tuple[str, ...] = ()
    approved_by: tuple[str, ...] = ()


class Policy(Record, frozen=True):
    """What decides where no record does.

    default: `deny`: nothing is allowed without a grant. `scopes`: what a token's scope allows is allowed, and grants
    and denies adjust it; a scope is an upper bound in both. classifications: the labels there are, least
    restricted first; default_classification: of elements without one. approvals: operation -> how many principals
    must approve it, the requester not among them. strong: permissions that take strong authentication.
    """

    default: Literal["deny", "scopes"] = "deny"
    classifications: tuple[str, ...] = LATTICE
    default_classification: str = "internal"
    approvals: dict[str, int] = {}
    strong: tuple[str, ...] = ()


class Control(Record, frozen=True):
    """Every record of a space. `version` moves with each change, so that it names the policy in force.

    owners: principals with every permission; a deny overrides that too, and a protocol invariant always does.
    quarantined: how many elements are in quarantine.
    """

    version: int
    owners: tuple[str, ...] = ()
    policy: Policy = Policy()
    parties: tuple[Party, ...] = ()
    groups: tuple[Group, ...] = ()
    roles: tuple[Role, ...] = ()
    rules: tuple[Rule, ...] = ()
    delegations: tuple[Delegation, ...] = ()
    bindings: tuple[Binding, ...] = ()
    approvals: tuple[Approval, ...] = ()
    quarantined: int = 0


_STORED: Final = "governance"  # where protected state keeps it


def control_of(meta: SpaceMeta) -> Control | None:
    """The control plane of a space, or None where it has none and scopes alone decide."""
    stored = meta.extensions.get(_STORED)
    return None if stored is None else msgspec.convert(stored, Control)


def is_governed(meta: SpaceMeta) -> bool:
    """Whether a space has records; asked without reading them."""
    return _STORED in meta.extensions


def with_control(meta: SpaceMeta, control: Control) -> SpaceMeta:
    """Protected state with these records.

    Raises:
        NoemaError: ResourceExhausted beyond the bounds.
    """
    stored: dict[str, Json] = msgspec.to_builtins(control)
    lists = ("parties", "groups", "roles", "rules", "delegations", "bindings", "approvals")
    records = sum(len(getattr(control, name)) for name in lists)
    if records > MAX_RECORDS or len(msgspec.json.encode(stored)) > MAX_BYTES:
        raise NoemaError(
            "ResourceExhausted",
            f"a space has at most {MAX_RECORDS} records of governance, of {MAX_BYTES} bytes in all",
            hint="Grant to groups instead of principals, and revoke what is no longer used.",
        )
    return msgspec.structs.replace(meta, extensions={**meta.extensions, _STORED: stored})


def to_json(record: Record) -> Any:  # the record as JSON values
    """A record as it is shown and kept."""
    return msgspec.to_builtins(record)
