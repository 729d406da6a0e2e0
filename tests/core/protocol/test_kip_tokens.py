"""Sealed tokens and the capability table."""

from __future__ import annotations

import pytest

from core.errors import NoemaError
from core.protocol.capabilities import SUPPORTED, check_requirements
from core.protocol.tokens import family_of, seal, unseal

KEY = b"secret"


def test_a_token_opens_to_what_was_sealed():
    """A token gives back its value to the holder of the key, under its family."""
    token = seal("snap", ["i1", 7], KEY)

    assert unseal("snap", token, KEY) == ["i1", 7]
    assert family_of(token) == "snap"


def test_no_other_token_opens():
    """A changed byte, another family, another key and nonsense open to nothing."""
    token = seal("snap", ["i1", 7], KEY)

    assert unseal("kql", token, KEY) is None
    assert unseal("snap", token, b"other") is None
    for text in ("", "snap.", "snap.!!", "snap.AAAA", token[:-2], token + "AA"):
        assert unseal("snap", text, KEY) is None
    body = bytearray(token.encode())
    for place in range(len("snap."), len(body)):
        changed = body.copy()
        changed[place] = ord("A") if changed[place] != ord("A") else ord("B")
        assert unseal("snap", changed.decode(), KEY) is None


def test_requirements_are_met_or_named():
    """What is required and missing is refused with every name; what is not required is not looked at."""
    check_requirements({"serializable_transactions": True, "streaming": False, "nothing": None})

    with pytest.raises(NoemaError) as caught:
        check_requirements({"streaming": True, "telepathy": True, "belief_slot": True, "mutate_block": "yes"})

    assert caught.value.code == "UnsupportedCapability"
    assert caught.value.details["missing"] == ["mutate_block", "streaming", "telepathy"]


def test_limits_may_be_required():
    """A number asks for at least that much."""
    check_requirements({"max_transaction_operations": 10})
    with pytest.raises(NoemaError):
        check_requirements({"max_transaction_operations": 10_000})


def test_every_capability_is_plainly_true_or_false():
    """The table holds booleans, so that nothing is half promised."""
    assert all(isinstance(value, bool) for value in SUPPORTED.values())
