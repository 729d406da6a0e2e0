"""Governed answers are those of a copy that holds only what the caller may know."""

from __future__ import annotations

import pytest

from tests.core.governance.oracle import difference


@pytest.mark.parametrize("block", range(10))
def test_a_governed_answer_is_that_of_a_filtered_copy(block):
    """Thirty random spaces, records and questions a block: nothing hidden moves an answer."""
    for seed in range(block * 30, block * 30 + 30):
        found = difference(seed)
        assert found is None, f"seed {seed}: {found}"


@pytest.mark.parametrize("seed", [7_004_059])
def test_what_once_differed_differs_no_more(seed):
    """Evidence whose every input is hidden is a root, as in the copy, and no circle."""
    assert difference(seed) is None
