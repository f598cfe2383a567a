"""Rank: the order within a lane."""

from hypothesis import given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.model.rank import Policy, rank_of

instants = st.integers(0, 2**53)
priorities = st.integers(0, 9)


@given(instants, instants, priorities, priorities)
def test_fifo_is_arrival_whatever_the_priority(a, b, p, q):
    fifo = Policy(kind="fifo")

    assert (rank_of(fifo, a, p) < rank_of(fifo, b, q)) == (a < b)


@given(instants, instants, priorities, priorities, st.integers(0, 3600 * SECOND))
def test_a_level_of_priority_is_a_head_start_and_no_more(a, b, p, q, ageing):
    policy = Policy(ageing=ageing)

    assert rank_of(policy, a, p) - rank_of(policy, b, q) == (a - b) - (p - q) * ageing


@given(instants, priorities, st.integers(0, 600 * SECOND))
def test_nothing_starves(arrived, priority, ageing):
    """However urgent, what comes later than the whole head start comes after."""
    policy = Policy(ageing=ageing)

    assert rank_of(policy, arrived, 0) < rank_of(policy, arrived + 9 * ageing + 1, 9)


@given(instants, priorities)
def test_ranks_fit_the_column(at, priority):
    assert -(2**63) < rank_of(Policy(ageing=86_400 * SECOND), at, priority) < 2**63
