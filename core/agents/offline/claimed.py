"""Claimed: what is claimed about those a question is about, as lines with their receipts.

What lives here: which claims bear on a question, and how sure that is. What must never live here: what was said
without being claimed (`core.agents.offline.quotation`), or how an answer is worded as a whole
(`core.agents.offline.answers`). Nothing is written: reading never strengthens a memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from core.agents.offline.cues import ALSO, CUES, KINDS, LISTED, RELATIONAL
from core.agents.offline.lines import Line, day, name_of, spelled
from core.agents.offline.people import fold
from core.agents.offline.questions import Asked
from core.agents.offline.rules.rule import one_spelling
from core.agents.vocabulary import DETAIL, FUNCTIONAL, ORGANIZATION, PLACE, TOPIC, local_name, predicate
from core.model.elements import Assertion, Concept, Proposition
from core.model.ids import kind_of, sort_key
from core.model.instants import Instant
from core.model.literals import Literal, Ref, Term, make_literal
from core.search.text import words
from core.search.turns import is_among
from core.state.indexes import assertions_key, concept_key, object_key, referrers_key, subject_key
from core.state.view import View

_COMMON: Final = frozenset(
    words("favourite number of go-to")
)  # of a label, what does not tell it from others
MAX_CLAIMS: Final = 6
MAX_NAME_WORDS: Final = 3
MAX_LOOKED_AT: Final = 200  # of one predicate's or word's elements, the newest
# Of what refers to somebody or has a word, the newest, in which details are looked for.
MAX_REFERRERS: Final = 5000
_WHAT_ONE_IS: Final = ("diet", "job", "relationship_status")  # "Who is a doctor?" names no predicate


def recall_claims(view: View, asked: Asked, now: Instant) -> list[Line]:
    """What is claimed about those the question is about, for the predicates it asks for; current first."""
    found: list[tuple[Line, bool]] = []
    for person in asked.focus:
        for about in _propositions(view, asked, person):
            said = bool(set(words(_words(view, about.object))) & (set(asked.terms) - asked.names))
            found += [(line, said) for line in _lines_of(view, asked, about, now, said=said)]
    if asked.who:
        found += [
            (line, True)
            for about in _by_object(view, asked)
            for line in _lines_of(view, asked, about, now, said=True)
        ]
    # "Does she like sushi?" wants sushi, where there is any; and what is only related must be named to count.
    named = {line.kind for line, said in found if said and predicate(line.kind) not in FUNCTIONAL}
    related = {other for kind in named for other in ALSO.get(kind, ())}
    lines = [
        line
        for line, said in found
        if (said or (line.kind in asked.predicates | {"value"} and line.kind not in named | related))
        and _answers(asked, line, said=said)
    ]
    # "When did she move to Lisbon?" is answered by Lisbon, though she lives elsewhere now.
    first = {line.entity for line, said in found if said} if asked.dating else set()
    lines.sort(key=lambda line: (line.entity not in first, not line.current, -line.sure, -line.at))
    unique = {(line.text, line.speaker): line for line in reversed(lines)}
    return [line for line in lines if unique[line.text, line.speaker] is line][:MAX_CLAIMS]


def _answers(asked: Asked, line: Line, *, said: bool) -> bool:
    """Whether a claim of a predicate asked for can answer: it speaks of whom and of what the question wants."""
    held = frozenset(words(one_spelling(line.text)))
    if not asked.strangers <= held:
        return False
    if line.kind not in LISTED:
        return True
    if asked.closed and asked.rest and not asked.rest & held:
        return False  # "Does she like opera?" is not answered by her liking tea
    if asked.kind is None or asked.kind in held:
        return True
    if asked.kind in KINDS:
        return bool(KINDS[asked.kind] & held)
    return said or "favourite" not in one_spelling(asked.text)


def _propositions(view: View, asked: Asked, person: Concept) -> Iterator[Proposition]:
    """A person's Propositions of the predicates asked for, and of the details whose label the question has.

    Each predicate is looked up by itself, and of a long list the newest are looked at, so that much being known of
    somebody makes no question slow.
    """
    wanted = asked.predicates.union(*(ALSO.get(name, ()) for name in asked.predicates))
    keys = [subject_key(person.id, predicate(name)) for name in sorted(wanted)]
    if asked.broad:  # "Who is Eve?"
        keys += [object_key(Ref(person.id), predicate(name)) for name in sorted(RELATIONAL)]
    keys += [subject_key(detail) for detail in _details(view, asked, person)]
    for key in keys:
        for element in sorted(islice(reversed(view.find(key)), MAX_LOOKED_AT), key=sort_key):
            about = view.get(element)
            if isinstance(about, Proposition):
                yield about


def _by_object(view: View, asked: Asked) -> Iterator[Proposition]:
    """Propositions that say of anybody what a question names: `"Who lives in Porto?"`, `"Who is a doctor?"`."""
    wanted = sorted(asked.predicates or _WHAT_ONE_IS)
    tokens = [word if words(word) else "" for word in re.findall(r"[\w'-]+", asked.text)]
    names = {
        " ".join(tokens[i : i + size])
        for size in range(1, MAX_NAME_WORDS + 1)
        for i in range(len(tokens) - size + 1)
        if all(tokens[i : i + size])
    }
    terms: list[Term] = [make_literal(name) for name in names]
    terms += [
        Ref(element)
        for name in names
        for kind in (PLACE, ORGANIZATION, TOPIC)
        for element in view.find(concept_key(kind, fold(name)))
    ]
    for term in terms:
        for name in wanted:
            for element in islice(reversed(view.find(object_key(term, predicate(name)))), MAX_CLAIMS):
                about = view.get(element)
                if isinstance(about, Proposition):
                    yield about


def _details(view: View, asked: Asked, person: Concept) -> Iterator[str]:
    """The details of a person whose label the question has; all of them where it asks for all there is."""
    terms = set(words(one_spelling(asked.text))) - asked.names
    referrers = view.find(referrers_key(person.id))
    if asked.broad:
        found = islice(reversed(referrers), MAX_REFERRERS)
        candidates = {element for element in found if kind_of(element) == "concept"}
    else:
        newest = (islice(reversed(view.word(term)), MAX_REFERRERS) for term in terms - _COMMON)
        found_by = (element for pairs in newest for element, _ in pairs)
        named = {element for element in found_by if element[0] == "C"}
        candidates = {element for element in named if is_among(referrers, element)}
    for element in sorted(candidates, key=sort_key)[-MAX_LOOKED_AT:]:
        detail = view.get(element)
        if isinstance(detail, Concept) and detail.schema_ref == DETAIL and detail.system.state == "active":
            label = set(words(str(detail.attributes.get("label", "")))) - _COMMON
            if asked.broad or (label and label <= terms):
                yield element


def _lines_of(view: View, asked: Asked, about: Proposition, now: Instant, *, said: bool) -> Iterator[Line]:
    """The claims of a Proposition that are asked for: what holds, and what has ended if the past or its value is named."""
    for element in view.find(assertions_key(about.id)):
        claim = view.get(element)
        if not isinstance(claim, Assertion) or claim.system.state != "active" or claim.status == "retracted":
            continue
        current = claim.status == "active" and (
            claim.valid_time.until is None or claim.valid_time.until > now
        )
        if asked.when is not None:
            first, last = _held(view, claim)
            if first > asked.when.end or last <= asked.when.start:
                continue
        elif not (current or asked.past or said) and claim.stance == "support" and claim.status != "active":
            continue
        yield _line(view, asked, about, claim, current=current)


def _held(view: View, claim: Assertion) -> tuple[Instant, Instant]:
    """From when until when the actor held a claim: its valid time, else what its successors say."""
    first = claim.valid_time.start if claim.valid_time.start is not None else 0
    ends = [claim.valid_time.until] if claim.valid_time.until is not None else []
    for successor in claim.superseded_by:
        later = view.get(successor)
        if isinstance(later, Assertion):
            ends.append(later.valid_time.start if later.valid_time.start is not None else later.asserted_at)
    return first, min(ends, default=2**53)


def _line(view: View, asked: Asked, about: Proposition, claim: Assertion, *, current: bool) -> Line:
    cue = CUES[local_name(about.predicate_ref)] if local_name(about.predicate_ref) in CUES else CUES["value"]
    form = cue.ended if claim.stance == "support" and not current else cue.holds
    form = cue.denied if claim.stance == "reject" else form
    subject = _subject(view, about.subject)
    # "camping with Ada's family" of Ada herself
    text = form.format(s=subject, o=_words(view, about.object).replace(f"{subject}'s ", "their "))
    first, last = claim.valid_time.start, _held(view, claim)[1]
    if not current and last < 2**53:
        text += f" from {day(first)}" if first is not None and first < last else ""
        text += f" until {day(last)}"
    elif first is not None:
        text += f" since {day(first)}"
    speaker = view.get(claim.asserted_by)
    source = claim.evidence[0].evidence if claim.evidence else None
    overlap = len(set(words(text)) & (set(asked.terms) - asked.names))
    return Line(
        text=text,
        entity=claim.id,
        kind=local_name(about.predicate_ref),
        speaker=name_of(speaker),
        at=claim.asserted_at,
        source=source,
        confidence=claim.confidence,
        sure=(claim.confidence or 0.5) + 0.05 * overlap,
        current=current,
    )


def _subject(view: View, element: str) -> str:
    """How a subject is spoken of: a Detail as its owner's (`Alice's favourite colour`)."""
    found = view.get(element)
    if isinstance(found, Concept) and found.schema_ref == DETAIL:
        owner = next((view.get(ref.target) for ref in found.structural), None)
        return f"{name_of(owner)}'s {found.attributes.get('label', '')}"
    return name_of(found)


def _words(view: View, term: Term) -> str:
    return spelled(str(term.value)) if isinstance(term, Literal) else name_of(view.get(term.id))
