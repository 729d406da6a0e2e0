"""Index entries: everything an element can be found by, derived from the element alone.

One function, `entries`, is the whole index design: it lists an element's keys. Segments store them sorted
beside the elements, layers keep them in a dict, and a lookup is the same everywhere. A key is a short text:
one letter for the index, then its parts. Nothing here is state; everything here can be rebuilt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

from core.model.elements import Activity, AnyElement, Assertion, Concept, Evidence, Proposition, SourceRef
from core.model.ids import Kind
from core.model.instants import Instant
from core.model.literals import Term, term_key

SEP: Final = "\x1f"  # the unit separator: the grammar's identifiers, references and ids never contain it
_LONG: Final = 120
_DAY_MS: Final = 24 * 3600 * 1000


def _short(text: str) -> str:
    """Long parts are stood in for by their digest, so a key stays small; candidates are always re-checked."""
    if len(text) <= _LONG:
        return text
    return "#" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def kind_key(kind: Kind) -> str:
    """All elements of a kind."""
    return f"!{kind}"


def type_key(schema_ref: str) -> str:
    """All Concepts of an exact type."""
    return f"T{schema_ref}"


def concept_key(schema_ref: str, key: str) -> str:
    """The Concept with this key within its type (KIP §7.3)."""
    return f"k{schema_ref}{SEP}{_short(key)}"


def any_type_key(key: str) -> str:
    """Concepts of any type with this key; more than one is possible (KIP §7.3)."""
    return f"K{_short(key)}"


def name_key(name: str) -> str:
    """Concepts with exactly this name or alias; names are grounding, not identity (KIP §7.2)."""
    return f"n{_short(name)}"


def canonical_key(canonical_id: str) -> str:
    """The Concept with this cross-system identity (KIP §7.4)."""
    return f"i{_short(canonical_id)}"


def client_key(kind: Kind, key: str) -> str:
    """The element of a kind created under this client key (KIP §7.5)."""
    return f"c{kind}{SEP}{_short(key)}"


def tuple_key(subject: str, predicate_ref: str, obj: Term) -> str:
    """The Proposition with exactly this tuple (KIP §12.3)."""
    return f"t{subject}{SEP}{predicate_ref}{SEP}{_short(term_key(obj))}"


def subject_key(subject: str, predicate_ref: str | None = None) -> str:
    """Propositions of a subject, of one predicate or of any."""
    return f"s{subject}" if predicate_ref is None else f"S{subject}{SEP}{predicate_ref}"


def object_key(obj: Term, predicate_ref: str | None = None) -> str:
    """Propositions with this object, of one predicate or of any."""
    part = _short(term_key(obj))
    return f"o{part}" if predicate_ref is None else f"O{part}{SEP}{predicate_ref}"


def predicate_key(predicate_ref: str) -> str:
    """Propositions of a predicate."""
    return f"p{predicate_ref}"


def assertions_key(proposition: str) -> str:
    """Assertions about a Proposition."""
    return f"a{proposition}"


def actor_key(actor: str) -> str:
    """Assertions made by an actor."""
    return f"b{actor}"


def class_key(kind: Kind, name: str) -> str:
    """Evidence or Activities of a class, Assertions in a mode."""
    return f"e{kind}{SEP}{_short(name)}"


def referrers_key(target: str) -> str:
    """Elements that refer to `target` outside a tuple: citations, provenance, structural fields, lineage."""
    return f"r{target}"


def made_key(target: str) -> str:
    """Activities that have `target` among their outputs; provenance goes this way (KIP §16.5)."""
    return f"m{target}"


def facet_key(facet_ref: str) -> str:
    """Elements that carry a facet."""
    return f"f{facet_ref}"


def state_key(state: str) -> str:
    """Elements in an engine state other than active."""
    return f"z{state}"


def lapse_key(day: int) -> str:
    """Elements to look at on a day (days since 1970) because something of theirs lapses: a claim, or retention."""
    return f"x{day}"


def source_key(source: SourceRef) -> str:
    """The element that was imported as the representation of this one of another space (KIP §38.1)."""
    return f"q{_short(f'{source.nexus}{SEP}{source.space}{SEP}{source.element}')}"


def day_of(instant: Instant) -> int:
    """The day of an instant, in days since 1970."""
    return instant // _DAY_MS


def lapses(element: AnyElement) -> Iterator[Instant]:
    """When something of an active element ends: its retention, and a claim that was open when it was made.

    A claim about a time that was over when it was made ("from 2010 to 2012") lapses never: it is a report of the
    past, and as good as on its first day.
    """
    if element.system.state != "active":
        return
    if element.retention.expires_at is not None:
        yield element.retention.expires_at
    if isinstance(element, Assertion) and element.status == "active":
        until = element.valid_time.until
        if until is not None and until > element.asserted_at:
            yield until


def references(element: AnyElement) -> Iterator[tuple[str, str]]:
    """Every (field, target id) by which an element refers to another outside a Proposition's tuple."""
    for ref in element.structural:
        yield ref.field, ref.target
    if isinstance(element, Assertion):
        for citation in element.evidence:
            yield "evidence", citation.evidence
        yield from (("context_refs", target) for target in element.context_refs)
        yield from (("supersedes", target) for target in element.supersedes)
    elif isinstance(element, Evidence):
        yield from (("source", target) for target in element.source)
        if element.generated_by is not None:
            yield "generated_by", element.generated_by
        yield from (("corrects", target) for target in element.corrects)
    elif isinstance(element, Activity):
        yield from (("inputs", target) for target in element.inputs)
        yield from (("outputs", target) for target in element.outputs)
        yield from (("associated_actors", target) for target in element.associated_actors)
    elif isinstance(element, Concept) and element.merged_into is not None:
        yield "merged_into", element.merged_into


def _own_entries(element: AnyElement) -> Iterator[str]:
    if isinstance(element, Concept):
        yield type_key(element.schema_ref)
        if element.key is not None:
            yield concept_key(element.schema_ref, element.key)
            yield any_type_key(element.key)
        if element.canonical_id is not None:
            yield canonical_key(element.canonical_id)
        for name in {element.name, *element.aliases} - {None}:
            yield name_key(str(name))
    elif isinstance(element, Proposition):
        yield tuple_key(element.subject, element.predicate_ref, element.object)
        yield subject_key(element.subject)
        yield subject_key(element.subject, element.predicate_ref)
        yield object_key(element.object)
        yield object_key(element.object, element.predicate_ref)
        yield predicate_key(element.predicate_ref)
    elif isinstance(element, Assertion):
        yield assertions_key(element.proposition)
        yield actor_key(element.asserted_by)
        yield class_key("assertion", element.mode)
    elif isinstance(element, Evidence):
        yield class_key("evidence", element.evidence_class)
    else:
        yield class_key("activity", element.activity_class)
        yield from (made_key(target) for target in element.outputs)


def entries(element: AnyElement, kind: Kind) -> frozenset[str]:
    """Every key an element is found by, words of its text left out (those are `core.search`'s)."""
    found = {kind_key(kind), *_own_entries(element)}
    found.update(referrers_key(target) for _, target in references(element))
    found.update(facet_key(facet) for facet in element.facets)
    # Never under a day before the one it was written on: a sweep of that day may be over already.
    found.update(lapse_key(max(day_of(at), day_of(element.system.updated_at))) for at in lapses(element))
    if element.client_key is not None:
        found.add(client_key(kind, element.client_key))
    if element.system.state != "active":
        found.add(state_key(element.system.state))
    found.update(source_key(source) for source in element.system.origin.sources)
    return frozenset(found)
