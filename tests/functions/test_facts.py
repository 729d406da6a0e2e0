"""The fact memory over HTTP: every route, who may use it, and GrayMatter's own paths as its clients know them."""

import json

import pytest
from jsonschema import Draft202012Validator

from core.ports import Unavailable
from functions.endpoints import ENDPOINTS
from functions.openapi import document
from tests.functions.fact_cases import FACT_CASES, FACT_ID, FactCase
from tests.functions.world import World

DOCUMENT = document()


def ask(world: World, name: str, case: FactCase, token: str | None):
    return world.ask(ENDPOINTS[name].method, case.path, case.body, token=token, query=case.query)


def schema_of(name: str, status: int):
    operation = DOCUMENT["paths"][ENDPOINTS[name].path][ENDPOINTS[name].method.lower()]
    schema = operation["responses"][str(status)]["content"]["application/json"]["schema"]
    return Draft202012Validator({**schema, "components": DOCUMENT["components"]})


def test_every_route_answers_as_the_document_says():
    """In order, each succeeds; its answer and its refusal fit their schemas."""
    world = World().make_space()
    for name, case in FACT_CASES.items():
        refused = ask(world, name, case, None)
        if refused.status != 200:
            schema_of(name, refused.status).validate(refused.json)
        answer = ask(world, name, case, world.token())
        assert answer.status == 200, (name, answer.body)
        schema_of(name, 200).validate(answer.json)


@pytest.mark.parametrize("name", FACT_CASES)
def test_scopes_and_spaces(name):
    """The other scope is a 403, no credential and another space's a 401, a space that is not there a 404."""
    case = FACT_CASES[name]
    world = World().make_space()
    if case.needs is None:
        assert ask(world, name, case, None).status == 200
        return
    other = {"read": "write", "write": "read"}[case.needs]
    assert ask(world, name, case, world.token(scope=other)).status == 403
    assert ask(world, name, case, None).status == 401
    assert ask(world, name, case, world.token(aud="other")).status == 401
    elsewhere = FactCase(case.path.replace("demo", "nowhere"), case.needs, case.body, case.query)
    assert ask(world, name, elsewhere, world.token(aud="nowhere")).status == 404
    assert ask(world, name, case, world.space_token(scope=other)).status == 403
    assert ask(world, name, case, world.space_token(name="hr", labels=["hr"])).status == 403
    if not case.space_token:
        assert ask(world, name, case, world.space_token(name="all", scope="*")).status == 403
    world.make_public()
    assert ask(world, name, case, None).status == 403


@pytest.mark.parametrize("name", [name for name, case in FACT_CASES.items() if case.body is not None])
def test_other_bodies_are_refused(name):
    """No body, another type and broken JSON are 400s."""
    world, case = World().make_space(), FACT_CASES[name]
    for body in (
        b"",
        b"[]",
        b"null",
        b"7",
        b'"text"',
        b"{",
        b"\xff",
        b'{"agent_id": null}',
        b'{"a": "\\ud800"}',
    ):
        answer = world.ask(ENDPOINTS[name].method, case.path, body, token=world.token())
        assert answer.status == 400, body


@pytest.mark.parametrize(
    "members",
    [
        {"confidence_weight": "0.2"},
        {"confidence_weight": None},
        {"confidence_weight": 0.6},
        {"confidence_weight": -1},
        {"min_confidence": None},
        {"min_confidence": "VERIFIED"},
        {"min_confidence": ""},
        {"top_k": "many"},
        {"top_k": 5000},
        {"scope": "everyone"},
        {"agent_id": "  "},
        {"query": None},
    ],
)
def test_recall_options_that_make_no_sense_are_refused(members):
    """Explicit null, other types, unknown labels and weights out of range are 400s."""
    world = World().make_space()
    body = {"agent_id": "ann", "query": "tea", **members}
    assert world.ask("POST", "/v1/demo/facts/recall", body, token=world.token()).status == 400


def test_nan_and_null_labels_are_refused():
    """NaN is no JSON; a null label is no omitted one."""
    world = World().make_space()
    raw = b'{"agent_id": "ann", "query": "tea", "confidence_weight": NaN}'
    assert world.ask("POST", "/v1/demo/facts/recall", raw, token=world.token()).status == 400
    body = {"agent_id": "ann", "text": "x", "confidence": None}
    assert world.ask("POST", "/v1/demo/facts", body, token=world.token()).status == 400


def test_a_megabyte_is_too_large_and_says_how_large():
    """A text over the bound is a 413 that names the bound."""
    world = World().make_space()
    body = {"agent_id": "ann", "text": "x" * 1_000_000}
    answer = world.ask("POST", "/v1/demo/facts", body, token=world.token())
    assert (answer.status, answer.code) == (413, "PayloadTooLarge")
    assert answer.json["error"]["data"]["details"]["limit_bytes"] == 200_000


def test_a_retry_key_makes_a_write_safe_to_repeat():
    """The same request under the same key is one fact."""
    world = World().make_space()
    body = {"agent_id": "ann", "text": "Ann likes tea."}
    key = {"idempotency-key": "k1"}
    first = world.ask("POST", "/v1/demo/facts", body, token=world.token(), headers=key).result
    again = world.ask("POST", "/v1/demo/facts", body, token=world.token(), headers=key).result
    assert first == again
    assert first["created_at"].endswith("Z")
    assert "superseded_by" not in first


def test_explained_recalls_have_receipts_and_no_facts():
    """Receipts carry ranks, provenance and the policy; legacy recalls leave ranking and retrieval out."""
    world = World().make_space()
    for text in ("Ann likes tea.", "Bob rows boats."):
        world.ask("POST", "/v1/demo/facts", {"agent_id": "ann", "text": text}, token=world.token())
    body = {"agent_id": "ann", "query": "tea", "explain": True}
    legacy = world.ask("POST", "/v1/demo/facts/recall", body, token=world.token()).result
    assert legacy["facts"] == []
    assert legacy["count"] == len(legacy["explained"]) == 2
    assert "ranking" not in legacy["explained"][0]
    assert "retrieval" not in legacy
    weighted = {**body, "confidence_weight": 0}
    told = world.ask("POST", "/v1/demo/facts/recall", weighted, token=world.token()).result
    assert told["retrieval"]["policy"] == "confidence-v1"
    assert told["explained"][0]["ranking"]["factor"] == 1


def test_graymatter_answers_and_errors_are_bare():
    """Its clients get texts and statuses without an envelope, and errors as one text."""
    world = World().make_space()
    token = world.token()
    base = "/v1/demo/graymatter"
    assert world.ask("POST", f"{base}/remember", {"agent": "ann", "text": "Cy reads."}, token=token).json == {
        "status": "ok"
    }
    found = world.ask("GET", f"{base}/recall", token=token, query="agent=ann&q=reads&k=nonsense")
    assert found.json == {"results": ["Cy reads."]}
    listed = world.ask("GET", f"{base}/facts", token=token, query="agent=ann&limit=-1").json["facts"]
    assert [set(each) for each in listed] == [{"id", "text", "weight", "created_at"}]
    unconfirmed = world.ask("DELETE", f"{base}/forget", {"agent": "ann", "query": "reads"}, token=token)
    assert unconfirmed.status == 400
    assert isinstance(unconfirmed.json["error"], str)
    missing = world.ask("POST", f"{base}/remember", {"agent": "ann"}, token=token)
    assert (missing.status, type(missing.json["error"])) == (400, str)
    unknown = world.ask("GET", f"{base}/nothing", token=token)
    assert (unknown.status, type(unknown.json["error"])) == (404, str)
    gone = world.ask("DELETE", f"{base}/forget/{listed[0]['id']}", token=token, query="agent=ann")
    assert gone.json == {"status": "ok", "deleted_id": listed[0]["id"]}
    again = world.ask("DELETE", f"{base}/forget/{FACT_ID}", token=token, query="agent=ann")
    assert again.json == {"status": "not_found"}


def test_metrics_are_of_one_space_and_counted_once():
    """Stored facts and recalls that found something, by agent; consolidating moves no count; nobody sees another space."""
    world = World().make_space()
    world.make_space("other", user="bob")
    token, path = world.token(), "/v1/demo/graymatter/metrics"
    for agent in ("ann", "bob", "ann"):
        world.ask("POST", "/v1/demo/facts", {"agent_id": agent, "text": f"{agent} reads"}, token=token)
    for _ in range(3):
        world.ask("GET", "/v1/demo/graymatter/recall", token=token, query="agent=ann&q=reads")
    wanted = {"facts_total": {"ann": 2, "bob": 1}, "recall_total": {"ann": 3, "bob": 0}}
    assert world.ask("GET", path, token=token).json == wanted
    world.ask("POST", "/v1/demo/facts/consolidate", {"agent_id": "ann"}, token=token)
    assert world.ask("GET", path, token=token).json == wanted
    other = world.ask("GET", "/v1/other/graymatter/metrics", token=world.token(aud="other"))
    assert other.json == {"facts_total": {}, "recall_total": {}}
    assert world.ask("GET", path, token=world.token(aud="other")).status in (401, 403)


def test_health_tells_of_the_store_and_of_no_space():
    """The same for a space that is not there; 503 when the store is gone."""

    class Gone:
        def __init__(self, table):
            self.table = table

        def __getattr__(self, name):
            return getattr(self.table, name)

        def get(self, pk, sk):
            raise Unavailable("gone")

    world = World().make_space()
    path = "/v1/{}/graymatter/healthz"
    assert world.ask("GET", path.format("demo")).body == world.ask("GET", path.format("nowhere")).body
    world.table = Gone(world.table)
    world.use(world.services.settings)
    answer = world.ask("GET", path.format("demo"))
    assert answer.status == 503
    assert isinstance(json.loads(answer.body)["error"], str)


def test_what_is_exported_imports_into_another_space_without_loss():
    """Facts, labels, pins, retirements, aliases, counts and times come back as they were."""
    world = World().make_space()
    world.ask(
        "POST", "/admin/create_space", {"user": "a", "space_id": "two", "tier": 1}, token=world.admin_token()
    )
    token, other = world.token(), world.token(aud="two")

    def post(path, **body):
        world.clock.advance(1000)
        return world.ask("POST", f"/v1/demo/facts{path}", {"agent_id": "ann", **body}, token=token).result

    post("", text="Ann likes tea.\nGreen — 茶.", confidence="verified")
    post("", text="old", confidence="unverified")
    post("/revise", target="old", text="new")
    post("", text="gone")
    post("/forget", target="gone")
    post("/alias", term="db", equivalents=["postgres"])
    post("/pin", target="new")
    post("/recall", query="tea")
    world.clock.advance(40 * 86_400_000)
    token, other = world.token(), world.token(aud="two")
    world.ask("POST", "/v1/demo/facts/consolidate", {"agent_id": "ann"}, token=token)

    def exported(space, token):
        answer = world.ask("GET", f"/v1/{space}/facts/export", token=token, query="format=json")
        facts = json.loads(answer.result["files"]["memories.json"])
        return [{name: value for name, value in fact.items() if name != "element"} for fact in facts], answer

    before, answer = exported("demo", token)
    data = answer.result["files"]["memories.json"]
    report = world.ask("POST", "/v1/two/facts/import", {"format": "noema", "data": data}, token=other).result
    assert (report["added"], report["passed_over"]) == (len(before), 0)
    assert exported("two", other)[0] == before
    again = world.ask("POST", "/v1/two/facts/import", {"format": "noema", "data": data}, token=other).result
    assert (again["added"], again["present"]) == (0, len(before))
