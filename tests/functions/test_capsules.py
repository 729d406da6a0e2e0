"""Capsules over HTTP: bounds, refusals and retries, each by its status and code."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from tests.functions.capsule_cases import CAPSULE
from tests.functions.world import World

PATHS = ("verify", "preview", "import")


@pytest.fixture
def world() -> World:
    """A space."""
    return World().make_space()


def post(world: World, what: str, body: Any, **more: Any) -> Any:
    return world.ask("POST", f"/host/v1/demo/capsules/{what}", body, token=world.token(), **more)


@pytest.mark.parametrize("what", PATHS)
def test_a_changed_capsule_is_refused(world: World, what: str) -> None:
    """A word changed in a record is a 400 DigestMismatch on every route that takes a Capsule."""
    bad = copy.deepcopy(CAPSULE)
    bad["payload"]["records"]["concepts"][0]["name"] = "Eve"

    answer = post(world, what, {"capsule": bad})

    assert (answer.status, answer.code) == (400, "DigestMismatch")


@pytest.mark.parametrize("what", PATHS)
def test_what_is_no_capsule_is_never_a_500(world: World, what: str) -> None:
    """Bodies with bytes changed, cut or doubled are 400s; nothing is imported of them."""
    chance = random.Random(3)
    whole = json.dumps({"capsule": CAPSULE}).encode()
    for _ in range(60):
        place = chance.randrange(len(whole))
        body = whole[:place] + bytes([chance.randrange(256)]) + whole[place + chance.randrange(3) :]
        assert post(world, what, body).status in {200, 400}
    for body in (
        b'{"capsule": ' + b"[" * 100_000,
        b'{"capsule": {}}',
        b'{"capsule": {"payload": 1e999}}',
        b"{}",
    ):
        assert post(world, what, body).status == 400
    info = world.ask("GET", "/v1/demo/info", token=world.token()).result
    assert info["concepts"] <= 1


def test_a_retry_is_answered_as_the_first(world: World) -> None:
    """The same key gives the same receipt; the same import without a key has no effect."""
    headers = {"idempotency-key": "k"}
    first = post(world, "import", {"capsule": CAPSULE}, headers=headers)
    again = post(world, "import", {"capsule": CAPSULE}, headers=headers)
    other = post(world, "import", {"capsule": CAPSULE})

    assert first.result == again.result
    assert first.result["receipt"]["status"] == "committed"
    assert other.result["receipt"]["status"] == "no_effect"


def test_a_stale_plan_is_a_conflict(world: World) -> None:
    """An import that would do something else than was previewed is a 409."""
    digest = post(world, "preview", {"capsule": CAPSULE}).result["import_plan_digest"]
    post(world, "import", {"capsule": CAPSULE})

    answer = post(world, "import", {"capsule": CAPSULE, "plan_digest": digest})

    assert (answer.status, answer.code) == (409, "ImportPreviewConflict")


def test_too_much_for_one_answer_is_a_413(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A space that one answer cannot hold is refused with what to do instead."""
    monkeypatch.setattr("core.service.capsules.MAX_REST_BYTES", 1_000)

    answer = post(world, "export", {})

    assert (answer.status, answer.code) == (413, "ArtifactTooLarge")
    assert "noema capsule export" in answer.json["error"]["data"]["hint"]


def test_a_restore_takes_a_manager_and_a_known_signature(world: World) -> None:
    """An owner may not restore; a manager may what is signed by a known key, into a space that is not there."""
    path, body = "/admin/fork/restore_capsule", {"capsule": CAPSULE, "owner": "alice"}
    unsigned = {**CAPSULE, "integrity": {**CAPSULE["integrity"], "proofs": []}}

    assert world.ask("POST", path, body, token=world.token()).status == 401
    refused = world.ask("POST", path, {**body, "capsule": unsigned}, token=world.admin_token())
    assert (refused.status, refused.code) == (403, "NotAuthorized")
    taken = world.ask(
        "POST", path.replace("fork", "demo"), {**body, "accept_unsigned": True}, token=world.admin_token()
    )
    assert (taken.status, taken.code) == (409, "IdentityConflict")
    made = world.ask(
        "POST", path, {**body, "capsule": unsigned, "accept_unsigned": True}, token=world.admin_token()
    )
    assert made.result["continuity"]["basis"] == "operator"
    assert world.ask("GET", "/v1/fork/info", token=world.token(aud="fork")).result["concepts"] == 1
