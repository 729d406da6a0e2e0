"""The KIP syntax card: how to read and write memory, for a model, in sections that `kip_reference` serves singly.

What lives here: the text and its version. What must never live here: anything of a space. The text is the same bytes
in every request, so that a provider may cache it. A test parses every example in it.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = "kip-card-1"

MODEL: Final = """\
## Elements
Memory holds five kinds of elements; every element has an `id` that the engine gives.
- Concept: something that can be referred to. It has a type, perhaps a `key` (unchanging, unique within its type), a
  `name` (what it is called now; several may share one) and attributes.
- Proposition: a triple (subject, predicate, object). That it exists does not mean that it is true.
- Assertion: somebody's stance toward one Proposition: who (`asserted_by`), `stance` support, reject or uncertain,
  `mode`, `confidence` (of that stance), `asserted_at`, `valid_time` (when it holds in the world), the Evidence cited.
- Evidence: something observed, byte for byte. It is never changed.
- Activity: something that was done, with what went in and what came out.
A subject is an element; an object is an element or a plain value (string, number, true, false). Never invent a
Concept for a plain value. Names of types and predicates are quoted. `?x` is a variable or a handle, `:x` a parameter.
"""

READING: Final = """\
## Reading
Find where something is, then read it by its id. A search score says how well words match, nothing about truth.
```kip
SEARCH CONCEPT "berlin" WITH TYPE "Place" LIMIT 5
SEARCH ASSERTION "jazz concert" LIMIT 10
FIND(?p.id, ?p.name) WHERE { ?p {type: "Person", key: "alice"} }
FIND(?belief.status, ?where.name) WHERE { ?p {type: "Person", key: "alice"} ?belief BELIEF (?p, "lives_in", ?where) }
FIND(?slot.accepted_values) WHERE { ?p {id: :person} ?slot BELIEF SLOT (?p, "timezone") }
FIND(?a.id, ?a.asserted_at, ?a.lifecycle.status, ?o) WHERE {
  ?p (:person, "lives_in", ?o)
  ?a ASSERTION {proposition: ?p, asserted_by: :person}
} ORDER BY ?a.asserted_at DESC LIMIT 20
```
- BELIEF answers what is believed: accepted, rejected, contested, uncertain or insufficient. Raw patterns show who
  said what. Nothing found means that nothing is known, never that it is false.
- Patterns in WHERE stand one after the other without commas. FILTER(...), OPTIONAL {...}, NOT {...}, UNION {...}.
- `AS OF SEQ n` or `AS OF TIME "..."` reads what memory held then; `FOR TIME "..."` asks what was so in the world then.
- `FIND ... LIMIT n CURSOR "..."` goes on where a page ended.
"""

WRITING: Final = """\
## Writing
ASSERT records what somebody said. One statement, one claim.
```kip
ASSERT (:who1, "timezone", "UTC+1") {by: :who1, mode: "stated", confidence: 0.95, evidence: :msg1}
ASSERT ({id: "C-1"}, "likes", {id: "C-2"}) {by: :who1, mode: "stated", evidence: [:msg1, :msg2]}
ASSERT (:who1, "lives_in", :city) {
  by: :who1, mode: "stated", evidence: :msg3, valid: {from: "2026-05-01T00:00:00Z"}
} SUPERSEDING "A-7"
ASSERT (:who1, "likes", :sushi) {by: :who1, mode: "stated", stance: "reject", evidence: :msg4}
```
- A thing with a stable name is an UPSERT by type and key; the key is the name in lower case:
```kip
UPSERT CONCEPT ?city { MATCH {type: "Place", key: "new york"} SET FIELDS {name: "New York"} }
CREATE CONCEPT ?c {
  TYPE "Commitment"
  CLIENT KEY "send-report"
  NAME "Send the report"
  SET ATTRIBUTES {summary: "Send the report to Bob", status: "pending", due_at: "2026-05-08T00:00:00Z"}
  SET STRUCTURAL { ("committed_to", :who1) ("derived_from", :msg2) }
}
```
- What belongs together is one MUTATE, all of it or nothing; handles live within it:
```kip
MUTATE {
  UPSERT CONCEPT ?city { MATCH {type: "Place", key: "munich"} SET FIELDS {name: "Munich"} }
  ASSERT (:who1, "lives_in", ?city) {by: :who1, mode: "stated", evidence: :msg1} SUPERSEDING :old
}
```
- modes: stated (somebody said it), observed (a tool or a measurement showed it), inferred, predicted, hypothetical.
- Times are ISO 8601 with an offset or Z. `valid` is when a claim holds in the world, with `from`, `until` or both.
"""

CHANGES: Final = """\
## Changes and disagreement
- The same person now says something else of the same thing: a new ASSERT with SUPERSEDING the id of the old
  Assertion. The old one stays on record. Never edit it.
- It was so until then, and nothing replaces it: ASSERT with stance "reject", SUPERSEDING the old one, `valid` from
  when it ended.
- It was so in the past and is over: ASSERT with `valid` ending then; supersede nothing that still holds.
- It happens again ("again in May"): a new ASSERT with a `valid` interval of its own. The earlier interval stays.
- Somebody else says otherwise: an ASSERT of their own. Supersede nothing; memory keeps both and reports a dispute.
- A denial is stance "reject" toward the positive Proposition, never a value such as "not Berlin".
"""

META: Final = """\
## Looking around
```kip
DESCRIBE PRIMER
LIST TYPES
LIST PREDICATES
DESCRIBE TYPE "Commitment"
DESCRIBE PREDICATE "lives_in"
HISTORY ELEMENT "A-7" LIMIT 10
VALIDATE KML :command
PREVIEW KML :command
```
Ask what a type or predicate means before using one for the first time.
"""

ERRORS: Final = """\
## Errors
A failed command names a `code`, says what was wrong and often what to do. Repair the command and send it again.
SchemaSymbolNotFound: use a name that LIST shows. SchemaSymbolAmbiguous: write the exact reference it offers.
IdentityConflict: it is there already; use the id given. SupersessionMismatch: one person's claim cannot supersede
another's. ClientKeyConflict: the key stands for something else. NotAuthorized: not allowed here; do without.
InvalidSyntax: the place is named; mind quotes, commas and the order of clauses.
"""

SECTIONS: Final[dict[str, str]] = {
    "elements": MODEL,
    "reading": READING,
    "writing": WRITING,
    "changes": CHANGES,
    "meta": META,
    "errors": ERRORS,
}
CARD: Final = "# KIP, the language of memory\n\n" + "\n".join(SECTIONS.values())
