"""Writing a page of a 1.x graph into a transaction (KIP §103.2, §103.3).

What lives here: Concepts, Propositions with the Assertions that keep their fact-like meaning, the Evidence of sources
that name one artifact, and the Activity that says how they came. What must never live here: what a field means
(`fields`). Everything carries a client key made of the source and the old identity, so that a page sent again, or
gone on with after a crash, writes nothing twice.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from core.migration.fields import Doubt, Mapped, is_specific, map_metadata, merged_names
from core.migration.legacy import SCHEMA_TYPES, LegacyConcept, LegacyLink, MigrationInput
from core.migration.report import Report, Tally
from core.migration.schema import LEGACY_FACET, MIGRATION_FACET, End, Symbols
from core.model.elements import (
    Activity,
    AnyElement,
    Assertion,
    Citation,
    Concept,
    Evidence,
    Governance,
    Json,
    Payload,
    Proposition,
    Retention,
)
from core.model.ids import kind_of
from core.model.literals import Ref, Term, make_literal
from core.protocol.canonical import canonical_json, digest_of
from core.state.indexes import name_key
from core.transaction.draft import Draft

MAPPING: Final = "noema-kip1-mapping@1.0.0"
_MAX_NAME: Final = 500


def migrate(draft: Draft, body: MigrationInput) -> Report:
    """Write a page into a transaction, and say what became of it.

    Raises:
        NoemaError: TransactionTooLarge, if a record or the page is larger than a transaction takes.
    """
    return _Page(draft, body).write()


class _Unresolved(Exception):  # noqa: N818 - a link's end that is not known; the link is left out and reported
    pass


class _Page:
    def __init__(self, draft: Draft, body: MigrationInput) -> None:
        self.draft = draft
        self.body = body
        self.symbols = Symbols(draft.meta, body.source)
        self.tally = Tally()
        self.outputs: list[str] = []
        self.importer_id: str | None = None  # the Concept that stands for the old graph, once it is needed

    def write(self) -> Report:
        body, draft = self.body, self.draft
        for concept in body.concepts:
            self.concept(concept)
        waiting = list(body.propositions)
        while waiting:  # a link about a link may stand before it
            left = [link for link in waiting if not self.link(link)]
            if len(left) == len(waiting):
                self.tally.unresolved += [_label(link) for link in left]
                break
            waiting = left
        digest = digest_of(msgspec.to_builtins([body.concepts, body.propositions]))
        package = None
        activity = None
        if self.outputs:
            package = self.symbols.published()
            draft.set_meta(**_protected(self.symbols.finish()))
            activity = self.activity(digest).id
        counts = {"concepts": len(body.concepts), "propositions": len(body.propositions)}
        return Report(
            source=body.source,
            snapshot_digest=digest,
            committed=bool(self.outputs) and not body.dry_run,
            counts=counts,
            mapping=self.tally.mapping,
            already_there=self.tally.already_there,
            warnings=self.tally.warnings(),
            governance_changes=self.tally.governance_changes(self.importer_id),
            unresolved=[label[:200] for label in self.tally.unresolved[:100]],
            schema_package=package,
            activity=None if body.dry_run else activity,
        )

    # --- concepts

    def concept(self, record: LegacyConcept) -> None:
        if record.type in SCHEMA_TYPES:
            self.tally.add("schema_nodes")
            if record.attributes.get("instance_schema"):
                self.tally.doubt("legacy_schema_constraint_unrepresentable", record.label)
            return
        key = self.client_key("c", record.id or record.label)
        there = self.draft.find_client_key("concept", key) or self.named(record.type, record.name)
        if there is not None:
            self.tally.already_there += 1
            return
        reference, misfits = self.symbols.type(record.type, record.attributes)
        attributes = {name: value for name, value in record.attributes.items() if name not in misfits}
        mapped = map_metadata(record.metadata, self.body)
        strengths, merged = _strengths(mapped), merged_names(mapped.engine, record.type)
        mapped = self.fitted(mapped, merged, fits=not misfits)
        facets = self.legacy_facet(
            record.id or record.label,
            mapped,
            attributes=misfits,
            old_type=None if reference.endswith(f"/{record.type}") else record.type,
        )
        if strengths and self.symbols.mnemonic is not None:
            facets[self.symbols.mnemonic] = strengths
        written = self.draft.create(
            Concept,
            schema_ref=reference,
            key=self.key(record.name),
            name=record.name[:_MAX_NAME],
            aliases=tuple(dict.fromkeys(_aliases(attributes.pop("aliases", None)) + merged)),
            attributes=attributes,
            facets=facets,
            client_key=key,
            **_storage(mapped),
        )
        self.note(written, "concepts", record.label, mapped)

    def fitted(self, mapped: Mapped, merged: list[str], *, fits: bool) -> Mapped:
        """The metadata of a Concept: what a Concept has no place for is kept beside it, what is unclear is said."""
        if mapped.confidence is not None:  # a node states nothing that one could believe more or less
            mapped = _doubting(mapped, "legacy_confidence_semantics_mixed")
            mapped = _keeping(mapped, confidence=mapped.confidence)
        if self.symbols.mnemonic is None:
            mapped = _keeping(mapped, **_strengths(mapped))
        if mapped.superseded:
            mapped = _doubting(mapped, "legacy_lifecycle_unreconstructable")
        if mapped.engine.get("_merged_from") and len(merged) != len(mapped.engine["_merged_from"]):
            mapped = _doubting(mapped, "legacy_merge_history_missing")
        if not fits:
            mapped = _doubting(mapped, "legacy_schema_constraint_unrepresentable")
        texts = {name: text for name, text in (("author", mapped.author), ("source", mapped.source)) if text}
        return _keeping(mapped, **texts, **_times(mapped))

    # --- links

    def link(self, record: LegacyLink) -> bool:
        """Write a link; False if an end is not known yet."""
        label = _label(record)
        try:
            subject, obj = self.end(record.subject), self.term(record.object)
        except _Unresolved:
            return False
        ends = self.end_of(subject), self.end_of(obj.id) if isinstance(obj, Ref) else None
        key = self.client_key("a", record.id or label)
        if self.draft.find_client_key("assertion", key) is not None:
            self.tally.already_there += 1
            return True
        mapped = map_metadata(record.metadata, self.body)
        predicate = self.symbols.predicate(record.predicate, *ends)
        before = self.draft.find_proposition(subject, predicate, obj)
        proposition = before or self.draft.create(
            Proposition,
            subject=subject,
            predicate_ref=predicate,
            object=obj,
            governance=Governance(classification=mapped.classification),
        )
        if before is None:
            self.note(proposition, "propositions", label, Mapped(classification=mapped.classification))
        self.assertion(record, label, key, proposition, mapped)
        return True

    def assertion(
        self, record: LegacyLink, label: str, key: str, proposition: Proposition, mapped: Mapped
    ) -> None:
        """The positive Assertion that keeps a link's fact-like meaning.

        An uncertain one where the old graph had replaced it: who replaced it, and when that held, is not known.
        """
        actor, mapped = self.actor(mapped)
        evidence, mapped = self.evidence(mapped)
        if mapped.superseded:
            mapped = _doubting(mapped, "legacy_lifecycle_unreconstructable")
        # A claim has no mnemonic state: what is remembered, more or less well, is a Concept.
        mapped = _keeping(mapped, **_strengths(mapped))
        written = self.draft.create(
            Assertion,
            proposition=proposition.id,
            asserted_by=actor,
            stance="uncertain" if mapped.superseded else "support",
            mode="stated" if actor != self.importer_id else "imported",
            asserted_at=self.draft.now,
            confidence=mapped.confidence,
            valid_time=mapped.valid_time,
            evidence=(Citation(evidence),) if evidence else (),
            facets=self.legacy_facet(record.id or label, mapped, attributes=record.attributes),
            client_key=key,
            **_storage(mapped),
        )
        self.note(written, "assertions", label, mapped)

    def actor(self, mapped: Mapped) -> tuple[str, Mapped]:
        """Who asserts: a Person of the old graph by exactly that name, else the old graph as a whole."""
        author = mapped.author
        if author is not None:
            name = author.removeprefix("Person:")
            found = self.named("Person", name)
            if found is not None and name != "$system":
                return found.id, mapped
            mapped = _keeping(mapped, author=author)
            if author not in ("$system", "Person:$system"):
                mapped = _doubting(mapped, "legacy_author_ambiguous")
        key = self.client_key("c", "$nexus")
        importer = self.draft.find_client_key("concept", key) or self.draft.create(
            Concept,
            schema_ref=self.symbols.importer,
            key=self.body.source,
            name=f"KIP 1.x graph {self.body.source}",
            client_key=key,
        )
        if self.importer_id is None and self.draft.before(importer.id) is None:
            self.outputs.append(importer.id)
        self.importer_id = importer.id
        return importer.id, mapped

    def evidence(self, mapped: Mapped) -> tuple[str | None, Mapped]:
        """The Evidence of a source that names one artifact; what stands there is the reference, all we have."""
        source = mapped.source
        if source is None or not is_specific(source):
            doubtful = source is not None or mapped.observed_at is not None
            mapped = _keeping(mapped, **({"source": source} if source else {}), **_times(mapped))
            return None, _doubting(mapped, "legacy_source_unresolvable") if doubtful else mapped
        key = self.client_key("e", f"{source}@{mapped.observed_at}")
        found = self.draft.find_client_key("evidence", key)
        if found is None:
            payload: dict[str, Json] = {"nexus": self.body.source, "reference": source}
            found = self.draft.create(
                Evidence,
                evidence_class="legacy_source_reference",
                payload=Payload("inline", payload),
                content_digest=digest_of(payload),
                media_type="application/json",
                observed_at=mapped.observed_at,
                governance=Governance(classification=mapped.classification),
                client_key=key,
            )
            self.note(found, "evidence", source, Mapped(classification=mapped.classification))
        return found.id, mapped

    # --- ends

    def term(self, value: Json) -> Term:
        """The object of a link."""
        if isinstance(value, dict) and set(value) == {"value"}:
            return make_literal(value["value"])
        if isinstance(value, (bool, int, float)):
            return make_literal(value)
        return Ref(self.end(value))

    def end(self, value: Json) -> str:
        """The element an end of a link refers to: by its old id, by type and name, or as a link of its own."""
        if isinstance(value, dict) and {"subject", "predicate", "object"} <= set(value):
            return self.stated(
                self.end(value["subject"]), str(value["predicate"]), self.term(value["object"])
            )
        text = _end_label(value)
        concept = self.draft.find_client_key("concept", self.client_key("c", text))
        if concept is not None:
            return concept.id
        claim = self.draft.find_client_key("assertion", self.client_key("a", text))
        if isinstance(claim, Assertion):
            return claim.proposition
        type_name, colon, name = text.partition(":")
        found = self.named(type_name, name) if colon else None
        if found is None:
            raise _Unresolved(text)
        return found.id

    def named(self, type_name: str, name: str) -> Concept | None:
        """The Concept of a 1.x type and name; a name that was merged away means its survivor."""
        references = self.symbols.refs("type", type_name)
        for reference in references:
            found = self.draft.find_concept(reference, self.key(name))
            if found is not None:
                return found
        for element in self.draft.view.find(name_key(name)):
            alias = self.draft.get(element)
            if (
                isinstance(alias, Concept)
                and alias.schema_ref in references
                and (alias.client_key or "").startswith(f"kip1:{self.body.source}:")
            ):
                return alias
        return None

    def stated(self, subject: str, predicate: str, obj: Term) -> str:
        for reference in self.symbols.refs("predicate", predicate):
            found = self.draft.find_proposition(subject, reference, obj)
            if found is not None:
                return found.id
        raise _Unresolved(predicate)

    def end_of(self, element: str) -> End:
        found = self.draft.get(element)
        return kind_of(element), found.schema_ref if isinstance(found, Concept) else None

    # --- shared

    def key(self, name: str) -> str:
        """The key of a Concept whose identity was its name: of this source, so that it is nobody else's."""
        return f"{self.body.source}:{name}"[:_MAX_NAME]

    def client_key(self, kind: str, label: str) -> str:
        """One record's key: the same in every run, whatever the length of its names."""
        digest = hashlib.sha256(label.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return f"kip1:{self.body.source}:{kind}:{digest}"

    def legacy_facet(
        self, identity: str, mapped: Mapped, *, attributes: dict[str, Json], old_type: str | None = None
    ) -> dict[str, dict[str, Json]]:
        """The facet that holds where a record came from and what of it has no sure place."""
        fields: dict[str, Json] = {"source": self.body.source, "id": identity}
        parts = {
            "type": old_type,
            "metadata": mapped.leftovers,
            "attributes": attributes,
            "engine": mapped.engine,
            "doubts": list(mapped.doubts),
        }
        self.tally.add("legacy_facets")
        return {
            self.symbols.facet(LEGACY_FACET): fields | {name: part for name, part in parts.items() if part}
        }

    def note(self, element: AnyElement, what: str, record: str, mapped: Mapped) -> None:
        self.outputs.append(element.id)
        self.tally.add(what)
        if mapped.classification is not None:
            self.tally.protect(mapped.classification)
        for doubt in mapped.doubts:
            self.tally.doubt(doubt, record)

    def activity(self, digest: str) -> Activity:
        """How these elements came; no Evidence that what they say is true (Migration guide §36)."""
        warnings = canonical_json(msgspec.to_builtins(self.tally.warnings()))
        facet: dict[str, Json] = {
            "source": self.body.source,
            "source_version": self.body.source_version[:_MAX_NAME],
            "mapping": MAPPING,
            "snapshot_digest": digest,
            "warnings_digest": digest_of(msgspec.json.decode(warnings)),
            "counts": self.tally.counts(),
        }
        return self.draft.create(
            Activity,
            activity_class="import",
            status="completed",
            started_at=self.draft.now,
            ended_at=self.draft.now,
            outputs=tuple(self.outputs),
            parameters_digest=digest,
            facets={self.symbols.facet(MIGRATION_FACET): facet},
        )


def _end_label(value: Json) -> str:
    """How an end of a link is filed: `Type:name`, or `(subject, predicate, object)`, or the old id as it is."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        if isinstance(value.get("type"), str) and isinstance(value.get("name"), str):
            return f"{value['type']}:{value['name']}"
        if {"subject", "predicate", "object"} <= set(value):
            return _tuple_label(value["subject"], str(value["predicate"]), value["object"])
        if isinstance(value.get("id"), str):
            return str(value["id"])
    if isinstance(value, dict) and set(value) == {"value"}:
        value = value["value"]
    return msgspec.json.encode(value).decode()


def _tuple_label(subject: Json, predicate: str, obj: Json) -> str:
    return f"({_end_label(subject)}, {predicate}, {_end_label(obj)})"


def _label(link: LegacyLink) -> str:
    return _tuple_label(link.subject, link.predicate, link.object)


def _aliases(value: Json) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _strengths(mapped: Mapped) -> dict[str, Json]:
    """How well a record was remembered, as far as the old graph said."""
    found: dict[str, Json] = {"memory_strength": mapped.strength, "salience": mapped.salience}
    return {name: value for name, value in found.items() if value is not None}


def _times(mapped: Mapped) -> dict[str, Json]:
    """Times that found no place, to keep as they were understood (unix ms)."""
    return {} if mapped.observed_at is None else {"observed_at_ms": mapped.observed_at}


def _doubting(mapped: Mapped, doubt: Doubt) -> Mapped:
    return msgspec.structs.replace(mapped, doubts=tuple(dict.fromkeys((*mapped.doubts, doubt))))


def _keeping(mapped: Mapped, **leftovers: Json) -> Mapped:
    return msgspec.structs.replace(mapped, leftovers={**mapped.leftovers, **leftovers})


def _storage(mapped: Mapped) -> dict[str, Any]:
    return {
        "retention": Retention(expires_at=mapped.expires_at),
        "governance": Governance(classification=mapped.classification),
    }


def _protected(meta: Any) -> dict[str, Any]:  # SpaceMeta
    return {"schema": meta.schema, "extensions": meta.extensions}
