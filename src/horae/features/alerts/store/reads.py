"""Reads for the evaluation of alert rules. Each is bounded: of a job's history, only the newest rows are read."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant, Micros
from horae.features.alerts.model.findings import JobOutcomes, is_exact, literal_prefix
from horae.features.alerts.model.rule import Rule
from horae.model.admission.rank import STRICT
from horae.model.base.duration import MINUTE
from horae.model.base.ids import execution_id
from horae.model.executions.streak import Streak
from horae.model.executions.tally import DAY, HOUR, begin_of
from horae.store.base.shelves import Columns
from horae.store.script import Among, Fetch, ForEach, Rows, Script, Statement

# Only failures and retries can make a rate exceed its limit, so only jobs that had some lately need an evaluation.
TROUBLED = Statement(
    "troubled_lately",
    "SELECT job FROM job_minutes WHERE minute >= $1 AND (failed > 0 OR retried > 0) ORDER BY minute DESC LIMIT 100000",
)
SUMS = Statement(
    "counts_in_window",
    "SELECT given.job, (SELECT coalesce(sum(m.success), 0) FROM job_minutes m WHERE m.job = given.job"
    " AND m.minute > given.since), (SELECT coalesce(sum(m.failed), 0) FROM job_minutes m WHERE m.job = given.job"
    " AND m.minute > given.since), (SELECT coalesce(sum(m.retried), 0) FROM job_minutes m WHERE m.job = given.job"
    " AND m.minute > given.since) FROM given",
)
NAMES = Statement("names_of_jobs", "SELECT id, namespace, name FROM jobs WHERE id = ANY($1) AND state <> 'deleted'")
EXACTLY = Statement(
    "jobs_by_names",
    "SELECT j.id, j.name, j.created_at FROM given JOIN jobs j ON j.namespace = given.namespace AND j.name = given.name"
    " WHERE j.state <> 'deleted'",
)
BEGINNING = Statement(
    "jobs_by_beginning",
    "SELECT id, name, created_at FROM jobs WHERE namespace = $1 AND name > $2 AND substr(name, 1, length($3)) = $3"
    " AND state <> 'deleted' ORDER BY name LIMIT $4",
)
# The newest slices of a job in `history`. Unlike statistics, they are complete even if a server has died.
_NEWEST = "(SELECT state, completed_at FROM history WHERE job = given.job ORDER BY parcel DESC LIMIT $2) AS newest"
FAILED = Statement(
    "failed_of_newest",
    f"SELECT given.job FROM given WHERE EXISTS (SELECT 1 FROM {_NEWEST} WHERE newest.state = 'failed')",
)
SUCCEEDED = Statement(
    "succeeded_of_newest",
    f"SELECT given.job FROM given WHERE EXISTS (SELECT 1 FROM {_NEWEST} WHERE newest.state = 'success'"
    " AND newest.completed_at >= $3)",
)
LAST_SUCCESS = Statement(
    "last_success_of_jobs",
    "SELECT given.job, (SELECT m.minute FROM job_minutes m WHERE m.job = given.job AND m.minute >= given.since"
    " AND m.success > 0 ORDER BY m.minute DESC LIMIT 1) FROM given",
)
# Successes by hour or day: counts by minute are stored only for a short time.
LAST_SPAN = Statement(
    "last_success_by_spans",
    "SELECT given.job, (SELECT s.at FROM job_spans s WHERE s.job = given.job AND s.span = given.span"
    " AND s.at >= given.since AND s.success > 0 ORDER BY s.at DESC LIMIT 1) FROM given",
)
# Among a job's newest slices: the number of failures after the last success, and the newest failed slice.
_LATER = "(o.at, o.parcel, o.hi) > (n.at, n.parcel, n.hi)"
STREAKS = Statement(
    "failures_in_a_row",
    "SELECT s.* FROM given CROSS JOIN LATERAL (WITH newest AS MATERIALIZED (SELECT job, hi - lo AS items, state,"
    " completed_at AS at, parcel, hi FROM history WHERE job = given.job ORDER BY parcel DESC LIMIT $2),"
    " failed AS MATERIALIZED (SELECT n.job, n.items, n.at, n.parcel, n.hi FROM newest n WHERE n.state = 'failed'"
    f" AND NOT EXISTS (SELECT 1 FROM newest o WHERE o.state = 'success' AND {_LATER}))"
    " SELECT n.job, (SELECT sum(items) FROM failed), n.parcel, n.hi FROM failed n"
    f" WHERE NOT EXISTS (SELECT 1 FROM failed o WHERE {_LATER})) AS s",
)
LONG = Statement(
    "running_since_long",
    "SELECT parcel, lo, job, started_at FROM running WHERE (parcel, lo) > ($1, $2) AND started_at < $3"
    " ORDER BY parcel, lo LIMIT $4",
)
SILENT = Statement(
    "silent_sessions",
    "SELECT worker, min(last_seen) FROM sessions WHERE state IN ('live', 'draining') AND namespace = $1 AND worker > $2"
    " AND last_seen < $4 GROUP BY worker ORDER BY worker LIMIT $3",
)
LOST = Statement(
    "lost_sessions",
    "SELECT worker, max(created_at), max(ended_at) FROM sessions WHERE state = 'lost' AND namespace = $1"
    " AND worker > $2 GROUP BY worker ORDER BY worker LIMIT $3",
)
# The workers that are present or were closed. This is read only if a worker was lost, or an alert about one may end.
NOT_LOST = Statement(
    "sessions_not_lost",
    "SELECT worker, max(created_at), max(CASE WHEN state IN ('live', 'draining') THEN 1 ELSE 0 END)"
    " FROM sessions WHERE namespace = $1 AND state IN ('live', 'draining', 'closed') GROUP BY worker",
)
LATE = Statement(
    "late_timers",
    "SELECT job, next_fire_at FROM timers WHERE namespace = $1 AND next_fire_at < $2 ORDER BY next_fire_at, trigger_id"
    " LIMIT $3",
)
TROUBLED_TRIGGERS = Statement(
    "troubled_triggers_of_jobs",
    "SELECT t.job, g.name, t.trouble FROM timers t JOIN triggers g ON g.id = t.trigger_id JOIN jobs j ON j.id = t.job"
    " WHERE t.namespace = $1 AND t.trouble IS NOT NULL AND j.state = 'active' AND g.state = 'active' LIMIT $2",
)
QUEUES_OF_LANES = Statement(
    "queues_of_lanes",
    "SELECT l.id, q.namespace, q.name FROM given JOIN lanes l ON l.id = given.lane JOIN queues q ON q.id = l.queue",
)
# The next slice of each priority level of a lane. If priorities are strict, a lower level waits for all higher levels,
# so the oldest slice may be of any level.
NEXT_OF_LEVELS = Statement(
    "oldest_of_levels",
    "SELECT given.lane, (SELECT q.queued_at FROM queued q WHERE q.lane = given.lane AND q.rank >= given.low"
    " AND q.rank < given.high ORDER BY q.lane, q.rank, q.parcel, q.lo LIMIT 1) FROM given",
)
DEADLINES = Statement(
    "nearing_deadlines",
    "SELECT p.id, p.job, p.deadline FROM parcels p WHERE p.deadline IS NOT NULL AND (p.deadline, p.id) > ($1, $2)"
    " AND p.deadline <= $3 AND (EXISTS (SELECT 1 FROM running r WHERE r.parcel = p.id)"
    " OR EXISTS (SELECT 1 FROM queued q WHERE q.parcel = p.id)"
    " OR EXISTS (SELECT 1 FROM waiting w WHERE w.parcel = p.id))"
    " ORDER BY p.deadline, p.id LIMIT $4",
)
# The slice of a parcel that starts last on a shelf.
_RUNNING = "FROM running r WHERE r.parcel = given.parcel ORDER BY coalesce(r.started_at, r.granted_at) DESC LIMIT 1"
_WAITING = "FROM waiting w WHERE w.parcel = given.parcel ORDER BY coalesce(w.wake_at, 0) DESC LIMIT 1"
ITEM_TIMES = Statement(
    "standing_by_deadline",
    f"SELECT given.parcel, (SELECT coalesce(r.started_at, r.granted_at) {_RUNNING}), (SELECT r.lo {_RUNNING}),"
    " (SELECT max(q.hi) - 1 FROM queued q WHERE q.parcel = given.parcel),"
    f" (SELECT coalesce(w.wake_at, 0) {_WAITING}), (SELECT w.lo {_WAITING}) FROM given",
)
DEADLINE_OF = Statement(
    "deadlines_of_parcels", "SELECT p.id, p.job, p.deadline FROM given JOIN parcels p ON p.id = given.parcel"
)
MOST = 1000  # rows per read
MOST_PAGES = 50
NEWEST_SLICES = 64  # slices of a job in `history` that are read at least
BY_MINUTES: Micros = 60 * MINUTE  # for spans up to this, counts by minute are read
BY_HOURS: Micros = 90 * 24 * 60 * MINUTE  # for longer spans up to this, counts by hour; otherwise counts by day
LEVELS = range(10)
FIRST = UUID(int=0)


class JobName(Struct, frozen=True):
    """The id, namespace and name of a job."""

    id: UUID
    namespace: int
    name: str


class LongRunningSlice(Struct, frozen=True):
    """A slice that has been running for a long time."""

    parcel: UUID
    lo: int
    job: UUID
    started_at: Instant


class DueParcel(Struct, frozen=True):
    """An unfinished parcel with a deadline."""

    parcel: UUID
    job: UUID
    deadline: Instant
    begins_at: Instant  # the latest start of its items; queued items count as if they started now
    item: int  # the item that starts then
    queued: int | None = None  # the last queued item, whose real start is not known yet


def recently_troubled(minute: int) -> Script[set[UUID]]:
    """Return the jobs with a failure or a retry since a minute (minutes since the epoch)."""
    return {row[0] for row in (yield Fetch(TROUBLED, (minute,)))}


def outcomes(windows: Mapping[UUID, Micros], now: Instant) -> Script[dict[UUID, JobOutcomes]]:
    """Count the outcomes of each job's executions in a window before now; `windows` has its length by job."""
    given = [(job, (now - window) // MINUTE) for job, window in sorted(windows.items())]
    rows = (yield ForEach(SUMS, (("job", "uuid"), ("since", "bigint")), given)) if given else []
    return {job: JobOutcomes(int(success), int(failed), int(retried)) for job, success, failed, retried in rows}


def jobs_by_id(jobs: Iterable[UUID]) -> Script[dict[UUID, JobName]]:
    """Return the jobs that are not deleted, by id."""
    wanted = sorted(set(jobs))
    rows = (yield Among(NAMES, wanted)) if wanted else []
    return {row[0]: JobName(*row) for row in rows}


def page_of_jobs(namespace: int, after: str, limit: int, prefix: str = "") -> Script[list[tuple[JobName, Instant]]]:
    """Return a page of a namespace's jobs in the order of their names, each with its creation time.

    Only jobs whose names begin with `prefix` are returned.
    """
    rows = yield Fetch(BEGINNING, (namespace, after, prefix, limit))
    return [(JobName(job_id, namespace, name), created_at) for job_id, name, created_at in rows]


def jobs_of_rule(namespace: int, rule: Rule) -> Script[list[tuple[JobName, Instant]]]:
    """Return the jobs that a rule is about, each with its creation time.

    If the rule has patterns, at most MOST_PAGES pages of jobs are searched.
    """
    if all(is_exact(subject) for subject in rule.subjects):
        columns: Columns = (("namespace", "int"), ("name", "text"))
        rows = yield ForEach(EXACTLY, columns, [(namespace, name) for name in sorted(rule.subjects)])
        return [(JobName(job_id, namespace, name), created_at) for job_id, name, created_at in rows]
    found: list[tuple[JobName, Instant]] = []
    beginning, after = literal_prefix(rule.subjects), ""
    for _ in range(MOST_PAGES):
        page = yield from page_of_jobs(namespace, after, MOST, beginning)
        found += [(job, made) for job, made in page if rule.covers(job.name)]
        if len(page) < MOST:
            break
        after = page[-1][0].name
    return found


def recently_failed(jobs: Iterable[UUID], count: int) -> Script[set[UUID]]:
    """Return the jobs with a failure among their newest slices in `history`.

    Enough slices are read to find `count` failures in a row.
    """
    given = [(job,) for job in sorted(set(jobs))]
    rows = (yield ForEach(FAILED, (("job", "uuid"),), given, (_slices(count),))) if given else []
    return {row[0] for row in rows}


def recently_succeeded(jobs: Iterable[UUID], since: Instant) -> Script[set[UUID]]:
    """Return the jobs with a success since an instant among their newest slices in `history`."""
    given = [(job,) for job in sorted(set(jobs))]
    rows = (yield ForEach(SUCCEEDED, (("job", "uuid"),), given, (NEWEST_SLICES, since))) if given else []
    return {row[0] for row in rows}


def _slices(count: int) -> int:
    """Return how many of a job's newest slices are read to find `count` failures in a row."""
    return max(NEWEST_SLICES, 4 * count)


def succeeded_within(jobs: Iterable[UUID], within: Micros, now: Instant) -> Script[set[UUID]]:
    """Return the jobs with a success in the span `within` before now, by their statistics.

    If the span is longer than an hour, its beginning is rounded down to an hour or a day.
    """
    wanted = sorted(set(jobs))
    minute = (now - min(within, BY_MINUTES)) // MINUTE
    columns: Columns = (("job", "uuid"), ("since", "bigint"))
    rows = (yield ForEach(LAST_SUCCESS, columns, [(job, minute) for job in wanted])) if wanted else []
    found = {job for job, at in rows if at is not None}
    left = [job for job in wanted if job not in found]
    if within <= BY_MINUTES or not left:
        return found
    span = HOUR if within <= BY_HOURS else DAY
    since = begin_of(now - within, span)
    rows = yield ForEach(
        LAST_SPAN, (("job", "uuid"), ("span", "int"), ("since", "bigint")), [(j, span, since) for j in left]
    )
    return found | {job for job, at in rows if at is not None}


def failures_in_a_row(jobs: Iterable[UUID], count: int) -> Script[dict[UUID, Streak]]:
    """Return the streaks of jobs that have failed since their last success: the failures since then.

    Only the newest slices of a job are read, enough to find `count` failures, so a longer streak may be reported as
    shorter.
    """
    given = [(job,) for job in sorted(set(jobs))]
    rows = (yield ForEach(STREAKS, (("job", "uuid"),), given, (_slices(count),))) if given else []
    return {job: Streak(int(failures), execution_id(parcel, hi - 1)) for job, failures, parcel, hi in rows}


def running_since(before: Instant) -> Script[list[LongRunningSlice]]:
    """Return the slices that started before an instant and still run."""
    found: list[LongRunningSlice] = []
    after = (FIRST, -1)
    for _ in range(MOST_PAGES):
        rows = yield Fetch(LONG, (*after, before, MOST))
        found += [LongRunningSlice(*row) for row in rows]
        if len(rows) < MOST:
            break
        after = (rows[-1][0], rows[-1][1])
    return found


def silent_workers(namespace: int, before: Instant) -> Script[dict[str, Instant]]:
    """Return the workers with a live or draining session that was last seen before an instant, each with that time."""
    rows = yield from _workers(SILENT, namespace, before)
    return dict(rows)


def lost_workers(namespace: int) -> Script[dict[str, Instant]]:
    """Return the workers that were lost lately and are not back, each with the time of the last loss.

    They are returned for about a day, until their sessions are deleted. A worker is back if it is present, or had a
    later session that was closed.
    """
    lost = yield from _workers(LOST, namespace)
    others = (yield Fetch(NOT_LOST, (namespace,))) if lost else []
    present = {worker: (made, alive) for worker, made, alive in others}
    found: dict[str, Instant] = {}
    for worker, created_at, ended_at in lost:
        made, alive = present.get(worker, (-1, 0))
        if not alive and made < created_at:
            found[worker] = ended_at
    return found


def workers_not_lost(namespace: int) -> Script[set[str]]:
    """Return the workers that are present, or had a session that was closed and is still stored."""
    return {row[0] for row in (yield Fetch(NOT_LOST, (namespace,)))}


def _workers(statement: Statement, namespace: int, *params: Instant) -> Script[Rows]:
    """Read a statement that returns one row for each worker, page by page."""
    found: Rows = []
    after = ""
    for _ in range(MOST_PAGES):
        rows = yield Fetch(statement, (namespace, after, MOST, *params))
        found += rows
        if len(rows) < MOST:
            break
        after = rows[-1][0]
    return found


def troubled_triggers(namespace: int) -> Script[dict[UUID, tuple[str, str]]]:
    """Return jobs with a trigger that cannot be decided or waits for room, with the trigger's name and the reason."""
    found: dict[UUID, tuple[str, str]] = {}
    for job, name, trouble in (yield Fetch(TROUBLED_TRIGGERS, (namespace, MOST))):
        found.setdefault(job, (name, trouble))
    return found


def late_fires(namespace: int, before: Instant) -> Script[dict[UUID, Instant]]:
    """Return the jobs with a fire that was due before an instant and is not decided yet, each with the earliest one."""
    found: dict[UUID, Instant] = {}
    for job, at in (yield Fetch(LATE, (namespace, before, MOST))):
        found.setdefault(job, at)
    return found


def oldest_queued(lanes: Sequence[int]) -> Script[dict[tuple[int, str], Instant]]:
    """Return when the oldest of the next executions of each queue was queued, by namespace and name of the queue.

    The next executions are the first of each lane and priority level.
    """
    queues = yield ForEach(QUEUES_OF_LANES, (("lane", "int"),), [(lane,) for lane in lanes])
    owners = {lane: (namespace, name) for lane, namespace, name in queues}
    given = [(lane, -level * STRICT, (1 - level) * STRICT) for lane in sorted(owners) for level in LEVELS]
    columns: Columns = (("lane", "int"), ("low", "bigint"), ("high", "bigint"))
    rows = (yield ForEach(NEXT_OF_LEVELS, columns, given)) if given else []
    found: dict[tuple[int, str], Instant] = {}
    for lane, at in rows:
        if at is not None:
            found[owners[lane]] = min(at, found.get(owners[lane], at))
    return found


def nearing_deadlines(since: Instant, until: Instant, now: Instant) -> Script[list[DueParcel]]:
    """Return the unfinished parcels with a deadline from `since` to `until`, the earliest deadline first."""
    found: list[DueParcel] = []
    after = (since, FIRST)
    for _ in range(MOST_PAGES):
        rows = yield Fetch(DEADLINES, (*after, until, MOST))
        found += yield from _with_start([(row[0], row[1], row[2]) for row in rows], now)
        if len(rows) < MOST:
            break
        after = (rows[-1][2], rows[-1][0])
    return found


def still_due(parcels: Iterable[UUID], now: Instant) -> Script[list[DueParcel]]:
    """Return the parcels among these that are unfinished and have a deadline."""
    given = [(parcel,) for parcel in sorted(set(parcels))]
    rows = (yield ForEach(DEADLINE_OF, (("parcel", "uuid"),), given)) if given else []
    return (yield from _with_start([(row[0], row[1], row[2]) for row in rows if row[2] is not None], now))


def _with_start(parcels: Sequence[tuple[UUID, UUID, Instant]], now: Instant) -> Script[list[DueParcel]]:
    if not parcels:
        return []
    rows = yield ForEach(ITEM_TIMES, (("parcel", "uuid"),), [(parcel_id,) for parcel_id, _, _ in parcels])
    begins: dict[UUID, tuple[Instant, int, int | None]] = {}
    for parcel, started_at, running, queued, wake_at, waiting in rows:
        items = ((started_at, running), (now, queued), (wake_at, waiting))
        known = [(at, item) for at, item in items if item is not None]
        if known:
            begins[parcel] = (*max(known), queued)
    return [
        DueParcel(parcel_id, job, deadline, *begins[parcel_id])
        for parcel_id, job, deadline in parcels
        if parcel_id in begins
    ]
