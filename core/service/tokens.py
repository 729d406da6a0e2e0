"""Space tokens: credentials of one space, minted, listed, revoked and looked up by their digest.

What lives here: the rows and rules of tokens. What must never live here: how a token travels (a transport's
business) and a token's value at rest: the table holds its SHA-256 and enough to recognise it by.

A token is `ST` and 32 random bytes in base64url. Three rows make one, written together: `T#<digest>`, the
token; `TN#<digest of name>`, which keeps names unique; and the counter `N#tokens`, which keeps the cap. They
are written only while the space is active, so a deleted space gains no credential. Using a token writes
nothing: a counter on the path of every read would cost more than the read.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Final

import msgspec

from core.errors import NoemaError
from core.model.base64url import encode_base64url
from core.model.instants import Instant
from core.ports import (
    Check,
    Clock,
    Delete,
    Entropy,
    Put,
    Refused,
    Row,
    Table,
    Unavailable,
    Update,
    When,
    Write,
)
from core.protocol.http_types import AddSpaceTokenInput, RevokeSpaceTokenInput, SpaceToken
from core.service.faults import reading
from core.service.values import Caller, Scope
from core.storage import layout
from core.storage.head import ENDS

PREFIX: Final = "ST"
SECRET_BYTES: Final = 32
MAX_TOKENS: Final = 100  # of one space (contract §1.5)
SHOWN_CHARS: Final = len(PREFIX) + 6  # of a value when it is listed
_VALUE: Final = re.compile(r"ST[A-Za-z0-9_-]{43}\Z")
_COUNTER: Final = layout.counter_sk("tokens")


class TokenGrant(msgspec.Struct, frozen=True, kw_only=True):
    """What a valid token allows."""

    name: str
    scope: Scope
    labels: tuple[str, ...] | None


class SpaceTokens:
    """The tokens of all spaces.

    Args:
        table, clock, entropy: the ports.
    """

    def __init__(self, table: Table, clock: Clock, entropy: Entropy) -> None:
        self._table = table
        self._clock = clock
        self._entropy = entropy

    def find(self, space_id: str, value: str) -> TokenGrant | None:
        """What a presented value allows in a space now; None if it is no token of it, or has expired."""
        if _VALUE.match(value) is None:  # so that no other text can address a row (contract §2.2)
            return None
        with reading():
            row = self._table.get(layout.space_pk(space_id), layout.token_sk(value))
        if row is None or not hmac.compare_digest(str(row["digest"]), _digest(value)):
            return None
        token = _token_of(row)
        if token.expires_at is not None and token.expires_at <= self._clock.now():
            return None
        return TokenGrant(name=token.name, scope=token.scope, labels=token.labels)

    def listing(self, space_id: str) -> list[SpaceToken]:
        """The space's tokens in order of creation, expired ones included; values as prefixes only.

        Raises:
            NoemaError: NotFoundOrNotVisible, ServiceUnavailable.
        """
        with reading():
            self._check_space(layout.space_pk(space_id))
        found = [_token_of(row) for _, row in self._rows(space_id)]
        return sorted(found, key=lambda token: (token.created_at, token.name))

    def _rows(self, space_id: str) -> list[tuple[str, Row]]:
        first, last = layout.rows_of("T")
        with reading():
            return self._table.query(layout.space_pk(space_id), first, last, limit=MAX_TOKENS + 1)

    def add(self, space_id: str, caller: Caller, wish: AddSpaceTokenInput) -> SpaceToken:
        """Mint a token and return it with its value, which nobody can show again.

        Raises:
            NoemaError: NotAuthorized (a `*` token needs a `*` caller), InvalidInput (expiry, labels),
                IdentityConflict (the name is taken), ResourceExhausted (the cap), NotFoundOrNotVisible.
        """
        now = self._clock.now()
        _check_wish(caller, wish, now)
        secret = self._entropy.token(SECRET_BYTES)
        value = PREFIX + encode_base64url(secret)
        row: Row = {
            "digest": _digest(value),
            "shown": value[:SHOWN_CHARS],
            "name": wish.name,
            "scope": wish.scope,
            "created_at": now,
            "updated_at": now,
            "created_by": caller.subject,
            "expires_at": wish.expires_at,
            "labels": None if wish.labels is None else msgspec.json.encode(wish.labels).decode(),
        }
        pk, token_sk = layout.space_pk(space_id), layout.token_sk(value)
        writes: list[Write] = [
            Check(pk, layout.HEAD, When(equals={"state": "active"})),
            Put(pk, layout.token_name_sk(wish.name), {"token": token_sk}, When(absent=True)),
            Update(pk, _COUNTER, add={"n": 1}, when=When(below={"n": MAX_TOKENS})),
            Put(pk, token_sk, row, When(absent=True)),
        ]
        try:
            self._table.transact(writes)
        except Refused as refused:
            raise _why_not_added(refused) from refused
        except Unavailable as fault:
            with reading():
                if self._table.get(pk, token_sk) is None:
                    raise NoemaError(
                        "OutcomeUnknown",
                        "the store did not say whether the token was minted",
                        hint="List the space's tokens; if the name is there, revoke it and mint another.",
                    ) from fault
        return msgspec.structs.replace(_token_of(row), token=value)

    def revoke(self, space_id: str, wish: RevokeSpaceTokenInput) -> bool:
        """Remove a token by its value or name; False if the space has no such token.

        Raises:
            NoemaError: InvalidInput unless exactly one of the two is given, NotFoundOrNotVisible.
        """
        if (wish.token is None) == (wish.name is None):
            raise NoemaError("InvalidInput", "give either the token or its name", details={"member": "name"})
        pk = layout.space_pk(space_id)
        with reading():
            self._check_space(pk)
            found = self._by_name(pk, wish.name) if wish.token is None else self._by_value(pk, wish.token)
        if found is None:
            return False
        token_sk, name = found
        try:
            self._table.transact(
                [
                    Delete(pk, token_sk, When(present=True)),
                    Delete(pk, layout.token_name_sk(name)),
                    Update(pk, _COUNTER, add={"n": -1}, when=When(present=True)),
                ]
            )
        except Refused as refused:
            if refused.failed:
                return False  # somebody revoked it meanwhile
            raise NoemaError("SerializationConflict", "another change of the tokens was faster") from refused
        except Unavailable as fault:
            with reading():
                if self._table.get(pk, token_sk) is not None:
                    raise NoemaError(
                        "OutcomeUnknown",
                        "the store did not say whether the token was revoked",
                        hint="Revoke it again; that does no harm.",
                    ) from fault
        return True

    def _check_space(self, pk: str) -> None:
        head = self._table.get(pk, layout.HEAD)
        if head is None or head.get("state") == "deleted" or head.get(ENDS):
            raise NoemaError("NotFoundOrNotVisible", "there is no such space")

    def _by_name(self, pk: str, name: str | None) -> tuple[str, str] | None:
        row = self._table.get(pk, layout.token_name_sk(name)) if name and len(name) <= 64 else None
        return None if row is None else (str(row["token"]), str(name))

    def _by_value(self, pk: str, value: str) -> tuple[str, str] | None:
        if _VALUE.match(value) is None:
            return None
        row = self._table.get(pk, layout.token_sk(value))
        return None if row is None else (layout.token_sk(value), str(row["name"]))


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8")).hexdigest()


def _token_of(row: Row) -> SpaceToken:
    labels = row.get("labels")
    return msgspec.convert(
        {
            **{name: value for name, value in row.items() if name not in ("digest", "shown", "labels")},
            "token": f"{row['shown']!s}…",
            "labels": None if labels is None else msgspec.json.decode(str(labels)),
        },
        SpaceToken,
    )


def _check_wish(caller: Caller, wish: AddSpaceTokenInput, now: Instant) -> None:
    if wish.scope == "*" and caller.scope != "*":
        raise NoemaError("NotAuthorized", "only a caller with scope * may mint a token with scope *")
    if not wish.name.isprintable() or wish.name != wish.name.strip():
        raise NoemaError(
            "InvalidInput", "a name is printable, without blanks around it", details={"member": "name"}
        )
    if wish.expires_at is not None and wish.expires_at <= now:
        raise NoemaError(
            "InvalidInput",
            "expires_at is not in the future (Unix milliseconds)",
            details={"member": "expires_at", "now": now},
        )
    if wish.labels is not None and wish.scope != "read":
        raise NoemaError("InvalidInput", "only a read token may carry labels", details={"member": "labels"})
    if wish.labels is not None and any(not label.strip() for label in wish.labels):
        raise NoemaError("InvalidInput", "a label must not be blank", details={"member": "labels"})


def _why_not_added(refused: Refused) -> NoemaError:
    if 0 in refused.failed:
        return NoemaError("NotFoundOrNotVisible", "there is no such space")
    if 1 in refused.failed:
        return NoemaError(
            "IdentityConflict",
            "the space has a token of this name",
            hint="Choose another name, or revoke that token first.",
            details={"member": "name"},
        )
    if 2 in refused.failed:
        return NoemaError(
            "ResourceExhausted",
            f"a space has at most {MAX_TOKENS} tokens",
            hint="Revoke tokens that are not needed.",
            details={"limit": MAX_TOKENS},
        )
    return NoemaError("SerializationConflict", "another change of the tokens was faster")
