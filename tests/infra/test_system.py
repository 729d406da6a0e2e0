"""The real clock and chance keep their ports' promises."""

from __future__ import annotations

from pathlib import Path

from infra.system import SystemClock, SystemEntropy


def test_the_clock_tells_unix_milliseconds(tmp_path: Path) -> None:
    """A file written between two looks at the clock bears a time between them."""
    before = SystemClock().now()
    (tmp_path / "file").touch()
    written = (tmp_path / "file").stat().st_mtime_ns // 1_000_000

    assert before - 20 <= written <= SystemClock().now()  # a file's time may be a kernel tick old


def test_sleeping_lets_time_pass() -> None:
    """A sleep lasts at least as long as asked."""
    clock = SystemClock()
    before = clock.now()

    clock.sleep(0.02)

    assert clock.now() - before >= 19


def test_chance_does_not_repeat_and_keeps_its_bounds() -> None:
    """Tokens have their length and differ; numbers stay between the bounds."""
    entropy = SystemEntropy()

    tokens = {entropy.token(16) for _ in range(100)}
    numbers = [entropy.uniform(2.0, 3.0) for _ in range(100)]

    assert len(tokens) == 100
    assert {len(token) for token in tokens} == {16}
    assert all(2.0 <= number <= 3.0 for number in numbers)
    assert len(set(numbers)) > 90
