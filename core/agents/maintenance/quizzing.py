"""Quizzing: a model thinks of what somebody might ask for the memories that are tested (contract §6.5).

What lives here: what it is asked, within the budget, and reading what it answers. What must never live here: the search
(`core.agents.maintenance.selftest`). Its questions are searched for and not kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from core.agents.prompts.maintenance import QUIZ
from core.agents.recall.records import record_of
from core.model.elements import Concept
from core.models.budget import estimate
from core.models.chat import Turn
from core.models.run import Script
from core.search.text import searchable
from core.state.view import View

OUTPUT: Final = 4_096  # tokens of the reply at most; else a quarter of the budget
_TEXT: Final = 600
_OVERHEAD: Final = 64
_OBJECT: Final = re.compile(r"\{.*\}", re.DOTALL)


class _Query(msgspec.Struct):
    n: int
    query: str


class _Queries(msgspec.Struct):
    queries: list[_Query]


class Quiz(msgspec.Struct, frozen=True):
    """What is asked, and of which memories; those that did not fit are not among them."""

    script: Script
    asked: tuple[str, ...]


def make_quiz(view: View, concepts: Sequence[Concept], budget: int, context_tokens: int) -> Quiz | None:
    """The questions to be made, in one request within the budget; None if not even one memory fits.

    Args:
        view: where the memories stand.
        concepts: the memories, in order; the first that does not fit ends the list.
        budget: tokens of the request and its reply.
        context_tokens: what the model can read.
    """
    output = min(OUTPUT, budget // 4)
    room = min(budget, int(context_tokens * 0.8)) - output - estimate(QUIZ) - _OVERHEAD
    lines: list[str] = []
    asked: list[str] = []
    for concept in concepts:
        line = json.dumps({"n": len(asked) + 1, "memory": _told(view, concept)}, ensure_ascii=False)
        room -= estimate(line) + 1
        if room < 0:
            break
        lines.append(line)
        asked.append(concept.id)
    if not asked:
        return None
    script = Script(
        system=QUIZ,
        opening=(Turn("user", "\n".join(lines)),),
        max_tokens=output,
        context_tokens=context_tokens,
    )
    return Quiz(script, tuple(asked))


def read_quiz(quiz: Quiz, text: str) -> dict[str, str] | None:
    """The questions by memory; None for an answer that is none."""
    found = _OBJECT.search(text)
    try:
        told = msgspec.json.decode(found.group() if found else "", type=_Queries)
    except msgspec.DecodeError:
        return None
    queries = {quiz.asked[each.n - 1]: each.query for each in told.queries if 0 < each.n <= len(quiz.asked)}
    return queries or None


def _told(view: View, concept: Concept) -> str:
    line = record_of(view, concept.id, most=_TEXT)
    return line.text if line is not None and line.text else " ".join(searchable(concept).split())[:_TEXT]
