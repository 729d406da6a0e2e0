"""The tools as they are listed: every provider takes their schemas, and a model can choose by their words."""

import typing
from typing import Any

import mcp_types
import msgspec
import pytest
from jsonschema import Draft202012Validator

from core.protocol import http_types as wire
from core.protocol.memory_types import MaintenanceInput
from functions.mcp import brain, facts
from functions.mcp.handler import TOOLBOX
from functions.mcp.paging import estimate_tokens
from tests.mcp.providers import RULES, Rule, Tool, nodes

LISTED: tuple[Tool, ...] = TOOLBOX.listed
NAMES = [tool["name"] for tool in LISTED]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.provider}: {rule.source}")
def test_no_provider_refuses_a_schema(rule: Rule) -> None:
    """Each rule of each provider holds for each tool."""
    wrong = {tool["name"]: found for tool in LISTED if (found := rule.find(tool))}

    assert not wrong


BAD: dict[str, tuple[str, Any]] = {
    "root combinator": ("claude", {"type": "object", "properties": {}, "anyOf": [{"required": ["a"]}]}),
    "reference": (
        "moonshot",
        {"type": "object", "properties": {"a": {"type": "object", "$ref": "#/$defs/a"}}},
    ),
    "list of types": ("moonshot", {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}),
    "no type": ("moonshot", {"type": "object", "properties": {"a": {"description": "x"}}}),
    "array of anything": ("gemini", {"type": "object", "properties": {"a": {"type": "array"}}}),
    "empty object": ("gemini", {"type": "object", "properties": {"a": {"type": "object"}}}),
    "number enum": ("gemini", {"type": "object", "properties": {"a": {"type": "integer", "enum": [1]}}}),
    "required but absent": ("moonshot", {"type": "object", "properties": {}, "required": ["a"]}),
    "pattern properties": ("openai strict", {"type": "object", "properties": {}, "patternProperties": {}}),
    "bad property name": ("gemini", {"type": "object", "properties": {"a b": {"type": "string"}}}),
    "open map": ("openai strict", {"type": "object", "properties": {"a": {"type": "string", "oneOf": []}}}),
}


@pytest.mark.parametrize("name", BAD)
def test_the_rules_find_what_they_are_for(name: str) -> None:
    """Each kind of schema that a provider refuses is refused by a rule of that provider."""
    provider, schema = BAD[name]
    tool = {"name": "x", "description": "x", "inputSchema": schema}

    assert [found for rule in RULES if rule.provider == provider for found in rule.find(tool)]


def test_every_schema_is_a_schema_and_every_tool_a_tool() -> None:
    """JSON Schema 2020-12, MCP's own type, an object at the root of every output."""
    for tool in LISTED:
        mcp_types.Tool.model_validate(tool)
        Draft202012Validator.check_schema(tool["inputSchema"])
        if "outputSchema" in tool:
            Draft202012Validator.check_schema(tool["outputSchema"])
            assert tool["outputSchema"]["type"] == "object"
    assert len(set(NAMES)) == len(NAMES)


def test_every_parameter_and_result_is_described() -> None:
    """Down to the last member."""
    for tool in LISTED:
        for schema in (tool["inputSchema"], tool.get("outputSchema", {})):
            for path, node in nodes(schema):
                for name, inner in node.get("properties", {}).items():
                    told = inner.get("description") or inner.get("properties") or inner.get("enum")
                    assert told, f"{tool['name']} {path}.{name}"


@pytest.mark.parametrize("tool", LISTED, ids=lambda tool: tool["name"])
def test_a_model_can_choose_by_the_words(tool: Tool) -> None:
    """A title that is not the name; what, when, what comes back, what fails, and a sibling to tell it from."""
    about = tool["description"]

    assert tool["title"] == tool["annotations"]["title"]
    assert tool["title"] != tool["name"]
    assert tool["title"].lower().replace(" ", "_") != tool["name"]
    assert len(about) <= 800
    assert about.split()[0] in {"Search", "Store", "Persist", "Read", "Curate"}
    assert about.endswith(".")
    assert "Use it" in about
    assert "Returns" in about
    assert "Errors:" in about
    assert any(name in about for name in NAMES if name != tool["name"])


def test_hints_say_what_a_tool_does() -> None:
    """What reads is read-only and may be repeated; only maintenance may destroy; nothing reaches the open world."""
    writes = {
        "anda_brain_remember_conversation",
        "anda_brain_get_or_init_user",
        "anda_brain_run_maintenance",
        "memory_add",
        "memory_alias",
        "checkpoint_save",
        "memory_reflect",
    }
    for tool in LISTED:
        hints = tool["annotations"]
        reads = tool["name"] not in writes
        assert (hints["readOnlyHint"], hints["idempotentHint"]) == (reads, reads), tool["name"]
        assert hints["destructiveHint"] is (tool["name"] == "anda_brain_run_maintenance")
        assert hints["openWorldHint"] is False


def test_the_whole_list_costs_a_model_little() -> None:
    """All definitions together, as the list sends them."""
    assert estimate_tokens(msgspec.json.encode(list(LISTED)).decode()) <= 8_000


# --- GrayMatter's contract, field for field

ANNOTATED = {
    "memory_search": ("Search agent memory", True),
    "memory_search_batch": ("Search agent memory with several queries at once", True),
    "memory_add": ("Store a durable fact", False),
    "memory_alias": ("Teach the store a vocabulary alias", False),
    "checkpoint_save": ("Save a session checkpoint", False),
    "checkpoint_resume": ("Load the latest checkpoint", True),
    "memory_reflect": ("Curate your own memory", False),
}
LABELS = ["verified", "inferred", "unverified"]
STRING, TEXTS = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
LABEL = {"type": "string", "enum": LABELS}
SEARCH = {
    "top_k": {"type": "number", "default": 8},
    "min_confidence": LABEL,
    "confidence_weight": {"type": "number", "minimum": 0, "maximum": 0.5},
}
INPUTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # required, optional
    "memory_search": (
        {"agent_id": STRING, "query": STRING},
        {**SEARCH, "explain": {"type": "boolean", "default": False}},
    ),
    "memory_search_batch": ({"agent_id": STRING, "queries": TEXTS}, SEARCH),
    "memory_add": ({"agent_id": STRING, "text": STRING}, {"confidence": LABEL}),
    "memory_alias": ({"agent_id": STRING, "term": STRING, "equivalents": TEXTS}, {}),
    "checkpoint_save": ({"agent_id": STRING}, {"state": STRING}),
    "checkpoint_resume": (
        {"agent_id": STRING},
        {"on_missing": {"type": "string", "enum": ["error", "empty"], "default": "error"}},
    ),
    "memory_reflect": (
        {"action": {"type": "string", "enum": ["add", "update", "forget", "link", "pin", "unpin"]}},
        {"agent_id": STRING, "agent": STRING, "text": STRING, "target": STRING, "confidence": LABEL},
    ),
}
OUTPUTS: dict[str, tuple[set[str], set[str]]] = {  # required, optional
    "memory_search": ({"agent_id", "query", "count", "facts"}, {"feedback", "explained", "retrieval"}),
    "memory_search_batch": ({"agent_id", "count", "merged", "per_query"}, {"retrieval"}),
    "memory_add": ({"agent_id", "stored"}, {"fact_id", "confidence"}),
    "memory_alias": ({"agent_id", "term", "equivalents", "stored"}, set()),
    "checkpoint_save": ({"agent_id", "checkpoint_id", "created_at"}, set()),
    "memory_reflect": ({"action", "agent", "ok"}, {"fact_id", "confidence"}),
}
BY_NAME = {tool["name"]: tool for tool in LISTED}


def bare(schema: Any) -> Any:
    """A schema without its words."""
    if isinstance(schema, dict):
        return {name: bare(value) for name, value in schema.items() if name != "description"}
    return schema


def test_graymatters_seven_tools_are_there() -> None:
    """By name, title and hint."""
    assert [tool.definition.name for tool in facts.TOOLS] == list(ANNOTATED)
    for name, (title, reads) in ANNOTATED.items():
        assert (BY_NAME[name]["title"], BY_NAME[name]["annotations"]["readOnlyHint"]) == (title, reads)


@pytest.mark.parametrize("name", INPUTS)
def test_graymatters_inputs(name: str) -> None:
    """The parameters, which of them are required, their types, enums in order, defaults and bounds; no other."""
    required, optional = INPUTS[name]
    schema = BY_NAME[name]["inputSchema"]

    assert bare(schema["properties"]) == {**required, **optional}
    assert set(schema["required"]) == set(required)
    assert schema.get("additionalProperties", True) is (name != "memory_reflect")
    assert set(schema) <= {"type", "properties", "required", "additionalProperties"}


@pytest.mark.parametrize("name", OUTPUTS)
def test_graymatters_outputs(name: str) -> None:
    """Required and optional members, and every object in them closed."""
    required, optional = OUTPUTS[name]
    schema = BY_NAME[name]["outputSchema"]

    assert set(schema["required"]) == required
    assert set(schema["properties"]) == required | optional
    for path, node in nodes(schema):
        if node["type"] == "object":
            assert node["additionalProperties"] is False, path


def test_graymatters_union() -> None:
    """checkpoint_resume: a root of type and oneOf alone, two closed branches that exclude each other."""
    schema = BY_NAME["checkpoint_resume"]["outputSchema"]
    found, missing = schema["oneOf"]

    assert set(schema) == {"type", "oneOf"}
    assert (set(found["required"]), set(found["properties"])) == (
        {"id", "created_at"}, {"id", "created_at", "state", "message_count"},
    )  # fmt: skip
    assert (set(missing["required"]), missing["properties"]["found"]["enum"]) == (
        {"found", "agent_id"},
        [False],
    )
    assert found["additionalProperties"] is missing["additionalProperties"] is False


def test_nullable_lists_of_facts() -> None:
    """Facts and merged are an array or null in the schema."""
    for name, member in (("memory_search", "facts"), ("memory_search_batch", "merged")):
        assert BY_NAME[name]["outputSchema"]["properties"][member]["type"] == ["array", "null"]


# --- Anda's

HOSTS = {"assessment", "formation_id"}  # members that only the host may fill


def test_andas_parameters_are_those_that_the_code_reads() -> None:
    """What is listed can be given, and what can be given is listed (but for older spellings)."""
    kinds: dict[str, Any] = {
        "remember_conversation": wire.FormationInput,
        "recall_memory": wire.RecallInput,
        "run_maintenance": MaintenanceInput,
        "execute_kip_readonly": brain.ExecuteKip,
        "list_conversations": wire.ListQuery,
        "get_conversation": brain.GetConversation,
    }
    for name, kind in kinds.items():
        listed = set(BY_NAME[f"anda_brain_{name}"]["inputSchema"]["properties"])
        assert listed - {"cursor"} == set(typing.get_type_hints(kind)) - {"cursor", *HOSTS}, name
