"""The overview of a namespace. It is read from counters and stored sums, never from history."""

from horae.engine.base.gauges import Gauges
from horae.engine.base.refs import time_bound
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.fleet.workers import Workers
from horae.engine.triggers.fire_forecasts import STEP, FireForecasts
from horae.env import SECOND, Env, Instant
from horae.errors import BadInput
from horae.features.statistics.model import (
    ComingFiresView,
    FleetView,
    LiveCountsView,
    OutcomeCountsView,
    OverviewPointView,
    OverviewView,
    QueueLoadView,
    RunningExecutionView,
    TimelineOutcomesView,
    TimelineView,
)
from horae.features.statistics.store import reads as statistics_reads
from horae.model.base.instant import format_instant
from horae.model.base.view import in_seconds, shown_time
from horae.model.executions.tally import (
    DAY,
    HOUR,
    NAMESPACE_SPANS,
    TEN_MINUTES,
    NamespaceTally,
    OutcomeCounts,
    begin_of,
    points,
    span_for,
    step_of,
)
from horae.store.contract import Store
from horae.store.executions.reads import live_reads
from horae.store.executions.reads.live_reads import LiveCounts, LongestExecution

FURTHEST = 31 * DAY * SECOND  # how far back a window may begin
MOST_QUEUES = 50
HALF_HOURS = 24  # half hours in the past part of the timeline


class Overview:
    """Reads the current state and the latest outcomes of a namespace."""

    def __init__(
        self, env: Env, store: Store, directory: LocalDirectory, gauges: Gauges, coming: FireForecasts, workers: Workers
    ) -> None:
        self._env, self._store, self._directory = env, store, directory
        self._gauges, self._coming, self._workers = gauges, coming, workers

    async def show(self, namespace: int, since: str | None = None, until: str | None = None) -> OverviewView:
        """Return the current state of a namespace, and its outcomes in a window, by default the last hour."""
        now = self._env.now()
        begin, end = window(now, since, until, HOUR, FURTHEST)
        step = step_of(begin, end)
        span = span_for(step, begin, now, NAMESPACE_SPANS)
        low, high = counted_window(begin, end, step, span, now)
        happened = await self._store.read(lambda: statistics_reads.of_namespace(namespace, span, low, high, step))
        live = await self._gauges.of(namespace)
        longest = await self._store.read(lambda: live_reads.longest_running(namespace))
        total = OutcomeCounts()
        for tally in happened.values():
            OutcomeCounts.join(total, tally)
        return OverviewView(
            at=format_instant(now), from_=format_instant(low), to=format_instant(high), step=step,
            counts=LiveCountsView(
                running=live.running, queued=live.queued, waiting=live.waiting, retrying=live.retrying
            ),
            ended=OutcomeCountsView(**total.outcomes),
            series=[_point(at, happened.get(at)) for at in points(low, high, step)],
            queues=self._queues(namespace, live, now), workers=await self._fleet(namespace),
            running=[_running(one) for one in longest], timeline=await self._timeline(namespace, now),
        )  # fmt: skip

    def _queues(self, namespace: int, live: LiveCounts, now: Instant) -> list[QueueLoadView]:
        """Return the loads of the queues, those with the most queued, then running executions first, then by name."""
        shown = [
            QueueLoadView(
                queue=queue.name, queued=load.queued, running=load.running, oldest_at=shown_time(load.oldest),
                oldest_seconds=None if load.oldest is None else in_seconds(max(0, now - load.oldest)),
                held=queue.id in self._directory.held,
            )
            for queue in self._directory.queues.values()
            if queue.namespace == namespace
            for load in [live.queues.get(queue.id) or live_reads.QueueLoad()]
        ]  # fmt: skip
        return sorted(shown, key=lambda one: (-one.queued, -one.running, one.queue))[:MOST_QUEUES]

    async def _fleet(self, namespace: int) -> FleetView:
        fleet = await self._workers.fleet(namespace)
        how = fleet.by_status
        return FleetView(
            active=how.get("live", 0) + how.get("late", 0), draining=how.get("draining", 0), lost=how.get("lost", 0),
            slots=fleet.slots.all, busy=fleet.slots.busy,
        )  # fmt: skip

    async def _timeline(self, namespace: int, now: Instant) -> TimelineView:
        last = begin_of(now, STEP)
        first = last - (HALF_HOURS - 1) * STEP * SECOND
        past = await self._store.read(
            lambda: statistics_reads.counts_of_namespace(namespace, TEN_MINUTES, first, last + STEP * SECOND, STEP)
        )
        ahead = await self._coming.of(namespace)
        return TimelineView(
            step=STEP,
            past=[_past(at, past.get(at)) for at in range(first, last + 1, STEP * SECOND)],
            coming=[ComingFiresView(at=format_instant(at), fires=fires, more=more) for at, fires, more in ahead.spans],
        )


def window(now: Instant, since: str | None, until: str | None, usual: int, furthest: int) -> tuple[Instant, Instant]:
    """Return the beginning and the end of a requested window, by default the last `usual` seconds.

    It may begin at most `furthest` microseconds ago. Raises BadInput for an invalid window.
    """
    end = time_bound(until, "to")
    end = now if end is None else min(end, now)
    begin = time_bound(since, "from")
    begin = end - usual * SECOND if begin is None else begin
    if begin >= end:
        raise BadInput("`to` is not after `from`.", "Choose a window of the past, with `from` before `to`.", field="to")
    if begin < now - furthest:
        days = furthest // (DAY * SECOND)
        raise BadInput(f"`from` is more than {days} days ago.", "Give a later instant.", field="from")
    return begin, end


def counted_window(begin: Instant, end: Instant, step: int, span: int, now: Instant) -> tuple[Instant, Instant]:
    """Return the bounds of the points and of the stored spans that a window touches, because these are counted whole.

    `step` and `span` are their lengths in seconds.
    """
    return begin_of(begin, step), min(now, begin_of(end - 1, span) + span * SECOND)


def _point(at: Instant, tally: NamespaceTally | None) -> OverviewPointView:
    if tally is None:
        return OverviewPointView(at=format_instant(at))
    wait_p50, wait_p95 = tally.waits.percentiles((0.5, 0.95))
    return OverviewPointView(
        at=format_instant(at), success=tally.success, failed=tally.failed, cancelled=tally.cancelled,
        skipped=tally.skipped, retried=tally.retried, lag_p50=in_seconds(tally.lags.percentile(0.5)),
        lag_max=in_seconds(tally.lag_max), wait_p50=in_seconds(wait_p50), wait_p95=in_seconds(wait_p95),
        queued=tally.queued,
    )  # fmt: skip


def _past(at: Instant, tally: OutcomeCounts | None) -> TimelineOutcomesView:
    if tally is None:
        return TimelineOutcomesView(at=format_instant(at))
    return TimelineOutcomesView(
        at=format_instant(at), success=tally.success, failed=tally.failed, cancelled=tally.cancelled,
        skipped=tally.skipped,
    )  # fmt: skip


def _running(one: LongestExecution) -> RunningExecutionView:
    return RunningExecutionView(
        execution_id=one.id, job_id=one.job, job_name=one.job_name, started_at=format_instant(one.started_at),
        progress=one.percent, message=one.message or None, worker_id=one.worker,
    )  # fmt: skip
