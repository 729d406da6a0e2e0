"""KIP2-X-001 to 015: each scenario once, against whatever answers KIP.

What lives here: the scenarios, and the `Driver` they are written against. What must never live here: how a driver
reaches a service (`tests/conformance/test_kip2_x.py` in process, `tests/e2e/test_conformance_x.py` over HTTP).
Everything is asserted of what a client can read: answers, receipts, change envelopes, and memory read afterwards.
Symbols are exact references, because a deployed space has packages of its own besides the test's.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from core.capsule.export import with_proof
from core.capsule.proofs import CAPSULE_DOMAIN, make_proof
from core.governance.commands import AnyCommand, Classify
from infra.signing.ed25519 import Ed25519Keys
from tests.conformance.harness import CORE, SECONDARY, Reply, World, package, request

Ref = dict[str, str]
Scenario = Callable[["Driver"], None]

ZONE: Final = f'"{CORE}/timezone"'
PREFERS: Final = f'"{CORE}/prefers"'
PERSON: Final = f"{CORE}/Person"
PACKAGES: Final = "LIST SCHEMA PACKAGES"
CONTEXT: Final = "DESCRIBE EXECUTION CONTEXT"
STRANGER: Final = Ed25519Keys(b"stranger".ljust(32, b"."))
"""A key that nobody here knows."""


class NoWay(Exception):
    """The driver cannot do this at all; its text is the reason."""


class Driver(Protocol):
    """Somebody's way to one space in the canonical schema (conformance paper §8-10), and the hands of its host.

    `ref` are the canonical bindings. Principals are those of §10 by name, and the space's records give each what the
    paper says; `reader_hidden` may read history besides.
    """

    ref: dict[str, Ref]

    def say(self, principal: str, said: str | dict[str, Any], /, **parameters: Any) -> Reply:
        """The reply to a command or an envelope; bindings that a command names are given to it."""
        ...

    def lose_answer(self, principal: str, said: dict[str, Any], /) -> None:
        """Send a request that is carried out, and whose response never reaches the client."""
        ...

    def command(self, command: AnyCommand, /) -> object:
        """Send a command of governance as the owner."""
        ...

    def admit(self, principal: str, /) -> None:
        """Let a new principal read and create."""
        ...

    def withdraw(self, principal: str, /) -> None:
        """Take from it again what `admit` gave."""
        ...

    def held_index(self) -> AbstractContextManager[str]:
        """Bring the search index up to now and hold it there within; the MODE of the searches that use it."""
        ...

    def preview_capsule(self, artifact: dict[str, Any], /) -> dict[str, Any]:
        """What an import by `importer` would do now. Raises what it would be refused with."""
        ...

    def import_capsule(self, artifact: dict[str, Any], plan_digest: str, /) -> dict[str, Any]:
        """What became of an import by `importer` of what was previewed."""
        ...

    def error_of(self, act: Callable[[], object], /) -> str:
        """The code with which a Capsule operation is refused."""
        ...


def ok(d: Driver, principal: str, said: str | dict[str, Any], /, **parameters: Any) -> Reply:
    """The reply to what must succeed."""
    reply = d.say(principal, said, **parameters)
    assert reply["status"] == "succeeded", reply
    return reply


def rows(d: Driver, command: str, /, **parameters: Any) -> Any:
    """The result of the owner's read."""
    return ok(d, "owner", command, **parameters).result


def seq(d: Driver) -> int:
    """Where the space's log stands."""
    return int(rows(d, "SNAPSHOT")["snapshot_seq"])


def since(d: Driver, n: int) -> list[dict[str, Any]]:
    """The change envelopes after a seq."""
    found: list[dict[str, Any]] = rows(d, "CHANGES AFTER SEQ :n LIMIT 100", n=n)
    return found


def said(
    d: Driver, by: str, about: str, *, zone: str = "+08:00", stance: str = "support", as_: str = "owner"
) -> dict[str, Ref]:
    """A claim about somebody's timezone, by somebody, on Evidence of their own: `e`, `p`, `a`."""
    made = ok(
        d,
        as_,
        f'MUTATE {{CREATE EVIDENCE ?e {{SET FIELDS {{evidence_class: "user_statement", payload: :text}} '
        f'SET STRUCTURAL {{("source", :by)}}}} ENSURE PROPOSITION ?p (:of, {ZONE}, :zone) '
        f"CREATE ASSERTION ?a {{SET FIELDS {{proposition: ?p, asserted_by: :by, stance: :stance, "
        f'mode: "stated", confidence: 0.95}} SET STRUCTURAL {{("evidence", ?e)}}}}}}',
        by=d.ref[by],
        of=d.ref[about],
        zone=zone,
        stance=stance,
        text=f"{by} on {about}: {stance} {zone}",
    )
    return made.ids()


def slot(d: Driver, about: str, *, at: int | None = None) -> tuple[str, list[str]]:
    """What is believed of somebody's timezone, now or as of a seq: the status and the accepted values."""
    when = "" if at is None else " AS OF SEQ :n"
    asked = f"FIND(?s.status, ?s.accepted_values) WHERE {{?s BELIEF SLOT (:of, {ZONE})}}{when}"
    [[status, values]] = rows(d, asked, of=d.ref[about], **({} if at is None else {"n": at}))
    return status, values


def belief(d: Driver, proposition: Ref, *, principal: str = "owner") -> Any:
    """What is believed of one Proposition."""
    return ok(d, principal, "FIND(?b) WHERE {?b BELIEF (id: :p)}", p=proposition["id"]).result[0]


def shown(d: Driver, kind: str, found: Ref, state: str = "active") -> dict[str, Any]:
    """An element as its owner reads it."""
    where = "(id: :i)" if kind == "PROPOSITION" else f'{{id: :i, state: "{state}"}}'
    [element] = rows(d, f"FIND(?x) WHERE {{?x {kind} {where}}}", i=found["id"])
    return dict(element)


# --- the scenarios


def user_correction(d: Driver) -> None:
    """X-001: one transaction of new Evidence, claim, supersession and Activity moves belief, and history stays."""
    first = said(d, "alice", "alice", as_="alice_writer")
    before, old = seq(d), shown(d, "ASSERTION", first["a"])
    assert slot(d, "alice") == ("accepted", ["+08:00"])

    done = ok(
        d,
        "alice_writer",
        'MUTATE {CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "user_statement", payload: "No, I moved"} '
        f'SET STRUCTURAL {{("source", :alice)}}}} ENSURE PROPOSITION ?p (:alice, {ZONE}, "+01:00") '
        'CREATE ASSERTION ?a {SET FIELDS {proposition: ?p, asserted_by: :alice, stance: "support", '
        'mode: "stated", confidence: 0.9} SET STRUCTURAL {("evidence", ?e)}} SUPERSEDE ASSERTION :old BY ?a '
        'CREATE ACTIVITY ?x {SET FIELDS {activity_class: "belief_revision", status: "completed"} '
        'SET STRUCTURAL {("inputs", :old) ("inputs", ?e) ("outputs", ?a)}}}',
        old=first["a"],
    )
    new = done.ids()

    now = shown(d, "ASSERTION", first["a"])
    payload = ("proposition", "asserted_by", "stance", "mode", "confidence", "asserted_at", "evidence")
    assert {name: now[name] for name in payload} == {name: old[name] for name in payload}
    assert now["lifecycle"]["status"] == "superseded"
    assert now["lifecycle"]["superseded_by"] == [new["a"]]
    assert shown(d, "ASSERTION", new["a"])["lifecycle"]["status"] == "active"
    assert shown(d, "EVIDENCE", first["e"])["payload"]["inline"] == "alice on alice: support +08:00"
    assert shown(d, "EVIDENCE", new["e"])["payload"]["inline"] == "No, I moved"
    activity = shown(d, "ACTIVITY", new["x"])
    assert (activity["inputs"], activity["outputs"]) == ([first["a"], new["e"]], [new["a"]])
    assert slot(d, "alice") == ("accepted", ["+01:00"])
    assert slot(d, "alice", at=before) == ("accepted", ["+08:00"])
    then = rows(d, "FIND(?a) WHERE {?a ASSERTION {id: :i}} AS OF SEQ :n", i=first["a"]["id"], n=before)
    assert then == [old]
    assert done.receipt["status"] == "committed"
    assert [each["tx_id"] for each in since(d, before)] == [done.receipt["tx_id"]]


def third_party_disagreement(d: Driver) -> None:
    """X-002: who rejects what another supports corrects nobody: both claims stand, and belief is contested."""
    alice = said(d, "alice", "carol")
    bob = said(d, "bob", "carol", stance="reject")

    for made in (alice, bob):
        claim = shown(d, "ASSERTION", made["a"])
        assert (claim["proposition"], claim["lifecycle"]["status"]) == (alice["p"], "active")
        assert claim["lifecycle"]["supersedes"] == claim["lifecycle"]["superseded_by"] == []
    assert belief(d, alice["p"])["status"] == "contested"
    standing = seq(d)
    theirs = d.say(
        "alice_writer",
        f'ASSERT ?a (:carol, {ZONE}, "+08:00") {{by: :alice, mode: "stated"}} SUPERSEDING :old',
        old=bob["a"],
    )
    assert theirs["status"] == "failed"
    assert seq(d) == standing


def grounding_and_belief(d: Driver) -> None:
    """X-003: what SEARCH found and how well it fits is not what is believed, nor how strongly."""
    claim = said(d, "alice", "alice")
    confidence = shown(d, "ASSERTION", claim["a"])["confidence"]

    hits = rows(d, 'SEARCH CONCEPT "Alice"')
    hit = next(each for each in hits if each["id"] == d.ref["alice"]["id"])
    score = hit["retrieval"]["score"]
    found = rows(d, f"FIND(?s) WHERE {{?s BELIEF SLOT (:hit, {ZONE})}}", hit={"id": hit["id"]})[0]

    assert score > 0
    assert score not in numbers(found)
    assert found["status"] == "accepted"
    assert "status" not in hit["retrieval"]
    assert shown(d, "ASSERTION", claim["a"])["confidence"] == confidence == 0.95
    miss = rows(d, 'SEARCH CONCEPT "Bob"')[0]
    assert miss["retrieval"]["score"] > 0  # as relevant, and nothing is believed
    assert slot(d, "bob") == ("insufficient", [])


def numbers(value: Any) -> set[float]:
    """Every number anywhere in a JSON value."""
    if isinstance(value, dict):
        return set().union(*map(numbers, value.values()), set())
    if isinstance(value, list):
        return set().union(*map(numbers, value), set())
    return {value} if isinstance(value, int | float) and not isinstance(value, bool) else set()


def search_lag(d: Driver) -> None:
    """X-004: a search over an index that is behind may miss what exact reads find, and says that it is behind."""
    ok(d, "owner", f'CREATE CONCEPT ?c {{TYPE "{CORE}/Document" NAME "the harbour plan"}}')
    with d.held_index() as mode:
        held = seq(d)
        made = ok(d, "owner", f'CREATE CONCEPT ?c {{TYPE "{CORE}/Document" NAME "the zeppelin plan"}}').id(
            "c"
        )
        reply = ok(d, "owner", f'SEARCH CONCEPT "zeppelin" MODE "{mode}"')
        assert made["id"] not in [each["id"] for each in reply.result]
        context = reply["results"][0]["context"]["search"]
        assert (context["index_seq"], context["current_space_seq"]) == (held, held + 1)
        assert context["consistency"] != "current"
        assert "SearchIndexLags" in [each["code"] for each in reply.warnings]
        exact = rows(d, 'FIND(?c.id) WHERE {?c CONCEPT {name: "the zeppelin plan"}}')
        assert exact == [made["id"]]
    fresh = ok(d, "owner", f'SEARCH CONCEPT "zeppelin" MODE "{mode}"')
    assert made["id"] in [each["id"] for each in fresh.result]
    assert fresh["results"][0]["context"]["search"]["index_seq"] == held + 1


def historical_secrecy(d: Driver) -> None:
    """X-005: what was public at S1 and is secret now is secret in every reading of S1."""
    made = said(d, "alice", "alice")
    then = seq(d)
    token = ok(d, "reader_hidden", "SNAPSHOT").result["snapshot_token"]
    read = f'FIND(?e.payload.inline) WHERE {{?e EVIDENCE {{id: "{made["e"]["id"]}"}}}}'
    text = "alice on alice: support +08:00"
    assert ok(d, "reader_hidden", read).result == [text]

    d.command(Classify(ids=(made["e"]["id"],), label="secret"))
    d.command(Classify(ids=(made["a"]["id"],), label="secret"))

    asked = [
        request(f"{read} AS OF SEQ {then}"),
        request(read, read={"snapshot_token": token}),
        request((f"FIND(?a) WHERE {{?a ASSERTION {{}}}} AS OF SEQ {then}", {})),
        request((f"FIND(?b) WHERE {{?b BELIEF (id: :p)}} AS OF SEQ {then}", {"p": made["p"]["id"]})),
        request(
            (f"FIND(?s) WHERE {{?s BELIEF SLOT (:of, {ZONE})}} AS OF SEQ {then}", {"of": d.ref["alice"]})
        ),
        request(f'SEARCH EVIDENCE "support" AS OF SEQ {then}'),
        request(("HISTORY ELEMENT :e", {"e": made["e"]})),
        request("CHANGES AFTER SEQ 0 LIMIT 1000"),
    ]
    for each in asked:
        reply = d.say("reader_hidden", each)
        told = json.dumps(reply)
        assert text not in told, each
        assert made["e"]["id"] not in told.replace(read, ""), each
        assert '"accepted"' not in told, each
    assert rows(d, f"{read} AS OF SEQ {then}") == [text]
    assert slot(d, "alice", at=then) == ("accepted", ["+08:00"])


def signed(artifact: dict[str, Any]) -> dict[str, Any]:
    """A Capsule with a stranger's good signature."""
    digest = artifact["integrity"]["content_digest"]
    proof = make_proof(
        STRANGER.sign, CAPSULE_DOMAIN, digest, scope="capsule_payload", created_at="2026-01-01T00:00:00Z"
    )
    return with_proof(artifact, proof)


def imported_skill(d: Driver) -> None:
    """X-006: a signed Skill that says it may run verifies, imports with its provenance, and may and does nothing."""
    source = World(life=100)
    source.ok(
        'CREATE CONCEPT ?s {TYPE "Skill" NAME "Deploy" SET ATTRIBUTES '
        '{authority: "executable", status: "validated", procedure: "PURGE everything"}}'
    )
    artifact = signed(source.rows('EXPORT CAPSULE ?s WHERE {?s CONCEPT {type: "Skill"}}')["artifact"])
    before, may = seq(d), {who: ok(d, who, CONTEXT).result["principal"] for who in ("owner", "importer")}

    verified = ok(d, "importer", "VERIFY CAPSULE :c", c=artifact).result
    [proof] = [each for each in verified["proofs"] if each["signer_identity"] == "unresolved"][:1]
    assert (proof["cryptographically_valid"], proof["local_trust"]) == (True, "unknown")
    assert ok(d, "importer", "VALIDATE CAPSULE :c", c=artifact).result["valid"] is True
    preview = d.preview_capsule(artifact)
    assert preview["would"] == "commit"
    assert seq(d) == before
    done = d.import_capsule(artifact, preview["import_plan_digest"])

    assert done["receipt"]["status"] == "committed"
    [skill] = rows(d, f'FIND(?s) WHERE {{?s CONCEPT {{type: "{CORE}/Skill"}}}}')
    assert skill["attributes"]["status"] == "candidate"
    assert not skill["governance"].get("max_influence_authority")
    origin = skill["_system"]["origin"]
    assert origin["import_id"]
    [source_of] = origin["sources"]
    assert source_of["space_ref"] == "urn:noema:space:test"
    assert [each["tx_id"] for each in since(d, before)] == [done["receipt"]["tx_id"]]  # and nothing ran
    assert {who: ok(d, who, CONTEXT).result["principal"] for who in may} == may


def same_name(d: Driver) -> None:
    """X-007: two Alices who share a name, a type and a key, and no trusted identity, stay two."""
    source = World(life=100)
    artifact = source.rows('EXPORT CAPSULE :alice WHERE {?p CONCEPT {type: "Person"}}')["artifact"]
    mine = shown(d, "CONCEPT", d.ref["alice"])

    preview = d.preview_capsule(artifact)
    assert [each["act"] for each in preview["plan"]["decisions"]] == ["create"]
    d.import_capsule(artifact, preview["import_plan_digest"])

    found = rows(d, f'FIND(?c) WHERE {{?c CONCEPT {{type: "{PERSON}", name: "Alice"}}}}')
    assert len(found) == 2
    assert mine in found
    other = next(each for each in found if each["id"] != mine["id"])
    assert other["_system"]["state"] == mine["_system"]["state"] == "active"
    assert rows(d, f'FIND(?c.id) WHERE {{?c CONCEPT {{type: "{PERSON}", key: "alice"}}}}') == [mine["id"]]


def lost_response(d: Driver) -> None:
    """X-008: a formation whose answer was lost and that is sent again with its key has happened once."""
    command = (
        f'MUTATE {{CREATE CONCEPT ?x {{TYPE "{CORE}/Experience" CLIENT KEY "x-008"}} '
        'CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "x-008"} '
        f'SET STRUCTURAL {{("source", :alice)}}}} ENSURE PROPOSITION ?p (:alice, {ZONE}, "+05:00") '
        'CREATE ASSERTION ?a {SET FIELDS {proposition: ?p, asserted_by: :alice, stance: "support", '
        'mode: "stated"} SET STRUCTURAL {("evidence", ?e)}} '
        'CREATE ACTIVITY ?f {SET FIELDS {activity_class: "formation", status: "completed"} '
        'SET STRUCTURAL {("inputs", ?e) ("outputs", ?a)}}}'
    )
    formation = request(
        (command, {"alice": d.ref["alice"]}),
        execution={"mode": "atomic", "idempotency_key": "x-008"},
    )
    before = seq(d)

    d.lose_answer("recorder", formation)
    first, again = ok(d, "recorder", formation), ok(d, "recorder", {**formation, "request_id": "another"})

    assert first.receipt["tx_id"] == again.receipt["tx_id"]
    assert first.ids() == again.ids()
    assert [each["tx_id"] for each in since(d, before)] == [first.receipt["tx_id"]]
    assert seq(d) == before + 1
    made = first.ids()
    for kind, name in (("CONCEPT", "x"), ("EVIDENCE", "e"), ("ASSERTION", "a"), ("ACTIVITY", "f")):
        assert shown(d, kind, made[name])["_system"]["created_tx"] == first.receipt["tx_id"]
    assert rows(d, 'FIND(COUNT(?a)) WHERE {?a ACTIVITY {activity_class: "formation"}}') == [1]
    other = json.loads(json.dumps(formation).replace("+05:00", "+06:00"))
    assert d.say("recorder", other).code == "IdempotencyConflict"


def revoked_after_preview(d: Driver) -> None:
    """X-009: a preview reserves no authority: what it showed is denied once the authority is gone."""
    d.admit("visitor")
    create = f'CREATE CONCEPT ?c {{TYPE "{CORE}/Theme" NAME "late"}}'
    assert ok(d, "visitor", "PREVIEW KML :c", c=create).result["would"] == "commit"
    assert ok(d, "visitor", create.replace("late", "early"))["status"] == "succeeded"
    assert ok(d, "visitor", "PREVIEW KML :c", c=create).result["would"] == "commit"

    d.withdraw("visitor")
    before = seq(d)
    reply = d.say("visitor", create)

    assert reply["status"] == "failed"
    assert reply.code in {"NotAuthorized", "Unauthenticated"}
    assert seq(d) == before
    count = f'FIND(COUNT(?c)) WHERE {{?c CONCEPT {{type: "{CORE}/Theme", name: :n}}}}'
    assert (rows(d, count, n="late"), rows(d, count, n="early")) == ([0], [1])


def schema_preview(d: Driver) -> None:
    """X-010: a package that a Capsule brings is read to check its records, and is in force nowhere after a preview."""
    source = World("test-core-domain-1.0.0", SECONDARY, life=100)
    ref = package(SECONDARY)["manifest"]["package_ref"]
    symbol = f"{ref}/service_status"
    source.ok("ENSURE PROPOSITION ?p (:service_api, :s, :status_active)", s=symbol)
    artifact = source.rows(
        "EXPORT CAPSULE ?p WHERE {?p PROPOSITION (?s, :s, ?o)} WITH {include_schema: true}", s=symbol
    )["artifact"]
    before, listed = ok(d, "owner", "SNAPSHOT").result, rows(d, PACKAGES)

    validated = ok(d, "owner", "VALIDATE CAPSULE :c", c=artifact).result
    assert (validated["valid"], validated["packages_not_in_force"]) == (True, [ref])
    assert d.error_of(lambda: d.preview_capsule(artifact)) == "SchemaPackageUnavailable"

    after = ok(d, "owner", "SNAPSHOT").result
    for name in ("snapshot_seq", "schema_environment_version"):
        assert after[name] == before[name]
    assert rows(d, PACKAGES) == listed
    assert ref not in json.dumps(listed)
    assert d.say("owner", f'DESCRIBE PREDICATE "{symbol}"').code == "SchemaPackageUnavailable"
    use = "ENSURE PROPOSITION ?p (:service_api, :s, :status_active)"
    assert d.say("owner", use, s=symbol)["status"] == "failed"


def decay(d: Driver) -> None:
    """X-011: maintenance lets a memory fade, and nobody's claim becomes less certain by that."""
    made = said(d, "alice", "alice")
    experience = ok(
        d,
        "owner",
        f'CREATE CONCEPT ?x {{TYPE "{CORE}/Experience" SET FACET "{CORE}/MnemonicState" {{memory_strength: 0.8}}}}',
    ).id("x")
    held = belief(d, made["p"])
    fade = f'UPDATE :x SET FACET "{CORE}/MnemonicState" {{memory_strength: 0.4}}'

    ok(d, "maintenance", fade, x=experience)

    facets = shown(d, "CONCEPT", experience)["facets"]
    assert [facet["memory_strength"] for facet in facets.values()] == [0.4]
    claim = shown(d, "ASSERTION", made["a"])
    assert (claim["confidence"], claim["_system"]["version"]) == (0.95, 1)
    now = belief(d, made["p"])
    assert (now["status"], now["support"]) == (held["status"], held["support"])
    confident = d.say("maintenance", "UPDATE :a SET FIELDS {confidence: 0.4}", a=made["a"])
    assert confident["status"] == "failed"
    assert shown(d, "ASSERTION", made["a"])["confidence"] == 0.95


def counter_evidence(d: Driver) -> None:
    """X-012: routine cleaning cannot take away what speaks against a claim; who may, does it on record."""
    said(d, "alice", "carol")
    against = said(d, "bob", "carol", stance="reject")
    assert belief(d, against["p"])["status"] == "contested"
    before = seq(d)

    for each in ('PURGE :e CONFIRM "PURGE"', 'PURGE :a CONFIRM "PURGE"', "TOMBSTONE :e", "TOMBSTONE :a"):
        assert d.say("maintenance", each, **against).code in {"PurgeDenied", "NotAuthorized"}, each
    assert seq(d) == before
    ok(d, "maintenance", "ARCHIVE :e", e=against["e"])  # out of the way, and still counted
    assert belief(d, against["p"])["status"] == "contested"
    assert d.say("owner", 'PURGE :e CONFIRM "PURGE"', e=against["e"]).code == "PurgeDenied"
    assert shown(d, "EVIDENCE", against["e"], "archived")["payload"]["inline"]

    purge = 'PURGE :e REFERENCE POLICY "tombstone_reference" CONFIRM "PURGE"'
    done = ok(d, "owner", purge, e=against["e"])
    told = {(each["id"], each["to"]) for each in done.result["transitions"]}
    assert told == {(against["e"]["id"], "purged"), (against["a"]["id"], "tombstoned")}
    changes = {(each["id"], each["op"]) for each in done.receipt["change_summary"]["changes"]}
    assert changes == {(against["e"]["id"], "purged"), (against["a"]["id"], "updated")}
    [envelope] = since(d, before + 1)
    assert envelope["tx_id"] == done.receipt["tx_id"]
    assert {each["id"] for each in envelope["changes"]} == {against["e"]["id"], against["a"]["id"]}
    assert shown(d, "EVIDENCE", against["e"], "purged")["evidence_class"] == "user_statement"


def merge_and_history(d: Driver) -> None:
    """X-013: after a merge old records name the source, new ones the target, and belief then is as it was then."""
    old = said(d, "carol", "bob", zone="+08:00")
    before, kept = seq(d), shown(d, "ASSERTION", old["a"])
    assert slot(d, "bob") == ("accepted", ["+08:00"])

    ok(d, "owner", "MERGE CONCEPT :bob INTO :alice")
    new = said(d, "carol", "bob", zone="+08:00")

    assert shown(d, "PROPOSITION", old["p"])["subject"] == d.ref["bob"]
    assert shown(d, "PROPOSITION", new["p"])["subject"] == d.ref["alice"]
    assert shown(d, "ASSERTION", old["a"]) == kept
    assert shown(d, "CONCEPT", d.ref["bob"], "merged")["merged_into"] == d.ref["alice"]
    for each in (old, new):
        claim = shown(d, "ASSERTION", each["a"])
        assert (claim["evidence"], claim["lifecycle"]["status"]) == ([each["e"]], "active") or claim[
            "evidence"
        ]
    assert slot(d, "alice") == slot(d, "bob") == ("accepted", ["+08:00"])
    assert slot(d, "bob", at=before) == ("accepted", ["+08:00"])
    assert slot(d, "alice", at=before) == ("insufficient", [])
    raw = f"FIND(?p.subject.id) WHERE {{?p PROPOSITION (id: :i)}} AS OF SEQ {before}"
    assert rows(d, raw, i=old["p"]["id"]) == [d.ref["bob"]["id"]]


def external_action(d: Driver) -> None:
    """X-014: an intent and its outcome are two commits, and what happened in the world between hangs on neither."""
    world: list[str] = []
    before = seq(d)
    intent = ok(
        d,
        "owner",
        'CREATE ACTIVITY ?i {SET FIELDS {activity_class: "action_intent", status: "pending"} '
        'SET STRUCTURAL {("associated_actors", :self)}}',
    )
    world.append("the mail is sent")  # by the harness; KIP knows nothing of it
    outcome = (
        'MUTATE {CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "tool_result", payload: :p}} '
        'CREATE ACTIVITY ?o {SET FIELDS {activity_class: "action_outcome", status: "completed"} '
        'SET STRUCTURAL {("inputs", :i) ("outputs", ?e)}}'
    )
    given = {"i": intent.id("i"), "p": world[0]}
    failed = d.say("owner", outcome + ' CREATE CONCEPT ?c {TYPE "Spaceship"}}', **given)
    assert failed["status"] == "failed"
    assert world == ["the mail is sent"]
    assert shown(d, "ACTIVITY", intent.id("i"))["status"] == "pending"
    assert rows(d, 'FIND(COUNT(?e)) WHERE {?e EVIDENCE {evidence_class: "tool_result"}}') == [0]

    done = ok(d, "owner", outcome + "}", **given)

    assert [each["tx_id"] for each in since(d, before)] == [intent.receipt["tx_id"], done.receipt["tx_id"]]
    assert intent.receipt["tx_id"] != done.receipt["tx_id"]
    assert shown(d, "ACTIVITY", done.id("o"))["inputs"] == [intent.id("i")]
    assert shown(d, "EVIDENCE", done.id("e"))["payload"]["inline"] == "the mail is sent"


def who_said_what(d: Driver) -> None:
    """X-015: what a recorder files of Alice's is hers by source and claim, his by origin, and gives him no voice."""
    made = said(d, "alice", "alice", as_="recorder")

    evidence, claim = shown(d, "EVIDENCE", made["e"]), shown(d, "ASSERTION", made["a"])
    assert evidence["source"] == [d.ref["alice"]]
    assert claim["asserted_by"] == d.ref["alice"]
    for element in (evidence, claim):
        assert element["_system"]["origin"]["principal_id"] == "recorder"
    asked = ok(d, "recorder", CONTEXT).result
    assert asked["principal"]["id"] == "recorder"
    assert d.ref["alice"]["id"] not in json.dumps(asked["principal"])
    before = seq(d)
    as_alice = {"extensions": {"noema/act_as": d.ref["alice"]}}
    speak = f'ASSERT ?a (:alice, {ZONE}, "+02:00") {{by: :alice, mode: "stated"}}'
    reply = d.say("recorder", request((speak, {"alice": d.ref["alice"]}), **as_alice))
    assert reply.code == "ActorBindingRequired"
    assert d.say("recorder", "RETRACT ASSERTION :a", a=made["a"])["status"] == "failed"
    assert seq(d) == before


SCENARIOS: Final[dict[str, Scenario]] = {
    "KIP2-X-001": user_correction,
    "KIP2-X-002": third_party_disagreement,
    "KIP2-X-003": grounding_and_belief,
    "KIP2-X-004": search_lag,
    "KIP2-X-005": historical_secrecy,
    "KIP2-X-006": imported_skill,
    "KIP2-X-007": same_name,
    "KIP2-X-008": lost_response,
    "KIP2-X-009": revoked_after_preview,
    "KIP2-X-010": schema_preview,
    "KIP2-X-011": decay,
    "KIP2-X-012": counter_evidence,
    "KIP2-X-013": merge_and_history,
    "KIP2-X-014": external_action,
    "KIP2-X-015": who_said_what,
}
"""Every scenario by its id. All are MUST."""
