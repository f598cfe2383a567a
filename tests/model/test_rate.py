"""Rates: no span has more starts than the rate and one burst, and a pause allows no more."""

from hypothesis import given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.model.admission.quota import Quota
from horae.model.admission.rate import UNUSED, Rate

RATES = st.builds(Rate, st.integers(1, 50), st.integers(SECOND, 60 * SECOND), st.integers(1, 10))


@given(RATES, st.lists(st.integers(0, 5 * SECOND), min_size=1, max_size=60))
def test_no_span_has_more_starts_than_its_pace_and_one_burst(rate, steps):
    pace, now, starts = UNUSED, 1_000_000 * SECOND, []
    for step in steps:
        now += step
        room = rate.room(pace, now)
        starts += [now] * room
        pace = rate.after(pace, room, now) if room else pace
    for i, since in enumerate(starts):
        for count, until in enumerate(starts[i:], 1):
            assert count <= rate.burst + (until - since) // rate.interval + 1


@given(RATES, st.integers(0, 30))
def test_the_next_start_is_allowed_at_the_announced_time(rate, taken):
    now = 1_000_000 * SECOND
    pace = rate.after(UNUSED, taken, now)
    opens_at = rate.opens_at(pace)
    assert rate.room(pace, max(now, opens_at)) >= 1
    if opens_at > now:
        assert rate.room(pace, opens_at - 1) == 0


@given(st.floats(0.01, 1_000_000))
def test_the_rate_of_a_quota_is_never_exceeded(count):
    rate = Quota(submissions_per_second=count).rate
    assert rate is not None
    assert rate.interval * count >= SECOND * (1 - 1e-12)  # but for the precision of the division


def test_a_pause_allows_one_burst():
    assert Rate(10, SECOND, 3).room(UNUSED, 3600 * SECOND) == 3
