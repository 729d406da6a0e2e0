"""Names: keys sort like the numbers in them, and no two things share one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.storage import layout
from core.storage.layout import MAX_VERSION, delta_sk, delta_version, following, rows_of

VERSIONS = st.integers(0, MAX_VERSION)


@given(VERSIONS, VERSIONS)
def test_row_keys_sort_like_versions(left: int, right: int) -> None:
    """The rows of the log, of manifests and of erasures come in the order of their versions."""
    for name in (layout.delta_sk, layout.manifest_sk, layout.purge_sk):
        assert (name(left) < name(right)) == (left < right)


@given(VERSIONS)
def test_a_version_is_read_back(ver: int) -> None:
    """A delta row's key says its version."""
    assert delta_version(delta_sk(ver)) == ver


@given(VERSIONS)
def test_a_letters_rows_are_a_range(ver: int) -> None:
    """A query for a letter finds its rows and no others."""
    first, last = rows_of("D")

    assert first <= delta_sk(ver) <= last
    assert not any(
        first <= other <= last for other in ("HEAD", layout.manifest_sk(ver), layout.counter_sk("x"))
    )


@given(st.text(st.characters(min_codepoint=32), min_size=1, max_size=20))
def test_the_next_page_begins_after_the_last_row(sk: str) -> None:
    """Nothing is seen twice, and nothing that a key could be lies between."""
    assert sk < following(sk) <= sk + "!"


def test_idempotency_scopes_do_not_run_into_keys() -> None:
    """`ab` + `c` and `a` + `bc` are two requests."""
    assert layout.idempotency_sk("ab", "c") != layout.idempotency_sk("a", "bc")
    assert layout.idempotency_sk("a", "x" * 10_000) != layout.idempotency_sk("a", "x" * 10_001)
    assert len(layout.idempotency_sk("a", "x" * 10_000)) < 80


def test_a_token_is_not_in_its_key() -> None:
    """The row of a token can be found by the token, and the token cannot be read from the row."""
    key = layout.token_sk("STsecret")

    assert "secret" not in key
    assert key == layout.token_sk("STsecret") != layout.token_sk("STsecre")


def test_a_deltas_object_says_its_version() -> None:
    """The version can be read from the key, and from no other object's."""
    assert layout.delta_key_version("a", layout.delta_key("a", 17, "x")) == 17
    for key in ("a/seg/000000000017-x", "b/d/000000000017-x", "a/d/x", "a/d/"):
        assert layout.delta_key_version("a", key) is None


def test_spaces_do_not_run_into_each_other() -> None:
    """No space's prefix begins another's, and no object of one is listed for another."""
    assert not layout.delta_key("ab", 1, "x").startswith(layout.space_prefix("a"))
    assert layout.delta_key("a", 1, "x") == "a/d/000000000001-x"
    assert layout.segment_key("a", "0" * 64, "x") == "a/seg/" + "0" * 24 + "-x"
    assert layout.manifest_key("a", 2, "x") == "a/m/000000000002-x"
    assert layout.filter_key("a", 2, "x") == "a/f/000000000002-x"
