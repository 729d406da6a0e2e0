"""Recall: questions answered from a space, with receipts; at once, or later where the caller prefers that.

What lives here: who answers (a model, or the offline provider), under which budget, and the record of it. What must
never live here: how an answer is found (`recall_run`, `recall_packets`). A recall never writes the log: it leaves one
row in the collection `recall`, which expires (contract §3), and a few counts beside it.

Every answer is fenced by the purge generation it began under: if something was erased meanwhile, the answer may hold
its words, so it is withheld, and its record too, in the same transaction that would have kept it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from core.agents.dialogue import Question, read_question
from core.agents.offline.lines import Line
from core.agents.recall.looking import Nearest
from core.errors import NoemaError
from core.governance import admit
from core.model.elements import Json
from core.model.instants import Instant, format_instant
from core.models.chat import ChatModel, Models
from core.ports import Check, Clock, Row, When, Write
from core.protocol import http_types as wire
from core.protocol.canonical import digest_of
from core.service.callers import standing
from core.service.conversations import CITES, Conversations
from core.service.faults import reading
from core.service.memory_policy import policy_of
from core.service.probes import Probes
from core.service.readers import PrincipalOf, reader_of
from core.service.reading_counts import count, millionths
from core.service.recall_run import (
    Ask,
    Delivered,
    Funded,
    Recalled,
    effective,
    extracted,
    quoted,
)
from core.service.spaces import Spaces
from core.service.standings import STAMP, stamp_of
from core.service.values import Caller
from core.state.space import SpaceState
from core.storage.head import Head
from core.storage.layout import purge_sk, space_pk

if TYPE_CHECKING:  # what few processes need, and what costs each that imports it
    from core.service.ledger import Ledger
    from core.service.recall_packets import Packing
    from core.service.recall_thinking import Thinking
    from core.service.vectors import Vectors

DEADLINE_MS: Final = 25_000  # below the 29 s of API Gateway
EMBEDDING_MS: Final = 2_000  # for embedding a question; after that words alone rank, and the answer says so
RESERVE_MS: Final = 1_500  # of it, to cite and to keep the record in
ERASED: Final = "something was erased while this was answered; ask again"
# Characters of a question on record, so that the record is one row and expires whole.
_KEPT_QUERY: Final = 4000
_KEPT_ANSWER: Final = 100_000
_PAGE_BYTES: Final = 6_000  # of an answer over MCP: below, it is one page
_KEPT_BYTES: Final = 120_000
_LOOKED_BACK: Final = 5  # newest recalls among which the one before is looked for
_CARRIED_MS: Final = 3600 * 1000  # how long an exchange is carried on


class NoModels:
    """Nobody has a model: the offline provider does the work."""

    def of(self, space_id: str, role: str) -> None:
        """None."""


class Epoch(msgspec.Struct, frozen=True):
    """What an answer was begun under."""

    instance: str
    pgen: int

    def stands(self, head: Head) -> bool:
        """Whether nothing was erased since."""
        return (head.instance, head.pgen, head.state) == (self.instance, self.pgen, "active")


class Erased(Exception):  # noqa: N818 - says that an answer must be withheld
    """Something was erased since an answer was begun."""


class Asked(msgspec.Struct, frozen=True):
    """A question as it is answered and kept on record."""

    question: Question
    budget: wire.RecallBudget | None = None

    def record(self, most: int = _KEPT_QUERY) -> Json:
        """What the record says was asked, the query cut at so many characters."""
        question = self.question
        if len(question.query) > most:
            question = msgspec.structs.replace(question, query=question.query[:most] + "…")
        budget = {} if self.budget is None else {"budget": msgspec.to_builtins(self.budget)}
        return {**msgspec.to_builtins(question), **budget}

    @staticmethod
    def of(record: Json) -> Asked:
        """The question of a record that holds it whole.

        Raises:
            msgspec.ValidationError: it is none.
        """
        members = dict(record) if isinstance(record, dict) else {}
        budget = msgspec.convert(members.pop("budget", None), wire.RecallBudget | None)
        return Asked(msgspec.convert(members, Question), budget)


class Ended(msgspec.Struct, frozen=True):
    """An answer, and what it was begun under. packet: what goes with a budgeted one. stamp: of the authority."""

    recalled: Recalled
    epoch: Epoch
    packet: Delivered | None = None
    stamp: str | None = None

    def row(self) -> Row:
        """What a record says of the answer."""
        recalled = self.recalled
        receipt = None if self.packet is None else msgspec.json.encode(self.packet.receipt).decode()
        return {
            "status": "completed" if recalled.failed is None else "failed",
            "failed_reason": recalled.failed,
            "answer": recalled.text[:_KEPT_ANSWER] or None,
            "model": recalled.model,
            "pgen": self.epoch.pgen,
            "delivery": "legacy_trace_only" if receipt is None else "packet",
            "receipt": receipt,
            CITES: " ".join(sorted(recalled.touched)) or None,
            STAMP: self.stamp,
            **{name: number for name, number in msgspec.structs.asdict(recalled.usage).items() if number},
        }

    def counts(self) -> dict[str, int]:
        """What is counted of it."""
        recalled = self.recalled
        told = (
            {"failed": 1} if recalled.failed is not None else {"recalls": 1, "entities": len(recalled.cited)}
        )
        if recalled.uncertainty is not None and recalled.failed is None:
            told |= {"reports": 1, "unsure": millionths(recalled.uncertainty)}
        return told

    def withheld(self) -> Ended:
        """What is answered where something was erased meanwhile."""
        nothing = Recalled(
            text="", found=False, model=self.recalled.model, usage=self.recalled.usage, failed=ERASED
        )
        return Ended(nothing, self.epoch, stamp=self.stamp)


class Recall:
    """Answers questions and probes. Safe to share between threads.

    Args:
        clock: the time.
        spaces: reads.
        conversations: where the record is kept.
        vectors: ranks by meaning too; without it, words alone do.
        models: which model answers for a space; without any, the offline provider does.
        thinking: answers with a model; made when the first one is asked.
        packing: answers within a budget; without it, a budget is refused by name.
        ledger: what a space may spend; without it, nothing is counted or bounded.
        principal_of: who a caller is to the engine.
    """

    def __init__(
        self,
        clock: Clock,
        spaces: Spaces,
        conversations: Conversations,
        vectors: Vectors | None = None,
        *,
        models: Models | None = None,
        thinking: Callable[[], Thinking] | None = None,
        packing: Callable[[], Packing] | None = None,
        ledger: Callable[[], Ledger] | None = None,
        principal_of: PrincipalOf = reader_of,
    ) -> None:
        self._clock = clock
        self._spaces = spaces
        self._conversations = conversations
        self._vectors = vectors
        self._models: Models = NoModels() if models is None else models
        self._ledger = ledger
        self._principal_of = principal_of
        self._thinking = thinking
        self._packing = packing
        self._probes = Probes(clock, spaces, principal_of=principal_of)

    def recall(
        self, caller: Caller, space_id: str, body: wire.RecallInput, *, deadline: Instant | None = None
    ) -> wire.AgentOutput:
        """Answer a question in prose, or with a packet where a budget holds.

        What goes wrong with a model is told in `failed_reason`, beside what there is of an answer.

        Args:
            caller: who asks.
            space_id: the space.
            body: what came over the wire.
            deadline: when the answer must be there (ms).

        Raises:
            NoemaError: `InvalidInput`, `PayloadTooLarge`, `NotImplementedYet` for a budget without a tokenizer,
                `NotFoundOrNotVisible`, `ServiceUnavailable`.
        """
        ended, number = self._answered(caller, space_id, body, deadline)
        return output_of(ended, number)

    def recall_structured(
        self, caller: Caller, space_id: str, body: wire.RecallInput, *, deadline: Instant | None = None
    ) -> wire.RecallOutput:
        """Answer a question with its citations.

        Raises:
            NoemaError: as `recall`.
        """
        ended, number = self._answered(caller, space_id, body, deadline)
        return structured_of(ended, number, space_id)

    def probe(self, space_id: str, body: wire.ProbeInput, caller: Caller | None = None) -> wire.ProbeOutput:
        """Whether there is anything, as `Probes.probe`."""
        return self._probes.probe(space_id, body, caller)

    def _answered(
        self, caller: Caller, space_id: str, body: wire.RecallInput, deadline: Instant | None
    ) -> tuple[Ended, int | None]:
        asked = Asked(read_question(body), body.budget)
        until = (self._clock.now() + DEADLINE_MS if deadline is None else deadline) - RESERVE_MS
        ended = self.answer(caller, space_id, asked, until)
        return self._keep(caller, space_id, asked, ended)

    def answer(self, caller: Caller, space_id: str, asked: Asked, until: Instant) -> Ended:
        """The answer to a question, not yet on record.

        Raises:
            NoemaError: as `recall`.
        """
        with reading():
            head, state = self._spaces.read_current(space_id)
        stamp = stamp_of(standing(caller, state, self._clock.now()))
        ended = self._found(caller, space_id, asked, until, head=head, state=state, stamp=stamp)
        return ended if stamp is None else msgspec.structs.replace(ended, stamp=stamp)

    def _found(
        self,
        caller: Caller,
        space_id: str,
        asked: Asked,
        until: Instant,
        *,
        head: Head,
        state: SpaceState,
        stamp: str | None,
    ) -> Ended:
        """The answer on one state."""
        policy = policy_of(state.meta)
        budget = effective(asked.budget, policy.recall_budget)
        model = self._models.of(space_id, "recall")
        epoch = Epoch(head.instance, head.pgen)
        now = self._clock.now()
        ask = Ask(
            space_id,
            asked.question,
            admit(self._principal_of(caller), state.meta, state, now),
            head,
            state,
            now,
            until,
            rounds=policy.recall_max_rounds,
            nearest=self._nearest(state, now),
        )
        if budget is not None:
            if self._packing is None:
                raise _no_budgets()
            packet = self._packing().deliver(
                ask, budget, None if model is None else self._funded(space_id, model)
            )
            return Ended(packet.recalled, epoch, packet)
        if model is None or self._thinking is None:
            return Ended(extracted(quoted(ask)), epoch)
        earlier = self._earlier(caller, space_id, asked.question, epoch, stamp)
        ask = msgspec.structs.replace(ask, earlier=earlier)
        return Ended(self._thinking().think(ask, self._funded(space_id, model)), epoch)

    def _funded(self, space_id: str, model: ChatModel) -> Funded:
        if self._ledger is None:
            return Funded(model)
        ledger = self._ledger()
        return Funded(model, ledger.allowance(space_id, "recall", model), ledger.run_limits(space_id, model))

    def _nearest(self, state: SpaceState, now: Instant) -> Nearest | None:
        vectors = self._vectors
        if vectors is None or vectors.model is None:
            return None
        return lambda text: vectors.nearest(state, text, deadline=now + EMBEDDING_MS)

    def _earlier(
        self, caller: Caller, space_id: str, question: Question, epoch: Epoch, stamp: str | None
    ) -> tuple[str, str] | None:
        """The exchange before: the same caller's, in the same thread, lately, and under the same epoch."""
        if caller.kind == "anonymous" or question.context.source is None:
            return None
        since = self._clock.now() - _CARRIED_MS
        for record in self._conversations.newest(space_id, "recall", _LOOKED_BACK):
            row, body = record.row, record.body
            same = (row.get("user"), row.get("instance"), row.get("pgen"), row.get("thread"), row.get(STAMP)) == (
                caller.subject, epoch.instance, epoch.pgen, question.context.source, stamp,
            )  # fmt: skip
            answer = record.text("answer")
            if same and answer and record.status == "completed" and record.count("created") >= since:
                return (str(body.get("query", "")), answer) if isinstance(body, dict) else None
        return None

    # --- the record

    def kept(self, caller: Caller, space_id: str, number: int) -> wire.RecallOutput | None:
        """An answer as it was given to this caller, if its record has it whole.

        Raises:
            NoemaError: `ServiceUnavailable`, or `NotFoundOrNotVisible` if the space is gone.
        """
        self._spaces.head(space_id)
        try:
            record = self._conversations.record(space_id, "recall", number, caller=caller)
        except NoemaError as error:
            if error.code != "NotFoundOrNotVisible":
                raise
            return None
        told = record.text("result")
        mine = record.text("user") == caller.subject
        if told is None or not mine:
            return None
        output = msgspec.json.decode(told, type=wire.RecallOutput)
        return msgspec.structs.replace(output, conversation=number)

    def guard(self, space_id: str, epoch: Epoch) -> Write:
        """What a transaction needs beside an answer: that nothing was erased since it was begun.

        An erasure writes its row together with HEAD, so that row's absence says so; it is asked for instead of HEAD,
        which every commit changes and a recall must not stand in the way of.

        Raises:
            Erased: something was.
        """
        if not epoch.stands(self._spaces.read_head(space_id)):
            raise Erased
        return Check(space_pk(space_id), purge_sk(epoch.pgen + 1), When(absent=True))

    def count(self, space_id: str, ended: Ended) -> None:
        """Count an answer."""
        count(self._spaces.table, space_id, ended.epoch.instance, self._clock.now(), ended.counts())

    def _keep(self, caller: Caller, space_id: str, asked: Asked, ended: Ended) -> tuple[Ended, int | None]:
        """Keep the question and its answer as a conversation of the collection `recall`.

        An anonymous reader of a public space writes nothing, this record included: reading must not cost the owner
        a row, and nobody could be asked about it.
        """
        if caller.kind == "anonymous":
            return (ended if ended.epoch.stands(self._spaces.head(space_id)) else ended.withheld()), None
        try:
            number = self._note(caller, space_id, asked, ended, guarded=True)
            if number is None and not ended.epoch.stands(self._spaces.head(space_id)):
                ended = ended.withheld()
        except Erased:
            ended = ended.withheld()
            number = self._note(caller, space_id, asked, ended, guarded=False)
        self.count(space_id, ended)
        return ended, number

    def _note(
        self, caller: Caller, space_id: str, asked: Asked, ended: Ended, *, guarded: bool
    ) -> int | None:
        row: Row = {**ended.row(), "thread": asked.question.context.source}
        if caller.channel == "mcp":
            row["result"] = _paged(ended, space_id)
        also = (lambda _: [self.guard(space_id, ended.epoch)]) if guarded else None
        return self._conversations.note(caller, space_id, "recall", asked.record(), row, also=also)


def _paged(ended: Ended, space_id: str) -> str | None:
    """An answer that is too long to be given at once, as its record keeps it for the pages that follow."""
    told = msgspec.json.encode(structured_of(ended, None, space_id)).decode()
    return told if _PAGE_BYTES < len(told) <= _KEPT_BYTES else None


def output_of(ended: Ended, number: int | None) -> wire.AgentOutput:
    """An answer in prose, as the wire has it."""
    recalled = ended.recalled
    return wire.AgentOutput(
        content=recalled.text,
        conversation=number,
        model=recalled.model,
        usage=recalled.usage,
        failed_reason=recalled.failed,
        warnings=() if recalled.degraded is None else (f"dense: {recalled.degraded}",),
    )


def structured_of(ended: Ended, number: int | None, space_id: str) -> wire.RecallOutput:
    """An answer with its citations, as the wire has it. A packet goes without any: its items are its receipts."""
    recalled, packet = ended.recalled, ended.packet
    handle = None
    if packet is not None and number is not None:
        scope = wire.ReceiptScope(space_id=space_id, space_instance=ended.epoch.instance)
        handle = wire.RecallReceipt(id=f"recall-{number}", digest=digest_of(packet.receipt), scope=scope)
    return wire.RecallOutput(
        answer=recalled.text,
        found=recalled.found,
        uncertainty=recalled.uncertainty,
        memories=tuple(map(_citation, recalled.cited)),
        conversation=number,
        usage=recalled.usage,
        model=recalled.model,
        failed_reason=recalled.failed,
        degraded=recalled.degraded,
        memory_budget=None if packet is None else packet.budget,
        recall_receipt=handle,
    )


def _no_budgets() -> NoemaError:
    return NoemaError(
        "NotImplementedYet",
        "a recall budget is not available in this deployment: it has no tokenizer to count with",
        hint="Leave `budget` out, or install the tokenizer.",
        details={"member": "budget"},
    )


def _citation(line: Line) -> wire.Memory:
    return wire.Memory(
        entity=line.entity,
        type=line.kind,
        name=f"{line.speaker}: {line.text}" if line.speaker else line.text,
        confidence=line.confidence,
        source=line.source,
        created_at=format_instant(line.at),
    )
