"""Hostile Capsules: whatever is wrong with one, it is refused by name and nothing of it is imported."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any, Final

import pytest

from core.capsule.read import MAX_DEPTH, decode_artifact
from core.errors import NoemaError
from core.protocol.canonical import canonical_json, digest_of
from tests.conformance.harness import World

VALUES: Final[tuple[Any, ...]] = (
    None, True, 0, -1, 2**63 - 1, 1e308, -0.0, "", "x", "c:1", "p:1", "x:9", "c:999999999", "\x00", "a" * 600, [], {}, [[]],
    {"$ref": "c:1"}, {"$ref": "a:1", "$external": "x:1"}, {"$external": "x:1"}, {"id": "C-00000001001knvng"},
    "https://169.254.169.254/", "purged", "merged", "9999-99-99T00:00:00Z", "2026-01-01T00:00:00Z",
    "kip://core@2.0.0/Concept", "kip://test/core-domain@1.0.0/prefers",
)  # fmt: skip


@pytest.fixture(scope="module")
def artifact() -> dict[str, Any]:
    """A Capsule with every kind of record in it."""
    source = World(life=40)
    source.ok(
        'MUTATE {CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "one"}} '
        'CREATE ACTIVITY ?x {SET FIELDS {activity_class: "inference"} SET STRUCTURAL {("inputs", ?e) ("outputs", ?a)}} '
        'ENSURE PROPOSITION ?p (:alice, "prefers", :dark_mode) ENSURE PROPOSITION ?z (:alice, "timezone", "+08:00") '
        'CREATE ASSERTION ?a {SET FIELDS {proposition: ?p, asserted_by: :alice, stance: "support", mode: "stated"} '
        'SET STRUCTURAL {("evidence", ?e)}}}'
    )
    return source.rows('EXPORT CAPSULE ?a WHERE {?a ASSERTION {}} WITH {closure: "closed"}')["artifact"]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in a JSON value."""
    below = [value]
    while below:
        item = below.pop()
        keys = list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else []
        for key in keys:
            yield item, key
            if isinstance(item[key], (dict, list)):
                below.append(item[key])


def mutated(artifact: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """A Capsule with one to three things changed in its payload, and a digest that fits again."""
    made = copy.deepcopy(artifact)
    for _ in range(chance.randint(1, 3)):
        item, key = chance.choice(list(places(made["payload"])))
        act = chance.randrange(4)
        if act == 0:
            item[key] = copy.deepcopy(chance.choice(VALUES))
        elif act == 1:
            del item[key]
        elif act == 2 and isinstance(item, list):
            item.append(copy.deepcopy(item[key]))
        else:
            other, place = chance.choice(list(places(made["payload"])))
            item[key] = copy.deepcopy(other[place])
    made["integrity"] = {"content_digest": digest_of(made["payload"]), "proofs": []}
    return made


@pytest.mark.parametrize("seed", range(8))
def test_mutated_capsules_are_refused_or_imported_whole(artifact: dict[str, Any], seed: int) -> None:
    """50 mutants a seed: VERIFY, VALIDATE, PREVIEW and the import answer each by name; a refusal leaves no trace."""
    chance = random.Random(seed)
    imported = 0
    for number in range(50):
        world = World(life=1 + seed) if number % 10 == 0 else world  # noqa: F821 - set in the first round
        made = mutated(artifact, chance)
        try:
            canonical_json(made)
        except (ValueError, RecursionError):
            continue
        before = world.digest()
        for command in ("VERIFY CAPSULE :c", "VALIDATE CAPSULE :c", "DESCRIBE CAPSULE :c",
                        'PREVIEW IMPORT CAPSULE :c INTO "test"'):  # fmt: skip
            reply = world.invoke("owner", command, c=made)
            assert reply.code != "InternalError"
        assert world.digest() == before
        done = attempt(world, made)
        if done is None:
            assert world.digest() == before
        else:
            imported += done["receipt"]["status"] == "committed"
            assert_whole(world)
    assert imported < 40


def attempt(world: World, made: dict[str, Any]) -> dict[str, Any] | None:
    """What became of an import; None for one that was refused by name."""
    try:
        return world.import_capsule(made)
    except NoemaError:
        return None


def assert_whole(world: World) -> None:
    """Every reference of every element is to an element that is there."""
    state = world.state()
    for kind in ("proposition", "assertion"):
        for each in world.elements(kind):  # type: ignore[arg-type]  # kinds
            ends = (each.subject,) if kind == "proposition" else (each.proposition, each.asserted_by)
            assert all(state.get(end) is not None for end in ends)


def decoded(body: bytes) -> str:
    """What reading bytes came to."""
    try:
        decode_artifact(body)
    except NoemaError as error:
        return error.code
    return "object"


def test_bytes_that_are_no_capsule(artifact: dict[str, Any]) -> None:
    """Flipped bits, members twice, numbers without bound and towers of brackets are refused, by name and at once."""
    body = json.dumps(artifact).encode()
    chance = random.Random(1)
    for _ in range(200):
        place = chance.randrange(len(body))
        flipped = bytes((*body[:place], body[place] ^ (1 << chance.randrange(8)), *body[place + 1 :]))
        assert decoded(flipped) in {"object", "ArtifactParseError"}
    bad = (
        b'{"format": "KIP-Cognitive-Capsule", "format": "x"}',
        b'{"payload": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"payload": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
        b'{"payload": 1e999}',
        b'{"payload": ' + b"9" * 5_000 + b"}",
        b'{"payload": NaN}',
        b'{"payload": "\\ud800"}',
        b"[]",
        b"",
        b"\xff\xfe{}",
        b'{"a": ' + b"[" * (MAX_DEPTH + 2) + b"]" * (MAX_DEPTH + 2) + b"}",
    )
    for each in bad:
        with pytest.raises(NoemaError) as caught:
            decode_artifact(each)
        assert caught.value.code == "ArtifactParseError"
    with pytest.raises(NoemaError) as caught:
        decode_artifact(b" " * 101, limit=100)
    assert caught.value.code == "ArtifactTooLarge"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"version": "3.0"}, "ArtifactParseError"),
        ({"format": "KIP-Schema-Package"}, "ArtifactParseError"),
        ({"integrity": {"content_digest": "sha256:" + "0" * 64}}, "DigestMismatch"),
        ({"integrity": {"content_digest": "md5:00", "digest_profile": "md5"}}, "UnsupportedCapability"),
        ({"grants": []}, "ArtifactParseError"),
        ({"payload": None}, "ArtifactParseError"),
    ],
)
def test_wrong_envelopes(artifact: dict[str, Any], change: dict[str, Any], code: str) -> None:
    """Unknown formats, versions, profiles and members are refused by VERIFY, each by its code."""
    assert World().refused("VERIFY CAPSULE :c", c={**artifact, **change}) == code


def test_circles_end(artifact: dict[str, Any]) -> None:
    """Concepts merged in a circle, statements about each other and a critical extension nobody knows are refused."""
    world = World()

    def refused(change: Any) -> str:
        made = copy.deepcopy(artifact)
        change(made["payload"])
        made["integrity"] = {"content_digest": digest_of(made["payload"]), "proofs": []}
        with world.unchanged(), pytest.raises(NoemaError) as caught:
            world.import_capsule(made)
        return caught.value.code

    def merged(payload: Any) -> None:
        first, second = payload["records"]["concepts"][:2]
        first["merged_into"], second["merged_into"] = {"$ref": second["ref"]}, {"$ref": first["ref"]}

    def about(payload: Any) -> None:
        first, second = (
            payload["records"]["propositions"][0],
            copy.deepcopy(payload["records"]["propositions"][0]),
        )
        first["predicate_ref"] = second["predicate_ref"] = "kip://test/core-domain@1.0.0/alias_of"
        second["ref"], second["source_ref"]["element_id"] = "p:2", "P-other"
        first["subject"] = first["object"] = {"$ref": "p:2"}
        second["subject"] = second["object"] = {"$ref": "p:1"}
        payload["records"]["propositions"] = [first, second]
        payload["manifest"]["counts"]["propositions"] = 2

    def critical(payload: Any) -> None:
        payload["extensions"] = {"somebody/else": {"critical": True}}

    assert refused(merged) == "CapsuleValidationFailed"
    assert refused(about) == "CapsuleValidationFailed"
    assert refused(critical) == "UnsupportedCapability"
