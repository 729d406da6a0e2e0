"""`Cipher` with keys of this machine: in a file that only its owner can read, or in memory.

What lives here: AES-256-GCM and the key file. What must never live here: what is sealed. A file may hold several
keys, a line each in hexadecimal: the first seals, each of them opens. So a key is rotated by writing a new line
before the others, and retired by removing its line when nothing is sealed under it any more.

    0x02 | which key, 8 bytes | nonce, 12 bytes | text and tag
"""

# ruff: noqa: PLC0415 - cryptography costs a start 30 ms, and few requests seal or open anything

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from core.ports import Entropy, StoreFault

KEY_BYTES: Final = 32
_FORMAT: Final = 2
_NAME_BYTES: Final = 8
_NONCE_BYTES: Final = 12


class AesCipher:
    """Seals under the first of `keys`, 32 bytes each, and opens under any."""

    def __init__(self, keys: Sequence[bytes], entropy: Entropy) -> None:
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            raise ValueError(f"a key has {KEY_BYTES} bytes, and there must be one")
        self._keys = {_name(key): key for key in keys}
        self._first = _name(keys[0])
        self._entropy = entropy

    def seal(self, plain: bytes, context: str) -> bytes:
        """The bytes, sealed."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = self._entropy.token(_NONCE_BYTES)
        text = AESGCM(self._keys[self._first]).encrypt(nonce, plain, context.encode())
        return bytes([_FORMAT]) + self._first + nonce + text

    def open(self, sealed: bytes, context: str) -> bytes:
        """What was sealed; a `StoreFault` if it does not open."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key = self._keys.get(sealed[1 : 1 + _NAME_BYTES])
        rest = sealed[1 + _NAME_BYTES :]
        if sealed[:1] != bytes([_FORMAT]) or len(rest) <= _NONCE_BYTES:
            raise StoreFault("open: these bytes were not sealed here")
        if key is None:
            raise StoreFault("open: the key they were sealed under is not here")
        try:
            return AESGCM(key).decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], context.encode())
        except InvalidTag as error:
            raise StoreFault("open: the bytes or their context are not what was sealed") from error


def _name(key: bytes) -> bytes:
    return hashlib.sha256(b"noema key name" + key).digest()[:_NAME_BYTES]


def file_cipher(path: Path, entropy: Entropy) -> AesCipher:
    """The cipher of a key file, which is made if it is not there.

    Raises:
        ValueError: the file holds no keys, or others than its owner may read it.
    """
    if not path.exists():
        _make(path, entropy.token(KEY_BYTES).hex() + "\n")
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise ValueError(f"{path}: others than its owner may read it; chmod 600 it")
    try:
        keys = [bytes.fromhex(line) for line in path.read_text("ascii").split()]
    except ValueError as error:
        raise ValueError(f"{path}: a line is no key") from error
    return AesCipher(keys, entropy)


def _make(path: Path, text: str) -> None:
    """Write a file that is whole or not there; whoever was first has made it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)  # only its owner may read it
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(name, path)
    finally:
        Path(name).unlink()
