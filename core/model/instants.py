"""Instants: points in time as whole Unix milliseconds, and their text form. There is no "now" here.

Text is RFC 3339 with any offset on the way in and `YYYY-MM-DDTHH:mm:ss.SSSZ` on the way out (Anda Brain
contract §1.1). Milliseconds are the resolution everywhere, so a finer instant is refused, never rounded.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

Instant = int  # Unix milliseconds, UTC

_RFC3339: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})\Z"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)

MIN_INSTANT: Final = (datetime(1, 1, 2, tzinfo=UTC) - _EPOCH) // _MILLISECOND
MAX_INSTANT: Final = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // _MILLISECOND


def parse_instant(text: str) -> Instant:
    """RFC 3339 text to milliseconds: `2026-05-08T13:56:00+08:00` -> 1778219760000.

    Raises:
        ValueError: not RFC 3339, no such date, no offset, or finer than a millisecond.
    """
    match = _RFC3339.match(text)
    if match is None:
        raise ValueError("not an RFC 3339 instant such as 2026-05-08T13:56:00Z")
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    millisecond = (fraction or "").ljust(3, "0")
    if millisecond[3:].strip("0"):
        raise ValueError("finer than a millisecond")
    zone = UTC
    if offset not in ("Z", "z"):
        sign = -1 if offset[0] == "-" else 1
        zone = timezone(sign * timedelta(hours=int(offset[1:3]), minutes=int(offset[4:6])))
    moment = datetime(
        int(year), int(month), int(day), int(hour), int(minute), int(second),
        int(millisecond[:3]) * 1000, zone,
    )  # fmt: skip
    return (moment - _EPOCH) // _MILLISECOND


def format_instant(instant: Instant) -> str:
    """Milliseconds to text: 1778219760000 -> `2026-05-08T05:56:00.000Z`."""
    moment = _EPOCH + timedelta(milliseconds=instant)
    # isoformat, not strftime: only it pads a year below 1000 on every platform
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def to_datetime(instant: Instant) -> datetime:
    """The same instant as a UTC datetime, for calendar arithmetic."""
    return _EPOCH + timedelta(milliseconds=instant)


def from_datetime(moment: datetime) -> Instant:
    """An aware datetime as milliseconds; what is finer is cut off."""
    return (moment - _EPOCH) // _MILLISECOND
