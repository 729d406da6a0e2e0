"""What the other modules leave: nested tuples, identities of every sort, lineages in one statement, record details."""

from __future__ import annotations

import pytest

from core.model.literals import Ref

LOOSE = {
    "format": "KIP-Schema-Package",
    "manifest": {"package_id": "kip://acme/loose", "version": "1.0.0"},
    "definitions": {
        "concept_types": {"Thing": {}, "Pair": {}},
        "predicates": {"says": {}, "rated": {"object": {"literal_types": ["number"], "literal": {"minimum": 0, "maximum": 5}}}},
        "facets": {"Note": {"closed": False, "fields": {"must": {"type": "string", "required": True}}}},
        "structural_fields": {
            "half": {"source": {"concept_types": ["kip://acme/loose@1.0.0/Pair"]}, "cardinality": {"min": 1, "max": 2}},
            "seen": {"unique": False, "ordered": True},
        },
    },
}  # fmt: skip


@pytest.fixture
def loose(people):
    """The people, and a package whose definitions restrict almost nothing."""
    people.activate([LOOSE])
    return people


# --- tuples


def test_a_statement_about_a_statement(loose):
    """A nested tuple is resolved or created with the outer one; by handle, by structure and by id it is the same."""
    made = loose.handles(
        'MUTATE {ENSURE PROPOSITION ?outer (:bob, "says", ?inner) ENSURE PROPOSITION ?inner (:alice, "knows", :carol)}',
        loose.ref,
    )
    again = loose.do('ENSURE PROPOSITION ?o (:bob, "says", (:alice, "knows", :carol))')["handles"]["o"]
    by_id = loose.do(f'ENSURE PROPOSITION ?o (:bob, "says", (id: "{made["inner"]["id"]}"))')["handles"]["o"]

    assert loose.get(made["outer"]).object == Ref(made["inner"]["id"])
    assert (again["id"], again["created"]) == (by_id["id"], by_id["created"]) == (made["outer"]["id"], False)
    assert loose.do("FIND(COUNT(?p)) WHERE {?p PROPOSITION (?s, ?r, ?o)}") == [2]


def test_ends_that_are_not_what_they_seem(loose):
    """(id: ...) names a Proposition; an end is selected by plain values."""
    assert (
        loose.no('ENSURE PROPOSITION (:bob, "says", (id: :i))', i=loose.ref["alice"]["id"]) == "TypeMismatch"
    )
    assert (
        loose.no('ENSURE PROPOSITION (:bob, "says", {id: :i, type: "Theme"})', i=loose.ref["alice"]["id"])
        == "NotFoundOrNotVisible"
    )
    assert loose.no('ENSURE PROPOSITION (:bob, "says", {key: ["a"]})') == "IdentitySelectorRequired"
    assert (
        loose.no('MUTATE {ENSURE PROPOSITION ?a (:bob, "says", ?b) ENSURE PROPOSITION ?b (:bob, "says", ?a)}')
        == "ReferenceError"
    )


def test_rules_of_a_literal_object(loose):
    """A Predicate's rule for its literals is kept at its edges."""
    loose.do('ENSURE PROPOSITION (:bob, "rated", 5)')
    assert loose.no('ENSURE PROPOSITION (:bob, "rated", 5.5)') == "ConstraintViolation"
    assert loose.no('ENSURE PROPOSITION (:bob, "rated", "5")') == "TypeMismatch"
    one = loose.do('ENSURE PROPOSITION ?p (:bob, "rated", 1)')["handles"]["p"]["id"]
    assert loose.do('ENSURE PROPOSITION ?p (:bob, "rated", 1.0)')["handles"]["p"]["id"] == one


def test_a_tombstoned_tuple_is_not_revived(people):
    """ENSURE after a TOMBSTONE makes a new Proposition; after an ARCHIVE it finds the old one."""
    command = 'ENSURE PROPOSITION ?p (:alice, "knows", :bob)'
    made = people.handles(command, people.ref)
    people.do("ARCHIVE :p", **made)
    assert people.handles(command, people.ref) == made
    people.do("TOMBSTONE :p", **made)

    assert people.handles(command, people.ref) != made


def test_expect_version_on_a_tuple(people):
    """A guard on a tuple passes on its version, and 0 on its absence."""
    command = 'ENSURE PROPOSITION (:alice, "knows", :bob) EXPECT VERSION :v'

    assert people.no(command, v=1) == "VersionConflict"
    people.do(command, v=0)
    assert people.no(command, v=0) == "VersionConflict"
    assert people.status(command, v=1) == "no_effect"


# --- identities


def test_upsert_by_canonical_id_and_by_two_identities(people):
    """A canonical id resolves and never creates; an id and a key must name one Concept."""
    people.do('UPSERT CONCEPT ?c {MATCH {type: "Person", key: "zoe"} SET FIELDS {canonical_id: "urn:zoe"}}')
    alice = people.ref["alice"]["id"]

    assert (
        people.no(
            'UPSERT CONCEPT ?c {MATCH {type: "Person", key: "yan"} SET FIELDS {canonical_id: "urn:zoe"}}'
        )
        == "IdentityConflict"
    )
    people.do('UPSERT CONCEPT ?c {MATCH {id: :i, key: "alice"} SET ATTRIBUTES {a: 1}}', i=alice)
    assert (
        people.no('UPSERT CONCEPT ?c {MATCH {id: :i, key: "bob"} SET ATTRIBUTES {a: 1}}', i=alice)
        == "NotFoundOrNotVisible"
    )
    assert (
        people.no('UPSERT CONCEPT ?c {MATCH {type: "Person", key: "alice"} SET FIELDS {key: "other"}}')
        == "ImmutableField"
    )
    assert (
        people.status('UPSERT CONCEPT ?c {MATCH {type: "Person", key: "alice"} SET FIELDS {key: "alice"}}')
        == "no_effect"
    )


def test_a_reference_may_be_a_stable_identity(people):
    """Where an element is referred to, a Concept may be named by type and key."""
    said = people.do(
        'ASSERT ?a ({key: "alice"}, "knows", {type: "Person", key: "bob"}) {by: {type: "Person", key: "carol"}, mode: "stated"}'
    )
    claim = people.get(said["handles"]["a"]["id"])

    assert claim.asserted_by == people.ref["carol"]["id"]
    assert (
        people.no('ASSERT (:alice, "knows", :bob) {by: {name: "Carol"}, mode: "stated"}')
        == "NameIdentityForbidden"
    )
    assert people.no('ASSERT (:alice, "knows", :bob) {by: {key: ["x"]}, mode: "stated"}') == "TypeMismatch"


def test_handles_may_be_updated_where_they_are_made(people):
    """An UPDATE of a handle completes what the same statement creates, in any order."""
    made = people.handles(
        'MUTATE {UPDATE ?t SET ATTRIBUTES {a: 1} CREATE CONCEPT ?t {TYPE "Theme" NAME "T"} ARCHIVE ?t}'
    )
    theme = people.get(made["t"])

    assert (theme.attributes, theme.system.state, theme.system.version) == ({"a": 1}, "archived", 1)


def test_a_lifecycle_command_is_about_what_was_there(people):
    """What a statement creates is not retracted, corrected or ended by it."""
    assert (
        people.no(
            'MUTATE {ASSERT ?a (:alice, "knows", :bob) {by: :alice, mode: "stated"} RETRACT ASSERTION ?a}'
        )
        == "InvalidLifecycleTransition"
    )
    assert (
        people.no(
            'MUTATE {CREATE ACTIVITY ?x {SET FIELDS {activity_class: "c"}} TRANSITION ACTIVITY ?x TO "completed"}'
        )
        == "InvalidLifecycleTransition"
    )


def test_what_is_no_element_is_not_changed(people):
    """A variable bound to a literal is no target and no reference."""
    people.do('ENSURE PROPOSITION (:alice, "timezone", "x")')

    assert people.no('ARCHIVE ?o WHERE {?p PROPOSITION (?s, "timezone", ?o)}') == "TypeMismatch"
    day = people.handles('CREATE CONCEPT ?d {TYPE "Experience"}')
    command = 'UPDATE :d SET STRUCTURAL {("experienced_by", ?o)} WHERE {?p PROPOSITION (?s, "timezone", ?o)}'
    assert people.no(command, **day) == "TypeMismatch"


# --- lineages in one statement


@pytest.mark.parametrize("flip", [False, True])
def test_a_chain_of_corrections_in_any_order(people, flip):
    """A by B and B by C commit together whichever is written first; A by B and B by A never do."""
    made = people.handles(
        "MUTATE {"
        + " ".join(
            f'CREATE EVIDENCE ?e{i} {{SET FIELDS {{evidence_class: "x", payload: {i}}}}}' for i in range(3)
        )
        + "}"
    )
    chain = ["CORRECT EVIDENCE :e0 BY :e1", "CORRECT EVIDENCE :e1 BY :e2"]
    circle = ["CORRECT EVIDENCE :e0 BY :e1", "CORRECT EVIDENCE :e1 BY :e0"]
    for plan in (chain, circle):
        plan[:] = reversed(plan) if flip else plan

    assert people.no("MUTATE {" + " ".join(circle) + "}", **made) == "EvidenceCorrectionConflict"
    assert (
        people.no("MUTATE {CORRECT EVIDENCE :e0 BY :e1 CORRECT EVIDENCE :e0 BY :e2}", **made)
        == "DuplicateMutationTarget"
    )
    people.do("MUTATE {" + " ".join(chain) + "}", **made)
    middle = people.get(made["e1"])
    assert (middle.status, middle.corrects, middle.corrected_by) == (
        "corrected",
        (made["e0"]["id"],),
        (made["e2"]["id"],),
    )


@pytest.mark.parametrize("flip", [False, True])
def test_a_chain_of_supersessions_in_any_order(people, flip):
    """As for Evidence: chains commit, circles do not."""
    say = 'ASSERT ?a (:alice, "timezone", "x") {by: :alice, mode: "stated"}'
    made = {name: {"id": people.do(say)["handles"]["a"]["id"]} for name in ("a", "b", "c")}
    chain = ["SUPERSEDE ASSERTION :a BY :b", "SUPERSEDE ASSERTION :b BY :c"]
    circle = ["SUPERSEDE ASSERTION :a BY :b", "SUPERSEDE ASSERTION :b BY :a"]
    for plan in (chain, circle):
        plan[:] = reversed(plan) if flip else plan

    assert people.no("MUTATE {" + " ".join(circle) + "}", **made) == "SupersessionMismatch"
    people.do("MUTATE {" + " ".join(chain) + "}", **made)
    assert [people.get(made[name]).status for name in "abc"] == ["superseded", "superseded", "active"]


def test_a_successor_may_be_made_in_a_later_clause(people):
    """SUPERSEDE and CORRECT may stand before the clause that creates what takes over."""
    old = {
        "old": {
            "id": people.do('ASSERT ?a (:alice, "timezone", "x") {by: :alice, mode: "stated"}')["handles"][
                "a"
            ]["id"]
        }
    }
    made = people.handles('MUTATE {SUPERSEDE ASSERTION :old BY ?new ASSERT ?new (:alice, "timezone", "y") {by: :alice, mode: "stated"} '
                          'CREATE EVIDENCE ?wrong {SET FIELDS {evidence_class: "x", payload: 1}}}', {**people.ref, **old})  # fmt: skip
    people.do(
        'MUTATE {CORRECT EVIDENCE :wrong BY ?right CREATE EVIDENCE ?right {SET FIELDS {evidence_class: "x", payload: 2}}}',
        **made,
    )

    assert people.get(old["old"]).superseded_by == (made["new"]["id"],)
    assert people.get(made["wrong"]).status == "corrected"


# --- records


def test_context_and_roles_of_a_claim(people):
    """Context references and citations in every role are kept as written."""
    made = people.handles('MUTATE {CREATE EVIDENCE ?m {SET FIELDS {evidence_class: "x", payload: "y"}} ENSURE PROPOSITION ?p (:alice, "knows", :bob) '
                          'CREATE ASSERTION ?a {SET FIELDS {proposition: ?p, asserted_by: :alice, stance: "uncertain", mode: "inferred", confidence: null, '
                          'valid_time: null, context_refs: [:dark, :dark, ?m]} SET STRUCTURAL {("evidence", ?m) {role: "challenge"} ("evidence", ?m)}}}', people.ref)  # fmt: skip
    claim = people.get(made["a"])

    assert claim.context_refs == (people.ref["dark"]["id"], made["m"]["id"])
    assert [(item.evidence, item.role) for item in claim.evidence] == [
        (made["m"]["id"], "challenge"),
        (made["m"]["id"], "support"),
    ]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ("context_refs: :dark", "TypeMismatch"),
        ('context_refs: ["nowhere"]', "NotFoundOrNotVisible"),
        ("confidence: 0.5, evidence: []", "SchemaFieldNotFound"),
        ("valid_time: 5", "TypeMismatch"),
        ("asserted_at: 5", "TypeMismatch"),
        ('status: "retracted"', "InvalidLifecycleTransition"),
        ("superseded_by: []", "InvalidLifecycleTransition"),
        ('colour: "red"', "SchemaFieldNotFound"),
        ("attributes: {}", "SchemaFieldNotFound"),
    ],
)
def test_fields_of_a_claim_that_do_not_fit(people, fields, code):
    """Each field is of its kind, and lifecycle and structure are not fields."""
    command = f'CREATE ASSERTION ?a {{SET FIELDS {{proposition: ?p, asserted_by: :alice, stance: "support", mode: "stated", {fields}}}}}'

    assert people.no(f'MUTATE {{ENSURE PROPOSITION ?p (:alice, "knows", :bob) {command}}}') == code


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ("payload: null", "TypeMismatch"),
        ('payload: {mode: "inline"}', "ConstraintViolation"),
        ('payload: {mode: "inline", inline: "x", content_ref: "y"}', "ConstraintViolation"),
        ('payload: {mode: "external", inline: "x", content_ref: "y"}', "ConstraintViolation"),
        ('payload: "x", content_digest: "nonsense"', "ConstraintViolation"),
        ('payload: "x", media_type: ""', "TypeMismatch"),
        ('payload: "x", observed_at: "noon"', "TypeMismatch"),
        ('payload: "x", generated_by: 1', "SchemaFieldNotFound"),
    ],
)
def test_fields_of_evidence_that_do_not_fit(people, fields, code):
    """A payload is one of its forms, and other fields are of their kinds."""
    assert people.no(f'CREATE EVIDENCE ?e {{SET FIELDS {{evidence_class: "x", {fields}}}}}') == code


def test_payload_forms(people):
    """The written inline form is its content; an object that only looks like one is content itself."""
    made = people.handles('MUTATE {CREATE EVIDENCE ?a {SET FIELDS {evidence_class: "x", payload: {mode: "inline", inline: {text: "t"}}}} '
                          'CREATE EVIDENCE ?b {SET FIELDS {evidence_class: "x", payload: {mode: "loud", inline: 1}}}}')  # fmt: skip

    assert people.get(made["a"]).payload.inline == {"text": "t"}
    assert people.get(made["b"]).payload.inline == {"mode": "loud", "inline": 1}


@pytest.mark.parametrize(
    ("clause", "code"),
    [
        ('("evidence", ?m) {role: "proof"}', "ConstraintViolation"),
        ('("evidence", ?m) {weight: 2}', "ConstraintViolation"),
        ('("has_step", ?m)', "StructuralReferenceInvalid"),
        ('("evidence", 5)', "TypeMismatch"),
    ],
)
def test_references_of_a_claim_that_do_not_fit(people, clause, code):
    """A citation has a role of three and nothing else; a Concept's field is none of a claim's."""
    command = f'CREATE ASSERTION ?a {{SET FIELDS {{proposition: ?p, asserted_by: :alice, stance: "support", mode: "stated"}} SET STRUCTURAL {{{clause}}}}}'
    plan = f'MUTATE {{ENSURE PROPOSITION ?p (:alice, "knows", :bob) CREATE EVIDENCE ?m {{SET FIELDS {{evidence_class: "x", payload: 1}}}} {command}}}'

    assert people.no(plan) == code


def test_evidence_has_one_maker(people):
    """generated_by takes one Activity."""
    plan = ('MUTATE {CREATE ACTIVITY ?x {SET FIELDS {activity_class: "c"}} CREATE ACTIVITY ?y {SET FIELDS {activity_class: "c"}} '
            'CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "x", payload: 1} SET STRUCTURAL {("generated_by", ?x) ("generated_by", ?y)}}}')  # fmt: skip

    assert people.no(plan) == "ConstraintViolation"


# --- facets and structure of a loose package


def test_an_open_facet_with_a_required_field(loose):
    """A required field is demanded when the facet is attached, other fields are free, and the last one out takes it along."""
    assert loose.no('UPDATE :alice SET FACET "Note" {free: 1}') == "ConstraintViolation"
    loose.do('UPDATE :alice SET FACET "Note" {must: "x", free: [1]}')
    assert loose.no('UPDATE :alice UNSET FACET "Note" {must}') == "ConstraintViolation"
    loose.do('UPDATE :alice UNSET FACET "Note" {must, free}')

    assert loose.get(loose.ref["alice"]).facets == {}


def test_a_facet_may_sit_on_a_claim_without_touching_it(loose):
    """Profile state beside a claim changes, the claim does not."""
    made = {
        "a": {
            "id": loose.do('ASSERT ?a (:alice, "knows", :bob) {by: :alice, mode: "stated", confidence: 0.5}')[
                "handles"
            ]["a"]["id"]
        }
    }
    loose.do('UPDATE :a SET FACET "Note" {must: "x"}', **made)
    claim = loose.get(made["a"])

    assert (list(claim.facets.values()), claim.confidence, claim.system.version) == ([{"must": "x"}], 0.5, 2)


def test_required_and_bounded_structure(loose):
    """A field with a minimum is demanded at creation and kept; its maximum holds."""
    assert loose.no('CREATE CONCEPT ?p {TYPE "Pair"}') == "ConstraintViolation"
    made = loose.handles('CREATE CONCEPT ?p {TYPE "Pair" SET STRUCTURAL {("half", :alice)}}', loose.ref)
    assert loose.no('UPDATE :p UNSET STRUCTURAL {("half", :alice)}', **made) == "ConstraintViolation"
    assert (
        loose.no('UPDATE :p SET STRUCTURAL {("half", :bob) ("half", :carol)}', **made)
        == "ConstraintViolation"
    )
    loose.do('UPDATE :p SET STRUCTURAL {("half", :bob)} UNSET STRUCTURAL {("half", :alice)}', **made)

    assert [ref.target for ref in loose.get(made["p"]).structural] == [loose.ref["bob"]["id"]]


def test_a_field_that_is_not_unique_repeats(loose):
    """Without uniqueness the same target may stand several times, with options of its own."""
    made = loose.handles(
        'CREATE CONCEPT ?t {TYPE "Thing" SET STRUCTURAL {("seen", :alice) {when: 1} ("seen", :bob) ("seen", :alice) {when: 2}}}',
        loose.ref,
    )

    seen = [(ref.target, ref.options) for ref in loose.get(made["t"]).structural]
    alice, bob = loose.ref["alice"]["id"], loose.ref["bob"]["id"]
    assert sorted(seen, key=str) == sorted([(alice, {"when": 1}), (bob, {}), (alice, {"when": 2})], key=str)
    assert (
        loose.no(
            'CREATE CONCEPT ?e {TYPE "Experience" SET STRUCTURAL {("has_step", ?s) {a: 1} ("has_step", ?s) {a: 2}}}'
        )
        == "ReferenceError"
    )
