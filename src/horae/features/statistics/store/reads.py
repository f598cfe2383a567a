"""Reads of statistics. The rows of all writers are added up for each point (step of time) of a window."""

from collections.abc import Callable, Sequence
from typing import TypeVar
from uuid import UUID

from msgspec import Struct

from horae.env import Instant, Micros
from horae.model.base.ids import execution_id
from horae.model.executions.settle import timing_of
from horae.model.executions.show_execution import status_of
from horae.model.executions.tally import DAY, HOUR, JobTally, NamespaceTally, OutcomeCounts, begin_of, largest
from horae.store.base.shelves import Columns
from horae.store.script import Fetch, ForEach, Row, Script, Statement

_COUNTS = "success, failed, cancelled, skipped, retried, lost, busy_micros"
_WINDOW = "span = $2 AND at >= $3 AND at < $4"
OF_NAMESPACE = Statement(
    "spans_of_namespace",
    f"SELECT at, {_COUNTS}, lags, lag_max, waits, queued FROM namespace_spans WHERE namespace = $1 AND {_WINDOW}",
)
COUNTS_OF_NAMESPACE = Statement(
    "counts_of_namespace", f"SELECT at, {_COUNTS} FROM namespace_spans WHERE namespace = $1 AND {_WINDOW}"
)
OF_JOB = Statement(
    "spans_of_job", f"SELECT at, {_COUNTS}, durations, waits FROM job_spans WHERE job = $1 AND {_WINDOW}"
)
COUNTS_OF_JOB = Statement("counts_of_job", f"SELECT at, {_COUNTS} FROM job_spans WHERE job = $1 AND {_WINDOW}")
OF_JOBS = Statement(
    "spans_of_jobs",
    f"SELECT s.job, {', '.join(f's.{name}' for name in _COUNTS.split(', '))}, s.durations FROM given"
    f" JOIN job_spans s ON s.job = given.job AND s.span = {DAY} AND s.at >= given.since",
)
SINCE: Columns = (("job", "uuid"), ("since", "bigint"))
MOST_RECENT = 20
RECENT = Statement(
    "recent_of_jobs",
    "SELECT h.* FROM given CROSS JOIN LATERAL (SELECT job, parcel, lo, hi, state, started_at, completed_at, timings"
    f" FROM history WHERE job = given.job ORDER BY parcel DESC LIMIT {MOST_RECENT}) AS h",
)
COUNTED = ("success", "failed", "cancelled", "skipped")
_SHELF_COUNTS = " UNION ALL ".join(
    f"SELECT '{shelf}' AS shelf, {'reason' if shelf == 'waiting' else chr(39) * 2} AS reason, sum(hi - lo) AS items"
    f" FROM {shelf} WHERE {{where}}{' GROUP BY reason' if shelf == 'waiting' else ''}"
    for shelf in ("waiting", "queued", "running")
)
_SUMS = ", ".join(f"coalesce(sum(m.{state}), 0)" for state in COUNTED)
COUNTS = {
    "namespace": Statement("count_live", _SHELF_COUNTS.format(where="namespace = $1")),
    "job": Statement("count_live_of_job", _SHELF_COUNTS.format(where="job = $1")),
}
ENDED_COUNTS = {
    "namespace": Statement(
        "count_ended", f"SELECT {_SUMS} FROM namespace_spans m WHERE m.namespace = $1 AND m.span = {HOUR}"
    ),
    "job": Statement("count_ended_of_job", f"SELECT {_SUMS} FROM job_spans m WHERE m.job = $1 AND m.span = {DAY}"),
}
T = TypeVar("T", bound=OutcomeCounts)


class RecentExecution(Struct, frozen=True):
    """An execution that ended recently."""

    id: UUID
    state: str
    took: Micros | None  # the time from its start to its end; None if it was never started
    at: Instant  # its end


def _add(tally: OutcomeCounts, row: Sequence[int]) -> None:
    tally.join(OutcomeCounts(*row))


def _by_point(rows: Sequence[Row], step: int, make: Callable[[], T]) -> dict[Instant, tuple[T, list[Row]]]:
    points: dict[Instant, tuple[T, list[Row]]] = {}
    for row in rows:
        at = begin_of(row[0], step)
        if at not in points:
            points[at] = make(), []
        _add(points[at][0], row[1:8])
        points[at][1].append(row[8:])
    return points


def of_namespace(
    namespace: int, span: int, since: Instant, until: Instant, step: int
) -> Script[dict[Instant, NamespaceTally]]:
    """Return the tallies of a namespace by points of `step` seconds; points without counts are left out.

    `span` is the length in seconds of the stored rows to read.
    """
    rows = yield Fetch(OF_NAMESPACE, (namespace, span, since, until))
    found: dict[Instant, NamespaceTally] = {}
    for at, (tally, rest) in _by_point(rows, step, NamespaceTally).items():
        for lags, lag_max, waits, queued in rest:
            tally.lags.join_packed(lags)
            tally.waits.join_packed(waits)
            tally.lag_max = largest(tally.lag_max, lag_max)
            tally.queued = largest(tally.queued, queued)
        found[at] = tally
    return found


def counts_of_namespace(
    namespace: int, span: int, since: Instant, until: Instant, step: int
) -> Script[dict[Instant, OutcomeCounts]]:
    """Return the outcomes of a namespace by points of `step` seconds, like `of_namespace` without lags and waits."""
    rows = yield Fetch(COUNTS_OF_NAMESPACE, (namespace, span, since, until))
    return {at: tally for at, (tally, _) in _by_point(rows, step, OutcomeCounts).items()}


def of_job(job: UUID, span: int, since: Instant, until: Instant, step: int) -> Script[dict[Instant, JobTally]]:
    """Return the tallies of a job by points of `step` seconds; points without counts are left out.

    `span` is the length in seconds of the stored rows to read.
    """
    rows = yield Fetch(OF_JOB, (job, span, since, until))
    found: dict[Instant, JobTally] = {}
    for at, (tally, rest) in _by_point(rows, step, JobTally).items():
        for durations, waits in rest:
            tally.durations.join_packed(durations)
            tally.waits.join_packed(waits)
        found[at] = tally
    return found


def counts_of_job(job: UUID, span: int, since: Instant, until: Instant) -> Script[dict[Instant, OutcomeCounts]]:
    """Return the outcomes of a job by stored spans of `span` seconds, without durations and waits."""
    rows = yield Fetch(COUNTS_OF_JOB, (job, span, since, until))
    return {at: tally for at, (tally, _) in _by_point(rows, span, OutcomeCounts).items()}


def of_jobs(jobs: Sequence[UUID], since: Instant) -> Script[dict[UUID, JobTally]]:
    """Return the tallies of many jobs from the beginning of an instant's day (UTC) on."""
    found = {job: JobTally() for job in jobs}
    rows = yield ForEach(OF_JOBS, SINCE, [(job, begin_of(since, DAY)) for job in found])
    for job, *counted, durations in rows:
        _add(found[job], counted)
        found[job].durations.join_packed(durations)
    return found


def recent_of(jobs: Sequence[UUID]) -> Script[dict[UUID, list[RecentExecution]]]:
    """Return up to 20 of the newest ended executions of each of these jobs, oldest first."""
    found: dict[UUID, list[RecentExecution]] = {job: [] for job in jobs}
    rows = yield ForEach(RECENT, (("job", "uuid"),), [(job,) for job in found])
    newest_first = sorted(rows, key=lambda row: (row[1], row[2]), reverse=True)
    for job, parcel, lo, hi, state, first, last, timings in newest_first:
        room = MOST_RECENT - len(found[job])
        for item in range(hi - 1, max(lo, hi - room) - 1, -1):
            start, end = timing_of(timings, item - lo, first, last)
            took = None if start is None else max(0, end - start)
            found[job].append(RecentExecution(execution_id(parcel, item), state, took, end))
    for recent in found.values():
        recent.reverse()
    return found


def counts_by_state(of: int | UUID) -> Script[dict[str, int]]:
    """Count the executions of a namespace (by number) or of a job (by id) by state.

    Live executions are counted on the shelves, ended ones from statistics.
    """
    kind = "job" if isinstance(of, UUID) else "namespace"
    live = yield Fetch(COUNTS[kind], (of,))
    ended = yield Fetch(ENDED_COUNTS[kind], (of,))
    totals = dict.fromkeys(("waiting", "queued", "running"), 0)
    for shelf, reason, items in live:
        totals[status_of(shelf, reason)] += int(items or 0)
    return totals | {state: int(n) for state, n in zip(COUNTED, ended[0], strict=True)}
