"""Views of statistics and of the overview of a namespace.

Durations are in seconds, shares from 0 to 1, and values without counts are null."""

from uuid import UUID

from msgspec import field

from horae.model.base.view import Seconds, Time, View
from horae.model.definitions.listed_job_view import Share


class OutcomeCountsView(View, frozen=True, kw_only=True):
    """Numbers of executions by outcome, and numbers of attempts that were retried or lost with their worker."""

    success: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0
    retried: int = 0
    lost: int = 0


class JobPointView(View, frozen=True, kw_only=True):
    """Outcomes and durations of a job's executions that ended within one step of time.

    `waitP50` and `waitP95` are times from the queue to the start.
    """

    at: Time
    success: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0
    retried: int = 0
    p50: Seconds | None = None
    p95: Seconds | None = None
    wait_p50: Seconds | None = None
    wait_p95: Seconds | None = None


class JobTotalsView(View, frozen=True, kw_only=True):
    """Outcomes and durations of a job's executions that ended in a window.

    `from` and `to` are the bounds of the counted window: the requested one, widened to whole steps of the series and
    to whole stored spans. `step` is the length of one point of the series in seconds. `successRate` is the share of
    successes, and `retryRate` the number of retries, per execution that succeeded or failed. `waitP50` and `waitP95`
    are times from the queue to the start.
    """

    from_: Time = field(name="from")
    to: Time
    step: int
    executions: int
    success: int
    failed: int
    cancelled: int
    skipped: int
    retried: int
    lost: int
    success_rate: Share | None
    retry_rate: float | None
    p50: Seconds | None
    p95: Seconds | None
    p99: Seconds | None
    mean: Seconds | None
    wait_p50: Seconds | None
    wait_p95: Seconds | None
    series: list[JobPointView]


class DayView(View, frozen=True, kw_only=True):
    """Outcomes of one day, and in `coming` the number of its future fires."""

    day: str
    success: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0
    coming: int = 0


class DaysView(View, frozen=True, kw_only=True):
    """Days in a time zone, oldest first."""

    timezone: str
    days: list[DayView]


class LiveCountsView(View, frozen=True, kw_only=True):
    """Numbers of executions that have not ended; those in `retrying` are also counted in `waiting`."""

    running: int = 0
    queued: int = 0
    waiting: int = 0
    retrying: int = 0


class OverviewPointView(View, frozen=True, kw_only=True):
    """Outcomes of executions that ended within one step of time.

    `lag` is the time from the nominal instant of a fire to its start, `wait` the time from the queue to the start, and
    `queued` the greatest number of queued executions. A value is null if nothing was counted for it.
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
    """The load of a queue: its queued and running executions, and the age of the oldest queued one."""

    queue: str
    queued: int
    running: int
    oldest_at: Time | None
    oldest_seconds: Seconds | None
    held: bool


class FleetView(View, frozen=True, kw_only=True):
    """Numbers of workers by status, and of their slots and busy slots."""

    active: int = 0
    draining: int = 0
    lost: int = 0
    slots: int = 0
    busy: int = 0


class RunningExecutionView(View, frozen=True, kw_only=True):
    """An execution that has been running for long."""

    execution_id: UUID
    job_id: UUID
    job_name: str
    started_at: Time
    progress: float | None
    message: str | None
    worker_id: str | None


class TimelineOutcomesView(View, frozen=True, kw_only=True):
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
    """The last and the next twelve hours in half hours; both include the current half hour."""

    step: int
    past: list[TimelineOutcomesView]
    coming: list[ComingFiresView]


class OverviewView(View, frozen=True, kw_only=True):
    """The current state of a namespace, and its outcomes in a window.

    `from` and `to` are the bounds of the counted window: the requested one, widened to whole steps of the series and
    to whole stored spans. `step` is the length of one point of the series in seconds.
    """

    at: Time
    from_: Time = field(name="from")
    to: Time
    step: int
    counts: LiveCountsView
    ended: OutcomeCountsView
    series: list[OverviewPointView]
    queues: list[QueueLoadView]
    workers: FleetView
    running: list[RunningExecutionView]
    timeline: TimelineView
