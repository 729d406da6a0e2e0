"""Everything at once, from a seed: what the store holds after a power cut is right, and the same every time."""

from __future__ import annotations

import pytest

from tests.simulation.run import Simulation, simulate

STEPS = 2000


@pytest.mark.parametrize("seed", range(10))
def test_a_seed(seed: int) -> None:
    """Writers, readers, zombie compactors, a collector and an eraser leave a whole and exact log."""
    report = simulate(seed, STEPS)

    assert report.acknowledged > 5
    assert report.faults > 20


def test_the_same_seed_gives_the_same_end() -> None:
    """A run is a function of its seed, call for call."""
    assert simulate(1234, 800) == simulate(1234, 800)
    assert simulate(1234, 800).digest != simulate(1235, 800).digest


def test_all_kinds_of_things_happen() -> None:
    """Over some seeds there are crashes, replays, compactions that land and that lose, and finished erasures."""
    reports = [simulate(seed, 2000) for seed in range(2000, 2006)]

    assert sum(report.crashes for report in reports) > 10
    assert sum(report.replays for report in reports) > 0
    assert sum(report.compactions for report in reports) > 0
    assert sum(report.overtaken for report in reports) > 0
    assert sum(report.erased for report in reports) > 2
    assert any(report.floor > 1 for report in reports)


def test_a_failure_names_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sees a failure can run it again."""

    def broken(_: Simulation) -> None:
        raise AssertionError("something is wrong")

    monkeypatch.setattr(Simulation, "check", broken)

    with pytest.raises(AssertionError, match=r"python -m tests.simulation --seed 77 --steps 50"):
        simulate(77, 50)
