"""Counting tokens exactly, as a port: which tokenizer, and how many tokens a text is.

What lives here: the protocol and the id of the one encoding that budgets are kept in. What must never live here: an
estimate. `core.models.budget.estimate` guesses what a request will cost; a budget that a caller set is kept exactly or
refused.
"""

from __future__ import annotations

from typing import Final, Protocol

from core.errors import NoemaError

O200K: Final = "o200k_base@tiktoken-rs-0.12.0"
"""What a recall budget is counted in (contract §5.3)."""
SPELLINGS: Final = frozenset({O200K, "o200k_base@tiktoken-rs-0.12"})
"""The ids that callers may name it by; the encoding is the same."""


def check_tokenizer(name: str | None, member: str) -> None:
    """Take our tokenizer, under either spelling, or none named.

    Raises:
        NoemaError: InvalidInput, naming the member, for another one.
    """
    if name is not None and name not in SPELLINGS:
        raise NoemaError(
            "InvalidInput",
            f"budgets are counted by {O200K} and by no other tokenizer",
            hint="Name that one, or leave it out.",
            details={"member": member, "tokenizer": O200K},
        )


class Tokenizer(Protocol):
    """Counts tokens of `O200K`. Safe to share between threads."""

    def count(self, text: str) -> int:
        """How many tokens a text is, special tokens taken as ordinary text."""
