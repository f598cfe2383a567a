"""Erasure of a namespace's data other than executions: unique keys, holds, circuits, sessions and stored answers.

Rows are deleted in batches, and only if they are older than an instant, so that new ones stay. `namespace_rows` lists
the tables from which no rows are deleted, with the reasons.
"""

from typing import Any

from horae.env import Instant
from horae.model.admission.limits import BY_KEY, job_of
from horae.model.base.ids import first_id_at
from horae.store.script import ColumnType, Fetch, ForEach, Script, Statement
from horae.store.tenancy.holdings import OF_JOBS, all_holdings, records, rows

BEFORE = (
    records("idempotency", "namespace, route, key", "namespace = $1 AND created_at < $2"),
    records("holds", "id", "namespace = $1 AND ended_at < $2"),
    records("circuit_changes", "job, key, era", f"{OF_JOBS} AND at < $2"),
    records("circuits", "job, key", f"{OF_JOBS} AND since < $2 AND state = 'closed'"),
    records(
        "sessions",
        "id",
        "namespace = $1 AND ended_at < $2 AND NOT EXISTS (SELECT 1 FROM running r WHERE r.session = sessions.id)",
    ),
)
# The age of these rows is that of the execution that holds the key.
STANDING = (
    records("unique_keys", "namespace, scope, key", "namespace = $1 AND execution < $2"),
    records("meetings", "job, kind, key", f"{OF_JOBS} AND execution < $2"),
)
AFFINITIES = rows("affinities", "job, key", OF_JOBS)  # all of them are deleted, because new ones are soon recorded
# The pace of a rate is the instant at which the next start would be exactly on schedule. If it is in the past, the rate
# is in the same state as a new one, so that its row may be deleted.
PACES = Statement("paces_after", "SELECT name FROM rates WHERE name > $1 AND pace < $2 ORDER BY name LIMIT $3")
OWN_JOBS = Statement(
    "jobs_of_namespace",
    "SELECT j.id FROM given JOIN jobs j ON j.id = given.id WHERE j.namespace = $2",
)
NO_PACE = Statement("erase_paces", "DELETE FROM rates USING given WHERE rates.name = given.name AND rates.pace < $2")
_ID: tuple[tuple[str, ColumnType], ...] = (("id", "uuid"),)
_NAME: tuple[tuple[str, ColumnType], ...] = (("name", "text"),)


def erase_records(namespace: int, before: Instant, most: int) -> Script[tuple[int, bool]]:
    """Delete a batch of each kind of record; return the number of rows, and whether there may be more."""
    counted, more = 0, False
    dated = (*BEFORE, *(one for holdings in all_holdings() for one in holdings.records))
    deletions: list[tuple[Statement, tuple[Any, ...]]] = [(statement, (namespace, before, most)) for statement in dated]
    deletions += [(statement, (namespace, first_id_at(before), most)) for statement in STANDING]
    for statement, params in (*deletions, (AFFINITIES, (namespace, most))):
        gone = len((yield Fetch(statement, params)))
        counted, more = counted + gone, more or gone == most
    return counted, more


def erase_paces(namespace: int, after: str, before: Instant, most: int) -> Script[tuple[int, str | None]]:
    """Delete the rates of a namespace's jobs in a page of rates whose pace is in the past.

    Return their number, and the name after which the next page begins, or None after the last page.
    """
    names = [name for (name,) in (yield Fetch(PACES, (after, before, most)))]
    jobs = {name: job_of(name) for name in names if name.startswith(BY_KEY)}
    wanted = [(job,) for job in sorted(set(jobs.values()))]
    own = {job for (job,) in (yield ForEach(OWN_JOBS, _ID, wanted, (namespace,)))}
    gone = [(name,) for name, job in jobs.items() if job in own]
    yield ForEach(NO_PACE, _NAME, gone, (before,))
    return len(gone), names[-1] if len(names) == most else None
