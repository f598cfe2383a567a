"""Rank: the order within a lane. It is computed once, when an execution enters the queue; the lowest rank is first."""

from collections.abc import Callable
from typing import assert_never
from uuid import UUID

from horae.env import Instant, Micros
from horae.model.admission.policy import (
    DeadlinePolicy,
    FifoPolicy,
    Policy,
    PriorityPolicy,
    ShortestPolicy,
    order_within,
)
from horae.model.base.duration import DAY

STRICT = 1 << 53  # microseconds: more than any two arrivals differ, so that a higher level of priority always wins
NO_DEADLINE = DAY  # an execution without a deadline ranks as if it were due a day after its arrival
BY_DEADLINE = 1 << 62  # special lead: the rank is the deadline itself


def lead_of(policy: Policy, priority: int, deadline: Instant | None = None, expected: Micros = 0) -> int:
    """Return the lead: the microseconds by which a rank is before the arrival of its execution.

    Return BY_DEADLINE if the rank is the deadline and does not depend on the arrival.
    """
    order = order_within(policy)
    match order:
        case FifoPolicy():
            return 0
        case PriorityPolicy():
            return priority * (STRICT if order.strict else order.ageing)
        case DeadlinePolicy():
            return -NO_DEADLINE if deadline is None else BY_DEADLINE
        case ShortestPolicy():
            return -int(order.factor * expected)
    assert_never(order)


def rank_from_lead(due_at: Instant, lead: int, deadline: Instant | None = None) -> int:
    """Return the rank of an execution that is due at `due_at` and has this lead."""
    return deadline if lead == BY_DEADLINE and deadline is not None else due_at - lead


class RankLeads:
    """The leads of executions that the store creates, from queue policies and expected durations of jobs."""

    def __init__(self, policy: Callable[[int], Policy], expected: Callable[[UUID], Micros] = lambda job: 0) -> None:
        self.policy, self.expected = policy, expected

    def __call__(self, queue: int, priority: int, job: UUID, deadline: Instant | None = None) -> int:
        """Return the lead of an execution."""
        policy = self.policy(queue)
        expected = self.expected(job) if isinstance(order_within(policy), ShortestPolicy) else 0
        return lead_of(policy, priority, deadline, expected)

    def rank(self, queue: int, due_at: Instant, priority: int, deadline: Instant | None, job: UUID) -> int:
        """Return the rank of an execution in its lane."""
        return rank_from_lead(due_at, self(queue, priority, job, deadline), deadline)
