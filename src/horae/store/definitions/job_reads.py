"""Reads of jobs: their names and states, and their activity (running, pending and ended executions).

History has an index on (job, parcel), so finding the newest ended execution of a job costs one index lookup, however
long its history is. The shelf `running` has no index on the job, so one scan of it serves a whole page of jobs.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import get_args
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.base.ids import execution_id
from horae.model.definitions.job import JobState
from horae.model.executions.execution import READS_AS_RUNNING, WaitReason
from horae.model.executions.settle import timing_of
from horae.model.triggers.decisions.values import Trigger
from horae.store.base.shelves import Columns
from horae.store.script import Among, Fetch, ForEach, Row, Script, Statement

JOB: Columns = (("job", "uuid"),)
JOB_COLUMNS = "j.id, j.name, j.version, j.state, v.spec, j.created_at, j.updated_at"
NAMESPACE = Statement("namespace_name", "SELECT name FROM namespaces WHERE id = $1")
NAMES = Statement(
    "job_names",
    "SELECT name FROM jobs WHERE namespace = $1 AND state <> 'deleted' AND owner IS NULL ORDER BY name LIMIT 5000",
)
BY_NAMES = Statement(
    "jobs_by_names",
    "SELECT given.ref, j.id FROM given JOIN jobs j ON j.namespace = given.namespace AND j.name = given.ref"
    " AND j.state <> 'deleted'",
)
BY_IDS = Statement(
    "jobs_by_ids",
    "SELECT j.id, j.name, j.state FROM given JOIN jobs j ON j.id = given.job AND j.namespace = given.namespace",
)
NAMES_OF = Statement("names_of_jobs", "SELECT j.id, j.name FROM given JOIN jobs j ON j.id = given.job")
DELETED_NAMED = Statement(
    "deleted_job_named",
    "SELECT id FROM jobs WHERE namespace = $1 AND name = $2 AND state = 'deleted' ORDER BY deleted_at DESC LIMIT 1",
)
DEPENDENTS = Statement(
    "dependents",
    "SELECT j.name FROM dependencies d JOIN jobs j ON j.id = d.job WHERE d.upstream = $1 AND j.state <> 'deleted'"
    " ORDER BY j.name LIMIT 100",
)
TIMERS = Statement(
    "timers_of_jobs",
    "SELECT g.job, g.name, g.definition, t.next_fire_at, t.trouble FROM given JOIN triggers g ON g.job = given.job"
    " JOIN timers t ON t.trigger_id = g.id",
)
_AS_RUNNING = ", ".join(f"'{reason}'" for reason in sorted(READS_AS_RUNNING))
# The reasons are listed instead of excluding "delay". So the index on (job, reason) finds the first row without a scan
# over the delayed executions, which may be a million.
_HELD = ", ".join(f"'{reason}'" for reason in sorted({*get_args(WaitReason)} - READS_AS_RUNNING - {"delay"}))
PENDING = Statement(
    "pending_jobs",
    "SELECT given.job FROM given WHERE EXISTS (SELECT 1 FROM queued q WHERE q.job = given.job)"
    f" OR EXISTS (SELECT 1 FROM waiting w WHERE w.job = given.job AND w.reason IN ({_HELD}))",
)
_PLACE = "row_number() OVER (PARTITION BY job ORDER BY parcel DESC, lo DESC) AS place"
RUNNING = Statement(
    "running_of_jobs",
    "SELECT job, parcel, lo, hi, attempt, started_at FROM (SELECT job, parcel, lo, hi, attempt,"
    f" coalesce(started_at, granted_at) AS started_at, {_PLACE} FROM running WHERE job = ANY($1)) AS held"
    " WHERE place = 1 UNION ALL"
    " SELECT job, parcel, lo, hi, attempt, NULL FROM (SELECT job, parcel, lo, hi, attempt,"
    f" {_PLACE} FROM waiting WHERE job = ANY($1) AND reason IN ({_AS_RUNNING})) AS asleep WHERE place = 1",
)
NEWEST = Statement(
    "newest_parcels",
    "SELECT given.job, (SELECT h.parcel FROM history h WHERE h.job = given.job ORDER BY h.parcel DESC LIMIT 1)"
    " AS parcel FROM given",
)
ENDED = Statement(
    "newest_ended",
    "SELECT h.job, h.parcel, h.lo, h.hi, h.state, h.started_at, h.completed_at, h.timings FROM given"
    " JOIN history h ON h.parcel = given.parcel"
    " WHERE h.lo = (SELECT max(x.lo) FROM history x WHERE x.parcel = given.parcel)",
)
PROGRESS = Statement(
    "progress_of_items",
    "SELECT g.parcel, g.item, g.attempt, g.percent, g.message FROM given"
    " JOIN progress g ON g.parcel = given.parcel AND g.item = given.item",
)
ITEM: Columns = (("parcel", "uuid"), ("item", "int"))


def _newest(shelf: str, alias: str, condition: str = "") -> str:
    """Return the SQL join of a job's newest slice on a shelf: the last slice of its newest parcel on this shelf."""
    parcel = f"SELECT x.parcel FROM {shelf} x WHERE x.job = j.id{condition} ORDER BY x.parcel DESC LIMIT 1"
    last = f"SELECT max(x.lo) FROM {shelf} x WHERE x.parcel = {alias}.parcel{condition}"
    return f" LEFT JOIN {shelf} {alias} ON {alias}.parcel = ({parcel}) AND {alias}.lo = ({last})"


def _noted(alias: str, owner: str) -> str:
    """Return the SQL join of the progress of the newest item of a slice; `owner` is the alias of the slice."""
    match = f"{alias}.parcel = {owner}.parcel AND {alias}.item = {owner}.hi - 1 AND {alias}.attempt = {owner}.attempt"
    return f" LEFT JOIN progress {alias} ON {match}"


_DOING = (
    f"SELECT given.namespace, given.{{ref}}, {JOB_COLUMNS},"
    " g.name, CASE WHEN t.trigger_id IS NOT NULL THEN g.definition END AS definition, t.next_fire_at, t.trouble,"
    " (EXISTS (SELECT 1 FROM queued q WHERE q.job = j.id) OR EXISTS (SELECT 1 FROM waiting x WHERE x.job = j.id"
    f" AND x.reason IN ({_HELD}))) AS pending,"
    " r.parcel, r.lo, r.hi, coalesce(r.started_at, r.granted_at) AS started_at, n.percent,"
    " w.parcel, w.lo, w.hi, m.percent, h.parcel, h.lo, h.hi, h.state, h.started_at, h.completed_at, h.timings"
    " FROM given JOIN jobs j ON {match} JOIN job_versions v ON v.job = j.id AND v.version = j.version"
    " LEFT JOIN triggers g ON g.job = j.id AND g.state <> 'ended' LEFT JOIN timers t ON t.trigger_id = g.id"
    f"{_newest('running', 'r')}{_noted('n', 'r')}"
    f"{_newest('waiting', 'w', f' AND x.reason IN ({_AS_RUNNING})')}{_noted('m', 'w')}{_newest('history', 'h')}"
)
BY_ID: Columns = (("namespace", "int"), ("job", "uuid"))
BY_NAME: Columns = (("namespace", "int"), ("name", "text"))
# One statement reads all shelves. With several, an execution that moves between two shelves meanwhile could be missed.
DOING_BY_ID = Statement(
    "job_doing", _DOING.replace("{ref}", "job").replace("{match}", "j.id = given.job AND j.namespace = given.namespace")
)
DOING_BY_NAME = Statement(
    "job_named_doing",
    _DOING.replace("{ref}", "name").replace(
        "{match}", "j.namespace = given.namespace AND j.name = given.name AND j.state <> 'deleted'"
    ),
)


class RunningExecution(Struct, frozen=True):
    """A job's newest running execution."""

    id: UUID
    started_at: Instant | None
    percent: float | None = None


class EndedExecution(Struct, frozen=True):
    """A job's newest ended execution."""

    id: UUID
    state: str
    started_at: Instant | None
    completed_at: Instant


class Activity(Struct):
    """The current activity of a job."""

    newest_running: RunningExecution | None = None
    pending: bool = False  # an execution is queued, or waits for something other than the end of a delay
    newest_ended: EndedExecution | None = None
    next_fire_at: Instant | None = None
    triggers: dict[str, Trigger] = {}  # by name, without triggers whose next fire could not be computed
    trouble: str | None = None  # why the next fire of a trigger could not be computed at the last try


Ref = tuple[int, UUID | str]  # a namespace, and a job in it by id or by name


class JobSnapshot(Struct, frozen=True):
    """A stored job with its definition as JSON (`spec`), and its activity at the same instant."""

    id: UUID
    name: str
    version: int
    state: JobState
    spec: str
    created_at: Instant
    updated_at: Instant
    activity: Activity


def job_snapshots(refs: Sequence[Ref]) -> Script[dict[Ref, JobSnapshot]]:
    """Return jobs and their activity at one instant.

    Jobs that do not exist are left out. Deleted jobs are found only by their ids.
    """
    found: dict[Ref, JobSnapshot] = {}
    for statement, columns, kind in ((DOING_BY_ID, BY_ID, UUID), (DOING_BY_NAME, BY_NAME, str)):
        rows = yield ForEach(statement, columns, [ref for ref in refs if isinstance(ref[1], kind)])
        for row in rows:
            known = found.get((row[0], row[1]))
            if known is None:
                found[row[0], row[1]] = _doing(row)
            else:
                _add_timer(known.activity, *row[9:13])
    return found


def _doing(row: Row) -> JobSnapshot:
    activity = Activity(
        pending=bool(row[13]), newest_running=_newest_running(row[14:23]), newest_ended=_newest_ended(row[23:30])
    )
    _add_timer(activity, *row[9:13])
    job, name, version, state, spec, created_at, updated_at = row[2:9]
    return JobSnapshot(job, name, version, state, spec, created_at, updated_at, activity)


def _add_timer(
    activity: Activity, name: str, definition: str | None, next_fire_at: Instant | None, trouble: str | None
) -> None:
    if definition is None:
        return
    if trouble is None:
        activity.triggers[name] = _read_trigger(definition)
    else:
        activity.trouble = trouble
    activity.next_fire_at = _earliest(activity.next_fire_at, next_fire_at)


@lru_cache(4096)
def _read_trigger(definition: str) -> Trigger:
    trigger: Trigger = msgspec.json.decode(definition, type=Trigger)
    return trigger


def _newest_running(row: Row) -> RunningExecution | None:
    """Return the newest running execution.

    Begun executions that sleep or wait for children or a signal are on the shelf `waiting`, but count as running.
    """
    parcel, lo, hi, started_at, percent, asleep, asleep_lo, asleep_hi, asleep_percent = row
    if asleep is not None and (parcel is None or (asleep, asleep_lo) > (parcel, lo)):
        return RunningExecution(execution_id(asleep, asleep_hi - 1), None, asleep_percent)
    return None if parcel is None else RunningExecution(execution_id(parcel, hi - 1), started_at, percent)


def _newest_ended(row: Row) -> EndedExecution | None:
    parcel, lo, hi, state, first, last, timings = row
    if parcel is None:
        return None
    started_at, completed_at = timing_of(timings, hi - 1 - lo, first, last)
    return EndedExecution(execution_id(parcel, hi - 1), state, started_at, completed_at)


def activities(jobs: Sequence[UUID]) -> Script[dict[UUID, Activity]]:
    """Return the activity of each of these jobs. The number of statements does not depend on the number of jobs."""
    found = {job: Activity() for job in jobs}
    if not found:
        return found
    given = [(job,) for job in found]
    for job, *timer in (yield ForEach(TIMERS, JOB, given)):
        _add_timer(found[job], *timer)
    for job in (yield from _pending(jobs)):
        found[job].pending = True
    for job, running in (yield from _running(jobs)).items():
        found[job].newest_running = running
    for job, ended in (yield from _ended(given)).items():
        found[job].newest_ended = ended
    return found


def _earliest(a: Instant | None, b: Instant | None) -> Instant | None:
    return min((at for at in (a, b) if at is not None), default=None)


def _pending(jobs: Sequence[UUID]) -> Script[set[UUID]]:
    rows = yield ForEach(PENDING, (("job", "uuid"),), [(job,) for job in jobs])
    return {row[0] for row in rows}


def _running(jobs: Sequence[UUID]) -> Script[dict[UUID, RunningExecution]]:
    """Return the newest running execution of each job.

    Begun executions that sleep or wait for children or a signal count as running.
    """
    rows = yield Among(RUNNING, jobs)
    best = {row[0]: row for row in sorted(rows, key=lambda row: (row[1], row[2]))}
    progress = yield ForEach(PROGRESS, ITEM, [(row[1], row[3] - 1) for row in best.values()])
    percents = {(parcel, item, attempt): percent for parcel, item, attempt, percent, _ in progress}
    return {
        job: RunningExecution(execution_id(parcel, hi - 1), started_at, percents.get((parcel, hi - 1, attempt)))
        for job, parcel, _, hi, attempt, started_at in best.values()
    }


def _ended(given: Sequence[tuple[UUID]]) -> Script[dict[UUID, EndedExecution]]:
    newest = yield ForEach(NEWEST, JOB, given)
    parcels = [(parcel,) for _, parcel in newest if parcel is not None]
    rows = yield ForEach(ENDED, (("parcel", "uuid"),), parcels)
    return {row[0]: ended for row in rows if (ended := _newest_ended(row[1:])) is not None}


def namespace_name(namespace: int) -> Script[str]:
    """Return the name of a namespace, or an empty text if it does not exist."""
    rows = yield Fetch(NAMESPACE, (namespace,))
    return str(rows[0][0]) if rows else ""


def names(namespace: int) -> Script[list[str]]:
    """Return up to 5000 names of jobs, for suggestions in messages."""
    rows = yield Fetch(NAMES, (namespace,))
    return [row[0] for row in rows]


def names_of(jobs: Sequence[UUID]) -> Script[dict[UUID, str]]:
    """Return the names of jobs, including deleted jobs."""
    rows = yield ForEach(NAMES_OF, JOB, [(job,) for job in jobs])
    return {row[0]: row[1] for row in rows}


def ids_by_names(namespace: int, refs: Sequence[str]) -> Script[dict[str, UUID]]:
    """Return the ids of jobs by their names, without deleted jobs."""
    columns: Columns = (("namespace", "int"), ("ref", "text"))
    rows = yield ForEach(BY_NAMES, columns, [(namespace, ref) for ref in refs])
    return {row[0]: row[1] for row in rows}


def states_of(namespace: int, jobs: Sequence[UUID]) -> Script[dict[UUID, str]]:
    """Return the states of these jobs."""
    columns: Columns = (("job", "uuid"), ("namespace", "int"))
    rows = yield ForEach(BY_IDS, columns, [(job, namespace) for job in jobs])
    return {row[0]: row[2] for row in rows}


def last_deleted(namespace: int, name: str) -> Script[UUID | None]:
    """Return the id of the most recently deleted job with a name."""
    rows = yield Fetch(DELETED_NAMED, (namespace, name))
    return rows[0][0] if rows else None


def dependents(job: UUID) -> Script[list[str]]:
    """Return the names of up to 100 jobs that depend on a job."""
    rows = yield Fetch(DEPENDENTS, (job,))
    return [row[0] for row in rows]
