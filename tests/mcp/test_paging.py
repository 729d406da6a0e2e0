"""Budgets and cursors."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import NoemaError
from functions.mcp.paging import (
    BUDGET,
    CUT,
    Page,
    Place,
    estimate_tokens,
    fitting,
    read_cursor,
    take,
    write_cursor,
)


def walk(texts: list[str], budget: int) -> list[Page]:
    pages, start = [], Place()
    while True:
        page = take(texts, start, budget)
        pages.append(page)
        if page.rest is None:
            return pages
        assert page.rest > start
        start = page.rest


@settings(deadline=None)
@given(st.lists(st.text(max_size=120), max_size=8), st.integers(min_value=1, max_value=20))
def test_pages_hold_everything_once_and_keep_to_the_budget(texts: list[str], budget: int) -> None:
    """Put together, the pieces are the texts; each page fits, but for a single character that is over it alone."""
    whole = [""] * len(texts)
    for page in walk(texts, budget):
        bare = [piece.text.removesuffix(CUT) for piece in page.pieces]
        for piece, text in zip(page.pieces, bare, strict=True):
            whole[piece.item] += text
        assert sum(map(estimate_tokens, bare)) <= max(budget, 1)

    assert whole == texts


def test_only_a_text_that_is_alone_too_long_is_cut() -> None:
    """A text that does not fit any more begins the next page, whole."""
    first, second = walk(["a" * 30, "b" * 30], 10)

    assert [(p.item, p.text, p.whole) for p in first.pieces] == [(0, "a" * 30, True)]
    assert [(p.item, p.whole) for p in second.pieces] == [(1, True)]


def test_a_cut_falls_between_words_where_one_is_near() -> None:
    """Else in the middle of one; never in nothing."""
    assert "one two three four"[: fitting("one two three four", 4)] == "one two three "
    assert fitting("x" * 100, 4) == 16
    assert fitting("日本語", 1) == 1


def test_a_cursor_fits_the_call_that_gave_it() -> None:
    """Not another tool, other arguments, another text; the order of the arguments does not matter."""
    given = {"query": "tea", "top_k": 3}
    cursor = write_cursor("search", given, Place(2, 5))

    assert read_cursor("search", {"top_k": 3, "query": "tea", "cursor": cursor}) == Place(2, 5)
    assert read_cursor("search", given) == Place()
    for tool, arguments in (
        ("other", {**given, "cursor": cursor}),
        ("search", {**given, "query": "coffee", "cursor": cursor}),
        ("search", {**given, "cursor": cursor[:-2]}),
        ("search", {**given, "cursor": ""}),
        ("search", {**given, "cursor": 7}),
        ("search", {**given, "cursor": "é"}),
        ("search", {**given, "cursor": "A" * 5000}),
        ("search", {**given, "cursor": "\x00"}),
    ):
        with pytest.raises(NoemaError) as refused:
            read_cursor(tool, arguments)
        assert refused.value.code == "CursorMismatch"


def test_the_estimate_counts_bytes() -> None:
    """Four bytes are a token, so a Chinese character counts three quarters of one."""
    assert [estimate_tokens(text) for text in ("", "a", "abcd", "abcde", "中文中文")] == [0, 1, 1, 2, 3]
    assert BUDGET == 2_000
