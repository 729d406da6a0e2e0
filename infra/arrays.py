"""numpy, loaded when somebody needs it: importing it costs a cold start a tenth of a second."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def load_numpy() -> ModuleType | None:
    """The module, or None where it is not installed; then core does the same without it, only slower."""
    try:
        return import_module("numpy")
    except ImportError:
        return None
