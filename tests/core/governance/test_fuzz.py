"""Fuzzed ids, keys and cursors leak nothing; `scripts/prove_governance.py` runs ten thousand."""

from __future__ import annotations

import pytest

from tests.core.governance.fuzz import Fuzz


@pytest.mark.parametrize("seed", [11, 12])
def test_fuzzed_names_leak_nothing(seed: int) -> None:
    """Six hundred requests a seed: nothing hidden in an answer, no failure of ours, and hidden is answered as absent."""
    assert Fuzz(seed).run(600) == []
