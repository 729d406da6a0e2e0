"""ULIDs: ids of 26 characters that sort by time. Time and chance are arguments."""

from __future__ import annotations

from typing import Final

from core.model.instants import Instant

_DIGITS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
CHANCE_BYTES: Final = 10
MAX_LENGTH: Final = 64  # of an id that was made elsewhere


def ulid(at: Instant, chance: bytes, place: int = 0) -> str:
    """The id of something made at `at` (ms).

    Args:
        at: Unix milliseconds.
        chance: ten random bytes; the same for several things made at once.
        place: tells those apart and keeps their order.
    """
    value = (at << 80) + (int.from_bytes(chance[:CHANCE_BYTES], "big") + place) % (1 << 80)
    out = []
    for _ in range(26):
        out.append(_DIGITS[value & 31])
        value >>= 5
    return "".join(reversed(out))


def ulids(at: Instant, chance: bytes, count: int) -> list[str]:
    """Ids of several things made at once, in order."""
    base = int.from_bytes(chance[:CHANCE_BYTES], "big") >> 1  # room to count up without wrapping
    return [ulid(at, base.to_bytes(CHANCE_BYTES, "big"), place) for place in range(count)]
