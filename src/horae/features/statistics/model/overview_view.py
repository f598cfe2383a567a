"""Views of the overview of a namespace."""

from uuid import UUID

from msgspec import field

from horae.features.statistics.model.view import EndedView
from horae.model.base.view import Seconds, Time, View


class LiveView(View, frozen=True, kw_only=True):
    """Numbers of executions that have not ended; `retrying` is part of `waiting`."""

    running: int = 0
    queued: int = 0
    waiting: int = 0
    retrying: int = 0


class PointView(View, frozen=True, kw_only=True):
    """Outcomes within one step of time, with the lag of fires, the wait from the queue to the start, and the greatest
    number of queued executions; null where nothing was counted.
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
    """A queue: its queued executions and the oldest of them, its running executions, and whether it is held."""

    queue: str
    queued: int
    running: int
    oldest_at: Time | None
    oldest_seconds: Seconds | None
    held: bool


class FleetView(View, frozen=True, kw_only=True):
    """Numbers of workers by status, their slots, and the busy ones among these."""

    active: int = 0
    draining: int = 0
    lost: int = 0
    slots: int = 0
    busy: int = 0


class RunningView(View, frozen=True, kw_only=True):
    """A running execution."""

    execution_id: UUID
    job_id: UUID
    job_name: str
    started_at: Time
    progress: float | None
    message: str | None
    worker_id: str | None


class PastView(View, frozen=True, kw_only=True):
    """Outcomes of executions within one step of the timeline."""

    at: Time
    success: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0


class ComingFiresView(View, frozen=True, kw_only=True):
    """Future fires within one step of the timeline; `more` is true when there may be more than were counted."""

    at: Time
    fires: int = 0
    more: bool = False


class TimelineView(View, frozen=True, kw_only=True):
    """The last and the next twelve hours by half hours; both include the present one."""

    step: int
    past: list[PastView]
    coming: list[ComingFiresView]


class OverviewView(View, frozen=True, kw_only=True):
    """The present state of a namespace, and its outcomes in a window; `step` is one point of the series in seconds."""

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
