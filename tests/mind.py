"""A world whose formation has a model: the services of `tests.services`, with a scripted mind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from core.model.elements import Assertion, Concept, Proposition
from core.models.budget import Limits
from core.models.chat import Capabilities, ChatModel, ChatReply, ChatRequest
from core.service.erasure import Erasures
from core.service.formation_model import Mind
from core.service.kip import Kip
from core.service.notes import Notes
from core.service.thinking import RUN_LIMITS, Allowance, Unlimited
from core.service.upkeep import Upkeep
from tests.doubles import FixedModels, calls, says
from tests.services import World


class Thinking(World):
    """One process with a model for formation."""

    def __init__(
        self,
        model: ChatModel | None,
        *stores: Any,
        allowance: Allowance | None = None,
        limits: Limits | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*stores, **options)
        self.model = model
        upkeep = Upkeep(self.spaces, self.leases, self.entropy)
        self.erasures = Erasures(self.spaces, upkeep, self.entropy)
        self.kip = Kip(self.spaces, self.commits, self.erasures, self.clock, secret=b"k" * 32)
        self.notes = Notes(self.table, self.entropy, self.commits, "formation")
        mind = Mind(
            FixedModels(model),
            self.kip,
            self.notes,
            self.clock,
            spaces=self.spaces,
            commits=self.commits,
            allowance_of=lambda space, model: allowance or Unlimited(),
            limits_of=lambda space, model: limits or RUN_LIMITS,
        )
        self.formation.mind = lambda: mind

    def claims(self, space: str = "home", *, status: str | None = "active") -> list[str]:
        """Claims in short: who says of whom what; denied ones with "not"."""
        state, out = self.spaces.load(space), []
        for element in state.ids("assertion"):
            claim = state.get(element)
            assert isinstance(claim, Assertion)
            about = state.get(claim.proposition)
            assert isinstance(about, Proposition)
            if status in (None, claim.status):
                held = "" if claim.stance == "support" else "not "
                words = getattr(about.object, "value", None)
                if words is None:
                    words = self.name(state.get(about.object.id))  # type: ignore[union-attr]
                name = about.predicate_ref.rpartition("/")[2]
                out.append(
                    f"{self.name(state.get(claim.asserted_by))}> {self.name(state.get(about.subject))} "
                    f"{held}{name} {words}"
                )
        return out

    def name(self, element: object) -> str:
        """What a Concept is called."""
        return str(element.name) if isinstance(element, Concept) else "?"

    def found(self, number: int, space: str = "home") -> Any:
        """A conversation as callers see it."""
        return self.conversations.get(space, "formation", number)


def kip(*commands: str, call_id: str = "c1", **parameters: Any) -> ChatReply:
    """A reply that runs commands."""
    arguments: dict[str, Any] = {"commands": list(commands)}
    if parameters:
        arguments["parameters"] = parameters
    return calls("execute_kip", arguments, call_id=call_id)


def lives_in(place: str, *, who: str = "who1", msg: str = "msg1", superseding: str | None = None) -> str:
    """The command for "I live in <place>"."""
    tail = f' SUPERSEDING "{superseding}"' if superseding else ""
    return (
        f'MUTATE {{ UPSERT CONCEPT ?p {{ MATCH {{type: "Place", key: "{place.lower()}"}} SET FIELDS {{name: "{place}"}} }} '
        f'ASSERT (:{who}, "lives_in", ?p) {{by: :{who}, mode: "stated", confidence: 0.9, evidence: :{msg}}}{tail} }}'
    )


def likes_tea(msg: str) -> str:
    """The command for "I like tea", once tea is a Topic."""
    return f'ASSERT (:who1, "likes", {{type: "Topic", key: "tea"}}) {{by: :who1, mode: "stated", evidence: :{msg}}}'


def lines_of(request: ChatRequest) -> list[dict[str, Any]]:
    """The messages that a request's opening shows."""
    found = []
    for line in request.turns[0].text.splitlines():
        if line.startswith('{"msg"'):
            found.append(json.loads(line))
    return found


def known_of(request: ChatRequest) -> list[dict[str, Any]]:
    """The claims that a request's opening shows as known."""
    known = [line for line in request.turns[0].text.splitlines() if re.match(r'\{"id": "A-', line)]
    return [json.loads(line) for line in known]


class Reading:
    """A model that reads: `read` makes the commands for the messages it is shown; then it is done.

    It keeps to the protocol: one call with all commands, then a report. `asked` keeps every request.
    """

    def __init__(
        self, read: Callable[[ChatRequest], list[str]], name: str = "reading-1", **capabilities: Any
    ) -> None:
        self.name = name
        self.capabilities = Capabilities(**capabilities)
        self.read = read
        self.asked: list[ChatRequest] = []

    def chat(
        self, request: ChatRequest, *, deadline: int, on_text: Any = None, cancelled: Any = None
    ) -> ChatReply:
        """The next reply."""
        self.asked.append(request)
        if request.turns[-1].speaker == "tool" or "Review, once" in request.turns[-1].text:
            return says("Read.")
        commands = self.read(request)
        return kip(*commands[:16]) if commands else says("Nothing lasts.")
