"""Restoring a backup: whole or unseen, in many transactions, with new ids and the old meaning."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from core.authority import Principal
from core.capsule.stream import lines_of
from core.errors import NoemaError
from core.protocol.capsule_types import ExportAsk, ImportWish, RestoreAsk
from core.service import restoring
from core.service.erasure import Erasures
from core.service.restoring import Restores
from core.service.values import Caller
from tests.conformance.harness import KEYS, World
from tests.doubles import CountingEntropy

OPERATOR = Caller("operator", "cli", "*", manager=True, everywhere=True)
ASK = RestoreAsk(owner="owner", activate_schema=True)


@pytest.fixture
def world() -> World:
    """A brain that Alice and Bob have told the same, each with Evidence of theirs."""
    made = World(life=50)
    for who in ("alice", "bob"):
        made.ok(
            'MUTATE {CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "user_statement", payload: :text} '
            'SET STRUCTURAL {("source", :by)}} ENSURE PROPOSITION ?p (:carol, "timezone", "+08:00") '
            'CREATE ASSERTION ?a {SET FIELDS {proposition: ?p, asserted_by: :by, stance: "support", mode: "stated", '
            'confidence: 0.6} SET STRUCTURAL {("evidence", ?e)}}}',
            by=made.ref[who], text=f"{who} says so",
        )  # fmt: skip
    gone = made.ok('CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "a secret"}}').id("e")
    made.ok('PURGE :e CONFIRM "PURGE"', e=gone)
    made.ok("ARCHIVE :light_mode")
    return made


def restores(world: World, seed: int = 9) -> Restores:
    return Restores(world.seam.table, world.objects, world.clock, CountingEntropy(seed), verifier=KEYS)


def restore(
    world: World, artifact: dict[str, Any], space: str = "again", ask: RestoreAsk = ASK, told: Any = None
) -> Any:
    return restores(world).restore(
        OPERATOR, space, lambda: lines_of(artifact), ask, told or (lambda _, __: None)
    )


def backup(world: World) -> dict[str, Any]:
    return world.export_space(include_schema=True)


def code(call: Any, *args: Any, **more: Any) -> str:
    with pytest.raises(NoemaError) as caught:
        call(*args, **more)
    return caught.value.code


@pytest.mark.parametrize("batch", [1, 3, 4_000])
def test_a_restored_space_means_the_same(world: World, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    """However many transactions it took, every element is there under a new id, referring to the right ones."""
    monkeypatch.setattr(restoring, "BATCH_RECORDS", batch)
    artifact = backup(world)
    report = restore(world, artifact)
    old, new = world.state(), world.space("again")
    kinds: tuple[Any, ...] = ("concept", "proposition", "assertion", "evidence", "activity")

    assert report["transactions"] == -(-report["records"] // batch)
    by_source = {
        each.system.origin.sources[0].element: each
        for kind in kinds
        for found in new.ids(kind)
        if (each := new.get(found)) is not None
    }
    living = [found for kind in kinds for found in old.ids(kind) if old.get(found).system.state != "purged"]  # type: ignore[union-attr]
    assert set(by_source) == set(living)
    assert not set(living) & {each.id for each in by_source.values()}
    for found in living:
        was, now = old.get(found), by_source[found]
        assert was is not None
        assert was.system.state == now.system.state
        for name in (
            "schema_ref",
            "key",
            "name",
            "payload",
            "stance",
            "mode",
            "asserted_at",
            "confidence",
            "object",
        ):
            assert getattr(was, name, None) == getattr(now, name, None)
        for name in ("subject", "proposition", "asserted_by"):
            if hasattr(was, name):
                assert getattr(now, name) == by_source[getattr(was, name)].id
    assert "a secret" not in json.dumps(artifact)
    assert new.meta.self_identity == by_source[world.ref["self"]["id"]].id
    assert "trust" not in new.meta.extensions


def test_the_backup_of_a_restored_space_is_the_same_backup(world: World) -> None:
    """Exported again, the restored space has the same records but for where they came from."""
    restore(world, backup(world))
    capsules = world._process.capsules
    again = capsules.export("again", Principal("owner"), ExportAsk(include_schema=True))

    def content(artifact: dict[str, Any]) -> Any:
        records = copy.deepcopy(artifact["payload"]["records"])
        for each in (record for found in records.values() for record in found):
            del each["source_ref"]
        return records

    assert content(again) == content(backup(world))


def test_nobody_sees_half_a_memory(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the last transaction every reader is refused; one that is interrupted stays unseen and can be deleted."""
    monkeypatch.setattr(restoring, "BATCH_RECORDS", 4)
    seen: list[str] = []

    def told(done: int, _: int) -> None:
        seen.append(code(world.space, "again"))
        if done > 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore(world, backup(world), told=told)
    assert set(seen) == {"ServiceUnavailable"}
    assert len(seen) == 3
    assert code(world.space, "again") == "ServiceUnavailable"
    assert code(restore, world, backup(world)) == "IdentityConflict"
    assert world.space("test") is not None
    process = world._process
    Erasures(process.spaces, process.upkeep, CountingEntropy(3)).delete_space("again", "operator", owner="op")
    artifact = backup(world)
    report = restores(world, 10).restore(
        OPERATOR, "again", lambda: lines_of(artifact), ASK, lambda _, __: None
    )
    assert report["records"] > 8


def test_independent_roots_stay_independent(world: World) -> None:
    """Two witnesses are two after a restore: its claims are the brain's own, and no import stands between."""
    restore(world, backup(world))
    new = world.space("again")
    claims = [new.get(found) for found in new.ids("assertion")]

    assert {claim.system.origin.import_id for claim in claims if claim is not None} == {None}
    assert len({claim.evidence[0].evidence for claim in claims}) == 2  # type: ignore[union-attr]


def test_what_is_no_backup_of_ours_is_refused_before_anything_is_written(world: World) -> None:
    """Selections, deltas, strangers' signatures, missing packages and changed lines make no space."""
    artifact = backup(world)
    delta = world.export_space(since_seq=1)
    selection = world.rows("EXPORT CAPSULE ?c WHERE {?c CONCEPT {}} WITH {include_schema: true}")["artifact"]
    unsigned = {**artifact, "integrity": {**artifact["integrity"], "proofs": []}}
    changed = copy.deepcopy(artifact)
    changed["payload"]["records"]["concepts"][0]["name"] = "Eve"

    assert code(restore, world, selection) == "ImportPreviewConflict"
    assert code(restore, world, delta) in {"ArtifactParseError", "ImportPreviewConflict"}
    assert code(restore, world, unsigned) == "NotAuthorized"
    assert code(restore, world, changed) == "DigestMismatch"
    assert code(restore, world, artifact, ask=RestoreAsk(owner="o")) == "SchemaPackageUnavailable"
    assert code(world.space, "again") == "NotFoundOrNotVisible"
    assert (
        restore(world, unsigned, ask=RestoreAsk(owner="o", activate_schema=True, accept_unsigned=True))[
            "records"
        ]
        > 0
    )


def test_a_backup_that_changes_while_it_is_read_opens_nothing(world: World) -> None:
    """The second reading must give what the first gave; else the space stays unseen."""
    first, second = backup(world), backup(world)
    turns = iter((first, second))

    refused = code(
        restores(world).restore, OPERATOR, "again", lambda: lines_of(next(turns)), ASK, lambda _, __: None
    )

    assert refused == "DigestMismatch"
    assert next(turns, None) is None
    assert code(world.space, "again") == "ServiceUnavailable"


def test_deltas_go_on_from_a_backup(world: World) -> None:
    """A restored space takes the deltas of the space it came from."""
    restore(world, backup(world))
    base = world.state().seq
    world.ok('CREATE CONCEPT ?x {TYPE "Person" NAME "Zoe"}')
    delta = world.export_space(since_seq=base)
    capsules = world._process.capsules

    done = capsules.run("again", Principal("owner"), delta, ImportWish(), deadline=world.clock.time + 60_000)

    assert done["created"] == {"concept": 1}
