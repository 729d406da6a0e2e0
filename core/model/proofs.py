"""What a signature is, and what checking one says.

What lives here: two values. What must never live here: cryptography (`infra.signing`), and trust: a signature shows
that whoever holds a key signed these bytes, and nothing about who that is or whether it is true (KIP §37.8).
"""

from __future__ import annotations

import msgspec


class Signature(msgspec.Struct, frozen=True):
    """A signature over bytes. `key_id` holds the public key itself, so that anybody can check it."""

    key_id: str
    value: bytes


class Verdict(msgspec.Struct, frozen=True):
    """What checking a signature came to.

    valid: whether the key's holder signed the bytes; None if the key is of a kind that is not understood here.
    signer: the name under which this deployment knows the key; None for a stranger's. It is no trust.
    """

    valid: bool | None
    signer: str | None = None
