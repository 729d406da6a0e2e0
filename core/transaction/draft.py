"""`Draft`: one transaction being written, from its start state to the delta it commits as (KIP §32).

Every write path of the product (KML, formation, facts, maintenance, management) writes through a Draft, so the
rules that no path may break live here: ids and versions are assigned once, an element moves one version step
per transaction however often it is touched (KIP §35.5), reads see the transaction's own writes (KIP §32.6),
and a transaction that changed nothing commits nothing (KIP §32.8). What a change *means* (may this Assertion be
superseded, does this value fit its schema) is decided above; here it is only recorded.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from core.errors import NoemaError
from core.governance.control import control_of, is_governed
from core.governance.labelling import raise_labels
from core.model.elements import (
    KIND_OF_TYPE,
    AnyElement,
    Concept,
    Element,
    Origin,
    Proposition,
    System,
)
from core.model.ids import MAX_ORDINAL, Kind, element_id, transaction_id
from core.model.instants import Instant
from core.model.literals import Ref, Term
from core.model.log import Change, Delta, SpaceMeta, TransactionClass
from core.state.indexes import client_key, concept_key, tuple_key
from core.state.layer import Layer
from core.state.space import SpaceState

MAX_ELEMENT_BYTES: Final = 256 * 1024


class Draft:
    """Tentative writes over `state`. Not shared, not reused: one Draft, one attempt at one commit.

    Args:
        state: the start snapshot; it stays as it is.
        now: the commit's time (ms), the same for everything the transaction writes.
        origin: who the transport authenticated, and the channel.
        transaction_class: `management` and `erasure` commits do not move `space_seq` by themselves.
    """

    def __init__(
        self,
        state: SpaceState,
        *,
        now: Instant,
        origin: Origin,
        transaction_class: TransactionClass = "cognitive",
    ) -> None:
        self.state = state
        self.now = now
        self.origin = origin
        self.transaction_class = transaction_class
        self.version = state.ver + 1
        self.meta = state.meta
        self.tx_id = transaction_id(self.version, state.meta.salt)
        self.view = Layer(state)  # what the transaction sees: its own writes over the start snapshot
        self._before: dict[str, AnyElement | None] = {}
        self._ordinal = 0

    # --- reading

    def get(self, element: str) -> AnyElement | None:
        """The element as this transaction sees it, or None."""
        return self.view.get(element)

    def before(self, element: str) -> AnyElement | None:
        """The element as it was when the transaction began, or None."""
        return self.state.get(element)

    def canonical(self, concept: str) -> str:
        """The id a Concept resolves to after merges: `merged_into` followed to its end (KIP §11.1)."""
        seen = concept
        while True:
            found = self.get(seen)
            if not isinstance(found, Concept) or found.merged_into is None:
                return seen
            seen = found.merged_into

    def find_concept(self, schema_ref: str, key: str) -> Concept | None:
        """The Concept with this key within its type (KIP §7.3), whatever its state."""
        for found in self.view.find(concept_key(schema_ref, key)):
            element = self.get(found)
            if isinstance(element, Concept) and element.key == key and element.schema_ref == schema_ref:
                return element
        return None

    def find_proposition(self, subject: str, predicate_ref: str, obj: Term) -> Proposition | None:
        """The Proposition with exactly this tuple (KIP §12.3), whatever its state."""
        for found in self.view.find(tuple_key(subject, predicate_ref, obj)):
            element = self.get(found)
            if (
                isinstance(element, Proposition)
                and element.subject == subject
                and element.predicate_ref == predicate_ref
                and element.object == obj
            ):
                return element
        return None

    def find_client_key(self, kind: Kind, key: str) -> AnyElement | None:
        """The element of a kind created under this client key (KIP §7.5)."""
        for found in self.view.find(client_key(kind, key)):
            element = self.get(found)
            if element is not None and element.client_key == key:
                return element
        return None

    # --- writing

    def create[E: Element](
        self, cls: type[E], **fields: Any
    ) -> E:  # the fields are checked by msgspec's type
        """Write a new element at version 1 and return it; `id` and `system` are assigned here."""
        return self.create_as(self.reserve(KIND_OF_TYPE[cls]), cls, **fields)

    def reserve(self, kind: Kind) -> str:
        """An id for an element that `create_as` writes later in this transaction (forward references)."""
        if self._ordinal > MAX_ORDINAL:
            raise NoemaError(
                "TransactionTooLarge", f"one transaction creates at most {MAX_ORDINAL + 1} elements"
            )
        new_id = element_id(kind, self.version, self._ordinal, self.meta.salt)
        self._ordinal += 1
        return new_id

    def create_as[E: Element](self, new_id: str, cls: type[E], **fields: Any) -> E:  # as `create`
        """Write a new element under an id that `reserve` gave."""
        system = System(
            version=1,
            created_at=self.now,
            updated_at=self.now,
            created_tx=self.tx_id,
            updated_tx=self.tx_id,
            origin=self.origin,
        )
        element = cls(id=new_id, system=system, **fields)
        self._write(element)
        return element

    def change[E: Element](self, element: E, **fields: Any) -> E:  # the fields are checked by msgspec's type
        """Write an element with some fields changed, and return it as it now is.

        The version moves once per transaction, and not at all if nothing differs from the start (KIP §32.8).
        `state=` changes the engine state inside `system`; `system` itself cannot be given.
        """
        current = self.get(element.id)
        if current is None or type(current) is not type(element):
            raise NoemaError("NotFoundOrNotVisible", "the element to change does not exist")
        state = fields.pop("state", current.system.state)
        start = self.before(element.id)
        changed = msgspec.structs.replace(current, **fields)
        base = current.system if start is None else start.system
        same = msgspec.structs.replace(changed, system=msgspec.structs.replace(base, state=state))
        if start is not None and same == start:
            self._write(start)
            return start
        system = msgspec.structs.replace(
            base,
            state=state,
            version=base.version if start is None else base.version + 1,
            updated_at=self.now,
            updated_tx=self.tx_id,
        )
        written = msgspec.structs.replace(changed, system=system)
        self._write(written)
        return written

    def ensure_proposition(self, subject: str, predicate_ref: str, obj: Term) -> Proposition:
        """The one Proposition of a tuple, created if it is not there (KIP §12.4); merged ends canonicalize."""
        subject = self.canonical(subject)
        if isinstance(obj, Ref):
            obj = Ref(self.canonical(obj.id))
        found = self.find_proposition(subject, predicate_ref, obj)
        if found is None:
            return self.create(Proposition, subject=subject, predicate_ref=predicate_ref, object=obj)
        return found

    def ensure_concept(self, schema_ref: str, key: str, **fields: Any) -> Concept:
        """The Concept with this key within its type, canonical, created with `fields` if it is not there."""
        found = self.find_concept(schema_ref, key)
        if found is None:
            return self.create(Concept, schema_ref=schema_ref, key=key, **fields)
        survivor = self.get(self.canonical(found.id))
        return survivor if isinstance(survivor, Concept) else found

    def set_meta(self, **fields: Any) -> SpaceMeta:
        """Change the space's protected state; the caller has authorised it."""
        self.meta = msgspec.structs.replace(self.meta, **fields)
        return self.meta

    def _write(self, element: AnyElement | Element) -> None:
        known: AnyElement = element  # type: ignore[assignment]  # Element's only subclasses are the five kinds
        if len(msgspec.msgpack.encode(known)) > MAX_ELEMENT_BYTES:
            raise NoemaError(
                "TransactionTooLarge",
                f"an element may take at most {MAX_ELEMENT_BYTES} bytes",
                details={"limit_bytes": MAX_ELEMENT_BYTES},
                hint="Keep long texts outside and cite them by reference, or split them.",
            )
        self._before.setdefault(known.id, self.state.get(known.id))
        self.view.put(known)

    # --- the end

    def changes(self) -> list[Change]:
        """What the transaction has changed so far, in order of first touch."""
        out = []
        for element, before in self._before.items():
            now = self.view.get(element)
            if now is None or now == before:
                continue
            op: Any = "created" if before is None else "purged" if now.system.state == "purged" else "updated"
            out.append(Change(id=element, op=op, version=now.system.version))
        return out

    def finish(self, record: dict[str, Any] | None = None) -> Delta | None:
        """The delta to commit, or None if durable state is unchanged (KIP §32.8).

        Args:
            record: Commit Record fields to keep with it (KIP §33.1), JSON values.
        """
        if is_governed(
            self.meta
        ):  # whichever path wrote: what is made from restricted material is as restricted
            control = control_of(self.meta)
            assert control is not None, "a governed space has records"
            raise_labels(self, list(self._before.items()), control.policy)
        changes = self.changes()
        meta = self.meta if self.meta != self.state.meta else None
        if not changes and meta is None:
            return None
        # KIP §20.8, §35.4: a change of the environment is a transition of the space like any other, so that the
        # past has one order; name, tier and the like are the host's bookkeeping and stand outside it.
        moves = bool(changes) or self.meta.schema != self.state.meta.schema
        puts = tuple(element for change in changes if (element := self.view.get(change.id)) is not None)
        return Delta(
            ver=self.version,
            seq=self.state.seq + moves,
            snapshot_seq=self.state.seq,
            tx_id=self.tx_id,
            at=self.now,
            origin=self.origin,
            transaction_class=self.transaction_class,
            puts=puts,
            meta=meta,
            record=record or {},
        )
