"""What the two shipped engines of KIP lack or get wrong, one test each: what is here works, what is not is refused.

Each docstring begins with the list and the entry that it shows right: 7a is what they declare missing, 7b what was
measured.
"""

from __future__ import annotations

import pytest

from core.authority import PERMISSIONS, Principal, allows
from core.epistemic.trust import TrustRecord
from core.protocol.capabilities import SUPPORTED
from tests.conformance.harness import DETERMINISTIC, World, package, request
from tests.conformance.packages import CORE_DOMAIN

ZONE = '(:alice, "timezone", "+08:00")'
OTHER = '(:alice, "timezone", "+01:00")'
SAY = f'ASSERT ?a {ZONE} {{by: :bob, mode: "stated"}}'
NOTE = 'CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: :p}}'
PERSONS = '?p CONCEPT {type: "Person"}'
NAMES = f"FIND(?p.name) WHERE {{{PERSONS}}} ORDER BY ?p.name"


# --- 7a: declared missing by both


def test_atomic_batches(world):
    """7a, atomic multi-operation batch: one transaction, one receipt, or nothing at all."""
    good = world.ok(request(SAY, "UPDATE :alice SET ATTRIBUTES {a: 1}", execution={"mode": "atomic"}))
    assert good.statuses == ["succeeded", "succeeded"]
    assert len([delta for delta in world.log() if delta.tx_id == good.receipt["tx_id"]]) == 1
    bad = request(SAY, 'CREATE CONCEPT ?x {TYPE "Spaceship"}', execution={"mode": "atomic"})
    assert world.refused(bad) == "SchemaSymbolNotFound"


def test_idempotent_replay(world):
    """7a, idempotent replay: a retry is answered with the first outcome, another request under the key is a conflict."""
    first = world.ok(request({"command": SAY, "idempotency_key": "k"}))
    world.restart()
    with world.unchanged():
        assert world.ok(request({"command": SAY, "idempotency_key": "k"})).receipt == first.receipt
    other = request({"command": SAY.replace(":bob", ":self"), "idempotency_key": "k"})
    assert world.refused(other) == "IdempotencyConflict"


def test_grouped_aggregation_and_order_by_aggregate(world):
    """7a, grouped aggregation: the plain projections are the key, and an aggregate may order."""
    for who in ("bob", "carol"):
        world.ok(f'ENSURE PROPOSITION ?q (:alice, "knows", :{who})')
    world.ok('ENSURE PROPOSITION ?q (:bob, "knows", :carol)')
    query = 'FIND(?s.name, COUNT(?o)) WHERE {(?s, "knows", ?o)} ORDER BY COUNT(?o) ASC'

    assert world.rows(query) == [["Bob", 1], ["Alice", 2]]


def test_structural_patterns_over_core_fields(world):
    """7a, STRUCTURAL over Core fields: evidence, source, generated_by, inputs, outputs and actors, from either end."""
    made = world.ok(
        'MUTATE {CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "tool_result", payload: "x"} '
        'SET STRUCTURAL {("generated_by", ?run) ("source", :carol)}} '
        'CREATE ACTIVITY ?run {SET FIELDS {activity_class: "tool_execution", status: "completed"} '
        'SET STRUCTURAL {("inputs", :alice) ("outputs", ?e) ("associated_actors", :bob)}}}'
    ).ids()
    claim = world.ok(f"{SAY[:-1]}, evidence: [:e]}}", **made).id("a")
    ids = {name: handle["id"] for name, handle in {**made, "a": claim, **world.ref}.items()}
    topology = {
        "evidence": ("a", "e"), "source": ("e", "carol"), "generated_by": ("e", "run"),
        "inputs": ("run", "alice"), "outputs": ("run", "e"), "associated_actors": ("run", "bob"),
    }  # fmt: skip
    for field, (source, target) in topology.items():
        query = f'FIND(?x.id, ?y.id) WHERE {{?edge STRUCTURAL (?x, "{field}", ?y)}}'
        assert world.rows(query) == [[ids[source], ids[target]]], field
        bound = f'FIND(?x.id) WHERE {{STRUCTURAL (?x, "{field}", :t)}}'
        assert world.rows(bound, t={"id": ids[target]}) == [ids[source]], field


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_search_modes_that_are_not_there(world, mode):
    """7a, semantic and hybrid SEARCH: declared absent and refused by name, never silently keyword."""
    assert not SUPPORTED[f"{mode}_search"]
    assert world.refused(f'SEARCH CONCEPT "alice" MODE "{mode}"') == "SearchModeUnsupported"


def test_search_of_the_past(world):
    """7a, SEARCH AS OF SEQ: the words of then, and the index says of when it is."""
    seq = world.state().seq
    world.ok('UPDATE :alice SET FIELDS {name: "Adele"}')
    reply = world.ok('SEARCH CONCEPT "alice" AS OF SEQ :n', n=seq)

    assert [hit["name"] for hit in reply.result] == ["Alice"]
    assert reply["results"][0]["context"]["search"]["index_seq"] == seq
    assert "Adele" not in str(reply)
    assert [hit["name"] for hit in world.rows('SEARCH CONCEPT "adele"')] == ["Adele"]


def test_trust_is_protected_state_and_counts(world):
    """7a, trust model: whose word counts is the host's to say, shown to the owner, and never learnt from content."""
    world.ok(SAY)
    ask = f"FIND(?b.status) WHERE {{?b BELIEF {ZONE}}} {DETERMINISTIC}"
    world.trust(TrustRecord("actor", world.ref["bob"]["id"], "untrusted"))
    assert world.rows(ask) == ["insufficient"]
    world.ok(NOTE, p="trust bob: he is trusted")
    world.ok('UPDATE :bob SET ATTRIBUTES {trust: "trusted"}')

    assert world.rows(ask) == ["insufficient"]
    assert world.ref["bob"]["id"] in str(world.rows("DESCRIBE TRUST"))
    assert world.ref["bob"]["id"] not in str(world.invoke("reader_full", "DESCRIBE TRUST"))


def test_capsules_signatures_and_restore(world):
    """7a, Capsules, signatures and restore: exported as of a seq, signed, verified, previewed; nothing is missing."""
    made = world.ok(
        'EXPORT CAPSULE ?p WHERE {?p CONCEPT {type: "Person"}} WITH {proof_profile: "ed25519"} AS OF SEQ 1'
    ).result["artifact"]
    offered = world.rows("DESCRIBE CAPABILITIES")["supported"]

    assert world.rows("VERIFY CAPSULE :c", c=made)["proofs"][0]["cryptographically_valid"] is True
    assert world.rows('PREVIEW IMPORT CAPSULE :c INTO "test"', c=made)["would"] == "no_effect"
    present = ("snapshot_export", "delta_capsule", "signed_capsule", "restore_import",
               "merge_import", "isolate_import", "preview_import")  # fmt: skip
    assert [name for name in present if not offered[name]] == []
    assert world.refused('VERIFY CAPSULE "c"') == "ArtifactUnavailable"


@pytest.mark.parametrize("action", sorted(PERMISSIONS))
def test_permission_names_gate(action):
    """7a, ungated permission names: no deed passes without one of its permissions, and each lets its deed pass."""
    assert not allows(Principal("p", permissions=frozenset()), action)
    assert all(allows(Principal("p", permissions=frozenset({name})), action) for name in PERMISSIONS[action])


def test_set_retention(world):
    """7a, SET RETENTION: storage policy is set, and the claim it is set on is in force as before."""
    claim = world.ok(SAY).id("a")
    world.ok('SET RETENTION :a {expires_at: "2031-01-01T00:00:00Z"}', a=claim)
    stored = world.element(claim)

    assert stored.retention.expires_at is not None
    assert (stored.status, stored.valid_time.until) == ("active", None)
    assert world.invoke("reader_full", "SET RETENTION :a {legal_hold: true}", a=claim).code == "NotAuthorized"


def test_search_of_assertions_and_activities(world):
    """7a, SEARCH ASSERTION and ACTIVITY: both are found by their words, with exact ids."""
    claim = world.ok(SAY).id("a")
    run = world.ok('CREATE ACTIVITY ?x {SET FIELDS {activity_class: "reflection", status: "completed"}}').id(
        "x"
    )

    assert [hit["id"] for hit in world.rows('SEARCH ASSERTION "timezone"')] == [claim["id"]]
    assert [hit["id"] for hit in world.rows('SEARCH ACTIVITY "reflection"')] == [run["id"]]


def test_paths_and_alternatives(world):
    """7a, hop quantifiers and predicate alternatives: both together, with a variable predicate beside them."""
    for one, two in (("alice", "bob"), ("bob", "carol")):
        world.ok(f'ENSURE PROPOSITION ?q (:{one}, "parent_of", :{two})')
    world.ok('ENSURE PROPOSITION ?q (:alice, "knows", :self)')

    def keys(path):
        return sorted(world.rows(f"FIND(?x.key) WHERE {{(:alice, {path}, ?x)}}"))

    assert keys('"parent_of"{2}') == ["carol"]
    assert keys('"parent_of"{1,}') == ["bob", "carol"]
    assert keys('"parent_of"{0,2}') == ["alice", "bob", "carol"]
    assert keys('"parent_of" | "knows"') == ["bob", "self"]


def test_inline_matchers_and_nested_tuples(world):
    """7a, inline matcher or nested tuple as an endpoint: in queries and in mutations, and in arrays of matchers."""
    seen = world.ok(NOTE, p="x").id("e")
    world.ok(f"{SAY[:-1]}, evidence: [:e]}}", e=seen)
    inline = 'FIND(?o) WHERE {({type: "Person", key: "alice"}, "timezone", ?o)}'
    assert world.rows(inline) == ["+08:00"]
    assert world.rows(f"FIND(?a.mode) WHERE {{?a ASSERTION {{proposition: {ZONE}}}}}") == ["stated"]
    cited = 'FIND(?e.id) WHERE {?a ASSERTION {evidence: [?e]} ?e EVIDENCE {evidence_class: "message"}}'
    assert world.rows(cited) == [seen["id"]]
    world.ok('ENSURE PROPOSITION ?q ({type: "Person", key: "bob"}, "knows", {type: "Person", key: "carol"})')
    assert world.rows('FIND(?o.key) WHERE {(:bob, "knows", ?o)}') == ["carol"]
    world.ok('UPDATE :bob SET ATTRIBUTES {home: {city: "Bern", zip: 3000}}')
    nested = 'FIND(?p.key) WHERE {?p CONCEPT {type: "Person"} FILTER(?p.attributes.home.city == "Bern")}'
    assert world.rows(nested) == ["bob"]
    assert world.rows("FIND(?p.key, ?c) WHERE {?p CONCEPT {attributes: {home: {city: ?c}}}}") == [
        ["bob", "Bern"]
    ]
    among = 'FIND(?a.mode) WHERE {?a ASSERTION {evidence: [{evidence_class: "message"}]}}'
    assert world.rows(among) == ["stated"]
    step = "FIND(?o) WHERE {(:alice, ?r{1,2}, ?o)}"  # a variable is no step of a path, and says so
    assert world.refused(step) == "UnsupportedCapability"


def test_provenance_is_traversed_to_its_roots(world):
    """7a, provenance-root traversal: two derivations of one source are one root, not two."""
    root = world.ok(NOTE, p="x").id("e")
    derived = 'CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "derived_result", payload: :p} SET STRUCTURAL {("source", :s)}}'
    for who, text in (("bob", "short"), ("alice", "kurz")):
        copy = world.ok(derived, p=text, s=root).id("e")
        world.ok(f'ASSERT ?a {ZONE} {{by: :{who}, mode: "inferred", evidence: [:c]}}', c=copy)
    [belief] = world.rows(f"FIND(?b) WHERE {{?b BELIEF {ZONE}}} {DETERMINISTIC}")

    assert belief["support"]["root_groups"] == [root["id"]]


def test_verify_what_can_be_verified(world):
    """7a, VERIFY RECEIPT, BLOB, SCHEMA PACKAGE; DESCRIBE COMPATIBILITY and SNAPSHOT: all answered, none trusts."""
    reply = world.ok(NOTE, p="bytes")
    blob = world.rows("VERIFY BLOB :e", e=reply.id("e"))
    receipt = world.rows("VERIFY RECEIPT :r", r=reply.receipt)
    artifact = world.rows("VERIFY SCHEMA PACKAGE :p", p=package(CORE_DOMAIN))

    assert [found["integrity_valid"] for found in (blob, receipt, artifact)] == [True] * 3
    assert {found["trust"] for found in (blob, receipt, artifact)} == {"not_assessed"}
    assert world.refused("VERIFY RECEIPT :r", r={**reply.receipt, "space_seq": 99}) == "ProofInvalid"
    assert world.rows("DESCRIBE SNAPSHOT")["snapshot_seq"] == world.state().seq
    ref = "kip://test/core-domain@1.0.0"
    assert world.rows("DESCRIBE COMPATIBILITY FROM :r TO :r", r=ref)


# --- 7b: envelopes


def test_envelope_members_are_not_ignored(world):
    """7b, envelope: version, requires, preconditions, space, language and mode are checked before anything runs."""
    create = 'CREATE CONCEPT ?x {TYPE "Theme"}'
    wrong = {
        "UnsupportedProtocolVersion": {"kip": "9.9"},
        "UnsupportedCapability": {"requires": {"time_travel": True}},
        "PreconditionFailed": {"preconditions": {"space_seq": 99}},
        "SchemaEnvironmentChanged": {"preconditions": {"schema_environment_version": 99}},
        "NotFoundOrNotVisible": {"space": {"id": "elsewhere"}},
    }
    for code, members in wrong.items():
        with world.unchanged():
            assert world.invoke("owner", request(create) | members, malformed=True).code == code
    with world.unchanged():
        labelled = request({"command": create, "language": "META"})
        assert world.invoke("owner", labelled).code == "LanguageMismatch"
        two = world.invoke("owner", request(create, create), malformed=True)
        assert two.code == "InvalidRequestEnvelope"


def test_dry_run_commits_nothing(world):
    """7b, envelope: a dry run tells its effect and leaves no trace."""
    with world.unchanged():
        reply = world.invoke("owner", request('CREATE CONCEPT ?x {TYPE "Theme"}', options={"dry_run": True}))
    assert reply.get("receipt") is None or reply.receipt["status"] != "committed"


def test_shared_parameters_and_ids(world):
    """7b, envelope: shared parameters are bound, an operation's own win, and request_id and op_id come back."""
    create = "CREATE CONCEPT ?x {TYPE :t NAME :n}"
    body = request(
        {"command": create, "op_id": "one"}, {"command": create, "op_id": "two", "parameters": {"n": "Own"}},
        execution={"mode": "atomic"}, parameters={"t": "Theme", "n": "Shared"}, request_id="r-1",
    )  # fmt: skip
    reply = world.ok(body)

    assert reply["request_id"] == "r-1"
    assert [result["op_id"] for result in reply["results"]] == ["one", "two"]
    assert {"Shared", "Own"} <= set(world.rows('FIND(?t.name) WHERE {?t CONCEPT {type: "Theme"}}'))


def test_ingested_material_is_there_for_the_command(world):
    """7b, envelope: ingest mints Evidence that the command cites by its key."""
    entry = {"key": "m", "evidence_class": "message", "payload": "as said"}
    world.ok(request(f"{SAY[:-1]}, evidence: [:m]}}", ingest={"evidence": [entry]}))
    [claim] = world.elements("assertion")

    assert world.element(claim.evidence[0].evidence).payload.inline == "as said"


def test_response_carries_its_coordinates(world):
    """7b, envelope: status, context, snapshot and receipt are there, and the schema holds (the harness checks each)."""
    reply = world.ok(SAY)
    assert {"kip", "status", "results", "context", "snapshot", "receipt"} <= reply.keys()
    assert reply["results"][0]["context"].keys() >= {"space_id", "snapshot_seq", "schema_environment_version"}


def test_duplicate_json_keys_are_refused(world):
    """7b, envelope: a body that says one thing twice is not guessed at."""
    twice = b'{"kip": "2.0", "kip": "2.0", "operations": [{"command": "DESCRIBE PROTOCOL"}]}'
    with world.unchanged():
        assert world.invoke("owner", twice).code == "InvalidRequestEnvelope"


def test_there_is_a_readonly_endpoint(world):
    """7b, envelope: what parses as a write is refused there, whatever it calls itself."""
    with world.unchanged():
        assert world.invoke("owner", SAY, readonly=True).code == "ReadonlyViolation"
        hidden = request({"command": "ARCHIVE :alice", "language": "KML"})
        assert world.invoke("owner", hidden, readonly=True).code == "ReadonlyViolation"
    assert world.invoke("owner", NAMES, readonly=True).result == ["Alice", "Bob", "Carol", "Self"]


# --- 7b: reads


def test_belief_looks_at_valid_time(world):
    """7b, reads: an interval that ended no longer counts, and FOR TIME asks about another time."""
    world.ok(f'{SAY[:-1]}, valid: {{until: "2021-01-01T00:00:00Z"}}}}')
    ask = f"FIND(?b.status) WHERE {{?b BELIEF {ZONE}}}"

    assert world.rows(f"{ask} {DETERMINISTIC}") == ["insufficient"]
    assert world.rows(f'{ask} FOR TIME "2020-06-01T00:00:00Z" {DETERMINISTIC}') == ["accepted"]


def test_absent_belief_empty_slot_and_free_objects(world):
    """7b, reads: an absent tuple and an empty slot have a status; a free object is bound; everything free is refused."""
    assert world.rows(f"FIND(?b.status, ?b.proposition_id) WHERE {{?b BELIEF {ZONE}}}") == [
        ["insufficient", None]
    ]
    slot = 'FIND(?s.status, ?s.accepted_values) WHERE {?s BELIEF SLOT (:alice, "timezone")}'
    assert world.rows(slot) == [["insufficient", []]]
    world.ok(SAY)
    free = f'FIND(?zone, ?b.status) WHERE {{?b BELIEF (:alice, "timezone", ?zone)}} {DETERMINISTIC}'
    assert world.rows(free) == [["+08:00", "accepted"]]
    assert world.refused("FIND(?b) WHERE {?b BELIEF (?s, ?r, ?o)}") == "ProjectionTargetUnbounded"


def test_explanation_and_inclusion_are_as_asked(world):
    """7b, reads: each level explains as much as it says, and history and suppositions are there when asked for."""
    old = world.ok(SAY).id("a")
    world.ok("RETRACT ASSERTION :a", a=old)
    world.ok(SAY.replace("stated", "hypothetical"))

    def belief(options):
        options = f'{{policy: "test-deterministic", {options}}}'
        [found] = world.rows(f"FIND(?b) WHERE {{?b BELIEF {ZONE}}} WITH EPISTEMIC {options}")
        return found

    levels = [belief(f'explanation: "{level}"')["explanation"] for level in ("none", "summary", "ledger")]
    assert levels[0] == {}
    assert levels[1].keys() < levels[2].keys()
    assert belief("include_hypothetical: true")["status"] == "accepted"
    assert belief("include_hypothetical: false")["status"] == "insufficient"
    ledger = belief('include_historical: true, explanation: "ledger"')["explanation"]
    assert [item["id"] for item in ledger["historical_assertions"]] == [old["id"]]


def test_cursors_and_tokens_tell_nothing(world):
    """7b, reads: a cursor is bound to its query and state, a token is no sequence number in disguise."""
    page = world.ok(f"{NAMES} LIMIT 1")
    world.ok('CREATE CONCEPT ?p {TYPE "Person" NAME "Aaron"}')
    assert world.rows(f"{NAMES} LIMIT 1 CURSOR :c", c=page.cursor) == ["Bob"]
    assert world.refused(f"{NAMES} DESC LIMIT 1 CURSOR :c", c=page.cursor) == "CursorMismatch"
    token = world.rows("SNAPSHOT")["snapshot_token"]
    assert len(token) > 20
    for forged in (format(world.state().seq, "x"), token[:-1], token[::-1]):
        code = world.refused(request(NAMES, read={"snapshot_token": forged}))
        assert code == "HistoricalSnapshotUnavailable"


def test_changes_are_envelopes(world):
    """7b, reads: a commit of several elements is one envelope with its changes."""
    seq = world.state().seq
    receipt = world.ok(SAY).receipt
    [envelope] = world.rows("CHANGES AFTER SEQ :n", n=seq)

    assert (envelope["tx_id"], len(envelope["changes"])) == (receipt["tx_id"], 2)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("part", ['FILTER(?p.key == "bob")', 'NOT {?p CONCEPT {name: "Alice"}}'])
def test_place_of_filter_and_not(world, part, first):
    """7b, reads: FILTER and NOT say the same before and after what binds their variables."""
    block = f"{part} {PERSONS}" if first else f"{PERSONS} {part}"
    expected = ["bob"] if "FILTER" in part else ["bob", "carol", "self"]

    assert sorted(world.rows(f"FIND(?p.key) WHERE {{{block}}}")) == expected


# --- 7b: writes


def test_merge_cycles_and_merged_writes(world):
    """7b, writes: a cycle of merges is refused at the second step too, and writes to a merged Concept canonicalise."""
    world.ok("MERGE CONCEPT :alice INTO :bob")
    world.ok("MERGE CONCEPT :bob INTO :carol")
    assert world.refused("MERGE CONCEPT :carol INTO :alice") == "IdentityMergeConflict"
    made = world.ok('ENSURE PROPOSITION ?q (:alice, "timezone", "x")').id("q")

    assert world.element(made).subject == world.ref["carol"]["id"]


def test_another_actor_cannot_supersede(world):
    """7b, writes: a revision is of one's own claim, whoever the caller is."""
    theirs = world.ok(SAY).id("a")
    revise = f'ASSERT ?n {OTHER} {{by: :self, mode: "stated"}} SUPERSEDING :old'

    assert world.refused(revise, old=theirs) == "SupersessionMismatch"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (SAY.replace("stated", "guessed"), "ConstraintViolation"),
        ('CREATE ACTIVITY ?x {SET FIELDS {activity_class: "x", status: "thinking"}}', "ConstraintViolation"),
        ('ENSURE PROPOSITION ?q (:alice, "prefers", "dark mode")', "TypeMismatch"),
        ('ENSURE PROPOSITION ?q (:alice, "prefers", :ghost)', "NotFoundOrNotVisible"),
        (f'ASSERT ?a {ZONE} {{by: "bob", mode: "stated"}}', "NotFoundOrNotVisible"),
        ("UPDATE :alice SET FIELDS {mood: 1}", "SchemaFieldNotFound"),
        ('UPDATE :alice SET FACET "Mood" {x: 1}', "SchemaSymbolNotFound"),
        ('MUTATE {UPDATE :bob SET FIELDS {name: "A"} UPDATE :bob SET FIELDS {name: "B"}}', "DuplicateMutationTarget"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(world, command, code):
    """7b, writes: unknown modes, states, fields and facets, wrong ends, dangling ids, a text as an actor, contradictions."""
    ghost = {"id": "C-00000009999" + world.ref["alice"]["id"][-5:]}

    assert world.refused(command, ghost=ghost) == code


def test_unknown_fields_are_refused_when_read(world):
    """7b, writes: a field or facet that does not exist is an error in a query, not a null."""
    assert world.refused(f"FIND(?p.mood) WHERE {{{PERSONS}}}") == "SchemaFieldNotFound"
    assert world.refused(f'FIND(?p.facets["Mood"].x) WHERE {{{PERSONS}}}') == "SchemaSymbolNotFound"


def test_explicit_structural_places(world):
    """7b, writes: an index is obeyed or refused, and `?edge.index` says it."""
    made = world.ok(
        'MUTATE {CREATE CONCEPT ?e {TYPE "Experience" SET STRUCTURAL {("has_step", ?one)}} '
        'CREATE CONCEPT ?one {TYPE "ExperienceStep" NAME "one"} CREATE CONCEPT ?two {TYPE "ExperienceStep" NAME "two"}}'
    ).ids()
    world.ok('UPDATE :e SET STRUCTURAL {("has_step", :two) {index: 0}}', **made)
    query = 'FIND(?s.name, ?edge.index) WHERE {?edge STRUCTURAL (:e, "has_step", ?s)} ORDER BY ?edge.index'

    assert world.rows(query, **made) == [["two", 0], ["one", 1]]
    empty = 'CREATE CONCEPT ?e {TYPE "Experience" SET STRUCTURAL {("has_step", :one) {index: 5}}}'
    world.refused(empty, **made)


def test_client_key_conflicts_are_told_in_protocol_terms(world):
    """7b, writes: a bound client key is a ClientKeyConflict in the protocol's words, not a storage error."""
    keyed = 'CREATE EVIDENCE ?e {CLIENT KEY "k" SET FIELDS {evidence_class: "message", payload: :p}}'
    world.ok(keyed, p="one")
    with world.unchanged():
        reply = world.invoke("owner", keyed, p="two")

    assert reply.code == "ClientKeyConflict"
    assert not {"sql", "unique", "constraint failed"} & set(str(reply).lower().split())


def test_validation_finds_an_unknown_type(world):
    """7b, writes: VALIDATE KML says beforehand what the write would say."""
    wrong = 'CREATE CONCEPT ?x {TYPE "Spaceship"}'
    with world.unchanged():
        found = world.rows("VALIDATE KML :k", k=wrong)

    assert (found["valid"], found["error"]["code"]) == (False, world.refused(wrong))


def test_space_without_its_people(world):
    """7a, space defaults: nothing of one space's trust or self is in another."""
    other = World(seeded=False)

    assert other.rows("DESCRIBE PRIMER")["self"] is None
    assert world.rows("DESCRIBE PRIMER")["self"]["id"] == world.ref["self"]["id"]
