"""States of executions: the parts of a range cover it, in order, and match the slices."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from horae.store.executions.item_states import EXPIRED, split_by_state
from tests.model.making import cuts


@given(cuts(), st.data())
def test_state_ranges_cover_a_range_and_match_its_slices(ranges, data):
    slices = [(lo, hi, data.draw(st.sampled_from(["queued", "running", "success"]))) for lo, hi in ranges]
    lo = data.draw(st.integers(0, 23))
    hi = data.draw(st.integers(lo + 1, 24))

    told = list(split_by_state(lo, hi, slices))

    states = {item: state for a, b, state in slices for item in range(a, b)}
    assert [item for a, b, _ in told for item in range(a, b)] == list(range(lo, hi))
    assert all(states.get(item, EXPIRED) == state for a, b, state in told for item in range(a, b))
    assert all(one[2] != two[2] for one, two in pairwise(told))
