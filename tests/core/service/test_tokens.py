"""Space tokens: minted, listed, found, revoked; unique names, the cap, and stores that fail."""

import hashlib
from typing import Any

import pytest

from core.errors import NoemaError
from core.ports import Refused, Unavailable, Write
from core.protocol.http_types import AddSpaceTokenInput, CreateSpaceInput, RevokeSpaceTokenInput, SpaceToken
from core.service.admin import Admin
from core.service.commit import Commits
from core.service.spaces import Spaces
from core.service.tokens import MAX_TOKENS, SpaceTokens, TokenGrant
from core.service.values import Caller
from core.storage.layout import space_pk
from core.storage.memory import MemoryObjects, MemoryTable
from tests.doubles import CountingEntropy, FailingTable, FakeClock, Faults

OWNER = Caller(subject="alice", channel="rest", scope="*")
WRITER = Caller(subject="bob", channel="rest", scope="write")


class Place:
    """One space in memory, its tokens behind a table that may fail."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.clock, self.entropy, self.rows = FakeClock(), CountingEntropy(), MemoryTable()
        objects = MemoryObjects(self.clock)
        spaces = Spaces(self.rows, objects, self.clock)
        commits = Commits(self.rows, objects, self.clock, self.entropy, spaces)
        admin = Admin(self.rows, self.clock, spaces, commits)
        for space in ("demo", "other"):
            wish = CreateSpaceInput(user="alice", space_id=space, tier=1)
            admin.create_space(OWNER, wish, self.clock.time + 1000)
        self.tokens = SpaceTokens(FailingTable(self.rows, faults), self.clock, self.entropy)

    def add(
        self, name: str = "reader", scope: Any = "read", caller: Caller = OWNER, **more: Any
    ) -> SpaceToken:
        return self.tokens.add("demo", caller, AddSpaceTokenInput(scope=scope, name=name, **more))

    def revoke(self, **wish: Any) -> bool:
        return self.tokens.revoke("demo", RevokeSpaceTokenInput(**wish))


def refused(call: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(NoemaError) as caught:
        call(*args, **kwargs)
    return caught.value.code


def test_a_minted_token_is_found_by_its_value() -> None:
    """The value allows what was wished, in its space and nowhere else."""
    place = Place()
    token = place.add(labels=["hr", "legal"])

    assert place.tokens.find("demo", token.token) == TokenGrant(
        name="reader", scope="read", labels=("hr", "legal")
    )
    assert place.tokens.find("other", token.token) is None
    assert place.tokens.find("nowhere", token.token) is None


def test_a_value_is_unguessable_and_shown_once() -> None:
    """256 bits, `ST` in front; every later listing shows eight characters of it."""
    place = Place()
    first, second = place.add("a"), place.add("b")

    assert first.token.startswith("ST")
    assert len(first.token) == 45
    assert first.token != second.token
    assert [token.token for token in place.tokens.listing("demo")] == [
        f"{first.token[:8]}…",
        f"{second.token[:8]}…",
    ]


def test_the_table_never_holds_a_value() -> None:
    """No row has the token's text, only its SHA-256 and the characters that are shown."""
    place = Place()
    value = place.add().token
    rows = place.rows.query(space_pk("demo"), "!", "\U0010ffff", limit=1000)

    assert value not in repr(rows)
    assert value[2:] not in repr(rows)
    assert hashlib.sha256(value.encode()).hexdigest() in repr(rows)


def test_a_listing_says_who_minted_what_and_when() -> None:
    """Name, scope, labels, expiry, times and the subject that minted it, oldest first."""
    place = Place()
    place.add("first")
    place.clock.advance(5)
    expiry = place.clock.time + 1000
    place.add("second", "write", WRITER, expires_at=expiry)

    listing = place.tokens.listing("demo")

    assert [(token.name, token.scope, token.created_by) for token in listing] == [
        ("first", "read", "alice"),
        ("second", "write", "bob"),
    ]
    assert listing[1].expires_at == expiry
    assert listing[1].created_at == listing[0].created_at + 5
    assert place.tokens.listing("other") == []


@pytest.mark.parametrize(
    "value",
    ["", "ST", "HEAD", "T#", "N#tokens", "st" + "a" * 43, "ST" + "a" * 42, "ST" + "a" * 44, "ST" + "é" * 43,
     "ST" + "a" * 42 + "\n", "XX" + "a" * 43, "ST" + "a" * 43 + " ", "ST" + "#" * 43, "ST" + "x" * 100_000],
)  # fmt: skip
def test_no_other_text_reaches_a_row(value: str) -> None:
    """Text that is not shaped like a token is refused before the table is asked."""
    place = Place()
    reading = FailingTable(place.rows)
    tokens = SpaceTokens(reading, place.clock, place.entropy)

    assert tokens.find("demo", value) is None
    assert reading.reads == 0


def test_the_digest_of_a_token_is_not_a_token() -> None:
    """Whoever reads the table holds no credential."""
    place = Place()
    digest = hashlib.sha256(place.add().token.encode()).hexdigest()

    assert place.tokens.find("demo", digest) is None
    assert place.tokens.find("demo", "ST" + digest[:43]) is None


def test_a_token_ends_at_its_expiry() -> None:
    """At `expires_at` it is over; it stays listed until it is revoked."""
    place = Place()
    token = place.add(expires_at=place.clock.time + 10)
    place.clock.advance(9)
    assert place.tokens.find("demo", token.token)
    place.clock.advance(1)

    assert place.tokens.find("demo", token.token) is None
    assert len(place.tokens.listing("demo")) == 1


def test_only_a_caller_with_every_right_mints_every_right() -> None:
    """A `*` token needs a `*` caller; `read` and `write` do not (contract §1.5)."""
    place = Place()

    assert refused(place.add, "x", "*", WRITER) == "NotAuthorized"
    assert place.add("x", "*").scope == "*"
    assert place.add("y", "write", WRITER).scope == "write"
    assert place.add("z", "read", WRITER).scope == "read"


BAD_WISHES: dict[str, dict[str, Any]] = {
    "an expiry in the past": {"expires_at": 1},
    "an expiry now": {"expires_at": FakeClock().time},
    "labels on a write token": {"scope": "write", "labels": ["hr"]},
    "labels on a token for everything": {"scope": "*", "labels": []},
    "a blank label": {"labels": ["hr", "  "]},
    "a name with a line break": {"name": "a\nb"},
    "a name in blanks": {"name": " a "},
    "an invisible name": {"name": "\u200b"},
}


@pytest.mark.parametrize("name", BAD_WISHES)
def test_a_bad_wish_mints_nothing(name: str) -> None:
    """What cannot be granted is InvalidInput, and no token exists afterwards."""
    place = Place()

    assert refused(place.add, **BAD_WISHES[name]) == "InvalidInput"
    assert place.tokens.listing("demo") == []


def test_a_name_is_given_once_until_it_is_free_again() -> None:
    """A second token of a name is a conflict; after revocation the name may be used again."""
    place = Place()
    place.add()
    assert refused(place.add) == "IdentityConflict"

    assert place.revoke(name="reader") is True
    assert place.add().name == "reader"


@pytest.mark.parametrize("how", ["name", "token"])
def test_revocation_by_name_or_value_happens_once(how: str) -> None:
    """The first call removes the token, the second finds none."""
    place = Place()
    token = place.add()
    wish = {"name": token.name} if how == "name" else {"token": token.token}

    assert place.revoke(**wish) is True
    assert place.tokens.find("demo", token.token) is None
    assert place.tokens.listing("demo") == []
    assert place.revoke(**wish) is False


def test_revocation_never_reaches_another_row() -> None:
    """A name or text of another row's key revokes nothing; neither both nor none may be given."""
    place = Place()
    place.add()
    for text in ("HEAD", "owner", "tier", "T#", "", "x" * 1000):
        assert place.revoke(token=text) is False
        assert place.revoke(name=text) is False
    for wish in ({}, {"name": "reader", "token": "ST"}):
        assert refused(place.revoke, **wish) == "InvalidInput"
    assert len(place.tokens.listing("demo")) == 1


def test_a_space_has_at_most_a_hundred_tokens() -> None:
    """The cap is exact, and a revoked token makes room."""
    place = Place()
    for number in range(MAX_TOKENS):
        place.add(f"t{number}")
    assert refused(place.add, "one more") == "ResourceExhausted"

    place.revoke(name="t7")
    place.add("one more")

    assert len(place.tokens.listing("demo")) == MAX_TOKENS


def test_a_space_that_is_not_there_has_no_tokens() -> None:
    """Minting, listing and revoking in an unknown space are NotFoundOrNotVisible."""
    place = Place()
    wish = AddSpaceTokenInput(scope="read", name="x")

    assert refused(place.tokens.add, "nowhere", OWNER, wish) == "NotFoundOrNotVisible"
    assert refused(place.tokens.listing, "nowhere") == "NotFoundOrNotVisible"
    assert refused(place.tokens.revoke, "nowhere", RevokeSpaceTokenInput(name="x")) == "NotFoundOrNotVisible"
    assert place.rows.query(space_pk("nowhere"), "!", "\U0010ffff", limit=10) == []


def test_a_store_that_fails_before_writing_leaves_nothing() -> None:
    """An unanswered mint that did not happen is OutcomeUnknown, and the name stays free."""
    place = Place(Faults([0]))

    assert refused(place.add) == "OutcomeUnknown"
    assert place.tokens.listing("demo") == []
    assert place.add().name == "reader"


def test_a_store_that_fails_after_writing_gives_the_token() -> None:
    """An unanswered mint that did happen is found out by looking."""
    place = Place(Faults([0], after=True))

    token = place.add()

    assert place.tokens.find("demo", token.token)


def test_a_store_that_does_not_answer_a_read_is_unavailable() -> None:
    """A failed look-up is never taken for an absent token."""
    place = Place(Faults(range(100), reads=True))

    assert refused(place.tokens.find, "demo", "ST" + "a" * 43) == "ServiceUnavailable"
    assert refused(place.tokens.listing, "demo") == "ServiceUnavailable"
    assert refused(place.revoke, name="reader") == "ServiceUnavailable"


def test_two_minters_of_one_name_make_one_token() -> None:
    """When another mint of the name lands first, the second is a conflict and leaves no row."""
    place = Place()
    rival = SpaceTokens(place.rows, place.clock, place.entropy)

    def rush(writes: list[Write]) -> None:
        table.before_transact = None
        rival.add("demo", OWNER, AddSpaceTokenInput(scope="read", name="reader"))

    table = FailingTable(place.rows, before_transact=rush)
    late = SpaceTokens(table, place.clock, place.entropy)
    wish = AddSpaceTokenInput(scope="read", name="reader")

    assert refused(late.add, "demo", OWNER, wish) == "IdentityConflict"
    assert len(place.tokens.listing("demo")) == 1


def test_two_revocations_remove_one_token() -> None:
    """When another revocation lands first, ours says that there was none, and the count stays right."""
    place = Place()
    place.add()
    place.add("kept")

    def rush(writes: list[Write]) -> None:
        table.before_transact = None
        assert place.revoke(name="reader") is True

    table = FailingTable(place.rows, before_transact=rush)
    late = SpaceTokens(table, place.clock, place.entropy)

    assert late.revoke("demo", RevokeSpaceTokenInput(name="reader")) is False
    assert place.rows.get(space_pk("demo"), "N#tokens") == {"n": 1}


def test_a_revocation_without_an_answer_is_settled_by_looking() -> None:
    """Whether it happened or not, the caller learns which."""
    for after in (False, True):
        place = Place()
        token = place.add()
        table = FailingTable(place.rows, Faults([0], after=after, error=Unavailable))
        unsure = SpaceTokens(table, place.clock, place.entropy)
        if after:
            assert unsure.revoke("demo", RevokeSpaceTokenInput(name="reader")) is True
        else:
            assert refused(unsure.revoke, "demo", RevokeSpaceTokenInput(name="reader")) == "OutcomeUnknown"
        assert (place.tokens.find("demo", token.token) is None) is after


def test_transactions_that_collide_may_be_tried_again() -> None:
    """A store that only knows of a collision gives a conflict that is safe to repeat."""
    place = Place()
    place.add("kept")

    class Colliding(FailingTable):
        def transact(self, writes: Any) -> None:
            raise Refused({})

    tokens = SpaceTokens(Colliding(place.rows), place.clock, place.entropy)

    wish = AddSpaceTokenInput(scope="read", name="x")
    assert refused(tokens.add, "demo", OWNER, wish) == "SerializationConflict"
    assert refused(tokens.revoke, "demo", RevokeSpaceTokenInput(name="kept")) == "SerializationConflict"
    assert [token.name for token in place.tokens.listing("demo")] == ["kept"]
