"""Forgetting: elements named by a caller, and what could not stand without them, are erased physically.

What lives here: what goes with an element, and the report for each one named. What must never live here: the
erasing itself (`core.service.erasure`). A Proposition cannot stand without the Concepts it relates, nor an
Assertion without its Proposition, so these go too; Evidence and Activities go only when named. Transcripts of
conversations are not memory elements: they are erased where the caller names them. Recalls whose answers rest on what
is forgotten go with it, as with every erasure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from core.authority import Principal, authorize
from core.errors import NoemaError
from core.model.elements import AnyElement, Concept, Proposition
from core.model.ids import Kind, is_element_id, kind_of
from core.model.literals import Ref
from core.protocol.http_types import ForgetInput, ForgetReport, Forgotten
from core.service.callers import seen, standing
from core.service.conversation_record import Record
from core.service.erasure import MAX_IDS, Erasures
from core.service.faults import reading
from core.service.spaces import Spaces
from core.service.standings import Standings, shown_to
from core.service.values import Caller
from core.state.indexes import assertions_key, object_key, subject_key
from core.state.space import SpaceState
from core.storage.layout import conversation_sk, space_pk

_PLURAL: Final[dict[Kind, str]] = {
    "concept": "deleted_concepts",
    "proposition": "deleted_propositions",
    "assertion": "deleted_assertions",
    "evidence": "deleted_evidence",
    "activity": "deleted_activities",
}


class Forgetting:
    """The use case behind `POST /v1/{space}/memory/forget`."""

    def __init__(self, spaces: Spaces, erasures: Erasures) -> None:
        self._spaces = spaces
        self._erasures = erasures

    def forget(self, caller: Caller, space_id: str, wish: ForgetInput, *, owner: str) -> ForgetReport:
        """Erase what is named, or with `dry_run` only say what that would be.

        Args:
            caller: who asks; recorded in the receipt.
            space_id: the space.
            wish: element ids and conversations.
            owner: names this run, uniquely.

        Raises:
            NoemaError: `Busy` while maintenance runs, `ResourceExhausted` if too much hangs on what is named,
                `NotFoundOrNotVisible`, `ServiceUnavailable`; what is wrong with one element stands in its entry.
        """
        with reading():
            head, state = self._spaces.read_current(space_id)
        if head.lease_until("maintenance") > self._spaces.clock.now():
            raise NoemaError("Busy", "maintenance is running", retry_after_ms=5000)
        who = standing(caller, state, self._spaces.clock.now())
        entries = [_entry(state, name, who) for name in dict.fromkeys(wish.entities)]
        closure = _closure(
            state, [entry.entity for entry in entries if entry.existed and entry.error is None]
        )
        _check_closure(state, closure, who)
        conversations = tuple(dict.fromkeys(self._theirs(space_id, wish.conversations, caller)))
        if not wish.dry_run and (closure or conversations):
            receipt = self._erasures.erase(
                space_id,
                sorted(closure),
                caller.subject,
                owner=owner,
                conversations=[("formation", number) for number in conversations],
            )
            if not receipt.clean:
                raise NoemaError(
                    "InternalError",
                    "the erasure ran, but its scan still found traces",
                    details={"erasure": receipt.pgen, "found": len(receipt.found)},
                )
        counts = Counter(_PLURAL[kind_of(found)] for found in closure)
        return ForgetReport(
            dry_run=wish.dry_run,
            entities=tuple(entries),
            **{name: counts[name] for name in _PLURAL.values()},
        )

    def _theirs(self, space_id: str, numbers: Sequence[int], caller: Caller) -> Sequence[int]:
        """Those of some conversations that exist for the caller; the others are passed over as if there were none."""
        shown = shown_to(
            Standings(self._spaces, self._spaces.clock).of(space_id, caller), caller, "formation"
        )
        if shown is None or not numbers:
            return numbers
        pk = space_pk(space_id)
        with reading():
            rows = {each: self._spaces.table.get(pk, conversation_sk("formation", each)) for each in numbers}
        return [
            each for each, row in rows.items() if row is not None and shown(Record(each, row)) is not None
        ]


def _check_closure(state: SpaceState, closure: set[str], who: Principal | None) -> None:
    """Refuse to erase what hangs on what is named, where that may not be; it names and counts none of it.

    Raises:
        NoemaError: NotAuthorized.
    """
    for element in (state.get(each) for each in closure if who is not None):
        if who is None or element is None:
            continue
        try:
            authorize(who, "purge", element)
        except NoemaError as error:
            raise NoemaError(
                "NotAuthorized",
                "something that hangs on what is named may not be erased by you",
                details={"permissions": ["purge"]},
            ) from error


def _entry(state: SpaceState, name: str, who: Principal | None) -> Forgotten:
    if not is_element_id(name):
        return Forgotten(entity=name[:128], existed=False, error="not the id of an element")
    element = seen(who, state.get(name))
    if element is None:
        return Forgotten(entity=name, existed=False)
    if who is not None:
        try:
            authorize(who, "purge", element)
        except NoemaError as error:
            return Forgotten(entity=name, existed=True, error=error.message)
    held = "a legal hold keeps it" if element.retention.legal_hold else None
    return Forgotten(entity=name, existed=True, error=held)


def _closure(state: SpaceState, named: list[str]) -> set[str]:
    """What is named, and what cannot stand without it.

    Raises:
        NoemaError: `ResourceExhausted` above the bound of one erasure; `LegalHoldConflict` on what must go too.
    """
    found: set[str] = set()
    waiting = list(named)
    while waiting:
        current = waiting.pop()
        element = state.get(current)
        if current in found or element is None:
            continue
        if element.retention.legal_hold:
            raise NoemaError(
                "LegalHoldConflict", "a legal hold keeps what would go with it", details={"id": current}
            )
        found.add(current)
        if len(found) > MAX_IDS:
            raise NoemaError(
                "ResourceExhausted",
                f"more than {MAX_IDS} elements hang on what is named",
                hint="Forget its claims first, in smaller parts.",
                details={"limit": MAX_IDS},
            )
        waiting.extend(_dependents(state, element))
    return found


def _dependents(state: SpaceState, element: AnyElement) -> list[str]:
    if isinstance(element, Proposition):
        return list(state.find(assertions_key(element.id)))
    if isinstance(element, Concept):
        touching = {*state.find(subject_key(element.id)), *state.find(object_key(Ref(element.id)))}
        return [found for found in touching if _relates(state, found, element.id)]
    return []


def _relates(state: SpaceState, proposition: str, concept: str) -> bool:
    element = state.get(proposition)  # index entries are candidates: the element decides
    return isinstance(element, Proposition) and (element.subject == concept or element.object == Ref(concept))
