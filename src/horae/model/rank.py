"""Rank: the order within a lane, a static key computed on entering the queue."""

from typing import Literal

from msgspec import Struct

from horae.env import SECOND, Instant, Micros


class Policy(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How a queue orders its executions; `priority` is arrival minus a head start per level, so nothing starves."""

    kind: Literal["fifo", "priority"] = "priority"
    ageing: Micros = 60 * SECOND


def rank_of(policy: Policy, due_at: Instant, priority: int) -> int:
    """The rank of what arrives at `due_at` with this priority; lower runs first."""
    if policy.kind == "fifo":
        return due_at
    return due_at - priority * policy.ageing
