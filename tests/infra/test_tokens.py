"""Tokens of o200k_base, held against counts made by another implementation (bpe-openai, in Rust)."""

import pytest

from infra.tokens import O200kTokenizer

COUNTED = O200kTokenizer()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("hello world", 2),
        ("I moved to Lisbon in May.", 7),
        ("我昨天在绿禾公园看到了一只可爱的松鼠。", 15),
        ("a" * 1000, 125),
        ('{"id":"E-00000002001jhaew","text":"naïve café 👍🏽"}', 23),
        ("".join(chr(97 + i * 7 % 26) for i in range(500)), 269),
    ],
)
def test_tokens_are_counted_exactly(text: str, tokens: int) -> None:
    """Latin, Han, emoji, JSON, and runs of letters without a blank."""
    assert COUNTED.count(text) == tokens


@pytest.mark.parametrize("text", ["<|endoftext|>", "\ud800", "\x00", "  \r\n\t "])
def test_odd_text_is_text(text: str) -> None:
    """Special tokens, half a surrogate pair and blanks are counted and never refused."""
    assert COUNTED.count(text) >= 1


def test_a_text_is_counted_piece_by_piece() -> None:
    """Two texts between which the pattern cuts anyway have together what each has."""
    first, second = "The first line.\n", "The second line.\n"

    assert COUNTED.count(first + second) == COUNTED.count(first) + COUNTED.count(second)


def test_a_long_run_of_letters_takes_no_quadratic_time() -> None:
    """A quarter of a million letters are merged; a tokenizer that looks at every pair each time would not end."""
    text = "".join(chr(97 + i * i % 26) for i in range(250_000))

    assert 50_000 < COUNTED.count(text) < 250_000
