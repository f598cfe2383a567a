"""Timeouts: how long an execution may wait and take, and what is over its time.

The run timeout is `timeout` of a job and that of all tries together `within` of its retry policy; the rest is here.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.model.base.duration import format_duration
from horae.model.executions.slice import Queued, Slice, Waiting
from horae.model.fleet.protocol import Failure, RequestKind

AGAIN: Micros = 5 * SECOND  # after which what runs, or waits for others, is looked at again: it may come to the queue

AttemptTimeout = Literal["start", "run", "heartbeat", "total"]  # timeouts of what a worker holds
REQUESTS: Mapping[AttemptTimeout, RequestKind] = {
    "start": "startTimeout",
    "run": "timeout",
    "heartbeat": "heartbeatTimeout",
    "total": "totalTimeout",
}


class Timeouts(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a job says of time beside how long a try may take."""

    queue: Micros | None = None  # in the queue, each time that it comes there
    start: Micros | None = None  # with a worker that has not begun it
    heartbeat: Micros | None = None  # between two signs of life while it runs


class AttemptTimeouts(Struct, frozen=True, kw_only=True):
    """How long what a worker holds may take; None for as long as it likes."""

    start: Micros | None = None
    run: Micros | None = None  # its grace included
    heartbeat: Micros | None = None
    total: Micros | None = None

    @property
    def is_bounded(self) -> bool:
        return any(span is not None for span in (self.start, self.run, self.heartbeat, self.total))


class AttemptTimes(Struct, frozen=True, kw_only=True):
    """What the server knows of the time of something that a worker holds."""

    due_at: Instant
    granted_at: Instant
    started_at: Instant | None = None
    heard_at: Instant | None = None  # when it last told of itself


def overdue(held: AttemptTimes, allowed: AttemptTimeouts, now: Instant) -> AttemptTimeout | None:
    """Which timeout has passed for something that a worker holds, the one that leaves least first."""
    since = held.granted_at if held.started_at is None else held.started_at
    ends: tuple[tuple[AttemptTimeout, Instant, Micros | None], ...] = (
        ("total", held.due_at, allowed.total),
        ("start", held.granted_at, allowed.start if held.started_at is None else None),
        ("run", since, allowed.run),
        ("heartbeat", max(since, held.heard_at or since), None if held.started_at is None else allowed.heartbeat),
    )
    return next((name for name, begun, span in ends if span is not None and begun + span < now), None)


class ParcelTimeouts(Struct, frozen=True, kw_only=True):
    """How long the executions of a parcel may stand in the queue, and until when they may take altogether."""

    queue: Micros | None = None
    total: Micros | None = None
    due_at: Instant = 0

    @property
    def ends_at(self) -> Instant | None:
        return None if self.total is None else self.due_at + self.total

    @property
    def first_look(self) -> Instant:
        """When the first of its executions may be over its time."""
        return self.due_at + min(span for span in (self.queue, self.total) if span is not None)

    def is_over(self, slice: Slice, now: Instant) -> bool:
        """Whether a slice that no worker holds has waited for too long."""
        return self.is_spent(now) or (
            self.queue is not None and isinstance(slice, Queued) and slice.queued_at + self.queue <= now
        )

    def is_spent(self, now: Instant) -> bool:
        return self.ends_at is not None and self.ends_at <= now

    def why(self, now: Instant) -> Failure:
        """What an execution fails with that is over its time now."""
        if self.is_spent(now):
            said = f"it was not done {format_duration(self.total or 0)} after it was due, all attempts together"
            return Failure(type="TotalTimeout", message=said, kind="timeout")
        said = f"it stood in the queue for {format_duration(self.queue or 0)} and no worker took it"
        return Failure(type="QueueTimeout", message=said, kind="timeout")

    def next_look(self, left: Sequence[Slice], runs: bool, now: Instant) -> Instant | None:
        """When to look again at a parcel of which this is left, and maybe something runs; None when nothing is left."""
        if not left and not runs:
            return None
        times = list(self._looks(left, runs, now))
        if self.ends_at is not None:
            times.append(max(self.ends_at, now + AGAIN))
        return min(times)

    def _looks(self, left: Iterable[Slice], runs: bool, now: Instant) -> Iterable[Instant]:
        """When something may have stood in the queue for too long; for what comes back, soon after it."""
        if self.queue is None:
            return
        if runs:
            yield now + max(self.queue, AGAIN)
        for slice in left:
            if isinstance(slice, Queued):
                yield max(slice.queued_at + self.queue, now + SECOND)
            elif isinstance(slice, Waiting) and slice.wake_at is not None:
                yield max(slice.wake_at, now) + self.queue
            else:
                yield now + max(self.queue, AGAIN)
