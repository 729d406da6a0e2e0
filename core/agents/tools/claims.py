"""What an Assertion of a model must be like: who says it, on what it rests, and when it was said.

What lives here: those rules, for ASSERT and for CREATE ASSERTION alike. What must never live here: whether what is
said is so. What was stated is attributed to whoever said a message it cites, so that no message can put words into
somebody else's mouth; what is inferred is the reader's own. When it was said is the message's time: the host knows
it, and a model would guess.
"""

from __future__ import annotations

from typing import Final

import msgspec

from core.agents.tools.terms import Block, Captured, refuse, text_of
from core.language import ast
from core.language.ast_kml import Assert, Content, CreateRecord, StructuralAssignment
from core.model.elements import Assertion, ValidTime
from core.model.instants import Instant, format_instant, parse_instant
from core.state.indexes import assertions_key, tuple_key

SAID: Final = frozenset({"stated", "observed"})
THOUGHT: Final = frozenset({"inferred", "predicted", "hypothetical"})


class _Claim(msgspec.Struct, frozen=True):
    """The parts of an Assertion that the rules look at."""

    by: object
    mode: object
    evidence: tuple[object, ...]


class OnRecord(Exception):  # noqa: N818 - a signal, not a failure: there is nothing left to do
    """A claim stands already, as the Assertion of this id, from the same message."""

    def __init__(self, element: str) -> None:
        self.element = element
        super().__init__(element)


def settle_assert(
    clause: Assert, messages: tuple[Captured, ...], reader: str, said_at: Instant, block: Block
) -> Assert:
    """An ASSERT that keeps the rules, dated.

    Raises:
        OnRecord: this conversation was read before, and the claim was made then.
        NoemaError: which rule it breaks, and how to keep it.
    """
    cited = clause.evidence.items if isinstance(clause.evidence, ast.Array) else (clause.evidence,)
    claim = _Claim(clause.by, clause.mode, tuple(node for node in cited if node is not None))
    at, speaker = _check(claim, messages, reader, said_at, block)
    _check_new(clause, speaker, [block.element(node) for node in claim.evidence], block)
    return msgspec.structs.replace(clause, at=ast.Literal(value=format_instant(at)))


def settle_record(
    clause: CreateRecord, messages: tuple[Captured, ...], reader: str, said_at: Instant, block: Block
) -> CreateRecord:
    """A CREATE ASSERTION that keeps the rules, dated.

    Raises:
        NoemaError: as `settle_assert`.
    """
    content = clause.content
    fields = content.fields or ast.Object()
    cited = tuple(item.target for item in content.structural if _is_evidence(item))
    claim = _Claim(fields.get("asserted_by"), fields.get("mode"), cited)
    at, _ = _check(claim, messages, reader, said_at, block)
    dated = ast.Member(name="asserted_at", value=ast.Literal(value=format_instant(at)))
    members = (*(member for member in fields.members if member.name != "asserted_at"), dated)
    settled: Content = msgspec.structs.replace(
        content, fields=msgspec.structs.replace(fields, members=members)
    )
    return msgspec.structs.replace(clause, content=settled)


def _is_evidence(item: StructuralAssignment) -> bool:
    return str(text_of(item.field)).rpartition("/")[2] == "evidence"


def _check(
    claim: _Claim, messages: tuple[Captured, ...], reader: str, said_at: Instant, block: Block
) -> tuple[Instant, str]:
    """When a claim was made, and by whom."""
    mode, by = text_of(claim.mode), block.element(claim.by)
    if mode not in SAID | THOUGHT:
        raise refuse("`mode` must be written out", allowed=sorted(SAID | THOUGHT))
    cited = {block.element(node) for node in claim.evidence}
    said = [message for message in messages if cited.intersection(message.all)]
    if mode in THOUGHT:
        if by != reader:
            raise refuse(f"what is {mode} is your own: write `by: :self`")
        return max((message.said_at for message in said), default=said_at), reader
    if not said:
        raise refuse(
            "what is stated or observed cites the message that says it: `evidence: :msg1` or another"
        )
    speakers = {message.speaker for message in said}
    if by is None or by not in speakers:
        raise refuse(
            "a claim is made by who said the message it cites; what they say of others is still theirs",
            hint="Write `by:` the :whoN of that message. What follows from it without being said is inferred, by :self.",
            speakers=sorted(speakers),
        )
    return max(message.said_at for message in said if message.speaker == by), by


def _check_new(clause: Assert, speaker: str, cited: list[str | None], block: Block) -> None:
    """Whether the claim is on record already from the same message."""
    subject, obj = block.element(clause.tuple.subject), block.term(clause.tuple.object)
    ref = block.ref("predicate", str(text_of(clause.tuple.predicate)))
    if subject is None or obj is None or ref is None:
        return
    view, stance = block.view, text_of(clause.stance) or "support"
    for about in view.find(tuple_key(subject, ref, obj)):
        for element in view.find(assertions_key(about)):
            found = block.get(element)
            if (
                isinstance(found, Assertion)
                and found.asserted_by == speaker
                and found.stance == stance
                and any(citation.evidence in cited for citation in found.evidence)
                and found.valid_time == _valid(clause.valid)
            ):
                raise OnRecord(found.id)


def _valid(node: object) -> ValidTime | None:
    """The interval as it is stored, or None where it is not written out."""
    if node is None:
        return ValidTime()
    if not isinstance(node, ast.Object):
        return None
    try:
        ends = [
            None if (text := text_of(node.get(name))) is None else parse_instant(text)
            for name in ("from", "until")
        ]
    except ValueError:
        return None
    return ValidTime(*ends)
