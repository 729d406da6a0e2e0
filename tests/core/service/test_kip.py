"""KIP over a durable log: retries, conflicts, lost answers, history and erasure."""

from __future__ import annotations

import msgspec
import pytest

from core.authority import Principal
from core.engine import Context, execute
from core.errors import NoemaError
from core.ports import Unavailable
from core.protocol.request import read_request
from core.schema.environment import initial_environment
from core.service.kip import Kip
from core.service.owed import settle
from tests.conformance.world import error_code, json_of
from tests.core.service.world import ORIGIN, SECOND, SPACE, World, describe
from tests.doubles import FailingTable, Faults

OWNER = Principal("owner", "kip")
CREATE = 'UPSERT CONCEPT ?p {MATCH {type: "Person", key: :k} SET FIELDS {name: :n}}'
COUNT = 'FIND(COUNT(?p)) WHERE {?p CONCEPT {type: "Person"}}'


class Silent(FailingTable):
    """A store whose first write is done and then neither answered nor readable any more."""

    dead = False

    def get(self, pk, sk):
        """Nothing, once it is dead."""
        if self.dead:
            raise Unavailable("silent")
        return super().get(pk, sk)

    def transact(self, writes):
        """Done, and not answered."""
        super().transact(writes)
        self.dead = True
        raise Unavailable("silent")


class Speaker:
    """A process that speaks KIP to one durable space."""

    def __init__(self, world: World | None = None) -> None:
        self.world = world or World()
        w = self.world
        self.kip = Kip(w.spaces, w.commits, w.erasures, w.clock, secret=b"secret")

    @staticmethod
    def born() -> Speaker:
        """A process and a new space in the default schema."""
        found = Speaker()
        found.world.commits.create(
            SPACE, lambda birth: msgspec.structs.replace(describe(birth), schema=initial_environment()),
            origin=ORIGIN, deadline=found.world.clock.time + 60 * SECOND,
        )  # fmt: skip
        return found

    def again(self, **stores) -> Speaker:
        """Another process over the same store."""
        return Speaker(self.world.again(**stores))

    def racing(self, act, times=1):
        """A process before whose next writes others act, and what they did: a race, made certain."""
        done = []

        def before(_):
            if len(done) < times:
                done.append(act())

        return self.again(table=FailingTable(self.world.table, before_transact=before)), done

    def between(self, request, act):
        """The response to a request of two operations between which others act."""
        before, loads = self.world.spaces.load, []

        def load(space_id):
            loads.append(space_id)
            if len(loads) == 2:  # the first load is the request's, the second its second operation's
                act()
            return before(space_id)

        self.world.spaces.load = load
        try:
            return self.send(request)
        finally:
            self.world.spaces.load = before

    def losing(self):
        """A process whose first write is done, and then neither answered nor readable."""
        return self.again(table=Silent(self.world.table))

    def watched(self, request, moment):
        """The response to a read request between whose operations `moment` is called."""
        state = self.world.spaces.load(SPACE)
        context = Context(principal=OWNER, now=self.world.clock.time, overdue=moment)
        return json_of(execute(state, read_request(request), context).response)

    def send(self, request, *, principal=OWNER, **options):
        """The response to a request, as a client reads it."""
        deadline = self.world.clock.time + options.pop("patience", 60) * SECOND
        return json_of(
            self.kip.execute(SPACE, read_request(request), principal, deadline=deadline, **options)
        )

    def run(self, command, parameters=None, key=None, **options):
        """The response to one command."""
        operation = {"command": command, "parameters": parameters or {}}
        if key is not None:
            operation["idempotency_key"] = key
        return self.send({"kip": "2.0", "operations": [operation]}, **options)

    def ok(self, command, parameters=None, **options):
        """The result of a command that must succeed."""
        response = self.run(command, parameters, **options)
        assert response["status"] == "succeeded", response
        return response["results"][0]["result"]


@pytest.fixture
def speaker() -> Speaker:
    """A process and a new space."""
    return Speaker.born()


def test_a_write_is_seen_by_every_process(speaker):
    """What one process commits, another reads, and the receipt names the commit in the log."""
    response = speaker.run(CREATE, {"k": "alice", "n": "Alice"})
    other = speaker.again()

    assert other.ok('FIND(?p.name) WHERE {?p CONCEPT {key: "alice"}}') == ["Alice"]
    assert other.world.spaces.load(SPACE).seq == response["receipt"]["space_seq"] == 1
    delta = other.world.spaces.deltas(SPACE, 1, 10)[0]
    assert (delta.tx_id, delta.record["request_digest"]) == (
        response["receipt"]["tx_id"],
        response["receipt"]["request_digest"],
    )


def test_two_processes_converge_on_one_identity(speaker):
    """The same UPSERT and ENSURE from two processes make one Concept and one Proposition."""
    other = speaker.again()
    for process in (speaker, other):
        process.ok(CREATE, {"k": "a", "n": "A"})
        process.ok(
            'MUTATE {UPSERT CONCEPT ?d {MATCH {type: "Preference", key: "dark"}} ENSURE PROPOSITION ?p ({type: "Person", key: "a"}, "prefers", ?d)}'
        )

    assert speaker.ok(COUNT) == [1]
    assert speaker.ok('FIND(COUNT(?p)) WHERE {?p PROPOSITION (?s, "prefers", ?o)}') == [1]


def test_a_conflict_runs_the_unit_again_on_the_newer_state(speaker):
    """A commit that came first between reading and writing is seen, not overwritten."""
    ref = speaker.ok(CREATE, {"k": "n", "n": "N"})["handles"]["p"]["id"]
    other, interfered = speaker.again(), []

    def interfere(writes):
        if not interfered:
            interfered.append(
                other.ok(
                    "UPDATE ?p SET ATTRIBUTES {n: ADD(COALESCE(?p.attributes.n, 0), 1)} WHERE {?p CONCEPT {id: :i}}",
                    {"i": ref},
                )
            )

    late = speaker.again(table=FailingTable(speaker.world.table, before_transact=interfere))
    late.ok(
        "UPDATE ?p SET ATTRIBUTES {n: ADD(COALESCE(?p.attributes.n, 0), 1)} WHERE {?p CONCEPT {id: :i}}",
        {"i": ref},
    )

    assert len(interfered) == 1
    assert speaker.ok("FIND(?p.attributes.n) WHERE {?p CONCEPT {id: :i}}", {"i": ref}) == [2]


def test_a_guard_is_checked_against_the_state_committed_onto(speaker):
    """EXPECT VERSION fails if another commit moves the element before the write lands."""
    ref = speaker.ok(CREATE, {"k": "n", "n": "N"})["handles"]["p"]["id"]
    other, interfered = speaker.again(), []

    def interfere(writes):
        if not interfered:
            interfered.append(other.ok('UPDATE :i SET FIELDS {name: "first"}', {"i": ref}))

    late = speaker.again(table=FailingTable(speaker.world.table, before_transact=interfere))
    response = late.run('UPDATE :i EXPECT VERSION 1 SET FIELDS {name: "second"}', {"i": ref})

    assert error_code(response) == "VersionConflict"
    assert speaker.ok("FIND(?p.name) WHERE {?p CONCEPT {id: :i}}", {"i": ref}) == ["first"]


def test_nothing_tentative_is_read_elsewhere(speaker):
    """Until the write lands, another process does not see it."""
    seen = []
    other = speaker.again()
    slow = speaker.again(
        table=FailingTable(speaker.world.table, before_transact=lambda _: seen.append(other.ok(COUNT)))
    )
    slow.ok(CREATE, {"k": "a", "n": "A"})

    assert seen == [[0]]
    assert other.ok(COUNT) == [1]


def test_a_lost_answer_is_found_by_the_retry(speaker):
    """A commit whose response was lost is one commit, and the retry has its receipt."""
    lossy = speaker.again(table=FailingTable(speaker.world.table, Faults([0], after=True)))
    first = lossy.run(CREATE, {"k": "a", "n": "A"}, key="k")
    second = speaker.again().run(CREATE, {"k": "a", "n": "A"}, key="k")

    assert first["status"] == "succeeded"  # the loop looked, and its commit was there
    assert second["receipt"] == first["receipt"]
    assert speaker.world.spaces.load(SPACE).seq == 1


def test_an_outcome_that_nobody_knows_is_said_to_be_unknown(speaker):
    """A store that stays silent leaves the outcome unknown, and the retry with the same key settles it."""
    response = speaker.losing().run(CREATE, {"k": "a", "n": "A"}, key="k", patience=1)

    assert response["status"] == "outcome_unknown"
    assert response["receipt"]["status"] == "unknown"
    settled = speaker.run(CREATE, {"k": "a", "n": "A"}, key="k")
    assert settled["receipt"]["status"] == "committed"
    assert speaker.ok(COUNT) == [1]


def test_a_key_stands_for_one_request_in_the_store_too(speaker):
    """Another request under the key is refused; a failed one had left it free; no_effect is retained."""
    assert error_code(speaker.run('CREATE CONCEPT ?c {TYPE "Spaceship"}', key="k")) == "SchemaSymbolNotFound"
    speaker.run(CREATE, {"k": "a", "n": "A"}, key="k")
    assert error_code(speaker.run(CREATE, {"k": "a", "n": "B"}, key="k")) == "IdempotencyConflict"
    assert (
        speaker.run(CREATE, {"k": "a", "n": "B"}, key="k", principal=Principal("other"))["status"]
        == "succeeded"
    )

    nothing = speaker.run(CREATE, {"k": "a", "n": "B"}, key="n")
    speaker.run(CREATE, {"k": "a", "n": "C"})
    assert nothing["receipt"]["status"] == "no_effect"
    assert speaker.run(CREATE, {"k": "a", "n": "B"}, key="n")["receipt"] == nothing["receipt"]
    assert speaker.ok('FIND(?p.name) WHERE {?p CONCEPT {key: "a"}}') == ["C"]


def test_a_sequence_sees_its_own_commits_and_others(speaker):
    """Each operation reads the newest state; a failure keeps what was committed."""
    request = {"kip": "2.0", "execution": {"mode": "sequence"}, "operations": [
        {"command": CREATE, "parameters": {"k": "a", "n": "A"}}, {"command": COUNT},
        {"command": 'CREATE CONCEPT ?c {TYPE "Spaceship"}'}, {"command": CREATE, "parameters": {"k": "b", "n": "B"}}]}  # fmt: skip
    response = speaker.send(request)

    assert [result["status"] for result in response["results"]] == [
        "succeeded",
        "succeeded",
        "failed",
        "skipped",
    ]
    assert response["results"][1]["result"] == [1]
    assert speaker.again().ok(COUNT) == [1]


def test_a_dry_run_writes_no_row(speaker):
    """A preview of several operations sees its own effects and leaves the store as it was."""
    before = speaker.world.everything()
    request = {"kip": "2.0", "execution": {"mode": "sequence", "idempotency_key": "k"}, "options": {"dry_run": True},
               "operations": [{"command": CREATE, "parameters": {"k": "a", "n": "A"}}, {"command": COUNT}]}  # fmt: skip

    assert speaker.send(request)["results"][1]["result"] == [1]
    assert speaker.world.everything() == before


def test_the_past_is_read_from_the_log(speaker):
    """AS OF by number, time and transaction reads what was so; the future and strangers are refused."""
    first = speaker.run(CREATE, {"k": "a", "n": "Old"})["receipt"]
    speaker.world.clock.advance(SECOND)
    speaker.ok(CREATE, {"k": "a", "n": "New"})
    read = 'FIND(?p.name) WHERE {?p CONCEPT {key: "a"}} AS OF %s :v'
    other = speaker.again()

    assert other.ok(read % "SEQ", {"v": 1}) == ["Old"]
    assert other.ok(read % "SEQ", {"v": 0}) == []
    assert other.ok(read % "TX", {"v": first["tx_id"]}) == ["Old"]
    assert other.ok(read % "TIME", {"v": first["committed_at"]}) == ["Old"]
    assert error_code(other.run(read % "SEQ", {"v": 99})) == "HistoricalSnapshotUnavailable"
    assert error_code(other.run(read % "TX", {"v": "tx-00000001zzzzz"})) == "TransactionUnknown"


def test_purged_bytes_are_nowhere_in_the_store(speaker):
    """After PURGE the words are in no row and no object, history included, and the stub stays."""
    speaker.ok(
        'CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "xylophone secret"}}', key="k"
    )
    assert any(b"xylophone" in body for body in speaker.world.everything().values())
    response = speaker.run('PURGE ?e WHERE {?e EVIDENCE {}} LIMIT 1 CONFIRM "PURGE"')

    assert response["status"] == "succeeded"
    assert "warnings" not in response["results"][0]
    found = {name for name, body in speaker.world.everything().items() if b"xylophone" in body}
    assert found == set()
    assert speaker.again().ok('FIND(?e.evidence_class) WHERE {?e EVIDENCE {state: "purged"}}') == ["message"]
    assert speaker.again().ok("FIND(COUNT(?e)) WHERE {?e EVIDENCE {}} AS OF SEQ 1") == [0]


def test_the_readonly_endpoint_and_deadlines(speaker):
    """A write is refused on the read-only endpoint; a request that is out of time is not begun."""
    assert error_code(speaker.run(CREATE, {"k": "a", "n": "A"}, readonly=True)) == "ReadonlyViolation"
    assert error_code(speaker.run(COUNT, patience=-1)) == "ExecutionTimeout"
    late = {"kip": "2.0", "operations": [{"command": COUNT}], "options": {"deadline_ms": 1}}
    assert error_code(speaker.send(late)) == "ExecutionTimeout"


def test_nothing_is_staged_and_the_hint_says_what_to_send(speaker):
    """A handle of an artifact finds none; the error says how the artifact itself is given."""
    response = speaker.run('VERIFY SCHEMA PACKAGE "art-1"')

    assert error_code(response) == "ArtifactUnavailable"
    assert "holds the package or receipt" in response["results"][0]["error"]["hint"]


def test_a_space_that_is_not_there_is_no_answer(speaker):
    """The service, not the body, says that there is no such space."""
    with pytest.raises(NoemaError) as caught:
        speaker.kip.execute(
            "nowhere",
            read_request({"kip": "2.0", "operations": [{"command": COUNT}]}),
            OWNER,
            deadline=speaker.world.clock.time + SECOND,
        )

    assert caught.value.code == "NotFoundOrNotVisible"


def test_a_warm_request_reads_head_once(speaker):
    """A read and a write each look at HEAD once, and a write is one transaction."""
    table = FailingTable(speaker.world.table)
    warm = speaker.again(table=table)
    warm.ok(COUNT)
    table.reads = 0
    warm.ok(COUNT)
    assert table.reads == 1

    table.reads = table.transactions = 0
    warm.ok(CREATE, {"k": "a", "n": "A"})
    assert (table.reads, table.transactions) == (1, 1)


def test_an_erasure_that_must_wait_is_said(speaker):
    """Where the bytes cannot be destroyed at once, the stub stands and the answer warns."""
    speaker.ok('CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "later"}}')

    class Busy:
        def erase(self, *args, **kwargs):
            raise NoemaError("ServiceUnavailable", "another erasure runs here")

    w = speaker.world
    speaker.kip = Kip(w.spaces, w.commits, Busy(), w.clock, secret=b"secret")
    response = speaker.run('PURGE ?e WHERE {?e EVIDENCE {}} CONFIRM "PURGE"')

    assert response["status"] == "succeeded"
    assert response["results"][0]["warnings"][0]["code"] == "ErasurePending"
    assert speaker.ok("FIND(COUNT(?e)) WHERE {?e EVIDENCE {}}") == [0]


def test_an_erasure_that_had_to_wait_is_owed_until_it_is_done(speaker):
    """What a purge could not destroy at once is on HEAD in its own commit, and the caretaker's settlement ends it."""
    speaker.ok('CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: "secretive"}}')

    class Busy:
        def erase(self, *args, **kwargs):
            raise NoemaError("ServiceUnavailable", "another erasure runs here")

    w = speaker.world
    speaker.kip = Kip(w.spaces, w.commits, Busy(), w.clock, secret=b"secret")
    speaker.run('PURGE ?e WHERE {?e EVIDENCE {}} CONFIRM "PURGE"')
    owed = w.spaces.head(SPACE).number("owed")

    assert owed == w.spaces.head(SPACE).ver
    assert settle(w.spaces, w.erasures, SPACE, "later") == 1
    assert settle(w.spaces, w.erasures, SPACE, "again") == 0
    assert "owed" not in w.spaces.head(SPACE).row
    assert w.spaces.head(SPACE).pgen == 1


def test_the_same_answer_for_every_kind_of_request_to_no_space(speaker):
    """Reads, writes and malformed batches against a space that is not there are refused alike."""
    two = [{"command": COUNT}, {"command": COUNT}]
    for members in ({"operations": [{"command": COUNT}]}, {"operations": [{"command": CREATE, "parameters": {"k": "a", "n": "A"}}]},
                    {"operations": two, "execution": {"mode": "atomic", "isolation": "chaos"}}):  # fmt: skip
        with pytest.raises(NoemaError) as caught:
            speaker.kip.execute(
                "nowhere",
                read_request({"kip": "2.0", **members}),
                OWNER,
                deadline=speaker.world.clock.time + SECOND,
            )
        assert caught.value.code == "NotFoundOrNotVisible"


def test_a_write_that_always_loses_says_so(speaker):
    """Where others are always first until the deadline, the request may be sent again as it is."""
    other, count = speaker.again(), []

    def interfere(_):
        count.append(other.ok(CREATE, {"k": f"o{len(count)}", "n": "o"}))

    late = speaker.again(table=FailingTable(speaker.world.table, before_transact=interfere))
    response = late.run(CREATE, {"k": "a", "n": "A"}, patience=1)

    assert error_code(response) in {"SerializationConflict", "ExecutionTimeout"}
    assert response["results"][0]["error"]["retry"]["class"] == "safe_same_request"
    assert speaker.ok('FIND(COUNT(?p)) WHERE {?p CONCEPT {key: "a"}}') == [0]
