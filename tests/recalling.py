"""A world whose recall has a model: the services of `tests.services`, with a scripted one, and a log to compare."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

from core.model.elements import Origin
from core.models.chat import ChatModel, ChatReply, ChatRequest, ToolCall, Usage
from core.models.tokens import Tokenizer
from core.protocol import http_types as wire
from core.service.erasure import Erasures
from core.service.forgetting import Forgetting
from core.service.kip import Kip
from core.service.ledger import Ledger
from core.service.readers import PrincipalOf, reader_of
from core.service.recall import Recall
from core.service.recall_later import LaterRecalls
from core.service.recall_packets import Packing
from core.service.recall_thinking import Thinking
from core.service.upkeep import Upkeep
from core.service.values import Proposal
from core.state.space import SpaceState
from core.storage.layout import rows_of, space_pk
from core.transaction.draft import Draft
from tests.doubles import FixedModels, ScriptedModel, says
from tests.services import World

SURE = '\n<memory_meta>{"found": true, "uncertainty": 0.1}</memory_meta>'
NONE = '\n<memory_meta>{"found": false, "uncertainty": 0.9}</memory_meta>'


class Words:
    """A tokenizer for which every character counts, so that a limit can be reckoned by hand."""

    def count(self, text: str) -> int:
        """Its characters."""
        return len(text)


class Recalling(World):
    """One process with a model for recall; None for the offline provider."""

    def __init__(
        self,
        model: ChatModel | None = None,
        *stores: Any,
        tokenizer: Tokenizer | None = None,
        ledger: bool = False,
        principal_of: PrincipalOf = reader_of,
        **options: Any,
    ) -> None:
        super().__init__(*stores, **options)
        upkeep = Upkeep(self.spaces, self.leases, self.entropy)
        self.erasures = Erasures(self.spaces, upkeep, self.entropy)
        self.forgetting = Forgetting(self.spaces, self.erasures)
        self.kip = Kip(self.spaces, self.commits, self.erasures, self.clock, secret=b"k" * 32)
        self.ledger = Ledger(self.table, self.clock, self.spaces)
        self.models = FixedModels(model)
        self.thinking = Thinking(self.clock, self.spaces, self.kip)
        self.recall = Recall(
            self.clock,
            self.spaces,
            self.conversations,
            models=self.models,
            thinking=lambda: self.thinking,
            packing=None if tokenizer is None else lambda: Packing(self.clock, tokenizer),
            ledger=(lambda: self.ledger) if ledger else None,
            principal_of=principal_of,
        )
        self.later = LaterRecalls(
            self.table, self.clock, self.entropy, conversations=self.conversations, recall=self.recall
        )

    def filled(self) -> Recalling:
        """A space that knows where Alice lives, what Bob likes, and one promise."""
        self.create()
        self.say("home", "I live in Lisbon.", "I love green tea.", at="2026-05-01T10:00:00Z")
        self.say("home", "I love hiking in the Alps.", name="Bob", at="2026-05-02T10:00:00Z")
        self.say("home", "Remind me to call the plumber on June 30.", at="2026-05-03T10:00:00Z")
        assert self.drain().formed == (1, 2, 3)
        return self

    def structured(self, query: str, **members: Any) -> wire.RecallOutput:
        """Ask with whatever members."""
        body = msgspec.convert({"query": query, **members}, wire.RecallInput)
        return self.recall.recall_structured(self.caller, "home", body)

    def host(self, element: str, **fields: Any) -> None:
        """Change one element as no command could, e.g. its classification."""

        def decide(state: SpaceState) -> Proposal:
            draft = Draft(
                state, now=self.clock.now(), origin=Origin("host", "test"), transaction_class="management"
            )
            found = state.get(element)
            assert found is not None
            draft.change(found, **fields)
            return Proposal(draft.finish())

        self.commits.commit("home", decide, deadline=self.clock.now() + 10_000)

    def archive(self, element: str) -> None:
        """Put an element away."""
        self.host(element, state="archived")

    def forget(self, *entities: str) -> None:
        """Erase elements."""
        self.forgetting.forget(self.caller, "home", wire.ForgetInput(entities=list(entities)), owner="o")

    def log(self) -> str:
        """A digest over everything that is memory: the log's rows and HEAD."""
        digest = hashlib.sha256()
        for letter in ("D", "M", "F"):
            for sk, row in self.table.query(space_pk("home"), *rows_of(letter), limit=1000):
                digest.update(repr((sk, sorted(row.items()))).encode())
        digest.update(repr(sorted((self.table.get(space_pk("home"), "HEAD") or {}).items())).encode())
        return digest.hexdigest()

    def evidence(self, place: int = 0) -> str:
        """The id of an Evidence, in order of creation."""
        return list(self.spaces.load("home").ids("evidence"))[place]


def model(*script: Any, last: ChatReply | None = None, **options: Any) -> ScriptedModel:
    """A scripted model."""
    return ScriptedModel(script, last=last, **options)


def many(*wanted: tuple[str, dict[str, Any]], text: str = "") -> ChatReply:
    """A reply with several calls."""
    made = tuple(
        ToolCall(f"c{place}", name, arguments, msgspec.json.encode(arguments).decode())
        for place, (name, arguments) in enumerate(wanted)
    )
    return ChatReply(text=text, calls=made, stop="tools", usage=Usage(10, 5, 0, 1), model="scripted-1")


def results(request: ChatRequest) -> list[str]:
    """What the tools have answered so far, in order."""
    return [result.content for turn in request.turns for result in turn.results]


def echo(make: Callable[[ChatRequest], str]) -> Callable[[ChatRequest], ChatReply]:
    """A reply made of what was shown."""
    return lambda request: says(make(request))
