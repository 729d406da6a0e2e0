"""The shapes of the Anda Brain contract (§1.5), written from its text, and how an answer is held against one.

What lives here: what the contract names, member by member. What must never live here: anything taken from our own
types, which would make the test agree with itself. A name that ends in `?` may be absent; what is there is never null.
Members that the contract does not name may be there beside them.
"""

from typing import Any

Shape = Any  # a type, a tuple of the words it may be, [the shape of each], or {name: shape}


class Kip(dict[str, Any]):
    """A shape of KIP's own wire, in which what is unknown is null and not absent."""


USAGE = {"input_tokens": int, "output_tokens": int, "cached_tokens": int, "requests": int}
SCOPE = ("read", "write", "*")
AT = {"daydream?": int, "full?": int, "quick?": int, "start_at?": int}
TIER = {"tier": int, "updated_at": int}
COUNTS = {
    "id": str,
    "concepts": int,
    "propositions": int,
    "conversations": int,
    "formation_processed_id": int,
    "maintenance_processed_id": int,
    "maintenance_at": AT,
}
SERVICE_INFO = {"name": str, "version": str, "sharding": int, "description": str}
SPACE_INFO = {
    **COUNTS,
    "space_id": str,
    "name?": str,
    "description?": str,
    "owner": str,
    "db_stats": {},
    "public": bool,
    "tier": TIER,
    "formation_usage": USAGE,
    "recall_usage": USAGE,
    "maintenance_usage": USAGE,
}
FORMATION_STATUS = {**COUNTS, "formation_processing": bool, "maintenance_processing": bool}
AGENT_OUTPUT = {
    "content": str,
    "conversation?": int,
    "failed_reason?": str,
    "usage?": USAGE,
    "model?": str,
    "warnings?": [str],
}
BEGUN = {**AGENT_OUTPUT, "conversation": int}  # what is taken in to be done in the background
MEMORY = {
    "entity": str,
    "type?": str,
    "name?": str,
    "confidence?": float,
    "source?": str,
    "created_at?": str,
}
RECALL_OUTPUT = {
    "answer": str,
    "found": bool,
    "uncertainty?": float,
    "memories?": [MEMORY],
    "conversation?": int,
    "usage": USAGE,
    "failed_reason?": str,
    "memory_budget?": {"tokenizer": str, "token_limit": int, "tokens": int, "context_token_limit": int},
    "recall_receipt?": {"id": str, "digest": str, "scope": {"space_id": str, "space_instance": str}},
}
PROBE_OUTPUT = {"found": bool, "negative_cached": bool, "search_exhaustive?": bool, "hits?": [MEMORY]}
PIN_OUTPUT = {"entity": str, "pinned": bool, "updated": bool}
FORGET_REPORT = {
    "dry_run": bool,
    "deleted_concepts": int,
    "deleted_propositions": int,
    "deleted_assertions": int,
    "deleted_evidence": int,
    "deleted_activities": int,
    "entities": [{"entity": str, "existed": bool, "error?": str}],
}
METRICS = (
    "recalls_completed", "entities_recalled", "probe_hits", "probe_misses", "negative_cache_hits", "self_test_tested",
    "self_test_grounded", "reencode_tasks", "corrections", "decayed", "uncertainty_reports", "forgotten_entities",
    "updated_at",
)  # fmt: skip
MEMORY_STATUS = {
    "metrics": {**{f"{name}?": int for name in METRICS}, "uncertainty_sum?": float},
    "groundability?": float,
    "probe_hit_rate?": float,
    "correction_rate?": float,
    "avg_uncertainty?": float,
    "maintenance_tokens_per_recall?": float,
    "graph": {
        "concepts": int,
        "propositions": int,
        "unconsolidated?": int,
        "orphans?": int,
        "predicate_types?": int,
        "as_of?": int,
    },
    "last_settlement?": {},
    "last_self_test?": {},
    "last_shadow?": {},
    "last_schema_audit?": {},
}
KIP_RESPONSE = Kip({"status": ("succeeded", "partial", "failed"), "results?": [{"status": str}]})
CONCEPT = Kip({
    "id": str,
    "kind": ("concept", "Concept"),
    "schema_ref": str,
    "key": str,
    "name": str,
    "attributes": {},
    "facets": {},
    "retention": {},
    "_system": {},
})  # fmt: skip
STATUS = ("submitted", "working", "completed", "failed", "idle", "cancelled")
CONVERSATION = {
    "_id": int,
    "user": str,
    "thread?": str,
    "label": ("formation", "recall", "maintenance"),
    "messages": [{"role": str, "content": object}],
    "resources": [object],
    "artifacts": [object],
    "status": STATUS,
    "failed_reason?": str,
    "period": int,
    "created_at": int,
    "updated_at": int,
    "usage": USAGE,
    "child?": int,
    "extra?": {},
}
DELTA = {
    "_id": int,
    "messages": [{"role": str, "content": object}],
    "artifacts": [object],
    "status": STATUS,
    "usage": USAGE,
    "failed_reason?": str,
    "updated_at": int,
    "child?": int,
}
SPACE_TOKEN = {
    "token": str,
    "name": str,
    "scope": SCOPE,
    "created_at": int,
    "updated_at": int,
    "expires_at?": int,
    "labels?": [str],
}
MODEL_CONFIG = {  # the key itself is never shown (§2.5)
    "family?": str,
    "model?": str,
    "api_base?": str,
    "disabled?": bool,
    "label?": str,
    "bearer_auth?": bool,
    "context_window?": int,
    "max_output?": int,
}
SHADOW_REPORT = {
    "compared_at": int,
    "replayed": int,
    "baseline_wins": int,
    "candidate_wins": int,
    "ties": int,
    "judge_errors": int,
    "candidate_policy": {},
    "usage": USAGE,
    "samples": [{"query": str, "winner": str, "reason?": str}],
}
RPC_ERROR = {"error": {"message": str, "data?": {"code": str}}}


def misfit(value: Any, shape: Shape, where: str = "result") -> str | None:
    """Where a value is not of a shape, in words; None if it is."""
    if value is None:
        return f"{where} is null, and should be absent"
    if isinstance(shape, tuple):
        return None if value in shape else f"{where} is {value!r}, none of {shape}"
    if isinstance(shape, dict):
        return _members(value, shape, where)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{where} is no list"
        found = (misfit(each, shape[0], f"{where}[{n}]") for n, each in enumerate(value))
        return next((each for each in found if each is not None), None)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if shape is float:
        return None if number else f"{where} is no number"
    if shape is int:
        return None if number and isinstance(value, int) else f"{where} is no whole number"
    return None if isinstance(value, shape) else f"{where} is {value!r}, no {shape.__name__}"


def _members(value: Any, shape: dict[str, Shape], where: str) -> str | None:
    if not isinstance(value, dict):
        return f"{where} is no object"
    for name, inner in shape.items():
        plain = name.removesuffix("?")
        if plain not in value:
            if plain == name:
                return f"{where}.{name} is missing"
            continue
        found = misfit(value[plain], inner, f"{where}.{plain}")
        if found is not None:
            return found
    if isinstance(shape, Kip):
        return None
    null = [name for name, inner in value.items() if inner is None and shape]
    return f"{where}.{null[0]} is null, and should be absent" if null else None
