"""Answers in frames: one snapshot, pages pulled as they are read, and an end that says how it ended."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

from core.authority import Principal
from core.errors import NoemaError
from core.protocol.frames import Framer
from core.protocol.request import read_request
from core.service import streaming
from core.service.streaming import Streams, reading_of
from tests.conformance.harness import PERMISSIONS, World, request

THEMES = 'FIND(?c.name) WHERE {?c CONCEPT {type: "Theme"}} ORDER BY ?c.name'
CREATE = 'CREATE CONCEPT ?c {TYPE "Theme" NAME :n}'


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A world of a dozen themes, and pages of three rows."""
    monkeypatch.setattr(streaming, "PAGE", 3)
    made = World()
    for number in range(10):
        made.ok(CREATE, n=f"t{number}")
    return made


class Stream:
    """A stream being read."""

    def __init__(
        self,
        world: World,
        said: str | dict[str, Any],
        *,
        principal: str = "owner",
        admit: Callable[[], Principal] | None = None,
        readonly: bool = False,
        patience: int = 60_000,
        **parameters: Any,
    ) -> None:
        body = request((said, parameters)) if isinstance(said, str) else said
        checked = read_request(json.loads(json.dumps(world._with_bindings(body))))
        self.framer = Framer("s1", checked.request_id, checked.operations[0].op_id)
        self._raw: list[bytes] = []
        streams = Streams(world._process.kip, world.clock)
        self.source = streams.lines(
            "test",
            checked,
            self.framer,
            admit or (lambda: world.principals[principal]),
            deadline=world.clock.time + patience,
            readonly=readonly,
        )

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        self._raw.append(next(self.source))
        frame: dict[str, Any] = json.loads(self._raw[-1])
        assert frame["frame_seq"] == len(self._raw) - 1
        return frame

    @property
    def digest(self) -> str:
        """Of the data lines, as a reader reckons it."""
        lines = [line for line in self._raw if json.loads(line)["kind"] == "data"]
        return f"sha256:{hashlib.sha256(b''.join(lines)).hexdigest()}"


def rows_of(frames: list[dict[str, Any]]) -> list[Any]:
    return [row for frame in frames if frame["kind"] == "data" for row in frame["data"]["rows"]]


def test_a_large_read_is_pages_and_an_end(world: World) -> None:
    """Start, a frame for each page, and a final one that counts and digests what went out."""
    stream = Stream(world, request({"command": THEMES, "op_id": "o1"}, request_id="r1"))
    frames = list(stream)

    assert [frame["kind"] for frame in frames] == ["start", "data", "data", "data", "data", "final"]
    assert {(f["stream_id"], f["request_id"], f["op_id"]) for f in frames} == {("s1", "r1", "o1")}
    assert rows_of(frames) == world.rows(THEMES)
    assert max(len(frame["data"]["rows"]) for frame in frames[1:-1]) == 3
    final = frames[-1]["data"]
    assert (final["outcome"], final["status"], final["rows"], final["frames"]) == (
        "complete",
        "succeeded",
        12,
        5,
    )
    assert final["digest"] == stream.digest
    assert "next_cursor" not in final


def test_a_limit_ends_a_stream_and_says_where_the_rest_is(world: World) -> None:
    """LIMIT is of the whole stream; the cursor of a partial one continues the plain query, and another stream."""
    frames = list(Stream(world, f"{THEMES} LIMIT :n", n=5))

    assert rows_of(frames) == world.rows(THEMES)[:5]
    final = frames[-1]["data"]
    assert (final["outcome"], final["rows"]) == ("partial", 5)
    rest = f"{THEMES} CURSOR :c"
    assert world.rows(rest, c=final["next_cursor"]) == world.rows(THEMES)[5:]
    assert rows_of(list(Stream(world, rest, c=final["next_cursor"]))) == world.rows(THEMES)[5:]


@pytest.mark.parametrize("command", [THEMES, 'SEARCH CONCEPT "mode theme" LIMIT 9', "HISTORY SPACE"])
def test_a_write_between_two_pages_is_not_seen(world: World, command: str) -> None:
    """All rows are of the state at which the stream began, whatever was committed since."""
    world.ok('UPDATE ?c SET ATTRIBUTES {word: "theme"} WHERE {?c CONCEPT {type: "Theme"}}')
    expected = world.rows(command if "LIMIT" in command else f"{command} LIMIT 1000")
    stream = Stream(world, command)
    begun = list(islice(stream, 2))
    world.ok(CREATE, n="a0")
    world.ok('UPDATE ?c SET ATTRIBUTES {word: "none"} WHERE {?c CONCEPT {type: "Theme"}}')
    frames = begun + list(stream)

    ids = [row["id"] if isinstance(row, dict) and "id" in row else row for row in rows_of(frames)]
    assert ids == [row["id"] if isinstance(row, dict) and "id" in row else row for row in expected]
    assert frames[-1]["data"]["outcome"] in {"complete", "partial"}


def test_one_transaction_of_the_change_stream_is_one_frame(world: World) -> None:
    """Envelopes come one by one, with a cursor at each page's end; the end is where the log stood."""
    frames = list(Stream(world, "CHANGES AFTER SEQ 2"))
    data = [frame["data"] for frame in frames if frame["kind"] == "data"]

    assert [each["envelope"] for each in data] == world.envelopes(after=2)
    assert [("next_cursor" in each) for each in data] == [
        (n % 3 == 2) or n == len(data) - 1 for n in range(len(data))
    ]
    final = frames[-1]["data"]
    assert final["outcome"] == "complete"
    world.ok(CREATE, n="later")
    more = list(Stream(world, "CHANGES SINCE :c", c=final["next_cursor"]))
    assert [f["data"]["envelope"]["space_seq"] for f in more if f["kind"] == "data"] == [world.state().seq]


def test_a_change_stream_does_not_run_after_its_writers(world: World) -> None:
    """Commits that keep coming do not keep it going: it ends with the page that reaches its beginning."""
    stream, seen = Stream(world, "CHANGES AFTER SEQ 0"), 0
    for frame in stream:
        seen += frame["kind"] == "data"
        world.ok(CREATE, n=f"w{seen}")
        assert seen < 20
    assert frame["kind"] == "final"


def test_authority_is_asked_for_each_page(world: World) -> None:
    """What is taken from a reader mid-stream ends it with an error, after the rows that went out and before any other."""
    world.govern(PERMISSIONS)
    stream = Stream(world, THEMES, principal="reader_full")
    begun = list(islice(stream, 2))
    world.revoke("canon:reader_full")

    assert len(rows_of(begun)) == 3
    with pytest.raises(NoemaError) as refused:
        list(stream)
    assert refused.value.code in {"NotAuthorized", "CursorInvalidated"}
    ended = json.loads(stream.framer.error(refused.value))
    assert (ended["kind"], ended["data"]["rows"], ended["data"]["outcome"]) == ("error", 3, "error")
    assert ended["data"]["digest"] == stream.digest


def test_what_is_hidden_meanwhile_is_not_shown(world: World) -> None:
    """An element that becomes secret between two pages is on no later page."""
    world.govern(PERMISSIONS)
    secret = world.ok(CREATE, n="t99").id("c")
    stream = Stream(world, THEMES, principal="reader_hidden")
    begun = list(islice(stream, 2))
    world.mark(secret)

    frames = begun + list(stream)
    assert "t99" not in json.dumps(frames)
    assert rows_of(frames) == [name for name in world.rows(THEMES) if name != "t99"]
    assert "t99" in world.rows(THEMES)


def test_a_credential_that_ends_ends_the_stream(world: World) -> None:
    """The transport's own check comes before each page."""
    good = [world.principals["owner"]] * 2

    def admit() -> Principal:
        if not good:
            raise NoemaError("Unauthenticated", "the token was revoked")
        return good.pop()

    stream = Stream(world, THEMES, admit=admit)
    assert len(rows_of(list(islice(stream, 3)))) == 6
    with pytest.raises(NoemaError, match="revoked"):
        next(stream)


def test_a_stream_ends_with_its_deadline(world: World) -> None:
    """A stream that has lasted too long ends by name, and tells where the rest begins."""
    stream = Stream(world, THEMES, patience=5_000)
    begun = list(islice(stream, 3))
    world.clock.advance(5_000)

    with pytest.raises(NoemaError) as late:
        next(stream)
    assert late.value.code == "ExecutionTimeout"
    cursor = json.loads(stream.framer.error(late.value))["data"]["next_cursor"]
    assert rows_of(begun) + world.rows(f"{THEMES} CURSOR :c", c=cursor) == world.rows(THEMES)
    own = Stream(world, request(THEMES, options={"deadline_ms": 1_000}))
    next(own)
    world.clock.advance(1_000)
    with pytest.raises(NoemaError):
        next(own)


def test_who_reads_no_more_ends_the_work(world: World) -> None:
    """Pages are pulled as they are read: after the reader has left none is."""
    asked: list[int] = []

    def admit() -> Principal:
        asked.append(1)
        return world.principals["owner"]

    stream = Stream(world, THEMES, admit=admit)
    next(stream)
    assert asked == []
    list(islice(stream, 2))
    assert len(asked) == 2
    stream.source.close()  # type: ignore[attr-defined]
    assert len(asked) == 2


def test_a_write_says_nothing_of_its_outcome_before_it_has_one(world: World) -> None:
    """Before the commit there is only provisional progress; the final frame has the receipt, or the abort."""
    stream = Stream(world, CREATE, n="streamed")
    with world.unchanged():
        before = list(islice(stream, 2))
        assert "receipt" not in json.dumps(before)
        assert "tx_id" not in json.dumps(before)
    assert [frame["kind"] for frame in before] == ["start", "progress"]
    assert before[1]["data"] == {"phase": "executing", "provisional": True}
    [final] = list(stream)
    assert final["data"]["response"]["receipt"]["status"] == "committed"
    assert world.log()[-1].tx_id == final["data"]["response"]["receipt"]["tx_id"]

    *_, aborted = list(Stream(world, 'CREATE CONCEPT ?c {TYPE "Spaceship"}'))
    assert (aborted["kind"], aborted["data"]["outcome"]) == ("final", "error")
    assert aborted["data"]["response"]["receipt"]["status"] == "aborted"


def test_a_write_whose_reader_left_first_is_not_done(world: World) -> None:
    """Nothing runs before its frame is asked for."""
    stream = Stream(world, CREATE, n="never")
    with world.unchanged():
        list(islice(stream, 2))
        stream.source.close()  # type: ignore[attr-defined]


def test_what_has_no_pages_comes_whole(world: World) -> None:
    """Several operations, introspection and what does not parse are one response in the final frame."""
    both = request(THEMES, "DESCRIBE SPACE", execution={"mode": "atomic"})
    for said in (both, "DESCRIBE SPACE", "LIST TYPES", "NONSENSE", f"{THEMES} LIMIT -1"):
        frames = list(Stream(world, said))
        assert [frame["kind"] for frame in frames] == ["start", "final"], said
        assert frames[0]["data"] == {"paged": False}
        assert frames[1]["data"]["response"]["kip"] == "2.0"
    assert rows_of(list(Stream(world, THEMES, readonly=True))) == world.rows(THEMES)
    *_, refused = list(Stream(world, CREATE, n="x", readonly=True))
    assert refused["data"]["response"]["results"][0]["error"]["code"] == "ReadonlyViolation"


def test_an_aggregate_comes_with_the_end_of_its_reckoning(world: World) -> None:
    """A count is sent once, and is the whole count."""
    frames = list(Stream(world, 'FIND(COUNT(?c)) WHERE {?c CONCEPT {type: "Theme"}}'))
    assert rows_of(frames) == [12]
    assert frames[-1]["data"]["outcome"] == "complete"


def test_a_query_that_fails_ends_with_its_error(world: World) -> None:
    """An error on the first page is one as on any other."""
    with pytest.raises(NoemaError) as failed:
        list(Stream(world, 'FIND(?c) WHERE {?c CONCEPT {type: "Spaceship"}}'))
    assert failed.value.code == "SchemaSymbolNotFound"


def test_what_reads_and_what_writes_is_told_from_the_command(world: World) -> None:
    """Labels and names do not decide it."""
    for said, paged, writes in (
        (THEMES, True, False), (CREATE, False, True), ("SNAPSHOT", False, False), ("CHANGES AFTER SEQ 0", True, False),
    ):  # fmt: skip
        checked = read_request(request((said, {"n": "x"})))
        streams = Streams(world._process.kip, world.clock)
        assert (reading_of(checked) is not None, streams.writes(checked)) == (paged, writes)


def test_the_capability_is_true_only_where_frames_can_be_sent(world: World) -> None:
    """Required where it is not, it is refused by name; where it is, DESCRIBE CAPABILITIES says so."""
    asked = request("DESCRIBE CAPABILITIES", requires={"streaming": True})
    assert world.rows("DESCRIBE CAPABILITIES")["supported"]["streaming"] is False
    assert world.invoke("owner", asked).code == "UnsupportedCapability"
    world._process.kip._streaming = True
    over_http = Principal("owner", "rest")
    told = world.invoke(over_http, asked).result
    assert (told["supported"]["streaming"], told["available"]["streaming"]) == (True, True)
    assert world.invoke(Principal("owner", "mcp"), asked).code == "UnsupportedCapability"


def test_a_write_whose_outcome_nobody_knows_ends_as_that(world: World) -> None:
    """The store falls silent after the commit: the stream ends with outcome_unknown, and a lookup tells the truth."""
    body = request({"command": CREATE, "parameters": {"n": "lost"}, "idempotency_key": "K"})
    stream = Stream(world, body, patience=1)
    begun = list(islice(stream, 2))
    with world.silent_after_commit():
        [final] = list(stream)

    assert [frame["kind"] for frame in begun] == ["start", "progress"]
    assert (final["kind"], final["data"]["outcome"]) == ("final", "outcome_unknown")
    assert final["data"]["response"]["receipt"]["status"] == "unknown"
    assert "committed" in str(world.rows('DESCRIBE TRANSACTION BY IDEMPOTENCY KEY "K"'))
