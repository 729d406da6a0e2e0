"""Chronology and coordinates: HISTORY, CHANGES, SNAPSHOT, DESCRIBE TRANSACTION."""

from __future__ import annotations

import msgspec
import pytest

from core.authority import Principal
from core.errors import NoemaError
from core.transaction.needs import Deltas
from tests.core.meta.conftest import READER, hiding
from tests.core.meta.test_search import classify


def renamed(nexus, *names):
    """Bob renamed some times, one commit each."""
    for name in names:
        nexus.do("UPDATE :bob SET FIELDS {name: :name}", name=name)


# --- an element


def test_history_tells_every_transition_in_order(nexus):
    """Created, changed, archived: version by version, with the commit and what it touched (KIP2-META-019)."""
    renamed(nexus, "Rob", "Robert")
    nexus.do("ARCHIVE :bob")

    rows = nexus.get("HISTORY ELEMENT :bob")

    assert [row["version"] for row in rows] == [1, 2, 3, 4]
    assert [row["op"] for row in rows] == ["created", "updated", "updated", "updated"]
    assert [row.get("changed") for row in rows[:3]] == [None, ["name"], ["name"]]
    assert rows[3]["transition"] == {"state": {"from": "active", "to": "archived"}}
    assert [row["space_seq"] for row in rows] == sorted(row["space_seq"] for row in rows)
    assert rows[0]["tx_id"] == nexus.deltas[-4].tx_id
    assert rows[0]["principal_id"] == "owner"


def test_history_shows_lifecycles(nexus):
    """A retraction is a transition of status."""
    nexus.do("RETRACT ASSERTION :claim")

    assert nexus.get("HISTORY ELEMENT :claim")[-1]["transition"] == {
        "status": {"from": "active", "to": "retracted"}
    }


def test_history_holds_no_content(nexus):
    """No value that an element ever had is in its chronology."""
    renamed(nexus, "Secretname")
    nexus.do('UPDATE :bob SET ATTRIBUTES {hobby: "stamps"}')

    text = str(nexus.get("HISTORY ELEMENT :bob")) + str(nexus.get("HISTORY SPACE"))

    assert "Secretname" not in text
    assert "stamps" not in text
    assert "hobby" not in text


def test_a_purged_elements_history_is_its_stubs(nexus):
    """That it changed and was purged is told; nothing else, and a warning says why."""
    nexus.do('PURGE :message REFERENCE POLICY "tombstone_reference" CONFIRM "PURGE"')

    result = nexus.one("HISTORY ELEMENT :message")

    assert [row["op"] for row in result["result"]] == ["created", "purged"]
    assert result["result"][-1]["changed"] == ["purged"]
    assert [warning["code"] for warning in result["warnings"]] == ["Purged"]
    assert "evening" not in str(result)


def test_history_between_two_commits(nexus):
    """FROM SEQ and TO SEQ are both included."""
    renamed(nexus, "a", "b", "c", "d")
    first = nexus.state.seq - 3

    rows = nexus.get("HISTORY ELEMENT :bob FROM SEQ :a TO SEQ :b", a=first + 1, b=first + 2)

    assert [row["space_seq"] for row in rows] == [first + 1, first + 2]
    assert [row["version"] for row in rows] == [3, 4]
    assert nexus.code("HISTORY ELEMENT :bob FROM SEQ 5 TO SEQ 4") == "ConstraintViolation"
    assert nexus.code("HISTORY ELEMENT :bob FROM SEQ 500") == "HistoricalSnapshotUnavailable"
    assert nexus.get("HISTORY ELEMENT :bob TO SEQ 0") == []


@pytest.mark.parametrize("size", [1, 2, 3])
def test_history_in_pages_is_the_whole_history(nexus, size):
    """Pages put together are the history, each row with what it touched."""
    renamed(nexus, "a", "b", "c", "d")
    nexus.do('CREATE CONCEPT ?x { TYPE "Person" NAME "X" }')
    whole = nexus.get("HISTORY ELEMENT :bob")
    seen, more = [], {}
    while True:
        page = nexus.one(f"HISTORY ELEMENT :bob LIMIT {size}" + (" CURSOR :c" if more else ""), **more)
        assert len(page["result"]) <= size
        seen += page["result"]
        if "next_cursor" not in page:
            break
        more = {"c": page["next_cursor"]}

    assert seen == whole


def test_a_history_cursor_is_of_its_element(nexus):
    """A cursor of one element's history does not continue another's."""
    renamed(nexus, "a", "b")
    cursor = nexus.one("HISTORY ELEMENT :bob LIMIT 1")["next_cursor"]

    assert nexus.code("HISTORY ELEMENT :alice CURSOR :c", c=cursor) == "CursorMismatch"
    assert nexus.code("HISTORY SPACE CURSOR :c", c=cursor) == "CursorMismatch"


def test_history_of_nothing_and_of_what_is_hidden_is_the_same(nexus):
    """An absent and a hidden element are refused alike (KIP2-META-012, META §175)."""
    classify(nexus, "bob", "secret")
    hidden = nexus.refused("HISTORY ELEMENT :bob", principal=hiding("secret"))
    absent = nexus.refused('HISTORY ELEMENT "C-0000000zzzz00000"', principal=hiding("secret"))
    malformed = nexus.refused('HISTORY ELEMENT "Bob"', principal=hiding("secret"))

    assert hidden == absent == malformed
    assert hidden["code"] == "NotFoundOrNotVisible"


def test_a_young_elements_history_asks_for_one_commit(nexus):
    """An element of one version needs one commit of the log, however long the log."""
    renamed(nexus, *(f"n{i}" for i in range(20)))
    asked = []
    answer = nexus._answer

    def noting(need):
        asked.append(need)
        return answer(need)

    nexus._answer = noting
    nexus.get("HISTORY ELEMENT :dark")

    assert [need.limit for need in asked] == [1]


def test_within_a_transaction_only_what_is_committed_has_a_history(nexus):
    """An atomic request finds its own writes by search, and no chronology of what is not committed yet."""
    request = {
        "kip": "2.0",
        "execution": {"mode": "atomic"},
        "operations": [
            {"command": 'UPDATE :bob SET FIELDS {name: "Zoltan"}', "parameters": nexus.ref},
            {"command": 'SEARCH CONCEPT "zoltan"'},
            {"command": "HISTORY ELEMENT :bob", "parameters": nexus.ref},
            {"command": "PREVIEW KML :c", "parameters": {"c": 'CREATE CONCEPT ?x { TYPE "Person" }'}},
            {"command": "SNAPSHOT"},
        ],
    }
    seq = nexus.state.seq

    _, found, rows, preview, snapshot = nexus.send(request)["results"]

    assert [hit["id"] for hit in found["result"]] == [nexus.id("bob")]
    assert [row["version"] for row in rows["result"]] == [1]
    assert "next_cursor" not in rows
    assert preview["result"]["would"] == "commit"
    assert snapshot["result"]["snapshot_seq"] == seq
    assert nexus.state.seq == seq + 1


# --- the space


def test_the_spaces_history_is_in_the_order_of_the_log(nexus):
    """One row for each commit with its counts, management included, ordered by space_seq (KIP2-HIST-010)."""
    renamed(nexus, "Rob")

    rows = nexus.get("HISTORY SPACE")

    assert [row["tx_id"] for row in rows] == [delta.tx_id for delta in nexus.deltas]
    assert [row["space_seq"] for row in rows] == sorted(row["space_seq"] for row in rows)
    assert rows[-1]["changed"] == {"concept": {"updated": 1}}
    assert rows[-2]["changed"]["concept"] == {"created": 3}
    assert [row["transaction_class"] for row in rows] == [
        "management",
        "management",
        "cognitive",
        "cognitive",
    ]
    assert rows[1]["schema_environment_version"] == 2


def test_the_spaces_history_between_commits_and_in_pages(nexus):
    """A stretch of the log, and the whole log page by page."""
    renamed(nexus, "a", "b", "c")
    at = nexus.state.seq
    rows = nexus.get("HISTORY SPACE FROM SEQ :a TO SEQ :b", a=at - 1, b=at)
    first = nexus.one("HISTORY SPACE LIMIT 4")
    rest = nexus.one("HISTORY SPACE CURSOR :c", c=first["next_cursor"])

    assert [row["space_seq"] for row in rows] == [at - 1, at]
    assert first["result"] + rest["result"] == nexus.get("HISTORY SPACE")


def test_a_trimmed_log_says_where_it_begins(nexus):
    """Where older commits are gone, chronology begins where the log does, and says so."""
    renamed(nexus, "a", "b", "c")
    nexus.forget_before(5)

    result = nexus.one("HISTORY SPACE")

    assert [row["tx_id"] for row in result["result"]] == [delta.tx_id for delta in nexus.deltas[4:]]
    assert [warning["code"] for warning in result["warnings"]] == ["HistoryTrimmed"]
    element = nexus.one("HISTORY ELEMENT :bob")
    assert [row["version"] for row in element["result"]] == [3, 4]
    assert [warning["code"] for warning in element["warnings"]] == ["HistoryTrimmed"]


def test_hidden_changes_are_not_counted(nexus):
    """A caller sees the counts of what it may know of, and no commit that touched nothing else."""
    classify(nexus, "bob", "secret")
    before = nexus.get("HISTORY SPACE", principal=hiding("secret"))
    renamed(nexus, "Rob")

    assert nexus.get("HISTORY SPACE", principal=hiding("secret")) == before
    assert nexus.get("HISTORY SPACE")[-1]["changed"] == {"concept": {"updated": 1}}


def test_reading_the_log_needs_permission_to_read(nexus):
    """Chronology is reading."""
    nobody = Principal("nobody", permissions=frozenset({"search"}))
    for command in ("HISTORY SPACE", "CHANGES AFTER SEQ 0", "SNAPSHOT", "DESCRIBE SNAPSHOT"):
        assert nexus.code(command, principal=nobody) == "NotAuthorized"
        assert nexus.one(command, principal=READER)["status"] == "succeeded"


# --- the change stream


def test_one_commit_is_one_envelope(nexus):
    """A commit of many writes is one envelope, whatever it touched (KIP2-META-021)."""
    envelope = nexus.get("CHANGES AFTER SEQ 0")[-1]

    assert envelope["space_seq"] == nexus.state.seq
    assert envelope["tx_id"] == nexus.deltas[-1].tx_id
    assert envelope["transaction_class"] == "cognitive"
    assert len(envelope["changes"]) == len(nexus.deltas[-1].puts)
    assert {"id": nexus.id("bob"), "kind": "concept", "op": "created", "version": 1} in envelope["changes"]


def test_the_stream_goes_on_from_its_cursor(nexus):
    """Nothing new is an empty answer with a cursor; later commits follow it, each once."""
    start = nexus.one("CHANGES AFTER SEQ :n", n=nexus.state.seq)
    assert start["result"] == []
    renamed(nexus, "a", "b", "c")

    first = nexus.one("CHANGES SINCE :c LIMIT 2", c=start["next_cursor"])
    second = nexus.one("CHANGES SINCE :c", c=first["next_cursor"])
    third = nexus.one("CHANGES SINCE :c", c=second["next_cursor"])

    seqs = [envelope["space_seq"] for page in (first, second, third) for envelope in page["result"]]
    assert seqs == [delta.seq for delta in nexus.deltas[-3:]]
    assert nexus.one("CHANGES SINCE :c LIMIT 2", c=start["next_cursor"])["result"] == first["result"]


def test_a_change_of_the_schema_is_in_the_stream(nexus):
    """Who mirrors a space learns that its schema changed."""
    start = nexus.one("CHANGES AFTER SEQ :n", n=nexus.state.seq)["next_cursor"]
    nexus.activate([])

    (envelope,) = nexus.get("CHANGES SINCE :c", c=start)

    assert envelope["transaction_class"] == "management"
    assert envelope["schema_environment_version"] == nexus.state.meta.schema.version


def test_change_cursors_are_told_apart(nexus):
    """A made-up cursor, another caller's and another family's each have their error."""
    cursor = nexus.one("CHANGES AFTER SEQ 0")["next_cursor"]
    listed = nexus.one("LIST TYPES LIMIT 1")["next_cursor"]
    snapshot = nexus.get("SNAPSHOT")["snapshot_token"]

    assert nexus.code('CHANGES SINCE "7"') == "ChangeCursorInvalid"
    assert nexus.code("CHANGES SINCE :c", c=cursor[:-2] + "AA") == "ChangeCursorInvalid"
    assert nexus.code("CHANGES SINCE :c", c=cursor, principal=Principal("x")) == "ChangeCursorInvalid"
    assert nexus.code("CHANGES SINCE :c", c=listed) == "CursorTypeMismatch"
    assert nexus.code("CHANGES SINCE :c", c=snapshot) == "ChangeCursorInvalid"
    assert nexus.code('SEARCH CONCEPT "x" CURSOR :c', c=cursor) == "CursorTypeMismatch"
    assert nexus.code("CHANGES AFTER SEQ 99") == "HistoricalSnapshotUnavailable"


def test_a_cursor_older_than_the_log_is_expired(nexus):
    """What can no longer be delivered is refused with the way to recover, never skipped (KIP2-META-022)."""
    cursor = nexus.one("CHANGES AFTER SEQ 0")["next_cursor"]
    renamed(nexus, "a", "b", "c")
    nexus.forget_before(6)

    error = nexus.refused("CHANGES SINCE :c", c=cursor)

    assert error["code"] == "ChangeCursorExpired"
    assert error["retry"]["class"] == "requires_new_snapshot"
    assert "present state" in error["hint"]
    assert nexus.code("CHANGES AFTER SEQ 0") == "ChangeCursorExpired"


def test_a_change_cursor_outlives_the_clock(nexus):
    """A change cursor ends with the log, not with time."""
    cursor = nexus.one("CHANGES AFTER SEQ 0")["next_cursor"]
    nexus.now += 10**11

    assert nexus.get("CHANGES SINCE :c", c=cursor) == []


def test_hidden_changes_are_not_streamed(nexus):
    """A commit that touched nothing a caller may know of gives it no envelope; others are cut to what it may."""
    classify(nexus, "bob", "secret")
    renamed(nexus, "Rob")
    envelopes = nexus.get("CHANGES AFTER SEQ 0", principal=hiding("secret"))

    assert [envelope["tx_id"] for envelope in envelopes if envelope["changes"]] == [nexus.deltas[2].tx_id]
    assert nexus.id("bob") not in str(envelopes)


def test_what_is_gone_for_good_is_not_told_to_who_may_not_see_everything(nexus):
    """An element removed without a stub is in an owner's chronology and in nobody's else who is restricted."""
    nexus.now += 1000
    state = nexus.state
    gone = nexus.id("activity")
    delta = msgspec.structs.replace(
        nexus.deltas[-1],
        ver=state.ver + 1,
        seq=state.seq + 1,
        tx_id="tx-erasing",
        puts=(),
        gone=(gone,),
        transaction_class="erasure",
    )
    nexus._append(delta)

    owner = nexus.get("CHANGES AFTER SEQ :n", n=state.seq)
    assert owner[0]["changes"] == [{"id": gone, "kind": "activity", "op": "purged", "version": 0}]
    assert nexus.get("CHANGES AFTER SEQ :n", n=state.seq, principal=hiding("secret")) == []
    assert nexus.code("HISTORY ELEMENT :activity") == "NotFoundOrNotVisible"


def test_a_log_that_ends_early_is_told_as_far_as_it_goes(nexus):
    """Where fewer commits are handed in than the state has, the answer holds those there are."""
    renamed(nexus, "a")
    answer = nexus._answer
    nexus._answer = lambda need: [] if isinstance(need, Deltas) else answer(need)

    assert nexus.get("HISTORY SPACE") == []
    assert nexus.get("CHANGES AFTER SEQ 0") == []
    assert nexus.code("DESCRIBE TRANSACTION :tx", tx=nexus.deltas[-1].tx_id) == "TransactionUnknown"


def test_a_store_that_fails_is_not_taken_for_history(nexus):
    """Faults other than a trimmed log pass through as what they are."""
    failure = NoemaError("ServiceUnavailable", "not now")
    tx = nexus.deltas[-1].tx_id
    nexus._answer = lambda need: failure

    for command in (
        "HISTORY SPACE",
        "HISTORY ELEMENT :bob",
        "CHANGES AFTER SEQ 0",
        "DESCRIBE TRANSACTION :tx",
    ):
        assert nexus.code(command, tx=tx) == "ServiceUnavailable"


# --- snapshots


def test_a_snapshot_token_pins_a_state(nexus):
    """A request with the token reads what the state of then held, whatever was written since."""
    token = nexus.get("SNAPSHOT")["snapshot_token"]
    renamed(nexus, "Rob")
    request = {
        "kip": "2.0",
        "read": {"snapshot_token": token},
        "operations": [{"command": 'FIND(?c.name) WHERE { ?c CONCEPT {type: "Person", key: "bob"} }'}],
    }

    assert nexus.send(request)["results"][0]["result"] == ["Bob"]


def test_a_snapshot_token_is_opaque_and_cannot_be_made(nexus):
    """A token that was changed, or written by hand, is refused."""
    token = nexus.get("SNAPSHOT")["snapshot_token"]

    def read(forged):
        request = {
            "kip": "2.0", "read": {"snapshot_token": forged}, "operations": [{"command": "DESCRIBE PROTOCOL"}],
        }  # fmt: skip
        response = nexus.send(request)
        return response.get("error", response["results"][0].get("error") if response["results"] else None)

    assert read(token) is None
    assert read(token[:-3] + "abc")["code"] == "HistoricalSnapshotUnavailable"
    assert read("1")["code"] == "HistoricalSnapshotUnavailable"


def test_snapshots_of_the_past_are_described(nexus):
    """AS OF names the coordinates of a state; the future is refused (fixture history)."""
    then, tx = nexus.state.seq, nexus.deltas[-1].tx_id
    renamed(nexus, "Rob")

    value = nexus.get("DESCRIBE SNAPSHOT AS OF SEQ :n", n=then)

    assert value["snapshot_seq"] == then
    assert value["tx_id"] == tx
    assert value["current"] is False
    assert "snapshot_token" not in value
    assert nexus.get("DESCRIBE SNAPSHOT AS OF TX :tx", tx=tx)["snapshot_seq"] == then
    assert nexus.get("DESCRIBE SNAPSHOT")["current"] is True
    assert nexus.get("SNAPSHOT AS OF SEQ :n", n=then)["snapshot_seq"] == then
    assert nexus.code("SNAPSHOT AS OF SEQ 9999") == "HistoricalSnapshotUnavailable"
    assert nexus.code('SNAPSHOT AS OF TX "tx-nothing"') == "TransactionUnknown"


# --- transactions


def test_a_transaction_is_described_as_its_receipt(nexus):
    """What a commit's receipt said, found again by its id."""
    response = nexus.run('UPDATE :bob SET FIELDS {name: "Rob"}', nexus.ref)

    value = nexus.get("DESCRIBE TRANSACTION :tx", tx=response["receipt"]["tx_id"])

    assert response["receipt"].items() <= value.items()
    assert value["origin"] == {"principal_id": "owner", "channel": "kip"}


def test_an_unknown_transaction_is_not_called_aborted(nexus):
    """An id that names nothing is unknown, and nothing says that it was aborted (KIP2-META-018)."""
    for tx in ("tx-00000zzzabcde", "tx-00000001zzzzz", "nonsense", "tx-"):
        error = nexus.refused("DESCRIBE TRANSACTION :tx", tx=tx)
        assert error["code"] == "TransactionUnknown"
        assert error["details"]["status"] == "unknown"
        assert "does not mean it was aborted" in error["message"]


def test_a_transaction_that_is_no_longer_kept_is_unknown(nexus):
    """Trimmed commits cannot be described, and are not made up."""
    tx = nexus.deltas[-1].tx_id
    renamed(nexus, "a")
    nexus.forget_before(4)

    assert nexus.code("DESCRIBE TRANSACTION :tx", tx=tx) == "TransactionUnknown"


def test_a_lost_answer_is_found_by_its_key(nexus):
    """The receipt kept under the caller's key is the original one (KIP2-META-017)."""
    request = {
        "kip": "2.0",
        "operations": [{"command": 'CREATE CONCEPT ?x { TYPE "Person" NAME "X" }', "idempotency_key": "k1"}],
    }
    receipt = nexus.send(request)["receipt"]

    value = nexus.get('DESCRIBE TRANSACTION BY IDEMPOTENCY KEY "k1"')

    assert receipt.items() <= value.items()
    assert value["operations"] == ["succeeded"]
    assert nexus.code('DESCRIBE TRANSACTION BY IDEMPOTENCY KEY "k2"') == "TransactionUnknown"
    other = Principal("other")
    assert nexus.code('DESCRIBE TRANSACTION BY IDEMPOTENCY KEY "k1"', principal=other) == "TransactionUnknown"


def test_an_outcome_without_effect_is_found_too(nexus):
    """A key whose request changed nothing has a receipt that says so."""
    command = 'UPDATE :bob SET FIELDS {name: "Bob"}'
    request = {
        "kip": "2.0",
        "operations": [{"command": command, "parameters": nexus.ref, "idempotency_key": "k"}],
    }
    nexus.send(request)

    value = nexus.get('DESCRIBE TRANSACTION BY IDEMPOTENCY KEY "k"')

    assert value["status"] == "no_effect"
    assert "space_seq" not in value
