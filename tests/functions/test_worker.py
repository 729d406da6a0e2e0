"""The worker and the tick: what becomes of hints."""

from typing import Any

import pytest

import core.service.formation as formation
from core.errors import NoemaError
from core.ports import Put, Unavailable, Update
from core.service.hints import FORMATION, UPKEEP, Hint, read_hint, send_hint
from core.service.owed import debt
from core.storage.layout import HEAD, counter_sk, space_pk
from core.storage.memory import MemoryTable
from functions.logs import logger
from functions.tick import tick
from functions.worker import SPARE_MS, work
from tests.doubles import CountingEntropy, Crash, FailingTable, Faults
from tests.functions.world import KEYED, SentMessages, World

TALK = {"messages": [{"role": "user", "content": "I love tea."}]}


class Context:
    """A Lambda context that has so much time left."""

    def __init__(self, ms: int) -> None:
        self.ms = ms

    def get_remaining_time_in_millis(self) -> int:
        return self.ms


def batch(*messages: tuple[str, str], group: str | None = None) -> dict[str, Any]:
    """A FIFO batch of (space, body); the message ids are m0, m1 and so on."""
    return {
        "Records": [
            {
                "messageId": f"m{n}",
                "receiptHandle": "r",
                "body": body,
                "attributes": {"MessageGroupId": group or space, "ApproximateReceiveCount": "1"},
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "awsRegion": "eu-central-1",
            }
            for n, (space, body) in enumerate(messages)
        ]
    }


def hint(space: str, what: str = "formation") -> tuple[str, str]:
    return space, f'{{"work":"{what}","space":"{space}"}}'


def failed(answer: dict[str, Any]) -> list[str]:
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def submit(world: World, space: str = "demo") -> None:
    answer = world.ask("POST", f"/v1/{space}/formation", TALK, token=world.token(aud=space))
    assert answer.status == 200


def formed(world: World, space: str = "demo") -> int:
    return world.services.spaces.head(space).number("formed")


@pytest.fixture
def world() -> World:
    """Two spaces with a conversation each."""
    made = World().make_space("demo").make_space("other")
    submit(made, "demo")
    submit(made, "other")
    return made


def test_what_a_hint_says() -> None:
    """A message names a kind of work and a space; every message has another deduplication id."""
    queue, entropy = SentMessages(), CountingEntropy()
    send_hint(queue, entropy, "demo", FORMATION)
    send_hint(queue, entropy, "demo", FORMATION)

    assert [(group, read_hint(body)) for group, body, _ in queue.sent] == [
        ("demo", Hint(work="formation", space="demo"))
    ] * 2
    assert len({dedupe for _, _, dedupe in queue.sent}) == 2


def test_the_formation_service_hints_in_the_same_words(world: World) -> None:
    """What the sweep sends is what the worker reads."""
    queue: Any = world.queue
    queue.sent.clear()
    world.services.formation.wake("demo")

    assert read_hint(queue.sent[0][1]) == Hint(work="formation", space="demo")


def test_a_batch_of_spaces_is_formed(world: World) -> None:
    """Each message's space is drained, and none is given back."""
    assert failed(work(batch(hint("demo"), hint("other")), Context(200_000), world.services)) == []

    assert (formed(world, "demo"), formed(world, "other")) == (1, 1)


def test_a_conversation_that_fails_is_in_the_log_by_number(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warning names it, so that somebody looks; what was said is not in it."""

    def broken(*_: object) -> None:
        raise ValueError("I love tea")

    monkeypatch.setattr(formation, "form_part", broken)
    lines: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(logger(), "warning", lambda event, extra: lines.append((event, extra)))

    work(batch(hint("demo")), None, world.services)

    assert lines == [("conversations failed", {"space": "demo", "failed": [1], "cancelled": []})]


def test_a_message_delivered_twice_does_nothing_twice(world: World) -> None:
    """Late and repeated hints find nothing to do."""
    for _ in range(3):
        assert failed(work(batch(hint("demo"), hint("demo")), None, world.services)) == []
    assert formed(world) == 1
    assert world.ask("GET", "/v1/demo/info", token=world.token()).result["conversations"] == 1


@pytest.mark.parametrize(
    "body", ["", "{}", "not json", '{"work":"paint","space":"demo"}', "[]", '{"space":1}']
)
def test_a_message_nobody_can_read_is_dropped(world: World, body: str) -> None:
    """It would fail for ever; the messages around it are worked."""
    answer = work(batch(("demo", body), hint("demo"), group="demo"), None, world.services)

    assert failed(answer) == []
    assert formed(world) == 1


def test_a_message_about_a_space_that_is_gone_is_dropped(world: World) -> None:
    """Unknown and deleted spaces need no work."""
    gone = {"space_id": "other"}
    world.ask("POST", "/admin/other/delete_space", gone, token=world.admin_token())

    answer = work(
        batch(hint("nowhere"), hint("other"), hint("other", "upkeep"), hint("demo")), None, world.services
    )

    assert failed(answer) == []
    assert formed(world) == 1


@pytest.mark.parametrize(
    "error",
    [
        NoemaError("ServiceUnavailable", "the store did not answer"),
        Unavailable("the store did not answer"),
        RuntimeError("a bug"),
    ],
)
def test_a_failure_keeps_its_group_in_order_and_lets_others_go_on(world: World, error: Exception) -> None:
    """What failed comes again with what follows it in its group; other groups are done."""

    class Failing:
        def drain(self, space_id: str, deadline: int, **options: Any) -> Any:
            if space_id == "demo":
                raise error
            return real.drain(space_id, deadline, **options)

    real = world.services.formation
    world.services.__dict__["formation"] = Failing()
    answer = work(batch(hint("demo"), hint("demo", "upkeep"), hint("other")), None, world.services)

    assert failed(answer) == ["m0", "m1"]
    assert formed(world, "other") == 1


def test_out_of_time_the_work_goes_on_in_another_run(world: World) -> None:
    """A worker that is about to be stopped begins nothing and hints again."""
    queue: Any = world.queue
    queue.sent.clear()

    assert failed(work(batch(hint("demo")), Context(SPARE_MS), world.services)) == []

    assert formed(world) == 0
    assert [group for group, _, _ in queue.sent] == ["demo"]
    assert failed(work(batch(hint("demo")), Context(200_000), world.services)) == []
    assert formed(world) == 1


def test_a_space_that_another_worker_holds_is_left_to_it(world: World) -> None:
    """A hint that meets a held lease is done; the sweep looks after the row."""
    fence = world.services.leases.acquire("demo", "formation", "another", 60_000)
    assert fence is not None

    assert failed(work(batch(hint("demo")), None, world.services)) == []

    assert formed(world) == 0
    world.clock.advance(120_000)
    queue: Any = world.queue
    queue.sent.clear()
    assert tick(world.services)["formation"] == 2
    work(batch(hint("demo"), hint("other")), None, world.services)
    assert (formed(world, "demo"), formed(world, "other")) == (1, 1)
    assert tick(world.services)["formation"] == 0


# --- upkeep


def rename(world: World, times: int, space: str = "demo") -> None:
    path = f"/v1/{space}/management/update_space"
    for n in range(times):
        assert world.ask("PATCH", path, {"name": f"n{n}"}, token=world.token(aud=space)).status == 200


def test_a_long_log_is_folded(world: World) -> None:
    """The tick hints at a space whose log is long, and the worker folds it; nothing is lost."""
    rename(world, 20)
    world.clock.advance(11 * 60_000)
    queue: Any = world.queue
    queue.sent.clear()
    assert tick(world.services)["upkeep"] == 1
    assert ("demo", Hint(work="upkeep", space="demo")) in [(g, read_hint(b)) for g, b, _ in queue.sent]

    assert failed(work(batch(hint("demo", UPKEEP)), None, world.services)) == []

    head = world.services.spaces.head("demo")
    assert head.base_ver == head.ver
    assert head.log_n == 0
    assert world.ask("GET", "/v1/demo/info", token=world.token()).result["name"] == "n19"
    assert tick(world.services)["upkeep"] == 0


def test_a_space_that_is_being_folded_is_left_to_the_other(world: World) -> None:
    """Upkeep that meets a held compaction lease does nothing and is no failure."""
    rename(world, 20)
    world.clock.advance(11 * 60_000)
    assert world.services.leases.acquire("demo", "compaction", "another", 60_000)

    assert failed(work(batch(hint("demo", UPKEEP)), None, world.services)) == []

    assert world.services.spaces.head("demo").base_ver == 0


def test_an_erasure_that_died_is_finished() -> None:
    """A space left in the middle of an erasure is found by the round and resumed by the worker."""
    table = FailingTable(MemoryTable())
    world = World(table=table).make_space()
    submit(world)
    table.faults = Faults([1], error=Crash)  # after the erasure has begun
    with pytest.raises(Crash):
        world.services.erasures.delete_space("demo", "boss", owner="first")
    table.faults = Faults()
    world.use(KEYED)  # another container
    assert world.ask("GET", "/v1/demo/info", token=world.token()).status == 404
    assert table.get(space_pk("demo"), counter_sk("formation")) is not None
    world.clock.advance(16 * 60_000)
    assert tick(world.services)["upkeep"] == 1

    assert failed(work(batch(hint("demo", UPKEEP)), None, world.services)) == []

    assert table.get(space_pk("demo"), counter_sk("formation")) is None
    head = table.get(space_pk("demo"), HEAD)
    assert head is not None
    assert head["state"] == "deleted"
    assert tick(world.services)["upkeep"] == 0


def test_an_erasure_that_a_purge_owes_is_settled(world: World) -> None:
    """A debt on HEAD is found by the round and settled by the worker, once."""
    space, services = "demo", world.services
    ver = services.spaces.head(space).ver
    row, attribute = debt(space, ver, ["E-000000000000zzzz"], "ada")
    services.table.transact([row, Update(space_pk(space), HEAD, assign=attribute)])

    assert tick(services)["upkeep"] == 1
    assert not failed(work(batch(hint(space, "upkeep")), None, services))
    assert services.spaces.head(space).pgen == 1
    assert tick(services)["upkeep"] == 0


def test_the_round_goes_on_where_it_ended() -> None:
    """Each tick looks at the next spaces of the directory, and begins again at the end."""
    world = World()
    for n in range(5):
        world.make_space(f"s{n}")
    for n in range(5):
        pk = space_pk(f"s{n}")
        head = world.table.get(pk, HEAD)
        assert head is not None
        world.table.transact([Put(pk, HEAD, {**head, "log_n": 10_000})])

    rounds = [world.services.caretaking.round(2) for _ in range(4)]

    assert rounds == [["s0", "s1"], ["s2", "s3"], ["s4"], ["s0", "s1"]]


def test_one_part_of_a_tick_that_fails_leaves_the_other(world: World) -> None:
    """A sweep that breaks is logged, and the round is still made."""

    class Broken:
        def sweep(self) -> list[str]:
            raise RuntimeError("a bug")

    world.services.__dict__["formation"] = Broken()

    assert tick(world.services) == {"maintenance": 0, "upkeep": 0, "facts": 0, "recall": 0}


# --- maintenance


def test_maintenance_over_http_is_made_by_the_worker() -> None:
    """Started with a 200, refused while it waits, made by the hint, readable as a conversation, told by the status."""
    world = World().make_space()
    token = world.token()
    submit(world)
    work(batch(hint("demo")), None, world.services)
    first = world.ask("POST", "/v1/demo/maintenance", {"scope": "full"}, token=token)
    second = world.ask("POST", "/v1/demo/maintenance", {}, token=token)
    assert first.result == {"content": "", "conversation": 1}
    assert (second.status, second.code) == (409, "Busy")
    assert second.json["error"]["data"]["details"]["reason"] == "maintenance_busy"
    assert world.ask("GET", "/v1/demo/memory_status", token=token).result["metrics"] == {
        "recalls_completed": 0
    }

    assert failed(work(batch(hint("demo", "maintenance")), None, world.services)) == []

    path = "/v1/demo/conversations/1"
    run = world.ask("GET", path, token=token, query="collection=maintenance").result
    assert run["status"] == "completed"
    assert '"model":"offline"' in run["messages"][-1]["content"]
    status = world.ask("GET", "/v1/demo/memory_status", token=token).result
    assert status["last_settlement"]["scope"] == "full"
    assert status["metrics"]["decayed"] > 0
    assert world.ask("GET", "/v1/demo/info", token=token).result["maintenance_processed_id"] == 1


def test_a_bad_wish_starts_nothing() -> None:
    """An unknown scope and a parameter out of range are 400s, and no run waits."""
    world = World().make_space()
    for body in ({"scope": "deep"}, {"parameters": {"orphan_max_count": 0}}, {"trigger": "whim"}):
        answer = world.ask("POST", "/v1/demo/maintenance", body, token=world.token())
        assert (answer.status, answer.code) == (400, "InvalidInput")
    assert world.ask("POST", "/v1/demo/maintenance", {}, token=world.token()).status == 200


def test_a_worker_out_of_time_goes_on_in_another_turn() -> None:
    """The run stays, and a new hint is sent; one that formation holds up sends none."""
    world = World().make_space()
    world.ask("POST", "/v1/demo/maintenance", {}, token=world.token())
    queue: Any = world.queue
    queue.sent.clear()
    work(batch(hint("demo", "maintenance")), Context(SPARE_MS), world.services)
    assert [read_hint(body).work for _, body, _ in queue.sent] == ["maintenance"]

    held = world.services.leases.acquire("demo", "formation", "somebody", 1000, apart="maintenance")
    assert held is not None
    queue.sent.clear()
    work(batch(hint("demo", "maintenance")), None, world.services)
    assert queue.sent == []


def test_forgetting_a_person_removes_the_runs_that_name_them() -> None:
    """The erasure's scan finds nothing, and the run that named the person's claims is gone with them."""
    world = World().make_space()
    token = world.token()
    said = [
        {"role": "user", "name": "Alice", "content": text}
        for text in ("I live in Paris.", "I live in Oslo now.")
    ]
    world.ask("POST", "/v1/demo/formation", {"messages": said}, token=token)
    work(batch(hint("demo")), None, world.services)
    world.ask("POST", "/v1/demo/maintenance", {"scope": "full"}, token=token)
    work(batch(hint("demo", "maintenance")), None, world.services)
    person = world.ask("POST", "/v1/demo/get_or_init_user", {"user": "name:alice"}, token=token).result
    assert person["name"] == "Alice"

    answer = world.ask("POST", "/v1/demo/memory/forget", {"entities": [person["id"]]}, token=token)

    assert answer.status == 200, answer.body
    gone = world.ask("GET", "/v1/demo/conversations/1", token=token, query="collection=maintenance")
    assert gone.status == 404
    assert world.ask("GET", "/v1/demo/memory_status", token=token).result["metrics"]["corrections"] >= 1
