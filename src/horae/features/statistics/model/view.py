"""Statistics as the API shows them: times as numbers of seconds, shares from 0 to 1, null where nothing was."""

from msgspec import field

from horae.model.base.view import Seconds, Time, View
from horae.model.definitions.listed_job_view import Share


class EndedView(View, frozen=True, kw_only=True):
    """How executions ended, and attempts that did not end them: tried again, or lost with their worker."""

    success: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0
    retried: int = 0
    lost: int = 0


class JobPointView(View, frozen=True, kw_only=True):
    """What became of a job's executions within one step of time."""

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
    """What became of a job's executions that ended in a window, and how long they took; `step` is one point's seconds.

    `successRate` is of those that succeeded or failed; `retryRate` is how often they were tried again, per execution.
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
    wait_p50: Seconds | None  # from the queue to the start
    wait_p95: Seconds | None
    series: list[JobPointView]


class DayView(View, frozen=True, kw_only=True):
    """One day: how executions ended on it, and fires that are to come."""

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
