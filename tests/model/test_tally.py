"""Tallies: their sums, and the division of a window into points."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.model.executions.tally import (
    DAY,
    HOUR,
    JOB_SPANS,
    MINUTE,
    MOST_POINTS,
    NAMESPACE_SPANS,
    RETENTION,
    TEN_MINUTES,
    JobTally,
    NamespaceTally,
    OutcomeCounts,
    missing_counts,
    points,
    span_for,
    step_of,
)

NOW = 1_800_000_123 * SECOND


@given(st.integers(1, 31 * DAY), st.integers(0, 10 * DAY))
def test_a_window_has_few_points_that_cover_it(length: int, ago: int):
    end = NOW - ago * SECOND
    begin = end - length * SECOND
    step = step_of(begin, end)
    at = list(points(begin, end, step))
    assert 1 <= len(at) <= MOST_POINTS
    assert at[0] <= begin < end <= at[-1] + step * SECOND
    assert step % span_for(step, begin, NOW, NAMESPACE_SPANS) == 0 or begin < NOW - RETENTION[MINUTE] * SECOND


@pytest.mark.parametrize(
    ("length", "step", "span"),
    [(HOUR, 60, MINUTE), (6 * HOUR, 300, MINUTE), (DAY, 1200, TEN_MINUTES), (7 * DAY, 7200, HOUR)],
)
def test_the_widest_span_that_fits_is_read(length: int, step: int, span: int):
    begin = NOW - length * SECOND
    assert (step_of(begin, NOW), span_for(step, begin, NOW, NAMESPACE_SPANS)) == (step, span)


def test_expired_spans_are_read_from_wider_ones():
    assert span_for(7200, NOW - 200 * DAY * SECOND, NOW, JOB_SPANS) == DAY
    assert span_for(60, NOW - 5 * DAY * SECOND, NOW, NAMESPACE_SPANS) == HOUR


def test_rates_count_successes_and_failures_only():
    counts = OutcomeCounts(success=3, failed=1, cancelled=5, skipped=2, retried=2)
    assert (counts.success_rate, counts.retry_rate, counts.ended) == (0.75, 0.5, 11)
    assert (OutcomeCounts(cancelled=1).success_rate, OutcomeCounts().retry_rate) == (None, None)


def test_joining_tallies_adds_all_their_counts():
    one, other = NamespaceTally(), NamespaceTally(success=1, queued=4)
    one.add_lag(3, 2)
    other.add_lag(7, 1)
    other.waits.add(5)
    one.join(other)
    assert (one.success, one.lags.total, one.lag_max, one.waits.total, one.queued) == (1, 3, 7, 1, 4)
    job = JobTally()
    job.add_durations((1, 2, 3), 7)
    assert (job.durations.total, max(job.durations.counts.values())) == (7, 3)


def test_missing_counts_are_the_difference_over_all_minutes():
    a, b = UUID(int=1), UUID(int=2)
    found = {
        (a, 1): JobTally(success=4, namespace=7),
        (a, 2): JobTally(success=5, failed=1),
        (b, 2): JobTally(failed=2),
    }
    known = {
        (a, 1): OutcomeCounts(success=3),
        (a, 2): OutcomeCounts(success=1),
        (a, 3): OutcomeCounts(success=2),
        (b, 2): OutcomeCounts(failed=2),
    }

    lacking = missing_counts(found, known)

    assert {key: (tally.success, tally.failed) for key, tally in lacking.items()} == {(a, 2): (3, 1)}
    assert missing_counts(found, found) == {}
    assert missing_counts(found, {})[a, 1] == JobTally(success=4, namespace=7)
    assert missing_counts({}, known) == {}
