"""Restoring a whole space from a backup, of any size, in bounded memory (KIP §38.5, §39.4; Capsule design §222-§226).

What lives here: two readings of the backup. The first writes nothing: it checks every line, the digest, the signatures
and the schema, and plans the transactions. The second writes them into a new space that nobody can read until the last
one has landed, so no half of a memory is ever seen. What must never live here: merging; a restore goes into a space of
its own, which is empty.

Ids need no table. A backup counts its records (`core.capsule.stream`), so the place of each is known from its ref, and
with it the transaction and the id it will have here.

What it takes to call a backup this brain's own: a signature by this deployment's key or by one the operator named, or
the operator's word for it; and the operator, who alone can make spaces. It brings no authority back: tokens, grants,
trust and publicity are not in it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from core.capsule.apply import CHANNEL, CLASSES
from core.capsule.check import Ends, check_record
from core.capsule.format import (
    PLURAL,
    AnyRecord,
    AssertionRecord,
    ConceptRecord,
    ObjectTerm,
    Pointer,
    PropositionRecord,
)
from core.capsule.lineage import Imports, Lineage, source_name, with_imports
from core.capsule.read import pointers
from core.capsule.records import Landing, retention_of
from core.capsule.stream import Lines, kind_of_ref, lines_of
from core.capsule.verify import verified_proofs, verify_artifact
from core.errors import NoemaError
from core.model.elements import Governance, Origin, SourceRef
from core.model.ids import Kind, element_id
from core.model.log import SchemaEnvironment, SpaceMeta, Tier
from core.model.proofs import Verdict
from core.ports import Clock, Entropy, Objects, Table, Verifier
from core.protocol.capsule_types import RestoreAsk
from core.schema.environment import Environment, environment_of, install_package, set_active_packages
from core.schema.library import DEFAULT_PACKAGES
from core.service.capsules import SPACE_EXTENSION
from core.service.commit import Birth, Commits
from core.service.spaces import Spaces
from core.service.values import Caller, Proposal
from core.state.space import SpaceState
from core.storage.head import RESTORING
from core.transaction.draft import Draft

BATCH_RECORDS: Final = 4_000
BATCH_BYTES: Final = 5 * 1024 * 1024  # of record lines; compressed they are well below a transaction's bound
_OPEN_MS: Final = 600_000  # to make one transaction durable; a restore has no caller who waits for seconds

Source = Callable[[], Iterable[bytes]]  # opens the backup anew and gives its lines


class Plan(msgspec.Struct, frozen=True):
    """What the first reading found: the digest, the proofs, and where each transaction begins.

    starts: the place of the first record of each transaction. offsets: the place of each kind's first record.
    """

    digest: str
    proofs: list[dict[str, Any]]
    starts: list[int]
    offsets: dict[Kind, int]
    total: int

    def place(self, kind: Kind, number: int) -> int:
        """The place of the record `number` of a kind, from 0."""
        return self.offsets[kind] + number - 1

    def id_of(self, place: int, kind: Kind, base: int, salt: str) -> str:
        """The id that the record at a place gets: by its transaction, and its number in it."""
        batch = bisect_right(self.starts, place) - 1
        return element_id(kind, base + 1 + batch, place - self.starts[batch], salt)


class Restores:
    """Restores backups.

    Args:
        table, objects, clock, entropy: the ports.
        verifier: checks signatures; None understands none.
    """

    def __init__(
        self,
        table: Table,
        objects: Objects,
        clock: Clock,
        entropy: Entropy,
        *,
        verifier: Verifier | None = None,
    ) -> None:
        self._clock = clock
        self._verifier = verifier
        self._spaces = Spaces(table, objects, clock, restoring=True)
        self._commits = Commits(table, objects, clock, entropy, self._spaces)

    def examine(self, source: Source, ask: RestoreAsk) -> tuple[Plan, SpaceMeta]:
        """Read a backup and say what restoring it comes to; nothing is written.

        Raises:
            NoemaError: what is wrong with it, or why it may not be restored.
        """
        lines = Lines(source())
        meta = self._meta(lines, Birth("restore", "", "", self._clock.now()), ask)
        env = environment_of(meta)
        types: list[str] = []
        starts, size = [0], 0
        counts = lines.counts
        offsets, total = {}, 0
        for kind in PLURAL:
            offsets[kind] = total
            total += counts[kind]
        for place, (kind, record) in enumerate(lines.records()):
            if isinstance(record, ConceptRecord):
                types.append(record.schema_ref)
            _check(env, _ends(lines, types), kind, record)
            if place - starts[-1] == BATCH_RECORDS or size > BATCH_BYTES:
                starts.append(place)
                size = 0
            size += len(msgspec.json.encode(record))
        digest = lines.finish()
        assert lines.integrity is not None, "finished"
        shape = msgspec.structs.replace(lines.artifact, integrity=lines.integrity)
        proofs = verified_proofs(shape, digest, self._check)
        return Plan(digest, proofs, starts, offsets, total), meta

    def restore(
        self, caller: Caller, space_id: str, source: Source, ask: RestoreAsk, told: Callable[[int, int], None]
    ) -> dict[str, Any]:
        """Restore a backup into a new space, whole or not at all for any reader.

        Args:
            caller: the operator.
            space_id: the new space's id.
            source: opens the backup; it is read twice.
            ask: how.
            told: called with how many records have been written, of how many.

        Raises:
            NoemaError: what is wrong with the backup; IdentityConflict if the space exists; NotAuthorized if nothing
                says that the backup is this brain's own. A restore that fails later leaves a space that nobody can
                read, to be deleted.
        """
        plan, _ = self.examine(source, ask)
        continuity = _continuity(plan, ask)
        lines = Lines(source())
        self._born(caller, space_id, lines, ask)
        base = self._spaces.load(space_id)
        running = _Running(self._clock, self._commits, caller, plan=plan, base=base, lines=lines)
        written = 0
        for batch in _batches(lines.records(), plan.starts):
            running.write(batch, written)
            written += len(batch)
            told(written, plan.total)
        if lines.finish() != plan.digest:
            raise NoemaError("DigestMismatch", "the backup has changed while it was read")
        seq = running.open(continuity)
        return {
            "space_id": space_id,
            "capsule_digest": plan.digest,
            "records": plan.total,
            "transactions": len(plan.starts),
            "space_seq": seq,
            "continuity": continuity,
            "proofs": plan.proofs,
            "self_restored": lines.payload.source.identity is not None,
        }

    def restore_artifact(
        self, caller: Caller, space_id: str, artifact: dict[str, Any], ask: RestoreAsk
    ) -> dict[str, Any]:
        """As `restore`, of a backup that is one JSON value; it is verified as that before its lines are read."""
        verify_artifact(artifact, self._check)
        return self.restore(caller, space_id, lambda: lines_of(artifact), ask, lambda _, __: None)

    def _check(self, key_id: str, payload: bytes, value: bytes) -> Verdict:
        return Verdict(valid=None) if self._verifier is None else self._verifier.check(key_id, payload, value)

    # --- the new space

    def _meta(self, lines: Lines, birth: Birth, ask: RestoreAsk) -> SpaceMeta:
        payload = lines.payload
        if payload.manifest.kind != "snapshot" or payload.manifest.completeness != "space_complete":
            raise NoemaError(
                "ImportPreviewConflict",
                "only a backup of a whole space is restored; this is a selection or a delta",
                hint="Import it with mode merge.",
            )
        about = payload.extensions.get(SPACE_EXTENSION, {})
        tier = ask.tier if ask.tier is not None else about.get("tier", 2)
        meta = SpaceMeta(
            space_id=birth.space_id,
            instance=birth.instance,
            salt=birth.salt,
            owner=ask.owner,
            created_at=birth.at,
            tier=Tier(tier if isinstance(tier, int) and 0 <= tier <= 14 else 2, birth.at),
            schema=SchemaEnvironment(version=1, packages=DEFAULT_PACKAGES),
            name=_text(about.get("name")),
            description=_text(about.get("description")),
            memory_policy=about["memory_policy"] if isinstance(about.get("memory_policy"), dict) else {},
        )
        return _with_packages(meta, lines, ask)

    def _born(self, caller: Caller, space_id: str, lines: Lines, ask: RestoreAsk) -> None:
        self._commits.create(
            space_id,
            lambda birth: self._meta(lines, birth, ask),
            origin=caller.origin,
            deadline=self._clock.now() + _OPEN_MS,
            seed=lambda _: Proposal(None, head={"public": False, RESTORING: 1}),
        )


class _Running:
    """The second reading: transactions into a new space."""

    def __init__(
        self, clock: Clock, commits: Commits, caller: Caller, *, plan: Plan, base: SpaceState, lines: Lines
    ) -> None:
        self._clock = clock
        self._commits = commits
        self._caller = caller
        self._plan = plan
        self._base = base
        self._lines = lines
        self._landing = Landing(self._land, lines.blobs)

    def _id_of(self, place: int, kind: Kind) -> str:
        return self._plan.id_of(place, kind, self._base.ver, self._base.meta.salt)

    def _land(self, pointer: Pointer | ObjectTerm) -> str | None:
        if pointer.ref is None:
            return None  # what the backup left outside stays outside
        kind = kind_of_ref(pointer.ref)
        assert kind is not None, "refs were checked"
        return self._id_of(self._plan.place(kind, int(pointer.ref[2:])), kind)

    def _commit(self, write: Callable[[Draft], None], told: dict[str, Any], head: dict[str, Any]) -> int:
        def decide(state: SpaceState) -> Proposal:
            now = max(self._clock.now(), state.at)
            draft = Draft(state, now=now, origin=self._caller.origin, transaction_class="import")
            write(draft)
            draft.origin = self._caller.origin
            record = {"capsule_digest": self._plan.digest, "mode": "restore", **told}
            return Proposal(draft.finish({"import": record}), head=head)

        space_id = self._base.meta.space_id
        return self._commits.commit(space_id, decide, deadline=self._clock.now() + _OPEN_MS).seq

    def write(self, batch: list[tuple[Kind, AnyRecord]], first: int) -> None:
        """One transaction, whose first record has the place `first`."""

        def write(draft: Draft) -> None:
            for place, (kind, record) in enumerate(batch, start=first):
                self._create(draft, self._id_of(place, kind), kind, record)

        self._commit(write, {}, {})

    def _create(self, draft: Draft, new_id: str, kind: Kind, record: AnyRecord) -> None:
        fields = self._landing.fields(record)
        if isinstance(record, ConceptRecord):
            fields |= {"key": record.key, "canonical_id": record.canonical_id}
            if record.key is not None and draft.find_concept(record.schema_ref, record.key) is not None:
                raise NoemaError("IdentityConflict", f"{record.ref}: two Concepts of one type have one key")
        elif kind == "proposition":
            found = draft.find_proposition(fields["subject"], fields["predicate_ref"], fields["object"])
            if found is not None:
                raise NoemaError("IdentityConflict", f"{record.ref}: two Propositions say the same")
        draft.origin = Origin(self._caller.subject, CHANNEL, None, _sources(record, self._lines))
        made = draft.create_as(
            new_id,
            CLASSES[kind],
            **fields,
            retention=retention_of(record.retention, holds=True),
            governance=Governance(classification=record.classification),
            client_key=record.client_key,
        )
        if record.state != "active":
            draft.change(made, state=record.state)

    def open(self, continuity: dict[str, Any]) -> int:
        """The last transaction: the space remembers what it was restored from, and may be read."""
        source, plan = self._lines.payload.source, self._plan
        signers = tuple(sorted(str(each["verification_method"]) for each in plan.proofs))
        lineage = Lineage(source.snapshot_seq, source.snapshot_tx, plan.digest, signers)
        imports = Imports({source_name(source.nexus_id, source.space_ref): lineage})
        me = source.identity

        def write(draft: Draft) -> None:
            draft.set_meta(extensions=with_imports(draft.meta, imports))
            if me is not None and me.ref is not None:
                draft.set_meta(self_identity=self._land(me))

        return self._commit(write, {"continuity": continuity}, {RESTORING: 0})


def _continuity(plan: Plan, ask: RestoreAsk) -> dict[str, Any]:
    """Why this may be called the brain's own backup (KIP §38.5).

    Raises:
        NoemaError: NotAuthorized if nothing says so.
    """
    known = [each for each in plan.proofs if each["signer_identity"] == "resolved"]
    if known:
        return {"basis": "signature", "signer": known[0]["signer"], "key": known[0]["verification_method"]}
    if ask.accept_unsigned:
        return {"basis": "operator", "signer": None}
    raise NoemaError(
        "NotAuthorized",
        "nothing shows that this backup is this brain's own: no signature of a key that is known here",
        hint="Name the key that signed it (NOEMA_SIGNERS), or accept it on your own word (--accept-unsigned).",
    )


def _with_packages(meta: SpaceMeta, lines: Lines, ask: RestoreAsk) -> SpaceMeta:
    """The new space with the packages its memory needs, as far as they are here or the operator wants them."""
    carried = {
        f"{each.package}@{each.version}": each for each in lines.payload.schema if each.artifact is not None
    }
    wanted = [f"{each.package}@{each.version}" for each in lines.payload.schema]
    missing = [ref for ref in wanted if ref not in meta.schema.packages]
    if not missing:
        return meta
    if not ask.activate_schema or any(ref not in carried for ref in missing):
        raise NoemaError(
            "SchemaPackageUnavailable",
            f"the backup needs packages that a new space does not have: {', '.join(missing)[:300]}",
            hint="Restore with --activate-schema a backup that was exported with its schema.",
            details={"packages": missing, "carried": sorted(carried)},
        )
    for ref in missing:
        meta = install_package(meta, carried[ref].artifact or {})
    return set_active_packages(meta, [*meta.schema.packages, *missing])


def _check(env: Environment, ends: Ends, kind: Kind, record: AnyRecord) -> None:
    try:
        check_record(env, ends, kind, record)
    except NoemaError as error:
        raise NoemaError(
            "CapsuleValidationFailed",
            f"{record.ref}: {error.message}",
            details={"ref": record.ref, "code": error.code, **error.details},
        ) from error
    if not isinstance(record, (PropositionRecord, AssertionRecord)):
        return
    for name, pointer, _ in pointers(record):
        if name in {"subject", "object", "proposition", "asserted_by"} and pointer.external is not None:
            raise NoemaError("CapsuleValidationFailed", f"{record.ref}: its {name} is not in the backup")


def _ends(lines: Lines, types: list[str]) -> Ends:
    """Kinds by the letters of refs, and types of the Concepts that have been read so far."""

    def ends(pointer: Pointer | ObjectTerm) -> tuple[Kind | None, str | None]:
        if pointer.ref is None:
            external = lines.payload.external_refs[int(str(pointer.external)[2:]) - 1]
            return external.element_kind, external.schema_ref
        kind = kind_of_ref(pointer.ref)
        number = int(pointer.ref[2:])
        return kind, types[number - 1] if kind == "concept" and number <= len(types) else None

    return ends


def _batches(
    records: Iterator[tuple[Kind, AnyRecord]], starts: list[int]
) -> Iterator[list[tuple[Kind, AnyRecord]]]:
    batch: list[tuple[Kind, AnyRecord]] = []
    ends = iter([*starts[1:], -1])
    end = next(ends)
    for place, item in enumerate(records):
        if place == end:
            yield batch
            batch = []
            end = next(ends)
        batch.append(item)
    if batch:
        yield batch


def _sources(record: AnyRecord, lines: Lines) -> tuple[SourceRef, ...]:
    source, receipt = lines.payload.source, record.source_ref
    if receipt is None:
        return ()
    own = SourceRef(source.nexus_id, source.space_ref, receipt.element_id)
    return (own, *(SourceRef(each.nexus_id, each.space_ref, each.element_id) for each in receipt.lineage))


def _text(value: Any) -> str | None:  # a JSON value
    return value if isinstance(value, str) else None
