"""The tools that agents' models may call, as specifications.

What lives here: names, descriptions and JSON Schemas, without `$ref` and root combinators, which providers refuse.
What must never live here: what a call does. The texts are the same bytes in every request.
"""

from __future__ import annotations

from typing import Final

from core.agents.prompts.kip_card import SECTIONS
from core.model.elements import Json
from core.models.chat import ToolSpec

MAX_COMMANDS: Final = 16

_COMMANDS: Final[Json] = {
    "type": "array",
    "items": {"type": "string"},
    "minItems": 1,
    "maxItems": MAX_COMMANDS,
    "description": "KIP commands, one statement each, run in this order; the first that fails stops the rest.",
}
_PARAMETERS: Final[Json] = {
    "type": "object",
    "description": "Values for the :parameters of the commands, by name without the colon. May be left out.",
}
_KIP: Final[dict[str, Json]] = {
    "type": "object",
    "properties": {"commands": _COMMANDS, "parameters": _PARAMETERS},
    "required": ["commands"],
    "additionalProperties": False,
}

EXECUTE_KIP: Final = ToolSpec(
    "execute_kip",
    "Read and write memory with KIP commands. Each command is one transaction. Answers one result for each.",
    _KIP,
)
EXECUTE_KIP_READONLY: Final = ToolSpec(
    "execute_kip_readonly",
    "Read memory with KIP commands (SEARCH, FIND, DESCRIBE, LIST, HISTORY). Answers one result for each.",
    _KIP,
)
KIP_REFERENCE: Final = ToolSpec(
    "kip_reference",
    "A section of the KIP reference, or the types and predicates of this memory (`schema`).",
    {
        "type": "object",
        "properties": {"topic": {"type": "string", "enum": [*SECTIONS, "schema"]}},
        "required": ["topic"],
        "additionalProperties": False,
    },
)
DECLARE_SYMBOLS: Final = ToolSpec(
    "declare_memory_symbols",
    "Declare types and predicates that memory lacks. Only where nothing in `schema` fits. They name kinds and relations, "
    "never a person, place or product: declared names cannot be erased.",
    {
        "type": "object",
        "properties": {
            "types": {
                "type": "array",
                "description": "Types of things, such as Recipe: a capital first, letters and digits.",
                "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "description": {"type": "string"}},
                    "required": ["name"],
                    "additionalProperties": False,
                },
            },
            "predicates": {
                "type": "array",
                "description": "Relations between things, such as cooked_by: lower case and underscores.",
                "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "description": {"type": "string"}},
                    "required": ["name"],
                    "additionalProperties": False,
                },
            },
        },
        "additionalProperties": False,
    },
)
NOTES: Final = ToolSpec(
    "notes",
    "Your own working notes, kept from run to run: list them, read one, write one (empty text removes it).",
    {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["list", "read", "write"]},
            "id": {"type": "string", "description": "Of the note: lower case letters, digits and -."},
            "text": {"type": "string", "description": "What to write."},
        },
        "required": ["action"],
        "additionalProperties": False,
    },
)

READING: Final = (EXECUTE_KIP_READONLY, KIP_REFERENCE)
"""What an agent that only reads may call."""
FORMING: Final = (EXECUTE_KIP, KIP_REFERENCE, DECLARE_SYMBOLS, NOTES)
"""What formation may call."""
