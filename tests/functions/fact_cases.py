"""One request to each route of the fact memory, in an order in which all of them succeed."""

import json
from typing import Any

import msgspec

FACT_ID = "01J0000000000000000000TEA1"
FILE = json.dumps(
    [{"id": FACT_ID, "agent_id": "ann", "text": "Bob swims.", "created_at": "2026-01-05T10:00:00.123456789Z"}]
)
ANN = {"agent_id": "ann"}


class FactCase(msgspec.Struct):
    """One request. `needs` is the scope it takes besides `*`; None where anybody may."""

    path: str
    needs: str | None = "write"
    body: Any = None
    query: str = ""
    space_token: bool = True


_FACTS, _GRAY = "/v1/demo/facts", "/v1/demo/graymatter"

FACT_CASES: dict[str, FactCase] = {
    "remember_fact": FactCase(_FACTS, "write", {**ANN, "text": "Ann likes tea.", "confidence": "verified"}),
    "extract_facts": FactCase(f"{_FACTS}/extract", "write", {**ANN, "answer": '["Ann rows.", "Ann reads."]'}),
    "facts_recall": FactCase(
        f"{_FACTS}/recall", "read", {**ANN, "query": "tea", "explain": True, "scope": "all"}
    ),
    "facts_recall_batch": FactCase(f"{_FACTS}/recall_batch", "read", {**ANN, "queries": ["tea", "rows"]}),
    "pin_fact": FactCase(f"{_FACTS}/pin", "write", {**ANN, "target": "Ann likes tea."}),
    "unpin_fact": FactCase(f"{_FACTS}/unpin", "write", {**ANN, "target": "Ann likes tea."}),
    "revise_fact": FactCase(
        f"{_FACTS}/revise", "write", {**ANN, "target": "Ann likes tea.", "text": "Ann likes green tea."}
    ),
    "forget_fact": FactCase(f"{_FACTS}/forget", "write", {**ANN, "target": "Ann rows."}),
    "link_facts": FactCase(f"{_FACTS}/link", "write", {**ANN, "source": "Acme", "target": "Payments"}),
    "add_alias": FactCase(f"{_FACTS}/alias", "write", {**ANN, "term": "db", "equivalents": ["postgres"]}),
    "list_facts": FactCase(_FACTS, "read", query="agent_id=ann&retired=true"),
    "facts_stats": FactCase(f"{_FACTS}/stats", "read", query="agent_id=ann"),
    "facts_agents": FactCase(f"{_FACTS}/agents", "read"),
    "consolidate_facts": FactCase(f"{_FACTS}/consolidate", "write", ANN),
    "save_checkpoint": FactCase(f"{_FACTS}/checkpoints", "write", {**ANN, "state": {"step": 1}}),
    "list_checkpoints": FactCase(f"{_FACTS}/checkpoints", "read", query="agent_id=ann&limit=1"),
    "get_checkpoint": FactCase(f"{_FACTS}/checkpoints/latest", "read", query="agent_id=ann"),
    "delete_checkpoint": FactCase(f"{_FACTS}/checkpoints/{FACT_ID}", "write", query="agent_id=ann"),
    "import_facts": FactCase(f"{_FACTS}/import", "write", {"format": "graymatter", "data": FILE}),
    "export_facts": FactCase(f"{_FACTS}/export", "read", query="format=obsidian"),
    "get_fact": FactCase(f"{_FACTS}/{FACT_ID}", "read", query="agent_id=ann"),
    "delete_fact": FactCase(f"{_FACTS}/{FACT_ID}", "write", query="agent_id=ann"),
    "tune_facts": FactCase(
        "/v1/demo/management/facts", "write", {"confidence_weight": 0.1}, space_token=False
    ),
    "graymatter_remember": FactCase(f"{_GRAY}/remember", "write", {"agent": "ann", "text": "Cy reads."}),
    "graymatter_recall": FactCase(f"{_GRAY}/recall", "read", query="agent=ann&q=reads&k=3"),
    "graymatter_facts": FactCase(f"{_GRAY}/facts", "read", query="agent=ann&limit=2"),
    "graymatter_consolidate": FactCase(f"{_GRAY}/consolidate", "write", {"agent": "ann"}),
    "graymatter_forget": FactCase(
        f"{_GRAY}/forget", "write", {"agent": "ann", "query": "reads", "confirm": True}
    ),
    "graymatter_delete": FactCase(f"{_GRAY}/forget/{FACT_ID}", "write", query="agent=ann"),
    "graymatter_metrics": FactCase(f"{_GRAY}/metrics", "read"),
    "graymatter_healthz": FactCase(f"{_GRAY}/healthz", None),
}
