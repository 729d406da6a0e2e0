"""Recollection: what the record holds about a question, as lines with their receipts.

What lives here: which claims, commitments and turns bear on a question, and how sure that is. What must never
live here: how an answer is worded as a whole (`core.agents.offline.answers`). Nothing is written: reading never
strengthens a memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Final

import msgspec

from core.agents.dialogue import text_of
from core.agents.offline.alike import ALIKE
from core.agents.offline.cues import ALSO, COMMITMENTS, CUES, KINDS, LISTED, RELATIONAL
from core.agents.offline.dates import When, find_dates
from core.agents.offline.kin import Kin
from core.agents.offline.people import fold
from core.agents.offline.questions import DAY, Asked, name_terms
from core.agents.offline.rules.rule import one_spelling
from core.agents.vocabulary import (
    COMMITMENT,
    COMMITTED_TO,
    DETAIL,
    FUNCTIONAL,
    ORGANIZATION,
    PLACE,
    TOPIC,
    local_name,
    predicate,
)
from core.model.elements import Assertion, Concept, Evidence, Proposition
from core.model.ids import kind_of, sort_key
from core.model.instants import Instant, format_instant, parse_instant, to_datetime
from core.model.literals import Literal, Ref, Term, make_literal
from core.search.text import words
from core.search.turns import Ranked, Turns, Wanted, is_among, rank, session_of
from core.state.indexes import (
    assertions_key,
    concept_key,
    object_key,
    referrers_key,
    state_key,
    subject_key,
    type_key,
)
from core.state.view import View

_GONE: Final = ("archived", "tombstoned", "merged", "purged")
_COMMON: Final = frozenset(
    words("favourite number of go-to")
)  # of a label, what does not tell it from others
MAX_CLAIMS: Final = 6
MAX_TURNS: Final = 20
MAX_NAME_WORDS: Final = 3
_WHAT_ONE_IS: Final = ("diet", "job", "relationship_status")  # "Who is a doctor?" names no predicate
_MOST_DAYS: Final = 7  # a longer time is looked up by its months
MAX_LOOKED_AT: Final = 200  # of one predicate's or word's elements, the newest
MAX_REFERRERS: Final = (
    5000  # of what refers to somebody or has a word, the newest, in which details are looked for
)
MAX_COMMITMENTS: Final = 500  # the newest, looked at for one question


class Line(msgspec.Struct, frozen=True):
    """One thing that bears on a question: what to say, and its receipt.

    entity: the element that says it. source: the Evidence it rests on. sure: 0 to 1. current: it holds now.
    """

    text: str
    entity: str
    kind: str
    speaker: str
    at: Instant
    source: str | None = None
    confidence: float | None = None
    sure: float = 0.0
    current: bool = True


def hidden_ids(view: View) -> frozenset[str]:
    """Elements that recall does not see: archived, tombstoned, merged, purged."""
    return frozenset(element for state in _GONE for element in view.find(state_key(state)))


# --- claims


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
        speaker=_name(speaker),
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
        return f"{_name(owner)}'s {found.attributes.get('label', '')}"
    return _name(found)


def _words(view: View, term: Term) -> str:
    return str(term.value) if isinstance(term, Literal) else _name(view.get(term.id))


def _name(element: object) -> str:
    return element.name or element.key or "somebody" if isinstance(element, Concept) else "somebody"


def day(instant: Instant) -> str:
    """A date as answers write it: `8 May 2023`."""
    moment = to_datetime(max(min(instant, 253_402_214_400_000), -62_135_510_400_000))
    return f"{moment.day} {moment:%B %Y}"


# --- commitments


def recall_commitments(view: View, asked: Asked, now: Instant) -> list[Line]:
    """Open commitments, if the question asks for any: those it names, by when they are due.

    Of those on record the newest are looked at, so that a question costs the same however long the record.
    """
    if COMMITMENTS.search(asked.text) is None or (asked.kin is not None and not asked.kin.people):
        return []
    makers = {person.id for person in (asked.named if asked.kin is None else asked.kin.people)}
    ahead = find_dates(asked.text, now)
    span = ahead[0] if len(ahead) == 1 else None
    terms = asked.rest - (frozenset(words(span.words)) if span is not None else frozenset())
    found: list[tuple[int, Instant, Line]] = []
    for element in islice(reversed(view.find(type_key(COMMITMENT))), MAX_COMMITMENTS):
        made = view.get(element)
        if (
            not isinstance(made, Concept)
            or made.system.state != "active"
            or made.attributes.get("status") != "pending"
        ):
            continue
        line, at = _commitment(view, made, now)
        maker = next((ref.target for ref in made.structural if ref.field == COMMITTED_TO), None)
        summary = frozenset(words(str(made.attributes.get("summary"))))
        told = {term for person in asked.named for term in name_terms(person)}
        if makers and maker not in makers and not told & summary:
            continue
        if not asked.strangers <= summary or (span is not None and not _falls(span, at)):
            continue
        found.append((-len(terms & summary), at if at >= now else at + 2**52, line))
    found.sort(key=lambda row: row[:2])
    wanted = [line for overlap, _, line in found if overlap or not terms or span is not None]
    return wanted[:MAX_CLAIMS]


def _commitment(view: View, made: Concept, now: Instant) -> tuple[Line, Instant]:
    """A commitment as a line, and when it is due (far off where that was not said)."""
    maker = next((view.get(ref.target) for ref in made.structural if ref.field == COMMITTED_TO), None)
    due = str(made.attributes.get("due_at") or "")
    at = parse_instant(due) if due else 2**52
    text = f"{_name(maker)} ({made.attributes.get('commitment_class')}): {made.attributes.get('summary')}"
    text += f", due {day(at)}" if due else ""
    said = parse_instant(str(made.attributes["created_at"]))
    source = next((ref.target for ref in made.structural if ref.target.startswith("E-")), None)
    return Line(text, made.id, "commitment", _name(maker), said, source, sure=0.8, current=at >= now), at


def _falls(span: When, at: Instant) -> bool:
    return span.start <= at < span.end


# --- turns


def recall_turns(view: View, asked: Asked, turns: Turns, hidden: frozenset[str]) -> list[Ranked]:
    """The turns that bear on the question, best first."""
    spoken = view.find(referrers_key(asked.named[0].id)) if len(asked.named) == 1 else ()
    wanted = Wanted(asked.terms, ALIKE, _dated(view, asked), spoken, asked.light)
    return rank(turns, view, wanted, hidden.__contains__)


def _dated(view: View, asked: Asked) -> dict[str, frozenset[str]]:
    """For each date's word in the question, the sessions of that time.

    A session's Event says its date in words (`core.agents.offline.formation`), so the text index knows the sessions
    of a day, a month or a year without looking at any other.
    """
    dated: dict[str, frozenset[str]] = {}
    for month in asked.months:
        name = f"{datetime(2000, month, 1, tzinfo=UTC):%B}"
        dated.update((term, _sessions_of(view, name)) for term in words(name))
    dated.update((str(year), _sessions_of(view, str(year))) for year in asked.years)
    if asked.day is not None:
        first, last = to_datetime(asked.day.start), to_datetime(asked.day.end - 1)
        days = [first + timedelta(days=n) for n in range(min((last - first).days, _MOST_DAYS) + 1)]
        texts = (
            {f"{moment:%B %Y}" for moment in days}
            if len(days) > _MOST_DAYS
            else {f"{moment:%d %B %Y}" for moment in days}
        )
        if asked.day.yearless:
            texts = {text[:-5] for text in texts}
        dated[DAY] = frozenset().union(*(_sessions_of(view, text) for text in texts))
    return dated


def _sessions_of(view: View, date: str) -> frozenset[str]:
    """The sessions whose Event has all the words of a date."""
    found = [
        frozenset(session_of(element) for element, _ in view.word(term) if element[0] == "C")
        for term in words(date)
    ]
    return frozenset.intersection(*found) if found else frozenset()


def bears(view: View, asked: Asked, turns: Turns, turn: str) -> bool:
    """Whether a turn can answer: in one breath it speaks of whom and of what the question is about.

    A sentence with a telling word counts if it speaks of the person asked about, or if that person says it; so
    "I live in Porto. I saw Bob." does not say where Bob lives. A turn behind a question goes with it.
    """
    said, asking = _said(view, turn), _question_before(view, turns, turn)
    breaths = [frozenset(words(piece)) for piece in _SENTENCE.split(said)]
    if asking:
        breaths.append(frozenset(words(asking)))
    evidence = view.get(turn)
    at = evidence.observed_at if isinstance(evidence, Evidence) else None
    on_day = asked.day is not None and at is not None and asked.day.covers(at)
    own = set(asked.terms) - asked.light
    if asked.kin is not None:  # that somebody has a sister does not say what she likes
        own = own - asked.kin.terms or own
    telling = {one for term in own for one in (term, *ALIKE.get(term, ()))}
    concerned = _concerned(view, asked, turns, turn)
    return any((on_day or telling & breath) and concerned(breath) for breath in breaths)


def _concerned(view: View, asked: Asked, turns: Turns, turn: str) -> Callable[[frozenset[str]], bool]:
    """Whether the words of a sentence of this turn speak of those whom the question is about."""
    speakers = speaker_ids(view, turn)
    if asked.kin is not None:
        return partial(_concerns_kin, asked, asked.kin, speakers)
    named = {person.id for person in asked.named}
    if not named or speakers & {person.id for person in asked.focus}:
        return asked.strangers.issubset
    beside = {one for other in turns.around(turn) for one in speaker_ids(view, other)}
    if beside & named and _YOU.search(_said(view, turn)):
        return asked.strangers.issubset  # spoken to the person asked about
    wanted = frozenset(term for person in asked.named for term in name_terms(person))
    return lambda breath: asked.strangers <= breath and bool(wanted & breath)


def _concerns_kin(asked: Asked, kin: Kin, speakers: frozenset[str], breath: frozenset[str]) -> bool:
    """Whether a sentence is said by or speaks of somebody's relative: by name, or as theirs."""
    if not asked.strangers <= breath:
        return False
    if any(person.id in speakers or name_terms(person) & breath for person in kin.people):
        return True
    theirs = kin.owner is None or kin.owner.id in speakers or bool(name_terms(kin.owner) & breath)
    return theirs and bool(kin.terms & breath)


def speaker_ids(view: View, turn: str) -> frozenset[str]:
    """Who said a turn."""
    evidence = view.get(turn)
    return frozenset(evidence.source) if isinstance(evidence, Evidence) else frozenset()


def _question_before(view: View, turns: Turns, turn: str) -> str:
    """The turn before, if it asks something that this one may answer; else the empty text."""
    before = turns.before(turn)
    if before is None:
        return ""
    text = _said(view, before)
    return text if text.rstrip().endswith(("?", "？")) else ""


def _said(view: View, turn: str) -> str:
    evidence = view.get(turn)
    return text_of(evidence.payload.inline) if isinstance(evidence, Evidence) else ""


def turn_line(view: View, asked: Asked, turn: Ranked) -> Line | None:
    """A turn as a line: its sentence that fits best, who said it and when."""
    evidence = view.get(turn.id)
    if not isinstance(evidence, Evidence):
        return None
    speaker = next((view.get(source) for source in evidence.source), None)
    # Somebody else's word on whom the question is about, or on somebody unknown, is worth little more than half.
    about = asked.kin.people if asked.kin is not None else asked.focus
    known = not (asked.strangers or asked.kin or asked.named or asked.lost)
    direct = known or bool(set(evidence.source) & {person.id for person in about})
    return Line(
        text=best_passage(text_of(evidence.payload.inline), asked.terms),
        entity=evidence.id,
        kind=evidence.evidence_class,
        speaker=_name(speaker),
        at=evidence.observed_at or evidence.system.created_at,
        source=evidence.id,
        sure=turn.coverage * (1.0 if direct else 0.6),
    )


_SENTENCE: Final = re.compile(r"[.!?\n;。！？]+(?=\s|$)")
_YOU: Final = re.compile(r"\b(?:you|your|yours)\b", re.IGNORECASE)
_PASSAGE: Final = 320  # characters


def best_passage(text: str, terms: tuple[str, ...]) -> str:
    """The part of a text that holds most of the terms, at most `_PASSAGE` characters, cut between words."""
    flat = " ".join(text.split())
    if len(flat) <= _PASSAGE:
        return flat
    wanted = set(terms)
    best, best_score = 0, -1
    for start in range(0, len(flat) - _PASSAGE // 2, _PASSAGE // 4):
        score = len(wanted & set(words(flat[start : start + _PASSAGE])))
        if score > best_score:
            best, best_score = start, score
    piece = flat[best : best + _PASSAGE]
    if best:
        piece = "…" + piece.partition(" ")[2] if " " in piece[:40] else "…" + piece
    if best + _PASSAGE < len(flat):
        piece = (piece.rpartition(" ")[0] if " " in piece[-40:] else piece) + "…"
    return piece


def wire_time(instant: Instant) -> str:
    """An instant as citations carry it."""
    return format_instant(instant)
