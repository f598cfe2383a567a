"""Counts of values in buckets."""

from hypothesis import given
from hypothesis import strategies as st

from horae.model.base.buckets import Buckets


def test_a_value_is_counted_at_the_lowest_bound_above_it():
    buckets = Buckets((0.1, 1.0), unit=1_000_000)
    for micros, times in ((-5, 1), (100_000, 2), (100_001, 1), (5_000_000, 3)):
        buckets.add(micros, times)

    assert buckets.counts == [3, 1, 3]
    assert buckets.total == 15.300001


@given(st.lists(st.tuples(st.integers(-10, 1000), st.integers(1, 50))))
def test_every_value_is_counted_and_the_total_never_falls(values: list[tuple[int, int]]):
    buckets, before = Buckets((1.0, 10.0, 100.0)), 0.0
    for value, times in values:
        buckets.add(value, times)
        assert buckets.total >= before
        before = buckets.total
    assert sum(buckets.counts) == sum(times for _, times in values)
