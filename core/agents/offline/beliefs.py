"""Beliefs: an actor's claim on the record, and what becomes of the claims it replaces.

What lives here: which of the same actor's earlier claims a new one supersedes, and the supersession itself
(KIP §14.2): the old Assertion stays, marked and linked both ways. Nobody's claim ever supersedes another actor's;
that is disagreement, and projection's business. What was said earlier never replaces what was said later, in
whatever order the conversations arrive.
"""

from __future__ import annotations

from typing import Final

import msgspec

from core.agents.offline.dates import When
from core.agents.vocabulary import FUNCTIONAL, OPPOSITE, WORDING
from core.model.elements import Activity, Assertion, Citation, Json, Proposition, Stance, ValidTime
from core.model.instants import Instant
from core.model.literals import Term
from core.state.indexes import assertions_key, subject_key
from core.state.view import View
from core.transaction.draft import Draft

CONFIDENCE: Final = 0.9  # of a plain statement by who says it
HEDGED: Final = 0.6  # with "I think" before it


class Stated(msgspec.Struct, frozen=True):
    """One claim ready to be recorded: who, toward which tuple, with what stance, when it holds, said when."""

    actor: str
    subject: str
    predicate_ref: str
    object: Term
    stance: Stance
    valid_time: ValidTime
    said_at: Instant
    evidence: str
    span: tuple[int, int] = (0, 0)
    when: When | None = None
    hedged: bool = False
    ends: bool = False


def own_claims(view: View, actor: str, proposition: str) -> list[Assertion]:
    """An actor's active Assertions about a Proposition."""
    found = (view.get(element) for element in view.find(assertions_key(proposition)))
    return [
        claim
        for claim in found
        if isinstance(claim, Assertion)
        and claim.asserted_by == actor
        and claim.status == "active"
        and claim.system.state == "active"
    ]


def slot_propositions(view: View, subject: str, predicate_ref: str) -> list[Proposition]:
    """The Propositions of a subject and predicate."""
    found = (view.get(element) for element in view.find(subject_key(subject, predicate_ref)))
    return [element for element in found if isinstance(element, Proposition)]


def is_open(claim: Assertion) -> bool:
    """Whether the claim says that something holds until further notice."""
    return claim.stance == "support" and claim.valid_time.until is None


def record(draft: Draft, stated: Stated) -> Assertion | None:
    """Write a claim and supersede what it replaces; None where the actor already holds it, or it ends nothing."""
    proposition = draft.find_proposition(draft.canonical(stated.subject), stated.predicate_ref, stated.object)
    replaced, known = _compare(draft.view, stated, proposition)
    if known or (stated.ends and not replaced):
        return None
    proposition = draft.ensure_proposition(stated.subject, stated.predicate_ref, stated.object)
    later = [claim for claim in replaced if claim.asserted_at > stated.said_at]
    earlier = tuple(claim.id for claim in replaced if claim.asserted_at <= stated.said_at)
    wording: dict[str, Json] = {"at": stated.span[0], "length": stated.span[1] - stated.span[0]}
    if stated.when is not None:
        wording["time_text"] = stated.when.words
    new = draft.create(
        Assertion,
        proposition=proposition.id,
        asserted_by=stated.actor,
        stance=stated.stance,
        mode="stated",
        asserted_at=stated.said_at,
        confidence=HEDGED if stated.hedged else CONFIDENCE,
        valid_time=stated.valid_time,
        evidence=(Citation(stated.evidence, "support" if stated.stance == "support" else "challenge"),),
        supersedes=() if later else earlier,
        facets={WORDING: wording},
    )
    if later:
        successor = min(later, key=lambda claim: claim.asserted_at)
        draft.change(new, status="superseded", superseded_by=(successor.id,))
        draft.change(successor, supersedes=(*successor.supersedes, new.id))
    elif earlier:
        _supersede(draft, earlier, new, stated)
    return new


def _supersede(draft: Draft, earlier: tuple[str, ...], new: Assertion, stated: Stated) -> None:
    for old in earlier:
        claim = draft.get(old)
        if isinstance(claim, Assertion):
            draft.change(claim, status="superseded", superseded_by=(*claim.superseded_by, new.id))
    draft.create(
        Activity,
        activity_class="belief_revision",
        status="completed",
        started_at=draft.now,
        ended_at=draft.now,
        inputs=(*earlier, stated.evidence),
        outputs=(new.id,),
        associated_actors=(stated.actor,),
    )


def _compare(view: View, stated: Stated, proposition: Proposition | None) -> tuple[list[Assertion], bool]:
    """The actor's claims that a new one replaces, and whether the actor holds it already."""
    same = own_claims(view, stated.actor, proposition.id) if proposition else []
    if any(_says_as_much(claim, stated) for claim in same):
        return [], True
    closed = stated.valid_time.until is not None
    if stated.stance != "support":
        return [claim for claim in same if is_open(claim)], False
    if closed:  # what has ended ends the claim that it still holds, and says nothing of other values
        return [claim for claim in same if is_open(claim) and claim.asserted_at <= stated.said_at], False
    replaced = list(same)
    opposite = OPPOSITE.get(stated.predicate_ref)
    for other in slot_propositions(
        view, stated.subject, stated.predicate_ref if opposite is None else opposite
    ):
        in_slot = stated.predicate_ref in FUNCTIONAL and other != proposition
        if in_slot or (opposite is not None and other.object == stated.object):
            replaced += [claim for claim in own_claims(view, stated.actor, other.id) if is_open(claim)]
    return replaced, False


def _says_as_much(claim: Assertion, stated: Stated) -> bool:
    """Whether an active claim of the actor already says what is stated, so that saying it again adds nothing."""
    if claim.stance != stated.stance:
        return False
    old, new = claim.valid_time, stated.valid_time
    if new.until is not None:
        return old == new
    if old.until is not None:
        return False
    sharper = new.start is not None and old.start is None and stated.when is not None
    return not sharper
