"""Views of statistics. Durations are in seconds, shares from 0 to 1, and values without counts are null."""

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

    `step` is the length of one point of the series in seconds. `successRate` is the share of successes among executions
    that succeeded or failed; `retryRate` is the number of retries per execution. `waitP50` and `waitP95` are times from
    the queue to the start.
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
