"""VALIDATE and PREVIEW: the checks and effects of a command, without any trace of it."""

from __future__ import annotations

import pytest

from core.authority import Principal
from tests.core.meta.conftest import READER


def traces(nexus):
    """Everything durable that a command could change."""
    state = nexus.state
    return state.ver, state.seq, state.counts, len(nexus.deltas), dict(nexus.retained), state.text_stats


ASSERT = 'ASSERT ?c (:alice, "prefers", :dark) { by: :alice, mode: "stated" }'


# --- VALIDATE KQL


def test_a_legal_query_is_valid_with_its_normal_form(nexus):
    """Validation says how far it went, at which seq, and gives the canonical text and digest."""
    value = nexus.get("VALIDATE KQL :q", q='find ( ?c.name )  where { ?c concept {type: "Person"} }')

    assert value["valid"] is True
    assert value["normalized"].startswith("FIND(?c.name)")
    assert value["command_digest"].startswith("sha256:")
    assert value["checked_at_seq"] == nexus.state.seq
    assert value["schema_environment_version"] == nexus.state.meta.schema.version
    assert value["commit_guaranteed"] is False


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("FIND(", "InvalidSyntax"),
        ('FIND(?c) WHERE { ?c CONCEPT {type: "Persn"} }', "SchemaSymbolNotFound"),
        ('FIND(?c.nmae) WHERE { ?c CONCEPT {type: "Person"} }', "SchemaFieldNotFound"),
        ('UPDATE :bob SET FIELDS {name: "x"}', "LanguageMismatch"),
        ('FIND(?c) WHERE { ?c CONCEPT {type: "Person"} } AS OF SEQ 999', "HistoricalSnapshotUnavailable"),
    ],
)
def test_an_illegal_query_is_an_answer_with_its_error(nexus, query, code):
    """What is wrong is told as the error the query would meet; the question itself succeeds."""
    value = nexus.get("VALIDATE KQL :q", q=query)

    assert value["valid"] is False
    assert value["error"]["code"] == code


def test_a_plan_is_given_where_it_is_asked_for(nexus):
    """WITH {plan: true} shows the steps, their indexes and what they expect; nothing is run."""
    query = 'FIND(?c) WHERE { ?c CONCEPT {type: "Person", key: "bob"} }'

    value = nexus.get("VALIDATE KQL :q WITH {plan: true}", q=query)

    assert value["plan"]["steps"][0]["index"] == "type+key"
    assert "plan" not in nexus.get("VALIDATE KQL :q", q=query)
    assert nexus.code("VALIDATE KQL :q WITH {colour: 1}", q=query) == "UnsupportedCapability"


def test_parameters_of_the_inner_command(nexus):
    """Values come from WITH or the operation; without them only the syntax is checked, and that is said."""
    query = "FIND(?c) WHERE { ?c CONCEPT {type: :kind} }"

    unbound = nexus.one("VALIDATE KQL :q", q=query)
    assert unbound["result"]["checked"] == ["syntax"]
    assert unbound["result"]["unbound_parameters"] == ["kind"]
    assert [w["code"] for w in unbound["warnings"]] == ["UnboundParameters"]
    assert "schema" in nexus.get("VALIDATE KQL :q", q=query, kind="Person")["checked"]
    bad = nexus.get('VALIDATE KQL :q WITH {parameters: {kind: "Persn"}}', q=query)
    assert bad["error"]["code"] == "SchemaSymbolNotFound"
    assert nexus.get("VALIDATE KQL :q WITH {parameters: 5}", q=query)["error"]["code"] == "TypeMismatch"


def test_a_query_of_the_past_is_validated_in_its_schema(nexus):
    """AS OF chooses the state whose schema gives the names their meaning."""
    then = nexus.state.seq
    nexus.do('CREATE CONCEPT ?x { TYPE "Person" NAME "X" }')

    value = nexus.get(
        "VALIDATE KQL :q", q=f'FIND(?c) WHERE {{ ?c CONCEPT {{type: "Person"}} }} AS OF SEQ {then}'
    )

    assert (value["valid"], value["reads_seq"]) == (True, then)


# --- VALIDATE KML


def test_validating_a_mutation_changes_nothing(nexus):
    """A legal mutation is checked in full against the state and leaves it as it was (KIP2-META-014)."""
    before = traces(nexus)

    value = nexus.get("VALIDATE KML :c WITH {plan: true}", c=ASSERT)

    assert value["valid"] is True
    assert value["effect"] is True
    assert value["estimated_writes"] == 1
    assert traces(nexus) == before


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ('CREATE CONCEPT ?x { TYPE "Persn" NAME "X" }', "SchemaSymbolNotFound"),
        ('UPDATE :claim SET FIELDS {stance: "reject"}', "EpistemicRevisionRequired"),
        ('UPDATE :bob EXPECT VERSION 9 SET FIELDS {name: "x"}', "VersionConflict"),
        ('CREATE CONCEPT ?x { TYPE "Person" SET FIELDS {key: "bob"} }', "IdentityConflict"),
        ('FIND(?c) WHERE { ?c CONCEPT {type: "Person"} }', "LanguageMismatch"),
    ],
)
def test_a_mutation_that_would_be_refused_is_invalid(nexus, command, code):
    """The error is the one that the mutation itself would meet."""
    before = traces(nexus)
    value = nexus.get("VALIDATE KML :c", c=command)

    assert value["valid"] is False
    assert value["error"]["code"] == code
    assert traces(nexus) == before


def test_authority_is_part_of_legality(nexus):
    """What the caller may not do is invalid for that caller."""
    assert nexus.get("VALIDATE KML :c", c=ASSERT, principal=READER)["error"]["code"] == "NotAuthorized"


# --- PREVIEW


def test_a_preview_shows_the_effect(nexus):
    """Counts, changes and the result, as the commit would have them; new ids are not promised."""
    value = nexus.get("PREVIEW KML :c", c=ASSERT)

    assert value["would"] == "commit"
    assert value["counts"] == {"assertion": {"created": 1, "updated": 0, "purged": 0}}
    assert value["changes"] == [{"kind": "assertion", "op": "created", "version": 1}]
    assert value["result"]["handles"]["c"]["id"] == "temporary"
    assert value["commit_guaranteed"] is False


def test_a_preview_names_what_exists(nexus):
    """Existing elements are named with the version they would get."""
    value = nexus.get("PREVIEW KML :c", c='UPDATE :bob SET FIELDS {name: "Rob"}')

    assert value["changes"] == [
        {"kind": "concept", "op": "updated", "version": 2, "id": nexus.id("bob"),
         "schema_ref": "kip://test/core-domain@1.0.0/Person"},
    ]  # fmt: skip
    assert value["result"] == {"matched": 1, "updated": 1, "no_effect": 0}


def test_a_preview_leaves_no_trace(nexus):
    """No seq, no element, no client key is taken (KIP2-META-015)."""
    before = traces(nexus)
    command = 'CREATE CONCEPT ?x { TYPE "Person" CLIENT KEY "mine" NAME "First" }'
    nexus.get("PREVIEW KML :c", c=command)

    assert traces(nexus) == before
    nexus.do('CREATE CONCEPT ?x { TYPE "Person" CLIENT KEY "mine" NAME "Other" }')


def test_a_preview_reserves_nothing(nexus):
    """A preview that succeeded does not keep a guarded commit from failing once the state moved (KIP2-META-016)."""
    guarded = 'UPDATE :bob EXPECT VERSION 1 SET FIELDS {name: "Mine"}'
    preview = nexus.one("PREVIEW KML :c", c=guarded)
    nexus.do('UPDATE :bob SET FIELDS {name: "Theirs"}')

    assert preview["result"]["would"] == "commit"
    assert "NotReserved" in [w["code"] for w in preview["warnings"]]
    assert nexus.code(guarded) == "VersionConflict"
    assert nexus.get("PREVIEW KML :c", c=guarded)["error"]["code"] == "VersionConflict"


def test_a_preview_of_nothing_says_no_effect(nexus):
    """A command that would change nothing is previewed as such."""
    value = nexus.get("PREVIEW KML :c", c='UPDATE :bob SET FIELDS {name: "Bob"}')

    assert (value["would"], value["writes"]) == ("no_effect", 0)


def test_a_purge_can_be_previewed(nexus):
    """What would be erased is shown and still there."""
    command = 'PURGE :message REFERENCE POLICY "tombstone_reference" CONFIRM "PURGE"'
    value = nexus.get("PREVIEW KML :c", c=command)

    assert value["counts"]["evidence"]["purged"] == 1
    assert nexus.state.get(nexus.id("message")).payload.mode == "inline"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("CREATE", "InvalidSyntax"),
        ("DESCRIBE PRIMER", "LanguageMismatch"),
        ('UPDATE :nobody SET FIELDS {name: "x"}', "InvalidRequestEnvelope"),
    ],
)
def test_what_cannot_be_previewed_fails_in_the_answer(nexus, command, code):
    """A text that is no mutation, or lacks a value, is told as the error it would meet."""
    value = nexus.get("PREVIEW KML :c", c=command)

    assert (value["would"], value["error"]["code"]) == ("fail", code)


def test_the_readonly_endpoint_previews_and_does_not_write(nexus):
    """PREVIEW is reading; the command itself is refused there (KIP2-META-024)."""
    assert nexus.get("PREVIEW KML :c", c=ASSERT, readonly=True)["would"] == "commit"
    assert nexus.code(ASSERT, readonly=True) == "ReadonlyViolation"


def test_many_changes_are_listed_in_part(nexus):
    """A long list of changes is cut, and says so; the counts are whole."""
    people = "\n".join(f'CREATE CONCEPT ?p{i} {{ TYPE "Person" NAME "P{i}" }}' for i in range(130))
    value = nexus.get("PREVIEW KML :c", c=f"MUTATE {{ {people} }}")

    assert value["counts"]["concept"]["created"] == value["writes"] == 130
    assert len(value["changes"]) == 100
    assert value["truncated"] is True


def test_a_preview_obeys_authority(nexus):
    """What the caller may not do would fail."""
    who = Principal("r", permissions=frozenset({"read", "create"}))
    assert nexus.get("PREVIEW KML :c", c=ASSERT, principal=who)["error"]["code"] == "NotAuthorized"
