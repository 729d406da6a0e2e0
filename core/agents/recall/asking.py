"""Asking: a question as the script of a run with a model.

What lives here: what the model is shown before it begins, and the specifications of recall's own tools. What must
never live here: how a tool is carried out (`core.service.recall_tools`). What was recalled always stands between
<data> tags, as JSON in which nothing can end them; the order is from what changes seldom to what is new in every
question, so that providers may cache the beginning.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from core.agents.dialogue import Question
from core.agents.offline.lines import Line
from core.agents.prompts.recall import PLANNER, SYSTEM
from core.agents.recall.footer import as_data, strip_footers
from core.agents.recall.records import row_of
from core.agents.tools.specs import READING
from core.model.elements import Json
from core.model.instants import Instant, format_instant
from core.models.chat import ToolSpec, Turn
from core.models.run import Script

MAX_PRIMER: Final = 8_000  # characters of JSON
MAX_EARLIER: Final = 4_000  # characters of the answer before
MAX_LOOK: Final = 12_000  # characters of JSON of the first look
MAX_SEARCHES: Final = 32  # rows of one search

SEARCH_MEMORY: Final = ToolSpec(
    "search_memory",
    "Find what bears on some words: claims, promises, what was said, kept facts. Ranked, best first; each row has its "
    "id. Few telling words and names find more than a sentence.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Words, names, dates."},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_SEARCHES,
                "description": "Rows; 12 if left out.",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
)
READ_ELEMENTS: Final = ToolSpec(
    "read_elements",
    "Read records whole by their ids, at most 16. An id that is missing in the answer does not exist for you.",
    {
        "type": "object",
        "properties": {"ids": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 16}},
        "required": ["ids"],
        "additionalProperties": False,
    },
)
SELECT_ITEMS: Final = ToolSpec(
    "select_items",
    "Choose the items of the packet by their ids, the most useful first.",
    {
        "type": "object",
        "properties": {"ids": {"type": "array", "items": {"type": "string"}, "maxItems": 128}},
        "required": ["ids"],
        "additionalProperties": False,
    },
)
ANSWERING: Final = (SEARCH_MEMORY, READ_ELEMENTS, *READING)
"""What a model that answers may call. Nothing among it writes."""
PLANNING: Final = (SEARCH_MEMORY, SELECT_ITEMS)
"""What a model that picks the items of a packet may call."""

LAST_ROUND: Final = (
    "This is your last round, and there are no tools left. Answer now from what you have been shown; say what remains "
    "open."
)


class Setting(msgspec.Struct, frozen=True):
    """What a question is asked in.

    primer: the map of the memory, JSON. asker: who asks, if the memory knows them. earlier: the question and the
    answer before, of the same caller in the same thread. look: what the host found first. rounds: how many requests
    the model has.
    """

    question: Question
    now: Instant
    rounds: int
    primer: Json = None
    asker: Line | None = None
    earlier: tuple[str, str] | None = None
    look: tuple[Line, ...] = ()


def answering(setting: Setting, context_tokens: int, max_tokens: int) -> Script:
    """The script of a run that answers."""
    tools = ANSWERING if setting.rounds > 1 else ()
    return Script(
        system=SYSTEM,
        opening=(Turn("user", opening(setting)),),
        tools=tools,
        context_tokens=context_tokens,
        max_tokens=max_tokens,
    )


def planning(setting: Setting, context_tokens: int) -> Script:
    """The script of a run that picks the items of a packet; `look` are the candidates."""
    text = "\n\n".join((_asked(setting), f"# Candidates\n{rows(setting.look)}"))
    return Script(
        system=PLANNER,
        opening=(Turn("user", text),),
        tools=PLANNING,
        context_tokens=context_tokens,
        max_tokens=2048,
    )


def opening(setting: Setting) -> str:
    """All that the model is shown before it begins."""
    parts = []
    if setting.primer is not None:
        parts.append(f"# The memory\n{data(setting.primer, MAX_PRIMER)}")
    if setting.earlier is not None:
        asked, answered = setting.earlier
        told = {"question": asked, "answer": strip_footers(answered)[:MAX_EARLIER]}
        parts.append(f"# The exchange before\n{data(told, MAX_EARLIER * 2)}")
    parts.append(_asked(setting))
    parts.append(
        f"# First look\n{rows(setting.look) if setting.look else 'Nothing was found by the words of it.'}"
    )
    parts.append(f"You have {setting.rounds} rounds, this one included.")
    return "\n\n".join(parts)


def _asked(setting: Setting) -> str:
    context = setting.question.context
    told: dict[str, Json] = {"now": format_instant(setting.now), "question": setting.question.query}
    if setting.asker is not None:
        told["asked_by"] = row_of(setting.asker)
    elif context.counterparty is not None:
        told["asked_by"] = {"name": context.counterparty, "known": False}
    told |= {name: value for name in ("agent", "topic") if (value := getattr(context, name)) is not None}
    return f"# The question\n<question>\n{as_data(_json(told))}\n</question>"


def fitting(lines: Iterable[Line], most: int = MAX_LOOK) -> tuple[Line, ...]:
    """As many of the first lines as fit into so many characters; one in any case."""
    taken: list[Line] = []
    for line in lines:
        most -= len(_json(row_of(line)))
        if taken and most < 0:
            break
        taken.append(line)
    return tuple(taken)


def rows(lines: tuple[Line, ...]) -> str:
    """Lines as a model is shown them."""
    shown = [_json(row_of(line)) for line in lines]
    return f"<data>\n{as_data('[' + ','.join(shown) + ']')}\n</data>"


def data(value: Json, most: int) -> str:
    """A value as a model is shown it; left out, and said so, where it is too long."""
    text = _json(value)
    return f"<data>\n{as_data(text)}\n</data>" if len(text) <= most else "(too long to show)"


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()
