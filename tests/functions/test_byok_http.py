"""A space's own model over HTTP: who may set it, and that its key is nowhere to be found."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from core.models.chat import ModelFault
from core.ports import StoreFault, Unavailable
from core.storage.memory import MemoryTable
from functions import bootstrap
from functions.adapters import Adapters, adapters
from functions.bootstrap import build
from functions.logs import logger
from functions.model_settings import KeySource, key_of
from functions.settings import Settings, read_settings
from infra.aws.cipher import KmsCipher
from infra.local.cipher import AesCipher
from infra.models.factory import RealProviders
from tests.functions.world import KEYED, World

KEY = "sk-owner-0123456789-abcdefgh-WXYZ"
PATH = "/v1/demo/management/space_byok"
WISH = {"family": "anthropic", "model": "claude-haiku-4-5", "api_key": KEY}


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """What is logged, whole."""
    kept: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            kept.append(logger().registered_formatter.format(record) + repr(vars(record)))

    handler, level = Keep(), logger().level
    logger().addHandler(handler)
    logger().setLevel("DEBUG")
    yield kept
    logger().setLevel(level)
    logger().removeHandler(handler)


def test_the_key_is_in_no_answer_row_log_or_document(lines: list[str]) -> None:
    """Set, shown, changed, refused, used, erased: the bytes come out nowhere."""
    world = World().make_space("demo")
    token = world.token()
    answers = [
        world.ask("PATCH", PATH, WISH, token=token),
        world.ask("GET", PATH, token=token),
        world.ask("PATCH", PATH, {"label": "x"}, token=token),
        world.ask("PATCH", PATH, {"api_base": "https://x.example"}, token=token),
        world.ask("PATCH", PATH, {**WISH, "api_base": "http://127.0.0.1"}, token=token),
        world.ask("PATCH", PATH, {**WISH, "api_key": KEY + " "}, token=token),
        world.ask("PATCH", PATH, {**WISH, "familly": KEY}, token=token),
        world.ask("PATCH", PATH, json.dumps(WISH)[:-1].encode(), token=token),
        world.ask("PATCH", PATH, WISH),
        world.ask("GET", "/v1/demo/info", token=token),
        world.ask("GET", "/v1/demo/memory_status", token=token),
        world.ask("GET", "/info"),
    ]
    assert world.services.models.of("demo", "recall") is not None
    assert [answer.status for answer in answers] == [
        200,
        200,
        200,
        400,
        400,
        400,
        400,
        400,
        401,
        200,
        200,
        200,
    ]

    table: Any = world.table
    assert isinstance(table, MemoryTable)
    kept = repr(vars(table)).encode() + repr(vars(world.objects)).encode()
    places = [
        kept,
        repr(lines).encode(),
        *(answer.body + repr(answer.headers).encode() for answer in answers),
    ]
    for place in places:
        assert KEY.encode() not in place
    assert len(lines) >= len(answers)
    static = Path(bootstrap.__file__).parent / "static"
    assert "sk-" not in (static / "openapi.json").read_text("utf-8")


def test_only_who_manages_the_space(lines: list[str]) -> None:
    """A token of the space, or one that reads, is refused; so is one of another space."""
    world = World().make_space("demo").make_space("other")
    world.ask("PATCH", PATH, WISH, token=world.token())

    refused = [
        world.ask("GET", PATH, token=world.space_token(scope="write")),
        world.ask("GET", PATH, token=world.token(scope="read")),
        world.ask("PATCH", PATH, {"disabled": True}, token=world.token(scope="read")),
        world.ask("GET", PATH, token=world.token(aud="other")),
        world.ask("GET", PATH),
    ]

    assert all(answer.status in (401, 403) for answer in refused)
    assert world.ask("GET", PATH, token=world.token()).result["configured"] is True


def test_a_setting_is_taken_away_with_null(lines: list[str]) -> None:
    """And then there is none."""
    world = World().make_space("demo")
    world.ask("PATCH", PATH, WISH, token=world.token())

    assert world.ask("PATCH", PATH, {"api_key": None}, token=world.token()).result is True
    assert world.ask("GET", PATH, token=world.token()).result == {"configured": False}
    assert world.services.models.of("demo", "recall") is None


# --- what the settings build


def services(tmp_path: Path, **environ: str) -> bootstrap.Services:
    settings = read_settings({"NOEMA_STORE": "embedded", "NOEMA_DATA_DIR": str(tmp_path), **environ})
    return build(settings, adapters(settings))


def test_the_settings_model_is_not_built_in_a_test(tmp_path: Path) -> None:
    """Whatever the environment of whoever runs the tests says, no money is spent."""
    found = services(tmp_path, NOEMA_MODEL="openai:m@https://api.example/v1", NOEMA_MODEL_KEY="k")

    with pytest.raises(RuntimeError, match="may spend"):
        found.models.of("demo", "recall")


def test_a_model_is_built_from_the_settings(tmp_path: Path) -> None:
    """With the key, the price and the size that they name."""
    settings = read_settings(
        {
            "NOEMA_STORE": "embedded",
            "NOEMA_DATA_DIR": str(tmp_path),
            "NOEMA_MODEL": "openai:m@http://127.0.0.1:9/v1",
            "NOEMA_MODEL_CONTEXT": "8192",
            "NOEMA_PRICES": '{"openai:m@127.0.0.1:9": {"in": 0, "out": 0}}',
        }
    )
    world = adapters(settings)
    spending = RealProviders(
        world.clock,
        world.entropy,
        lambda: None,
        prices=settings.models.prices,
        may_spend=True,  # type: ignore[arg-type, return-value]
    )
    model = build(settings, msgspec.structs.replace(world, providers=spending)).models.of("demo", "judge")

    assert model is not None
    assert (model.name, model.capabilities.context_tokens, model.capabilities.price_in) == (
        "openai:m@127.0.0.1:9",
        8192,
        0,
    )
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


class FixedSecrets:
    """Secrets that are what they are, or fail."""

    def __init__(self, found: str | Exception) -> None:
        self.found = found

    def get(self, name: str) -> str:
        if isinstance(self.found, Exception):
            raise self.found
        return f"{self.found} of {name}"


def test_a_key_is_read_when_it_is_needed() -> None:
    """From the variable or the secret; one that cannot be read is a fault of the model, not of the caller."""
    assert key_of(KeySource("k"), None)() == "k"
    assert key_of(KeySource(), None)() is None
    assert key_of(KeySource("secret:a"), FixedSecrets("key"))() == "key of a"
    for secrets, kind in [
        (FixedSecrets(Unavailable("slow")), "unavailable"),
        (FixedSecrets(StoreFault("no right")), "unauthorized"),
        (None, "unauthorized"),
    ]:
        with pytest.raises(ModelFault) as caught:
            key_of(KeySource("secret:a"), secrets)()
        assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("environ", "cipher"),
    [
        ({"NOEMA_STORE": "memory"}, AesCipher),
        ({"NOEMA_STORE": "aws", "NOEMA_KMS_KEY": "alias/noema"}, KmsCipher),
        ({"NOEMA_STORE": "aws"}, type(None)),
    ],
)
def test_each_store_has_its_cipher(environ: dict[str, str], cipher: type) -> None:
    """On AWS only where a KMS key is named; without one spaces bring no keys."""
    names = {"NOEMA_TABLE": "t", "NOEMA_BUCKET": "b", "NOEMA_QUEUE_URL": "https://q"}

    made: Adapters = adapters(read_settings({**environ, **names}))

    assert type(made.cipher) is cipher


def test_info_names_the_models_and_no_more(lines: list[str]) -> None:
    """No host, no key."""
    models = read_settings(
        {"NOEMA_MODEL": "openai:gemma@http://10.1.2.3:8080/v1", "NOEMA_MODEL_KEY": KEY}
    ).models
    world = World(msgspec.structs.replace(KEYED, models=models))

    body = world.ask("GET", "/info").body

    assert json.loads(body)["models"]["recall"] == "openai:gemma"
    assert b"10.1.2.3" not in body
    assert KEY.encode() not in body
    assert isinstance(world.services.settings, Settings)
