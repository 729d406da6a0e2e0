"""The tools of a recall, carried out. All of them read, and what they answer is data.

What lives here: from a call to its result, for one run. What must never live here: anything that writes; a call to a
tool that is not here is refused before it comes (`core.models.run`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

import msgspec

from core.agents.dialogue import Question
from core.agents.offline.lines import Line
from core.agents.recall.asking import MAX_SEARCHES, READ_ELEMENTS, SEARCH_MEMORY, SELECT_ITEMS
from core.agents.recall.footer import as_data, strip_footers
from core.agents.recall.looking import Nearest, look
from core.agents.recall.records import row_of
from core.agents.tools.calls import read_arguments
from core.agents.tools.fitting import fit
from core.model.elements import Json
from core.model.instants import Instant
from core.models.chat import ToolCall, ToolResult
from core.query.wire import to_wire
from core.service.thinking import UseTool
from core.state.view import View

MAX_RESULT: Final = 16_000  # characters of one result
USUAL: Final = 12  # rows of a search


class SearchCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to search for."""

    query: Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
    limit: int = USUAL


class ReadCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which elements to read."""

    ids: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=16)]


class SelectCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which items to deliver."""

    ids: Annotated[tuple[str, ...], msgspec.Meta(max_length=128)]


class RecallTools:
    """The tools of one recall over one state.

    Args:
        view: the state as the caller may see it.
        question: what was asked; a search is read in the same context.
        now: the time of the question (ms).
        kip: runs the reading commands, or None where there is none.
        nearest: finds what is near in meaning, or None without an embedder.
    """

    def __init__(
        self,
        view: View,
        space_id: str,
        question: Question,
        now: Instant,
        *,
        kip: UseTool | None = None,
        nearest: Nearest | None = None,
    ) -> None:
        self._view = view
        self._space_id = space_id
        self._question = question
        self._now = now
        self._kip = kip
        self._nearest = nearest
        self.found: dict[str, Line] = {}  # every line that a search has shown
        self.selected: tuple[str, ...] | None = None
        self._tools: dict[str, Callable[[ToolCall], Json]] = {
            SEARCH_MEMORY.name: self._search,
            READ_ELEMENTS.name: self._read,
            SELECT_ITEMS.name: self._select,
        }

    def use(self, call: ToolCall) -> ToolResult:
        """Carry a call out.

        Raises:
            NoemaError: the arguments do not fit, or the command is refused; the model reads it.
        """
        tool = self._tools.get(call.name)
        if tool is not None:
            return ToolResult(call.id, call.name, as_data(fit(tool(call), MAX_RESULT)))
        if self._kip is None:
            return ToolResult(call.id, call.name, '{"error":"there is no such tool here"}', failed=True)
        result = self._kip(call)
        text = result.content
        safe = as_data(text) if text.startswith(("{", "[")) else strip_footers(text)
        return msgspec.structs.replace(result, content=safe)

    def _search(self, call: ToolCall) -> Json:
        wish = read_arguments(call, SearchCall)
        question = msgspec.structs.replace(self._question, query=wish.query)
        lines = look(self._view, question, self._now, max(1, min(MAX_SEARCHES, wish.limit)), self._nearest)
        self.found.update((line.entity, line) for line in lines)
        return {"rows": [row_of(line) for line in lines]}

    def _read(self, call: ToolCall) -> Json:
        found = (self._view.get(each) for each in read_arguments(call, ReadCall).ids)

        def seen(element: str) -> bool:
            return self._view.get(element) is not None

        return {"elements": [to_wire(each, self._space_id, seen=seen) for each in found if each is not None]}

    def _select(self, call: ToolCall) -> Json:
        wanted = tuple(dict.fromkeys(read_arguments(call, SelectCall).ids))
        self.selected = tuple(each for each in wanted if each in self.found)
        return {
            "selected": len(self.selected),
            "unknown": [each for each in wanted if each not in self.found],
        }
