"""The deployment's signing key: what makes cursors and snapshot tokens unforgeable, and alike in every process.

What lives here: finding the key, or making it on first use. What must never live here: what is signed
(`core.protocol.tokens`). The key stands in the deployment's own table, which only the service can read, so there is
nothing to configure and nothing to forget. A token grants nothing; whoever has the key could only forge places in
answers that the caller must be allowed to read anyway.
"""

from __future__ import annotations

from typing import Final

from core.errors import NoemaError
from core.ports import Entropy, Put, Refused, Table, When
from core.service.faults import reading
from core.storage.layout import PROOF_SK, SERVICE_PK, SIGNING_SK

_BYTES: Final = 32


def signing_key(table: Table, entropy: Entropy) -> bytes:
    """The key that makes cursors unforgeable, the same for every caller over one table, for ever.

    Raises:
        NoemaError: `ServiceUnavailable` if the table does not answer.
    """
    return _kept(table, entropy, SIGNING_SK)


def proof_seed(table: Table, entropy: Entropy) -> bytes:
    """The seed of the Ed25519 key that signs what leaves the deployment: Capsules, receipts, checkpoints.

    Another key than that of cursors, for its public half is shown to everybody.

    Raises:
        NoemaError: `ServiceUnavailable` if the table does not answer.
    """
    return _kept(table, entropy, PROOF_SK)


def _kept(table: Table, entropy: Entropy, name: str) -> bytes:
    with reading():
        row = table.get(SERVICE_PK, name)
        if row is None:
            made = entropy.token(_BYTES)
            try:
                table.transact([Put(SERVICE_PK, name, {"key": made}, When(absent=True))])
            except Refused:  # another process was first, and its key is the key
                row = table.get(SERVICE_PK, name)
            else:
                return made
    key = None if row is None else row["key"]
    if not isinstance(key, bytes):
        raise NoemaError("ServiceUnavailable", "another process is making the signing key")
    return key
