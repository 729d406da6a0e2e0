"""KIP2-GOV-001 to 024: Governance, over records that the real service keeps in the space's own log.

Every world here is governed: nothing is allowed without a grant, and the canonical principals (§10) hold what the
paper gives them and nothing else. Each test asserts what is denied and, beside it, that the same thing passes for who
may do it: a gate that never opens would pass half a suite.
"""

from __future__ import annotations

import pytest

from core.authority import Principal
from core.capsule.identity import ImportWish
from core.epistemic.trust import TrustRecord, trust_of
from core.errors import NoemaError
from core.governance.commands import (
    Classify,
    Declassify,
    Quarantine,
    SetInfluence,
    SetOwners,
    SetPolicy,
    SetTrust,
)
from core.governance.control import Policy, Selector
from core.service.capsules import Capsules, ExportAsk
from tests.conformance.harness import (
    DETERMINISTIC,
    PERMISSIONS,
    SECONDARY,
    World,
    conformance,
    package,
    request,
)

SAYS = 'ASSERT ?a (:alice, "timezone", "+08:00") {by: :alice, mode: "stated"}'
PERSONS = 'FIND(COUNT(?c)) WHERE {?c CONCEPT {type: "Person"}}'
BELIEF = f'FIND(?b.status) WHERE {{?b BELIEF (:alice, "timezone", "+08:00")}} {DETERMINISTIC}'


@pytest.fixture
def world() -> World:
    """A governed world."""
    made = World()
    made.govern(PERMISSIONS)
    return made


# --- who asks, and as whom


@conformance("KIP2-GOV-001", level="MUST")
@pytest.mark.parametrize(
    "claimed",
    [
        {"context": {"client": "owner", "purpose": "owner"}},
        {"extensions": {"noema/principal": {"id": "owner", "principal_id": "owner"}}},
        {"parameters": {"principal_id": "owner"}},
    ],
)
def test_kip2_gov_001_a_body_names_no_principal(world, claimed):
    """Whatever a body says of who asks, the caller is who the transport verified."""
    with world.unchanged():
        reply = world.invoke("reader_full", request('PURGE :carol CONFIRM "PURGE"', **claimed))
        who = world.invoke("reader_full", request("DESCRIBE EXECUTION CONTEXT", **claimed)).result

    assert reply.code == "NotAuthorized"
    assert who["principal"]["id"] == "reader_full"
    forged = {**request('PURGE :carol CONFIRM "PURGE"'), "principal_id": "owner"}
    with world.unchanged():
        assert world.invoke("reader_full", forged, malformed=True).code == "InvalidRequestEnvelope"
    assert world.invoke("owner", 'PURGE :carol CONFIRM "PURGE"')["status"] == "succeeded"


@conformance("KIP2-GOV-002", level="MUST")
def test_kip2_gov_002_a_principal_is_no_actor(world):
    """A name gives no voice: who is not bound to Alice may not speak as her, whatever it is called."""
    as_alice = {"extensions": {"noema/act_as": {"id": world.ref["alice"]["id"]}}}
    world.grant("voice", "read", "create", "assert_as_actor")
    unbound = Principal("voice")

    with world.unchanged():
        assert world.invoke("recorder", request(SAYS, **as_alice)).code == "ActorBindingRequired"
        assert world.invoke(unbound, SAYS, alice=world.ref["alice"]).code == "ActorBindingRequired"
        for claimed in ("alice", "Alice", world.ref["alice"]["id"]):  # a principal of that name is not she
            world.principals[claimed] = Principal(claimed)
    world.grant("alice", "read", "create", "assert_as_actor", name="namesake")
    with world.unchanged():
        assert world.invoke("alice", SAYS).code == "ActorBindingRequired"
    world.bind_actor("voice", "alice")
    assert world.invoke(unbound, request(SAYS, **as_alice))["status"] == "succeeded"


@conformance("KIP2-GOV-003", level="MUST")
def test_kip2_gov_003_what_is_recorded_of_alice_is_hers_and_from_the_recorder(world):
    """The claim is attributed to Alice; its origin is who recorded it, and neither takes the other's place."""
    made = world.invoke("recorder", SAYS).id("a")

    claim = world.element(made)
    assert claim.asserted_by == world.ref["alice"]["id"]
    assert (claim.system.origin.principal, claim.system.origin.channel) == ("recorder", "kip")
    shown = world.rows("FIND(?a.asserted_by.id, ?a._system.origin.principal_id) WHERE {?a ASSERTION {}}")
    assert shown == [[world.ref["alice"]["id"], "recorder"]]


@conformance("KIP2-GOV-004", level="MUST")
def test_kip2_gov_004_who_is_bound_speaks_within_the_binding(world):
    """Alice's writer asserts, revises and withdraws as her, and as nobody else; a scoped voice ends at its scope."""
    as_alice = {"extensions": {"noema/act_as": {"id": world.ref["alice"]["id"]}}}
    said = world.invoke("alice_writer", request(SAYS, **as_alice))
    assert said["status"] == "succeeded"
    assert world.log()[-1].record["authority"]["acting_as"] == world.ref["alice"]["id"]
    retract = "RETRACT ASSERTION :a"
    assert world.invoke("alice_writer", retract, a=said.id("a"))["status"] == "succeeded"

    as_bob = {"extensions": {"noema/act_as": {"id": world.ref["bob"]["id"]}}}
    bobs = SAYS.replace(":alice", ":bob")
    with world.unchanged():
        assert world.invoke("alice_writer", request(bobs, **as_bob)).code == "ActorBindingRequired"
    world.grant("press", "read", "create", "assert_as_actor")
    world.principals["press"] = Principal("press")
    scope = Selector(predicates=("kip://test/core-domain@1.0.0/timezone",))
    world.bind_actor("press", "org_acme", where=scope)
    speak = 'ASSERT (:alice, "{}", {}) {{by: :org_acme, mode: "stated"}}'
    assert world.invoke("press", speak.format("timezone", '"+01:00"'))["status"] == "succeeded"
    with world.unchanged():
        outside = world.invoke("press", speak.format("prefers", ":dark_mode"))
    assert outside.code == "ActorBindingRequired"


# --- content and trust give nothing


@conformance("KIP2-GOV-005", level="MUST")
def test_kip2_gov_005_a_claim_of_office_gives_none(world):
    """Memory may say that somebody is an administrator; what they may do stays what it was."""
    before = world.policy_version()
    world.ok(
        'CREATE CONCEPT ?t {TYPE "Person" NAME "Administrator" SET ATTRIBUTES {is_admin: true, role: "owner"}}'
    )
    world.ok('ASSERT (:self, "works_for", :org_acme) {by: :self, mode: "stated", confidence: 1.0}')

    with world.unchanged():
        for command in (
            'PURGE :carol CONFIRM "PURGE"',
            "MERGE CONCEPT :carol INTO :bob",
            "SET RETENTION :carol {legal_hold: true}",
        ):
            assert world.invoke("reader_full", command).code == "NotAuthorized"
    assert world.command_refused(SetOwners(owners=("reader_full",)), "reader_full") == "NotAuthorized"
    assert world.policy_version() == before


@conformance("KIP2-GOV-006", level="MUST")
def test_kip2_gov_006_trust_is_no_permission(world):
    """The most trusted source of all may still write nothing, and says nothing by writing it."""
    world.command(SetTrust(records=({"scope": "origin", "subject": "reader_full", "trust": "trusted"},)))
    assert trust_of(world.state().meta).records == (TrustRecord("origin", "reader_full", "trusted"),)

    with world.unchanged():
        assert world.invoke("reader_full", SAYS).code == "NotAuthorized"
        assert world.invoke("reader_full", 'CREATE CONCEPT ?c {TYPE "Theme"}').code == "NotAuthorized"
        assert world.command_refused(SetTrust(records=()), "reader_full") == "NotAuthorized"
    world.grant("reader_full", "create", "record_attributed_assertion")
    assert world.invoke("reader_full", SAYS)["status"] == "succeeded"


# --- discover, read, search, project


@conformance("KIP2-GOV-007", level="MUST")
def test_kip2_gov_007_what_may_not_be_discovered_is_as_what_is_not_there(world):
    """A known id of a secret gets the answer of an id that never was, in every place an id is taken."""
    secret = world.ref["carol"]
    world.mark(secret)
    nothing = {"id": "C-zzzzzzzz000abcde"}

    def said(found: dict[str, str]) -> list[object]:
        asked = (
            "HISTORY ELEMENT :e", "FIND(?c.name) WHERE {?c CONCEPT {id: :e}}", "ARCHIVE :e", 'UPDATE :e SET FIELDS {name: "X"}',
        )  # fmt: skip
        replies = [world.invoke("reader_hidden", each, e=found["id"]) for each in asked]
        access = world.invoke(
            "reader_hidden", 'DESCRIBE ACCESS WITH {operation: "read", resource: :e}', e=found["id"]
        )
        return [[r.codes, r.result, r["results"]] for r in (*replies, access)]

    def plain(value: list[object], found: dict[str, str]) -> str:
        return repr(value).replace(found["id"], "ID")

    assert plain(said(secret), secret) == plain(said(nothing), nothing)
    assert "NotFoundOrNotVisible" in repr(said(secret))
    assert world.invoke(
        "reader_full", "FIND(?c.name) WHERE {?c CONCEPT {id: :e}}", e=secret["id"]
    ).result == ["Carol"]


def test_what_may_be_discovered_and_not_read_shows_that_it_is_there(world):
    """Between the two: who may only discover counts an element, and reads and matches nothing of it."""
    world.grant("porter", "discover")
    world.grant("porter", "read", name="porter:themes", types=("kip://test/core-domain@1.0.0/Theme",))
    world.principals["porter"] = Principal("porter")
    world.ok(SAYS)

    person = world.invoke("porter", "FIND(?c) WHERE {?c CONCEPT {id: :e}}", e=world.ref["carol"]["id"]).result
    assert person == [{"id": world.ref["carol"]["id"], "kind": "concept", "space_id": "test"}]
    assert world.invoke("porter", 'FIND(?c.name) WHERE {?c CONCEPT {name: "Carol"}}').result == []
    assert world.invoke("porter", PERSONS).result == [0]
    assert world.invoke("porter", "FIND(COUNT(?c)) WHERE {?c CONCEPT {}}").result == [12]
    assert world.invoke("porter", 'FIND(?v) WHERE {(:alice, "timezone", ?v)}').result == []
    assert world.invoke("porter", 'FIND(?c.name) WHERE {?c CONCEPT {type: "Theme"}} LIMIT 1').result == [
        "Dark mode"
    ]
    assert world.invoke("porter", "HISTORY ELEMENT :dark_mode").code == "NotAuthorized"


@conformance("KIP2-GOV-008", level="MUST")
def test_kip2_gov_008_reading_is_not_searching(world):
    """Who may read by id may not therefore search."""
    known = "FIND(?c.name) WHERE {?c CONCEPT {id: :e}}"
    assert world.invoke("reader_no_search", known, e=world.ref["bob"]["id"]).result == ["Bob"]
    assert world.invoke("reader_no_search", 'SEARCH CONCEPT "bob"').code == "NotAuthorized"
    assert len(world.invoke("reader_full", 'SEARCH CONCEPT "bob"').result) == 1

    world.grant("reader_no_search", "search", types=("kip://test/core-domain@1.0.0/Theme",))
    found = world.invoke("reader_no_search", 'SEARCH COGNITION "mode bob"').result
    assert {row["name"] for row in found} == {"Dark mode", "Light mode"}


@conformance("KIP2-GOV-009", level="MUST")
def test_kip2_gov_009_reading_is_not_projecting(world):
    """Who may read every claim may not therefore ask what is believed."""
    world.ok(SAYS)
    raw = "FIND(?a.stance) WHERE {?a ASSERTION {}}"

    assert world.invoke("reader_no_project", raw).result == ["support"]
    assert world.invoke("reader_no_project", BELIEF).code == "ProjectionNotAuthorized"
    assert world.invoke("reader_full", BELIEF).result == ["accepted"]


# --- hidden rows


@conformance("KIP2-GOV-010", level="MUST")
def test_kip2_gov_010_hidden_rows_are_not_counted(world):
    """Of five persons, three are secret: who may not know of them counts two, by every way of counting."""
    made = [world.ok('CREATE CONCEPT ?p {TYPE "Person"}').id("p")]
    assert world.invoke("reader_hidden", PERSONS).result == [5]
    world.mark(world.ref["bob"], world.ref["carol"], made[0])

    assert (world.invoke("reader_hidden", PERSONS).result, world.rows(PERSONS)) == ([2], [5])
    assert len(world.invoke("reader_hidden", 'FIND(?c.id) WHERE {?c CONCEPT {type: "Person"}}').result) == 2
    page = world.invoke("reader_hidden", 'FIND(?c.id) WHERE {?c CONCEPT {type: "Person"}} LIMIT 2')
    assert page.cursor is None  # no page of hidden rows is announced
    primer = world.invoke("reader_hidden", "DESCRIBE PRIMER").result
    space = world.invoke("reader_hidden", "DESCRIBE SPACE").result
    assert "counts" not in space
    assert "concepts_by_type" not in str(primer)
    plan = world.invoke("reader_hidden", "VALIDATE KQL :q WITH {plan: true}", q=PERSONS).result["plan"]
    assert "expected" not in str(plan)
    swept = world.invoke("maintenance", 'ARCHIVE ?c WHERE {?c CONCEPT {type: "Person"}} LIMIT 0')
    assert swept.result["matched"] == 0


@conformance("KIP2-GOV-011", level="MUST")
def test_kip2_gov_011_hidden_rows_satisfy_no_not(world):
    """A NOT is about what the caller may know: a secret relation keeps nobody out of it."""
    known = world.ok('ENSURE PROPOSITION ?p (:alice, "knows", :carol)').id("p")
    world.ok('ENSURE PROPOSITION ?p (:bob, "knows", :alice)')
    alone = 'FIND(?c.key) WHERE {?c CONCEPT {type: "Person"} NOT {(?c, "knows", ?x)}}'
    assert sorted(world.invoke("reader_hidden", alone).result) == ["carol", "self"]
    world.mark(known)

    assert sorted(world.invoke("reader_hidden", alone).result) == ["alice", "carol", "self"]
    assert sorted(world.rows(alone)) == ["carol", "self"]


@conformance("KIP2-GOV-012", level="MUST")
def test_kip2_gov_012_hidden_rows_match_no_optional(world):
    """An OPTIONAL that only a secret would match is one without a match."""
    world.ok('ENSURE PROPOSITION (:alice, "knows", :carol)')
    query = 'FIND(?c.key, ?x.key) WHERE {?c CONCEPT {key: "alice"} OPTIONAL {(?c, "knows", ?x)}}'
    assert world.invoke("reader_hidden", query).result == [["alice", "carol"]]
    world.mark(world.ref["carol"])

    assert world.invoke("reader_hidden", query).result == [["alice", None]]
    assert world.rows(query) == [["alice", "carol"]]


@conformance("KIP2-GOV-013", level="MUST")
def test_kip2_gov_013_hidden_candidates_do_not_move_a_ranking(world):
    """Order, scores, snippets and page ends are the same, to the last digit, whether the secret exists or not."""
    world.ok('CREATE CONCEPT ?a {TYPE "Document" NAME "harbour plan"} ')
    world.ok('CREATE CONCEPT ?b {TYPE "Document" NAME "plan of the harbour wall, first draft"}')
    world.ok('CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "the harbour was closed"}}')
    asked = ('SEARCH COGNITION "harbour plan"', 'SEARCH COGNITION "harbour plan" LIMIT 1', 'SEARCH CONCEPT "plan" THRESHOLD 0.2')  # fmt: skip

    def seen() -> list[object]:
        found = []
        for each in asked:
            reply = world.invoke("reader_hidden", each)
            found.append([reply.result, [w["code"] for w in reply.warnings], reply.cursor is None])
        return found

    before = seen()
    secrets = [
        world.ok(f'CREATE CONCEPT ?s {{TYPE "Document" NAME "harbour plan {"harbour plan " * n}"}}').id("s")
        for n in range(4)
    ]
    assert seen() != before  # it would be first
    world.mark(*secrets)

    assert seen() == before
    assert world.rows(asked[0])[0]["id"] in {each["id"] for each in secrets}


# --- authority is of now


@conformance("KIP2-GOV-014", level="MUST")
def test_kip2_gov_014_the_past_is_governed_by_the_present(world):
    """What was public once and is secret now is secret in every reading of the past."""
    then = world.state().seq
    world.mark(world.ref["carol"])
    query = 'FIND(?c.name) WHERE {?c CONCEPT {key: "carol"}}'

    assert world.invoke("reader_hidden", f"{query} AS OF SEQ :n", n=then).result == []
    assert world.invoke("reader_hidden", 'SEARCH CONCEPT "carol" AS OF SEQ :n', n=then).result == []
    assert world.rows(f"{query} AS OF SEQ :n", n=then) == ["Carol"]
    world.grant("reader_hidden", "read_history", name="history")
    assert world.invoke("reader_hidden", "HISTORY ELEMENT :carol").code == "NotFoundOrNotVisible"
    assert world.ref["carol"]["id"] not in str(world.invoke("reader_hidden", "CHANGES AFTER SEQ 0").result)
    late = world.grant("late", "read")
    world.principals["late"] = Principal("late")
    assert world.invoke("late", f"{query} AS OF SEQ :n", n=then).result == ["Carol"]
    world.revoke(late)
    assert world.invoke("late", f"{query} AS OF SEQ :n", n=then).code == "NotAuthorized"


@conformance("KIP2-GOV-015", level="MUST")
def test_kip2_gov_015_a_snapshot_token_is_no_authority(world):
    """A token names a state; who lost the permission to read reads it no more, and sees no more of it."""
    token = world.invoke("reader_full", "SNAPSHOT").result["snapshot_token"]
    read = request('FIND(?c.name) WHERE {?c CONCEPT {key: "carol"}}', read={"snapshot_token": token})
    assert world.invoke("reader_full", read).result == ["Carol"]

    away = world.deny("reader_full", "discover", types=("kip://test/core-domain@1.0.0/Person",))
    assert world.invoke("reader_full", read).result == []
    world.revoke(away)
    world.revoke("canon:reader_full")
    reply = world.invoke("reader_full", read)
    assert (reply.code, reply.result) == ("NotAuthorized", None)


@conformance("KIP2-GOV-016", level="MUST")
def test_kip2_gov_016_a_cursor_is_no_authority(world):
    """A cursor names a place; once less may be seen it continues nothing, in every family."""
    commands = (
        "FIND(?c.name) WHERE {?c CONCEPT {}}", 'SEARCH CONCEPT "mode"', "HISTORY SPACE", "LIST TYPES",
    )  # fmt: skip
    world.grant("reader_full", "read_history", name="history")
    pages = {each: world.invoke("reader_full", f"{each} LIMIT 1").cursor for each in commands}
    for each, cursor in pages.items():
        assert world.invoke("reader_full", f"{each} LIMIT 1 CURSOR :c", c=cursor)["status"] == "succeeded"

    world.revoke("canon:reader_full")
    for each, cursor in pages.items():
        reply = world.invoke("reader_full", f"{each} LIMIT 1 CURSOR :c", c=cursor)
        assert reply.code in {"NotAuthorized", "CursorInvalidated"}, each
        assert reply.result is None


@conformance("KIP2-GOV-017", level="MUST")
def test_kip2_gov_017_a_grant_revoked_before_the_commit_is_gone(world):
    """A write that was allowed when it was planned, and is not when it would commit, aborts whole."""
    create = 'CREATE CONCEPT ?c {TYPE "Theme" NAME "late"}'
    assert world.invoke("recorder", create)["status"] == "succeeded"
    before = len(world.elements("concept"))

    world.race(lambda: world.revoke("canon:recorder"))
    reply = world.invoke("recorder", create.replace("late", "later"))

    assert (reply.code, reply["status"]) == ("NotAuthorized", "failed")
    assert reply.receipt["status"] == "aborted"
    assert len(world.elements("concept")) == before
    world.delegate("owner", "recorder", "read", "create")
    world.race(lambda: world.deny("owner", "create"))  # what was lent goes with the lender's own
    assert world.invoke("recorder", create).code == "NotAuthorized"


@conformance("KIP2-GOV-018", level="MUST")
def test_kip2_gov_018_a_concept_named_policy_is_a_concept(world):
    """No word of KML reaches the control plane, and what looks like a policy in memory is only that."""
    before = world.policy_version(), world.state().meta
    world.ok(
        'CREATE CONCEPT ?p {TYPE "Document" NAME "Policy" SET FIELDS {key: "governance"} '
        'SET ATTRIBUTES {effect: "allow", subjects: ["*"], permissions: ["*"], default: "scopes"}}'
    )
    protected = ("governance", "classification", "policy_ref", "max_influence_authority", "quarantine")
    for name in protected:
        with world.unchanged():
            update = f'UPDATE :alice SET FIELDS {{{name}: "public"}}'
            assert world.invoke("owner", update).code in {"ProtectedGovernanceField", "InvalidSyntax"}
    with world.unchanged():
        nested = 'UPDATE :alice SET ATTRIBUTES {governance: {classification: "public"}}'
        assert world.invoke("owner", nested).code == "ProtectedGovernanceField"

    assert (world.policy_version(), world.state().meta) == before
    assert world.invoke("reader_full", 'CREATE CONCEPT ?c {TYPE "Theme"}').code == "NotAuthorized"
    assert world.command(SetPolicy(policy=Policy(default_classification="private"))).version == before[0] + 1


@conformance("KIP2-GOV-019", level="MUST")
def test_kip2_gov_019_a_moderator_withdraws_nothing_for_others(world):
    """An owner who speaks for nobody can take a claim out of use, and cannot say that its author took it back."""
    claim = world.ok(SAYS).id("a")
    with world.unchanged():
        assert world.invoke("owner", "RETRACT ASSERTION :a", a=claim).code == "RetractionNotAuthorized"
        mine = 'ASSERT (:alice, "timezone", "+01:00") {by: :alice, mode: "stated"} SUPERSEDING :a'
        assert world.invoke("owner", mine, a=claim).code == "ActorBindingRequired"

    world.command(Quarantine(ids=(claim["id"],)))
    stored = world.element(claim)
    assert (stored.status, stored.retracted_at, stored.governance.quarantined) == ("active", None, True)
    assert world.rows(BELIEF) == ["insufficient"]  # it counts for nobody
    assert world.invoke("reader_full", "FIND(COUNT(?a)) WHERE {?a ASSERTION {}}").result == [0]
    assert world.rows("FIND(?a.lifecycle.status) WHERE {?a ASSERTION {}}") == ["active"]
    assert world.audit()[-1].operation == "quarantine"


# --- what is made from something


@conformance("KIP2-GOV-020", level="MUST")
def test_kip2_gov_020_deriving_gives_no_influence(world):
    """What is compiled from descriptions describes; only a command that may elevate raises it, and says so."""
    made = world.ok(
        'MUTATE {CREATE CONCEPT ?x {TYPE "Experience"} '
        'CREATE CONCEPT ?s {TYPE "Skill" NAME "Deploy" SET ATTRIBUTES {authority: "executable", status: "validated"} '
        'SET STRUCTURAL {("compiled_from", ?x)}}}'
    ).ids()
    ceiling = "FIND(?s.governance.max_influence_authority) WHERE {?s CONCEPT {id: :s}}"

    assert world.rows(ceiling, s=made["s"]["id"]) == [None]
    assert world.element(made["s"]).governance.authority is None
    lineage = "FIND(?s.governance.authority_lineage) WHERE {?s CONCEPT {id: :s}}"
    assert world.rows(lineage, s=made["s"]["id"]) == [[made["x"]["id"]]]
    raise_it = SetInfluence(ids=(made["s"]["id"],), ceiling="behavioral")
    assert world.command_refused(raise_it, "maintenance") == "NotAuthorized"
    world.command(raise_it)
    assert world.rows(ceiling, s=made["s"]["id"]) == ["behavioral"]
    again = world.ok(
        'CREATE CONCEPT ?t {TYPE "Skill" NAME "Deploy again" SET STRUCTURAL {("compiled_from", :x)}}',
        x=made["x"],
    ).id("t")
    assert world.rows(ceiling, s=again["id"]) == [None]
    assert world.audit()[-2].operation == "set_influence"


def test_deriving_keeps_what_is_secret_secret(world):
    """What is made from a secret is secret, over several steps and in any order; only declassifying lowers it."""
    evidence = world.ok(
        'CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "the vault code"}}'
    ).id("e")
    world.mark(evidence)
    made = world.ok(
        'MUTATE {ASSERT ?a (:alice, "timezone", "+03:00") {by: :alice, mode: "inferred", evidence: :e} '
        'CREATE ACTIVITY ?x {SET FIELDS {activity_class: "inference", status: "completed"} '
        'SET STRUCTURAL {("inputs", ?a) ("outputs", ?c)}} CREATE CONCEPT ?c {TYPE "Document" NAME "gist"}}',
        e=evidence,
    ).ids()  # fmt: skip

    labels = {name: world.element(found).governance.classification for name, found in made.items()}
    assert labels == {"a": "secret", "x": "secret", "c": "secret"}
    assert world.invoke("reader_hidden", 'SEARCH COGNITION "gist"').result == []
    public = world.ok('CREATE CONCEPT ?d {TYPE "Document"}').id("d")
    late = (
        'CREATE ACTIVITY ?x {SET FIELDS {activity_class: "inference", status: "completed"} '
        'SET STRUCTURAL {("inputs", :e) ("outputs", :d)}}'
    )
    with world.unchanged():
        assert world.invoke("owner", late, e=evidence, d=public).code == "NotAuthorized"
    world.grant("clerk", "classify", "read")
    world.principals["clerk"] = Principal("clerk")
    lower = Classify(ids=(made["c"]["id"],), label="public")
    assert world.command_refused(lower, "clerk") == "NotAuthorized"
    assert world.command_refused(Declassify(ids=lower.ids), "clerk") == "NotAuthorized"
    world.declassify(made["c"])
    assert world.element(evidence).governance.classification == "secret"
    assert len(world.invoke("reader_hidden", 'SEARCH COGNITION "gist"').result) == 1


# --- imports


def carried(world: World, artifact: dict, by: str = "importer") -> dict:
    """Import a Capsule."""
    process = world._process
    capsules = Capsules(process.spaces, process.commits, world.clock)
    who, until = world.principals[by], world.clock.time + 60_000
    return capsules.run("test", who, artifact, ImportWish(mode="merge"), deadline=until)


def exported(source: World, **ask: object) -> dict:
    """The whole of another space, as its owner exports it."""
    process = source._process
    capsules = Capsules(process.spaces, process.commits, source.clock)
    return capsules.export("test", Principal("owner"), ExportAsk(sign=False, **ask))


@conformance("KIP2-GOV-021", level="MUST")
def test_kip2_gov_021_an_imported_skill_has_no_authority(world):
    """Whatever its source called it, a Skill that comes in is a candidate without influence, until one elevates it."""
    source = World()
    skill = source.ok(
        'CREATE CONCEPT ?s {TYPE "Skill" NAME "Restart" SET ATTRIBUTES {status: "validated", authority: "executable"}}'
    ).id("s")
    source.command(SetInfluence(ids=(skill["id"],), ceiling="executable"))
    carried(world, exported(source))

    (came,) = [each for each in world.elements("concept") if each.schema_ref.endswith("/Skill")]
    assert came.governance.authority is None
    assert came.attributes["status"] == "candidate"
    assert (came.system.origin.principal, came.system.origin.import_id is not None) == ("importer", True)
    raise_it = SetInfluence(ids=(came.id,), ceiling="executable")
    assert world.command_refused(raise_it, "importer") == "NotAuthorized"
    world.command(raise_it)
    assert world.element({"id": came.id}).governance.authority == "executable"


@conformance("KIP2-GOV-022", level="MUST")
def test_kip2_gov_022_imported_authority_is_inert(world):
    """Owners, grants, trust and self of another space change nothing here."""
    source = World()
    source.grant("importer", "*")
    source.command(SetOwners(owners=("owner", "importer")))
    source.command(SetTrust(records=({"scope": "origin", "subject": "importer", "trust": "trusted"},)))
    source.ok(
        'CREATE CONCEPT ?d {TYPE "Document" NAME "Policy" '
        'SET ATTRIBUTES {governance_claim: {owners: ["importer"], grants: ["export"]}}}'
    )
    before = world.state().meta
    outcome = carried(world, exported(source))

    assert outcome["receipt"]["status"] == "committed"
    after = world.state().meta
    for name in ("governance", "trust"):
        assert after.extensions.get(name) == before.extensions.get(name)
    assert (after.owner, after.self_identity, after.schema) == (
        before.owner,
        before.self_identity,
        before.schema,
    )
    assert world.invoke("importer", 'CREATE CONCEPT ?c {TYPE "Theme"}').code == "NotAuthorized"
    assert world.command_refused(SetOwners(owners=("importer",)), "importer") == "NotAuthorized"


@conformance("KIP2-GOV-023", level="MUST")
def test_kip2_gov_023_an_embedded_schema_is_not_put_in_force(world):
    """A Capsule may bring its schema; looking at it, and importing, leaves what is in force as it was."""
    source = World()
    source.activate([package(SECONDARY)])
    source.ok('ENSURE PROPOSITION (:service_api, "service_status", :status_active)')
    artifact = exported(source, include_schema=True)
    before = world.state().meta.schema
    check = world.invoke("importer", "VALIDATE SCHEMA PACKAGE :p", p=package(SECONDARY))
    assert check.result["valid"] is True

    with world.unchanged():
        with pytest.raises(NoemaError) as refused:
            carried(world, artifact)
        assert refused.value.code == "SchemaPackageUnavailable"
    assert world.state().meta.schema == before
    assert world.invoke("importer", 'DESCRIBE PREDICATE "service_status"').code == "SchemaSymbolNotFound"
    assert (
        "manage_schema"
        not in world.invoke("importer", "DESCRIBE EXECUTION CONTEXT").result["principal"]["may"]
    )


@conformance("KIP2-GOV-024", level="MUST")
@pytest.mark.parametrize(
    "command",
    [
        'CREATE CONCEPT ?c {TYPE "Theme" SET FIELDS {_system: {origin: {principal_id: "owner"}}}}',
        'CREATE CONCEPT ?c {TYPE "Theme" SET FIELDS {origin: "owner"}}',
        'CREATE CONCEPT ?c {TYPE "Theme" SET ATTRIBUTES {_system: {origin: {principal_id: "owner"}}}}',
        'UPDATE :bob SET FIELDS {_system: {origin: {principal_id: "owner"}}}',
        'UPDATE :bob SET ATTRIBUTES {_system: {origin: {principal_id: "owner"}}}',
    ],
)
def test_kip2_gov_024_an_origin_cannot_be_forged(world, command):
    """No plane of no clause writes where something came from: that is the caller, as the transport verified it."""
    with world.unchanged():
        assert world.invoke("alice_writer", command).code == "ProtectedSystemField"
        assert world.invoke("owner", command).code == "ProtectedSystemField"

    made = world.invoke("alice_writer", 'CREATE CONCEPT ?c {TYPE "Theme"}').id("c")
    assert world.element(made).system.origin.principal == "alice_writer"
