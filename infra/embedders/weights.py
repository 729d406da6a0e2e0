"""Weights on disk, read without the package that brought them.

What lives here: the safetensors format. What must never live here: what the numbers mean. Nothing of a package is
imported: its code is not needed, and neither is what it depends on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from infra.embedders.places import NotInstalledError

_TYPES: Final = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4"}
_MAX_HEADER: Final = 16 * 1024 * 1024


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
