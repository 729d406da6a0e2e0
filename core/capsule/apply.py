"""Writing what an import decided: new elements with a new origin, and nobody's authority (KIP §39, design §97-§108).

What lives here: decisions -> writes into a draft. What must never live here: who is who (`identity`). Everything
written here has the destination's own id, version and time; what it was elsewhere stands in `Origin.sources`. Modes,
stances, times and roots stay what they were. What asks for more than content (a legal hold, a key, a retry key, the
status of a validated Skill) is not taken over from another brain; a restore of the same brain keeps it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from core.capsule.format import AnyRecord, ConceptRecord, PropositionRecord
from core.capsule.identity import Decision, Identities
from core.capsule.lineage import Imports, Lineage, alias_name, imports_of, source_name, with_imports
from core.capsule.read import Capsule, pointers
from core.capsule.records import Landing, retention_of
from core.errors import NoemaError
from core.model.elements import (
    Activity,
    AnyElement,
    Assertion,
    Concept,
    Element,
    Evidence,
    Governance,
    Json,
    Origin,
    Proposition,
)
from core.model.ids import Kind
from core.model.literals import Ref, Term
from core.protocol.capsule_types import ImportWish
from core.schema.definitions import PredicateType
from core.schema.environment import Environment
from core.schema.validate import check_object, check_subject
from core.transaction.draft import Draft

CLASSES: Final[dict[Kind, type[Element]]] = {
    "concept": Concept,
    "proposition": Proposition,
    "assertion": Assertion,
    "evidence": Evidence,
    "activity": Activity,
}
CHANNEL: Final = "capsule"
QUARANTINE: Final = "quarantine"
ACTIVITY_CLASS: Final = "capsule_import"
_MAX_GAPS: Final = 100  # that are told one by one
_MAX_TXS: Final = 500  # transactions of one source that are remembered

_MUTABLE: Final[dict[Kind, tuple[str, ...]]] = {
    "concept": ("name", "aliases", "attributes", "facets", "structural"),
    "proposition": ("facets",),
    "assertion": ("status", "superseded_by", "retracted_at", "facets"),
    "evidence": ("status", "corrected_by", "facets"),
    "activity": ("status", "ended_at", "inputs", "outputs", "associated_actors", "facets", "structural"),
}
"""What a later commit of the source may have changed in an element that came from there."""


class Applied(msgspec.Struct):
    """What was written: how many of each kind, references that were left out, and whether anything changed."""

    created: dict[str, int] = {}
    updated: int = 0
    gaps: list[dict[str, Json]] = []
    activity: str | None = None

    @property
    def effect(self) -> bool:
        """Whether the space is another one after it."""
        return bool(self.created or self.updated)


class Writing:
    """Writes one import into one draft; `decisions` and `local` of `run` are brought up to what was done."""

    def __init__(
        self, draft: Draft, env: Environment, capsule: Capsule, wish: ImportWish, identities: Identities
    ) -> None:
        self._draft = draft
        self._env = env
        self._capsule = capsule
        self._wish = wish
        self._identities = identities
        self._origin = draft.origin
        self._restores = wish.mode == "restore"
        self._done = Applied()
        self._lineage = self._known()
        self._import_id = None if self._restores else f"cap-{capsule.digest.removeprefix('sha256:')[:24]}"

    def run(
        self, decisions: dict[str, Decision], local: dict[str, str], dead: dict[str, str], landing: Landing
    ) -> Applied:
        """Write everything that is to be written."""
        self._decisions, self._local, self._landing = decisions, local, landing
        created = [ref for ref, decision in decisions.items() if decision.act == "create" and ref not in dead]
        created = [
            ref for ref in created if self._capsule.records[ref][1].state != "purged" or self._forget(ref)
        ]
        for ref in created:  # ids first: what refers to each other may be in a circle
            kind = decisions[ref].kind
            if kind != "proposition":
                local[ref] = self._draft.reserve(kind)
        self._propositions([ref for ref in created if decisions[ref].kind == "proposition"])
        for ref in created:
            if decisions[ref].kind != "proposition":
                kind, record = self._capsule.records[ref]
                self._create(ref, kind, record, self._landing.fields(record))
        for ref, decision in list(decisions.items()):
            if decision.act == "update":
                self._update(ref, decision)
            elif decision.act == "release":
                self._release(ref, decision)
        self._draft.origin = self._origin
        self._tell_gaps(created)
        self._remember()
        return self._done

    def _forget(self, ref: str) -> bool:
        """What a delta says was erased, and never was here, is not made here."""
        decision = self._decisions[ref]
        self._decisions[ref] = msgspec.structs.replace(decision, act="skip", basis="erased_at_source")
        return False

    # --- creating

    def _create(self, ref: str, kind: Kind, record: AnyRecord, fields: dict[str, Any]) -> None:
        draft, element_id = self._draft, self._local[ref]
        draft.origin = Origin(
            self._origin.principal,
            QUARANTINE if self._wish.mode == "isolate" else CHANNEL,
            self._import_id,
            self._identities.sources(record),
        )
        fields = self._modest(record, fields)
        made = draft.create_as(
            element_id,
            CLASSES[kind],
            **fields,
            retention=retention_of(record.retention, holds=self._restores),
            governance=Governance(classification=record.classification),
            client_key=record.client_key if self._restores else None,
        )
        state = self._state(record)
        if state != "active":
            draft.change(made, state=state)
        self._done.created[kind] = self._done.created.get(kind, 0) + 1

    def _state(self, record: AnyRecord) -> str:
        """The engine state of a new element; isolated ones are out of recall until somebody releases them."""
        if self._wish.mode == "isolate" and record.state == "active":
            return "archived"
        return record.state

    def _modest(self, record: AnyRecord, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields of a new element without what only its own space could give it."""
        if not isinstance(record, ConceptRecord):
            return fields
        if self._restores:
            return {**fields, "key": record.key, "canonical_id": record.canonical_id}
        if self._identities.trusts_canonical:
            fields["canonical_id"] = record.canonical_id
        if record.schema_ref.rpartition("/")[2] == "Skill" and record.attributes.get("status") == "validated":
            # KIP §41.4: validated elsewhere is a candidate here, until it has been tried here.
            fields["attributes"] = {**record.attributes, "status": "candidate"}
        return fields

    # --- Propositions, ends first

    def _propositions(self, refs: list[str]) -> None:
        """One by one after what they stand about; a circle of statements about each other is no statement."""
        waiting = set(refs)
        needs: dict[str, int] = {}
        dependents: dict[str, list[str]] = {}
        for ref in refs:
            ends = {
                str(pointer.ref)
                for name, pointer, _ in pointers(self._capsule.records[ref][1])
                if name in {"subject", "object"} and pointer.ref in waiting
            }
            needs[ref] = len(ends)
            for end in ends:
                dependents.setdefault(end, []).append(ref)
        ready = [ref for ref in refs if needs[ref] == 0]
        for ref in ready:  # grows while it is walked
            self._proposition(ref)
            for dependent in dependents.get(ref, ()):
                needs[dependent] -= 1
                if needs[dependent] == 0:
                    ready.append(dependent)
        if len(ready) < len(refs):
            raise NoemaError(
                "CapsuleValidationFailed", "statements of the Capsule are about each other in a circle"
            )

    def _proposition(self, ref: str) -> None:
        record = self._capsule.records[ref][1]
        assert isinstance(record, PropositionRecord)
        fields = self._landing.fields(record)
        subject = self._draft.canonical(fields["subject"])
        obj: Term = fields["object"]
        if isinstance(obj, Ref):
            obj = Ref(self._draft.canonical(obj.id))
        self._check_ends(record, subject, obj)
        found = self._draft.find_proposition(subject, record.predicate_ref, obj)
        if found is not None and found.system.state != "purged":
            self._local[ref] = found.id
            self._decisions[ref] = msgspec.structs.replace(
                self._decisions[ref], act="reuse", basis="canonical_tuple", local=found.id
            )
            if found.system.origin.channel == QUARANTINE and self._wish.mode == "merge":
                self._release(ref, self._decisions[ref])
            return
        self._local[ref] = self._draft.reserve("proposition")
        self._create(ref, "proposition", record, {**fields, "subject": subject, "object": obj})

    def _check_ends(self, record: PropositionRecord, subject: str, obj: Term) -> None:
        """The ends as they landed: an approved mapping may name what the predicate does not admit."""
        predicate = self._env.known("predicate", record.predicate_ref)
        assert isinstance(predicate, PredicateType), "the schema was checked"
        here = self._draft.get(subject)
        if isinstance(here, Concept):
            check_subject(predicate, "concept", here.schema_ref)
        there = self._draft.get(obj.id) if isinstance(obj, Ref) else None
        if isinstance(there, Concept):
            check_object(predicate, "concept", there.schema_ref)

    # --- changing what came earlier

    def _update(self, ref: str, decision: Decision) -> None:
        kind, record = self._capsule.records[ref]
        element = self._draft.get(str(decision.local))
        assert element is not None, "a decision names what is there"
        if not self._is_ours(element):
            self._decisions[ref] = msgspec.structs.replace(decision, act="map", basis="changed_here")
            return
        fields: dict[str, Any] = {}
        if record.state != "purged":
            landed = self._landing.fields(record)
            fields = {name: landed[name] for name in _MUTABLE[kind]}
        if self._wish.lifecycle == "follow" and element.system.state != "merged":
            fields["state"] = "tombstoned" if record.state == "purged" else record.state
        changed = self._draft.change(element, **fields) if fields else element
        if changed == element:
            self._decisions[ref] = msgspec.structs.replace(decision, act="map")
        else:
            self._done.updated += 1

    def _is_ours(self, element: AnyElement) -> bool:
        """Whether an element came by an import and nothing but imports has touched it."""
        system = element.system
        known = () if self._lineage is None else self._lineage.txs
        return bool(system.origin.sources) and system.updated_tx in {system.created_tx, *known}

    def _release(self, ref: str, decision: Decision) -> None:
        element = self._draft.get(str(decision.local))
        record = self._capsule.records[ref][1]
        if element is not None and element.system.state == "archived" and record.state == "active":
            self._draft.change(element, state="active")
            self._done.updated += 1
        elif decision.act == "release":
            self._decisions[ref] = msgspec.structs.replace(decision, act="map")

    # --- what is told and remembered

    def _tell_gaps(self, created: list[str]) -> None:
        for ref in created:
            for name, pointer, _ in pointers(self._capsule.records[ref][1]):
                if len(self._done.gaps) == _MAX_GAPS:
                    return
                target = str(pointer.ref if pointer.ref is not None else pointer.external)
                if target not in self._local:
                    external = self._capsule.externals.get(target)
                    kind = "not_imported" if external is None else external.kind
                    self._done.gaps.append({"ref": ref, "field": name, "target": target, "kind": kind})

    def _known(self) -> Lineage | None:
        source = self._capsule.artifact.payload.source
        return imports_of(self._draft.meta).sources.get(source_name(source.nexus_id, source.space_ref))

    def _remember(self) -> None:
        """The import's Activity, how far the source has come, and identities that no element remembers."""
        draft, capsule = self._draft, self._capsule
        source = capsule.artifact.payload.source
        imports = imports_of(draft.meta)
        name = source_name(source.nexus_id, source.space_ref)
        aliases = dict(imports.aliases)
        for ref, decision in self._decisions.items():
            if (
                decision.act == "map"
                and decision.kind == "concept"
                and decision.basis in {"canonical_id", "approved_mapping"}
            ):
                aliases[alias_name(self._identities.sources(capsule.records[ref][1])[0])] = str(
                    decision.local
                )
        known = imports.sources.get(name)
        goes_on = known is None or source.snapshot_seq > known.seq
        if not (self._done.effect or aliases != imports.aliases or (capsule.is_delta and goes_on)):
            return
        if self._done.effect and not self._restores:
            activity = draft.create(
                Activity,
                activity_class=ACTIVITY_CLASS,
                status="completed",
                started_at=draft.now,
                ended_at=draft.now,
                parameters_digest=capsule.digest,
            )
            self._done.activity = activity.id
        signers = tuple(sorted(self._identities.signers)) if known is None else known.signers
        txs = (*(() if known is None else known.txs), draft.tx_id)[-_MAX_TXS:]
        if goes_on and (capsule.is_delta or _is_whole(capsule)):
            lineage = Lineage(source.snapshot_seq, source.snapshot_tx, capsule.digest, signers, txs)
        elif known is not None:
            lineage = msgspec.structs.replace(known, txs=txs)
        else:
            lineage = Lineage(-1, "", capsule.digest, signers, txs)
        sources = {**imports.sources, name: lineage}
        draft.set_meta(extensions=with_imports(draft.meta, Imports(sources, aliases)))


def _is_whole(capsule: Capsule) -> bool:
    """Whether a later delta may go on from a snapshot: only if the whole space was in it."""
    return capsule.artifact.payload.manifest.completeness == "space_complete"
