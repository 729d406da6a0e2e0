"""Shadow evaluation over HTTP and by the worker; and formation that gives way to maintenance."""

from typing import Any

from core.service.hints import read_hint
from functions.worker import work
from tests.functions.test_worker import Context, batch, failed, hint
from tests.functions.world import World

PATH = "/v1/demo/management/shadow_eval"
WISH = {"policy": {"decay_floor": 0.1}, "replay_sample": 2}


def asked() -> World:
    """A space with a question that was asked."""
    world = World().make_space()
    talk = {"messages": [{"role": "user", "content": "I love tea.", "name": "Alice"}]}
    world.ask("POST", "/v1/demo/formation", talk, token=world.token())
    work(batch(hint("demo")), Context(200_000), world.services)
    world.ask("POST", "/v1/demo/recall", {"query": "What does Alice love?"}, token=world.token())
    sent(world).clear()
    return world


def sent(world: World) -> list[Any]:
    queue: Any = world.queue
    found: list[Any] = queue.sent
    return found


def test_it_is_started_worked_and_asked_for_again() -> None:
    """202 with a hint in a group of its own, busy for another policy, 200 with the report when the worker is done."""
    world = asked()
    first = world.ask("POST", PATH, WISH, token=world.token())
    other = world.ask("POST", PATH, {"policy": {}}, token=world.token())
    assert (first.status, first.json["result"]["status"], first.headers["retry-after"]) == (
        202,
        "working",
        "5",
    )
    assert (other.status, other.code) == (409, "Busy")
    assert [(group, read_hint(body).work) for group, body, _ in sent(world)] == [("demo.shadow", "shadow")]

    assert failed(work(batch(hint("demo", "shadow")), Context(200_000), world.services)) == []
    report = world.ask("POST", PATH, WISH, token=world.token()).result
    assert (report["status"], report["replayed"], report["ties"], report["judge_errors"]) == (
        "completed", 1, 1, 0,
    )  # fmt: skip
    assert set(report) == {
        "status", "compared_at", "replayed", "baseline_wins", "candidate_wins", "ties", "judge_errors",
        "candidate_policy", "usage", "samples", "judge",
    }  # fmt: skip
    status = world.ask("GET", "/v1/demo/memory_status", token=world.token()).result
    assert status["last_shadow"] == report


def test_a_guest_of_a_public_space_reads_no_questions() -> None:
    """The status is public there and what was asked is not: counts without samples."""
    world = asked().make_public()
    world.ask("POST", PATH, WISH, token=world.token())
    work(batch(hint("demo", "shadow")), Context(200_000), world.services)
    guest = world.ask("GET", "/v1/demo/memory_status").result["last_shadow"]

    assert (guest["replayed"], guest["samples"]) == (1, [])
    assert "Alice" not in str(guest)


def test_what_is_no_wish_is_refused() -> None:
    """Unknown members, values out of range, and a sample above sixteen."""
    world = asked()
    for bad in (
        {},
        {"policy": {"decay_floor": 1}},
        {"policy": {}, "replay_sample": 17},
        {"policy": {"x": 1}},
    ):
        assert world.ask("POST", PATH, bad, token=world.token()).status == 400
    assert sent(world) == []


def test_an_evaluation_without_time_is_handed_on() -> None:
    """The worker hints anew, and the next turn finds the evaluation where it stood."""
    world = asked()
    world.ask("POST", PATH, WISH, token=world.token())
    sent(world).clear()
    work(batch(hint("demo", "shadow")), Context(31_000), world.services)
    assert [read_hint(body).work for _, body, _ in sent(world)] == ["shadow"]

    work(batch(hint("demo", "shadow")), Context(200_000), world.services)
    assert world.ask("POST", PATH, WISH, token=world.token()).result["replayed"] == 1


def test_formation_gives_way_to_a_run_that_is_due() -> None:
    """After the 21st of 23 conversations the run is started; when it is over formation is woken and forms the rest."""
    world = World().make_space()
    for n in range(23):
        talk = {"messages": [{"role": "user", "content": f"I love tea {n}."}]}
        assert world.ask("POST", "/v1/demo/formation", talk, token=world.token()).status == 200
    sent(world).clear()
    head = world.services.spaces

    work(batch(hint("demo")), Context(200_000), world.services)
    assert head.head("demo").number("formed") == 21
    assert [read_hint(body).work for _, body, _ in sent(world)] == ["maintenance"]
    sent(world).clear()

    work(batch(hint("demo", "maintenance")), Context(200_000), world.services)
    assert "formation" in [read_hint(body).work for _, body, _ in sent(world)]
    work(batch(hint("demo")), Context(200_000), world.services)
    assert head.head("demo").number("formed") == 23
    assert head.head("demo").number("maintained") == 21
