"""Whatever is asked, the engine answers: a response that fits its schema, and a failed request that changes nothing."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.language.format import format_command
from tests.core.language.strategies import commands
from tests.core.mutation.conftest import People

WORDS = ["a", "x1", "_b", "find", "WHERE", "not", "true", "id", "facets", "by", "index", "key"]
REFS = [":alice", ":bob", ":dark", ":claim", ":proof", ":run", ":tuple", "?h", "?x", '"C-00000000000zzzzz"']
ENDS = [
    *REFS,
    '{key: "alice"}',
    '{type: "Person", key: "bob"}',
    '{name: "Alice"}',
    '"text"',
    "5",
    "null",
    '(:alice, "knows", :bob)',
]
FIELDS = {
    "concept": ["name", "key", "aliases", "canonical_id", "_system", "governance"],
    "evidence": ["evidence_class", "payload", "observed_at", "content_digest", "media_type", "status"],
    "assertion": [
        "proposition",
        "asserted_by",
        "stance",
        "mode",
        "confidence",
        "asserted_at",
        "valid_time",
        "context_refs",
    ],
    "activity": ["activity_class", "status", "started_at", "ended_at", "parameters_digest"],
    "any": ["n", "code", "salience", "memory_strength", "retention_class", "expires_at", "legal_hold"],
}
NEEDED = {
    "concept": "", "evidence": 'evidence_class: "m", payload: "p", ', "activity": 'activity_class: "c", ',
    "assertion": 'proposition: :tuple, asserted_by: :alice, stance: "support", mode: "stated", ',
}  # fmt: skip
VALUES = [*REFS, '"x"', "0.5", "-1", "true", "null", '"2026-01-01T00:00:00Z"', '{from: "2026-01-01T00:00:00Z"}',
          '{mode: "external", content_ref: "r"}', '"support"', '"stated"', '"completed"', "MUL(2, 3)", "[1, [2]]", '["a"]', '{id: "x"}']  # fmt: skip
GUARDS = ["", ' WHERE {?x CONCEPT {type: "Person"}}', " WHERE {?x ASSERTION {}}", ' WHERE {?p PROPOSITION (?x, "knows", ?y)}',
          ' WHERE {?x EVIDENCE {} FILTER(?x.evidence_class == "m")} LIMIT 1']  # fmt: skip


def mostly(right, wrong):
    """A choice that is usually right."""
    return st.one_of(*[st.sampled_from(right)] * 5, st.sampled_from(wrong))


types = mostly(['"Person"', '"Theme"', '"Experience"', '"StatusValue"'], ['"knows"', '"nothing"', '""'])
predicates = mostly(['"knows"', '"timezone"', '"prefers"'], ['"Person"', '"nothing"'])
facets = mostly(['"MnemonicState"'], ['"SkillUtility"', '"nothing"'])
edges = mostly(['"has_step"', '"experienced_by"', '"evidence"', '"inputs"', '"source"'], ['"nothing"'])
ref, end, value, guard = (st.sampled_from(items) for items in (REFS, ENDS, VALUES, GUARDS))


def members(kind, *, needed=""):
    """An object of some fields of a kind after those that are needed."""
    field = st.sampled_from([name for name in FIELDS[kind] if f"{name}:" not in needed] or ["n"])
    pairs = st.lists(st.tuples(field, value), max_size=2, unique_by=lambda pair: pair[0])
    return pairs.map(lambda found: "{" + needed + ", ".join(f"{key}: {item}" for key, item in found) + "}")


def structure():
    """Up to two structural assignments."""
    pairs = st.lists(st.tuples(edges, ref), max_size=2)
    return pairs.map(
        lambda found: "SET STRUCTURAL {" + " ".join(f"({f}, {t})" for f, t in found) + "}" if found else ""
    )


@st.composite
def statements(draw):
    """One clause of any family, made of parts that might belong together."""
    handle = draw(st.sampled_from(["?h", "?i"]))
    kind = draw(st.sampled_from(["concept", "evidence", "assertion", "activity"]))
    fields = draw(st.sampled_from(["", f"SET FIELDS {draw(members(kind))}"]))
    content = f"{fields} SET ATTRIBUTES {draw(members('any'))} SET FACET {draw(facets)} {draw(members('any'))} {draw(structure())}"
    record = f"SET FIELDS {draw(members(kind, needed=NEEDED[kind]))} {draw(structure())}"
    target, other, where = draw(ref), draw(ref), draw(guard)
    return draw(st.sampled_from([
        f"CREATE CONCEPT {handle} {{TYPE {draw(types)} {content}}}",
        f'CREATE {kind.upper()} {handle} {{CLIENT KEY "k" {record}}}' if kind != "concept" else f"ARCHIVE {target}",
        f'UPSERT CONCEPT {handle} {{MATCH {{type: {draw(types)}, key: "alice"}} {content}}}',
        f"ENSURE PROPOSITION {handle} ({draw(end)}, {draw(predicates)}, {draw(end)})",
        f'ASSERT {handle} ({draw(end)}, {draw(predicates)}, {draw(end)}) {{by: {target}, mode: "stated", evidence: {other}}} SUPERSEDING {draw(ref)}',
        f"ASSERT {handle} ({target}, {draw(predicates)}, {draw(end)}) {{by: :alice, mode: {draw(value)}}}",
        f"UPDATE {target} {content}{where}",
        f"UPDATE ?x SET ATTRIBUTES {{n: ADD(COALESCE(?x.attributes.n, 1), 1)}}{where or GUARDS[1]}",
        f"RETRACT ASSERTION {target}{where}",
        f"SUPERSEDE ASSERTION {target} BY {other}",
        f"CORRECT EVIDENCE {target} BY {other}",
        f'TRANSITION ACTIVITY {target} TO "completed" SET FIELDS {draw(members("activity"))} {draw(structure())}',
        f"SET RETENTION {target} {draw(members('any'))}{where}",
        f"ARCHIVE {target}{where}",
        f"TOMBSTONE {target}{where}",
        f'PURGE {target}{where} REFERENCE POLICY "authorized_cascade" CONFIRM "PURGE"',
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


@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
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
