"""What a space sets for its facts: one extension of its protected state, read here and written by a management commit."""

from __future__ import annotations

from typing import Final

import msgspec

from core.facts.recalling import Tuning
from core.state.space import SpaceState

SETTINGS: Final = "facts"
"""The extension's name."""


def tuning_of(state: SpaceState) -> Tuning:
    """What the space sets; what it does not is as by default."""
    return msgspec.convert(state.meta.extensions.get(SETTINGS) or {}, Tuning)
