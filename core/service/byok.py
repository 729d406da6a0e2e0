"""A space's own model ("bring your own key"): setting it, reading it without its key, and using it.

What lives here: the row and its rules. What must never live here: a key in the clear, except on its way into the
cipher and out of it to the provider; it is in no log, no error and no answer.

The sealed key stands in a row of the space, so it is erased with the space, and it opens only for this life of this
space and the address it was given for: copied into another row, or beside another address, it is worth nothing.
Whoever may change the address without knowing the key could else have it sent to a host of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from threading import Lock
from typing import Any, Final

import msgspec
from msgspec import UNSET

from core.errors import NoemaError
from core.model.instants import Instant
from core.models.chat import ChatModel
from core.models.choice import ModelChoice, Providers, make_choice
from core.ports import (
    Check,
    Cipher,
    Clock,
    Delete,
    Put,
    Refused,
    Row,
    StoreFault,
    Table,
    Unavailable,
    When,
    Write,
)
from core.protocol.byok_types import ByokInput, ByokView
from core.service.faults import RETRY_AFTER_MS, reading
from core.service.rows import number_in
from core.service.spaces import Spaces
from core.service.values import Caller
from core.storage.layout import HEAD, byok_sk, space_pk

FRESH_MS: Final = 30_000
"""How long a container remembers that a space brings no model. One that is there is looked at before each use, so
that a key that was taken away, or belonged to an earlier life of the space, is never used again."""
MAX_KEPT: Final = 1000  # spaces whose own model, or lack of one, is remembered
_SHOWN: Final = 4
_SHOWN_FROM: Final = 20  # characters; of a shorter key four would be too much


class OwnModel(msgspec.Struct, frozen=True):
    """A space's own model, opened."""

    choice: ModelChoice
    model: ChatModel


class _Kept(msgspec.Struct, frozen=True):
    """What a container knows of a space: when it looked, at which state of the row, and the model."""

    at: Instant
    seen: tuple[Any, Any] | None  # values of a row
    own: OwnModel | None


class Byok:
    """The models of spaces that bring their own. Safe to share between threads.

    Args:
        table: the port.
        clock: the time.
        spaces: to know whether a space is there.
        cipher: seals keys; None where the deployment has none, and nothing can be brought.
        providers: builds models.
    """

    def __init__(
        self, table: Table, clock: Clock, spaces: Spaces, cipher: Cipher | None, providers: Providers
    ) -> None:
        self._table = table
        self._clock = clock
        self._spaces = spaces
        self._cipher = cipher
        self._providers = providers
        self._kept: dict[str, _Kept] = {}
        self._lock = Lock()

    # --- for owners

    def view(self, space_id: str) -> ByokView:
        """The setting, without its key.

        Raises:
            NoemaError: `NotFoundOrNotVisible`, `ServiceUnavailable`.
        """
        with reading():
            head = self._spaces.head(space_id)
            row = self._row(space_id, head.instance)
        return _view(row)

    def update(self, caller: Caller, space_id: str, wish: ByokInput) -> ByokView:
        """Set, change or take away a space's own model.

        Raises:
            NoemaError: `InvalidInput`, naming the member; `NotImplementedYet` for members that are not offered, or
                where the deployment has no cipher; `NotFoundOrNotVisible`; `SerializationConflict`;
                `OutcomeUnknown`; `ServiceUnavailable`.
        """
        if self._cipher is None:
            raise NoemaError(
                "NotImplementedYet",
                "this deployment cannot keep keys",
                hint="The operator sets NOEMA_KMS_KEY, or NOEMA_STORE=embedded.",
            )
        _check_offered(wish)
        with reading():
            head = self._spaces.head(space_id)
            before = self._row(space_id, head.instance)
        pk, sk = space_pk(space_id), byok_sk()
        alive = Check(pk, HEAD, When(equals={"state": "active", "instance": head.instance}))
        seen = When(absent=True) if before is None else When(equals={"updated_at": before["updated_at"]})
        if wish.api_key is None:
            self._write([alive, Delete(pk, sk)], space_id)
            return _view(None)
        row = self._changed(caller, space_id, head.instance, before or {}, wish)
        self._write([alive, Put(pk, sk, row, seen)], space_id)
        return _view(row)

    def _changed(self, caller: Caller, space_id: str, instance: str, before: Row, wish: ByokInput) -> Row:
        """The row after a change."""
        given: dict[str, Any] = {
            name: value for name in _MEMBERS if (value := getattr(wish, name)) is not UNSET
        }
        row: Row = {**before, **given}
        for name in ("family", "model"):
            if name not in row:
                raise _invalid(name, f"{name} is needed to set a model")
        try:
            choice = make_choice(row["family"], str(row["model"]), str(row.get("api_base") or ""))  # type: ignore[arg-type]  # one of ModelFamily
            self._providers.model(choice, lambda: None, trusted=False)  # built, so that it is known to be one
        except ValueError as error:
            raise _invalid("api_base" if "URL" in str(error) else "model", str(error)) from error
        row["api_base"] = choice.base_url
        moved = any(before.get(name) != row.get(name) for name in ("family", "api_base"))
        if isinstance(wish.api_key, str):
            key = wish.api_key
            context = _context(space_id, instance, choice)
            row["sealed"] = self._sealing(lambda cipher: cipher.seal(key.encode(), context))
            row["end"] = key[-_SHOWN:] if len(key) >= _SHOWN_FROM else None
        elif moved:
            raise _invalid("api_key", "api_key must come along: a stored key goes to no other address")
        now = self._clock.now()
        # So that each change can be told from the last.
        changed_at = max(now, number_in(before, "updated_at") + 1)
        return {**row, "instance": instance, "updated_at": changed_at, "updated_by": caller.subject}

    def _write(self, writes: list[Write], space_id: str) -> None:
        try:
            self._table.transact(writes)
        except Refused as refused:
            if 0 in refused.failed:
                raise NoemaError("NotFoundOrNotVisible", "there is no such space") from refused
            raise NoemaError("SerializationConflict", "another change of the model was faster") from refused
        except Unavailable as fault:
            raise NoemaError(
                "OutcomeUnknown",
                "the store did not say whether the model was changed",
                hint="Read the setting, and change it again if need be.",
            ) from fault
        finally:
            self.forget(space_id)

    # --- for runs

    def current(self, space_id: str) -> OwnModel | None:
        """The space's own model, if it has one and uses it.

        Raises:
            NoemaError: `ServiceUnavailable` if its key cannot be opened: nobody else's key is used in its place.
        """
        now = self._clock.now()
        with self._lock:
            kept = self._kept.get(space_id)
        if kept is not None and kept.own is None and now - kept.at < FRESH_MS:
            return None
        with reading():
            row = self._table.get(space_pk(space_id), byok_sk())
        seen = None if row is None else (row["instance"], row["updated_at"])
        if kept is not None and kept.own is not None and kept.seen == seen:
            return kept.own
        own = None if row is None or row.get("disabled") else self._opened(space_id, row)
        with self._lock:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            self._kept[space_id] = _Kept(now, seen, own)
        return own

    def has_own(self, space_id: str) -> bool:
        """Whether the space pays its model itself."""
        return self.current(space_id) is not None

    def forget(self, space_id: str) -> None:
        """Read the setting anew when it is next needed."""
        with self._lock:
            self._kept.pop(space_id, None)

    def _opened(self, space_id: str, row: Row) -> OwnModel:
        sealed = row["sealed"]
        assert isinstance(sealed, bytes)
        made = make_choice(row["family"], str(row["model"]), str(row["api_base"]))  # type: ignore[arg-type]  # one of ModelFamily
        context = _context(space_id, str(row["instance"]), made)
        key = self._sealing(lambda cipher: cipher.open(sealed, context)).decode()
        choice = msgspec.structs.replace(
            made,
            context_tokens=number_in(row, "context_window"),
            max_output=number_in(row, "max_output"),
            bearer=row.get("bearer_auth") is True,
        )
        return OwnModel(choice, self._providers.model(choice, lambda: key, trusted=False))

    def _sealing(self, do: Callable[[Cipher], bytes]) -> bytes:
        if self._cipher is None:
            raise _unopened()
        try:
            return do(self._cipher)
        except Unavailable as fault:
            raise NoemaError(
                "ServiceUnavailable", "the space's key cannot be reached", retry_after_ms=RETRY_AFTER_MS
            ) from fault
        except StoreFault as fault:
            raise _unopened() from fault

    def _row(self, space_id: str, instance: str) -> Row | None:
        row = self._table.get(space_pk(space_id), byok_sk())
        return row if row is not None and row.get("instance") == instance else None


_MEMBERS: Final = (
    "family", "model", "api_base", "disabled", "label", "bearer_auth", "context_window", "max_output",
)  # fmt: skip


def _check_offered(wish: ByokInput) -> None:
    for name in ("effort", "stream"):
        if getattr(wish, name):
            raise NoemaError(
                "NotImplementedYet",
                f"{name} cannot be set here",
                hint="Leave the member out.",
                details={"member": name},
            )


def _view(row: Row | None) -> ByokView:
    if row is None:
        return ByokView(configured=False)
    shown = {name: row.get(name) for name in (*_MEMBERS, "updated_at", "updated_by")}
    return msgspec.convert({**shown, "configured": True, "api_key_end": row.get("end")}, ByokView)


def _unopened() -> NoemaError:
    return NoemaError(
        "ServiceUnavailable",
        "the space's key cannot be opened",
        hint="The space's owner sets it again, or takes it away.",
    )


def _context(space_id: str, instance: str, choice: ModelChoice) -> str:
    """What a key is sealed for: this life of this space, and where it is sent. By digest, for KMS logs a context."""
    place = hashlib.sha256(f"{choice.provider}\x1f{choice.base_url}".encode()).hexdigest()
    return f"{space_id}/{instance}/{place}"


def _invalid(member: str, message: str) -> NoemaError:
    return NoemaError("InvalidInput", message, details={"member": member})
