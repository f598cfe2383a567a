"""Rank: the order within a lane."""

from hypothesis import given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.model.admission.policy import (
    FIFO,
    PRIORITY,
    DeadlinePolicy,
    FairPolicy,
    PriorityPolicy,
    ShortestPolicy,
    order_within,
)
from horae.model.admission.rank import NO_DEADLINE, lead_of, rank_from_lead

instants = st.integers(0, 7_258_118_400 * SECOND)  # to the year 2200
priorities = st.integers(0, 9)
spans = st.integers(0, 3600 * SECOND)
policies = st.sampled_from(
    [
        FIFO,
        PRIORITY,
        PriorityPolicy(strict=True),
        DeadlinePolicy(),
        ShortestPolicy(),
        FairPolicy(within=DeadlinePolicy()),
    ]
)


def rank_of(policy, due_at, priority, deadline=None, expected=0):
    return rank_from_lead(due_at, lead_of(policy, priority, deadline, expected), deadline)


@given(instants, instants, priorities, priorities)
def test_fifo_ignores_priority(a, b, p, q):
    assert (rank_of(FIFO, a, p) < rank_of(FIFO, b, q)) == (a < b)


@given(instants, instants, priorities, priorities, spans)
def test_a_priority_level_is_a_bounded_head_start(a, b, p, q, ageing):
    policy = PriorityPolicy(ageing=ageing)

    assert rank_of(policy, a, p) - rank_of(policy, b, q) == (a - b) - (p - q) * ageing


@given(instants, priorities, spans)
def test_nothing_starves(arrived, priority, ageing):
    """However urgent it is, an execution that arrives after the whole head start comes later."""
    policy = PriorityPolicy(ageing=ageing)

    assert rank_of(policy, arrived, 0) < rank_of(policy, arrived + 9 * ageing + 1, 9)


@given(instants, instants, priorities, priorities)
def test_a_strict_level_always_wins_and_arrival_decides_within_it(a, b, p, q):
    policy = PriorityPolicy(strict=True)

    first = rank_of(policy, a, p) < rank_of(policy, b, q)
    assert first == ((-p, a) < (-q, b))


@given(instants, instants, instants, instants)
def test_the_earliest_deadline_is_first_whatever_its_arrival(a, b, x, y):
    policy = DeadlinePolicy()

    assert (rank_of(policy, a, 0, x) < rank_of(policy, b, 9, y)) == (x < y)


@given(instants, instants)
def test_an_execution_without_a_deadline_is_due_after_a_day(arrived, deadline):
    policy = DeadlinePolicy()

    first = rank_of(policy, arrived, 4) < rank_of(policy, arrived, 4, deadline)
    assert first == (arrived + NO_DEADLINE < deadline)


@given(instants, spans, spans, st.floats(0.1, 100))
def test_shorter_executions_are_first_within_a_bound(at, short, more, factor):
    policy = ShortestPolicy(factor=factor)
    long = short + more

    assert rank_of(policy, at, 4, expected=short) <= rank_of(policy, at, 4, expected=long)
    later = at + int(factor * long) + 1
    assert rank_of(policy, at, 4, expected=long) < rank_of(policy, later, 4, expected=0)


@given(policies, instants, priorities, st.none() | instants, spans)
def test_a_lead_is_the_rank_before_the_arrival_is_known(policy, at, priority, deadline, expected):
    lead = lead_of(policy, priority, deadline, expected)

    assert rank_from_lead(at, lead, deadline) == rank_of(policy, at, priority, deadline, expected)


@given(policies, instants, priorities, st.none() | instants, spans)
def test_ranks_fit_the_column(policy, at, priority, deadline, expected):
    assert -(2**62) < rank_of(policy, at, priority, deadline, expected) < 2**62


def test_a_fair_queue_applies_its_inner_order():
    assert order_within(FairPolicy()) == FIFO
    assert order_within(FairPolicy(within=PRIORITY)) == PRIORITY
