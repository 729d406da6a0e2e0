"""Ed25519 over `cryptography`: the deployment's key, and checks of anybody's.

What lives here: the spelling of a key id, signing, checking. What must never live here: what is signed, and what a
good signature is worth. A key id holds the public key, so a stranger's signature can be checked too; that a key has
a name here says who it is, not that it is trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from core.model.base64url import decode_base64url, encode_base64url
from core.model.proofs import Signature, Verdict

PREFIX: Final = "ed25519:"
_KEY_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64
_P: Final = 2**255 - 19
_Y8: Final = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_WEAK: Final = frozenset({0, 1, _P - 1, _Y8, _P - _Y8})
"""The y of the points of small order: under a key that is one of them, anybody makes signatures that fit any bytes."""


def key_id_of(public: bytes) -> str:
    """The id of a public key: `ed25519:` and its 32 bytes in URL-safe base 64 without padding."""
    return PREFIX + encode_base64url(public)


def public_of(key_id: str) -> bytes | None:
    """The public key in a key id; None for what is no such id, is not spelled as `key_id_of` would, or is nobody's key."""
    if not key_id.startswith(PREFIX):
        return None
    try:
        public = decode_base64url(key_id.removeprefix(PREFIX))
    except ValueError:
        return None
    if len(public) != _KEY_BYTES or key_id_of(public) != key_id:
        return None
    y = int.from_bytes(public, "little") % 2**255
    return public if y < _P and y not in _WEAK else None


class Ed25519Keys:
    """Signs with one key and checks with any. Implements `Signer` and `Verifier`.

    Args:
        seed: 32 secret bytes; the key is made from them. None only checks.
        known: names of other keys, by key id.
        own_name: the name of the deployment's own key.
    """

    def __init__(
        self, seed: bytes | None, known: Mapping[str, str] | None = None, *, own_name: str = "this-deployment"
    ) -> None:
        self._key = None if seed is None else Ed25519PrivateKey.from_private_bytes(seed)
        own = None if self._key is None else key_id_of(self._key.public_key().public_bytes_raw())
        self.key_id = own or ""
        self._known = {**(known or {}), **({} if own is None else {own: own_name})}

    def sign(self, payload: bytes) -> Signature:
        """The signature over these bytes; the same for the same bytes."""
        if self._key is None:
            raise ValueError("there is no key to sign with")
        return Signature(self.key_id, self._key.sign(payload))

    def check(self, key_id: str, payload: bytes, value: bytes) -> Verdict:
        """Whether the key's holder signed these bytes, and under which name the key is known."""
        public = public_of(key_id)
        if public is None:
            return Verdict(valid=None)
        signer = self._known.get(key_id)
        if len(value) != _SIGNATURE_BYTES:
            return Verdict(valid=False, signer=signer)
        try:
            Ed25519PublicKey.from_public_bytes(public).verify(value, payload)
        except InvalidSignature:
            return Verdict(valid=False, signer=signer)
        return Verdict(valid=True, signer=signer)
