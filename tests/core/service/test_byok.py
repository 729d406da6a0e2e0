"""A space's own model: how it is set, and that its key never comes out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from core.errors import NoemaError
from core.models.choice import ModelChoice
from core.ports import Put, StoreFault, Unavailable
from core.protocol.byok_types import ByokInput, ByokView
from core.protocol.http_types import CreateSpaceInput
from core.service.byok import FRESH_MS, Byok
from core.service.erasure import Erasures
from core.service.models import SpaceModels
from core.service.upkeep import Upkeep
from core.storage.layout import byok_sk, space_pk
from infra.local.cipher import AesCipher
from tests.doubles import FailingTable, Faults
from tests.providers import FakeProviders
from tests.services import MINUTE, World

KEY = "sk-owner-0123456789-abcdefgh-WXYZ"
OTHER = "sk-other-0123456789-abcdefgh-1234"
WISH: dict[str, Any] = {"family": "anthropic", "model": "claude-haiku-4-5", "api_key": KEY}


class Place:
    """A space `home`, and the services that its own model needs."""

    def __init__(self, *, cipher: Any = ..., table: Any = None) -> None:
        self.world = World()
        self.world.create()
        self.cipher = AesCipher([bytes(range(32))], self.world.entropy) if cipher is ... else cipher
        self.providers = FakeProviders()
        self.byok = self.another(table)

    def another(self, table: Any = None) -> Byok:
        """The same in another process."""
        world = self.world
        return Byok(table or world.table, world.clock, world.spaces, self.cipher, self.providers)

    def set(self, **members: Any) -> ByokView:
        """Change the setting, as decoded from JSON."""
        return self.byok.update(self.world.caller, "home", msgspec.convert(members, ByokInput))

    def refused(self, **members: Any) -> NoemaError:
        """Why a change is refused; nothing has changed then."""
        before = self.row
        with pytest.raises(NoemaError) as caught:
            self.set(**members)
        assert self.row == before
        return caught.value

    @property
    def row(self) -> Any:
        return self.world.table.get(space_pk("home"), byok_sk())


@pytest.fixture
def place() -> Place:
    return Place()


def test_it_is_set_shown_and_taken_away(place: Place) -> None:
    """Everything is shown but the key, of which the last four characters are."""
    assert place.byok.view("home") == ByokView(configured=False)

    shown = place.set(**WISH, label="mine", context_window=100_000)

    assert msgspec.to_builtins(shown) == {
        "configured": True,
        "family": "anthropic",
        "model": "claude-haiku-4-5",
        "api_base": "https://api.anthropic.com",
        "api_key_end": "WXYZ",
        "label": "mine",
        "context_window": 100_000,
        "updated_at": place.world.clock.time,
        "updated_by": "alice",
    }
    assert place.byok.view("home") == shown == place.another().view("home")
    assert place.set(api_key=None) == ByokView(configured=False)
    assert place.byok.view("home") == ByokView(configured=False)
    assert place.row is None


def test_it_is_used_with_its_key(place: Place) -> None:
    """The provider gets the very key, sizes and habits; an untrusted address is told as such."""
    place.set(**WISH, context_window=9, max_output=7, bearer_auth=True)

    own = place.byok.current("home")

    assert own is not None
    choice = ModelChoice("anthropic", "claude-haiku-4-5", "https://api.anthropic.com", 9, 7, bearer=True)
    assert own.choice == choice
    assert place.providers.built[-1] == (choice, False)
    assert place.providers.keys[choice.name]() == KEY
    assert place.byok.has_own("home")


def test_a_change_keeps_what_it_does_not_name(place: Place) -> None:
    """The key too, as long as it goes to the same address."""
    place.set(**WISH, label="mine")

    shown = place.set(model="claude-sonnet-5", disabled=True)

    assert (shown.model, shown.label, shown.disabled, shown.api_key_end) == (
        "claude-sonnet-5",
        "mine",
        True,
        "WXYZ",
    )
    assert place.set(label=None).label is None
    assert not place.byok.has_own("home")
    place.set(disabled=False)
    own = place.byok.current("home")
    assert own is not None
    assert place.providers.keys[own.model.name]() == KEY


def test_a_key_is_rotated_by_setting_another(place: Place) -> None:
    """The old one is used by nobody after that, in no process."""
    place.set(**WISH)
    elsewhere = place.another()
    assert elsewhere.has_own("home")

    place.set(api_key=OTHER)

    assert place.byok.view("home").api_key_end == "1234"
    place.byok.current("home")
    assert place.providers.keys["anthropic:claude-haiku-4-5"]() == OTHER
    place.set(api_key=None)
    assert not place.byok.has_own("home")
    assert not elsewhere.has_own("home")


@pytest.mark.parametrize(
    "change",
    [
        {"api_base": "https://elsewhere.example"},
        {"family": "openai", "api_base": "https://api.anthropic.com"},
        {"api_base": "https://api.anthropic.com:8443"},
        {"api_base": "https://api.anthropic.com/other"},
    ],
)
def test_a_stored_key_goes_to_no_other_address(place: Place, change: dict[str, Any]) -> None:
    """Or whoever may set it could have it sent to a host of theirs."""
    place.set(**WISH)

    error = place.refused(**change)

    assert (error.code, error.details) == ("InvalidInput", {"member": "api_key"})
    assert place.set(**change, api_key=OTHER).api_key_end == "1234"


@pytest.mark.parametrize(
    ("wish", "member"),
    [
        ({"model": "m", "api_key": KEY}, "family"),
        ({"family": "anthropic", "api_key": KEY}, "model"),
        ({"family": "anthropic", "model": "m"}, "api_key"),
        ({"family": "openai", "model": "m", "api_key": KEY}, "api_base"),
        (
            {"family": "openai", "model": "two words", "api_base": "https://x.example", "api_key": KEY},
            "model",
        ),
        ({"family": "openai", "model": "m", "api_base": "http://x.example/v1", "api_key": KEY}, "api_base"),
        ({"family": "openai", "model": "m", "api_base": "https://10.0.0.1/v1", "api_key": KEY}, "api_base"),
        (
            {"family": "openai", "model": "m", "api_base": "https://169.254.169.254/v1", "api_key": KEY},
            "api_base",
        ),
        ({"family": "openai", "model": "m", "api_base": "https://localhost/v1", "api_key": KEY}, "api_base"),
        (
            {"family": "openai", "model": "m", "api_base": f"https://{KEY}@x.example/v1", "api_key": KEY},
            "api_base",
        ),
    ],
)
def test_what_cannot_work_is_refused_by_its_member(place: Place, wish: dict[str, Any], member: str) -> None:
    """Before anything is kept, and without the key in the message."""
    error = place.refused(**wish)

    assert (error.code, error.details) == ("InvalidInput", {"member": member})
    assert KEY not in str(error.to_wire())


@pytest.mark.parametrize("members", [{"effort": "high"}, {"stream": True}])
def test_what_is_not_offered_is_refused_by_name(place: Place, members: dict[str, Any]) -> None:
    """A member without an effect would be a lie."""
    error = place.refused(**WISH, **members)

    assert (error.code, error.details) == ("NotImplementedYet", {"member": next(iter(members))})


@pytest.mark.parametrize(
    "wish",
    [
        {"family": "bedrock"},
        {"api_key": "short"},
        {"api_key": "with a blank in it"},
        {"api_key": "x" * 2000},
        {"apikey": KEY},
    ],
)
def test_what_is_no_setting(wish: dict[str, Any]) -> None:
    """A key that was misspelt, or put into another member, is not echoed."""
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert({**WISH, **wish}, ByokInput)

    assert KEY not in str(caught.value)


def test_a_short_key_shows_nothing(place: Place) -> None:
    """Four characters would be too much of it."""
    assert place.set(**{**WISH, "api_key": "short-key"}).api_key_end is None


def test_without_a_cipher_nothing_can_be_brought() -> None:
    """And what was brought before is not used, nor is anybody else's in its place."""
    place = Place(cipher=None)
    assert place.refused(**WISH).code == "NotImplementedYet"

    kept = Place()
    kept.set(**WISH)
    kept.cipher = None
    with pytest.raises(NoemaError) as caught:
        kept.another().current("home")
    assert caught.value.code == "ServiceUnavailable"
    assert kept.byok.view("home").configured


class FailingCipher:
    """A cipher that does not answer, or does not open."""

    def __init__(self, fault: Exception) -> None:
        self.fault = fault

    def seal(self, plain: bytes, context: str) -> bytes:
        raise self.fault

    def open(self, sealed: bytes, context: str) -> bytes:
        raise self.fault


@pytest.mark.parametrize("fault", [Unavailable("KMS"), StoreFault("no")])
def test_a_key_that_cannot_be_opened_is_not_replaced(place: Place, fault: Exception) -> None:
    """The space waits for its own model; the operator's is not charged."""
    place.set(**WISH)
    place.cipher = FailingCipher(fault)
    models = SpaceModels(
        {"default": (ModelChoice("anthropic", "m", "https://x"), lambda: "k")},
        place.providers,
        place.another(),
    )

    with pytest.raises(NoemaError) as caught:
        models.of("home", "recall")

    assert caught.value.code == "ServiceUnavailable"
    assert KEY not in str(caught.value.to_wire())


def test_a_sealed_key_opens_in_its_own_space_only(place: Place) -> None:
    """Copied into another space's row it is worth nothing."""
    place.set(**WISH)
    world = place.world
    world.create("other")
    head = world.spaces.head("other")
    world.table.transact([Put(space_pk("other"), byok_sk(), {**place.row, "instance": head.instance})])

    with pytest.raises(NoemaError) as caught:
        place.byok.current("other")
    assert caught.value.code == "ServiceUnavailable"


def test_a_sealed_key_opens_for_its_own_address_only(place: Place) -> None:
    """Whoever can write the row, but not open the key, cannot have it sent elsewhere."""
    place.set(**WISH)
    for moved in (
        {"api_base": "https://evil.example"},
        {"family": "openai", "api_base": "https://evil.example"},
    ):
        place.world.table.transact([Put(space_pk("home"), byok_sk(), {**place.row, **moved})])

        with pytest.raises(NoemaError) as caught:
            place.another().current("home")
        assert caught.value.code == "ServiceUnavailable"


def test_no_byte_of_the_key_is_kept_in_the_clear(place: Place) -> None:
    """In no row and no object of the store, whatever was done with it."""
    place.set(**WISH)
    place.set(label="x")
    place.byok.current("home")

    assert KEY.encode() not in b"".join(_all(place))
    assert KEY not in repr(place.byok.current("home"))


def _all(place: Place) -> list[bytes]:
    """Every value of the space's rows and objects."""
    out = []
    for sk, row in place.world.table.query(space_pk("home"), "!", "\U0010ffff", limit=1000):
        out.append(sk.encode())
        out += [value if isinstance(value, bytes) else str(value).encode() for value in row.values()]
    for key, _, _ in place.world.objects.list("home/"):
        out.append(place.world.objects.get(key) or b"")
    return out


def test_it_is_erased_with_the_space(place: Place) -> None:
    """And a new space of the same name does not have it, though a process remembers."""
    place.set(**WISH)
    used_before = place.another()
    assert used_before.has_own("home")
    world = place.world
    erasures = Erasures(world.spaces, Upkeep(world.spaces, world.leases, world.entropy), world.entropy)

    receipt = erasures.delete_space("home", "alice", owner="run")

    assert receipt.clean
    assert place.row is None
    assert place.refused(**WISH).code == "NotFoundOrNotVisible"
    world.admin.create_space(
        world.caller, CreateSpaceInput(user="bob", space_id="home", tier=0), world.clock.now() + MINUTE
    )
    assert place.byok.view("home") == ByokView(configured=False)
    assert not used_before.has_own("home")


def test_two_changes_at_once(place: Place) -> None:
    """The second sees that it was not alone."""
    place.set(**WISH)
    raced = FailingTable(place.world.table)
    slow = place.another(raced)
    raced.before_transact = lambda _: (setattr(raced, "before_transact", None), place.set(label="first"))  # type: ignore[func-returns-value]

    with pytest.raises(NoemaError) as caught:
        slow.update(place.world.caller, "home", ByokInput(label="second"))

    assert caught.value.code == "SerializationConflict"
    assert place.byok.view("home").label == "first"


def test_an_answer_that_was_lost(place: Place) -> None:
    """The outcome is unknown, and said to be; looking tells."""
    lost = place.another(FailingTable(place.world.table, Faults([0], after=True)))

    with pytest.raises(NoemaError) as caught:
        lost.update(place.world.caller, "home", msgspec.convert(WISH, ByokInput))

    assert caught.value.code == "OutcomeUnknown"
    assert place.byok.view("home").configured


def test_a_space_that_is_not_there(place: Place) -> None:
    """It has no setting and gets none."""
    for ask in (
        lambda: place.byok.view("none"),
        lambda: place.byok.update(place.world.caller, "none", msgspec.convert(WISH, ByokInput)),
    ):
        with pytest.raises(NoemaError) as caught:
            ask()
        assert caught.value.code == "NotFoundOrNotVisible"


# --- which model serves


def test_the_order_of_models(place: Place) -> None:
    """The space's own, then the role's, then the default; a role that is off is offline whatever the default."""
    one, two = ModelChoice("bedrock", "one"), ModelChoice("bedrock", "two")
    configured = {"default": (one, lambda: None), "recall": (two, lambda: None), "judge": None}
    models = SpaceModels(configured, place.providers, place.byok)

    def names() -> list[str | None]:
        roles = ("formation", "recall", "maintenance", "judge")
        found = [models.of("home", role) for role in roles]  # type: ignore[arg-type]
        return [None if model is None else model.name for model in found]

    assert names() == ["bedrock:one", "bedrock:two", "bedrock:one", None]
    place.set(**WISH)
    assert names() == ["anthropic:claude-haiku-4-5"] * 4
    place.set(disabled=True)
    assert names() == ["bedrock:one", "bedrock:two", "bedrock:one", None]
    assert models.of("home", "formation") is models.of("home", "maintenance")
    assert [trusted for choice, trusted in place.providers.built if choice in (one, two)] == [True, True]


def test_nothing_configured_is_offline() -> None:
    """No model, and nothing is built."""
    providers = FakeProviders()

    assert SpaceModels({}, providers).of("home", "recall") is None
    assert providers.built == []


def test_a_key_is_opened_once_while_it_stays_the_same(place: Place) -> None:
    """Each use looks at the row; the cipher is asked when the row has changed."""
    place.set(**WISH)
    byok = place.another()

    assert byok.current("home") is byok.current("home")
    place.set(label="new")
    place.cipher = None
    assert byok.current("home") is not None


def test_a_space_without_a_model_is_looked_up_once_in_a_while(place: Place) -> None:
    """One read in half a minute, for every answer's time."""
    counted = FailingTable(place.world.table)
    byok = place.another(counted)

    for _ in range(5):
        assert byok.current("home") is None
    assert counted.reads == 1
    place.world.clock.advance(FRESH_MS)
    assert byok.current("home") is None
    assert counted.reads == 2
