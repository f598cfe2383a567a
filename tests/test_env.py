"""The system clock: it starts with the wall clock's time and then follows a clock that cannot be set."""

import time
from datetime import UTC, datetime

import pytest

from horae import env
from horae.env import SECOND, SystemClock


class Machine:
    """A wall clock that can be set, and a steady clock."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_800_000_000 * SECOND, 7 * SECOND

    def clock(self) -> SystemClock:
        return SystemClock(wall=lambda: self.wall, steady=lambda: self.steady)


def test_the_clock_starts_with_the_wall_clock_and_runs_on():
    machine = Machine()
    clock = machine.clock()
    machine.steady += 3 * SECOND

    assert clock.now() == 1_800_000_003 * SECOND
    assert clock.monotonic() == 10


@pytest.mark.parametrize("step", [-3600, 3600, 75 * 365 * 86_400])
def test_a_step_of_the_wall_clock_moves_only_the_wall_clock(step: int):
    machine = Machine()
    clock = machine.clock()
    machine.wall += step * SECOND

    assert clock.now() == 1_800_000_000 * SECOND
    assert clock.wall() == (1_800_000_000 + step) * SECOND


def test_the_clock_follows_measured_drift():
    machine = Machine()
    clock = machine.clock()
    clock.follow(-2 * SECOND)

    assert clock.now() == 1_799_999_998 * SECOND
    assert clock.monotonic() == 7


def test_the_real_clock_shows_the_time():
    off = SystemClock().now() / SECOND - datetime.now(UTC).timestamp()

    assert abs(off) < 5


def test_without_a_boot_time_clock_the_monotonic_clock_is_used(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")

    assert env._steady_clock_id() == time.CLOCK_MONOTONIC
