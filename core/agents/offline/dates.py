"""Dates in words: what "yesterday", "next Friday" or "in May 2021" mean, seen from when they were said.

What lives here: one table of expressions and the calendar arithmetic behind them, in UTC. A `When` is a span of
the calendar with the words it was read from; nothing here knows today's date. What is not certain is left alone:
"the other day" or "soon" are no dates.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import msgspec

from core.model.instants import Instant, from_datetime, to_datetime

Precision = Literal["day", "week", "month", "year"]

MONTHS: Final = {
    name: i + 1
    for i, name in enumerate((
        "january", "february", "march", "april", "may", "june",
        "july", "august", "september", "october", "november", "december",
    ))
}  # fmt: skip
_SHORT: Final = {name[:3]: number for name, number in MONTHS.items()} | {"sept": 9}
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS: Final = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
    "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
    "a couple of": 2, "couple of": 2,
}  # fmt: skip

_M: Final = r"(?P<m>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
_D: Final = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?\b"
_Y: Final = r"(?P<y>(?:19|20)\d\d)\b"
_W: Final = rf"(?P<w>{'|'.join(WEEKDAYS)})\b"
_N: Final = rf"(?P<n>\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_U: Final = r"(?P<u>day|week|month|year)s?\b"


class When(msgspec.Struct, frozen=True):
    """A span of the calendar: from `start` (inclusive) until `end` (exclusive), and the words that said it."""

    start: Instant
    end: Instant
    precision: Precision
    words: str
    at: int = 0  # where in the text the words begin
    yearless: bool = False  # the words name a day of a month of no year; `start` is then the nearest such day

    def covers(self, instant: Instant) -> bool:
        """Whether an instant lies on it; without a year, on that day of any year."""
        if not self.yearless:
            return self.start <= instant < self.end
        named, moment = to_datetime(self.start), to_datetime(instant)
        return (named.month, named.day) == (moment.month, moment.day)


_Span = tuple[datetime, datetime, Precision] | None
_Read = Callable[[re.Match[str], datetime], _Span]


def _day(moment: datetime) -> _Span:
    start = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return start, start + timedelta(days=1), "day"


def _week(moment: datetime) -> _Span:
    monday = (moment - timedelta(days=moment.weekday())).replace(hour=0, minute=0, second=0, microsecond=0)
    return monday, monday + timedelta(days=7), "week"


def _month(year: int, month: int) -> _Span:
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    if not 1 <= year < 9999:
        return None
    start = datetime(year, month, 1, tzinfo=UTC)
    after = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    return start, after, "month"


def _year(year: int) -> _Span:
    if not 1 < year < 9999:
        return None
    return datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC), "year"


def _number(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS[re.sub(r"\s+", " ", text)]


def _shift(moment: datetime, unit: str, amount: int) -> _Span:
    """The unit of the calendar that lies `amount` units away."""
    if unit == "day":
        return _day(moment + timedelta(days=amount))
    if unit == "week":
        return _week(moment + timedelta(days=7 * amount))
    if unit == "month":
        return _month(moment.year, moment.month + amount)
    return _year(moment.year + amount)


def _read_date(match: re.Match[str], said: datetime) -> _Span:
    """A day of a month. Without a year it is the one nearest to when it was said."""
    years = [int(match["y"])] if match["y"] else _years(said)
    return _nearest(years, _SHORT[match["m"][:3]], int(match["d"]), said)


def _years(said: datetime) -> list[int]:
    return [said.year - 1, said.year, said.year + 1]


def _nearest(years: list[int], month: int, day: int, said: datetime) -> _Span:
    """The day of a month, in the year in which it is nearest to `said`."""
    days = []
    for year in years:
        try:
            days.append(datetime(year, month, day, tzinfo=UTC))
        except ValueError:
            continue
    return _day(min(days, key=lambda found: abs(found - said))) if days else None


def _read_month(match: re.Match[str], said: datetime) -> _Span:
    """A month. Without a year it is the last one, or with "next" the coming one."""
    month = _SHORT[match["m"][:3]]
    if match["y"]:
        return _month(int(match["y"]), month)
    word = match["rel"]
    if word == "next":
        return _month(said.year + (month <= said.month), month)
    if word == "last":
        return _month(said.year - (month >= said.month), month)
    return _month(said.year - (month > said.month), month)


def _read_weekday(match: re.Match[str], said: datetime) -> _Span:
    """A weekday: "last" looks back, "next" to the next week's, "this", "on" and "by" to the coming one."""
    index = WEEKDAYS.index(match["w"])
    word = match["rel"] or "on"
    if word == "last":
        return _day(said - timedelta(days=(said.weekday() - index - 1) % 7 + 1))
    ahead = (index - said.weekday() - 1) % 7 + 1
    if word == "next" and ahead < 7 - said.weekday():
        ahead += 7
    return _day(said + timedelta(days=ahead))


def _read_iso(match: re.Match[str], said: datetime) -> _Span:  # noqa: ARG001 - one signature for the table
    try:
        return _day(datetime(int(match["y"]), int(match["mm"]), int(match["dd"]), tzinfo=UTC))
    except ValueError:
        return None


def _read_han(match: re.Match[str], said: datetime) -> _Span:
    """A Chinese or Japanese day of a month. Without a year it is the one nearest to when it was said."""
    return _nearest(
        [int(match["y"])] if match["y"] else _years(said), int(match["mm"]), int(match["dd"]), said
    )


def _read_weekend(match: re.Match[str], said: datetime) -> _Span:
    monday = said - timedelta(days=said.weekday())
    weeks = {"last": -1, "this": 0, "next": 1}[match["rel"]]
    saturday = (monday + timedelta(days=5 + 7 * weeks)).replace(hour=0, minute=0, second=0, microsecond=0)
    return saturday, saturday + timedelta(days=2), "day"


_STEP: Final = {"last": -1, "this": 0, "next": 1}
# The first expression that matches at a place wins, so longer ones stand before shorter ones.
TABLE: Final[tuple[tuple[re.Pattern[str], _Read], ...]] = tuple(
    (re.compile(rf"(?<![A-Za-z0-9]){pattern}", re.IGNORECASE), read)
    for pattern, read in (
        (rf"{_Y}-(?P<mm>\d\d)-(?P<dd>\d\d)\b", _read_iso),
        (r"(?:(?P<y>(?:19|20)\d\d)年)?(?P<mm>\d{1,2})月(?P<dd>\d{1,2})[日号號]", _read_han),
        (rf"(?:on |by |before )?{_M} (?:the )?{_D}(?:,? {_Y})?", _read_date),
        (rf"(?:on |by |before )?(?:the )?{_D} (?:of )?{_M}(?:,? {_Y})?", _read_date),
        (r"the day before yesterday\b", lambda _, said: _day(said - timedelta(days=2))),
        (r"the day after tomorrow\b", lambda _, said: _day(said + timedelta(days=2))),
        (r"(?:yesterday|last night)\b", lambda _, said: _day(said - timedelta(days=1))),
        (r"(?:by )?tomorrow\b", lambda _, said: _day(said + timedelta(days=1))),
        (r"(?:today|tonight|this (?:morning|afternoon|evening))\b", lambda _, said: _day(said)),
        (rf"{_N} {_U} ago\b", lambda m, said: _shift(said, m["u"], -_number(m["n"]))),
        (rf"in {_N} {_U}", lambda m, said: _shift(said, m["u"], _number(m["n"]))),
        (rf"(?P<rel>last|this|next) {_U}", lambda m, said: _shift(said, m["u"], _STEP[m["rel"]])),
        (r"(?P<rel>last|this|next) weekend\b", _read_weekend),
        (rf"(?:(?P<rel>last|this|next|on|by|before) ){_W}", _read_weekday),
        (rf"(?:in|since|until|till|by|during|(?P<rel>last|next)) {_M}(?:,? (?:of )?{_Y})?", _read_month),
        (rf"(?P<rel>){_M},? {_Y}", _read_month),
        (rf"(?:in|since|until|till|by|during) {_Y}", lambda m, _: _year(int(m["y"]))),
    )
)


def find_dates(text: str, said_at: Instant, *, past: bool = False) -> list[When]:
    """Every date that a text names, in order, seen from `said_at` (ms, UTC).

    With `past`, "on Tuesday" is the one that was; else the one to come.

    `"I left last May"` said on 2023-08-01 -> May 2023, precision month, words "last May".
    """
    said = to_datetime(said_at)
    taken: list[tuple[int, int]] = []
    found: list[When] = []
    for pattern, read in TABLE:
        for match in pattern.finditer(text.lower() if text.isascii() else _lower(text)):
            first, last = match.span()
            if any(first < end and start < last for start, end in taken):
                continue
            try:
                span = _looked_back(match, read(match, said), said) if past else read(match, said)
            except (OverflowError, ValueError):
                continue  # a date outside the calendar
            if span is None:
                continue
            taken.append((first, last))
            start, end, precision = span
            yearless = precision == "day" and "y" in match.re.groupindex and match["y"] is None
            when = When(
                from_datetime(start),
                from_datetime(end),
                precision,
                text[first:last],
                first,
                yearless=yearless,
            )
            found.append(when)
    return sorted(found, key=lambda when: when.at)


def _looked_back(match: re.Match[str], span: _Span, said: datetime) -> _Span:
    """In the past tense "on Friday" is the one that was."""
    if span is None or span[0] <= said or "w" not in match.re.groupindex or match["rel"] != "on":
        return span
    return span[0] - timedelta(days=7), span[1] - timedelta(days=7), span[2]


def _lower(text: str) -> str:
    """Lower case that keeps every character's place ('İ' becomes two characters under `str.lower`)."""
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)
