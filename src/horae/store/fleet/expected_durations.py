"""Expected durations of jobs, from the statistics of all servers."""

from collections.abc import Collection
from uuid import UUID

from horae.env import Instant, Micros
from horae.store.script import Fetch, ForEach, Script, Statement

# Reads the newest minutes of each job by the index of the primary key: at most a few hundred rows of a job.
OF_JOBS = Statement(
    "expected_of_jobs",
    "SELECT given.job, (SELECT sum(m.busy_micros) / nullif(sum(m.success + m.failed), 0) FROM job_minutes m"
    " WHERE m.job = given.job AND m.minute > given.since) FROM given",
)
# Reads the newest rows by the index of minutes. They are added up in Python, so that PostgreSQL need not sort by job.
LATELY = Statement(
    "expected_lately",
    "SELECT job, busy_micros, success + failed FROM job_minutes WHERE minute > $1 ORDER BY minute DESC LIMIT $2",
)
MOST_ROWS = 50_000
MINUTE = 60_000_000
LOOK_BACK = 24 * 60  # minutes to look back


def expected_of(jobs: Collection[UUID], now: Instant) -> Script[dict[UUID, Micros]]:
    """Return the mean duration of each job's executions over the last day; jobs without executions are left out."""
    since = now // MINUTE - LOOK_BACK
    rows = yield ForEach(OF_JOBS, (("job", "uuid"), ("since", "bigint")), [(job, since) for job in sorted(jobs)])
    return {job: int(mean) for job, mean in rows if mean is not None}


def expected_since(minute: int) -> Script[dict[UUID, Micros]]:
    """Return the mean duration of each job's executions since a minute; jobs without executions are left out."""
    sums: dict[UUID, tuple[int, int]] = {}
    for job, busy, count in (yield Fetch(LATELY, (minute, MOST_ROWS))):
        before = sums.get(job, (0, 0))
        sums[job] = before[0] + busy, before[1] + count
    return {job: busy // count for job, (busy, count) in sums.items() if count}
