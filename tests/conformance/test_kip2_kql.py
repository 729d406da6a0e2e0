"""KIP2-KQL-001..029 (conformance paper §19): one test per id; every read leaves durable state as it was (§38)."""

from __future__ import annotations

import pytest

from core.authority import Principal
from tests.conformance.harness import CORE, DETERMINISTIC

ZONE = '(:alice, "timezone", "+08:00")'
OTHER = '(:alice, "timezone", "+01:00")'
DIET = '(:alice, "is_vegetarian", true)'
TIE = "2026-01-01T00:00:00Z"
BEFORE, AFTER = "2025-06-01T00:00:00Z", "2026-06-01T00:00:00Z"
KEYS = 'FIND(?p.key) WHERE {?p CONCEPT {type: "Person"}} ORDER BY ?p.key'


@pytest.fixture(autouse=True)
def reads_commit_nothing(world, monkeypatch):
    """No FIND of this suite may change durable state, whatever else it is tested for (KQL-029, §38)."""
    invoke = world.invoke

    def watched(principal, said, /, **options):
        if isinstance(said, str) and said.startswith("FIND"):
            with world.unchanged():
                return invoke(principal, said, **options)
        return invoke(principal, said, **options)

    monkeypatch.setattr(world, "invoke", watched)


def say(world, triple=ZONE, by="bob", stance="support", more="", **parameters):
    """Record a claim; what it is, as a parameter."""
    members = f'by: :{by}, stance: "{stance}", mode: "stated"{more and ", " + more}'
    return world.ok(f"ASSERT ?a {triple} {{{members}}}", **parameters).id("a")


def person(world, key, **attributes):
    """A further Person, as a parameter."""
    members = ", ".join(f"{name}: :{name}" for name in attributes)
    command = f'UPSERT CONCEPT ?c {{MATCH {{type: "Person", key: :k}} SET ATTRIBUTES {{{members}}}}}'
    return world.ok(command, k=key, **attributes).id("c")


def test_kip2_kql_001_concept_pattern_works(world):
    """Type and name find the one Concept, in both spellings of the pattern."""
    for pattern in ('?p {type: "Person", name: "Alice"}', '?p CONCEPT {type: "Person", name: "Alice"}'):
        [found] = world.rows(f"FIND(?p) WHERE {{{pattern}}}")
        assert (found["id"], found["key"], found["schema_ref"]) == (
            world.ref["alice"]["id"],
            "alice",
            f"{CORE}/Person",
        )


def test_kip2_kql_002_proposition_pattern_reads_raw_state(world):
    """Tuples are found whatever is believed of them: nothing, the contrary, or both sides."""
    world.ok(f"ENSURE PROPOSITION ?p {ZONE}")
    say(world, OTHER, stance="reject")
    values = world.rows('FIND(?o) WHERE {?p PROPOSITION (:alice, "timezone", ?o)}')
    states = world.rows(f'FIND(?o, ?b.status) WHERE {{?b BELIEF (:alice, "timezone", ?o)}} {DETERMINISTIC}')

    assert sorted(values) == ["+01:00", "+08:00"]
    assert sorted(states) == [["+01:00", "rejected"], ["+08:00", "insufficient"]]


def test_kip2_kql_003_predicate_variable_returns_exact_ref(world):
    """A predicate variable is bound to the exact versioned reference, however the tuple was written."""
    world.ok(f"ENSURE PROPOSITION ?p {ZONE}")
    world.ok('ENSURE PROPOSITION ?p (:alice, "knows", :bob)')

    assert sorted(world.rows("FIND(?r) WHERE {?p PROPOSITION (:alice, ?r, ?o)}")) == [
        f"{CORE}/knows",
        f"{CORE}/timezone",
    ]
    assert world.rows('FIND(?o) WHERE {?p (:alice, ?r, ?o) FILTER(?r == "timezone")}') == []


def test_kip2_kql_004_assertion_pattern_works(world):
    """Proposition, actor, stance and mode each select."""
    mine = say(world)
    say(world, stance="reject", by="self")
    say(world, OTHER)
    match = '{proposition: ?p, asserted_by: :bob, stance: "support", mode: "stated"}'

    assert world.rows(f"FIND(?a.id) WHERE {{?p PROPOSITION {ZONE} ?a ASSERTION {match}}}") == [mine["id"]]
    assert world.rows('FIND(?a.id) WHERE {?a ASSERTION {mode: "observed"}}') == []


def test_kip2_kql_005_evidence_pattern_works(world):
    """The class selects, and another class does not match."""
    create = "CREATE EVIDENCE ?e {SET FIELDS {evidence_class: :c, payload: :c}}"
    made = {name: world.ok(create, c=name).id("e")["id"] for name in ("tool_result", "observation")}

    for name, found in made.items():
        assert world.rows("FIND(?e.id) WHERE {?e EVIDENCE {evidence_class: :c}}", c=name) == [found]
    assert world.rows('FIND(?e.id) WHERE {?e EVIDENCE {evidence_class: "message"}}') == []


def test_kip2_kql_006_activity_pattern_works(world):
    """Class and status select together."""
    create = "CREATE ACTIVITY ?x {SET FIELDS {activity_class: :c, status: :s}}"
    made = world.ok(create, c="inference", s="completed").id("x")["id"]
    world.ok(create, c="inference", s="running")
    world.ok(create, c="review", s="completed")

    assert world.rows(
        'FIND(?x.id) WHERE {?x ACTIVITY {activity_class: "inference", status: "completed"}}'
    ) == [made]


def test_kip2_kql_007_structural_pattern_works(world):
    """Steps come in the order of their field without a Proposition anywhere; Core fields are topology too."""
    made = world.ok(
        'MUTATE {CREATE CONCEPT ?e {TYPE "Experience" SET STRUCTURAL {("has_step", ?one) ("has_step", ?two)}} '
        'CREATE CONCEPT ?two {TYPE "ExperienceStep" NAME "two"} CREATE CONCEPT ?one {TYPE "ExperienceStep" NAME "one"}}'
    ).ids()
    cited = world.ok(
        'CREATE EVIDENCE ?v {SET FIELDS {evidence_class: "observation", payload: "x"}}'
    ).id("v")  # fmt: skip
    claim = say(world, more="evidence: [:v]", v=cited)
    steps = (
        'FIND(?s.name, ?edge.index) WHERE {?edge STRUCTURAL (:e, "has_step", ?s)} ORDER BY ?edge.index DESC'
    )

    assert world.rows(steps, e=made["e"]) == [["two", 1], ["one", 0]]
    assert world.rows('FIND(?v.id) WHERE {STRUCTURAL (:a, "evidence", ?v)}', a=claim) == [cited["id"]]
    assert world.rows('FIND(COUNT(?p)) WHERE {?p (?s, ?r, ?o) FILTER(CONTAINS(?r, "step"))}') == [0]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("?p.attributes.n == 2", ["b"]),
        ("?p.attributes.n != 2", ["a", "c"]),
        ("?p.attributes.n < 2", ["a"]),
        ("?p.attributes.n <= 2", ["a", "b"]),
        ("?p.attributes.n > 2", ["c"]),
        ("?p.attributes.n >= 2", ["b", "c"]),
        ("?p.attributes.n > 1 && ?p.attributes.n < 3", ["b"]),
        ("?p.attributes.n < 2 || ?p.attributes.n > 2", ["a", "c"]),
        ("!(?p.attributes.n == 2)", ["a", "c"]),
        ('IN(?p.key, ["a", "c", "z"])', ["a", "c"]),
        ('STARTS_WITH(?p.attributes.t, "x")', ["a", "b"]),
        ('ENDS_WITH(?p.attributes.t, "z")', ["b"]),
        ('CONTAINS(?p.attributes.t, "y")', ["a", "c"]),
        ('REGEX(?p.attributes.t, "^x.$")', ["a", "b"]),
        ("IS_NULL(?p.attributes.nothing)", ["a", "b", "c"]),
        ("IS_NOT_NULL(?p.attributes.nothing)", []),
    ],
)
def test_kip2_kql_008_filter_comparison_works(world, condition, expected):
    """Each comparison and registered function keeps exactly its rows."""
    for key, number, text in (("a", 1, "xy"), ("b", 2, "xz"), ("c", 3, "yy")):
        person(world, key, n=number, t=text)
    query = f'FIND(?p.key) WHERE {{?p CONCEPT {{type: "Person"}} FILTER(IS_NOT_NULL(?p.attributes.n)) FILTER({condition})}}'

    assert sorted(world.rows(query)) == expected


def test_kip2_kql_009_not_is_no_visible_match_not_false(world):
    """NOT selects who has no visible fact; nothing is rejected by it, neither stored nor believed."""
    world.ok('ENSURE PROPOSITION ?p (:bob, "is_vegetarian", true)')
    query = 'FIND(?p.key) WHERE {?p CONCEPT {type: "Person"} NOT {(?p, "is_vegetarian", true)}}'

    assert sorted(world.rows(query)) == ["alice", "carol", "self"]
    assert world.elements("assertion") == []
    assert world.rows(f"FIND(?b.status) WHERE {{?b BELIEF {DIET}}} {DETERMINISTIC}") == ["insufficient"]


def test_kip2_kql_010_optional_missing_is_null(world):
    """A missing relation is a null in its row, and neither stored nor believed to be false."""
    world.ok('ENSURE PROPOSITION ?p (:bob, "is_vegetarian", true)')
    query = 'FIND(?p.key, ?v) WHERE {?p CONCEPT {type: "Person"} OPTIONAL {(?p, "is_vegetarian", ?v)}} ORDER BY ?p.key'

    assert world.rows(query) == [["alice", None], ["bob", True], ["carol", None], ["self", None]]
    assert world.elements("assertion") == []
    assert world.rows(f"FIND(?b.status) WHERE {{?b BELIEF {DIET}}} {DETERMINISTIC}") == ["insufficient"]


def test_kip2_kql_011_union_combines_authorized_branches(world):
    """Each branch gives its visible rows; a hidden one is in none."""
    query = 'FIND(?x.key) WHERE {?x CONCEPT {type: "Organization"} UNION {?x CONCEPT {type: "Service"}}}'
    assert sorted(world.rows(query)) == ["org_acme", "service_api"]
    world.classify(world.ref["service_api"])

    assert world.invoke("reader_hidden", query).result == ["org_acme"]
    assert sorted(world.invoke("reader_full", query).result) == ["org_acme", "service_api"]


def test_kip2_kql_012_count_uses_authorized_solutions(world):
    """No aggregate tells of what is hidden: not a count, not a maximum, not a group."""
    person(world, "open", n=1)
    world.classify(person(world, "zz", n=99))
    query = 'FIND(COUNT(?p), COUNT(DISTINCT ?p.key), MAX(?p.attributes.n), MAX(?p.key)) WHERE {?p CONCEPT {type: "Person"}}'

    assert world.rows(query) == [[6, 6, 99, "zz"]]
    assert world.invoke("reader_hidden", query).result == [[5, 5, 1, "self"]]
    groups = (
        'FIND(?p.attributes.n, COUNT(?p)) WHERE {?p CONCEPT {type: "Person"} FILTER(?p.attributes.n > 0)}'
    )
    assert world.invoke("reader_hidden", groups).result == [[1, 1]]


def test_kip2_kql_013_count_zero_is_not_negative_belief(world):
    """No rows are zero rows; the belief that is asked for next is still unknown."""
    count = f"FIND(COUNT(?p)) WHERE {{?p PROPOSITION {DIET}}}"

    assert world.rows(count) == [0]
    assert world.rows(f"FIND(?b.status) WHERE {{?b BELIEF {DIET}}} {DETERMINISTIC}") == ["insufficient"]
    assert world.rows(count) == [0]


def test_kip2_kql_014_order_by_honors_explicit_key(world):
    """Rows come in the order of their keys, left to right, each in its direction."""
    for key, number in (("x", 1), ("y", 2), ("z", 1)):
        person(world, key, n=number)
    query = "FIND(?p.key) WHERE {{?p CONCEPT {{}} FILTER(?p.attributes.n > 0)}} ORDER BY {}"

    assert world.rows(query.format("?p.attributes.n ASC, ?p.key DESC")) == ["z", "x", "y"]
    assert world.rows(query.format("?p.attributes.n DESC, ?p.key")) == ["y", "x", "z"]


@pytest.mark.conformance("KIP2-KQL-015", "SHOULD")
@pytest.mark.parametrize("direction", ["ASC", "DESC"])
def test_kip2_kql_015_null_sort_keys_order_last(world, direction):
    """Whichever way the values go, rows without one come after them."""
    person(world, "x", n=1)
    person(world, "y", n=2)
    query = (
        f'FIND(?p.attributes.n) WHERE {{?p CONCEPT {{type: "Person"}}}} ORDER BY ?p.attributes.n {direction}'
    )
    values = [1, 2] if direction == "ASC" else [2, 1]

    assert world.rows(query) == [*values, None, None, None, None]


def test_kip2_kql_016_kql_cursor_pins_snapshot(world):
    """A traversal is of one state: what is added, renamed or archived on the way is as it was at its first page."""
    names = 'FIND(?p.name) WHERE {?p CONCEPT {type: "Person"}} ORDER BY ?p.name LIMIT 1'
    page = world.ok(names)
    pinned = page["results"][0]["context"]["snapshot_seq"]
    world.ok('CREATE CONCEPT ?c {TYPE "Person" NAME "Bea"}')
    world.ok('UPDATE :bob SET FIELDS {name: "Zed"}')
    world.ok("ARCHIVE :carol")
    world.restart()
    seen = list(page.result)
    while page.cursor:
        page = world.ok(f"{names} CURSOR :c", c=page.cursor)
        seen += page.result
        assert page["results"][0]["context"]["snapshot_seq"] == pinned

    assert seen == ["Alice", "Bob", "Carol", "Self"]
    assert world.rows(names.replace("LIMIT 1", "")) == ["Alice", "Bea", "Self", "Zed"]


@pytest.mark.parametrize(
    "changed",
    [
        KEYS.replace("Person", "Theme"),
        KEYS.replace("?p.key) ", "?p.name) "),
        f"{KEYS} DESC",
        KEYS.replace('type: "Person"', "key: :k"),
        KEYS.replace("}} ORDER", "}} FOR TIME :t ORDER"),
    ],
)
def test_kip2_kql_017_cursor_query_mismatch_fails(world, changed):
    """A cursor continues its own query only."""
    cursor = world.ok(f"{KEYS} LIMIT 1").cursor

    assert world.refused(f"{changed} LIMIT 1 CURSOR :c", c=cursor, k="alice", t=AFTER) == "CursorMismatch"


def test_kip2_kql_017_cursor_of_other_parameters_fails(world):
    """The same text with another parameter is another query."""
    query = 'FIND(?p.key) WHERE {?p CONCEPT {type: "Person"} FILTER(?p.key != :no)} LIMIT 1'
    cursor = world.ok(query, no="x").cursor

    assert world.refused(f"{query} CURSOR :c", no="y", c=cursor) == "CursorMismatch"
    assert world.invoke("reader_full", f"{query} CURSOR :c", no="x", c=cursor).code in (
        "CursorMismatch",
        "CursorInvalidated",
    )


def test_kip2_kql_018_cursor_type_mismatch_fails(world):
    """A cursor of one family is none of another, in either direction, and a made-up one is none at all."""
    world.ok('UPDATE :bob SET FIELDS {name: "Alice too"}')
    cursor = world.ok(f"{KEYS} LIMIT 1").cursor
    others = {
        'SEARCH CONCEPT "alice" LIMIT 1': "CURSOR",
        "HISTORY SPACE LIMIT 1": "CURSOR",
        "LIST TYPES LIMIT 1": "CURSOR",
        "CHANGES AFTER SEQ 0 LIMIT 1": None,
    }
    for command, clause in others.items():
        foreign = world.ok(command).cursor
        assert foreign is not None, command
        again = f"{command} {clause} :c" if clause else "CHANGES SINCE :c"
        assert world.refused(again, c=cursor) == "CursorTypeMismatch", command
        assert world.refused(f"{KEYS} LIMIT 1 CURSOR :c", c=foreign) == "CursorTypeMismatch", command


def test_kip2_kql_019_belief_result_is_virtual(world):
    """The result has no identity, and no element or commit is there after it that was not before."""
    claim = say(world)
    commits = len(world.log())
    [found] = world.rows(f"FIND(?b) WHERE {{?b BELIEF {ZONE}}} {DETERMINISTIC}")

    assert (found["status"], found.get("id")) == ("accepted", None)
    assert len(world.log()) == commits
    kinds = ("proposition", "assertion", "evidence", "activity")
    assert [len(world.elements(kind)) for kind in kinds] == [1, 1, 0, 0]
    assert world.rows("FIND(?a.id) WHERE {?a ASSERTION {}}") == [claim["id"]]


def test_kip2_kql_020_belief_target_is_bounded(world):
    """A variable that no pattern binds is no target, and everything at once is none either."""
    say(world)

    assert world.refused("FIND(?b) WHERE {?b BELIEF (?p)}") == "ProjectionTargetUnbound"
    assert world.refused("FIND(?b) WHERE {?b BELIEF (?s, ?r, ?o)}") == "ProjectionTargetUnbounded"
    assert world.refused("FIND(?b) WHERE {?b BELIEF SLOT (?s, ?r)}") == "ProjectionTargetUnbounded"
    assert world.refused('FIND(?b) WHERE {?b BELIEF (:alice, "timezone", true)}') == "TypeMismatch"
    assert world.rows(
        f'FIND(?b.status) WHERE {{?p (:alice, "timezone", ?o) ?b BELIEF (?p)}} {DETERMINISTIC}'
    ) == ["accepted"]


def test_kip2_kql_021_belief_slot_empty_is_insufficient(world):
    """An empty functional slot is one row that says so."""
    [found] = world.rows(f'FIND(?s) WHERE {{?s BELIEF SLOT (:alice, "timezone")}} {DETERMINISTIC}')

    assert (found["status"], found["accepted_values"]) == ("insufficient", [])


def test_kip2_kql_022_belief_slot_detects_functional_conflict(world):
    """Two supported values of one functional slot are both there, and neither is picked in silence."""
    say(world)
    say(world, OTHER, by="self")
    [found] = world.rows(f'FIND(?s) WHERE {{?s BELIEF SLOT (:alice, "timezone")}} {DETERMINISTIC}')

    assert found["status"] == "contested"
    assert len(found["candidate_projections"]) == 2
    assert len(found["accepted_values"]) != 1


def test_kip2_kql_023_raw_path_does_not_propagate_belief(world):
    """A path over stored tuples is found; nobody believes its ends to be related, and none can be believed."""
    for one, two in (("alice", "bob"), ("bob", "carol")):
        world.ok(f'ENSURE PROPOSITION ?p (:{one}, "parent_of", :{two})')
    say(world, '(:alice, "parent_of", :bob)')

    path = 'FIND(?x.key) WHERE {(:alice, "parent_of"{1,3}, ?x)}'
    assert sorted(world.rows(path)) == ["bob", "carol"]
    states = 'FIND(?b.status) WHERE {?b BELIEF ({}, "parent_of", :carol)} ' + DETERMINISTIC
    assert world.rows(states.replace("{}", ":bob")) == ["insufficient"]
    assert world.rows(states.replace("{}", ":alice")) == ["insufficient"]
    assert world.refused('FIND(?b) WHERE {?b BELIEF (:alice, "parent_of"{1,3}, :carol)}') == "InvalidSyntax"


def test_kip2_kql_024_as_of_reconstructs_old_mutable_state(world):
    """The older state has the older value, and the present one the newer."""
    seq = world.ok('UPDATE :alice SET ATTRIBUTES {city: "Bern"}').receipt["space_seq"]
    world.ok('UPDATE :alice SET ATTRIBUTES {city: "Rome"} SET FIELDS {name: "Alicia"}')
    query = 'FIND(?p.name, ?p.attributes.city, ?p._system.version) WHERE {?p CONCEPT {key: "alice"}}'

    assert world.rows(f"{query} AS OF SEQ :n", n=seq) == [["Alice", "Bern", 2]]
    assert world.rows(query) == [["Alicia", "Rome", 3]]


def test_kip2_kql_025_as_of_reconstructs_lifecycle(world):
    """A claim withdrawn later was in force before."""
    claim = say(world)
    seq = world.state().seq
    world.ok("RETRACT ASSERTION :a", a=claim)
    query = "FIND(?a.lifecycle.status) WHERE {?a ASSERTION {id: :i}}"

    assert world.rows(f"{query} AS OF SEQ :n", i=claim["id"], n=seq) == ["active"]
    assert world.rows(query, i=claim["id"]) == ["retracted"]


def test_kip2_kql_026_for_time_selects_world_valid_state(world):
    """Belief follows the world time; the cognitive snapshot and the raw rows do not."""
    say(world, more=f'valid: {{until: "{TIE}"}}')
    say(world, OTHER, more=f'valid: {{from: "{TIE}"}}')
    slot = 'FIND(?s.accepted_values) WHERE {?s BELIEF SLOT (:alice, "timezone")} FOR TIME :t ' + DETERMINISTIC
    replies = [world.ok(slot, t=moment) for moment in (BEFORE, AFTER)]

    assert [reply.result for reply in replies] == [[["+08:00"]], [["+01:00"]]]
    assert {reply["results"][0]["context"]["snapshot_seq"] for reply in replies} == {world.state().seq}
    raw = 'FIND(?o) WHERE {(:alice, "timezone", ?o)} FOR TIME :t'
    assert sorted(world.rows(raw, t=BEFORE)) == sorted(world.rows(raw, t=AFTER)) == ["+01:00", "+08:00"]


def test_kip2_kql_027_historical_read_obeys_current_governance(world):
    """What is secret now cannot be read where it was public."""
    seq = world.ok('UPDATE :carol SET ATTRIBUTES {diary: "xyzzy"}').receipt["space_seq"]
    query = 'FIND(?p.attributes.diary) WHERE {?p CONCEPT {key: "carol"}} AS OF SEQ :n'
    assert world.invoke("reader_hidden", query, n=seq).result == ["xyzzy"]
    world.classify(world.ref["carol"])
    reply = world.invoke("reader_hidden", query, n=seq)

    assert reply.result == []
    assert "xyzzy" not in str(reply)
    assert world.rows(query, n=seq) == ["xyzzy"]


def test_kip2_kql_028_projection_redaction_hides_raw_evidence(world):
    """Who may only project gets the status that the material gives, and is told that the rest is withheld."""
    cited = world.ok(
        'CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "xyzzy"} SET STRUCTURAL {("source", :bob)}}'
    ).id("e")
    claim = say(world, more="evidence: [:e]", e=cited)
    for secret in (cited, claim):
        world.classify(secret)
    projector = Principal("projector", "kip", frozenset({"discover", "read", "project"}), None,
                          projected=frozenset({"secret"}))  # fmt: skip
    options = 'WITH EPISTEMIC {policy: "test-deterministic", explanation: "ledger"}'
    reply = world.invoke(projector, f"FIND(?b) WHERE {{?b BELIEF {ZONE}}} {options}")
    [found] = reply.result

    assert (found["status"], found["explanation_redacted"]) == ("accepted", True)
    for withheld in (cited["id"], claim["id"], "xyzzy"):
        assert withheld not in str(reply)
    assert world.invoke(projector, "FIND(?e) WHERE {?e EVIDENCE {}}").result == []
    assert world.invoke(projector, "FIND(?e) WHERE {?e EVIDENCE {id: :i}}", i=cited["id"]).result == []
    asked = f"FIND(?b.status) WHERE {{?b BELIEF {ZONE}}}"
    assert world.invoke("reader_hidden", asked).result == ["insufficient"]
    about = {"id": world.element(claim).proposition}
    world.classify(about)  # what is said must be visible: a status about it would show it
    [found] = world.invoke(projector, f"FIND(?b) WHERE {{?b BELIEF {ZONE}}} {options}").result
    assert (found["status"], found["proposition_id"]) == ("insufficient", None)
    slot = 'FIND(?s) WHERE {?s BELIEF SLOT (:alice, "timezone")}'
    assert world.invoke(projector, slot).result[0]["candidate_projections"] == []
    assert world.invoke("reader_no_project", asked).code == "ProjectionNotAuthorized"


def test_kip2_kql_029_kql_read_has_no_write_receipt(world):
    """A read says which snapshot it is of and has no receipt, no tx_id and no sequence of its own."""
    say(world)
    for query in (KEYS, f"FIND(?b) WHERE {{?b BELIEF {ZONE}}}"):
        reply = world.ok(query)
        context = reply["results"][0]["context"]
        assert reply.get("receipt") is None
        assert (context["space_id"], context["snapshot_seq"]) == ("test", world.state().seq)
        assert not {"tx_id", "space_seq"} & context.keys()
