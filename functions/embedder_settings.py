"""The environment's part on the embedder: which one, how many numbers, and where its key comes from.

What lives here: reading those variables into a value, or refusing them by name. What must never live here: opening
an embedder, and a key in a message.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from core.models.embedder import EmbedderChoice, parse_embedder
from functions.model_settings import KeySource


class EmbedderSetting(msgspec.Struct, frozen=True):
    """The operator's embedder, and where its key comes from."""

    choice: EmbedderChoice = EmbedderChoice()
    key: KeySource = KeySource()

    @property
    def public_name(self) -> str:
        """What anybody may read: no host, no folder, no key."""
        choice = self.choice
        named = choice.provider in {"bedrock", "openai", "ollama"}
        return f"{choice.provider}:{choice.model}" if named else choice.provider


def read_embedder(environ: Mapping[str, str]) -> EmbedderSetting:
    """The setting in a mapping of variables; none where NOEMA_EMBEDDER is not set.

    Raises:
        ValueError: a variable is wrong; the message names it.
    """
    digits = environ.get("NOEMA_EMBEDDER_DIMENSION", "").strip()
    if digits and not (digits.isascii() and digits.isdigit() and int(digits) > 0):
        raise ValueError("NOEMA_EMBEDDER_DIMENSION must be a whole number above 0")
    try:
        choice = parse_embedder(environ.get("NOEMA_EMBEDDER", "").strip() or "none", int(digits or "0"))
    except ValueError as error:
        raise ValueError(f"NOEMA_EMBEDDER: {error}") from error
    key = KeySource(environ.get("NOEMA_EMBEDDER_KEY", "").strip())
    if choice.provider == "openai" and not choice.base and not key.text:
        raise ValueError("NOEMA_EMBEDDER_KEY is not set; NOEMA_EMBEDDER needs it")
    return EmbedderSetting(choice, key)
