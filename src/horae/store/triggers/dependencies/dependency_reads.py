"""Reads of dependencies for users: the upstreams of a job, its joins, and the joins of waiting executions."""

from collections.abc import Collection
from uuid import UUID

from msgspec import Struct

from horae.model.triggers.dependency import Condition, Join, Parts
from horae.store.base.shelves import Columns
from horae.store.script import Among, Fetch, ForEach, Script, Statement
from horae.store.triggers.dependencies import joins
from horae.store.triggers.dependencies.dependents import RECURRING

OF_JOB = Statement(
    "dependencies_of_job",
    "SELECT d.upstream AS job, j.name, j.state, d.condition, d.unused FROM dependencies d JOIN jobs j"
    " ON j.id = d.upstream WHERE d.job = $1 ORDER BY j.name",
)
NEWEST = Statement(
    "newest_joins",
    "SELECT j.dependent, j.step, j.interval_start FROM joins j WHERE j.dependent = $1"
    " ORDER BY j.made_at DESC, j.interval_start DESC LIMIT $2",
)
WAITING = Statement(
    "joins_of_executions",
    "SELECT j.dependent, j.step, j.interval_start FROM given JOIN joins j ON j.dependent = given.dependent"
    " WHERE j.execution = given.execution AND j.state = 'open'",
)


SCHEDULES = Statement(
    "schedules_of_jobs", f"SELECT g.job, g.definition FROM triggers g WHERE g.job = ANY($1) AND {RECURRING}"
)


class Upstream(Struct, frozen=True):
    """A job on which another job depends."""

    job: UUID
    name: str
    state: str
    condition: Condition
    unused: int  # how often the condition was met by executions that have not started the dependent yet


def without_common_schedule(jobs: Collection[UUID]) -> Script[list[UUID]]:
    """Return the jobs that have schedules, if these jobs have no schedule in common; otherwise return no jobs.

    With fewer than two such jobs, return no jobs, either.
    """
    schedules: dict[UUID, set[str]] = {}
    for job, definition in (yield Among(SCHEDULES, sorted(jobs))):
        schedules.setdefault(job, set()).add(definition)
    return [] if len(schedules) < 2 or set.intersection(*schedules.values()) else sorted(schedules)


def of_job(job: UUID) -> Script[list[Upstream]]:
    """Return the upstreams of a job in the order of their names."""
    rows = yield Fetch(OF_JOB, (job,))
    return [Upstream(*row) for row in rows]


def newest(job: UUID, limit: int) -> Script[list[tuple[Join, Parts]]]:
    """Return at most `limit` joins of a job with their parts, the newest first."""
    rows = yield Fetch(NEWEST, (job, limit))
    keys = [(row[0], row[1], row[2]) for row in rows]
    found = {join.key: (join, parts) for join, parts in (yield from joins.read(keys))}
    return [found[key] for key in keys if key in found]


def waiting(executions: Collection[tuple[UUID, UUID]]) -> Script[dict[UUID, tuple[Join, Parts]]]:
    """Return the open join of each waiting execution, with its parts. `executions` has (job, execution)."""
    columns: Columns = (("dependent", "uuid"), ("execution", "uuid"))
    rows = yield ForEach(WAITING, columns, sorted(executions))
    found = yield from joins.read({(row[0], row[1], row[2]) for row in rows})
    return {join.execution: (join, parts) for join, parts in found if join.execution is not None}
