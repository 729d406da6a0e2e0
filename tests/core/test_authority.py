"""The two gates: what a caller may do, and what exists for it."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from core.authority import PERMISSIONS, Action, Principal, allows, authorize, projectable, represents, visible
from core.errors import NoemaError
from core.model.elements import Assertion, Concept, Governance, Origin, System

SYSTEM = System(1, 0, 0, "t", "t", Origin("o", "c"))
SECRET = Concept(id="C-1", system=SYSTEM, schema_ref="kip://a@1.0.0/T", governance=Governance("secret"))
CLAIM = Assertion(
    id="A-1",
    system=SYSTEM,
    proposition="P-1",
    asserted_by="C-2",
    stance="support",
    mode="stated",
    asserted_at=0,
)


def code_of(*args):
    with pytest.raises(NoemaError) as caught:
        authorize(*args)
    return caught.value.code


def test_an_owner_may_do_and_see_everything():
    """Without restrictions every action passes on every element."""
    owner = Principal("owner")

    for action in get_args(Action):
        authorize(owner, action, SECRET)
    assert visible(owner, SECRET)
    assert represents(owner, "C-2")


def test_each_action_needs_one_of_its_permissions():
    """Every action has permissions of KIP's names, and none passes without one of them."""
    nobody = Principal("nobody", permissions=frozenset())
    assert set(PERMISSIONS) == set(get_args(Action))

    for action, names in PERMISSIONS.items():
        assert code_of(nobody, action) == "NotAuthorized"
        assert all(allows(Principal("p", permissions=frozenset({name})), action) for name in names)


def test_what_may_not_be_discovered_does_not_exist():
    """A hidden element is not found, whatever the caller may do, so that its existence does not leak."""
    reader = Principal("reader", hidden=frozenset({"secret"}))

    assert not visible(reader, SECRET)
    assert code_of(reader, "update", SECRET) == "NotFoundOrNotVisible"
    assert visible(reader, CLAIM)


def test_only_a_representative_withdraws():
    """To retract, a caller must be able to speak for who asserted; to record what somebody said, not."""
    recorder = Principal("recorder", actors=frozenset())

    assert code_of(recorder, "retract", CLAIM) == "RetractionNotAuthorized"
    authorize(recorder, "assert", CLAIM)
    authorize(Principal("two", actors=frozenset({"C-2"})), "retract", CLAIM)


def test_what_only_counts_in_projections_is_not_shown():
    """A secret claim is not found and may be projected; a secret Concept is neither, nor what is hidden altogether."""
    reader, outsider = (
        Principal("reader", projected=frozenset({"secret"})),
        Principal("reader", hidden=frozenset({"secret"})),
    )
    secret_claim = msgspec.structs.replace(CLAIM, governance=Governance(classification="secret"))

    assert not visible(reader, secret_claim)
    assert projectable(reader, secret_claim)
    assert code_of(reader, "read", SECRET) == "NotFoundOrNotVisible"
    assert not projectable(reader, SECRET)
    assert not projectable(outsider, secret_claim)
