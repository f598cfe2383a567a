"""Timeouts: how long an execution may wait and run, and the detection of overdue ones.

The run timeout is the job's `timeout`, and the timeout of all attempts together is `within` of its retry policy.
`Timeouts` has the other timeouts.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.model.base.duration import format_duration
from horae.model.executions.slice import QueuedSlice, Slice, WaitingSlice
from horae.model.fleet.protocol import Failure, RequestKind

RECHECK_INTERVAL: Micros = 5 * SECOND  # interval of checks on running or blocked items, which may enter the queue

AttemptTimeout = Literal["start", "run", "heartbeat", "total"]  # timeouts of items that a worker holds
REQUESTS: Mapping[AttemptTimeout, RequestKind] = {
    "start": "startTimeout",
    "run": "timeout",
    "heartbeat": "heartbeatTimeout",
    "total": "totalTimeout",
}


class Timeouts(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The timeouts of a job other than `timeout` and `within`."""

    queue: Micros | None = None  # time in the queue, counted anew each time that an execution enters it
    start: Micros | None = None  # time for which a worker may hold an execution without starting it
    heartbeat: Micros | None = None  # time between two heartbeats of a running execution


class AttemptTimeouts(Struct, frozen=True, kw_only=True):
    """How long a worker may hold an item; None means unlimited."""

    start: Micros | None = None
    run: Micros | None = None  # including the grace
    heartbeat: Micros | None = None
    total: Micros | None = None

    @property
    def is_bounded(self) -> bool:
        return any(span is not None for span in (self.start, self.run, self.heartbeat, self.total))


class AttemptTimes(Struct, frozen=True, kw_only=True):
    """The times of an item that a worker holds, as the server knows them."""

    due_at: Instant
    granted_at: Instant
    started_at: Instant | None = None
    heard_at: Instant | None = None  # time of its last heartbeat


def overdue(held: AttemptTimes, allowed: AttemptTimeouts, now: Instant) -> AttemptTimeout | None:
    """Return the timeout that has passed for an item that a worker holds, or None.

    When several have passed, the first of total, start, run and heartbeat is returned.
    """
    since = held.granted_at if held.started_at is None else held.started_at
    ends: tuple[tuple[AttemptTimeout, Instant, Micros | None], ...] = (
        ("total", held.due_at, allowed.total),
        ("start", held.granted_at, allowed.start if held.started_at is None else None),
        ("run", since, allowed.run),
        ("heartbeat", max(since, held.heard_at or since), None if held.started_at is None else allowed.heartbeat),
    )
    return next((name for name, begun, span in ends if span is not None and begun + span < now), None)


class ParcelTimeouts(Struct, frozen=True, kw_only=True):
    """How long the executions of a parcel may stay in the queue, and the end of their total time."""

    queue: Micros | None = None
    total: Micros | None = None
    due_at: Instant = 0

    @property
    def ends_at(self) -> Instant | None:
        return None if self.total is None else self.due_at + self.total

    @property
    def first_check(self) -> Instant:
        """Return when the first of its executions may be overdue."""
        return self.due_at + min(span for span in (self.queue, self.total) if span is not None)

    def is_over(self, item_slice: Slice, now: Instant) -> bool:
        """Return whether a slice that no worker holds has waited too long."""
        return self.is_spent(now) or (
            self.queue is not None and isinstance(item_slice, QueuedSlice) and item_slice.queued_at + self.queue <= now
        )

    def is_spent(self, now: Instant) -> bool:
        return self.ends_at is not None and self.ends_at <= now

    def failure(self, now: Instant) -> Failure:
        """Return the failure of an execution that is overdue now."""
        if self.is_spent(now):
            said = f"it had not ended {format_duration(self.total or 0)} after it was due (all attempts together)"
            return Failure(type="TotalTimeout", message=said, kind="timeout")
        said = f"it was in the queue for {format_duration(self.queue or 0)} and no worker took it"
        return Failure(type="QueueTimeout", message=said, kind="timeout")

    def next_check(self, left: Sequence[Slice], runs: bool, now: Instant) -> Instant | None:
        """Return when to check a parcel again; None when nothing is left.

        `left` are its slices that no worker holds; `runs` says whether any item runs.
        """
        if not left and not runs:
            return None
        times = list(self._checks(left, runs, now))
        if self.ends_at is not None:
            times.append(max(self.ends_at, now + RECHECK_INTERVAL))
        return min(times)

    def _checks(self, left: Iterable[Slice], runs: bool, now: Instant) -> Iterable[Instant]:
        """Yield when to check whether each slice has been in the queue for too long.

        Running and blocked items may enter the queue at any time. So they are checked after the queue timeout from now,
        or after RECHECK_INTERVAL if that is longer.
        """
        if self.queue is None:
            return
        if runs:
            yield now + max(self.queue, RECHECK_INTERVAL)
        for item_slice in left:
            if isinstance(item_slice, QueuedSlice):
                yield max(item_slice.queued_at + self.queue, now + SECOND)
            elif isinstance(item_slice, WaitingSlice) and item_slice.wake_at is not None:
                yield max(item_slice.wake_at, now) + self.queue
            else:
                yield now + max(self.queue, RECHECK_INTERVAL)
