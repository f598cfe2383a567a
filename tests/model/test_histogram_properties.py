"""Histograms: values are found again approximately, counts add up exactly, and the stored form reads back."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.model.base.histogram import FINE, Histogram, bounds_of, bucket_of
from horae.model.executions.tally import SAMPLES, JobTally, sample

values = st.integers(0, 2**50)
many = st.lists(values, min_size=1, max_size=50)
shares = st.floats(0, 1)


def counted(of: list[int]) -> Histogram:
    made = Histogram()
    for value in of:
        made.add(value)
    return made


@given(values)
def test_a_bucket_contains_its_value_and_is_narrow(value: int):
    low, high = bounds_of(bucket_of(value))
    assert low <= value < high
    assert high - low == 1 or (high - low) * FINE <= low


@given(values)
def test_buckets_are_adjacent(value: int):
    bucket = bucket_of(value)
    assert bounds_of(bucket)[1] == bounds_of(bucket + 1)[0]
    assert bucket_of(bounds_of(bucket)[1]) == bucket + 1


@given(many, shares)
def test_a_percentile_is_off_by_a_thirty_second_part_at_most(of: list[int], share: float):
    exact = sorted(of)[max(1, ceil(share * len(of))) - 1]
    assert counted(of).percentile(share) == pytest.approx(exact, rel=1 / 32)


@given(many, many)
def test_histograms_add_up_and_are_stored_exactly(one: list[int], other: list[int]):
    whole = counted(one + other)
    joined = counted(one)
    joined.join(counted(other))
    stored = Histogram()
    for part in (one, other):
        stored.join_packed(counted(part).packed())
    assert joined == whole == stored
    assert whole.total == len(one) + len(other)
    assert whole.sum == pytest.approx(sum(one + other), rel=1 / 32)


def test_an_empty_histogram_has_no_percentiles():
    nothing = Histogram()
    assert nothing.percentiles((0.5, 0.95)) == [None, None]
    assert nothing.packed() is None
    nothing.join_packed(None)
    assert nothing.total == 0


@given(st.lists(values, min_size=1, max_size=200))
def test_a_sample_of_durations_represents_all(spans: list[int]):
    some = sample(spans)
    tally = JobTally()
    tally.add_durations(some, len(spans))
    assert min(SAMPLES // 2, len(spans)) <= len(some) <= SAMPLES
    assert len(some) == len(spans) or len(spans) > SAMPLES
    assert set(some) <= set(spans)
    assert tally.durations.total == len(spans)
