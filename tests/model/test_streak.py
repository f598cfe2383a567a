"""Streaks of failed executions."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from horae.model.executions.streak import EndedExecutions, failure_streak

states = st.sampled_from(["failed", "success", "cancelled", "skipped"])


@given(st.lists(st.tuples(states, st.integers(1, 5)), max_size=20), st.integers(0, 20), st.randoms())
def test_failures_count_back_to_the_last_success_or_the_reset(course, since, random):
    ended = [EndedExecutions(n, state, at, UUID(int=at)) for at, (state, n) in enumerate(course, 1)]
    shuffled = list(ended)
    random.shuffle(shuffled)
    found = failure_streak(shuffled, since)

    last = max((one.at for one in ended if one.state == "success"), default=0)
    row = [one for one in ended if one.at > max(last, since) and one.state == "failed"]
    assert (found.failures if found else 0) == sum(one.count for one in row)
    assert found is None or found.execution == row[-1].execution
