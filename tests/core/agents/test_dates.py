"""Dates in words, seen from when they were said."""

import pytest

from core.agents.offline.dates import find_dates
from core.model.instants import format_instant, parse_instant

SAID = parse_instant("2023-08-02T10:00:00Z")  # a Wednesday

CASES = [
    ("today", "2023-08-02", "2023-08-03"),
    ("tonight", "2023-08-02", "2023-08-03"),
    ("yesterday", "2023-08-01", "2023-08-02"),
    ("the day before yesterday", "2023-07-31", "2023-08-01"),
    ("tomorrow", "2023-08-03", "2023-08-04"),
    ("last week", "2023-07-24", "2023-07-31"),
    ("next month", "2023-09-01", "2023-10-01"),
    ("last year", "2022-01-01", "2023-01-01"),
    ("last Tuesday", "2023-08-01", "2023-08-02"),
    ("last Wednesday", "2023-07-26", "2023-07-27"),
    ("on Friday", "2023-08-04", "2023-08-05"),
    ("next Friday", "2023-08-11", "2023-08-12"),
    ("next Monday", "2023-08-07", "2023-08-08"),
    ("this weekend", "2023-08-05", "2023-08-07"),
    ("3 years ago", "2020-01-01", "2021-01-01"),
    ("a couple of months ago", "2023-06-01", "2023-07-01"),
    ("in two weeks", "2023-08-14", "2023-08-21"),
    ("last May", "2023-05-01", "2023-06-01"),
    ("last September", "2022-09-01", "2022-10-01"),
    ("next May", "2024-05-01", "2024-06-01"),
    ("in December", "2022-12-01", "2023-01-01"),
    ("since 2019", "2019-01-01", "2020-01-01"),
    ("in May 2021", "2021-05-01", "2021-06-01"),
    ("May 5th, 1990", "1990-05-05", "1990-05-06"),
    ("5 May 1990", "1990-05-05", "1990-05-06"),
    ("on the 3rd of July", "2023-07-03", "2023-07-04"),
    ("on 30 December", "2023-12-30", "2023-12-31"),
    ("2023-09-01", "2023-09-01", "2023-09-02"),
    ("5月2日", "2023-05-02", "2023-05-03"),
    ("2021年12月31号", "2021-12-31", "2022-01-01"),
]


@pytest.mark.parametrize(("words", "start", "end"), CASES)
def test_words_name_a_span_of_the_calendar(words: str, start: str, end: str) -> None:
    """A date in words is the span it meant when it was said, and its words are kept."""
    found = find_dates(f"It was {words}, I say.", SAID)

    assert [(format_instant(w.start)[:10], format_instant(w.end)[:10]) for w in found] == [(start, end)]
    assert found[0].words.lower().endswith(words.lower().removeprefix("on "))


@pytest.mark.parametrize(
    "words", ["soon", "the other day", "I may go", "on 31 February", "in 9999 years", "room 2019a", "May I?"]
)
def test_what_is_no_date_is_left_alone(words: str) -> None:
    """Vague words, impossible dates and the verb "may" name no date."""
    assert find_dates(words, SAID) == []


def test_on_a_weekday_looks_back_in_the_past_tense() -> None:
    """Saying "On Friday" is the coming one, and in the past tense the one that was."""
    (ahead,), (back,) = find_dates("on Friday", SAID), find_dates("on Friday", SAID, past=True)

    assert format_instant(ahead.start)[:10] == "2023-08-04"
    assert format_instant(back.start)[:10] == "2023-07-28"


def test_dates_come_in_order_and_do_not_overlap() -> None:
    """Several dates of a text are found in order, each once."""
    found = find_dates("From May 5th, 2020 until last year, then yesterday.", SAID)

    assert [when.words for when in found] == ["May 5th, 2020", "last year", "yesterday"]


@pytest.mark.parametrize("said", ["0001-01-02T00:00:00Z", "9999-12-30T00:00:00Z"])
def test_the_ends_of_the_calendar_do_no_harm(said: str) -> None:
    """A date outside the calendar is no date, at either end."""
    first, last = parse_instant("0001-01-01T00:00:00Z"), parse_instant("9999-12-31T23:59:59Z")
    for words, _, _ in CASES:
        for past in (False, True):
            found = find_dates(words, parse_instant(said), past=past)
            assert all(first <= when.start < when.end <= last + 1000 for when in found)
