"""Writes of statistics. Each writer has rows of its own, so that servers do not wait for each other.

A flush adds counts to the rows of minutes. Rows of longer spans are added up in memory and overwritten as a whole, so
that a write can be repeated if it is unknown whether it succeeded.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from horae.env import SECOND, Instant
from horae.model.executions.tally import RETENTION, JobTally, NamespaceTally, OutcomeCounts
from horae.store.base.shelves import Columns
from horae.store.expiry.expiry import Cutoffs
from horae.store.script import Among, Fetch, Insert, Script, Statement
from horae.store.tenancy.holdings import OF_JOBS, Holdings, rows

_COUNTS: Columns = (
    ("success", "int"), ("failed", "int"), ("cancelled", "int"), ("skipped", "int"), ("retried", "int"),
    ("lost", "int"), ("busy_micros", "bigint"),
)  # fmt: skip
COLUMNS: Columns = (("job", "uuid"), ("minute", "bigint"), ("server", "uuid"), *_COUNTS)
_SUMS = ", ".join(f"{name} = job_minutes.{name} + excluded.{name}" for name, _ in _COUNTS)
JOB_COLUMNS: Columns = (
    ("job", "uuid"), ("span", "int"), ("at", "bigint"), ("writer", "uuid"), *_COUNTS, ("durations", "bytea"),
    ("waits", "bytea"),
)  # fmt: skip
NAMESPACE_COLUMNS: Columns = (
    ("namespace", "int"), ("span", "int"), ("at", "bigint"), ("writer", "uuid"), *_COUNTS, ("lags", "bytea"),
    ("lag_max", "bigint"), ("waits", "bytea"), ("queued", "int"),
)  # fmt: skip
NAMESPACES = Statement("namespaces_of_jobs", "SELECT id, namespace FROM jobs WHERE id = ANY($1)")

JobKey = tuple[UUID, int, Instant]  # a job, the seconds of a span, and its beginning
NamespaceKey = tuple[int, int, Instant]  # a namespace, the seconds of a span, and its beginning
HOLDINGS = Holdings(
    rows=(
        rows("job_spans", "job, span, at, writer", OF_JOBS),
        rows("namespace_spans", "namespace, span, at, writer", "namespace = $1"),
    )
)


def _whole(columns: Columns) -> str:
    """Return the ON CONFLICT clause that overwrites existing rows; the first four columns are the key."""
    keys = ", ".join(name for name, _ in columns[:4])
    return f"ON CONFLICT ({keys}) DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name, _ in columns[4:])


_WHOLE_JOB, _WHOLE_NAMESPACE = _whole(JOB_COLUMNS), _whole(NAMESPACE_COLUMNS)


def _counted(c: OutcomeCounts) -> tuple[int, ...]:
    return c.success, c.failed, c.cancelled, c.skipped, c.retried, c.lost, c.busy


def add(server: UUID, counts: Mapping[tuple[UUID, int], OutcomeCounts]) -> Script[None]:
    """Add counts by job and minute to the rows of a server."""
    rows = [(job, minute, server, *_counted(c)) for (job, minute), c in sorted(counts.items())]
    yield Insert("job_minutes", COLUMNS, rows, conflict=f"ON CONFLICT (job, minute, server) DO UPDATE SET {_SUMS}")


def put_jobs(writer: UUID, tallies: Iterable[tuple[JobKey, JobTally]]) -> Script[None]:
    """Overwrite a writer's rows of jobs with their current counts."""
    rows = [(*key, writer, *_counted(t), t.durations.packed(), t.waits.packed()) for key, t in tallies]
    yield Insert("job_spans", JOB_COLUMNS, sorted(rows), conflict=_WHOLE_JOB)


def put_namespaces(writer: UUID, tallies: Iterable[tuple[NamespaceKey, NamespaceTally]]) -> Script[None]:
    """Overwrite a writer's rows of namespaces with their current counts."""
    rows = [(*key, writer, *_counted(t), t.lags.packed(), t.lag_max, t.waits.packed(), t.queued) for key, t in tallies]
    yield Insert("namespace_spans", NAMESPACE_COLUMNS, sorted(rows), conflict=_WHOLE_NAMESPACE)


def namespaces_of(jobs: Iterable[UUID]) -> Script[dict[UUID, int]]:
    """Return the namespaces of these jobs."""
    return dict((yield Among(NAMESPACES, sorted(jobs))))


def _expiry(table: str, of: str) -> Statement:
    keys = f"{of}, span, at, writer"
    return Statement(
        f"expire_{table}",
        f"WITH old AS MATERIALIZED (SELECT {keys} FROM {table} WHERE span = $1 AND at < $2 ORDER BY at LIMIT $3)"
        f" DELETE FROM {table} WHERE ({keys}) IN (SELECT {keys} FROM old) RETURNING 1",
    )


EXPIRE = (_expiry("job_spans", "job"), _expiry("namespace_spans", "namespace"))


def sweep(cutoffs: Cutoffs, most: int = 1000) -> Script[bool]:
    """Delete a batch of rows of each length that are past their retention; return whether there may be more."""
    more = False
    for statement in EXPIRE:
        for span, kept in RETENTION.items():
            more |= len((yield Fetch(statement, (span, cutoffs.now - kept * SECOND, most)))) == most
    return more
