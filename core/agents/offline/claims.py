"""What the reader finds in a message, before anything is written: claims, corrections, retirements, commitments.

Only values live here. A `Mention` says who is meant in the words of the message; which Concept that is, is
decided when it is written (`core.agents.offline.people`).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from core.agents.offline.dates import When
from core.model.elements import Stance

ValueKind = Literal["text", "number", "place", "organization", "topic", "animal", "person"]
Tense = Literal["state", "change", "past", "left", "once"]


class Mention(msgspec.Struct, frozen=True):
    """Somebody as the words name them: the speaker (both None), a name, or somebody's relation to the speaker."""

    name: str | None = None
    relation: str | None = None

    @property
    def is_speaker(self) -> bool:
        """Whether the speaker is meant."""
        return self.name is None and self.relation is None


SPEAKER = Mention()


class Value(msgspec.Struct, frozen=True):
    """The object of a claim: a literal, or the name of a thing of a kind. `note` is a pet's species or the like."""

    kind: ValueKind
    text: str
    note: str | None = None
    mention: Mention | None = None  # of a person


class Claim(msgspec.Struct, frozen=True):
    """One statement: a subject, a predicate (local name) and a value, held or rejected.

    label: for the predicate `value`, the property's label ("favourite colour").
    span: where in the message the sentence stands: first and last (exclusive) character.
    ends: the claim only ends an earlier one of the same actor; without one it says nothing.
    tense: `state` holds while it is stated; `change` begins now or at `when`; `past` has ended;
        `left` ended at `when`; `once` happened.
    """

    subject: Mention
    predicate: str
    value: Value
    stance: Stance = "support"
    tense: Tense = "state"
    label: str | None = None
    when: When | None = None
    span: tuple[int, int] = (0, 0)
    hedged: bool = False
    ends: bool = False


class Retirement(msgspec.Struct, frozen=True):
    """The speaker says that what held of a slot has ended, without saying what holds instead."""

    subject: Mention
    predicates: tuple[str, ...]
    when: When | None = None
    span: tuple[int, int] = (0, 0)


class Correction(msgspec.Struct, frozen=True):
    """The speaker replaces a value: `"it's Munich, not Berlin"` -> new Munich, old Berlin. `old` may be unsaid."""

    new: str
    old: str | None = None
    span: tuple[int, int] = (0, 0)


class Promise(msgspec.Struct, frozen=True):
    """A commitment: a promise, a reminder asked for, an appointment or a plan with a date."""

    maker: Mention
    summary: str
    commitment_class: Literal["promise", "reminder", "appointment", "plan"]
    due: When | None = None
    span: tuple[int, int] = (0, 0)


Finding = Claim | Retirement | Correction | Promise
