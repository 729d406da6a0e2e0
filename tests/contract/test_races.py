"""Every store decides races exactly: real threads, counted outcomes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from core.ports import KeyExists, Objects, Put, Refused, Table, Update, When

THREADS = 8
ROUNDS = 12


def in_threads[T](do: Callable[[int], T]) -> list[T]:
    """Run `do(thread)` in eight threads that begin together."""
    barrier = Barrier(THREADS)

    def run(thread: int) -> T:
        barrier.wait(10)
        return do(thread)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def test_compare_and_set_never_loses_an_update(table: Table) -> None:
    """Each of 8 threads adds 12 times by compare-and-set; the counter ends at exactly 96."""
    table.transact([Put("p", "HEAD", {"ver": 0})])

    def add(thread: int) -> int:
        refused = 0
        for _ in range(ROUNDS):
            while True:
                row = table.get("p", "HEAD")
                assert row is not None
                ver = row["ver"]
                assert isinstance(ver, int)
                try:
                    table.transact([
                        Update("p", "HEAD", {"ver": ver + 1}, when=When(equals={"ver": ver})),
                        Put("p", f"D#{ver + 1:012}", {"by": thread}, When(absent=True)),
                    ])  # fmt: skip
                    break
                except Refused:
                    refused += 1
                    assert refused < 5000, "no progress"
        return refused

    in_threads(add)

    assert table.get("p", "HEAD") == {"ver": THREADS * ROUNDS}
    deltas = table.query("p", "D#", "D#~", limit=1000)
    assert [sk for sk, _ in deltas] == [f"D#{ver:012}" for ver in range(1, THREADS * ROUNDS + 1)]
    assert sorted(row["by"] for _, row in deltas) == sorted(list(range(THREADS)) * ROUNDS)


def test_a_put_if_absent_has_one_winner(table: Table) -> None:
    """Of 8 threads that claim a row, alone, one wins, and the others are told who."""

    def claim(thread: int) -> list[object]:
        outcomes: list[object] = []
        for number in range(ROUNDS):
            while True:
                try:
                    table.transact([Put("p", f"I#{number}", {"by": thread}, When(absent=True))])
                    outcomes.append("won")
                except Refused as refused:
                    if not refused.failed:
                        continue  # collided: nothing is known
                    outcomes.append(refused.failed[0])
                break
        return outcomes

    outcomes = in_threads(claim)

    for number in range(ROUNDS):
        row = table.get("p", f"I#{number}")
        column = [outcome[number] for outcome in outcomes]
        assert column.count("won") == 1
        assert column.count(row) == THREADS - 1
        assert row == {"by": column.index("won")}


def test_an_addition_is_atomic(table: Table) -> None:
    """8 threads that add to one row without a condition add exactly what they added."""

    def add(_: int) -> None:
        for _ in range(ROUNDS):
            while True:
                try:
                    table.transact([Update("p", "N#formation", add={"n": 1})])
                    break
                except Refused as refused:
                    if refused.failed:
                        raise

    in_threads(add)

    assert table.get("p", "N#formation") == {"n": THREADS * ROUNDS}


def test_a_put_of_an_object_has_one_winner(objects: Objects) -> None:
    """Of 8 threads that put under one key, one wins, and its bytes stand whole."""

    def claim(thread: int) -> list[bool]:
        won = []
        for number in range(ROUNDS):
            try:
                objects.put(f"sp/m/{number}", bytes([thread]) * 50_000)
                won.append(True)
            except KeyExists:
                won.append(False)
        return won

    outcomes = in_threads(claim)

    for number in range(ROUNDS):
        winners = [thread for thread in range(THREADS) if outcomes[thread][number]]
        assert len(winners) == 1
        assert objects.get(f"sp/m/{number}") == bytes([winners[0]]) * 50_000
