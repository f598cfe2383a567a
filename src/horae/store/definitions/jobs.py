"""Jobs: named, versioned definitions. Each edit adds a version; a deleted job keeps its history and frees its name."""

from collections.abc import Sequence
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.definitions.job import Job, JobVersion, Spec
from horae.model.definitions.rollout import VersionChoice
from horae.store.base.shelves import Columns
from horae.store.script import Fetch, ForEach, Row, Script, Statement
from horae.store.triggers.dependencies import dependents

JOB = "j.id, j.namespace, j.name, j.version, j.state, v.spec, j.created_at, j.updated_at, v.queue, v.lane, j.rollout"
FROM = "FROM jobs j JOIN job_versions v ON v.job = j.id AND v.version = j.version"
ADD = Statement(
    "add_job",
    "INSERT INTO jobs (id, namespace, name, version, state, created_at, updated_at, words)"
    " VALUES ($1, $2, $3, 1, 'active', $4, $4, $5) ON CONFLICT DO NOTHING RETURNING id",
)
ADD_VERSION = Statement(
    "add_job_version",
    "INSERT INTO job_versions (job, version, spec, queue, lane, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
)
BY_ID = Statement("job_by_id", f"SELECT {JOB} {FROM} WHERE j.id = $1 AND j.namespace = $2")
BY_NAME = Statement(
    "job_by_name", f"SELECT {JOB} {FROM} WHERE j.namespace = $1 AND j.name = $2 AND j.state <> 'deleted'"
)
LOCK = Statement("lock_job", "SELECT id, version, state FROM jobs WHERE id = $1 AND namespace = $2 FOR UPDATE")
EDIT = Statement("edit_job", "UPDATE jobs SET version = $2, name = $3, updated_at = $4, words = $5 WHERE id = $1")
SET_STATE = Statement("set_job_state", "UPDATE jobs SET state = $2, updated_at = $3 WHERE id = $1")
DELETE = Statement(
    "delete_job",
    "UPDATE jobs SET state = 'deleted', deleted_from = state, ending = $2, updated_at = $3, deleted_at = $3"
    " WHERE id = $1",
)
RESTORE = Statement(
    "restore_job",
    "UPDATE jobs SET state = deleted_from, deleted_from = NULL, ending = NULL, updated_at = $2, deleted_at = NULL"
    " WHERE id = $1 RETURNING state",
)
TAKEN = Statement(
    "name_taken", "SELECT id FROM jobs WHERE namespace = $1 AND name = $2 AND state <> 'deleted' AND id <> $3"
)
NEWEST = Statement("newest_job_version", "SELECT max(version) FROM job_versions WHERE job = $1")
ROLLING = Statement("rollout_that_is_on", "SELECT rollout FROM jobs WHERE id = $1")
VERSIONS = Statement(
    "job_versions", "SELECT job, version, spec, created_at FROM job_versions WHERE job = $1 ORDER BY version DESC"
)
DEFINITIONS = Statement(
    "definitions",
    "SELECT v.job, v.version, v.spec FROM given JOIN job_versions v ON v.job = given.job AND v.version = given.version",
)
# The job's own dependencies, and recursively those of its upstream jobs.
UPSTREAM = Statement(
    "upstream",
    "WITH RECURSIVE up(job, path) AS (SELECT d.job, d.upstream FROM dependencies d WHERE d.job = $1 UNION"
    " SELECT d.job, d.upstream FROM dependencies d JOIN up ON d.job = up.path) SELECT job, path FROM up",
)


class StoredJob(Struct, frozen=True, kw_only=True):
    """A job with the queue and lane of its version, which is the current version or one that a rollout chose."""

    job: Job
    queue: int
    lane: int
    rolling: int | None = None  # the number of the job's rollout under way
    # the versions between which this rollout chooses; None until they were read
    choice: "VersionChoice[StoredJob] | None" = None
    chosen: Instant = 0  # the start of the rollout that chose this version; 0 if none did


class NameTaken(Struct, frozen=True):
    """A refusal, because the name belongs to another job; `id` is that job."""

    id: UUID


class Cycle(Struct, frozen=True):
    """A refusal, because the dependencies would lead back to the job; the path has the ids of the jobs."""

    path: list[UUID]


def add(job_id: UUID, namespace: int, spec: Spec, queue: int, lane: int, now: Instant) -> Script[NameTaken | None]:
    """Create a job at version 1, unless its name is taken."""
    rows = yield Fetch(ADD, (job_id, namespace, spec.name, now, spec.words))
    if not rows:
        taken = yield Fetch(TAKEN, (namespace, spec.name, job_id))
        return NameTaken(taken[0][0]) if taken else NameTaken(job_id)
    yield from put_version(job_id, 1, spec, queue, lane, now)
    if spec.dependencies:
        yield from dependents.define(job_id, spec.conditions_by_job)
    return None


def put_version(job: UUID, version: int, spec: Spec, queue: int, lane: int, now: Instant) -> Script[None]:
    """Write a version of a job. This does not change the number of the current version, which is in the job's row."""
    yield Fetch(ADD_VERSION, (job, version, msgspec.json.encode(spec).decode(), queue, lane, now))


def lock(job: UUID, namespace: int) -> Script[tuple[int, str] | None]:
    """Lock a job for a change, and return its version and state."""
    rows = yield Fetch(LOCK, (job, namespace))
    return (rows[0][1], rows[0][2]) if rows else None


def edit(
    job: UUID, namespace: int, version: int, spec: Spec, queue: int, lane: int, now: Instant, *, written: bool = False
) -> Script[NameTaken | None]:
    """Make a version the current version of a locked job; write it first unless it is `written` already.

    The caller sets its dependencies by `set_dependencies` after locking its timers.
    """
    taken = yield Fetch(TAKEN, (namespace, spec.name, job))
    if taken:
        return NameTaken(taken[0][0])
    if not written:
        yield from put_version(job, version, spec, queue, lane, now)
    yield Fetch(EDIT, (job, version, spec.name, now, spec.words))
    return None


def newest(job: UUID) -> Script[int]:
    """Return the number of a job's newest version.

    This is the current version, unless a rollout added a version that was not promoted.
    """
    rows = yield Fetch(NEWEST, (job,))
    return int(rows[0][0])


def active_rollout(job: UUID) -> Script[int | None]:
    """Return the number of a job's rollout under way, or None if there is none."""
    rows = yield Fetch(ROLLING, (job,))
    number: int | None = rows[0][0] if rows else None
    return number


def set_dependencies(job: UUID, spec: Spec) -> Script[Cycle | None]:
    """Set the dependencies of a locked job to those of `spec`. Return a `Cycle` if they form one, else None."""
    yield from dependents.define(job, spec.conditions_by_job)
    cycle = yield from find_cycle(job)
    return Cycle(cycle) if cycle else None


def find_cycle(start: UUID) -> Script[list[UUID]]:
    """Return a path of dependencies from a job back to itself; empty if there is none."""
    rows = yield Fetch(UPSTREAM, (start,))
    edges: dict[UUID, list[UUID]] = {}
    for job, upstream in rows:
        edges.setdefault(job, []).append(upstream)
    return path_back(start, edges)


def path_back(start: UUID, edges: dict[UUID, list[UUID]]) -> list[UUID]:
    """Return a path from `start` back to `start`, found by a depth-first search, or an empty list."""
    stack: list[list[UUID]] = [[start]]
    visited: set[UUID] = set()
    while stack:
        path = stack.pop()
        for upstream in edges.get(path[-1], ()):
            if upstream == start:
                return [*path, start]
            if upstream not in visited:
                visited.add(upstream)
                stack.append([*path, upstream])
    return []


def set_state(job: UUID, state: str, now: Instant) -> Script[None]:
    """Pause or resume a locked job."""
    yield Fetch(SET_STATE, (job, state, now))


def delete(job: UUID, ending: str | None, now: Instant) -> Script[None]:
    """Mark a locked job as deleted, and store its former state.

    `ending` says which of its executions still have to be ended: pending, running or all.
    """
    yield Fetch(DELETE, (job, ending, now))


def restore(job: UUID, now: Instant) -> Script[str]:
    """Restore a locked job to the state before its deletion, and return that state.

    Executions that the deletion has not ended yet are no longer ended.
    """
    rows = yield Fetch(RESTORE, (job, now))
    return str(rows[0][0])


def name_taken(namespace: int, name: str, besides: UUID) -> Script[UUID | None]:
    """Return the job other than `besides` that has a name, or None."""
    rows = yield Fetch(TAKEN, (namespace, name, besides))
    return rows[0][0] if rows else None


def by_id(job: UUID, namespace: int) -> Script[StoredJob | None]:
    """Return a job by its id, also if it is deleted."""
    rows = yield Fetch(BY_ID, (job, namespace))
    return stored(rows[0]) if rows else None


def by_name(namespace: int, name: str) -> Script[StoredJob | None]:
    """Return the job with a name, unless it is deleted."""
    rows = yield Fetch(BY_NAME, (namespace, name))
    return stored(rows[0]) if rows else None


def stored(row: Row) -> StoredJob:
    spec = msgspec.json.decode(row[5], type=Spec)
    job = Job(
        id=row[0], namespace=row[1], name=row[2], version=row[3], state=row[4], spec=spec, created_at=row[6],
        updated_at=row[7],
    )  # fmt: skip
    return StoredJob(job=job, queue=row[8], lane=row[9], rolling=row[10])


def versions(job: UUID) -> Script[list[JobVersion]]:
    """Return all versions of a job, newest first."""
    rows = yield Fetch(VERSIONS, (job,))
    return [_version(row) for row in rows]


def _version(row: Row) -> JobVersion:
    return JobVersion(job=row[0], version=row[1], spec=msgspec.json.decode(row[2], type=Spec), created_at=row[3])


def definitions(wanted: Sequence[tuple[UUID, int]]) -> Script[dict[tuple[UUID, int], bytes]]:
    """Return definitions as stored JSON, by job and version.

    A version never changes, so the caller may cache them. They are sent to workers without being decoded.
    """
    columns: Columns = (("job", "uuid"), ("version", "int"))
    rows = yield ForEach(DEFINITIONS, columns, list(wanted))
    return {(job, version): spec.encode() for job, version, spec in rows}
