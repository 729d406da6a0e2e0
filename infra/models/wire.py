"""What every wire does the same way: ask until there is a reply, whole or as it comes, and say what the reply is.

What lives here: the order of that, and the rules that hold for every provider. What must never live here: a
provider's shapes (the modules of each), and trying again (`infra.models.patience`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, Protocol

from core.model.instants import Instant
from core.models.budget import estimate_request
from core.models.chat import Capabilities, ChatReply, ChatRequest, ModelFault, Stop, ToolCall, Turn, Usage
from core.models.choice import Key, ModelChoice
from infra.models import texts
from infra.models.families import family_of
from infra.models.patience import Cancelled, Patience, Spoken

if TYPE_CHECKING:
    from infra.models.http import Http  # which loads httpx, and Bedrock needs none

MAX_COUNT: Final = 10**9  # tokens; more than any request has
Block = dict[str, Any]  # JSON of a part of a message


class Assembly(Protocol):
    """A provider's answer, put together from the events of a stream."""

    def take(self, event: Any) -> None:  # JSON of whatever came
        """Note one event."""

    def usage(self) -> Usage:
        """What was used, as far as the stream has said."""

    def whole(self) -> Block:
        """The answer, as it would have come without a stream.

        Raises:
            ModelFault: unavailable, if the stream ended before the answer did.
        """


class Wire[Body](ABC):
    """A model behind a provider's interface, whose requests are `Body`: a `ChatModel`. Safe to share between threads."""

    def __init__(self, choice: ModelChoice, patience: Patience, capabilities: Capabilities) -> None:
        self._choice = choice
        self._family = family_of(choice)
        self._patience = patience
        self._capabilities = capabilities

    @property
    def name(self) -> str:
        """As the operator configured it."""
        return self._choice.name

    @property
    def capabilities(self) -> Capabilities:
        """What the wire can do."""
        return self._capabilities

    def chat(
        self,
        request: ChatRequest,
        *,
        deadline: Instant,
        on_text: Callable[[str], None] | None = None,
        cancelled: Cancelled = None,
    ) -> ChatReply:
        """One reply; see `ChatModel.chat`."""
        spoken = Spoken(on_text)
        streams = spoken.wanted and self._family.stream
        body = self._encoded(request, streams=streams)

        def attempt() -> ChatReply:
            if streams:
                answer: Any = self._streamed(body, deadline, self._assembly(spoken), cancelled)
            else:
                answer = self._ask(body, deadline)
            return self._reply(answer, request)

        reply = self._patience.until(
            deadline, attempt, spoken=spoken, size=estimate_request(request), cancelled=cancelled
        )
        if not streams:
            spoken.say(reply.text)
        return reply

    def _streamed(self, body: Body, deadline: Instant, answer: Assembly, cancelled: Cancelled) -> Block:
        """The answer, all of it; a fault carries what the stream had said it cost until then."""

        def check() -> None:
            self._patience.check(deadline, cancelled, answer.usage())

        try:
            with closing(self._events(body, deadline, check)) as events:
                for event in events:
                    answer.take(event)
        except ModelFault as fault:
            raise fault.costing(answer.usage()) from fault
        return answer.whole()

    # --- what a provider's module says

    @abstractmethod
    def _encoded(self, request: ChatRequest, *, streams: bool) -> Body:
        """The request as it is sent, however often."""

    @abstractmethod
    def _ask(self, body: Body, deadline: Instant) -> Any:
        """The provider's answer, whole. Raises ModelFault."""

    @abstractmethod
    def _events(self, body: Body, deadline: Instant, check: Callable[[], None]) -> Generator[Any]:
        """The provider's answer as it comes; `check` is called in between and raises to give up."""

    @abstractmethod
    def _assembly(self, spoken: Spoken) -> Assembly:
        """What puts such events together, and passes their text on."""

    @abstractmethod
    def _reply(self, answer: Any, request: ChatRequest) -> ChatReply:
        """The reply in an answer. Raises ModelFault: bad_reply, if there is none."""

    # --- what they share

    def _most(self, request: ChatRequest) -> int:
        """How many tokens a reply may have."""
        return min(request.max_tokens, self._choice.max_output or request.max_tokens)

    def _finished(
        self,
        request: ChatRequest,
        text: str,
        calls: tuple[ToolCall, ...],
        stop: Stop | None,
        usage: Usage,
        *,
        model: str = "",
    ) -> ChatReply:
        """The reply that these parts are; why it stopped is told from them where the provider does not say it.

        Raises:
            ModelFault: bad_reply, if it is empty for no reason.
        """
        if stop is None and not text and not calls:
            raise ModelFault("bad_reply", "the reply is empty and does not say why", usage=usage)
        if calls and stop not in ("refused", "length"):
            stop = "tools"
        return ChatReply(
            text=texts.unfenced(text) if request.schema is not None else text,
            calls=calls,
            stop="end" if stop is None or (stop == "tools" and not calls) else stop,
            usage=usage,
            model=model or self._choice.model,
        )


class HttpWire(Wire[bytes]):
    """A wire of JSON posted to one address, with server-sent events where it streams."""

    def __init__(
        self,
        choice: ModelChoice,
        key: Key,
        http: Http,
        patience: Patience,
        capabilities: Capabilities,
        *,
        path: str,
    ) -> None:
        super().__init__(choice, patience, capabilities)
        self._key = key
        self._http = http
        self._url = choice.base_url + path

    def _ask(self, body: bytes, deadline: Instant) -> Any:
        return self._http.ask(self._url, self._headers(), body, deadline)

    def _events(self, body: bytes, deadline: Instant, check: Callable[[], None]) -> Generator[Any]:
        return self._http.events(self._url, self._headers(), body, deadline, check)

    @abstractmethod
    def _headers(self) -> dict[str, str]:
        """Of the request, with the key as it is now."""


def merged(turns: Iterable[Turn], blocks: Callable[[Turn], list[Block]]) -> list[Block]:
    """Turns as messages; those of one role that follow each other are one, and none is empty."""
    out: list[Block] = []
    for turn in turns:
        role = "assistant" if turn.speaker == "assistant" else "user"
        content = blocks(turn)
        if not content:
            continue
        if out and out[-1]["role"] == role:
            out[-1]["content"] += content
        else:
            out.append({"role": role, "content": content})
    return out


def member(value: Any, name: str) -> Block:  # JSON of whatever came
    """An object's member that is an object itself; an empty one where it is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def count(counts: Block, name: str) -> int:
    """A number of tokens; 0 where none is told."""
    value = counts.get(name)
    # A server may say any number, and it goes into rows and sums of ours.
    return min(value, MAX_COUNT) if isinstance(value, int) and value > 0 else 0
