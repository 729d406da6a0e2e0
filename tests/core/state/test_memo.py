"""The memo of a state: bounded, the least recently used go first."""

from __future__ import annotations

from core.state.memo import MAX_BYTES, MAX_ENTRIES, Memo


def test_what_is_put_is_found_until_it_is_replaced() -> None:
    """One value a key."""
    memo = Memo()
    memo.put("a", 1, 10)
    memo.put("a", 2, 20)

    assert (memo.get("a"), memo.get("b"), len(memo)) == (2, None, 1)


def test_the_least_recently_used_go_first() -> None:
    """By number."""
    memo = Memo()
    for key in range(MAX_ENTRIES):
        memo.put(key, key, 1)
    memo.get(0)
    memo.put("more", "more", 1)

    assert (memo.get(0), memo.get(1), memo.get("more"), len(memo)) == (0, None, "more", MAX_ENTRIES)


def test_bytes_are_bounded() -> None:
    """Two that do not fit together do not stand together, and a replaced one frees its room."""
    memo = Memo()
    memo.put("a", 1, MAX_BYTES // 2 + 1)
    memo.put("a", 2, MAX_BYTES // 2)
    memo.put("b", 3, MAX_BYTES // 2)
    assert (memo.get("a"), memo.get("b")) == (2, 3)
    memo.put("c", 4, 1)
    assert (memo.get("a"), memo.get("b"), memo.get("c")) == (None, 3, 4)


def test_what_is_too_large_is_not_kept_and_drives_nothing_out() -> None:
    """Nor is what stood under its key."""
    memo = Memo()
    memo.put("a", 1, 1)
    memo.put("b", 2, 1)
    memo.put("a", 3, MAX_BYTES + 1)

    assert (memo.get("a"), memo.get("b"), len(memo)) == (None, 2, 1)
