"""CREATE CONCEPT, UPSERT CONCEPT, UPDATE: identity, mutable state, guards."""

from __future__ import annotations

import pytest


def test_create_makes_a_distinct_concept_at_version_one(people):
    """Two CREATEs without a key make two Concepts of the exact type, each at version 1."""
    first = people.handles('CREATE CONCEPT ?c {TYPE "Experience" NAME "Day"}')["c"]
    second = people.handles('CREATE CONCEPT ?c {TYPE "Experience" NAME "Day"}')["c"]

    assert first != second
    assert people.get(first).schema_ref == "kip://test/core-domain@1.0.0/Experience"
    assert people.get(first).system.version == 1
    assert people.get(first).system.origin.principal == "owner"


def test_a_client_key_makes_create_safe_to_retry(people):
    """The same client key and identity is the same Concept and no effect; another identity conflicts."""
    command = 'CREATE CONCEPT ?c {TYPE "Experience" CLIENT KEY "day:1" NAME "Day"}'
    first = people.handles(command)["c"]
    commits = len(people.deltas)

    assert people.status(command) == "no_effect"
    assert people.handles(command)["c"] == first
    assert len(people.deltas) == commits
    assert people.no('CREATE CONCEPT ?c {TYPE "Skill" CLIENT KEY "day:1"}') == "ClientKeyConflict"
    assert (
        people.no('CREATE CONCEPT ?c {TYPE "Experience" CLIENT KEY "day:1" SET FIELDS {key: "k"}}')
        == "ClientKeyConflict"
    )


def test_a_key_is_unique_within_its_type(people):
    """A second Concept of the type cannot take a key; another type can."""
    assert people.no('CREATE CONCEPT ?c {TYPE "Person" SET FIELDS {key: "alice"}}') == "IdentityConflict"
    assert people.status('CREATE CONCEPT ?c {TYPE "Theme" SET FIELDS {key: "alice"}}') == "succeeded"


def test_two_clauses_cannot_create_one_identity(people):
    """Within one MUTATE a key, and a client key, is taken once."""
    two_keys = 'MUTATE {CREATE CONCEPT ?a {TYPE "Theme" SET FIELDS {key: "x"}} CREATE CONCEPT ?b {TYPE "Theme" SET FIELDS {key: "x"}}}'
    two_client_keys = 'MUTATE {CREATE CONCEPT ?a {TYPE "Theme" CLIENT KEY "x"} CREATE CONCEPT ?b {TYPE "Theme" CLIENT KEY "x"}}'

    assert people.no(two_keys) == "DuplicateMutationTarget"
    assert people.no(two_client_keys) == "DuplicateMutationTarget"


def test_upsert_creates_once_and_then_updates(people):
    """The same UPSERT twice is one Concept; the second has no effect; a change moves the version once."""
    command = 'UPSERT CONCEPT ?p {MATCH {type: "Project", key: "kip"} SET FIELDS {name: :n} SET ATTRIBUTES {stage: 1}}'
    first = people.handles(command, {"n": "KIP"})["p"]

    assert people.status(command, n="KIP") == "no_effect"
    assert people.get(first).system.version == 1
    changed = people.do(command, n="KIP 2")["handles"]["p"]
    assert changed == {"id": first["id"], "kind": "concept", "created": False}
    assert (people.get(first).name, people.get(first).system.version) == ("KIP 2", 2)


def test_upsert_by_id_only_resolves(people):
    """An id never creates: an unknown one, or one of another type, is not found."""
    assert (
        people.status(
            'UPSERT CONCEPT ?p {MATCH {id: :i} SET FIELDS {name: "A"}}', i=people.ref["alice"]["id"]
        )
        == "succeeded"
    )
    assert (
        people.no(
            'UPSERT CONCEPT ?p {MATCH {id: :i, type: "Theme"} SET FIELDS {name: "A"}}',
            i=people.ref["alice"]["id"],
        )
        == "NotFoundOrNotVisible"
    )
    assert people.no('UPSERT CONCEPT ?p {MATCH {id: "C-00000000000zzzzz"}}') == "NotFoundOrNotVisible"


def test_upsert_needs_a_stable_identity(people):
    """A name is no identity, and a key of several types is not resolved by choosing."""
    people.do('UPSERT CONCEPT ?p {MATCH {type: "Theme", key: "alice"}}')

    assert people.no('UPSERT CONCEPT ?p {MATCH {type: "Person", name: "Alice"}}') == "NameIdentityForbidden"
    assert people.no('UPSERT CONCEPT ?p {MATCH {type: "Person"}}') == "IdentitySelectorRequired"
    assert people.no('UPSERT CONCEPT ?p {MATCH {key: "alice"} SET FIELDS {name: "x"}}') == "IdentityConflict"
    assert people.no('UPSERT CONCEPT ?p {MATCH {key: "nobody"}}') == "SchemaSymbolNotFound"
    assert (
        people.no('UPSERT CONCEPT ?p {MATCH {type: "Person", key: "x", colour: "red"}}')
        == "SchemaFieldNotFound"
    )
    assert people.no('UPSERT CONCEPT ?p {MATCH {type: "Person", key: 5}}') == "TypeMismatch"


def test_a_match_member_that_selects_nothing_is_reported(people):
    """MATCH's name neither selects nor seeds, and the answer says that it was not used."""
    response = people.run('UPSERT CONCEPT ?p {MATCH {type: "Person", key: "dora", name: "Dora"}}')
    result = response["results"][0]

    assert people.get(result["result"]["handles"]["p"]["id"]).name is None
    assert [warning["code"] for warning in result["warnings"]] == ["MatchMemberUnused"]


def test_two_upserts_of_one_key_must_agree(people):
    """Two UPSERTs of one identity are one Concept if they agree, and refused if they do not."""
    both = 'MUTATE {{UPSERT CONCEPT ?a {{MATCH {{type: "Theme", key: "x"}} SET FIELDS {{name: "X"}}}} UPSERT CONCEPT ?b {{MATCH {{type: "Theme", key: "x"}} SET FIELDS {{name: "{}"}}}}}}'

    assert people.no(both.format("Y")) == "DuplicateMutationTarget"
    handles = people.handles(both.format("X"))
    assert handles["a"] == handles["b"]


@pytest.mark.parametrize(("expected", "code"), [(1, None), (2, "VersionConflict"), (0, "VersionConflict")])
def test_expect_version_guards_the_state_committed_onto(people, expected, code):
    """A guard passes on the current version alone; 0 means that nothing may be there."""
    command = (
        'UPSERT CONCEPT ?p {MATCH {type: "Person", key: "alice"} EXPECT VERSION :v SET FIELDS {name: "A"}}'
    )

    if code is None:
        assert people.do(command, v=expected)
    else:
        assert people.no(command, v=expected) == code
        assert people.get(people.ref["alice"]).name == "Alice"


def test_create_only_upsert(people):
    """EXPECT VERSION 0 creates what is absent."""
    command = 'UPSERT CONCEPT ?p {MATCH {type: "Person", key: "zoe"} EXPECT VERSION 0}'

    assert people.status(command) == "succeeded"
    assert people.no(command) == "VersionConflict"


def test_one_version_step_per_transaction(people):
    """However many clauses touch an element, its version moves once."""
    people.do(
        'MUTATE {UPDATE :alice SET ATTRIBUTES {a: 1} UPDATE :alice SET FIELDS {name: "A"} '
        'UPDATE :alice SET FACET "MnemonicState" {salience: 0.5} ARCHIVE :alice}'
    )
    alice = people.get(people.ref["alice"])

    assert alice.system.version == 2
    assert (alice.name, alice.attributes, alice.system.state) == ("A", {"a": 1}, "archived")


def test_no_effect_leaves_no_trace(people):
    """An UPDATE to the present value changes no version, no time and no sequence."""
    people.do("UPDATE :alice SET ATTRIBUTES {a: 1}")
    before, seq = people.get(people.ref["alice"]), people.state.seq

    assert people.status("UPDATE :alice SET ATTRIBUTES {a: 1}") == "no_effect"
    assert people.get(people.ref["alice"]) == before
    assert people.state.seq == seq


def test_update_never_creates(people):
    """A selection of nothing changes nothing and is no error; an unknown id is one."""
    result = people.do('UPDATE ?c SET ATTRIBUTES {a: 1} WHERE {?c CONCEPT {name: "Nobody"}}')

    assert result == {"matched": 0, "updated": 0, "no_effect": 0}
    assert people.no('UPDATE "C-00000000000zzzzz" SET ATTRIBUTES {a: 1}') == "NotFoundOrNotVisible"


def test_limit_cuts_in_order_of_creation(people):
    """A bounded sweep takes the oldest first, every time."""
    result = people.do('UPDATE ?c SET ATTRIBUTES {seen: true} WHERE {?c CONCEPT {type: "Person"}} LIMIT 2')

    assert result == {"matched": 2, "updated": 2, "no_effect": 0}
    seen = [name for name in ("alice", "bob", "carol") if "seen" in people.get(people.ref[name]).attributes]
    assert seen == ["alice", "bob"]


def test_a_where_beside_a_direct_reference_only_guards(people):
    """A guard that does not hold turns the UPDATE into nothing."""
    command = "UPDATE :alice SET ATTRIBUTES {a: 1} WHERE {?x CONCEPT {name: :n}}"

    assert people.do(command, n="Nobody")["matched"] == 0
    assert people.do(command, n="Bob")["updated"] == 1


@pytest.mark.parametrize(
    ("assignment", "code"),
    [
        ('SET FIELDS {key: "z"}', "ImmutableField"),
        ('SET FIELDS {schema_ref: "Theme"}', "ImmutableField"),
        ('SET FIELDS {canonical_id: "z"}', "ImmutableField"),
        ('SET FIELDS {id: "z"}', "ProtectedSystemField"),
        ("SET FIELDS {_system: {version: 9}}", "ProtectedSystemField"),
        ('SET FIELDS {origin: "z"}', "ProtectedSystemField"),
        ('SET FIELDS {classification: "public"}', "ProtectedGovernanceField"),
        ("SET FIELDS {legal_hold: false}", "ProtectedGovernanceField"),
        ("SET FIELDS {schema_environment: {}}", "ProtectedSchemaState"),
        ("SET FIELDS {attributes: {a: 1}}", "SchemaFieldNotFound"),
        ('SET FIELDS {colour: "red"}', "SchemaFieldNotFound"),
        ("SET FIELDS {name: 5}", "TypeMismatch"),
        ('SET FIELDS {aliases: "x"}', "TypeMismatch"),
        ("SET ATTRIBUTES {_system: {origin: 1}}", "ProtectedSystemField"),
        ("SET ATTRIBUTES {governance: {}}", "ProtectedGovernanceField"),
        ('SET FACET "MnemonicState" {_system: 1}', "ProtectedSystemField"),
        ('SET FACET "MnemonicState" {proposition: "P"}', "SchemaFieldNotFound"),
        ('SET FACET "MnemonicState" {salience: 1.5}', "ConstraintViolation"),
        ('SET FACET "MnemonicState" {salience: "high"}', "TypeMismatch"),
        ('SET FACET "SkillUtility" {utility: 1}', "ConstraintViolation"),
        ('SET FACET "Nonsense" {utility: 1}', "SchemaSymbolNotFound"),
    ],
)
def test_what_an_update_may_not_write(people, assignment, code):
    """Identity, engine, governance, schema and misfitting values are refused by their own codes."""
    before = people.get(people.ref["alice"])

    assert people.no(f"UPDATE :alice {assignment}") == code
    assert people.get(people.ref["alice"]) == before


def test_schema_rules_of_attributes(people):
    """Required, enumerated, closed and immutable attributes are kept on the finished element."""
    assert people.no('CREATE CONCEPT ?s {TYPE "StatusValue"}') == "ConstraintViolation"
    assert (
        people.no('CREATE CONCEPT ?s {TYPE "StatusValue" SET ATTRIBUTES {code: "odd"}}')
        == "ConstraintViolation"
    )
    assert (
        people.no('CREATE CONCEPT ?s {TYPE "StatusValue" SET ATTRIBUTES {code: "active", x: 1}}')
        == "SchemaFieldNotFound"
    )
    status = people.handles('CREATE CONCEPT ?s {TYPE "StatusValue" SET ATTRIBUTES {code: "active"}}')
    assert people.no('UPDATE :s SET ATTRIBUTES {code: "paused"}', **status) == "ImmutableField"
    assert people.no("UPDATE :s UNSET ATTRIBUTES {code}", **status) == "ConstraintViolation"


def test_unset_takes_away(people):
    """UNSET removes attributes and facet fields, and an emptied facet goes."""
    people.do('UPDATE :alice SET ATTRIBUTES {a: 1, b: 2} SET FACET "MnemonicState" {salience: 0.5}')
    people.do('UPDATE :alice UNSET ATTRIBUTES {a, never} UNSET FACET "MnemonicState" {salience}')
    alice = people.get(people.ref["alice"])

    assert (alice.attributes, alice.facets) == ({"b": 2}, {})


def test_contradictions_in_one_statement_fail(people):
    """Two values for one field are refused whatever their order; equal ones agree."""
    assert (
        people.no("MUTATE {UPDATE :alice SET ATTRIBUTES {a: 1} UPDATE :alice SET ATTRIBUTES {a: 2}}")
        == "DuplicateMutationTarget"
    )
    assert (
        people.no("MUTATE {UPDATE :alice SET ATTRIBUTES {a: 1} UPDATE :alice UNSET ATTRIBUTES {a}}")
        == "DuplicateMutationTarget"
    )
    assert (
        people.no("MUTATE {UPDATE :alice SET ATTRIBUTES {a: 1} UPDATE :alice SET ATTRIBUTES {a: true}}")
        == "DuplicateMutationTarget"
    )
    assert people.no("MUTATE {ARCHIVE :alice TOMBSTONE :alice}") == "DuplicateMutationTarget"
    assert (
        people.status(
            "MUTATE {UPDATE :alice SET ATTRIBUTES {a: 1} UPDATE :alice SET ATTRIBUTES {a: 1, b: 2}}"
        )
        == "succeeded"
    )


def test_a_canonical_id_is_one_concepts(people):
    """A canonical id is taken at creation, once, and selects its Concept."""
    made = people.handles('CREATE CONCEPT ?c {TYPE "Person" SET FIELDS {canonical_id: "urn:x:1"}}')

    assert (
        people.no('CREATE CONCEPT ?c {TYPE "Person" SET FIELDS {canonical_id: "urn:x:1"}}')
        == "IdentityConflict"
    )
    people.do('ENSURE PROPOSITION ({canonical_id: "urn:x:1"}, "knows", :bob)')
    assert people.do('FIND(?s.id) WHERE {?p PROPOSITION (?s, "knows", ?o)}') == [made["c"]["id"]]
