"""An import over a draft: what would be created, found, refused, and the digest of all that (KIP §41.2, design §190).

What lives here: the one import there is. PREVIEW runs it on a draft that is dropped and tells the decisions; the host's
import runs it on the draft that is committed and refuses if the decisions are others than were previewed. What must
never live here: a second opinion, and anything that fetches.
"""

from __future__ import annotations

from typing import Any, Final

from core.authority import Principal, authorize
from core.capsule.apply import Applied, Writing
from core.capsule.check import check_records, inactive_packages, with_embedded
from core.capsule.format import AssertionRecord, ObjectTerm, Pointer, PropositionRecord
from core.capsule.identity import Act, Decision, Found, Identities, decision_json
from core.capsule.lineage import imports_of, source_name
from core.capsule.read import Capsule, pointers
from core.capsule.records import Landing
from core.errors import NoemaError
from core.model.elements import Json
from core.model.ids import KINDS, Kind, kind_of
from core.protocol.canonical import digest_of
from core.protocol.capsule_types import ImportWish
from core.schema.environment import Environment
from core.transaction.draft import Draft

PLAN_FORMAT: Final = "noema-import-plan-1"
_LISTED: Final = 200  # decisions that a report lists one by one; its digest is over all of them
_ENDS: Final = frozenset({"subject", "object", "proposition", "asserted_by"})
"""What a statement cannot be without; other references may be left out, and are then told as gaps."""
_TOLD: Final = 50  # conflicts and gaps that are listed


class Importing:
    """One import of one Capsule into one draft.

    Args:
        draft: the destination; written to, and dropped by a preview.
        env: the destination's schema in force.
        capsule: what comes.
        wish: how.
        principal: who imports.
        signers: ids of the keys whose signatures over this Capsule are good.
        continuity: the host has verified that this is the same brain's own backup, which a restore needs (KIP §38.5).
    """

    def __init__(
        self,
        draft: Draft,
        env: Environment,
        capsule: Capsule,
        wish: ImportWish,
        principal: Principal,
        *,
        signers: frozenset[str] = frozenset(),
        continuity: bool = False,
    ) -> None:
        self.draft = draft
        self.env = env
        self.capsule = capsule
        self.wish = wish
        self.principal = principal
        self.signers = signers
        self.continuity = continuity
        self.identities = Identities(draft, capsule, wish, principal, signers)
        self.decisions: dict[str, Decision] = {}
        self.gaps: list[dict[str, Json]] = []
        self.local: dict[str, str] = {}  # ref of a record or an ExternalRef -> id here
        self.applied = Applied()

    def run(self) -> None:
        """Decide and write.

        Raises:
            NoemaError: NotAuthorized; SchemaPackageUnavailable, CapsuleValidationFailed, PreconditionFailed for what
                cannot be imported at all. Conflicts are decisions; `refuse_conflicts` turns them into an error.
        """
        authorize(self.principal, "import")
        if self.wish.mode == "restore" and not self.continuity:
            raise NoemaError(
                "NotAuthorized",
                "a restore takes a host who has verified that the backup is this brain's own",
                hint="Import it with mode merge, or have an operator restore it.",
            )
        self._check_mappings()
        env = self._check_schema()
        if self.capsule.is_delta:
            self._check_base()
        if self.wish.mode == "restore":
            self._check_target()
        self._resolve_externals()
        self._find()
        dead = self._unresolved()
        writing = Writing(self.draft, env, self.capsule, self.wish, self.identities)
        self.applied = writing.run(self.decisions, self.local, dead, Landing(self.land, self.capsule.blobs))
        self.gaps += self.applied.gaps

    # --- what must hold before anything is decided

    def _check_mappings(self) -> None:
        """Saying that two are one is a deed of its own, and a mapping of nothing is a mistake (KIP §38.2)."""
        if not self.wish.mappings:
            return
        authorize(self.principal, "merge_identity")
        unknown = sorted(
            self.wish.mappings.keys() - self.capsule.records.keys() - self.capsule.externals.keys()
        )
        if unknown:
            raise NoemaError(
                "ConstraintViolation",
                f"the Capsule has no {', '.join(name[:20] for name in unknown[:5])} to map",
                hint="Map refs of its records or ExternalRefs, such as c:1 or x:2, to ids here.",
                details={"unknown": unknown[:20]},
            )

    def _check_schema(self) -> Environment:
        env = with_embedded(self.capsule, self.env)
        missing = inactive_packages(self.capsule, self.env)
        if missing:
            raise NoemaError(
                "SchemaPackageUnavailable",
                f"the Capsule needs packages that are not in force here: {', '.join(missing)[:300]}",
                hint="Whoever manages the schema may activate them first; an import never does.",
                details={"packages": missing},
            )
        problems = check_records(self.capsule, env)
        if problems:
            raise NoemaError(
                "CapsuleValidationFailed",
                "records of the Capsule break their schema",
                details={"problems": problems},
            )
        return env

    def _check_base(self) -> None:
        """A delta goes on where its source's last import ended; a gap is refused, never guessed (design §244)."""
        source = self.capsule.artifact.payload.source
        known = imports_of(self.draft.meta).sources.get(source_name(source.nexus_id, source.space_ref))
        if known is not None and known.seq >= source.snapshot_seq and known.digest == self.capsule.digest:
            return  # this very delta has been imported: everything in it will be found
        here = None if known is None else (known.seq, known.tx)
        if here != (source.base_seq, source.base_tx):
            raise NoemaError(
                "PreconditionFailed",
                "the delta does not begin where this space's copy of the source ends",
                hint="Import the missing delta first, or a new snapshot.",
                details={
                    "reason": "CapsuleBaseMismatch",
                    "base_seq": source.base_seq,
                    "imported_seq": None if known is None else known.seq,
                },
            )

    def _check_target(self) -> None:
        counts = self.draft.state.counts
        if any(getattr(counts, kind) for kind in KINDS):
            raise NoemaError(
                "ImportPreviewConflict",
                "a restore goes into an empty space, and this one is not",
                hint="Restore into a new space, or import with mode merge.",
            )
        if self.capsule.artifact.payload.manifest.completeness != "space_complete":
            raise NoemaError(
                "ImportPreviewConflict",
                "only a backup of a whole space is restored; this is a selection",
                hint="Import it with mode merge.",
            )

    # --- who is who

    def land(self, pointer: Pointer | ObjectTerm) -> str | None:
        """The id here that a pointer stands for, if any."""
        return self.local.get(str(pointer.ref if pointer.ref is not None else pointer.external))

    def _resolve_externals(self) -> None:
        for ref, external in self.capsule.externals.items():
            found = self.identities.external(external)
            if found is None:
                continue
            if found.problem is not None or found.local is None:
                self.gaps.append({"external_ref": ref, "kind": external.kind, "problem": found.problem})
                continue
            self.local[ref] = found.local

    def _find(self) -> None:
        """Every record that is here already, and those that are not, in the Capsule's order."""
        for ref, (kind, record) in self.capsule.records.items():
            found = self.identities.find(kind, record)
            self.decisions[ref] = self._decided(ref, kind, found)
            if self.decisions[ref].act in {"map", "release", "update"}:
                self.local[ref] = str(self.decisions[ref].local)

    def _decided(self, ref: str, kind: Any, found: Found | None) -> Decision:
        if found is None:
            return Decision(ref=ref, kind=kind, act="create", basis="new")
        if found.problem is not None:
            return Decision(
                ref=ref,
                kind=kind,
                act="conflict",
                basis=found.basis,
                local=found.local,
                problem=found.problem,
            )
        element = self.draft.get(str(found.local))
        act: Act = "map"
        if element is None or element.system.state == "purged":
            return Decision(ref=ref, kind=kind, act="skip", basis="erased_here", local=found.local)
        if self.wish.mode == "merge" and element.system.origin.channel == "quarantine":
            act = "release"
        elif self.capsule.is_delta:
            act = "update"
        return Decision(ref=ref, kind=kind, act=act, basis=found.basis, local=found.local)

    def _unresolved(self) -> dict[str, str]:
        """Records that cannot stand, by ref, and why: an end of theirs is neither here nor in the Capsule."""
        dead = {
            ref: decision.problem or decision.basis
            for ref, decision in self.decisions.items()
            if decision.act in {"conflict", "skip"}
        }
        dependents: dict[str, list[tuple[str, str]]] = {}
        fallen = list(dead)
        for ref, (_, record) in self.capsule.records.items():
            if self.decisions[ref].act != "create" or not isinstance(
                record, (PropositionRecord, AssertionRecord)
            ):
                continue
            for name, pointer, kinds in pointers(record):
                if name not in _ENDS:
                    continue
                if pointer.ref is not None:
                    dependents.setdefault(pointer.ref, []).append((ref, name))
                elif ref not in dead and not self._stands(str(pointer.external), kinds):
                    dead[ref] = f"its {name} is not here"
                    fallen.append(ref)
        for lost in fallen:  # grows while it is walked
            for ref, name in dependents.get(lost, ()):
                if ref not in dead:
                    dead[ref] = f"its {name} cannot be imported"
                    fallen.append(ref)
        for ref, why in dead.items():
            decision = self.decisions[ref]
            if decision.act == "create":
                self.decisions[ref] = Decision(
                    ref=ref, kind=decision.kind, act="unresolved", basis="external", problem=why
                )
        return dead

    def _stands(self, external: str, kinds: tuple[Kind, ...]) -> bool:
        landed = self.local.get(external)
        return landed is not None and kind_of(landed) in kinds

    # --- what it comes to

    @property
    def conflicts(self) -> list[Decision]:
        """Decisions that keep the import from running as it is."""
        bad = {"conflict"} if self.wish.partial else {"conflict", "unresolved"}
        return [decision for decision in self.decisions.values() if decision.act in bad]

    def refuse_conflicts(self) -> None:
        """Refuse an import with conflicts.

        Raises:
            NoemaError: ImportPreviewConflict, or IdentityConflict where identities disagree.
        """
        conflicts = self.conflicts
        if not conflicts:
            return
        identity = any(decision.act == "conflict" for decision in conflicts)
        raise NoemaError(
            "IdentityConflict" if identity else "ImportPreviewConflict",
            f"{len(conflicts)} records of the Capsule cannot be imported",
            hint="PREVIEW IMPORT CAPSULE lists them; give mappings, or ask for a partial import.",
            details={"conflicts": [decision_json(each) for each in conflicts[:_TOLD]]},
        )

    def plan_digest(self) -> str:
        """What an import must find unchanged: target, artifact, wish, schema and every decision (design §285)."""
        meta = self.draft.meta
        schema = self.draft.state.meta.schema
        return digest_of(
            {
                "format": PLAN_FORMAT,
                "target": [meta.space_id, meta.instance],
                "capsule": self.capsule.digest,
                "mode": self.wish.mode,
                "mappings": self.wish.mappings,
                "options": [self.wish.trust_canonical_ids, self.wish.partial, self.wish.lifecycle],
                "schema": [schema.version, list(schema.packages), schema.aliases],
                "signers": sorted(self.signers),
                "decisions": [decision_json(each) for each in self.decisions.values()],
            }
        )

    def plan(self) -> dict[str, Json]:
        """The import plan: what a caller shows back to be sure that this is what happens."""
        counts: dict[str, int] = {}
        for decision in self.decisions.values():
            counts[decision.act] = counts.get(decision.act, 0) + 1
        decisions = [decision_json(each) for each in list(self.decisions.values())[:_LISTED]]
        plan: dict[str, Json] = {
            "format": PLAN_FORMAT,
            "import_plan_digest": self.plan_digest(),
            "capsule_digest": self.capsule.digest,
            "target": self.draft.meta.space_id,
            "mode": self.wish.mode,
            "mappings": self.wish.mappings,
            "trust_canonical_ids": self.wish.trust_canonical_ids,
            "partial": self.wish.partial,
            "lifecycle": self.wish.lifecycle,
            "schema_environment_version": self.draft.state.meta.schema.version,
            "counts": counts,
            "decisions": decisions,
        }
        if len(self.decisions) > _LISTED:
            plan["truncated"] = True
        return plan
