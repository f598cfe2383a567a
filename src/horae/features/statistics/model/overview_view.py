"""A namespace at a glance, as the API shows it."""

from uuid import UUID

from msgspec import field

from horae.features.statistics.model.view import EndedView
from horae.model.base.view import Seconds, Time, View


class LiveView(View, frozen=True, kw_only=True):
    """How many executions have not ended; `retrying` is part of `waiting`."""

    running: int = 0
    queued: int = 0
    waiting: int = 0
    retrying: int = 0


class PointView(View, frozen=True, kw_only=True):
    """What happened within one step of time: the lag of fires after they were due, the wait from the queue to the
    start, and the most that was queued; null where nothing was.
    """

    at: Time
    success: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0
    retried: int = 0
    lag_p50: Seconds | None = field(name="lagP50", default=None)
    lag_max: Seconds | None = None
    wait_p50: Seconds | None = field(name="waitP50", default=None)
    wait_p95: Seconds | None = field(name="waitP95", default=None)
    queued: int | None = None


class QueueLoadView(View, frozen=True, kw_only=True):
    """A queue: what stands in it and since when, what of it runs, and whether it is held."""

    queue: str
    queued: int
    running: int
    oldest_at: Time | None
    oldest_seconds: Seconds | None
    held: bool


class FleetView(View, frozen=True, kw_only=True):
    """Workers by how they are, the slots of those that are there, and how many of these are taken."""

    active: int = 0
    draining: int = 0
    lost: int = 0
    slots: int = 0
    busy: int = 0


class RunningView(View, frozen=True, kw_only=True):
    """An execution that a worker is busy with."""

    execution_id: UUID
    job_id: UUID
    job_name: str
    started_at: Time
    progress: float | None
    message: str | None
    worker_id: str | None


class PastView(View, frozen=True, kw_only=True):
    """How executions ended within one step of the timeline."""

    at: Time
    success: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0


class ComingFiresView(View, frozen=True, kw_only=True):
    """Fires to come within one step of the timeline; `more` when there may be more than were counted."""

    at: Time
    fires: int = 0
    more: bool = False


class TimelineView(View, frozen=True, kw_only=True):
    """Twelve hours back and twelve ahead, by half hours; both have the present one."""

    step: int
    past: list[PastView]
    coming: list[ComingFiresView]


class OverviewView(View, frozen=True, kw_only=True):
    """A namespace now, and what happened in a window; `step` is the seconds of one point of the series."""

    at: Time
    from_: Time = field(name="from")
    to: Time
    step: int
    counts: LiveView
    ended: EndedView
    series: list[PointView]
    queues: list[QueueLoadView]
    workers: FleetView
    running: list[RunningView]
    timeline: TimelineView
