"""Answers: what is made of a run that has ended.

What lives here: the text, whether anything was found and how unsure that is, and why a run did not end well. What
must never live here: which citations stand (the service looks at the state for that).
"""

from __future__ import annotations

from typing import Final

import msgspec

from core.agents.offline.answers import NOTHING, Answer
from core.agents.recall.footer import read_footer, strip_footers
from core.models.run import Finished

MAX_ANSWER: Final = 100_000  # characters
_UNSURE: Final = 0.5  # where something was found and the model does not say how sure it is
_REASONS: Final = {
    "turns": "the rounds of this recall are used up",
    "tokens": "the token budget of this recall is used up",
    "micros": "the spending limit is reached",
    "time": "the time for an answer is over",
    "loop": "the model repeated the same call",
    "length": "the answer was cut off at the length limit",
    "refused": "the model refused to answer",
    "context": "the question and what was found do not fit into what the model can read",
    "cancelled": "the recall was cancelled",
    "fault": "the model gave no usable answer",
}


class Concluded(msgspec.Struct, frozen=True):
    """What a run said. extracted: the text is the offline provider's, for the model gave none. reason: why it failed."""

    text: str
    found: bool
    uncertainty: float
    extracted: bool = False
    reason: str | None = None


def conclude(finished: Finished, shown: int, fallback: Answer) -> Concluded:
    """What to answer with.

    Args:
        finished: how the run ended.
        shown: how many records the model was shown: what `found` is inferred from where the model does not say.
        fallback: the extractive answer to the same question; it stands in where the model has said nothing at all.
    """
    meta, text = read_footer(finished.text), strip_footers(finished.text)[:MAX_ANSWER]
    reason = reason_of(finished)
    if not text:
        if reason is None:
            reason = "the model gave an empty answer"
        return Concluded(fallback.text, fallback.found, fallback.uncertainty, extracted=True, reason=reason)
    found = meta.found if meta.found is not None else shown > 0 and text != NOTHING
    unsure = meta.uncertainty if meta.uncertainty is not None else (_UNSURE if found else 1.0)
    return Concluded(text, found, round(unsure, 2), reason=reason)


def reason_of(finished: Finished) -> str | None:
    """Why a run did not end well, in words that hold nothing of the provider's; None if it did."""
    if finished.ok:
        return None
    told = _REASONS.get(finished.ended, finished.ended)
    return f"{told} ({finished.fault})" if finished.ended == "fault" and finished.fault else told
