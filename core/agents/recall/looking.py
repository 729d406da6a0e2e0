"""Looking: what bears on a question, claims and turns and facts in one ranked list, as a tool gives it to a model.

What lives here: putting together what the offline provider finds. What must never live here: a ranking of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from core.agents.dialogue import Question
from core.agents.maintenance.decay import SLEEP_TASK
from core.agents.offline.claimed import recall_claims
from core.agents.offline.lines import Line, hidden_ids
from core.agents.offline.pending import recall_commitments
from core.agents.offline.questions import read_asked, unnamed
from core.agents.offline.quotation import recall_turns
from core.agents.recall.records import receipted, record_of
from core.agents.vocabulary import COMMITMENT
from core.model.elements import Concept
from core.model.instants import Instant
from core.search.bm25 import basis_of, score
from core.search.dense import Dense
from core.search.turns import Turns
from core.state.indexes import type_key
from core.state.view import View

Nearest = Callable[[str], Dense]

_NOTES: Final = 5  # concepts, facts among them, that are looked up by their own words
_OPEN: Final = ("pending", "blocked")
MAX_COMMITMENTS: Final = 500  # the newest, looked at


def look(
    view: View, question: Question, now: Instant, limit: int, nearest: Nearest | None = None
) -> list[Line]:
    """What bears on a question, best first: claims, open commitments, what was said, facts and other concepts.

    Args:
        view: the state as the caller may see it.
        question: in plain words.
        now: the time (ms), for what is current and due.
        limit: at most so many.
        nearest: finds what is near a text in meaning; None without an embedder.
    """
    asked, hidden = read_asked(view, question, now), hidden_ids(view)
    found = [*recall_claims(view, asked, now), *recall_commitments(view, asked, now)]
    dense = None if nearest is None else nearest(unnamed(asked))
    turns = recall_turns(view, asked, Turns(view), hidden, dense)[:limit]
    said = [line for turn in turns if (line := record_of(view, turn.id)) is not None]
    noted = [line for element in _noted(view, asked.terms, hidden) if (line := record_of(view, element))]
    unique = {line.entity: line for line in (*found, *said[: limit // 2], *noted, *said[limit // 2 :])}
    return [receipted(view, line) for line in list(unique.values())[:limit]]


def _noted(view: View, terms: tuple[str, ...], hidden: frozenset[str]) -> list[str]:
    """Concepts with the question's words in their own text; plumbing left out."""
    plumbing = hidden | frozenset(view.find(type_key(SLEEP_TASK)))
    scores = score(
        view, terms, basis_of(view), letters="C", admits=lambda element, _: element not in plumbing
    )
    found: list[str] = []
    for element, _ in scores.ranked("C", {}):
        if len(found) == _NOTES:
            break
        found.append(element)
    return found


def open_commitments(view: View) -> list[str]:
    """The commitments that are open, the newest first: what no answer on what to do may leave out."""
    found = []
    for element in list(view.find(type_key(COMMITMENT)))[: -MAX_COMMITMENTS - 1 : -1]:
        made = view.get(element)
        if (
            isinstance(made, Concept)
            and made.system.state == "active"
            and made.attributes.get("status") in _OPEN
        ):
            found.append(element)
    return found
