"""Rank: the order within a lane, a static key computed on entering the queue."""

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
    inner,
)
from horae.model.base.duration import DAY

STRICT = 1 << 53  # microseconds: further than any two arrivals are apart, so that a level always wins
NO_DEADLINE = DAY  # after its arrival: where what has no deadline stands among what has one
BY_DEADLINE = 1 << 62  # instead of a lead: the rank is the deadline itself


def lead_of(policy: Policy, priority: int, deadline: Instant | None = None, expected: Micros = 0) -> int:
    """How far a rank lies before the arrival, whenever that is; BY_DEADLINE when the arrival has no part in it."""
    order = inner(policy)
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


def ranked(due_at: Instant, lead: int, deadline: Instant | None = None) -> int:
    """Return the rank that a lead comes to, once the arrival is known; lower runs first."""
    return deadline if lead == BY_DEADLINE and deadline is not None else due_at - lead


class RankLeads:
    """How queues rank what is made by the store itself: its policies, and what is expected of jobs."""

    def __init__(self, policy: Callable[[int], Policy], expected: Callable[[UUID], Micros] = lambda job: 0) -> None:
        self.policy, self.expected = policy, expected

    def __call__(self, queue: int, priority: int, job: UUID, deadline: Instant | None = None) -> int:
        """How far the rank of an execution lies before its arrival."""
        policy = self.policy(queue)
        expected = self.expected(job) if isinstance(inner(policy), ShortestPolicy) else 0
        return lead_of(policy, priority, deadline, expected)

    def rank(self, queue: int, due_at: Instant, priority: int, deadline: Instant | None, job: UUID) -> int:
        """Where an execution stands in its lane."""
        return ranked(due_at, self(queue, priority, job, deadline), deadline)
