"""`Cipher` with AWS KMS: each text has a data key of its own, which only KMS can open.

What lives here: envelope encryption. What must never live here: what is sealed. The context goes into KMS as
encryption context and into the text as associated data, so neither the data key nor the text opens under another.
KMS may rotate its key as it likes: it opens what any of its generations sealed.

    0x01 | length of the sealed data key, 2 bytes | sealed data key | nonce, 12 bytes | text and tag
"""

# ruff: noqa: PLC0415 - cryptography costs a start 30 ms, and few requests seal or open anything

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.ports import Entropy, StoreFault
from infra.aws.faults import translated

if TYPE_CHECKING:
    from infra.aws.clients import Clients

_FORMAT: Final = 1
_NONCE_BYTES: Final = 12
_CONTEXT: Final = "noema:space"


class KmsCipher:
    """Seals under the KMS key `key` (id, ARN or alias)."""

    def __init__(self, clients: Clients, key: str, entropy: Entropy) -> None:
        self._clients = clients
        self._key = key
        self._entropy = entropy

    def seal(self, plain: bytes, context: str) -> bytes:
        """The bytes, sealed."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        with translated("GenerateDataKey"):
            made = self._clients.kms.generate_data_key(
                KeyId=self._key, KeySpec="AES_256", EncryptionContext={_CONTEXT: context}
            )
        wrapped = bytes(made["CiphertextBlob"])
        nonce = self._entropy.token(_NONCE_BYTES)
        text = AESGCM(bytes(made["Plaintext"])).encrypt(nonce, plain, context.encode())
        return bytes([_FORMAT]) + len(wrapped).to_bytes(2, "big") + wrapped + nonce + text

    def open(self, sealed: bytes, context: str) -> bytes:
        """What was sealed; a `StoreFault` if it does not open."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        length = int.from_bytes(sealed[1:3], "big")
        wrapped, rest = sealed[3 : 3 + length], sealed[3 + length :]
        if sealed[:1] != bytes([_FORMAT]) or len(wrapped) < length or len(rest) <= _NONCE_BYTES:
            raise StoreFault("open: these bytes were not sealed here")
        with translated("Decrypt"):
            opened = self._clients.kms.decrypt(
                CiphertextBlob=wrapped, KeyId=self._key, EncryptionContext={_CONTEXT: context}
            )
        try:
            key = AESGCM(bytes(opened["Plaintext"]))
            return key.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], context.encode())
        except InvalidTag as error:
            raise StoreFault("open: the bytes or their context are not what was sealed") from error
