"""The number of workers that a queue needs, and the pace at which a fleet follows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.model.fleet.autoscale import (
    ArrivalMeter,
    BacklogSample,
    Scaler,
    ScalingBounds,
    ScalingSignals,
    arrivals,
    desired_slots,
    desired_workers,
)


def signals(**more):
    return ScalingSignals(**{"backlog": 0, "running": 0, **more})


@pytest.mark.parametrize(
    ("stands", "wait", "slots"),
    [
        (signals(), 5, 0),
        (signals(duration=1.0), 5, 0),
        # short executions: the backlog is worked off within the wait
        (signals(backlog=1000, duration=0.05), 5, 10),
        # long executions: each needs its own slot
        (signals(backlog=10, running=10, duration=3600), 5, 20),
        # the slots of long running executions are kept
        (signals(running=10, duration=3600), 5, 10),
        # headroom: 8 slots that are always busy are 80 % of 10
        (signals(running=8, arrival_rate=80, duration=0.1), 5, 10),
        # unknown duration: one slot for each execution
        (signals(backlog=7, running=3), 5, 10),
    ],
)
def test_desired_slots_follow_from_backlog_running_and_arrivals(stands, wait, slots):
    assert desired_slots(stands, wait) == pytest.approx(slots, rel=0.02)


def test_new_workers_are_as_large_as_current_ones():
    stands = signals(backlog=100, duration=600, workers=3, slots=12)

    assert desired_workers(stands, 5) == 25
    assert desired_workers(stands, 5, slots_per_worker=50) == 2
    assert desired_workers(signals(backlog=1, duration=600), 5) == 1
    assert desired_workers(signals(), 5) == 0


stands = st.builds(
    signals,
    backlog=st.integers(0, 10_000),
    running=st.integers(0, 100),
    arrival_rate=st.floats(0, 1000),
    duration=st.floats(0.001, 10_000),
)


@given(stands, st.floats(0.1, 600))
def test_the_desired_slots_start_the_backlog_within_the_target_wait(one, wait):
    """N slots start N - running executions at once and N x wait / duration more: enough for the backlog and the
    arrivals.
    """
    slots = desired_slots(one, wait)
    begun = slots - one.running + slots * wait / one.duration

    assert begun >= (one.backlog + one.arrival_rate * wait) * 0.999 - 1e-6


@given(stands, st.floats(0.1, 60), st.floats(1.1, 10))
def test_a_longer_target_wait_never_needs_more_slots(one, wait, longer):
    assert desired_slots(one, wait * longer) <= desired_slots(one, wait) + 1e-6


def test_arrivals_are_the_growth_plus_ended_executions():
    before = BacklogSample(100.0, 10, {0: 7, 1: 5})
    now = BacklogSample(130.0, 25, {1: 9, 2: 4})

    assert arrivals(before, now) == 25 - 10 + (9 + 4) - 5
    assert arrivals(now, before) == 0


def test_an_arrival_rate_needs_two_samples():
    flow = ArrivalMeter()

    assert flow.rate(BacklogSample(0.0, 0, {})) is None
    assert flow.rate(BacklogSample(2.0, 9, {})) is None
    assert flow.rate(BacklogSample(10.0, 50, {})) == 5.0
    assert flow.rate(BacklogSample(1000.0, 50, {})) is None


def test_a_fleet_grows_at_once_and_shrinks_after_the_cooldown():
    scaler = Scaler(ScalingBounds(least=1, most=8, step=3, cooldown=30))

    assert scaler.size(0, 0, 20) == 3
    assert scaler.size(5, 3, 20) == 6
    assert scaler.size(10, 6, 20) == 8
    assert scaler.size(15, 8, 0) == 8
    assert scaler.size(38, 8, 2) == 8
    assert scaler.size(46, 8, 0) == 5
    assert scaler.size(50, 5, 0) == 2
    assert scaler.size(60, 2, 0) == 2
    assert scaler.size(69, 2, 0) == 1


@given(st.lists(st.tuples(st.floats(0, 20), st.integers(0, 50)), max_size=40), st.integers(0, 5), st.integers(5, 20))
def test_a_fleet_stays_within_its_bounds_and_above_the_recent_need(looks, least, most):
    bounds = ScalingBounds(least=least, most=most, step=2, cooldown=10)
    scaler, now, size = Scaler(bounds), 0.0, least
    wanted: list[tuple[float, int]] = []
    for wait, desired in looks:
        now += wait
        wanted.append((now, max(least, min(most, desired))))
        after = scaler.size(now, size, desired)
        assert abs(after - size) <= bounds.step
        assert least <= after <= most
        if after < size:
            assert after >= max(n for at, n in wanted if at >= now - bounds.cooldown)
        size = after
