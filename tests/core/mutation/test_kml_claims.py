"""Propositions, Assertions, Evidence and Activities: append, never rewrite."""

from __future__ import annotations

import hashlib

import pytest

from core.authority import Principal
from core.model.elements import Assertion, Evidence
from core.model.literals import Literal
from tests.core.mutation.conftest import People

SAY = 'ASSERT ?a (:alice, "timezone", "+08:00") {by: :alice, mode: "stated", confidence: 0.9}'


def count(people, pattern):
    return people.do(f"FIND(COUNT(?x)) WHERE {{{pattern}}}")[0]


def claim(people, command=SAY, **more):
    return people.do(command, **more)["handles"]["a"]["id"]


# --- Propositions


def test_one_tuple_is_one_proposition(people):
    """ENSURE twice resolves to one element, makes no Assertion, and says what it did."""
    first = people.do('ENSURE PROPOSITION ?p (:alice, "timezone", "+08:00")')["handles"]["p"]
    again = people.do('ENSURE PROPOSITION ?p (:alice, "timezone", "+08:00")')["handles"]["p"]

    assert (first["created"], again["created"]) == (True, False)
    assert first["id"] == again["id"]
    assert count(people, "?x ASSERTION {}") == 0
    assert people.get(first["id"]).predicate_ref == "kip://test/core-domain@1.0.0/timezone"


def test_one_statement_ensures_a_tuple_once(people):
    """Two clauses of one MUTATE about one tuple name one new Proposition."""
    made = people.handles(
        'MUTATE {ENSURE PROPOSITION ?p (:alice, "knows", :bob) ENSURE PROPOSITION ?q (:alice, "knows", :bob)}',
        people.ref,
    )

    assert made["p"] == made["q"]


@pytest.mark.parametrize(
    ("tuple_", "code"),
    [
        ('(:dark, "timezone", "+08:00")', "TypeMismatch"),
        ('(:alice, "timezone", true)', "TypeMismatch"),
        ('(:alice, "timezone", null)', "TypeMismatch"),
        ('(:alice, "timezone", :bob)', "TypeMismatch"),
        ('(:alice, "prefers", "dark")', "TypeMismatch"),
        ('(:alice, "knows", :dark)', "TypeMismatch"),
        ('(:alice, "likes", :bob)', "SchemaSymbolNotFound"),
        ('({name: "Alice"}, "knows", :bob)', "NameIdentityForbidden"),
        ('({type: "Person"}, "knows", :bob)', "IdentitySelectorRequired"),
        ('({key: "nobody"}, "knows", :bob)', "NotFoundOrNotVisible"),
        ('({id: "C-00000000000zzzzz"}, "knows", :bob)', "NotFoundOrNotVisible"),
        ('(?ghost, "knows", :bob)', "ReferenceError"),
        ('("alice", "knows", :bob)', "InvalidSyntax"),
    ],
)  # fmt: skip
def test_tuples_that_do_not_fit(people, tuple_, code):
    """A tuple outside its Predicate's schema, or with an end that names nothing, is refused."""
    assert people.no(f"ENSURE PROPOSITION {tuple_}") == code
    assert count(people, "?x PROPOSITION (?s, ?p, ?o)") == 0


def test_a_literal_is_told_by_datatype_and_language(people):
    """A typed object is told by value, datatype and language; the plain form is its own baseline type."""

    def ensured(written):
        return people.do(f'ENSURE PROPOSITION ?p (:alice, "timezone", {written})')["handles"]["p"]["id"]

    assert (
        ensured('"x"')
        == ensured('{value: "x", datatype: "string"}')
        != ensured('{value: "x", language: "fr"}')
    )
    assert ensured('{value: "x", language: "FR"}') == ensured('{value: "x", language: "fr"}')
    assert people.get(ensured('{value: "x", language: "fr"}')).object == Literal("x", None, "fr")


def test_a_statement_about_a_statement(people):
    """A nested tuple is resolved or created too; a handle of a later clause may be its end."""
    result = people.run(
        'MUTATE {ENSURE PROPOSITION ?outer ((:alice, "knows", :bob), "alias_of", :dark)}', people.ref
    )
    assert result["results"][0]["error"]["code"] == "TypeMismatch"

    circle = 'MUTATE {ENSURE PROPOSITION ?a (?b, "knows", :bob) ENSURE PROPOSITION ?b (?a, "knows", :bob)}'
    assert people.no(circle) == "ReferenceError"


def test_the_tuple_of_a_proposition_never_changes(people):
    """UPDATE cannot reach a tuple."""
    made = people.handles('ENSURE PROPOSITION ?p (:alice, "timezone", "+08:00")', people.ref)

    assert people.no('UPDATE :p SET FIELDS {object: "+01:00"}', **made) == "ImmutableField"
    assert people.no("UPDATE :p SET ATTRIBUTES {a: 1}", **made) == "ImmutableField"


# --- ASSERT


def test_assert_is_exactly_its_desugaring(people):
    """ASSERT leaves the state that ENSURE, CREATE ASSERTION and SUPERSEDE leave, element for element."""
    other = People()
    evidence = 'CREATE EVIDENCE ?m {SET FIELDS {evidence_class: "user_statement", payload: "I moved"}}'
    ours, theirs = people.handles(evidence), other.handles(evidence)
    old_ours, old_theirs = claim(people), claim(other)
    people.now = other.now = 1_800_000_000_000
    valid = 'valid: {from: "2026-01-01T00:00:00Z"}'
    people.do(
        f'ASSERT ?a (:alice, "timezone", "+01:00") {{by: :alice, mode: "stated", confidence: 0.95, {valid}, '
        'evidence: [:m], key: "k"} SUPERSEDING :old', old=old_ours, **ours,
    )  # fmt: skip
    other.do(
        'MUTATE {ENSURE PROPOSITION ?p (:alice, "timezone", "+01:00") '
        'CREATE ASSERTION ?a {CLIENT KEY "k" SET FIELDS {proposition: ?p, asserted_by: :alice, stance: "support", '
        'mode: "stated", confidence: 0.95, valid_time: {from: "2026-01-01T00:00:00Z"}} '
        'SET STRUCTURAL {("evidence", :m) {role: "support"}}} SUPERSEDE ASSERTION :old BY ?a}',
        old=old_theirs, **theirs,
    )  # fmt: skip

    assert {e.id: e for e in people.deltas[-1].puts} == {e.id: e for e in other.deltas[-1].puts}
    assert len(people.deltas[-1].puts) == 3


def test_assert_defaults(people):
    """Without stance, time and evidence: support, now, none; and nothing else is made."""
    found = people.get(claim(people))

    assert isinstance(found, Assertion)
    assert (found.stance, found.asserted_at, found.evidence, found.confidence) == (
        "support",
        people.now,
        (),
        0.9,
    )
    assert len(people.deltas[-1].puts) == 2


def test_repeating_a_statement_is_a_new_event(people):
    """The same claim twice is two Assertions of one Proposition; a key makes it one."""
    first, second = people.get(claim(people)), people.get(claim(people))
    assert first.id != second.id
    assert first.proposition == second.proposition

    keyed = SAY.replace("0.9}", '0.9, key: "msg:1"}')
    third = claim(people, keyed)
    assert people.status(keyed) == "no_effect"
    assert claim(people, keyed) == third
    assert people.no(keyed.replace("0.9", "0.5")) == "ClientKeyConflict"
    assert people.no(keyed.replace("+08:00", "+09:00")) == "ClientKeyConflict"


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ('by: :alice, mode: "guessed"', "ConstraintViolation"),
        ("by: :alice, mode: 5", "TypeMismatch"),
        ('by: :alice, mode: "stated", stance: "maybe"', "ConstraintViolation"),
        ('by: :alice, mode: "stated", confidence: 1.1', "ConstraintViolation"),
        ('by: :alice, mode: "stated", confidence: true', "TypeMismatch"),
        ('by: :alice, mode: "stated", at: "yesterday"', "TypeMismatch"),
        ('by: :alice, mode: "stated", valid: {from: "2026-02-01T00:00:00Z", until: "2026-01-01T00:00:00Z"}', "ConstraintViolation"),
        ('by: :alice, mode: "stated", valid: {since: "2026-02-01T00:00:00Z"}', "SchemaFieldNotFound"),
        ('by: "Alice", mode: "stated"', "NotFoundOrNotVisible"),
        ('by: "C-00000000000zzzzz", mode: "stated"', "NotFoundOrNotVisible"),
        ('by: 5, mode: "stated"', "TypeMismatch"),
        ('by: :alice, mode: "stated", evidence: :alice', "StructuralReferenceInvalid"),
        ('by: :alice, mode: "stated", evidence: "E-00000000000zzzzz"', "NotFoundOrNotVisible"),
        ("by: :alice", "InvalidSyntax"),
        ('by: :alice, mode: "stated", truth: 1', "InvalidSyntax"),
    ],
)  # fmt: skip
def test_claims_that_do_not_fit(people, members, code):
    """Unknown modes and stances, wrong types, intervals that end first and dangling references are refused."""
    assert people.no(f'ASSERT (:alice, "timezone", "+08:00") {{{members}}}') == code


@pytest.mark.parametrize(
    "fields",
    [
        'asserted_by: :alice, stance: "support", mode: "stated"',
        'proposition: [:p, :p], asserted_by: :alice, stance: "support", mode: "stated"',
        'proposition: :p, stance: "support", mode: "stated"',
        'proposition: :p, asserted_by: :alice, mode: "stated"',
        'proposition: :alice, asserted_by: :alice, stance: "support", mode: "stated"',
        'proposition: :p, asserted_by: :p, stance: "support", mode: "stated"',
    ],
)  # fmt: skip
def test_an_assertion_has_exactly_one_proposition_and_actor(people, fields):
    """Zero or several targets, and targets of another kind, make no Assertion."""
    made = people.handles('ENSURE PROPOSITION ?p (:alice, "timezone", "+08:00")', people.ref)

    assert people.no(f"CREATE ASSERTION ?a {{SET FIELDS {{{fields}}}}}", **made) in {
        "ConstraintViolation",
        "StructuralReferenceInvalid",
    }


def test_author_and_actor_are_two_things(people):
    """A recorder records what Alice said: asserted_by is Alice, the origin is the recorder."""
    recorder = Principal("recorder", actors=frozenset())
    result = people.run(SAY, people.ref, principal=recorder)["results"][0]["result"]
    found = people.get(result["handles"]["a"]["id"])

    assert found.asserted_by == people.ref["alice"]["id"]
    assert found.system.origin.principal == "recorder"


@pytest.mark.parametrize(
    "field", ["confidence: 0.1", 'stance: "reject"', 'mode: "observed"', 'name: "x"', "confidence: MUL(2, 3)"]
)
def test_an_assertions_payload_is_history(people, field):
    """No UPDATE reaches a claim, by field, attribute, structure or decay."""
    made = {"a": {"id": claim(people)}}
    before = people.get(made["a"])

    assert people.no(f"UPDATE :a SET FIELDS {{{field}}}", **made) == "EpistemicRevisionRequired"
    assert people.no("UPDATE :a SET ATTRIBUTES {x: 1}", **made) == "EpistemicRevisionRequired"
    assert people.no('UPDATE :a SET STRUCTURAL {("evidence", :alice)}', **made) == "EpistemicRevisionRequired"
    assert people.get(made["a"]) == before


# --- supersession, retraction


def test_supersession_keeps_the_old_claim(people):
    """The newer claim links to the older, which keeps its payload and moves once."""
    old = claim(people)
    result = people.do(SAY.replace("0.9", "0.4") + " SUPERSEDING :old", old=old)
    new = people.get(result["handles"]["a"]["id"])
    was = people.get(old)

    assert (was.confidence, was.status, was.superseded_by, was.system.version) == (
        0.9,
        "superseded",
        (new.id,),
        2,
    )
    assert (new.supersedes, new.status, new.system.version) == ((old,), "active", 1)
    assert result["transitions"] == [{"id": old, "from": "active", "to": "superseded"}]


def test_supersession_is_never_between_actors(people):
    """Bob cannot overwrite Alice by disagreeing."""
    old = claim(people)

    assert (
        people.no(
            'ASSERT (:alice, "timezone", "+01:00") {by: :bob, mode: "stated"} SUPERSEDING :old', old=old
        )
        == "SupersessionMismatch"
    )
    assert people.get(old).status == "active"


def test_supersession_needs_two_live_claims(people):
    """An ended claim is not superseded, a superseded one supersedes nothing, and no chain closes."""
    first, second, third = claim(people), claim(people), claim(people)
    people.do("SUPERSEDE ASSERTION :old BY :new", old=first, new=second)

    assert people.no("SUPERSEDE ASSERTION :old BY :new", old=first, new=third) == "InvalidLifecycleTransition"
    assert people.no("SUPERSEDE ASSERTION :old BY :new", old=second, new=first) == "SupersessionMismatch"
    assert people.no("SUPERSEDE ASSERTION :old BY :new", old=third, new=third) == "SupersessionMismatch"
    assert (
        people.no("SUPERSEDE ASSERTION :old BY :new", old=third, new=people.ref["alice"]["id"])
        == "SupersessionMismatch"
    )
    assert (
        people.no('SUPERSEDE ASSERTION :old BY :new EXPECT STATE "retracted"', old=third, new=second)
        == "PreconditionFailed"
    )
    assert people.status("SUPERSEDE ASSERTION :old BY :new", old=first, new=second) == "no_effect"


def test_one_claim_is_superseded_once_in_a_statement(people):
    """Two successors of one claim, or a retraction beside, contradict each other."""
    old = claim(people)
    twice = f"MUTATE {{{SAY} SUPERSEDING :old {SAY.replace('?a', '?b')} SUPERSEDING :old}}"
    both = f"MUTATE {{{SAY} SUPERSEDING :old RETRACT ASSERTION :old}}"

    assert people.no(twice, old=old) == "DuplicateMutationTarget"
    assert people.no(both, old=old) == "DuplicateMutationTarget"


def test_retraction_keeps_the_payload(people):
    """A withdrawn claim stays as it was said, with the time it was withdrawn."""
    made = {"a": {"id": claim(people)}}
    people.do('RETRACT ASSERTION :a EXPECT STATE "active"', **made)
    found = people.get(made["a"])

    assert (found.status, found.confidence, found.retracted_at) == ("retracted", 0.9, people.now)
    assert people.no("RETRACT ASSERTION :a", **made) == "InvalidLifecycleTransition"
    assert people.no("RETRACT ASSERTION :alice") == "TypeMismatch"


def test_only_a_representative_may_retract(people):
    """Who may not speak for Alice cannot withdraw what she said."""
    made = {"a": {"id": claim(people)}}
    bound = Principal("alice", actors=frozenset({people.ref["alice"]["id"]}))
    unbound = Principal("recorder", actors=frozenset())

    assert people.error("RETRACT ASSERTION :a", made, principal=unbound) == "RetractionNotAuthorized"
    assert people.get(made["a"]).status == "active"
    assert people.run("RETRACT ASSERTION :a", made, principal=bound)["status"] == "succeeded"


def test_archive_and_tombstone_forge_no_withdrawal(people):
    """Out of recall is not withdrawn: the claim's standing stays."""
    made = {"a": {"id": claim(people)}}
    people.do("ARCHIVE :a", **made)
    assert (people.get(made["a"]).status, people.get(made["a"]).system.state) == ("active", "archived")
    people.do("TOMBSTONE :a", **made)

    assert (people.get(made["a"]).status, people.get(made["a"]).system.state) == ("active", "tombstoned")
    assert people.get(made["a"]).confidence == 0.9


# --- Evidence


def test_evidence_is_made_with_its_digest(people):
    """Text is digested as its bytes, other JSON in canonical form, and a wrong digest is refused."""
    made = people.handles('MUTATE {CREATE EVIDENCE ?t {SET FIELDS {evidence_class: "message", payload: "hé"}} '
                          'CREATE EVIDENCE ?j {SET FIELDS {evidence_class: "tool_result", payload: {b: 1, a: [2.5]}}}}')  # fmt: skip
    text, data = people.get(made["t"]), people.get(made["j"])

    assert isinstance(text, Evidence)
    assert text.content_digest == f"sha256:{hashlib.sha256('hé'.encode()).hexdigest()}"
    assert data.content_digest == f"sha256:{hashlib.sha256(b'{"a":[2.5],"b":1}').hexdigest()}"
    assert (text.media_type, data.media_type) == ("text/plain", "application/json")
    assert data.payload.inline == {"b": 1, "a": [2.5]}
    wrong = (
        'CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "x", payload: "hé", content_digest: "sha256:00"}}'
    )
    assert people.no(wrong) == "DigestMismatch"


def test_external_evidence_is_a_reference_with_a_digest(people):
    """An external payload is not fetched; it needs a reference and a digest."""
    form = (
        'CREATE EVIDENCE ?e {{SET FIELDS {{evidence_class: "document", payload: {{mode: "external"{}}}{}}}}}'
    )

    assert people.no(form.format("", ', content_digest: "sha256:aa"')) == "TypeMismatch"
    assert people.no(form.format(', content_ref: "blob:1"', "")) == "ConstraintViolation"
    assert people.do(form.format(', content_ref: "blob:1"', ', content_digest: "sha256:aa"'))


def test_equal_bytes_are_two_pieces_of_evidence(people):
    """A digest is no identity; a client key is."""
    command = 'CREATE EVIDENCE ?e {{CLIENT KEY "{}" SET FIELDS {{evidence_class: "x", payload: "{}"}}}}'
    one, two = people.handles(command.format("k1", "same")), people.handles(command.format("k2", "same"))

    assert one != two
    assert people.get(one["e"]).content_digest == people.get(two["e"]).content_digest
    assert people.handles(command.format("k1", "same")) == one
    assert people.no(command.format("k1", "other")) == "ClientKeyConflict"


def test_evidence_is_corrected_never_rewritten(people):
    """The old bytes stay, both link, and the lineage has no forks and no circles."""
    made = people.handles('MUTATE {CREATE EVIDENCE ?e1 {SET FIELDS {evidence_class: "x", payload: "1"}} '
                          'CREATE EVIDENCE ?e2 {SET FIELDS {evidence_class: "x", payload: "2"}} '
                          'CREATE EVIDENCE ?e3 {SET FIELDS {evidence_class: "x", payload: "3"}}}')  # fmt: skip
    assert people.no('UPDATE :e1 SET FIELDS {payload: "9"}', **made) == "EvidenceCorrectionRequired"
    people.do("CORRECT EVIDENCE :e1 BY :e2", **made)
    old, new = people.get(made["e1"]), people.get(made["e2"])

    assert (old.payload.inline, old.status, old.corrected_by, new.corrects) == (
        "1",
        "corrected",
        (new.id,),
        (old.id,),
    )
    assert people.no("CORRECT EVIDENCE :e1 BY :e3", **made) == "EvidenceCorrectionConflict"
    assert people.no("CORRECT EVIDENCE :e2 BY :e1", **made) == "EvidenceCorrectionConflict"
    assert people.no("CORRECT EVIDENCE :e3 BY :e3", **made) == "EvidenceCorrectionConflict"
    assert people.status("CORRECT EVIDENCE :e1 BY :e2", **made) == "no_effect"


# --- Activities


def test_forward_references_may_form_a_circle(people):
    """Evidence generated by an Activity whose output it is commits in one statement."""
    made = people.handles(
        'MUTATE {CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "tool_result", payload: "42"} SET STRUCTURAL {("generated_by", ?run) ("source", :bob)}} '
        'CREATE ACTIVITY ?run {SET FIELDS {activity_class: "tool_execution", status: "completed"} SET STRUCTURAL {("outputs", ?e) ("inputs", :alice) ("associated_actors", :bob)}}}',
        people.ref,
    )  # fmt: skip

    assert people.get(made["e"]).generated_by == made["run"]["id"]
    assert people.get(made["run"]).outputs == (made["e"]["id"],)
    assert people.get(made["run"]).inputs == (people.ref["alice"]["id"],)


def test_an_activity_moves_through_its_states_and_ends(people):
    """A running Activity settles its fields with its last step and then changes no more."""
    made = people.handles(
        'CREATE ACTIVITY ?x {SET FIELDS {activity_class: "review", status: "pending", started_at: "2026-01-01T00:00:00Z"}}'
    )
    people.do('TRANSITION ACTIVITY :x TO "running" EXPECT STATE "pending"', **made)
    assert people.no('UPDATE :x SET STRUCTURAL {("inputs", :alice)}', **made) == "ImmutableField"
    assert people.no('UPDATE :x SET FIELDS {status: "completed"}', **made) == "ImmutableField"
    people.do(
        'TRANSITION ACTIVITY :x TO "completed" SET FIELDS {ended_at: "2026-01-02T00:00:00Z"} SET STRUCTURAL {("outputs", :alice)} EXPECT STATE "running"',
        **made,
    )
    ended = people.get(made["x"])

    assert (ended.status, ended.outputs) == ("completed", (people.ref["alice"]["id"],))
    for command in ('TRANSITION ACTIVITY :x TO "failed"', 'UPDATE :x SET FIELDS {ended_at: "2026-01-03T00:00:00Z"}',
                    'UPDATE :x SET STRUCTURAL {("outputs", :bob)}'):  # fmt: skip
        assert people.no(command, **made) == "ActivityTerminal"
    assert people.get(made["x"]) == ended


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ('CREATE ACTIVITY ?y {SET FIELDS {activity_class: "x", status: "dreaming"}}', "ConstraintViolation"),
        ('CREATE ACTIVITY ?y {SET FIELDS {status: "running"}}', "ConstraintViolation"),
        ('CREATE ACTIVITY ?y {SET FIELDS {activity_class: "x", started_at: "2026-01-02T00:00:00Z", ended_at: "2026-01-01T00:00:00Z"}}', "ConstraintViolation"),
        ('CREATE ACTIVITY ?y {SET FIELDS {activity_class: "x"} SET STRUCTURAL {("associated_actors", :m)}}', "StructuralReferenceInvalid"),
        ('CREATE ACTIVITY ?y {SET FIELDS {activity_class: "x"} SET STRUCTURAL {("evidence", :m)}}', "StructuralReferenceInvalid"),
        ('TRANSITION ACTIVITY :x TO "asleep"', "ConstraintViolation"),
        ('TRANSITION ACTIVITY :x TO "pending"', "InvalidLifecycleTransition"),
        ('TRANSITION ACTIVITY :x TO "completed" EXPECT STATE "pending"', "PreconditionFailed"),
        ('TRANSITION ACTIVITY :x TO "completed" SET FIELDS {activity_class: "y"}', "ImmutableField"),
        ('TRANSITION ACTIVITY :m TO "completed"', "TypeMismatch"),
    ],
)  # fmt: skip
def test_activities_that_do_not_fit(people, command, code):
    """Unknown states, illegal moves, failed guards and references of the wrong kind are refused."""
    made = people.handles(
        'MUTATE {CREATE ACTIVITY ?x {SET FIELDS {activity_class: "r"}} CREATE EVIDENCE ?m {SET FIELDS {evidence_class: "x", payload: "1"}}}'
    )

    assert people.no(command, **made) == code


def test_a_whole_observation_is_one_commit(people):
    """Evidence, Proposition, Assertion and Activity of one MUTATE share one transaction."""
    people.do('MUTATE {CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "observation", payload: "x"}} '
              f'{SAY.replace("0.9}", "0.9, evidence: ?e}")} '
              'CREATE ACTIVITY ?x {SET FIELDS {activity_class: "observe", status: "completed"} SET STRUCTURAL {("outputs", ?a)}}}')  # fmt: skip
    delta = people.deltas[-1]

    assert len(delta.puts) == 4
    assert {element.system.created_tx for element in delta.puts} == {delta.tx_id}
    assert {type(element).__name__ for element in delta.puts} == {
        "Evidence",
        "Proposition",
        "Assertion",
        "Activity",
    }
