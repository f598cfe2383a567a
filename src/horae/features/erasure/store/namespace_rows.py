"""Definitions of a namespace (jobs and their triggers, templates, calendars, keys and users), deleted row by row.

Also the tables that are not deleted, with the reasons: a test fails for a table that is named nowhere.
"""

import re
from collections.abc import Iterable

from horae.env import Instant
from horae.features.erasure.store.namespace_data import AFFINITIES, BEFORE, STANDING
from horae.store.base import locks
from horae.store.script import Fetch, Script, Statement
from horae.store.tables import BESIDE, PARTITIONED, SHELVES
from horae.store.tenancy import namespaces
from horae.store.tenancy.holdings import OF_JOBS, all_holdings, rows
from horae.store.tenancy.namespaces import DROPS, LiveContents

CLOSE = Statement("close_namespace", "UPDATE namespaces SET state = 'erasing', updated_at = $2 WHERE id = $1")
PLAIN = Statement(
    "plain_namespace", "UPDATE namespaces SET spec = '{}', policy = NULL WHERE id = $1 AND state = 'deleted'"
)
JOBS = Statement(
    "jobs_to_erase",
    "SELECT id FROM jobs WHERE namespace = $1 AND state <> 'deleted' AND owner IS NULL ORDER BY id LIMIT $2",
)
WORKERS = Statement("workers_of_namespace", "SELECT count(*) FROM sessions WHERE namespace = $1 AND ended_at IS NULL")

_TRIGGERS = "trigger_id IN (SELECT id FROM triggers WHERE namespace = $1)"
_DEPENDENTS = "dependent IN (SELECT id FROM jobs WHERE namespace = $1)"
# Rows by which others are found come after those others.
ROWS = (
    rows("fires", "trigger_id, last", _TRIGGERS),
    rows("event_fires", "trigger_id, event", _TRIGGERS),
    rows("watches", "id", "namespace = $1"),
    rows("calendar_triggers", "namespace, calendar, trigger_id", "namespace = $1"),
    rows("timers", "trigger_id", "namespace = $1"),
    rows("triggers", "id", "namespace = $1"),
    rows("job_minutes", "job, minute, server", OF_JOBS),
    rows("rollouts", "job", OF_JOBS),
    rows("streaks", "job", OF_JOBS),
    rows("circuits", "job, key", OF_JOBS),
    rows("circuit_changes", "job, key, era", OF_JOBS),
    rows("circuit_counts", "job, key, era, bucket, server", OF_JOBS),
    rows("join_parts", "dependent, step, interval_start, upstream", _DEPENDENTS),
    rows("joins", "dependent, step, interval_start", _DEPENDENTS),
    rows("dependency_fires", "at, execution", OF_JOBS),
    rows("dependencies", "job, upstream", OF_JOBS),
    rows("dependents", "job", OF_JOBS),
    rows("uses", "job, used", OF_JOBS),
    rows("limits", "name", OF_JOBS),
    rows("template_jobs", "job", OF_JOBS),
    rows("job_versions", "job, version", OF_JOBS),
    rows("jobs", "id", "namespace = $1"),
    rows("templates", "id", "namespace = $1"),
    rows("calendars", "namespace, name, version", "namespace = $1"),
    rows("holds", "id", "namespace = $1"),
    rows("sessions", "id", "namespace = $1 AND ended_at IS NOT NULL"),
    rows("usage_days", "namespace, day, server", "namespace = $1"),
    rows("cookies", "hash", "key_id IN (SELECT id FROM keys WHERE namespace = $1)"),
    rows("keys", "id", "namespace = $1"),
)
# Tables that stay, or are deleted elsewhere.
KEPT = {
    "namespaces": "a number never stands for another tenant; the row keeps the name",
    "holders": "of live executions",
    "tickets": "of live executions",
    "timeouts": "of live executions",
    "requests": "of running executions",
    "rates": "deleted by the names of keys",
    "reservations": "deleted with their lanes",
    "share_charges": "deleted after ten minutes",
    "duties": "of the servers",
    "servers": "of the servers",
    "store": "of the installation",
}


_PREFIX = re.compile("^(drop|erase_some|end_some)_")


def _tables(statements: Iterable[Statement]) -> set[str]:
    return {_PREFIX.sub("", statement.name) for statement in statements}


def known_tables() -> set[str]:
    """Return all tables that a deletion or erasure handles or leaves for a stated reason."""
    tables = {*KEPT, *PARTITIONED, *SHELVES, *BESIDE, *_tables((*DROPS, *ROWS, *BEFORE, *STANDING, AFFINITIES))}
    for holdings in all_holdings():
        tables |= {*holdings.counted, *holdings.kept}
        tables |= _tables((*holdings.drops, *holdings.records, *holdings.rows))
    return tables


def close(namespace: int, now: Instant) -> Script[int]:
    """Close a namespace to new credentials and lasting data, unless it has workers; return their number."""
    yield from locks.take(locks.of_namespace(namespace))
    ((workers,),) = yield Fetch(WORKERS, (namespace,))
    if not workers:
        yield Fetch(CLOSE, (namespace, now))
        yield Fetch(namespaces.REVOKE, (namespace, now))
    return int(workers)


def jobs_left(namespace: int, most: int) -> Script[list[str]]:
    """Return some jobs that still exist."""
    return [str(row[0]) for row in (yield Fetch(JOBS, (namespace, most)))]


def erase_rows(namespace: int, most: int) -> Script[tuple[int, bool]]:
    """Delete a batch of definitions; return the number of rows, and whether there may be more.

    Tables are emptied in order: rows by which others are found are deleted after those others.
    """
    counted = 0
    for statement in (*(one for holdings in all_holdings() for one in holdings.rows), *ROWS):
        gone = len((yield Fetch(statement, (namespace, most))))
        counted += gone
        if gone == most:
            return counted, True
    return counted, False


def end(namespace: int, now: Instant) -> Script[LiveContents | None]:
    """End a namespace after everything in it was erased; return its live contents if there are any after all."""
    alive = yield from namespaces.delete(namespace, now)
    if alive is None:
        yield Fetch(PLAIN, (namespace,))
    return alive
