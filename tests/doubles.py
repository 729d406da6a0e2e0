"""Doubles of the ports: time that stands still, chance that counts, stores that fail when told to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from core.model.elements import Json
from core.model.instants import Instant
from core.models.chat import Capabilities, ChatModel, ChatReply, ChatRequest, ModelFault, ToolCall, Usage
from core.ports import EmbedderFault, EmbedKind, Objects, Range, Row, Table, Unavailable, Write
from core.search.text import words

EPOCH: Instant = 1_780_000_000_000  # 2026-05-28


class FakeClock:
    """A clock that moves only when told to, or when somebody sleeps.

    `step_ms` is added after each reading, so that a series of commits has a series of times.
    """

    def __init__(self, start: Instant = EPOCH, *, step_ms: int = 0) -> None:
        self.time = start
        self.step_ms = step_ms
        self.slept: list[float] = []

    def now(self) -> Instant:
        """The time, as last set."""
        time = self.time
        self.time += self.step_ms
        return time

    def sleep(self, seconds: float) -> None:
        """Let the time pass at once."""
        self.slept.append(seconds)
        self.time += max(1, round(seconds * 1000))

    def advance(self, ms: int) -> None:
        """Move the time on."""
        self.time += ms


class CountingEntropy:
    """Bytes and numbers that look random and are the same on every run."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.calls = 0

    def token(self, count: int) -> bytes:
        """The next `count` bytes."""
        out = b""
        while len(out) < count:
            self.calls += 1
            out += hashlib.sha256(f"{self.seed}:{self.calls}".encode()).digest()
        return out[:count]

    def uniform(self, low: float, high: float) -> float:
        """The next number between `low` and `high`."""
        return low + (high - low) * int.from_bytes(self.token(4), "big") / 2**32


class Crash(BaseException):
    """The process died here. A BaseException, so that no handler of the code under test can survive it."""


class Faults:
    """When calls of a store fail; one plan may be shared by a table and its objects.

    Args:
        at: the calls that fail, counted from 0 over all stores that share the plan.
        after: whether the call takes effect before it fails.
        error: what is raised: `Unavailable` (a store that did not answer) or `Crash` (a process that died).
        reads: whether reads are counted (and fail) too.
    """

    def __init__(
        self,
        at: Sequence[int] = (),
        *,
        after: bool = False,
        error: type[BaseException] = Unavailable,
        reads: bool = False,
    ) -> None:
        self.at = set(at)
        self.after = after
        self.error = error
        self.reads = reads
        self.count = 0

    def call[R](self, do: Callable[[], R], *, write: bool) -> R:
        """Do a store's call, or fail before or after it."""
        if not write and not self.reads:
            return do()
        fails = self.count in self.at
        self.count += 1
        if not fails:
            return do()
        if self.after:
            do()
        raise self.error("a planned fault")


class FailingTable:
    """A Table that fails as `faults` says. `before_transact` runs before each transaction, to make conflicts."""

    def __init__(
        self,
        table: Table,
        faults: Faults | None = None,
        *,
        before_transact: Callable[[Sequence[Write]], None] | None = None,
    ) -> None:
        self.table = table
        self.faults = faults or Faults()
        self.before_transact = before_transact
        self.reads = 0
        self.transactions = 0

    def get(self, pk: str, sk: str) -> Row | None:
        """As the table's."""
        self.reads += 1
        return self.faults.call(lambda: self.table.get(pk, sk), write=False)

    def query(
        self, pk: str, first: str, last: str, *, limit: int, reverse: bool = False
    ) -> list[tuple[str, Row]]:
        """As the table's."""
        self.reads += 1
        return self.faults.call(
            lambda: self.table.query(pk, first, last, limit=limit, reverse=reverse), write=False
        )

    def transact(self, writes: Sequence[Write]) -> None:
        """As the table's."""
        if self.before_transact is not None:
            self.before_transact(writes)
        self.transactions += 1
        self.faults.call(lambda: self.table.transact(writes), write=True)


class FailingObjects:
    """Objects that fail as `faults` says, and count the bytes that were read."""

    def __init__(self, objects: Objects, faults: Faults | None = None) -> None:
        self.objects = objects
        self.faults = faults or Faults()
        self.gets = 0
        self.bytes_read = 0

    def put(self, key: str, body: bytes) -> None:
        """As the objects'."""
        self.faults.call(lambda: self.objects.put(key, body), write=True)

    def get(self, key: str, first: int = 0, length: int | None = None) -> bytes | None:
        """As the objects'."""
        body = self.faults.call(lambda: self.objects.get(key, first, length), write=False)
        self.gets += 1
        self.bytes_read += len(body or b"")
        return body

    def get_many(self, ranges: Sequence[Range]) -> Sequence[bytes | None]:
        """As the objects'; one call, however many pieces."""
        bodies = self.faults.call(lambda: self.objects.get_many(ranges), write=False)
        self.gets += 1
        self.bytes_read += sum(len(body or b"") for body in bodies)
        return bodies

    def list(self, prefix: str) -> Iterator[tuple[str, Instant, int]]:
        """As the objects'."""
        return self.faults.call(lambda: self.objects.list(prefix), write=False)

    def delete(self, keys: Sequence[str]) -> None:
        """As the objects'."""
        self.faults.call(lambda: self.objects.delete(keys), write=True)


class ScriptedModel:
    """A model that says what it was told to say, in order, and keeps what it was asked.

    Each entry of `script` is a reply, a fault to raise, or a function of the request that gives either. When the
    script is over it answers `last`, or fails the test if there is none.
    """

    def __init__(
        self,
        script: Iterable[ChatReply | ModelFault | Callable[[ChatRequest], ChatReply | ModelFault]] = (),
        *,
        last: ChatReply | None = None,
        name: str = "scripted-1",
        capabilities: Capabilities | None = None,
    ) -> None:
        self.name = name
        self.capabilities = Capabilities() if capabilities is None else capabilities
        self.script = list(script)
        self.last = last
        self.asked: list[ChatRequest] = []

    def chat(
        self,
        request: ChatRequest,
        *,
        deadline: Instant,
        on_text: Callable[[str], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> ChatReply:
        """The next entry of the script."""
        self.asked.append(request)
        entry = self.script.pop(0) if self.script else self.last
        if entry is None:
            raise AssertionError("the model was asked more often than its script says")
        said = entry(request) if callable(entry) else entry
        if isinstance(said, ModelFault):
            raise said
        if on_text is not None and said.text:
            on_text(said.text)
        return said


def says(text: str, **fields: object) -> ChatReply:
    """A reply of text alone, ten tokens in and five out unless told otherwise."""
    return ChatReply(text=text, **{"usage": Usage(10, 5, 0, 1), "model": "scripted-1", **fields})  # type: ignore[arg-type]


def calls(name: str, arguments: dict[str, Json] | None, *, call_id: str = "c1", text: str = "") -> ChatReply:
    """A reply that calls one tool; `arguments` None stands for broken JSON."""
    raw = '{"broken' if arguments is None else json.dumps(arguments)
    call = ToolCall(call_id, name, arguments, raw)
    return ChatReply(text=text, calls=(call,), stop="tools", usage=Usage(10, 5, 0, 1), model="scripted-1")


class FixedModels:
    """Every space has the same model, for every role, or none."""

    def __init__(self, model: ChatModel | None) -> None:
        self.model = model

    def of(self, space_id: str, role: str) -> ChatModel | None:
        """The model."""
        return self.model


class HashEmbedder:
    """An embedder whose vectors are sums of the directions of a text's words, drawn from their digests.

    So texts that share words are near, and every run gives the same. Words in `alike` count as the word they stand for.
    """

    def __init__(
        self,
        model: str = "hash:1",
        *,
        dimension: int = 64,
        local: bool = True,
        alike: Mapping[str, str] | None = None,
    ) -> None:
        self.model = model
        self.dimension = dimension
        self.local = local
        self.alike = dict(alike or {})
        self.fault: EmbedderFault | None = None  # raised instead of an answer
        self.spoil: Callable[[list[list[float]]], object] | None = None  # what becomes of an answer
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str], kind: EmbedKind, deadline: Instant) -> Sequence[Sequence[float]]:
        """One vector for each text."""
        del kind, deadline
        self.asked.append(list(texts))
        if self.fault is not None:
            raise self.fault
        found = [self._vector(text) for text in texts]
        return found if self.spoil is None else self.spoil(found)  # type: ignore[return-value]

    def _vector(self, text: str) -> list[float]:
        out = [0.0] * self.dimension
        for word in words(text):
            digest = hashlib.shake_128(self.alike.get(word, word).encode()).digest(self.dimension)
            out = [one + (byte - 127.5) for one, byte in zip(out, digest, strict=True)]
        return out
