"""The writer: what the reader found in a message, written through a Draft as Concepts, claims and commitments."""

from __future__ import annotations

import re

import msgspec

from core.agents.offline.beliefs import Stated, is_open, own_claims, record, slot_propositions
from core.agents.offline.claims import (
    SPEAKER,
    Claim,
    Correction,
    Finding,
    Promise,
    Retirement,
    Tense,
    Value,
    ValueKind,
)
from core.agents.offline.dates import When
from core.agents.offline.people import People, find_named, fold
from core.agents.offline.values import READERS, read_timezone
from core.agents.vocabulary import (
    ANIMAL,
    COMMITMENT,
    COMMITTED_TO,
    DERIVED_FROM,
    DETAIL,
    DETAIL_OF,
    FUNCTIONAL,
    ORGANIZATION,
    OWED_TO,
    PERSON,
    PLACE,
    TOPIC,
    local_name,
    predicate,
)
from core.model.elements import Assertion, Concept, Evidence, Proposition, StructuralRef, ValidTime
from core.model.instants import Instant, format_instant
from core.model.literals import Literal, Ref, Term, make_literal
from core.state.indexes import actor_key
from core.transaction.draft import Draft

_THINGS = {"place": PLACE, "organization": ORGANIZATION, "topic": TOPIC}
_KINDS: dict[str, ValueKind] = {
    PLACE: "place",
    ORGANIZATION: "organization",
    TOPIC: "topic",
    PERSON: "person",
    ANIMAL: "animal",
}
_MY = re.compile(r"\b(?:my|our)\b", re.IGNORECASE)
_ME = re.compile(r"(?<=\w )\b(?:me|myself)\b", re.IGNORECASE)
_RECENT = 3  # turns within which a bare correction still means what was said before


class Turn(msgspec.Struct, frozen=True):
    """A message on the record: its Evidence, who said it and when, and its place in the conversation."""

    evidence: Evidence
    speaker: Concept
    said_at: Instant
    index: int
    key: str


class Slot(msgspec.Struct, frozen=True):
    """Where a value was last put: a subject and predicate, the kind of value, and at which turn."""

    subject: str
    predicate_ref: str
    kind: ValueKind
    index: int


class Writer:
    """Writes one conversation's findings. `touched` collects the Concepts that were talked about."""

    def __init__(self, draft: Draft, people: People, participants: tuple[Concept, ...]) -> None:
        self.draft = draft
        self.people = people
        self.participants = participants
        self.claims: list[str] = []
        self.commitments: list[str] = []
        self.touched: dict[str, None] = {}
        self._last: dict[str, Slot] = {}  # by actor

    def write(self, turn: Turn, finding: Finding) -> None:
        """Write one finding of a turn."""
        if isinstance(finding, Claim):
            self._claim(turn, finding)
        elif isinstance(finding, Retirement):
            self._retire(turn, finding)
        elif isinstance(finding, Correction):
            self._correct(turn, finding)
        else:
            self._commit_to(turn, finding)

    # --- claims

    def _claim(self, turn: Turn, claim: Claim) -> None:
        speaker = self._current(turn.speaker)
        subject = self.people.resolve(claim.subject, speaker)
        if subject is None or subject.schema_ref != PERSON:
            return
        if claim.ends and not self._holds(turn, subject, claim):
            return
        term = self._term(claim.value, subject, speaker)
        if term is None:
            return
        reference = predicate(claim.predicate)
        if claim.predicate == "name" and claim.subject.is_speaker:
            self.people.introduce(speaker, claim.value.text)
        if claim.label is not None:
            subject = self._detail(subject, claim.label)
        self._state(turn, subject.id, reference, term, claim)
        self._last[turn.speaker.id] = Slot(subject.id, reference, claim.value.kind, turn.index)

    def _state(self, turn: Turn, subject: str, reference: str, term: Term, claim: Claim) -> None:
        stated = Stated(
            actor=turn.speaker.id,
            subject=subject,
            predicate_ref=reference,
            object=term,
            stance=claim.stance,
            valid_time=valid_time(claim.tense, claim.when, turn.said_at),
            said_at=turn.said_at,
            evidence=turn.evidence.id,
            span=claim.span,
            when=claim.when,
            hedged=claim.hedged,
            ends=claim.ends,
        )
        written = record(self.draft, stated)
        if written is not None:
            self.claims.append(written.id)
        for element in (subject, term.id if isinstance(term, Ref) else None):
            if element is not None:
                self.touched[element] = None

    def _holds(self, turn: Turn, subject: Concept, claim: Claim) -> bool:
        """Whether the actor holds an open claim of the slot with this value; nothing is created to find out."""
        return any(
            fold(self._words(element.object)) == fold(claim.value.text)
            and any(is_open(own) for own in own_claims(self.draft.view, turn.speaker.id, element.id))
            for element in slot_propositions(self.draft.view, subject.id, predicate(claim.predicate))
        )

    def _detail(self, subject: Concept, label: str) -> Concept:
        """The Detail of a subject under a label; names who it belongs to, so that it is found by both."""
        return self.draft.ensure_concept(
            DETAIL,
            f"{subject.id}/{fold(label)}",
            name=f"{subject.name}: {label}",
            attributes={"label": label},
            structural=(StructuralRef(DETAIL_OF, subject.id),),
        )

    def _term(self, value: Value, subject: Concept, speaker: Concept) -> Term | None:
        """The object of a claim: a Literal, or the Concept of a thing, made where it is new."""
        if value.kind == "number":
            return make_literal(int(value.text))
        if value.kind == "text":
            return make_literal(third_person(value.text, str(speaker.name)))
        if value.kind == "person":
            person = self.people.resolve(value.mention or SPEAKER, speaker)
            return Ref(person.id) if person is not None and person.id != subject.id else None
        if value.kind == "animal":
            attributes = {"species": value.note} if value.note else {}
            key = f"{subject.id}/{fold(value.text)}"
            return Ref(self.draft.ensure_concept(ANIMAL, key, name=value.text, attributes=attributes).id)
        name = value.text
        if value.kind == "topic":
            known = find_named(self.draft.view, name)
            if len(known) == 1:
                return Ref(known[0].id)
            name = third_person(name, str(speaker.name))
        return Ref(self.draft.ensure_concept(_THINGS[value.kind], fold(name), name=name).id)

    # --- revisions

    def _retire(self, turn: Turn, retirement: Retirement) -> None:
        """Reject what the actor held of the slots, from when the words say."""
        subject = self.people.resolve(retirement.subject, self._current(turn.speaker))
        for name in retirement.predicates if subject is not None else ():
            for element in slot_propositions(self.draft.view, str(subject and subject.id), predicate(name)):
                if any(is_open(own) for own in own_claims(self.draft.view, turn.speaker.id, element.id)):
                    claim = Claim(
                        retirement.subject, name, Value("text", ""), "reject", "change",
                        when=retirement.when, span=retirement.span,
                    )  # fmt: skip
                    self._state(turn, element.subject, element.predicate_ref, element.object, claim)

    def _correct(self, turn: Turn, correction: Correction) -> None:
        """Put a corrected value where the old one stands, if it is clear where that is."""
        slot = self._slot_of(turn, correction)
        if slot is None:
            return
        words = (
            read_timezone(correction.new)
            if local_name(slot.predicate_ref) == "timezone"
            else READERS[slot.kind](correction.new)
        )
        if words is None or (slot.kind == "place" and not words[0].isupper()):
            return
        subject = self.draft.get(slot.subject)
        if not isinstance(subject, Concept):
            return
        term = (
            self._term(Value(slot.kind, words), subject, self._current(turn.speaker))
            if slot.kind != "person"
            else None
        )
        if term is not None:
            claim = Claim(
                SPEAKER, local_name(slot.predicate_ref), Value(slot.kind, words), span=correction.span
            )
            self._state(turn, slot.subject, slot.predicate_ref, term, claim)

    def _slot_of(self, turn: Turn, correction: Correction) -> Slot | None:
        """Where the corrected value belongs: where the old one stands, else what the actor just talked of."""
        if correction.old is not None:
            held = [
                Slot(element.subject, element.predicate_ref, self._kind(element.object), turn.index)
                for element in self._held(turn.speaker.id)
                if fold(self._words(element.object)) == fold(correction.old)
            ]
            return held[0] if len(held) == 1 else None
        if read_timezone(correction.new) == correction.new.strip().upper().replace(" ", ""):
            zones = [e for e in self._held(turn.speaker.id) if local_name(e.predicate_ref) == "timezone"]
            return (
                Slot(zones[0].subject, zones[0].predicate_ref, "text", turn.index)
                if len(zones) == 1
                else None
            )
        last = self._last.get(turn.speaker.id)
        recent = last is not None and turn.index - last.index <= _RECENT and last.predicate_ref in FUNCTIONAL
        return last if recent else None

    def _held(self, actor: str) -> list[Proposition]:
        """The Propositions that an actor holds open claims of, in functional slots."""
        view = self.draft.view
        found: dict[str, Proposition] = {}
        for element in view.find(actor_key(actor)):
            claim = view.get(element)
            if isinstance(claim, Assertion) and claim.status == "active" and is_open(claim):
                about = view.get(claim.proposition)
                if isinstance(about, Proposition) and about.predicate_ref in FUNCTIONAL:
                    found[about.id] = about
        return list(found.values())

    def _words(self, term: Term) -> str:
        if isinstance(term, Literal):
            return str(term.value)
        concept = self.draft.get(term.id)
        return concept.name or "" if isinstance(concept, Concept) else ""

    def _kind(self, term: Term) -> ValueKind:
        if isinstance(term, Literal):
            return "text" if isinstance(term.value, str) else "number"
        concept = self.draft.get(term.id)
        return _KINDS.get(concept.schema_ref, "topic") if isinstance(concept, Concept) else "topic"

    def _current(self, concept: Concept) -> Concept:
        """The Concept as this transaction has it now (a name may have been learnt since)."""
        found = self.draft.get(concept.id)
        return found if isinstance(found, Concept) else concept

    # --- commitments

    def _commit_to(self, turn: Turn, promise: Promise) -> None:
        """File a commitment; the words of its date stay beside the date they were read as."""
        if turn.speaker.schema_ref != PERSON:
            return
        key = f"{turn.key}/{fold(promise.summary)[:80]}"
        if self.draft.find_client_key("concept", key) is not None:
            return
        others = [person for person in self.participants if person.id != turn.speaker.id]
        links = [StructuralRef(COMMITTED_TO, turn.speaker.id), StructuralRef(DERIVED_FROM, turn.evidence.id)]
        if len(others) == 1 and others[0].schema_ref == PERSON:
            links.append(StructuralRef(OWED_TO, others[0].id))
        attributes = {
            "summary": promise.summary,
            "status": "pending",
            "created_at": format_instant(turn.said_at),
            "commitment_class": promise.commitment_class,
        }
        if promise.due is not None:
            # What is promised for a day may be done on it till its end; an appointment begins.
            ends = promise.commitment_class in ("promise", "plan")
            attributes["due_at"] = format_instant(promise.due.end - 1 if ends else promise.due.start)
            attributes["due_text"] = promise.due.words
        made = self.draft.create(
            Concept,
            schema_ref=COMMITMENT,
            client_key=key,
            name=promise.summary[:120],
            attributes=attributes,
            structural=tuple(links),
        )
        self.commitments.append(made.id)


def third_person(text: str, speaker: str) -> str:
    """A value in words that mean the same whoever says them: `"trips with my family"` -> `"trips with Ada's family"`."""
    owned = _MY.sub(f"{speaker}'s", text)
    return _ME.sub(speaker, owned)


def valid_time(tense: Tense, when: When | None, said_at: Instant) -> ValidTime:
    """When a claim holds in the world, from the tense and the date of its words (KIP §13.2).

    `"used to live in X"` until it was said; `"moved to X last May"` from May; `"visited X last week"` that week.
    """
    words = when.words.lower() if when is not None else ""
    if tense == "change":
        return ValidTime(start=when.start if when is not None else said_at)
    if tense == "left":
        return ValidTime(until=when.start if when is not None else said_at)
    if tense in ("past", "once"):
        if when is None:
            return ValidTime(until=said_at)
        if words.startswith(("until", "till", "by")):
            return ValidTime(until=when.end)
        return ValidTime(start=when.start, until=when.end)
    if when is not None and words.startswith("since"):
        return ValidTime(start=when.start)
    return ValidTime()
