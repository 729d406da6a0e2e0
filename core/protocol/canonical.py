"""Canonical JSON and digests: one spelling for one value, so that equal values have equal digests.

The rule is KIP's draft profile `kip-draft-canonical-json-v1`: UTF-8, object keys in code point order, `,` and `:`
without spaces, finite numbers, no Unicode normalisation. It leaves the spelling of numbers open; here an
integer is written without a fraction and any other number as the shortest text that reads back the same
(`0.0`, `0.25`, `1e-07`), which reproduces the digests of the published packages.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

PROFILE: Final = "kip-draft-canonical-json-v1"

NUMBER_RULE: Final = "integers without a fraction; any other finite number as the shortest text that reads back the same double"
"""The declared spelling of numbers: 7, 0.25, 0.0, 1e-07. 1 and 1.0 are two spellings, which nothing rewrites."""

_encoder: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False
)


def canonical_json(value: Any) -> bytes:  # any JSON value
    """The one spelling of a JSON value.

    Raises:
        ValueError: a number is not finite, or a text holds a lone surrogate.
    """
    return _encoder.encode(value).encode("utf-8")


def digest_of(value: Any) -> str:  # any JSON value
    """`sha256:<hex>` over the canonical form of a value."""
    return digest_of_bytes(canonical_json(value))


def digest_of_bytes(body: bytes) -> str:
    """`sha256:<hex>` over bytes as they are."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"
