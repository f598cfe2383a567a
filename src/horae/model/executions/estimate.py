"""When an execution will probably start: from what runs, what stands before it, and how long such things take."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from horae.env import Instant, Micros
from horae.model.executions.gates import Blocker

J = TypeVar("J")
SHARED = frozenset({"busy", "room", "ahead", "share", "other-queues", "suspect", "spread"})  # which workers' time opens
UNKNOWN_LENGTH = "Nobody knows yet how long what stands before it takes."


class Estimate(Struct, frozen=True, kw_only=True):
    """An instant, or why none can be told; `ahead` executions share `slots` with it."""

    starts_at: Instant | None
    reason: str
    ahead: int = 0
    slots: int = 0


def estimate(now: Instant, blockers: Sequence[Blocker], ahead: int, slots: int, work: Micros | None) -> Estimate:
    """When it starts: when every gate with a time has opened and its workers are through with what comes before it.

    `work` is the worker time that lies before it, None when nobody knows. A gate that opens for another reason than
    time, or for want of a worker, lets nothing be told.
    """
    unknown = [b for b in blockers if b.until is None and b.gate not in SHARED]
    if unknown:
        return Estimate(starts_at=None, reason=f"It cannot be told: {unknown[0].message}", ahead=ahead, slots=slots)
    opened = max([now, *(b.until for b in blockers if b.until is not None)])
    if not slots:
        return Estimate(starts_at=None, reason="No live worker can take it.", ahead=ahead)
    if work is None:
        return Estimate(starts_at=None, reason=UNKNOWN_LENGTH, ahead=ahead, slots=slots)
    starts_at = max(opened, now + work // slots)
    if starts_at == now:
        reason = "Nothing holds it."
    elif starts_at == opened:
        reason = "When the last gate that has a time opens."
    else:
        reason = f"By the usual length of what {_many(ahead)} before it and of what runs, on {_slots(slots)}."
    return Estimate(starts_at=starts_at, reason=reason, ahead=ahead, slots=slots)


def _many(ahead: int) -> str:
    return "stands" if ahead == 1 else "stand"


def _slots(slots: int) -> str:
    return "one slot" if slots == 1 else f"{slots} slots"


def work_before(
    queued: Mapping[J, int], running: Iterable[tuple[J, int, Instant]], lengths: Mapping[J, Micros], now: Instant
) -> Micros | None:
    """Worker time before an execution: what is queued ahead by job, and what runs, (job, items, since).

    None when the usual length of one of these is not known.
    """
    total = 0
    for job, count in queued.items():
        if job not in lengths:
            return None
        total += count * lengths[job]
    for job, count, since in running:
        if job not in lengths:
            return None
        total += max(0, count * lengths[job] - max(0, now - since))
    return total
