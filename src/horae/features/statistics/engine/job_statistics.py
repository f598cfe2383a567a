"""Statistics of jobs: outcomes and durations of their executions, read from stored sums instead of history."""

from collections.abc import Sequence
from datetime import date, timedelta
from uuid import UUID

from msgspec import structs

from horae.engine.base.refs import find_job
from horae.engine.triggers.fire_forecasts import count_coming
from horae.env import SECOND, Env, Instant
from horae.errors import BadInput
from horae.features.statistics.engine.overview import counted_window, window
from horae.features.statistics.model import DaysView, DayView, JobPointView, JobTotalsView
from horae.features.statistics.store import reads as statistics_reads
from horae.features.statistics.store.reads import RecentExecution
from horae.model.base.days import begin_of_day, day_at, days_between, parse_day
from horae.model.base.instant import format_instant
from horae.model.base.view import in_seconds
from horae.model.definitions.job_view import JobView
from horae.model.definitions.listed_job_view import JobStatisticsView, ListedJobView, RecentExecutionView
from horae.model.executions.execution_view import ExecutionCountsView
from horae.model.executions.tally import (
    DAY,
    HOUR,
    JOB_SPANS,
    RETENTION,
    JobTally,
    OutcomeCounts,
    begin_of,
    points,
    span_for,
    step_of,
)
from horae.store.contract import Store

WEEK = 7 * DAY
MOST_DAYS = 400
SECONDS = 0.5  # the most seconds for counting future fires


class JobStatistics:
    """Reads statistics of jobs. A `ref` is a job's name or id."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store

    async def listed(self, jobs: Sequence[JobView]) -> list[ListedJobView]:
        """Add to each job of a list its newest ended executions, and its statistics of the last seven days."""
        ids = [job.job_id for job in jobs]
        since = self._env.now() - WEEK * SECOND
        tallies = await self._store.read(lambda: statistics_reads.of_jobs(ids, since))
        recent = await self._store.look_up(lambda: statistics_reads.recent_of(ids))
        return [
            ListedJobView(**structs.asdict(job), statistics=_in_list(tallies[job.job_id], recent[job.job_id]))
            for job in jobs
        ]

    async def of(self, namespace: int, ref: str, since: str | None = None, until: str | None = None) -> JobTotalsView:
        """Return outcomes and durations of a job's executions in a window, by default the last seven days."""
        job = (await find_job(self._store, namespace, ref)).job.id
        now = self._env.now()
        begin, end = window(now, since, until, WEEK, RETENTION[DAY] * SECOND)
        step = step_of(begin, end, HOUR)
        span = span_for(step, begin, now, JOB_SPANS)
        step = max(step, span)
        low, high = counted_window(begin, end, step, span, now)
        happened = await self._store.read(lambda: statistics_reads.of_job(job, span, low, high, step))
        total = JobTally()
        for tally in happened.values():
            total.join(tally)
        p50, p95, p99 = total.durations.percentiles((0.5, 0.95, 0.99))
        wait_p50, wait_p95 = total.waits.percentiles((0.5, 0.95))
        return JobTotalsView(
            from_=format_instant(low), to=format_instant(high), step=step, executions=total.ended,
            **total.outcomes, success_rate=total.success_rate, retry_rate=total.retry_rate,
            p50=in_seconds(p50), p95=in_seconds(p95), p99=in_seconds(p99), mean=in_seconds(_mean(total)),
            wait_p50=in_seconds(wait_p50), wait_p95=in_seconds(wait_p95),
            series=[_point(at, happened.get(at)) for at in points(low, high, step)],
        )  # fmt: skip

    async def counts(self, namespace: int, job: str | None = None) -> ExecutionCountsView:
        """Count executions of a namespace, or of one job, by state.

        Ended executions are counted from the statistics that were written so far.
        """
        of = namespace if job is None else (await find_job(self._store, namespace, job)).job.id
        return ExecutionCountsView(**await self._store.read(lambda: statistics_reads.counts_by_state(of)))

    async def days(
        self, namespace: int, ref: str, since: str | None = None, until: str | None = None, zone: str = "UTC"
    ) -> DaysView:
        """Return the outcomes and the future fires of a job by day in a time zone.

        By default the days are from a year ago to two weeks ahead.
        """
        job = (await find_job(self._store, namespace, ref)).job.id
        now = self._env.now()
        today = day_at(zone, now)
        first = today - timedelta(days=365) if since is None else parse_day(zone, since, "from")
        last = today + timedelta(days=14) if until is None else parse_day(zone, until, "to")
        if not 0 <= (last - first).days < MOST_DAYS:
            raise BadInput(
                f"The window from {first} to {last} does not have 1 to {MOST_DAYS} days.",
                "Change `from` or `to`.",
                field="to",
            )
        days = days_between(first, last)
        ended = await self._ended(job, zone, first, min(last, today), now)
        coming = await self._ahead(namespace, job, zone, max(first, today), last) if last >= today else {}
        return DaysView(timezone=zone, days=[_day_view(day, ended.get(day), coming.get(day, 0)) for day in days])

    async def _ended(self, job: UUID, zone: str, first: date, last: date, now: Instant) -> dict[date, OutcomeCounts]:
        """Return the outcomes by day.

        They are added up from hours as far back as hours are stored. Older days are days of UTC, because only these are
        stored.
        """
        found: dict[date, OutcomeCounts] = {}
        begin, end = begin_of_day(zone, first), begin_of_day(zone, last + timedelta(days=1))
        hours_since = begin_of(now - RETENTION[HOUR] * SECOND, DAY) + DAY * SECOND
        parts = ((DAY, begin_of(begin, DAY), min(end, hours_since)), (HOUR, max(begin, hours_since), end))
        for span, low, high in parts:
            if low >= high:
                continue
            counted = await self._store.read(lambda: statistics_reads.counts_of_job(job, span, low, high))  # noqa: B023
            for at, counts in counted.items():
                day = day_at("UTC" if span == DAY else zone, at)
                found.setdefault(day, OutcomeCounts()).join(counts)
        return found

    async def _ahead(self, namespace: int, job: UUID, zone: str, first: date, last: date) -> dict[date, int]:
        days = days_between(first, last + timedelta(days=1))
        edges = [begin_of_day(zone, day) for day in days]
        ahead = await count_coming(self._store, self._env, namespace, job, edges, SECONDS)
        return dict(zip(days, ahead.counts, strict=False))


async def ended_counts(
    store: Store, namespace: int, job: UUID | None, since: Instant, until: Instant
) -> dict[Instant, OutcomeCounts]:
    """Return the outcomes of a namespace, or of one job, in each hour from `since` to `until`."""
    if job is not None:
        return await store.read(lambda: statistics_reads.counts_of_job(job, HOUR, since, until))
    return await store.read(lambda: statistics_reads.counts_of_namespace(namespace, HOUR, since, until, HOUR))


def _mean(tally: JobTally) -> float | None:
    """Return the mean duration in microseconds, computed from the histogram of durations."""
    total = tally.durations.total
    return tally.durations.sum / total if total else None


def _in_list(tally: JobTally, recent: Sequence[RecentExecution]) -> JobStatisticsView:
    p50, p95 = tally.durations.percentiles((0.5, 0.95))
    return JobStatisticsView(
        recent=[
            RecentExecutionView(
                execution_id=one.id, status=one.state, seconds=in_seconds(one.took), at=format_instant(one.at)
            )
            for one in recent
        ],
        success_rate=tally.success_rate, p50=in_seconds(p50), p95=in_seconds(p95), executions=tally.ended,
    )  # fmt: skip


def _point(at: Instant, tally: JobTally | None) -> JobPointView:
    if tally is None:
        return JobPointView(at=format_instant(at))
    p50, p95 = tally.durations.percentiles((0.5, 0.95))
    wait_p50, wait_p95 = tally.waits.percentiles((0.5, 0.95))
    return JobPointView(
        at=format_instant(at), success=tally.success, failed=tally.failed, cancelled=tally.cancelled,
        skipped=tally.skipped, retried=tally.retried, p50=in_seconds(p50), p95=in_seconds(p95),
        wait_p50=in_seconds(wait_p50), wait_p95=in_seconds(wait_p95),
    )  # fmt: skip


def _day_view(day: date, counts: OutcomeCounts | None, coming: int) -> DayView:
    if counts is None:
        return DayView(day=day.isoformat(), coming=coming)
    return DayView(
        day=day.isoformat(), success=counts.success, failed=counts.failed, cancelled=counts.cancelled,
        skipped=counts.skipped, coming=coming,
    )  # fmt: skip
