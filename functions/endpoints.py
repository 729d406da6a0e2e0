"""Every endpoint by name: its method, its path, and the function that serves it. Data, and how to look it up.

What lives here: the one list that the functions' route tables, the local gateway, template.yaml's routes and
/openapi.json agree on. What must never live here: what an endpoint does (the route tables of `functions.reads`,
`writes` and `management`). Endpoints of the contract that this deployment does not have yet stand here without a
function, so that they are refused by name and never faked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from core.errors import NoemaError

Function = Literal["reads", "writes", "management", "mcp"]
Method = Literal["GET", "POST", "PATCH", "DELETE"]


class Endpoint(msgspec.Struct, frozen=True):
    """Where an endpoint is found. `function` is None if it is not there yet."""

    method: Method
    path: str
    function: Function | None

    def match(self, segments: Sequence[str]) -> dict[str, str] | None:
        """The parameters in a path cut at its slashes, or None if it is another endpoint's.

        `/v1/{space}/info` and `/v1/demo/info` -> `{"space": "demo"}`; `{name+}` takes the rest of the path.
        """
        wanted = self.path.split("/")
        params: dict[str, str] = {}
        for place, part in enumerate(wanted):
            if place >= len(segments):
                return None
            if part.endswith("+}"):
                params[part[1:-2]] = "/".join(segments[place:])
                return params
            if part.startswith("{"):
                if not segments[place]:
                    return None
                params[part[1:-1]] = segments[place]
            elif part != segments[place]:
                return None
        return params if len(segments) == len(wanted) else None


_V1: Final = "/v1/{space}"
_MANAGE: Final = f"{_V1}/management"
_FACTS: Final = f"{_V1}/facts"
_CAPSULES: Final = "/host/v1/{space}/capsules"
_GOVERNANCE: Final = "/host/v1/{space}/governance"
_GRAY: Final = f"{_V1}/graymatter"

ENDPOINTS: Final[dict[str, Endpoint]] = {
    "service_info": Endpoint("GET", "/info", "reads"),
    "skill": Endpoint("GET", "/SKILL.md", "reads"),
    "openapi": Endpoint("GET", "/openapi.json", "reads"),
    "favicon": Endpoint("GET", "/favicon.ico", "reads"),
    "touch_icon": Endpoint("GET", "/apple-touch-icon.webp", "reads"),
    "space_info": Endpoint("GET", f"{_V1}/info", "reads"),
    "space_status": Endpoint("GET", f"{_V1}/status", "reads"),
    "formation_status": Endpoint("GET", f"{_V1}/formation_status", "reads"),
    "recall": Endpoint("POST", f"{_V1}/recall", "reads"),
    "recall_structured": Endpoint("POST", f"{_V1}/recall_structured", "reads"),
    "probe": Endpoint("POST", f"{_V1}/probe", "reads"),
    "execute_kip_readonly": Endpoint("POST", f"{_V1}/execute_kip_readonly", "reads"),
    "memory_status": Endpoint("GET", f"{_V1}/memory_status", "reads"),
    "list_conversations": Endpoint("GET", f"{_V1}/conversations", "reads"),
    "get_conversation": Endpoint("GET", f"{_V1}/conversations/{{id}}", "reads"),
    "get_conversation_delta": Endpoint("GET", f"{_V1}/conversations/{{id}}/delta", "reads"),
    "formation": Endpoint("POST", f"{_V1}/formation", "writes"),
    "execute_kip": Endpoint("POST", f"{_V1}/execute_kip", "writes"),
    "forget": Endpoint("POST", f"{_V1}/memory/forget", "writes"),
    "maintenance": Endpoint("POST", f"{_V1}/maintenance", "writes"),
    "pin": Endpoint("POST", f"{_V1}/memory/pin", "writes"),
    "get_or_init_user": Endpoint("POST", f"{_V1}/get_or_init_user", "writes"),
    "restart_formation": Endpoint("PATCH", f"{_MANAGE}/restart_formation", "management"),
    "list_space_tokens": Endpoint("GET", f"{_MANAGE}/space_tokens", "management"),
    "add_space_token": Endpoint("POST", f"{_MANAGE}/add_space_token", "management"),
    "revoke_space_token": Endpoint("POST", f"{_MANAGE}/revoke_space_token", "management"),
    "update_space": Endpoint("PATCH", f"{_MANAGE}/update_space", "management"),
    "log_checkpoint": Endpoint("POST", f"{_MANAGE}/log_checkpoint", "management"),
    "migrate": Endpoint("POST", f"{_MANAGE}/migrate", "management"),
    "shadow_eval": Endpoint("POST", f"{_MANAGE}/shadow_eval", "management"),
    "get_space_byok": Endpoint("GET", f"{_MANAGE}/space_byok", "management"),
    "update_space_byok": Endpoint("PATCH", f"{_MANAGE}/space_byok", "management"),
    "create_space": Endpoint("POST", "/admin/create_space", "management"),
    "update_space_tier": Endpoint("POST", "/admin/{space}/update_space_tier", "management"),
    "delete_space": Endpoint("POST", "/admin/{space}/delete_space", "management"),
    "space_upkeep": Endpoint("GET", "/admin/{space}/upkeep", "management"),
    "trim_history": Endpoint("POST", "/admin/{space}/trim_history", "management"),
    "export_capsule": Endpoint("POST", f"{_CAPSULES}/export", "management"),
    "verify_capsule": Endpoint("POST", f"{_CAPSULES}/verify", "management"),
    "preview_capsule": Endpoint("POST", f"{_CAPSULES}/preview", "management"),
    "import_capsule": Endpoint("POST", f"{_CAPSULES}/import", "management"),
    "governance": Endpoint("GET", _GOVERNANCE, "management"),
    "governance_command": Endpoint("POST", f"{_GOVERNANCE}/commands", "management"),
    "governance_records": Endpoint("GET", f"{_GOVERNANCE}/records/{{kind}}", "management"),
    "governance_effective": Endpoint("GET", f"{_GOVERNANCE}/effective", "management"),
    "governance_decide": Endpoint("POST", f"{_GOVERNANCE}/decide", "management"),
    "governance_audit": Endpoint("GET", f"{_GOVERNANCE}/audit", "management"),
    "governance_refusals": Endpoint("GET", f"{_GOVERNANCE}/refusals", "management"),
    "restore_capsule": Endpoint("POST", "/admin/{space}/restore_capsule", "management"),
    "mcp": Endpoint("POST", "/mcp/{space}", "mcp"),
    "facts_recall": Endpoint("POST", f"{_FACTS}/recall", "reads"),
    "facts_recall_batch": Endpoint("POST", f"{_FACTS}/recall_batch", "reads"),
    "list_facts": Endpoint("GET", _FACTS, "reads"),
    "facts_stats": Endpoint("GET", f"{_FACTS}/stats", "reads"),
    "facts_agents": Endpoint("GET", f"{_FACTS}/agents", "reads"),
    "list_checkpoints": Endpoint("GET", f"{_FACTS}/checkpoints", "reads"),
    "export_facts": Endpoint("GET", f"{_FACTS}/export", "reads"),
    # Behind the fixed names it could be taken for.
    "get_fact": Endpoint("GET", f"{_FACTS}/{{fact_id}}", "reads"),
    "remember_fact": Endpoint("POST", _FACTS, "writes"),
    "extract_facts": Endpoint("POST", f"{_FACTS}/extract", "writes"),
    "revise_fact": Endpoint("POST", f"{_FACTS}/revise", "writes"),
    "forget_fact": Endpoint("POST", f"{_FACTS}/forget", "writes"),
    "pin_fact": Endpoint("POST", f"{_FACTS}/pin", "writes"),
    "unpin_fact": Endpoint("POST", f"{_FACTS}/unpin", "writes"),
    "link_facts": Endpoint("POST", f"{_FACTS}/link", "writes"),
    "add_alias": Endpoint("POST", f"{_FACTS}/alias", "writes"),
    "consolidate_facts": Endpoint("POST", f"{_FACTS}/consolidate", "writes"),
    "get_checkpoint": Endpoint("GET", f"{_FACTS}/checkpoints/{{checkpoint_id}}", "reads"),
    "delete_checkpoint": Endpoint("DELETE", f"{_FACTS}/checkpoints/{{checkpoint_id}}", "writes"),
    "save_checkpoint": Endpoint("POST", f"{_FACTS}/checkpoints", "writes"),
    "import_facts": Endpoint("POST", f"{_FACTS}/import", "writes"),
    "delete_fact": Endpoint("DELETE", f"{_FACTS}/{{fact_id}}", "writes"),
    "tune_facts": Endpoint("PATCH", f"{_MANAGE}/facts", "management"),
    "graymatter_recall": Endpoint("GET", f"{_GRAY}/recall", "reads"),
    "graymatter_facts": Endpoint("GET", f"{_GRAY}/facts", "reads"),
    "graymatter_metrics": Endpoint("GET", f"{_GRAY}/metrics", "reads"),
    "graymatter_healthz": Endpoint("GET", f"{_GRAY}/healthz", "reads"),
    "graymatter_remember": Endpoint("POST", f"{_GRAY}/remember", "writes"),
    "graymatter_consolidate": Endpoint("POST", f"{_GRAY}/consolidate", "writes"),
    "graymatter_forget": Endpoint("DELETE", f"{_GRAY}/forget", "writes"),
    "graymatter_delete": Endpoint("DELETE", f"{_GRAY}/forget/{{fact_id}}", "writes"),
    # Not there yet.
    "attention": Endpoint("GET", f"{_V1}/attention", None),
    "respond_attention": Endpoint("POST", f"{_V1}/attention/{{id}}/responses", None),
    "outcomes": Endpoint("POST", f"{_V1}/outcomes", None),
    "runtime_status": Endpoint("GET", f"{_V1}/runtime/status", None),
    "memory_interface": Endpoint("POST", f"{_V1}/memory", None),
    "stage_memory_source": Endpoint("POST", f"{_V1}/memory/sources", None),
    "memory_source": Endpoint("GET", f"{_V1}/memory/sources/{{ref}}", None),
    "memory_receipt": Endpoint("GET", f"{_V1}/memory/receipts/{{ref}}", None),
    "memory_plan": Endpoint("GET", f"{_V1}/memory/plans/{{ref}}", None),
    "wiki_read": Endpoint("GET", f"{_V1}/wiki/{{rest+}}", None),
    "wiki_write": Endpoint("POST", f"{_V1}/wiki/{{rest+}}", None),
}

FALLBACK: Final[Function] = "reads"
"""The function that answers what no endpoint matches: 404, 405, 501 and preflights."""


def is_graymatter(path: str) -> bool:
    """Whether a path is one of GrayMatter's own, whose errors have its shape."""
    return path.startswith("/v1/") and path.split("/")[3:4] == ["graymatter"]


def find(method: str, path: str) -> tuple[str, dict[str, str]]:
    """The name of the endpoint a request is for, and the parameters in its path.

    Raises:
        NoemaError: `RouteNotFound`, `MethodNotAllowed` (naming the methods there are), `NotImplementedYet`.
    """
    segments = path.split("/")
    allowed = []
    for name, endpoint in ENDPOINTS.items():
        params = endpoint.match(segments)
        if params is None:
            continue
        if endpoint.method == method:
            if endpoint.function is None:
                raise NoemaError(
                    "NotImplementedYet",
                    f"this deployment does not have {method} {endpoint.path} yet",
                    details={"endpoint": name},
                )
            return name, params
        allowed.append(endpoint.method)
    if allowed:
        raise NoemaError(
            "MethodNotAllowed",
            f"this path does not take {method[:16]}",
            details={"allow": sorted(set(allowed))},
        )
    raise NoemaError("RouteNotFound", "there is no such path")


def function_for(method: str, path: str) -> Function:
    """The function that API Gateway would hand a request to."""
    try:
        name, _ = find(method, path)
    except NoemaError:
        return FALLBACK
    return ENDPOINTS[name].function or FALLBACK
