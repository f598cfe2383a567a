"""The probable start of an execution, from running and earlier executions and their usual durations."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from horae.env import Instant, Micros
from horae.model.executions.gates import Blocker

J = TypeVar("J")
# Gates that open when workers become free.
SHARED = frozenset({"busy", "room", "ahead", "share", "other-queues", "suspect", "spread"})
UNKNOWN_LENGTH = "The usual duration of the executions before it is not known yet."


class Estimate(Struct, frozen=True, kw_only=True):
    """The probable start, or the reason that there is no estimate.

    `gate` names the closed gate that prevents an estimate, if one does; then `reason` is the message of this gate.
    `executions_ahead` is the number of executions that start before it, `slots` the number of slots of workers that can
    take it.
    """

    starts_at: Instant | None
    reason: str
    gate: str | None = None
    executions_ahead: int = 0
    slots: int = 0


def estimate(now: Instant, blockers: Sequence[Blocker], ahead: int, slots: int, work: Micros | None) -> Estimate:
    """Estimate the start of an execution: when the workers have finished earlier work, and all gates have opened.

    `work` is the worker time of the earlier work, None when unknown. There is no estimate if a gate is closed that
    opens neither at a known time nor when a worker becomes free.
    """
    unknown = [b for b in blockers if b.until is None and b.gate not in SHARED]
    if unknown:
        return Estimate(
            starts_at=None, reason=unknown[0].message, gate=unknown[0].gate, executions_ahead=ahead, slots=slots
        )
    opened = max([now, *(b.until for b in blockers if b.until is not None)])
    if not slots:
        return Estimate(starts_at=None, reason="No live worker can take it.", executions_ahead=ahead)
    if work is None:
        return Estimate(starts_at=None, reason=UNKNOWN_LENGTH, executions_ahead=ahead, slots=slots)
    starts_at = max(opened, now + work // slots)
    if starts_at == now:
        reason = "Nothing holds it."
    elif starts_at == opened:
        reason = "When the last gate with a known time opens."
    else:
        reason = f"From the usual durations of running executions and of those before it, on {_slots(slots)}."
    return Estimate(starts_at=starts_at, reason=reason, executions_ahead=ahead, slots=slots)


def _slots(slots: int) -> str:
    return "one slot" if slots == 1 else f"{slots} slots"


def work_before(
    queued: Mapping[J, int], running: Iterable[tuple[J, int, Instant]], lengths: Mapping[J, Micros], now: Instant
) -> Micros | None:
    """Return the worker time of queued and running executions before an execution.

    `queued` has their numbers by job, `running` has tuples (job, number of items, start), `lengths` has the usual
    duration of jobs. Returns None when the usual duration of one of these jobs is unknown.
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
