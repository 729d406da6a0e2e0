"""Whatever is asked, the engine answers: a response that fits its schema, and a failed request that changes nothing."""

from __future__ import annotations

from functools import cache

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.language.format import format_command
from tests.core.language.strategies import commands
from tests.core.mutation.conftest import People

WORDS = ["a", "x1", "_b", "find", "WHERE", "not", "true", "id", "facets", "by", "index", "key"]
ENDS = [":alice", ":dark", ":claim", ":proof", ":run", ":tuple", "?h", "?x", '"Alice"', '{key: "alice"}', '{type: "Person", key: "bob"}',
        '{name: "Alice"}', "5", "null", '"C-00000000000zzzzz"', "(:alice, \"knows\", :bob)", "[:alice, ?h]"]  # fmt: skip
NAMES = ['"Person"', '"Theme"', '"Experience"', '"StatusValue"', '"knows"', '"timezone"', '"prefers"', '"has_step"', '"experienced_by"', '"evidence"',
         '"inputs"', '"MnemonicState"', '"nothing"', '"kip://test/core-domain@1.0.0/Person"', '""']  # fmt: skip
FIELDS = ["name", "key", "status", "stance", "mode", "confidence", "payload", "evidence_class", "activity_class", "proposition", "asserted_by",
          "asserted_at", "valid_time", "observed_at", "salience", "code", "_system", "governance", "retention_class", "expires_at", "legal_hold"]  # fmt: skip
VALUES = [*ENDS, '"x"', "0.5", "-1", "true", '"2026-01-01T00:00:00Z"', '{from: "2026-01-01T00:00:00Z"}', '{mode: "external", content_ref: "r"}',
          '"support"', '"stated"', '"completed"', "ADD(?x.attributes.n, 1)", "COALESCE(?h.name, \"z\")", "MUL(2, 3)", "[1, [2]]"]  # fmt: skip

end, name, field, value = (st.sampled_from(items) for items in (ENDS, NAMES, FIELDS, VALUES))
members = st.lists(st.tuples(field, value), max_size=3, unique_by=lambda pair: pair[0]).map(
    lambda pairs: "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
)
edges = st.lists(st.tuples(name, end), max_size=2).map(
    lambda pairs: "{" + " ".join(f"({f}, {t})" for f, t in pairs) + "}"
)
guard = st.sampled_from(["", ' WHERE {?x CONCEPT {type: "Person"}}', " WHERE {?x ASSERTION {}}", ' WHERE {?p PROPOSITION (?x, "knows", ?y)}',
                         " WHERE {?x EVIDENCE {} FILTER(?x.evidence_class == \"m\")} LIMIT 1"])  # fmt: skip


@st.composite
def statements(draw):
    """One clause of any family, made of parts that might belong together."""
    handle = draw(st.sampled_from(["?h", "?i"]))
    body = f"SET FIELDS {draw(members)} SET ATTRIBUTES {draw(members)} SET FACET {draw(name)} {draw(members)} SET STRUCTURAL {draw(edges)}"
    record = f"SET FIELDS {draw(members)} SET STRUCTURAL {draw(edges)}"
    target, other, where = draw(end), draw(end), draw(guard)
    return draw(st.sampled_from([
        f"CREATE CONCEPT {handle} {{TYPE {draw(name)} {body}}}",
        f"CREATE EVIDENCE {handle} {{CLIENT KEY \"k\" {record}}}",
        f"CREATE ASSERTION {handle} {{{record}}}",
        f"CREATE ACTIVITY {handle} {{{record}}}",
        f"UPSERT CONCEPT {handle} {{MATCH {{type: {draw(name)}, key: \"alice\"}} {body}}}",
        f"ENSURE PROPOSITION {handle} ({target}, {draw(name)}, {other})",
        f"ASSERT {handle} ({target}, {draw(name)}, {other}) {{by: {draw(end)}, mode: {draw(value)}, evidence: {draw(end)}}} SUPERSEDING {draw(end)}",
        f"UPDATE {target} {body}{where}",
        f"RETRACT ASSERTION {target}{where}",
        f"SUPERSEDE ASSERTION {target} BY {other}",
        f"CORRECT EVIDENCE {target} BY {other}",
        f"TRANSITION ACTIVITY {target} TO {draw(value)} {record}",
        f"SET RETENTION {target} {draw(members)}{where}",
        f"ARCHIVE {target}{where}",
        f"TOMBSTONE {target}{where}",
        f"PURGE {target}{where} REFERENCE POLICY \"authorized_cascade\" CONFIRM \"PURGE\"",
        f"MERGE CONCEPT {target} INTO {other}{where.replace(' LIMIT 1', '')}",
    ]))  # fmt: skip


@cache
def world() -> People:
    """The people, a claim with its proof, a run and a tuple. Only its first state is ever used."""
    found = People()
    made = found.handles('MUTATE {CREATE EVIDENCE ?proof {SET FIELDS {evidence_class: "m", payload: "p"}} ENSURE PROPOSITION ?tuple (:alice, "knows", :bob) '
                         'CREATE ACTIVITY ?run {SET FIELDS {activity_class: "c"}} '
                         'ASSERT ?claim (:alice, "timezone", "x") {by: :alice, mode: "stated", evidence: ?proof}}', found.ref)  # fmt: skip
    found.ref |= made
    return found


def answered(text, parameters):
    """The status of a command over the first state, which stays as it was."""
    people = world()
    states, deltas = list(people.states), list(people.deltas)
    response = people.run(text, {**people.ref, **parameters})  # `send` holds the response against the schema
    committed = len(people.deltas) > len(deltas)
    people.states[:], people.deltas[:] = states, deltas

    assert response["status"] in {"succeeded", "failed"}
    assert committed == (response["receipt"] is not None and response["receipt"]["status"] == "committed")
    return response


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(statements(), min_size=1, max_size=4))
def test_any_mutation_has_an_answer(clauses):
    """Clauses of every family, mixed at random: committed whole, or refused with a code."""
    answered(clauses[0] if len(clauses) == 1 else "MUTATE {" + "\n".join(clauses) + "}", {})


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(commands, st.data())
def test_any_tree_of_the_grammar_has_an_answer(command, data):
    """Any command of the language, with any parameters: an answer or an error, never a fault."""
    parameter = st.sampled_from(
        [5, "x", None, [1], {"id": world().ref["alice"]["id"]}, {"key": "alice"}, True, 0.5]
    )
    answered(format_command(command), {word: data.draw(parameter) for word in WORDS})
