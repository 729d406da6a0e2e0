"""The ten acceptance tests of GrayMatter's contract (v0.20, section 12), through the service's own front doors.

(a) the worked example to eight decimals; (b) RecallAll and batch order; (c) filter before document frequencies;
(d) weight 0 against weight omitted; (e) update against consolidation; (f) every payload valid, both branches of the
union; (g) the identity matrix of reflect; (h) namespaces and tenants apart, with a positive control; (i) a single
fact; (j) duplicates never shorten a result. The pure arithmetic has tests of its own in tests/core/facts.
"""

import itertools
import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from core.service.facts import Facts
from core.service.vectors import Vectors
from infra.arrays import load_numpy
from tests.functions.world import World
from tests.mcp.world import OUTPUTS, Mcp

DAY = 24 * 3600 * 1000
QUERY = "payments Postgres backups"
TEXTS = {  # in the order of their ages, the oldest first: text, days
    "F1": ("Deploys run through GitHub Actions every Friday", 40),
    "F2": ("The payments service uses Postgres for storage", 10),
    "F3": ("Postgres backups run nightly on the payments cluster", 2),
    "F4": ("User prefers dark theme", 1),
}
NEAR = {
    "F3": (0.9, 0.4),
    "F2": (0.8, 0.6),
    "F1": (0.6, 0.8),
}  # directions; F4 has none, so it gets no vector rank


class FourTexts:
    """An embedder that knows four texts and one question."""

    model, dimension, local = "worked:1", 2, True

    def embed(self, texts: Sequence[str], kind: str, deadline: int) -> list[list[float]]:
        """The question lies along the first axis."""
        del deadline
        by_text = {TEXTS[name][0]: list(where) for name, where in NEAR.items()}
        return [[1.0, 0.0] if kind == "query" else by_text.get(text, [0.0, 0.0]) for text in texts]


class Service(World):
    """A service whose facts count words as GrayMatter does, and rank by the worked example's vectors."""

    def __init__(self, *, vectors: bool = True) -> None:
        super().__init__()
        found = self.services
        found.__dict__["facts"] = Facts(
            found.table,
            found.clock,
            found.entropy,
            spaces=found.spaces,
            commits=found.commits,
            leases=found.leases,
            erasures=found.erasures,
            forgetting=found.forgetting,
            tokenizer="ascii",
            arrays=load_numpy,
            echoes=found.echoes,
            schedule=found.fact_schedule,
            meanings=Vectors(found.spaces, FourTexts(), load_numpy) if vectors else None,
        )
        self.make_space()

    def post(self, path: str, body: Any, space: str = "demo") -> Any:
        answer = self.ask("POST", f"/v1/{space}/{path}", body, token=self.token(aud=space))
        assert answer.status == 200, answer.body
        return answer.result

    def keep(self, *texts: str, agent: str = "ann", space: str = "demo", **more: Any) -> None:
        for text in texts:
            self.clock.advance(1000)
            self.post("facts", {"agent_id": agent, "text": text, "again": True, **more}, space)

    def recall(self, query: str, agent: str = "ann", space: str = "demo", **more: Any) -> Any:
        return self.post("facts/recall", {"agent_id": agent, "query": query, **more}, space)

    def explain(self, query: str, **more: Any) -> dict[str, Any]:
        """Receipts by text, in order."""
        return {each["text"]: each for each in self.recall(query, explain=True, **more)["explained"]}


def worked(**labels: str) -> Service:
    """The four facts at their ages."""
    service = Service()
    for name, (text, days) in TEXTS.items():
        label = {"confidence": labels[name]} if name in labels else {}
        service.clock.time += (41 - days) * DAY - (service.clock.time - _start(service))
        service.post("facts", {"agent_id": "ann", "text": text, **label})
    service.clock.time += 41 * DAY - (service.clock.time - _start(service))
    return service


def _start(service: Service) -> int:
    if "began" not in service.__dict__:
        service.__dict__["began"] = service.clock.time
    return int(service.__dict__["began"])


def named(found: dict[str, Any], value: Any) -> dict[str, Any]:
    names = {text: name for name, (text, _) in TEXTS.items()}
    return {names[text]: value(each) for text, each in found.items()}


def near(number: float) -> Any:
    return pytest.approx(number, abs=5e-9)


# --- (a)


def test_a_the_table_holds_to_eight_decimals() -> None:
    """Ages, ranks, fused scores and order of section 2.15; with the floor at half the best, F4 is cut."""
    service = worked()
    found = service.explain(QUERY)
    assert named(found, lambda each: each["ranks"]["fused_score"]) == {
        "F3": near(0.04085140),
        "F2": near(0.04019457),
        "F1": near(0.02368552),
        "F4": near(0.00819672),
    }
    assert list(named(found, bool)) == ["F3", "F2", "F1", "F4"]
    ranks = named(found, lambda each: [each["ranks"][f"{n}_rank"] for n in ("vector", "keyword", "recency")])
    assert ranks == {"F3": [1, 1, 2], "F2": [2, 2, 3], "F1": [3, 0, 4], "F4": [0, 0, 1]}
    assert named(found, lambda each: each["age_days"]) == {"F3": 2, "F2": 10, "F1": 40, "F4": 1}
    assert all(each["ranks"]["k"] == 60 for each in found.values())
    assert all("ranking" not in each for each in found.values())
    tune(service, min_relevance=0.5)
    assert list(named(service.explain(QUERY), bool)) == ["F3", "F2", "F1"]


def tune(service: Service, **settings: Any) -> None:
    answer = service.ask("PATCH", "/v1/demo/management/facts", settings, token=service.token())
    assert answer.status == 200, answer.body


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (0.02, {"F2": 0.04099846, "F3": 0.04003437}),
        (0.2, {"F2": 0.04823349, "F3": 0.03268112, "F1": 0.02368552}),
        (0.5, {"F3": 0.02042570}),
    ],
)
def test_a_confidence_moves_the_table_as_published(weight: float, expected: dict[str, float]) -> None:
    """F2 verified and F3 unverified: final scores and the order they make; the fused score stays what it was."""
    service = worked(F2="verified", F3="unverified")
    found = service.explain(QUERY, confidence_weight=weight)
    final = named(found, lambda each: each["ranking"]["final_score"])
    assert {name: final[name] for name in expected} == {name: near(score) for name, score in expected.items()}
    order = list(final)
    assert order[0] == "F2"
    assert (order.index("F3") > order.index("F1")) == (weight == 0.5)
    assert named(found, lambda each: each["ranks"]["fused_score"])["F3"] == near(0.04085140)


# --- (b)


def test_b_namespaces_and_batches_merge_in_the_published_order() -> None:
    """In both lists beats any in one; equal ranks give the agent's first; a batch goes by best rank, hits, appearance."""
    service = Service(vectors=False)
    service.keep(*(f"own {n}" for n in range(8, 0, -1)), "in both")
    service.keep("in both", *(f"shared {n}" for n in range(8, 0, -1)), agent="__shared__")
    merged = service.recall("", scope="all", top_k=4)["facts"]
    assert merged == [
        "in both",
        "shared 1",
        "own 1",
        "shared 2",
    ]  # 1/61+1/69, 1/61, 1/62 twice: the agent's first
    service = Service(vectors=False)
    service.keep("apples are red", "pears are green", "plums and pears are blue", "nothing at all")
    answer = service.post(
        "facts/recall_batch", {"agent_id": "ann", "queries": ["red apples", " ", "green pears"], "top_k": 2}
    )
    assert [each["query"] for each in answer["per_query"]] == ["red apples", "green pears"]
    lists = [each["facts"] for each in answer["per_query"]]
    assert [each[0] for each in lists] == ["apples are red", "pears are green"]
    assert answer["merged"][:2] == ["apples are red", "pears are green"]
    assert answer["count"] == len(set(itertools.chain(*lists))) == len(answer["merged"])


# --- (c)


def test_c_the_filter_stands_before_the_document_frequencies() -> None:
    """min_confidence inferred drops F3 before n, idf and every rank: the published scores of the remaining three."""
    found = worked(F2="verified", F3="unverified").explain(
        QUERY, min_confidence="inferred", confidence_weight=0
    )
    assert named(found, lambda each: each["ranks"]["fused_score"]) == {
        "F2": near(0.04085140),
        "F1": near(0.02406554),
        "F4": near(0.00819672),
    }
    ranks = named(found, lambda each: [each["ranks"][f"{n}_rank"] for n in ("vector", "keyword", "recency")])
    assert ranks == {"F2": [1, 1, 2], "F1": [2, 0, 3], "F4": [0, 0, 1]}


# --- (d)


def test_d_an_explicit_zero_overrides_the_tenants_default() -> None:
    """Omitted: the space's own weight, and it is told; 0: none, the filter stays, and it is told too."""
    service = worked(F2="verified", F3="unverified")
    assert "retrieval" not in service.recall(QUERY)
    tune(service, confidence_weight=0.2)
    omitted, zero = service.recall(QUERY), service.recall(QUERY, confidence_weight=0)
    assert omitted["facts"][0] == TEXTS["F2"][0]
    assert zero["facts"][0] == TEXTS["F3"][0]
    assert omitted["retrieval"]["confidence_weight"] == 0.2
    assert zero["retrieval"] == {
        "min_confidence": None,
        "confidence_weight": 0.0,
        "kg": "hints_without_confidence_receipts",
        "policy": "confidence-v1",
    }
    filtered = service.recall(QUERY, confidence_weight=0, min_confidence="inferred")
    assert TEXTS["F3"][0] not in filtered["facts"]
    assert filtered["retrieval"]["kg"] == "suppressed_min_confidence"


# --- (e)


def test_e_updates_and_consolidations_at_once_resurrect_nothing() -> None:
    """Threads revise, forget, recall and consolidate: what was retired stays so, every text that stands was written last."""
    service = Service(vectors=False)
    service.keep(*(f"note {n}" for n in range(24)))
    stop, problems = threading.Event(), []

    def consolidate() -> None:
        while not stop.is_set():
            answer = service.ask(
                "POST", "/v1/demo/facts/consolidate", {"agent_id": "ann"}, token=service.token()
            )
            if answer.status != 200:
                problems.append(answer.body)

    threads = [threading.Thread(target=consolidate) for _ in range(2)]
    for thread in threads:
        thread.start()
    for n in range(24):
        done = {"agent_id": "ann", "target": f"note {n}"}
        if n % 2:
            service.post("facts/forget", done)
        else:
            service.post("facts/revise", {**done, "text": f"new {n}"})
        service.recall(f"note {n}", top_k=3)
        service.clock.advance(1000)
    stop.set()
    for thread in threads:
        thread.join(20)
    assert problems == []
    assert set(service.recall("note", top_k=100)["facts"]) == {f"new {n}" for n in range(0, 24, 2)}


# --- (f)


def test_f_every_payload_of_every_tool_is_valid() -> None:
    """Success of each of the seven tools fits its output schema, both branches of the union; a failure has no structure."""
    service = Service(vectors=False)
    mcp = Mcp(service, token=service.token())  # whose `call` holds every answer against its schema
    mcp.ok("memory_add", agent_id="ann", text="Ann likes tea.", confidence="verified")
    for action, more in (
        ("add", {"text": "Ann likes jam."}),
        ("update", {"target": "Ann likes jam.", "text": "Ann likes honey."}),
        ("pin", {"text": "Ann likes honey."}),
        ("unpin", {"target": "Ann likes honey."}),
        ("link", {"text": "Ann", "target": "Honey"}),
        ("forget", {"text": "Ann likes honey."}),
    ):
        assert mcp.ok("memory_reflect", action=action, agent_id="ann", **more)["ok"]
    mcp.ok("memory_alias", agent_id="ann", term="drink", equivalents=["tea"])
    for explain in (False, True):
        mcp.ok("memory_search", agent_id="ann", query="drink", explain=explain, min_confidence="inferred")
        mcp.ok("memory_search", agent_id="nobody", query="drink", explain=explain)
    mcp.ok("memory_search_batch", agent_id="ann", queries=["drink", "Ann"], confidence_weight=0.1)
    union = Draft202012Validator(OUTPUTS["checkpoint_resume"])
    missing = mcp.ok("checkpoint_resume", agent_id="ann", on_missing="empty")
    mcp.ok("checkpoint_save", agent_id="ann", state='{"step": 1}')
    found = mcp.ok("checkpoint_resume", agent_id="ann")
    assert union.is_valid(missing)
    assert union.is_valid(found)
    assert missing == {"found": False, "agent_id": "ann"}
    assert not union.is_valid({**missing, **found})
    assert not union.is_valid({"found": True, "agent_id": "ann"})
    result = mcp.call("checkpoint_resume", agent_id="nobody")
    assert result["isError"]
    assert "structuredContent" not in result


# --- (g)

GOOD = (" project ", "プロジェクト", "a\x00b", "__shared__", "é", "e\u0301")
BAD: tuple[Any, ...] = (None, "", "   ", "\t\n", 7, True, ["ann"], {"id": "ann"})


def test_g_the_identity_matrix_of_reflect() -> None:
    """Each spelling alone, both with each pair of good and bad, none: a good one is taken byte for byte, a bad one refused."""
    service = Service(vectors=False)
    mcp = Mcp(service, token=service.token())

    def add(text: str, **identity: Any) -> dict[str, Any]:
        return mcp.call("memory_reflect", action="add", text=text, **identity)

    for place, agent in enumerate(GOOD):
        for name in ("agent_id", "agent"):
            told = add(f"{place} {name}", **{name: agent})["structuredContent"]
            assert told == {"action": "add", "agent": agent, "ok": True}
        both = add(f"{place} both", agent_id=agent, agent="loser")["structuredContent"]
        assert both["agent"] == agent
        held = [fact.text for fact in service.services.facts.facts("demo", agent)]
        assert sorted(held) == [f"{place} agent", f"{place} agent_id", f"{place} both"]
    before = service.services.spaces.head("demo").ver
    for bad in BAD:
        for identity in (
            {"agent_id": bad},
            {"agent": bad},
            {"agent_id": bad, "agent": "ann"},
            {"agent_id": "ann", "agent": bad},
            {"agent_id": bad, "agent": bad},
        ):
            refused = add("never", **identity)
            assert refused["isError"]
            assert "structuredContent" not in refused
    assert add("never")["isError"]
    assert service.services.spaces.head("demo").ver == before
    assert "loser" not in service.services.facts.agents("demo")


# --- (h)


def test_h_tenants_and_agents_are_apart() -> None:
    """A secret is found where it was kept, and by nobody else over any door: REST, MCP, lists, batches, exports."""
    service = Service(vectors=False)
    service.make_space("other", user="bob")
    secret = "The launch code is plum."
    service.keep(secret)
    service.keep("Something else.", agent="bob")
    service.keep("Something else.", space="other")
    assert service.recall("launch code")["facts"] == [secret]  # the positive control
    for agent, space in (
        ("bob", "demo"),
        ("ann", "other"),
        ("bob", "other"),
        ("ANN", "demo"),
        (" ann", "demo"),
    ):
        assert secret not in json.dumps(service.recall("launch code", agent, space, top_k=100))
        batch = {"agent_id": agent, "queries": ["launch code", "plum"]}
        assert secret not in json.dumps(service.post("facts/recall_batch", batch, space))
    token = service.token(aud="other")
    assert service.ask("GET", "/v1/demo/facts", token=token, query="agent_id=ann").status in (401, 403)
    assert "plum" not in json.dumps(service.ask("GET", "/v1/other/facts/export", token=token).result)
    stranger = Mcp(service, token=token, space="demo")
    answer = stranger.send(
        "tools/call", {"name": "memory_search", "arguments": {"agent_id": "ann", "query": "plum"}}
    )
    assert answer.status in (401, 403)
    assert b"plum" not in answer.body


# --- (i)


def test_i_a_single_fact_is_found_without_a_keyword_rank() -> None:
    """With one fact idf is ln(2/2) = 0, so it is given by recency alone."""
    service = Service(vectors=False)
    service.keep("The only fact.")
    receipt = service.explain("the only fact")["The only fact."]
    assert receipt["ranks"] == {
        "vector_rank": 0,
        "keyword_rank": 0,
        "recency_rank": 1,
        "fused_score": near(0.5 / 61),
        "k": 60,
    }


# --- (j)


def test_j_duplicates_never_shorten_a_result() -> None:
    """A text that stands nine times takes one place of three, over every door."""
    service = Service(vectors=False)
    service.keep(*["tea tea tea"] * 9, "tea at four", "coffee at five")
    assert service.recall("tea", top_k=3)["facts"] == ["tea tea tea", "tea at four", "coffee at five"]
    mcp = Mcp(service, token=service.token())
    told = mcp.ok("memory_search", agent_id="ann", query="tea", top_k=3)
    assert (told["count"], len(set(told["facts"]))) == (3, 3)
    batch = mcp.ok("memory_search_batch", agent_id="ann", queries=["tea", "coffee"], top_k=3)
    assert batch["count"] == len(batch["merged"]) == 3
