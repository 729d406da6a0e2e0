"""What a memory served is known when it comes back."""

import pytest

from core.service.echoes import KEPT, WINDOW_MS, Echoes
from core.storage.layout import echo_sk, space_pk
from core.storage.memory import MemoryTable
from tests.doubles import FailingTable, FakeClock, Faults

TEXT = "Ada prefers green tea."


@pytest.fixture(name="echoes")
def _echoes() -> Echoes:
    return Echoes(MemoryTable(), FakeClock())


@pytest.mark.parametrize(
    "again",
    [TEXT, "> Ada prefers green tea", "  1. ada   PREFERS\ngreen tea.", "- “Ada prefers green tea”", "[3] Ada prefers green tea"],
)  # fmt: skip
def test_a_text_is_known_in_the_clothes_that_lists_and_quotations_give_it(echoes: Echoes, again: str) -> None:
    """Layout, case, numbering and quotation marks do not make another text of it."""
    echoes.served("demo", [TEXT])

    assert echoes.known("demo", [again]) == {again}


def test_other_words_are_not_known(echoes: Echoes) -> None:
    """A longer text, another value, another space, another scope, and what was never served."""
    echoes.served("demo", [TEXT], "a")

    assert echoes.known("demo", [TEXT], ["a"]) == {TEXT}
    for space, text, scope in (
        ("demo", "Ada prefers green tea no longer.", "a"),
        ("demo", "Ada prefers black tea.", "a"),
        ("other", TEXT, "a"),
        ("demo", TEXT, "b"),
        ("demo", TEXT, ""),
    ):
        assert echoes.known(space, [text], [scope]) == set()


def test_a_short_text_is_said_again_by_chance(echoes: Echoes) -> None:
    """Under 8 characters nothing is noted."""
    echoes.served("demo", ["yes", "I agree", ""])

    assert echoes.known("demo", ["yes", "I agree", ""]) == set()


def test_a_note_ends_after_a_day() -> None:
    """What was recalled yesterday may be said anew; the row itself expires with its last note."""
    clock, table = FakeClock(), MemoryTable()
    echoes = Echoes(table, clock)
    echoes.served("demo", [TEXT])
    clock.advance(WINDOW_MS)
    assert echoes.known("demo", [TEXT]) == {TEXT}
    clock.advance(60_000)
    assert echoes.known("demo", [TEXT]) == set()
    row = table.get(space_pk("demo"), echo_sk())
    assert row is not None
    assert int(row["ttl"] or 0) * 1000 <= clock.time


def test_the_note_is_bounded_and_holds_no_text() -> None:
    """The newest 256 count; the row stays under 4 KB and no word of a text is in it."""
    table = MemoryTable()
    echoes = Echoes(table, FakeClock())
    for n in range(KEPT + 10):
        echoes.served("demo", [f"{TEXT} number {n}"])

    row = table.get(space_pk("demo"), echo_sk())

    assert row is not None
    assert len(bytes(row["seen"] or b"")) <= 4096  # type: ignore[arg-type]
    assert b"tea" not in bytes(row["seen"] or b"")  # type: ignore[arg-type]
    assert echoes.known("demo", [f"{TEXT} number 9", f"{TEXT} number {KEPT + 9}"]) == {
        f"{TEXT} number {KEPT + 9}"
    }


def test_two_who_note_at_once_both_note() -> None:
    """The second sees the first's row and writes both."""
    table, clock = MemoryTable(), FakeClock()
    mine = Echoes(table, clock)
    late = True

    def another(_: object) -> None:
        nonlocal late
        if late:
            late = False
            Echoes(table, clock).served("demo", ["The other text was served."])

    Echoes(FailingTable(table, before_transact=another), clock).served("demo", [TEXT])

    assert mine.known("demo", [TEXT, "The other text was served."]) == {TEXT, "The other text was served."}


def test_a_store_that_fails_loses_a_note_and_nothing_else() -> None:
    """Serving never fails for it, and an unreadable note knows nothing."""
    failing = FailingTable(MemoryTable(), Faults(range(100), reads=True))
    echoes = Echoes(failing, FakeClock())

    echoes.served("demo", [TEXT])

    assert echoes.known("demo", [TEXT]) == set()
