"""What model providers refuse in a tool's input schema: rules as data, each with where it is known from.

The rules are about what is sent as it stands. OpenAI's strict mode is held against the schema as its own SDK
converts it (every property required, optional ones nullable, defaults dropped), which is how optional parameters
reach that mode at all.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Schema = dict[str, Any]
Tool = dict[str, Any]
COMBINATORS = (
    "oneOf",
    "anyOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependentRequired",
)
REFERENCES = ("$ref", "$defs", "definitions", "$dynamicRef", "$id", "$anchor")


class Rule(NamedTuple):
    """One rule: who has it, where that is told, and what it finds wrong."""

    provider: str
    source: str
    find: Callable[[Tool], list[str]]


def nodes(schema: Schema, path: str = "$") -> Iterator[tuple[str, Schema]]:
    """Every schema in a schema, with its place."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key], f"{path}.{key}")
    for key in COMBINATORS:
        found = schema.get(key)
        for inner in found if isinstance(found, list) else [found] if isinstance(found, dict) else []:
            yield from nodes(inner, f"{path}.{key}")


def anywhere(*words: str) -> Callable[[Tool], list[str]]:
    """No schema in the input has one of these keywords."""
    return lambda tool: [
        f"{path} has {word}" for path, node in nodes(tool["inputSchema"]) for word in words if word in node
    ]


def at_root(*words: str) -> Callable[[Tool], list[str]]:
    """The input itself has none of these keywords."""
    return lambda tool: [f"the root has {word}" for word in words if word in tool["inputSchema"]]


def only(allowed: set[str]) -> Callable[[Tool], list[str]]:
    """Every keyword is one of these."""
    return lambda tool: [
        f"{path} has {word}"
        for path, node in nodes(tool["inputSchema"])
        for word in node
        if word not in allowed
    ]


def named(pattern: str) -> Callable[[Tool], list[str]]:
    """The tool's name fits."""
    return lambda tool: [] if re.fullmatch(pattern, tool["name"]) else [f"the name {tool['name']}"]


def parameters(pattern: str) -> Callable[[Tool], list[str]]:
    """Every property's name fits."""
    return lambda tool: [
        f"{path}.{name}"
        for path, node in nodes(tool["inputSchema"])
        for name in node.get("properties", {})
        if not re.fullmatch(pattern, name)
    ]


def typed(tool: Tool) -> list[str]:
    """Every schema says its one type."""
    return [
        f"{path} has type {node.get('type')}"
        for path, node in nodes(tool["inputSchema"])
        if not isinstance(node.get("type"), str)
    ]


def root_is_object(tool: Tool) -> list[str]:
    """The input is an object."""
    return [] if tool["inputSchema"].get("type") == "object" else ["the root is no object"]


def required_are_defined(tool: Tool) -> list[str]:
    """What is required is a property."""
    return [
        f"{path} requires {name}"
        for path, node in nodes(tool["inputSchema"])
        for name in node.get("required", [])
        if name not in node.get("properties", {})
    ]


def arrays_have_items(tool: Tool) -> list[str]:
    """An array says what is in it."""
    return [p for p, n in nodes(tool["inputSchema"]) if n.get("type") == "array" and not n.get("items")]


def objects_have_members(tool: Tool) -> list[str]:
    """An object inside the input has at least one property (the input itself may have none)."""
    return [
        path
        for path, node in nodes(tool["inputSchema"])
        if path != "$" and node.get("type") == "object" and not node.get("properties")
    ]


def enums_are_texts(tool: Tool) -> list[str]:
    """An enum holds texts, none of them empty, and its type is string."""
    return [
        path
        for path, node in nodes(tool["inputSchema"])
        if "enum" in node
        and (node.get("type") != "string" or not all(isinstance(e, str) and e for e in node["enum"]))
    ]


def described(most: int) -> Callable[[Tool], list[str]]:
    """The description is there and not too long."""
    return lambda tool: (
        [] if 1 <= len(tool.get("description") or "") <= most else ["the description's length"]
    )


def strict(schema: Schema) -> Schema:
    """A schema as OpenAI's SDKs send it in strict mode."""
    out = {key: value for key, value in schema.items() if key != "default"}
    if out.get("type") == "object":
        needed = schema.get("required", [])
        out["properties"] = {
            name: strict(inner) if name in needed else _nullable(strict(inner))
            for name, inner in schema.get("properties", {}).items()
        }
        out["required"] = list(out["properties"])
        out["additionalProperties"] = False
    if isinstance(out.get("items"), dict):
        out["items"] = strict(out["items"])
    return out


def _nullable(schema: Schema) -> Schema:
    out = {**schema, "type": [schema["type"], "null"]}
    return {**out, "enum": [*schema["enum"], None]} if "enum" in schema else out


STRICT_KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "description", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "format", "minItems", "maxItems", "title", "const",
}  # fmt: skip


def fits_strict(tool: Tool) -> list[str]:
    """After the conversion: closed objects, everything required, supported keywords, sizes within bounds."""
    schema = strict(tool["inputSchema"])
    wrong = []
    count = length = 0
    for path, node in nodes(schema):
        wrong += [f"{path} has {word}" for word in node if word not in STRICT_KEYWORDS]
        if "object" in _types(node):
            if node.get("additionalProperties") is not False:
                wrong.append(f"{path} is open")
            if set(node.get("required", [])) != set(node.get("properties", {})):
                wrong.append(f"{path} does not require all it has")
        names = [*node.get("properties", {}), *(str(each) for each in node.get("enum", []))]
        count += len(node.get("properties", {}))
        length += sum(map(len, names))
        if path.count(".") > 5:
            wrong.append(f"{path} is nested deeper than 5 levels")
    return (
        wrong + ["over 100 properties"] * (count > 100) + ["names over 15,000 characters"] * (length > 15_000)
    )


def _types(node: Schema) -> list[str]:
    kind = node.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


GEMINI_KEYWORDS = {
    "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required",
    "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering",
    "default", "items", "minimum", "maximum", "additionalProperties",
}  # fmt: skip

RULES = (
    Rule("mcp", "MCP 2026-07-28, Tool.inputSchema", root_is_object),
    Rule("mcp", "MCP 2025-11-25, tool names", named(r"[A-Za-z0-9_.-]{1,128}")),
    Rule("claude", "github.com/anthropics/claude-code/issues/40075", at_root("oneOf", "anyOf", "allOf")),
    Rule("claude", "Anthropic API reference, tools[].name", named(r"[a-zA-Z0-9_-]{1,128}")),
    Rule("claude", "Anthropic API error, tools.N.input_schema.properties key", parameters(r"[a-zA-Z0-9_.-]{1,64}")),
    Rule("claude", "JSON Schema 2020-12 is asked for: nullable is OpenAPI", anywhere("nullable")),
    Rule("openai", "OpenAI function calling, function.name", named(r"[a-zA-Z0-9_-]{1,64}")),
    Rule("openai", "github.com/anomalyco/opencode/pull/32489", anywhere(*COMBINATORS)),
    Rule("openai strict", "OpenAI structured outputs, supported schemas", fits_strict),
    Rule("gemini", "Vertex AI FunctionDeclaration.name", named(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")),
    Rule("gemini", "Vertex AI FunctionDeclaration.parameters", parameters(r"[A-Za-z_][A-Za-z0-9_]{0,63}")),
    Rule("gemini", "Vertex AI Schema, fields", only(GEMINI_KEYWORDS)),
    Rule("gemini", "typia.io IGeminiSchema (no unions, no references)", anywhere(*COMBINATORS, *REFERENCES)),
    Rule("gemini", "Gemini API error: should be non-empty for OBJECT type", objects_have_members),
    Rule("gemini", "Gemini API error: missing field items", arrays_have_items),
    Rule("gemini", "Gemini API error: enum only allowed for STRING type", enums_are_texts),
    Rule("moonshot", "github.com/MoonshotAI/kimi-cli/issues/1595", typed),
    Rule("moonshot", "github.com/MoonshotAI/kimi-cli/issues/2061", anywhere(*REFERENCES)),
    Rule("moonshot", "github.com/MoonshotAI/kimi-code/issues/1610", required_are_defined),
    Rule("moonshot", "github.com/MoonshotAI/kimi-cli/issues/2531", named(r"[A-Za-z][A-Za-z0-9_-]{0,63}")),
    Rule("moonshot", "github.com/MoonshotAI/kimi-cli/issues/2531", anywhere("anyOf", "oneOf")),
    Rule("bedrock", "Bedrock ToolSpecification.name", named(r"[a-zA-Z][a-zA-Z0-9_]{0,63}")),
    Rule("bedrock", "github.com/danny-avila/LibreChat/issues/13209", described(10_000)),
    Rule("bedrock", "Nova: the top level has type, properties and required alone", at_root(*COMBINATORS, "title", *REFERENCES)),
)  # fmt: skip
