"""A recall with a model: it reads the memory through tools, and says what it found.

What lives here: the steps from a question to a model's answer and its receipts. What must never live here: what
becomes of the answer (the record, the epoch, the wire), and any write.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from core.agents.offline.answers import Answer
from core.agents.offline.lines import Line
from core.agents.offline.people import find_named
from core.agents.recall.answers import conclude
from core.agents.recall.asking import LAST_ROUND, Setting, answering, fitting
from core.agents.recall.looking import look
from core.agents.recall.records import record_of
from core.agents.recall.sight import seen_by
from core.agents.recall.trace import ids_seen, mentioned, numbered
from core.agents.vocabulary import PERSON
from core.models.budget import Meter
from core.models.run import Finished, Script, converse, goes_on
from core.ports import Clock
from core.protocol import http_types as wire
from core.service.agent_tools import Toolbox
from core.service.kip import Kip
from core.service.primers import Primers
from core.service.recall_run import Ask, Funded, Recalled, extracted, quoted
from core.service.recall_tools import RecallTools
from core.service.spaces import Spaces
from core.service.thinking import Terms, drive
from core.state.indexes import concept_key
from core.state.view import View

MAX_TOKENS: Final = 4096  # of one reply
MAX_CITED: Final = 20
LOOKED: Final = 16  # rows of the first look


class Thinking:
    """Answers questions with a model. Safe to share between threads."""

    def __init__(self, clock: Clock, spaces: Spaces, kip: Kip | None) -> None:
        self._clock = clock
        self._spaces = spaces
        self._kip = kip
        self._primers = None if kip is None else Primers(kip, clock)

    def think(self, ask: Ask, funded: Funded) -> Recalled:
        """The answer of a model that has read the memory.

        Faults of the model are told in `failed`, and the extractive answer stands in where the model said nothing.

        Raises:
            NoemaError: the space cannot be read.
        """
        view, model = ask.view, funded.model
        fallback = quoted(ask)
        first = fitting(_first_look(view, ask, fallback))
        primer = None if self._primers is None else self._primers.primer(ask.head, ask.state, ask.principal)
        asker = find_person(view, ask.question.context.counterparty)
        setting = Setting(
            ask.question,
            ask.now,
            ask.rounds,
            primer=primer,
            asker=None if asker is None else record_of(view, asker),
            earlier=ask.earlier,
            look=first,
        )
        kip = None
        if self._kip is not None:
            kip = Toolbox(self._kip, ask.space_id, ask.principal, clock=self._clock, until=ask.until).use
        tools = RecallTools(view, ask.space_id, ask.question, ask.now, kip=kip, nearest=ask.nearest)
        meter = funded.meter(max(1, ask.rounds - 1))
        terms = Terms(model, tools.use, self._clock, ask.until, funded.allowance)
        script = answering(setting, model.capabilities.context_tokens, MAX_TOKENS)
        finished = _finish(script, meter, terms, ask.rounds)
        shown = tuple(dict.fromkeys((*(line.entity for line in first), *ids_seen(finished.trace))))
        told = self._told(ask, finished, shown, fallback)
        return msgspec.structs.replace(
            told,
            usage=wire.Usage(**msgspec.structs.asdict(meter.usage)),
            model=told.model or finished.model or model.name,
        )

    def _told(self, ask: Ask, finished: Finished, shown: tuple[str, ...], fallback: Answer) -> Recalled:
        """The answer; `model` is empty where the model's own words are told."""
        said = conclude(finished, len(shown), fallback)
        if said.extracted:
            return msgspec.structs.replace(extracted(fallback), failed=said.reason)
        named = mentioned(said.text)
        # What the answer names comes first, what else was shown after it; what nothing has shown is no receipt.
        order = [*(each for each in named if each in shown), *(each for each in shown if each not in named)]
        cited = self._cited(ask, order) if said.found else ()
        touched = frozenset(shown) | {line.source for line in cited if line.source}
        return Recalled(
            text=numbered(said.text, [line.entity for line in cited]),
            found=said.found,
            model="",
            uncertainty=said.uncertainty,
            cited=cited,
            touched=touched,
            failed=said.reason,
            degraded=fallback.degraded,
        )

    def _cited(self, ask: Ask, order: Iterable[str]) -> tuple[Line, ...]:
        """Those that are there and visible now, told from the state and not from what the model saw."""
        view = seen_by(self._spaces.load(ask.space_id), ask.principal)
        found: list[Line] = []
        for each in order:
            line = record_of(view, each)
            if line is not None:
                found.append(line)
            if len(found) == MAX_CITED:
                break
        return tuple(found)


def _finish(script: Script, meter: Meter, terms: Terms, rounds: int) -> Finished:
    """Run a script; its last round is kept for an answer without tools."""
    finished = drive(converse(script, meter), terms)
    if finished.ended != "turns" or rounds <= 1:
        return finished
    meter.limits = msgspec.structs.replace(meter.limits, turns=rounds)
    closing = msgspec.structs.replace(goes_on(script, finished, LAST_ROUND), tools=())
    last = drive(converse(closing, meter), terms)
    return msgspec.structs.replace(
        last, text=last.text or finished.text, trace=finished.trace, model=last.model or finished.model
    )


def _first_look(view: View, ask: Ask, fallback: Answer) -> list[Line]:
    """What the extractive answer rests on, then what else the words find."""
    found: dict[str, Line] = {}
    for line in (*fallback.cited, *look(view, ask.question, ask.now, LOOKED, ask.nearest)):
        found.setdefault(line.entity, line)
    return list(found.values())


def find_person(view: View, known_as: str | None) -> str | None:
    """The person a caller's key or name stands for, if exactly one is known; none is ever made."""
    if known_as is None:
        return None
    by_key = view.find(concept_key(PERSON, known_as))
    if len(by_key) == 1:
        return by_key[0]
    named = find_named(view, known_as)
    return named[0].id if len(named) == 1 else None
