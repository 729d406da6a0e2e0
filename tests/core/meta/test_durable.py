"""META over a durable log: what it asks of the store, after trimming, erasure and in a new life of a space."""

from __future__ import annotations

import msgspec
import pytest

from core.authority import Principal
from core.schema.environment import initial_environment
from core.storage.layout import ALL_ROWS, space_pk
from tests.core.service.test_kip import Speaker
from tests.core.service.world import ORIGIN, SECOND, SPACE, describe

DAY = 86_400_000
PERSON = 'UPSERT CONCEPT ?p {MATCH {type: "Person", key: :k} SET FIELDS {name: :n}}'


@pytest.fixture
def speaker() -> Speaker:
    """A process and a new space with three people, the first renamed."""
    found = Speaker.born()
    for key, name in (("a", "Ada"), ("b", "Ben"), ("c", "Cleo"), ("a", "Adele")):
        found.ok(PERSON, {"k": key, "n": name})
    return found


def only(speaker, name):
    (hit,) = speaker.ok("SEARCH CONCEPT :n", {"n": name})
    return hit["id"]


def rows_of(speaker):
    """Every row of the space, as bytes would have it."""
    return speaker.world.table.query(space_pk(SPACE), *ALL_ROWS, limit=10_000)


def code(response):
    return response["results"][0]["error"]["code"]


def test_history_and_search_of_the_past_are_read_from_the_store(speaker):
    """Another process, with nothing cached, tells the same chronology and finds the old name in the old state."""
    fresh = speaker.again()

    rows = fresh.ok("HISTORY ELEMENT :id", {"id": {"id": only(speaker, "adele")}})

    assert [(row["version"], row["op"]) for row in rows] == [(1, "created"), (2, "updated")]
    then = rows[0]["space_seq"]
    assert [hit["name"] for hit in fresh.ok('SEARCH CONCEPT "ada" AS OF SEQ :n', {"n": then})] == ["Ada"]
    assert fresh.ok('SEARCH CONCEPT "ada"') == []
    assert fresh.ok("DESCRIBE TRANSACTION :tx", {"tx": rows[0]["tx_id"]})["space_seq"] == then


def test_history_is_the_same_from_segments(speaker):
    """Compaction changes where things lie and nothing that META says of them."""
    commands = (
        "HISTORY SPACE", "CHANGES AFTER SEQ 0", 'SEARCH COGNITION "ben"', 'SEARCH CONCEPT "ada" AS OF SEQ 1',
        "DESCRIBE SPACE",
    )  # fmt: skip
    before = [speaker.ok(command) for command in commands]
    speaker.world.upkeep.compact(SPACE, "upkeep")

    assert [speaker.again().ok(command) for command in commands] == before


def test_a_trimmed_log_ends_the_stream_and_old_searches(speaker):
    """Below the floor a change cursor is expired, an old search unavailable, and chronology begins later."""
    cursor = speaker.run("CHANGES AFTER SEQ 0 LIMIT 1")["results"][0]["next_cursor"]
    speaker.world.upkeep.compact(SPACE, "upkeep")
    speaker.world.clock.advance(100 * DAY)
    speaker.ok(PERSON, {"k": "d", "n": "Dora"})
    assert speaker.world.upkeep.trim_history(SPACE, keep_ms=DAY).deltas > 0
    fresh = speaker.again()

    assert code(fresh.run("CHANGES SINCE :c", {"c": cursor})) == "ChangeCursorExpired"
    assert code(fresh.run('SEARCH CONCEPT "ada" AS OF SEQ 1')) == "HistoricalSearchUnavailable"
    assert code(fresh.run("SNAPSHOT AS OF SEQ 1")) == "HistoricalSnapshotUnavailable"
    rows = fresh.run("HISTORY SPACE")["results"][0]
    assert rows["result"][-1]["changed"] == {"concept": {"created": 1}}
    assert [warning["code"] for warning in rows["warnings"]] == ["HistoryTrimmed"]


def test_an_erased_element_leaves_only_its_stub_in_chronology(speaker):
    """After physical erasure the rows say that something stood there, and nothing of what it was."""
    made = (
        'CREATE EVIDENCE ?e { SET FIELDS {evidence_class: "message", payload: "the secret word is xyzzy"} }'
    )
    ref = {"e": {"id": speaker.ok(made)["handles"]["e"]["id"]}}
    purge = speaker.run('PURGE :e CONFIRM "PURGE"', ref)
    assert purge["status"] == "succeeded", purge
    fresh = speaker.again()

    rows = fresh.ok("HISTORY ELEMENT :e", ref)

    assert rows[0] == {**rows[0], "op": "created", "erased": True}
    assert "version" not in rows[0]
    assert (rows[-1]["op"], rows[-1]["state"]) == ("purged", "purged")
    text = str([rows, fresh.ok("HISTORY SPACE"), fresh.ok("CHANGES AFTER SEQ 0")])
    assert "xyzzy" not in text
    assert fresh.ok('SEARCH EVIDENCE "xyzzy" AS OF SEQ :n', {"n": rows[0]["space_seq"]}) == []


def test_a_new_life_of_a_space_has_its_own_stream(speaker):
    """Versions go on in a new life; the stream begins with it, and cursors of the old one are no longer any."""
    cursor = speaker.run("CHANGES AFTER SEQ 0")["results"][0]["next_cursor"]
    token = speaker.ok("SNAPSHOT")["snapshot_token"]
    speaker.world.erasures.delete_space(SPACE, "owner", owner="run")
    speaker.world.commits.create(
        SPACE, lambda birth: msgspec.structs.replace(describe(birth), schema=initial_environment()),
        origin=ORIGIN, deadline=speaker.world.clock.time + 60 * SECOND,
    )  # fmt: skip
    fresh = speaker.again()
    fresh.ok(PERSON, {"k": "z", "n": "Zoe"})

    envelopes = fresh.ok("CHANGES AFTER SEQ 0")

    assert [len(envelope["changes"]) for envelope in envelopes] == [1]
    assert [row["space_seq"] for row in fresh.ok("HISTORY SPACE")] == [0, 1]
    assert code(fresh.run("CHANGES SINCE :c", {"c": cursor})) == "ChangeCursorInvalid"
    pinned = {
        "kip": "2.0",
        "read": {"snapshot_token": token},
        "operations": [{"command": "DESCRIBE PROTOCOL"}],
    }
    assert code(fresh.send(pinned)) == "HistoricalSnapshotUnavailable"


def test_a_lost_answer_is_looked_up_by_any_process(speaker):
    """The outcome under a key is the store's, not a process's."""
    receipt = speaker.run(PERSON, {"k": "e", "n": "Eve"}, key="once")["receipt"]

    value = speaker.again().ok('DESCRIBE TRANSACTION BY IDEMPOTENCY KEY "once"')

    assert receipt.items() <= value.items()
    assert code(speaker.run('DESCRIBE TRANSACTION BY IDEMPOTENCY KEY "never"')) == "TransactionUnknown"


def test_meta_writes_nothing(speaker):
    """No row of the store differs after every kind of question."""
    before = rows_of(speaker)
    for command in (
        "DESCRIBE PRIMER", "DESCRIBE CAPABILITIES", "LIST TYPES", 'SEARCH COGNITION "ben"', "HISTORY SPACE",
        "CHANGES AFTER SEQ 0", "SNAPSHOT", "DESCRIBE ACCESS",
    ):  # fmt: skip
        speaker.ok(command)
    speaker.ok("PREVIEW KML :c", {"c": 'CREATE CONCEPT ?x { TYPE "Person" CLIENT KEY "k" NAME "X" }'})

    assert rows_of(speaker) == before


def batch(*names, mode="sequence", key="import"):
    """A request that is one transaction for each name, and a read between the first two."""
    operations = [{"command": PERSON, "parameters": {"k": name, "n": name}} for name in names]
    operations.insert(1, {"command": "DESCRIBE PROTOCOL"})
    return {
        "kip": "2.0",
        "operations": operations,
        "execution": {"mode": mode, "idempotency_key": key, "on_error": "continue"},
    }


@pytest.mark.parametrize("mode", ["sequence", "independent"])
def test_a_lost_answer_of_several_transactions_is_looked_up_by_its_one_key(speaker, mode):
    """Each that was done is there, in its place, and what failed or only read is not."""
    request = batch("d", "e", "f", mode=mode)
    request["operations"][2]["parameters"] = {"k": "e", "n": 5}
    if mode == "independent":
        del request["execution"]["on_error"]
    results = speaker.send(request)["results"]
    assert [result["status"] for result in results] == ["succeeded", "succeeded", "failed", "succeeded"]

    value = speaker.again().ok('DESCRIBE TRANSACTION BY IDEMPOTENCY KEY "import"')

    assert [each["operation"] for each in value["transactions"]] == [0, 3]
    for each in value["transactions"]:
        assert results[each["operation"]]["result"]["receipt"].items() <= each.items()
        assert each["operations"] == ["succeeded"]
    assert value["idempotency"] == {"key": "import", "replayable": True}
    stranger = Principal("stranger")
    assert code(speaker.send(asking("import"), principal=stranger)) == "TransactionUnknown"
    assert code(speaker.send(asking("impor"))) == "TransactionUnknown"


def asking(key):
    command = "DESCRIBE TRANSACTION BY IDEMPOTENCY KEY :k"
    return {"kip": "2.0", "operations": [{"command": command, "parameters": {"k": key}}]}


def test_the_transactions_of_a_large_batch_stand_in_order(speaker):
    """By number, not as text, however many; and their time ends as every key's does."""
    speaker.send(batch(*(f"p{number}" for number in range(12))))

    value = speaker.send(asking("import"))["results"][0]["result"]
    assert [each["operation"] for each in value["transactions"]] == [0, *range(2, 13)]

    speaker.world.clock.time += 8 * DAY
    assert code(speaker.send(asking("import"))) == "TransactionUnknown"


def test_spaces_are_listed_for_who_may_enter_all_of_them(speaker):
    """A caller bound to one space sees that one; a caller of all sees all, page by page, in order."""
    for name in ("alpha", "omega", "zeta"):
        speaker.world.commits.create(
            name, lambda birth: msgspec.structs.replace(describe(birth), schema=initial_environment()),
            origin=ORIGIN, deadline=speaker.world.clock.time + 60 * SECOND,
        )  # fmt: skip
    everywhere = Principal("owner", everywhere=True)

    def page(command, principal=everywhere, **parameters):
        operations = [{"command": command, "parameters": parameters}]
        [result] = speaker.send({"kip": "2.0", "operations": operations}, principal=principal)["results"]
        return [row["id"] for row in result["result"]], result.get("next_cursor"), result["result"]

    names = sorted(["alpha", "omega", "zeta", SPACE])
    found, more, rows = page("LIST SPACES")
    assert (found, more) == (names, None)
    assert [row["id"] for row in rows if row["current"]] == [SPACE]
    assert {row["uri"] for row in rows} == {f"urn:noema:space:{name}" for name in names}
    first, cursor, _ = page("LIST SPACES LIMIT 3")
    rest, end, _ = page("LIST SPACES LIMIT 3 CURSOR :c", c=cursor)
    assert (first + rest, end) == (names, None)
    assert page("LIST SPACES LIMIT 4")[1] is None
    assert page("LIST SPACES LIMIT 0")[:2] == ([], None)
    bound = Principal("owner")
    assert page("LIST SPACES", bound)[:2] == ([SPACE], None)
    again = {"kip": "2.0", "operations": [{"command": "LIST SPACES CURSOR :c", "parameters": {"c": cursor}}]}
    assert code(speaker.send(again, principal=bound)) == "CursorInvalidated"
