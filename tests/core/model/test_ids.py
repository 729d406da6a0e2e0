"""Identifiers: unique by construction, ordered by creation, opaque in shape."""

import pytest

from core.errors import NoemaError
from core.model.ids import (
    MAX_ORDINAL,
    check_space_id,
    element_id,
    is_element_id,
    kind_of,
    make_salt,
    sort_key,
    transaction_id,
    version_of_transaction,
)

SALT = make_salt(b"\x01\x02\x03\x04")


def test_ids_sort_by_version_then_ordinal() -> None:
    """Ids of any kinds order by the commit that made them, then by their place in it."""
    made = [
        element_id("evidence", 1, 0, SALT),
        element_id("concept", 1, 1, SALT),
        element_id("activity", 2, 0, SALT),
        element_id("concept", 33, 0, SALT),
        element_id("concept", 33, MAX_ORDINAL, SALT),
        element_id("assertion", 2**39, 7, SALT),
    ]

    assert sorted(made, key=sort_key) == made


def test_id_names_its_kind() -> None:
    """The letter before the dash is the kind."""
    assert kind_of(element_id("proposition", 5, 5, SALT)) == "proposition"


@pytest.mark.parametrize(
    "text", ["", "C-", "C-1", "Z-0000000100000001", "C-000000010000000I", "C-00000001000\n"]
)
def test_other_texts_are_no_ids(text: str) -> None:
    """A text of another shape is not taken for an id."""
    assert not is_element_id(text)


def test_spaces_do_not_share_ids() -> None:
    """The same place in two logs gives two ids, because each space instance has its own salt."""
    other = make_salt(b"\x04\x03\x02\x01")

    assert element_id("concept", 1, 0, SALT) != element_id("concept", 1, 0, other)


def test_transaction_id_leads_back_to_its_version() -> None:
    """A transaction id of this space names its version; another space's, or a damaged one, names none."""
    made = transaction_id(77, SALT)

    assert version_of_transaction(made, SALT) == 77
    assert version_of_transaction(made, make_salt(b"xxxx")) is None
    assert version_of_transaction(made[:-1], SALT) is None
    assert version_of_transaction("tx-!!!!!!!!" + SALT, SALT) is None


@pytest.mark.parametrize("text", ["a", "my_space_1", "x" * 64])
def test_space_ids(text: str) -> None:
    """Lower-case letters, digits and underscores name a space."""
    assert check_space_id(text) == text


@pytest.mark.parametrize("text", ["", "x" * 65, "A", "a-b", "a#b", "a/b", "ä", "a\n", "..", "a b"])
def test_bad_space_ids_are_refused(text: str) -> None:
    """Anything else is refused with the rule in the message."""
    with pytest.raises(NoemaError) as caught:
        check_space_id(text)

    assert caught.value.code == "InvalidInput"
    assert "64" in caught.value.message
