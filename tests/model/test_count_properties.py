"""Counting fires agrees with enumerating them, and costs no more for a century than for its months."""

from time import perf_counter

from hypothesis import given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.model.base.duration import DAY, MINUTE
from horae.model.base.instant import parse_instant
from horae.model.triggers.decisions.count import count_fires
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Cron, Interval, Once, next_fire
from tests.model.test_cron_properties import EXPRESSIONS, GAPS, OVERLAPS, moments

T0 = parse_instant("2026-11-15T08:00:00Z")


def enumerated(trigger, after, before):
    count, at = 0, next_fire(trigger, after)
    while at is not None and at < before:
        count, at = count + 1, next_fire(trigger, at)
    return count


@given(
    st.sampled_from(EXPRESSIONS),
    moments(),
    st.sampled_from(GAPS),
    st.sampled_from(OVERLAPS),
    st.integers(0, 4 * DAY) | st.sampled_from([0, 1, SECOND, DAY]),
)
def test_counting_agrees_with_enumerating_at_every_clock_change(expression, moment, gap, overlap, length):
    zone, at = moment
    cron = Cron(expression=expression, timezone=zone, dst_gap=gap, dst_overlap=overlap)
    if expression.startswith("*/20 *"):
        length = min(length, DAY // 4)

    assert count_fires(cron, Rules(), at, at + length) == enumerated(cron, at, at + length)


@given(
    st.sampled_from(["0 0 * * *", "30 2 L * *", "0 12 13 * 5", "15 1-3 * 3,10 0", "0 0 29 2 *"]), st.integers(0, 3000)
)
def test_years_are_counted_as_they_are_enumerated(expression, days):
    cron = Cron(expression=expression, timezone="America/New_York")

    assert count_fires(cron, Rules(), T0, T0 + days * DAY) == enumerated(cron, T0, T0 + days * DAY)


@given(st.integers(100_000, 10 * MINUTE), st.integers(-DAY, DAY), st.integers(-1, 3 * MINUTE))
def test_an_interval_is_counted_by_arithmetic(every, offset, length):
    interval = Interval(every=every, anchor=T0)

    counted = count_fires(interval, Rules(), T0 + offset, T0 + offset + length)

    assert counted == enumerated(interval, T0 + offset, T0 + offset + length)


def test_counts_respect_the_bounds_of_the_rules():
    hourly = Cron(expression="0 * * * *")
    rules = Rules(start_at=T0, end_at=T0 + DAY)

    assert count_fires(hourly, rules, 0, T0 + 100 * DAY) == 24
    assert count_fires(Once(at=T0), rules, 0, T0 + DAY) == 1
    assert count_fires(Once(at=T0), rules, T0, T0 + DAY) == 0


def test_a_century_of_fires_every_second_is_counted_quickly():
    every_second = Cron(expression="* * * * * *", timezone="Europe/Paris")
    count_fires(every_second, Rules(), T0, T0 + 36_525 * DAY)  # load the zone's clock changes before the measurement
    began = perf_counter()

    assert count_fires(every_second, Rules(), T0 - 1, T0 + 36_525 * DAY) == 36_525 * 86_400

    assert perf_counter() - began < 0.25
