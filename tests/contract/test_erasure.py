"""Erasure over every store: not one stored form of what was erased is left, for whoever reads the store or its disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import NoemaError
from core.model.elements import Evidence
from core.ports import Objects, Table
from core.service.values import Decide, Proposal
from core.state.space import SpaceState
from core.transaction.draft import Draft
from infra.system import SystemClock
from tests.core.service.world import ORIGIN, SPACE, World, evidence, unpacked
from tests.doubles import FakeClock

SECRET = "the key is under the third flowerpot"


def told(world: World, text: str) -> str:
    """Commit an Evidence with a text; its id."""

    def tell(noise: str) -> Decide:
        def decide(state: SpaceState) -> Proposal:
            draft = Draft(state, now=world.clock.time, origin=ORIGIN)
            found = draft.create(Evidence, **evidence(text + noise))
            return Proposal(draft.finish(), outcome={"id": found.id, "text": text})

        return decide

    return str(
        world.commit(tell(world.entropy.token(8).hex()), key=f"tell {text[:9]}{world.clock.time}").outcome[
            "id"
        ]
    )


def stored_forms(world: World, text: str) -> list[bytes]:
    """Each value of a row and each object that holds a text, exactly as it is stored: compressed, in segments."""
    values = [
        value
        for _, row in world.table.query(f"S#{SPACE}", "!", "\U0010ffff", limit=10_000)
        for value in row.values()
        if isinstance(value, bytes)
    ]
    values += [world.objects.get(key) or b"" for key, _, _ in world.objects.list("")]
    return [value for value in values if any(text.encode() in plain for plain in unpacked(value))]


def on_disk(folder: Path, stored: bytes) -> bool:
    """Whether any file holds a stored form, or its first or last part, which a page boundary may cut off."""
    parts = {stored[:200], stored[-200:], stored[len(stored) // 2 :][:200]}
    return any(part in path.read_bytes() for path in folder.rglob("*") if path.is_file() for part in parts)


def test_no_stored_form_of_what_was_erased_is_left(
    table: Table, objects: Objects, store: str, tmp_path: Path
) -> None:
    """A delta in its row, a delta in an object, segments of two compactions, outcomes: all gone, all else stays."""
    world = World(table, objects, FakeClock(SystemClock().now(), step_ms=3))
    world.create()
    world.note("before")
    small = told(world, SECRET)
    large = told(world, SECRET + world.entropy.token(9000).hex())
    assert world.upkeep.compact(SPACE, "first") is not None
    world.note("between")
    again = told(world, SECRET + " still")
    assert world.upkeep.compact(SPACE, "second") is not None
    world.note("after")
    forms = stored_forms(world, SECRET)
    assert len(forms) >= 8, "rows, an object and segments hold it"
    if store == "embedded":
        assert all(on_disk(tmp_path, form) for form in forms)

    receipt = world.erasures.erase(SPACE, [small, large, again], "owner", owner="run", needles=[SECRET])

    assert receipt.clean
    reader = world.again()
    assert stored_forms(reader, SECRET) == []
    assert not any(SECRET.encode() in plain for plain in reader.everything().values())
    if store == "embedded":
        assert [len(form) for form in forms if on_disk(tmp_path, form)] == []
    assert reader.names() == ["before", "between", "after"]
    assert reader.spaces.load(SPACE).get(large) is None
    assert reader.upkeep.verify_chain(SPACE).broken is None
    assert reader.names(reader.spaces.load_at(SPACE, version=3)) == ["before"]


def test_a_deleted_space_leaves_a_tombstone_and_never_comes_back(
    table: Table, objects: Objects, store: str, tmp_path: Path
) -> None:
    """Rows and objects go, the id is not found; a new space of the id begins empty, above the old versions."""
    world = World(table, objects, FakeClock(SystemClock().now(), step_ms=3))
    world.create()
    told(world, SECRET)
    world.upkeep.compact(SPACE, "first")
    told(world, SECRET + world.entropy.token(9000).hex())
    forms = stored_forms(world, SECRET)
    before = world.spaces.head(SPACE)

    world.erasures.delete_space(SPACE, "owner", owner="run")

    assert list(objects.list(SPACE)) == []
    assert stored_forms(world, SECRET) == []
    if store == "embedded":
        assert not any(on_disk(tmp_path, form) for form in forms)
    for process in (world, world.again()):
        with pytest.raises(NoemaError, match="NotFoundOrNotVisible"):
            process.spaces.load(SPACE)
    born = world.again(7).create()
    assert born.ver > before.ver
    assert world.names() == []
    assert world.spaces.head(SPACE).instance != before.instance
