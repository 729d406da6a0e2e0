"""Weights on disk: where an installed package keeps them, and reading them without the package.

What lives here: finding files and the safetensors format. What must never live here: what the numbers mean. Nothing
of the package is imported: its code is not needed, and neither is what it depends on.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

_TYPES: Final = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4"}
_MAX_HEADER: Final = 16 * 1024 * 1024


class NotInstalledError(Exception):
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


def read_safetensors(path: Path) -> dict[str, Any]:
    """The arrays of a safetensors file by their names.

    Raises:
        NotInstalledError: there is no such file, or it is none.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise NotInstalledError(f"{path} cannot be read") from error
    size = int.from_bytes(data[:8], "little")
    if not 0 < size <= min(_MAX_HEADER, len(data) - 8):
        raise NotInstalledError(f"{path} is no safetensors file")
    try:
        header = msgspec.json.decode(data[8 : 8 + size], type=dict[str, dict[str, Any]])
        out = {}
        for name, told in header.items():
            if name != "__metadata__":
                first, end = told["data_offsets"]
                kind = np.dtype(_TYPES[told["dtype"]])
                count = (end - first) // kind.itemsize
                array = np.frombuffer(data, dtype=kind, count=count, offset=8 + size + first)
                out[name] = array.reshape(told["shape"])
    except (msgspec.DecodeError, KeyError, ValueError, TypeError) as error:
        raise NotInstalledError(f"{path} is no safetensors file this reads") from error
    return out


def read_json(path: Path) -> Any:  # of many shapes
    """A JSON file.

    Raises:
        NotInstalledError: there is no such file, or it is none.
    """
    try:
        return msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise NotInstalledError(f"{path} cannot be read") from error
